//! Which documents are kept.

use nicpoll_model::{SCHEMA, Study, Trial};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A document that grows trial by trial. It is kept in two parts: the trials, each by itself, and all else.
pub trait Stored: Serialize + DeserializeOwned {
    /// The command that makes it.
    const KIND: &'static str;
    /// Name and version of the layout that this program reads.
    const SCHEMA: &'static str;
    /// One trial.
    type Trial: Serialize + DeserializeOwned;

    /// The trials, which come from rows of their own.
    fn trials(&mut self) -> &mut Vec<Self::Trial>;
}

impl Stored for Study {
    const KIND: &'static str = "demo";
    const SCHEMA: &'static str = SCHEMA;
    type Trial = Trial;

    fn trials(&mut self) -> &mut Vec<Trial> {
        &mut self.trials
    }
}
