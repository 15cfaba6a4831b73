//! Why no more came through: which resource is full, and what would move it.
//!
//! The resource follows from where packets were lost and from how full everything was. What would move it
//! is not deduced but tried: one number at a time is changed and the run is made again.

mod moves;
mod path;
mod tcp;

use nicpoll_model::sim::{
    SimBottleneck, SimCpu, SimFigures, SimLoss, SimPlace, SimPolling, SimStorm,
};

use crate::host::Host;
use crate::plan::{Plan, PlanError};
use crate::workload::Pattern;
pub use path::{explain_path, resource_of_path};

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

fn lost_at(losses: &[SimLoss], place: SimPlace) -> u64 {
    let there = losses.iter().find(|loss| loss.place == place);
    there.map_or(0, |loss| loss.packets)
}

impl<'a> Evidence<'a> {
    fn of(figures: &'a SimFigures) -> Self {
        let ledger = &figures.ledger;
        let lost = |place| lost_at(&ledger.losses, place);
        let reached = ledger.offered.saturating_sub(lost(SimPlace::FarQueue));
        Evidence {
            cpu: &figures.cpu,
            storm: figures.storm,
            polling: figures.polling.as_ref(),
            line_ratio: Some(figures.line_ratio),
            taken: reached.saturating_sub(lost(SimPlace::RxRing)),
            cards: figures.cards.len() as u64,
        }
    }
}

/// Names what held a run back, and tries what would move it.
///
/// # Errors
/// Why the host cannot run the plan; see [`Plan::check`].
pub fn explain(host: &Host, plan: &Plan, figures: &SimFigures) -> Result<SimBottleneck, PlanError> {
    plan.check(host)?;
    let (is_binding, finding) = found(host, plan, figures);
    Ok(SimBottleneck {
        resource: String::from(finding.resource),
        fullness: finding.fullness,
        is_binding,
        explanation: finding.explanation,
        moves: if is_binding {
            moves::tried(host, plan, figures)?
        } else {
            Vec::new()
        },
    })
}

/// Names what held a run back, and nothing more.
pub fn resource(host: &Host, plan: &Plan, figures: &SimFigures) -> String {
    let (_, finding) = found(host, plan, figures);
    format!("{} of {}", finding.resource, host.name)
}

/// What held a run back, and whether it held back packets.
fn found(host: &Host, plan: &Plan, figures: &SimFigures) -> (bool, Finding) {
    let own = plan.discipline.applied_to(host);
    let loses = figures.loss_ratio.is_some_and(|ratio| ratio >= LOSS_MIN);
    let evidence = Evidence::of(figures);
    // Who sends when something is done goes as fast as it can.
    match (&plan.workload.pattern, worst_place(figures)) {
        (Pattern::Blast, place) => (true, sending(evidence, place.is_some())),
        (_, Some(place)) if loses => (true, binding(&own, evidence, place)),
        (Pattern::RequestResponse, _) => (true, answering(evidence, plan.workload.clients)),
        _ => (false, headroom(evidence)),
    }
}

/// No request is lost, and clients send the next when they have the reply.
fn answering(evidence: Evidence<'_>, clients: u16) -> Finding {
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
    Finding {
        resource: "waiting",
        fullness: 1.0 - busy(evidence),
        explanation: format!(
            "{on_their_way}, and for {} of the time nobody works on any: on a line, or waiting for an interrupt, \
             a tick or a timer.",
            percent(1.0 - busy(evidence))
        ),
    }
}

fn worst_place(figures: &SimFigures) -> Option<SimPlace> {
    let losses = figures.ledger.losses.iter().filter(|loss| loss.packets > 0);
    losses
        .max_by_key(|loss| loss.packets)
        .map(|loss| loss.place)
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

fn binding(host: &Host, evidence: Evidence<'_>, place: SimPlace) -> Finding {
    let is_full = busy(evidence) >= FULL;
    match place {
        SimPlace::FarQueue | SimPlace::SendQueue => line(evidence.line_ratio.unwrap_or_default()),
        SimPlace::RxRing => ring(host, evidence),
        SimPlace::IpQueue if is_full => processor(
            evidence,
            "The work of interrupts comes first and leaves too little for the protocols: packets are \
             lost before IP after the driver's work was spent on them",
        ),
        SimPlace::IpQueue => queue(
            "IP input queue",
            format!(
                "The driver brings more at once than the {} packets that may wait for IP.",
                host.network.ip_queue_packets
            ),
        ),
        // Never the first loss of a datagram.
        SimPlace::Reassembly => headroom(evidence),
        SimPlace::SocketBuffer if is_full => processor(
            evidence,
            "The work on arriving packets comes before the program, which is starved: packets are lost \
             at its socket after all the kernel's work was spent on them",
        ),
        SimPlace::SocketBuffer => queue(
            "socket buffer",
            format!(
                "More arrives at once than the {} bytes of the socket hold, though the processor is only \
                 {} busy.",
                host.socket.buffer_bytes,
                percent(busy(evidence))
            ),
        ),
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
fn ring(host: &Host, evidence: Evidence<'_>) -> Finding {
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

fn quota(host: &Host, evidence: Evidence<'_>, polling: &SimPolling) -> Finding {
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
