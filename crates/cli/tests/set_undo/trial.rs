//! Changes that have to be confirmed: undone by themselves in time, whatever becomes of the program that made
//! them, and kept when somebody says so.

use crate::common::prelude::*;

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
    let guard = pair.guard_in_force();
    // However soon it is undone by hand, nobody waits for the rest of the time.
    pair.done("set em0 -polling");
    wait_until("the guard has ended", || !guard.is_alive().unwrap());
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
