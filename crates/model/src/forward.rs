//! What `nicpoll forward --json` and `--json-stream` print, and the names of what can become of a frame.
//!
//! What must hold: both paths use the same names, and each list has every name, so that documents can be compared.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{EngineFacts, KernelSideFacts, PollingOfCpu};
use crate::sink::SinkVariable;
use crate::{Origin, RunDocument};

/// Name and version of the JSON that [`ForwardDocument`] becomes.
pub const FORWARD_SCHEMA: &str = "nicpoll.forward/1";

/// A reason to leave a frame to the kernel, or a place where a frame is lost: its name in JSON, and what it means.
pub type Fate = (&'static str, &'static str);

/// Why a frame was left to the kernel, in the order in which the XDP program looks; the last is the engine's reason.
pub const PASSED: [Fate; 12] = [
    (
        "not_ip",
        "neither IPv4 nor IPv6: ARP, frames with a VLAN tag",
    ),
    (
        "not_for_router",
        "not sent to this interface's hardware address: broadcast, multicast",
    ),
    (
        "header",
        "IPv4 options, IPv6 hop-by-hop options, or a header that is wrong",
    ),
    ("ttl", "TTL or hop limit used up"),
    (
        "checksum",
        "its checksum was left to the sender's card, which is none on a virtual link",
    ),
    (
        "no_route",
        "for this host, or no route, or one that refuses",
    ),
    ("forwarding_off", "forwarding is off in the kernel"),
    ("too_long", "longer than the route's MTU"),
    (
        "no_neighbour",
        "the next hop's hardware address was not known yet",
    ),
    (
        "other_exit",
        "its route leads out by another interface, by one that takes no frames of XDP, or back",
    ),
    ("without_socket", "its receive queue has no socket"),
    (
        "given_back",
        "its exit had gone when the engine came to it: given back through a TAP interface",
    ),
];

/// Where a frame that was to be forwarded was lost, on its way.
pub const LOST: [Fate; 5] = [
    ("ring_full", "the socket's ring was full"),
    (
        "no_memory",
        "no memory was free, since the program did not keep up, or the frame was too long",
    ),
    (
        "exit_refused",
        "the exit interface took no frames: it is down, or the other end of a veth has no NAPI",
    ),
    (
        "exit_full",
        "the ring or queue of the exit interface was full",
    ),
    ("waiting", "still in a ring at the end"),
];

/// A whole run.
pub type ForwardDocument = RunDocument<ForwardStart, ForwardInterval, ForwardEnd>;

/// What was asked for and how it is carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardStart {
    /// Name and version of this layout: [`FORWARD_SCHEMA`].
    pub schema: String,
    /// Who made it.
    #[serde(flatten)]
    pub origin: Origin,
    /// The way that frames take: `xdp` or `user`.
    pub path: String,
    /// Why that one.
    pub path_reason: String,
    /// How the engine runs; null on the path `xdp`, which has none.
    pub engine: Option<EngineFacts>,
    /// The interfaces that are forwarded between.
    pub interfaces: Vec<ForwardInterface>,
    /// What keeps frames from being forwarded here, and what the kernel would do that is not done.
    pub notes: Vec<String>,
}

/// An interface that is forwarded from and to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardInterface {
    /// Its name.
    pub name: String,
    /// Where the XDP program runs: `driver` or `generic`.
    pub program_mode: String,
    /// Whether it takes frames that an XDP program redirects to it; null where the kernel does not say.
    pub takes_redirected: Option<bool>,
    /// The longest packet that it carries.
    pub mtu_bytes: u32,
    /// What the kernel's side of receiving was set to for the run.
    pub kernel_side: KernelSideFacts,
}

/// What was forwarded in an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardInterval {
    /// Begin, since the run began.
    pub start_seconds: f64,
    /// End.
    pub end_seconds: f64,
    /// What was counted between, over all interfaces.
    #[serde(flatten)]
    pub counts: ForwardCounts,
}

/// Frames over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardCounts {
    /// Frames that came to the interfaces.
    pub received_packets: u64,
    /// Of those, handed to the driver of the interface that their route leads out by.
    pub forwarded_packets: u64,
    /// Of those, left to the kernel.
    pub passed_packets: u64,
    /// Of those, lost on the way from one interface to the other.
    pub lost_packets: u64,
}

/// Where the frames ended that came to one interface, or to all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardAccount {
    /// Frames that came.
    pub received_packets: u64,
    /// Of those, handed to the driver of the interface that their route leads out by.
    pub forwarded_packets: u64,
    /// Of those, left to the kernel, by reason.
    pub passed: Vec<ForwardFate>,
    /// Of those, lost on the way from one interface to the other, by place.
    pub lost: Vec<ForwardFate>,
    /// Received, and none of these; 0 when the account closes.
    pub residual_packets: i64,
}

/// Frames that had the same fate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardFate {
    /// The reason or place, of [`PASSED`] or [`LOST`].
    pub name: String,
    /// How many.
    pub packets: u64,
}

/// The account of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardedFrom {
    /// The interface.
    pub name: String,
    /// Where the frames ended that came to it.
    #[serde(flatten)]
    pub account: ForwardAccount,
}

/// What it came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardEnd {
    /// Length of the run.
    pub duration_seconds: f64,
    /// Where the frames of all interfaces ended.
    pub account: ForwardAccount,
    /// The same for each interface.
    pub interfaces: Vec<ForwardedFrom>,
    /// Checks of status that found an interface no longer up, over all queues; null on the path `xdp`, where nobody
    /// checks.
    pub link_loss_events: Option<u64>,
    /// Checks of status that found another MTU than the one before, over all queues; null on the path `xdp`.
    pub mtu_changes: Option<u64>,
    /// The knobs and counters under `kern.polling`, by name; none on the path `xdp`.
    pub polling: Vec<SinkVariable>,
    /// The same for each CPU that has an engine.
    pub polling_by_cpu: Vec<PollingOfCpu>,
    /// The signal that ended the run; null when none did.
    pub ended_by_signal: Option<i32>,
}

/// Frames lost, by place: one field for each row of [`LOST`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the table says what the places are")]
pub struct Lost {
    pub ring_full: u64,
    pub no_memory: u64,
    pub exit_refused: u64,
    pub exit_full: u64,
    pub waiting: u64,
}

impl From<Lost> for [u64; LOST.len()] {
    fn from(lost: Lost) -> Self {
        [
            lost.ring_full,
            lost.no_memory,
            lost.exit_refused,
            lost.exit_full,
            lost.waiting,
        ]
    }
}

impl Lost {
    /// Adds what was lost elsewhere.
    pub fn add(&mut self, more: &Lost) {
        self.ring_full += more.ring_full;
        self.no_memory += more.no_memory;
        self.exit_refused += more.exit_refused;
        self.exit_full += more.exit_full;
        self.waiting += more.waiting;
    }
}

impl ForwardAccount {
    /// An account that closes as far as it does: `passed` and `lost` in the order of [`PASSED`] and [`LOST`].
    pub fn of(
        received_packets: u64,
        forwarded_packets: u64,
        passed: [u64; PASSED.len()],
        lost: impl Into<[u64; LOST.len()]>,
    ) -> Self {
        let lost = lost.into();
        let signed = |packets: u64| i64::try_from(packets).unwrap_or(i64::MAX);
        let found = forwarded_packets + passed.iter().chain(&lost).sum::<u64>();
        let named = |fates: &[Fate], packets: &[u64]| {
            let rows = fates.iter().zip(packets);
            rows.map(|((name, _), &packets)| ForwardFate {
                name: String::from(*name),
                packets,
            })
            .collect()
        };
        ForwardAccount {
            received_packets,
            forwarded_packets,
            passed: named(&PASSED, &passed),
            lost: named(&LOST, &lost),
            residual_packets: signed(received_packets) - signed(found),
        }
    }

    /// The sum of all accounts.
    pub fn sum<'a>(accounts: impl Iterator<Item = &'a ForwardAccount> + Clone) -> Self {
        let column = |fates: fn(&ForwardAccount) -> &[ForwardFate], row: usize| {
            let all = accounts.clone();
            all.map(|account| fates(account).get(row).map_or(0, |fate| fate.packets))
                .sum::<u64>()
        };
        let all = || accounts.clone();
        ForwardAccount::of(
            all().map(|account| account.received_packets).sum(),
            all().map(|account| account.forwarded_packets).sum(),
            std::array::from_fn(|row| column(|account| &account.passed, row)),
            std::array::from_fn::<u64, { LOST.len() }, _>(|row| {
                column(|account| &account.lost, row)
            }),
        )
    }

    /// The same without the reasons and places.
    pub fn counts(&self) -> ForwardCounts {
        let sum = |fates: &[ForwardFate]| fates.iter().map(|fate| fate.packets).sum();
        // The last place holds frames that are on their way still.
        let lost = self.lost.get(..LOST.len() - 1).unwrap_or(&self.lost);
        ForwardCounts {
            received_packets: self.received_packets,
            forwarded_packets: self.forwarded_packets,
            passed_packets: sum(&self.passed),
            lost_packets: sum(lost),
        }
    }
}

impl ForwardCounts {
    /// What was counted since `before`.
    pub fn since(&self, before: &ForwardCounts) -> ForwardCounts {
        ForwardCounts {
            received_packets: self
                .received_packets
                .saturating_sub(before.received_packets),
            forwarded_packets: self
                .forwarded_packets
                .saturating_sub(before.forwarded_packets),
            passed_packets: self.passed_packets.saturating_sub(before.passed_packets),
            lost_packets: self.lost_packets.saturating_sub(before.lost_packets),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_closes_when_every_frame_has_a_fate_and_its_sum_does_too() {
        let mut passed = [0; PASSED.len()];
        passed[1] = 2;
        let lost = Lost {
            exit_refused: 5,
            ..Lost::default()
        };
        let one = ForwardAccount::of(17, 10, passed, lost);
        assert_eq!(one.residual_packets, 0);
        let other = ForwardAccount::of(9, 10, [0; PASSED.len()], Lost::default());
        assert_eq!(other.residual_packets, -1);
        let both = ForwardAccount::sum([&one, &other].into_iter());
        assert_eq!(both.residual_packets, -1);
        assert_eq!((both.passed[1].packets, both.lost[2].packets), (2, 5));
        assert_eq!(both.lost[2].name, "exit_refused");
        let counts = ForwardCounts {
            received_packets: 26,
            forwarded_packets: 20,
            passed_packets: 2,
            lost_packets: 5,
        };
        assert_eq!(both.counts(), counts);
        assert_eq!(counts.since(&one.counts()).received_packets, 9);
    }
}
