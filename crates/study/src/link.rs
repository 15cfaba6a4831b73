//! A link: what joins two hosts.
//!
//! What must hold: what a report says of the link comes from here, and a link that is no real one says so.

use std::net::IpAddr;

use nicpoll_model::LossPlace;
use nicpoll_model::line::Line;

/// What joins two hosts.
pub trait Link: Send {
    /// Kind of the link: the driver's name where that says it.
    fn kind(&self) -> &'static str;

    /// Whether there is no card and no line.
    fn is_virtual(&self) -> bool;

    /// Name of the interface at a host; `None` for a host that is at neither end.
    fn interface(&self, host: &str) -> Option<&str>;

    /// The host at the other end.
    fn peer(&self, host: &str) -> Option<&str>;

    /// Paths between the hosts that share nothing.
    fn paths(&self) -> usize {
        1
    }

    /// Addresses of a host on the link, with their prefix lengths; those of the first path first.
    fn addresses(&self, host: &str) -> Vec<(IpAddr, u8)>;

    /// Link MTU.
    fn mtu_bytes(&self) -> u32;

    /// Slots of each receive ring.
    fn ring_slots(&self) -> u32;

    /// The line between the hosts, or why there is none.
    fn line(&self) -> Result<Line, &'static str>;

    /// Where the link itself loses packets and counts them: the place, and the counter.
    fn losses(&self) -> &'static [(LossPlace, &'static str)];

    /// An address of the link that belongs to no host, with a hardware address: frames to it end as the
    /// receiving host's IP layer looks at them.
    fn nobody(&self) -> (IpAddr, [u8; 6]);
}
