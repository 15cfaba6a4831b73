//! Hosts in a row, as text.

use std::fmt::Write;

use nicpoll_model::sim::{SimFigures, SimFlow, SimHostFigures, SimPlan, SimRun, SimStop};

use super::{balance, bottleneck, discipline, item, percent, rounded, tcp, unit};
use crate::numbers::{count, figure};
use crate::rr::percentiles;

/// A run as text: what came out end to end, then on each host, and why no more did.
pub(super) fn render(run: &SimRun) -> String {
    let mut text = head(&run.plan);
    let figures = &run.figures;
    for connection in &figures.connections {
        tcp::connection(&mut text, connection);
    }
    if figures.connections.is_empty() {
        for flow in &figures.flows {
            self::flow(&mut text, flow);
        }
    }
    ledger(&mut text, &run.plan.hosts, figures);
    for (number, line) in figures.lines.iter().enumerate() {
        let way = if line.is_half_duplex {
            "half duplex"
        } else {
            "full duplex"
        };
        let used = format!(
            "{} Mbit/s, {way}; {} in use forth, {} back",
            figure(line.bits_per_second as f64 / 1e6),
            percent(line.forth_ratio),
            percent(line.back_ratio)
        );
        item(
            &mut text,
            &format!("line {}-{}", number + 1, number + 2),
            &used,
        );
    }
    for (number, host) in figures.hosts.iter().enumerate() {
        self::host(&mut text, number, &run.plan.hosts[number], host);
    }
    text.push('\n');
    let slices = tcp::slices(&figures.connections);
    if !slices.is_empty() {
        text.push_str(&slices);
        text.push('\n');
    }
    // What moves is counted where the path ends.
    let unit = match unit(&run.plan.workload) {
        requests @ "requests/s" => requests,
        _ => "packets/s",
    };
    bottleneck(&mut text, &run.bottleneck, unit);
    text
}

fn head(plan: &SimPlan) -> String {
    let each: Vec<_> = plan
        .hosts
        .iter()
        .map(|stop| format!("{} under {}", stop.host, stop.discipline))
        .collect();
    format!(
        "Simulated, not measured: {}.\n{}, {} s of virtual time after {} s of warm-up, seed {}.\n\n",
        each.join(", then "),
        plan.workload,
        plan.seconds,
        plan.warmup_seconds,
        plan.seed
    )
}

fn flow(text: &mut String, flow: &SimFlow) {
    let sent = format!(
        "{} calls, {} errors; {} packets/s, {} Mbit/s of payload out",
        count(flow.calls),
        count(flow.send_errors),
        figure(flow.sent_pps),
        figure(flow.sent_payload_bits_per_second / 1e6)
    );
    item(text, &flow.name, &sent);
    let read = format!(
        "{} read; {} packets/s, {} Mbit/s of payload in; {} missing, {} out of order",
        count(flow.delivered),
        figure(flow.delivered_pps),
        figure(flow.delivered_payload_bits_per_second / 1e6),
        count(flow.missing),
        count(flow.out_of_order)
    );
    item(text, "", &read);
    item(text, "latency", &percentiles(&flow.latency));
    if let Some(round_trip) = &flow.round_trip {
        item(text, "round trip", &percentiles(round_trip));
    }
    item(text, "jitter", &rounded(flow.jitter_ns));
}

fn ledger(text: &mut String, stops: &[SimStop], figures: &SimFigures) {
    let ledger = &figures.ledger;
    let [start, end] = [ledger.in_flight_at_start, ledger.in_flight_at_end];
    balance(
        text,
        [start, ledger.offered, ledger.delivered, ledger.lost(), end],
    );
    for loss in &ledger.losses {
        let name = stops.get(loss.host).map_or("", |stop| &stop.host);
        let lost = format!(
            "{} lost: {} of {name} (host {})",
            count(loss.datagrams),
            loss.place.name(),
            loss.host + 1
        );
        item(text, "", &lost);
    }
}

fn host(text: &mut String, number: usize, stop: &SimStop, host: &SimHostFigures) {
    let _ = writeln!(
        text,
        "\nHost {}, {} under {}:",
        number + 1,
        stop.host,
        stop.discipline
    );
    let ledger = &host.ledger;
    let packets = format!(
        "{} received, {} made, {} transmitted, {} read, {} lost",
        count(ledger.received),
        count(ledger.made),
        count(ledger.transmitted),
        count(ledger.taken),
        count(ledger.losses.iter().map(|loss| loss.packets).sum::<u64>())
    );
    item(text, "IP packets", &packets);
    super::processor_states(text, host);
    let switches = format!(
        "{}; {} interrupts of its cards",
        count(host.context_switches),
        count(host.interrupts)
    );
    item(text, "switches", &switches);
    super::queues(text, &host.queues);
    discipline(text, host.storm, host.polling.as_ref(), host.napi);
}
