//! What holds back TCP: a processor, a line, packets that are lost, or so many bytes a round trip.

use nicpoll_model::LossPlace;
use nicpoll_model::sim::{SimFigures, SimPathLoss, SimTcp};

use super::{Evidence, FULL, Finding, binding, percent, processor, queue};
use crate::spec::simulation::Simulation;

/// From this share of segments sent again on losses are what decides.
const RETRANSMITS_MIN: f64 = 0.001;

/// The host whose resource it is, and the finding.
pub(super) fn found(plan: &Simulation, figures: &SimFigures) -> (usize, Finding) {
    if let Some(finding) = full_line(figures) {
        return finding;
    }
    let busy = |host: usize| 1.0 - figures.hosts[host].cpu.idle;
    let busiest = (0..figures.hosts.len())
        .max_by(|a, b| busy(*a).total_cmp(&busy(*b)))
        .unwrap_or(0);
    if busy(busiest) >= FULL {
        let why =
            "TCP goes as fast as the slower end's work lets it, and this end has no time left";
        return (busiest, processor(Evidence::of(figures, busiest), why));
    }
    if let Some(loss) = decisive_loss(figures) {
        let stop = &plan.stops[loss.host];
        let host = stop.applied();
        let finding = match loss.place {
            LossPlace::SendQueue => queue(
                "send queue",
                format!(
                    "A window arrives at the driver faster than the line takes it, and the {} packets that \
                     may wait are too few: what is lost there TCP sends again, with half the window.",
                    host.network.send_queue_packets
                ),
            ),
            place => binding(&host, Evidence::of(figures, loss.host), place),
        };
        return (loss.host, finding);
    }
    window(plan, figures)
}

/// A line that is full, and the host that sends into it.
fn full_line(figures: &SimFigures) -> Option<(usize, Finding)> {
    figures.lines.iter().enumerate().find_map(|(number, line)| {
        let (host, used) = if line.is_half_duplex {
            (number, line.forth_ratio + line.back_ratio)
        } else if line.forth_ratio >= line.back_ratio {
            (number, line.forth_ratio)
        } else {
            (number + 1, line.back_ratio)
        };
        (used >= FULL).then(|| {
            let finding = Finding {
                resource: "line",
                fullness: used,
                explanation: format!(
                    "The line is {} in use: TCP fills it and has to wait for it.",
                    percent(used)
                ),
            };
            (host, finding)
        })
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
    let losses = figures.ledger.losses.iter();
    losses.max_by_key(|loss| loss.datagrams)
}

/// No resource is full: what is on its way is the most that may be.
fn window(plan: &Simulation, figures: &SimFigures) -> (usize, Finding) {
    let from = figures
        .flows
        .first()
        .and_then(|flow| flow.from)
        .unwrap_or(0);
    let finding = match figures.connections.first() {
        Some(tcp) => one_window(plan, tcp),
        None => queue("window", String::from("Nothing was connected.")),
    };
    (from, finding)
}

fn one_window(plan: &Simulation, tcp: &SimTcp) -> Finding {
    let is_sender = tcp.send_buffer_bytes <= tcp.receive_buffer_bytes;
    let (resource, bytes) = if is_sender {
        ("send buffer", tcp.send_buffer_bytes)
    } else {
        ("window", tcp.receive_buffer_bytes)
    };
    let Some(round_trip_ns) = tcp.round_trip_mean_ns else {
        return queue(
            resource,
            String::from("Nothing was acknowledged in the counted time."),
        );
    };
    let possible = 8e9 * bytes as f64 / round_trip_ns;
    Finding {
        resource,
        fullness: tcp.goodput_bits_per_second / possible,
        explanation: format!(
            "Neither a processor nor a line is full. From {} to {} {bytes} bytes may be on their way in a \
             round trip of {:.2} ms: {:.0} Mbit/s at most.{}",
            tcp.from,
            tcp.to,
            round_trip_ns / 1e6,
            possible / 1e6,
            ticks(plan, round_trip_ns)
        ),
    }
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
