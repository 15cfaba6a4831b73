//! Where the pairs of a live comparison go as they end.
//!
//! What must hold: a pair is stored before the next one begins, with what follows from the pairs so far. A comparison
//! that was killed says so when it is shown.

use std::time::Duration;

use nicpoll_model::StudyKind;
use nicpoll_model::ab::{AbEnd, AbEndCause, LiveAb};
use nicpoll_stats::ab::answer;
use nicpoll_store::{Recording, Store, StoreError};

use crate::error::StudyError;
use crate::keep::this_runner;
use crate::sitting::Ended;

/// A comparison that is stored, or not.
#[derive(Default)]
pub struct Keep {
    recording: Option<Recording>,
    failed: Option<StoreError>,
}

impl Keep {
    /// Stores a comparison from now on, when there is a store.
    pub fn begin(store: Option<Store>, document: &LiveAb) -> Result<Self, StudyError> {
        let mut keep = Keep::default();
        if let Some(store) = store {
            let plan = &document.plan;
            let [measured, every] = plan.duty_seconds.unwrap_or([1.0; 2]);
            let of_pair: f64 = plan.block_seconds.iter().sum();
            let pairs = plan.duration_seconds * measured / every / of_pair;
            let head = head(document);
            let owner = this_runner()?;
            keep.recording = Some(store.begin(StudyKind::Ab, &head, pairs as u32, "{}", &owner)?);
        }
        Ok(keep)
    }

    /// Stores how it ended.
    pub fn ended(self, outcome: Result<LiveAb, StudyError>) -> Ended<LiveAb> {
        let ended = Ended::of(outcome, self.recording);
        Ended {
            unstored: self.failed.or(ended.unstored),
            ..ended
        }
    }

    /// Stores the last pair.
    pub fn pair(&mut self, document: &LiveAb, taken: Duration) -> Result<(), StoreError> {
        match (&mut self.recording, document.pairs.last()) {
            (Some(recording), Some(last)) => recording.trial(&head(document), last, taken),
            _ => Ok(()),
        }
    }

    /// Remembers why a pair could not be stored.
    pub fn failed_with(&mut self, error: StoreError) {
        self.failed = Some(error);
    }
}

/// The document without its pairs, as it is while the run goes on.
fn head(document: &LiveAb) -> LiveAb {
    LiveAb {
        pairs: Vec::new(),
        end: AbEnd {
            cause: AbEndCause::Interrupted,
            text: Some(String::from("it was killed, or it still runs")),
        },
        answer: answer(&document.pairs, &document.plan, None),
        ..document.clone()
    }
}
