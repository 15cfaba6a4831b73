//! Why no more came through: which resource is full, and what would move it.
//!
//! The resource follows from where packets were lost and from how full everything was. What would move it
//! is not deduced but tried: one number at a time is changed and the run is made again.

mod moves;

use nicpoll_model::sim::{SimBottleneck, SimFigures, SimPlace, SimPolling};

use crate::host::Host;
use crate::plan::{Plan, PlanError};
use crate::workload::Pattern;

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

/// Names what held a run back, and tries what would move it.
///
/// # Errors
/// Why the host cannot run the plan; see [`Plan::check`].
pub fn explain(host: &Host, plan: &Plan, figures: &SimFigures) -> Result<SimBottleneck, PlanError> {
    plan.check(host)?;
    let own = plan.discipline.applied_to(host);
    let is_blast = plan.workload.pattern == Pattern::Blast;
    let is_binding = is_blast || figures.loss_ratio.is_some_and(|ratio| ratio >= LOSS_MIN);
    let finding = match worst_place(figures) {
        _ if is_blast => sending(figures),
        Some(place) if is_binding => binding(&own, figures, place),
        _ => headroom(figures),
    };
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

fn worst_place(figures: &SimFigures) -> Option<SimPlace> {
    let losses = figures.ledger.losses.iter().filter(|loss| loss.packets > 0);
    losses
        .max_by_key(|loss| loss.packets)
        .map(|loss| loss.place)
}

fn busy(figures: &SimFigures) -> f64 {
    1.0 - figures.cpu.idle
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// What of the packets that the poller asked for it got.
fn used_quota(figures: &SimFigures, polling: &SimPolling) -> f64 {
    let lost = |place| {
        let mut losses = figures.ledger.losses.iter();
        losses
            .find(|loss| loss.place == place)
            .map_or(0, |loss| loss.packets)
    };
    let ledger = &figures.ledger;
    let reached = ledger.offered - lost(SimPlace::FarQueue).min(ledger.offered);
    let taken = reached.saturating_sub(lost(SimPlace::RxRing));
    taken as f64 / polling.asked.max(1) as f64
}

/// All came through: what is fullest will be full first.
fn headroom(figures: &SimFigures) -> Finding {
    let mut all = vec![("line", figures.line_ratio), ("processor", busy(figures))];
    if let Some(polling) = &figures.polling {
        all.push(("burst", used_quota(figures, polling)));
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

fn sending(figures: &SimFigures) -> Finding {
    if figures.line_ratio >= FULL {
        return line(figures);
    }
    if worst_place(figures).is_some() {
        return Finding {
            resource: "transmit ring",
            fullness: 1.0,
            explanation: format!(
                "The transmit ring is full of frames that have left, and is cleared too seldom: the line \
                 is only {} in use while calls fail.",
                percent(figures.line_ratio)
            ),
        };
    }
    Finding {
        resource: "processor",
        fullness: busy(figures),
        explanation: format!(
            "Every call succeeds and the line is {} in use: the processor, {}, cannot send faster.",
            percent(figures.line_ratio),
            split(figures)
        ),
    }
}

fn line(figures: &SimFigures) -> Finding {
    Finding {
        resource: "line",
        fullness: figures.line_ratio,
        explanation: format!(
            "The line is {} in use: more than it carries was to be sent.",
            percent(figures.line_ratio)
        ),
    }
}

fn split(figures: &SimFigures) -> String {
    let cpu = &figures.cpu;
    format!(
        "{} busy ({} interrupts, {} software interrupts, {} system, {} program)",
        percent(busy(figures)),
        percent(cpu.interrupt),
        percent(cpu.soft_interrupt),
        percent(cpu.system),
        percent(cpu.user)
    )
}

fn binding(host: &Host, figures: &SimFigures, place: SimPlace) -> Finding {
    let is_full = busy(figures) >= FULL;
    match place {
        SimPlace::FarQueue | SimPlace::SendQueue => line(figures),
        SimPlace::RxRing => ring(host, figures),
        SimPlace::IpQueue if is_full => processor(
            figures,
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
        SimPlace::SocketBuffer if is_full => processor(
            figures,
            "The work on arriving packets comes before the program, which is starved: packets are lost \
             at its socket after all the kernel's work was spent on them",
        ),
        SimPlace::SocketBuffer => queue(
            "socket buffer",
            format!(
                "More arrives at once than the {} bytes of the socket hold, though the processor is only \
                 {} busy.",
                host.socket.buffer_bytes,
                percent(busy(figures))
            ),
        ),
    }
}

fn processor(figures: &SimFigures, why: &str) -> Finding {
    Finding {
        resource: "processor",
        fullness: busy(figures),
        explanation: format!("{why}. The processor is {}.", split(figures)),
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
fn ring(host: &Host, figures: &SimFigures) -> Finding {
    if let Some(storm) = figures.storm.filter(|storm| storm.throttled > 0) {
        return queue(
            "storm throttling",
            format!(
                "Interrupt storm detection threw {} of {} passes a tick back each: the card is emptied \
                 {} times a second.",
                storm.throttled, storm.passes, host.cpu.hz
            ),
        );
    }
    if let Some(polling) = &figures.polling
        && used_quota(figures, polling) >= FULL
    {
        return quota(host, figures, polling);
    }
    if busy(figures) >= FULL {
        return processor(
            figures,
            "Packets are lost in the ring, at no cost, because the processor has no time to take them",
        );
    }
    queue(
        "receive ring",
        format!(
            "The {} descriptors of the ring fill up before the driver comes to them, though the processor \
             is only {} busy over all: packets come in bursts, or the card is looked at too seldom.",
            host.card.rx_ring,
            percent(busy(figures))
        ),
    )
}

fn quota(host: &Host, figures: &SimFigures, polling: &SimPolling) -> Finding {
    let fullness = used_quota(figures, polling);
    let burst = polling.burst_mean.unwrap_or_default();
    if polling.full_cycles * 2 > polling.cycles {
        return Finding {
            resource: "burst_max",
            fullness,
            explanation: format!(
                "Every burst is used up and is as great as burst_max allows: {} ticks of {burst:.0} \
                 packets a second. The processor is {} busy.",
                host.cpu.hz,
                percent(busy(figures))
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
            split(figures)
        ),
    }
}
