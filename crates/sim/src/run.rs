//! Running a plan, and what came out of it.

mod host;

use nicpoll_model::sim::{
    SIM_PLACES, SimClients, SimFigures, SimFlow, SimHostFigures, SimLedger, SimLine, SimPathLoss,
    SimSlice,
};

use crate::build::{self, FlowPlan, card_to_next};
use crate::connections;
use crate::machine::{Counts, ratio};
use crate::plan::{Line, Simulation, SimulationError};
use crate::shared::Shared;
use crate::tally::{CardTally, FlowTally, Tally};
use crate::workload::Pattern;
use crate::world::{Counting, World};

/// Runs a plan.
///
/// # Errors
/// Why the hosts cannot run it; see [`Simulation::check`].
pub fn simulate(plan: &Simulation) -> Result<SimFigures, SimulationError> {
    plan.check()?;
    let mut world = build::world(plan)?;
    world.run_until(plan.warmup_ns);
    let counting = world.begin_counting();
    let mut parts = Parts::begin(plan, &world);
    let slices = plan.slices.max(1);
    for number in 1..=u64::from(slices) {
        let part_ns = u128::from(plan.duration_ns) * u128::from(number) / u128::from(slices);
        // Not beyond the duration.
        let part_ns = part_ns as u64;
        world.run_until(plan.warmup_ns.saturating_add(part_ns));
        parts.end(plan, &world, &counting, part_ns);
    }
    Ok(figures(&world, plan, &counting, parts))
}

/// What is known of the parts of the counted time.
struct Parts {
    slices: Vec<SimSlice>,
    before: Mark,
    /// The counts of every connection at each edge.
    connections: Vec<(u64, Vec<connections::Mark>)>,
}

impl Parts {
    fn begin(plan: &Simulation, world: &World) -> Self {
        Parts {
            slices: Vec::new(),
            before: Mark::default(),
            connections: vec![(plan.warmup_ns, connections::marks(world, plan))],
        }
    }

    fn end(&mut self, plan: &Simulation, world: &World, counting: &Counting, part_ns: u64) {
        let end_ns = plan.warmup_ns.saturating_add(part_ns);
        let marks = connections::marks(world, plan);
        self.connections.push((end_ns, marks));
        if plan.slices == 0 || !plan.is_alone() {
            return;
        }
        let (now, before) = (Mark::of(world), self.before);
        self.slices.push(SimSlice {
            end_seconds: part_ns as f64 / 1e9,
            offered: now.offered - before.offered,
            delivered: now.delivered - before.delivered,
            lost: now.lost - before.lost,
            interrupts: now.interrupts - before.interrupts,
            throttled: now.throttled - before.throttled,
            knobs: world.machines[0].knob_figures(&counting.starts[0]),
        });
        self.before = now;
    }
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
        let sum = |of: fn(&Tally) -> u64| world.of_host(0).iter().map(|cpu| of(cpu.tally())).sum();
        Mark {
            offered: shared.offered(),
            delivered: shared.delivered(),
            lost: SIM_PLACES.iter().map(|place| shared.lost(*place)).sum(),
            interrupts: sum(|tally| tally.interrupts()),
            throttled: sum(|tally| tally.storm.throttled),
        }
    }
}

fn figures(world: &World, plan: &Simulation, counting: &Counting, parts: Parts) -> SimFigures {
    let seconds = plan.duration_ns as f64 / 1e9;
    let shared = &world.shared;
    let ledger = SimLedger {
        in_flight_at_start: counting.in_flight,
        offered: shared.offered(),
        delivered: shared.delivered(),
        losses: losses(shared),
        in_flight_at_end: world.in_flight(),
    };
    let flows = build::flows(plan);
    let each = flows.iter().zip(&shared.flows);
    let payload: f64 = each
        .clone()
        .map(|(of, tally)| arrived_bytes(plan, of, tally))
        .sum();
    let clients = plan.is_alone() && plan.workload.pattern != Pattern::Blast;
    SimFigures {
        offered_pps: ledger.offered as f64 / seconds,
        delivered_pps: ledger.delivered as f64 / seconds,
        delivered_payload_bits_per_second: 8.0 * payload / seconds,
        loss_ratio: ratio(ledger.lost(), ledger.offered),
        latency: FlowTally::latency_of_all(&shared.flows),
        jitter_ns: mean(shared.flows.iter().filter_map(FlowTally::jitter_ns)),
        clients: clients.then(|| self::clients(&shared.served)),
        flows: each
            .map(|(of, tally)| flow(plan, of, tally, seconds))
            .collect(),
        hosts: hosts(world, plan, counting, seconds),
        lines: lines(world, plan, seconds),
        connections: connections::figures(plan, &parts.connections),
        slices: parts.slices,
        ledger,
    }
}

/// Bytes of payload that arrived.
fn arrived_bytes(plan: &Simulation, flow: &FlowPlan, tally: &FlowTally) -> f64 {
    if plan.iperf_tcp().is_some() {
        tally.arrived_bytes as f64
    } else if flow.counts == Counts::FromCard {
        // Each packet of a trace has its own.
        tally.read_bytes as f64
    } else {
        tally.delivered as f64 * f64::from(flow.payload_bytes)
    }
}

fn flow(plan: &Simulation, flow: &FlowPlan, tally: &FlowTally, seconds: f64) -> SimFlow {
    let payload_bytes = flow.payload_bytes;
    let bits = 8.0 * f64::from(payload_bytes);
    let sent_pps = (tally.offered - tally.send_errors.min(tally.offered)) as f64 / seconds;
    let delivered_pps = tally.delivered as f64 / seconds;
    let (sent_bits, delivered_bits) = if plan.iperf_tcp().is_some() {
        let rate = |bytes: u64| 8.0 * bytes as f64 / seconds;
        (rate(tally.sent_bytes), rate(tally.arrived_bytes))
    } else if flow.counts == Counts::FromCard {
        (sent_pps * bits, 8.0 * tally.read_bytes as f64 / seconds)
    } else {
        (sent_pps * bits, delivered_pps * bits)
    };
    SimFlow {
        name: String::from(flow.name),
        from: flow.from,
        to: flow.to,
        payload_bytes,
        calls: tally.offered,
        send_errors: tally.send_errors,
        delivered: tally.delivered,
        sent_pps,
        delivered_pps,
        sent_payload_bits_per_second: sent_bits,
        delivered_payload_bits_per_second: delivered_bits,
        missing: tally.missing(),
        out_of_order: tally.out_of_order,
        latency: tally.latency(),
        round_trip: tally.round_trip(),
        jitter_ns: tally.jitter_ns(),
    }
}

fn losses(shared: &Shared) -> Vec<SimPathLoss> {
    let mut all = Vec::new();
    for (host, losses) in shared.losses.iter().enumerate() {
        for place in SIM_PLACES {
            let datagrams = losses[place as usize];
            if datagrams > 0 {
                all.push(SimPathLoss {
                    host,
                    place,
                    datagrams,
                });
            }
        }
    }
    all
}

/// Each host's figures, with the share of its line that each card used.
fn hosts(
    world: &World,
    plan: &Simulation,
    counting: &Counting,
    seconds: f64,
) -> Vec<SimHostFigures> {
    let lines = Line::all(plan);
    let of_processor = |number: usize, machine: usize| {
        let start = &counting.starts[machine];
        let machine = &world.machines[machine];
        let mut host = machine.host_figures(start);
        let tallies = &machine.tally().cards;
        if plan.stops[number].host.joint().has_line {
            for (card, (figures, tally)) in host.cards.iter_mut().zip(tallies).enumerate() {
                // The cards of a path's host are those of the line back, then of the line forth.
                let line = if plan.is_alone() {
                    card
                } else {
                    number + card - card_to_next(number)
                };
                let wire = &world.shared.wires[lines[line].wire(line, false)];
                let bytes = tally.received_bytes + tally.transmitted_bytes;
                figures.line_ratio = Some(wire.share(bytes, seconds));
            }
        }
        host
    };
    let processors = world.processors.iter().enumerate();
    let figures = processors.filter_map(|(number, of)| {
        let each = of.machines().map(|machine| of_processor(number, machine));
        host::of_processors(each.collect())
    });
    figures.collect()
}

fn lines(world: &World, plan: &Simulation, seconds: f64) -> Vec<SimLine> {
    if plan.is_alone() || !plan.stops[0].host.joint().has_line {
        return Vec::new();
    }
    let lines = Line::all(plan);
    let figures = lines.iter().enumerate().map(|(number, line)| {
        let sum = |bytes: fn(&CardTally) -> u64| {
            let cards = world.of_host(number).iter();
            cards
                .map(|cpu| bytes(&cpu.tally().cards[card_to_next(number)]))
                .sum()
        };
        let wire = &world.shared.wires[line.wire(number, false)];
        SimLine {
            bits_per_second: line.bits_per_second,
            is_half_duplex: line.is_half_duplex,
            forth_ratio: wire.share(sum(|card| card.transmitted_bytes), seconds),
            back_ratio: wire.share(sum(|card| card.received_bytes), seconds),
        }
    });
    figures.collect()
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
    use crate::discipline::ReceiveDiscipline;
    use crate::host::HostModel;
    use crate::plan::PathHost;
    use crate::workload::TrafficModel;

    #[test]
    fn what_the_clients_got_is_what_was_delivered() {
        let text = include_str!("../hosts/generic.toml");
        let host = HostModel::parse(text).unwrap();
        for (discipline, workload) in [
            ("freebsd-interrupt", "poisson:rate=90k:clients=30"),
            ("freebsd-polling", "constant:rate=120k:clients=31:links=4"),
            ("napi", "rr:clients=1000"),
        ] {
            let plan = Simulation {
                stops: vec![PathHost {
                    host: host.clone(),
                    discipline: ReceiveDiscipline::parse(discipline).unwrap(),
                }],
                workload: TrafficModel::parse(workload).unwrap(),
                duration_ns: 200_000_000,
                warmup_ns: 100_000_000,
                seed: 1,
                slices: 0,
            };
            let mut world = build::world(&plan).unwrap();
            world.run_until(plan.warmup_ns);
            world.begin_counting();
            world.run_until(plan.warmup_ns + plan.duration_ns);
            let served: u64 = world.shared.served.iter().sum();
            assert_eq!(served, world.shared.delivered(), "{discipline}, {workload}");
            assert!(served > 0, "{discipline}, {workload}");
        }
    }
}
