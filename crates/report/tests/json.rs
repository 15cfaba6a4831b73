//! The JSON of the fixture and the schema that describes it.

mod fixture;

use nicpoll_model::Study;
use nicpoll_report::{
    doctor_schema, iperf_schema, json_schema, line_rates_schema, netblast_schema,
    netreceive_schema, netsend_schema, render_json, rr_schema, set_schema, show_schema,
    sim_path_schema, sim_run_schema, sim_sweep_schema, watch_schema,
};
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../docs/nicpoll.demo-1.schema.json");

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

#[test]
fn the_committed_schema_is_the_one_of_the_model() {
    assert!(
        json_schema() == SCHEMA,
        "the model changed. Run: cargo run -p nicpoll-report --example schema > \
         docs/nicpoll.demo-1.schema.json, and describe the change in docs/schema.md"
    );
}

#[test]
fn the_committed_schemas_of_other_commands_are_those_of_the_model() {
    let doctor = include_str!("../../../docs/nicpoll.doctor-1.schema.json");
    let iperf = include_str!("../../../docs/nicpoll.iperf-1.schema.json");
    let netblast = include_str!("../../../docs/nicpoll.netblast-1.schema.json");
    let netreceive = include_str!("../../../docs/nicpoll.netreceive-1.schema.json");
    let netsend = include_str!("../../../docs/nicpoll.netsend-1.schema.json");
    let show = include_str!("../../../docs/nicpoll.show-1.schema.json");
    let watch = include_str!("../../../docs/nicpoll.watch-1.schema.json");
    let linerate = include_str!("../../../docs/nicpoll.linerate-1.schema.json");
    let rr = include_str!("../../../docs/nicpoll.rr-1.schema.json");
    let set = include_str!("../../../docs/nicpoll.set-1.schema.json");
    let sim_run = include_str!("../../../docs/nicpoll.sim-run-1.schema.json");
    let sim_path = include_str!("../../../docs/nicpoll.sim-path-1.schema.json");
    let sim_sweep = include_str!("../../../docs/nicpoll.sim-sweep-1.schema.json");
    for (command, schema, committed) in [
        ("doctor", doctor_schema(), doctor),
        ("iperf", iperf_schema(), iperf),
        ("netblast", netblast_schema(), netblast),
        ("netreceive", netreceive_schema(), netreceive),
        ("netsend", netsend_schema(), netsend),
        ("show", show_schema(), show),
        ("watch", watch_schema(), watch),
        ("linerate", line_rates_schema(), linerate),
        ("rr", rr_schema(), rr),
        ("set", set_schema(), set),
        ("sim-run", sim_run_schema(), sim_run),
        ("sim-path", sim_path_schema(), sim_path),
        ("sim-sweep", sim_sweep_schema(), sim_sweep),
    ] {
        assert!(
            schema == committed,
            "the model changed. Run: cargo run -p nicpoll-report --example schema {command} > \
             docs/nicpoll.{command}-1.schema.json, and describe the change in its page"
        );
    }
    // The version is pinned in each part that states it.
    assert_eq!(iperf.matches("\"const\": \"nicpoll.iperf/1\"").count(), 2);
    assert_eq!(watch.matches("\"const\": \"nicpoll.watch/1\"").count(), 1);
    assert!(netsend.contains("\"const\": \"nicpoll.netsend/1\""));
}

#[test]
fn a_study_is_valid_by_its_schema() {
    let validator = jsonschema::draft202012::new(&json(SCHEMA)).expect("the schema is valid");
    let mut study = json(&render_json(&fixture::study()));
    let errors: Vec<String> = validator
        .iter_errors(&study)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert_eq!(errors, Vec::<String>::new());

    study["schema"] = Value::from("nicpoll.demo/2");
    assert!(!validator.is_valid(&study), "another version is refused");
}

#[test]
fn what_was_not_measured_is_there_as_null() {
    let validator = jsonschema::draft202012::new(&json(SCHEMA)).expect("the schema is valid");
    let mut study = json(&render_json(&fixture::study()));
    let trial = study["trials"]
        .as_array_mut()
        .and_then(|trials| trials.iter_mut().find(|trial| trial["workload"] == "tcp"))
        .and_then(Value::as_object_mut)
        .expect("there are TCP trials");
    assert_eq!(trial["loss_ratio"], Value::Null);
    trial.remove("loss_ratio");
    assert!(!validator.is_valid(&study), "no field may be left out");
}

#[test]
fn a_study_reads_back_as_it_was() {
    let study = fixture::study();
    let text = render_json(&study);
    assert!(text.starts_with("{\n") && text.ends_with("}\n"));
    let read: Study = serde_json::from_str(&text).expect("it reads back");
    assert_eq!(read, study);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "not finite")]
fn a_figure_that_is_not_finite_is_refused() {
    let mut study = fixture::study();
    study.comparisons[0].ratio = Some(f64::NAN);
    render_json(&study);
}
