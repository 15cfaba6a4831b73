//! FreeBSD hosts: `ifconfig IF polling` and `sysctl kern.polling` through the system's ssh.
//!
//! The old values are in the journal before anything is written. Commands contain only numbers, and names that
//! [`FreebsdTarget`] accepts. Output is read up to a limit. Tested with recorded output only. Start with `change`:
//! plan, set, restore.

mod change;
mod host;
mod output;
mod rc_conf;
mod record;
mod target;

pub use change::{
    FreebsdChange, FreebsdRestored, FreebsdWrite, WritableVariable, changed_targets, plan, restore,
    set, variables, would_restore,
};
pub use host::{FreebsdHost, HZ_ADVISED, Survey, ssh_command};
pub use output::{Polling, parse_hz, parse_interface, parse_polling, parse_uname};
pub use rc_conf::{diff, no_persist, persist, with_polling, would_no_persist, would_persist};
pub use record::{Changed, HostRecord};
pub use target::FreebsdTarget;
