//! A run of the simulator as text: the figures end to end and of each host, and the bottleneck.

use std::fmt::Write;

use nicpoll_model::numbers::{MISSING, count, figure, figure_or_missing};
use nicpoll_model::sim::{
    SimBottleneck, SimFigures, SimHostFigures, SimLedger, SimPlan, SimPolling, SimQueue, SimRun,
    SimSlice, SimStop, SimTcp,
};
use serde::Serialize;

use crate::documents::running::rr::{PERCENTILES, without_percentiles};
use crate::fields::{filled, filled_lines, filled_part, section};
use crate::text::{aligned_lines, named};

/// Width of the names at the left.
const NAME: usize = 12;

/// Renders a run: its figures, and its bottleneck.
pub fn render_sim_run(run: &SimRun) -> String {
    let mut text = filled(
        ".\n{workload}, {seconds:raw} s of virtual time after {warmup_seconds:raw} s of warm-up, seed {seed:raw}.\n\n",
        &run.plan,
    );
    text.insert_str(0, &format!("Simulated, not measured: {}", hosts(&run.plan)));
    match &run.figures.hosts[..] {
        [host] => alone(&mut text, run, host),
        _ => path(&mut text, run),
    }
    text
}

fn hosts(plan: &SimPlan) -> String {
    let kind = if plan.hosts.len() == 1 { "host " } else { "" };
    let hosts = plan.hosts.iter();
    let hosts: Vec<String> = hosts
        .map(|stop| format!("{kind}{} under {}", stop.host, stop.discipline))
        .collect();
    hosts.join(", then ")
}

/// Writes a host with ideal hosts at the far end of its lines.
fn alone(text: &mut String, run: &SimRun, host: &SimHostFigures) {
    let (figures, workload) = (&run.figures, &run.plan.workload);
    rates(text, figures, host, workload);
    balance(text, &figures.ledger);
    for loss in &figures.ledger.losses {
        let lost = format!("{} lost: {}", count(loss.datagrams), loss.place.name());
        item(text, "", &lost);
    }
    cards(text, figures, host);
    tell(text, "latency", PERCENTILES, &figures.latency);
    tell(text, "jitter", "{jitter_ns:time}", figures);
    processor_states(text, host);
    let delivered = figures.ledger.delivered_datagrams;
    let a_packet = host.context_switches as f64 / delivered as f64;
    let switches = format!(
        "{} ({} a packet); {} interrupts of the {}",
        count(host.context_switches),
        figure_or_missing((delivered > 0).then_some(a_packet)),
        count(host.interrupts),
        several(host, "card")
    );
    item(text, "switches", &switches);
    queues(text, &host.queues);
    discipline(text, host);
    *text += &without_percentiles(&figures.latency);
    if !figures.slices.is_empty() {
        text.push('\n');
        text.push_str(&slices(&figures.slices));
    }
    text.push('\n');
    bottleneck(text, &run.bottleneck, delivered_unit(workload));
}

/// Returns a template by its name among those of the simulator.
pub fn template(name: &str) -> &'static str {
    section(include_str!("lines.txt"), name)
}

/// Adds a line with a name at its left.
pub fn item(text: &mut String, name: &str, value: &str) {
    *text += &named(name, NAME, value);
}

/// Adds a line with fields of a part of the document; none where that part is null.
fn tell(text: &mut String, name: &str, template: &str, part: &impl Serialize) {
    if let Some(told) = filled_part(template, part) {
        item(text, name, &told);
    }
}

/// Returns the name of something that each of a host's cards has.
fn several(host: &SimHostFigures, name: &str) -> String {
    let plural = if host.cards.len() > 1 { "s" } else { "" };
    format!("{name}{plural}")
}

/// A share with one decimal.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Returns the unit of what a workload offers.
fn unit(workload: &str) -> &'static str {
    match workload.split(':').next() {
        Some("blast") => "calls/s",
        Some("rr") => "requests/s",
        _ => "packets/s",
    }
}

/// Returns the unit of what is delivered.
pub fn delivered_unit(workload: &str) -> &'static str {
    match unit(workload) {
        "requests/s" => "replies/s",
        _ => "packets/s",
    }
}

fn rates(text: &mut String, figures: &SimFigures, host: &SimHostFigures, workload: &str) {
    let offered = format!(
        "{} {}",
        figure(figures.offered_packets_per_second),
        unit(workload)
    );
    item(text, "offered", &offered);
    let loss = match figures.loss_ratio {
        Some(ratio) => format!("{} lost", percent(ratio)),
        None => String::from("nothing offered"),
    };
    let delivered = format!(
        "{} {}, {} Mbit/s of payload; {loss}; {} of the {} in use",
        figure(figures.delivered_packets_per_second),
        delivered_unit(workload),
        figure(figures.delivered_payload_bits_per_second / 1e6),
        host.line_ratio().map_or(String::from(MISSING), percent),
        several(host, "line")
    );
    item(text, "delivered", &delivered);
}

/// Writes a ledger's two sides.
fn balance(text: &mut String, ledger: &SimLedger) {
    let [start, end] = [
        ledger.in_flight_at_start_datagrams,
        ledger.in_flight_at_end_datagrams,
    ];
    let each = [
        start,
        ledger.offered_datagrams,
        ledger.delivered_datagrams,
        ledger.lost(),
        end,
    ];
    let [start, offered, delivered, lost, end] = each.map(count);
    let balance = format!(
        "{start} in flight + {offered} offered = {delivered} delivered + {lost} lost + {end} in flight"
    );
    item(text, "ledger", &balance);
}

/// Writes how evenly clients were served, and each card's figures if there are several.
fn cards(text: &mut String, figures: &SimFigures, host: &SimHostFigures) {
    // A single client on each line is described with its card.
    let cards = host.cards.len() as u64;
    if let Some(clients) = figures.clients.filter(|clients| clients.clients > cards) {
        let median = count(clients.served_median_packets.round() as u64);
        let served = format!("{} {median}", filled(template("clients"), &clients));
        item(text, "clients", &served);
    }
    for (number, card) in (1..).zip(&host.cards).filter(|_| cards > 1) {
        tell(text, &format!("card {number}"), template("card"), card);
    }
}

/// The parts of the counted time, as a table.
fn slices(slices: &[SimSlice]) -> String {
    let knobs = ["burst", "pending_polls", "lost_polls", "stalled"];
    let has_knobs = slices.iter().any(|slice| !slice.knobs.is_empty());
    let shown = if has_knobs { &knobs[..] } else { &[] };
    let names = "until s|offered|delivered|lost|interrupts|throttled";
    let row = "{end_seconds:raw}|{offered_packets}|{delivered_packets}|{lost_packets}|{interrupts}|{throttled_passes}";
    let cells = |row: &str| row.split('|').map(String::from).collect::<Vec<_>>();
    let head = cells(names)
        .into_iter()
        .chain(shown.iter().map(ToString::to_string));
    let mut lines: Vec<Vec<String>> = vec![head.collect()];
    for slice in slices {
        let of = |name: &&str| slice.knobs.iter().find(|knob| knob.name == **name);
        let knobs = shown.iter().map(of);
        let knobs = knobs.map(|knob| knob.map_or(String::from(MISSING), |it| it.value.to_string()));
        lines.push(
            cells(&filled(row, slice))
                .into_iter()
                .chain(knobs)
                .collect(),
        );
    }
    aligned_lines(&lines, 1)
}

/// Writes the exact and the sampled CPU states.
fn processor_states(text: &mut String, host: &SimHostFigures) {
    let states = template("states");
    tell(text, "processor", states, &host.cpu);
    for (number, cpu) in (1..).zip(&host.cpus) {
        tell(text, &format!("  number {number}"), states, cpu);
    }
    let sampled = filled_part(states, &host.cpu_sampled);
    item(text, "as sampled", sampled.as_deref().unwrap_or(MISSING));
}

fn queues(text: &mut String, queues: &[SimQueue]) {
    let used = queues.iter().filter(|queue| queue.most_packets > 0);
    let each: Vec<_> = used
        .map(|queue| filled("{name} {most_packets}/{limit_packets}", queue))
        .collect();
    if !each.is_empty() {
        item(text, "most held", &each.join(", "));
    }
}

/// Writes the discipline's own figures.
fn discipline(text: &mut String, host: &SimHostFigures) {
    tell(text, "passes", template("passes"), &host.storm);
    tell(text, "polling", template("polling"), &host.polling);
    knobs(text, host.polling.as_ref());
    tell(text, "NAPI", template("NAPI"), &host.napi);
}

fn knobs(text: &mut String, polling: Option<&SimPolling>) {
    let rows = polling.iter().flat_map(|polling| polling.knobs.chunks(8));
    for (row, knobs) in rows.enumerate() {
        let each = knobs.iter();
        let each: Vec<_> = each
            .map(|knob| format!("{} {}", knob.name, knob.value))
            .collect();
        item(text, if row == 0 { "knobs" } else { "" }, &each.join("  "));
    }
}

fn bottleneck(text: &mut String, bottleneck: &SimBottleneck, unit: &str) {
    text.push_str(match bottleneck.is_binding {
        true => "Bottleneck: ",
        false => "No bottleneck. Fullest: ",
    });
    *text += &filled(
        "{resource}, {fullness_ratio:%} full.\n{explanation}\n",
        bottleneck,
    );
    if !bottleneck.is_binding {
        return;
    }
    let moves = match bottleneck.moves.as_deref() {
        None => return text.push_str("What would move it was not tried.\n"),
        Some([]) => return text.push_str("No single change that was tried brings more.\n"),
        Some(moves) => moves,
    };
    text.push_str("What would move it, each change simulated by itself:\n");
    let width = moves.iter().map(|tried| tried.change.len()).max();
    for tried in moves {
        let ratio = tried.ratio.map(|ratio| format!("x {ratio:.2}"));
        let _ = writeln!(
            text,
            "  {:<width$}  {:>9} {unit}  {}",
            tried.change,
            figure(tried.delivered_packets_per_second),
            ratio.as_deref().unwrap_or(MISSING),
            width = width.unwrap_or(0)
        );
    }
}

/// Writes the figures of a path end to end, then of each host, and the bottleneck.
fn path(text: &mut String, run: &SimRun) {
    let figures = &run.figures;
    for tcp in &figures.connections {
        *text += &filled_lines(template("connection"), tcp);
    }
    let flows = figures.flows.iter();
    for flow in flows.filter(|_| figures.connections.is_empty()) {
        tell(text, &flow.name, template("sent"), flow);
        tell(text, "", template("read"), flow);
        tell(text, "latency", PERCENTILES, &flow.latency);
        tell(text, "round trip", PERCENTILES, &flow.round_trip);
        tell(text, "jitter", "{jitter_ns:time}", flow);
    }
    path_ledger(text, &run.plan.hosts, &figures.ledger);
    for (number, line) in (1..).zip(&figures.lines) {
        let way = if line.is_half_duplex { "half" } else { "full" };
        let used = "{forth_ratio:%} in use forth, {back_ratio:%} back";
        let used = format!(
            "{}, {way} duplex; {}",
            filled("{bits_per_second:/1e6} Mbit/s", line),
            filled(used, line)
        );
        item(text, &format!("line {number}-{}", number + 1), &used);
    }
    for (number, host) in figures.hosts.iter().enumerate() {
        path_host(text, number, &run.plan.hosts[number], host);
    }
    text.push('\n');
    let slices = tcp_slices(&figures.connections);
    if !slices.is_empty() {
        text.push_str(&slices);
        text.push('\n');
    }
    // Improvements are counted at the path's end.
    let unit = match unit(&run.plan.workload) {
        requests @ "requests/s" => requests,
        _ => "packets/s",
    };
    bottleneck(text, &run.bottleneck, unit);
}

fn path_ledger(text: &mut String, stops: &[SimStop], ledger: &SimLedger) {
    balance(text, ledger);
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

fn path_host(text: &mut String, number: usize, stop: &SimStop, host: &SimHostFigures) {
    let name = filled("{host} under {discipline}:\n", stop);
    *text += &format!("\nHost {}, {name}", number + 1);
    let packets = "{received_packets} received, {made_packets} made, {transmitted_packets} transmitted, {taken_packets} read";
    let lost: u64 = host.ledger.losses.iter().map(|loss| loss.packets).sum();
    let packets = format!("{}, {} lost", filled(packets, &host.ledger), count(lost));
    item(text, "IP packets", &packets);
    processor_states(text, host);
    let switches = "{context_switches}; {interrupts} interrupts of its cards";
    tell(text, "switches", switches, host);
    queues(text, &host.queues);
    discipline(text, host);
}

/// Renders the parts of the counted time as a table, with a column for each connection.
fn tcp_slices(connections: &[SimTcp]) -> String {
    let Some(first) = connections.first().filter(|tcp| !tcp.slices.is_empty()) else {
        return String::new();
    };
    let names = connections.iter().flat_map(|tcp| {
        let rate = filled("{from} to {to}, Mbit/s", tcp);
        [rate, String::from("sent again")]
    });
    let head = [String::from("until s")].into_iter().chain(names);
    let mut lines: Vec<Vec<String>> = vec![head.collect()];
    for (number, slice) in first.slices.iter().enumerate() {
        let each = connections.iter().filter_map(|tcp| tcp.slices.get(number));
        let cells = each.flat_map(|slice| {
            let rate = figure(slice.goodput_bits_per_second / 1e6);
            [rate, count(slice.retransmitted_segments)]
        });
        let until = [slice.end_seconds.to_string()].into_iter();
        lines.push(until.chain(cells).collect());
    }
    aligned_lines(&lines, 1)
}
