//! Runs and sweeps of the simulator: text, CSV and a plot.
//!
//! What must hold: whatever is shown says that it was simulated.

mod chart;
mod fit_host;
mod path;
mod plot;
mod published;
mod sweep;
mod tcp;
mod ticks;

pub use chart::{Chart, Curve, Panel, plot_chart};
pub use fit_host::{render_host_file, render_sim_fit_host};
pub use plot::plot_sweep;
pub use published::render_sim_published;
pub use sweep::{render_sim_sweep, sweep_as_csv};
pub use ticks::{plot_ticks, render_sim_ticks};

use std::fmt::Write;

use nicpoll_model::sim::{
    SimBottleneck, SimCpu, SimFigures, SimHostFigures, SimLedger, SimNapi, SimPlan, SimPolling,
    SimQueue, SimRun, SimSlice, SimStop, SimStorm,
};

use crate::line_rates::aligned;
use crate::numbers::{MISSING, count, figure, figure_or_missing, time_figure};
use crate::rr::percentiles;

/// Width of the names at the left.
const NAME: usize = 12;

/// A run as text: what came out, and why no more did.
pub fn render_sim_run(run: &SimRun) -> String {
    match &run.figures.hosts[..] {
        [host] => alone(run, host),
        _ => path::render(run),
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
    discipline(&mut text, host.storm, host.polling.as_ref(), host.napi);
    if figures.latency.samples > 0 && figures.latency.p999_ns.is_none() {
        let _ = writeln!(
            text,
            "{MISSING}: a percentile is reported only with at least ten samples beyond it."
        );
    }
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
    let stop = |stop: &SimStop| format!("host {} under {}", stop.host, stop.discipline);
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

fn item(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "{name:<NAME$}{value}");
}

/// A mean time, `-` for none.
fn rounded(mean_ns: Option<f64>) -> String {
    time_figure(mean_ns.map(|ns| ns.round() as u64))
}

/// A share that there may be none of.
fn ratio(share: Option<f64>) -> String {
    share.map_or_else(|| String::from(MISSING), percent)
}

fn percent(share: f64) -> String {
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
fn delivered_unit(workload: &str) -> &'static str {
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
    let [start, end] = [ledger.in_flight_at_start, ledger.in_flight_at_end];
    balance(
        text,
        [start, ledger.offered, ledger.delivered, ledger.lost(), end],
    );
    for loss in &ledger.losses {
        let lost = format!("{} lost: {}", count(loss.datagrams), loss.place.name());
        item(text, "", &lost);
    }
}

/// A ledger's two sides.
fn balance(text: &mut String, each: [u64; 5]) {
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
    aligned(&lines)
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
fn discipline(
    text: &mut String,
    storm: Option<SimStorm>,
    polling: Option<&SimPolling>,
    napi: Option<SimNapi>,
) {
    if let Some(storm) = storm {
        self::storm(text, storm);
    }
    if let Some(polling) = polling {
        self::polling(text, polling);
    }
    if let Some(napi) = napi {
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
