//! Makes the world of a plan: hosts in a row, or one with ideal hosts at the far end of its lines; their flows,
//! programs and TCP connections.
//!
//! A TCP connection has two flows, that of its data and that of the acknowledgements back, adjacent in the world's list.

use super::event_loop::World;
use super::processors::Processors;
use crate::account::{FlowTally, Shared};
use crate::link::{Counts, FAR, Flow, Queue, Wire};
use crate::machine::card::{Attachment, FarEnd, Port};
use crate::machine::programs::{End, Half, Pacer, Stream, Task};
use crate::machine::state::{Machine, Setup};
use crate::source::{Chance, Clients, LinkQueue};
use crate::spec::host::HostModel;
use crate::spec::options::SimError;
use crate::spec::simulation::{Line, Simulation, shapes, trace_frames};
use crate::spec::traffic::{IperfTcp, Pattern};
use crate::tcp::{Receiver, Sender, segment_bytes_max};

const NS_PER_SECOND: u64 = 1_000_000_000;

/// A flow of a plan.
#[derive(Clone, Copy, Debug)]
pub struct FlowPlan {
    /// What it carries.
    pub name: &'static str,
    /// The machine that sends; `None` for an ideal far end.
    pub from: Option<usize>,
    /// The machine that receives; `None` for an ideal far end.
    pub to: Option<usize>,
    /// Payload of a datagram, or of the longest segment.
    pub payload_bytes: u32,
    pub counts: Counts,
}

/// The world of a plan that was checked.
pub fn world(plan: &Simulation) -> Result<World, SimError> {
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
    let mut machines = Vec::new();
    for (number, stop) in plan.stops.iter().enumerate() {
        let host = stop.applied();
        // The clocks of several hosts have no common start; the processors of one have.
        let tick_phase_ns = match plan.stops.len() {
            1 => 0,
            _ => chance.below(NS_PER_SECOND / host.cpu.hz),
        };
        // The sender polls the other end of a veth pair.
        let served_by = match host.is_veth_end() {
            true => &plan.stops[1 - number],
            false => stop,
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
                discipline: served_by
                    .discipline
                    .method
                    .kernel(&host, plan.cards(number))?,
                host: host.clone(),
            };
            machines.push(Machine::new(setup));
        }
    }
    Ok(World::new(machines, processors, shared))
}

/// The card towards the first host has the first place.
pub fn card_to_next(number: usize) -> usize {
    usize::from(number > 0)
}

fn attachments(
    plan: &Simulation,
    number: usize,
    seat: (Processors, usize),
    lines: &[Line],
) -> Result<Vec<Attachment>, SimError> {
    if plan.is_alone() {
        return far_ends(plan, seat, lines);
    }
    let attachment = |line: usize, is_back, host, card| Attachment {
        wire: lines[line].wire(line, is_back),
        delay_ns: lines[line].delay_ns,
        far: None,
        peer: Some(Port { host, card }),
    };
    let back = number.checked_sub(1);
    let back = back.map(|host| attachment(host, true, host, card_to_next(host)));
    let forth = number < lines.len();
    let forth = forth.then(|| attachment(number, false, number + 1, 0));
    Ok(back.into_iter().chain(forth).collect())
}

/// The lines of a host alone, each with the ideal hosts whose packets a processor takes.
fn far_ends(
    plan: &Simulation,
    (processors, cpu): (Processors, usize),
    lines: &[Line],
) -> Result<Vec<Attachment>, SimError> {
    let host = plan.stops[0].applied();
    let shapes = shapes(&plan.workload, host.link.mtu_bytes)?;
    let frames = trace_frames(&plan.workload, host.link.mtu_bytes)?;
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
        peer: None,
    };
    Ok(lines.iter().enumerate().map(attachment).collect())
}

/// Every flow of the world, in its order.
pub fn flows(plan: &Simulation) -> Vec<FlowPlan> {
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
        Pattern::IperfTcp(options) => connection_flows(plan, options),
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
) -> Result<Vec<Flow>, SimError> {
    let shapes = shapes(&plan.workload, lines[0].mtu_bytes)?;
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
        Some(options) if cpu == 0 => connection_programs(plan, number, options),
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

impl Simulation {
    /// The machines that each connection goes from and to.
    pub(crate) fn connections(&self, options: IperfTcp) -> Vec<(usize, usize)> {
        let last = self.stops.len() - 1;
        let both = [(0, last), (last, 0)];
        both[..if options.is_dual { 2 } else { 1 }].to_vec()
    }

    pub(crate) fn segment_bytes(&self) -> u64 {
        // The lines of a path have the same MTU.
        let mtu_bytes = Line::all(self)[0].mtu_bytes;
        segment_bytes_max(mtu_bytes, self.workload.ip)
    }

    fn sender(&self, (from, to): (usize, usize), options: IperfTcp) -> Sender {
        Sender::new(
            self.segment_bytes(),
            options.send_buffer(&self.stops[from].applied()),
            options.receive_buffer(&self.stops[to].applied()),
            self.stops[from].applied().cpu.hz,
        )
    }

    fn receiver(&self, (_, to): (usize, usize), options: IperfTcp) -> Receiver {
        let host = self.stops[to].applied();
        let buffer_bytes = options.receive_buffer(&host);
        Receiver::new(self.segment_bytes(), buffer_bytes, host.cpu.hz)
    }
}

/// The two flows of each connection.
fn connection_flows(plan: &Simulation, options: IperfTcp) -> Vec<FlowPlan> {
    // No longer than a packet.
    let segment_bytes = plan.segment_bytes() as u32;
    let both = |(from, to)| {
        [
            FlowPlan {
                name: "segments",
                from: Some(from),
                to: Some(to),
                payload_bytes: segment_bytes,
                counts: Counts::FromCall,
            },
            FlowPlan {
                name: "acknowledgements",
                from: Some(to),
                to: Some(from),
                payload_bytes: 0,
                counts: Counts::FromCall,
            },
        ]
    };
    let connections = plan.connections(options);
    connections.into_iter().flat_map(both).collect()
}

/// The programs of a machine, each with its end of a connection.
fn connection_programs(
    plan: &Simulation,
    number: usize,
    options: IperfTcp,
) -> (Vec<Task>, Vec<End>) {
    let mut tasks = Vec::new();
    let mut ends = Vec::new();
    for (connection, ports) in plan.connections(options).into_iter().enumerate() {
        let (data, acks) = (2 * connection, 2 * connection + 1);
        let program = tasks.len();
        let stream = Stream {
            flow: data,
            end: ends.len(),
            call_bytes: options.write_bytes,
            ..Stream::default()
        };
        if number == ports.0 {
            tasks.push(Task::Write(stream));
            ends.push(End {
                flow: data,
                from: acks,
                program,
                half: Half::Sender(plan.sender(ports, options)),
            });
        } else if number == ports.1 {
            tasks.push(Task::Take(stream));
            ends.push(End {
                flow: acks,
                from: data,
                program,
                half: Half::Receiver(plan.receiver(ports, options)),
            });
        }
    }
    (tasks, ends)
}

impl IperfTcp {
    pub(crate) fn send_buffer(&self, host: &HostModel) -> u64 {
        self.window_bytes.unwrap_or(host.tcp.send_buffer_bytes)
    }

    pub(crate) fn receive_buffer(&self, host: &HostModel) -> u64 {
        self.window_bytes.unwrap_or(host.tcp.receive_buffer_bytes)
    }
}
