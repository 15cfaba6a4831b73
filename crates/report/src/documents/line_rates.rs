//! Rates of a line as a table.

use std::fmt::Write;

use nicpoll_model::line::{LineFacts, LineRates, LineRow};

use nicpoll_model::numbers::{MISSING, count, figure};

use crate::fields;
use crate::text::aligned_lines;

/// Renders the table, below a description of its figures.
pub fn render_line_rates(rates: &LineRates) -> String {
    let mut text = head(&rates.line);
    let has_rate = rates.rows.iter().any(|row| row.rate.is_some());
    let mut lines = vec![names(has_rate)];
    lines.extend(rates.rows.iter().map(|row| cells(row, has_rate)));
    text.push('\n');
    text.push_str(&aligned_lines(&lines, 1));
    let notes = notes(rates);
    if !notes.is_empty() {
        text.push('\n');
        text.extend(notes);
    }
    text
}

fn head(line: &LineFacts) -> String {
    let mut text = format!(
        "Line of {}bit/s each way, MTU {}, {}.\n",
        scaled(line.bits_per_second),
        line.mtu_bytes,
        match line.vlan_tags {
            0 => String::from("no VLAN tag"),
            1 => String::from("1 VLAN tag"),
            tags => format!("{tags} VLAN tags"),
        }
    );
    if let (Some(interface), Some(driver)) = (&line.interface, &line.driver) {
        let _ = match line.is_nominal {
            Some(true) => writeln!(
                text,
                "{interface} ({driver}) is virtual and has no line: the speed is nominal, a word of its driver."
            ),
            _ => writeln!(text, "Speed and driver of {interface}: {driver}."),
        };
    }
    text.push_str(
        "L2: frames from destination address to FCS. L1: with preamble, SFD and gap. Rates: a full line.\n",
    );
    text
}

/// Formats a rate exactly, in the greatest unit that takes at most three decimals: `2.5 G`, `100 M`.
fn scaled(bits: u64) -> String {
    let units = [
        (1_000_000_000_000, "T"),
        (1_000_000_000, "G"),
        (1_000_000, "M"),
        (1_000, "k"),
    ];
    let fitting = units
        .into_iter()
        .find(|(unit, _)| bits >= *unit && bits.is_multiple_of(unit / 1000));
    match fitting {
        Some((unit, letter)) => format!("{} {letter}", bits as f64 / unit as f64),
        None => format!("{} ", count(bits)),
    }
}

fn names(has_rate: bool) -> Vec<String> {
    let all = "packet|bytes|frames|L2 bytes|L1 bytes|packets/s|frames/s|L2 Mbit/s|payload Mbit/s";
    let rate = if has_rate { "|rate|% of the line" } else { "" };
    let names = all.split('|').chain(rate.split('|').skip(1));
    names.map(String::from).collect()
}

fn cells(row: &LineRow, has_rate: bool) -> Vec<String> {
    let packet = match row.ip_version {
        Some(ip) => format!("{} IPv{}", row.packet, ip.0),
        None => row.packet.clone(),
    };
    let mut cells = vec![packet];
    cells.extend(fields::cells(
        row,
        &[
            "{asked_bytes:raw}",
            "{frames:raw}",
            "{frame_bytes:raw}",
            "{line_bytes:raw}",
            "{packets_per_second}",
            "{frames_per_second}",
        ],
    ));
    cells.push(megabits(Some(row.frame_bits_per_second)));
    cells.push(megabits(row.payload_bits_per_second));
    if has_rate {
        let packets = row.rate.and_then(|rate| rate.packets_per_second);
        let bits = row.rate.and_then(|rate| rate.bits_per_second);
        let asked = packets.map(|rate| format!("{} packets/s", count(rate)));
        let asked = asked.or(bits.map(|rate| format!("{} Mbit/s", count(rate / 1e6))));
        cells.push(asked.unwrap_or_default());
        let share = row.rate.and_then(|rate| rate.line_ratio);
        cells.push(share.map_or_else(|| String::from(MISSING), share_of_line));
    }
    cells
}

/// Formats a share in percent. If three figures would show a full line that is not full, it gets as many as
/// distinguish the two: one frame more than a line carries is too many.
fn share_of_line(share: f64) -> String {
    let percents = share * 100.0;
    let short = figure(percents);
    if short != "100" || percents == 100.0 {
        return short;
    }
    let exact = (1..=9).map(|decimals| format!("{percents:.decimals$}"));
    let mut told = exact.filter(|text| text.trim_end_matches('0') != "100.");
    told.next().unwrap_or(short)
}

/// Formats with three decimals, rounded down: a line carries no more.
fn megabits(bits: Option<u64>) -> String {
    let Some(bits) = bits else {
        return String::from(MISSING);
    };
    let thousandths = bits / 1000;
    format!("{}.{:03}", count(thousandths / 1000), thousandths % 1000)
}

fn notes(rates: &LineRates) -> Vec<&'static str> {
    let rows = &rates.rows;
    let has = |packet: &str, frames: u64| {
        rows.iter()
            .any(|row| row.packet == packet && row.cost.frames >= frames)
    };
    let mut notes = Vec::new();
    if has("udp", 2) {
        notes.push("UDP above the MTU is fragmented: a datagram takes several frames, and is lost with any of them.\n");
    }
    if has("tcp", 2) {
        notes.push(
            "TCP above the MTU is cut into segments: a packet is one write, sent by itself.\n",
        );
    }
    if rows.iter().any(|row| row.cost.padding_bytes > 0) {
        notes.push(
            "Frames below 64 bytes are padded; the padding counts as L2, never as payload.\n",
        );
    }
    if has("imix", 1) {
        notes.push("imix: seven frames of 64 bytes, four of 594 and one of 1518; bytes are those of all twelve.\n");
    }
    let beyond = |row: &LineRow| row.rate.and_then(|rate| rate.line_ratio) > Some(1.0);
    if rows.iter().any(beyond) {
        notes.push("Above 100 %: more than the line can carry.\n");
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_exact() {
        let shown = [
            (100_000_000, "100 M"),
            (2_500_000_000, "2.5 G"),
            (1_544_000, "1.544 M"),
            (1_234_567, "1234.567 k"),
            (7, "7 "),
            (400_000_000_000, "400 G"),
        ];
        for (bits, text) in shown {
            assert_eq!(scaled(bits), text);
        }
    }

    #[test]
    fn a_frame_more_than_a_line_carries_is_no_full_line() {
        let line = 1e9 / (8.0 * 84.0);
        let shown =
            [1_488_096.0, 1_488_095.0, line, 744_047.0].map(|rate| share_of_line(rate / line));
        assert_eq!(shown, ["100.0001", "99.99998", "100", "50.0"]);
    }

    #[test]
    fn megabits_are_never_rounded_up() {
        assert_eq!(megabits(Some(49_230_769)), "49.230");
        assert_eq!(megabits(Some(999_999_999)), "999.999");
        assert_eq!(megabits(Some(98_461_538_461)), "98,461.538");
        assert_eq!(megabits(None), MISSING);
    }
}
