//! Prints the JSON Schema of what a command prints: of a study, or of the command that is named.
//!
//! ```text
//! cargo run -p nicpoll-report --example schema > docs/nicpoll.demo-1.schema.json
//! cargo run -p nicpoll-report --example schema iperf > docs/nicpoll.iperf-1.schema.json
//! cargo run -p nicpoll-report --example schema linerate > docs/nicpoll.linerate-1.schema.json
//! cargo run -p nicpoll-report --example schema rr > docs/nicpoll.rr-1.schema.json
//! cargo run -p nicpoll-report --example schema set > docs/nicpoll.set-1.schema.json
//! cargo run -p nicpoll-report --example schema show > docs/nicpoll.show-1.schema.json
//! cargo run -p nicpoll-report --example schema doctor > docs/nicpoll.doctor-1.schema.json
//! cargo run -p nicpoll-report --example schema watch > docs/nicpoll.watch-1.schema.json
//! cargo run -p nicpoll-report --example schema netblast > docs/nicpoll.netblast-1.schema.json
//! cargo run -p nicpoll-report --example schema netsend > docs/nicpoll.netsend-1.schema.json
//! cargo run -p nicpoll-report --example schema netreceive > docs/nicpoll.netreceive-1.schema.json
//! cargo run -p nicpoll-report --example schema cpu-truth > docs/nicpoll.cpu-truth-1.schema.json
//! cargo run -p nicpoll-report --example schema sim-run > docs/nicpoll.sim-run-1.schema.json
//! cargo run -p nicpoll-report --example schema sim-path > docs/nicpoll.sim-path-1.schema.json
//! cargo run -p nicpoll-report --example schema sim-sweep > docs/nicpoll.sim-sweep-1.schema.json
//! ```

fn main() {
    let command = std::env::args().nth(1);
    let schema = match command.as_deref() {
        None | Some("demo") => nicpoll_report::json_schema(),
        Some("cpu-truth") => nicpoll_report::cpu_truth_json_schema(),
        Some("doctor") => nicpoll_report::doctor_schema(),
        Some("netblast") => nicpoll_report::netblast_schema(),
        Some("netreceive") => nicpoll_report::netreceive_schema(),
        Some("netsend") => nicpoll_report::netsend_schema(),
        Some("show") => nicpoll_report::show_schema(),
        Some("watch") => nicpoll_report::watch_schema(),
        Some("iperf") => nicpoll_report::iperf_schema(),
        Some("linerate") => nicpoll_report::line_rates_schema(),
        Some("rr") => nicpoll_report::rr_schema(),
        Some("set") => nicpoll_report::set_schema(),
        Some("sim-run") => nicpoll_report::sim_run_schema(),
        Some("sim-path") => nicpoll_report::sim_path_schema(),
        Some("sim-sweep") => nicpoll_report::sim_sweep_schema(),
        Some(other) => panic!(
            "{other} has no schema; name cpu-truth, demo, doctor, iperf, linerate, netblast, netreceive, netsend, \
             rr, set, show, sim-run, sim-path, sim-sweep or watch"
        ),
    };
    print!("{schema}");
}
