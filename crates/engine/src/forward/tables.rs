//! The kernel's routes, neighbours and interfaces as the engine's thread looks them up, kept up to date by a thread that
//! follows the kernel's notifications.
//!
//! What must hold: the engine's thread never waits for this one. A notification says only that something changed: then
//! what it is about is read anew, because the kernel does not tell of every route that goes with its interface. Reading
//! takes at most a tenth of the time, however often something changes.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use netlink_bindings::rt_link::{self, Ifinfomsg};
use netlink_bindings::rt_neigh::{self, Ndmsg, NudState};
use netlink_bindings::rt_route::{self, Rtmsg};
use netlink_bindings::rt_rule::{self, FibRuleHdr};
use netlink_socket2::NetlinkSocket;
use nicpoll_wire::frame::Mac;
use nicpoll_wire::hop::Route;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};

use super::routes::Routes;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// `RTMGRP_LINK`, `RTMGRP_NEIGH`, `RTMGRP_IPV4_ROUTE`, `RTMGRP_IPV6_ROUTE` (include/uapi/linux/rtnetlink.h).
const GROUPS: u32 = 0x1 | 0x4 | 0x40 | 0x400;
/// Rules that the kernel has by itself, of IPv4 and IPv6.
const RULES_OF_KERNEL: [(u8, usize); 2] = [(AF_INET, 3), (AF_INET6, 2)];
/// States of a neighbour whose hardware address may be used.
const VALID: u16 = NudState::Reachable as u16
    | NudState::Stale as u16
    | NudState::Delay as u16
    | NudState::Probe as u16
    | NudState::Noarp as u16
    | NudState::Permanent as u16;
/// How often the thread looks whether it is to end.
const LOOK_EVERY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
/// After reading that took one unit of time, this many pass before the next.
const REST: u32 = 9;

/// Where a packet leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    /// The interface, by its place among those that are forwarded between.
    pub(super) interface: usize,
    pub(super) from: Mac,
    pub(super) to: Mac,
    pub(super) mtu_bytes: usize,
}

/// An interface that is forwarded to.
#[derive(Clone, Copy, Debug)]
struct Link {
    ifindex: u32,
    address: Mac,
    mtu_bytes: usize,
}

/// What a packet is routed by.
#[derive(Debug, Default)]
pub(super) struct Tables {
    routes: Routes,
    neighbours: HashMap<(u32, IpAddr), Mac>,
    links: Vec<Link>,
}

impl Tables {
    /// Reads all of it, for these interfaces.
    fn read(socket: &mut NetlinkSocket, exits: &[u32]) -> io::Result<Self> {
        let mut tables = Tables::default();
        for rtm_family in [AF_INET, AF_INET6] {
            let header = Rtmsg {
                rtm_family,
                ..Rtmsg::default()
            };
            let request = rt_route::Request::new().op_getroute_dump(&header);
            let mut reply = socket.request(&request)?;
            while let Some(route) = reply.recv() {
                let (header, attributes) = route?;
                let message = [header.as_slice(), attributes.get_buf()].concat();
                tables.routes.add(&message);
            }
        }
        let request = rt_neigh::Request::new().op_getneigh_dump(&Ndmsg::default());
        let mut reply = socket.request(&request)?;
        while let Some(neighbour) = reply.recv() {
            let (header, neighbour) = neighbour?;
            let address = neighbour.get_lladdr().ok();
            let mac = address.and_then(|bytes| bytes.try_into().ok()).map(Mac);
            if let (Ok(to), Some(mac)) = (
                neighbour.get_dst(),
                mac.filter(|_| header.ndm_state & VALID != 0),
            ) {
                tables
                    .neighbours
                    .insert((header.ndm_ifindex as u32, to), mac);
            }
        }
        let mut links = HashMap::new();
        let request = rt_link::Request::new().op_getlink_dump(&Ifinfomsg::default());
        let mut reply = socket.request(&request)?;
        while let Some(link) = reply.recv() {
            let (header, link) = link?;
            let address = link
                .get_address()
                .ok()
                .and_then(|bytes| bytes.try_into().ok());
            links.insert(
                header.ifi_index as u32,
                (
                    Mac(address.unwrap_or_default()),
                    link.get_mtu().unwrap_or(0),
                ),
            );
        }
        tables.links = exits
            .iter()
            .map(|ifindex| {
                // One that is gone carries nothing.
                let (address, mtu_bytes) = links.get(ifindex).copied().unwrap_or_default();
                Link {
                    ifindex: *ifindex,
                    address,
                    mtu_bytes: mtu_bytes as usize,
                }
            })
            .collect();
        Ok(tables)
    }

    /// Where a packet leaves; `None` when only the kernel knows what to do. Of several ways each pair of addresses has
    /// one.
    pub(super) fn exit(&self, route: &Route) -> Option<Exit> {
        let ways = self.routes.ways(route.destination);
        let way = match ways {
            [] => return None,
            [only] => only,
            several => &several[mixed(route) as usize % several.len()],
        };
        let next = way.gateway.unwrap_or(route.destination);
        let interface = self
            .links
            .iter()
            .position(|link| link.ifindex == way.ifindex)?;
        let link = self.links[interface];
        Some(Exit {
            interface,
            from: link.address,
            to: *self.neighbours.get(&(way.ifindex, next))?,
            mtu_bytes: link.mtu_bytes,
        })
    }
}

/// A number that the two addresses have in common with no others, most likely.
pub(super) fn mixed(route: &Route) -> u64 {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    let both = bits(route.source).rotate_left(64) ^ bits(route.destination);
    let folded = (both ^ (both >> 64)) as u64;
    // Knuth's multiplicative hashing, by 2^64 over the golden ratio: the high half is the good one.
    folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
}

/// The newest tables, for whoever looks whether there are newer ones.
#[derive(Debug, Default)]
pub(super) struct Newest {
    generation: AtomicU64,
    tables: Mutex<Arc<Tables>>,
}

impl Newest {
    /// Tables newer than those of `generation`, which becomes theirs.
    pub(super) fn since(&self, generation: &mut u64) -> Option<Arc<Tables>> {
        let newest = self.generation.load(Ordering::Acquire);
        if newest == *generation {
            return None;
        }
        // While they are replaced, the old ones serve on.
        let tables = self.tables.try_lock().ok()?;
        *generation = newest;
        Some(Arc::clone(&tables))
    }

    fn replace(&self, tables: Tables) {
        let tables = Arc::new(tables);
        *self.tables.lock().unwrap_or_else(PoisonError::into_inner) = tables;
        self.generation.fetch_add(1, Ordering::Release);
    }
}

/// Follows the kernel's tables until it is dropped.
pub(super) struct Follower {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Follows the tables of the calling thread's network namespace, for exits by interface index. The first ones are
    /// there when it returns.
    ///
    /// # Errors
    /// When the kernel does not tell them.
    pub(super) fn start(exits: Vec<u32>) -> io::Result<(Self, Arc<Newest>)> {
        let newest = Arc::new(Newest::default());
        // First: nothing that changes from now on is missed.
        let changes = notifications()?;
        let mut socket = NetlinkSocket::new();
        newest.replace(Tables::read(&mut socket, &exits)?);
        let ends = Arc::new(AtomicBool::new(false));
        let (is_over, target) = (Arc::clone(&ends), Arc::clone(&newest));
        let thread = thread::Builder::new()
            .name(String::from("nicpoll-routes"))
            .spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    if !has_changed(&changes) {
                        continue;
                    }
                    let began = Instant::now();
                    // What cannot be read now is read after the next change.
                    if let Ok(tables) = Tables::read(&mut socket, &exits) {
                        target.replace(tables);
                    }
                    thread::sleep((began.elapsed() * REST).min(Duration::from_secs(10)));
                }
            })?;
        let follower = Follower {
            ends,
            thread: Some(thread),
        };
        Ok((follower, newest))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn notifications() -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, kind, flags, None)?;
    rustix::net::bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
    Ok(socket)
}

/// Waits for notifications for a while, and forgets them.
fn has_changed(changes: &OwnedFd) -> bool {
    let _ = poll(
        &mut [PollFd::new(changes, PollFlags::IN)],
        Some(&LOOK_EVERY),
    );
    let mut message = [0; 8192];
    let mut has_changed = false;
    loop {
        match rustix::net::recv(changes, &mut message, RecvFlags::empty()) {
            Ok(_) | Err(rustix::io::Errno::NOBUFS) => has_changed = true,
            Err(_) => return has_changed,
        }
    }
}

/// Whether somebody has added rules for routing to the kernel's own.
pub(super) fn has_rules(socket: &mut NetlinkSocket) -> io::Result<bool> {
    for (family, own) in RULES_OF_KERNEL {
        let header = FibRuleHdr {
            family,
            ..FibRuleHdr::default()
        };
        let request = rt_rule::Request::new().op_getrule_dump(&header);
        let mut reply = socket.request(&request)?;
        let mut rules = 0;
        while let Some(rule) = reply.recv() {
            rule?;
            rules += 1;
        }
        if rules > own {
            return Ok(true);
        }
    }
    Ok(false)
}
