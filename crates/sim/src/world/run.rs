//! Runs a plan and adds up its figures: by flow, by host and its processors, by line, by TCP connection and by slice.

use std::mem;

use nicpoll_model::sim::{
    SIM_PLACES, SimClients, SimFigures, SimFlow, SimHostFigures, SimLedger, SimLine, SimPathLoss,
    SimSlice, SimTcp, SimTcpBytes, SimTcpHeld, SimTcpSlice,
};

use super::build::{card_to_next, world};
use super::event_loop::{Counting, World};
use super::processors::Processors;
use crate::account::{CardTally, FlowTally, Shared, Tally};
use crate::link::{DeliveryCount, Flow};
use crate::machine::figures::{host_figures, ratio, shares_between, times};
use crate::machine::programs::Half;
use crate::spec::options::SimError;
use crate::spec::simulation::{PathLine, Simulation};
use crate::spec::traffic::Pattern;
use crate::tcp::{SendLimit, SenderCounts};

/// Runs a plan.
///
/// # Errors
/// Why the hosts cannot run it; see [`Simulation::check`].
pub fn simulate(plan: &Simulation) -> Result<SimFigures, SimError> {
    plan.check()?;
    let mut world = world(plan)?;
    world.run_until(plan.warmup_ns);
    let counting = world.begin_counting();
    // The counts of every connection at the edges of the slices.
    let mut connections = vec![(plan.warmup_ns, connection_marks(&world, plan))];
    let (mut slices, mut before) = (Vec::new(), [0; 5]);
    let mut spent = times(world.of_host(0));
    let parts = plan.slices.max(1);
    for number in 1..=u64::from(parts) {
        let part_ns = u128::from(plan.duration_ns) * u128::from(number) / u128::from(parts);
        // At most the duration.
        let part_ns = part_ns as u64;
        let end_ns = plan.warmup_ns.saturating_add(part_ns);
        world.run_until(end_ns);
        connections.push((end_ns, connection_marks(&world, plan)));
        if plan.slices > 0 && plan.is_alone() {
            let now = counts(&world);
            let [offered, delivered, lost, interrupts, throttled] =
                std::array::from_fn(|count| now[count] - before[count]);
            let spent_before = mem::replace(&mut spent, times(world.of_host(0)));
            slices.push(SimSlice {
                end_seconds: part_ns as f64 / 1e9,
                offered_packets: offered,
                delivered_packets: delivered,
                lost_packets: lost,
                interrupts,
                throttled_passes: throttled,
                cpu: shares_between(&spent_before, &spent),
                knobs: world.machines[0].knob_figures(&counting.starts[0]),
            });
            before = now;
        }
    }
    Ok(SimFigures {
        slices,
        connections: connection_figures(plan, &connections),
        ..figures(&world, plan, &counting)
    })
}

/// Returns the datagrams offered, delivered and lost so far, and the interrupts and throttled passes of the first
/// host.
fn counts(world: &World) -> [u64; 5] {
    let shared = &world.shared;
    let sum = |of: fn(&Tally) -> u64| world.of_host(0).iter().map(|cpu| of(&cpu.tally)).sum();
    [
        shared.offered(),
        shared.delivered(),
        SIM_PLACES.iter().map(|place| shared.lost(*place)).sum(),
        sum(Tally::interrupts),
        sum(|tally| tally.storm.throttled_passes),
    ]
}

/// Returns all figures but those of connections and slices.
fn figures(world: &World, plan: &Simulation, counting: &Counting) -> SimFigures {
    let seconds = plan.duration_ns as f64 / 1e9;
    let shared = &world.shared;
    let ledger = SimLedger {
        in_flight_at_start_datagrams: counting.in_flight,
        offered_datagrams: shared.offered(),
        delivered_datagrams: shared.delivered(),
        losses: losses(shared),
        in_flight_at_end_datagrams: world.in_flight(),
    };
    let each = world.machines[0].flows.iter().zip(&shared.flows);
    let payload: f64 = each
        .clone()
        .map(|(of, tally)| arrived_bytes(plan, of, tally))
        .sum();
    let clients = plan.is_alone() && plan.workload.pattern != Pattern::Blast;
    SimFigures {
        offered_packets_per_second: ledger.offered_datagrams as f64 / seconds,
        delivered_packets_per_second: ledger.delivered_datagrams as f64 / seconds,
        delivered_payload_bits_per_second: 8.0 * payload / seconds,
        loss_ratio: ratio(ledger.lost(), ledger.offered_datagrams),
        latency: FlowTally::latency_of_all(&shared.flows),
        jitter_ns: mean(shared.flows.iter().filter_map(FlowTally::jitter_ns)),
        clients: clients.then(|| self::clients(&shared.served)),
        flows: each
            .map(|(of, tally)| flow(plan, of, tally, seconds))
            .collect(),
        hosts: hosts(world, plan, counting, seconds),
        lines: lines(world, plan, seconds),
        connections: Vec::new(),
        slices: Vec::new(),
        ledger,
    }
}

/// Returns the bytes of payload that arrived.
fn arrived_bytes(plan: &Simulation, flow: &Flow, tally: &FlowTally) -> f64 {
    if plan.iperf_tcp().is_some() {
        tally.arrived_bytes as f64
    } else if flow.counts == DeliveryCount::FromCard {
        // Each packet of a trace has its own length.
        tally.read_bytes as f64
    } else {
        tally.delivered as f64 * f64::from(flow.payload_bytes)
    }
}

fn flow(plan: &Simulation, flow: &Flow, tally: &FlowTally, seconds: f64) -> SimFlow {
    let payload_bytes = flow.payload_bytes;
    let bits = 8.0 * f64::from(payload_bytes);
    let sent_pps = (tally.offered - tally.send_errors.min(tally.offered)) as f64 / seconds;
    let delivered_pps = tally.delivered as f64 / seconds;
    let (sent_bits, delivered_bits) = if plan.iperf_tcp().is_some() {
        let rate = |bytes: u64| 8.0 * bytes as f64 / seconds;
        (rate(tally.sent_bytes), rate(tally.arrived_bytes))
    } else if flow.counts == DeliveryCount::FromCard {
        (sent_pps * bits, 8.0 * tally.read_bytes as f64 / seconds)
    } else {
        (sent_pps * bits, delivered_pps * bits)
    };
    SimFlow {
        name: String::from(flow.name),
        from: flow.sender(),
        to: flow.receiver(),
        payload_bytes,
        calls: tally.offered,
        send_errors: tally.send_errors,
        delivered_datagrams: tally.delivered,
        sent_packets_per_second: sent_pps,
        delivered_packets_per_second: delivered_pps,
        sent_payload_bits_per_second: sent_bits,
        delivered_payload_bits_per_second: delivered_bits,
        missing_datagrams: tally.missing(),
        out_of_order_datagrams: tally.out_of_order,
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

/// Returns each host's figures, with the share of its line that each card used.
fn hosts(
    world: &World,
    plan: &Simulation,
    counting: &Counting,
    seconds: f64,
) -> Vec<SimHostFigures> {
    let lines = PathLine::all(plan);
    let host = |(number, of): (usize, &Processors)| {
        let processors = &world.machines[of.machines()];
        let mut host = host_figures(processors, &counting.starts[of.machines()]);
        if plan.stops[number].host.is_veth_end() {
            return host;
        }
        for (card, figures) in host.cards.iter_mut().enumerate() {
            // A host on a path has the card of the line back, then that of the line forth.
            let line = if plan.is_alone() {
                card
            } else {
                number + card - card_to_next(number)
            };
            let wire = &world.shared.wires[lines[line].wire(line, false)];
            let tallies = processors.iter().map(|cpu| &cpu.tally.cards[card]);
            let bytes = tallies.map(|of| of.received_bytes + of.transmitted_bytes);
            figures.line_ratio = Some(wire.share(bytes.sum(), seconds));
        }
        host
    };
    world.processors.iter().enumerate().map(host).collect()
}

fn lines(world: &World, plan: &Simulation, seconds: f64) -> Vec<SimLine> {
    if plan.is_alone() || plan.stops[0].host.is_veth_end() {
        return Vec::new();
    }
    let lines = PathLine::all(plan);
    let figures = lines.iter().enumerate().map(|(number, line)| {
        let sum = |bytes: fn(&CardTally) -> u64| {
            let cards = world.of_host(number).iter();
            cards
                .map(|cpu| bytes(&cpu.tally.cards[card_to_next(number)]))
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
        clients: count as u64,
        served_least_packets: at(0),
        served_median_packets: (at((count - 1) / 2) + at(count / 2)) as f64 / 2.0,
        served_most_packets: at(count - 1),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let all: Vec<f64> = values.collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

/// The counts of both ends of a connection.
#[derive(Clone, Copy, Debug)]
struct ConnectionMark {
    sender: SenderCounts,
    written: u64,
    received: u64,
    read: u64,
    acknowledgements: u64,
}

/// Returns the current counts of every connection, in order.
fn connection_marks(world: &World, plan: &Simulation) -> Vec<ConnectionMark> {
    let Some(options) = plan.iperf_tcp() else {
        return Vec::new();
    };
    let now_ns = world.machines[0].now_ns;
    let connections = plan.connections(options);
    let each = connections
        .iter()
        .enumerate()
        .filter_map(|(number, ports)| {
            let half = |machine: usize, flow: usize| {
                // Both ends are on the first processors of their hosts.
                let mut ends = world.of_host(machine)[0].ends.iter();
                ends.find(|end| end.flow == flow).map(|end| &end.half)
            };
            match (half(ports.0, 2 * number), half(ports.1, 2 * number + 1)) {
                (Some(Half::Sender(sender)), Some(Half::Receiver(receiver))) => {
                    Some(ConnectionMark {
                        sender: sender.counts(now_ns),
                        written: sender.written,
                        received: receiver.next,
                        read: receiver.read,
                        acknowledgements: receiver.acknowledgements,
                    })
                }
                _ => None,
            }
        });
    each.collect()
}

/// Returns the figures of each connection from the first mark to the last; marks in between end slices.
fn connection_figures(plan: &Simulation, marks: &[(u64, Vec<ConnectionMark>)]) -> Vec<SimTcp> {
    let Some(options) = plan.iperf_tcp() else {
        return Vec::new();
    };
    let connections = plan.connections(options);
    let figures = connections.iter().enumerate().map(|(number, ports)| {
        let (from, to) = (&plan.stops[ports.0], &plan.stops[ports.1]);
        let of = |(at_ns, all): &(u64, Vec<ConnectionMark>)| (*at_ns, all[number]);
        let marks: Vec<_> = marks.iter().map(of).collect();
        let (start, end) = (marks[0], marks[marks.len() - 1]);
        let (before, after) = (&start.1, &end.1);
        let seconds = (end.0 - start.0) as f64 / 1e9;
        let sender = after.sender.since(&before.sender);
        let mean_ns = |sum: u128| sum as f64 / sender.round_trips as f64;
        SimTcp {
            from: from.host.name.clone(),
            to: to.host.name.clone(),
            bytes: bytes(before, after),
            goodput_bits_per_second: 8.0 * (after.read - before.read) as f64 / seconds,
            segment_bytes: plan.segment_bytes(),
            send_buffer_bytes: options.send_buffer(&from.applied()),
            receive_buffer_bytes: options.receive_buffer(&to.applied()),
            segments: sender.segments,
            retransmitted_segments: sender.retransmits,
            fast_retransmits: sender.fast_retransmits,
            timeouts: sender.timeouts,
            probes: sender.probes,
            acknowledgements: after.acknowledgements - before.acknowledgements,
            round_trip_mean_ns: (sender.round_trips > 0).then(|| mean_ns(sender.round_trip_ns)),
            held: held(&sender, end.0 - start.0),
            slices: if plan.slices == 0 {
                Vec::new()
            } else {
                marks
                    .windows(2)
                    .map(|pair| connection_slice(pair, start.0))
                    .collect()
            },
        }
    });
    figures.collect()
}

fn bytes(before: &ConnectionMark, after: &ConnectionMark) -> SimTcpBytes {
    SimTcpBytes {
        buffered_at_start_bytes: before.written - before.read,
        written_bytes: after.written - before.written,
        read_bytes: after.read - before.read,
        unsent_or_in_flight_at_end_bytes: after.written - after.received,
        unread_at_end_bytes: after.received - after.read,
    }
}

fn held(sender: &SenderCounts, whole_ns: u64) -> SimTcpHeld {
    let share = |held: SendLimit| sender.held_ns[held as usize] as f64 / whole_ns as f64;
    SimTcpHeld {
        program_ratio: share(SendLimit::Program),
        send_buffer_ratio: share(SendLimit::Buffer),
        window_ratio: share(SendLimit::Window),
        congestion_ratio: share(SendLimit::Congestion),
    }
}

fn connection_slice(pair: &[(u64, ConnectionMark)], start_ns: u64) -> SimTcpSlice {
    let (before, after) = (&pair[0], &pair[1]);
    let read_bytes = after.1.read - before.1.read;
    let seconds = (after.0 - before.0) as f64 / 1e9;
    SimTcpSlice {
        end_seconds: (after.0 - start_ns) as f64 / 1e9,
        read_bytes,
        goodput_bits_per_second: 8.0 * read_bytes as f64 / seconds,
        retransmitted_segments: after.1.sender.retransmits - before.1.sender.retransmits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::discipline::ReceiveDiscipline;
    use crate::spec::host::HostModel;
    use crate::spec::simulation::PathHost;
    use crate::spec::traffic::TrafficModel;

    #[test]
    fn what_the_clients_got_is_what_was_delivered() {
        let text = include_str!("../../hosts/generic.toml");
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
            let mut world = world(&plan).unwrap();
            world.run_until(plan.warmup_ns);
            world.begin_counting();
            world.run_until(plan.warmup_ns + plan.duration_ns);
            let served: u64 = world.shared.served.iter().sum();
            assert_eq!(served, world.shared.delivered(), "{discipline}, {workload}");
            assert!(served > 0, "{discipline}, {workload}");
        }
    }
}
