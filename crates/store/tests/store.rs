//! A store in a file: the tests of every store, and those of files alone.

mod kept;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use kept::{Kit, append, parts};
use nicpoll_model::Study;
use nicpoll_store::{Reason, Store, StoreError, Which};
use rusqlite::Connection;

/// Tells that no owner runs.
fn nobody(_: &str) -> bool {
    false
}

struct TempStore {
    _folder: tempfile::TempDir,
    file: PathBuf,
}

fn place() -> TempStore {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data").join("studies.db");
    TempStore {
        _folder: folder,
        file,
    }
}

impl TempStore {
    fn kit(&self) -> Kit {
        Kit::of_file(&self.file)
    }
}

fn reason(error: &StoreError) -> &Reason {
    match error {
        StoreError::At { reason, .. } => reason,
        other => panic!("not of the file: {other}"),
    }
}

#[test]
fn a_study_is_read_back_as_the_document_that_it_was() {
    kept::a_study_is_read_back_as_the_document_that_it_was(&place().kit());
}

#[test]
fn what_was_stored_before_a_failure_stays_and_can_be_gone_on_with() {
    kept::what_was_stored_before_a_failure_stays_and_can_be_gone_on_with(&place().kit());
}

#[test]
fn only_an_unfinished_study_that_nobody_runs_is_resumed() {
    kept::only_an_unfinished_study_that_nobody_runs_is_resumed(&place().kit());
}

#[test]
fn a_document_of_an_older_layout_is_named_and_can_be_exported() {
    kept::a_document_of_an_older_layout_is_named_and_can_be_exported(&place().kit());
}

#[test]
fn deleting_takes_all_or_none_spares_what_runs_and_frees_its_room() {
    let place = place();
    kept::deleting_takes_all_or_none_and_spares_what_runs(&place.kit());
    let connection = Connection::open(&place.file).unwrap();
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    // The trials are deleted, too, and the file has no unused pages.
    assert_eq!(count("SELECT count(DISTINCT study) FROM trial"), Ok(1));
    assert_eq!(count("PRAGMA freelist_count"), Ok(0));
}

#[test]
fn a_lock_is_waited_for_and_then_said() {
    let place = place();
    let (_, trials) = parts();
    let mut recording = place.kit().begin();
    let other = Connection::open(&place.file).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = append(&mut recording, &trials[..1]).unwrap_err();
    assert!(matches!(reason(&error), Reason::Locked), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    append(&mut recording, &trials[..1]).unwrap();
}

#[test]
fn a_file_from_the_future_of_another_program_or_damaged_is_refused_and_not_touched() {
    let place = place();
    let (_, trials) = parts();
    let mut recording = place.kit().begin();
    append(&mut recording, &trials).unwrap();
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
        (text, "it is no database of studies; name another"),
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
    // As after a kill between creating the file and its first commit.
    fs::create_dir_all(place.file.parent().unwrap()).unwrap();
    fs::write(&place.file, "").unwrap();
    let store = Store::to_read(&place.file).unwrap();
    assert!(store.list(nobody).unwrap().studies.is_empty());
    let none = store.read::<Study>(Which::Last, nobody).unwrap_err();
    assert!(none.to_string().contains("there is no study yet"), "{none}");
}

#[test]
fn what_another_was_killed_at_is_read_only_once_its_owner_has_put_it_right() {
    let place = place();
    let kit = place.kit();
    kept::a_study_is_read_back_as_the_document_that_it_was(&kit);
    let before = fs::read(&place.file).unwrap();
    let journal = place.file.with_extension("db-journal");
    fs::write(&journal, "half a commit").unwrap();
    Store::to_read(&place.file).unwrap();
    assert_eq!(fs::read(&place.file).unwrap(), before);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&place.file, Some(65_534), None).unwrap();
        fs::write(&journal, "half a commit").unwrap();
        let error = Store::to_read(&place.file).map(|_| ()).unwrap_err();
        assert!(matches!(reason(&error), Reason::HalfWritten), "{error}");
    }
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
