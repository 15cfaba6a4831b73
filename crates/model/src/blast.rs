//! What `nicpoll blast --json` and `--json-stream` print.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Origin, RunDocument};

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
