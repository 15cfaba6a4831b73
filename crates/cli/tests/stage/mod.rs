//! What the tests of the program share: a state directory of their own, and ways to see what is left.
// Each test program uses a part of it.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A state directory of a test's own, and the two cores for itself.
pub struct Stage {
    pub home: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Stage {
    pub fn new() -> Self {
        Stage {
            home: tempfile::tempdir().unwrap(),
            _alone: ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    pub fn state(&self) -> PathBuf {
        self.home.path().join("state")
    }

    /// The file that studies are stored in.
    pub fn store(&self) -> PathBuf {
        self.home.path().join("nicpoll/studies.db")
    }

    pub fn nicpoll(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nicpoll"));
        command.env("NICPOLL_STATE_DIR", self.state()).args(args);
        // Words are compared as this locale shows them.
        command.env("LC_ALL", "C");
        command.env("XDG_DATA_HOME", self.home.path());
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped());
        command.stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.nicpoll(args).output().unwrap()
    }

    /// Starts a demo and waits until it has changed a setting in one of its trials.
    pub fn demo_in_mid_trial(&self) -> Child {
        // What counting costs is measured for a tenth of the study's time, which these repeats keep short.
        let args = "demo --workload udp64 --quick --repeats 3 --duration 1.5";
        let args: Vec<&str> = args.split(' ').collect();
        let child = self.nicpoll(&args).spawn().unwrap();
        // The first record is of measuring what counting costs; it is gone before the trials begin.
        wait_until("a setting is applied", || !self.records().is_empty());
        wait_until("it is put back", || self.records().is_empty());
        wait_until("a trial applies one", || self.records().len() == 2);
        thread::sleep(Duration::from_millis(300));
        child
    }

    pub fn records(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.state()).into_iter().flatten().flatten();
        files
            .map(|file| file.path())
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .collect()
    }
}

pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "waited too long until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The network namespaces that a process's threads are in, the host's left out.
pub fn namespaces_of(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let mut links: Vec<String> = tasks
        .filter_map(|task| fs::read_link(task.path().join("ns/net")).ok())
        .map(|link| link.to_string_lossy().into_owned())
        .collect();
    links.sort();
    links.dedup();
    let own = fs::read_link("/proc/self/ns/net").unwrap();
    links.retain(|link| *link != own.to_string_lossy());
    links
}

/// Whether any process of the machine is in, or holds, one of the namespaces.
pub fn in_use(namespaces: &[String]) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|process| process.path().join("ns").exists())
        .any(|process| {
            let held = fs::read_dir(process.path().join("fd"))
                .into_iter()
                .flatten()
                .flatten()
                .map(|fd| fd.path());
            held.chain([process.path().join("ns/net")])
                .filter_map(|path| fs::read_link(path).ok())
                .any(|link| namespaces.iter().any(|ns| *ns == link.to_string_lossy()))
        })
}

/// Every readable setting of the host's own interfaces, and the names of kept namespaces.
pub fn host_state() -> BTreeMap<String, String> {
    let mut state = BTreeMap::new();
    for interface in fs::read_dir("/sys/class/net").unwrap().flatten() {
        let files = fs::read_dir(interface.path())
            .into_iter()
            .flatten()
            .flatten();
        for file in files.filter(|file| file.path().is_file()) {
            let value = fs::read_to_string(file.path()).unwrap_or_default();
            state.insert(file.path().display().to_string(), value);
        }
    }
    for name in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        state.insert(name.path().display().to_string(), String::new());
    }
    state
}
