//! A state directory for a test, and ways to find leftovers.

use super::prelude::*;
use nicpoll_lab::Lab;
use nicpoll_study::{apply, demo};
use nicpoll_switch::{Journal, Owner};

/// A state directory of a test, which has the two cores for itself.
pub struct Stage {
    pub home: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Stage {
    pub fn new() -> Self {
        Stage {
            home: tempfile::tempdir().unwrap(),
            _alone: alone(),
        }
    }

    pub fn state(&self) -> PathBuf {
        self.home.path().join("state")
    }

    /// Returns the file of stored studies.
    pub fn store(&self) -> PathBuf {
        self.home.path().join("nicpoll/studies.db")
    }

    pub fn nicpoll(&self, args: &[&str]) -> Command {
        let mut command = nicpoll(args);
        command.env("NICPOLL_STATE_DIR", self.state());
        // Words are compared as this locale shows them.
        command.env("LC_ALL", "C");
        command.env("XDG_DATA_HOME", self.home.path());
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.nicpoll(args).output().unwrap()
    }

    /// Starts a demo and waits until it has changed a setting in one of its trials.
    pub fn demo_in_mid_trial(&self) -> Child {
        // The cost of counting is measured for a tenth of the study's time, which these repeats keep short.
        let args = "demo --workload udp64 --quick --repeats 3 --duration 1.5";
        let child = self.nicpoll(&words(args)).spawn().unwrap();
        // The first record is from measuring the cost of counting, and is gone before the trials begin.
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

/// Returns the network namespaces of a process's threads, without the host's.
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

/// Returns whether any process of the machine is in, or holds, one of the namespaces.
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

/// Reads every setting of the host's own interfaces, and the names of kept namespaces.
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

/// Two hosts and their link.
pub struct Studied {
    // Dropped first: it restores its changes on the link.
    pub lab: Lab,
    veth: Arc<Veth>,
}

impl Studied {
    pub fn new(journal: &Journal) -> Self {
        let veth = Arc::new(Veth::build().unwrap());
        let lab = Lab::local(veth.link(), journal, Owner::this_process().unwrap()).unwrap();
        Studied { lab, veth }
    }

    /// Applies a setting; polling with a timeout.
    pub fn put(&mut self, setting: &str, timeout_ns: u64) {
        put(&mut self.lab, setting, timeout_ns);
    }

    /// The sender's namespace.
    pub fn sender(&self) -> &NetnsThread<()> {
        self.veth.inside(Side::Sender)
    }

    /// The receiver's namespace.
    pub fn receiver(&self) -> &NetnsThread<()> {
        self.veth.inside(Side::Receiver)
    }
}

/// Applies a setting of the demo.
pub fn put(lab: &mut Lab, setting: &str, timeout_ns: u64) {
    let settings = demo::settings(Duration::from_nanos(timeout_ns));
    let setting = settings.iter().find(|known| known.name() == setting);
    apply(lab, setting.unwrap(), None).unwrap();
}

/// Returns a setting of a study under which the receiver polls once a period.
pub fn polling(name: &str, period: &str) -> String {
    format!(
        r#"
[[setting]]
name = "{name}"
sender = {{ tso = "off" }}
receiver = {{ gro = "on", napi_defer_hard_irqs = 1000, gro_flush_timeout = "{period}" }}
"#
    )
}

/// Returns traffic of datagrams with 200 bytes of payload at this rate.
pub fn udp200(packets_per_second: u32) -> String {
    format!(
        r#"
[[workload]]
name = "udp200"
traffic = {{ kind = "udp", payload_bytes = 200, packets_per_second = {packets_per_second} }}
"#
    )
}
