//! The program as an ordinary user runs it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Nobody's number.
const NOBODY: u32 = 65_534;

/// A copy of the program in a folder that anybody may enter from now on: in a place where nobody may go, it would not
/// even start.
pub fn program(folder: &Path) -> PathBuf {
    let program = folder.join("nicpoll");
    fs::copy(env!("CARGO_BIN_EXE_nicpoll"), &program).unwrap();
    fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    program
}

/// A command of it by nobody, or by whoever runs this test when that is not root.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}
