//! Changes to a network namespace between two checks, from the kernel's notifications.
//!
//! A setting that is changed and changed back, or a link that goes down and comes up again, looks the same before and
//! after. The kernel reports each change as it is made (rtnetlink(7)); the messages wait in a socket until asked for.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SocketFlags, SocketType, bind, netlink, recv, socket_with,
};
use serde::{Deserialize, Serialize};

/// Groups of `NETLINK_ROUTE`, include/uapi/linux/rtnetlink.h: links, traffic control, IPv4 and IPv6 addresses.
const ROUTE_GROUPS: u32 = 0x1 | 0x8 | 0x10 | 0x100;

/// `NFNLGRP_NFTABLES` as a bit, include/uapi/linux/netfilter/nfnetlink.h.
const NFTABLES_GROUP: u32 = 1 << (7 - 1);

const RTM_NEWLINK: u16 = 16;

const RTM_DELLINK: u16 = 17;

const RTM_NEWQDISC: u16 = 36;

/// The number of a filter that interfaces share, `TCM_IFINDEX_MAGIC_BLOCK`.
const SHARED_BLOCK: u32 = 0xFFFF_FFFF;

/// Types of messages and their subjects: `RTM_NEWADDR` and following, linux/rtnetlink.h.
const KINDS: [(std::ops::RangeInclusive<u16>, &str); 2] = [
    (20..=21, "an address"),
    (RTM_NEWQDISC..=46, "a queueing discipline or filter"),
];

const IFF_UP: u32 = 0x1;

/// `IFF_LOWER_UP`: there is a carrier.
const IFF_LOWER_UP: u32 = 0x1_0000;

/// struct nlmsghdr.
const HEADER_BYTES: usize = 16;

/// Changes since the last check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// The interface was taken down or removed.
    pub is_taken_down: bool,
    /// The interface was up without a carrier.
    pub has_lost_carrier: bool,
    /// Other changes, in words.
    pub others: Vec<String>,
}

impl Changes {
    /// The changes at both ends.
    pub fn and(mut self, other: Changes) -> Changes {
        self.is_taken_down |= other.is_taken_down;
        self.has_lost_carrier |= other.has_lost_carrier;
        for what in other.others {
            self.add(&what);
        }
        self
    }

    fn add(&mut self, what: &str) {
        if !self.others.iter().any(|known| known == what) {
            self.others.push(String::from(what));
        }
    }

    /// Adds the change that a message of `NETLINK_ROUTE` reports.
    fn learn(&mut self, kind: u16, body: &[u8], ifindexes: &[u32]) {
        if kind != RTM_NEWLINK && kind != RTM_DELLINK {
            let of = word(body, 4);
            for (kinds, what) in KINDS {
                // Queueing at another interface of the namespace changes nothing here.
                let is_elsewhere = kind >= RTM_NEWQDISC
                    && of.is_some_and(|of| of != SHARED_BLOCK && !ifindexes.contains(&of));
                if kinds.contains(&kind) && !is_elsewhere {
                    self.add(what);
                }
            }
            return;
        }
        let (Some(index), Some(flags)) = (word(body, 4), word(body, 8)) else {
            return;
        };
        if !ifindexes.contains(&index) {
            return;
        }
        if kind == RTM_DELLINK || flags & IFF_UP == 0 {
            self.is_taken_down = true;
        } else if flags & IFF_LOWER_UP == 0 {
            self.has_lost_carrier = true;
        } else {
            self.add("the link");
        }
    }
}

/// Sockets that the kernel notifies.
pub struct NotifiedSockets {
    route: OwnedFd,
    /// `None` where the kernel has no nftables.
    nftables: Option<OwnedFd>,
}

impl NotifiedSockets {
    /// Listens in the caller's namespace from now on.
    pub fn new() -> io::Result<Self> {
        Ok(NotifiedSockets {
            route: listen(None, ROUTE_GROUPS)?,
            nftables: listen(Some(netlink::NETFILTER), NFTABLES_GROUP).ok(),
        })
    }

    /// Returns the changes since the last call at the interfaces with these indexes, or in their namespace.
    pub fn changes(&self, ifindexes: &[u32]) -> io::Result<Changes> {
        let mut changes = Changes::default();
        receive(&self.route, |kind, body| {
            changes.learn(kind, body, ifindexes)
        })?;
        if let Some(nftables) = &self.nftables {
            receive(nftables, |_, _| changes.add("the nftables rules"))?;
        }
        Ok(changes)
    }
}

/// Opens a socket of a netlink family; of `NETLINK_ROUTE`, whose number is 0, without one.
fn listen(family: Option<rustix::net::Protocol>, groups: u32) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, family)?;
    bind(&socket, &SocketAddrNetlink::new(0, groups))?;
    Ok(socket)
}

/// Reads every waiting message. If the socket overflowed, the remaining ones suffice to void the trial.
fn receive(socket: &OwnedFd, mut each: impl FnMut(u16, &[u8])) -> io::Result<()> {
    let mut buffer = vec![0; 32 << 10];
    loop {
        let (_, length) = match recv(socket, &mut buffer[..], RecvFlags::empty()) {
            Ok(received) => received,
            Err(Errno::AGAIN) => return Ok(()),
            Err(Errno::NOBUFS | Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        messages(&buffer[..length.min(buffer.len())], &mut each);
    }
}

fn messages(mut bytes: &[u8], each: &mut impl FnMut(u16, &[u8])) {
    while let Some(length) = word(bytes, 0) {
        let length = length as usize;
        let Some(message) = bytes
            .get(..length)
            .filter(|message| message.len() >= HEADER_BYTES)
        else {
            return;
        };
        let kind = u16::from_ne_bytes([message[4], message[5]]);
        each(kind, &message[HEADER_BYTES..]);
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, words: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(((HEADER_BYTES + 4 * words.len()) as u32).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    fn changes(bytes: &[u8]) -> Changes {
        let mut changes = Changes::default();
        messages(bytes, &mut |kind, body| changes.learn(kind, body, &[7]));
        changes
    }

    #[test]
    fn a_link_that_goes_down_and_up_was_taken_down() {
        let down = message(RTM_NEWLINK, &[0, 7, 0, 1]);
        let up = message(RTM_NEWLINK, &[0, 7, IFF_UP | IFF_LOWER_UP, 1]);
        let flap = changes(&[down, up].concat());
        assert!(flap.is_taken_down && !flap.has_lost_carrier);
        let lost = changes(&message(RTM_NEWLINK, &[0, 7, IFF_UP, 0]));
        assert!(lost.has_lost_carrier && !lost.is_taken_down);
        let other = changes(&message(RTM_NEWLINK, &[0, 8, 0, 1]));
        assert_eq!(other, Changes::default());
    }

    #[test]
    fn a_queue_of_another_interface_is_no_disturbance() {
        for (of, counts) in [(7, true), (8, false), (SHARED_BLOCK, true)] {
            let found = changes(&message(RTM_NEWQDISC, &[0, of])).others;
            assert_eq!(!found.is_empty(), counts, "{of}");
        }
        assert!(
            !changes(&message(20, &[0, 8])).others.is_empty(),
            "an address"
        );
    }

    #[test]
    fn what_else_changes_is_named_once_and_a_cut_message_is_left() {
        let address = message(20, &[0]);
        let mut bytes = [address.clone(), address, message(36, &[0])].concat();
        bytes.extend([200, 0, 0]);
        assert_eq!(
            changes(&bytes).others,
            ["an address", "a queueing discipline or filter"]
        );
    }
}
