//! Documents of the engine's applications (sink, blast, forward) and of its benchmarks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::{Origin, RunDocument};
use crate::traffic::Latency;

/// What the kernel's side of receiving was set to for the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelSideFacts {
    /// What was asked for and granted: `as-is`, `threaded` (a kernel thread receives) or `polling` (a timer begins the
    /// kernel's rounds).
    pub name: String,
    /// CPUs that the kernel's threads may use; empty when it has none.
    pub thread_cpus: Vec<u32>,
    /// What was changed for it and is put back at the end, one value each, as the kernel's own tools write it.
    pub changes: Vec<String>,
}

impl KernelSideFacts {
    /// Nothing was asked for.
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

/// How the engine runs that forwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EngineFacts {
    /// How the program learns of packets: `polling`, `interrupt`, `busy-poll` or `adaptive`.
    pub discipline: String,
    /// Ticks a second.
    pub hz: u32,
    /// How the burst is adapted: `freebsd` or `share`.
    pub controller: String,
    /// Back-to-back passes after which an interrupt is throttled; 0: never.
    pub storm_threshold_passes: u32,
    /// The CPUs of the engine's threads.
    pub cpus: Vec<u32>,
    /// How the kernel schedules them: `fifo` (before ordinary programs) or `fair`.
    pub scheduling: String,
}

/// Name and version of the JSON that [`BlastDocument`] becomes.
pub const BLAST_SCHEMA: &str = "nicpoll.blast/1";

/// A whole run.
pub type BlastDocument = RunDocument<BlastStart, BlastInterval, BlastEnd>;

/// What was asked for and how it is carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlastStart {
    /// Name and version of this layout: [`BLAST_SCHEMA`].
    pub schema: String,
    /// Who made it.
    #[serde(flatten)]
    pub origin: Origin,
    /// The interfaces that send.
    pub links: Vec<BlastLink>,
    /// Frames a second of each link; null for as fast as they go, or as they were recorded.
    pub rate_frames_per_second: Option<f64>,
    /// Frames that are due together.
    pub burst_frames: u32,
    /// Frames that each link sends; null for no such limit.
    pub count_frames: Option<u64>,
    /// How long it sends; null for no such limit.
    pub duration_seconds: Option<f64>,
}

/// An interface that sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlastLink {
    /// Its name.
    pub interface: String,
    /// How frames leave: `live`, `af-xdp` or `af-packet`.
    pub path: String,
    /// The faster ways that were not taken.
    pub refused_paths: Vec<PathRefused>,
    /// CPU of the thread that sends.
    pub cpu: u32,
    /// Whether each frame is given to the interface by itself, and not as part of a longer one that is cut up later.
    pub is_singly: bool,
    /// Whether the kernel is given many frames as one long datagram, which it cuts up before the interface gets it (UDP
    /// segmentation offload).
    pub is_cut_by_kernel: bool,
    /// Why the frames are not given to it like that, although one is like the next; null when they are, and by ways that
    /// have no such thing.
    pub not_joined: Option<String>,
    /// What it sends.
    #[serde(flatten)]
    pub frames: BlastFrames,
}

/// A way for frames to leave that was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathRefused {
    /// Its name.
    pub path: String,
    /// Why not.
    pub why: String,
}

/// What a link sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlastFrames {
    /// UDP datagrams with numbers and times.
    Datagrams {
        /// Address and first port of the sender. The port of each further flow is one higher.
        source: String,
        /// Address and port of the receiver.
        destination: String,
        /// Hardware address of the receiver or the next router.
        destination_mac: String,
        /// Flows that take turns.
        flows: u16,
        /// The number of the first flow in the frames' marks.
        first_flow: u16,
        /// Lengths of frames, with FCS, in turn.
        frame_bytes: Vec<u32>,
    },
    /// The frames of a capture.
    Replay {
        /// The file.
        file: String,
        /// Frames that are not sent because the recording cut them off.
        cut_off_frames: u64,
    },
}

/// What was sent in an interval, over all links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlastInterval {
    /// Begin, since the run began.
    pub start_seconds: f64,
    /// End.
    pub end_seconds: f64,
    /// What was counted between.
    #[serde(flatten)]
    pub counts: BlastCounts,
}

/// Counters over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlastCounts {
    /// Frames that were written.
    pub built_frames: u64,
    /// Their bytes, Ethernet header included and FCS not.
    pub built_bytes: u64,
    /// CPU time of the threads that send, with what the kernel does in it.
    pub cpu_ns: u64,
}

/// Where the frames of a link ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlastAccount {
    /// Frames that were written.
    pub built_frames: u64,
    /// Of those, taken by the kernel.
    pub handed_frames: u64,
    /// Of those, dropped by the interface, whose queue was full; null where the kernel does not say.
    pub refused_frames: Option<u64>,
    /// Of those, dropped since the link was down; null where it never was, or the kernel does not say.
    #[serde(default)]
    pub link_down_frames: Option<u64>,
    /// Of those, sent by the interface; null where the kernel does not say.
    pub completed_frames: Option<u64>,
    /// Written, and not taken by the kernel until the end.
    pub unfinished_frames: u64,
    /// Taken, and neither dropped nor sent: 0 when the account closes; null where the kernel does not say.
    pub residual_frames: Option<i64>,
}

/// What it came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlastEnd {
    /// Length of the run.
    pub duration_seconds: f64,
    /// What was counted in all, over all links.
    pub totals: BlastCounts,
    /// Each link's part, in the order of the start.
    pub links: Vec<BlastLinkEnd>,
    /// The signal that ended the run; null when none did.
    pub ended_by_signal: Option<i32>,
}

/// What a link came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlastLinkEnd {
    /// The interface.
    pub interface: String,
    /// How frames left.
    pub path: String,
    /// From its first frame until it was done.
    pub duration_seconds: f64,
    /// What was counted.
    pub totals: BlastCounts,
    /// Where its frames ended.
    pub account: BlastAccount,
    /// Times that the interface was found down.
    pub link_loss_events: u64,
    /// Why it ended before its time; null when it did not.
    pub failure: Option<String>,
}

/// Name and version of the JSON that [`SinkDocument`] becomes.
pub const SINK_SCHEMA: &str = "nicpoll.sink/1";

/// A whole run.
pub type SinkDocument = RunDocument<SinkStart, SinkInterval, SinkEnd>;

/// What was asked for and how it is carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SinkStart {
    /// Name and version of this layout: [`SINK_SCHEMA`].
    pub schema: String,
    /// Who made it.
    #[serde(flatten)]
    pub origin: Origin,
    /// The interface.
    pub interface: String,
    /// How its frames come to the program: `af-xdp`, `af-packet` or `tap`.
    pub device: String,
    /// Faster devices that do not work here, where the choice was left to the program.
    pub refused_devices: Vec<RefusedDevice>,
    /// Where the XDP program runs: `driver` or `generic`; null for devices without one.
    pub program_mode: Option<String>,
    /// Whether frames come without being copied.
    pub is_zero_copy: bool,
    /// Receive queues that are read.
    pub queues: u32,
    /// UDP ports whose packets are taken; null for all ports.
    pub udp_ports: Option<Vec<u16>>,
    /// How the program learns of packets: `polling`, `interrupt`, `busy-poll` or `adaptive`.
    pub discipline: String,
    /// What is polled: `user` when the program's side alone is; the kernel's NAPI then still runs for each arrival.
    /// `user-and-kernel` when a timer begins the kernel's rounds, too.
    pub polled_side: String,
    /// What the kernel's side of receiving was set to for the run.
    pub kernel_side: KernelSideFacts,
    /// Ticks a second.
    pub hz: u32,
    /// How the burst is adapted: `freebsd` or `share`.
    pub controller: String,
    /// Back-to-back passes after which an interrupt is throttled; 0: never.
    pub storm_threshold_passes: u32,
    /// The CPUs of the threads that receive; the queues go round them.
    pub cpus: Vec<u32>,
    /// How idle polling leaves ordinary programs their share: `idle-priority` or `share-check`.
    pub idle_polling: String,
    /// How the kernel schedules those threads: `fifo` (before ordinary programs) or `fair`.
    pub scheduling: String,
    /// CPU time that is spent on each packet, on purpose.
    pub work_ns: u64,
    /// By which numbers in the packets losses are looked for: `netrate`, `iperf` or `mark`; null when by none.
    pub check: Option<String>,
    /// What Linux changed at the other end of a veth for the XDP program, and puts back when the program leaves, such as
    /// `em0 tx-udp-segmentation on -> off`; empty where nothing was, or nobody can look there.
    pub other_end_changes: Vec<String>,
    /// Why `nicpoll sysctl` cannot read or write the knobs while it runs; null when it can.
    pub knobs_refused: Option<String>,
}

/// A device that does not work here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedDevice {
    /// Its name.
    pub device: String,
    /// Why not.
    pub why: String,
}

/// What was received in an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SinkInterval {
    /// Begin, since the run began.
    pub start_seconds: f64,
    /// End.
    pub end_seconds: f64,
    /// What was counted between.
    #[serde(flatten)]
    pub counts: SinkCounts,
    /// What became of the frames that came between. It is counted where they come from: some of those that were taken
    /// may be received in the next interval.
    #[serde(flatten)]
    pub fates: SinkFates,
    /// What happened between.
    #[serde(flatten)]
    pub events: SinkEvents,
    /// The knobs and counters under `kern.polling` at the end of the interval, by name; counters are those since the run
    /// began.
    pub polling: Vec<SinkVariable>,
}

/// Counters over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SinkCounts {
    /// Packets delivered to the program.
    pub received_packets: u64,
    /// Their frames' bytes, Ethernet header included and FCS not.
    pub received_bytes: u64,
    /// Lost because the socket's ring had no room.
    pub ring_full_packets: u64,
    /// Lost because no memory was free, or the frame was too long for it.
    pub no_memory_packets: u64,
    /// Times that a receive queue was asked for packets.
    pub polls: u64,
    /// Of those, how many found none.
    pub empty_polls: u64,
    /// Times that arrivals woke the program.
    pub wake_up_events: u64,
    /// Times that an interrupt storm was throttled for a tick.
    pub throttled_passes: u64,
    /// CPU time of the threads that receive; the kernel's own work for arrivals is not in it.
    pub cpu_ns: u64,
    /// CPU time of interrupts, soft interrupts and NAPI threads on the same CPUs between the cycles of `polling`, which
    /// was charged to them; null when nobody counted it.
    pub kernel_ns: Option<u64>,
}

/// What became of the frames that the device saw, before they came to its socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SinkFates {
    /// Taken for the program: out of the kernel's way by the XDP program, as a copy by an AF_PACKET socket, or sent
    /// by the host through its TAP interface.
    pub taken_packets: u64,
    /// Not asked for: left to the kernel, or by a TAP interface, behind which nobody is, dropped. Null for AF_PACKET,
    /// which does not count them.
    pub passed_packets: Option<u64>,
    /// Asked for, and left to the kernel because their queue had no socket.
    pub without_socket_packets: u64,
    /// Asked for, and left to the kernel because they were longer than the sink's memory for a frame.
    pub too_long_packets: u64,
}

/// An interface went, or is back: an event of its own in a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkEvent {
    /// When, since the run began.
    pub seconds: f64,
    /// The interface, by the name that it had last.
    pub interface: String,
    /// Its index; null while it is not there.
    pub ifindex: Option<u32>,
    /// `gone`: it was removed, or left the network namespace; `attached`: it is back, and in use again; `refused`: it is
    /// back, and could not be had.
    pub what: String,
    /// Why it could not be had; null otherwise.
    pub why: Option<String>,
}

/// Events other than packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SinkEvents {
    /// Ticks that came.
    pub ticks: u64,
    /// Changes between interrupts and polling, by `adaptive`.
    pub discipline_switches: u64,
    /// Checks of status that found the interface no longer up, over all queues.
    pub link_loss_events: u64,
    /// Checks of status that found another MTU than the one before, over all queues.
    pub mtu_changes: u64,
}

/// Where the frames ended that the device saw.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SinkAccount {
    /// What became of them before they came to a socket.
    #[serde(flatten)]
    pub fates: SinkFates,
    /// Of those taken, delivered to the program.
    pub received_packets: u64,
    /// Of those, lost because the socket's ring had no room.
    pub ring_full_packets: u64,
    /// Of those, lost because no memory was free, or the frame was too long for it.
    pub no_memory_packets: u64,
    /// Of those, still in the ring at the end.
    pub waiting_packets: u64,
    /// Taken, and none of these; 0 when the account closes.
    pub residual_packets: i64,
}

/// What the numbers in the packets say. A stream is what one address and port sends to another; its count begins with
/// the first packet that came.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SinkCheck {
    /// Whose numbers: `netrate`, `iperf` or `mark`.
    pub by: String,
    /// Streams that were told apart.
    pub streams: u64,
    /// Packets of theirs that had a number.
    pub numbered_packets: u64,
    /// Numbers below a stream's highest that did not come, wherever on the way they were lost.
    pub lost_packets: u64,
    /// Packets whose number had come before.
    pub duplicate_packets: u64,
    /// Packets that came after one with a higher number.
    pub late_packets: u64,
    /// Packets without a number.
    pub unnumbered_packets: u64,
    /// Packets of more streams than can be told apart.
    pub unfollowed_packets: u64,
    /// How long packets were under way, from the sender's clock reading to this program; null unless they say when
    /// they were sent, by a sender on this machine.
    pub latency: Option<Latency>,
}

/// What it came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SinkEnd {
    /// Length of the run.
    pub duration_seconds: f64,
    /// What was counted in all.
    pub totals: SinkCounts,
    /// Where the frames ended.
    pub account: SinkAccount,
    /// What the numbers in the packets say; null when nobody looked.
    pub check: Option<SinkCheck>,
    /// Events other than packets.
    #[serde(flatten)]
    pub events: SinkEvents,
    /// Whether the kernel's NAPI ran in the sink's own polls (SO_PREFER_BUSY_POLL), which `busy-poll` asks for by AF_XDP:
    /// `acts`; `no-napi` when the kernel told the socket no NAPI, so that nothing came of it; `refused` without the
    /// privilege. Null where it was not asked for.
    pub kernel_busy_poll: Option<String>,
    /// What was not put back at the other end of a veth when the program had left; empty when all was.
    pub other_end_left: Vec<String>,
    /// The knobs and counters under `kern.polling`, by name.
    pub polling: Vec<SinkVariable>,
    /// The same by CPU.
    pub polling_by_cpu: Vec<PollingOfCpu>,
    /// The signal that ended the run; null when none did.
    pub ended_by_signal: Option<i32>,
}

/// A knob or counter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SinkVariable {
    /// Its name, without `kern.polling.` before it.
    pub name: String,
    /// Its value.
    pub value: u32,
}

/// Name and version of the JSON that [`ForwardDocument`] becomes.
pub const FORWARD_SCHEMA: &str = "nicpoll.forward/1";

/// Why a frame was left to the kernel, in the order in which the XDP program looks; the last is the engine's reason. Each
/// has its name in JSON, and what it means.
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

/// Where a frame that was to be forwarded was lost, on its way: the place's name in JSON, and what it means.
pub const LOST: [&str; 5] = [
    "ring_full: the socket's ring was full",
    "no_memory: no memory was free, since the program did not keep up, or the frame was too long",
    "exit_refused: the exit interface took no frames: it is down, or the other end of a veth has no NAPI",
    "exit_full: the ring or queue of the exit interface was full",
    "waiting: still in a ring at the end",
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

    /// The sum of all accounts.
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
        let since = u64::saturating_sub;
        ForwardCounts {
            received_packets: since(self.received_packets, before.received_packets),
            forwarded_packets: since(self.forwarded_packets, before.forwarded_packets),
            passed_packets: since(self.passed_packets, before.passed_packets),
            lost_packets: since(self.lost_packets, before.lost_packets),
        }
    }
}

/// What was measured last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineBenchmark {
    /// How long packets take; `None` when it was not measured yet.
    pub delays: Option<Delays>,
    /// What is delivered of a load that is more than can be received; `None` when it was not measured yet.
    pub overload: Option<Overload>,
}

/// How long packets take from sender to program, by receive discipline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delays {
    /// Where and how it was measured.
    pub facts: String,
    /// One for each load.
    pub loads: Vec<DelaysAtLoad>,
}

/// The disciplines at one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DelaysAtLoad {
    /// Packets a second that were asked of the sender.
    pub asked_pps: f64,
    /// One for each discipline, in the same order at every load.
    pub disciplines: Vec<DisciplineDelay>,
}

/// One discipline at one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DisciplineDelay {
    /// What it is called.
    pub name: String,
    /// Packets a second that came to the interface or were lost on the way there.
    pub fed_pps: f64,
    /// Packets a second that the program had.
    pub delivered_pps: f64,
    /// CPU time of the program's threads, in CPUs.
    pub program_cpu: f64,
    /// Half of the packets took no longer; `None` where too few came to tell.
    pub p50_ns: Option<f64>,
    /// 99 of 100.
    pub p99_ns: Option<f64>,
    /// 999 of 1000.
    pub p999_ns: Option<f64>,
}

/// Delivered against offered load, with work on each packet and the kernel's receive work on the receiver's CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overload {
    /// Where and how it was measured.
    pub facts: String,
    /// Measured ones, then those that were simulated.
    pub curves: Vec<LoadCurve>,
}

/// One receiver over the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadCurve {
    /// What it is called.
    pub name: String,
    /// Whether the simulator said so and nothing was measured.
    pub is_simulated: bool,
    /// In the order of the load.
    pub points: Vec<LoadPoint>,
}

/// One load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadPoint {
    /// Packets a second that came to the interface or were lost on the way there.
    pub offered_pps: f64,
    /// Packets a second that the program had.
    pub delivered_pps: f64,
    /// Share of the receiver's CPU that an ordinary program got at the same time; `None` without one.
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
