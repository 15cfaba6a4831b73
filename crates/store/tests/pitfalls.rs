//! The queries of docs/method-evidence.md work on the current schema and documents.

use std::time::Duration;

use nicpoll_model::{Study, StudyKind};
use nicpoll_store::Store;
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::{Batch, Connection};

#[test]
fn each_question_of_the_page_has_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("studies.db");
    let text = include_str!("../../report/tests/golden/demo.json");
    let mut head: Study = serde_json::from_str(text).unwrap();
    let trials = std::mem::take(&mut head.trials);
    let store = Store::to_write(&file).unwrap();
    let mut recording = store.begin(StudyKind::Study, &head, 9, "{}", "me").unwrap();
    for trial in &trials {
        recording.trial(&head, trial, Duration::ZERO).unwrap();
    }
    let connection = Connection::open(&file).unwrap();
    let questions = include_str!("../../../docs/method-pitfalls.sql");
    let mut questions = Batch::new(&connection, questions);
    let mut asked = 0;
    while let Some(mut question) = questions.next().unwrap() {
        let columns = question.column_count();
        let mut rows = question.query([]).unwrap();
        let row = rows.next().unwrap().expect("a row for each setting");
        let count: i64 = row.get("trials").unwrap_or_else(|_| row.get(3).unwrap());
        assert!(count > 0 && columns >= 5);
        asked += 1;
    }
    assert_eq!(asked, 4);
}
