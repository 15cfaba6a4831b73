//! The switch: reads, changes and puts back what decides how an interface learns of packets.
//!
//! What must hold: what was there is on disk before anything is written, and every exit puts it back:
//! [`Held::restore`] in this process, [`recover`] in the next one. What stands ([`standing`]) stays until
//! [`restore`].
#![forbid(unsafe_code)]

mod attributes;
mod control;
mod early;
mod error;
mod ethtool_request;
mod facts;
pub mod fault;
mod hold;
mod inventory;
mod journal;
mod kernel;
mod knob;
mod links;
mod lower;
mod machine;
mod moderation;
mod owner;
pub mod persist;
pub mod plan;
mod probe;
mod record;
mod recover;
mod request;
pub mod standing;
mod transaction;
mod undo;

pub use control::{Control, ControlError, Features, Interface, Napi, Queue};
pub use early::{Deferral, EarlyChange, take_over};
pub use error::SwitchError;
pub use facts::{Facts, GRO_FEATURE, Peer, Poller, VETH_RING_SLOTS, is_tso_feature};
pub use hold::{DEFER_HARD_IRQS_MAX, Held};
pub use inventory::{LinkFacts, XdpAbilities};
pub use journal::{
    Content, DEFAULT_DIRECTORY, DIRECTORY_VARIABLE, Entry, Found, Journal, JournalError,
};
pub use kernel::{Kernel, Target};
pub use knob::{Knob, Scope, Value};
pub use links::Link;
pub use lower::{is_stacked, lowest};
pub use machine::Machine;
pub use moderation::Moderation;
pub use owner::Owner;
pub use probe::{Abilities, Unsupported, per_napi_settings};
pub use record::{Attempt, Change, Record, RecordError};
pub use recover::{Recovered, Restored, boottime_ns, recover, restore};
pub use request::{Part, Request};
pub use transaction::{Terms, Transaction, Write};
pub use undo::Drift;
