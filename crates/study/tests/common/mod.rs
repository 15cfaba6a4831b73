//! A lab for tests on a real kernel, one at a time.
// Each test program uses a part of it.
#![allow(dead_code)]

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nicpoll_lab::{Lab, Running, Veth, WorkloadRequest};
use nicpoll_model::Side;
use nicpoll_observe::{HostSnapshot, PollCounter};
use nicpoll_study::apply;
use nicpoll_study::demo::{self, DEFAULT, INTERRUPT, POLLING};
use nicpoll_switch::{Journal, Owner};
use nicpoll_traffic::workload::Books;

pub const SETTINGS: [&str; 3] = [DEFAULT, INTERRUPT, POLLING];

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A lab of a test. Labs of one test program do not run at once: they would share two cores.
pub struct TestLab {
    // Dropped first: it restores its changes on the link.
    pub lab: Lab,
    pub veth: Arc<Veth>,
    pub journal: Journal,
    /// A poll counter besides the lab's own.
    pub polls: PollCounter,
    pub state: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl TestLab {
    /// Excludes other labs of the test program, for a lab built in another way.
    pub fn alone() -> MutexGuard<'static, ()> {
        ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn build() -> TestLab {
        // A test that failed with the lock leaves nothing broken.
        let alone = TestLab::alone();
        let state = tempfile::tempdir().unwrap();
        let journal = Journal::at(state.path().join("state"));
        let veth = Arc::new(Veth::build().unwrap());
        TestLab {
            lab: Lab::local(veth.link(), &journal, Owner::this_process().unwrap()).unwrap(),
            veth,
            journal,
            polls: PollCounter::load().unwrap(),
            state,
            _alone: alone,
        }
    }

    /// Applies one of the demo's settings; polling with this timeout. Returns the receiver's NAPI.
    pub fn put(&mut self, setting: &str, timeout_ns: u64) -> Option<u32> {
        let settings = demo::settings(Duration::from_nanos(timeout_ns));
        let setting = settings.iter().find(|known| known.name() == setting);
        apply(&mut self.lab, setting.unwrap(), None).unwrap();
        self.lab.receiver.napis().unwrap().first().copied()
    }

    /// Runs traffic to its end.
    pub fn traffic(
        &mut self,
        workload: &WorkloadRequest,
        duration: Duration,
        quiet: Duration,
    ) -> Books {
        let cancel = AtomicBool::new(false);
        Running::to_end(&mut self.lab, workload, duration, quiet, &cancel).unwrap()
    }

    /// Reads the counters of a host as a trial does.
    pub fn counters(&mut self, side: Side) -> HostSnapshot {
        self.lab.host(side, 0).counters().unwrap()
    }

    /// Returns the inode number of an end's namespace.
    pub fn inode(&self, side: Side) -> u64 {
        self.veth.namespace(side).inode()
    }

    /// Returns whether the journal has no record.
    pub fn journal_is_empty(&self) -> bool {
        self.journal.paths().unwrap().is_empty()
    }

    /// Runs a program in the namespace of an end and returns its output.
    pub fn in_host(&self, side: Side, program: &'static str, args: &[&str]) -> String {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        let run = move |_: &mut ()| {
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
        };
        self.veth.inside(side).run(run).unwrap()
    }
}
