//! Documents of traffic programs: iperf, netblast, netsend, netreceive, `rr`, and repeated runs of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cpu::CpuStates;
use crate::document::{Protocol, Side};
use crate::loss::{DropReason, DropReasonGaps, Drops, UncountedLoss};
use crate::units::RateUnit;

/// What happened on this host from the beginning of an account to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostDelta {
    /// How long the account was open.
    pub duration_seconds: f64,
    /// Shares of each core's time. The kernel samples them at its clock tick: work in step with the
    /// tick is misjudged. Empty when no tick came in between.
    pub cpu_tick_sampled: Vec<CpuStates>,
    /// Context switches of the whole machine.
    pub context_switches: u64,
    /// CPU time of this process.
    pub process_cpu: ProcessCpu,
    /// Packets dropped, by place.
    pub dropped_packets: Drops,
    /// Losses in `dropped_packets` that no counter has, or that may be missing there.
    pub uncounted: Vec<UncountedLoss>,
    /// Packets of this host that the kernel dropped, by the reason that it gave, most first; null where drop reasons
    /// cannot be had.
    pub drop_reasons: Option<Vec<DropReason>>,
    /// What `drop_reasons` leaves out; null where that is null.
    pub drop_reason_gaps: Option<DropReasonGaps>,
    /// Why there are no drop reasons; null when there are.
    pub drop_reasons_missing: Option<String>,
    /// The interfaces that carried or dropped packets; null when they could not be listed.
    pub interfaces: Option<Vec<InterfaceDelta>>,
}

/// CPU time of the process, all threads together. The sum is exact, its division may be sampled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessCpu {
    /// In user space.
    pub user_seconds: f64,
    /// In the kernel on behalf of the process.
    pub system_seconds: f64,
}

/// What one interface carried and dropped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceDelta {
    /// Its name.
    pub name: String,
    /// Packets handed to the driver and not dropped. A batch of datagrams that the interface takes
    /// whole is one.
    pub tx_packets: u64,
    /// Packets that the driver dropped.
    pub tx_dropped_packets: u64,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets received and dropped before a protocol saw them.
    pub rx_dropped_packets: u64,
    /// Packets that the root queueing discipline dropped.
    pub qdisc_dropped_packets: Option<u64>,
    /// Speed of the line at layer 1; null where there is none, as behind a virtual interface.
    pub line_bits_per_second: Option<u64>,
    /// The share of the line that what was sent took, preambles and gaps included, on average over the
    /// account.
    pub tx_line_ratio: Option<f64>,
    /// The same of what was received.
    pub rx_line_ratio: Option<f64>,
}

/// Name and version of the JSON that [`RrDocument`] becomes.
pub const RR_SCHEMA: &str = "nicpoll.rr/2";

/// A distribution of times. A percentile is reported only with at least ten samples beyond
/// it, else it is null. The others are null when there are no samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// How many there are.
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
    /// What was asked for; null when it failed before that was clear.
    pub start: Option<RrStart>,
    /// One for each interval; empty unless they were asked for.
    pub intervals: Vec<RrInterval>,
    /// What it came to; null when it failed before anything was sent.
    pub end: Option<RrEnd>,
    /// Why it failed; null when it did not.
    pub error: Option<String>,
}

/// What was asked for.
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
    /// By side.
    #[serde(flatten)]
    pub side: RrSideStart,
}

/// What was asked for, by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "side", rename_all = "lowercase")]
pub enum RrSideStart {
    /// The end that asks.
    Sender(RrClientStart),
    /// The end that answers.
    Receiver(RrServerStart),
}

/// What the client was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrClientStart {
    /// What carries the messages.
    pub protocol: Protocol,
    /// The server's address and port.
    pub server: String,
    /// Requests on their way at a time, in a closed loop; null in an open one.
    #[serde(rename = "depth_requests")]
    pub depth: Option<u32>,
    /// Requests scheduled a second, in an open loop; null in a closed one.
    pub scheduled_per_second: Option<f64>,
    /// Length of a request.
    pub request_bytes: u32,
    /// Length of a response.
    pub response_bytes: u32,
    /// Time after which a request counts as lost.
    pub timeout_seconds: f64,
    /// How long to ask; null without a limit.
    pub duration_seconds: Option<f64>,
    /// How many requests to send; null without a limit.
    pub requests: Option<u64>,
}

/// What the server was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrServerStart {
    /// Where it answers, over UDP and TCP.
    pub address: String,
    /// How long to serve; null until a signal.
    pub duration_seconds: Option<f64>,
}

/// What an interval came to, by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "side", rename_all = "lowercase")]
pub enum RrInterval {
    /// The end that asks.
    Sender(RrClientInterval),
    /// The end that answers.
    Receiver(RrServerInterval),
}

/// What an interval came to for the client.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrClientInterval {
    /// Its beginning, counted from the first request.
    pub start_seconds: f64,
    /// Its end.
    pub end_seconds: f64,
    /// Requests sent in it.
    pub requests_sent: u64,
    /// Requests answered in it.
    pub transactions: u64,
    /// Requests given up in it.
    pub lost_requests: u64,
    /// `transactions` over its length.
    pub transactions_per_second: f64,
    /// Of the requests answered in it.
    pub latency: Latency,
}

/// What an interval came to for the server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrServerInterval {
    /// Its beginning, counted from the start of serving.
    pub start_seconds: f64,
    /// Its end.
    pub end_seconds: f64,
    /// Over UDP.
    pub udp: RrServed,
    /// Over TCP.
    pub tcp: RrServed,
}

/// What one end came to, by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "side", rename_all = "lowercase")]
pub enum RrEnd {
    /// The end that asks.
    Sender(Box<RrClientEnd>),
    /// The end that answers.
    Receiver(RrServerEnd),
}

/// What it came to for the client: `requests_sent = transactions + lost_requests`, and in an open loop
/// `scheduled_requests = requests_sent + refused_sends + unsent_requests`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrClientEnd {
    /// Requests whose time had come; null in a closed loop.
    pub scheduled_requests: Option<u64>,
    /// Scheduled requests that the client never came to send, for being behind; null in a closed loop.
    pub unsent_requests: Option<u64>,
    /// Requests that the kernel took.
    pub requests_sent: u64,
    /// Requests answered in time.
    pub transactions: u64,
    /// Requests not answered in time.
    pub lost_requests: u64,
    /// Of these, answered too late.
    pub late_responses: u64,
    /// Sends that the kernel refused.
    pub refused_sends: u64,
    /// Messages that answer no open request.
    pub foreign_messages: u64,
    /// From the first request to the last answer, or to the end of the sending if that was later.
    pub seconds: f64,
    /// `transactions / seconds`.
    pub transactions_per_second: f64,
    /// Time to the answer: from the sending in a closed loop, from the scheduled time in an open one.
    pub latency: Latency,
    /// Time from the scheduled time to the sending: what of the latency is the client's own. Null in a
    /// closed loop.
    pub send_lag: Option<Latency>,
    /// Whether a signal ended it.
    pub is_interrupted: bool,
}

/// What it came to for the server.
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
    /// TCP connections closed at once, there being too many.
    pub refused_connections: u64,
    /// Whether a signal ended it.
    pub is_interrupted: bool,
}

/// What a server did over one protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RrServed {
    /// Requests read.
    pub requests_received: u64,
    /// Responses that the kernel took.
    pub responses_sent: u64,
    /// Responses over UDP that the kernel refused: no room, no route back, or a filter of this host.
    pub refused_sends: u64,
    /// Messages that are no requests, and over UDP those that ask for a response longer than
    /// themselves. They are not answered.
    pub foreign_messages: u64,
    /// Bytes of requests and foreign messages.
    pub bytes_received: u64,
    /// Bytes of responses.
    pub bytes_sent: u64,
}

impl RrServed {
    /// What was added since an earlier look.
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

/// Name and version of the layout.
pub const IPERF_SCHEMA: &str = "nicpoll.iperf/6";

/// A finished test: what `--json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfRun {
    /// What ran, and what it was asked for.
    #[serde(flatten)]
    pub start: IperfStart,
    /// Streams in the order in which they began.
    pub streams: Vec<IperfStream>,
    /// Sums of intervals, where more than one stream of a side counted.
    pub interval_sums: Vec<IperfSum>,
    /// Sums of whole streams: one for each side and peer, of one stream too.
    pub sums: Vec<IperfSum>,
    /// The first thing that went wrong, with a stream or before there was one, in words for people; null
    /// when nothing did.
    pub error: Option<String>,
    /// How it ended.
    pub end: IperfEnd,
}

/// One line of `--json-stream`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
pub enum IperfEvent {
    /// The program or a stream has begun.
    Start(IperfStartOf),
    /// An interval has ended.
    Interval(IperfIntervalOf),
    /// A stream, all streams of a side and peer, or the program has ended.
    End(IperfEndOf),
    /// Something failed.
    Error(IperfError),
}

/// What has begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "of", rename_all = "lowercase")]
pub enum IperfStartOf {
    /// A test: the first line, and with `--repeat` that of each run.
    Test(Box<IperfStart>),
    /// A stream, which has a peer now.
    Stream(IperfStreamStart),
}

/// Whose interval has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "of", rename_all = "lowercase")]
pub enum IperfIntervalOf {
    /// That of one stream.
    Stream(IperfInterval),
    /// That of several streams.
    Sum(IperfSum),
}

/// What has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "of", rename_all = "lowercase")]
pub enum IperfEndOf {
    /// A stream.
    Stream(Box<IperfTotal>),
    /// All streams of a side and peer that ran at a time.
    Sum(IperfSum),
    /// A test: the last line without `--repeat`.
    Test(IperfEnd),
    /// All runs of a test: the last line with `--repeat`.
    Runs(Box<RunsSummary>),
}

/// What failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfError {
    /// The stream; null when it never had a peer, and when it was none in particular.
    pub id: Option<u32>,
    /// What, why, and what to do: for people.
    pub message: String,
}

/// What ran, and what it was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfStart {
    /// Name and version of this layout: check it first.
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
    /// What was asked for.
    pub settings: IperfSettings,
}

/// Which end of the test a program is. Either may send or receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IperfRole {
    /// It connects (`-c`).
    Client,
    /// It is connected to (`-s`).
    Server,
}

/// Which ways data are to flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IperfDirections {
    /// From the client to the server.
    Forward,
    /// From the server to the client (`-R`).
    Reverse,
    /// Both over one socket (`--full-duplex`).
    FullDuplex,
    /// Both at once, over a connection each (`-d`).
    Dual,
    /// One after the other, over a connection each (`-r`).
    TradeOff,
}

/// How a stream came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The usual way, from the end that connected to the other. At a client that is also what the server
    /// connects back for (`-d`, `-r`).
    Forward,
    /// From a server that was asked to send.
    Reverse,
    /// One of two over one socket.
    FullDuplex,
}

/// What was asked for, defaults filled in.
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
    /// Which ways data are to flow; null at a server, which every client tells.
    pub directions: Option<IperfDirections>,
    /// Bytes of a write, of a read or of a datagram (`-l`).
    pub length_bytes: u64,
    /// Time to send, or to listen (`-t`); null when something else ends the test.
    pub duration_seconds: Option<f64>,
    /// Bytes to send (`-n`); null when something else ends the test.
    pub amount_bytes: Option<u64>,
    /// Rate in bits of payload (`-b`); null when there is none, or one in datagrams.
    pub rate_bits_per_second: Option<u64>,
    /// Rate in datagrams (`-b Npps`); null when there is none, or one in bits.
    pub rate_datagrams_per_second: Option<f64>,
    /// Datagrams sent back to back a period (`--burst`); null at a server and with TCP.
    pub burst_datagrams: Option<u32>,
    /// Time between interval records (`-i`); null without.
    pub interval_seconds: Option<f64>,
    /// Streams (`-P`); null at a server that takes any number.
    pub streams: Option<u32>,
    /// Socket buffer asked for (`-w`); null when left to the kernel.
    pub window_bytes: Option<u64>,
    /// IP type of service (`-S`); null when left to the kernel.
    pub type_of_service: Option<u8>,
    /// Congestion control asked for (`-Z`); null when left to the kernel.
    pub congestion_control: Option<String>,
    /// No Nagle (`-N`).
    pub has_nodelay: bool,
    /// Whether one system call may move several datagrams, and a TCP read wait for more (not with
    /// `--no-batch`).
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

/// A stream at its beginning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfStreamStart {
    /// The stream's number, from 1, in this program.
    pub id: u32,
    /// Whether this program sends or receives it.
    pub side: Side,
    /// How it came about.
    pub direction: Direction,
    /// TCP or UDP.
    pub protocol: Protocol,
    /// This end.
    pub local: IperfEndpoint,
    /// The other end.
    pub peer: IperfEndpoint,
    /// The sender's send buffer or the receiver's receive buffer.
    pub socket_buffer: IperfBuffer,
    /// What TCP knew right after the handshake; null for UDP.
    pub tcp: Option<IperfTcpStart>,
}

/// A socket buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IperfBuffer {
    /// What was asked for; null when it was left to the kernel.
    pub asked_bytes: Option<u64>,
    /// What `getsockopt` reports: on Linux twice what was asked for, unless a limit cut it.
    pub granted_bytes: u64,
}

/// TCP right after the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfTcpStart {
    /// Payload of a segment.
    pub mss_bytes: u32,
    /// Congestion window: segments times their payload.
    pub congestion_window_bytes: u64,
    /// Round-trip time of the handshake.
    pub round_trip_seconds: f64,
    /// How long connecting took; null at a server.
    pub connect_seconds: Option<f64>,
}

/// What one side counted from start to end, by its own clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfCounts {
    /// Start, in seconds since the stream's start.
    pub start_seconds: f64,
    /// End, in seconds since the stream's start.
    pub end_seconds: f64,
    /// Payload.
    pub bytes: u64,
    /// Payload over the time; null when it took none.
    pub bits_per_second: Option<f64>,
    /// Datagrams of data sent or received; null for TCP.
    pub datagrams: Option<u64>,
    /// Datagrams over the time; null for TCP and when it took none.
    pub datagrams_per_second: Option<f64>,
    /// System calls that moved payload: writes of a sender, reads of a receiver.
    pub calls: u64,
    /// Writes that the kernel refused for the moment; null for a receiver.
    pub refused_calls: Option<u64>,
    /// Reads by what they yielded, in eighths of the length asked for, smallest first; null but for a
    /// receiver of TCP.
    pub reads_by_eighth: Option<Vec<u64>>,
    /// Segments that TCP sent again; null but for a sender of TCP.
    pub retransmitted_segments: Option<u64>,
    /// Payload of a segment at the end; null but for one sender of TCP.
    pub mss_bytes: Option<u32>,
    /// Congestion window at the end, segments times their payload; null but for one sender of TCP.
    pub congestion_window_bytes: Option<u64>,
    /// Smoothed round-trip time at the end; null but for one sender of TCP.
    pub round_trip_seconds: Option<f64>,
    /// Its mean deviation; null but for one sender of TCP.
    pub round_trip_variation_seconds: Option<f64>,
    /// By how much the highest id grew: datagrams that were sent, as far as known; null but for a
    /// receiver of UDP.
    pub expected_datagrams: Option<u64>,
    /// Datagrams that did not come; less than none in an interval in which more came late; null but for
    /// a receiver of UDP.
    pub lost_datagrams: Option<i64>,
    /// Lost over expected; null when none was expected, and but for a receiver of UDP.
    pub loss_ratio: Option<f64>,
    /// Datagrams that came after one sent later; null but for a receiver of UDP.
    pub out_of_order_datagrams: Option<u64>,
    /// Datagrams that came again; null but for a receiver of UDP.
    pub duplicate_datagrams: Option<u64>,
    /// Jitter after RFC 3550 section 6.4.1 at the end; null below two datagrams, in sums, and but for a
    /// receiver of UDP.
    pub jitter_seconds: Option<f64>,
}

/// One interval of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfInterval {
    /// The stream.
    pub id: u32,
    /// The side that counted.
    pub side: Side,
    /// Whether the stream ended within the interval.
    pub is_partial: bool,
    /// What was counted.
    #[serde(flatten)]
    pub counts: IperfCounts,
}

/// Streams of one side and one peer together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfSum {
    /// The side that counted.
    pub side: Side,
    /// Address of the other end.
    pub peer_address: String,
    /// How many streams.
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
    /// From the first write until the other end had read everything and closed; null but for a sender of
    /// TCP, and when it did not close in time.
    pub close_seconds: Option<f64>,
    /// The buffer at the end: TCP lets buffers grow that are left to it.
    pub socket_buffer: IperfBuffer,
    /// Gaps between datagrams: of their sends, or of their arrivals by the kernel's times. Datagrams that
    /// one call sent or that arrived as one batch have a gap of 0. Null for TCP and below two datagrams.
    pub gaps: Option<IperfTimes>,
    /// What the server says that it received; null for TCP, for a server, and when it did not say.
    pub server_report: Option<IperfServerReport>,
}

/// How times spread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfTimes {
    /// How many there are.
    pub samples: u64,
    /// How many of them are 0.
    pub zero_samples: u64,
    /// The shortest.
    pub min_seconds: f64,
    /// Their mean.
    pub mean_seconds: f64,
    /// The median, within 1 %.
    pub p50_seconds: f64,
    /// 90 % are no longer, within 1 %.
    pub p90_seconds: f64,
    /// 99 % are no longer, within 1 %.
    pub p99_seconds: f64,
    /// 99.9 % are no longer, within 1 %.
    pub p999_seconds: f64,
    /// The longest.
    pub max_seconds: f64,
    /// The same times counted by length, shortest first.
    pub buckets: Vec<IperfBucket>,
}

/// Times of similar length: from where the bucket before ends (0 for the first one) to where this one
/// does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfBucket {
    /// Where it ends: all times in it are shorter.
    pub below_seconds: f64,
    /// How many there are.
    pub samples: u64,
}

/// What a server says that it received. iperf 2 counts the end marker as a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfServerReport {
    /// Always the receiver.
    pub side: Side,
    /// From the first datagram to the end marker by the server's clock.
    pub elapsed_seconds: f64,
    /// Payload.
    pub bytes: u64,
    /// Payload over the time; null when it took none.
    pub bits_per_second: Option<f64>,
    /// Datagrams that were sent, the end marker included.
    pub expected_datagrams: u64,
    /// Datagrams that did not come.
    pub lost_datagrams: u64,
    /// Datagrams that came after one sent later.
    pub out_of_order_datagrams: u64,
    /// Jitter.
    pub jitter_seconds: f64,
}

/// A stream from its beginning to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfStream {
    /// How it began.
    #[serde(flatten)]
    pub start: IperfStreamStart,
    /// Its intervals.
    pub intervals: Vec<IperfInterval>,
    /// What it came to, until it failed if it did; null when nothing flowed before.
    pub total: Option<IperfTotal>,
    /// Why it failed or came to less than was asked, in words for people; null when it did not.
    pub error: Option<String>,
}

/// How the program ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfEnd {
    /// From its beginning to its end.
    pub elapsed_seconds: f64,
    /// Streams that ended well.
    pub streams_done: u64,
    /// Streams that failed, or came to less than was asked.
    pub streams_failed: u64,
    /// Streams and intervals that the one object leaves out because a server saw too many; the sums
    /// hold them. 0 in `--json-stream`, which leaves out none.
    pub omitted_records: u64,
    /// What this host and this process did meanwhile; null when it could not be read.
    pub host: Option<HostDelta>,
}

/// Name and version of the JSON that [`IperfRuns`] becomes.
pub const IPERF_RUNS_SCHEMA: &str = "nicpoll.iperf-runs/4";
/// Name and version of the JSON that [`NetblastRuns`] becomes.
pub const NETBLAST_RUNS_SCHEMA: &str = "nicpoll.netblast-runs/2";

/// What `nicpoll iperf --repeat N --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfRuns {
    /// Name and version of this layout: check it first.
    pub schema: String,
    /// The runs in the order in which they were made, each as `--json` prints it without `--repeat`.
    pub runs: Vec<IperfRun>,
    /// What they came to: payload of all streams together over the time of the longest, as the server's report tells it
    /// where there is one.
    pub summary: RunsSummary,
}

/// What `nicpoll netblast --repeat N --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetblastRuns {
    /// Who tells it.
    #[serde(flatten)]
    pub head: NetrateHead,
    /// The runs in the order in which they were made, each as `--json` prints it without `--repeat`.
    pub runs: Vec<Netblast>,
    /// What they came to: datagrams that the kernel took, over the time that sending took.
    pub summary: RunsSummary,
}

/// What the runs of one command came to together. Its rates are all of one quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunsSummary {
    /// How many runs were asked for.
    pub asked_runs: u32,
    /// How many of them have a rate, which the rest of this rests on.
    pub done_runs: u32,
    /// What the rates are, with their unit.
    pub quantity: RateUnit,
    /// The rate of each run; null for one that failed, fell short or was cut short by a signal.
    pub values: Vec<Option<f64>>,
    /// The median of the rates; null when there is none.
    pub median: Option<f64>,
    /// The least rate; null when there is none.
    pub min: Option<f64>,
    /// The greatest rate; null when there is none.
    pub max: Option<f64>,
    /// Lower end of the interval of the typical rate (Hodges-Lehmann, exact signed-rank distribution); null
    /// below 6 rates.
    pub interval_low: Option<f64>,
    /// Its upper end.
    pub interval_high: Option<f64>,
    /// How sure the interval is, 0 to 1.
    pub interval_confidence_ratio: f64,
}
