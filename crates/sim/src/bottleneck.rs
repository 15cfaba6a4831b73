//! Why no more came through: which resource is full, and what would move it.
//!
//! The resource follows from where packets were lost and from how full everything was. Remedies are not deduced but tried:
//! one number at a time is changed and the run is repeated.
//!
//! Three kinds of runs differ in what is evidence: a host with ideal hosts at the far end, hosts in a row, and TCP along
//! them.

use nicpoll_core::Knob;
use nicpoll_model::LossPlace;
use nicpoll_model::sim::{
    SimBottleneck, SimCpu, SimFigures, SimMove, SimPathLoss, SimPolling, SimStorm, SimTcp,
};

use crate::spec::discipline::ReceiveDiscipline;
use crate::spec::host::HostModel;
use crate::spec::options::SimError;
use crate::spec::simulation::Simulation;
use crate::spec::traffic::Pattern;
use crate::world::run::simulate;

/// Fewer losses than this share are no bottleneck, but chance.
const LOSS_MIN: f64 = 0.001;
/// From here on a resource is full: what is left is the rest of a whole packet or pass.
const FULL: f64 = 0.97;
/// From this share of segments sent again on losses are what decides.
const RETRANSMITS_MIN: f64 = 0.001;
/// A gain below this is none.
const GAIN_MIN: f64 = 0.01;
/// A gain of this part of what was lost is one, however small.
const LOSS_PART: f64 = 0.25;
/// The most changes that are reported.
const MOVES_MAX: usize = 6;
/// Length of a trial of one host: as long as these many packets take, within bounds.
const TRIAL_PACKETS: f64 = 100_000.0;
const TRIAL_MIN_S: f64 = 0.1;
const TRIAL_MAX_S: f64 = 0.5;
/// Length of a trial of a path: shorter, since there are more changes to try.
const PATH_TRIAL_NS: u64 = 100_000_000;
/// The plan's warm-up, within bounds. The original's burst climbs from 5 to 150 in 145 cycles.
const WARMUP_MIN_NS: u64 = 200_000_000;
const WARMUP_MAX_NS: u64 = 5_000_000_000;

/// What is full, how full, and what that means. [`bottleneck`] adds whose it is, and whether it holds back packets.
fn finding(resource: &str, fullness: f64, explanation: impl Into<String>) -> SimBottleneck {
    SimBottleneck {
        resource: String::from(resource),
        fullness,
        is_binding: false,
        explanation: explanation.into(),
        moves: None,
    }
}

/// What speaks for one resource of a host or another.
#[derive(Clone, Copy)]
struct Evidence<'a> {
    cpu: &'a SimCpu,
    storm: Option<SimStorm>,
    polling: Option<&'a SimPolling>,
    /// Share of the line out that is in use, or of the only one; `None` without a line.
    line_ratio: Option<f64>,
    /// Packets that the driver took from the rings.
    taken: u64,
    /// Cards that they came in by, each about as many.
    cards: u64,
}

impl<'a> Evidence<'a> {
    /// What speaks for a host of a path; of one alone all its lines count.
    fn of(figures: &'a SimFigures, host: usize) -> Self {
        let of = &figures.hosts[host];
        let forth = figures.lines.get(host).map(|line| line.forth_ratio);
        let is_alone = figures.hosts.len() == 1;
        let ledger = &figures.ledger;
        let (reached, ring_lost) = if is_alone {
            let lost = |place| ledger.lost_in(place);
            let reached = ledger.offered.saturating_sub(lost(LossPlace::FarQueue));
            (reached, lost(LossPlace::RxRing))
        } else {
            (of.ledger.received, of.ledger.lost_in(LossPlace::RxRing))
        };
        Evidence {
            // What the fullest of several processors has no time for is lost, whatever the others have.
            cpu: of
                .cpus
                .iter()
                .min_by(|a, b| a.idle.total_cmp(&b.idle))
                .unwrap_or(&of.cpu),
            storm: of.storm,
            polling: of.polling.as_ref(),
            line_ratio: if is_alone { of.line_ratio() } else { forth },
            taken: reached.saturating_sub(ring_lost),
            cards: if is_alone { of.cards.len() as u64 } else { 1 },
        }
    }
}

/// Names what limited a run, and tries what would move it.
///
/// # Errors
/// Why the hosts cannot run the plan; see [`Simulation::check`].
pub fn explain(plan: &Simulation, figures: &SimFigures) -> Result<SimBottleneck, SimError> {
    plan.check()?;
    let mut found = bottleneck(plan, figures);
    found.moves = Some(match found.is_binding {
        true => moves(plan, figures)?,
        false => Vec::new(),
    });
    Ok(found)
}

/// Names what limited a run, without trying what would move it.
pub fn bottleneck(plan: &Simulation, figures: &SimFigures) -> SimBottleneck {
    let (is_binding, host, mut found) = found(plan, figures);
    if !plan.is_alone() {
        found.resource = named(plan, host, &found);
    }
    SimBottleneck {
        is_binding,
        ..found
    }
}

/// The work of trying what would move a run's bottleneck, as [`Simulation::work`] counts it, if there is one.
pub fn explain_work(plan: &Simulation) -> f64 {
    let trials = trials(&trial(plan, None));
    trials.iter().map(|(_, trial)| trial.work()).sum()
}

/// The resource that limited a run, with its host.
pub fn resource(plan: &Simulation, figures: &SimFigures) -> String {
    let (_, host, finding) = found(plan, figures);
    named(plan, host, &finding)
}

fn named(plan: &Simulation, host: usize, finding: &SimBottleneck) -> String {
    let name = &plan.stops[host].host.name;
    if plan.is_alone() {
        return format!("{} of {name}", finding.resource);
    }
    format!("{} of {name} (host {})", finding.resource, host + 1)
}

/// Whether anything held back packets, on which host, and what is full there.
fn found(plan: &Simulation, figures: &SimFigures) -> (bool, usize, SimBottleneck) {
    if plan.is_alone() {
        let (is_binding, finding) = found_alone(plan, figures);
        return (is_binding, 0, finding);
    }
    let (host, finding) = found_on_path(plan, figures);
    (is_path_binding(plan, figures), host, finding)
}

/// The host whose processor has the least idle time, the last of those alike.
fn busiest(figures: &SimFigures) -> usize {
    let idle = |host: usize| figures.hosts[host].cpu.idle;
    let hosts = 0..figures.hosts.len();
    hosts
        .max_by(|a, b| idle(*b).total_cmp(&idle(*a)))
        .unwrap_or(0)
}

fn busy(evidence: Evidence<'_>) -> f64 {
    1.0 - evidence.cpu.idle
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// What of the packets that the poller asked for it got.
fn used_quota(evidence: Evidence<'_>, polling: &SimPolling) -> f64 {
    // Each card is asked for as many, and one of a router's has most of the packets.
    let handlers = polling.knobs.iter().find(|knob| knob.name == "handlers");
    let handlers = handlers.map_or(1, |knob| u64::from(knob.value));
    let asked = (polling.asked * evidence.cards / handlers.max(1)).max(1);
    (evidence.taken as f64 / asked as f64).min(1.0)
}

/// All came through: what is fullest will be full first.
fn headroom(evidence: Evidence<'_>) -> SimBottleneck {
    let line = evidence.line_ratio.map(|ratio| ("line", ratio));
    let mut all = Vec::from_iter(line);
    all.push(("processor", busy(evidence)));
    if let Some(polling) = evidence.polling {
        all.push(("burst", used_quota(evidence, polling)));
    }
    let fullest = all.iter().copied();
    let (resource, fullness) = fullest.fold(("line", 0.0), |fullest, next| {
        if next.1 > fullest.1 { next } else { fullest }
    });
    let each = all
        .iter()
        .map(|(name, used)| format!("{name} {}", percent(*used)));
    let each = each.collect::<Vec<_>>().join(", ");
    let why =
        format!("All that is offered comes through. In use: {each}. The {resource} is fullest.");
    finding(resource, fullness, why)
}

fn sending(evidence: Evidence<'_>, has_failures: bool) -> SimBottleneck {
    let used = percent(evidence.line_ratio.unwrap_or_default());
    let in_use = match evidence.line_ratio {
        Some(ratio) if ratio >= FULL => return line(ratio),
        Some(_) => format!(" and the line is {used} in use"),
        None => String::new(),
    };
    if has_failures {
        let why = format!(
            "The transmit ring is full of frames that have left, and is cleared too seldom: the line is only {used} in \
             use while calls fail."
        );
        return finding("transmit ring", 1.0, why);
    }
    let split = split(evidence);
    let why = format!("Every call succeeds{in_use}: the processor, {split}, cannot send faster.");
    finding("processor", busy(evidence), why)
}

fn line(ratio: f64) -> SimBottleneck {
    let used = percent(ratio);
    let why = format!("The line is {used} in use: more than it carries was to be sent.");
    finding("line", ratio, why)
}

fn split(evidence: Evidence<'_>) -> String {
    let cpu = &evidence.cpu;
    format!(
        "{} busy ({} interrupts, {} software interrupts, {} system, {} program)",
        percent(busy(evidence)),
        percent(cpu.interrupt),
        percent(cpu.soft_interrupt),
        percent(cpu.system),
        percent(cpu.user)
    )
}

fn binding(host: &HostModel, evidence: Evidence<'_>, place: LossPlace) -> SimBottleneck {
    let is_full = busy(evidence) >= FULL;
    match place {
        LossPlace::FarQueue | LossPlace::SendQueue => line(evidence.line_ratio.unwrap_or_default()),
        LossPlace::RxRing => ring(host, evidence),
        LossPlace::IpQueue if is_full => processor(
            evidence,
            "The work of interrupts comes first and leaves too little for the protocols: packets are lost before IP \
             after the driver's work was spent on them",
        ),
        LossPlace::IpQueue => {
            let packets = host.network.ip_queue_packets;
            let why = format!(
                "The driver brings more at once than the {packets} packets that may wait for IP."
            );
            finding("IP input queue", 1.0, why)
        }
        LossPlace::SocketBuffer if is_full => processor(
            evidence,
            "The work on arriving packets comes before the program, which is starved: packets are lost at its socket \
             after all the kernel's work was spent on them",
        ),
        LossPlace::SocketBuffer => {
            let (bytes, busy) = (host.socket.buffer_bytes, percent(busy(evidence)));
            let why = format!(
                "More arrives at once than the {bytes} bytes of the socket hold, though the processor is only {busy} busy."
            );
            finding("socket buffer", 1.0, why)
        }
        // Reassembly is never the first loss of a datagram, and nothing simulated is lost elsewhere.
        _ => headroom(evidence),
    }
}

fn processor(evidence: Evidence<'_>, why: &str) -> SimBottleneck {
    let why = format!("{why}. The processor is {}.", split(evidence));
    finding("processor", busy(evidence), why)
}

/// The ring was full: whoever should have emptied it did not come, or not often enough.
fn ring(host: &HostModel, evidence: Evidence<'_>) -> SimBottleneck {
    let hz = host.cpu.hz;
    if let Some(storm) = evidence.storm.filter(|storm| storm.throttled > 0) {
        let (throttled, passes) = (storm.throttled, storm.passes);
        let why = format!(
            "Interrupt storm detection threw {throttled} of {passes} passes a tick back each: the card is emptied {hz} \
             times a second."
        );
        return finding("storm throttling", 1.0, why);
    }
    if let Some(polling) = evidence.polling
        && used_quota(evidence, polling) >= FULL
    {
        return quota(host, evidence, polling);
    }
    if busy(evidence) >= FULL {
        return processor(
            evidence,
            "Packets are lost in the ring, at no cost, because the processor has no time to take them",
        );
    }
    let (slots, busy) = (host.card.rx_ring, percent(busy(evidence)));
    let why = format!(
        "The {slots} descriptors of the ring fill up before the driver comes to them, though the processor is only \
         {busy} busy over all: packets come in bursts, or the card is looked at too seldom."
    );
    finding("receive ring", 1.0, why)
}

fn quota(host: &HostModel, evidence: Evidence<'_>, polling: &SimPolling) -> SimBottleneck {
    let burst = polling.burst_mean.unwrap_or_default();
    let least = polling.burst_min.unwrap_or_default();
    let most = polling.burst_max_reached.unwrap_or_default();
    let (resource, why) = if polling.full_cycles * 2 > polling.cycles {
        let (hz, busy) = (host.cpu.hz, percent(busy(evidence)));
        let why = format!(
            "Every burst is used up and is as great as burst_max allows: {hz} ticks of {burst:.0} packets a second. The \
             processor is {busy} busy."
        );
        ("burst_max", why)
    } else if u64::from(most - least) * 4 > polling.cycles * 3 {
        // By one a cycle, but for a few.
        let why = format!(
            "Every burst is used up, and still grows by a packet a tick, from {least} to {most} in this run: a longer \
             warm-up shows where it ends."
        );
        ("burst", why)
    } else {
        let split = split(evidence);
        let why = format!(
            "Every burst is used up, and the poller keeps it at {burst:.0} packets a tick so that receiving does not \
             take the share of user programs. The processor is {split}."
        );
        ("user_frac", why)
    };
    finding(resource, used_quota(evidence, polling), why)
}

/// What held a run back, and whether it held back packets.
fn found_alone(plan: &Simulation, figures: &SimFigures) -> (bool, SimBottleneck) {
    let own = plan.stops[0].applied();
    let loses = figures.loss_ratio.is_some_and(|ratio| ratio >= LOSS_MIN);
    let evidence = Evidence::of(figures, 0);
    // Who sends when something is done goes as fast as it can.
    match (&plan.workload.pattern, worst_place(figures)) {
        (Pattern::Blast, place) => (true, sending(evidence, place.is_some())),
        (_, Some(place)) if loses => (true, binding(&own, evidence, place)),
        (Pattern::RequestResponse, _) => (true, answering(evidence, plan.workload.clients)),
        _ => (false, headroom(evidence)),
    }
}

/// No request is lost, and clients send the next when they have the reply.
fn answering(evidence: Evidence<'_>, clients: u16) -> SimBottleneck {
    let line_ratio = evidence.line_ratio.unwrap_or_default();
    if line_ratio >= FULL {
        return line(line_ratio);
    }
    let on_their_way = match clients {
        1 => String::from("One request is on its way at a time"),
        _ => format!("{clients} requests are on their way at a time"),
    };
    if busy(evidence) >= FULL {
        let why = format!("{on_their_way}, and the processor cannot answer faster");
        return processor(evidence, &why);
    }
    let idle = 1.0 - busy(evidence);
    let share = percent(idle);
    let why = format!(
        "{on_their_way}, and for {share} of the time nobody works on any: on a line, or waiting for an interrupt, a tick \
         or a timer."
    );
    finding("waiting", idle, why)
}

/// The place of the most losses, the last of those that are alike.
fn worst_place(figures: &SimFigures) -> Option<LossPlace> {
    worst(figures).map(|loss| loss.place)
}

fn worst(figures: &SimFigures) -> Option<&SimPathLoss> {
    let losses = figures.ledger.losses.iter();
    losses.max_by_key(|loss| loss.datagrams)
}

/// The worst loss on the way, what the sender itself was refused left out: that follows from it.
fn worst_on_the_way(figures: &SimFigures) -> Option<&SimPathLoss> {
    let flow = figures.flows.first()?;
    let sent = (flow.calls - flow.send_errors.min(flow.calls)) as f64;
    let on_the_way = figures.ledger.losses.iter().filter(|loss| {
        let is_refusal = Some(loss.host) == flow.from && loss.place == LossPlace::SendQueue;
        !is_refusal && loss.datagrams as f64 >= LOSS_MIN * sent
    });
    on_the_way.max_by_key(|loss| loss.datagrams)
}

fn is_path_binding(plan: &Simulation, figures: &SimFigures) -> bool {
    let is_short = match plan.workload.pattern {
        Pattern::IperfUdp { bits_per_second } => {
            let asked = bits_per_second as f64;
            let called = figures.flows.first().map_or(0.0, |flow| {
                let seconds = plan.duration_ns as f64 / 1e9;
                8.0 * f64::from(flow.payload_bytes) * flow.calls as f64 / seconds
            });
            called < FULL * asked
        }
        // Both go as fast as they can.
        _ => true,
    };
    is_short || worst_on_the_way(figures).is_some()
}

fn found_on_path(plan: &Simulation, figures: &SimFigures) -> (usize, SimBottleneck) {
    if let Some(tcp) = figures.connections.first() {
        return found_of_tcp(plan, figures, tcp);
    }
    if let Some(loss) = worst_on_the_way(figures) {
        let stop = &plan.stops[loss.host];
        let evidence = Evidence::of(figures, loss.host);
        let finding = match loss.place {
            LossPlace::SendQueue => sending(evidence, true),
            place => binding(&stop.applied(), evidence, place),
        };
        return (loss.host, finding);
    }
    if plan.workload.pattern == Pattern::RequestResponse {
        return waiting(figures);
    }
    if is_path_binding(plan, figures) {
        let has_failures = figures.ledger.lost_at(0, LossPlace::SendQueue) > 0;
        return (0, sending(Evidence::of(figures, 0), has_failures));
    }
    let busiest = busiest(figures);
    (busiest, headroom(Evidence::of(figures, busiest)))
}

/// One request at a time: what takes most of its time is what holds it back.
fn waiting(figures: &SimFigures) -> (usize, SimBottleneck) {
    let busiest = busiest(figures);
    let busy = 1.0 - figures.hosts[busiest].cpu.idle;
    let evidence = Evidence::of(figures, busiest);
    if busy >= 0.5 {
        let why =
            "One request is on its way at a time, and this host's work takes most of that time";
        return (busiest, processor(evidence, why));
    }
    let why = "One request is on its way at a time, and most of that time nobody works on it: it is on a line, or waits \
        for an interrupt, a tick or a timer.";
    (busiest, finding("waiting", 1.0 - busy, why))
}

/// The host whose resource it is, and the finding.
fn found_of_tcp(plan: &Simulation, figures: &SimFigures, tcp: &SimTcp) -> (usize, SimBottleneck) {
    if let Some(finding) = full_line(figures) {
        return finding;
    }
    let busiest = busiest(figures);
    if 1.0 - figures.hosts[busiest].cpu.idle >= FULL {
        let why =
            "TCP goes as fast as the slower end's work lets it, and this end has no time left";
        return (busiest, processor(Evidence::of(figures, busiest), why));
    }
    if let Some(loss) = decisive_loss(figures) {
        let stop = &plan.stops[loss.host];
        let host = stop.applied();
        let finding = match loss.place {
            LossPlace::SendQueue => {
                let packets = host.network.send_queue_packets;
                let why = format!(
                    "A window arrives at the driver faster than the line takes it, and the {packets} packets that may \
                     wait are too few: what is lost there TCP sends again, with half the window."
                );
                finding("send queue", 1.0, why)
            }
            place => binding(&host, Evidence::of(figures, loss.host), place),
        };
        return (loss.host, finding);
    }
    let from = figures.flows.first().and_then(|flow| flow.from);
    (from.unwrap_or(0), window(plan, tcp))
}

/// A line that is full, and the host that sends into it.
fn full_line(figures: &SimFigures) -> Option<(usize, SimBottleneck)> {
    figures.lines.iter().enumerate().find_map(|(number, line)| {
        let (host, used) = if line.is_half_duplex {
            (number, line.forth_ratio + line.back_ratio)
        } else if line.forth_ratio >= line.back_ratio {
            (number, line.forth_ratio)
        } else {
            (number + 1, line.back_ratio)
        };
        let share = percent(used);
        let why = format!("The line is {share} in use: TCP fills it and has to wait for it.");
        (used >= FULL).then(|| (host, finding("line", used, why)))
    })
}

fn decisive_loss(figures: &SimFigures) -> Option<&SimPathLoss> {
    let connections = figures.connections.iter();
    let (segments, again) = connections.fold((0, 0), |(segments, again), tcp| {
        (segments + tcp.segments, again + tcp.retransmits)
    });
    if (again as f64) < RETRANSMITS_MIN * segments as f64 {
        return None;
    }
    worst(figures)
}

/// No resource is full: the bytes on their way are the most that may be.
fn window(plan: &Simulation, tcp: &SimTcp) -> SimBottleneck {
    let is_sender = tcp.send_buffer_bytes <= tcp.receive_buffer_bytes;
    let (resource, bytes) = if is_sender {
        ("send buffer", tcp.send_buffer_bytes)
    } else {
        ("window", tcp.receive_buffer_bytes)
    };
    let Some(round_trip_ns) = tcp.round_trip_mean_ns else {
        let why = "Nothing was acknowledged in the counted time.";
        return finding(resource, 1.0, why);
    };
    let possible = 8e9 * bytes as f64 / round_trip_ns;
    let why = format!(
        "Neither a processor nor a line is full. From {} to {} {bytes} bytes may be on their way in a round trip of {:.2} \
         ms: {:.0} Mbit/s at most.{}",
        tcp.from,
        tcp.to,
        round_trip_ns / 1e6,
        possible / 1e6,
        ticks(plan, round_trip_ns)
    );
    finding(resource, tcp.goodput_bits_per_second / possible, why)
}

/// What polling does to the round trip, if that is as long as its periods make it.
fn ticks(plan: &Simulation, round_trip_ns: f64) -> String {
    let polled = plan.stops.iter().filter_map(|stop| {
        let is_polling = stop.discipline.method.waits_for_ticks();
        is_polling.then(|| 1e9 / stop.applied().cpu.hz as f64)
    });
    let tick_ns = polled.fold(0.0, f64::max);
    if tick_ns == 0.0 || round_trip_ns < tick_ns / 2.0 {
        return String::new();
    }
    format!(
        " It is waiting for ticks that makes the round trip so long: a card that is polled is looked at \
         every {:.2} ms.",
        tick_ns / 1e6
    )
}

/// The changes that gain something, the greatest gain first.
fn moves(plan: &Simulation, figures: &SimFigures) -> Result<Vec<SimMove>, SimError> {
    let gain_min = match figures.loss_ratio.filter(|_| plan.is_alone()) {
        Some(lost) => GAIN_MIN.min(LOSS_PART * lost),
        None => GAIN_MIN,
    };
    let trial = trial(plan, Some(figures.offered_pps));
    let before_pps = delivered_pps(&trial, &simulate(&trial)?);
    let mut moves = Vec::new();
    for (change, changed) in trials(&trial) {
        // A change can make a plan impossible; then it moves nothing.
        let Ok(figures) = simulate(&changed) else {
            continue;
        };
        let delivered_pps = delivered_pps(&changed, &figures);
        if delivered_pps > before_pps * (1.0 + gain_min) {
            moves.push(SimMove {
                change,
                delivered_pps,
                ratio: (before_pps > 0.0).then(|| delivered_pps / before_pps),
            });
        }
    }
    moves.sort_by(|a, b| b.delivered_pps.total_cmp(&a.delivered_pps));
    moves.truncate(MOVES_MAX);
    Ok(moves)
}

/// Packets a second that a host alone delivered, or the first flow of a path; segments a second of all connections.
fn delivered_pps(plan: &Simulation, figures: &SimFigures) -> f64 {
    if plan.is_alone() {
        return figures.delivered_pps;
    }
    let flows = &figures.flows;
    let step = if figures.connections.is_empty() {
        flows.len().max(1)
    } else {
        // Each connection has one flow of segments and one of acknowledgements.
        2
    };
    let counted = flows.iter().step_by(step);
    counted.map(|flow| flow.delivered_pps).sum()
}

/// The run that changes are tried on: a shorter one, by the packets that are offered a second, if that is known.
fn trial(plan: &Simulation, offered_pps: Option<f64>) -> Simulation {
    let (duration_ns, warmup_min_ns) = if plan.is_alone() {
        let seconds = offered_pps.map_or(TRIAL_MAX_S, |pps| TRIAL_PACKETS / pps.max(1.0));
        let seconds = seconds.clamp(TRIAL_MIN_S, TRIAL_MAX_S);
        ((seconds * 1e9) as u64, WARMUP_MIN_NS)
    } else {
        (PATH_TRIAL_NS, 0)
    };
    Simulation {
        duration_ns,
        warmup_ns: plan.warmup_ns.clamp(warmup_min_ns, WARMUP_MAX_NS),
        slices: 0,
        ..plan.clone()
    }
}

/// The runs to try, with what each changes.
fn trials(trial: &Simulation) -> Vec<(String, Simulation)> {
    let mut trials = Vec::new();
    for (number, stop) in trial.stops.iter().enumerate() {
        let (host, can_busy_poll) = if trial.is_alone() {
            (String::new(), trial.workload.pattern != Pattern::Blast)
        } else {
            let is_last = number + 1 == trial.stops.len();
            (format!("host {}: ", number + 1), is_last)
        };
        for (change, discipline) in changes(&stop.host, &stop.discipline, can_busy_poll) {
            let mut changed = trial.clone();
            changed.stops[number].discipline = discipline;
            trials.push((format!("{host}{change}"), changed));
        }
    }
    trials
}

/// Single changes of one host or its discipline, with what each comes to.
fn changes(
    host: &HostModel,
    discipline: &ReceiveDiscipline,
    can_busy_poll: bool,
) -> Vec<(String, ReceiveDiscipline)> {
    let own = discipline.applied_to(host);
    let mut changes = Vec::new();
    for field in HostModel::FIELDS {
        let was = own.get(field.name).unwrap_or_default();
        let value = moved(field.name, was).clamp(field.min, field.max);
        if value != was {
            let change = format!("{} = {value} (was {was})", field.name);
            changes.push((change, discipline.with(field.name, value)));
        }
    }
    if let Ok(Some(poller)) = discipline.method.poller(&own, 1) {
        for (knob, moved) in [
            (Knob::UserFrac, (|was| was / 2) as fn(u32) -> u32),
            (Knob::BurstMax, |was| was.saturating_mul(2)),
            (Knob::EachBurst, |was| was.saturating_mul(2)),
        ] {
            let was = poller.read(knob);
            let value = moved(was);
            let change = format!("{} = {value} (was {was})", knob.name());
            changes.push((change, discipline.with_knob(knob, value)));
        }
    }
    // The other disciplines with their defaults, and the host's numbers that go with this one.
    for other in ReceiveDiscipline::all() {
        let is_possible = can_busy_poll || !other.method.is_program_polling();
        if is_possible && other.name() != discipline.name() {
            let change = format!("discipline {}", other.name());
            changes.push((change, other.with_changes_of(discipline)));
        }
    }
    changes
}

/// Work a fifth cheaper, room and speed twice as great, moderation of a tenth of a millisecond.
fn moved(name: &str, was: u64) -> u64 {
    match name {
        "card.moderation_ns" if was == 0 => 100_000,
        "card.moderation_ns" => was.saturating_mul(2),
        // Neither is room or speed.
        "cpu.tick_slow_ppm"
        | "cpu.stat_hz"
        | "card.hands_over"
        | "link.mtu_bytes"
        | "link.half_duplex"
        | "socket.packet_overhead_bytes"
        | "cpu.cpus"
        | "application.cpu"
        | "network.gro"
        | "veth.pair" => was,
        // One queue is all that a single processor can have.
        "card.queues" if was == 1 => was,
        "storm.threshold" => 0,
        _ if name.ends_with("_ns") => was * 4 / 5,
        _ => was.saturating_mul(2),
    }
}
