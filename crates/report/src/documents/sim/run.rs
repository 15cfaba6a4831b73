//! A run of the simulator as text: what came out, end to end and on each host, and why no more did.

use std::fmt::Write;

use nicpoll_model::sim::{
    SimBottleneck, SimCpu, SimFigures, SimFlow, SimHostFigures, SimLedger, SimNapi, SimPlan,
    SimPolling, SimQueue, SimRun, SimSlice, SimStop, SimStorm, SimTcp, SimTcpSlice,
};

use nicpoll_model::numbers::{MISSING, count, figure, figure_or_missing, time_figure};

use crate::documents::running::rr::{percentiles, without_percentiles};
use crate::text::{aligned_lines, named};

/// Width of the names at the left.
const NAME: usize = 12;

/// A run as text: what came out, and why no more did.
pub fn render_sim_run(run: &SimRun) -> String {
    match &run.figures.hosts[..] {
        [host] => alone(run, host),
        _ => path(run),
    }
}

/// A host with ideal hosts at the far end of its lines.
fn alone(run: &SimRun, host: &SimHostFigures) -> String {
    let mut text = head(&run.plan);
    let figures = &run.figures;
    rates(&mut text, figures, host, &run.plan.workload);
    ledger(&mut text, &figures.ledger);
    clients(&mut text, figures, host);
    cards(&mut text, host);
    item(&mut text, "latency", &percentiles(&figures.latency));
    item(&mut text, "jitter", &rounded(figures.jitter_ns));
    processor(&mut text, figures, host);
    queues(&mut text, &host.queues);
    discipline(&mut text, host);
    text += &without_percentiles(&figures.latency);
    if !figures.slices.is_empty() {
        text.push('\n');
        text.push_str(&slices(&figures.slices));
    }
    text.push('\n');
    bottleneck(
        &mut text,
        &run.bottleneck,
        delivered_unit(&run.plan.workload),
    );
    text
}

fn head(plan: &SimPlan) -> String {
    let kind = if plan.hosts.len() == 1 { "host " } else { "" };
    let stop = |stop: &SimStop| format!("{kind}{} under {}", stop.host, stop.discipline);
    let hosts: Vec<_> = plan.hosts.iter().map(stop).collect();
    format!(
        "Simulated, not measured: {}.\n{}, {} s of virtual time after {} s of warm-up, seed {}.\n\n",
        hosts.join(", then "),
        plan.workload,
        plan.seconds,
        plan.warmup_seconds,
        plan.seed
    )
}

/// Adds a line with a name at its left.
pub fn item(text: &mut String, name: &str, value: &str) {
    *text += &named(name, NAME, value);
}

/// A mean time, `-` for none.
fn rounded(mean_ns: Option<f64>) -> String {
    time_figure(mean_ns.map(|ns| ns.round() as u64))
}

/// A share that there may be none of.
fn ratio(share: Option<f64>) -> String {
    share.map_or_else(|| String::from(MISSING), percent)
}

/// A share with one decimal.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// What a workload offers.
fn unit(workload: &str) -> &'static str {
    match workload.split(':').next() {
        Some("blast") => "calls/s",
        Some("rr") => "requests/s",
        _ => "packets/s",
    }
}

/// What comes out of it.
pub fn delivered_unit(workload: &str) -> &'static str {
    match unit(workload) {
        "requests/s" => "replies/s",
        _ => "packets/s",
    }
}

fn rates(text: &mut String, figures: &SimFigures, host: &SimHostFigures, workload: &str) {
    let unit = unit(workload);
    let offered = format!("{} {unit}", figure(figures.offered_pps));
    item(text, "offered", &offered);
    let loss = match figures.loss_ratio {
        Some(ratio) => format!("{} lost", percent(ratio)),
        None => String::from("nothing offered"),
    };
    let delivered = delivered_unit(workload);
    let lines = if host.cards.len() > 1 {
        "lines"
    } else {
        "line"
    };
    let delivered = format!(
        "{} {delivered}, {} Mbit/s of payload; {loss}; {} of the {lines} in use",
        figure(figures.delivered_pps),
        figure(figures.delivered_payload_bits_per_second / 1e6),
        ratio(host.line_ratio())
    );
    item(text, "delivered", &delivered);
}

fn ledger(text: &mut String, ledger: &SimLedger) {
    balance(text, ledger);
    for loss in &ledger.losses {
        let lost = format!("{} lost: {}", count(loss.datagrams), loss.place.name());
        item(text, "", &lost);
    }
}

/// A ledger's two sides.
fn balance(text: &mut String, ledger: &SimLedger) {
    let [start, end] = [ledger.in_flight_at_start, ledger.in_flight_at_end];
    let each = [start, ledger.offered, ledger.delivered, ledger.lost(), end];
    let [start, offered, delivered, lost, end] = each.map(count);
    let balance = format!(
        "{start} in flight + {offered} offered = {delivered} delivered + {lost} lost + {end} in flight"
    );
    item(text, "ledger", &balance);
}

fn clients(text: &mut String, figures: &SimFigures, host: &SimHostFigures) {
    // One on each line is told of with its card.
    let cards = host.cards.len() as u64;
    if let Some(clients) = figures.clients.filter(|clients| clients.count > cards) {
        let served = format!(
            "{}, each served {} to {} times, the median {}",
            count(clients.count),
            count(clients.served_least),
            count(clients.served_most),
            count(clients.served_median.round() as u64)
        );
        item(text, "clients", &served);
    }
}

fn cards(text: &mut String, host: &SimHostFigures) {
    if host.cards.len() < 2 {
        return;
    }
    for (number, card) in host.cards.iter().enumerate() {
        let did = format!(
            "{} received, {} of them lost in its ring; {} interrupts; {} of its line in use",
            count(card.received),
            count(card.ring_lost),
            count(card.interrupts),
            ratio(card.line_ratio)
        );
        item(text, &format!("card {}", number + 1), &did);
    }
}

/// The parts of the counted time, as a table.
fn slices(slices: &[SimSlice]) -> String {
    let knobs = ["burst", "pending_polls", "lost_polls", "stalled"];
    let has_knobs = slices.iter().any(|slice| !slice.knobs.is_empty());
    let shown = if has_knobs { &knobs[..] } else { &[] };
    let names = [
        "until s",
        "offered",
        "delivered",
        "lost",
        "interrupts",
        "throttled",
    ];
    let mut lines: Vec<Vec<String>> =
        vec![names.iter().chain(shown).map(ToString::to_string).collect()];
    for slice in slices {
        let mut cells = vec![slice.end_seconds.to_string()];
        let counts = [
            slice.offered,
            slice.delivered,
            slice.lost,
            slice.interrupts,
            slice.throttled,
        ];
        cells.extend(counts.map(count));
        cells.extend(shown.iter().map(|name| {
            let knob = slice.knobs.iter().find(|knob| knob.name == *name);
            knob.map_or_else(|| String::from(MISSING), |knob| knob.value.to_string())
        }));
        lines.push(cells);
    }
    aligned_lines(&lines, 1)
}

fn processor(text: &mut String, figures: &SimFigures, host: &SimHostFigures) {
    processor_states(text, host);
    let delivered = figures.ledger.delivered;
    let a_packet = host.context_switches as f64 / delivered as f64;
    let switches = format!(
        "{} ({} a packet); {} interrupts of the {}",
        count(host.context_switches),
        figure_or_missing((delivered > 0).then_some(a_packet)),
        count(host.interrupts),
        if host.cards.len() > 1 {
            "cards"
        } else {
            "card"
        }
    );
    item(text, "switches", &switches);
}

/// The exact account, and what one that samples would have shown.
fn processor_states(text: &mut String, host: &SimHostFigures) {
    let states = |cpu: &SimCpu| {
        format!(
            "user {}  system {}  interrupt {}  soft interrupt {}  idle {}",
            percent(cpu.user),
            percent(cpu.system),
            percent(cpu.interrupt),
            percent(cpu.soft_interrupt),
            percent(cpu.idle)
        )
    };
    item(text, "processor", &states(&host.cpu));
    for (number, cpu) in host.cpus.iter().enumerate() {
        item(text, &format!("  number {}", number + 1), &states(cpu));
    }
    let sampled = host.cpu_sampled.as_ref();
    item(
        text,
        "as sampled",
        &sampled.map_or(String::from(MISSING), states),
    );
}

fn queues(text: &mut String, queues: &[SimQueue]) {
    let used = queues.iter().filter(|queue| queue.most > 0);
    let each: Vec<_> = used
        .map(|queue| {
            format!(
                "{} {}/{}",
                queue.name,
                count(queue.most),
                count(queue.limit)
            )
        })
        .collect();
    if !each.is_empty() {
        item(text, "most held", &each.join(", "));
    }
}

/// What the discipline itself did.
fn discipline(text: &mut String, host: &SimHostFigures) {
    if let Some(storm) = host.storm {
        self::storm(text, storm);
    }
    if let Some(polling) = &host.polling {
        self::polling(text, polling);
    }
    if let Some(napi) = host.napi {
        self::napi(text, napi);
    }
}

fn storm(text: &mut String, storm: SimStorm) {
    let passes = format!(
        "{} passes of the interrupt thread, {} throttled, {} storms reported",
        count(storm.passes),
        count(storm.throttled),
        count(storm.reports)
    );
    item(text, "passes", &passes);
}

fn polling(text: &mut String, polling: &SimPolling) {
    let bound = |burst: Option<u32>| burst.map_or_else(|| String::from(MISSING), count);
    let cycles = format!(
        "{} cycles asked for {} packets; burst {} on average, {} to {}; controller {}",
        count(polling.cycles),
        count(polling.asked),
        figure_or_missing(polling.burst_mean),
        bound(polling.burst_min),
        bound(polling.burst_max_reached),
        polling.controller
    );
    item(text, "polling", &cycles);
    for (row, knobs) in polling.knobs.chunks(8).enumerate() {
        let each: Vec<_> = knobs
            .iter()
            .map(|knob| format!("{} {}", knob.name, knob.value))
            .collect();
        item(text, if row == 0 { "knobs" } else { "" }, &each.join("  "));
    }
}

fn napi(text: &mut String, napi: SimNapi) {
    let polls = format!(
        "{} polls, {} of them empty, {} begun by the timer; {} by the program; time_squeeze {}; handed to \
         ksoftirqd {} times",
        count(napi.polls),
        count(napi.empty_polls),
        count(napi.timer_polls),
        count(napi.busy_polls),
        count(napi.time_squeezes),
        count(napi.handovers)
    );
    item(text, "NAPI", &polls);
}

fn bottleneck(text: &mut String, bottleneck: &SimBottleneck, unit: &str) {
    let name = if bottleneck.is_binding {
        "Bottleneck"
    } else {
        "No bottleneck. Fullest"
    };
    let _ = writeln!(
        text,
        "{name}: {}, {} full.\n{}",
        bottleneck.resource,
        percent(bottleneck.fullness),
        bottleneck.explanation
    );
    if !bottleneck.is_binding {
        return;
    }
    let Some(moves) = &bottleneck.moves else {
        text.push_str("What would move it was not tried.\n");
        return;
    };
    if moves.is_empty() {
        text.push_str("No single change that was tried brings more.\n");
        return;
    }
    text.push_str("What would move it, each change simulated by itself:\n");
    let width = moves.iter().map(|tried| tried.change.len()).max();
    for tried in moves {
        let ratio = tried
            .ratio
            .map_or_else(|| String::from(MISSING), |ratio| format!("x {ratio:.2}"));
        let _ = writeln!(
            text,
            "  {:<width$}  {:>9} {unit}  {ratio}",
            tried.change,
            figure(tried.delivered_pps),
            width = width.unwrap_or(0)
        );
    }
}

/// A run as text: what came out end to end, then on each host, and why no more did.
fn path(run: &SimRun) -> String {
    let mut text = head(&run.plan);
    let figures = &run.figures;
    for tcp in &figures.connections {
        connection(&mut text, tcp);
    }
    if figures.connections.is_empty() {
        for flow in &figures.flows {
            self::flow(&mut text, flow);
        }
    }
    path_ledger(&mut text, &run.plan.hosts, figures);
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
        path_host(&mut text, number, &run.plan.hosts[number], host);
    }
    text.push('\n');
    let slices = tcp_slices(&figures.connections);
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

fn path_ledger(text: &mut String, stops: &[SimStop], figures: &SimFigures) {
    let ledger = &figures.ledger;
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
    processor_states(text, host);
    let switches = format!(
        "{}; {} interrupts of its cards",
        count(host.context_switches),
        count(host.interrupts)
    );
    item(text, "switches", &switches);
    queues(text, &host.queues);
    discipline(text, host);
}

/// A connection's lines under the name at the left.
fn connection(text: &mut String, tcp: &SimTcp) {
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
fn tcp_slices(connections: &[SimTcp]) -> String {
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
    aligned_lines(&lines, 1)
}

fn cells_of(slice: &SimTcpSlice) -> [String; 2] {
    [
        figure(slice.goodput_bits_per_second / 1e6),
        count(slice.retransmits),
    ]
}
