//! Making the world of a plan: hosts in a row, or one with ideal hosts at the far end of its lines.

use crate::chance::Chance;
use crate::clients::{Clients, LinkQueue};
use crate::connections;
use crate::line::Wire;
use crate::machine::{Attachment, Counts, End, FarEnd, Flow, Pacer, Setup, Task};
use crate::packet::FAR;
use crate::plan::{self, Line, PathHost, Simulation, SimulationError};
use crate::processors::Processors;
use crate::queue::Queue;
use crate::shared::Shared;
use crate::tally::FlowTally;
use crate::workload::Pattern;
use crate::world::{Port, Seat, World};

const NS_PER_SECOND: u64 = 1_000_000_000;

/// A flow of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowPlan {
    /// What it carries.
    pub(crate) name: &'static str,
    /// The machine that sends; `None` for an ideal far end.
    pub(crate) from: Option<usize>,
    /// The machine that receives; `None` for an ideal far end.
    pub(crate) to: Option<usize>,
    /// Payload of a datagram, or of the longest segment.
    pub(crate) payload_bytes: u32,
    pub(crate) counts: Counts,
}

/// The world of a plan that was checked.
pub(crate) fn world(plan: &Simulation) -> Result<World, SimulationError> {
    let lines = Line::all(plan);
    let both_ways = |line: &Line| [Wire::new(line.bits_per_second); 2];
    let flows = flows(plan);
    let clients = if plan.is_alone() {
        plan.workload.clients
    } else {
        0
    };
    let tally = |flow: &FlowPlan| FlowTally::new(flow.from.unwrap_or(0));
    let shared = Shared {
        wires: lines.iter().flat_map(both_ways).collect(),
        flows: flows.iter().map(tally).collect(),
        served: vec![0; usize::from(clients)],
        losses: vec![Default::default(); plan.stops.len()],
        ..Shared::default()
    };
    let mut chance = Chance::new(plan.seed);
    let processors = Processors::all(plan);
    let (mut machines, mut seats) = (Vec::new(), Vec::new());
    for (number, stop) in plan.stops.iter().enumerate() {
        let host = stop.applied();
        // The clocks of several hosts have no common start; the processors of one have.
        let tick_phase_ns = match plan.stops.len() {
            1 => 0,
            _ => chance.below(NS_PER_SECOND / host.cpu.hz),
        };
        for cpu in 0..processors[number].count {
            let seat = (processors[number], cpu);
            let (tasks, ends) = programs(plan, number, seat);
            let setup = Setup {
                number,
                attachments: attachments(plan, number, seat, &lines)?,
                flows: local_flows(plan, number, &lines, &flows)?,
                tasks,
                ends,
                tick_phase_ns,
                host: host.clone(),
            };
            machines.push(served_by(plan, number).discipline.method.machine(setup)?);
            seats.push(Seat {
                host: number,
                peers: peers(plan, number),
            });
        }
    }
    Ok(World::new(machines, seats, processors, shared))
}

/// The stop whose discipline serves the cards of a machine: its own, or that of the other end when the sender
/// polls.
fn served_by(plan: &Simulation, number: usize) -> &PathHost {
    if plan.stops[number].host.joint().is_polled_by_sender {
        &plan.stops[1 - number]
    } else {
        &plan.stops[number]
    }
}

/// The card towards the first host has the first place.
pub(crate) fn card_to_next(number: usize) -> usize {
    usize::from(number > 0)
}

fn attachments(
    plan: &Simulation,
    number: usize,
    seat: (Processors, usize),
    lines: &[Line],
) -> Result<Vec<Attachment>, SimulationError> {
    if plan.is_alone() {
        return far_ends(plan, seat, lines);
    }
    let attachment = |line: usize, is_back| Attachment {
        wire: lines[line].wire(line, is_back),
        delay_ns: lines[line].delay_ns,
        far: None,
    };
    let back = number.checked_sub(1).map(|line| attachment(line, true));
    let forth = (number < lines.len()).then(|| attachment(number, false));
    Ok(back.into_iter().chain(forth).collect())
}

/// The lines of a host alone, each with the ideal hosts whose packets a processor takes.
fn far_ends(
    plan: &Simulation,
    (processors, cpu): (Processors, usize),
    lines: &[Line],
) -> Result<Vec<Attachment>, SimulationError> {
    let host = plan.stops[0].applied();
    let shapes = plan::shapes(&plan.workload, host.link.mtu_bytes)?;
    let frames = plan::trace_frames(&plan.workload, host.link.mtu_bytes)?;
    let line_bytes = shapes.iter().map(|shape| shape.line_bytes).sum();
    let frame_ns = Wire::new(host.link.bits_per_second).frame_ns(line_bytes);
    let clients_of = |number: usize, frame_ns, delay_ns| {
        // There are eight links and 16 processors at most.
        let queue = LinkQueue {
            link: number as u8,
            queue: cpu as u16,
            queues: processors.queues as u16,
        };
        let has_queue = cpu < processors.queues;
        has_queue.then(|| Clients::new(plan, queue, frame_ns, delay_ns))?
    };
    let attachment = |(number, line): (usize, &Line)| Attachment {
        wire: line.wire(number, false),
        delay_ns: line.delay_ns,
        far: Some(FarEnd {
            clients: clients_of(number, frame_ns, line.delay_ns),
            flow: number,
            frames: frames.clone(),
            wire: line.wire(number, true),
            queue: Queue::new(host.link.queue_packets),
        }),
    };
    Ok(lines.iter().enumerate().map(attachment).collect())
}

/// The other end of each of a host's lines.
fn peers(plan: &Simulation, number: usize) -> Vec<Option<Port>> {
    if plan.is_alone() {
        return vec![None; usize::from(plan.workload.links)];
    }
    let back = number.checked_sub(1).map(|host| Port {
        host,
        card: card_to_next(host),
    });
    let forth = (number + 1 < plan.stops.len()).then_some(Port {
        host: number + 1,
        card: 0,
    });
    back.into_iter().chain(forth).map(Some).collect()
}

/// Every flow of the world, in its order.
pub(crate) fn flows(plan: &Simulation) -> Vec<FlowPlan> {
    if plan.is_alone() {
        return flows_to_far_ends(plan);
    }
    let last = plan.stops.len() - 1;
    let flow = |name, from, to| FlowPlan {
        name,
        from: Some(from),
        to: Some(to),
        payload_bytes: plan.workload.payload_bytes,
        counts: Counts::FromCall,
    };
    match plan.workload.pattern {
        Pattern::IperfTcp(options) => connections::flows(plan, options),
        Pattern::RequestResponse => vec![flow("requests", 0, last), flow("replies", last, 0)],
        _ => vec![flow("datagrams", 0, last)],
    }
}

/// The flow of each line, then that of each line's replies.
fn flows_to_far_ends(plan: &Simulation) -> Vec<FlowPlan> {
    let (name, from, to, counts) = match plan.workload.pattern {
        Pattern::Blast => ("datagrams", Some(0), None, Counts::FromCall),
        Pattern::RequestResponse => ("requests", None, Some(0), Counts::Exchange),
        _ => ("datagrams", None, Some(0), Counts::FromCard),
    };
    let flow = FlowPlan {
        name,
        from,
        to,
        payload_bytes: plan.workload.payload_bytes,
        counts,
    };
    let reply = FlowPlan {
        name: "replies",
        from: Some(0),
        to: None,
        ..flow
    };
    let links = usize::from(plan.workload.links);
    let replies = if counts == Counts::Exchange { links } else { 0 };
    [vec![flow; links], vec![reply; replies]].concat()
}

/// Every flow, with the card that leads to its end from one machine, or that it comes in by.
fn local_flows(
    plan: &Simulation,
    number: usize,
    lines: &[Line],
    flows: &[FlowPlan],
) -> Result<Vec<Flow>, SimulationError> {
    let shapes = plan::shapes(&plan.workload, lines[0].mtu_bytes)?;
    let card = |index: usize, flow: &FlowPlan| {
        if plan.is_alone() {
            index % lines.len()
        } else if flow.to > Some(number) {
            card_to_next(number)
        } else {
            0
        }
    };
    let flow = |(index, flow): (usize, &FlowPlan)| Flow {
        // There are few flows, and at most 16 hosts.
        number: index as u8,
        to: flow.to.map_or(FAR, |to| to as u8),
        program: 0,
        card: card(index, flow),
        ip: plan.workload.ip,
        payload_bytes: flow.payload_bytes,
        shapes: shapes.clone(),
        counts: flow.counts,
        senders: plan.workload.flows,
    };
    Ok(flows.iter().enumerate().map(flow).collect())
}

/// The programs of a processor, and its ends of TCP connections.
fn programs(
    plan: &Simulation,
    number: usize,
    (processors, cpu): (Processors, usize),
) -> (Vec<Task>, Vec<End>) {
    match plan.iperf_tcp() {
        // Connections come in by the first queue.
        Some(options) if cpu == 0 => connections::programs(plan, number, options),
        Some(_) => (Vec::new(), Vec::new()),
        None => {
            let mut tasks = tasks(plan, number);
            tasks.retain(|task| {
                if task.is_for_one_processor() {
                    processors.has_single(cpu)
                } else {
                    processors.has_worker(cpu)
                }
            });
            (tasks, Vec::new())
        }
    }
}

/// The programs of a host that send and read datagrams.
fn tasks(plan: &Simulation, number: usize) -> Vec<Task> {
    let is_first = number == 0;
    let is_last = number + 1 == plan.stops.len();
    let pattern = &plan.workload.pattern;
    let reads = |reads_clock| Task::Read {
        flow: 0,
        reads_clock,
    };
    let task = match *pattern {
        // Its replies stand behind the requests of all lines.
        Pattern::RequestResponse if is_last => Task::Respond {
            to_replies: usize::from(plan.workload.links),
            owes: None,
        },
        Pattern::RequestResponse if is_first => Task::Request {
            flow: 0,
            waits_for: None,
            sent_ns: 0,
        },
        Pattern::IperfUdp { bits_per_second } if is_first => {
            Task::Pace(Pacer::new(0, plan.workload.payload_bytes, bits_per_second))
        }
        Pattern::Blast if is_first => Task::Blast { flow: 0 },
        _ if is_last => reads(matches!(pattern, Pattern::IperfUdp { .. })),
        _ => return Vec::new(),
    };
    vec![task]
}
