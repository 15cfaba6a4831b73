//! Finds which resource limited a run, and which changes would raise that limit.
//!
//! The resource follows from where packets were lost and from how full everything was. Remedies are tried, not
//! deduced: each trial changes one number and repeats the run.
//!
//! The evidence differs between three kinds of runs: a host with ideal hosts at the far end, a path of hosts, and TCP
//! along a path.

use nicpoll_core::Knob;
use nicpoll_model::LossPlace;
use nicpoll_model::sim::{
    SimBottleneck, SimCpu, SimFigures, SimHostFigures, SimMove, SimPathLoss, SimPolling, SimTcp,
};

use crate::spec::discipline::ReceiveDiscipline;
use crate::spec::host::HostModel;
use crate::spec::options::SimError;
use crate::spec::simulation::Simulation;
use crate::spec::traffic::Pattern;
use crate::world::run::simulate;

/// A smaller share of losses is chance, not a bottleneck.
const LOSS_MIN: f64 = 0.001;
/// From this share on a resource is full: the rest is too small for a packet or pass.
const FULL: f64 = 0.97;
/// From this share of retransmitted segments on, losses limit TCP.
const RETRANSMITS_MIN: f64 = 0.001;
/// Smallest gain that counts.
const GAIN_MIN: f64 = 0.01;
/// A gain of this part of the losses counts, too, however small.
const LOSS_PART: f64 = 0.25;
/// Most changes reported.
const MOVES_MAX: usize = 6;
/// Length of a trial of one host: as long as this many packets take, within bounds.
const TRIAL_PACKETS: f64 = 100_000.0;
const TRIAL_MIN_S: f64 = 0.1;
const TRIAL_MAX_S: f64 = 0.5;
/// Length of a trial of a path: shorter, since there are more changes to try.
const PATH_TRIAL_NS: u64 = 100_000_000;
/// Bounds of a trial's warm-up. FreeBSD's burst climbs from 5 to 150 in 145 cycles.
const WARMUP_MIN_NS: u64 = 200_000_000;
const WARMUP_MAX_NS: u64 = 5_000_000_000;

/// Findings, one a line: key, resource, and a sentence with facts in braces.
const FINDINGS: &str = include_str!("bottleneck.txt");

/// Makes a finding: what is full, how full, and what that means. [`bottleneck`] adds the host, and whether packets
/// are held back.
fn finding(resource: &str, fullness: f64, explanation: impl Into<String>) -> SimBottleneck {
    SimBottleneck {
        resource: String::from(resource),
        fullness_ratio: fullness,
        is_binding: false,
        explanation: explanation.into(),
        moves: None,
    }
}

/// The evidence on one host, from which its limiting resource follows.
struct HostEvidence<'a> {
    host: HostModel,
    clients: u16,
    figures: &'a SimHostFigures,
    cpu: &'a SimCpu,
    /// Used share of the outgoing line, or of a single host's lines; `None` without a line.
    line_ratio: Option<f64>,
    /// Packets that the driver took from the rings.
    taken: u64,
    /// Cards by which they arrived, about evenly.
    cards: u64,
}

impl<'a> HostEvidence<'a> {
    /// Collects the evidence on a host of a path, or on a single host with all its lines.
    fn of(plan: &Simulation, figures: &'a SimFigures, host: usize) -> Self {
        let of = &figures.hosts[host];
        let forth = figures.lines.get(host).map(|line| line.forth_ratio);
        let is_alone = plan.is_alone();
        let ledger = &figures.ledger;
        let (reached, ring_lost) = if is_alone {
            let lost = |place| ledger.lost_in(place);
            let reached = ledger
                .offered_datagrams
                .saturating_sub(lost(LossPlace::FarQueue));
            (reached, lost(LossPlace::RxRing))
        } else {
            (
                of.ledger.received_packets,
                of.ledger.lost_in(LossPlace::RxRing),
            )
        };
        // Packets that the busiest processor has no time for are lost, even if others are idle.
        let fullest = of
            .cpus
            .iter()
            .min_by(|a, b| a.idle_ratio.total_cmp(&b.idle_ratio));
        HostEvidence {
            host: plan.stops[host].applied(),
            clients: plan.workload.clients,
            figures: of,
            cpu: fullest.unwrap_or(&of.cpu),
            line_ratio: if is_alone { of.line_ratio() } else { forth },
            taken: reached.saturating_sub(ring_lost),
            cards: if is_alone { of.cards.len() as u64 } else { 1 },
        }
    }

    fn busy(&self) -> f64 {
        1.0 - self.cpu.idle_ratio
    }

    /// Returns the share of the requested packets that the poller got.
    fn used_quota(&self) -> Option<f64> {
        let polling = self.figures.polling.as_ref()?;
        // All cards are asked for the same count, and one of a router's has most of the packets.
        let handlers = polling.knobs.iter().find(|knob| knob.name == "handlers");
        let handlers = handlers.map_or(1, |knob| u64::from(knob.value));
        let asked = (polling.asked_packets * self.cards / handlers.max(1)).max(1);
        Some((self.taken as f64 / asked as f64).min(1.0))
    }

    /// Returns the finding with this key.
    fn found(&self, key: &str) -> SimBottleneck {
        let mut rows = FINDINGS.lines().map(|row| row.splitn(3, '|'));
        let row = rows.find_map(|mut row| (row.next()? == key).then(|| (row.next(), row.next())));
        let Some((Some(resource), Some(sentence))) = row else {
            unreachable!("bottleneck.txt has no {key}");
        };
        let fullness = match resource {
            "line" => self.line_ratio.unwrap_or_default(),
            "processor" => self.busy(),
            "waiting" => 1.0 - self.busy(),
            "burst" | "burst_max" | "user_frac" => self.used_quota().unwrap_or_default(),
            _ => 1.0,
        };
        let pieces = sentence.split(['{', '}']).enumerate();
        let pieces = pieces.map(|(index, piece)| match index % 2 {
            0 => String::from(piece),
            _ => self.fact(piece),
        });
        finding(resource, fullness, pieces.collect::<String>())
    }

    /// Returns a fact for a sentence, or a number of the host, as text.
    fn fact(&self, name: &str) -> String {
        let storm = self.figures.storm.unwrap_or_default();
        let of_polling = |read: fn(&SimPolling) -> Option<f64>| {
            let polling = self.figures.polling.as_ref().and_then(read);
            format!("{:.0}", polling.unwrap_or_default())
        };
        match name {
            "line" => percent(self.line_ratio.unwrap_or_default()),
            "busy" => percent(self.busy()),
            "idle" => percent(1.0 - self.busy()),
            "split" => format!(
                "{} busy ({} interrupts, {} software interrupts, {} system, {} program)",
                percent(self.busy()),
                percent(self.cpu.interrupt_ratio),
                percent(self.cpu.soft_interrupt_ratio),
                percent(self.cpu.system_ratio),
                percent(self.cpu.user_ratio)
            ),
            "requests" if self.clients == 1 => String::from("One request is on its way at a time"),
            "requests" => format!("{} requests are on their way at a time", self.clients),
            "throttled" => storm.throttled_passes.to_string(),
            "passes" => storm.passes.to_string(),
            "burst" => of_polling(|it| it.burst_mean_packets),
            "least" => of_polling(|it| it.burst_min_packets.map(f64::from)),
            "most" => of_polling(|it| it.burst_max_reached_packets.map(f64::from)),
            number => self.host.get(number).unwrap_or_default().to_string(),
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

/// Returns the work of all trials against a bottleneck, should the run have one, as [`Simulation::work`] counts it.
pub fn explain_work(plan: &Simulation) -> f64 {
    let trials = trials(&trial(plan, None));
    trials.iter().map(|(_, trial)| trial.work()).sum()
}

/// Returns the resource that limited a run, with its host.
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

/// Returns whether anything held back packets, on which host, and what is full there.
fn found(plan: &Simulation, figures: &SimFigures) -> (bool, usize, SimBottleneck) {
    if plan.is_alone() {
        let (is_binding, finding) = found_alone(plan, figures);
        return (is_binding, 0, finding);
    }
    let (host, finding) = found_on_path(plan, figures);
    (is_path_binding(plan, figures), host, finding)
}

/// Returns the host whose processor has the least idle time, the last of equals.
fn busiest(figures: &SimFigures) -> usize {
    let idle = |host: usize| figures.hosts[host].cpu.idle_ratio;
    let hosts = 0..figures.hosts.len();
    hosts
        .max_by(|a, b| idle(*b).total_cmp(&idle(*a)))
        .unwrap_or(0)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Returns the finding when everything came through: the fullest resource will limit first.
fn headroom(evidence: &HostEvidence<'_>) -> SimBottleneck {
    let line = evidence.line_ratio.map(|ratio| ("line", ratio));
    let burst = evidence.used_quota().map(|used| ("burst", used));
    let all = line.into_iter().chain([("processor", evidence.busy())]);
    let all: Vec<_> = all.chain(burst).collect();
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

fn sending(evidence: &HostEvidence<'_>, has_failures: bool) -> SimBottleneck {
    evidence.found(match evidence.line_ratio {
        Some(ratio) if ratio >= FULL => "line",
        _ if has_failures => "transmit ring",
        Some(_) => "sending",
        None => "sending without a line",
    })
}

fn binding(evidence: &HostEvidence<'_>, place: LossPlace) -> SimBottleneck {
    evidence.found(match (place, evidence.busy() >= FULL) {
        (LossPlace::FarQueue | LossPlace::SendQueue, _) => "line",
        (LossPlace::RxRing, _) => ring(evidence),
        (LossPlace::IpQueue, true) => "lost before IP",
        (LossPlace::IpQueue, false) => "IP input queue",
        (LossPlace::SocketBuffer, true) => "lost at the socket",
        (LossPlace::SocketBuffer, false) => "socket buffer",
        // Reassembly is never the first loss of a datagram, and nothing simulated is lost elsewhere.
        _ => return headroom(evidence),
    })
}

/// Returns why the ring overflowed: nothing emptied it, or not often enough.
fn ring(evidence: &HostEvidence<'_>) -> &'static str {
    let figures = evidence.figures;
    let is_throttled = figures
        .storm
        .is_some_and(|storm| storm.throttled_passes > 0);
    let is_used_up = evidence.used_quota().is_some_and(|used| used >= FULL);
    match &figures.polling {
        _ if is_throttled => "storm throttling",
        Some(polling) if is_used_up => quota(polling),
        _ if evidence.busy() >= FULL => "lost in the ring",
        _ => "receive ring",
    }
}

fn quota(polling: &SimPolling) -> &'static str {
    let [least, most] = [polling.burst_min_packets, polling.burst_max_reached_packets]
        .map(Option::unwrap_or_default);
    if polling.full_cycles * 2 > polling.cycles {
        "burst_max"
    } else if u64::from(most - least) * 4 > polling.cycles * 3 {
        // It has grown by one in nearly every cycle.
        "burst"
    } else {
        "user_frac"
    }
}

/// Returns whether a single host's packets were held back, and by what.
fn found_alone(plan: &Simulation, figures: &SimFigures) -> (bool, SimBottleneck) {
    let loses = figures.loss_ratio.is_some_and(|ratio| ratio >= LOSS_MIN);
    let evidence = HostEvidence::of(plan, figures, 0);
    // Blast and request/response go as fast as they can.
    match (&plan.workload.pattern, worst(figures)) {
        (Pattern::Blast, loss) => (true, sending(&evidence, loss.is_some())),
        (_, Some(loss)) if loses => (true, binding(&evidence, loss.place)),
        (Pattern::RequestResponse, _) => (true, answering(&evidence)),
        _ => (false, headroom(&evidence)),
    }
}

/// Returns the finding when no request is lost, and clients send the next upon the reply.
fn answering(evidence: &HostEvidence<'_>) -> SimBottleneck {
    let is_line_full = evidence.line_ratio.is_some_and(|ratio| ratio >= FULL);
    evidence.found(match evidence.busy() >= FULL {
        _ if is_line_full => "line",
        true => "answering",
        false => "waiting",
    })
}

/// Returns the place with the most losses, the last of equals.
fn worst(figures: &SimFigures) -> Option<&SimPathLoss> {
    let losses = figures.ledger.losses.iter();
    losses.max_by_key(|loss| loss.datagrams)
}

/// Returns the worst loss on the way. Sends that the sender's own queue refused do not count: they follow from it.
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
        Pattern::IperfUdp {
            bits_per_second, ..
        } => {
            let asked = bits_per_second as f64;
            let called = figures.flows.first().map_or(0.0, |flow| {
                let seconds = plan.duration_ns as f64 / 1e9;
                8.0 * f64::from(flow.payload_bytes) * flow.calls as f64 / seconds
            });
            called < FULL * asked
        }
        // All others go as fast as they can.
        _ => true,
    };
    is_short || worst_on_the_way(figures).is_some()
}

fn found_on_path(plan: &Simulation, figures: &SimFigures) -> (usize, SimBottleneck) {
    if let Some(tcp) = figures.connections.first() {
        return found_of_tcp(plan, figures, tcp);
    }
    if let Some(loss) = worst_on_the_way(figures) {
        let evidence = HostEvidence::of(plan, figures, loss.host);
        let finding = match loss.place {
            LossPlace::SendQueue => sending(&evidence, true),
            place => binding(&evidence, place),
        };
        return (loss.host, finding);
    }
    if plan.workload.pattern == Pattern::RequestResponse {
        return waiting(plan, figures);
    }
    if is_path_binding(plan, figures) {
        let has_failures = figures.ledger.lost_at(0, LossPlace::SendQueue) > 0;
        return (
            0,
            sending(&HostEvidence::of(plan, figures, 0), has_failures),
        );
    }
    let busiest = busiest(figures);
    (busiest, headroom(&HostEvidence::of(plan, figures, busiest)))
}

/// Returns the finding for one request at a time: what takes most of its time limits it.
fn waiting(plan: &Simulation, figures: &SimFigures) -> (usize, SimBottleneck) {
    let busiest = busiest(figures);
    let busy = 1.0 - figures.hosts[busiest].cpu.idle_ratio;
    let evidence = HostEvidence::of(plan, figures, busiest);
    if busy >= 0.5 {
        return (busiest, evidence.found("request at work"));
    }
    let waiting = SimBottleneck {
        fullness_ratio: 1.0 - busy,
        ..evidence.found("request waiting")
    };
    (busiest, waiting)
}

/// Returns the host that limits TCP, and the finding.
fn found_of_tcp(plan: &Simulation, figures: &SimFigures, tcp: &SimTcp) -> (usize, SimBottleneck) {
    if let Some(finding) = full_line(figures) {
        return finding;
    }
    let evidence = |host: usize| HostEvidence::of(plan, figures, host);
    let busiest = busiest(figures);
    if 1.0 - figures.hosts[busiest].cpu.idle_ratio >= FULL {
        return (busiest, evidence(busiest).found("end of TCP"));
    }
    if let Some(loss) = decisive_loss(figures) {
        let evidence = evidence(loss.host);
        let finding = match loss.place {
            LossPlace::SendQueue => evidence.found("send queue"),
            place => binding(&evidence, place),
        };
        return (loss.host, finding);
    }
    let from = figures.flows.first().and_then(|flow| flow.from);
    (from.unwrap_or(0), window(plan, tcp))
}

/// Returns a full line's finding, and the host that sends into it.
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
        (segments + tcp.segments, again + tcp.retransmitted_segments)
    });
    if (again as f64) < RETRANSMITS_MIN * segments as f64 {
        return None;
    }
    worst(figures)
}

/// Returns the finding when no resource is full: a buffer limits the bytes in flight.
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
        "Neither a processor nor a line is full. From {} to {} {bytes} bytes may be in flight in a round trip of {:.2} ms: \
         {:.0} Mbit/s at most.{}",
        tcp.from,
        tcp.to,
        round_trip_ns / 1e6,
        possible / 1e6,
        ticks(plan, round_trip_ns)
    );
    finding(resource, tcp.goodput_bits_per_second / possible, why)
}

/// Returns a sentence on the wait for ticks, if the round trip is long enough to come from it.
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
        " Waiting for ticks makes the round trip this long: a polled card is looked at every {:.2} ms.",
        tick_ns / 1e6
    )
}

/// Returns the changes that help, the greatest gain first.
fn moves(plan: &Simulation, figures: &SimFigures) -> Result<Vec<SimMove>, SimError> {
    let gain_min = match figures.loss_ratio.filter(|_| plan.is_alone()) {
        Some(lost) => GAIN_MIN.min(LOSS_PART * lost),
        None => GAIN_MIN,
    };
    let trial = trial(plan, Some(figures.offered_packets_per_second));
    let before_pps = delivered_pps(&trial, &simulate(&trial)?);
    let mut moves = Vec::new();
    for (change, changed) in trials(&trial) {
        // A change that makes the plan impossible does not help.
        let Ok(figures) = simulate(&changed) else {
            continue;
        };
        let delivered_pps = delivered_pps(&changed, &figures);
        if delivered_pps > before_pps * (1.0 + gain_min) {
            moves.push(SimMove {
                change,
                delivered_packets_per_second: delivered_pps,
                ratio: (before_pps > 0.0).then(|| delivered_pps / before_pps),
            });
        }
    }
    moves.sort_by(|a, b| {
        b.delivered_packets_per_second
            .total_cmp(&a.delivered_packets_per_second)
    });
    moves.truncate(MOVES_MAX);
    Ok(moves)
}

/// Returns packets a second: all that a single host delivered, the first flow of a path, or the segments of all
/// connections.
fn delivered_pps(plan: &Simulation, figures: &SimFigures) -> f64 {
    if plan.is_alone() {
        return figures.delivered_packets_per_second;
    }
    let flows = &figures.flows;
    let step = if figures.connections.is_empty() {
        flows.len().max(1)
    } else {
        // Each connection has one flow of segments and one of acknowledgements.
        2
    };
    let counted = flows.iter().step_by(step);
    counted.map(|flow| flow.delivered_packets_per_second).sum()
}

/// Returns the run on which changes are tried: shorter, by the packets offered a second, if known.
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

/// Returns the runs to try, with the change of each.
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

/// Returns single changes of one host or its discipline, each with the discipline that contains it.
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
    // The other disciplines with their defaults, and with this one's overrides.
    for other in ReceiveDiscipline::all() {
        let is_possible = can_busy_poll || !other.method.is_program_polling();
        if is_possible && other.name() != discipline.name() {
            let change = format!("discipline {}", other.name());
            changes.push((change, other.with_changes_of(discipline)));
        }
    }
    changes
}

/// Returns the value to try: work a fifth cheaper, sizes and speeds doubled, moderation of 0.1 ms if there is none.
fn moved(name: &str, was: u64) -> u64 {
    match name {
        "card.moderation_ns" if was == 0 => 100_000,
        "card.moderation_ns" => was.saturating_mul(2),
        // None of these is a size or a speed to double.
        "cpu.tick_slow_ppm"
        | "cpu.stat_hz"
        | "card.hands_over"
        | "link.mtu_bytes"
        | "link.half_duplex"
        | "socket.packet_overhead_bytes"
        | "cpu.cpus"
        | "application.cpu"
        | "application.computing"
        | "network.gro"
        | "veth.pair" => was,
        // A second queue would need a second processor.
        "card.queues" if was == 1 => was,
        "storm.threshold" => 0,
        _ if name.ends_with("_ns") => was * 4 / 5,
        _ => was.saturating_mul(2),
    }
}
