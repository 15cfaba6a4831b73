//! A team's server passes the file's tests, and knows whether a study still runs on any machine.

mod kept;

use std::thread;

use kept::{Kit, append, parts};
use nicpoll_model::{Study, StudyKind, StudyState};
use nicpoll_store::{Reason, Store, StoreError, StorePlace, Which};
use nicpoll_testkit::{PostgresServer, assert_has, needs};
use postgres::{Client, NoTls};
use rusqlite::Connection;

/// A server never asks for an owner's process.
fn unknown(_: &str) -> bool {
    panic!("the server knows who runs a study");
}

fn place(url: &str) -> StorePlace {
    url.parse().unwrap()
}

#[test]
fn studies_of_a_team_are_kept_on_a_server_as_in_a_file() {
    needs!(Postgres);
    let mut server = PostgresServer::start();
    let url = server.url();
    nothing_is_made_by_reading(&url);
    tables_of_version_1_are_shown_as_they_are_and_brought_up_to_date_by_writing(&url);
    programs_that_begin_at_once_make_one_set_of_tables(&url);
    the_tables_are_those_of_a_file(&url);
    let kit = Kit::of_server(&url);
    kept::a_study_is_read_back_as_the_document_that_it_was(&kit);
    kept::what_was_stored_before_a_failure_stays_and_can_be_gone_on_with(&kit);
    kept::only_an_unfinished_study_that_nobody_runs_is_resumed(&kit);
    kept::deleting_takes_all_or_none_and_spares_what_runs(&kit);
    kept::a_document_of_an_older_layout_is_named_and_can_be_exported(&kit);
    what_was_stored_outlives_a_crash_of_the_server(&mut server, &url);
    what_cannot_be_used_is_refused(&url);
}

fn nothing_is_made_by_reading(url: &str) {
    let error = Store::to_read(place(url)).map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::Nothing { .. }), "{error}");
}

/// What is in the schema: each table with its columns.
fn tables(server: &mut Client) -> Vec<(String, String)> {
    let sql = "SELECT CAST(table_name AS TEXT), CAST(column_name AS TEXT) FROM information_schema.columns \
               WHERE table_schema = 'nicpoll' ORDER BY 1, 2";
    let rows = server.query(sql, &[]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn tables_of_version_1_are_shown_as_they_are_and_brought_up_to_date_by_writing(url: &str) {
    let mut server = Client::connect(url, NoTls).unwrap();
    let made = "CREATE SCHEMA nicpoll; SET search_path TO nicpoll; \
                CREATE TABLE version (version BIGINT NOT NULL); INSERT INTO version VALUES (1);";
    let tables_of_1 = include_str!("../src/schema/1.postgres.sql");
    server
        .batch_execute(&format!("{made}{tables_of_1}"))
        .unwrap();
    let (mut head, trials) = parts();
    head.argv = ["nicpoll", "study", "run"].map(String::from).to_vec();
    for state in ["finished", "running"] {
        let sql = "INSERT INTO study (kind, state, trials_planned, design, document) \
                   VALUES ('demo', $1, 192, '{}', $2) RETURNING id";
        let document = serde_json::to_string(&head).unwrap();
        let id: i64 = server.query_one(sql, &[&state, &document]).unwrap().get(0);
        for (sequence, trial) in (1_i64..).zip(&trials) {
            let sql = "INSERT INTO trial VALUES ($1, $2, 0.7, $3)";
            let document = serde_json::to_string(trial).unwrap();
            server.execute(sql, &[&id, &sequence, &document]).unwrap();
        }
    }
    let as_they_were = tables(&mut server);

    let store = Store::to_read(place(url)).unwrap();
    let all = store.list(unknown).unwrap().studies;
    let told: Vec<_> = all.iter().map(|it| (it.kind, it.state)).collect();
    let study = StudyKind::Study;
    // Nobody holds the second one.
    assert_eq!(
        told,
        [(study, StudyState::Finished), (study, StudyState::Killed)]
    );
    let kept = store.read::<Study>(Which::Id(1), unknown).unwrap();
    assert_eq!(
        (kept.document.trials, kept.document.argv),
        (trials, head.argv)
    );
    let would = store.would_delete(&[Which::Last], unknown).unwrap();
    assert_eq!(would.studies[0].id, 2);
    assert_eq!(tables(&mut server), as_they_were);

    let written = Store::to_write(place(url)).unwrap();
    let migration = written.migration().unwrap().to_string();
    let words = "version 1 and is version 2; what it was is kept in nicpoll.study_schema_1 and nicpoll.trial_schema_1";
    assert!(migration.contains(words), "{migration}");
    assert!(Store::to_write(place(url)).unwrap().migration().is_none());
    let copied = server.query_one("SELECT count(*) FROM study_schema_1", &[]);
    assert_eq!(copied.unwrap().get::<_, i64>(0), 2);
    let mut store = Store::to_read(place(url)).unwrap();
    assert_eq!(store.list(unknown).unwrap().studies, all);
    // What is open to read is not written, whoever asks.
    let refused = store.delete(&[Which::Last], unknown).unwrap_err();
    assert!(refused.to_string().contains("it is read-only"), "{refused}");
    server.batch_execute("DROP SCHEMA nicpoll CASCADE").unwrap();
}

fn programs_that_begin_at_once_make_one_set_of_tables(url: &str) {
    let mut ids: Vec<i64> = thread::scope(|scope| {
        let begun: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| Kit::of_server(url).begin().id()))
            .collect();
        begun.into_iter().map(|one| one.join().unwrap()).collect()
    });
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3, 4]);
    let mut store = Store::to_write(place(url)).unwrap();
    let all: Vec<Which> = ids.into_iter().map(Which::Id).collect();
    assert_eq!(store.delete(&all, unknown).unwrap().studies.len(), 4);
    // Numbers are never reused.
    let kit = Kit::of_server(url);
    let fifth = kit.begin();
    assert_eq!(fifth.id(), 5);
    kit.gone(fifth);
    store.delete(&[Which::Id(5)], unknown).unwrap();
}

/// Returns the names of the columns, by table.
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

fn what_was_stored_outlives_a_crash_of_the_server(server: &mut PostgresServer, url: &str) {
    let (_, trials) = parts();
    let mut recording = Kit::of_server(url).begin();
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
    let kept = Kit::of_server(url).read(Which::Id(id));
    assert_eq!(kept.document.trials, trials[..2]);
    assert_eq!(kept.entry.state, StudyState::Killed);
    let mut recording = Kit::of_server(url).resume(Which::Id(id)).unwrap().0;
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
    assert_has(&newer, "version 99, and this program knows 2");
    server.execute("DROP TABLE nicpoll.version", &[]).unwrap();
    assert!(matches!(refused(url), Reason::Foreign));
}
