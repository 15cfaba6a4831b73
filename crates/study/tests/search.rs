//! The search for the highest load, on links of namespaces whose rate is arithmetic.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::TestLab;
use nicpoll_lab::{Lab, Topology, Veth};
use nicpoll_model::line::LinePacket;
use nicpoll_model::{LoadSearch, Origin, SearchGoal, StudySearch};
use nicpoll_stats::search::{NDR, PDR};
use nicpoll_study::{SearchRequest, StudyFile, frames_study, search};
use nicpoll_switch::{Journal, Owner};
use nicpoll_testkit::needs;

/// A goal of short trials, so that the test is.
fn short(goal: SearchGoal) -> SearchGoal {
    SearchGoal {
        initial_trial_seconds: 0.5,
        final_trial_seconds: 0.5,
        duration_sum_seconds: 1.5,
        width_ratio: 0.01,
        ..goal
    }
}

/// Searches a study's traffic under one of its settings; ends after this many trials.
fn searched(file: StudyFile, topology: &str, setting: &str, most: usize) -> StudySearch {
    let topology: Topology = toml::from_str(topology).unwrap();
    let state = tempfile::tempdir().unwrap();
    let journal = Journal::at(state.path().join("state"));
    let veth = Arc::new(Veth::of(&topology).unwrap());
    let mut lab = Lab::local(veth.link(), &journal, Owner::this_process().unwrap()).unwrap();
    let goals = [NDR, PDR].map(short).to_vec();
    let settings = [String::from(setting)];
    let request = SearchRequest::new(file.design, &file.lengths, &settings, goals).unwrap();
    let origin = Origin {
        nicpoll_version: String::from("0"),
        argv: Vec::new(),
        started_at: String::from("now"),
    };
    let cancel = AtomicBool::new(false);
    let found = search(&request, &mut lab, origin, &cancel, |progress| {
        cancel.store(progress.trials >= most, Ordering::Relaxed);
    });
    assert!(journal.paths().unwrap().is_empty(), "settings stay behind");
    found.unwrap()
}

fn minimum_frames() -> StudyFile {
    frames_study(&[LinePacket::Frame { bytes: 64 }]).unwrap()
}

fn only(found: StudySearch) -> LoadSearch {
    let [one] = &found.searches[..] else {
        panic!("one search: {:?}", found.searches)
    };
    one.clone()
}

#[test]
fn a_line_of_10_mbit_is_found_at_14_880_minimum_frames_a_second() {
    needs!(Root);
    let _alone = TestLab::alone();
    let found = searched(
        minimum_frames(),
        "rate = \"10Mbit/s\"",
        "default",
        usize::MAX,
    );
    assert!(found.is_finished);
    let one = only(found);
    let line = one.line_per_second.unwrap();
    assert_eq!(line as u64, 14_880);
    for bounds in &one.bounds {
        assert!(bounds.is_finished, "{one:?}");
        // A width below the line, on a busy machine; above it what the late reader of a trial is allowed.
        let lower = bounds.lower_per_second.unwrap() as f64 / line;
        assert!((0.97..1.025).contains(&lower), "{lower}: {one:?}");
    }
    // The line is the sender's own: it is asked for more, and cannot offer it.
    assert!(one.trials.iter().any(|it| it.void.is_some()), "{one:?}");
    for trial in one
        .trials
        .iter()
        .filter(|it| it.asked_per_second as f64 > 1.05 * line)
    {
        let is_held = trial.void.is_none() && trial.not_held_ratio() == Some(0.0);
        assert!(!is_held, "{trial:?}");
    }
}

const SLOW: &str = r#"
question = "How much does a ring hold?"
[[setting]]
name = "slow"
sender = { tso = "off" }
receiver = { gro = "on", napi_defer_hard_irqs = 2147483647, gro_flush_timeout = "5ms" }
[[setting]]
name = "interrupt"
sender = { tso = "off" }
receiver = { gro = "on" }
[[workload]]
name = "frames"
traffic = { kind = "mix", payload_bytes = [18, 548], packets_per_second = 1, receive_buffer_bytes = 8388608 }
[[compare]]
reference = "interrupt"
"#;

#[test]
fn a_receiver_that_polls_seldom_holds_no_more_than_its_ring_a_period() {
    needs!(Root, PerNapi);
    let _alone = TestLab::alone();
    let file = StudyFile::parse(SLOW).unwrap();
    let one = only(searched(file, "", "slow", usize::MAX));
    let ring = 256.0 / 5e-3;
    for bounds in &one.bounds {
        // Some periods are a little shorter; none is half as long.
        let lower = bounds.lower_per_second.unwrap_or(0) as f64;
        assert!(bounds.is_finished && lower < 1.5 * ring, "{one:?}");
    }
    let [ndr, pdr] = &one.bounds[..] else {
        panic!("two goals")
    };
    assert!(ndr.lower_per_second <= pdr.lower_per_second, "{one:?}");
    // Past the bounds packets are lost.
    let lost = one.curve.iter().filter_map(|it| it.loss_ratio);
    let is_limited = one
        .sender_limit
        .is_some_and(|it| it.offered_per_second < 1.5 * ring);
    assert!(is_limited || lost.fold(0.0, f64::max) > 0.1, "{one:?}");
}

#[test]
fn what_was_found_until_it_is_cancelled_is_returned_and_nothing_stays_set() {
    needs!(Root);
    let _alone = TestLab::alone();
    let found = searched(minimum_frames(), "", "polling", 2);
    assert!(!found.is_finished);
    let one = only(found);
    assert!((1..=3).contains(&one.trials.len()), "{one:?}");
    assert!(one.bounds.iter().all(|it| !it.is_finished), "{one:?}");
}

#[test]
fn what_cannot_be_searched_is_refused_by_name() {
    let file = || StudyFile::parse(SLOW).unwrap();
    let goals = vec![NDR];
    let refused = |file: StudyFile, settings: &[String]| {
        let request = SearchRequest::new(file.design, &file.lengths, settings, goals.clone());
        request.unwrap_err().to_string()
    };
    let words = refused(file(), &[String::from("slwo")]);
    assert!(
        words.contains("'slwo'") && words.contains("interrupt"),
        "{words}"
    );
    let traffic = SLOW
        .lines()
        .find(|line| line.starts_with("traffic"))
        .unwrap();
    let tcp = SLOW.replace(traffic, "traffic = { kind = \"tcp\" }");
    let words = refused(StudyFile::parse(&tcp).unwrap(), &[]);
    assert!(words.contains("udp and mix"), "{words}");
}
