//! How a run that may be stored ended, and where it is stored.

use std::fmt::Display;

use crate::document::Stored;
use crate::error::StoreError;
use crate::place::Place;
use crate::recording::Recording;

/// How a run ended.
pub struct Ended<D, E> {
    /// Its document, or why there is none.
    pub outcome: Result<D, E>,
    /// Where it is stored, unless it was not to be.
    pub place: Option<StoredPlace>,
    /// Why the document could not be stored, although there is one.
    pub unstored: Option<StoreError>,
}

/// Where a study is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPlace {
    /// The file, or the server.
    pub place: Place,
    /// Its number there.
    pub id: i64,
    /// Trials that are stored.
    pub trials: u32,
}

impl<D: Stored, E: Display> Ended<D, E> {
    /// Stores the end as well, where the run is stored.
    pub fn of(mut outcome: Result<D, E>, recording: Option<Recording>) -> Self {
        let Some(mut recording) = recording else {
            return Ended {
                outcome,
                place: None,
                unstored: None,
            };
        };
        let stored = match &mut outcome {
            Ok(study) => {
                // Each has a row of its own.
                let trials = std::mem::take(study.trials());
                let stored = recording.finish(study);
                *study.trials() = trials;
                stored
            }
            Err(error) => recording.end_early(&error.to_string()),
        };
        Ended {
            place: Some(StoredPlace {
                place: recording.place().clone(),
                id: recording.id(),
                trials: recording.stored(),
            }),
            // Of a study that failed, its own error is what to tell.
            unstored: stored.err().filter(|_| outcome.is_ok()),
            outcome,
        }
    }
}

impl StoredPlace {
    /// Where it is, and what to do with it.
    pub fn sentence(&self, is_finished: bool) -> String {
        let StoredPlace { place, id, trials } = self;
        if is_finished {
            return format!(
                "Stored as study {id} in {place}; 'nicpoll study show {id}' shows it again."
            );
        }
        let what = match trials {
            1 => String::from("1 trial is"),
            trials => format!("{trials} trials are"),
        };
        format!(
            "{what} stored as study {id} in {place}; 'nicpoll study run --resume {id}' goes on."
        )
    }
}
