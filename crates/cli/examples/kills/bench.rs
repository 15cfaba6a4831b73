//! Kills each command, and looks for leftovers.
//!
//! Everything runs below a process that adopts orphans, in a mount namespace with its own `/run`, `/etc`, `/var/lib`
//! and temporary folder: its descendants are the commands' processes, and the files there are the commands' files.
//! The commands run at one end of a veth pair; its other end sends 2,000 datagrams a second.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs, process};

use anyhow::{Context, Result, bail, ensure};
use nicpoll_lab::{Lab, Veth};
use nicpoll_model::Side;
use nicpoll_stats::order::Seed;
use nicpoll_switch::{Journal, Owner};
use nicpoll_sys::netns::NetnsThread;
use rand_core::Rng;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};

/// Time in which leftovers of a killed command must be gone: a guard checks four times a second, and that of `set
/// --for 3s` lives three seconds.
const GONE_WITHIN: Duration = Duration::from_secs(10);
/// Time in which SIGINT or SIGTERM must end a command: loading a BPF program is not interrupted.
const ENDED_WITHIN: Duration = Duration::from_secs(60);
/// Latest kill of a long-running command.
const LATEST: Duration = Duration::from_secs(4);
/// Kills of ten that are not by SIGKILL.
const GENTLE_OF_TEN: u64 = 2;
/// Commands that give the near end a second link, to which it forwards.
const NEAR_END: &str = "ip link set lo up; ip link add v0 type veth peer name v1; ip link set v0 up
ip link set v1 up; echo 1 > /proc/sys/net/ipv4/ip_forward";
/// Folder of the benchmark.
const HOME: &str = "/run/kills";
const PROGRAM: &str = "/run/kills/nicpoll";
/// A program of a study that only SIGKILL ends: it forks, leaves its session and ignores signals.
const STUBBORN: &str = "trap '' TERM HUP INT; setsid sh -c 'trap \\\"\\\" TERM HUP INT; sleep 300.5; true' & sleep 0.2; \
                        echo rate 5";

/// The commands, each killed equally often.
const COMMANDS: [(&str, &str); 9] = [
    (
        "demo",
        "demo --quick --workload rr --repeats 20 --duration 0.1",
    ),
    ("study", "study run /run/kills/programs.toml --no-store"),
    ("ab", "ab em0 --for 60s --block 0.5s --loss-limit 100000"),
    ("sink", "sink em0 --port 9000"),
    ("blast", "blast em0 --to 198.18.0.1:9 --rate 2k"),
    ("forward", "forward em0 v0"),
    (
        "set --for",
        "set em0 polling --fix --threaded --for 3s --look 0",
    ),
    ("set --persist", "set em0 polling --fix --look 0 --persist"),
    ("serve", "serve --listen 127.0.0.1:7979"),
];

/// Variable that is set in the process that runs apart from the machine.
const APART: &str = "NICPOLL_KILLS_APART";

/// Makes a command that runs this program again, in a mount namespace of its own.
pub fn apart(program: &Path) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private"])
        .arg(program)
        .env(APART, "1");
    command
}

/// Returns whether this process was started by such a command.
pub fn is_apart() -> bool {
    env::var_os(APART).is_some()
}

/// Leftovers of a command's kills.
#[derive(Clone, Debug, Default)]
pub struct Leftovers {
    command: &'static str,
    kills: u32,
    /// Runs that ended by themselves before the signal.
    late: u32,
    processes: usize,
    namespaces: usize,
    settings: usize,
    files: usize,
    longest: Duration,
    /// Leftovers, kill by kill.
    pub left: Vec<String>,
}

impl Leftovers {
    /// Returns whether nothing was left.
    pub fn is_clean(&self) -> bool {
        self.left.is_empty()
    }
}

/// Renders the rows as a table, with the leftovers below it.
pub fn table(rows: &[Leftovers]) -> String {
    let mut text = String::from(
        "| command | kills | it had ended before | processes | namespaces | settings | files | all gone within, ms |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    let mut all = Leftovers {
        command: "all",
        ..Leftovers::default()
    };
    for row in rows {
        all.kills += row.kills;
        all.late += row.late;
        all.processes += row.processes;
        all.namespaces += row.namespaces;
        all.settings += row.settings;
        all.files += row.files;
        all.longest = all.longest.max(row.longest);
    }
    for row in rows.iter().chain([&all]) {
        let Leftovers {
            command,
            kills,
            late,
            processes,
            namespaces,
            settings,
            files,
            ..
        } = row;
        let longest = row.longest.as_millis();
        let _ = writeln!(
            text,
            "| `{command}` | {kills} | {late} | {processes} | {namespaces} | {settings} | {files} | {longest} |"
        );
    }
    for row in rows {
        row.left
            .iter()
            .for_each(|left| text += &format!("{left}\n"));
    }
    text
}

/// Kills the commands in turn, `kills` times in all.
///
/// # Errors
/// When a command ends with an error of its own.
pub fn kills(built: &Path, kills: u64, seed: u64) -> Result<Vec<Leftovers>> {
    let mut place = Place::new(built)?;
    let mut random = Seed(seed).generator();
    let mut rows: Vec<Leftovers> = Vec::new();
    let mut times = Vec::new();
    for (command, line) in COMMANDS {
        rows.push(Leftovers {
            command,
            ..Leftovers::default()
        });
        times.push(place.time_of(line)?);
        let mut unkilled = Leftovers {
            command,
            ..Leftovers::default()
        };
        place.clean(&mut unkilled, "unkilled")?;
        ensure!(unkilled.is_clean(), "{}", table(&[unkilled]));
    }
    for kill in 0..kills {
        let at = kill as usize % rows.len();
        let after = times[at].mul_f64(random.next_u64() as f64 / u64::MAX as f64);
        let signal = match random.next_u64() % 10 {
            0 => Signal::TERM,
            gentle if gentle < GENTLE_OF_TEN => Signal::INT,
            _ => Signal::KILL,
        };
        let what = format!(
            "kill {kill}: {} by {signal:?} after {after:?}",
            COMMANDS[at].0
        );
        place.kill(COMMANDS[at].1, after, signal, &mut rows[at])?;
        place.clean(&mut rows[at], &what)?;
        if !rows[at].is_clean() {
            eprintln!("{}", rows[at].left.last().map_or("", String::as_str));
        }
        if kill % 100 == 99 {
            eprintln!("{} of {kills} kills", kill + 1);
        }
    }
    Ok(rows)
}

/// The place in which the commands run.
struct Place {
    veth: Arc<Veth>,
    lab: Lab,
    settings: BTreeMap<String, String>,
    files: BTreeSet<PathBuf>,
}

impl Place {
    fn new(built: &Path) -> Result<Self> {
        set_child_subreaper(Some(getpid()))?;
        let kept = ["passwd", "group", "machine-id", "ld.so.cache", "localtime"];
        let kept = kept.map(|name| (name, fs::read(Path::new("/etc").join(name))));
        let program = fs::read(built).with_context(|| built.display().to_string())?;
        // Other programs' namespaces: if hidden, they could not be searched.
        for point in namespace_mounts() {
            unmount(&point, UnmountFlags::DETACH).with_context(|| point.clone())?;
        }
        for folder in folders() {
            let mounted = mount("tmpfs", &folder, "tmpfs", MountFlags::empty(), None);
            mounted.with_context(|| folder.display().to_string())?;
        }
        fs::create_dir(HOME)?;
        for (name, content) in kept {
            if let Ok(content) = content {
                fs::write(Path::new("/etc").join(name), content)?;
            }
        }
        fs::write(PROGRAM, program)?;
        fs::set_permissions(PROGRAM, Permissions::from_mode(0o755))?;
        fs::set_permissions(HOME, Permissions::from_mode(0o755))?;
        fs::write("/run/kills/programs.toml", programs())?;
        let veth = Arc::new(Veth::build()?);
        let journal = Journal::at("/run/kills/lab");
        let lab = Lab::local(veth.link(), &journal, Owner::this_process()?)?;
        nicpoll_testkit::shell(veth.inside(Side::Receiver), NEAR_END);
        send(&veth)?;
        let mut place = Place {
            veth,
            lab,
            settings: BTreeMap::new(),
            files: BTreeSet::new(),
        };
        // `serve` needs a study.
        place.finished("demo --quick --workload rr --repeats 3 --duration 0.1")?;
        place.settings = place.read_settings()?;
        place.files = files();
        Ok(place)
    }

    fn near(&self) -> &NetnsThread<()> {
        self.veth.inside(Side::Receiver)
    }

    fn start(&self, line: &str) -> Result<Child> {
        let mut command = Command::new(PROGRAM);
        command.args(line.split_whitespace());
        command
            .env("XDG_DATA_HOME", "/run/kills/data")
            .stdin(Stdio::null());
        command
            .stdout(Stdio::null())
            .stderr(fs::File::create("/run/kills/stderr")?);
        for variable in [
            "SSH_CONNECTION",
            "SUDO_UID",
            "SUDO_GID",
            "NICPOLL_STATE_DIR",
        ] {
            command.env_remove(variable);
        }
        // Signals of the terminal are for the benchmark only.
        command.process_group(0);
        Ok(self.near().run(move |()| command.spawn())??)
    }

    fn finished(&self, line: &str) -> Result<()> {
        let status = self.start(line)?.wait()?;
        let said = fs::read_to_string("/run/kills/stderr")?;
        ensure!(
            matches!(status.code(), Some(0 | 4)),
            "{line}: {status}: {said}"
        );
        Ok(())
    }

    /// Returns its duration without a kill, at most [`LATEST`].
    fn time_of(&mut self, line: &str) -> Result<Duration> {
        let began = Instant::now();
        let mut child = self.start(line)?;
        while began.elapsed() < LATEST {
            if let Some(status) = child.try_wait()? {
                let said = fs::read_to_string("/run/kills/stderr")?;
                ensure!(
                    matches!(status.code(), Some(0 | 4)),
                    "{line}: {status}: {said}"
                );
                return Ok(began.elapsed());
            }
            thread::sleep(Duration::from_millis(1));
        }
        signal(child.id(), Signal::INT)?;
        child.wait()?;
        Ok(LATEST)
    }

    fn kill(&self, line: &str, after: Duration, with: Signal, row: &mut Leftovers) -> Result<()> {
        let mut child = self.start(line)?;
        thread::sleep(after);
        row.kills += 1;
        match child.try_wait()? {
            Some(_) => row.late += 1,
            None => signal(child.id(), with)?,
        }
        let began = Instant::now();
        while child.try_wait()?.is_none() {
            if began.elapsed() > ENDED_WITHIN {
                row.left.push(format!(
                    "{line} had not ended {ENDED_WITHIN:?} after {with:?}"
                ));
                child.kill()?;
                child.wait()?;
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Waits until nothing is left, and counts leftovers. Then runs the next command, which restores from the journal
    /// and removes the sockets of killed engines; after `set`, whose changes are to stay, that is `restore`.
    fn clean(&mut self, row: &mut Leftovers, what: &str) -> Result<()> {
        let began = Instant::now();
        let is_set = row.command == "set --persist";
        loop {
            let is_same = is_set || self.read_settings()? == self.settings;
            if is_same && descendants().is_empty() || began.elapsed() > GONE_WITHIN {
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        row.longest = row.longest.max(began.elapsed());
        let left = descendants();
        let namespaces = namespaces_of(&left);
        if is_set {
            self.check_whole(row, what)?;
            self.finished("restore")?;
            self.finished("set em0 --no-persist")?;
        } else {
            self.finished("man")?;
        }
        let settings: Vec<String> = {
            let now = self.read_settings()?;
            let names: BTreeSet<&String> = now.keys().chain(self.settings.keys()).collect();
            let differs = names
                .into_iter()
                .filter(|name| now.get(*name) != self.settings.get(*name));
            differs
                .map(|name| {
                    format!(
                        "{name}: {:?} -> {:?}",
                        self.settings.get(name),
                        now.get(name)
                    )
                })
                .collect()
        };
        let now = files();
        let files: Vec<&PathBuf> = now.symmetric_difference(&self.files).collect();
        row.processes += left.len();
        row.namespaces += namespaces;
        row.settings += settings.len();
        row.files += files.len();
        if left.is_empty() && settings.is_empty() && files.is_empty() {
            return Ok(());
        }
        let commands: Vec<String> = left.iter().map(|pid| command_of(*pid)).collect();
        row.left.push(format!(
            "{what}: processes {commands:?}, settings {settings:?}, files {files:?}"
        ));
        // The next kill starts clean.
        left.iter().for_each(|pid| drop(signal(*pid, Signal::KILL)));
        files.iter().for_each(|path| drop(fs::remove_file(path)));
        self.settings = self.read_settings()?;
        Ok(())
    }

    /// Checks that after `set --persist` both files and settings are there, or neither, once another command has
    /// completed what was interrupted.
    fn check_whole(&mut self, row: &mut Leftovers, what: &str) -> Result<()> {
        self.start("set em0 --confirm")?.wait()?;
        let files = files()
            .difference(&self.files)
            .filter(|path| path.starts_with("/etc"))
            .count();
        let is_set = self.read_settings()? != self.settings;
        if (files > 0) != is_set {
            row.files += files;
            row.left.push(format!(
                "{what}: {files} files for the boot; settings in force: {is_set}"
            ));
        }
        Ok(())
    }

    fn read_settings(&mut self) -> Result<BTreeMap<String, String>> {
        let mut all = self.lab.settings()?;
        for value in all.values_mut() {
            // Numbers that the kernel assigns again.
            for name in ["id: ", "thread_pid: "] {
                if let Some((before, after)) = value.split_once(name) {
                    let rest = after.find([',', '}']).map_or("", |end| &after[end..]);
                    *value = format!("{before}{rest}");
                }
            }
        }
        all.retain(|name, _| {
            !["carrier_changes", "_count", "name_assign_type"]
                .iter()
                .any(|end| name.ends_with(end))
        });
        for side in [Side::Sender, Side::Receiver] {
            let links =
                nicpoll_testkit::shell(self.veth.inside(side), "ip -d link; tc qdisc; ip netns");
            all.insert(format!("{side:?}: ip -d link; tc qdisc; ip netns"), links);
        }
        Ok(all)
    }
}

/// Returns a study of programs that are not nicpoll's.
fn programs() -> String {
    let iperf = r#"
[[workload]]
name = "iperf"
traffic = { kind = "command", parser = "iperf2", sender = ["iperf", "-c", "{receiver}", "-p", "{port}", "-t", "{seconds}"], receiver = ["iperf", "-s", "-p", "{port}"] }
"#;
    let has_iperf = Command::new("iperf").arg("-v").output().is_ok();
    let iperf = if has_iperf { iperf } else { "" };
    format!(
        r#"question = "What outlives a kill?"
blocks = 9
trial = "1s"
[[setting]]
name = "first"
receiver = {{ gro = "on" }}
[[setting]]
name = "second"
receiver = {{ gro = "on", napi_defer_hard_irqs = 1000, gro_flush_timeout = "200us" }}
[[workload]]
name = "stubborn"
traffic = {{ kind = "command", parser = "regex", unit = "Mbit/s", pattern = "rate ([0-9.]+)", sender = ["sh", "-c", "{STUBBORN}"] }}
{iperf}"#
    )
}

/// Sends datagrams to the near end until this process ends.
fn send(veth: &Veth) -> Result<()> {
    let sending = || {
        let Ok(socket) = std::net::UdpSocket::bind("198.18.0.1:0") else {
            return;
        };
        loop {
            // Fails now and then: nobody listens, and the link is sometimes down.
            let _ = socket.send_to(b"one of many", "198.18.0.2:9");
            thread::sleep(Duration::from_micros(500));
        }
    };
    veth.inside(Side::Sender)
        .spawn_pinned(0, "kills", sending)?;
    Ok(())
}

fn signal(pid: u32, signal: Signal) -> Result<()> {
    let Some(pid) = Pid::from_raw(pid as i32) else {
        bail!("there is no process 0");
    };
    Ok(kill_process(pid, signal)?)
}

/// Returns all processes below this one; reaps those that have ended.
fn descendants() -> Vec<u32> {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: BTreeMap<u32, u32> = pids
        .filter_map(|pid| Some((pid, parent_of(pid)?)))
        .collect();
    let is_below = |pid: &u32| {
        let line = std::iter::successors(parents.get(pid), |above| parents.get(*above));
        line.into_iter().any(|above| *above == process::id())
    };
    parents.keys().copied().filter(is_below).collect()
}

/// Returns the parent of a running process.
fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (!["Z", "X"].contains(&state)).then_some(parent)
}

fn command_of(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

/// Counts the namespaces of these processes alone, and those held by a name.
fn namespaces_of(left: &[u32]) -> usize {
    let of = |pid: u32| {
        let entries = fs::read_dir(format!("/proc/{pid}/ns"))
            .into_iter()
            .flatten()
            .flatten();
        entries
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .collect::<BTreeSet<_>>()
    };
    let own = of(process::id());
    let theirs: BTreeSet<PathBuf> = left.iter().flat_map(|pid| of(*pid)).collect();
    theirs.difference(&own).count() + namespace_mounts().len()
}

/// Returns the mount points of namespaces.
fn namespace_mounts() -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mounts = mounts.lines().filter(|line| line.contains(" - nsfs "));
    mounts
        .filter_map(|line| line.split(' ').nth(4).map(String::from))
        .collect()
}

/// Returns the folders in which commands may leave files.
fn folders() -> Vec<PathBuf> {
    let mut folders = ["/run", "/etc", "/var/lib"].map(PathBuf::from).to_vec();
    folders.push(env::temp_dir());
    folders
}

/// Returns the files there, except those that commands are to write.
fn files() -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = folders();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.starts_with("/run/kills/data") || path.starts_with("/run/kills/lab") {
                continue;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                _ => drop(found.insert(path)),
            }
        }
    }
    found
}
