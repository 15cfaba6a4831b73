//! Reads figures from what programs print.

use crate::contest::{Figure, Run};

/// Mbit/s of a TCP stream, as the client says.
pub fn tcp_mbps(run: &Run) -> Option<Figure> {
    Some(plain(last_before(&run.client, " Mbits/sec")?))
}

/// Processor seconds of the client by 10^9 bytes that it sent.
pub fn cpu_seconds_per_gigabyte(run: &Run) -> Option<Figure> {
    let gigabytes = match last_before(&run.client, " Bytes") {
        Some(bytes) => bytes / 1e9,
        None => last_before(&run.client, " MBytes")? * 1_048_576.0 / 1e9,
    };
    Some(plain(run.client_cpu_seconds / gigabytes))
}

/// Datagrams a second that an iperf 2 server received, from its last line.
pub fn delivered_pps(run: &Run) -> Option<Figure> {
    let line = run.server.lines().rfind(|line| line.contains("%)"))?;
    let (_, times) = line.split_once("] ")?;
    received(times)
}

/// The same of iperf3, whose client tells what its server received.
pub fn delivered_pps_iperf3(run: &Run) -> Option<Figure> {
    let line = run.client.lines().rfind(|line| line.contains("receiver"))?;
    let (_, times) = line.split_once("] ")?;
    received(times.trim_start())
}

/// Datagrams that netblast's kernel took in its second, and which must have crossed the link.
pub fn send_calls(run: &Run) -> Option<Figure> {
    let (_, rest) = run.client.split_once("send success:")?;
    // What the figure counts may stand behind it.
    let sent = number(rest.split_whitespace().next()?)?;
    Some(Figure {
        datagrams: Some(sent as u64),
        ..plain(sent)
    })
}

/// `start-end sec ... ms lost/total (...)`
fn received(times: &str) -> Option<Figure> {
    let (start, rest) = times.split_once('-')?;
    let (end, rest) = rest.split_once(" sec")?;
    let (_, counts) = rest.split_once(" ms ")?;
    let (lost, rest) = counts.split_once('/')?;
    let (lost, total) = (number(lost)?, number(rest.split(' ').next()?)?);
    Some(Figure {
        value: (total - lost) / (number(end)? - number(start)?),
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

/// The number before the last `unit`.
fn last_before(text: &str, unit: &str) -> Option<f64> {
    let (before, _) = text.rsplit_once(unit)?;
    before.rsplit([' ', '\n']).next()?.parse().ok()
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}
