//! Documents of the engine's applications (sink, blast, forward) and of its benchmarks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::{Origin, RunDocument};
use crate::traffic::Latency;

/// Settings of the kernel's side of receiving during the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelSideFacts {
    /// The requested and granted mode: `as-is`, `threaded` (a kernel thread receives) or `polling` (a timer starts the
    /// kernel's rounds).
    pub name: String,
    /// CPUs that the kernel's threads may use; empty without threads.
    pub thread_cpus: Vec<u32>,
    /// Changes made for the mode and put back at the end, one value each, in the notation of the kernel's own tools.
    pub changes: Vec<String>,
}

impl KernelSideFacts {
    /// The kernel's side as it is, when nothing was requested.
    pub fn as_is() -> Self {
        KernelSideFacts {
            name: String::from("as-is"),
            thread_cpus: Vec::new(),
            changes: Vec::new(),
        }
    }
}

/// The knobs and counters under `kern.polling` of one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PollingOfCpu {
    /// The CPU.
    pub cpu: u32,
    /// The knobs and counters.
    pub polling: Vec<SinkVariable>,
}

/// How the forwarding engine runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EngineFacts {
    /// Receive discipline: `polling`, `interrupt`, `busy-poll` or `adaptive`.
    pub discipline: String,
    /// Ticks per second.
    pub hz: u32,
    /// Controller that adapts the burst: `freebsd` or `share`.
    pub controller: String,
    /// Back-to-back passes after which an interrupt is throttled; 0: never.
    pub storm_threshold_passes: u32,
    /// The CPUs of the engine's threads.
    pub cpus: Vec<u32>,
    /// Scheduling of these threads: `fifo` (before ordinary programs) or `fair`.
    pub scheduling: String,
}

/// Name and version of the JSON of [`BlastDocument`].
pub const BLAST_SCHEMA: &str = "nicpoll.blast/1";

/// A whole run.
pub type BlastDocument = RunDocument<BlastStart, BlastInterval, BlastEnd>;

/// The request, and how it is carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlastStart {
    /// Name and version of this layout: [`BLAST_SCHEMA`].
    pub schema: String,
    /// The program that made the document.
    #[serde(flatten)]
    pub origin: Origin,
    /// The sending interfaces.
    pub links: Vec<BlastLink>,
    /// Frames per second of each link; null for full speed or recorded timing.
    pub rate_frames_per_second: Option<f64>,
    /// Number of frames that are due together.
    pub burst_frames: u32,
    /// Frames that each link sends; null for no limit.
    pub count_frames: Option<u64>,
    /// How long each link sends; null for no limit.
    pub duration_seconds: Option<f64>,
}

/// A sending interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlastLink {
    /// Its name.
    pub interface: String,
    /// How frames leave: `live`, `af-xdp` or `af-packet`.
    pub path: String,
    /// Faster paths that were not available.
    pub refused_paths: Vec<PathRefused>,
    /// CPU of the sending thread.
    pub cpu: u32,
    /// Whether each frame is handed over singly, not as part of a longer one that is segmented later.
    pub is_singly: bool,
    /// Whether the kernel gets several frames as one long datagram, which it segments before the interface gets them
    /// (UDP segmentation offload).
    pub is_cut_by_kernel: bool,
    /// Why the frames are not joined in this way although they are alike; null when they are joined, and for paths
    /// without segmentation.
    pub not_joined: Option<String>,
    /// The frames it sends.
    #[serde(flatten)]
    pub frames: BlastFrames,
}

/// A path for frames that was not available.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathRefused {
    /// Its name.
    pub path: String,
    /// The reason.
    pub why: String,
}

/// The frames that a link sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlastFrames {
    /// UDP datagrams with sequence numbers and time stamps.
    Datagrams {
        /// Address and first port of the sender. Each further flow has the next port.
        source: String,
        /// Address and port of the receiver.
        destination: String,
        /// Hardware address of the receiver or the next router.
        destination_mac: String,
        /// Number of flows, which take turns.
        flows: u16,
        /// Number of the first flow in the frames' marks.
        first_flow: u16,
        /// Lengths of frames, FCS included, in turn.
        frame_bytes: Vec<u32>,
    },
    /// The frames of a capture.
    Replay {
        /// The file.
        file: String,
        /// Frames that are not sent because the capture truncated them.
        cut_off_frames: u64,
    },
}

/// Frames sent in an interval, over all links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlastInterval {
    /// Start, since the beginning of the run.
    pub start_seconds: f64,
    /// End.
    pub end_seconds: f64,
    /// The counters' increase.
    #[serde(flatten)]
    pub counts: BlastCounts,
}

/// Counters over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlastCounts {
    /// Frames written.
    pub built_frames: u64,
    /// Their bytes, with Ethernet header, without FCS.
    pub built_bytes: u64,
    /// CPU time of the sending threads, including the kernel's work in them.
    pub cpu_ns: u64,
}

/// Where the frames of a link ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlastAccount {
    /// Frames written.
    pub built_frames: u64,
    /// Of these, taken by the kernel.
    pub handed_frames: u64,
    /// Of these, dropped by the interface because its queue was full; null where the kernel does not say.
    pub refused_frames: Option<u64>,
    /// Of these, dropped while the link was down or took no such frames, by looks 10 ms or a system call apart; null where
    /// it never was, or the kernel does not say.
    #[serde(default)]
    pub link_down_frames: Option<u64>,
    /// Of these, sent by the interface; null where the kernel does not say.
    pub completed_frames: Option<u64>,
    /// Written, but not taken by the kernel by the end.
    pub unfinished_frames: u64,
    /// Taken, but neither dropped nor sent: 0 when the account closes; null where the kernel does not say.
    pub residual_frames: Option<i64>,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlastEnd {
    /// Length of the run.
    pub duration_seconds: f64,
    /// Totals over all links.
    pub totals: BlastCounts,
    /// The result of each link, in the order of the start.
    pub links: Vec<BlastLinkEnd>,
    /// The signal that ended the run; null when none did.
    pub ended_by_signal: Option<i32>,
}

/// The result of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlastLinkEnd {
    /// The interface.
    pub interface: String,
    /// How frames left.
    pub path: String,
    /// Time from its first frame to its end.
    pub duration_seconds: f64,
    /// Its totals.
    pub totals: BlastCounts,
    /// Where its frames ended.
    pub account: BlastAccount,
    /// How often the interface was found down.
    pub link_loss_events: u64,
    /// Why it ended early; null when it did not.
    pub failure: Option<String>,
}

/// Name and version of the JSON of [`SinkDocument`].
pub const SINK_SCHEMA: &str = "nicpoll.sink/1";

/// A whole run.
pub type SinkDocument = RunDocument<SinkStart, SinkInterval, SinkEnd>;

/// The request, and how it is carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SinkStart {
    /// Name and version of this layout: [`SINK_SCHEMA`].
    pub schema: String,
    /// The program that made the document.
    #[serde(flatten)]
    pub origin: Origin,
    /// The interface.
    pub interface: String,
    /// Device that delivers its frames: `af-xdp`, `af-packet` or `tap`.
    pub device: String,
    /// Faster devices that do not work here, if the program chose the device.
    pub refused_devices: Vec<RefusedDevice>,
    /// Where the XDP program runs: `driver` or `generic`; null for devices without one.
    pub program_mode: Option<String>,
    /// Whether frames arrive without a copy.
    pub is_zero_copy: bool,
    /// Number of receive queues read.
    pub queues: u32,
    /// UDP ports whose packets are received; null for all ports.
    pub udp_ports: Option<Vec<u16>>,
    /// Receive discipline: `polling`, `interrupt`, `busy-poll` or `adaptive`.
    pub discipline: String,
    /// `user` when only the program polls, while the kernel's NAPI still runs for each arrival; `user-and-kernel` when
    /// a timer also starts the kernel's rounds.
    pub polled_side: String,
    /// Settings of the kernel's side of receiving during the run.
    pub kernel_side: KernelSideFacts,
    /// Ticks per second.
    pub hz: u32,
    /// Controller that adapts the burst: `freebsd` or `share`.
    pub controller: String,
    /// Back-to-back passes after which an interrupt is throttled; 0: never.
    pub storm_threshold_passes: u32,
    /// CPUs of the receiving threads; queues are assigned to them in turn.
    pub cpus: Vec<u32>,
    /// How idle polling leaves ordinary programs their CPU share: `idle-priority` or `share-check`.
    pub idle_polling: String,
    /// Scheduling of the receiving threads: `fifo` (before ordinary programs) or `fair`.
    pub scheduling: String,
    /// CPU time spent on each packet on purpose.
    pub work_ns: u64,
    /// Kind of packet numbers that show losses: `netrate`, `iperf` or `mark`; null: losses are not checked.
    pub check: Option<String>,
    /// Changes that Linux made at the other end of a veth for the XDP program and undoes when the program detaches,
    /// such as `em0 tx-udp-segmentation on -> off`; empty if there are none, or they cannot be seen.
    pub other_end_changes: Vec<String>,
    /// Why `nicpoll sysctl` cannot access the knobs during the run; null when it can.
    pub knobs_refused: Option<String>,
}

/// A device that does not work here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedDevice {
    /// Its name.
    pub device: String,
    /// The reason.
    pub why: String,
}

/// Packets received in an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SinkInterval {
    /// Start, since the beginning of the run.
    pub start_seconds: f64,
    /// End.
    pub end_seconds: f64,
    /// The counters' increase.
    #[serde(flatten)]
    pub counts: SinkCounts,
    /// Fates of the frames that arrived meanwhile, counted at the device: some of those taken may be received in the
    /// next interval.
    #[serde(flatten)]
    pub fates: SinkFates,
    /// Events meanwhile.
    #[serde(flatten)]
    pub events: SinkEvents,
    /// The knobs and counters under `kern.polling` at the end of the interval, by name; counters since the beginning of
    /// the run.
    pub polling: Vec<SinkVariable>,
}

/// Counters over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SinkCounts {
    /// Packets delivered to the program.
    pub received_packets: u64,
    /// Their frames' bytes, Ethernet header included and FCS not.
    pub received_bytes: u64,
    /// Lost because the socket's ring was full.
    pub ring_full_packets: u64,
    /// Lost because no buffer was free, or the frame was longer than a buffer.
    pub no_memory_packets: u64,
    /// How often a receive queue was polled.
    pub polls: u64,
    /// Of these, polls that found no packet.
    pub empty_polls: u64,
    /// How often arrivals woke the program.
    pub wake_up_events: u64,
    /// How often an interrupt storm was throttled for a tick.
    pub throttled_passes: u64,
    /// CPU time of the receiving threads and of the one that attends them, without the kernel's own work for arrivals.
    pub cpu_ns: u64,
    /// CPU time of interrupts, soft interrupts and NAPI threads on the same CPUs between the cycles of `polling`, which
    /// is charged to the cycles; null when it was not counted.
    pub kernel_ns: Option<u64>,
}

/// Fates of the frames that the device saw, before they reached its socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SinkFates {
    /// Taken for the program: redirected by the XDP program before the kernel's stack, copied by an AF_PACKET socket,
    /// or sent by the host through its TAP interface.
    pub taken_packets: u64,
    /// Not requested: left to the kernel, or dropped by a TAP interface, behind which there is no host. Null for
    /// AF_PACKET, which does not count them.
    pub passed_packets: Option<u64>,
    /// Requested, but left to the kernel because their queue had no socket.
    pub without_socket_packets: u64,
    /// Requested, but left to the kernel because they were longer than the sink's buffers.
    pub too_long_packets: u64,
}

/// An interface disappeared, came back or changed: a separate event in a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkEvent {
    /// Time since the beginning of the run.
    pub seconds: f64,
    /// The interface, by its latest name.
    pub interface: String,
    /// Its index; null while it does not exist.
    pub ifindex: Option<u32>,
    /// `gone`: it was removed, or left the network namespace; `attached`: it is back and in use; `changed`: it has another
    /// MTU, another number of receive queues, or takes frames from XDP programs or not, and is in use as it is now;
    /// `refused`: it is there but could not be used.
    pub what: String,
    /// What has changed, or why it could not be used; null otherwise.
    pub why: Option<String>,
}

/// Events other than packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SinkEvents {
    /// Number of ticks.
    pub ticks: u64,
    /// Changes between interrupts and polling, for `adaptive`.
    pub discipline_switches: u64,
    /// Status checks that found the interface no longer up, over all queues.
    pub link_loss_events: u64,
    /// Status checks that found a changed MTU, over all queues.
    pub mtu_changes: u64,
}

/// Where the frames that the device saw ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SinkAccount {
    /// Their fates before they reached a socket.
    #[serde(flatten)]
    pub fates: SinkFates,
    /// Of those taken, delivered to the program.
    pub received_packets: u64,
    /// Of these, lost because the socket's ring was full.
    pub ring_full_packets: u64,
    /// Of these, lost because no buffer was free, or the frame was longer than a buffer.
    pub no_memory_packets: u64,
    /// Of these, still in the ring at the end.
    pub waiting_packets: u64,
    /// Taken, but none of these; 0 when the account closes.
    pub residual_packets: i64,
}

/// What the packets' numbers show. A stream is one address and port sending to another; its count starts with the first
/// packet received.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SinkCheck {
    /// Kind of numbers: `netrate`, `iperf` or `mark`.
    pub by: String,
    /// Streams distinguished.
    pub streams: u64,
    /// Their packets with a number.
    pub numbered_packets: u64,
    /// Missing numbers below a stream's highest, wherever the packets were lost.
    pub lost_packets: u64,
    /// Packets whose number had been received before.
    pub duplicate_packets: u64,
    /// Packets received after one with a higher number.
    pub late_packets: u64,
    /// Packets without a number.
    pub unnumbered_packets: u64,
    /// Packets of streams beyond the number that can be distinguished.
    pub unfollowed_packets: u64,
    /// Delay of packets from the sender's clock reading to this program; null unless they carry their send time, from a
    /// sender on this machine.
    pub latency: Option<Latency>,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SinkEnd {
    /// Length of the run.
    pub duration_seconds: f64,
    /// Totals.
    pub totals: SinkCounts,
    /// Where the frames ended.
    pub account: SinkAccount,
    /// What the packets' numbers show; null when they were not checked.
    pub check: Option<SinkCheck>,
    /// Events other than packets.
    #[serde(flatten)]
    pub events: SinkEvents,
    /// Whether the kernel's NAPI ran in the sink's own polls (SO_PREFER_BUSY_POLL), which `busy-poll` requests for
    /// AF_XDP: `acts`; `no-napi` when the kernel assigned no NAPI to the socket, without effect; `refused` for lack of
    /// privilege. Null where it was not requested.
    pub kernel_busy_poll: Option<String>,
    /// Changes at the other end of a veth that were left after the program had detached; empty when there were none.
    pub other_end_left: Vec<String>,
    /// The knobs and counters under `kern.polling`, by name.
    pub polling: Vec<SinkVariable>,
    /// The same for each CPU.
    pub polling_by_cpu: Vec<PollingOfCpu>,
    /// The signal that ended the run; null when none did.
    pub ended_by_signal: Option<i32>,
}

/// A knob or counter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SinkVariable {
    /// Its name without the prefix `kern.polling.`.
    pub name: String,
    /// Its value.
    pub value: u32,
}

/// Name and version of the JSON of [`ForwardDocument`].
pub const FORWARD_SCHEMA: &str = "nicpoll.forward/1";

/// Reasons why a frame was left to the kernel, in the order of the XDP program's checks; the last is the engine's. Each
/// has its name in JSON and its meaning.
pub const PASSED: [&str; 12] = [
    "not_ip: neither IPv4 nor IPv6: ARP, frames with a VLAN tag",
    "not_for_router: not sent to this interface's hardware address: broadcast, multicast",
    "header: IPv4 options, IPv6 hop-by-hop options, or a header that is wrong",
    "ttl: TTL or hop limit used up",
    "checksum: its checksum was left to the sender's card, which is none on a virtual link",
    "no_route: for this host, or no route, or one that refuses",
    "forwarding_off: forwarding is off in the kernel",
    "too_long: longer than the route's MTU",
    "no_neighbour: the next hop's hardware address was not known yet",
    "other_exit: its route leads out by another interface, by one that takes no frames of XDP, or back",
    "without_socket: its receive queue has no socket",
    "given_back: its exit had gone when the engine came to it: given back through a TAP interface",
];

/// Places where a frame to be forwarded was lost, in its order of passing them: name in JSON, and meaning.
pub const LOST: [&str; 5] = [
    "ring_full: the socket's ring was full",
    "no_memory: no memory was free, since the program did not keep up, or the frame was too long",
    "exit_refused: the exit interface took no frames: it is down, or the other end of a veth has no NAPI",
    "exit_full: the ring or queue of the exit interface was full",
    "waiting: still in a ring at the end",
];

/// A whole run.
pub type ForwardDocument = RunDocument<ForwardStart, ForwardInterval, ForwardEnd>;

/// The request, and how it is carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardStart {
    /// Name and version of this layout: [`FORWARD_SCHEMA`].
    pub schema: String,
    /// The program that made the document.
    #[serde(flatten)]
    pub origin: Origin,
    /// The path of frames: `xdp` or `user`.
    pub path: String,
    /// Why this path was chosen.
    pub path_reason: String,
    /// How the engine runs; null on the path `xdp`, which has no engine.
    pub engine: Option<EngineFacts>,
    /// The interfaces between which frames are forwarded.
    pub interfaces: Vec<ForwardInterface>,
    /// Obstacles to forwarding here, and functions of the kernel's forwarding that are missing.
    pub notes: Vec<String>,
}

/// An interface that is forwarded from and to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardInterface {
    /// Its name.
    pub name: String,
    /// Where the XDP program runs: `driver` or `generic`.
    pub program_mode: String,
    /// Whether it takes frames that an XDP program redirects to it; null where the kernel does not report it.
    pub takes_redirected: Option<bool>,
    /// MTU.
    pub mtu_bytes: u32,
    /// Settings of the kernel's side of receiving during the run.
    pub kernel_side: KernelSideFacts,
}

/// Frames forwarded in an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardInterval {
    /// Start, since the beginning of the run.
    pub start_seconds: f64,
    /// End.
    pub end_seconds: f64,
    /// The counters' increase, over all interfaces.
    #[serde(flatten)]
    pub counts: ForwardCounts,
}

/// Frames over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardCounts {
    /// Frames received by the interfaces.
    pub received_packets: u64,
    /// Of these, handed to the driver of their route's exit interface.
    pub forwarded_packets: u64,
    /// Of these, left to the kernel.
    pub passed_packets: u64,
    /// Of these, lost between the interfaces.
    pub lost_packets: u64,
}

/// Where the frames received by one interface, or by all, ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardAccount {
    /// Frames received.
    pub received_packets: u64,
    /// Of these, handed to the driver of their route's exit interface.
    pub forwarded_packets: u64,
    /// Of these, left to the kernel, by reason.
    pub passed: Vec<ForwardFate>,
    /// Of these, lost between the interfaces, by place.
    pub lost: Vec<ForwardFate>,
    /// Received, but none of these; 0 when the account closes.
    pub residual_packets: i64,
}

/// Frames with the same fate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardFate {
    /// The reason or place, from [`PASSED`] or [`LOST`].
    pub name: String,
    /// Number of frames.
    pub packets: u64,
}

/// The account of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardedFrom {
    /// The interface.
    pub name: String,
    /// Where its received frames ended.
    #[serde(flatten)]
    pub account: ForwardAccount,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardEnd {
    /// Length of the run.
    pub duration_seconds: f64,
    /// Where the frames of all interfaces ended.
    pub account: ForwardAccount,
    /// The account of each interface.
    pub interfaces: Vec<ForwardedFrom>,
    /// Status checks that found an interface no longer up, over all queues; null on the path `xdp`, which has no
    /// checks.
    pub link_loss_events: Option<u64>,
    /// Status checks that found a changed MTU, over all queues; null on the path `xdp`.
    pub mtu_changes: Option<u64>,
    /// The knobs and counters under `kern.polling`, by name; empty on the path `xdp`.
    pub polling: Vec<SinkVariable>,
    /// The same for each CPU with an engine.
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

impl Lost {
    /// Adds the losses of another count.
    pub fn add(&mut self, more: &Lost) {
        self.ring_full += more.ring_full;
        self.no_memory += more.no_memory;
        self.exit_refused += more.exit_refused;
        self.exit_full += more.exit_full;
        self.waiting += more.waiting;
    }
}

impl ForwardAccount {
    /// Makes an account and its residual, with `passed` and `lost` in the order of [`PASSED`] and [`LOST`].
    pub fn of(
        received_packets: u64,
        forwarded_packets: u64,
        passed: [u64; PASSED.len()],
        lost: Lost,
    ) -> Self {
        let lost = [
            lost.ring_full,
            lost.no_memory,
            lost.exit_refused,
            lost.exit_full,
            lost.waiting,
        ];
        let signed = |packets: u64| i64::try_from(packets).unwrap_or(i64::MAX);
        let found = forwarded_packets + passed.iter().chain(&lost).sum::<u64>();
        let named = |rows: &[&str], packets: &[u64]| {
            let rows = rows.iter().zip(packets);
            rows.map(|(row, &packets)| ForwardFate {
                name: row.split(':').take(1).collect(),
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

    /// Returns the sum of all accounts.
    pub fn sum<'a>(accounts: impl Iterator<Item = &'a ForwardAccount>) -> Self {
        let mut sum = ForwardAccount::of(0, 0, [0; PASSED.len()], Lost::default());
        for account in accounts {
            sum.received_packets += account.received_packets;
            sum.forwarded_packets += account.forwarded_packets;
            sum.residual_packets += account.residual_packets;
            let own = sum.passed.iter_mut().chain(&mut sum.lost);
            for (fate, more) in own.zip(account.passed.iter().chain(&account.lost)) {
                fate.packets += more.packets;
            }
        }
        sum
    }

    /// Returns the account without reasons and places.
    pub fn counts(&self) -> ForwardCounts {
        let sum = |fates: &[ForwardFate]| fates.iter().map(|fate| fate.packets).sum();
        // Frames at the last place are still on their way.
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
    /// Returns the increase since `before`.
    pub fn since(&self, before: &ForwardCounts) -> ForwardCounts {
        let since = u64::saturating_sub;
        ForwardCounts {
            received_packets: since(self.received_packets, before.received_packets),
            forwarded_packets: since(self.forwarded_packets, before.forwarded_packets),
            passed_packets: since(self.passed_packets, before.passed_packets),
            lost_packets: since(self.lost_packets, before.lost_packets),
        }
    }
}

/// The latest benchmark results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineBenchmark {
    /// Delays of packets; `None` before the first measurement.
    pub delays: Option<Delays>,
    /// Delivered packets under overload; `None` before the first measurement.
    pub overload: Option<Overload>,
}

/// Delays of packets from sender to program, by receive discipline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delays {
    /// Where and how it was measured.
    pub facts: String,
    /// One entry per load.
    pub loads: Vec<DelaysAtLoad>,
}

/// All disciplines at one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DelaysAtLoad {
    /// Packets per second requested of the sender.
    pub asked_pps: f64,
    /// One entry per discipline, in the same order at every load.
    pub disciplines: Vec<DisciplineDelay>,
}

/// One discipline at one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DisciplineDelay {
    /// Its name.
    pub name: String,
    /// Packets per second that reached the interface or were lost on the way to it.
    pub fed_pps: f64,
    /// Packets per second that reached the program.
    pub delivered_pps: f64,
    /// CPU time of the program's threads, in CPUs.
    pub program_cpu: f64,
    /// Median delay; `None` with too few packets.
    pub p50_ns: Option<f64>,
    /// 99th percentile.
    pub p99_ns: Option<f64>,
    /// 99.9th percentile.
    pub p999_ns: Option<f64>,
}

/// Delivered against offered load, with artificial work per packet, and the kernel's receive work on the receiver's
/// CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overload {
    /// Where and how it was measured.
    pub facts: String,
    /// Measured curves, then simulated ones.
    pub curves: Vec<LoadCurve>,
}

/// One receiver over a range of loads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadCurve {
    /// Its name.
    pub name: String,
    /// Whether the curve was simulated, not measured.
    pub is_simulated: bool,
    /// In order of load.
    pub points: Vec<LoadPoint>,
}

/// One load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadPoint {
    /// Packets per second that reached the interface or were lost on the way to it.
    pub offered_pps: f64,
    /// Packets per second that reached the program.
    pub delivered_pps: f64,
    /// Share of the receiver's CPU that an ordinary program got meanwhile; `None` without such a program.
    pub programs_share: Option<f64>,
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
