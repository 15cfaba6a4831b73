//! A store as its users meet it: what is read back, what survives a failure, and what is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nicpoll_model::{Study, StudyKind, StudyState, Trial};
use nicpoll_store::{Kept, Reason, Recording, Store, StoreError, Which};
use rusqlite::Connection;

const MINE: &str = "this process";

/// Nobody runs anything any more.
fn nobody(_: &str) -> bool {
    false
}

/// A finished study, as `nicpoll demo --json` printed it.
fn study() -> Study {
    let text = include_str!("../../report/tests/golden/demo.json");
    serde_json::from_str(text).unwrap()
}

/// The same without its trials, and those.
fn parts() -> (Study, Vec<Trial>) {
    let mut head = study();
    let trials = std::mem::take(&mut head.trials);
    (head, trials)
}

struct Place {
    _folder: tempfile::TempDir,
    file: PathBuf,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data").join("studies.db");
    Place {
        _folder: folder,
        file,
    }
}

fn begin(file: &Path, head: &Study) -> Recording {
    let store = Store::to_write(file).unwrap();
    store.begin(StudyKind::Demo, head, 192, "{}", MINE).unwrap()
}

fn append(recording: &mut Recording, head: &Study, trials: &[Trial]) -> Result<(), StoreError> {
    let mut trials = trials.iter();
    trials.try_for_each(|trial| recording.trial(head, trial, Duration::from_millis(700)))
}

fn read(file: &Path, which: Which) -> Kept<Study> {
    Store::to_read(file).unwrap().read(which, nobody).unwrap()
}

fn reason(error: &StoreError) -> &Reason {
    match error {
        StoreError::At { reason, .. } => reason,
        other => panic!("not of the file: {other}"),
    }
}

#[test]
fn a_study_is_read_back_as_the_document_that_it_was() {
    let place = place();
    let (head, trials) = parts();
    let mut early = head.clone();
    early.comparisons.clear();
    let mut recording = begin(&place.file, &early);
    append(&mut recording, &early, &trials).unwrap();
    recording.finish(&head).unwrap();
    let kept = read(&place.file, Which::Last);
    assert_eq!(kept.document, study());
    let text = |study: &Study| serde_json::to_string_pretty(study).unwrap();
    assert_eq!(text(&kept.document), text(&study()), "to the last digit");
    assert_eq!(kept.entry.state, StudyState::Finished);
    assert_eq!(kept.entry.trials_done as usize, trials.len());
    assert_eq!(kept.taken[0], Duration::from_millis(700));
    // Whatever its layout, it can be had as it is.
    let value = Store::to_read(&place.file).unwrap();
    let value = value.document(Which::Id(kept.entry.id)).unwrap();
    assert_eq!(value, serde_json::to_value(study()).unwrap());
}

#[test]
fn each_trial_is_there_for_others_as_soon_as_it_is_stored() {
    let place = place();
    let (head, trials) = parts();
    let mut recording = begin(&place.file, &head);
    for stored in 0..3 {
        let kept = read(&place.file, Which::Last);
        assert_eq!(kept.document.trials, trials[..stored]);
        append(&mut recording, &head, &trials[stored..=stored]).unwrap();
    }
    // Whoever reads it knows whether it still runs by its owner alone.
    let store = Store::to_read(&place.file).unwrap();
    let state = |is_running: bool| {
        let studies = store.list(|owner| is_running && owner == MINE).unwrap();
        studies.studies[0].state
    };
    assert_eq!(state(true), StudyState::Running);
    assert_eq!(state(false), StudyState::Killed);
}

#[test]
fn what_was_stored_before_a_failure_stays_and_can_be_gone_on_with() {
    let place = place();
    let (head, trials) = parts();
    let mut recording = begin(&place.file, &head);
    append(&mut recording, &head, &trials[..2]).unwrap();
    // The same trial once more is refused as a whole.
    let mut ahead = head.clone();
    ahead.elapsed_seconds += 1.0;
    assert!(append(&mut recording, &ahead, &trials[1..2]).is_err());
    recording.end_early("a reason").unwrap();
    let entry = read(&place.file, Which::Last).entry;
    assert_eq!(
        (entry.state, entry.trials_done),
        (StudyState::EndedEarly, 2)
    );
    assert_eq!(entry.reason.as_deref(), Some("a reason"));
    assert_eq!(entry.elapsed_seconds, head.elapsed_seconds);

    let store = Store::to_write(&place.file).unwrap();
    let (mut recording, kept) = store
        .resume::<Study>(Which::Last, "the next process", nobody)
        .unwrap();
    assert_eq!(kept.document.trials, trials[..2]);
    append(&mut recording, &head, &trials[2..]).unwrap();
    recording.finish(&head).unwrap();
    assert_eq!(read(&place.file, Which::Last).document, study());
}

#[test]
fn only_an_unfinished_study_that_nobody_runs_is_resumed() {
    let place = place();
    let (head, _) = parts();
    let first = begin(&place.file, &head).id();
    let mut second = begin(&place.file, &head);
    second.finish(&head).unwrap();
    let resume = |which, is_running: bool| {
        let store = Store::to_write(&place.file).unwrap();
        let resumed = store.resume::<Study>(which, "other", |owner| is_running && owner == MINE);
        resumed.map(|(recording, _)| recording.id())
    };
    let refused = |which, is_running| resume(which, is_running).unwrap_err().to_string();
    assert!(refused(Which::Id(first), true).contains("is running in another process"));
    assert!(refused(Which::Last, true).contains("none is unfinished"));
    assert!(refused(Which::Id(second.id()), false).contains("is finished"));
    assert!(refused(Which::Id(99), false).contains("there is no study 99"));
    assert_eq!(
        resume(Which::Last, false).unwrap(),
        first,
        "past the finished one"
    );
}

#[test]
fn deleting_takes_trials_along_frees_their_room_and_spares_what_runs() {
    let place = place();
    let (head, trials) = parts();
    for _ in 0..2 {
        let mut recording = begin(&place.file, &head);
        append(&mut recording, &head, &trials).unwrap();
        recording.finish(&head).unwrap();
    }
    let running = begin(&place.file, &head).id();
    let mut store = Store::to_write(&place.file).unwrap();
    let size = || fs::metadata(&place.file).unwrap().len();
    let before = size();
    let mut delete = |ids: &[i64], is_dry_run| {
        let which: Vec<Which> = ids.iter().copied().map(Which::Id).collect();
        let deleted = store.delete(&which, is_dry_run, |owner| owner == MINE);
        deleted.map(|studies| studies.studies.len())
    };
    assert_eq!(delete(&[1, 1], true).unwrap(), 1);
    assert!(
        delete(&[1, running], false)
            .unwrap_err()
            .to_string()
            .contains("is running")
    );
    assert!(delete(&[1, 99], false).is_err());
    assert_eq!(size(), before, "all of them or none");
    assert_eq!(delete(&[1], false).unwrap(), 1);
    assert!(size() < before * 3 / 4, "{} of {before}", size());
    let connection = Connection::open(&place.file).unwrap();
    let left = connection.query_row("SELECT count(DISTINCT study) FROM trial", [], |row| {
        row.get(0)
    });
    assert_eq!(left, Ok(1));
    // A number is never given again.
    assert!(begin(&place.file, &head).id() > running);
}

#[test]
fn a_lock_is_waited_for_and_then_said() {
    let place = place();
    let (head, trials) = parts();
    let mut recording = begin(&place.file, &head);
    let other = Connection::open(&place.file).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = append(&mut recording, &head, &trials[..1]).unwrap_err();
    assert!(matches!(reason(&error), Reason::Locked), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    append(&mut recording, &head, &trials[..1]).unwrap();
}

#[test]
fn a_file_from_the_future_of_another_program_or_damaged_is_refused_and_not_touched() {
    let place = place();
    let (head, trials) = parts();
    let mut recording = begin(&place.file, &head);
    append(&mut recording, &head, &trials).unwrap();
    drop(recording);
    let good = fs::read(&place.file).unwrap();
    let changed = |sql: &str| {
        Connection::open(&place.file)
            .unwrap()
            .execute_batch(sql)
            .unwrap();
        fs::read(&place.file).unwrap()
    };
    let newer = changed("PRAGMA user_version = 7");
    fs::write(&place.file, &good).unwrap();
    let foreign = changed("PRAGMA application_id = 1");
    let mut torn = good.clone();
    let middle = torn.len() / 2 / 4096 * 4096;
    torn[middle..middle + 4096].fill(0xa5);
    let text = b"This is a text of somebody, and no database at all.\n".repeat(40);
    let short = good[..good.len() / 2].to_vec();
    for (bytes, words) in [
        (newer, "schema is version 7, and this program knows 2"),
        (foreign, "of another program"),
        (torn, "it is damaged ("),
        (text, "it is damaged ("),
        (short, "it is damaged ("),
    ] {
        fs::write(&place.file, &bytes).unwrap();
        for opened in [Store::to_write(&place.file), Store::to_read(&place.file)] {
            let error = opened.map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(words), "{words}: {error}");
        }
        assert_eq!(fs::read(&place.file).unwrap(), bytes, "{words}");
    }
}

#[test]
fn an_empty_file_becomes_a_store_and_a_missing_one_is_not_made_by_reading() {
    let place = place();
    assert!(Store::to_read(&place.file).is_err());
    assert!(!place.file.parent().unwrap().exists());
    // This is what a kill between making the file and its first commit leaves.
    fs::create_dir_all(place.file.parent().unwrap()).unwrap();
    fs::write(&place.file, "").unwrap();
    let store = Store::to_read(&place.file).unwrap();
    assert!(store.list(nobody).unwrap().studies.is_empty());
    let none = store.read::<Study>(Which::Last, nobody).unwrap_err();
    assert!(none.to_string().contains("there is no study yet"), "{none}");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let place = place();
    let folder = place.file.parent().unwrap();
    fs::write(folder, "a file where the folder should be").unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o444)).unwrap();
    let error = Store::to_write(&place.file)
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("making the folder of"), "{error}");
}

#[test]
fn a_document_of_an_older_layout_is_named_and_can_be_exported() {
    let place = place();
    let (mut head, _) = parts();
    head.schema = String::from("nicpoll.demo/1");
    begin(&place.file, &head);
    let store = Store::to_read(&place.file).unwrap();
    let error = store.read::<Study>(Which::Last, nobody).unwrap_err();
    assert!(error.to_string().contains("'nicpoll.demo/1'"), "{error}");
    let value = store.document(Which::Last).unwrap();
    assert_eq!(value["schema"], "nicpoll.demo/1");
}
