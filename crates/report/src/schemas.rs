//! The JSON Schemas of all that commands print. `docs/nicpoll.NAME-1.schema.json` holds each;
//! `cargo run -p nicpoll-report --example schemas` writes them.

use crate::documents::{
    doctor_schema, iperf_schema, line_rates_schema, netblast_schema, netreceive_schema,
    netsend_schema, rr_schema, set_schema, show_schema, sim_fit_host_schema, sim_path_schema,
    sim_published_schema, sim_run_schema, sim_sweep_schema, sim_ticks_schema, watch_schema,
};
use crate::json::{cpu_truth_json_schema, json_schema};

/// The name of a kind of document, and what makes its schema.
pub type NamedSchema = (&'static str, fn() -> String);

/// Every kind of document.
pub const SCHEMAS: [NamedSchema; 18] = [
    ("cpu-truth", cpu_truth_json_schema),
    ("demo", json_schema),
    ("doctor", doctor_schema),
    ("iperf", iperf_schema),
    ("linerate", line_rates_schema),
    ("netblast", netblast_schema),
    ("netreceive", netreceive_schema),
    ("netsend", netsend_schema),
    ("rr", rr_schema),
    ("set", set_schema),
    ("show", show_schema),
    ("sim-fit-host", sim_fit_host_schema),
    ("sim-path", sim_path_schema),
    ("sim-published", sim_published_schema),
    ("sim-run", sim_run_schema),
    ("sim-sweep", sim_sweep_schema),
    ("sim-ticks", sim_ticks_schema),
    ("watch", watch_schema),
];
