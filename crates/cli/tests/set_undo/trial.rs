//! Changes that have to be confirmed: undone by themselves in time, whatever becomes of the program that made
//! them, and kept when somebody says so.

use crate::common::prelude::*;
use nicpoll_switch::Owner;

/// The process that guards the change in force.
fn guard(pair: &Switched) -> Owner {
    let records = pair.journal().records().unwrap().into_iter();
    let mut attempts = records.filter_map(|(_, record)| record.unwrap().attempt);
    attempts.next().unwrap().owner
}

fn is_over(guard: Owner) -> bool {
    !guard.is_alive().unwrap()
}

#[test]
fn what_nobody_confirms_is_undone_in_time() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let before = pair.dump();
    let text = pair.done("set em0 polling --fix --for 2s");
    assert_has_all(&text, "undone in 2 s | --confirm");
    assert_ne!(pair.dump(), before);
    let guard = guard(&pair);
    // It belongs to no session but its own, so no terminal takes it along.
    let stat = fs::read_to_string(format!("/proc/{}/stat", guard.pid)).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let session = fields.split_ascii_whitespace().nth(3).unwrap();
    assert_eq!(session, guard.pid.to_string());
    wait_until("it is undone", || pair.is_clean() && is_over(guard));
    assert_eq!(pair.dump(), before);
}

#[test]
fn what_is_confirmed_stays_and_its_guard_ends() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let before = pair.dump();
    pair.done("set em0 polling --fix --for 3s");
    let during = pair.dump();
    let guard = guard(&pair);
    pair.done("set em0 --confirm");
    wait_until("the guard has ended", || is_over(guard));
    assert_eq!(pair.dump(), during);
    assert_has(pair.refused("set em0 --confirm", 1), "nothing waits");
    pair.done("set em0 -polling");
    pair.assert_restored(&before);
}

#[test]
fn several_interfaces_are_one_change() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    pair.ip("link add v0 type veth peer name v1; link set v0 up");
    let before = pair.dump();
    pair.done("set em0 v0 polling --fix --for 2s");
    assert_eq!(pair.journal().records().unwrap().len(), 4);
    wait_until("it is undone", || pair.is_clean());
    assert_eq!(pair.dump(), before);

    pair.done("set em0 v0 polling --fix --for 60s --look 0");
    let (during, guard) = (pair.dump(), guard(&pair));
    pair.done("set v0 --confirm");
    wait_until("the guard has ended", || is_over(guard));
    assert_eq!(pair.dump(), during);
    pair.done("set em0 -polling");
    pair.done("set v0 -polling");
    pair.assert_restored(&before);
}

#[test]
fn while_it_waits_it_can_be_undone_but_not_changed() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let before = pair.dump();
    pair.done("set em0 polling --fix --for 60s --look 0");
    let guard = guard(&pair);
    let refusal = pair.refused("set em0 --period 50us", 1);
    assert_has_all(&refusal, "--confirm | -polling");
    pair.done("set em0 -polling");
    pair.assert_restored(&before);
    wait_until("the guard has ended", || is_over(guard));
}

#[test]
fn what_stood_before_stands_again() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let before = pair.dump();
    pair.done("set em0 polling --fix --look 0");
    let standing = pair.dump();
    pair.done("set em0 --period 50us --threaded --for 2s");
    assert_ne!(pair.dump(), standing);
    let guard = guard(&pair);
    wait_until("it is undone", || is_over(guard));
    assert_eq!(pair.dump(), standing);
    pair.done("set em0 -polling");
    assert_eq!(pair.dump(), before);
}

#[test]
fn a_guard_that_is_ended_undoes_at_once_and_one_that_is_killed_is_made_up_for() {
    needs!(Time, Root, PerNapi);
    let pair = Switched::new();
    let before = pair.dump();
    let next_start = [None, Some("set em0 --confirm"), Some("restore")];
    for next in next_start {
        let signal = next.map_or(Signal::TERM, |_| Signal::KILL);
        pair.done("set em0 polling --fix --for 60s --look 0");
        let guard = guard(&pair);
        kill_process(Pid::from_raw(guard.pid as i32).unwrap(), signal).unwrap();
        wait_until("the guard has ended", || is_over(guard));
        match next {
            None => {}
            // It then finds nothing that waits.
            Some("set em0 --confirm") => {
                assert_has(pair.refused("set em0 --confirm", 1), "put back");
            }
            Some(line) => {
                pair.done("show em0 --for 0");
                assert_ne!(pair.dump(), before, "show puts nothing back");
                pair.done(line);
            }
        }
        pair.assert_restored(&before);
    }
}

#[test]
fn a_program_that_is_killed_halfway_is_undone_by_the_guard_at_once() {
    needs!(Root, PerNapi, DebugAssertions);
    let pair = Switched::new();
    let before = pair.dump();
    let mut killed = 0;
    // At each step while the two records are made, then at some.
    for point in (1..7).chain((7..500).step_by(5)) {
        let mut command = pair.command("set em0 polling --fix --threaded --for 60s --look 0");
        command.env("NICPOLL_TEST_KILL_AT_POINT", point.to_string());
        let output = command.output().unwrap();
        if let Some(code) = output.status.code() {
            assert_eq!(code, 0, "{}", said(&output));
            break;
        }
        killed += 1;
        let has_records = || !pair.journal().paths().unwrap().is_empty();
        wait_until("the guard has put it back", || !has_records());
        assert_eq!(pair.dump(), before, "killed at point {point}");
    }
    assert!(killed > 3, "{killed}");
    pair.done("restore");
    pair.assert_restored(&before);
}

#[test]
fn the_callers_own_ssh_connection_is_not_risked() {
    needs!(Time, Root, PerNapi);
    let pair = Switched::new();
    let before = pair.dump();
    let over = |server: &str, line: &str| {
        let mut command = pair.command(line);
        command.env("SSH_CONNECTION", format!("198.18.0.1 50000 {server} 22"));
        let output = command.output().unwrap();
        assert_code(&output, 0);
        said(&output)
    };
    let line = "set em0 polling --fix";
    assert!(over("198.18.0.2", line).contains("undone in 60 s"));
    let guard = guard(&pair);
    // However soon it is undone by hand, nobody waits for the rest of the time.
    pair.done("set em0 -polling");
    wait_until("the guard has ended", || is_over(guard));
    // Nor is it made to cut the caller off at every boot.
    let mut command = std::process::Command::new("ip");
    command.args(["netns", "exec", &pair.netns()]);
    command.arg(env!("CARGO_BIN_EXE_nicpoll"));
    command.args("set em0 polling --fix --persist --root".split(' '));
    command.arg(pair.home.path());
    command.env("NICPOLL_STATE_DIR", pair.state());
    command.env("SSH_CONNECTION", "198.18.0.1 50000 198.18.0.2 22");
    let output = command.output().unwrap();
    assert_code(&output, 2);
    assert!(pair.is_clean() && !pair.home.path().join("etc").exists());
    // Another address of the machine, and a caller who knows.
    assert!(!over("203.0.113.7", line).contains("undone"));
    pair.done("set em0 -polling");
    assert!(!over("198.18.0.2", "set em0 polling --fix --for forever").contains("undone"));
    pair.done("set em0 -polling");
    thread::sleep(Duration::from_millis(10));
    assert_eq!(pair.dump(), before);
}
