//! Breaks a study between two hosts with their own sshd at random times, looks for what stays switched and for trials
//! that are lost, and prints a table.
//!
//! ```text
//! cargo build -p nicpoll --examples --bins && sudo target/debug/examples/host_kills [KILLS] [SEED]
//! ```
//!
//! A kill takes about twenty seconds: an agent that hears nothing gives up after ten.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use nicpoll_stats::order::Seed;
use rand_core::Rng;
use rusqlite::{Connection, OpenFlags};

#[path = "../tests/hosts/place.rs"]
#[allow(dead_code)]
mod place;

use place::{HostState, Left, PAIR, SshHosts};

/// What stays switched for longer is left.
const RESTORED_WITHIN: Duration = Duration::from_secs(15);
/// Time for a study to go on after its hosts are there again.
const GOES_ON_WITHIN: Duration = Duration::from_secs(90);
/// The link is down for so long.
const DOWN: Duration = Duration::from_secs(15);
/// Latest kill after the study has begun, or gone on.
const LATEST: Duration = Duration::from_secs(5);

/// What is broken, in turn.
const KINDS: [&str; 4] = ["agent", "controller", "sshd", "link"];

/// A study that lasts longer than the kills.
const STUDY: &str = r#"
question = "What outlives a kill?"
blocks = 1000
trial = "200ms"
[[setting]]
name = "short"
sender = { tso = "off" }
receiver = { gro = "on", napi_defer_hard_irqs = 1000, gro_flush_timeout = "100us" }
[[setting]]
name = "long"
sender = { tso = "off" }
receiver = { gro = "on", napi_defer_hard_irqs = 1000, gro_flush_timeout = "1ms" }
[[workload]]
name = "udp200"
traffic = { kind = "udp", payload_bytes = 200, packets_per_second = 2000 }
"#;

/// What became of the kills of one kind.
#[derive(Default)]
struct Row {
    kills: u32,
    /// Settings, files and processes that were left after 15 s.
    settings: usize,
    files: usize,
    processes: usize,
    /// Trials that were stored before, and those of them that were lost.
    stored: usize,
    lost: usize,
    /// Studies that went on by themselves, and those that ended and were resumed.
    went_on: u32,
    resumed: u32,
    longest: Duration,
}

impl Row {
    fn add(&mut self, left: Left) {
        if left != Left::default() {
            nicpoll_sys::tell!("left: {left:?}");
        }
        self.settings += left.settings.len();
        self.files += left.files.len();
        self.processes += left.programs.len();
    }

    fn is_clean(&self) -> bool {
        self.settings + self.files + self.processes + self.lost == 0
    }
}

/// The hosts, and a study between them.
struct Kills {
    hosts: SshHosts,
    home: tempfile::TempDir,
    program: PathBuf,
    before: Vec<HostState>,
    study: Child,
}

fn main() -> Result<()> {
    let own = env::current_exe()?;
    let mut numbers = env::args().skip(1).map(|word| word.parse::<u64>());
    let kills = numbers.next().transpose()?.unwrap_or(100);
    let seed = numbers.next().transpose()?.unwrap_or(13);
    let built = own.ancestors().nth(2).context("this is no example")?;
    let mut random = Seed(seed).generator();
    let mut kills_at = Kills::begin(&built.join("nicpoll"))?;
    let mut rows: [Row; KINDS.len()] = Default::default();
    for kill in 0..kills {
        let at = kill as usize % KINDS.len();
        let after = LATEST.mul_f64(random.next_u64() as f64 / u64::MAX as f64);
        let name = ["box1", "box2"][random.next_u64() as usize % 2];
        kills_at.kill(KINDS[at], name, after, &mut rows[at])?;
        nicpoll_sys::tell!(
            "{} of {kills}: {} of {name} after {after:?}",
            kill + 1,
            KINDS[at]
        );
    }
    kills_at.study.kill()?;
    kills_at.study.wait()?;
    let mut last = Row::default();
    (0..2).for_each(|at| last.add(kills_at.await_again(at, Instant::now())));
    nicpoll_sys::stdio::print(&table(&rows))?;
    let is_clean = rows.iter().chain([&last]).all(Row::is_clean);
    ensure!(is_clean, "something was left or lost");
    Ok(())
}

impl Kills {
    fn begin(program: &Path) -> Result<Self> {
        let hosts = SshHosts::pair();
        let before = hosts.all().iter().map(HostState::of).collect();
        let home = tempfile::tempdir()?;
        fs::write(home.path().join("study.toml"), format!("{STUDY}{PAIR}"))?;
        let path = home.path().join("study.toml").display().to_string();
        let study = start(&hosts, home.path(), program, &["study", "run", &path])?;
        let begun = Kills {
            hosts,
            home,
            program: program.to_owned(),
            before,
            study,
        };
        begun.await_trials(0)?;
        Ok(begun)
    }

    /// Breaks something, waits until the hosts are as they were, then until the study goes on.
    fn kill(&mut self, kind: &str, name: &str, after: Duration, row: &mut Row) -> Result<()> {
        thread::sleep(after);
        let known = self.trials();
        row.kills += 1;
        row.stored += known.len();
        let broken = Instant::now();
        let is_agent = |line: &str| line.contains("nicpoll agent");
        match kind {
            "agent" => drop(self.hosts.host(name).kill(is_agent)),
            "controller" => self.study.kill()?,
            "sshd" => self.hosts.kill_sshd(name),
            _ => self.hosts.set_link(name, false),
        }
        let one = self.hosts.index(name);
        // The other host is used again as soon as the study goes on.
        let those = if kind == "controller" {
            0..2
        } else {
            one..one + 1
        };
        for at in those {
            row.add(self.await_again(at, broken));
        }
        row.longest = row.longest.max(broken.elapsed());
        match kind {
            "sshd" => self.hosts.restart_sshd(name, ""),
            "link" => {
                thread::sleep(DOWN.saturating_sub(broken.elapsed()));
                self.hosts.set_link(name, true);
            }
            _ => {}
        }
        self.go_on(known.len(), row)?;
        let now = self.trials();
        row.lost += known
            .iter()
            .zip(&now)
            .filter(|(known, now)| known != now)
            .count();
        row.lost += known.len().saturating_sub(now.len());
        Ok(())
    }

    /// Waits until another trial is stored; resumes a study that has ended.
    fn go_on(&mut self, known: usize, row: &mut Row) -> Result<()> {
        let began = Instant::now();
        while self.trials().len() <= known + 1 {
            if let Some(status) = self.study.try_wait()? {
                row.resumed += 1;
                // Not if it was killed.
                if status.code().is_some() {
                    nicpoll_sys::tell!("the study ended, {status}: {}", self.said());
                }
                let resume = ["study", "run", "--resume", "last"];
                self.study = start(&self.hosts, self.home.path(), &self.program, &resume)?;
                return self.await_trials(known + 1);
            }
            ensure!(began.elapsed() < GOES_ON_WITHIN, "the study does not go on");
            thread::sleep(Duration::from_millis(20));
        }
        row.went_on += 1;
        Ok(())
    }

    fn await_trials(&self, known: usize) -> Result<()> {
        let began = Instant::now();
        while self.trials().len() <= known {
            if began.elapsed() > GOES_ON_WITHIN {
                bail!("no further trial is stored: {}", self.said());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// What the study's controller says.
    fn said(&self) -> String {
        fs::read_to_string(self.home.path().join("said")).unwrap_or_default()
    }

    /// Waits until a host is as it was, at most until 15 s after something broke.
    fn await_again(&self, at: usize, broken: Instant) -> Left {
        self.before[at].await_again(&self.hosts.all()[at], broken + RESTORED_WITHIN)
    }

    fn trials(&self) -> Vec<String> {
        let read = || {
            let path = self.home.path().join("nicpoll/studies.db");
            let file = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            file.busy_timeout(Duration::from_secs(2))?;
            let mut rows = file.prepare("SELECT document FROM trial ORDER BY sequence")?;
            let rows = rows.query_map([], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<Vec<String>>>()
        };
        read().unwrap_or_default()
    }
}

/// Starts nicpoll at the controller. What it says last is kept.
fn start(hosts: &SshHosts, home: &Path, program: &Path, args: &[&str]) -> Result<Child> {
    let mut command = Command::new(program);
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command.stderr(fs::File::create(home.join("said"))?);
    command
        .env("NICPOLL_STATE_DIR", home.join("state"))
        .env("XDG_DATA_HOME", home);
    hosts.equip(&mut command);
    Ok(hosts.controller.run(move |()| command.spawn())??)
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| what breaks | kills | settings left | files left | processes left | trials stored | lost | went on | resumed | restored within, ms |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (kind, row) in KINDS.iter().zip(rows) {
        let Row {
            kills,
            settings,
            files,
            processes,
            stored,
            lost,
            went_on,
            resumed,
            longest,
        } = row;
        let longest = longest.as_millis();
        text += &format!(
            "| {kind} | {kills} | {settings} | {files} | {processes} | {stored} | {lost} | {went_on} | {resumed} | {longest} |\n"
        );
    }
    text
}
