//! What `nicpoll iperf --json` and `--json-stream` print.
//!
//! What must hold: every record names its stream and its side; the two sides are never added up. The
//! one object of `--json` is made of the same records that `--json-stream` prints one by one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::repeat::RunsSummary;
use crate::{HostDelta, Protocol, Side};

/// Name and version of the layout.
pub const IPERF_SCHEMA: &str = "nicpoll.iperf/5";

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
    /// The server's port, or the first of several (`-p`).
    pub port: u16,
    /// The last port; equal to the first when there is one.
    pub port_max: u16,
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
    /// What the kernel paces each sending socket to (`--fq-rate`); null without.
    pub pacing_bytes_per_second: Option<u64>,
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
    /// Whether a client waits for the server's version before it sends (`-X`).
    pub asks_for_version: bool,
    /// No Nagle (`-N`).
    pub has_nodelay: bool,
    /// Whether one system call may move several datagrams, and a TCP read wait for more (not with
    /// `--no-batch`).
    pub is_batched: bool,
    /// File that the payload comes from (`-F`), `-` for standard input (`-I`); null for the pattern.
    pub input: Option<String>,
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
    /// From the send to the arrival; null unless the client says that both ends have one clock
    /// (`--trip-times`) and no datagram contradicts it. Null for TCP and for a sender.
    pub one_way_delay: Option<IperfTimes>,
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
