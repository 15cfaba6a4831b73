//! FreeBSD hosts: `ifconfig IF polling` and `sysctl kern.polling` through the system's ssh.
//!
//! The old values are in the journal before anything is written. Commands contain only numbers and names
//! that [`FreebsdTarget`] accepts, and output is read within limits. Tested with recorded output only.
//! Start with `change`: plan, set, restore.

mod error;
mod host;
mod output;
mod persist;
mod rc_conf;
mod record;
mod ssh;
mod switch;
mod target;
mod variables;

pub use error::FreebsdError;
pub use host::{FreebsdHost, HZ_ADVISED, Survey};
pub use output::{
    Capabilities, OutputError, Polling, parse_hz, parse_interface, parse_polling, parse_uname,
};
pub use persist::{LineChange, no_persist, persist, would_no_persist, would_persist};
pub use rc_conf::{RcConfError, with_polling};
pub use record::HostRecord;
pub use ssh::Ssh;
pub use switch::{
    FreebsdChange, FreebsdRestored, FreebsdWrite, changed_targets, plan, restore, set,
    would_restore,
};
pub use target::{FreebsdTarget, TargetError};
pub use variables::{Variable, variables};
