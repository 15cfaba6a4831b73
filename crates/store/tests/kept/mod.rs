//! Tests that a file and a server must both pass.

use std::cell::Cell;
use std::thread;
use std::time::Duration;

use nicpoll_model::{Study, StudyKind, StudyState, Trial};
use nicpoll_store::{Recording, Store, StoreError, StorePlace, StoredDocument, Which};

/// Owner of the studies that these tests begin.
pub const MINE: &str = "this process";
/// Most checks of a state, 20 ms apart.
const LOOKS: u32 = 500;

/// Returns a finished study, as `nicpoll demo --json` printed it.
pub fn study() -> Study {
    let text = include_str!("../../../report/tests/golden/demo.json");
    serde_json::from_str(text).unwrap()
}

/// Splits it into the study without trials, and the trials.
pub fn parts() -> (Study, Vec<Trial>) {
    let mut head = study();
    let trials = std::mem::take(&mut head.trials);
    (head, trials)
}

/// A store of a test, and whether its studies run.
pub struct Kit {
    place: StorePlace,
    /// For a file, the owner's process decides; a server knows the connection, and never asks for the process.
    runs: Option<Cell<bool>>,
}

impl Kit {
    // Unused by the program for servers.
    #[allow(dead_code)]
    pub fn of_file(place: impl Into<StorePlace>) -> Self {
        Kit {
            place: place.into(),
            runs: Some(Cell::new(true)),
        }
    }

    // Unused by the program for files.
    #[allow(dead_code)]
    pub fn of_server(url: &str) -> Self {
        Kit {
            place: url.parse().unwrap(),
            runs: None,
        }
    }

    pub fn is_running(&self, owner: &str) -> bool {
        let runs = self.runs.as_ref();
        let runs = runs.expect("the server knows who runs a study");
        runs.get() && owner == MINE
    }

    pub fn begin(&self) -> Recording {
        if let Some(runs) = &self.runs {
            runs.set(true);
        }
        let store = Store::to_write(self.place.clone()).unwrap();
        let (head, _) = parts();
        let begun = store.begin(StudyKind::Study, &head, 192, "{}", MINE);
        begun.unwrap()
    }

    pub fn read(&self, which: Which) -> StoredDocument<Study> {
        let store = Store::to_read(self.place.clone()).unwrap();
        store.read(which, |owner| self.is_running(owner)).unwrap()
    }

    pub fn resume(&self, which: Which) -> Result<(Recording, StoredDocument<Study>), StoreError> {
        let store = Store::to_write(self.place.clone())?;
        let is_running = |owner: &str| self.is_running(owner);
        let kept = store.unfinished(which, is_running)?;
        Ok((store.resume(&kept, "the next process", is_running)?, kept))
    }

    /// Simulates the end of a program: a dead owner, or a closed connection, which the server notices later.
    pub fn gone(&self, recording: Recording) {
        let id = Which::Id(recording.id());
        drop(recording);
        if let Some(runs) = &self.runs {
            runs.set(false);
        }
        for _ in 0..LOOKS {
            let state = self.read(id).entry.state;
            if state != StudyState::Running {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("the study still runs, for those who ask");
    }

    /// Resumes a study as soon as the server knows that its connection is gone.
    fn resume_when_free(&self, which: Which) -> (Recording, StoredDocument<Study>) {
        let mut looks = 0..LOOKS;
        let resumed = looks.find_map(|_| {
            let resumed = self.resume(which).ok();
            if resumed.is_none() {
                thread::sleep(Duration::from_millis(20));
            }
            resumed
        });
        resumed.expect("the study is held by a connection that is gone")
    }
}

pub fn append(recording: &mut Recording, trials: &[Trial]) -> Result<(), StoreError> {
    let (head, _) = parts();
    let mut trials = trials.iter();
    trials.try_for_each(|trial| recording.trial(&head, trial, Duration::from_millis(700)))
}

pub fn a_study_is_read_back_as_the_document_that_it_was(kit: &Kit) {
    let (head, trials) = parts();
    let mut early = head.clone();
    early.comparisons.clear();
    let mut recording = kit.begin();
    recording.head(&early).unwrap();
    for (stored, trial) in trials.iter().enumerate() {
        // Others see each trial as soon as it is stored.
        if stored < 3 {
            let kept = kit.read(Which::Last);
            assert_eq!(kept.document.trials, trials[..stored]);
            assert_eq!(kept.entry.state, StudyState::Running);
        }
        let taken = Duration::from_millis(700);
        recording.trial(&early, trial, taken).unwrap();
    }
    recording.finish(&head).unwrap();
    let id = Which::Id(recording.id());
    let kept = kit.read(id);
    let text = |study: &Study| serde_json::to_string_pretty(study).unwrap();
    assert_eq!(text(&kept.document), text(&study()), "to the last digit");
    assert_eq!(kept.entry.state, StudyState::Finished);
    assert_eq!(kept.entry.trials_done as usize, trials.len());
    assert_eq!(kept.entry.argv, study().argv);
    assert_eq!(kept.entry.elapsed_seconds, study().elapsed_seconds);
    assert_eq!(kept.taken[0], Duration::from_millis(700));
    // A document of any layout can be exported as it is.
    let store = Store::to_read(kit.place.clone()).unwrap();
    let value = store.document(id).unwrap();
    assert_eq!(value, serde_json::to_value(study()).unwrap());
}

pub fn what_was_stored_before_a_failure_stays_and_can_be_gone_on_with(kit: &Kit) {
    let (head, trials) = parts();
    let mut recording = kit.begin();
    let id = Which::Id(recording.id());
    append(&mut recording, &trials[..2]).unwrap();
    // Storing the same trial again is refused as a whole.
    let mut ahead = head.clone();
    ahead.elapsed_seconds += 1.0;
    let again = recording.trial(&ahead, &trials[1], Duration::ZERO);
    assert!(again.is_err());
    recording.end_early("a reason").unwrap();
    let entry = kit.read(id).entry;
    let done = (entry.state, entry.trials_done);
    assert_eq!(done, (StudyState::EndedEarly, 2));
    assert_eq!(entry.reason.as_deref(), Some("a reason"));
    assert_eq!(entry.elapsed_seconds, head.elapsed_seconds);

    kit.gone(recording);
    let (mut recording, kept) = kit.resume_when_free(Which::Last);
    assert_eq!((Which::Id(recording.id()), recording.place.trials), (id, 2));
    assert_eq!(kept.document.trials, trials[..2]);
    append(&mut recording, &trials[2..]).unwrap();
    recording.finish(&head).unwrap();
    assert_eq!(kit.read(id).document, study());
}

pub fn only_an_unfinished_study_that_nobody_runs_is_resumed(kit: &Kit) {
    let (head, trials) = parts();
    let mut first = kit.begin();
    let id = Which::Id(first.id());
    append(&mut first, &trials[..2]).unwrap();
    let mut second = kit.begin();
    let finished = Which::Id(second.id());
    second.finish(&head).unwrap();
    let refused = |which| {
        let resumed = kit.resume(which).map(|_| ());
        resumed.unwrap_err().to_string()
    };
    assert!(refused(id).contains("is running in another process"));
    assert!(refused(Which::Last).contains("none is unfinished"));
    assert!(refused(finished).contains("is finished"));
    assert!(refused(Which::Id(9999)).contains("there is no study 9999"));
    kit.gone(first);
    assert_eq!(kit.read(id).entry.state, StudyState::Killed);
    let (mut recording, _) = kit.resume(Which::Last).unwrap();
    assert_eq!(Which::Id(recording.id()), id, "past the finished one");
    append(&mut recording, &trials[2..]).unwrap();
    recording.finish(&head).unwrap();
    assert_eq!(kit.read(id).document, study());
}

pub fn deleting_takes_all_or_none_and_spares_what_runs(kit: &Kit) {
    let (head, trials) = parts();
    let finished = [(); 2].map(|()| {
        let mut recording = kit.begin();
        append(&mut recording, &trials).unwrap();
        recording.finish(&head).unwrap();
        recording.id()
    });
    let running = kit.begin();
    let mut store = Store::to_write(kit.place.clone()).unwrap();
    let mut delete = |ids: &[i64], is_dry_run| {
        let which: Vec<Which> = ids.iter().copied().map(Which::Id).collect();
        let is_running = |owner: &str| kit.is_running(owner);
        let deleted = match is_dry_run {
            true => store.would_delete(&which, is_running),
            false => store.delete(&which, is_running),
        };
        deleted.map(|studies| studies.studies.len())
    };
    let [first, second] = finished;
    assert_eq!(delete(&[first, first], true).unwrap(), 1);
    let refused = delete(&[first, running.id()], false).unwrap_err();
    assert!(refused.to_string().contains("is running"), "{refused}");
    assert!(delete(&[first, 9999], false).is_err());
    assert_eq!(kit.read(Which::Id(first)).document, study());
    assert_eq!(delete(&[first], false).unwrap(), 1);
    assert_eq!(kit.read(Which::Id(second)).document, study());
    // Numbers are never reused.
    assert!(kit.begin().id() > running.id());
}

pub fn a_document_of_an_older_layout_is_named_and_can_be_exported(kit: &Kit) {
    let (mut head, _) = parts();
    head.schema = String::from("nicpoll.demo/1");
    let mut recording = kit.begin();
    recording.head(&head).unwrap();
    let id = Which::Id(recording.id());
    let store = Store::to_read(kit.place.clone()).unwrap();
    let read = store.read::<Study>(id, |owner| kit.is_running(owner));
    let error = read.map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("'nicpoll.demo/1'"), "{error}");
    assert_eq!(store.document(id).unwrap()["schema"], "nicpoll.demo/1");
}
