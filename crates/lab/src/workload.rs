//! Workloads as data: the traffic, the version of IP, one way or both, and background traffic.
//!
//! Background traffic is only load. It starts before the measured traffic; the account of losses counts the datagrams
//! of both.

pub mod command;

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use nicpoll_iperf::{TcpWorkload, UdpWorkload};
use nicpoll_model::Side;
use nicpoll_model::line::IpVersion;
use nicpoll_model::numbers::count;
use nicpoll_traffic::netrate::NetrateWorkload;
use nicpoll_traffic::rr::RrWorkload;
use nicpoll_traffic::scheduled::{MixWorkload, PulseWorkload, ReplayWorkload};
use nicpoll_traffic::workload::Workload;
use serde::{Deserialize, Serialize};

use crate::error::Refused;
use crate::workload::command::CommandWorkload;

/// The largest payload of UDP over IPv6.
const PAYLOAD_BYTES_MAX_IPV6: u64 = 65_487;

/// Pulses come a millisecond apart.
const PULSES_PER_SECOND: u32 = 1000;

/// The kinds of traffic. A new kind is a variant here and its implementation of [`Workload`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum WorkloadRequest {
    /// One TCP stream of iperf's.
    Tcp(TcpWorkload),
    /// One UDP stream of iperf's.
    Udp(UdpWorkload),
    /// Request and response.
    Rr(RrWorkload),
    /// netblast to netreceive.
    Netrate(NetrateWorkload),
    /// Datagrams in pulses of a millisecond.
    Pulses(PulseWorkload),
    /// Datagrams of several lengths in turn, at a rate.
    Mix(MixWorkload),
    /// The datagrams of a capture.
    Replay(ReplayWorkload),
    /// A program of the user's.
    Command(CommandWorkload),
}

impl WorkloadRequest {
    /// Description in one line.
    pub fn describe(&self) -> String {
        match self {
            WorkloadRequest::Tcp(_) => String::from("one TCP stream, one way, as fast as it goes"),
            WorkloadRequest::Udp(udp) => {
                let rate = udp.packets_per_second.map_or_else(
                    || String::from("as fast as one sender goes"),
                    |rate| format!("{rate} a second"),
                );
                format!("UDP with {} bytes of payload, {rate}", udp.payload_bytes)
            }
            WorkloadRequest::Rr(rr) => {
                let pace = match (rr.requests_per_second, rr.clients()) {
                    (None, _) => String::from("one at a time"),
                    (Some(rate), 1) => format!("{rate} a second"),
                    (Some(rate), _) => format!("{rate} a second together"),
                };
                let clients = match rr.clients() {
                    1 => String::new(),
                    clients => format!(" of {clients} clients"),
                };
                format!(
                    "request and response{clients} over {}, 64 bytes each, {pace}",
                    rr.protocol().name()
                )
            }
            WorkloadRequest::Pulses(pulses) => format!(
                "every ms {} datagrams at once with {} bytes of payload",
                pulses.packets_per_pulse, pulses.payload_bytes
            ),
            WorkloadRequest::Mix(mix) => {
                let lengths: Vec<String> = mix.payload_bytes.iter().map(u16::to_string).collect();
                format!(
                    "UDP with {} bytes of payload in turn, {} a second",
                    lengths.join(", "),
                    mix.packets_per_second
                )
            }
            WorkloadRequest::Replay(replay) => {
                format!(
                    "the UDP datagrams of {}, as recorded",
                    replay.file.display()
                )
            }
            WorkloadRequest::Netrate(netrate) => format!(
                "netblast to netreceive, {} bytes of payload, as fast as it goes",
                netrate.payload_bytes
            ),
            WorkloadRequest::Command(command) => command.to_string(),
        }
    }

    /// Checks that it can be sent over this IP version.
    ///
    /// # Errors
    /// With what is out of range, and what is possible.
    pub fn check(&self, ip: IpVersion) -> Result<(), Refused> {
        let (payload, of_traffic, buffer) = match self {
            WorkloadRequest::Tcp(_) => (None, None, None),
            WorkloadRequest::Command(command) => return command.check(),
            WorkloadRequest::Replay(it) => {
                it.check()?;
                (None, None, it.receive_buffer_bytes)
            }
            WorkloadRequest::Mix(it) => {
                check_number("lengths of a mix", it.payload_bytes.len() as u64)?;
                for bytes in &it.payload_bytes {
                    check_number("payload_bytes of a mix", (*bytes).into())?;
                }
                let rate = ("packets_per_second", it.packets_per_second.get());
                (None, Some(rate), it.receive_buffer_bytes)
            }
            WorkloadRequest::Rr(it) => {
                check_number("clients", it.clients().into())?;
                let rate = it.requests_per_second.map(|rate| rate.get().into());
                let rate = rate.map(|rate| ("requests_per_second", rate));
                (None, rate, it.receive_buffer_bytes)
            }
            WorkloadRequest::Udp(it) => {
                let rate = it.packets_per_second.map(NonZeroU64::get);
                let rate = rate.map(|rate| ("packets_per_second", rate));
                (Some(it.payload_bytes), rate, it.receive_buffer_bytes)
            }
            WorkloadRequest::Netrate(it) => (Some(it.payload_bytes), None, None),
            WorkloadRequest::Pulses(it) => {
                let pulse = ("packets_per_pulse", it.packets_per_pulse.get().into());
                (Some(it.payload_bytes), Some(pulse), it.receive_buffer_bytes)
            }
        };
        let payload = payload.map(|bytes| ("payload_bytes", u64::from(bytes)));
        let buffer = buffer.map(|bytes| ("receive_buffer_bytes", bytes as u64));
        for (key, number) in [payload, of_traffic, buffer].into_iter().flatten() {
            check_number(key, number)?;
        }
        match payload {
            Some((key, bytes)) if ip == IpVersion::V6 && bytes > PAYLOAD_BYTES_MAX_IPV6 => {
                let most = count(PAYLOAD_BYTES_MAX_IPV6);
                Err(Refused(format!(
                    "{key} = {bytes} is out of range over IPv6; give at most {most} bytes"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Returns the workload at this many datagrams (`rr`: requests) a second, as near as its pulses allow; `None` for
    /// traffic that goes as fast as it can.
    pub fn at_rate(self, per_second: u64) -> Option<Self> {
        let at_most_32_bits = || u32::try_from(per_second).unwrap_or(u32::MAX);
        Some(match self {
            WorkloadRequest::Udp(udp) => WorkloadRequest::Udp(UdpWorkload {
                packets_per_second: NonZeroU64::new(per_second),
                ..udp
            }),
            WorkloadRequest::Rr(rr) => WorkloadRequest::Rr(RrWorkload {
                requests_per_second: NonZeroU32::new(at_most_32_bits()),
                ..rr
            }),
            WorkloadRequest::Pulses(pulses) => {
                let of_pulse = (at_most_32_bits() / PULSES_PER_SECOND).clamp(1, PULSE_PACKETS_MAX);
                WorkloadRequest::Pulses(PulseWorkload {
                    packets_per_pulse: NonZeroU32::new(of_pulse)?,
                    ..pulses
                })
            }
            WorkloadRequest::Mix(mix) => WorkloadRequest::Mix(MixWorkload {
                packets_per_second: NonZeroU64::new(per_second)?,
                ..mix
            }),
            _ => return None,
        })
    }

    /// Requested rate a second; `None` if it goes as fast as it can.
    pub fn asked_per_second(&self) -> Option<u64> {
        match self {
            WorkloadRequest::Udp(udp) => udp.packets_per_second.map(NonZeroU64::get),
            WorkloadRequest::Rr(rr) => rr.requests_per_second.map(|rate| rate.get().into()),
            WorkloadRequest::Pulses(pulses) => {
                Some(u64::from(pulses.packets_per_pulse.get()) * u64::from(PULSES_PER_SECOND))
            }
            WorkloadRequest::Mix(mix) => Some(mix.packets_per_second.get()),
            _ => None,
        }
    }

    /// Replaces a setting's variant in the words of the user's command.
    #[must_use]
    pub fn with(self, variant: &BTreeMap<String, String>) -> Self {
        match self {
            WorkloadRequest::Command(command) => WorkloadRequest::Command(command.with(variant)),
            other => other,
        }
    }

    /// Returns the user of the workload's programs; `None` if it runs none.
    pub fn runs_as(&self) -> Option<String> {
        match self {
            WorkloadRequest::Command(command) => Some(command.runs_as()),
            _ => None,
        }
    }

    /// The implementation.
    pub fn workload(&self) -> &dyn Workload {
        match self {
            WorkloadRequest::Tcp(workload) => workload,
            WorkloadRequest::Udp(workload) => workload,
            WorkloadRequest::Rr(workload) => workload,
            WorkloadRequest::Netrate(workload) => workload,
            WorkloadRequest::Pulses(workload) => workload,
            WorkloadRequest::Mix(workload) => workload,
            WorkloadRequest::Replay(workload) => workload,
            WorkloadRequest::Command(workload) => workload,
        }
    }
}

/// How a workload's traffic runs: one way over IPv4 and without background traffic by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficOptions {
    /// Version of IP of all its traffic.
    #[serde(default)]
    pub ip: IpVersion,
    /// Whether the same traffic runs the other way at the same time. The rate is that of both ways together.
    #[serde(default)]
    pub both_ways: bool,
    /// Background traffic, which is not part of the result.
    #[serde(default, rename = "beside")]
    pub background: Vec<BackgroundTraffic>,
    /// Whether a separate run measures the CPU share of a program on the receiver's core.
    #[serde(default)]
    pub spinner: bool,
}

/// Traffic that runs at the same time and is not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackgroundTraffic {
    /// The traffic.
    pub traffic: WorkloadRequest,
    /// The host that sends it.
    #[serde(default = "from_sender")]
    pub from: Side,
}

fn from_sender() -> Side {
    Side::Sender
}

/// Limit of streams at once on one path.
const STREAMS_MAX: usize = 8;

impl TrafficOptions {
    /// Checks that they can be applied to this traffic.
    ///
    /// # Errors
    /// With what is out of range, and what is possible.
    pub fn check(&self, request: &WorkloadRequest) -> Result<(), Refused> {
        if self.background.len() >= STREAMS_MAX {
            return Err(Refused(format!(
                "{} background workloads are out of range; give at most {}",
                self.background.len(),
                STREAMS_MAX - 1
            )));
        }
        let background = self.background.iter().map(|one| &one.traffic);
        for request in std::iter::once(request).chain(background) {
            request.check(self.ip)?;
        }
        Ok(())
    }

    /// Measured streams on each path.
    pub fn ways(&self) -> u64 {
        if self.both_ways { 2 } else { 1 }
    }

    /// Returns the text that follows the traffic's description.
    pub fn words(&self) -> String {
        let mut words = String::new();
        if self.ip == IpVersion::V6 {
            words += ", over IPv6";
        }
        if self.both_ways {
            words += ", and the same the other way";
        }
        for (index, one) in self.background.iter().enumerate() {
            let joint = if index == 0 {
                "; in the background"
            } else {
                " and"
            };
            words += &format!("{joint} {} from the {}", one.traffic.describe(), one.from);
        }
        if self.spinner {
            words += "; a run of its own has a program compute on the receiver's core";
        }
        words
    }
}

/// Receive buffer of nicpoll's own workloads: large enough that no datagram is lost while the receiver is preempted.
/// The path to the socket is studied.
pub const RECEIVE_BUFFER_BYTES: usize = 8 << 20;

/// One UDP stream, as fast as one sender goes.
pub fn udp(payload_bytes: u16) -> WorkloadRequest {
    WorkloadRequest::Udp(UdpWorkload {
        payload_bytes,
        packets_per_second: None,
        receive_buffer_bytes: Some(RECEIVE_BUFFER_BYTES),
    })
}

/// Datagrams of a pulse: as many as one core sends in its time.
pub(crate) const PULSE_PACKETS_MAX: u32 = 4096;

/// The highest rate that a file can ask for, a second.
pub const RATE_MAX: u64 = 100_000_000;

/// The numbers of files by their keys: from, to, and what they count.
const NUMBERS: [(&str, u64, u64, &str); 9] = [
    // The shortest datagram holds what every kind of workload writes into it.
    ("payload_bytes", 20, 65_507, "bytes"),
    ("lengths of a mix", 1, 64, "lengths"),
    // Each is numbered, and fits a packet of IPv6, too.
    ("payload_bytes of a mix", 4, PAYLOAD_BYTES_MAX_IPV6, "bytes"),
    ("packets_per_second", 1, RATE_MAX, "a second"),
    ("requests_per_second", 1, RATE_MAX, "a second"),
    // Each client is a thread.
    ("clients", 1, 256, "clients"),
    (
        "packets_per_pulse",
        1,
        PULSE_PACKETS_MAX as u64,
        "datagrams",
    ),
    // The kernel doubles it in 32 bits.
    ("receive_buffer_bytes", 1, (1 << 30) - 1, "bytes"),
    ("links", 1, 8, "links"),
];

/// Returns the bounds of a number in words, such as `20 to 65,507 bytes`; `None` for a key without bounds.
pub fn bounds_of(key: &str) -> Option<String> {
    let (_, least, most, unit) = NUMBERS.iter().find(|(known, ..)| *known == key)?;
    Some(format!("{} to {} {unit}", count(least), count(most)))
}

/// Refuses a file's number outside its bounds.
pub(crate) fn check_number(key: &str, number: u64) -> Result<(), Refused> {
    let mut bounds = NUMBERS.iter();
    let bounds = bounds.find(|(known, ..)| *known == key);
    match bounds.is_none_or(|(_, least, most, _)| (*least..=*most).contains(&number)) {
        true => Ok(()),
        false => Err(Refused(format!(
            "{key} = {number} is out of range; give {}",
            bounds_of(key).unwrap_or_default()
        ))),
    }
}
