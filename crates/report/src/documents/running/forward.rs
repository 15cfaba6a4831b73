//! What a router forwarded, as text, line by line as it runs.

use std::fmt::Write;

use nicpoll_model::engine::{
    FORWARD_SCHEMA, Fate, ForwardCounts, ForwardEnd, ForwardFate, ForwardInterval, ForwardStart,
    LOST, PASSED,
};
use nicpoll_model::numbers::{count, per_second};

use super::stream::{PageTexts, amount, list, of_the_link};

/// How its parts read.
pub const FORWARD_TEXTS: PageTexts<ForwardStart, ForwardInterval, ForwardEnd> = PageTexts {
    schema: FORWARD_SCHEMA,
    start: render_forward_start,
    interval: render_forward_interval,
    end: render_forward_end,
};

/// What is forwarded and how, and the names of the columns.
fn render_forward_start(start: &ForwardStart) -> String {
    let names: Vec<&str> = start.interfaces.iter().map(|i| i.name.as_str()).collect();
    let mut text = format!(
        "{}: forwarding IPv4 and IPv6 by the kernel's routes; everything else goes to the kernel\n\
         path {}: {}\n\
         Forwarded packets do not come to nftables, iptables, traffic control or rp_filter.\n",
        names.join(", "),
        start.path,
        start.path_reason
    );
    if let Some(engine) = &start.engine {
        let _ = writeln!(
            text,
            "{} at {} Hz, controller {}, on CPU {}",
            engine.discipline,
            engine.hz,
            engine.controller,
            list(&engine.cpus)
        );
    }
    for interface in &start.interfaces {
        let changes = &interface.kernel_side.changes;
        if !changes.is_empty() {
            let _ = writeln!(
                text,
                "{}: kernel's side {}; changed for that, and put back at the end: {}",
                interface.name,
                interface.kernel_side.name,
                changes.join(", ")
            );
        }
    }
    for note in &start.notes {
        let _ = writeln!(text, "{note}");
    }
    let _ = writeln!(
        text,
        "\n{:>8} {:>12} {:>12} {:>12} {:>10}",
        "seconds", "received/s", "forwarded/s", "to kernel/s", "lost"
    );
    text
}

/// An interval as one line.
fn render_forward_interval(interval: &ForwardInterval) -> String {
    let seconds = interval.end_seconds - interval.start_seconds;
    line(interval.end_seconds, seconds, &interval.counts)
}

fn line(end_seconds: f64, seconds: f64, counts: &ForwardCounts) -> String {
    format!(
        "{end_seconds:>8.1} {:>12} {:>12} {:>12} {:>10}\n",
        per_second(counts.received_packets as f64, seconds),
        per_second(counts.forwarded_packets as f64, seconds),
        per_second(counts.passed_packets as f64, seconds),
        count(counts.lost_packets),
    )
}

/// What it came to.
fn render_forward_end(end: &ForwardEnd) -> String {
    let account = &end.account;
    let seconds = end.duration_seconds;
    let mut text = String::from("\nall of it\n");
    text.push_str(&line(seconds, seconds, &account.counts()));
    text.push('\n');
    text += &amount(account.received_packets, "packets received");
    text += &amount(account.forwarded_packets, "forwarded");
    for (what, table, fates) in [
        ("left to the kernel", &PASSED[..], &account.passed),
        ("lost", &LOST[..], &account.lost),
    ] {
        for fate in fates.iter().filter(|fate| fate.packets > 0) {
            let meaning = meaning_of(table, fate);
            text += &amount(fate.packets, &format!("{what}: {meaning}"));
        }
    }
    text += &amount(account.residual_packets, "unaccounted for\n");
    for from in &end.interfaces {
        let counts = from.account.counts();
        let _ = writeln!(
            text,
            "from {}: received {}, forwarded {}, left to the kernel {}, lost {}",
            from.name,
            count(counts.received_packets),
            count(counts.forwarded_packets),
            count(counts.passed_packets),
            count(counts.lost_packets)
        );
    }
    let [losses, mtu_changes] =
        [end.link_loss_events, end.mtu_changes].map(Option::unwrap_or_default);
    text.push_str(&of_the_link("An interface", losses, mtu_changes));
    for variable in &end.polling {
        let _ = writeln!(text, "kern.polling.{}: {}", variable.name, variable.value);
    }
    text
}

/// What a row means; one that another version wrote is shown by its name.
fn meaning_of<'a>(table: &[Fate], fate: &'a ForwardFate) -> &'a str {
    let mut rows = table.iter();
    rows.find(|(name, _)| *name == fate.name)
        .map_or(fate.name.as_str(), |(_, meaning)| *meaning)
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
