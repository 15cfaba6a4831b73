//! A link: what joins two hosts.
//!
//! What must hold: what a report says of the link comes from here, and a link that is no real one says so.

use std::net::IpAddr;
use std::time::Duration;

use nicpoll_model::Side;
use nicpoll_model::line::Line;
use nicpoll_sys::netns::NetNamespace;

use crate::error::StudyError;

/// What joins two hosts.
pub trait Link: Send {
    /// Whether there is no card and no line.
    fn is_virtual(&self) -> bool;

    /// Whether others may send on it, too: then their packets are in the counters of a study.
    fn is_shared(&self) -> bool {
        false
    }

    /// Name of the interface at a host; `None` for a host that is at neither end.
    fn interface(&self, host: &str) -> Option<&str>;

    /// Paths between the hosts that share nothing.
    fn paths(&self) -> usize {
        1
    }

    /// Addresses of a host on the link, with their prefix lengths; those of the first path first.
    fn addresses(&self, host: &str) -> Vec<(IpAddr, u8)>;

    /// Link MTU.
    fn mtu_bytes(&self) -> u32;

    /// Slots of the receive ring; `None` when the driver does not say.
    fn ring_slots(&self) -> Option<u32>;

    /// How much later each packet arrives than it would, each way, because the link was made so.
    fn delay(&self) -> Duration {
        Duration::ZERO
    }

    /// The line between the hosts, or why there is none.
    fn line(&self) -> Result<Line, &'static str>;

    /// An address of the link that belongs to no host, with a hardware address: frames to it end as the
    /// receiving host's IP layer looks at them. `None` on a link that others share.
    fn nobody(&self) -> Option<(IpAddr, [u8; 6])>;
}

/// A link between network namespaces of this machine.
pub trait LocalLink: Link {
    /// The namespace of an end.
    fn namespace(&self, side: Side) -> &NetNamespace;

    /// The interfaces of an end.
    fn interfaces(&self, side: Side) -> Vec<String>;

    /// The namespace of the router and its interfaces, the sender's side first; `None` without one.
    fn router(&self) -> Option<(&NetNamespace, Vec<String>)> {
        None
    }

    /// Gives namespaces that would go with the process names, for a look with ip-netns(8), and returns them.
    ///
    /// # Errors
    /// When a name is taken.
    fn keep(&self) -> Result<Vec<String>, StudyError> {
        Ok(Vec::new())
    }
}
