//! A team's server does what a file does, and tells whether a study still runs on whichever machine.

use std::thread;
use std::time::Duration;

use nicpoll_model::{Study, StudyKind, StudyState, Trial};
use nicpoll_store::{Kept, Place, Reason, Recording, Store, StoreError, Which};
use nicpoll_testkit::{PostgresServer, needs};
use postgres::{Client, NoTls};
use rusqlite::Connection;

/// On a server, nobody has to look for the process of an owner.
fn unknown(_: &str) -> bool {
    panic!("the server knows who runs a study");
}

fn study() -> Study {
    let text = include_str!("../../report/tests/golden/demo.json");
    serde_json::from_str(text).unwrap()
}

fn parts() -> (Study, Vec<Trial>) {
    let mut head = study();
    let trials = std::mem::take(&mut head.trials);
    (head, trials)
}

fn place(url: &str) -> Place {
    url.parse().unwrap()
}

fn begin(url: &str) -> Recording {
    let store = Store::to_write(place(url)).unwrap();
    let kind = StudyKind::Study;
    store.begin(kind, &parts().0, 192, "{}", "of ann").unwrap()
}

fn append(recording: &mut Recording, trials: &[Trial]) -> Result<(), StoreError> {
    let (head, _) = parts();
    let taken = Duration::from_millis(700);
    trials
        .iter()
        .try_for_each(|trial| recording.trial(&head, trial, taken))
}

fn read(url: &str, which: Which) -> Kept<Study> {
    let store = Store::to_read(place(url)).unwrap();
    store.read(which, unknown).unwrap()
}

fn resume(url: &str, which: Which) -> Result<Recording, StoreError> {
    let store = Store::to_write(place(url))?;
    let resumed = store.resume::<Study>(which, "of bob", unknown)?;
    Ok(resumed.0)
}

#[test]
fn studies_of_a_team_are_kept_on_a_server_as_in_a_file() {
    needs!(Postgres);
    let mut server = PostgresServer::start();
    let url = server.url();
    nothing_is_made_by_reading(&url);
    programs_that_begin_at_once_make_one_set_of_tables(&url);
    the_tables_are_those_of_a_file(&url);
    a_study_is_read_back_as_it_was(&url);
    a_study_that_runs_is_not_resumed_and_one_that_was_killed_is(&url);
    what_was_stored_outlives_a_crash_of_the_server(&mut server, &url);
    what_cannot_be_used_is_refused(&url);
}

fn nothing_is_made_by_reading(url: &str) {
    let error = Store::to_read(place(url)).map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::Nothing { .. }), "{error}");
}

fn programs_that_begin_at_once_make_one_set_of_tables(url: &str) {
    let mut ids: Vec<i64> = thread::scope(|scope| {
        let begun: Vec<_> = (0..4).map(|_| scope.spawn(|| begin(url).id())).collect();
        begun.into_iter().map(|one| one.join().unwrap()).collect()
    });
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3, 4]);
    let mut store = Store::to_write(place(url)).unwrap();
    let all: Vec<Which> = ids.into_iter().map(Which::Id).collect();
    assert_eq!(store.delete(&all, false, unknown).unwrap().studies.len(), 4);
    // A number is never given again.
    assert_eq!(begin(url).id(), 5);
}

/// Names of the columns, table by table.
fn the_tables_are_those_of_a_file(url: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("studies.db");
    drop(Store::to_write(&file).unwrap());
    let file = Connection::open(&file).unwrap();
    let mut server = Client::connect(url, NoTls).unwrap();
    for table in ["study", "trial"] {
        let mut in_file = file
            .prepare(&format!(
                "SELECT name FROM pragma_table_xinfo('{table}') ORDER BY name"
            ))
            .unwrap();
        let in_file = in_file.query_map([], |row| row.get(0)).unwrap();
        let in_file: Vec<String> = in_file.map(Result::unwrap).collect();
        let sql = "SELECT CAST(column_name AS TEXT) FROM information_schema.columns \
                   WHERE table_schema = 'nicpoll' AND table_name = $1 ORDER BY 1";
        let on_server = server.query(sql, &[&table]).unwrap();
        let on_server: Vec<String> = on_server.iter().map(|row| row.get(0)).collect();
        assert_eq!(on_server, in_file);
        assert!(in_file.len() >= 8);
    }
}

fn a_study_is_read_back_as_it_was(url: &str) {
    let (head, trials) = parts();
    let mut recording = begin(url);
    for stored in 0..trials.len() {
        assert_eq!(read(url, Which::Last).document.trials, trials[..stored]);
        append(&mut recording, &trials[stored..=stored]).unwrap();
    }
    assert!(
        append(&mut recording, &trials[..1]).is_err(),
        "no trial twice"
    );
    recording.finish(&head).unwrap();
    let kept = read(url, Which::Id(recording.id()));
    let text = |study: &Study| serde_json::to_string_pretty(study).unwrap();
    assert_eq!(text(&kept.document), text(&study()), "to the last digit");
    assert_eq!(kept.entry.state, StudyState::Finished);
    assert_eq!(kept.entry.argv, study().argv);
    assert_eq!(kept.entry.elapsed_seconds, study().elapsed_seconds);
}

fn a_study_that_runs_is_not_resumed_and_one_that_was_killed_is(url: &str) {
    let (head, trials) = parts();
    let mut recording = begin(url);
    let id = recording.id();
    append(&mut recording, &trials[..2]).unwrap();
    let refused = resume(url, Which::Id(id)).map(|_| ()).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("is running in another process")
    );
    assert_eq!(read(url, Which::Id(id)).entry.state, StudyState::Running);
    // What a kill leaves: a connection that is gone.
    drop(recording);
    let killed = || read(url, Which::Id(id)).entry.state == StudyState::Killed;
    for _ in 0..200 {
        if killed() {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert!(killed());
    let mut recording = resume(url, Which::Last).unwrap();
    assert_eq!((recording.id(), recording.stored()), (id, 2));
    append(&mut recording, &trials[2..]).unwrap();
    recording.finish(&head).unwrap();
    assert_eq!(read(url, Which::Id(id)).document, study());
}

fn what_was_stored_outlives_a_crash_of_the_server(server: &mut PostgresServer, url: &str) {
    let (_, trials) = parts();
    let mut recording = begin(url);
    let id = recording.id();
    append(&mut recording, &trials[..2]).unwrap();
    server.crash();
    let error = append(&mut recording, &trials[2..3]).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("storing a trial in postgres://nicpoll@"),
        "{error}"
    );
    let gone = Store::to_read(place(url)).map(|_| ()).unwrap_err();
    assert!(
        gone.to_string().starts_with("opening postgres://"),
        "{gone}"
    );
    server.go_on();
    let kept = read(url, Which::Id(id));
    assert_eq!(kept.document.trials, trials[..2]);
    assert_eq!(kept.entry.state, StudyState::Killed);
    let mut recording = resume(url, Which::Id(id)).unwrap();
    append(&mut recording, &trials[2..3]).unwrap();
}

fn what_cannot_be_used_is_refused(url: &str) {
    let refused = |url: &str| match Store::to_write(place(url)).map(|_| ()) {
        Err(StoreError::At { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    let with_password = url.replacen("nicpoll@", "nicpoll:secret@", 1);
    assert!(matches!(refused(&with_password), Reason::Refused(_)));
    let tls = format!("{url}&sslmode=require");
    assert!(refused(&tls).to_string().contains("does not speak"));
    let read_only = format!("{url}&options=-c%20default_transaction_read_only=on");
    let store = Store::to_write(place(&read_only)).unwrap();
    let begun = store.begin(StudyKind::Study, &parts().0, 1, "{}", "of ann");
    let error = begun.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("it is read-only"), "{error}");
    let mut server = Client::connect(url, NoTls).unwrap();
    server
        .execute("UPDATE nicpoll.version SET version = 99", &[])
        .unwrap();
    let newer = refused(url).to_string();
    assert!(
        newer.contains("version 99, and this program knows 2"),
        "{newer}"
    );
    server.execute("DROP TABLE nicpoll.version", &[]).unwrap();
    assert!(matches!(refused(url), Reason::Foreign));
}
