//! One run of one workload under one setting: its figures, their validity, and its time series.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cpu::{CpuSource, CpuStates};
use crate::document::{TimeDistribution, WorkUnit};
use crate::loss::Ledger;

/// The CPUs to which a trial's threads were bound, and those on which polls ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    /// The core that the sending thread was pinned to.
    pub sender_cpu: u32,
    /// The core that the receiving thread was pinned to.
    pub receiver_cpu: u32,
    /// The cores on which polls of the receiver's NAPI ran; empty when there were none.
    pub poll_cpus: Vec<u32>,
}

/// Payload counted by one side, and the time it took by that side's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowRates {
    /// Datagrams sent or received; null for TCP.
    pub packets: Option<u64>,
    /// Bytes of payload sent or received.
    pub bytes: u64,
    /// From the first send or arrival to the last.
    pub seconds: f64,
    /// `packets / seconds`.
    pub packets_per_second: Option<f64>,
    /// `8 x bytes / seconds`: payload, without headers.
    pub bits_per_second: f64,
}

impl WindowRates {
    /// Computes rates from counts; they are 0 when the window is empty.
    pub fn new(packets: Option<u64>, bytes: u64, seconds: f64) -> Self {
        let rate = |count: u64| {
            if seconds > 0.0 {
                count as f64 / seconds
            } else {
                0.0
            }
        };
        WindowRates {
            packets,
            bytes,
            seconds,
            packets_per_second: packets.map(rate),
            bits_per_second: 8.0 * rate(bytes),
        }
    }

    /// Merges two windows of the same time: rates add up, and the longer length counts.
    #[must_use]
    pub fn and(self, other: WindowRates) -> WindowRates {
        let both = |own: Option<f64>, others: Option<f64>| Some(own? + others?);
        WindowRates {
            packets: self.packets.zip(other.packets).map(|(one, two)| one + two),
            bytes: self.bytes + other.bytes,
            seconds: self.seconds.max(other.seconds),
            packets_per_second: both(self.packets_per_second, other.packets_per_second),
            bits_per_second: self.bits_per_second + other.bits_per_second,
        }
    }
}

/// Requested and granted socket buffer sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SocketBuffers {
    /// Requested send buffer of the sender; null when left to the kernel.
    pub send_asked_bytes: Option<u64>,
    /// Granted, as `getsockopt` reports it.
    pub send_granted_bytes: u64,
    /// Requested receive buffer of the receiver; null when left to the kernel.
    pub receive_asked_bytes: Option<u64>,
    /// Granted, as `getsockopt` reports it.
    pub receive_granted_bytes: u64,
}

/// Round trips in nanoseconds, from the shortest to the longest. Null: the user's own program, or another tool's
/// output, does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundTripQuantiles {
    /// The shortest.
    pub min_ns: Option<u64>,
    /// The median.
    pub p50_ns: Option<u64>,
    /// The 99th percentile.
    pub p99_ns: Option<u64>,
    /// The 99.9th percentile.
    pub p999_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
    /// Their mean.
    pub mean_ns: Option<f64>,
}

/// Round trips of a request/response trial, by the requester's clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundTrip {
    /// Requests that were answered.
    pub transactions: u64,
    /// Answered requests a second.
    pub transactions_per_second: f64,
    /// Requests that were not answered in time.
    pub timeouts: u64,
    /// Their durations.
    #[serde(flatten)]
    pub quantiles: RoundTripQuantiles,
}

impl RoundTrip {
    /// Merges the round trips of two concurrent streams. Their quantiles cannot be merged, so the longer one stands for
    /// both: neither looks better than it was.
    #[must_use]
    pub fn and(self, other: RoundTrip) -> RoundTrip {
        let transactions = self.transactions + other.transactions;
        let weighted =
            |trips: &RoundTrip| Some(trips.quantiles.mean_ns? * trips.transactions as f64);
        let sum = weighted(&self).zip(weighted(&other));
        let (own, others) = (self.quantiles, other.quantiles);
        let of_both = |own: Option<u64>, other: Option<u64>, pick: fn(u64, u64) -> u64| {
            Some(pick(own?, other?))
        };
        RoundTrip {
            transactions,
            transactions_per_second: self.transactions_per_second + other.transactions_per_second,
            timeouts: self.timeouts + other.timeouts,
            quantiles: RoundTripQuantiles {
                min_ns: of_both(own.min_ns, others.min_ns, u64::min),
                p50_ns: of_both(own.p50_ns, others.p50_ns, u64::max),
                p99_ns: of_both(own.p99_ns, others.p99_ns, u64::max),
                p999_ns: of_both(own.p999_ns, others.p999_ns, u64::max),
                max_ns: of_both(own.max_ns, others.max_ns, u64::max),
                mean_ns: sum.map(|(own, other)| (own + other) / transactions.max(1) as f64),
            },
        }
    }
}

/// napi_poll events of the receiver's NAPI during the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PollEvidence {
    /// Inode number of the receiver's network namespace, to which the count is restricted.
    pub netns_inode: u64,
    /// Id of the NAPI instance; null without one, when the whole namespace was watched.
    pub napi_id: Option<u32>,
    /// Length of the counting window.
    pub seconds: f64,
    /// Calls of the poll function.
    pub polls: u64,
    /// Polls with less work than the budget: each ends a round.
    pub rounds: u64,
    /// Polls that found nothing.
    pub empty_polls: u64,
    /// Frames, by the polls' own report of their work.
    pub frames: u64,
    /// Polls by core.
    pub polls_by_cpu: Vec<u64>,
}

/// How the kernel's timer was adjusted to one round per period.
///
/// The kernel restarts `gro_flush_timeout` when a round *ends*, so the time from round to round is that timeout plus
/// the timer's latency plus the round itself. During warm-up the timeout is shortened until the measured time from
/// round to round equals the requested period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// The requested period.
    pub period_ns: u64,
    /// `gro_flush_timeout` during the measured window.
    pub gro_flush_timeout_ns: u64,
    /// `napi_defer_hard_irqs` during the measured window.
    pub defer_hard_irqs: u32,
    /// Time from round to round, measured at each step of the warm-up.
    pub steps_ns: Vec<u64>,
}

/// The traffic before the measured window, which is shown but does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Warmup {
    /// Its duration.
    pub seconds: f64,
    /// Bytes of payload delivered meanwhile.
    pub delivered_bytes: u64,
}

/// Whether a run counts, and for what. All null if nothing was wrong.
///
/// A trial has a figure if it ran to its end with its setting in force, and no known external event affected it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Validity {
    /// The external event that voids the run: the clock was stepped, another process changed a setting, an operator
    /// took the link down. The pairs of the run are dropped.
    pub external: Option<String>,
    /// Why the run ended without a result, when its own setting may be the cause: the link lost its carrier, the NAPI
    /// instance was replaced, nothing was delivered, an end failed. The run has no figure and takes part in no
    /// comparison, unless nothing was delivered: then its rate is 0.
    pub failure: Option<String>,
    /// Why the setting is not proven to have been in force: the evidence is missing, the rounds were not one per period,
    /// or polls could not be counted. Only a run whose timer started the rounds, even off their period, has a figure, and
    /// one without counts of polls.
    pub unproven: Option<String>,
    /// Why the account of losses does not close: the drain did not finish, or the residual is too large. It voids the
    /// ledger and the loss, not the receiver's rates.
    pub ledger_void: Option<String>,
}

impl Validity {
    /// Whether the run takes part in the primary estimate: no external event affected it.
    pub fn is_kept(&self) -> bool {
        self.external.is_none()
    }

    /// Whether the run gave a result with its setting provably in force.
    pub fn is_proven(&self) -> bool {
        self.is_kept() && self.failure.is_none() && self.unproven.is_none()
    }
}

/// CPU time of threads outside the study, on one core.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForeignCpu {
    /// Number of the core.
    pub core: u32,
    /// Share of the core's time, 0 to 1.
    pub busy_ratio: f64,
}

/// Findings about a trial's machine. They are shown but decide nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// The greatest share of a core's time that the hypervisor took during the measured window, 0 to 1, sampled by the
    /// kernel's clock tick.
    pub steal_ratio: Option<f64>,
    /// Time of threads outside the study, by core, during the run with CPU accounting. Empty if that was not exact.
    pub foreign_cpu: Vec<ForeignCpu>,
    /// Deviation of the round rate from one per period: 0.1 is 10 % more. Null unless the setting has a period.
    pub rhythm_deviation_ratio: Option<f64>,
    /// The kernel's one-minute load average (tasks running or waiting to run) at the start of the trial.
    pub load_average_1min: Option<f64>,
}

/// CPU time: exact, from a separate run, or else sampled in the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialCpu {
    /// How it was measured.
    pub source: CpuSource,
    /// Length of the window: the measured window if sampled; if exact, a separate run under the same traffic and
    /// setting.
    pub seconds: f64,
    /// Validity of that run, judged like the trial's.
    #[serde(flatten)]
    pub validity: Validity,
    /// Shares of time by core and state.
    pub cores: Vec<CpuStates>,
    /// Busy time of both cores without threads outside the study, per delivered datagram (`rr`: per transaction). Null
    /// for byte streams, whose packets are not counted.
    pub busy_ns_per_packet: Option<f64>,
    /// The same per delivered byte of payload. 1 ns per byte is 1 s per GB (10^9 bytes).
    pub busy_ns_per_byte: Option<f64>,
    /// Payload that the receiver read per second in that window, by its own clock.
    pub delivered_bits_per_second: Option<f64>,
}

impl TrialCpu {
    /// Returns the busy share of both cores, summed.
    pub fn busy(&self) -> f64 {
        self.cores.iter().map(CpuStates::busy).sum()
    }
}

/// CPU share of a computing program on the receiver's core under traffic, from a separate run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpinnerShare {
    /// Length of that run.
    pub seconds: f64,
    /// The program's share of the core's time, 0 to 1. It is an ordinary program, like the receiver of a socket.
    pub cpu_ratio: f64,
    /// Datagrams that the receiver read per second meanwhile. Null for TCP.
    pub delivered_packets_per_second: Option<f64>,
}

/// The measurements of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialFigures {
    /// Datagrams that the sending programs handed to their sockets (`rr`: requests and responses).
    /// Null for TCP.
    pub offered_packets: Option<u64>,
    /// Datagrams that the receiving programs read. Null for TCP.
    pub delivered_packets: Option<u64>,
    /// Payload that the receiver read, per second of the receiver's clock.
    pub delivered_bits_per_second: f64,
    /// Datagrams that the receiver read, per second of the receiver's clock. Null for TCP.
    pub delivered_packets_per_second: Option<f64>,
    /// Share of the line taken by the delivered datagrams with headers, preamble and gap, 0 to 1. Null for TCP and
    /// `rr`, and without a line: see `no_line_because`.
    pub delivered_line_ratio: Option<f64>,
    /// Share of the offered datagrams not delivered, 0 to 1. Null for TCP.
    pub loss_ratio: Option<f64>,
    /// The sender's own figures.
    pub sender: WindowRates,
    /// The receiver's own figures.
    pub receiver: WindowRates,
    /// Interarrival jitter by RFC 3550 section 6.4.1, at the receiver. Null for TCP and `rr`.
    pub jitter_seconds: Option<f64>,
    /// Delay from a datagram's time stamp to the receiver's program. Null for datagrams without time stamps (TCP, `rr`,
    /// netblast), and for trials of earlier versions.
    #[serde(default)]
    pub one_way_delays: Option<TimeDistribution>,
    /// Datagrams received after a later one. Null for TCP and `rr`.
    pub out_of_order_packets: Option<u64>,
    /// Round trips. Null for one-way workloads.
    pub round_trip: Option<RoundTrip>,
    /// Distribution of these round trips. Null for one-way workloads, and for trials of earlier versions.
    #[serde(default)]
    pub round_trip_distribution: Option<TimeDistribution>,
    /// Polls of the receiver's NAPI per second; a measured 0 if it has none.
    pub polls_per_second: Option<f64>,
    /// Rounds of polls per second; a round ends with a poll below its budget.
    pub rounds_per_second: Option<f64>,
    /// Frames per poll. Null without polls.
    pub packets_per_poll: Option<f64>,
    /// The counts of the three figures above. Null when polls could not be counted.
    pub polls: Option<PollEvidence>,
    /// Adjustment of the timer. Null unless the setting is `polling`.
    pub calibration: Option<Calibration>,
    /// CPU time. Null if not measured.
    pub cpu: Option<TrialCpu>,
    /// Shares of time by core and state during the measured window, sampled by the kernel's clock tick.
    pub cpu_tick_sampled: Vec<CpuStates>,
    /// CPU share of a program on the receiver's core. Null unless the workload requests it.
    #[serde(default)]
    pub spinner: Option<SpinnerShare>,
    /// Context switches per second, on the whole machine.
    pub context_switches_per_second: f64,
    /// Interrupts per second on the whole machine: of devices, of the timer and between cores. Null if the kernel does
    /// not report them, and for trials of earlier versions.
    #[serde(default)]
    pub interrupts_per_second: Option<f64>,
    /// Counters from step to step. Null when they could not be read, and for trials of earlier versions.
    #[serde(default)]
    pub series: Option<TrialSeries>,
    /// Buffers of the workload's sockets.
    pub socket_buffers: SocketBuffers,
    /// Where each offered packet ended.
    pub ledger: Ledger,
    /// The hosts in the order of a packet's path, if each is a machine of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<TrialHost>,
}

/// A machine's CPUs and clock during the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialHost {
    /// Its role: sender, router or receiver.
    pub host: String,
    /// Shares of time of its CPUs, sampled by its clock tick.
    pub cores: Vec<CpuStates>,
    /// How far its wall clock was ahead of the controller's before the window.
    pub clock_ahead_ns: i64,
    /// That figure may be off by this: half the fastest round trip to it.
    pub clock_error_ns: u64,
    /// How much its wall clock gained on the controller's in the window. It may be off by twice as much.
    pub clock_gained_ns: i64,
}

impl TrialFigures {
    /// Returns the CPU figures, if the run in which CPU time was counted, which is judged by itself, counts.
    pub(crate) fn counted_cpu(&self) -> Option<&TrialCpu> {
        let cpu = self.cpu.as_ref()?;
        (cpu.validity.is_kept() && cpu.validity.failure.is_none()).then_some(cpu)
    }
}

/// One run of one workload under one setting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Position in the study, from 1.
    pub sequence: u32,
    /// The block that the trial belongs to, from 1.
    pub block: u32,
    /// The workload.
    pub workload: String,
    /// The requested setting.
    pub setting: String,
    /// Validity of the run.
    #[serde(flatten)]
    pub validity: Validity,
    /// How often the setting was tested before traffic counted, until proven or out of attempts: 1 if the first proof
    /// held. Nothing is repeated afterwards.
    pub proof_attempts: u32,
    /// Findings about its machine.
    pub findings: Findings,
    /// Warm-up, excluded from every figure.
    pub warmup: Warmup,
    /// CPUs of its threads and polls.
    pub placement: Placement,
    /// The measurements. Null when the trial ended before there were any.
    pub figures: Option<Box<TrialFigures>>,
}

/// Deviation up to which rounds are still the timer's: arrivals would begin many more, and a timer that is not armed
/// none.
const TIMED_DEVIATION_MAX: f64 = 0.5;

impl Trial {
    /// Returns whether its setting was in force, as far as anything shows. A late timer counts: on an idle virtual core its latency is a tenth of
    /// a period and more.
    pub fn is_in_force(&self) -> bool {
        let deviation = self.findings.rhythm_deviation_ratio;
        self.validity.unproven.is_none()
            || self.is_unwatched()
            || deviation.is_some_and(|deviation| deviation.abs() < TIMED_DEVIATION_MAX)
    }

    /// Returns whether no polls could be counted: then its setting was read back, and nothing else shows it.
    pub fn is_unwatched(&self) -> bool {
        let figures = self.figures.as_ref();
        figures.is_some_and(|figures| figures.polls.is_none())
    }

    /// Returns why it has no part in the figures; `None` if it has.
    pub fn reason_void(&self) -> Option<&str> {
        let validity = &self.validity;
        let unproven = validity.unproven.as_deref().filter(|_| !self.is_in_force());
        let external = validity.external.as_deref();
        external.or(validity.failure.as_deref()).or(unproven)
    }

    /// Returns the figures if the trial gave a result under a setting that was in force, and nothing external voids it.
    pub fn result(&self) -> Option<&TrialFigures> {
        let counts = self.validity.is_kept() && self.validity.failure.is_none();
        self.figures
            .as_deref()
            .filter(|_| counts && self.is_in_force())
    }

    /// Returns the ledger of a trial with a result, if it closes.
    pub fn ledger(&self) -> Option<&Ledger> {
        let closes = self.validity.ledger_void.is_none();
        self.result()
            .filter(|_| closes)
            .map(|figures| &figures.ledger)
    }

    /// Returns the lost share of the offered, if the ledger closes.
    pub fn loss_ratio(&self) -> Option<f64> {
        self.ledger().and(self.result()?.loss_ratio)
    }
}

/// Possible times between two readings, in seconds: a trial uses the shortest with at most [`STEPS_MAX`] steps.
const STEPS_SECONDS: [f64; 9] = [0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];

/// Most steps of a trial, unless even the longest step would make more.
pub const STEPS_MAX: u32 = 300;

/// Rate of softirqs cut short, per second, from which on a step is a storm. The kernel cuts its receive softirq short
/// after `net.core.netdev_budget` packets (300) or `netdev_budget_usecs` (2 to 20 ms) without a pause.
const STORM_PER_SECOND: f64 = 25.0;

/// Busy time of one core from step to step, sampled by the kernel's clock tick in units of 10 ms: short steps are
/// meaningful only when summed over several trials. Work in step with the tick is misjudged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoreSeries {
    /// Number of the core.
    pub core: u32,
    /// Time in which it was busy: all but idle and steal.
    pub busy_seconds: Vec<f64>,
    /// Of this, time in interrupts: irq and softirq.
    pub interrupt_seconds: Vec<f64>,
}

/// The traffic of a trial from step to step, by counters of the hosts' kernels.
///
/// Each list has one figure per step. Both hosts are read at about the same time, each by its own clock. The trial's
/// totals are more exact than the sum of its steps: the last step ends with the sender, before everything on its way
/// has arrived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialSeries {
    /// Requested time between readings.
    pub step_seconds: f64,
    /// End of each step by the receiver's clock, in seconds since both ends of the traffic were running.
    pub end_seconds: Vec<f64>,
    /// Frames sent by the sender's interfaces, plus those that their driver dropped, which it counts separately.
    pub sent_frames: Vec<u64>,
    /// Bytes received by the receiver's interfaces: frames from the Ethernet header to the end of the payload.
    pub received_bytes: Vec<u64>,
    /// Datagrams that programs on the receiver read; `rr`: requests. Null for TCP.
    pub read_datagrams: Option<Vec<u64>>,
    /// Frames lost between the sender's driver and the receiver's protocols, by the interfaces' counters. A drop that
    /// both ends of a link count is counted once.
    pub dropped_frames: Vec<u64>,
    /// Datagrams that the receiver's sockets dropped. Null for TCP.
    pub dropped_datagrams: Option<Vec<u64>>,
    /// Polls of the studied NAPI instance. Null when they could not be counted.
    pub polls: Option<Vec<u64>>,
    /// The sender's and the receiver's cores. Empty in trials of earlier versions.
    #[serde(default)]
    pub cores: Vec<CoreSeries>,
    /// How often the studied machine's kernel cut its receive softirq short with packets left, of whatever traffic
    /// (`time_squeeze` of all cores). Null in trials of earlier versions.
    #[serde(default)]
    pub cut_short_softirqs: Option<Vec<u64>>,
}

impl TrialSeries {
    /// Returns the time between readings for a trial of this length.
    pub fn step_seconds(trial_seconds: f64) -> f64 {
        let fits = |step: &&f64| trial_seconds / **step <= f64::from(STEPS_MAX);
        let fitting = STEPS_SECONDS.iter().find(fits);
        let longest = trial_seconds / f64::from(STEPS_MAX);
        fitting.copied().unwrap_or(longest)
    }

    /// Iterates over the length of each step.
    pub fn lengths(&self) -> impl Iterator<Item = f64> {
        let begins = std::iter::once(0.0).chain(self.end_seconds.iter().copied());
        let ends = self.end_seconds.iter();
        ends.zip(begins).map(|(end, begin)| end - begin)
    }

    /// Converts counts of steps to rates per second, each with the middle of its step.
    pub fn rates<'a>(&'a self, counts: &'a [u64]) -> impl Iterator<Item = (f64, f64)> + 'a {
        let steps = self.lengths().zip(&self.end_seconds).zip(counts);
        steps.map(|((length, end), count)| (end - length / 2.0, *count as f64 / length.max(1e-9)))
    }

    /// Returns what the receiver got in each step, in the workload's unit: bytes of frames, or datagrams read.
    pub fn received(&self, unit: WorkUnit) -> Option<&[u64]> {
        match unit {
            WorkUnit::Bytes => Some(&self.received_bytes),
            WorkUnit::Datagrams | WorkUnit::Transactions => self.read_datagrams.as_deref(),
        }
    }

    /// Whether each step was a storm: packets came faster than the kernel took them, and it cut its receive softirq
    /// short 25 times a second or more. Empty if that was not read.
    pub fn storms(&self) -> Vec<bool> {
        let counts = self.cut_short_softirqs.as_deref().unwrap_or_default();
        let rates = self.rates(counts);
        rates.map(|(_, rate)| rate >= STORM_PER_SECOND).collect()
    }

    /// Returns the losses of each step: frames, plus datagrams at sockets.
    pub fn dropped(&self) -> Vec<u64> {
        let none = Vec::new();
        let at_sockets = self.dropped_datagrams.as_ref().unwrap_or(&none);
        let at_sockets = at_sockets.iter().chain(std::iter::repeat(&0));
        let both = self.dropped_frames.iter().zip(at_sockets);
        both.map(|(frames, datagrams)| frames + datagrams).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_has_a_bounded_number_of_steps_whatever_it_takes() {
        for (seconds, step) in [(0.25, 0.02), (6.0, 0.02), (10.0, 0.05), (300.0, 1.0)] {
            assert_eq!(TrialSeries::step_seconds(seconds), step, "{seconds}");
        }
        let day = 86_400.0;
        assert!(day / TrialSeries::step_seconds(day) <= f64::from(STEPS_MAX) + 1e-6);
    }

    #[test]
    fn rates_are_of_the_time_that_a_step_took() {
        let series = TrialSeries {
            step_seconds: 0.5,
            end_seconds: vec![0.5, 1.5],
            sent_frames: vec![100, 100],
            received_bytes: vec![0, 0],
            read_datagrams: None,
            dropped_frames: vec![0, 3],
            dropped_datagrams: Some(vec![1, 1]),
            polls: None,
            cores: Vec::new(),
            cut_short_softirqs: Some(vec![12, 25]),
        };
        let rates: Vec<(f64, f64)> = series.rates(&series.sent_frames).collect();
        assert_eq!(rates, [(0.25, 200.0), (1.0, 100.0)]);
        assert_eq!(series.dropped(), [1, 4]);
        // A stream has no datagrams.
        assert_eq!(series.received(WorkUnit::Bytes), Some(&[0, 0][..]));
        assert_eq!(series.received(WorkUnit::Datagrams), None);
        assert_eq!(series.storms(), [false, true]);
    }
}
