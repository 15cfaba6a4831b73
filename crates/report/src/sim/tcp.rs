//! Simulated TCP connections as text.

use nicpoll_model::sim::{SimTcp, SimTcpSlice};

use super::{item, percent, rounded};
use crate::line_rates::aligned;
use crate::numbers::{count, figure};

/// A connection's lines under the name at the left.
pub(super) fn connection(text: &mut String, tcp: &SimTcp) {
    let rate = format!(
        "{} to {}: {} Mbit/s read",
        tcp.from,
        tcp.to,
        figure(tcp.goodput_bits_per_second / 1e6)
    );
    item(text, "TCP", &rate);
    let segments = format!(
        "{} segments of up to {} bytes, {} sent again ({} losses told by duplicates, {} timeouts); {} \
         acknowledgements",
        count(tcp.segments),
        count(tcp.segment_bytes),
        count(tcp.retransmits),
        count(tcp.fast_retransmits),
        count(tcp.timeouts),
        count(tcp.acknowledgements)
    );
    item(text, "", &segments);
    let path = format!(
        "round trip {} on average; send buffer {} bytes, receive buffer {} bytes",
        rounded(tcp.round_trip_mean_ns),
        count(tcp.send_buffer_bytes),
        count(tcp.receive_buffer_bytes)
    );
    item(text, "", &path);
    let held = &tcp.held;
    let waited = format!(
        "waited for the program {}, room in the send buffer {}, the window {}, the congestion window {}",
        percent(held.program),
        percent(held.send_buffer),
        percent(held.window),
        percent(held.congestion)
    );
    item(text, "", &waited);
    let bytes = &tcp.bytes;
    let balance = format!(
        "bytes: {} buffered + {} written = {} read + {} unread + {} unsent or in flight",
        count(bytes.buffered_at_start),
        count(bytes.written),
        count(bytes.read),
        count(bytes.unread_at_end),
        count(bytes.unsent_or_in_flight_at_end)
    );
    item(text, "", &balance);
}

/// The parts of the counted time as a table, with a column for each connection.
pub(super) fn slices(connections: &[SimTcp]) -> String {
    let Some(first) = connections.first().filter(|tcp| !tcp.slices.is_empty()) else {
        return String::new();
    };
    let mut names = vec![String::from("until s")];
    for tcp in connections {
        names.push(format!("{} to {}, Mbit/s", tcp.from, tcp.to));
        names.push(String::from("sent again"));
    }
    let mut lines = vec![names];
    for (number, slice) in first.slices.iter().enumerate() {
        let mut cells = vec![slice.end_seconds.to_string()];
        let each = connections.iter().filter_map(|tcp| tcp.slices.get(number));
        cells.extend(each.flat_map(cells_of));
        lines.push(cells);
    }
    aligned(&lines)
}

fn cells_of(slice: &SimTcpSlice) -> [String; 2] {
    [
        figure(slice.goodput_bits_per_second / 1e6),
        count(slice.retransmits),
    ]
}
