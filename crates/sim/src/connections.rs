//! TCP connections along a path: how they are set up, and what came out of them.
//!
//! A connection has two flows, its data's and that of the acknowledgements back, one after the other in the
//! world's list.

use nicpoll_model::sim::{SimTcp, SimTcpBytes, SimTcpHeld, SimTcpSlice};

use crate::build::FlowPlan;
use crate::host::HostModel;
use crate::machine::{Counts, End, Half, Stream, Task};
use crate::plan::{Line, Simulation};
use crate::tcp::{Held, Receiver, Sender, SenderCounts, segment_bytes_max};
use crate::workload::IperfTcp;
use crate::world::World;

impl Simulation {
    /// The machines that each connection goes from and to.
    fn connections(&self, options: IperfTcp) -> Vec<(usize, usize)> {
        let last = self.stops.len() - 1;
        let both = [(0, last), (last, 0)];
        both[..if options.is_dual { 2 } else { 1 }].to_vec()
    }

    fn segment_bytes(&self) -> u64 {
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
pub(crate) fn flows(plan: &Simulation, options: IperfTcp) -> Vec<FlowPlan> {
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
pub(crate) fn programs(
    plan: &Simulation,
    number: usize,
    options: IperfTcp,
) -> (Vec<Task>, Vec<End>) {
    let mut tasks = Vec::new();
    let mut ends = Vec::new();
    for (connection, ports) in plan.connections(options).into_iter().enumerate() {
        let (data, acks) = (2 * connection, 2 * connection + 1);
        let program = tasks.len();
        let stream = Stream::new(data, ends.len(), options.write_bytes);
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
    fn send_buffer(&self, host: &HostModel) -> u64 {
        self.window_bytes.unwrap_or(host.tcp.send_buffer_bytes)
    }

    fn receive_buffer(&self, host: &HostModel) -> u64 {
        self.window_bytes.unwrap_or(host.tcp.receive_buffer_bytes)
    }
}

/// What the two ends of a connection have counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    sender: SenderCounts,
    written: u64,
    received: u64,
    read: u64,
    acknowledgements: u64,
}

/// The counts of every connection by now, in their order.
pub(crate) fn marks(world: &World, plan: &Simulation) -> Vec<Mark> {
    let Some(options) = plan.iperf_tcp() else {
        return Vec::new();
    };
    let now_ns = world.machines[0].now_ns();
    let connections = plan.connections(options);
    let each = connections
        .iter()
        .enumerate()
        .filter_map(|(number, ports)| {
            let half = |machine: usize, flow: usize| {
                // Both ends are on the first processors of their hosts.
                let mut ends = world.of_host(machine)[0].ends().iter();
                ends.find(|end| end.flow == flow).map(|end| &end.half)
            };
            match (half(ports.0, 2 * number), half(ports.1, 2 * number + 1)) {
                (Some(Half::Sender(sender)), Some(Half::Receiver(receiver))) => Some(Mark {
                    sender: sender.counts(now_ns),
                    written: sender.written(),
                    received: receiver.received(),
                    read: receiver.received() - receiver.readable(),
                    acknowledgements: receiver.acknowledgements(),
                }),
                _ => None,
            }
        });
    each.collect()
}

/// What came out of each connection between the first mark and the last; those between end slices.
pub(crate) fn figures(plan: &Simulation, marks: &[(u64, Vec<Mark>)]) -> Vec<SimTcp> {
    let Some(options) = plan.iperf_tcp() else {
        return Vec::new();
    };
    let connections = plan.connections(options);
    let figures = connections.iter().enumerate().map(|(number, ports)| {
        let (from, to) = (&plan.stops[ports.0], &plan.stops[ports.1]);
        let of = |(at_ns, all): &(u64, Vec<Mark>)| (*at_ns, all[number]);
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
            retransmits: sender.retransmits,
            fast_retransmits: sender.fast_retransmits,
            timeouts: sender.timeouts,
            probes: sender.probes,
            acknowledgements: after.acknowledgements - before.acknowledgements,
            round_trip_mean_ns: (sender.round_trips > 0).then(|| mean_ns(sender.round_trip_ns)),
            held: held(&sender, end.0 - start.0),
            slices: if plan.slices == 0 {
                Vec::new()
            } else {
                marks.windows(2).map(|pair| slice(pair, start.0)).collect()
            },
        }
    });
    figures.collect()
}

fn bytes(before: &Mark, after: &Mark) -> SimTcpBytes {
    SimTcpBytes {
        buffered_at_start: before.written - before.read,
        written: after.written - before.written,
        read: after.read - before.read,
        unsent_or_in_flight_at_end: after.written - after.received,
        unread_at_end: after.received - after.read,
    }
}

fn held(sender: &SenderCounts, whole_ns: u64) -> SimTcpHeld {
    let share = |held: Held| sender.held_ns[held as usize] as f64 / whole_ns as f64;
    SimTcpHeld {
        program: share(Held::Program),
        send_buffer: share(Held::Buffer),
        window: share(Held::Window),
        congestion: share(Held::Congestion),
    }
}

fn slice(pair: &[(u64, Mark)], start_ns: u64) -> SimTcpSlice {
    let (before, after) = (&pair[0], &pair[1]);
    let read_bytes = after.1.read - before.1.read;
    let seconds = (after.0 - before.0) as f64 / 1e9;
    SimTcpSlice {
        end_seconds: (after.0 - start_ns) as f64 / 1e9,
        read_bytes,
        goodput_bits_per_second: 8.0 * read_bytes as f64 / seconds,
        retransmits: after.1.sender.retransmits - before.1.sender.retransmits,
    }
}
