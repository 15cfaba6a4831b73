//! What the tests of `nicpoll sim` share: running it, and what it printed.

use std::process::{Command, Output};

pub const GENERIC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sim/hosts/generic.toml");

pub fn sim(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nicpoll"));
    command.arg("sim").args(args).output().unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What a command that must work printed.
pub fn printed(args: &[&str]) -> String {
    let output = sim(args);
    assert!(
        output.status.success(),
        "{args:?}: {}",
        text(&output.stderr)
    );
    text(&output.stdout)
}
