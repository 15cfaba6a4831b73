//! What the tests on a real kernel share: one lab at a time.
// Each test program uses a part of it.
#![allow(dead_code)]

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nicpoll_study::{Host, Lab};
use nicpoll_switch::Journal;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A lab of a test's own. Labs of one test program do not run at once: they would share two cores.
pub struct TestLab {
    pub lab: Lab,
    pub state: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl TestLab {
    pub fn build() -> TestLab {
        // A test that failed while it had the lock left nothing broken behind.
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let state = tempfile::tempdir().unwrap();
        let lab = Lab::build(Journal::at(state.path().join("state"))).unwrap();
        TestLab {
            lab,
            state,
            _alone: alone,
        }
    }

    /// Whether the journal holds no record.
    pub fn journal_is_empty(&self) -> bool {
        self.lab.journal.paths().unwrap().is_empty()
    }
}

/// Runs a program inside a host's namespace and returns what it printed.
pub fn in_host(host: &Host, program: &'static str, args: &[&str]) -> String {
    let args: Vec<String> = args.iter().map(ToString::to_string).collect();
    host.run(move |_| {
        let output = Command::new(program)
            .args(&args)
            .output()
            .unwrap_or_else(|error| panic!("{program} is needed by this test: {error}"));
        assert!(
            output.status.success(),
            "{program} {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    })
    .unwrap()
}
