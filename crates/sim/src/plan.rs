//! What a run follows from.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use nicpoll_core::{Errno, Knob, Poller};
use nicpoll_model::line::{DatagramFrame, Line as LineRate, LineError, Packet};
use nicpoll_model::sim::{SimPlan, SimStop};
use thiserror::Error;

use crate::discipline::ReceiveDiscipline;
use crate::host::HostModel;
use crate::packet::Shape;
use crate::workload::{IperfTcp, Pattern, TrafficModel};

/// A path has so many hosts at most.
const STOPS_MAX: usize = 16;

/// A host on the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathHost {
    /// Its numbers.
    pub host: HostModel,
    /// How it learns of packets.
    pub discipline: ReceiveDiscipline,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simulation {
    /// The hosts in the order of the path, 1 to 16: the first sends, the last receives, those between forward. A line
    /// joins each to the next: it has the lower speed and the longer delay of the two hosts' `link`, and is half
    /// duplex if one of them is. One alone has lines to ideal hosts.
    pub stops: Vec<PathHost>,
    /// What is sent.
    pub workload: TrafficModel,
    /// Virtual time that is counted, above 0.
    pub duration_ns: u64,
    /// Virtual time before it that is not.
    pub warmup_ns: u64,
    /// What all chance follows from.
    pub seed: u64,
    /// Parts of the counted time that have figures of their own, of a host alone and of TCP connections; 0 for none.
    pub slices: u32,
}

/// Why a plan cannot be run on a host.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SimulationError {
    /// The line cannot carry such packets.
    #[error("{0}")]
    Line(#[from] LineError),
    /// A trace is replayed a frame a packet.
    #[error(
        "the trace has a payload of {payload_bytes} bytes, which is fragmented at an MTU of {mtu_bytes}, and \
         fragments of a trace are not simulated; raise link.mtu_bytes of the host, or cut the trace"
    )]
    TraceFragments {
        /// The trace's largest.
        payload_bytes: u32,
        /// The line's.
        mtu_bytes: u64,
    },
    /// The socket could never take a packet.
    #[error(
        "socket.buffer_bytes = {buffer_bytes} does not hold one packet, which takes {packet_bytes} \
         bytes; give a larger buffer or a smaller payload"
    )]
    Buffer {
        /// The buffer.
        buffer_bytes: u64,
        /// Payload with what the packet takes beside it.
        packet_bytes: u64,
    },
    /// A workload from outside has a rate.
    #[error("the workload has no rate; give one, such as {0}:rate=100k")]
    NoRate(&'static str),
    /// Another simulated host is needed.
    #[error("{0} goes from one simulated host to another; name the other with --peer")]
    NoPeer(&'static str),
    /// The workload comes from a far end, and there is none.
    #[error(
        "{0} comes from an ideal far end, and a path has none; give netblast, iperf-udp, iperf-tcp or rr, \
         or leave out --peer"
    )]
    NoFarEnd(&'static str),
    /// Clients and links are those of a far end, and there is none.
    #[error(
        "clients and links are of ideal hosts at the far end, and a path has none; leave them out, or leave out \
         --peer"
    )]
    ClientsOnPath,
    /// Parts of the counted time are those of a host alone, or of TCP connections.
    #[error("with --peer only iperf-tcp has figures for each slice; leave --slices out")]
    SlicesOnPath,
    /// The lines differ in what they carry.
    #[error(
        "the lines of the path have MTUs of {first_bytes} and {other_bytes} bytes, and routers that cut packets \
         are not simulated; give both lines' hosts the same link.mtu_bytes"
    )]
    Mtus {
        /// Of the first line.
        first_bytes: u64,
        /// Of another.
        other_bytes: u64,
    },
    /// A path has ends.
    #[error("a path of {0} hosts; give 1 to {STOPS_MAX}")]
    Stops(usize),
    /// A veth pair has two ends.
    #[error(
        "a host file with veth.pair = 1 is one of two processors that a veth pair joins; name the other with \
         --peer, the same file as a rule, and nothing between them"
    )]
    VethAlone,
    /// The ends of a veth pair are polled as Linux does.
    #[error(
        "a veth pair has NAPI only; give napi or napi-timer as --discipline and --peer-discipline"
    )]
    VethDiscipline,
    /// TCP's constants are FreeBSD's.
    #[error("over a veth pair TCP is not simulated; give netblast, iperf-udp or rr")]
    VethTcp,
    /// Queues and programs are on processors.
    #[error(
        "card.queues = {queues} and application.cpu = {program} need as many processors, and cpu.cpus = {cpus}; raise \
         that, or lower them"
    )]
    Processors {
        /// Processors.
        cpus: u64,
        /// Queues of a card.
        queues: u64,
        /// The program's processor.
        program: u64,
    },
    /// What is simulated on one processor.
    #[error(
        "{0} is simulated on one processor and without GRO; give cpu.cpus = 1, card.queues = 1 and network.gro = 0, or \
         napi, napi-timer or busy-poll over a line"
    )]
    OneProcessor(String),
    /// Fragments of several datagrams would overtake each other.
    #[error(
        "datagrams of {payload_bytes} bytes go in fragments, which are simulated between hosts of one processor; give a \
         payload that fits into link.mtu_bytes, or cpu.cpus = 1"
    )]
    Fragments {
        /// Of a datagram.
        payload_bytes: u32,
    },
    /// Packets are not handed over to such programs.
    #[error(
        "over TCP, under busy-poll and for rr from a far end the program runs where its packets come in; leave \
         application.cpu out"
    )]
    ProgramElsewhere,
    /// Nothing would be counted.
    #[error("a run of no length counts nothing; give a duration above 0")]
    NoDuration,
    /// The program cannot send and poll for what it receives.
    #[error(
        "under busy-poll a program polls for what it receives, and this host's sends, or there is none; give \
         the host another discipline"
    )]
    BlastWhilePolling,
    /// Programs of TCP do not poll.
    #[error("under busy-poll TCP is not simulated; give another discipline, such as napi-timer")]
    TcpWhilePolling,
    /// The poller refuses a knob.
    #[error(
        "kern.polling.{name} = {value} is refused ({errno}): burst_max takes 10 to 20000, each_burst 1 \
         to burst_max, user_frac 0 to 99, reg_frac 1 to cpu.hz; knobs are written in the order given",
        name = knob.name()
    )]
    Knob {
        /// Which.
        knob: Knob,
        /// What was to be written.
        value: u32,
        /// The original's error.
        errno: Errno,
    },
}

impl PathHost {
    /// The host with the discipline's own numbers.
    pub(crate) fn applied(&self) -> HostModel {
        self.discipline.applied_to(&self.host)
    }
}

impl Simulation {
    /// The plan as reports show it.
    pub fn facts(&self) -> SimPlan {
        let stop = |stop: &PathHost| SimStop {
            host: stop.host.name.clone(),
            discipline: stop.discipline.to_string(),
        };
        SimPlan {
            hosts: self.stops.iter().map(stop).collect(),
            workload: self.workload.to_string(),
            seconds: self.duration_ns as f64 / 1e9,
            warmup_seconds: self.warmup_ns as f64 / 1e9,
            seed: self.seed,
        }
    }

    /// Looks whether the hosts, with their disciplines' own numbers, can run this.
    ///
    /// # Errors
    /// Why they cannot.
    pub fn check(&self) -> Result<(), SimulationError> {
        if !(1..=STOPS_MAX).contains(&self.stops.len()) {
            return Err(SimulationError::Stops(self.stops.len()));
        }
        self.check_processors()?;
        if self.is_alone() {
            self.check_alone()
        } else {
            self.check_path()
        }
    }

    /// Whether its one host has ideal hosts at the far end.
    pub(crate) fn is_alone(&self) -> bool {
        self.stops.len() == 1
    }

    /// iperf's options, if it sends over TCP.
    pub(crate) fn iperf_tcp(&self) -> Option<IperfTcp> {
        match self.workload.pattern {
            Pattern::IperfTcp(options) => Some(options),
            _ => None,
        }
    }

    /// Cards of a host.
    pub(crate) fn cards(&self, number: usize) -> u32 {
        if self.is_alone() {
            return u32::from(self.workload.links);
        }
        let is_end = number == 0 || number + 1 == self.stops.len();
        if is_end { 1 } else { 2 }
    }

    /// Whether queues and programs have processors, and the discipline knows of several.
    fn check_processors(&self) -> Result<(), SimulationError> {
        for stop in &self.stops {
            let host = stop.applied();
            let (cpus, queues, program) = (host.cpu.cpus, host.card.queues, host.application.cpu);
            if queues > cpus || program > cpus {
                return Err(SimulationError::Processors {
                    cpus,
                    queues,
                    program,
                });
            }
            let method = &stop.discipline.method;
            let knows_several = method.knows_several_processors() && host.joint().has_line;
            if !knows_several && (cpus > 1 || host.network.gro > 0) {
                let name = match host.joint().has_line {
                    true => stop.discipline.name(),
                    false => "a veth pair",
                };
                return Err(SimulationError::OneProcessor(String::from(name)));
            }
            let is_asked = self.is_alone() && self.workload.pattern == Pattern::RequestResponse;
            let stays = self.iperf_tcp().is_some() || method.is_program_polling() || is_asked;
            if program > 0 && cpus > 1 && stays {
                return Err(SimulationError::ProgramElsewhere);
            }
            let is_cut = shapes(&self.workload, host.link.mtu_bytes)?.len() > 1;
            if cpus > 1 && is_cut {
                return Err(SimulationError::Fragments {
                    payload_bytes: self.workload.payload_bytes,
                });
            }
        }
        Ok(())
    }

    fn check_alone(&self) -> Result<(), SimulationError> {
        let stop = &self.stops[0];
        let host = stop.applied();
        let largest = shapes(&self.workload, host.link.mtu_bytes)?;
        if let Pattern::Trace { .. } = self.workload.pattern
            && largest.len() > 1
        {
            return Err(SimulationError::TraceFragments {
                payload_bytes: self.workload.payload_bytes,
                mtu_bytes: host.link.mtu_bytes,
            });
        }
        check_buffer(&host, &self.workload)?;
        if host.joint().stops.is_some() {
            return Err(SimulationError::VethAlone);
        }
        if self.workload.pattern.needs_peer() {
            return Err(SimulationError::NoPeer(self.workload.name()));
        }
        let has_rate = self.workload.pattern.needs_far_end();
        if has_rate && self.workload.rate_pps.is_none() {
            return Err(SimulationError::NoRate(self.workload.name()));
        }
        if self.duration_ns == 0 {
            return Err(SimulationError::NoDuration);
        }
        let method = &stop.discipline.method;
        if method.is_program_polling() && self.workload.pattern == Pattern::Blast {
            return Err(SimulationError::BlastWhilePolling);
        }
        method.poller(&host, self.cards(0))?;
        Ok(())
    }

    fn check_path(&self) -> Result<(), SimulationError> {
        if self.workload.pattern.needs_far_end() {
            return Err(SimulationError::NoFarEnd(self.workload.name()));
        }
        if self.workload.clients > 1 {
            return Err(SimulationError::ClientsOnPath);
        }
        if self.slices > 0 && self.iperf_tcp().is_none() {
            return Err(SimulationError::SlicesOnPath);
        }
        // Each part has a length too.
        if self.duration_ns < u64::from(self.slices.max(1)) {
            return Err(SimulationError::NoDuration);
        }
        self.check_joints()?;
        let lines = Line::all(self);
        shapes(&self.workload, lines[0].mtu_bytes)?;
        if let Some(other) = lines
            .iter()
            .find(|line| line.mtu_bytes != lines[0].mtu_bytes)
        {
            return Err(SimulationError::Mtus {
                first_bytes: lines[0].mtu_bytes,
                other_bytes: other.mtu_bytes,
            });
        }
        for (number, stop) in self.stops.iter().enumerate() {
            let host = stop.applied();
            if self.iperf_tcp().is_none() {
                check_buffer(&host, &self.workload)?;
            }
            let method = &stop.discipline.method;
            method.poller(&host, self.cards(number))?;
            let is_busy = method.is_program_polling();
            if is_busy && self.iperf_tcp().is_some() {
                return Err(SimulationError::TcpWhilePolling);
            }
            let is_reader = number + 1 == self.stops.len()
                || (number == 0 && self.workload.pattern == Pattern::RequestResponse);
            if is_busy && !is_reader {
                return Err(SimulationError::BlastWhilePolling);
            }
        }
        Ok(())
    }

    fn check_joints(&self) -> Result<(), SimulationError> {
        let pairs = self.stops.iter().filter_map(|stop| stop.host.joint().stops);
        let (ends, size) = pairs.fold((0, 0), |(ends, _), size| (ends + 1, size));
        if ends == 0 {
            return Ok(());
        }
        if ends != size || self.stops.len() != size {
            return Err(SimulationError::VethAlone);
        }
        let is_served = |stop: &PathHost| stop.discipline.method.serves_without_interrupts();
        if !self.stops.iter().all(is_served) {
            return Err(SimulationError::VethDiscipline);
        }
        if self.iperf_tcp().is_some() {
            return Err(SimulationError::VethTcp);
        }
        Ok(())
    }
}

/// A line, as both its ends agree on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) bits_per_second: u64,
    pub(crate) mtu_bytes: u64,
    pub(crate) delay_ns: u64,
    pub(crate) is_half_duplex: bool,
}

impl Line {
    /// Each host's line to the next; those of a host alone to its far ends.
    pub(crate) fn all(plan: &Simulation) -> Vec<Line> {
        let links: Vec<_> = plan.stops.iter().map(|stop| stop.applied().link).collect();
        let joined = links.windows(2).map(|pair| Line {
            bits_per_second: pair[0].bits_per_second.min(pair[1].bits_per_second),
            mtu_bytes: pair[0].mtu_bytes.min(pair[1].mtu_bytes),
            delay_ns: pair[0].delay_ns.max(pair[1].delay_ns),
            is_half_duplex: pair[0].half_duplex + pair[1].half_duplex > 0,
        });
        if !plan.is_alone() {
            return joined.collect();
        }
        let own = Line {
            bits_per_second: links[0].bits_per_second,
            mtu_bytes: links[0].mtu_bytes,
            delay_ns: links[0].delay_ns,
            is_half_duplex: links[0].half_duplex > 0,
        };
        vec![own; usize::from(plan.workload.links)]
    }

    /// The wire of a line, of the world's, away from the first host or back.
    pub(crate) fn wire(self, number: usize, is_back: bool) -> usize {
        2 * number + usize::from(is_back && !self.is_half_duplex)
    }
}

/// What a variable under `kern.polling` holds before anything has polled; `None` for a name that is none.
pub fn initial_knob(name: &str) -> Option<u32> {
    // The knobs do not depend on the clock.
    let poller = Poller::new(1000).ok()?;
    Knob::from_name(name).map(|knob| poller.read(knob))
}

/// The frames that a datagram of a workload becomes on a line with this MTU.
pub(crate) fn shapes(
    workload: &TrafficModel,
    mtu_bytes: u64,
) -> Result<Vec<Shape>, SimulationError> {
    let mut line = LineRate::new(1).expect("a speed above 0");
    // Its range ends at 65,535.
    line.mtu_bytes = mtu_bytes as u32;
    if let Pattern::IperfTcp(_) = workload.pattern {
        // A byte fits if anything does. Each segment is as long as it is: see its packet.
        line.cost(Packet::Tcp {
            ip: workload.ip,
            payload_bytes: 1,
            has_timestamps: true,
        })?;
        return Ok(Vec::new());
    }
    let frames = line.datagram_frames(workload.ip, workload.payload_bytes)?;
    let shape = |frame: &DatagramFrame| Shape {
        line_bytes: frame.line_bytes,
        payload_bytes: frame.payload_bytes,
    };
    Ok(frames.iter().map(shape).collect())
}

/// The frame of each payload of a trace, which [`Simulation::check`] has seen to be one; empty for other workloads.
pub(crate) fn trace_frames(
    workload: &TrafficModel,
    mtu_bytes: u64,
) -> Result<BTreeMap<u32, Shape>, SimulationError> {
    let mut frames = BTreeMap::new();
    let Pattern::Trace { trace, .. } = &workload.pattern else {
        return Ok(frames);
    };
    for packet in trace.packets() {
        if let Entry::Vacant(entry) = frames.entry(packet.payload_bytes) {
            let payload_bytes = packet.payload_bytes;
            let one = TrafficModel {
                payload_bytes,
                ..workload.clone()
            };
            entry.insert(shapes(&one, mtu_bytes)?[0]);
        }
    }
    Ok(frames)
}

/// Refuses a workload whose datagrams a socket of the host could never take.
pub(crate) fn check_buffer(
    host: &HostModel,
    workload: &TrafficModel,
) -> Result<(), SimulationError> {
    let packet_bytes = packet_bytes(host, workload.payload_bytes);
    if packet_bytes > host.socket.buffer_bytes {
        return Err(SimulationError::Buffer {
            buffer_bytes: host.socket.buffer_bytes,
            packet_bytes,
        });
    }
    Ok(())
}

/// What a packet takes of the socket's buffer. An empty one takes a byte, so that the buffer ends.
pub(crate) fn packet_bytes(host: &HostModel, payload_bytes: u32) -> u64 {
    (u64::from(payload_bytes) + host.socket.packet_overhead_bytes).max(1)
}
