//! Tuning on the link of two namespaces: what is found, and that everything is as before.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::TestLab;
use nicpoll_model::Origin;
use nicpoll_model::tune::{KeptFigure, Tune, TuneDropped, TuneGoal, TuneLimit};
use nicpoll_study::{Identity, Lengths, StudyError, StudyFile, TuneProgress, TuneRequest, tune};
use nicpoll_switch::{Candidate, candidates};
use nicpoll_testkit::needs;

const LENGTHS: Lengths = Lengths {
    quick: true,
    blocks: 12,
    trial: Duration::from_millis(100),
    warmup: None,
    drain: None,
    limit: None,
    stop_width: None,
};

/// Candidates whose round trips differ by far.
fn few() -> Vec<Candidate> {
    let names = ["interrupts", "polling 200us", "polling 1ms", "busy polling"];
    let mut all = candidates(false, &[]);
    all.retain(|it| names.contains(&&*it.name));
    all
}

fn demo(workload: &str) -> StudyFile {
    let (_, text) = nicpoll_study::READY[0];
    of_text(text, workload)
}

fn of_text(text: &str, workload: &str) -> StudyFile {
    let file = StudyFile::parse(text).unwrap();
    file.with_workloads(&[String::from(workload)]).unwrap()
}

/// Tunes request and response, beginning with this setting; ends in this trial.
fn tuned(base: &str, limits: Vec<TuneLimit>, last: u32) -> Tune {
    tuned_of(demo("rr"), base, limits, last)
}

fn tuned_of(file: StudyFile, base: &str, limits: Vec<TuneLimit>, last: u32) -> Tune {
    let mut test = TestLab::build();
    let goal = TuneGoal::Latency;
    let request = TuneRequest::new(file.design, LENGTHS, Some(base), goal, limits, few());
    let origin = Origin::default();
    let identity = Identity::new(origin, 7);
    let cancel = AtomicBool::new(false);
    let ended = tune(
        &request.unwrap(),
        &mut test.lab,
        identity,
        Vec::new(),
        &cancel,
        |it| {
            if let TuneProgress::Trial { number, .. } = it {
                cancel.store(number >= last, Ordering::Relaxed);
            }
        },
    );
    let found: Result<Tune, StudyError> = ended.unwrap().outcome;
    assert!(
        test.journal.paths().unwrap().is_empty(),
        "settings stay behind"
    );
    found.unwrap()
}

#[test]
fn interrupts_answer_sooner_than_polling_and_are_kept_or_chosen() {
    needs!(Root, PerNapi);
    let kept = tuned("interrupt", Vec::new(), u32::MAX);
    assert!(kept.is_finished, "{kept:?}");
    assert_eq!(
        (kept.winner.as_deref(), &kept.choice),
        (Some("interrupt"), &None)
    );
    let slow = kept.candidates.iter().find(|it| it.name == "polling 1ms");
    let slow = slow.unwrap();
    assert_eq!(slow.dropped, Some(TuneDropped::Worse));
    assert!(slow.ratio.unwrap()[1] > 1.0, "{slow:?}");
    assert!(kept.race_trials <= kept.grid_trials, "{kept:?}");
    let chosen = tuned("polling", Vec::new(), u32::MAX);
    assert_eq!(
        chosen.choice.as_deref(),
        Some("interrupts"),
        "{}",
        chosen.because
    );
    assert!(chosen.study.unwrap().trials.len() >= 12);
}

#[test]
fn a_limit_that_nothing_keeps_leaves_the_host_as_it_is() {
    needs!(Root, PerNapi);
    let impossible = TuneLimit {
        figure: KeptFigure::DelayP99Ns,
        at_most: 100.0,
    };
    let found = tuned("interrupt", vec![impossible], u32::MAX);
    assert!(found.is_finished);
    assert_eq!((found.winner, found.choice), (None, None));
    assert!(found.because.contains("p99<100 ns"), "{}", found.because);
    let mut all = found.candidates.iter();
    assert!(all.any(|it| it.dropped == Some(TuneDropped::BreaksLimit)));
}

#[test]
fn without_a_single_figure_the_answer_is_why_trials_have_none() {
    needs!(Root, PerNapi);
    let (_, text) = nicpoll_study::READY[0];
    // Packets of a veth go around its NAPI.
    let unset = text.replace("sender = { tso = \"off\" }", "");
    assert_ne!(text, unset);
    let found = tuned_of(of_text(&unset, "rr"), "interrupt", Vec::new(), u32::MAX);
    assert_eq!((found.winner, found.choice), (None, None));
    let because = &found.because;
    assert!(
        because.contains("no trial gave a figure: the") && because.contains("common = \"veth\""),
        "{because}"
    );
}

#[test]
fn a_race_that_is_ended_says_so_and_puts_everything_back() {
    needs!(Root, PerNapi);
    let found = tuned("interrupt", Vec::new(), 2);
    assert!(!found.is_finished && found.choice.is_none());
    assert!(found.because.contains("ended"), "{}", found.because);
}

#[test]
fn what_cannot_be_tuned_is_refused_with_what_to_name() {
    let new = |file: StudyFile, base, goal| {
        TuneRequest::new(file.design, LENGTHS, base, goal, Vec::new(), few())
    };
    let (_, text) = nicpoll_study::READY[0];
    let all = StudyFile::parse(text).unwrap();
    let refused = new(all, None, TuneGoal::Cpu).unwrap_err().to_string();
    assert!(
        refused.contains("tcp, udp1470, udp64, rr with --workload"),
        "{refused}"
    );
    let refused = new(demo("tcp"), None, TuneGoal::Latency).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("tcp has no figure for --goal latency")
    );
    let refused = new(demo("rr"), Some("poling"), TuneGoal::Cpu).unwrap_err();
    assert!(
        refused.to_string().contains("no setting 'poling'"),
        "{refused}"
    );
}
