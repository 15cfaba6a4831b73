//! What each way of forwarding does, and keeping the neighbours known that forwarded frames go to.
//!
//! The kernel confirms a neighbour when it sends something to it itself. It knows nothing of what an XDP program or the
//! engine sends: such a neighbour gets stale and may be forgotten, or may have moved. So the kernel is asked to probe each
//! stale neighbour that was lately the next hop of a frame. A neighbour costs one probe each time that it gets stale.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::IpAddr;
use std::thread;
use std::time::Duration;

use netlink_bindings::rt_neigh::{self, Ndmsg, NudState};
use netlink_socket2::NetlinkSocket;
use nicpoll_model::engine::SinkVariable;
use nicpoll_model::engine::{EngineFacts, PollingOfCpu};
use nicpoll_sys::bpf_maps::NextHop;

use crate::background::Background;
use crate::device::interface::ask;
use crate::error::EngineError;
use crate::forward::classifier::{Classifier, ClassifierResult, NextHops};

/// How frames get from one interface to another.
pub(super) trait Path: Send {
    /// What became until now of the frames of each interface that its program sent on or took.
    fn done(&self) -> Result<Vec<ClassifierResult>, EngineError>;

    /// Has the programs adapt to interfaces that changed.
    fn look_around(&mut self, _classifiers: &mut [Classifier]) -> Result<(), EngineError> {
        Ok(())
    }

    /// How the engine runs; `None` where there is none.
    fn engine(&self) -> Option<EngineFacts> {
        None
    }

    /// What else is to be known of it.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Ends the engine, if there is one, and says what else is to be told.
    fn end(&mut self) -> PathEnd {
        PathEnd::default()
    }
}

/// What a path tells at its end in addition to the accounts.
#[derive(Default)]
pub(super) struct PathEnd {
    /// `None` where nobody checks the status of the interfaces, and so for the changes.
    pub(super) link_loss_events: Option<u64>,
    pub(super) mtu_changes: Option<u64>,
    pub(super) polling: Vec<SinkVariable>,
    pub(super) polling_by_cpu: Vec<PollingOfCpu>,
}

impl PathEnd {
    /// Together with what was told before. Knobs and their counters are those of the last engine.
    pub(super) fn after(mut self, before: &PathEnd) -> PathEnd {
        for (sum, past) in [
            (&mut self.link_loss_events, before.link_loss_events),
            (&mut self.mtu_changes, before.mtu_changes),
        ] {
            *sum = sum.map(|events| events + past.unwrap_or(0));
        }
        self
    }
}

/// A path that forwards.
pub(super) struct Started {
    pub(super) path: Box<dyn Path>,
    /// The program of each interface, attached.
    pub(super) classifiers: Vec<Classifier>,
    pub(super) _freshness: Background,
}

/// A stale neighbour stays usable for a minute at least (`gc_stale_time`).
const LOOK_EVERY: Duration = Duration::from_secs(2);
const AF_INET: u32 = 2;

/// A next hop: the exit by its interface index, and the neighbour.
type Neighbour = (u32, IpAddr);

/// Looks after the neighbours of the calling thread's network namespace until the result is dropped.
///
/// # Errors
/// When no thread can be had.
pub(super) fn keep_fresh(programs: Vec<NextHops>) -> Result<Background, EngineError> {
    let mut netlink = NetlinkSocket::new();
    let mut known: Vec<HashMap<NextHop, u64>> = vec![HashMap::new(); programs.len()];
    let look = move || {
        let mut in_use = HashSet::new();
        for (program, known) in programs.iter().zip(&mut known) {
            in_use.extend(in_use_since(program.iter().filter_map(Result::ok), known));
        }
        // What cannot be asked for now is at the next look.
        let _ = ask_for_stale(&mut netlink, &in_use);
        thread::park_timeout(LOOK_EVERY);
    };
    Background::start("nicpoll-neighbours", look)
        .map_err(|source| EngineError::io("starting to look after neighbours", &source))
}

/// Those to whom something was sent since `before`, which becomes what is known now.
fn in_use_since(
    now: impl Iterator<Item = (NextHop, u64)>,
    before: &mut HashMap<NextHop, u64>,
) -> Vec<Neighbour> {
    let now: HashMap<NextHop, u64> = now.collect();
    let new = now
        .iter()
        .filter(|(hop, tick)| before.get(hop) != Some(*tick));
    let in_use = new.map(|(hop, _)| (hop.ifindex, address(hop))).collect();
    *before = now;
    in_use
}

/// The words hold the address as it lies in a packet.
fn address(hop: &NextHop) -> IpAddr {
    let words = hop.address.map(u32::to_ne_bytes);
    if hop.family == AF_INET {
        return IpAddr::from(words[0]);
    }
    let bytes: [u8; 16] = std::array::from_fn(|at| words[at / 4][at % 4]);
    IpAddr::from(bytes)
}

fn ask_for_stale(socket: &mut NetlinkSocket, in_use: &HashSet<Neighbour>) -> io::Result<()> {
    if in_use.is_empty() {
        return Ok(());
    }
    let mut stale = Vec::new();
    let request = rt_neigh::Request::new().op_getneigh_dump(&Ndmsg::default());
    let mut reply = socket.request(&request)?;
    while let Some(neighbour) = reply.recv() {
        let (header, neighbour) = neighbour?;
        if header.ndm_state & NudState::Stale as u16 == 0 {
            continue;
        }
        let address = neighbour.get_dst().ok();
        let neighbour = address.map(|address| (header.ndm_ifindex as u32, address));
        stale.extend(neighbour.filter(|neighbour| in_use.contains(neighbour)));
    }
    drop(reply);
    for (ifindex, address) in stale {
        ask(socket, ifindex, address)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_to_whom_something_was_sent_since_are_in_use() {
        let ipv4 = NextHop {
            ifindex: 3,
            family: AF_INET,
            address: [u32::from_ne_bytes([192, 0, 2, 1]), 0, 0, 0],
        };
        let bytes: [u8; 16] = std::array::from_fn(|at| at as u8 + 1);
        let (words, _) = bytes.as_chunks::<4>();
        let ipv6 = NextHop {
            ifindex: 4,
            family: 10,
            address: std::array::from_fn(|word| u32::from_ne_bytes(words[word])),
        };
        let mut known = HashMap::new();
        let mut look = |now: &[(NextHop, u64)]| {
            let mut found = in_use_since(now.iter().copied(), &mut known);
            found.sort_unstable();
            found
        };
        let [first, second] = [(3, "192.0.2.1".parse().unwrap()), (4, IpAddr::from(bytes))];
        assert_eq!(look(&[(ipv4, 7), (ipv6, 7)]), [first, second]);
        assert_eq!(look(&[(ipv4, 7), (ipv6, 8)]), [second]);
        assert_eq!(look(&[(ipv4, 7)]), []);
        // Forgotten meanwhile, and in use again.
        assert_eq!(look(&[(ipv4, 7), (ipv6, 8)]), [second]);
    }
}
