//! The kernel's side: reads and writes the values of interfaces in any network namespace.
//!
//! [`Control`] asks the kernel in one namespace; [`Machine`] has a thread with a control in each namespace that was
//! entered. Both are a [`Kernel`], which reads and writes single knobs. Start with `access`; `netlink` is the
//! connection that the others use.

mod access;
mod ethtool;
mod links;
mod namespaces;
mod netdev;
mod netlink;

pub use access::{Kernel, SysctlOwner, Target, label};
pub use ethtool::GRO_FEATURE;
pub use links::{Interface, LinkHealth, LinkInfo, goes_by_backlog, is_stacked, lowest};
pub use namespaces::Machine;
pub(crate) use namespaces::{Location, locate, search};
pub use netdev::{Abilities, InterfaceQueue, Napi, XdpAbilities, napi_list, per_napi_settings};
pub use netlink::{Control, supported};
