//! Links: what joins two hosts, and the topology that a study file asks for.
//!
//! A topology that cannot be built is refused when it is read. Reports describe the link from here, and a virtual link
//! says that it is virtual.

pub mod hosts;
pub mod veth;

use std::net::IpAddr;
use std::num::NonZeroU64;
use std::time::Duration;

use nicpoll_model::Side;
use nicpoll_model::line::Line;
use nicpoll_model::numbers::figure;
use nicpoll_model::units::{parse_speed, parse_time, show_time};
use nicpoll_observe::{Between, HostSnapshot};
use nicpoll_sys::netns::NetNamespace;
use serde::{Deserialize, Serialize};

use crate::error::{Doing, LabError, Refused};
use crate::host::{RECEIVER, ROUTER};
use crate::link::hosts::Hosts;
use crate::workload::check_number;

/// A link between hosts of this machine: its ends, and its description for reports.
pub struct Link {
    /// The ends on a packet's path: the sender's, perhaps a router's, the receiver's.
    pub ends: Vec<LinkEnd>,
    /// Whether the link has neither card nor line.
    pub is_virtual: bool,
    /// What is between the ends.
    pub between: Between,
    /// Whether it existed before. Others may send on it, and their packets are in a study's counters.
    pub is_shared: bool,
    /// Link MTU.
    pub mtu_bytes: u32,
    /// Slots of the receive ring; `None` when the driver does not say.
    pub ring_slots: Option<u32>,
    /// Added delay of each packet, each way.
    pub delay: Duration,
    /// The line between the hosts, or why there is none.
    pub line: Result<Line, &'static str>,
    /// An address of the link that belongs to no host, with a hardware address: frames to it end as the receiving
    /// host's IP layer looks at them. `None` on a link that others share.
    pub nobody: Option<(IpAddr, [u8; 6])>,
}

/// One end of a link.
pub struct LinkEnd {
    /// The host's name in settings.
    pub host: &'static str,
    /// Its network namespace; `None` if it is another machine's.
    pub namespace: Option<NetNamespace>,
    /// Its interfaces; that of the first path first.
    pub interfaces: Vec<String>,
    /// Its addresses on the link with their prefix lengths; those of the first path first.
    pub addresses: Vec<(IpAddr, u8)>,
}

impl Link {
    /// The end at a host.
    pub fn end(&self, side: Side) -> &LinkEnd {
        &self.ends[side.of(0, self.ends.len() - 1)]
    }

    /// Leaves out a host's other interfaces where it existed before: they carry the traffic of others.
    pub fn own(&self, counters: HostSnapshot, end: &LinkEnd) -> HostSnapshot {
        match self.is_shared {
            true => counters.of_interfaces(&end.interfaces),
            false => counters,
        }
    }

    /// The router's end; `None` without one.
    pub fn router(&self) -> Option<&LinkEnd> {
        match &self.ends[..] {
            [_, router, _] => Some(router),
            _ => None,
        }
    }

    /// Returns the number of paths between the hosts, which share nothing.
    pub fn paths(&self) -> usize {
        self.ends[0].interfaces.len()
    }

    /// Names the namespaces that would otherwise go with the process, to inspect them with ip-netns(8). Returns the
    /// names.
    ///
    /// # Errors
    /// When a name is taken.
    pub fn keep(&self) -> Result<Vec<String>, LabError> {
        let pid = std::process::id();
        let mut names = Vec::new();
        for end in self.ends.iter().filter(|_| !self.is_shared) {
            let name = format!("nicpoll-{}-{pid}", end.host);
            let Some(namespace) = &end.namespace else {
                continue;
            };
            namespace
                .keep_as(&name)
                .doing(|| format!("naming the {}'s namespace {name}", end.host))?;
            names.push(name);
        }
        Ok(names)
    }
}

/// The slowest and the fastest line that is shaped.
const RATES: std::ops::RangeInclusive<u64> = 64_000..=100_000_000_000;

/// The longest frame of a link that is made, with what it takes on the wire.
pub(crate) const FRAME_BYTES_MAX: u64 = 1538;

/// Size of a line's queue: this much time of the line, and at least this many frames.
pub(crate) const QUEUE_SECONDS: f64 = 50e-3;
pub(crate) const QUEUE_FRAMES: u64 = 20;

/// Range of added delays. Over the longest one, the end of a TCP stream and one retransmission still fit into the
/// time that a sender waits for it.
const DELAY_MIN: Duration = Duration::from_micros(10);

const DELAY_MAX: Duration = Duration::from_millis(500);

/// Range of random losses, in percent.
const LOSS_MIN: f64 = 0.0001;

const LOSS_MAX: f64 = 50.0;

const TWO_TO_32: f64 = 4_294_967_296.0;

/// How sender and receiver are joined. Without anything else: by one veth pair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// What is between them.
    #[serde(default)]
    pub kind: TopologyKind,
    /// Links side by side, all of which carry the same traffic; one when null.
    #[serde(default)]
    pub links: Option<u8>,
    /// The rate of the line, with everything that a frame takes on the wire: `"10Mbit/s"`. Null: unshaped. Both
    /// hosts' sending is shaped to it.
    #[serde(default)]
    pub rate: Option<LineRate>,
    /// Added delay of each packet, each way: `"20ms"`.
    #[serde(default)]
    pub delay: Option<LinkDelay>,
    /// Share of packets that are lost at random, each way: `"0.1%"`.
    #[serde(default)]
    pub loss: Option<LossShare>,
    /// The sender's interface, where both exist already.
    #[serde(default)]
    pub sender: Option<OwnInterface>,
    /// The receiver's interface.
    #[serde(default)]
    pub receiver: Option<OwnInterface>,
    /// Whether one of them may carry the user's ssh connection.
    #[serde(default)]
    pub even_with_ssh: bool,
    /// The machines of the hosts, from a table of their own in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
}

/// An interface that this machine has already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnInterface {
    /// Its name.
    pub interface: String,
    /// The network namespace that it is in, by the name that ip-netns(8) lists; that of the program when null.
    #[serde(default)]
    pub netns: Option<String>,
}

/// Two interfaces that this machine has already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExistingInterfaces {
    /// The sender's.
    pub sender: OwnInterface,
    /// The receiver's interface.
    pub receiver: OwnInterface,
    /// Whether one of them may carry the user's ssh connection.
    pub even_with_ssh: bool,
}

/// What is between sender and receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TopologyKind {
    /// Nothing but the link.
    #[default]
    Pair,
    /// A third namespace whose kernel forwards. Its receiving is what is studied.
    Router,
    /// Whatever is between two interfaces that this machine has already.
    Existing,
    /// Whatever is between machines, each with an interface.
    Hosts,
}

impl TopologyKind {
    /// Whether the study makes the hosts and what joins them.
    pub fn is_made(self) -> bool {
        matches!(self, TopologyKind::Pair | TopologyKind::Router)
    }
}

impl From<Hosts> for Topology {
    fn from(hosts: Hosts) -> Self {
        Topology {
            kind: TopologyKind::Hosts,
            hosts: Some(hosts),
            ..Topology::default()
        }
    }
}

impl Topology {
    /// Checks that it can be built.
    ///
    /// # Errors
    /// With what is possible.
    pub fn check(&self) -> Result<(), Refused> {
        let links = self.links.unwrap_or(1);
        let is_made = self.links.is_some() || self.rate.is_some() || self.impairs();
        let has_own = self.sender.is_some() || self.receiver.is_some() || self.even_with_ssh;
        check_number("links", links.into())?;
        let why = if self.is_routed() && links > 1 {
            "a router joins one link on either side; leave out links, or take kind = \"pair\""
        } else if self.kind == TopologyKind::Existing && self.existing().is_none() {
            "kind = \"existing\" needs both interfaces, such as sender = { interface = \"eth1\" } and receiver = { \
             interface = \"eth2\", netns = \"far\" }"
        } else if (self.kind == TopologyKind::Hosts) != self.hosts.is_some() {
            "machines are named by [hosts.sender] and [hosts.receiver], in place of [topology] (docs/hosts.md)"
        } else if !self.kind.is_made() && is_made {
            "links, rate, delay and loss are for links that the study makes; interfaces that exist already stay as \
             they are"
        } else if self.kind != TopologyKind::Existing && has_own {
            "sender, receiver and even_with_ssh of a topology are for kind = \"existing\""
        } else {
            return Ok(());
        };
        Err(Refused(String::from(why)))
    }

    /// Whether there is a router between them.
    pub fn is_routed(&self) -> bool {
        let of_hosts = self.hosts.as_ref().is_some_and(Hosts::is_routed);
        self.kind == TopologyKind::Router || of_hosts
    }

    /// Returns the host whose receiving is studied.
    pub fn studied(&self) -> &'static str {
        if self.is_routed() { ROUTER } else { RECEIVER }
    }

    /// Whether packets are delayed or lost on purpose.
    pub fn impairs(&self) -> bool {
        self.delay.is_some() || self.loss.is_some()
    }

    /// How much later a packet arrives than it would.
    pub fn delay(&self) -> Duration {
        self.delay.map_or(Duration::ZERO, |delay| delay.0)
    }

    /// The interfaces that the study takes as they are.
    pub fn existing(&self) -> Option<ExistingInterfaces> {
        let both = self.sender.clone().zip(self.receiver.clone());
        let (sender, receiver) = both.filter(|_| self.kind == TopologyKind::Existing)?;
        Some(ExistingInterfaces {
            sender,
            receiver,
            even_with_ssh: self.even_with_ssh,
        })
    }

    /// Links side by side, or pairs of hosts.
    pub fn links(&self) -> u8 {
        let pairs = self.hosts.as_ref().map(Hosts::paths);
        pairs.or(self.links).unwrap_or(1)
    }

    /// Description in one line.
    pub fn describe(&self) -> String {
        if let Some(hosts) = &self.hosts {
            return hosts.describe();
        }
        let kind = match (self.existing(), self.links()) {
            (Some(own), _) => format!("{} and {}", own.sender.interface, own.receiver.interface),
            (None, _) if self.is_routed() => {
                String::from("veth pairs to a router between the hosts")
            }
            (None, 1) => String::from("a veth pair between the hosts"),
            (None, links) => format!("{links} veth pairs between the hosts"),
        };
        let rate = self.rate.map(|rate| rate.0.get() as f64 / 1e6);
        let rate = rate.map(|rate| format!("a line of {rate} Mbit/s"));
        let delay = self.delay.map(|delay| show_time(delay.0.as_nanos() as u64));
        let delay = delay.map(|delay| format!("{delay} later each way"));
        let loss = self.loss.map(|loss| 100.0 * f64::from(loss.0) / TWO_TO_32);
        let loss = loss.map(|loss| format!("{} % lost each way", figure(loss)));
        let more = [rate, delay, loss].into_iter().flatten();
        more.fold(kind, |words, more| format!("{words}, {more}"))
    }
}

/// Bits a second on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LineRate(NonZeroU64);

impl LineRate {
    /// Bits a second.
    pub fn bits_per_second(self) -> NonZeroU64 {
        self.0
    }

    /// How long a full queue takes to empty.
    pub fn queue_seconds(self) -> f64 {
        let frames = (8 * QUEUE_FRAMES * FRAME_BYTES_MAX) as f64;
        QUEUE_SECONDS.max(frames / self.0.get() as f64)
    }
}

impl TryFrom<String> for LineRate {
    type Error = Refused;

    fn try_from(text: String) -> Result<Self, Refused> {
        let rate = parse_speed(&text).ok().filter(|rate| RATES.contains(rate));
        let rate = rate.and_then(NonZeroU64::new);
        rate.map(LineRate).ok_or_else(|| {
            Refused(format!(
                "rate = \"{text}\" cannot be shaped; give 64kbit/s to 100Gbit/s, such as \"10Mbit/s\""
            ))
        })
    }
}

impl From<LineRate> for String {
    fn from(rate: LineRate) -> String {
        format!("{}bit/s", rate.0)
    }
}

/// Added delay of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LinkDelay(Duration);

impl TryFrom<String> for LinkDelay {
    type Error = Refused;

    fn try_from(text: String) -> Result<Self, Refused> {
        let delay = parse_time(&text).ok();
        let delay = delay.filter(|delay| (DELAY_MIN..=DELAY_MAX).contains(delay));
        delay.map(LinkDelay).ok_or_else(|| {
            Refused(format!(
                "delay = \"{text}\" cannot be made; give {DELAY_MIN:?} to {DELAY_MAX:?}, such as \"20ms\""
            ))
        })
    }
}

impl From<LinkDelay> for String {
    fn from(delay: LinkDelay) -> String {
        format!("{}us", delay.0.as_micros())
    }
}

/// A share of packets, of 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LossShare(u32);

impl LossShare {
    /// The share as the kernel counts it: of 2^32.
    pub(crate) fn of_2_32(self) -> u32 {
        self.0
    }
}

impl TryFrom<String> for LossShare {
    type Error = Refused;

    fn try_from(text: String) -> Result<Self, Refused> {
        let percent = text.strip_suffix('%');
        let percent: Option<f64> = percent.and_then(|number| number.trim().parse().ok());
        let percent = percent.filter(|percent| (LOSS_MIN..=LOSS_MAX).contains(percent));
        let share = percent.map(|percent| (percent / 100.0 * TWO_TO_32).round() as u32);
        share.map(LossShare).ok_or_else(|| {
            Refused(format!(
                "loss = \"{text}\" cannot be made; give {LOSS_MIN}% to {LOSS_MAX}%, such as \"0.1%\""
            ))
        })
    }
}

impl From<LossShare> for String {
    fn from(share: LossShare) -> String {
        format!("{:.6}%", f64::from(share.0) / TWO_TO_32 * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Topology, String> {
        let topology: Topology = toml::from_str(text).map_err(|error| error.to_string())?;
        topology.check().map_err(|error| error.to_string())?;
        Ok(topology)
    }

    #[test]
    fn a_topology_is_read_as_it_is_written() {
        assert_eq!(read("").unwrap(), Topology::default());
        let shaped = read("rate = \"10Mbit/s\"").unwrap();
        let rate = shaped.rate.unwrap();
        assert_eq!(rate.bits_per_second().get(), 10_000_000);
        let words = "a veth pair between the hosts, a line of 10 Mbit/s";
        assert_eq!(shaped.describe(), words);
        // `100MB` is read as bits, and the words say so.
        let bytes = read("links = 2\nrate = \"100MB\"\ndelay = \"20ms\"\nloss = \"0.1%\"").unwrap();
        let words = "2 veth pairs between the hosts, a line of 100 Mbit/s, 20ms later each way, 0.1 % lost each way";
        assert_eq!(bytes.describe(), words.replace("0.1 %", "0.100 %"));
        let json = serde_json::to_string(&shaped).unwrap();
        assert_eq!(serde_json::from_str::<Topology>(&json).unwrap(), shaped);
        let far = read("delay = \"20ms\"\nloss = \"0.1%\"").unwrap();
        assert_eq!((far.delay().as_millis(), far.impairs()), (20, true));
        assert_eq!(far.loss.unwrap().of_2_32(), 4_294_967);
        let json = serde_json::to_string(&far).unwrap();
        assert_eq!(serde_json::from_str::<Topology>(&json).unwrap(), far);
        assert!(read("kind = \"router\"").unwrap().is_routed());
        assert_eq!(read("links = 4").unwrap().links(), 4);
    }

    #[test]
    fn what_cannot_be_built_is_refused_with_what_can() {
        for (text, words) in [
            ("links = 0", "1 to 8"),
            ("links = 9", "1 to 8"),
            ("kind = \"router\"\nlinks = 2", "one link on either side"),
            ("kind = \"ring\"", "`pair`, `router`, `existing`"),
            ("kind = \"existing\"", "needs both"),
            ("sender = { interface = \"a\" }", "kind = \"existing\""),
            (
                "kind = \"existing\"\nlinks = 2\nsender = { interface = \"a\" }\nreceiver = { interface = \"b\" }",
                "stay as they are",
            ),
            ("rate = \"10\"", "10Mbit/s"),
            ("rate = \"9m/s\"", "10Mbit/s"),
            ("delay = \"9\"", "such as \"20ms\""),
            ("delay = \"9s\"", "10µs to 500ms"),
            ("loss = \"0.1\"", "such as \"0.1%\""),
            ("loss = \"80%\"", "50%"),
            ("jitter = \"9ms\"", "unknown field"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
