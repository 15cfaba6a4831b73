//! A FreeBSD host played from recorded output by a script in place of ssh.
// Each test program uses a part of it.
#![allow(dead_code)]

use crate::common::prelude::*;
use std::os::unix::fs::PermissionsExt;

/// The recorded outputs, which are the fuzz target's seeds, too.
const RECORDED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../fuzz/seeds/freebsd_output"
);

/// The host, and a journal of its own.
pub struct FreebsdHost {
    home: TempDir,
}

impl FreebsdHost {
    /// Makes a host of FreeBSD 6.1 with the default kern.polling.
    pub fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let bin = home.path().join("bin");
        let state = home.path().join("host");
        fs::create_dir(&bin).unwrap();
        fs::create_dir(&state).unwrap();
        let ssh = bin.join("ssh");
        fs::write(&ssh, include_str!("ssh.sh")).unwrap();
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        for file in fs::read_dir(RECORDED).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), state.join(file.file_name())).unwrap();
        }
        fs::rename(state.join("rc_conf"), state.join("rc.conf")).unwrap();
        FreebsdHost { home }
    }

    /// Returns a file of the host's state.
    pub fn file(&self, name: &str) -> PathBuf {
        self.home.path().join("host").join(name)
    }

    /// Returns the journal's directory.
    pub fn journal(&self) -> PathBuf {
        self.home.path().join("journal")
    }

    /// Returns whether the journal is empty.
    pub fn is_clean(&self) -> bool {
        !self.journal().exists()
    }

    /// Returns the host's changeable state: kern.polling, whether em0 polls, rc.conf.
    pub fn state(&self) -> (Option<String>, bool, String) {
        (
            fs::read_to_string(self.file("sysctl_kern_polling")).ok(),
            self.file("polls").exists(),
            fs::read_to_string(self.file("rc.conf")).unwrap(),
        )
    }

    /// Returns each connection so far: options, host, command.
    pub fn log(&self) -> String {
        fs::read_to_string(self.file("log")).unwrap_or_default()
    }

    /// Makes the command of a nicpoll that finds the script as ssh.
    pub fn command(&self, line: &str) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = self.home.path().join("bin");
        let paths = std::env::split_paths(&path);
        let path = std::env::join_paths(std::iter::once(own).chain(paths)).unwrap();
        let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_nicpoll")));
        command
            .args(line.split(' '))
            .env("PATH", path)
            .env("FREEBSD_HOST", self.home.path().join("host"))
            .env("NICPOLL_STATE_DIR", self.journal());
        command
    }

    /// Runs it.
    pub fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Runs it, and returns its output.
    pub fn done(&self, line: &str) -> String {
        let output = self.run(line);
        assert_eq!(output.status.code(), Some(0), "{line}: {output:?}");
        stdout(&output)
    }
}

/// Its own steps:
/// - `write FILE TEXT`, `remove FILE`, `absent FILE`, `endless FILE`: a file of the host's state
/// - `replace FILE FROM => TO`: somebody changes it; `replaced FILE FROM => TO`: it is what it was at first but for that
/// - `polls`: em0 does
/// - `each-connection TEXT`, `no-connection TEXT`: what the connections since `forget-connections` have
impl Scene for FreebsdHost {
    type State = (Option<String>, bool, String);

    fn begin() -> Self {
        FreebsdHost::new()
    }

    fn run(&self, line: &str) -> Output {
        FreebsdHost::run(self, line)
    }

    fn state(&self) -> Self::State {
        FreebsdHost::state(self)
    }

    fn assert_same(&self, before: &Self::State, at: &str) {
        assert_eq!(self.state(), *before, "{at}");
    }

    fn has_no_record(&self) -> bool {
        self.is_clean()
    }

    fn step(&mut self, verb: &str, rest: &str) {
        let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let path = self.file(name);
        let replaced = |whole: &str| {
            let (from, to) = text.split_once(" => ").unwrap();
            assert!(whole.contains(from), "{rest}: {whole}");
            whole.replace(from, to)
        };
        match verb {
            "write" => fs::write(path, format!("{text}\n")).unwrap(),
            "remove" => fs::remove_file(path).unwrap(),
            "absent" => assert!(!path.exists(), "{rest}"),
            "endless" => fs::write(path, "FreeBSD\n".repeat(1 << 18)).unwrap(),
            "replace" => {
                let whole = fs::read_to_string(&path).unwrap();
                fs::write(path, replaced(&whole)).unwrap();
            }
            "replaced" => {
                let first = fs::read_to_string(Path::new(RECORDED).join("rc_conf")).unwrap();
                assert_eq!(
                    fs::read_to_string(path).unwrap(),
                    replaced(&first),
                    "{rest}"
                );
            }
            "polls" => assert!(self.file("polls").exists()),
            "each-connection" => assert!(self.log().lines().all(|line| line.contains(rest))),
            "no-connection" => assert!(!self.log().contains(rest), "{}", self.log()),
            "forget-connections" => fs::remove_file(self.file("log")).unwrap(),
            _ => panic!("no such step: {verb} {rest}"),
        }
    }
}
