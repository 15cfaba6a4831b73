//! A real systemd starts the unit, and its restrictions allow what it does.

use crate::common::prelude::*;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/set/systemd.sh");

#[test]
fn systemd_runs_the_unit_when_a_device_comes_and_stopping_it_restores_what_was_there() {
    needs!(Root, PerNapi, Systemd);
    let folder = tempfile::tempdir().unwrap();
    let mut boot = Command::new(SCRIPT);
    let output = boot.arg(folder.path()).arg(NICPOLL).output().unwrap();
    if output.status.code() == Some(77) {
        return skip(
            test_name!(),
            Need::Systemd,
            "it does not come up in namespaces here",
        );
    }
    assert_code(&output, 0);
    let polls = "2147483647 200000 active";
    let expected = format!(
        "written: 0 0 inactive\nstarted: {polls}\nstopped: 0 0 inactive\nplugged: {polls}\nstopped: 0 0 inactive\n\
         removed: 0 0 inactive\n"
    );
    assert_eq!(stdout(&output), expected, "{}", stderr(&output));
}
