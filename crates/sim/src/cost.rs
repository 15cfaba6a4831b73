//! Estimates the cost of a run beforehand: work, memory, and the warm-up it needs.
//!
//! The work is an upper bound for any host, discipline and workload: every step takes simulated processor time, which
//! limits how often it can happen.

use nicpoll_core::{Controller, NS_PER_SECOND};

use crate::link::Packet;
use crate::source::Clients;
use crate::spec::discipline::Method;
use crate::spec::host::HostModel;
use crate::spec::options::{SimError, refuse};
use crate::spec::simulation::{PathHost, PathLine, Simulation};
use crate::spec::traffic::Pattern;

/// Packets that a slow core simulates a second.
const PACKETS_PER_SECOND: f64 = 5e6;
const MINUTES_MAX: f64 = 10.0;
const GIB: f64 = (1u64 << 30) as f64;
const GIB_MAX: f64 = 4.0;
/// Work of a tick, a look at a card or a clock reading, in packets.
const LOOK: f64 = 0.25;
/// A warm-up is at least this long: queues and windows have filled by then.
const WARMUP_MIN_NS: u64 = 500_000_000;
/// A warm-up is a multiple of this, for display.
const WARMUP_STEP_NS: u64 = 100_000_000;
/// Factor on a climb of one packet a tick: ticks are missed, and a burst that overshoots comes down again.
const CLIMB_MARGIN: f64 = 1.25;
/// Ticks in which `share` settles (docs/polling.md).
const SHARE_SETTLES_TICKS: u64 = 20;
/// A growing queue briefly holds its old buffer and one twice as large.
const GROWTH: f64 = 3.0;

impl Simulation {
    /// Returns the work of a run, in packets that one host receives, sends or forwards. `cargo bench -p nicpoll-sim`
    /// measures the time of one.
    pub fn work(&self) -> f64 {
        let seconds = (self.duration_ns as f64 + self.warmup_ns as f64) / NS_PER_SECOND as f64;
        let hosts: Vec<HostModel> = self.stops.iter().map(PathHost::applied).collect();
        let looks = self.stops.iter().zip(&hosts).enumerate();
        let looks = looks.map(|(number, (stop, host))| {
            let of_cards = looks_per_second(&stop.discipline.method, host);
            host.cpu.cpus as f64 * (host.cpu.hz as f64 + f64::from(self.cards(number)) * of_cards)
        });
        // A program on each processor sends.
        let senders = hosts[0].cpu.cpus as f64;
        let of_packets = senders * self.packets_per_second(&hosts) * self.stops.len() as f64;
        let of_programs = senders * self.steps_per_second(&hosts[0]);
        (of_packets + LOOK * (looks.sum::<f64>() + of_programs)) * seconds
    }

    /// Returns the most packets that set out a second.
    fn packets_per_second(&self, hosts: &[HostModel]) -> f64 {
        let of_calls = calls_per_second(&hosts[0]);
        let workload = &self.workload;
        match workload.pattern {
            Pattern::Blast => of_calls * self.frames(&hosts[0]),
            // A request and its reply. A client without a reply asks again after a second.
            Pattern::RequestResponse if self.is_alone() => {
                2.0 * (of_calls + f64::from(workload.clients)) * self.frames(&hosts[0])
            }
            Pattern::RequestResponse => 2.0 * of_calls * self.frames(&hosts[0]),
            Pattern::IperfUdp {
                bits_per_second, ..
            } => {
                let bits = 8.0 * f64::from(workload.payload_bytes.max(1));
                of_calls.min(bits_per_second as f64 / bits) * self.frames(&hosts[0])
            }
            // A line full of the longest segments, each with an acknowledgement, both ways at most.
            Pattern::IperfTcp(_) => 2.0 * slowest_line(self, |line| line.mtu_bytes as f64),
            _ => workload.rate_pps.unwrap_or_default() as f64 * self.frames(&hosts[0]),
        }
    }

    /// Returns the steps a second of a sending program, other than sending packets.
    fn steps_per_second(&self, host: &HostModel) -> f64 {
        match self.workload.pattern {
            // The program polls the clock; if a reading takes no time, it reads once.
            Pattern::IperfUdp { .. } if host.application.clock_ns > 0 => {
                per_second(host.application.clock_ns)
            }
            Pattern::IperfUdp { .. } => 2.0 * calls_per_second(host),
            Pattern::IperfTcp(options) => {
                let writes = slowest_line(self, |_| options.write_bytes as f64);
                calls_per_second(host).min(writes)
            }
            _ => 0.0,
        }
    }

    /// Returns the frames of a datagram.
    fn frames(&self, host: &HostModel) -> f64 {
        let bytes = u64::from(self.workload.payload_bytes);
        bytes.div_ceil(host.link.mtu_bytes).max(1) as f64
    }

    /// Returns the most bytes that a run holds when its queues fill: a queue holds no more packets than its limit,
    /// nor more than are sent. Clients take memory of their own.
    pub fn memory_bytes(&self) -> f64 {
        let of_queues = self
            .stops
            .iter()
            .map(|stop| self.queues_bytes(&stop.applied()));
        of_queues.sum::<f64>() + Clients::memory_bytes(&self.workload) as f64
    }

    fn queues_bytes(&self, host: &HostModel) -> f64 {
        let processors = host.cpu.cpus;
        let links = processors * u64::from(self.workload.links);
        let way_out = [
            links * host.network.send_queue_packets,
            links * host.card.tx_ring,
        ];
        let way_in = [
            links * host.link.queue_packets,
            links * host.card.rx_ring,
            host.network.ip_queue_packets,
            processors * host.socket.buffer_bytes / host.packet_bytes(self.workload.payload_bytes),
        ];
        let limits = match self.workload.pattern {
            Pattern::Blast => way_out.to_vec(),
            Pattern::RequestResponse => [&way_in[..], &way_out].concat(),
            _ => way_in.to_vec(),
        };
        let seconds = (self.duration_ns as f64 + self.warmup_ns as f64) / 1e9;
        let rate = self.workload.rate_pps;
        let sent = rate.map_or(f64::INFINITY, |rate| rate as f64 * seconds);
        let packets: f64 = limits.iter().map(|limit| sent.min(*limit as f64)).sum();
        packets * GROWTH * size_of::<Packet>() as f64
    }
}

/// The work and memory of simulations.
#[derive(Clone, Copy, Debug)]
pub struct SimulationCost {
    /// The work of the runs; see [`Simulation::work`].
    pub runs: f64,
    /// The work of trials against a bottleneck; `None` without trials.
    pub trials: Option<f64>,
    /// Bytes of memory.
    pub memory_bytes: f64,
    /// How many run at a time, above 0.
    pub workers: usize,
}

impl SimulationCost {
    /// Checks that it takes no more than ten minutes on slow cores, and 4 GiB.
    ///
    /// # Errors
    /// What is too large, and the remedy.
    pub fn check(&self) -> Result<(), SimError> {
        let minutes = |work: f64| work / PACKETS_PER_SECOND / self.workers as f64 / 60.0;
        let trials = self.trials.unwrap_or_default();
        let all = minutes(self.runs + trials);
        let gib = self.memory_bytes / GIB;
        if all > MINUTES_MAX && trials > 0.0 {
            return refuse(format!(
                "this may take {:.0} minutes, {:.0} of them to try what would move the bottleneck; give --no-explain \
                 to leave that out, shorten --duration or --warmup, lower the rate, or give --long to run it all the \
                 same",
                all.ceil(),
                minutes(trials).ceil()
            ));
        }
        if all > MINUTES_MAX {
            return refuse(format!(
                "this may take {:.0} minutes; shorten --duration or --warmup, lower the rate, take fewer points of a \
                 sweep, or give --long to run it all the same",
                all.ceil()
            ));
        }
        if gib > GIB_MAX {
            return refuse(format!(
                "the queues of this may need {gib:.0} GiB of memory when they fill; lower their limits in the host \
                 file (socket.buffer_bytes first) or the rate, or give --long to run it all the same"
            ));
        }
        Ok(())
    }
}

/// Returns a warm-up after which all of these hosts are in steady state: half a second, or as long as a poller's
/// burst takes to climb. The burst grows by one packet a tick, until it is `burst_max` or fills the share of a tick
/// that `user_frac` leaves to polling.
pub fn warmup_ns(stops: &[PathHost]) -> u64 {
    let climb_ns = |stop: &PathHost| {
        let host = stop.applied();
        let ticks = climb_ticks(&stop.discipline.method, &host);
        let ns = CLIMB_MARGIN * ticks as f64 * NS_PER_SECOND as f64 / host.cpu.hz as f64;
        // At most 20,000 ticks, each of up to a second.
        (ns as u64).next_multiple_of(WARMUP_STEP_NS)
    };
    let longest_ns = stops.iter().map(climb_ns).max();
    longest_ns.unwrap_or_default().max(WARMUP_MIN_NS)
}

/// Returns the most calls a second of a sending program.
fn calls_per_second(host: &HostModel) -> f64 {
    let output_ns = host.network.output_ns.min(host.network.output6_ns);
    per_second(host.cpu.syscall_ns + output_ns + host.application.packet_ns)
}

/// Returns how often a second something of `ns` can happen; 0 ns count as 1.
fn per_second(ns: u64) -> f64 {
    NS_PER_SECOND as f64 / ns.max(1) as f64
}

/// Returns how many units of `bytes` the slowest line of a path carries a second, both ways together.
fn slowest_line(plan: &Simulation, bytes: impl Fn(&PathLine) -> f64) -> f64 {
    let lines = PathLine::all(plan).into_iter();
    let each = lines.map(|line| 2.0 * line.bits_per_second as f64 / 8.0 / bytes(&line));
    each.fold(f64::INFINITY, f64::min)
}

/// Returns the most looks a second at each card that find nothing.
fn looks_per_second(method: &Method, host: &HostModel) -> f64 {
    if let Method::Napi(napi) = method {
        return match (napi.busy, napi.deferral) {
            (Some(_), _) => per_second(host.card.poll_ns),
            (None, Some(deferral)) => per_second(deferral.timeout_ns),
            (None, None) => 0.0,
        };
    }
    let Ok(Some(poller)) = method.poller(host, 1) else {
        return 0.0;
    };
    let state = poller.state();
    if state.idle_poll != 0 {
        return per_second(host.card.poll_ns);
    }
    let chunks = u64::from(state.burst_max.div_ceil(state.each_burst));
    let most = per_second(host.cpu.netisr_ns + host.card.poll_ns);
    most.min((host.cpu.hz * chunks) as f64)
}

/// Returns the ticks after which a discipline has adapted.
fn climb_ticks(method: &Method, host: &HostModel) -> u64 {
    let Ok(Some(poller)) = method.poller(host, 1) else {
        return 0;
    };
    let state = poller.state();
    match poller.controller() {
        Controller::Freebsd => {
            let share = NS_PER_SECOND * u64::from(100 - state.user_frac) / 100;
            let packet_ns = host.card.rx_packet_ns + host.network.ipv4_ns;
            let fills = share / host.cpu.hz / packet_ns;
            fills.min(u64::from(state.burst_max - state.burst))
        }
        // It settles so soon whatever the load was before.
        Controller::Share => SHARE_SETTLES_TICKS,
    }
}
