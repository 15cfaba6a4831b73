//! What `nicpoll netblast`, `netsend` and `netreceive` print with `--json`.
//!
//! What must hold: a send error is told from a packet that was lost later, and each end tells only what it
//! counted itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{HostDelta, Side};

/// Name and version of the JSON that [`Netblast`] becomes.
pub const NETBLAST_SCHEMA: &str = "nicpoll.netblast/3";
/// Name and version of the JSON that [`Netsend`] becomes.
pub const NETSEND_SCHEMA: &str = "nicpoll.netsend/3";
/// Name and version of the JSON that [`Netreceive`] becomes.
pub const NETRECEIVE_SCHEMA: &str = "nicpoll.netreceive/3";

/// What every object begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetrateHead {
    /// Name and version of the object's layout.
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// The command line.
    pub argv: Vec<String>,
}

/// What netblast tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Netblast {
    /// Who tells it.
    #[serde(flatten)]
    pub head: NetrateHead,
    /// As of both senders.
    #[serde(flatten)]
    pub sender: NetrateSender,
    /// Threads that sent.
    pub threads: usize,
    /// Above 1 datagrams were sent in batches.
    pub datagrams_per_system_call: usize,
    /// The sending host's account; null when it could not be kept.
    pub host: Option<HostDelta>,
}

/// What netsend tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Netsend {
    /// Who tells it.
    #[serde(flatten)]
    pub head: NetrateHead,
    /// As of both senders.
    #[serde(flatten)]
    pub sender: NetrateSender,
    /// The last port; equal to the first when there is one.
    pub port_max: u16,
    /// Null when it was not to be paced.
    pub asked_packets_per_second: Option<u64>,
    /// From one datagram to the next; null when it was not to be paced.
    pub interval_ns: Option<u64>,
    /// How often the clock was looked at before a datagram was due.
    pub clock_looks_in_vain: u64,
    /// The sending host's account; null when it could not be kept.
    pub host: Option<HostDelta>,
}

/// What both senders tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetrateSender {
    /// `sender`.
    pub side: Side,
    /// Where to.
    pub peer_address: String,
    /// Where to: the port, or the first of several.
    pub peer_port: u16,
    /// Length of each datagram's payload.
    pub payload_bytes: usize,
    /// Null when it was to send until a signal comes.
    pub asked_duration_seconds: Option<u64>,
    /// Whether a send waits for room.
    pub is_blocking: bool,
    /// When it began (RFC 3339, UTC).
    pub started_at: String,
    /// How long sending took.
    pub elapsed_seconds: f64,
    /// The signal's number; null when it ended by itself.
    pub ended_by_signal: Option<i32>,
    /// What the test came short of, and why; null when it obtained what was asked for.
    pub error: Option<String>,
    /// Datagrams that were to be sent.
    pub send_calls: u64,
    /// Datagrams that the kernel refused.
    pub send_errors: u64,
    /// Datagrams that the kernel took.
    pub send_successes: u64,
    /// The errors by their kind.
    pub send_errors_by_errno: Vec<SendErrors>,
    /// Errors over calls; null without a call.
    pub error_ratio: Option<f64>,
    /// System calls that sending took.
    pub system_calls: u64,
    /// Calls over the elapsed time; null when that is 0.
    pub send_calls_per_second: Option<f64>,
    /// Successes over the elapsed time.
    pub sent_packets_per_second: Option<f64>,
    /// The same as bits of payload.
    pub sent_payload_bits_per_second: Option<f64>,
    /// The same as bits of Ethernet frames without FCS, if each datagram is one frame.
    pub sent_frame_bits_per_second: Option<f64>,
}

/// Send calls that failed in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SendErrors {
    /// The kernel's number of the error.
    pub errno: i32,
    /// Its words for it.
    pub text: String,
    /// How many calls.
    pub send_calls: u64,
}

/// What netreceive tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Netreceive {
    /// Who tells it.
    #[serde(flatten)]
    pub head: NetrateHead,
    /// `receiver`.
    pub side: Side,
    /// The port that was asked for.
    pub port: u16,
    /// Threads that read each socket.
    pub threads_per_socket: usize,
    /// When it began (RFC 3339, UTC).
    pub started_at: String,
    /// From the start to the end.
    pub elapsed_seconds: f64,
    /// The signal's number; null when it ended by itself.
    pub ended_by_signal: Option<i32>,
    /// Datagrams that the sockets handed over.
    pub received_packets: u64,
    /// Those of them that had come before, by the numbers of netblast and netsend; null when none had such a number,
    /// and when several threads read a socket, since then no thread sees all numbers.
    pub duplicate_packets: Option<u64>,
    /// Bytes of their payload, duplicates included.
    pub received_payload_bytes: u64,
    /// From the first datagrams to the last ones; null when none came.
    pub receiving_seconds: Option<f64>,
    /// Over `receiving_seconds`; null when that is null or 0.
    pub received_packets_per_second: Option<f64>,
    /// Over `receiving_seconds`; null when that is null or 0.
    pub received_payload_bits_per_second: Option<f64>,
    /// What the sockets dropped, by the kernel's count; null when that cannot be read.
    pub socket_dropped_packets: Option<u64>,
    /// Each socket.
    pub sockets: Vec<ReceivingSocket>,
    /// The receiving host's account; null when it could not be kept.
    pub host: Option<HostDelta>,
}

/// One socket of netreceive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceivingSocket {
    /// What it is bound to.
    pub address: String,
    /// Receive buffer that was asked for.
    pub receive_buffer_asked_bytes: usize,
    /// Receive buffer that the kernel granted: twice the bytes asked unless a limit cut it.
    pub receive_buffer_granted_bytes: usize,
    /// Datagrams that it handed over.
    pub received_packets: u64,
    /// Datagrams that it dropped; null when that cannot be read.
    pub dropped_packets: Option<u64>,
}
