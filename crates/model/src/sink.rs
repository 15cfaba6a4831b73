//! What `nicpoll sink --json` and `--json-stream` print.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{KernelSideFacts, PollingOfCpu};
use crate::rr::Latency;
use crate::{Origin, RunDocument};

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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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

/// What happened beside packets.
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
    /// What happened beside packets.
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
