//! The text output of `forward`, line by line.

use nicpoll_model::engine::{
    FORWARD_SCHEMA, ForwardCounts, ForwardEnd, ForwardFate, ForwardInterval, ForwardStart, LOST,
    PASSED,
};
use nicpoll_model::numbers::{count, per_second};

use super::stream::{IntervalColumn, PageTexts, heads, line, lines, of_the_link, variables};
use crate::fields::{filled, stated};

/// Texts of its parts.
pub const FORWARD_TEXTS: PageTexts<ForwardStart, ForwardInterval, ForwardEnd> = PageTexts {
    schema: FORWARD_SCHEMA,
    start: render_forward_start,
    interval: |it| line(&COLUMNS, &it.counts, [it.start_seconds, it.end_seconds]),
    end: render_forward_end,
};

/// Renders what is forwarded and how, and the columns' names.
fn render_forward_start(start: &ForwardStart) -> String {
    let names: Vec<&str> = start.interfaces.iter().map(|i| i.name.as_str()).collect();
    let path = ": forwarding IPv4 and IPv6 by the kernel's routes; everything else goes to the kernel\n\
                path {path}: {path_reason}\n\
                Forwarded packets do not come to nftables, iptables, traffic control or rp_filter.\n";
    let engine = "{engine/discipline} at {engine/hz:raw} Hz, controller {engine/controller}, on CPU {engine/cpus:raw}\n";
    let mut text = names.join(", ") + &filled(path, start) + &stated(start, &[engine]).concat();
    for interface in &start.interfaces {
        let changed = "{name}: kernel's side {kernel_side/name}; changed for that, and put back at the end: \
                       {kernel_side/changes}\n";
        text.extend(stated(interface, &[changed]));
    }
    text.extend(start.notes.iter().map(|note| format!("{note}\n")));
    text + &heads(&COLUMNS)
}

const COLUMNS: [IntervalColumn<ForwardCounts>; 4] = [
    ("received/s", 12, |it, seconds| {
        per_second(it.received_packets as f64, seconds)
    }),
    ("forwarded/s", 12, |it, seconds| {
        per_second(it.forwarded_packets as f64, seconds)
    }),
    ("to kernel/s", 12, |it, seconds| {
        per_second(it.passed_packets as f64, seconds)
    }),
    ("lost", 10, |it, _| count(it.lost_packets)),
];

/// Renders the final account.
fn render_forward_end(end: &ForwardEnd) -> String {
    let account = &end.account;
    let all = line(&COLUMNS, &account.counts(), [0.0, end.duration_seconds]);
    let mut text = format!("\nall of it\n{all}\n");
    text += &lines("forward account", account);
    for (what, table, fates) in [
        ("left to the kernel", &PASSED[..], &account.passed),
        ("lost", &LOST[..], &account.lost),
    ] {
        for fate in fates.iter().filter(|fate| fate.packets > 0) {
            let meaning = meaning_of(table, fate);
            text += &format!("{:>14} {what}: {meaning}\n", count(fate.packets));
        }
    }
    text += &filled("{residual_packets:>14} unaccounted for\n\n", account);
    for from in &end.interfaces {
        let counts = "received {received_packets}, forwarded {forwarded_packets}, left to the kernel {passed_packets}, \
                      lost {lost_packets}\n";
        text += &format!(
            "from {}: {}",
            from.name,
            filled(counts, &from.account.counts())
        );
    }
    let [losses, mtu_changes] =
        [end.link_loss_events, end.mtu_changes].map(Option::unwrap_or_default);
    text + &of_the_link("An interface", losses, mtu_changes) + &variables("", &end.polling)
}

/// Returns the meaning of a row; a row of another version is shown by its name.
fn meaning_of<'a>(table: &[&'static str], fate: &'a ForwardFate) -> &'a str {
    let mut rows = table.iter().filter_map(|row| row.split_once(": "));
    rows.find(|(name, _)| *name == fate.name)
        .map_or(fate.name.as_str(), |(_, meaning)| meaning)
}

#[cfg(test)]
mod tests {
    use nicpoll_model::engine::{ForwardAccount, ForwardedFrom, Lost};

    use super::*;

    #[test]
    fn the_end_names_every_fate_that_a_packet_had_and_no_other() {
        let mut passed = [0; PASSED.len()];
        passed[3] = 7;
        let lost = Lost {
            exit_full: 1,
            ..Lost::default()
        };
        let account = ForwardAccount::of(1_010, 1_000, passed, lost);
        let end = ForwardEnd {
            duration_seconds: 2.0,
            account: account.clone(),
            interfaces: vec![ForwardedFrom {
                name: String::from("em0"),
                account,
            }],
            link_loss_events: Some(2),
            mtu_changes: Some(0),
            polling: Vec::new(),
            polling_by_cpu: Vec::new(),
            ended_by_signal: None,
        };
        let text = render_forward_end(&end);
        for part in [
            "1,000 forwarded\n",
            "7 left to the kernel: TTL or hop limit used up\n",
            "1 lost: the ring or queue of the exit interface was full\n",
            "2 unaccounted for\n",
            "from em0: received 1,010, forwarded 1,000, left to the kernel 7, lost 1\n",
            "An interface went down or away 2 times.\n",
        ] {
            assert!(text.contains(part), "{part} is not in:\n{text}");
        }
        assert_eq!(text.matches("left to the kernel:").count(), 1, "{text}");
        assert!(!text.contains("MTU"), "{text}");
    }
}
