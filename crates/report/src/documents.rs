//! JSON of the commands other than the demo, and its JSON Schemas.
//!
//! What must hold: a document is one object with a newline at its end, and every field is there, `null`
//! where nothing was measured.

use nicpoll_model::ab::{AB_SCHEMA, LiveAb};
use nicpoll_model::blast::{BLAST_SCHEMA, BlastDocument};
use nicpoll_model::forward::{FORWARD_SCHEMA, ForwardDocument};
use nicpoll_model::iperf::{IPERF_SCHEMA, IperfEvent, IperfRun};
use nicpoll_model::line::{LINE_RATES_SCHEMA, LineRates};
use nicpoll_model::netrate::{
    NETBLAST_SCHEMA, NETRECEIVE_SCHEMA, NETSEND_SCHEMA, Netblast, Netreceive, Netsend,
};
use nicpoll_model::repeat::{IPERF_RUNS_SCHEMA, IperfRuns, NETBLAST_RUNS_SCHEMA, NetblastRuns};
use nicpoll_model::rr::{RR_SCHEMA, RrDocument};
use nicpoll_model::sim::{SIM_RUN_SCHEMA, SIM_SWEEP_SCHEMA, SimRun, SimSweep};
use nicpoll_model::sim_fit_host::{SIM_FIT_HOST_SCHEMA, SimFitHost};
use nicpoll_model::sim_published::{SIM_PUBLISHED_SCHEMA, SimPublished};
use nicpoll_model::sink::{SINK_SCHEMA, SinkDocument};
use nicpoll_model::ticks::{SIM_TICKS_SCHEMA, SimTicks};
use nicpoll_model::{
    COMPARED_SCHEMA, Compared, DOCTOR_SCHEMA, Doctor, IMPORTED_SCHEMA, Imported, SET_SCHEMA,
    SHOW_SCHEMA, STUDIES_SCHEMA, STUDY_PLAN_SCHEMA, Show, Studies, StudyPlan, SwitchRun,
    WATCH_SCHEMA, WatchEnd, WatchSample, WatchStart,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::json::schema_of;

/// A document as one pretty-printed JSON object.
pub fn render_document<T: Serialize>(document: &T) -> String {
    let mut text =
        serde_json::to_string_pretty(document).expect("a document has string keys and serialises");
    text.push('\n');
    text
}

/// An event of a stream as one line of JSON: `{"event": ..., "data": ...}`.
pub fn render_event<T: Serialize>(event: &'static str, data: &T) -> String {
    #[derive(Serialize)]
    struct Event<'a, T> {
        event: &'static str,
        data: &'a T,
    }
    let mut text = serde_json::to_string(&Event { event, data })
        .expect("an event has string keys and serialises");
    text.push('\n');
    text
}

/// The JSON Schema of what `nicpoll ab --json` prints.
pub(crate) fn ab_schema() -> String {
    schema_of::<LiveAb>(
        "What `nicpoll ab --json` prints",
        "An interface under two settings in turn, with the traffic that it has. docs/ab.md explains it. Units \
         stand in field names; null means not measured.",
        AB_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll study compare --json` prints.
pub(crate) fn compared_schema() -> String {
    schema_of::<Compared>(
        "What `nicpoll study compare --json` prints",
        "Two results side by side. docs/compare.md explains it. Units stand in field names, and that of values in \
         `quantity`; null means that there is no such figure.",
        COMPARED_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll study import --json` prints.
pub(crate) fn imported_schema() -> String {
    schema_of::<Imported>(
        "What `nicpoll study import --json` prints",
        "Trials that a text tells of, each figure with the place where it stands. docs/import.md explains it. Units stand \
         in field names and in the names of figures; null means that nothing says it.",
        IMPORTED_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll linerate --json` prints.
pub(crate) fn line_rates_schema() -> String {
    schema_of::<LineRates>(
        "What `nicpoll linerate --json` prints",
        "Rates of a line at full load. docs/linerate.md explains it. Units stand in field names.",
        LINE_RATES_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll study run --dry-run --json` prints.
pub(crate) fn study_plan_schema() -> String {
    schema_of::<StudyPlan>(
        "What `nicpoll study run --dry-run --json` prints",
        "What a study would do. docs/studies.md explains it. Units stand in field names.",
        STUDY_PLAN_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll rr --json` prints. The events of `--json-stream` hold its parts.
pub(crate) fn rr_schema() -> String {
    schema_of::<RrDocument>(
        "What `nicpoll rr --json` prints",
        "One end of a request/response test. docs/rr.md explains it. Units stand in field names; null \
         means not measured, or not asked for.",
        RR_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll iperf --json` prints, and of a line of `--json-stream`.
pub(crate) fn iperf_schema() -> String {
    /// Either form.
    #[derive(JsonSchema)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only its schema is used")]
    enum Output {
        Run(Box<IperfRun>),
        Event(Box<IperfEvent>),
    }
    schema_of::<Output>(
        "What `nicpoll iperf --json` prints, or one line of `--json-stream`",
        "A test with its streams, as each side counted them, or one thing that happened in it. \
         docs/schema.md explains it. Units stand in field names; null means not measured.",
        IPERF_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll iperf --repeat N --json` prints.
pub(crate) fn iperf_runs_schema() -> String {
    schema_of::<IperfRuns>(
        "What `nicpoll iperf --repeat N --json` prints",
        "Several runs of one test, and what they came to. docs/schema.md explains it. Units stand in field \
         names; null means not measured.",
        IPERF_RUNS_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll set --json` and `nicpoll restore --json` print.
pub(crate) fn set_schema() -> String {
    schema_of::<SwitchRun>(
        "What `nicpoll set --json` and `nicpoll restore --json` print",
        "Each value that was written, and what was seen afterwards. docs/switch.md explains it. Units stand in \
         field names; null means not measured, or not asked for.",
        SET_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll netblast --json` prints.
pub(crate) fn netblast_schema() -> String {
    schema_of::<Netblast>(
        "What `nicpoll netblast --json` prints",
        "What one sender sent as fast as it could. docs/schema.md explains it. Units stand in field names; \
         null means not measured, or not asked for.",
        NETBLAST_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll netblast --repeat N --json` prints.
pub(crate) fn netblast_runs_schema() -> String {
    schema_of::<NetblastRuns>(
        "What `nicpoll netblast --repeat N --json` prints",
        "Several runs of one test, and what they came to. docs/schema.md explains it. Units stand in field \
         names; null means not measured, or not asked for.",
        NETBLAST_RUNS_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll netsend --json` prints.
pub(crate) fn netsend_schema() -> String {
    schema_of::<Netsend>(
        "What `nicpoll netsend --json` prints",
        "What one sender sent at a rate. docs/schema.md explains it. Units stand in field names; null means \
         not measured, or not asked for.",
        NETSEND_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll netreceive --json` prints.
pub(crate) fn netreceive_schema() -> String {
    schema_of::<Netreceive>(
        "What `nicpoll netreceive --json` prints",
        "What one receiver received, and what was dropped on the way to it. docs/schema.md explains it. Units \
         stand in field names; null means not measured.",
        NETRECEIVE_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll study list --json` and `nicpoll study delete --json` print.
pub(crate) fn studies_schema() -> String {
    schema_of::<Studies>(
        "What `nicpoll study list --json` and `nicpoll study delete --json` print",
        "Studies of a store. docs/store.md explains it. Units stand in field names; null means that there is \
         nothing to tell.",
        STUDIES_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll show --json` prints.
pub(crate) fn show_schema() -> String {
    schema_of::<Show>(
        "What `nicpoll show --json` prints",
        "What interfaces can do and do. docs/schema.md explains it. Units stand in field names; null means \
         that it could not be seen, or is not there.",
        SHOW_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll doctor --json` prints.
pub(crate) fn doctor_schema() -> String {
    schema_of::<Doctor>(
        "What `nicpoll doctor --json` prints",
        "What a machine can do, and what disturbs measurements on it. docs/schema.md explains it.",
        DOCTOR_SCHEMA,
    )
}

/// The JSON Schema of a line that `nicpoll watch --json-stream` prints.
pub(crate) fn watch_schema() -> String {
    /// One of them a line.
    #[derive(JsonSchema)]
    #[serde(tag = "event", content = "data", rename_all = "lowercase")]
    #[expect(dead_code, reason = "only its schema is used")]
    enum Line {
        /// The first line.
        Start(Box<WatchStart>),
        /// An interval has ended.
        Interval(Box<WatchSample>),
        /// The last line.
        End(Box<WatchEnd>),
    }
    schema_of::<Line>(
        "One line of what `nicpoll watch --json-stream` prints",
        "What the interfaces, CPUs and counters of a namespace do. docs/schema.md explains it. Units stand in \
         field names; null means not measured.",
        WATCH_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll sim run --json` prints.
pub(crate) fn sim_run_schema() -> String {
    schema_of::<SimRun>(
        "What `nicpoll sim run --json` prints",
        "One run of simulated hosts in a row, or of one with ideal hosts at the far end of its lines. docs/simulator.md \
         and docs/sim-paths.md explain it. Nothing in it was measured. Units stand in field names; null means that \
         there is no such figure.",
        SIM_RUN_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll sim fit --host --json` prints.
pub(crate) fn sim_fit_host_schema() -> String {
    schema_of::<SimFitHost>(
        "What `nicpoll sim fit --host --json` prints",
        "What receiving costs on a machine, and what the simulator predicts from that. \
         docs/sim-this-machine.md explains it. Units stand in field names; null means not measured.",
        SIM_FIT_HOST_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll sim sweep --json` prints.
pub(crate) fn sim_sweep_schema() -> String {
    schema_of::<SimSweep>(
        "What `nicpoll sim sweep --json` prints",
        "Runs of a simulated host over a range of one parameter. docs/simulator.md explains it. Nothing in \
         it was measured. Units stand in field names; null means that there is no such figure.",
        SIM_SWEEP_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll forward --json` prints.
pub(crate) fn forward_schema() -> String {
    schema_of::<ForwardDocument>(
        "What `nicpoll forward --json` prints",
        "Where the packets ended that came to a router's interfaces. docs/forward.md explains it. Units stand in field \
         names; null means not measured, or not asked for.",
        FORWARD_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll blast --json` prints.
pub(crate) fn blast_schema() -> String {
    schema_of::<BlastDocument>(
        "What `nicpoll blast --json` prints",
        "What was sent past the kernel's stack, and what became of it. docs/blast.md explains it. Units stand in field \
         names; null means not measured, or not asked for.",
        BLAST_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll sink --json` prints.
pub(crate) fn sink_schema() -> String {
    schema_of::<SinkDocument>(
        "What `nicpoll sink --json` prints",
        "What an interface's packets came to that a program received by polling. docs/engine.md explains it. Units \
         stand in field names; null means not measured, or not asked for.",
        SINK_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll sim ticks --json` prints.
pub(crate) fn sim_ticks_schema() -> String {
    schema_of::<SimTicks>(
        "What `nicpoll sim ticks --json` prints",
        "Pulses of work, exactly and as clock ticks sample them. docs/cpu-time.md explains it. Nothing in \
         it was measured. Units stand in field names; null means that there is no such figure.",
        SIM_TICKS_SCHEMA,
    )
}

/// The JSON Schema of what `nicpoll sim published --json` prints.
pub(crate) fn sim_published_schema() -> String {
    schema_of::<SimPublished>(
        "What `nicpoll sim published --json` prints",
        "Published measurements beside simulated ones. docs/published.md explains it. Null means not stated by \
         the source, not scored or not simulated.",
        SIM_PUBLISHED_SCHEMA,
    )
}
