//! Kinds of studies in a store, and the conversion of older files.

use std::time::Duration;

use nicpoll_model::ab::{AbPair, LiveAb};
use nicpoll_model::{
    IMPORTED_SCHEMA, Imported, ImportedBasis, ImportedTrial, Study, StudyKind, StudyState,
};
use nicpoll_store::{Store, Which};
use rusqlite::{Connection, params};
use serde_json::Value;

fn nobody(_: &str) -> bool {
    false
}

const STUDY: &str = include_str!("../../report/tests/golden/demo.json");
const LIVE: &str = include_str!("../../report/tests/golden/ab.json");

/// Returns a live comparison without its pairs, and the pairs.
fn live() -> (LiveAb, Vec<AbPair>) {
    let mut head: LiveAb = serde_json::from_str(LIVE).unwrap();
    let pairs = std::mem::take(&mut head.pairs);
    (head, pairs)
}

#[test]
fn a_live_comparison_is_kept_pair_by_pair_and_read_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("studies.db");
    let (head, pairs) = live();
    let store = Store::to_write(&file).unwrap();
    let mut recording = store.begin(StudyKind::Ab, &head, 60, "{}", "me").unwrap();
    for pair in &pairs {
        let taken = Duration::from_secs(8);
        recording.trial(&head, pair, taken).unwrap();
    }
    let entry = |is_running: bool| {
        let store = Store::to_read(&file).unwrap();
        store.entry(Which::Last, |_| is_running).unwrap()
    };
    assert_eq!(entry(true).state, StudyState::Running);
    let killed = entry(false);
    assert_eq!(
        (killed.kind, killed.state),
        (StudyKind::Ab, StudyState::Killed)
    );
    assert_eq!(killed.elapsed_seconds, 8.0 * pairs.len() as f64);
    recording.finish(&head).unwrap();

    let store = Store::to_read(&file).unwrap();
    let kept = store.read::<LiveAb>(Which::Last, nobody).unwrap();
    assert_eq!(kept.document.pairs, pairs);
    let value: Value = serde_json::from_str(LIVE).unwrap();
    assert_eq!(store.document(Which::Last).unwrap(), value);
    let error = store.read::<Study>(Which::Last, nobody).unwrap_err();
    assert!(error.to_string().contains("'nicpoll.ab/1'"), "{error}");
}

/// Makes an import of one file without a trial.
fn imported() -> Imported {
    Imported {
        schema: String::from(IMPORTED_SCHEMA),
        origin: live().0.origin,
        margin_ratio: 1.05,
        ..Imported::default()
    }
}

/// Trials of a text have no block: two of one workload and setting are both kept.
#[test]
fn imported_trials_are_kept_and_listed_though_nothing_says_where_they_ran() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("studies.db");
    let trial = ImportedTrial {
        sequence: 1,
        test: 1,
        tool: String::from("iperf"),
        workload: String::from("iperf-tcp"),
        setting: String::from("polling"),
        setting_basis: ImportedBasis::Said,
        quantity: String::from("bits_per_second"),
        value: Some(1e6),
        duration_seconds: Some(60.0),
        ..ImportedTrial::default()
    };
    let store = Store::to_write(&file).unwrap();
    let mut recording = store
        .begin(StudyKind::Imported, &imported(), 2, "{}", "me")
        .unwrap();
    let taken = Duration::from_secs(60);
    recording.trial(&imported(), &trial, taken).unwrap();
    recording.trial(&imported(), &trial, taken).unwrap();
    recording.finish(&imported()).unwrap();
    let store = Store::to_read(&file).unwrap();
    let entry = store.entry(Which::Last, nobody).unwrap();
    assert_eq!((entry.kernel.as_str(), entry.elapsed_seconds), ("", 120.0));
    let kept = store.read::<Imported>(Which::Last, nobody).unwrap();
    assert_eq!(kept.document.trials, [trial.clone(), trial]);
    assert!(store.read::<Study>(Which::Last, nobody).is_err());
}

#[test]
fn a_study_goes_on_only_by_the_command_for_its_kind() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("studies.db");
    let study: Study = serde_json::from_str(STUDY).unwrap();
    let store = || Store::to_write(&file).unwrap();
    let resumed = |which| {
        let kept = store().unfinished::<Study>(which, nobody)?;
        store().resume(&kept, "me", nobody).map(|_| ())
    };
    for (kind, words) in [
        (StudyKind::Imported, "there is nothing to go on with"),
        (StudyKind::Ab, "'nicpoll ab' alone"),
    ] {
        let begun = match kind {
            StudyKind::Ab => store().begin(kind, &live().0, 1, "{}", "me"),
            _ => store().begin(kind, &imported(), 1, "{}", "me"),
        };
        let id = begun.unwrap().id();
        let error = resumed(Which::Id(id)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    // Neither is 'last' for resuming.
    let error = resumed(Which::Last).unwrap_err().to_string();
    assert!(error.contains("none is unfinished"), "{error}");
    for kind in [StudyKind::Demo, StudyKind::Study] {
        let id = store().begin(kind, &study, 1, "{}", "me").unwrap().id();
        resumed(Which::Id(id)).unwrap();
    }
}

#[test]
fn a_file_of_version_1_keeps_its_studies_and_learns_what_each_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("studies.db");
    let old = Connection::open(&file).unwrap();
    old.execute_batch(include_str!("old/version-1.sql"))
        .unwrap();
    let argv = [["nicpoll", "demo", "--quick"], ["nicpoll", "study", "run"]];
    for argv in argv {
        let mut study: Study = serde_json::from_str(STUDY).unwrap();
        study.argv = argv.map(String::from).to_vec();
        let trials = std::mem::take(&mut study.trials);
        old.execute(
            "INSERT INTO study (kind, state, trials_planned, design, document)
             VALUES ('demo', 'finished', 192, '{}', ?1)",
            [serde_json::to_string(&study).unwrap()],
        )
        .unwrap();
        let id = old.last_insert_rowid();
        for (sequence, trial) in (1..).zip(&trials) {
            let row = params![id, sequence, serde_json::to_string(trial).unwrap()];
            old.execute("INSERT INTO trial VALUES (?1, ?2, 0.7, ?3)", row)
                .unwrap();
        }
    }
    drop(old);
    let as_it_was = std::fs::read(&file).unwrap();
    // Also in a read-only place.
    let modes = [0o444, 0o644].map(std::os::unix::fs::PermissionsExt::from_mode);
    for mode in modes {
        std::fs::set_permissions(&file, mode).unwrap();
        let store = Store::to_read(&file).unwrap();
        assert_eq!(store.list(nobody).unwrap().studies.len(), 2);
        assert_eq!(std::fs::read(&file).unwrap(), as_it_was);
    }
    let store = Store::to_write(&file).unwrap();
    let migration = store.migration().unwrap();
    assert_eq!((migration.from, migration.to), (1, 2));
    let copied = Connection::open(&migration.copy).unwrap();
    let version = copied.pragma_query_value(None, "user_version", |row| row.get(0));
    assert_eq!(version, Ok(1_i64));
    assert!(Store::to_write(&file).unwrap().migration().is_none());
    let store = Store::to_read(&file).unwrap();
    let list = store.list(nobody).unwrap().studies;
    let kinds: Vec<StudyKind> = list.iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [StudyKind::Demo, StudyKind::Study]);
    assert_eq!(list[0].argv, argv[0]);
    let mut first = store.read::<Study>(Which::Id(1), nobody).unwrap().document;
    let whole: Study = serde_json::from_str(STUDY).unwrap();
    first.argv.clone_from(&whole.argv);
    assert_eq!(first, whole, "trials and all");
    // It is writable, and has the columns by which studies are found.
    let recording = Store::to_write(&file).unwrap();
    let (head, _) = live();
    recording
        .begin(StudyKind::Ab, &head, 1, "{}", "me")
        .unwrap();
    let sql = Connection::open(&file).unwrap();
    let asked: Option<String> = sql
        .query_row("SELECT question FROM study WHERE id = 2", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(asked, Some(whole.question));
}
