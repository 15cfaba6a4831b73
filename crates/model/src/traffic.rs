//! Documents of traffic programs: iperf, netblast, netsend, netreceive, `rr`, and repeated runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cpu::CpuStates;
use crate::document::{Protocol, Side};
use crate::loss::{DropReason, DropReasonGaps, Drops, UncountedLoss};
use crate::units::RateUnit;

/// Changes of this host's counters over a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostDelta {
    /// Length of the run.
    pub duration_seconds: f64,
    /// Shares of each core's time, sampled at the kernel's clock tick: work in step with the tick is misjudged. Empty
    /// without a tick in the run.
    pub cpu_tick_sampled: Vec<CpuStates>,
    /// Context switches of the whole machine.
    pub context_switches: u64,
    /// CPU time of this process.
    pub process_cpu: ProcessCpu,
    /// Packets dropped, by place.
    pub dropped_packets: Drops,
    /// Losses in `dropped_packets` that no counter has, or that a counter may miss.
    pub uncounted: Vec<UncountedLoss>,
    /// This host's packets that the kernel dropped, by its reason, most first; null without drop reasons.
    pub drop_reasons: Option<Vec<DropReason>>,
    /// Drops missing in `drop_reasons`; null when that is null.
    pub drop_reason_gaps: Option<DropReasonGaps>,
    /// Why there are no drop reasons; null when there are.
    pub drop_reasons_missing: Option<String>,
    /// The interfaces that carried or dropped packets; null when they could not be listed.
    pub interfaces: Option<Vec<InterfaceDelta>>,
}

/// CPU time of the process, all threads together. The sum is exact; its split may be sampled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessCpu {
    /// In user space.
    pub user_seconds: f64,
    /// In the kernel on behalf of the process.
    pub system_seconds: f64,
}

/// Packets that one interface carried and dropped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceDelta {
    /// Its name.
    pub name: String,
    /// Packets handed to the driver and not dropped. A batch of datagrams that the interface takes as a whole counts as
    /// one.
    pub tx_packets: u64,
    /// Packets that the driver dropped.
    pub tx_dropped_packets: u64,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets received and dropped before a protocol saw them.
    pub rx_dropped_packets: u64,
    /// Packets dropped by the root queueing discipline.
    pub qdisc_dropped_packets: Option<u64>,
    /// Speed of the line at layer 1; null without a line, as for a virtual interface.
    pub line_bits_per_second: Option<u64>,
    /// Share of the line taken by the sent packets, with preambles and gaps, averaged over the run.
    pub tx_line_ratio: Option<f64>,
    /// The same for received packets.
    pub rx_line_ratio: Option<f64>,
}

/// Name and version of the JSON of [`RrDocument`].
pub const RR_SCHEMA: &str = "nicpoll.rr/2";

/// A distribution of times. A percentile is null with fewer than ten samples beyond it; the others are null without
/// samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Number of samples.
    pub samples: u64,
    /// The shortest.
    pub min_ns: Option<u64>,
    /// Median, from 20 samples on.
    pub p50_ns: Option<u64>,
    /// 90th percentile, from 100 samples on.
    pub p90_ns: Option<u64>,
    /// 99th percentile, from 1000 samples on.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile, from 10000 samples on.
    pub p999_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
    /// Their mean.
    pub mean_ns: Option<f64>,
}

/// One end of a request/response test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrDocument {
    /// Name and version of this layout: [`RR_SCHEMA`].
    pub schema: String,
    /// The request; null when the command failed before it was known.
    pub start: Option<RrStart>,
    /// One record per interval; empty unless requested.
    pub intervals: Vec<RrInterval>,
    /// The result; null when the command failed before anything was sent.
    pub end: Option<RrEnd>,
    /// Why the command failed; null when it did not.
    pub error: Option<String>,
}

/// The request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrStart {
    /// Name and version of this layout: [`RR_SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// The command line.
    pub argv: Vec<String>,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// The request of this side.
    #[serde(flatten)]
    pub side: RrSideStart,
}

/// The request, by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "side", rename_all = "lowercase")]
pub enum RrSideStart {
    /// The end that sends requests.
    Sender(RrClientStart),
    /// The end that responds.
    Receiver(RrServerStart),
}

/// The client's request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrClientStart {
    /// Transport protocol of the messages.
    pub protocol: Protocol,
    /// The server's address and port.
    pub server: String,
    /// Concurrent requests in a closed loop; null in an open loop.
    pub depth_requests: Option<u32>,
    /// Scheduled requests per second in an open loop; null in a closed loop.
    pub scheduled_per_second: Option<f64>,
    /// Length of a request.
    pub request_bytes: u32,
    /// Length of a response.
    pub response_bytes: u32,
    /// Time after which a request counts as lost.
    pub timeout_seconds: f64,
    /// Time limit for sending; null without a limit.
    pub duration_seconds: Option<f64>,
    /// Number of requests to send; null without a limit.
    pub requests: Option<u64>,
}

/// The server's request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrServerStart {
    /// Address on which it serves UDP and TCP.
    pub address: String,
    /// How long it serves; null until a signal.
    pub duration_seconds: Option<f64>,
}

/// Results of an interval, by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "side", rename_all = "lowercase")]
pub enum RrInterval {
    /// The end that sends requests.
    Sender(RrClientInterval),
    /// The end that responds.
    Receiver(RrServerInterval),
}

/// The client's results in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrClientInterval {
    /// Its start, from the first request.
    pub start_seconds: f64,
    /// Its end.
    pub end_seconds: f64,
    /// Requests sent in it.
    pub requests_sent: u64,
    /// Requests answered in it.
    pub transactions: u64,
    /// Requests that timed out in it.
    pub lost_requests: u64,
    /// `transactions` divided by its length.
    pub transactions_per_second: f64,
    /// Latency of the requests answered in it.
    pub latency: Latency,
}

/// The server's results in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrServerInterval {
    /// Its start, from the start of serving.
    pub start_seconds: f64,
    /// Its end.
    pub end_seconds: f64,
    /// Over UDP.
    pub udp: RrServed,
    /// Over TCP.
    pub tcp: RrServed,
}

/// Results of one end, by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "side", rename_all = "lowercase")]
pub enum RrEnd {
    /// The end that sends requests.
    Sender(Box<RrClientEnd>),
    /// The end that responds.
    Receiver(RrServerEnd),
}

/// The client's results: `requests_sent = transactions + lost_requests`, and in an open loop `scheduled_requests =
/// requests_sent + refused_sends + unsent_requests`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrClientEnd {
    /// Requests that were due; null in a closed loop.
    pub scheduled_requests: Option<u64>,
    /// Scheduled requests never sent because the client was late; null in a closed loop.
    pub unsent_requests: Option<u64>,
    /// Requests that the kernel accepted.
    pub requests_sent: u64,
    /// Requests answered in time.
    pub transactions: u64,
    /// Requests not answered in time.
    pub lost_requests: u64,
    /// Of these, requests answered too late.
    pub late_responses: u64,
    /// Sends that the kernel refused.
    pub refused_sends: u64,
    /// Messages that answer no outstanding request.
    pub foreign_messages: u64,
    /// Time from the first request to the last answer, or to the end of sending if that was later.
    pub seconds: f64,
    /// `transactions / seconds`.
    pub transactions_per_second: f64,
    /// Time to the answer: from the send in a closed loop, from the scheduled time in an open loop.
    pub latency: Latency,
    /// Time from the scheduled time to the send: the client's own part of the latency. Null in a closed loop.
    pub send_lag: Option<Latency>,
    /// Whether a signal ended it.
    pub is_interrupted: bool,
}

/// The server's results.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrServerEnd {
    /// How long it served.
    pub seconds: f64,
    /// Over UDP.
    pub udp: RrServed,
    /// Over TCP.
    pub tcp: RrServed,
    /// TCP connections served.
    pub connections: u64,
    /// TCP connections closed at once because there were too many.
    pub refused_connections: u64,
    /// Whether a signal ended it.
    pub is_interrupted: bool,
}

/// A server's counts for one protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RrServed {
    /// Requests read.
    pub requests_received: u64,
    /// Responses that the kernel accepted.
    pub responses_sent: u64,
    /// UDP responses that the kernel refused: no room, no route back, or a filter of this host.
    pub refused_sends: u64,
    /// Messages that are not requests, and UDP requests for a response longer than themselves. They are not answered.
    pub foreign_messages: u64,
    /// Bytes of requests and foreign messages.
    pub bytes_received: u64,
    /// Bytes of responses.
    pub bytes_sent: u64,
}

impl RrServed {
    /// Returns the increase since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        RrServed {
            requests_received: self.requests_received - earlier.requests_received,
            responses_sent: self.responses_sent - earlier.responses_sent,
            refused_sends: self.refused_sends - earlier.refused_sends,
            foreign_messages: self.foreign_messages - earlier.foreign_messages,
            bytes_received: self.bytes_received - earlier.bytes_received,
            bytes_sent: self.bytes_sent - earlier.bytes_sent,
        }
    }
}

/// Name and version of the JSON of [`Netblast`].
pub const NETBLAST_SCHEMA: &str = "nicpoll.netblast/3";
/// Name and version of the JSON of [`Netsend`].
pub const NETSEND_SCHEMA: &str = "nicpoll.netsend/3";
/// Name and version of the JSON of [`Netreceive`].
pub const NETRECEIVE_SCHEMA: &str = "nicpoll.netreceive/3";

/// The head of every object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetrateHead {
    /// Name and version of this layout.
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// The command line.
    pub argv: Vec<String>,
}

/// The result of netblast.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Netblast {
    /// The program.
    #[serde(flatten)]
    pub head: NetrateHead,
    /// Fields that both senders have.
    #[serde(flatten)]
    pub sender: NetrateSender,
    /// Number of sending threads.
    pub threads: usize,
    /// Datagrams per system call; above 1 they were sent in batches.
    pub datagrams_per_system_call: usize,
    /// The sending host's account; null when it could not be kept.
    pub host: Option<HostDelta>,
}

/// The result of netsend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Netsend {
    /// The program.
    #[serde(flatten)]
    pub head: NetrateHead,
    /// Fields that both senders have.
    #[serde(flatten)]
    pub sender: NetrateSender,
    /// The last port; equal to the first if there is only one.
    pub port_max: u16,
    /// Requested packet rate; null for unpaced sending.
    pub asked_packets_per_second: Option<u64>,
    /// Time between datagrams; null for unpaced sending.
    pub interval_ns: Option<u64>,
    /// Clock readings before a datagram was due.
    pub clock_looks_in_vain: u64,
    /// The sending host's account; null when it could not be kept.
    pub host: Option<HostDelta>,
}

/// Fields that both senders have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetrateSender {
    /// `sender`.
    pub side: Side,
    /// Destination address.
    pub peer_address: String,
    /// Destination port, or the first of several.
    pub peer_port: u16,
    /// Length of each datagram's payload.
    pub payload_bytes: usize,
    /// Requested duration; null when it sends until a signal.
    pub asked_duration_seconds: Option<u64>,
    /// Whether a send blocks until there is room.
    pub is_blocking: bool,
    /// When it began (RFC 3339, UTC).
    pub started_at: String,
    /// How long it sent.
    pub elapsed_seconds: f64,
    /// Number of the signal that ended it; null when it ended by itself.
    pub ended_by_signal: Option<i32>,
    /// How the test fell short of the request, and why; null when it did not.
    pub error: Option<String>,
    /// Datagrams it tried to send.
    pub send_calls: u64,
    /// Datagrams that the kernel refused.
    pub send_errors: u64,
    /// Datagrams that the kernel accepted.
    pub send_successes: u64,
    /// The errors by kind.
    pub send_errors_by_errno: Vec<SendErrors>,
    /// Errors divided by calls; null without calls.
    pub error_ratio: Option<f64>,
    /// System calls used for sending.
    pub system_calls: u64,
    /// Calls per second of the elapsed time; null if that is 0.
    pub send_calls_per_second: Option<f64>,
    /// Successes per second of the elapsed time.
    pub sent_packets_per_second: Option<f64>,
    /// The same in bits of payload.
    pub sent_payload_bits_per_second: Option<f64>,
    /// The same in bits of Ethernet frames without FCS, if each datagram is one frame.
    pub sent_frame_bits_per_second: Option<f64>,
}

/// Send calls that failed with one error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SendErrors {
    /// The kernel's error number.
    pub errno: i32,
    /// The kernel's error text.
    pub text: String,
    /// Number of calls.
    pub send_calls: u64,
}

/// The result of netreceive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Netreceive {
    /// The program.
    #[serde(flatten)]
    pub head: NetrateHead,
    /// `receiver`.
    pub side: Side,
    /// The requested port.
    pub port: u16,
    /// Threads reading each socket.
    pub threads_per_socket: usize,
    /// When it began (RFC 3339, UTC).
    pub started_at: String,
    /// Time from start to end.
    pub elapsed_seconds: f64,
    /// Number of the signal that ended it; null when it ended by itself.
    pub ended_by_signal: Option<i32>,
    /// Datagrams that the sockets delivered.
    pub received_packets: u64,
    /// Of these, datagrams received before, by the numbers of netblast and netsend; null when none had such a number,
    /// and when several threads read a socket, because then no thread sees all numbers.
    pub duplicate_packets: Option<u64>,
    /// Bytes of their payload, duplicates included.
    pub received_payload_bytes: u64,
    /// Time from the first datagram to the last; null without datagrams.
    pub receiving_seconds: Option<f64>,
    /// Per second of `receiving_seconds`; null when that is null or 0.
    pub received_packets_per_second: Option<f64>,
    /// Per second of `receiving_seconds`; null when that is null or 0.
    pub received_payload_bits_per_second: Option<f64>,
    /// Datagrams dropped by the sockets, by the kernel's count; null when that cannot be read.
    pub socket_dropped_packets: Option<u64>,
    /// Each socket.
    pub sockets: Vec<ReceivingSocket>,
    /// The receiving host's account; null when it could not be kept.
    pub host: Option<HostDelta>,
}

/// One socket of netreceive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceivingSocket {
    /// Its local address.
    pub address: String,
    /// Requested receive buffer.
    pub receive_buffer_asked_bytes: usize,
    /// Granted receive buffer: twice the requested bytes unless a limit applies.
    pub receive_buffer_granted_bytes: usize,
    /// Datagrams that it delivered.
    pub received_packets: u64,
    /// Datagrams that it dropped; null when that cannot be read.
    pub dropped_packets: Option<u64>,
}

/// Name and version of the JSON of [`IperfRun`].
pub const IPERF_SCHEMA: &str = "nicpoll.iperf/6";

/// A finished test, as `--json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfRun {
    /// The program, and its settings.
    #[serde(flatten)]
    pub start: IperfStart,
    /// Streams in the order of their start.
    pub streams: Vec<IperfStream>,
    /// Sums of intervals, if a side had more than one stream.
    pub interval_sums: Vec<IperfSum>,
    /// Sums of whole streams, for each side and peer, even with a single stream.
    pub sums: Vec<IperfSum>,
    /// The first error, of a stream or before any stream, as a message; null without errors.
    pub error: Option<String>,
    /// The end of the test.
    pub end: IperfEnd,
}

/// One line of `--json-stream`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
pub enum IperfEvent {
    /// The program or a stream has started.
    Start(IperfStartOf),
    /// An interval has ended.
    Interval(IperfIntervalOf),
    /// A stream, all streams of a side and peer, or the program has ended.
    End(IperfEndOf),
    /// An error.
    Error(IperfError),
}

/// What has started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "of", rename_all = "lowercase")]
pub enum IperfStartOf {
    /// A test: the first line, and with `--repeat` the first line of each run.
    Test(Box<IperfStart>),
    /// A stream that has a peer.
    Stream(IperfStreamStart),
}

/// The subject of an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "of", rename_all = "lowercase")]
pub enum IperfIntervalOf {
    /// One stream.
    Stream(IperfInterval),
    /// Several streams.
    Sum(IperfSum),
}

/// What has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "of", rename_all = "lowercase")]
pub enum IperfEndOf {
    /// A stream.
    Stream(Box<IperfTotal>),
    /// All concurrent streams of a side and peer.
    Sum(IperfSum),
    /// A test: the last line without `--repeat`.
    Test(IperfEnd),
    /// All runs of a test: the last line with `--repeat`.
    Runs(Box<RunsSummary>),
}

/// An error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfError {
    /// The stream; null when it never had a peer, and for errors of no particular stream.
    pub id: Option<u32>,
    /// The error, its cause and its remedy, as a message.
    pub message: String,
}

/// The program, and its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfStart {
    /// Name and version of this layout. Check it first.
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// The command line.
    pub argv: Vec<String>,
    /// Name, release and machine of the kernel, as `uname -srm` prints them.
    pub kernel: String,
    /// When it began (RFC 3339, UTC).
    pub started_at: String,
    /// Which end this is.
    pub role: IperfRole,
    /// The settings.
    pub settings: IperfSettings,
}

/// The end that the program is. Either end may send or receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IperfRole {
    /// Connects (`-c`).
    Client,
    /// Accepts connections (`-s`).
    Server,
}

/// Directions of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IperfDirections {
    /// From the client to the server.
    Forward,
    /// From the server to the client (`-R`).
    Reverse,
    /// Both directions over one socket (`--full-duplex`).
    FullDuplex,
    /// Both directions at once, each over its own connection (`-d`).
    Dual,
    /// One direction after the other, each over its own connection (`-r`).
    TradeOff,
}

/// Origin of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The usual direction, from the connecting end to the other. At a client also the stream for which the server
    /// connects back (`-d`, `-r`).
    Forward,
    /// From a server at the client's request (`-R`).
    Reverse,
    /// One of two streams over one socket.
    FullDuplex,
}

/// The settings, with defaults filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfSettings {
    /// TCP or UDP (`-u`).
    pub protocol: Protocol,
    /// The server's name or address as typed; null at a server.
    pub host: Option<String>,
    /// The server's port (`-p`).
    pub port: u16,
    /// Local address as typed (`-B`); null when left to the kernel.
    pub bind: Option<String>,
    /// Directions of the data; null at a server, where each client chooses them.
    pub directions: Option<IperfDirections>,
    /// Bytes per write, read or datagram (`-l`).
    pub length_bytes: u64,
    /// Time to send, or to listen (`-t`); null when another limit ends the test.
    pub duration_seconds: Option<f64>,
    /// Bytes to send (`-n`); null when another limit ends the test.
    pub amount_bytes: Option<u64>,
    /// Rate in bits of payload (`-b`); null without a rate, or with one in datagrams.
    pub rate_bits_per_second: Option<u64>,
    /// Rate in datagrams (`-b Npps`); null without a rate, or with one in bits.
    pub rate_datagrams_per_second: Option<f64>,
    /// Datagrams sent back to back per period (`--burst`); null at a server and with TCP.
    pub burst_datagrams: Option<u32>,
    /// Time between interval records (`-i`); null without them.
    pub interval_seconds: Option<f64>,
    /// Streams (`-P`); null at a server that takes any number.
    pub streams: Option<u32>,
    /// Requested socket buffer (`-w`); null when left to the kernel.
    pub window_bytes: Option<u64>,
    /// IP type of service (`-S`); null when left to the kernel.
    pub type_of_service: Option<u8>,
    /// Requested congestion control (`-Z`); null when left to the kernel.
    pub congestion_control: Option<String>,
    /// Nagle's algorithm is off (`-N`).
    pub has_nodelay: bool,
    /// Whether one system call may move several datagrams, and a TCP read wait for more data (off with `--no-batch`).
    pub is_batched: bool,
}

/// An address with its port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IperfEndpoint {
    /// IPv4 or IPv6 address.
    pub address: String,
    /// Port.
    pub port: u16,
}

/// The start of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfStreamStart {
    /// The stream's number in this program, from 1.
    pub id: u32,
    /// Whether this program sends or receives it.
    pub side: Side,
    /// Its origin.
    pub direction: Direction,
    /// TCP or UDP.
    pub protocol: Protocol,
    /// This end.
    pub local: IperfEndpoint,
    /// The other end.
    pub peer: IperfEndpoint,
    /// The sender's send buffer or the receiver's receive buffer.
    pub socket_buffer: IperfBuffer,
    /// TCP's state right after the handshake; null for UDP.
    pub tcp: Option<IperfTcpStart>,
}

/// A socket buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IperfBuffer {
    /// Requested size; null when left to the kernel.
    pub asked_bytes: Option<u64>,
    /// Size that `getsockopt` reports: on Linux twice the requested size, unless a limit applies.
    pub granted_bytes: u64,
}

/// TCP's state right after the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfTcpStart {
    /// Payload per segment (MSS).
    pub mss_bytes: u32,
    /// Congestion window: segments times MSS.
    pub congestion_window_bytes: u64,
    /// Round-trip time of the handshake.
    pub round_trip_seconds: f64,
    /// Duration of connecting; null at a server.
    pub connect_seconds: Option<f64>,
}

/// Counts of one side over a time, by its own clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfCounts {
    /// Start, in seconds since the stream's start.
    pub start_seconds: f64,
    /// End, in seconds since the stream's start.
    pub end_seconds: f64,
    /// Bytes of payload.
    pub bytes: u64,
    /// Bits of payload per second; null if the time is 0.
    pub bits_per_second: Option<f64>,
    /// Data datagrams sent or received; null for TCP.
    pub datagrams: Option<u64>,
    /// Datagrams per second; null for TCP and if the time is 0.
    pub datagrams_per_second: Option<f64>,
    /// System calls that moved payload: a sender's writes, a receiver's reads.
    pub calls: u64,
    /// Writes that the kernel refused temporarily; null for a receiver.
    pub refused_calls: Option<u64>,
    /// Reads by the data they returned, in eighths of the requested length, smallest first; null except for a TCP
    /// receiver.
    pub reads_by_eighth: Option<Vec<u64>>,
    /// Segments that TCP retransmitted; null except for a TCP sender.
    pub retransmitted_segments: Option<u64>,
    /// Payload per segment (MSS) at the end; null except for one TCP sender.
    pub mss_bytes: Option<u32>,
    /// Congestion window at the end, segments times MSS; null except for one TCP sender.
    pub congestion_window_bytes: Option<u64>,
    /// Smoothed round-trip time at the end; null except for one TCP sender.
    pub round_trip_seconds: Option<f64>,
    /// Its mean deviation; null except for one TCP sender.
    pub round_trip_variation_seconds: Option<f64>,
    /// Increase of the highest id: datagrams sent, as far as known; null except for a UDP receiver.
    pub expected_datagrams: Option<u64>,
    /// Datagrams not received; negative in an interval in which late ones outnumber them; null except for a UDP
    /// receiver.
    pub lost_datagrams: Option<i64>,
    /// Lost over expected; null if none was expected, and except for a UDP receiver.
    pub loss_ratio: Option<f64>,
    /// Datagrams received after one sent later; null except for a UDP receiver.
    pub out_of_order_datagrams: Option<u64>,
    /// Datagrams received again; null except for a UDP receiver.
    pub duplicate_datagrams: Option<u64>,
    /// Jitter by RFC 3550 section 6.4.1 at the end; null below two datagrams, in sums, and except for a UDP receiver.
    pub jitter_seconds: Option<f64>,
}

/// One interval of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfInterval {
    /// The stream.
    pub id: u32,
    /// The side that counted.
    pub side: Side,
    /// Whether the stream ended during the interval.
    pub is_partial: bool,
    /// What was counted.
    #[serde(flatten)]
    pub counts: IperfCounts,
}

/// The sum of the streams of one side and peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfSum {
    /// The side that counted.
    pub side: Side,
    /// Address of the other end.
    pub peer_address: String,
    /// Number of streams.
    pub streams: u32,
    /// Their sum, from the first start to the last end.
    #[serde(flatten)]
    pub counts: IperfCounts,
}

/// A whole stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfTotal {
    /// The stream.
    pub id: u32,
    /// The side that counted.
    pub side: Side,
    /// What was counted.
    #[serde(flatten)]
    pub counts: IperfCounts,
    /// Time from the first write until the other end had read everything and closed; null except for a TCP sender, and
    /// when it did not close in time.
    pub close_seconds: Option<f64>,
    /// The buffer at the end: TCP grows buffers that are left to it.
    pub socket_buffer: IperfBuffer,
    /// Gaps between datagrams: between sends, or between arrivals by the kernel's time stamps. Datagrams sent by one
    /// call or received as one batch have a gap of 0. Null for TCP and below two datagrams.
    pub gaps: Option<IperfTimes>,
    /// The server's report of what it received; null for TCP, for a server, and without a report.
    pub server_report: Option<IperfServerReport>,
}

/// A distribution of times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfTimes {
    /// Number of times.
    pub samples: u64,
    /// Number of times that are 0.
    pub zero_samples: u64,
    /// The shortest.
    pub min_seconds: f64,
    /// Their mean.
    pub mean_seconds: f64,
    /// Median, within 1 %.
    pub p50_seconds: f64,
    /// 90th percentile, within 1 %.
    pub p90_seconds: f64,
    /// 99th percentile, within 1 %.
    pub p99_seconds: f64,
    /// 99.9th percentile, within 1 %.
    pub p999_seconds: f64,
    /// The longest.
    pub max_seconds: f64,
    /// Counts of the times by length, shortest first.
    pub buckets: Vec<IperfBucket>,
}

/// Times of similar length: from the end of the previous bucket (0 for the first) to the end of this one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfBucket {
    /// Its end: all its times are shorter.
    pub below_seconds: f64,
    /// Number of times.
    pub samples: u64,
}

/// A server's report of what it received. iperf 2 counts the end marker as a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfServerReport {
    /// Always the receiver.
    pub side: Side,
    /// Time from the first datagram to the end marker, by the server's clock.
    pub elapsed_seconds: f64,
    /// Bytes of payload.
    pub bytes: u64,
    /// Bits of payload per second; null if the time is 0.
    pub bits_per_second: Option<f64>,
    /// Datagrams sent, including the end marker.
    pub expected_datagrams: u64,
    /// Datagrams not received.
    pub lost_datagrams: u64,
    /// Datagrams received after one sent later.
    pub out_of_order_datagrams: u64,
    /// Jitter.
    pub jitter_seconds: f64,
}

/// A whole stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfStream {
    /// Its start.
    #[serde(flatten)]
    pub start: IperfStreamStart,
    /// Its intervals.
    pub intervals: Vec<IperfInterval>,
    /// Its result, up to its failure if it failed; null if no data flowed.
    pub total: Option<IperfTotal>,
    /// Why it failed or fell short of the request, as a message; null when it did not.
    pub error: Option<String>,
}

/// The end of the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfEnd {
    /// From its beginning to its end.
    pub elapsed_seconds: f64,
    /// Streams that ended without error.
    pub streams_done: u64,
    /// Streams that failed or fell short of the request.
    pub streams_failed: u64,
    /// Streams and intervals omitted from the object because a server had too many; the sums include them. Always 0 in
    /// `--json-stream`.
    pub omitted_records: u64,
    /// Account of this host and process; null when it could not be read.
    pub host: Option<HostDelta>,
}

/// Name and version of the JSON of [`IperfRuns`].
pub const IPERF_RUNS_SCHEMA: &str = "nicpoll.iperf-runs/4";
/// Name and version of the JSON of [`NetblastRuns`].
pub const NETBLAST_RUNS_SCHEMA: &str = "nicpoll.netblast-runs/2";

/// The document of `nicpoll iperf --repeat N --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfRuns {
    /// Name and version of this layout. Check it first.
    pub schema: String,
    /// The runs in order, each as `--json` prints it without `--repeat`.
    pub runs: Vec<IperfRun>,
    /// Their summary: payload of all streams over the time of the longest, by the server's report if there is one.
    pub summary: RunsSummary,
}

/// The document of `nicpoll netblast --repeat N --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetblastRuns {
    /// The program.
    #[serde(flatten)]
    pub head: NetrateHead,
    /// The runs in order, each as `--json` prints it without `--repeat`.
    pub runs: Vec<Netblast>,
    /// Their summary: datagrams that the kernel accepted, over the time of sending.
    pub summary: RunsSummary,
}

/// The summary of the runs of one command. All rates are of one quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunsSummary {
    /// Requested number of runs.
    pub asked_runs: u32,
    /// Runs with a rate; the fields below are computed from these.
    pub done_runs: u32,
    /// The quantity of the rates, with its unit.
    pub quantity: RateUnit,
    /// The rate of each run; null for a run that failed, fell short or was cut short by a signal.
    pub values: Vec<Option<f64>>,
    /// Median of the rates; null without rates.
    pub median: Option<f64>,
    /// Minimum of the rates; null without rates.
    pub min: Option<f64>,
    /// Maximum of the rates; null without rates.
    pub max: Option<f64>,
    /// Lower end of the interval of the typical rate (Hodges-Lehmann, exact signed-rank distribution); null below 6
    /// rates.
    pub interval_low: Option<f64>,
    /// Upper end of the interval.
    pub interval_high: Option<f64>,
    /// Confidence of the interval, 0 to 1.
    pub interval_confidence_ratio: f64,
}
