//! The switch: reads, changes and puts back what decides how an interface learns of packets.
//!
//! What must hold: what was there is on disk before anything is written, and every exit puts it back:
//! [`Held::restore`] in this process, [`recover`] in the next one.
#![forbid(unsafe_code)]

mod attributes;
mod control;
mod ethtool_request;
mod hold;
mod inventory;
mod journal;
mod moderation;
mod owner;
mod probe;

pub use control::{Control, ControlError, Features, Interface, Napi};
pub use hold::{DEFER_HARD_IRQS_MAX, Held, HoldError, Recovered, recover};
pub use inventory::{LinkFacts, XdpAbilities};
pub use journal::{
    Change, DEFAULT_DIRECTORY, DIRECTORY_VARIABLE, Entry, Journal, JournalError, Record,
};
pub use moderation::Moderation;
pub use owner::Owner;
pub use probe::{Abilities, Unsupported, per_napi_settings};
