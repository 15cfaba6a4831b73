//! Kills a study at random times, resumes it, and kills it again until it is finished; then checks that no trial
//! was lost, none was run twice, and nothing was left switched.
//!
//! ```text
//! cargo build -p nicpoll && sudo target/debug/examples/kills [KILLS] [SEED]
//! ```
//!
//! It takes about a second for each kill. The tests do a handful of them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use nicpoll_lab::still_runs;
use nicpoll_model::Study;
use nicpoll_stats::order::Seed;
use nicpoll_store::{Store, Which};
use rand_core::Rng;

/// Kills come after at most so many milliseconds: preparations take about 1,500, a trial about 500.
const LATEST_MS: u64 = 4_000;

/// How long the guard of a killed study may take to put everything back.
const RESTORED_WITHIN: Duration = Duration::from_secs(2);

fn main() -> Result<()> {
    let mut numbers = env::args().skip(1).map(|word| word.parse::<u64>());
    let kills = numbers.next().transpose()?.unwrap_or(30);
    let seed = numbers.next().transpose()?.unwrap_or(13);
    let folder = tempfile::tempdir()?;
    let mut random = Seed(seed).generator();
    let mut known: Vec<String> = Vec::new();
    for kill in 1..=kills {
        let mut study = nicpoll(folder.path(), kill > 1)?.spawn()?;
        let after = Duration::from_millis(random.next_u64() % LATEST_MS);
        thread::sleep(after);
        if study.try_wait()?.is_some() {
            println!("finished before kill {kill}");
            break;
        }
        study.kill()?;
        study.wait()?;
        let killed = Instant::now();
        while !records(folder.path()).is_empty() {
            ensure!(
                killed.elapsed() < RESTORED_WITHIN,
                "kill {kill}: not put back"
            );
            thread::sleep(Duration::from_millis(10));
        }
        let now = trials(folder.path())?;
        ensure!(
            now.starts_with(&known),
            "kill {kill}: a trial was lost or changed"
        );
        println!(
            "kill {kill:2} after {:4} ms: {:2} trials, put back within {:3} ms",
            after.as_millis(),
            now.len(),
            killed.elapsed().as_millis()
        );
        known = now;
    }
    if nicpoll(folder.path(), !known.is_empty())?.status()?.code() == Some(1) {
        println!("it was finished already");
    }
    let whole = trials(folder.path())?;
    ensure!(
        whole.starts_with(&known),
        "at the end: a trial was lost or changed"
    );
    let once: BTreeSet<&String> = whole.iter().collect();
    ensure!(once.len() == whole.len(), "a trial was run twice");
    println!(
        "{} trials, each once; nothing lost, nothing left switched",
        whole.len()
    );
    Ok(())
}

fn nicpoll(folder: &Path, is_resumed: bool) -> Result<Command> {
    let own = env::current_exe()?;
    let built = own.ancestors().nth(2).context("this is no example")?;
    let mut command = Command::new(built.join("nicpoll"));
    command.env("NICPOLL_STATE_DIR", folder.join("state"));
    command.env("XDG_DATA_HOME", folder);
    let has_begun = is_resumed && folder.join("nicpoll/studies.db").exists();
    command.args(match has_begun && !trials(folder)?.is_empty() {
        true => &["study", "run", "--resume", "last"][..],
        false => &[
            "demo",
            "--quick",
            "--workload",
            "rr",
            "--repeats",
            "20",
            "--duration",
            "0.1",
        ],
    });
    command.stdin(Stdio::null()).stdout(Stdio::null());
    Ok(command)
}

/// What was recorded and not put back yet.
fn records(folder: &Path) -> Vec<fs::DirEntry> {
    let files = fs::read_dir(folder.join("state"));
    let files = files.into_iter().flatten().flatten();
    let is_record = |file: &fs::DirEntry| file.path().extension().is_some_and(|end| end == "json");
    files.filter(is_record).collect()
}

/// The trials that are stored, in their order.
fn trials(folder: &Path) -> Result<Vec<String>> {
    let store = Store::to_read(folder.join("nicpoll/studies.db").as_path())?;
    let studies = store.list(still_runs)?.studies;
    let Some(first) = studies.last() else {
        return Ok(Vec::new());
    };
    let kept = store.read::<Study>(Which::Id(first.id), still_runs)?;
    let trials = kept.document.trials.iter();
    Ok(trials
        .map(serde_json::to_string)
        .collect::<Result<_, _>>()?)
}
