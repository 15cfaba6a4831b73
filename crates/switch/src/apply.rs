//! Changing interfaces: the one way for `set`, studies, live comparisons and the watch screen.
//!
//! A [`Switch`] resolves names to interfaces, plans, records, writes and reads back. Changes stay until undone, wait to
//! be confirmed, or are held by their owner. Start with `change`; `resolve` turns names into orders, `alternate`
//! switches between two settings, `proof` judges from polls whether a setting is in force.

mod alternate;
mod change;
mod proof;
mod resolve;
mod warnings;

pub use alternate::{Alternation, Arm, TurnRules, Turns};
pub use change::{Switch, require_privileges};
pub use proof::{Sightings, prove, watch_time};
pub use resolve::{Resolved, client_address, is_all, namespace_named};
