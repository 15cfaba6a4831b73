//! A program that stores trials is killed repeatedly: the trials that it reported as stored are there, and the file
//! is undamaged. Each test starts itself again as that program.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use nicpoll_model::{Study, StudyKind, StudyState, Trial};
use nicpoll_stats::order::Seed;
use nicpoll_store::{OpenStore, Reason, Recording, Store, StoreError, Which};
use rand_core::Rng;
use rusqlite::Connection;
use rustix::process::{Resource, Rlimit, setrlimit};

/// Variable with the file to store in, set in the program to be killed.
const FILE: &str = "NICPOLL_TEST_STORE";
/// Variable with the file's size limit there, in bytes.
const GROWN_MAX: &str = "NICPOLL_TEST_GROWN_MAX";
/// Variable for reaching the limit: `error`, or the kernel kills the program.
const AT_LIMIT: &str = "NICPOLL_TEST_AT_LIMIT";

fn nobody(_: &str) -> bool {
    false
}

/// Returns a study without its trials, and the trials.
fn parts() -> (Study, Vec<Trial>) {
    let text = include_str!("../../report/tests/golden/demo.json");
    let mut head: Study = serde_json::from_str(text).unwrap();
    let trials = std::mem::take(&mut head.trials);
    (head, trials)
}

/// Returns the trial at a position; each is different.
fn trial(of: &[Trial], index: usize) -> Trial {
    let mut trial = of[index % of.len()].clone();
    trial.sequence = index as u32 + 1;
    trial.block = index as u32 + 1;
    trial
}

/// Begins a study in the file, or resumes the existing one.
fn begin_or_resume(file: &Path) -> Result<Recording, StoreError> {
    let store = Store::to_write(file)?;
    match store.unfinished::<Study>(Which::Last, nobody) {
        Ok(kept) => store.resume(&kept, "writer", nobody),
        Err(StoreError::NoneUnfinished { .. }) => {
            store.begin(StudyKind::Study, &parts().0, 9, "{}", "writer")
        }
        Err(error) => Err(error),
    }
}

/// The program to be killed: it stores trials, and prints each stored one.
fn store_until_killed(file: &Path) {
    if let Ok(bytes) = env::var(GROWN_MAX) {
        let limit = Rlimit {
            current: bytes.parse().ok(),
            maximum: None,
        };
        setrlimit(Resource::Fsize, limit).unwrap();
    }
    if env::var_os(AT_LIMIT).is_some() {
        let ignored = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGXFSZ, ignored).unwrap();
    }
    let (head, trials) = parts();
    let stored = begin_or_resume(file).and_then(|mut recording| -> Result<(), _> {
        loop {
            let next = trial(&trials, recording.place.trials as usize);
            recording.trial(&head, &next, Duration::from_millis(700))?;
            println!("\nstored {}", recording.place.trials);
        }
    });
    let error: StoreError = stored.unwrap_err();
    println!("\nfailed {error}");
}

/// The running program of a test.
struct Writer(Child);

impl Writer {
    fn start(test: &str, file: &Path, more: &[(&str, String)]) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]);
        command.env(FILE, file).envs(more.iter().cloned());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        Writer(command.spawn().unwrap())
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
    }

    /// Returns its exit status, the number of trials that it reported as stored, and its error.
    fn end(mut self) -> (ExitStatus, u32, Option<String>) {
        let lines = BufReader::new(self.0.stdout.take().unwrap()).lines();
        let (mut stored, mut failed) = (0, None);
        for line in lines.map_while(Result::ok) {
            if let Some(number) = line.strip_prefix("stored ") {
                stored = number.parse().unwrap_or(stored);
            }
            failed = line.strip_prefix("failed ").map(String::from).or(failed);
        }
        (self.0.wait().unwrap(), stored, failed)
    }
}

/// Checks that a kill leaves all trials reported as stored, at most one more, unchanged, in an undamaged file.
/// Returns their number.
fn assert_whole(file: &Path, said: u32) -> u32 {
    let (_, trials) = parts();
    let kept = Store::to_read(file).unwrap();
    let kept = match kept.read::<Study>(Which::Last, nobody) {
        Ok(kept) => kept,
        // It was killed before the study began.
        Err(StoreError::NoStudy { .. }) if said == 0 => return 0,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(kept.entry.state, StudyState::Killed);
    let stored = kept.document.trials.len() as u32;
    assert!((said..=said + 1).contains(&stored), "{stored} of {said}");
    for (index, found) in kept.document.trials.iter().enumerate() {
        assert_eq!(*found, trial(&trials, index));
    }
    let sqlite = Connection::open(file).unwrap();
    let verdict: String = sqlite
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(verdict, "ok");
    stored
}

/// Returns the file to store in, if this process is the program to be killed.
fn to_store_in() -> Option<PathBuf> {
    env::var_os(FILE).map(PathBuf::from)
}

#[test]
fn killed_at_any_moment_nothing_that_was_stored_is_lost() {
    if let Some(file) = to_store_in() {
        return store_until_killed(&file);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("studies.db");
    let mut random = Seed(13).generator();
    let (mut stored, mut kills_within) = (0, 0);
    for _ in 0..40 {
        let test = "killed_at_any_moment_nothing_that_was_stored_is_lost";
        let mut writer = Writer::start(test, &file, &[]);
        thread::sleep(Duration::from_micros(random.next_u64() % 60_000));
        writer.kill();
        let (_, said, _) = writer.end();
        let now = assert_whole(&file, said.max(stored));
        kills_within += u32::from(now > stored);
        stored = now;
    }
    assert!(kills_within > 3, "most were killed before they stored");
}

/// Writes half a commit to the file and waits to be killed.
fn write_half_a_commit(file: &Path) {
    let sqlite = Connection::open(file).unwrap();
    // So small a cache that changed pages, and first their journal, are written before the commit.
    let half = "PRAGMA cache_size = 1; BEGIN IMMEDIATE; \
         UPDATE study SET document = document || ' '; UPDATE trial SET document = document || ' '";
    sqlite.execute_batch(half).unwrap();
    println!("\nhalf");
    thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_reader_that_meets_half_a_commit_says_so_and_the_next_one_undoes_it() {
    if let Some(file) = to_store_in() {
        return write_half_a_commit(&file);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("studies.db");
    let mut recording = begin_or_resume(&file).unwrap();
    let (head, trials) = parts();
    let first = trial(&trials, 0);
    recording.trial(&head, &first, Duration::ZERO).unwrap();
    drop(recording);
    let opened = OpenStore::of(&file).unwrap();
    let test = "a_reader_that_meets_half_a_commit_says_so_and_the_next_one_undoes_it";
    let mut writer = Writer::start(test, &file, &[]);
    let lines = BufReader::new(writer.0.stdout.take().unwrap()).lines();
    let is_begun = lines.map_while(Result::ok).any(|line| line == "half");
    assert!(is_begun, "the writer could not write");
    writer.kill();
    writer.0.wait().unwrap();
    let error = opened.store().map(|_| ()).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with(&Reason::HalfWritten.to_string()),
        "{error}"
    );
    let store = Store::to_read(&file).unwrap();
    let kept = store.read::<Study>(Which::Last, nobody).unwrap();
    assert_eq!(kept.document.trials, [first]);
}

#[test]
fn killed_at_each_page_that_a_file_grows_by_nothing_that_was_stored_is_lost() {
    if let Some(file) = to_store_in() {
        return store_until_killed(&file);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("studies.db");
    let mut stored = 0;
    for pages in 1..30_u32 {
        let test = "killed_at_each_page_that_a_file_grows_by_nothing_that_was_stored_is_lost";
        let limit = [(GROWN_MAX, (pages * 4096).to_string())];
        let (status, said, _) = Writer::start(test, &file, &limit).end();
        // The kernel killed it within a write (SIGXFSZ): in a journal, or in the pages of a trial.
        assert!(!status.success(), "{pages} pages hold all trials");
        if file.exists() {
            stored = assert_whole(&file, said.max(stored));
        }
    }
    assert!(stored > 3, "{stored}");
}

#[test]
fn a_file_that_may_not_grow_is_said_and_what_was_stored_stays() {
    if let Some(file) = to_store_in() {
        return store_until_killed(&file);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("studies.db");
    let test = "a_file_that_may_not_grow_is_said_and_what_was_stored_stays";
    let more = [
        (GROWN_MAX, String::from("100000")),
        (AT_LIMIT, String::from("error")),
    ];
    let (_, said, failed) = Writer::start(test, &file, &more).end();
    let failed = failed.expect("it ends by itself");
    assert!(failed.starts_with("storing a trial in"), "{failed}");
    let reason = Reason::Unwritten.to_string();
    assert!(failed.ends_with(&reason), "{failed}");
    assert_eq!(assert_whole(&file, said), said);
    assert!(said > 3);
    // With room again, the next one resumes.
    let mut recording = begin_or_resume(&file).unwrap();
    let (head, trials) = parts();
    let next = trial(&trials, said as usize);
    recording.trial(&head, &next, Duration::ZERO).unwrap();
}
