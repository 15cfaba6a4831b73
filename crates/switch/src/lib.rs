//! The switch: reads, changes and restores the settings that decide how an interface learns of packets.
//!
//! The old values are on disk before anything is written, and every exit restores held changes: [`Held::restore`] in
//! this process, the [`Guard`] when it is killed, [`recover`] in the next one. Changes of `nicpoll set` stay until
//! [`restore`].
//!
//! Modules in the order of the work: `knob` (the table), `request`, `plan`, `apply`, `transaction`, `journal`,
//! `recover`, `guard`. `kernel` reads and writes, `persist` makes settings survive a reboot, `freebsd` does all of this
//! over ssh.

mod apply;
mod error;
pub mod freebsd;
mod guard;
mod journal;
mod kernel;
pub mod knob;
pub mod persist;
mod plan;
mod recover;
mod request;
mod transaction;

pub use apply::{
    Alternation, Arm, Resolved, Sightings, Switch, TurnRules, Turns, client_address, is_all,
    namespace_named, prove, require_privileges, watch_time,
};
pub use error::SwitchError;
pub use guard::{GUARD_COMMAND, Guard, Toggles, guard_of_this_program, watch_over};
pub use journal::{Change, DIRECTORY_VARIABLE, Journal, Owner, Record, boot_id, boottime_ns};
pub use kernel::{
    Abilities, Control, GRO_FEATURE, Interface, InterfaceQueue, Kernel, LinkHealth, LinkInfo,
    Machine, Napi, SysctlOwner, Target, XdpAbilities, goes_by_backlog, is_stacked, label, lowest,
    napi_list, per_napi_settings, supported,
};
pub use knob::candidates::{Candidate, candidates};
pub use knob::table::DEFER_HARD_IRQS_MAX;
pub use knob::{ScopedKnob, Value, ValueError};
pub use persist::{Deferral, EarlyChange, take_over};
pub use plan::{InterfaceFacts, Needs, Peer, Preview, VETH_RING_SLOTS, Write, needs_napi, preview};
pub use recover::{
    Recovered, Restored, confirm, drift_of, pending_of, recover, restore, would_restore,
};
pub use request::{
    InterfacePart, KnobValues, Name, Order, POLLING_PERIOD_NS, Request, Setting, did_you_mean,
    similar,
};
pub use transaction::undo::Drift;
pub use transaction::{Held, writes_back, writes_kept};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
