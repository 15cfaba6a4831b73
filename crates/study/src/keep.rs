//! Where a study's trials go as they end, and how a study that was ended goes on.
//!
//! What must hold: a trial is kept before the next one begins. A study goes on only where it began: by the
//! same program, on the same kernel and processors, with the same sysctls. Elsewhere its trials and new
//! ones could not be compared.

use std::io;
use std::time::Duration;

use nicpoll_model::{HostFacts, Study, StudyState, Trial, Warning, WarningName};
use nicpoll_store::{Kept, Recording, StoreError};
use nicpoll_switch::{Owner, boot_id};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::design::Design;
use crate::error::StudyError;
use crate::study::conclude;

/// Takes what a study knows as soon as it does.
pub trait Keeper {
    /// Keeps what is known before the first trial. `head` is the document without its trials.
    fn head(&mut self, head: &Study) -> Result<(), StoreError>;

    /// Keeps a trial that has ended, and what is known beside the trials by now.
    fn trial(&mut self, head: &Study, trial: &Trial, taken: Duration) -> Result<(), StoreError>;
}

/// A store's file.
impl Keeper for Recording {
    fn head(&mut self, head: &Study) -> Result<(), StoreError> {
        Recording::head(self, head)
    }

    fn trial(&mut self, head: &Study, trial: &Trial, taken: Duration) -> Result<(), StoreError> {
        Recording::trial(self, head, trial, taken)
    }
}

/// What is not to be kept is not.
impl<K: Keeper> Keeper for Option<K> {
    fn head(&mut self, head: &Study) -> Result<(), StoreError> {
        self.as_mut().map_or(Ok(()), |keeper| keeper.head(head))
    }

    fn trial(&mut self, head: &Study, trial: &Trial, taken: Duration) -> Result<(), StoreError> {
        let keeper = self.as_mut();
        keeper.map_or(Ok(()), |keeper| keeper.trial(head, trial, taken))
    }
}

/// A process of one boot, as a store names who runs a study.
#[derive(Serialize, Deserialize)]
struct Runner {
    boot_id: String,
    process: Owner,
}

/// This process, as a store names who runs a study.
///
/// # Errors
/// When `/proc` does not tell.
pub fn this_runner() -> io::Result<String> {
    let runner = Runner {
        boot_id: boot_id()?,
        process: Owner::this_process()?,
    };
    Ok(serde_json::to_string(&runner)?)
}

/// Whether the process that a store names still runs. One that cannot be looked at is taken for one that does.
pub fn still_runs(runner: &str) -> bool {
    let Ok(Runner {
        boot_id: boot,
        process,
    }) = serde_json::from_str(runner)
    else {
        return false;
    };
    boot_id().is_ok_and(|now| now == boot) && process.is_alive().unwrap_or(true)
}

/// A stored study as it is shown. Of one that is not finished, what follows from its trials so far, and that it
/// is not finished.
///
/// # Errors
/// When what is stored of it cannot be read.
pub fn shown(kept: Kept<Study>) -> Result<Study, StudyError> {
    let entry = &kept.entry;
    if entry.state == StudyState::Finished {
        return Ok(kept.document);
    }
    let id = entry.id;
    let design = design_of(&kept)?;
    let goes_on = match entry.state {
        StudyState::Running => String::from("it is running"),
        _ => format!("'nicpoll study run --resume {id}' goes on with it"),
    };
    let unfinished = Warning {
        name: WarningName::Interrupted,
        text: format!(
            "study {id} is not finished: {} of {} trials are stored; {goes_on}",
            entry.trials_done, entry.trials_planned
        ),
    };
    let mut study = kept.document;
    study.warnings.push(unfinished);
    conclude(&design, study)
}

/// The design that a study was begun with.
pub(crate) fn design_of(kept: &Kept<Study>) -> Result<Design, StudyError> {
    let design = serde_json::from_str(&kept.design);
    design.map_err(|source| {
        let id = kept.entry.id;
        StudyError::Store(StoreError::Document { id, source })
    })
}

/// What a reader of a resumed study has to know. `head` is the document without its trials.
pub(crate) fn interrupted(trials: &[Trial], settings: usize, resumed_at: &str) -> Option<Warning> {
    let last = trials.last()?;
    let of_block = trials
        .iter()
        .filter(|trial| (trial.block, &trial.workload) == (last.block, &last.workload));
    let split = if of_block.count() < settings {
        format!(
            "; the trials of block {} under {} are of both stretches of time",
            last.block, last.workload
        )
    } else {
        String::new()
    };
    Some(Warning {
        name: WarningName::Interrupted,
        text: format!(
            "the study was ended after trial {} and resumed at {resumed_at}{split}",
            last.sequence
        ),
    })
}

/// Refuses to go on on another machine than the one that the study began on.
pub(crate) fn require_same_machine(then: &HostFacts, now: &HostFacts) -> Result<(), StudyError> {
    let fields = |facts: &HostFacts| match serde_json::to_value(facts) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let now = fields(now);
    let mut changed = fields(then).into_iter().filter_map(|(name, was)| {
        let is = now.get(&name)?;
        // A record of before there was such a fact does not know it.
        let is_known = !(name == "machine" && was.is_null());
        (is_known && was != *is).then(|| format!("{name} was {was} and is {is}"))
    });
    changed
        .next()
        .map_or(Ok(()), |what| Err(StudyError::Elsewhere(what)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_is_told_from_its_successor_and_from_another_boots() {
        let runner = this_runner().unwrap();
        assert!(still_runs(&runner));
        let other = |change: fn(&mut Runner)| {
            let mut runner: Runner = serde_json::from_str(&runner).unwrap();
            change(&mut runner);
            serde_json::to_string(&runner).unwrap()
        };
        assert!(!still_runs(&other(|it| it.process.start_time_ticks += 1)));
        assert!(!still_runs(&other(|it| it.boot_id.push('0'))));
        assert!(!still_runs("nobody"));
    }

    #[test]
    fn what_changed_of_the_machine_is_named() {
        let mut then = nicpoll_inspect::host_facts().unwrap();
        then.machine = Some(String::from("bench-0123abcd"));
        assert!(require_same_machine(&then, &then).is_ok());
        // Another machine, alike in all else.
        let mut now = then.clone();
        now.machine = Some(String::from("other-00000000"));
        let error = require_same_machine(&then, &now).unwrap_err().to_string();
        let mut unknown = then.clone();
        unknown.machine = None;
        assert!(error.contains("bench-0123abcd"), "{error}");
        assert!(require_same_machine(&unknown, &now).is_ok());
        let mut now = then.clone();
        now.kernel = String::from("7.0");
        let error = require_same_machine(&then, &now).unwrap_err().to_string();
        assert!(
            error.contains("kernel was") && error.contains("is \"7.0\""),
            "{error}"
        );
    }
}
