//! What came out of a simulated TCP connection.
//!
//! What must hold: a connection carries data one way. What was in its buffers at the start and what was
//! written since is what was read and what is in its buffers at the end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A connection, in the counted time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimTcp {
    /// The host that sends the data.
    pub from: String,
    /// The host that reads them.
    pub to: String,
    /// Where each byte is.
    pub bytes: SimTcpBytes,
    /// Bits a second that the program at the end has read.
    pub goodput_bits_per_second: f64,
    /// The most data of a segment.
    pub segment_bytes: u64,
    /// The send buffer.
    pub send_buffer_bytes: u64,
    /// The receive buffer: the greatest window.
    pub receive_buffer_bytes: u64,
    /// Segments with data that were sent.
    pub segments: u64,
    /// Of these, ones that begin with bytes that were sent before.
    #[serde(rename = "retransmitted_segments")]
    pub retransmits: u64,
    /// Losses that duplicate acknowledgements told of.
    pub fast_retransmits: u64,
    /// Times that the retransmission timer ran out.
    pub timeouts: u64,
    /// Probes of a closed window.
    pub probes: u64,
    /// Acknowledgements that were sent.
    pub acknowledgements: u64,
    /// Mean time from the sending of a segment until the sending TCP has the acknowledgement that answers it;
    /// null before the first.
    pub round_trip_mean_ns: Option<f64>,
    /// What kept the sending TCP from sending.
    pub held: SimTcpHeld,
    /// The counted time in parts of equal length; empty unless parts were asked for.
    pub slices: Vec<SimTcpSlice>,
}

/// `buffered_at_start + written = read + unread_at_end + unsent_or_in_flight_at_end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimTcpBytes {
    /// Written and not read when the counted time began.
    #[serde(rename = "buffered_at_start_bytes")]
    pub buffered_at_start: u64,
    /// Bytes that the sending program wrote.
    #[serde(rename = "written_bytes")]
    pub written: u64,
    /// Bytes that the receiving program read.
    #[serde(rename = "read_bytes")]
    pub read: u64,
    /// Of the bytes written, those that the receiving TCP did not have when the counted time ended.
    #[serde(rename = "unsent_or_in_flight_at_end_bytes")]
    pub unsent_or_in_flight_at_end: u64,
    /// Of the bytes written, those that the receiving TCP had and its program had not read.
    #[serde(rename = "unread_at_end_bytes")]
    pub unread_at_end: u64,
}

impl SimTcpBytes {
    /// Whether every byte is accounted for.
    pub fn is_closed(&self) -> bool {
        self.buffered_at_start + self.written
            == self.read + self.unsent_or_in_flight_at_end + self.unread_at_end
    }
}

/// Shares of the counted time in which the sending TCP could not send, by what it waited for, each 0 to 1.
/// The rest it was sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimTcpHeld {
    /// The program, which had not written more.
    #[serde(rename = "program_ratio")]
    pub program: f64,
    /// Room in the send buffer, which is full of what is not acknowledged.
    #[serde(rename = "send_buffer_ratio")]
    pub send_buffer: f64,
    /// The receiver's window.
    #[serde(rename = "window_ratio")]
    pub window: f64,
    /// The congestion window.
    #[serde(rename = "congestion_ratio")]
    pub congestion: f64,
}

/// A part of the counted time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimTcpSlice {
    /// When it ended, from the start of the counted time.
    pub end_seconds: f64,
    /// Bytes that the receiving program read in it.
    pub read_bytes: u64,
    /// The same in bits a second.
    pub goodput_bits_per_second: f64,
    /// Segments sent again in it.
    #[serde(rename = "retransmitted_segments")]
    pub retransmits: u64,
}
