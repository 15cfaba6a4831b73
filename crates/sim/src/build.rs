//! Making the world of a plan: hosts in a row, or one with ideal hosts at the far end of its lines.

use crate::chance::Chance;
use crate::clients::Clients;
use crate::connections;
use crate::line::Wire;
use crate::machine::{Attachment, Counts, End, FarEnd, Flow, Pacer, Setup, Task};
use crate::packet::FAR;
use crate::plan::{self, Line, Plan, PlanError, Stop};
use crate::queue::Queue;
use crate::shared::Shared;
use crate::tally::FlowTally;
use crate::workload::Pattern;
use crate::world::{Port, World};

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
pub(crate) fn world(plan: &Plan) -> Result<World, PlanError> {
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
    let mut machines = Vec::new();
    for (number, stop) in plan.stops.iter().enumerate() {
        let host = stop.applied();
        let (tasks, ends) = programs(plan, number);
        let setup = Setup {
            number,
            attachments: attachments(plan, number, &lines)?,
            flows: local_flows(plan, number, &lines, &flows)?,
            tasks,
            ends,
            // The clocks of several hosts have no common start.
            tick_phase_ns: match plan.stops.len() {
                1 => 0,
                _ => chance.below(NS_PER_SECOND / host.cpu.hz),
            },
            host,
        };
        machines.push(served_by(plan, number).discipline.method.machine(setup)?);
    }
    Ok(World::new(machines, peers(plan), shared))
}

/// The stop whose discipline serves the cards of a machine: its own, or that of the other end when the sender
/// polls.
fn served_by(plan: &Plan, number: usize) -> &Stop {
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

fn attachments(plan: &Plan, number: usize, lines: &[Line]) -> Result<Vec<Attachment>, PlanError> {
    if plan.is_alone() {
        return far_ends(plan, lines);
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

/// The lines of a host alone, each with its ideal hosts.
fn far_ends(plan: &Plan, lines: &[Line]) -> Result<Vec<Attachment>, PlanError> {
    let host = plan.stops[0].applied();
    let shapes = plan::shapes(&plan.workload, host.link.mtu_bytes)?;
    let frames = plan::trace_frames(&plan.workload, host.link.mtu_bytes)?;
    let line_bytes = shapes.iter().map(|shape| shape.line_bytes).sum();
    let frame_ns = Wire::new(host.link.bits_per_second).frame_ns(line_bytes);
    let attachment = |(number, line): (usize, &Line)| Attachment {
        wire: line.wire(number, false),
        delay_ns: line.delay_ns,
        far: Some(FarEnd {
            // There are eight links at most.
            clients: Clients::new(plan, number as u8, frame_ns, line.delay_ns),
            flow: number,
            frames: frames.clone(),
            wire: line.wire(number, true),
            queue: Queue::new(host.link.queue_packets),
        }),
    };
    Ok(lines.iter().enumerate().map(attachment).collect())
}

fn peers(plan: &Plan) -> Vec<Vec<Option<Port>>> {
    let stops = plan.stops.len();
    if plan.is_alone() {
        return vec![vec![None; usize::from(plan.workload.links)]];
    }
    let of = |number: usize| {
        let back = number
            .checked_sub(1)
            .map(|peer| Some((peer, card_to_next(peer))));
        let forth = (number + 1 < stops).then_some(Some((number + 1, 0)));
        back.into_iter().chain(forth).collect()
    };
    (0..stops).map(of).collect()
}

/// Every flow of the world, in its order.
pub(crate) fn flows(plan: &Plan) -> Vec<FlowPlan> {
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
fn flows_to_far_ends(plan: &Plan) -> Vec<FlowPlan> {
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
    plan: &Plan,
    number: usize,
    lines: &[Line],
    flows: &[FlowPlan],
) -> Result<Vec<Flow>, PlanError> {
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
    };
    Ok(flows.iter().enumerate().map(flow).collect())
}

/// The programs of a machine, and its ends of TCP connections.
fn programs(plan: &Plan, number: usize) -> (Vec<Task>, Vec<End>) {
    match plan.iperf_tcp() {
        Some(options) => connections::programs(plan, number, options),
        None => (tasks(plan, number), Vec::new()),
    }
}

/// The programs of a machine that send and read datagrams.
fn tasks(plan: &Plan, number: usize) -> Vec<Task> {
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
