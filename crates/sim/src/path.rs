//! Hosts in a row: the first sends, the last receives, those between forward.

mod tcp;

use nicpoll_model::sim_path::{
    SimFlow, SimLine, SimPathFigures, SimPathLedger, SimPathLoss, SimPathPlan, SimStop,
};

use crate::chance::Chance;
use crate::discipline::Discipline;
use crate::host::Host;
use crate::line::Wire;
use crate::machine::{Attachment, Counts, End, Flow, Pacer, Setup, Task};
use crate::plan::{self, PlanError, STOPS_MAX};
use crate::shared::Shared;
use crate::tally::FlowTally;
use crate::workload::{Pattern, Workload};
use crate::world::{Counting, Port, World};
use nicpoll_model::sim::SimPlace;

const NS_PER_SECOND: u64 = 1_000_000_000;

/// A host on the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Its numbers.
    pub host: Host,
    /// How it learns of packets.
    pub discipline: Discipline,
}

/// A run of several hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPlan {
    /// The hosts in the order of the path, 2 to 16. A line joins each to the next: it has the lower speed and
    /// the longer delay of the two hosts' `link`, and is half duplex if one of them is.
    pub stops: Vec<Stop>,
    /// What is sent.
    pub workload: Workload,
    /// Virtual time that is counted, above 0.
    pub duration_ns: u64,
    /// Virtual time before it that is not.
    pub warmup_ns: u64,
    /// What all chance follows from.
    pub seed: u64,
    /// Parts of the counted time that TCP connections are told of one by one; 0 for none.
    pub slices: u32,
}

/// A flow of a plan.
#[derive(Clone, Copy, Debug)]
struct FlowPlan {
    /// What it carries.
    name: &'static str,
    /// The machine that sends.
    from: usize,
    /// The machine that receives.
    to: usize,
    /// Payload of a datagram, or of the longest segment.
    payload_bytes: u32,
}

impl Stop {
    /// The host with the discipline's own numbers.
    fn applied(&self) -> Host {
        self.discipline.applied_to(&self.host)
    }
}

impl PathPlan {
    /// The plan as reports show it.
    pub fn facts(&self) -> SimPathPlan {
        let stop = |stop: &Stop| SimStop {
            host: stop.host.name.clone(),
            discipline: stop.discipline.to_string(),
        };
        SimPathPlan {
            hosts: self.stops.iter().map(stop).collect(),
            workload: self.workload.to_string(),
            seconds: self.duration_ns as f64 / 1e9,
            warmup_seconds: self.warmup_ns as f64 / 1e9,
            seed: self.seed,
        }
    }

    /// Looks whether the hosts can run this.
    ///
    /// # Errors
    /// Why they cannot.
    pub fn check(&self) -> Result<(), PlanError> {
        if !(2..=STOPS_MAX).contains(&self.stops.len()) {
            return Err(PlanError::Stops(self.stops.len()));
        }
        if self.workload.pattern.needs_far_end() {
            return Err(PlanError::NoFarEnd(self.workload.name()));
        }
        if self.workload.clients > 1 {
            return Err(PlanError::ClientsOnPath);
        }
        // Each part has a length too.
        if self.duration_ns < u64::from(self.slices.max(1)) {
            return Err(PlanError::NoDuration);
        }
        self.check_joints()?;
        let lines = Line::all(&self.stops);
        plan::shapes(&self.workload, lines[0].mtu_bytes)?;
        if let Some(other) = lines
            .iter()
            .find(|line| line.mtu_bytes != lines[0].mtu_bytes)
        {
            return Err(PlanError::Mtus {
                first_bytes: lines[0].mtu_bytes,
                other_bytes: other.mtu_bytes,
            });
        }
        for (number, stop) in self.stops.iter().enumerate() {
            let host = stop.applied();
            if self.iperf_tcp().is_none() {
                plan::check_buffer(&host, &self.workload)?;
            }
            let method = &stop.discipline.method;
            method.poller(&host, self.cards(number))?;
            let is_busy = method.is_program_polling();
            if is_busy && self.iperf_tcp().is_some() {
                return Err(PlanError::TcpWhilePolling);
            }
            let is_reader = number + 1 == self.stops.len()
                || (number == 0 && self.workload.pattern == Pattern::RequestResponse);
            if is_busy && !is_reader {
                return Err(PlanError::BlastWhilePolling);
            }
        }
        Ok(())
    }

    fn check_joints(&self) -> Result<(), PlanError> {
        let pairs = self.stops.iter().filter_map(|stop| stop.host.joint().stops);
        let (ends, size) = pairs.fold((0, 0), |(ends, _), size| (ends + 1, size));
        if ends == 0 {
            return Ok(());
        }
        if ends != size || self.stops.len() != size {
            return Err(PlanError::VethAlone);
        }
        let is_served = |stop: &Stop| stop.discipline.method.serves_without_interrupts();
        if !self.stops.iter().all(is_served) {
            return Err(PlanError::VethDiscipline);
        }
        if self.iperf_tcp().is_some() {
            return Err(PlanError::VethTcp);
        }
        Ok(())
    }

    /// The stop whose discipline serves the cards of a machine: its own, or that of the other end when the sender
    /// polls.
    fn polled(&self, number: usize) -> &Stop {
        if self.stops[number].host.joint().is_polled_by_sender {
            &self.stops[1 - number]
        } else {
            &self.stops[number]
        }
    }

    fn cards(&self, number: usize) -> u32 {
        let is_end = number == 0 || number + 1 == self.stops.len();
        if is_end { 1 } else { 2 }
    }

    fn flows(&self) -> Vec<FlowPlan> {
        let last = self.stops.len() - 1;
        let flow = |name, from, to| FlowPlan {
            name,
            from,
            to,
            payload_bytes: self.workload.payload_bytes,
        };
        match self.workload.pattern {
            Pattern::IperfTcp(options) => self.tcp_flows(options),
            Pattern::RequestResponse => vec![flow("requests", 0, last), flow("replies", last, 0)],
            _ => vec![flow("datagrams", 0, last)],
        }
    }

    /// The programs of a machine, and its ends of TCP connections.
    fn programs(&self, number: usize) -> (Vec<Task>, Vec<End>) {
        match self.iperf_tcp() {
            Some(options) => self.tcp_programs(number, options),
            None => (self.tasks(number), Vec::new()),
        }
    }

    /// The programs of a machine that send and read datagrams.
    fn tasks(&self, number: usize) -> Vec<Task> {
        let is_first = number == 0;
        let is_last = number + 1 == self.stops.len();
        let is_iperf = matches!(self.workload.pattern, Pattern::IperfUdp { .. });
        match self.workload.pattern {
            Pattern::RequestResponse if is_first => vec![Task::Request {
                flow: 0,
                waits_for: None,
                sent_ns: 0,
            }],
            Pattern::RequestResponse if is_last => vec![Task::Respond {
                to_replies: 1,
                owes: None,
            }],
            Pattern::IperfUdp { bits_per_second } if is_first => {
                let payload_bytes = self.workload.payload_bytes;
                vec![Task::Pace(Pacer::new(0, payload_bytes, bits_per_second))]
            }
            _ if is_first => vec![Task::Blast { flow: 0 }],
            _ if is_last => vec![Task::Read {
                flow: 0,
                reads_clock: is_iperf,
            }],
            _ => Vec::new(),
        }
    }
}

/// A line between two neighbours, as they agree on it.
#[derive(Clone, Copy, Debug)]
struct Line {
    bits_per_second: u64,
    mtu_bytes: u64,
    delay_ns: u64,
    is_half_duplex: bool,
}

impl Line {
    /// Each host's line to the next.
    fn all(stops: &[Stop]) -> Vec<Line> {
        let links: Vec<_> = stops.iter().map(|stop| stop.applied().link).collect();
        let joined = links.windows(2).map(|pair| Line {
            bits_per_second: pair[0].bits_per_second.min(pair[1].bits_per_second),
            mtu_bytes: pair[0].mtu_bytes.min(pair[1].mtu_bytes),
            delay_ns: pair[0].delay_ns.max(pair[1].delay_ns),
            is_half_duplex: pair[0].half_duplex + pair[1].half_duplex > 0,
        });
        joined.collect()
    }
}

/// The wire of a line, away from the first host or back.
fn wire(line: usize, is_back: bool, lines: &[Line]) -> usize {
    2 * line + usize::from(is_back && !lines[line].is_half_duplex)
}

/// The card towards the first host has the first place.
fn card_to_next(number: usize) -> usize {
    usize::from(number > 0)
}

/// Runs a plan.
///
/// # Errors
/// Why the hosts cannot run it; see [`PathPlan::check`].
pub fn simulate_path(plan: &PathPlan) -> Result<SimPathFigures, PlanError> {
    plan.check()?;
    let mut world = world(plan)?;
    world.run_until(plan.warmup_ns);
    let counting = world.begin_counting();
    let mut marks = vec![(plan.warmup_ns, tcp::marks(&world, plan))];
    let slices = plan.slices.max(1);
    for number in 1..=u64::from(slices) {
        let part_ns = u128::from(plan.duration_ns) * u128::from(number) / u128::from(slices);
        // Not beyond the duration.
        let end_ns = plan.warmup_ns.saturating_add(part_ns as u64);
        world.run_until(end_ns);
        marks.push((end_ns, tcp::marks(&world, plan)));
    }
    Ok(figures(&world, plan, &counting, &marks))
}

fn world(plan: &PathPlan) -> Result<World, PlanError> {
    let lines = Line::all(&plan.stops);
    let both_ways = |line: &Line| [Wire::new(line.bits_per_second); 2];
    let flows = plan.flows();
    let shared = Shared {
        wires: lines.iter().flat_map(both_ways).collect(),
        flows: flows.iter().map(|flow| FlowTally::new(flow.from)).collect(),
        losses: vec![Default::default(); plan.stops.len()],
        ..Shared::default()
    };
    // The clocks of hosts have no common start.
    let mut chance = Chance::new(plan.seed);
    let mut machines = Vec::new();
    for (number, stop) in plan.stops.iter().enumerate() {
        let discipline = &plan.polled(number).discipline;
        let host = stop.applied();
        let (tasks, ends) = plan.programs(number);
        machines.push(discipline.method.machine(Setup {
            number,
            attachments: attachments(number, &lines),
            flows: local_flows(plan, number, &lines)?,
            tasks,
            ends,
            tick_phase_ns: chance.below(NS_PER_SECOND / host.cpu.hz),
            host,
        })?);
    }
    Ok(World::new(machines, peers(plan.stops.len()), shared))
}

fn attachments(number: usize, lines: &[Line]) -> Vec<Attachment> {
    let attachment = |line: usize, is_back| Attachment {
        wire: wire(line, is_back, lines),
        delay_ns: lines[line].delay_ns,
        far: None,
    };
    let back = number.checked_sub(1).map(|line| attachment(line, true));
    let forth = (number < lines.len()).then(|| attachment(number, false));
    back.into_iter().chain(forth).collect()
}

fn peers(stops: usize) -> Vec<Vec<Option<Port>>> {
    let of = |number: usize| {
        let back = number
            .checked_sub(1)
            .map(|peer| Some((peer, card_to_next(peer))));
        let forth = (number + 1 < stops).then_some(Some((number + 1, 0)));
        back.into_iter().chain(forth).collect()
    };
    (0..stops).map(of).collect()
}

/// Every flow, with the card that leads to its end from one machine, or that it comes in by.
fn local_flows(plan: &PathPlan, number: usize, lines: &[Line]) -> Result<Vec<Flow>, PlanError> {
    let shapes = plan::shapes(&plan.workload, lines[0].mtu_bytes)?;
    let flow = |(index, flow): (usize, &FlowPlan)| Flow {
        // There are few flows, and at most 16 hosts.
        number: index as u8,
        to: flow.to as u8,
        program: 0,
        card: if flow.to > number {
            card_to_next(number)
        } else {
            0
        },
        ip: plan.workload.ip,
        payload_bytes: flow.payload_bytes,
        shapes: shapes.clone(),
        counts: Counts::FromCall,
    };
    Ok(plan.flows().iter().enumerate().map(flow).collect())
}

fn figures(
    world: &World,
    plan: &PathPlan,
    counting: &Counting,
    marks: &[(u64, Vec<tcp::Mark>)],
) -> SimPathFigures {
    let seconds = plan.duration_ns as f64 / 1e9;
    let hosts = world.machines.iter().zip(&counting.starts);
    SimPathFigures {
        ledger: SimPathLedger {
            in_flight_at_start: counting.in_flight,
            offered: world.shared.offered(),
            delivered: world.shared.delivered(),
            losses: losses(&world.shared),
            in_flight_at_end: world.in_flight(),
        },
        flows: flow_figures(world, plan, seconds),
        hosts: hosts
            .map(|(machine, start)| machine.host_figures(start))
            .collect(),
        lines: line_figures(world, plan, seconds),
        connections: tcp::figures(plan, marks),
    }
}

fn losses(shared: &Shared) -> Vec<SimPathLoss> {
    let mut all = Vec::new();
    for (host, losses) in shared.losses.iter().enumerate() {
        for place in SimPlace::ALL {
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

fn flow_figures(world: &World, plan: &PathPlan, seconds: f64) -> Vec<SimFlow> {
    let flows = plan.flows();
    let tallies = world.shared.flows.iter().zip(&flows);
    let figures = tallies.map(|(tally, flow)| {
        let payload_bytes = flow.payload_bytes;
        let bits = 8.0 * f64::from(payload_bytes);
        let sent_pps = (tally.offered - tally.send_errors.min(tally.offered)) as f64 / seconds;
        let delivered_pps = tally.delivered as f64 / seconds;
        let (sent_bits, delivered_bits) = if plan.iperf_tcp().is_some() {
            let rate = |bytes: u64| 8.0 * bytes as f64 / seconds;
            (rate(tally.sent_bytes), rate(tally.arrived_bytes))
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
    });
    figures.collect()
}

fn line_figures(world: &World, plan: &PathPlan, seconds: f64) -> Vec<SimLine> {
    if !plan.stops[0].host.joint().has_line {
        return Vec::new();
    }
    let lines = Line::all(&plan.stops);
    let figures = lines.iter().enumerate().map(|(number, line)| {
        let at = world.machines[number].tally().cards[card_to_next(number)];
        let wire = &world.shared.wires[wire(number, false, &lines)];
        SimLine {
            bits_per_second: line.bits_per_second,
            is_half_duplex: line.is_half_duplex,
            forth_ratio: wire.share(at.transmitted_bytes, seconds),
            back_ratio: wire.share(at.received_bytes, seconds),
        }
    });
    figures.collect()
}
