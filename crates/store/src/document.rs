//! Which documents are kept.

use nicpoll_model::ab::{AB_SCHEMA, AbPair, LiveAb};
use nicpoll_model::{IMPORTED_SCHEMA, Imported, ImportedTrial, SCHEMA, Study, StudyKind, Trial};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A document that grows trial by trial. It is kept in two parts: the trials, each by itself, and all else.
pub trait Stored: Serialize + DeserializeOwned {
    /// The kinds of study whose document it is.
    const KINDS: &'static [StudyKind];
    /// Name and version of the layout that this program reads.
    const SCHEMA: &'static str;
    /// The field with the trials.
    const TRIALS: &'static str;
    /// One trial.
    type Trial: Serialize + DeserializeOwned;

    /// The trials, which come from rows of their own.
    fn trials(&mut self) -> &mut Vec<Self::Trial>;
}

impl Stored for Study {
    const KINDS: &'static [StudyKind] = &[StudyKind::Demo, StudyKind::Study];
    const SCHEMA: &'static str = SCHEMA;
    const TRIALS: &'static str = "trials";
    type Trial = Trial;

    fn trials(&mut self) -> &mut Vec<Trial> {
        &mut self.trials
    }
}

/// Its trials are its pairs of blocks: one alone says nothing of a difference.
impl Stored for LiveAb {
    const KINDS: &'static [StudyKind] = &[StudyKind::Ab];
    const SCHEMA: &'static str = AB_SCHEMA;
    const TRIALS: &'static str = "pairs";
    type Trial = AbPair;

    fn trials(&mut self) -> &mut Vec<AbPair> {
        &mut self.pairs
    }
}

/// Its trials took no turns: none has a block.
impl Stored for Imported {
    const KINDS: &'static [StudyKind] = &[StudyKind::Imported];
    const SCHEMA: &'static str = IMPORTED_SCHEMA;
    const TRIALS: &'static str = "trials";
    type Trial = ImportedTrial;

    fn trials(&mut self) -> &mut Vec<ImportedTrial> {
        &mut self.trials
    }
}

/// The field with the trials in the document of a kind.
pub(crate) fn field_of_trials(kind: StudyKind) -> &'static str {
    match LiveAb::KINDS.contains(&kind) {
        true => LiveAb::TRIALS,
        false => Study::TRIALS,
    }
}
