//! Hosts with a controller that stores studies, and what they were like before.

use crate::common::prelude::*;
use crate::common::stage::{polling, udp200};
use crate::place::{HostState, Left, SshHosts};
use rusqlite::{Connection, OpenFlags};

/// The hosts on both sides of a router.
pub const ROUTED: &str = r#"
[hosts.sender]
ssh = "root@box1"
interface = "eth1"
[hosts.router]
ssh = "root@box2"
interfaces = ["eth1", "eth2"]
[hosts.receiver]
ssh = "root@box3"
interface = "eth1"
"#;

/// Longest time until a host is as it was: an agent that hears nothing gives up after ten seconds.
const RESTORED_WITHIN: Duration = Duration::from_secs(15);

/// Longest time until a trial is stored, several studies running at once.
const FIRST_TRIAL_WITHIN: Duration = Duration::from_secs(90);

/// A study of two periods under one workload, without its hosts. It has time on a busy machine, too.
pub fn two_periods(trial: &str, blocks: u32) -> String {
    let head = format!(
        r#"question = "Does a longer period cost anything?"
blocks = {blocks}
trial = "{trial}"
time = "30s"
seed = 4
"#
    );
    let settings = [polling("short", "100us"), polling("long", "1ms")];
    format!("{head}{}{}", settings.concat(), udp200(2000))
}

/// Hosts, a controller with a store, and what the hosts were like.
pub struct Site {
    pub hosts: SshHosts,
    pub home: TempDir,
    before: Vec<HostState>,
}

impl Site {
    pub fn of(hosts: SshHosts) -> Self {
        let before = hosts.all().iter().map(HostState::of).collect();
        Site {
            hosts,
            home: tempfile::tempdir().unwrap(),
            before,
        }
    }

    /// A pair whose hosts have the program.
    pub fn installed() -> Self {
        let hosts = SshHosts::pair();
        hosts.install(Path::new(NICPOLL));
        Site::of(hosts)
    }

    /// Writes a study file.
    pub fn written(&self, text: &str) -> String {
        let path = self.home.path().join("study.toml");
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn store(&self) -> PathBuf {
        self.home.path().join("nicpoll/studies.db")
    }

    /// Starts a command at the controller.
    pub fn start(&self, args: &[&str]) -> Child {
        let mut command = nicpoll(args);
        command.env("NICPOLL_STATE_DIR", self.home.path().join("state"));
        command
            .env("XDG_DATA_HOME", self.home.path())
            .env("LC_ALL", "C");
        self.hosts.equip(&mut command);
        spawn_in(&self.hosts.controller, command)
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.start(args).wait_with_output().unwrap()
    }

    /// The trials that are stored, as they are.
    pub fn trials(&self) -> Vec<String> {
        let read = || {
            let file = Connection::open_with_flags(self.store(), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            file.busy_timeout(Duration::from_secs(2))?;
            let mut rows = file.prepare("SELECT document FROM trial ORDER BY sequence")?;
            let rows = rows.query_map([], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<Vec<String>>>()
        };
        read().unwrap_or_default()
    }

    /// Waits until a trial is stored and the traffic of another one runs.
    #[track_caller]
    pub fn await_mid_trial(&self) {
        let (done, deadline) = (self.trials().len(), Instant::now() + FIRST_TRIAL_WITHIN);
        while self.trials().len() == done {
            assert!(Instant::now() < deadline, "no trial is stored");
            thread::sleep(Duration::from_millis(20));
        }
        self.await_setting();
    }

    /// Waits until a setting is in force at the receiver.
    #[track_caller]
    pub fn await_setting(&self) {
        let host = self.hosts.host("box2");
        let read = |_: &mut ()| fs::read_to_string("/sys/class/net/eth1/gro_flush_timeout");
        wait_until("a setting is in force", || {
            host.inside.run(read).unwrap().unwrap().trim() != "0"
        });
    }

    /// Checks that the first host has the settings, files and processes that it had.
    #[track_caller]
    pub fn assert_first_untouched(&self) {
        let left = self.before[0].await_again(&self.hosts.all()[0], Instant::now());
        assert_eq!(left, Left::default());
    }

    /// Checks that within 15 s each host has the settings, files and processes that it had.
    #[track_caller]
    pub fn assert_untouched(&self) {
        let deadline = Instant::now() + RESTORED_WITHIN;
        for (host, before) in self.hosts.all().iter().zip(&self.before) {
            assert_eq!(before.await_again(host, deadline), Left::default());
        }
        let left: Vec<_> = fs::read_dir(self.hosts.temporary())
            .unwrap()
            .flatten()
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
