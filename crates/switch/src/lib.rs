//! The switch: reads, changes and puts back what decides how an interface learns of packets.
//!
//! What must hold: what was there is on disk before anything is written, and every exit puts it back:
//! [`Held::restore`] in this process, [`recover`] in the next one. What stands stays until [`restore`].
#![forbid(unsafe_code)]

mod alternate;
mod apply;
mod attributes;
mod control;
mod document;
mod early;
mod error;
mod ethtool;
mod ethtool_request;
mod facts;
pub mod fault;
pub mod freebsd;
mod guard;
mod inventory;
mod journal;
mod kernel;
pub mod knob;
mod links;
mod lower;
mod machine;
mod namespaces;
mod owner;
pub mod persist;
mod plan;
mod probe;
mod queue_statistics;
mod record;
mod recover;
mod request;
mod resolve;
mod session;
mod similar;
mod standing;
mod sysctl;
mod toggle;
mod transaction;
mod trust;
mod undo;
mod vitals;
mod warning;
mod whereabouts;
mod witness;

pub use alternate::{Alternation, Arm, Turns};
pub use apply::{Held, Order, Preview, SetError, Switch, preview, require_privileges};
pub use control::{Control, ControlError, Features, Interface, Napi, Queue};
pub use document::{label, writes_back, writes_kept};
pub use early::{Deferral, EarlyChange, take_over};
pub use error::SwitchError;
pub use facts::{GRO_FEATURE, InterfaceFacts, Peer, VETH_RING_SLOTS};
pub use guard::{GUARD_COMMAND, Guard, GuardError, guard_of_this_program, watch_over};
pub use inventory::{LinkFacts, XdpAbilities};
pub use journal::{
    Content, DEFAULT_DIRECTORY, DIRECTORY_VARIABLE, Entry, Journal, JournalError, JournalFile,
};
pub use kernel::{Kernel, Target};
pub use knob::table::DEFER_HARD_IRQS_MAX;
pub use knob::{Knob, Scope, Value};
pub use links::PlacedInterface;
pub use lower::{goes_by_backlog, is_stacked, lowest};
pub use machine::Machine;
pub use owner::{Owner, boot_id};
pub use plan::{Needs, Refusal, RefusalKind, needs_napi};
pub use probe::{Abilities, Unsupported, napi_list, per_napi_settings};
pub use record::{Attempt, Change, Record, RecordError};
pub use recover::{Recovered, Restored, boottime_ns, recover, restore, would_restore};
pub use request::{Name, POLLING_PERIOD_NS, Part, Request, RequestError, Setting, Values};
pub use resolve::{Note, ResolveError, Resolved, is_all, namespace_named};
pub use session::client_address;
pub use similar::{did_you_mean, similar};
pub use standing::{attempts_of, confirm, drift_of, pending_of, undo_unconfirmed};
pub use sysctl::SysctlOwner;
pub use toggle::{ToggleError, Toggles};
pub use transaction::Write;
pub use trust::Untrusted;
pub use undo::Drift;
pub use vitals::Vitals;
pub use warning::SwitchWarning;
pub use witness::{Sighting, Witness, prove, watch_time};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
