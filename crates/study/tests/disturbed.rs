//! Outside disturbances of a trial, after which the study goes on.

mod common;

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use common::TestLab;
use nicpoll_model::{Side, Trial};
use nicpoll_stats::order::Seed;
use nicpoll_study::{DemoOptions, TrialPlace, Trials, plan};
use nicpoll_testkit::needs;

/// Runs two trials; `meanwhile` is run in the sender's namespace in the midst of the first one.
fn two_trials(workload: &str, meanwhile: &'static str) -> [Trial; 2] {
    let mut test = TestLab::build();
    let options = DemoOptions {
        trial: Some(Duration::from_secs(3)),
        ..DemoOptions::default()
    };
    let (design, plan) = plan(&options, Seed(1)).unwrap();
    let cancel = AtomicBool::new(false);
    let veth = test.veth.clone();
    let outsider = thread::spawn(move || {
        // The trial's traffic begins within a second and lasts for three.
        thread::sleep(Duration::from_secs(2));
        let shell = move |_: &mut ()| {
            let mut shell = std::process::Command::new("sh");
            let status = shell.args(["-c", meanwhile]).status().unwrap();
            assert!(status.success(), "{meanwhile}");
        };
        veth.inside(Side::Sender).run(shell).unwrap();
    });
    let mut trials = Trials::new(&mut test.lab, &design, &plan, &cancel).unwrap();
    // Odd blocks begin with the measured run.
    let mut run = |sequence| {
        trials.run(TrialPlace {
            sequence,
            block: 1,
            workload: String::from(workload),
            setting: String::from("interrupt"),
        })
    };
    let first = run(1).unwrap();
    outsider.join().unwrap();
    let second = run(2).unwrap();
    assert!(test.journal_is_empty());
    [first, second]
}

#[test]
fn a_link_that_flaps_within_a_trial_is_seen_and_the_study_goes_on() {
    needs!(Time, Root, PerNapi);
    for workload in ["udp64", "tcp"] {
        let flap = "ip link set em0 down && ip link set em0 up";
        let [flapped, next] = two_trials(workload, flap);
        let reason = flapped.validity.external.expect("an outsider did it");
        assert!(reason.contains("took the link down"), "{reason}");
        assert_eq!(next.validity.external, None, "{workload}");
        let figures = next.result().expect("the next trial has a result");
        assert!(figures.receiver.bytes > 0);
    }
}

#[test]
fn a_change_that_is_taken_back_within_a_trial_is_seen() {
    needs!(Time, Root, PerNapi);
    let there_and_back = "ip link set em0 mtu 1400 && ip link set em0 mtu 1500";
    let [changed, next] = two_trials("udp64", there_and_back);
    let reason = changed.validity.external.expect("an outsider did it");
    assert!(reason.contains("changed the link"), "{reason}");
    assert_eq!(next.validity.external, None);
}
