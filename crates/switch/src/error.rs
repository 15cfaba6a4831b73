//! Why a value could not be changed or put back.

use nicpoll_sys::privilege::NoProc;
use thiserror::Error;

use crate::journal::{Change, Entry, JournalError};
use crate::kernel::{ControlError, Target};
use crate::knob::{Knob, Value};

/// Why a change could not be made or put back.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SwitchError {
    /// It could not be recorded, so it was not made.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The kernel refused.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The kernel accepted a value and shows another one.
    #[error("{0}")]
    NotTaken(String),
    /// The interface is in a place that cannot be searched, or no longer exists.
    #[error("{0}")]
    NotFound(String),
    /// Values of single NAPI instances cannot be reached.
    #[error(
        "{} is down, and its NAPI instances had values of their own, which can be put back only while it is up. \
         Bring it up ({}), then: nicpoll restore {}{}",
        .0.interface.name,
        .0.bring_up(),
        .0.interface.name,
        .0.netns_option()
    )]
    Down(Box<Target>),
    /// Threads cannot be taken away while there are no instances.
    #[error(
        "{} has no NAPI instance now, and the kernel changes 'threaded' only while it has. Bring it up ({}; a veth \
         needs GRO on, too), then: nicpoll restore {}{}",
        .0.interface.name,
        .0.bring_up(),
        .0.interface.name,
        .0.netns_option()
    )]
    NoInstances(Box<Target>),
    /// Something failed, and what had been changed could not be put back either.
    #[error("{first}; putting back failed too: {second}. Try again: nicpoll restore")]
    AndBack {
        /// The first failure.
        first: Box<SwitchError>,
        /// Why putting back failed.
        second: Box<SwitchError>,
    },
    /// This process may not change interfaces.
    #[error(
        "changing an interface needs more than this process may do; missing here: {}.\nRun it as root: sudo \
         nicpoll set ...",
        .0.join(", ")
    )]
    Privileges(Vec<String>),
    /// Neither processes nor settings can be looked at.
    #[error(transparent)]
    NoProc(#[from] NoProc),
}

impl SwitchError {
    /// The interface of a record was not found, but may still exist.
    pub(crate) fn not_found(entry: &Entry) -> SwitchError {
        let record = entry.record();
        let changes = record.all_changes().into_iter();
        let changed = changes.filter(|change| change.before != change.written);
        let text =
            |change: Change| format!("{} {}, was {}", change.knob, change.written, change.before);
        SwitchError::NotFound(format!(
            "{} is in no network namespace that can be searched from here. It may still have these values: {}; \
             its record {} is kept. Move the interface to a namespace that 'ip netns' lists, then: nicpoll restore. If \
             the interface is no more, remove the record",
            record.interface.name,
            changed.map(text).collect::<Vec<_>>().join(", "),
            entry.path().display()
        ))
    }

    pub(crate) fn not_taken(
        target: &Target,
        knob: &Knob,
        asked: &Value,
        is: Option<Value>,
    ) -> Self {
        let is = is.map_or_else(|| String::from("gone"), |is| is.to_string());
        SwitchError::NotTaken(format!(
            "{}: {knob} is {is} after it was set to {asked}; the driver does not allow it, or \
             something else changes it too",
            target.interface.name
        ))
    }
}
