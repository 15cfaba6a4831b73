//! What breaks in mid-trial: nothing stays switched, no finished trial is lost, and the study goes on or can be resumed.

use crate::common::prelude::*;
use crate::place::PAIR;
use crate::site::{Site, two_periods};

/// Starts a study of a pair.
fn started() -> (Site, Child) {
    let site = Site::installed();
    let file = site.written(&format!("{}{PAIR}", two_periods("300ms", 3)));
    let child = site.start(&["study", "run", &file, "--json"]);
    (site, child)
}

/// Checks that a study went on after it lost this host, with one void trial and others behind it, and that the trials
/// which were stored before are there as they were.
#[track_caller]
fn assert_went_on(site: &Site, child: Child, host: &str, known: &[String]) {
    let ran = child.wait_with_output().unwrap();
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", said(&ran));
    let now = site.trials();
    assert_eq!(
        now[..known.len()],
        *known,
        "what was stored stays as it was"
    );
    let study = json_of(&ran);
    let trials = study["trials"].as_array().unwrap().iter();
    let external: Vec<_> = trials.map(|trial| trial["external"].as_str()).collect();
    let lost = external.iter().position(Option::is_some).unwrap();
    assert_has(
        external[lost].unwrap(),
        format!("the agent at {host} was lost: "),
    );
    assert_eq!(external.iter().flatten().count(), 1, "{external:?}");
    assert!(lost + 1 < external.len(), "{external:?}");
    site.assert_untouched();
}

#[test]
fn a_study_goes_on_after_sshd_an_agent_or_the_link_is_lost_and_is_resumed_after_a_kill() {
    needs!(Root, PerNapi, Sshd);
    // Most of their time they wait until something is given up.
    thread::scope(|scope| {
        for scenario in [sshd_killed, agent_killed, link_down, controller_killed] {
            scope.spawn(scenario);
        }
    });
}

fn sshd_killed() {
    let (mut site, child) = started();
    site.await_mid_trial();
    let known = site.trials();
    site.hosts.restart_sshd("box2", "");
    assert_went_on(&site, child, "the receiver (root@box2)", &known);
}

fn agent_killed() {
    let (site, child) = started();
    site.await_mid_trial();
    let known = site.trials();
    let is_agent = |line: &str| line.contains("nicpoll agent");
    assert_eq!(site.hosts.host("box2").kill(is_agent), 1);
    assert_went_on(&site, child, "the receiver (root@box2)", &known);
}

fn link_down() {
    let (site, child) = started();
    site.await_mid_trial();
    let known = site.trials();
    site.hosts.set_link("box1", false);
    thread::sleep(Duration::from_secs(15));
    // The agent at the far end of the link has given up by itself.
    site.assert_first_untouched();
    site.hosts.set_link("box1", true);
    assert_went_on(&site, child, "the sender (root@box1)", &known);
}

fn controller_killed() {
    let (site, child) = started();
    site.await_mid_trial();
    let known = site.trials();
    kill(child);
    site.assert_untouched();
    let resumed = site.run(&["study", "run", "--resume", "last", "--json"]);
    assert!(
        matches!(resumed.status.code(), Some(0 | 4)),
        "{}",
        said(&resumed)
    );
    let now = site.trials();
    assert!(now.len() > known.len());
    assert_eq!(now[..known.len()], known);
    site.assert_untouched();
}

#[test]
fn a_host_that_does_not_come_back_is_named_with_how_to_resume() {
    needs!(Time, Root, PerNapi, Sshd);
    let (mut site, child) = started();
    site.await_mid_trial();
    let known = site.trials();
    site.hosts.kill_sshd("box2");
    let ended = child.wait_with_output().unwrap();
    assert_code(&ended, 1);
    assert_has_all(stderr(&ended), "root@box2 | --resume");
    site.assert_untouched();
    assert_eq!(site.trials()[..known.len()], known);
    site.hosts.restart_sshd("box2", "");
    let resumed = site.run(&["study", "run", "--resume", "last", "--json"]);
    assert!(
        matches!(resumed.status.code(), Some(0 | 4)),
        "{}",
        said(&resumed)
    );
    assert_eq!(site.trials()[..known.len()], known);
}
