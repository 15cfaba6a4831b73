//! The JSON Schemas of all that commands print. `docs/` holds each in a [file of its own](schema_file);
//! `cargo run -p nicpoll-report --example schemas` writes them.

use nicpoll_model::ab::AB_SCHEMA;
use nicpoll_model::blast::BLAST_SCHEMA;
use nicpoll_model::forward::FORWARD_SCHEMA;
use nicpoll_model::iperf::IPERF_SCHEMA;
use nicpoll_model::line::LINE_RATES_SCHEMA;
use nicpoll_model::netrate::{NETBLAST_SCHEMA, NETRECEIVE_SCHEMA, NETSEND_SCHEMA};
use nicpoll_model::repeat::{IPERF_RUNS_SCHEMA, NETBLAST_RUNS_SCHEMA};
use nicpoll_model::rr::RR_SCHEMA;
use nicpoll_model::sim::{SIM_RUN_SCHEMA, SIM_SWEEP_SCHEMA};
use nicpoll_model::sim_fit_host::SIM_FIT_HOST_SCHEMA;
use nicpoll_model::sim_published::SIM_PUBLISHED_SCHEMA;
use nicpoll_model::sink::SINK_SCHEMA;
use nicpoll_model::ticks::SIM_TICKS_SCHEMA;
use nicpoll_model::{
    COMPARED_SCHEMA, CPU_TRUTH_SCHEMA, DOCTOR_SCHEMA, IMPORTED_SCHEMA, SCHEMA, SET_SCHEMA,
    SHOW_SCHEMA, STUDIES_SCHEMA, STUDY_PLAN_SCHEMA, WATCH_SCHEMA,
};

use crate::documents::{
    ab_schema, blast_schema, compared_schema, doctor_schema, forward_schema, imported_schema,
    iperf_runs_schema, iperf_schema, line_rates_schema, netblast_runs_schema, netblast_schema,
    netreceive_schema, netsend_schema, rr_schema, set_schema, show_schema, sim_fit_host_schema,
    sim_published_schema, sim_run_schema, sim_sweep_schema, sim_ticks_schema, sink_schema,
    studies_schema, study_plan_schema, watch_schema,
};
use crate::json::{cpu_truth_json_schema, json_schema};

/// The name and version of a kind of document, and what makes its schema.
pub type NamedSchema = (&'static str, fn() -> String);

/// Every kind of document.
pub const SCHEMAS: [NamedSchema; 27] = [
    (AB_SCHEMA, ab_schema),
    (BLAST_SCHEMA, blast_schema),
    (CPU_TRUTH_SCHEMA, cpu_truth_json_schema),
    (SCHEMA, json_schema),
    (DOCTOR_SCHEMA, doctor_schema),
    (FORWARD_SCHEMA, forward_schema),
    (IMPORTED_SCHEMA, imported_schema),
    (IPERF_SCHEMA, iperf_schema),
    (IPERF_RUNS_SCHEMA, iperf_runs_schema),
    (LINE_RATES_SCHEMA, line_rates_schema),
    (NETBLAST_SCHEMA, netblast_schema),
    (NETBLAST_RUNS_SCHEMA, netblast_runs_schema),
    (NETRECEIVE_SCHEMA, netreceive_schema),
    (NETSEND_SCHEMA, netsend_schema),
    (RR_SCHEMA, rr_schema),
    (SET_SCHEMA, set_schema),
    (SHOW_SCHEMA, show_schema),
    (SIM_FIT_HOST_SCHEMA, sim_fit_host_schema),
    (SIM_PUBLISHED_SCHEMA, sim_published_schema),
    (SIM_RUN_SCHEMA, sim_run_schema),
    (SIM_SWEEP_SCHEMA, sim_sweep_schema),
    (SIM_TICKS_SCHEMA, sim_ticks_schema),
    (SINK_SCHEMA, sink_schema),
    (STUDIES_SCHEMA, studies_schema),
    (COMPARED_SCHEMA, compared_schema),
    (STUDY_PLAN_SCHEMA, study_plan_schema),
    (WATCH_SCHEMA, watch_schema),
];

/// The file in `docs/` that holds the schema of a kind of document: `nicpoll.show-1.schema.json` for `nicpoll.show/1`.
pub fn schema_file(document: &str) -> String {
    format!("{}.schema.json", document.replace('/', "-"))
}
