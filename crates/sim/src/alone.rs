//! One host, and ideal hosts at the far end of its lines.

use nicpoll_model::sim::{SimCard, SimClients, SimFigures, SimLedger, SimLoss, SimPlace, SimSlice};

use crate::clients::Clients;
use crate::host::Host;
use crate::line::Wire;
use crate::machine::{Attachment, Counts, FarEnd, Flow, Setup, Start, Task, ratio};
use crate::packet::{FAR, Shape};
use crate::plan::{self, Plan, PlanError};
use crate::queue::Queue;
use crate::shared::Shared;
use crate::tally::{CardTally, FlowTally};
use crate::workload::Pattern;
use crate::world::World;

/// Runs a plan on a host.
///
/// # Errors
/// Why the host cannot run it; see [`Plan::check`].
pub fn simulate(host: &Host, plan: &Plan) -> Result<SimFigures, PlanError> {
    plan.check(host)?;
    let mut world = world(plan.discipline.applied_to(host), plan)?;
    world.run_until(plan.warmup_ns);
    let counting = world.begin_counting();
    let start = &counting.starts[0];
    let slices = run_slices(&mut world, plan, start);
    world.run_until(plan.warmup_ns.saturating_add(plan.duration_ns));
    let ledger = SimLedger {
        in_flight_at_start: counting.in_flight,
        offered: world.shared.offered(),
        delivered: world.shared.delivered(),
        losses: losses(&world.shared),
        in_flight_at_end: world.in_flight(),
    };
    Ok(figures(&world, plan, start, slices, ledger))
}

fn world(host: Host, plan: &Plan) -> Result<World, PlanError> {
    let shapes = plan::shapes(&plan.workload, host.link.mtu_bytes)?;
    let wire = Wire::new(host.link.bits_per_second);
    let links = plan.workload.links;
    let flows = flows(plan, &shapes);
    let shared = Shared {
        wires: vec![wire; 2 * usize::from(links)],
        flows: vec![FlowTally::new(0); flows.len()],
        served: vec![0; usize::from(plan.workload.clients)],
        losses: vec![Default::default()],
        ..Shared::default()
    };
    let line_bytes = shapes.iter().map(|shape| shape.line_bytes).sum();
    let frames = plan::trace_frames(&plan.workload, host.link.mtu_bytes)?;
    let attachment = |link: u8| {
        // Each line has two ways. Both share a half-duplex one.
        let out = 2 * usize::from(link);
        let back = out + 1 - host.link.half_duplex as usize;
        Attachment {
            wire: out,
            delay_ns: host.link.delay_ns,
            far: Some(FarEnd {
                clients: Clients::new(plan, link, wire.frame_ns(line_bytes), host.link.delay_ns),
                flow: usize::from(link),
                frames: frames.clone(),
                wire: back,
                queue: Queue::new(host.link.queue_packets),
            }),
        }
    };
    let machine = plan.discipline.method.machine(Setup {
        number: 0,
        attachments: (0..links).map(attachment).collect(),
        flows,
        tasks: vec![task(plan)],
        ends: Vec::new(),
        tick_phase_ns: 0,
        host,
    })?;
    let peers = vec![None; usize::from(links)];
    Ok(World::new(vec![machine], vec![peers], shared))
}

/// The flow of each line, then that of each line's replies.
fn flows(plan: &Plan, shapes: &[Shape]) -> Vec<Flow> {
    let (to, counts) = match plan.workload.pattern {
        Pattern::Blast => (FAR, Counts::FromCall),
        Pattern::RequestResponse => (0, Counts::Exchange),
        _ => (0, Counts::FromCard),
    };
    let links = plan.workload.links;
    let flow = |number: u8, to| Flow {
        number,
        to,
        program: 0,
        card: usize::from(number % links),
        ip: plan.workload.ip,
        payload_bytes: plan.workload.payload_bytes,
        shapes: shapes.to_vec(),
        counts,
    };
    let forth = (0..links).map(|number| flow(number, to));
    let replies = (links..2 * links).map(|number| flow(number, FAR));
    let has_replies = counts == Counts::Exchange;
    forth.chain(replies.filter(|_| has_replies)).collect()
}

/// What the host's program does.
fn task(plan: &Plan) -> Task {
    match plan.workload.pattern {
        Pattern::Blast => Task::Blast { flow: 0 },
        Pattern::RequestResponse => Task::Respond {
            to_replies: usize::from(plan.workload.links),
            owes: None,
        },
        _ => Task::Read {
            flow: 0,
            reads_clock: false,
        },
    }
}

/// Runs through all the slices that are asked for.
fn run_slices(world: &mut World, plan: &Plan, start: &Start) -> Vec<SimSlice> {
    let mut before = Mark::default();
    let mut slices = Vec::new();
    for number in 1..=u64::from(plan.slices) {
        let end_ns = u128::from(plan.duration_ns) * u128::from(number) / u128::from(plan.slices);
        // Not beyond the duration.
        let end_ns = end_ns as u64;
        world.run_until(plan.warmup_ns.saturating_add(end_ns));
        let now = Mark::of(world);
        slices.push(SimSlice {
            end_seconds: end_ns as f64 / 1e9,
            offered: now.offered - before.offered,
            delivered: now.delivered - before.delivered,
            lost: now.lost - before.lost,
            interrupts: now.interrupts - before.interrupts,
            throttled: now.throttled - before.throttled,
            knobs: world.machines[0].knob_figures(start),
        });
        before = now;
    }
    slices
}

/// Counts so far.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    offered: u64,
    delivered: u64,
    lost: u64,
    interrupts: u64,
    throttled: u64,
}

impl Mark {
    fn of(world: &World) -> Self {
        let shared = &world.shared;
        let tally = world.machines[0].tally();
        Mark {
            offered: shared.offered(),
            delivered: shared.delivered(),
            lost: SimPlace::ALL.iter().map(|place| shared.lost(*place)).sum(),
            interrupts: tally.cards.iter().map(|card| card.interrupts).sum(),
            throttled: tally.storm.throttled,
        }
    }
}

fn losses(shared: &Shared) -> Vec<SimLoss> {
    let loss = |place| SimLoss {
        place,
        packets: shared.lost(place),
    };
    SimPlace::ALL.map(loss).to_vec()
}

fn figures(
    world: &World,
    plan: &Plan,
    start: &Start,
    slices: Vec<SimSlice>,
    ledger: SimLedger,
) -> SimFigures {
    let seconds = plan.duration_ns as f64 / 1e9;
    let machine = &world.machines[0];
    let flows = &world.shared.flows;
    let delivered_pps = ledger.delivered as f64 / seconds;
    let payload_bytes = match plan.workload.pattern {
        // What goes out is read by no simulated program.
        Pattern::Blast | Pattern::RequestResponse => {
            ledger.delivered * u64::from(plan.workload.payload_bytes)
        }
        _ => flows.iter().map(|flow| flow.read_bytes).sum(),
    };
    let host = machine.host_figures(start);
    let switches = host.context_switches;
    let cards = cards(world, seconds);
    SimFigures {
        offered_pps: ledger.offered as f64 / seconds,
        delivered_pps,
        delivered_payload_bits_per_second: 8.0 * payload_bytes as f64 / seconds,
        loss_ratio: ratio(ledger.lost(), ledger.offered),
        line_ratio: cards.iter().map(|card| card.line_ratio).sum::<f64>() / cards.len() as f64,
        latency: FlowTally::latency_of_all(flows),
        jitter_ns: mean(flows.iter().filter_map(FlowTally::jitter_ns)),
        clients: (plan.workload.pattern != Pattern::Blast).then(|| clients(&world.shared.served)),
        cards,
        cpu: host.cpu,
        context_switches: switches,
        context_switches_per_packet: ratio(switches, ledger.delivered),
        interrupts: host.interrupts,
        slices,
        queues: host.queues,
        storm: host.storm,
        polling: host.polling,
        napi: host.napi,
        ledger,
    }
}

fn cards(world: &World, seconds: f64) -> Vec<SimCard> {
    // All lines are alike.
    let wire = &world.shared.wires[0];
    let figures = |card: &CardTally| SimCard {
        received: card.received,
        ring_lost: card.ring_lost,
        interrupts: card.interrupts,
        line_ratio: wire.share(card.received_bytes + card.transmitted_bytes, seconds),
    };
    world.machines[0]
        .tally()
        .cards
        .iter()
        .map(figures)
        .collect()
}

fn clients(served: &[u64]) -> SimClients {
    let mut served = served.to_vec();
    served.sort_unstable();
    let at = |index: usize| served.get(index).copied().unwrap_or_default();
    let count = served.len();
    SimClients {
        count: count as u64,
        served_least: at(0),
        served_median: (at((count - 1) / 2) + at(count / 2)) as f64 / 2.0,
        served_most: at(count - 1),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let all: Vec<f64> = values.collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::Discipline;
    use crate::workload::Workload;

    #[test]
    fn what_the_clients_got_is_what_was_delivered() {
        let text = include_str!("../../../sim/hosts/generic.toml");
        let host = Host::parse(text).unwrap();
        for (discipline, workload) in [
            ("freebsd-interrupt", "poisson:rate=90k:clients=30"),
            ("freebsd-polling", "constant:rate=120k:clients=31:links=4"),
            ("napi", "rr:clients=1000"),
        ] {
            let plan = Plan {
                discipline: Discipline::parse(discipline).unwrap(),
                workload: Workload::parse(workload).unwrap(),
                duration_ns: 200_000_000,
                warmup_ns: 100_000_000,
                seed: 1,
                slices: 0,
            };
            let mut world = world(host.clone(), &plan).unwrap();
            world.run_until(plan.warmup_ns);
            world.begin_counting();
            world.run_until(plan.warmup_ns + plan.duration_ns);
            let served: u64 = world.shared.served.iter().sum();
            assert_eq!(served, world.shared.delivered(), "{discipline}, {workload}");
            assert!(served > 0, "{discipline}, {workload}");
        }
    }
}
