//! A simulation: hosts in a row, what is sent between them, for how long; and whether the hosts can run it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use nicpoll_model::line::{DatagramFrame, Line as LineRate, LinePacket};
use nicpoll_model::sim::{SimPlan, SimStop};

use super::discipline::ReceiveDiscipline;
use super::host::HostModel;
use super::options::{SimError, refuse};
use super::traffic::{IperfTcp, Pattern, TrafficModel};
use crate::link::Shape;

/// Most hosts on a path.
pub(crate) const STOPS_MAX: usize = 16;

/// A host on the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathHost {
    /// Its numbers.
    pub host: HostModel,
    /// How it learns of packets.
    pub discipline: ReceiveDiscipline,
}

impl PathHost {
    /// Returns the host with the discipline's overrides.
    pub(crate) fn applied(&self) -> HostModel {
        self.discipline.applied_to(&self.host)
    }
}

/// The plan of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simulation {
    /// The hosts in the order of the path, 1 to 16: the first sends, the last receives, those between forward. A line
    /// joins each to the next: it has the lower speed and the longer delay of the two hosts' `link`, and is half
    /// duplex if one of them is. A single host has lines to ideal hosts.
    pub stops: Vec<PathHost>,
    /// The traffic.
    pub workload: TrafficModel,
    /// Counted virtual time, above 0.
    pub duration_ns: u64,
    /// Virtual time before it, not counted.
    pub warmup_ns: u64,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Parts of the counted time with figures of their own, for a single host and for TCP connections; 0 for none.
    pub slices: u32,
}

impl Simulation {
    /// Returns the plan as reports show it.
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

    /// Whether it has a single host, with ideal hosts at the far end.
    pub(crate) fn is_alone(&self) -> bool {
        self.stops.len() == 1
    }

    /// Returns iperf's options, if the traffic is TCP.
    pub(crate) fn iperf_tcp(&self) -> Option<IperfTcp> {
        match self.workload.pattern {
            Pattern::IperfTcp(options) => Some(options),
            _ => None,
        }
    }

    /// Returns the number of a host's cards.
    pub(crate) fn cards(&self, number: usize) -> u32 {
        if self.is_alone() {
            return u32::from(self.workload.links);
        }
        let is_end = number == 0 || number + 1 == self.stops.len();
        if is_end { 1 } else { 2 }
    }

    /// Checks that the hosts, with their disciplines' overrides, can run this.
    ///
    /// # Errors
    /// Why they cannot.
    pub fn check(&self) -> Result<(), SimError> {
        if !(1..=STOPS_MAX).contains(&self.stops.len()) {
            return refuse(format!(
                "a path of {} hosts; give 1 to {STOPS_MAX}",
                self.stops.len()
            ));
        }
        for stop in &self.stops {
            self.check_processors(stop)?;
        }
        if self.is_alone() {
            self.check_alone()?;
        } else {
            self.check_path()?;
        }
        for (number, stop) in self.stops.iter().enumerate() {
            self.check_programs(number, stop)?;
        }
        // Each slice needs a length, too.
        if self.duration_ns < u64::from(self.slices.max(1)) {
            return refuse("a run of no length counts nothing; give a duration above 0");
        }
        Ok(())
    }

    /// Checks that queues and programs have processors, and that the discipline is simulated on as many.
    fn check_processors(&self, stop: &PathHost) -> Result<(), SimError> {
        let host = stop.applied();
        let (cpus, queues, program) = (host.cpu.cpus, host.card.queues, host.application.cpu);
        if queues > cpus || program > cpus {
            return refuse(format!(
                "card.queues = {queues} and application.cpu = {program} need as many processors, but cpu.cpus = \
                 {cpus}; raise cpu.cpus, or lower the others"
            ));
        }
        let method = &stop.discipline.method;
        let knows_several = method.is_napi() && !host.is_veth_end();
        if !knows_several && (cpus > 1 || host.network.gro > 0) {
            let name = match host.is_veth_end() {
                true => "a veth pair",
                false => stop.discipline.name(),
            };
            return refuse(format!(
                "{name} is simulated on one processor and without GRO; give cpu.cpus = 1, card.queues = 1 and \
                 network.gro = 0, or napi, napi-timer or busy-poll over a line"
            ));
        }
        let is_asked = self.is_alone() && self.workload.pattern == Pattern::RequestResponse;
        let stays = self.iperf_tcp().is_some() || method.is_program_polling() || is_asked;
        if program > 0 && cpus > 1 && stays {
            return refuse(
                "over TCP, under busy-poll and for rr from a far end the program runs where its packets come in; \
                 leave application.cpu out",
            );
        }
        let is_cut = shapes(&self.workload, host.link.mtu_bytes)?.len() > 1;
        if cpus > 1 && is_cut {
            return refuse(format!(
                "datagrams of {} bytes are fragmented, and only hosts with one processor simulate fragments; give a \
                 payload that fits into link.mtu_bytes, or cpu.cpus = 1",
                self.workload.payload_bytes
            ));
        }
        Ok(())
    }

    fn check_alone(&self) -> Result<(), SimError> {
        let host = self.stops[0].applied();
        let pattern = &self.workload.pattern;
        let name = self.workload.name();
        let is_cut = shapes(&self.workload, host.link.mtu_bytes)?.len() > 1;
        if is_cut && let Pattern::Trace { .. } = pattern {
            return refuse(format!(
                "the trace has a payload of {} bytes, which is fragmented at an MTU of {}, and fragments of a trace \
                 are not simulated; raise link.mtu_bytes of the host, or cut the trace",
                self.workload.payload_bytes, host.link.mtu_bytes
            ));
        }
        self.check_veth()?;
        if pattern.needs_peer() {
            return refuse(format!(
                "{name} goes from one simulated host to another; name the other with --peer"
            ));
        }
        if pattern.needs_far_end() && self.workload.rate_pps.is_none() {
            return refuse(format!(
                "the workload has no rate; give one, such as {name}:rate=100k"
            ));
        }
        Ok(())
    }

    fn check_path(&self) -> Result<(), SimError> {
        if self.workload.pattern.needs_far_end() {
            return refuse(format!(
                "{} comes from an ideal far end, and a path has none; give netblast, iperf-udp, iperf-tcp or rr, or \
                 leave out --peer",
                self.workload.name()
            ));
        }
        if self.workload.clients > 1 {
            return refuse(
                "clients and links belong to ideal hosts at the far end, and a path has none; leave them out, or leave \
                 out --peer",
            );
        }
        if self.slices > 0 && self.iperf_tcp().is_none() {
            return refuse(
                "with --peer only iperf-tcp has figures for each slice; leave --slices out",
            );
        }
        self.check_veth()?;
        let lines = PathLine::all(self);
        let first_bytes = lines[0].mtu_bytes;
        shapes(&self.workload, first_bytes)?;
        if let Some(other) = lines.iter().find(|line| line.mtu_bytes != first_bytes) {
            return refuse(format!(
                "the lines of the path have MTUs of {first_bytes} and {} bytes, and routers that cut packets are not \
                 simulated; give both lines' hosts the same link.mtu_bytes",
                other.mtu_bytes
            ));
        }
        Ok(())
    }

    /// Checks that a host's programs can send and receive under its discipline.
    fn check_programs(&self, number: usize, stop: &PathHost) -> Result<(), SimError> {
        let host = stop.applied();
        let is_tcp = self.iperf_tcp().is_some();
        let packet_bytes = host.packet_bytes(self.workload.payload_bytes);
        let buffer_bytes = host.socket.buffer_bytes;
        if !is_tcp && packet_bytes > buffer_bytes {
            return refuse(format!(
                "socket.buffer_bytes = {buffer_bytes} does not hold one packet, which takes {packet_bytes} bytes; \
                 give a larger buffer or a smaller payload"
            ));
        }
        let method = &stop.discipline.method;
        if matches!(
            self.workload.pattern,
            Pattern::IperfUdp { sleeps: true, .. }
        ) && number == 0
            && method.is_napi()
        {
            return refuse(
                "iperf-udp:sleep=1 sleeps for whole ticks, as FreeBSD does, and Linux's timers are finer; leave \
                 sleep=1 out, or give the host a FreeBSD discipline",
            );
        }
        method.poller(&host, self.cards(number))?;
        let (is_first, is_last) = (number == 0, number + 1 == self.stops.len());
        let reads = match self.workload.pattern {
            Pattern::Blast => is_last && !is_first,
            Pattern::RequestResponse => is_last || is_first,
            _ => is_last,
        };
        match method.is_program_polling() {
            true if is_tcp => refuse(
                "under busy-poll TCP is not simulated; give another discipline, such as napi-timer",
            ),
            true if !reads => refuse(
                "under busy-poll a program polls for what it receives, and this host has no program that receives; \
                 give the host another discipline",
            ),
            _ => Ok(()),
        }
    }

    /// Checks that a veth pair has two ends, nothing between them, and NAPI on both.
    fn check_veth(&self) -> Result<(), SimError> {
        let ends = self.stops.iter().filter(|stop| stop.host.is_veth_end());
        let ends = ends.count();
        if ends == 0 {
            return Ok(());
        }
        if ends != 2 || self.stops.len() != 2 {
            return refuse(VETH_ALONE);
        }
        let is_served = |stop: &PathHost| {
            let method = &stop.discipline.method;
            method.is_napi() && !method.is_program_polling()
        };
        if !self.stops.iter().all(is_served) {
            return refuse(
                "a veth pair has NAPI only; give napi or napi-timer as --discipline and --peer-discipline",
            );
        }
        if self.iperf_tcp().is_some() {
            return refuse("over a veth pair TCP is not simulated; give netblast, iperf-udp or rr");
        }
        Ok(())
    }
}

const VETH_ALONE: &str = "a host file with veth.pair = 1 is one of two processors joined by a veth pair; name the other \
    with --peer, usually the same file, without a router between them";

/// A line, as both its ends agree on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathLine {
    pub(crate) bits_per_second: u64,
    pub(crate) mtu_bytes: u64,
    pub(crate) delay_ns: u64,
    pub(crate) is_half_duplex: bool,
}

impl PathLine {
    /// Returns each host's line to the next, or a single host's lines to its far ends.
    pub(crate) fn all(plan: &Simulation) -> Vec<PathLine> {
        let links: Vec<_> = plan.stops.iter().map(|stop| stop.applied().link).collect();
        let line = |one: usize, other: usize| PathLine {
            bits_per_second: links[one].bits_per_second.min(links[other].bits_per_second),
            mtu_bytes: links[one].mtu_bytes.min(links[other].mtu_bytes),
            delay_ns: links[one].delay_ns.max(links[other].delay_ns),
            is_half_duplex: links[one].half_duplex + links[other].half_duplex > 0,
        };
        if plan.is_alone() {
            return vec![line(0, 0); usize::from(plan.workload.links)];
        }
        (1..links.len()).map(|next| line(next - 1, next)).collect()
    }

    /// Returns the index of a line's wire among the world's, away from the first host or back.
    pub(crate) fn wire(self, number: usize, is_back: bool) -> usize {
        2 * number + usize::from(is_back && !self.is_half_duplex)
    }
}

/// Returns the frames that carry one datagram at this MTU; none for TCP.
pub(crate) fn shapes(workload: &TrafficModel, mtu_bytes: u64) -> Result<Vec<Shape>, SimError> {
    let mut line = LineRate::new(1).expect("a speed above 0");
    // Its range ends at 65,535 bytes.
    line.mtu_bytes = mtu_bytes as u32;
    if let Pattern::IperfTcp(_) = workload.pattern {
        // If one byte does not fit, nothing does. Each TCP packet carries its own length.
        let packet = LinePacket::Tcp {
            ip: workload.ip,
            payload_bytes: 1,
            has_timestamps: true,
        };
        line.cost(packet).map_err(|error| error.to_string())?;
        return Ok(Vec::new());
    }
    let frames = line.datagram_frames(workload.ip, workload.payload_bytes);
    let shape = |frame: &DatagramFrame| Shape {
        line_bytes: frame.line_bytes,
        payload_bytes: frame.payload_bytes,
    };
    let frames = frames.map_err(|error| error.to_string())?;
    Ok(frames.iter().map(shape).collect())
}

/// Returns the frame of each payload of a trace; empty for other workloads. [`Simulation::check`] refuses payloads
/// that would be fragmented.
pub(crate) fn trace_frames(
    workload: &TrafficModel,
    mtu_bytes: u64,
) -> Result<BTreeMap<u32, Shape>, SimError> {
    let mut frames = BTreeMap::new();
    let Pattern::Trace { trace, .. } = &workload.pattern else {
        return Ok(frames);
    };
    for packet in trace.packets() {
        if let Entry::Vacant(entry) = frames.entry(packet.payload_bytes) {
            let one = TrafficModel {
                payload_bytes: packet.payload_bytes,
                ..workload.clone()
            };
            entry.insert(shapes(&one, mtu_bytes)?[0]);
        }
    }
    Ok(frames)
}
