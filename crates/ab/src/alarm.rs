//! Conditions that end a live comparison: losses, the interface's state, and an unanswered echo request.
//!
//! This module changes nothing. Losses are compared with those under the reference: traffic that loses packets anyway
//! does not end a run. An echo request goes to the user's own host only, and only when the user came by ssh.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use nicpoll_model::ab::{AbEnd, AbEndCause};
use nicpoll_observe::{Account, HostSnapshot};
use nicpoll_stats::ab::{LossLimit, Losses, TooMany};
use nicpoll_switch::LinkHealth;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketType, ipproto, recv, sendto, socket,
};

use crate::block::lost;

/// Kinds of losses: the cause of a run's end, and its words.
const KINDS: [(AbEndCause, &str); 2] = [
    (AbEndCause::Drops, "packets were lost"),
    (AbEndCause::Retransmissions, "segments were sent again"),
];

/// Losses in a stretch of traffic, of each of [`KINDS`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LostPackets([Losses; 2]);

impl LostPackets {
    /// Returns the losses between two readings, this many seconds apart.
    pub fn between(before: &HostSnapshot, after: &HostSnapshot, seconds: f64) -> LostPackets {
        let packets = packets(after).saturating_sub(packets(before)) as f64;
        let again =
            |host: &HostSnapshot| host.protocols.get("Tcp.RetransSegs").copied().unwrap_or(0);
        let lost = [
            lost(&Account { before, after }.drops()),
            again(after).saturating_sub(again(before)),
        ];
        LostPackets(lost.map(|lost| Losses {
            seconds,
            lost: lost as f64,
            packets,
        }))
    }

    /// Returns the packets received and sent each second.
    pub fn packets_per_second(&self) -> f64 {
        self.0[0].packets / self.0[0].seconds
    }
}

/// The limits of a run, of each of [`KINDS`].
#[derive(Clone, Debug)]
pub struct Limits([LossLimit; 2]);

impl Limits {
    /// Allows `factor` times the usual losses; `usual` is a stretch under the reference before the first block.
    pub fn new(factor: f64, longest_seconds: f64, usual: &LostPackets) -> Self {
        let limit = |usual| LossLimit::new(factor, longest_seconds, usual);
        Limits(usual.0.map(limit))
    }

    /// Returns the end of the run if a running block has lost too much to go on.
    pub fn at_once(&self, so_far: &LostPackets) -> Option<AbEnd> {
        ended([0, 1].map(|kind| self.0[kind].at_once(&so_far.0[kind])))
    }

    /// Returns the end of the run if a stretch lost more than a block may.
    pub fn alone(&self, stretch: &LostPackets) -> Option<AbEnd> {
        ended([0, 1].map(|kind| self.0[kind].alone(&stretch.0[kind])))
    }

    /// Adds a pair. Returns the end of the run if it has now lost too much.
    pub fn pair(&mut self, reference: &LostPackets, judged: &LostPackets) -> Option<AbEnd> {
        ended([0, 1].map(|kind| self.0[kind].pair(reference.0[kind], judged.0[kind])))
    }
}

fn ended(many: [Option<TooMany>; 2]) -> Option<AbEnd> {
    let mut many = many.into_iter().zip(KINDS);
    many.find_map(|(many, (cause, what))| {
        let many = many?;
        let blocks = match many.blocks {
            1 => String::from("one block"),
            more => format!("{more} blocks of the judged setting"),
        };
        let text = format!(
            "{:.0} {what} in {blocks}, where {:.0} are allowed; a greater --loss-limit allows more",
            many.lost, many.allowed
        );
        Some(end_of(cause, text))
    })
}

/// Makes the end of a run.
pub fn end_of(cause: AbEndCause, text: String) -> AbEnd {
    AbEnd {
        cause,
        text: Some(text),
    }
}

fn packets(host: &HostSnapshot) -> u64 {
    let interfaces = host.interfaces.iter().flatten();
    interfaces
        .map(|(_, one)| one.link.rx_packets + one.link.tx_packets)
        .sum()
}

/// Returns a change of an interface that ends a comparison, if there is one.
pub fn disturbed(name: &str, then: &LinkHealth, now: Option<&LinkHealth>) -> Option<AbEnd> {
    use AbEndCause::{CarrierLost, InterfaceChanged};
    let (cause, what) = match now {
        None => (InterfaceChanged, GONE),
        Some(now) if !now.is_up => (CarrierLost, "was taken down"),
        Some(now) if !now.has_carrier && then.has_carrier => (CarrierLost, "lost its carrier"),
        Some(now) if now.carrier_changes != then.carrier_changes => {
            (CarrierLost, "lost its carrier for a moment")
        }
        Some(now) if now.napi_ids != then.napi_ids => {
            let what = "recreated its NAPI instances, so its queues were restarted";
            (InterfaceChanged, what)
        }
        Some(_) => return None,
    };
    Some(end_of(cause, format!("{name} {what}")))
}

/// The state of an interface that is not found.
pub const GONE: &str = "no longer exists in this network namespace";

/// Bytes of an echo message before its data: type, code, checksum, identifier, number (RFC 792).
const HEADER_BYTES: usize = 8;

/// Buffer for an answer, larger than any expected.
const ANSWER_BYTES: usize = 1_500;

/// Differences between the IP versions.
struct ByVersion {
    family: AddressFamily,
    protocol: Protocol,
    request: u8,
    reply: u8,
    /// Whether a raw socket delivers the IP header.
    has_ip_header: bool,
}

fn version_of(address: IpAddr) -> ByVersion {
    match address {
        IpAddr::V4(_) => ByVersion {
            family: AddressFamily::INET,
            protocol: ipproto::ICMP,
            request: 8,
            reply: 0,
            has_ip_header: true,
        },
        IpAddr::V6(_) => ByVersion {
            family: AddressFamily::INET6,
            protocol: ipproto::ICMPV6,
            request: 128,
            reply: 129,
            has_ip_header: false,
        },
    }
}

/// Sends an echo request from the calling thread's namespace, and waits for its answer.
///
/// # Errors
/// `EPERM` without CAP_NET_RAW; the kernel's error if the host cannot be reached.
pub fn is_answered(address: IpAddr, number: u16, time: Duration) -> io::Result<bool> {
    let version = version_of(address);
    let socket = socket(version.family, SocketType::RAW, Some(version.protocol))?;
    let request = echo_request(version.request, std::process::id() as u16, number);
    sendto(
        &socket,
        &request,
        SendFlags::empty(),
        &SocketAddr::new(address, 0),
    )?;
    let until = Instant::now() + time;
    let mut answer = [0; ANSWER_BYTES];
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        let wait = left.max(Duration::from_millis(1));
        set_socket_timeout(&socket, Timeout::Recv, Some(wait))?;
        match recv(&socket, &mut answer, RecvFlags::empty()) {
            Ok((length, _)) if is_reply(&version, &answer[..length], &request) => return Ok(true),
            Ok(_) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

fn echo_request(kind: u8, identifier: u16, number: u16) -> [u8; HEADER_BYTES] {
    let [id_high, id_low] = identifier.to_be_bytes();
    let [high, low] = number.to_be_bytes();
    let mut request = [kind, 0, 0, 0, id_high, id_low, high, low];
    // The kernel writes ICMPv6's checksum.
    let [sum_high, sum_low] = checksum(&request).to_be_bytes();
    (request[2], request[3]) = (sum_high, sum_low);
    request
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| match *pair {
        [high, low] => u32::from(u16::from_be_bytes([high, low])),
        [high] => u32::from(high) << 8,
        _ => 0,
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn is_reply(version: &ByVersion, packet: &[u8], request: &[u8; HEADER_BYTES]) -> bool {
    let skipped = match (version.has_ip_header, packet.first()) {
        (true, Some(first)) => usize::from(first & 0xf) * 4,
        _ => 0,
    };
    let message = packet.get(skipped..skipped + HEADER_BYTES);
    message.is_some_and(|message| message[0] == version.reply && message[4..] == request[4..])
}

#[cfg(test)]
mod alarm_tests {
    use super::*;
    use nicpoll_observe::InterfaceCounters;
    use nicpoll_observe::LinkCounters;
    use std::collections::BTreeMap;

    fn host(rx_packets: u64, rx_missed: u64, again: u64) -> HostSnapshot {
        let interface = InterfaceCounters {
            link: LinkCounters {
                rx_packets,
                rx_missed,
                ..LinkCounters::default()
            },
            qdisc_drops: Some(0),
            xdp_drops: Some(0),
            peer_tx_dropped: Some(0),
            ..InterfaceCounters::default()
        };
        HostSnapshot {
            interfaces: Some(BTreeMap::from([(2, interface)])),
            protocols: BTreeMap::from([(String::from("Tcp.RetransSegs"), again)]),
            ..HostSnapshot::default()
        }
    }

    fn cause(end: Option<AbEnd>) -> Option<AbEndCause> {
        end.map(|end| end.cause)
    }

    #[test]
    fn losses_and_segments_sent_again_have_a_limit_each() {
        let lost =
            |drops, again| LostPackets::between(&host(0, 0, 0), &host(80_000, drops, again), 4.0);
        let mut limits = Limits::new(2.0, 6.0, &lost(200, 60));
        assert_eq!(lost(0, 0).packets_per_second(), 20_000.0);
        let alone = |drops, again| cause(limits.alone(&lost(drops, again)));
        assert_eq!(alone(399, 399), None);
        assert_eq!(alone(5_000, 0), Some(AbEndCause::Drops));
        assert_eq!(alone(0, 5_000), Some(AbEndCause::Retransmissions));
        assert_eq!(cause(limits.at_once(&lost(5_000, 0))), None);
        let very_many = limits.at_once(&lost(0, 20_000));
        assert_eq!(cause(very_many), Some(AbEndCause::Retransmissions));
        assert_eq!(limits.pair(&lost(200, 60), &lost(5_000, 0)), None);
        let end = limits.pair(&lost(200, 60), &lost(5_000, 0)).unwrap();
        let text = end.text.unwrap();
        let says = "10000 packets were lost in 2 blocks of the judged setting";
        assert!(
            text.starts_with(says) && text.contains("--loss-limit"),
            "{text}"
        );
    }

    #[test]
    fn what_became_of_the_interface_is_told_apart() {
        let well = LinkHealth {
            is_up: true,
            has_carrier: true,
            carrier_changes: Some(2),
            napi_ids: vec![8, 9],
        };
        let now = |change: fn(&mut LinkHealth)| {
            let mut now = well.clone();
            change(&mut now);
            cause(disturbed("em0", &well, Some(&now)))
        };
        assert_eq!(now(|_| ()), None);
        assert_eq!(now(|now| now.is_up = false), Some(AbEndCause::CarrierLost));
        assert_eq!(
            now(|now| now.carrier_changes = Some(4)),
            Some(AbEndCause::CarrierLost)
        );
        assert_eq!(
            now(|now| now.napi_ids = vec![10, 11]),
            Some(AbEndCause::InterfaceChanged)
        );
        let gone = disturbed("em0", &well, None);
        assert_eq!(cause(gone), Some(AbEndCause::InterfaceChanged));
    }
}

#[cfg(test)]
mod echo_tests {
    use super::*;

    #[test]
    fn an_answer_is_the_one_to_this_request() {
        let version = version_of(IpAddr::from([127, 0, 0, 1]));
        let asked = echo_request(8, 0x1234, 7);
        assert_eq!(checksum(&asked), 0);
        let answer = |kind, number| {
            let mut packet = vec![0x45; 20];
            packet.extend(echo_request(kind, 0x1234, number));
            is_reply(&version, &packet, &asked)
        };
        assert!(answer(0, 7));
        // A request, an answer to another request, and half a packet.
        assert!(!answer(8, 7) && !answer(0, 8));
        assert!(!is_reply(&version, &[0x45; 21], &asked));
        assert!(!is_reply(&version, &[], &asked));
    }

    #[test]
    fn the_loopback_answers_where_raw_sockets_are_allowed() {
        nicpoll_testkit::needs!(Root);
        let loopback = IpAddr::from([127, 0, 0, 1]);
        assert!(is_answered(loopback, 1, Duration::from_secs(5)).unwrap());
    }
}
