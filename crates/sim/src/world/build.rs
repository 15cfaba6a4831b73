//! Makes the world of a plan: hosts in a row, or one with ideal hosts at the far end of its lines; their flows,
//! programs and TCP connections.
//!
//! A TCP connection has two flows, its data and then the acknowledgements, adjacent in the world's list.

use nicpoll_core::NS_PER_SECOND;

use super::event_loop::World;
use super::processors::Processors;
use crate::account::{FlowTally, Shared};
use crate::link::{BoundedQueue, DeliveryCount, FAR, Flow, Wire};
use crate::machine::card::{Attachment, FarEnd, LinePort};
use crate::machine::programs::{Half, Pacer, StreamCalls, Task, TcpEnd};
use crate::machine::state::{Setup, SimMachine};
use crate::source::{Chance, Clients, LinkQueue};
use crate::spec::host::HostModel;
use crate::spec::options::SimError;
use crate::spec::simulation::{PathLine, Simulation, shapes, trace_frames};
use crate::spec::traffic::{IperfTcp, Pattern};
use crate::tcp::{TcpReceiver, TcpSender, segment_bytes_max};

/// Builds the world of a checked plan.
pub fn world(plan: &Simulation) -> Result<World, SimError> {
    let lines = PathLine::all(plan);
    let both_ways = |line: &PathLine| [Wire::new(line.bits_per_second); 2];
    let flows = flows(plan, &lines)?;
    let clients = if plan.is_alone() {
        plan.workload.clients
    } else {
        0
    };
    let tally = |flow: &Flow| FlowTally::new(flow.sender().unwrap_or(0));
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
        // Clocks of several hosts start at random phases; those of one host's processors start together.
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
            let (mut tasks, ends) = programs(plan, number, seat);
            if !tasks.is_empty() {
                let computing = host.application.computing as usize;
                tasks.resize(tasks.len() + computing, Task::Compute);
            }
            let flows = flows.iter().map(|flow| local_flow(plan, number, flow));
            let setup = Setup {
                number,
                attachments: attachments(plan, number, seat, &lines)?,
                flows: flows.collect(),
                tasks,
                ends,
                tick_phase_ns,
                discipline: served_by
                    .discipline
                    .method
                    .kernel(&host, plan.cards(number))?,
                host: host.clone(),
            };
            machines.push(SimMachine::new(setup));
        }
    }
    Ok(World::new(machines, processors, shared))
}

/// Returns the index of the card to the next host; the card towards the first host comes before it.
pub fn card_to_next(number: usize) -> usize {
    usize::from(number > 0)
}

fn attachments(
    plan: &Simulation,
    number: usize,
    seat: (Processors, usize),
    lines: &[PathLine],
) -> Result<Vec<Attachment>, SimError> {
    if plan.is_alone() {
        return far_ends(plan, seat, lines);
    }
    let attachment = |line: usize, is_back, host, card| Attachment {
        wire: lines[line].wire(line, is_back),
        delay_ns: lines[line].delay_ns,
        far: None,
        peer: Some(LinePort { host, card }),
    };
    let back = number.checked_sub(1);
    let back = back.map(|host| attachment(host, true, host, card_to_next(host)));
    let forth = number < lines.len();
    let forth = forth.then(|| attachment(number, false, number + 1, 0));
    Ok(back.into_iter().chain(forth).collect())
}

/// Returns a single host's lines, each with the ideal hosts whose packets go to processor `cpu`.
fn far_ends(
    plan: &Simulation,
    (processors, cpu): (Processors, usize),
    lines: &[PathLine],
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
    let attachment = |(number, line): (usize, &PathLine)| Attachment {
        wire: line.wire(number, false),
        delay_ns: line.delay_ns,
        far: Some(FarEnd {
            clients: clients_of(number, frame_ns, line.delay_ns),
            flow: number,
            frames: frames.clone(),
            wire: line.wire(number, true),
            queue: BoundedQueue::new(host.link.queue_packets),
        }),
        peer: None,
    };
    Ok(lines.iter().enumerate().map(attachment).collect())
}

/// Returns all flows of the world, in order.
fn flows(plan: &Simulation, lines: &[PathLine]) -> Result<Vec<Flow>, SimError> {
    let shapes = shapes(&plan.workload, lines[0].mtu_bytes)?;
    let flow = |name, from, to, counts| Flow {
        number: 0,
        name,
        from,
        to,
        card: 0,
        ip: plan.workload.ip,
        payload_bytes: plan.workload.payload_bytes,
        shapes: shapes.clone(),
        counts,
        senders: plan.workload.flows,
    };
    // There are at most 16 hosts.
    let last = (plan.stops.len() - 1) as u8;
    let links = usize::from(plan.workload.links);
    let is_alone = plan.is_alone();
    let mut flows = match plan.workload.pattern {
        Pattern::IperfTcp(options) => connection_flows(plan, options, flow),
        // Each line's requests, then each line's replies.
        Pattern::RequestResponse if is_alone => [
            vec![flow("requests", FAR, 0, DeliveryCount::Exchange); links],
            vec![flow("replies", 0, FAR, DeliveryCount::Exchange); links],
        ]
        .concat(),
        Pattern::RequestResponse => vec![
            flow("requests", 0, last, DeliveryCount::FromCall),
            flow("replies", last, 0, DeliveryCount::FromCall),
        ],
        Pattern::Blast if is_alone => {
            vec![flow("datagrams", 0, FAR, DeliveryCount::FromCall); links]
        }
        _ if is_alone => vec![flow("datagrams", FAR, 0, DeliveryCount::FromCard); links],
        _ => vec![flow("datagrams", 0, last, DeliveryCount::FromCall)],
    };
    for (number, flow) in flows.iter_mut().enumerate() {
        // There are few flows.
        flow.number = number as u8;
    }
    Ok(flows)
}

/// Returns the flow with the card by which it leaves or reaches a host.
fn local_flow(plan: &Simulation, number: usize, flow: &Flow) -> Flow {
    let card = if plan.is_alone() {
        usize::from(flow.number % plan.workload.links)
    } else if usize::from(flow.to) > number {
        card_to_next(number)
    } else {
        0
    };
    Flow {
        card,
        ..flow.clone()
    }
}

/// Returns the programs of a processor, and its ends of TCP connections.
fn programs(
    plan: &Simulation,
    number: usize,
    (processors, cpu): (Processors, usize),
) -> (Vec<Task>, Vec<TcpEnd>) {
    match plan.iperf_tcp() {
        // Connections arrive on the first queue.
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

/// Returns the programs of a host that send and read datagrams.
fn tasks(plan: &Simulation, number: usize) -> Vec<Task> {
    let is_first = number == 0;
    let is_last = number + 1 == plan.stops.len();
    let pattern = &plan.workload.pattern;
    let task = match *pattern {
        // Flows of replies follow those of all lines' requests.
        Pattern::RequestResponse if is_last => Task::Respond {
            to_replies: usize::from(plan.workload.links),
            owes: None,
        },
        Pattern::RequestResponse if is_first => Task::Request {
            waits_for: None,
            sent_ns: 0,
        },
        Pattern::IperfUdp {
            bits_per_second,
            sleeps,
        } if is_first => Task::Pace(Pacer::new(
            plan.workload.payload_bytes,
            bits_per_second,
            sleeps,
        )),
        Pattern::Blast if is_first => Task::Blast,
        _ if is_last => Task::Read {
            reads_clock: matches!(pattern, Pattern::IperfUdp { .. }),
        },
        _ => return Vec::new(),
    };
    vec![task]
}

impl Simulation {
    /// Returns the hosts that each connection goes from and to.
    pub(crate) fn connections(&self, options: IperfTcp) -> Vec<(usize, usize)> {
        let last = self.stops.len() - 1;
        let both = [(0, last), (last, 0)];
        both[..if options.is_dual { 2 } else { 1 }].to_vec()
    }

    pub(crate) fn segment_bytes(&self) -> u64 {
        // The lines of a path have the same MTU.
        let mtu_bytes = PathLine::all(self)[0].mtu_bytes;
        segment_bytes_max(mtu_bytes, self.workload.ip)
    }

    fn sender(&self, (from, to): (usize, usize), options: IperfTcp) -> TcpSender {
        TcpSender::new(
            self.segment_bytes(),
            options.send_buffer(&self.stops[from].applied()),
            options.receive_buffer(&self.stops[to].applied()),
            self.stops[from].applied().cpu.hz,
        )
    }

    fn receiver(&self, (_, to): (usize, usize), options: IperfTcp) -> TcpReceiver {
        let host = self.stops[to].applied();
        let buffer_bytes = options.receive_buffer(&host);
        TcpReceiver::new(self.segment_bytes(), buffer_bytes, host.cpu.hz)
    }
}

/// Returns the two flows of each connection.
fn connection_flows(
    plan: &Simulation,
    options: IperfTcp,
    flow: impl Fn(&'static str, u8, u8, DeliveryCount) -> Flow,
) -> Vec<Flow> {
    let both = |(from, to): (usize, usize)| {
        let (from, to) = (from as u8, to as u8);
        let segments = Flow {
            // A segment is no longer than a packet.
            payload_bytes: plan.segment_bytes() as u32,
            ..flow("segments", from, to, DeliveryCount::FromCall)
        };
        let acknowledgements = Flow {
            payload_bytes: 0,
            ..flow("acknowledgements", to, from, DeliveryCount::FromCall)
        };
        [segments, acknowledgements]
    };
    plan.connections(options)
        .into_iter()
        .flat_map(both)
        .collect()
}

/// Returns the programs of a host, each with its end of a connection.
fn connection_programs(
    plan: &Simulation,
    number: usize,
    options: IperfTcp,
) -> (Vec<Task>, Vec<TcpEnd>) {
    let mut tasks = Vec::new();
    let mut ends = Vec::new();
    for (connection, ports) in plan.connections(options).into_iter().enumerate() {
        let (data, acks) = (2 * connection, 2 * connection + 1);
        let stream = StreamCalls {
            flow: data,
            end: ends.len(),
            call_bytes: options.write_bytes,
            ..StreamCalls::default()
        };
        let (task, flow, from, half) = if number == ports.0 {
            let sender = Half::Sender(plan.sender(ports, options));
            (Task::Write(stream), data, acks, sender)
        } else if number == ports.1 {
            let receiver = Half::Receiver(plan.receiver(ports, options));
            (Task::Take(stream), acks, data, receiver)
        } else {
            continue;
        };
        ends.push(TcpEnd {
            flow,
            from,
            program: tasks.len(),
            half,
        });
        tasks.push(task);
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
