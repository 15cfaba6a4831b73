//! Why no more came through: which resource is full, and what would move it.
//!
//! The resource follows from where packets were lost and from how full everything was. What would move it
//! is not deduced but tried: one number at a time is changed and the run is made again.

mod alone;
mod moves;
mod path;
mod tcp;

use nicpoll_model::LossPlace;
use nicpoll_model::sim::{SimBottleneck, SimCpu, SimFigures, SimLoss, SimPolling, SimStorm};

use crate::spec::host::HostModel;
use crate::spec::options::SimError;
use crate::spec::simulation::Simulation;

/// Fewer losses than this share are no bottleneck, but chance.
const LOSS_MIN: f64 = 0.001;
/// From here on a resource is full: what is left is the rest of a whole packet or pass.
const FULL: f64 = 0.97;

/// What is full, how full, and what that means.
struct Finding {
    resource: &'static str,
    fullness: f64,
    explanation: String,
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

fn lost_at(losses: &[SimLoss], place: LossPlace) -> u64 {
    let there = losses.iter().find(|loss| loss.place == place);
    there.map_or(0, |loss| loss.packets)
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
            let ring_lost = lost_at(&of.ledger.losses, LossPlace::RxRing);
            (of.ledger.received, ring_lost)
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

/// Names what held a run back, and tries what would move it.
///
/// # Errors
/// Why the hosts cannot run the plan; see [`Simulation::check`].
pub fn explain(plan: &Simulation, figures: &SimFigures) -> Result<SimBottleneck, SimError> {
    plan.check()?;
    let found = bottleneck(plan, figures);
    let moves = if !found.is_binding {
        Vec::new()
    } else if plan.is_alone() {
        alone::tried(plan, figures)?
    } else {
        path::tried(plan)?
    };
    Ok(SimBottleneck {
        moves: Some(moves),
        ..found
    })
}

/// Names what held a run back, without trying what would move it.
pub fn bottleneck(plan: &Simulation, figures: &SimFigures) -> SimBottleneck {
    let (is_binding, host, finding) = found(plan, figures);
    SimBottleneck {
        resource: if plan.is_alone() {
            String::from(finding.resource)
        } else {
            named(plan, host, &finding)
        },
        fullness: finding.fullness,
        is_binding,
        explanation: finding.explanation,
        moves: None,
    }
}

/// The work of trying what would move a run's bottleneck, as [`Simulation::work`] counts it, if there is one.
pub fn explain_work(plan: &Simulation) -> f64 {
    let trials = if plan.is_alone() {
        alone::trials(&alone::trial(plan, None))
    } else {
        path::trials(&path::trial(plan))
    };
    trials.iter().map(|(_, trial)| trial.work()).sum()
}

/// The resource that held a run back, with its host.
pub fn resource(plan: &Simulation, figures: &SimFigures) -> String {
    let (_, host, finding) = found(plan, figures);
    named(plan, host, &finding)
}

fn named(plan: &Simulation, host: usize, finding: &Finding) -> String {
    let name = &plan.stops[host].host.name;
    if plan.is_alone() {
        return format!("{} of {name}", finding.resource);
    }
    format!("{} of {name} (host {})", finding.resource, host + 1)
}

/// Whether anything held back packets, on which host, and what is full there.
fn found(plan: &Simulation, figures: &SimFigures) -> (bool, usize, Finding) {
    if plan.is_alone() {
        let (is_binding, finding) = alone::found(plan, figures);
        return (is_binding, 0, finding);
    }
    let (host, finding) = path::found(plan, figures);
    (path::is_binding(plan, figures), host, finding)
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
fn headroom(evidence: Evidence<'_>) -> Finding {
    let line = evidence.line_ratio.map(|ratio| ("line", ratio));
    let mut all: Vec<_> = line
        .into_iter()
        .chain([("processor", busy(evidence))])
        .collect();
    if let Some(polling) = evidence.polling {
        all.push(("burst", used_quota(evidence, polling)));
    }
    let (resource, fullness) = all.iter().copied().fold(("line", 0.0), |fullest, next| {
        if next.1 > fullest.1 { next } else { fullest }
    });
    let each: Vec<_> = all
        .iter()
        .map(|(name, fullness)| format!("{name} {}", percent(*fullness)))
        .collect();
    Finding {
        resource,
        fullness,
        explanation: format!(
            "All that is offered comes through. In use: {}. The {resource} is fullest.",
            each.join(", ")
        ),
    }
}

fn sending(evidence: Evidence<'_>, has_failures: bool) -> Finding {
    let in_use = match evidence.line_ratio {
        Some(ratio) if ratio >= FULL => return line(ratio),
        Some(ratio) => format!(" and the line is {} in use", percent(ratio)),
        None => String::new(),
    };
    if has_failures {
        return Finding {
            resource: "transmit ring",
            fullness: 1.0,
            explanation: format!(
                "The transmit ring is full of frames that have left, and is cleared too seldom: the line \
                 is only {} in use while calls fail.",
                percent(evidence.line_ratio.unwrap_or_default())
            ),
        };
    }
    Finding {
        resource: "processor",
        fullness: busy(evidence),
        explanation: format!(
            "Every call succeeds{in_use}: the processor, {}, cannot send faster.",
            split(evidence)
        ),
    }
}

fn line(ratio: f64) -> Finding {
    Finding {
        resource: "line",
        fullness: ratio,
        explanation: format!(
            "The line is {} in use: more than it carries was to be sent.",
            percent(ratio)
        ),
    }
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

fn binding(host: &HostModel, evidence: Evidence<'_>, place: LossPlace) -> Finding {
    let is_full = busy(evidence) >= FULL;
    match place {
        LossPlace::FarQueue | LossPlace::SendQueue => line(evidence.line_ratio.unwrap_or_default()),
        LossPlace::RxRing => ring(host, evidence),
        LossPlace::IpQueue if is_full => processor(
            evidence,
            "The work of interrupts comes first and leaves too little for the protocols: packets are \
             lost before IP after the driver's work was spent on them",
        ),
        LossPlace::IpQueue => queue(
            "IP input queue",
            format!(
                "The driver brings more at once than the {} packets that may wait for IP.",
                host.network.ip_queue_packets
            ),
        ),
        LossPlace::SocketBuffer if is_full => processor(
            evidence,
            "The work on arriving packets comes before the program, which is starved: packets are lost \
             at its socket after all the kernel's work was spent on them",
        ),
        LossPlace::SocketBuffer => queue(
            "socket buffer",
            format!(
                "More arrives at once than the {} bytes of the socket hold, though the processor is only \
                 {} busy.",
                host.socket.buffer_bytes,
                percent(busy(evidence))
            ),
        ),
        // Reassembly is never the first loss of a datagram, and nothing simulated is lost elsewhere.
        _ => headroom(evidence),
    }
}

fn processor(evidence: Evidence<'_>, why: &str) -> Finding {
    Finding {
        resource: "processor",
        fullness: busy(evidence),
        explanation: format!("{why}. The processor is {}.", split(evidence)),
    }
}

fn queue(resource: &'static str, explanation: String) -> Finding {
    Finding {
        resource,
        fullness: 1.0,
        explanation,
    }
}

/// The ring was full: whoever should have emptied it did not come, or not often enough.
fn ring(host: &HostModel, evidence: Evidence<'_>) -> Finding {
    if let Some(storm) = evidence.storm.filter(|storm| storm.throttled > 0) {
        return queue(
            "storm throttling",
            format!(
                "Interrupt storm detection threw {} of {} passes a tick back each: the card is emptied \
                 {} times a second.",
                storm.throttled, storm.passes, host.cpu.hz
            ),
        );
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
    queue(
        "receive ring",
        format!(
            "The {} descriptors of the ring fill up before the driver comes to them, though the processor \
             is only {} busy over all: packets come in bursts, or the card is looked at too seldom.",
            host.card.rx_ring,
            percent(busy(evidence))
        ),
    )
}

fn quota(host: &HostModel, evidence: Evidence<'_>, polling: &SimPolling) -> Finding {
    let fullness = used_quota(evidence, polling);
    let burst = polling.burst_mean.unwrap_or_default();
    if polling.full_cycles * 2 > polling.cycles {
        return Finding {
            resource: "burst_max",
            fullness,
            explanation: format!(
                "Every burst is used up and is as great as burst_max allows: {} ticks of {burst:.0} \
                 packets a second. The processor is {} busy.",
                host.cpu.hz,
                percent(busy(evidence))
            ),
        };
    }
    let (least, most) = (polling.burst_min, polling.burst_max_reached);
    let (least, most) = (least.unwrap_or_default(), most.unwrap_or_default());
    // By one a cycle, but for a few.
    if u64::from(most - least) * 4 > polling.cycles * 3 {
        return Finding {
            resource: "burst",
            fullness,
            explanation: format!(
                "Every burst is used up, and still grows by a packet a tick, from {least} to {most} in \
                 this run: a longer warm-up shows where it ends."
            ),
        };
    }
    Finding {
        resource: "user_frac",
        fullness,
        explanation: format!(
            "Every burst is used up, and the poller keeps it at {burst:.0} packets a tick so that \
             receiving does not take the share of user programs. The processor is {}.",
            split(evidence)
        ),
    }
}
