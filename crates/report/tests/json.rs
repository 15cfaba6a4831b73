//! The JSON of the fixture and the schema that describes it.

mod fixture;

use std::fs;
use std::path::Path;

use nicpoll_model::traffic::IPERF_SCHEMA;
use nicpoll_model::{Study, WATCH_SCHEMA};
use nicpoll_report::{SCHEMAS, render_document, render_json, schema_file};
use serde_json::{Value, json as object};

const SCHEMA: &str = include_str!("../../../docs/nicpoll.demo-4.schema.json");

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

#[test]
fn a_field_is_a_line() {
    let odd = object!({
        "text": "a \"quoted\" {brace}, a: colon \\", "none": {}, "list": [], "deep": [[1.5, null], {"a": []}],
    });
    let pretty = serde_json::to_string_pretty(&odd).unwrap();
    assert_eq!(render_document(&odd), pretty + "\n");
}

#[test]
fn the_committed_schemas_are_those_of_the_model() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for (name, schema) in SCHEMAS {
        let file = docs.join(schema_file(name));
        let schema = schema(name);
        assert!(
            fs::read_to_string(&file).is_ok_and(|committed| committed == schema),
            "the model of {name} changed. Run: cargo run -p nicpoll-report --example schemas, and describe \
             the change in its page"
        );
        // The version is pinned in each part that states it.
        let version = format!("\"const\": \"{name}\"");
        assert!(schema.contains(&version), "{name}");
    }
    let parts = |name: &str| {
        let (_, schema) = SCHEMAS.iter().find(|(other, _)| *other == name).unwrap();
        schema(name)
            .matches(&format!("\"const\": \"{name}\""))
            .count()
    };
    assert_eq!((parts(IPERF_SCHEMA), parts(WATCH_SCHEMA)), (2, 1));
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

    study["schema"] = Value::from("nicpoll.demo/1");
    assert!(!validator.is_valid(&study), "another version is refused");
}

#[test]
fn what_was_not_measured_is_there_as_null() {
    let validator = jsonschema::draft202012::new(&json(SCHEMA)).expect("the schema is valid");
    let mut study = json(&render_json(&fixture::study()));
    let trial = study["trials"]
        .as_array_mut()
        .and_then(|trials| trials.iter_mut().find(|trial| trial["workload"] == "tcp"))
        .and_then(|trial| trial["figures"].as_object_mut())
        .expect("there are TCP trials");
    assert_eq!(trial["loss_ratio"], Value::Null);
    trial.remove("loss_ratio");
    assert!(!validator.is_valid(&study), "no field may be left out");
}

/// Units and countable things: one word of a number's name must be among them.
const UNITS: &str = "changes softirqs seconds second ns bytes byte packets packet datagrams segments ratio share \
    p load blocks trials pairs retries attempts comparisons slots polls poll rounds event events \
    frames transactions timeouts cpus irqs interrupts entries switches intervals calls runs call \
    errors successes looks threads streams records samples pulses pulse tries reads tags cores \
    messages responses requests sends connections queues repeats figures parameters rows clients \
    handovers squeezes cycles passes reports acknowledgements retransmits probes points ppm \
    ticks hz lines hosts simulations thousandths";
/// Numbers that identify something.
const NAMES: &str = "seed block sequence core sender_cpu receiver_cpu napi_id netns_inode ifindex id port \
    udp_ports cpu peer_port port_max errno ended_by_signal type_of_service queue irq pid \
    owner_pid host from to number of threaded outliers step_at step_at_block file line test \
    near_trial study";
/// Numbers whose unit is another field of the object, or that of the named knob.
const BESIDE_THEIR_UNIT: &str = "value values mean median worst_decile min max interval_low interval_high standard_deviation measured \
    measured_min measured_max measured_runs simulated simulated_range guessed error change at_most";
#[test]
fn every_number_has_its_unit_in_its_name() {
    let named = |part: &Value| part["properties"].as_object().cloned().unwrap_or_default();
    let is_number = |of: &Value| {
        let kind = of["type"].to_string() + &of["items"]["type"].to_string();
        kind.contains("number") || kind.contains("integer")
    };
    let among = |words: &str, name: &str| words.split(' ').any(|word| word == name);
    let has_unit = |name: &str| name.split('_').any(|word| among(UNITS, word));
    let mut without = Vec::new();
    for (document, schema) in SCHEMAS {
        let schema = json(&schema(document));
        let parts = schema["$defs"]
            .as_object()
            .into_iter()
            .flat_map(|parts| parts.values());
        let fields = [&schema].into_iter().chain(parts).flat_map(named);
        let bad = fields.filter(|(name, of)| {
            let is_named = among(NAMES, name) || among(BESIDE_THEIR_UNIT, name);
            is_number(of) && !is_named && !has_unit(name)
        });
        without.extend(bad.map(|(name, _)| format!("{document}: {name}")));
    }
    assert_eq!(without, Vec::<String>::new());
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
