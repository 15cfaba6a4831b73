//! Reads recorded documents and renders them again: as JSON, which must be unchanged (`golden/NAME.json` is input and
//! expected output), and as pages.

mod fixture;

use std::fs;

use nicpoll_model::line::LineRates;
use nicpoll_model::traffic::{Netblast, Netreceive, Netsend, RrDocument};
use nicpoll_model::{
    CpuTruth, Doctor, Show, Study, SwitchRun, TruthVerdict, WatchEnd, WatchSample, WatchStart,
};
use nicpoll_report::{
    PageForm, RR_TEXTS, RunPage, TextOptions, WatchScale, render_document, render_event,
    render_json, render_line_rates, render_text, render_watch_metrics, render_watch_start,
    render_watch_text,
};
use nicpoll_testkit::golden;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn path(name: &str, end: &str) -> String {
    format!("tests/golden/{name}.{end}")
}

fn recorded(name: &str) -> String {
    fs::read_to_string(path(name, "json")).unwrap()
}

/// Reads a document, and checks that it renders unchanged.
fn document<T: DeserializeOwned + Serialize>(name: &str) -> T {
    let document = serde_json::from_str(&recorded(name)).unwrap();
    golden(path(name, "json"), &render_document(&document));
    document
}

/// Renders the widest page, the narrowest page, and one in colour.
fn in_all_manners(render: impl Fn(&TextOptions) -> String) -> String {
    let manners = [(100, false), (80, false), (100, true)];
    let pages = manners.map(|(width, color)| render(&TextOptions { width, color }));
    pages.join("\n====\n\n")
}

#[test]
fn a_study() {
    let mut study = fixture::study();
    let page = in_all_manners(|options| render_text(&study, options));
    golden(path("demo", "txt"), &page);
    // One trial of each kind suffices for JSON.
    study.trials.truncate(4);
    study.plan.order.truncate(4);
    study.comparisons.truncate(9);
    golden(path("demo", "json"), &render_json(&study));
    let again: Study = serde_json::from_str(&recorded("demo")).unwrap();
    assert_eq!(again, study);
}

#[test]
fn a_show() {
    let show: Show = document("show");
    let page = in_all_manners(|options| render_text(&show, options));
    golden(path("show", "txt"), &page);
}

#[test]
fn a_doctor() {
    let doctor: Doctor = document("doctor");
    let page = in_all_manners(|options| render_text(&doctor, options));
    golden(path("doctor", "txt"), &page);
}

#[test]
fn a_proof_of_the_cpu_account() {
    let truth: CpuTruth = serde_json::from_str(&recorded("cpu-truth")).unwrap();
    golden(path("cpu-truth", "json"), &render_json(&truth));
    let page = in_all_manners(|options| render_text(&truth, options));
    golden(path("cpu-truth", "txt"), &page);
    let schema = include_str!("../../../docs/nicpoll.cpu-truth-1.schema.json");
    let validator = jsonschema::draft202012::new(&serde_json::from_str(schema).unwrap()).unwrap();
    assert!(validator.is_valid(&serde_json::from_str(&render_json(&truth)).unwrap()));
    let unknown = CpuTruth {
        cost: None,
        fold: None,
        verdict: TruthVerdict::Inconclusive,
        ..truth
    };
    let text = render_text(&unknown, &TextOptions::default());
    assert!(text.contains("The account itself takes -."), "{text}");
    assert!(text.contains("It cannot be told now: "), "{text}");
    assert!(!text.contains("by phase of a pulse"), "{text}");
}

#[test]
fn a_watch() {
    let text = recorded("watch");
    let lines: Vec<&str> = text.lines().collect();
    let [start, samples @ .., end] = &lines[..] else {
        panic!("a start and an end")
    };
    let (start, mut again) = event::<WatchStart>("start", start);
    let mut page = render_watch_start(&start);
    let mut metrics = String::new();
    for sample in samples {
        let (sample, line) = event::<WatchSample>("interval", sample);
        again.push_str(&line);
        let texts = WatchScale::ALL.map(|scale| render_watch_text(&sample, scale, 1000));
        page.extend(texts);
        metrics = render_watch_metrics(&sample);
    }
    again.push_str(&event::<WatchEnd>("end", end).1);
    golden(path("watch", "json"), &again);
    golden(path("watch", "txt"), &page);
    golden(path("watch", "metrics"), &metrics);
}

/// Parses an event's data, and checks that it renders unchanged.
fn event<T: DeserializeOwned + Serialize>(name: &'static str, line: &str) -> (T, String) {
    let mut event: Value = serde_json::from_str(line).unwrap();
    let data = serde_json::from_value(event["data"].take()).unwrap();
    let again = render_event(name, &data);
    (data, again)
}

#[test]
fn line_rates() {
    for name in ["linerate", "linerate-payloads"] {
        let rates: LineRates = document(name);
        golden(path(name, "txt"), &render_line_rates(&rates));
    }
}

#[test]
fn requests_and_responses() {
    for name in ["rr-client", "rr-client-open", "rr-server"] {
        let result: RrDocument = document(name);
        let mut parts = RunPage::new(PageForm::Text, RR_TEXTS);
        let mut page = parts.start(result.start.as_ref().unwrap());
        page.extend(result.intervals.iter().map(|it| parts.interval(it)));
        page.push_str(&parts.end(result.end.as_ref().unwrap()));
        golden(path(name, "txt"), &page);
    }
}

#[test]
fn documents_without_a_page_here() {
    for name in ["set", "set-proof", "unset"] {
        document::<SwitchRun>(name);
    }
    document::<Netblast>("netblast");
    document::<Netsend>("netsend");
    document::<Netreceive>("netreceive");
}
