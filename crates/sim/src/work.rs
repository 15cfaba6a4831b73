//! How much work a run is, and how long its warm-up has to be, before it is run.
//!
//! What must hold: the work is an upper bound, whatever host, discipline and workload. Everything that a simulated
//! processor does takes it some of its time, and that time bounds how often it can be done.

use thiserror::Error;

use crate::host::HostModel;
use crate::plan::{Line, PathHost, Simulation};
use crate::workload::Pattern;

const NS_PER_SECOND: f64 = 1e9;
/// What a slow core simulates a second.
const PACKETS_PER_SECOND: f64 = 5e6;
const MINUTES_MAX: f64 = 10.0;
const GIB: f64 = (1u64 << 30) as f64;
const GIB_MAX: f64 = 4.0;
/// A tick, a look at a card or a reading of the clock is as much work as this part of a packet.
const LOOK: f64 = 0.25;
/// A warm-up is at least this long: queues and windows have filled by then.
const WARMUP_MIN_NS: u64 = 500_000_000;
/// And a multiple of this: it is shown.
const WARMUP_STEP_NS: u64 = 100_000_000;
/// The burst needs this part more time than one packet a tick takes: ticks are missed, and a burst that has come too
/// far comes down again.
const CLIMB_MARGIN: f64 = 1.25;

impl Simulation {
    /// The work of a run, in packets that one host receives, sends or forwards. What that means in seconds
    /// `cargo bench -p nicpoll-sim` tells.
    pub fn work(&self) -> f64 {
        let seconds = (self.duration_ns as f64 + self.warmup_ns as f64) / NS_PER_SECOND;
        let hosts: Vec<HostModel> = self.stops.iter().map(PathHost::applied).collect();
        let looks = self.stops.iter().zip(&hosts).enumerate();
        let looks = looks.map(|(number, (stop, host))| {
            let of_cards = stop.discipline.method.looks_per_second(host);
            host.cpu.cpus as f64 * (host.cpu.hz as f64 + f64::from(self.cards(number)) * of_cards)
        });
        // A program on each processor sends.
        let senders = hosts[0].cpu.cpus as f64;
        let of_packets = senders * self.packets_per_second(&hosts) * self.stops.len() as f64;
        let of_programs = senders * self.steps_per_second(&hosts[0]);
        (of_packets + LOOK * (looks.sum::<f64>() + of_programs)) * seconds
    }

    /// Packets that set out, at most.
    fn packets_per_second(&self, hosts: &[HostModel]) -> f64 {
        let of_calls = calls_per_second(&hosts[0]);
        let workload = &self.workload;
        match workload.pattern {
            Pattern::Blast => of_calls * self.frames(&hosts[0]),
            // A request and its reply. A client that waits asks again after a second.
            Pattern::RequestResponse if self.is_alone() => {
                2.0 * (of_calls + f64::from(workload.clients)) * self.frames(&hosts[0])
            }
            Pattern::RequestResponse => 2.0 * of_calls * self.frames(&hosts[0]),
            Pattern::IperfUdp { bits_per_second } => {
                let bits = 8.0 * f64::from(workload.payload_bytes.max(1));
                of_calls.min(bits_per_second as f64 / bits) * self.frames(&hosts[0])
            }
            // A line full of the longest segments, each with an acknowledgement, both ways at most.
            Pattern::IperfTcp(_) => 2.0 * slowest_line(self, |line| line.mtu_bytes as f64),
            _ => workload.rate_pps.unwrap_or_default() as f64 * self.frames(&hosts[0]),
        }
    }

    /// What a sending program does beside sending packets.
    fn steps_per_second(&self, host: &HostModel) -> f64 {
        match self.workload.pattern {
            // It reads the clock over and over; one that takes no time it reads once.
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

    /// Frames of a datagram.
    fn frames(&self, host: &HostModel) -> f64 {
        let bytes = u64::from(self.workload.payload_bytes);
        bytes.div_ceil(host.link.mtu_bytes).max(1) as f64
    }
}

/// What simulations need.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// The work of the runs; see [`Simulation::work`].
    pub runs: f64,
    /// The work of trying what would move a bottleneck; `None` when that is left out.
    pub trials: Option<f64>,
    /// Bytes of memory.
    pub memory_bytes: f64,
    /// How many run at a time, above 0.
    pub workers: usize,
}

/// Why simulations should not be made unasked, with the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum TooLarge {
    /// They take too long.
    #[error(
        "this may take {minutes:.0} minutes; shorten --duration or --warmup, lower the rate, take fewer points of a \
         sweep, or give --long to run it all the same"
    )]
    Long {
        /// About.
        minutes: f64,
    },
    /// They take too long with the trials.
    #[error(
        "this may take {minutes:.0} minutes, {of_trials:.0} of them to try what would move the bottleneck; give \
         --no-explain to leave that out, shorten --duration or --warmup, lower the rate, or give --long to run it all \
         the same"
    )]
    LongTrials {
        /// About.
        minutes: f64,
        /// Of these, for the trials.
        of_trials: f64,
    },
    /// Their queues are too large.
    #[error(
        "the queues of this may need {gib:.0} GiB of memory when they fill; lower their limits in the host file \
         (socket.buffer_bytes first) or the rate, or give --long to run it all the same"
    )]
    Vast {
        /// Memory.
        gib: f64,
    },
}

impl Need {
    /// Whether it is what anyone would wait for: ten minutes on slow cores, and 4 GiB.
    ///
    /// # Errors
    /// What is too large, and the remedy.
    pub fn check(&self) -> Result<(), TooLarge> {
        let minutes = |work: f64| work / PACKETS_PER_SECOND / self.workers as f64 / 60.0;
        let trials = self.trials.unwrap_or_default();
        let all = minutes(self.runs + trials);
        let gib = self.memory_bytes / GIB;
        if all > MINUTES_MAX && trials > 0.0 {
            return Err(TooLarge::LongTrials {
                minutes: all.ceil(),
                of_trials: minutes(trials).ceil(),
            });
        }
        if all > MINUTES_MAX {
            return Err(TooLarge::Long {
                minutes: all.ceil(),
            });
        }
        if gib > GIB_MAX {
            return Err(TooLarge::Vast { gib });
        }
        Ok(())
    }
}

/// A warm-up after which all of these hosts are where they stay: half a second, or as long as the burst of a poller
/// takes to climb. It grows by one packet a tick, until it is `burst_max` or fills the share of a tick that
/// `user_frac` leaves to polling.
pub fn warmup_ns(stops: &[PathHost]) -> u64 {
    let climb_ns = |stop: &PathHost| {
        let host = stop.applied();
        let ticks = stop.discipline.method.climb_ticks(&host);
        let ns = CLIMB_MARGIN * ticks as f64 * NS_PER_SECOND / host.cpu.hz as f64;
        // At most 20,000 ticks of a second.
        (ns as u64).next_multiple_of(WARMUP_STEP_NS)
    };
    let longest_ns = stops.iter().map(climb_ns).max();
    longest_ns.unwrap_or_default().max(WARMUP_MIN_NS)
}

/// Calls of a program that sends, at most.
fn calls_per_second(host: &HostModel) -> f64 {
    let output_ns = host.network.output_ns.min(host.network.output6_ns);
    per_second(host.cpu.syscall_ns + output_ns + host.application.packet_ns)
}

/// How often something can be done that takes so long; it takes some time.
pub(crate) fn per_second(ns: u64) -> f64 {
    NS_PER_SECOND / ns.max(1) as f64
}

/// How many units of so many bytes the slowest line of a path carries a second, both ways together.
fn slowest_line(plan: &Simulation, bytes: impl Fn(&Line) -> f64) -> f64 {
    let lines = Line::all(plan).into_iter();
    let each = lines.map(|line| 2.0 * line.bits_per_second as f64 / 8.0 / bytes(&line));
    each.fold(f64::INFINITY, f64::min)
}
