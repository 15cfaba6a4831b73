//! Reads figures from programs' output, with the parsers of imported results.

use nicpoll_import::{BlastField, IperfLine, iperf_line, netblast_line};

use crate::contest::{Figure, Run};

/// Returns Mbit/s of a TCP stream, from the client's output.
pub fn tcp_mbps(run: &Run) -> Option<Figure> {
    Some(plain(last(&run.client, "")?.bits_per_second / 1e6))
}

/// Returns CPU seconds of the client for 10^9 sent bytes.
pub fn cpu_seconds_per_gigabyte(run: &Run) -> Option<Figure> {
    let gigabytes = last(&run.client, "")?.bytes / 1e9;
    Some(plain(run.client_cpu_seconds / gigabytes))
}

/// Returns datagrams a second that an iperf 2 server received, from its last line.
pub fn delivered_pps(run: &Run) -> Option<Figure> {
    received(&last(&run.server, "%)")?)
}

/// Returns the same for iperf3, whose client reports what its server received.
pub fn delivered_pps_iperf3(run: &Run) -> Option<Figure> {
    received(&last(&run.client, "receiver")?)
}

/// Returns the datagrams that the kernel took from netblast in its second, which must have crossed the link.
pub fn send_calls(run: &Run) -> Option<Figure> {
    let mut lines = run.client.lines().filter_map(netblast_line);
    let (_, sent) = lines.find(|(field, _)| *field == BlastField::Success)?;
    Some(Figure {
        datagrams: Some(sent as u64),
        ..plain(sent)
    })
}

fn received(line: &IperfLine) -> Option<Figure> {
    let [lost, total] = line.datagrams?;
    Some(Figure {
        value: (total - lost) / (line.end - line.start),
        loss: Some(lost / total),
        datagrams: Some(total as u64),
    })
}

fn plain(value: f64) -> Figure {
    Figure {
        value,
        loss: None,
        datagrams: None,
    }
}

/// Returns the last line of figures with these words.
fn last(text: &str, words: &str) -> Option<IperfLine> {
    let lines = text.lines().rev().filter(|line| line.contains(words));
    lines.filter_map(iperf_line).next()
}
