//! One run of one workload under one setting: its figures, what may be wrong with it, and its series over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cpu::{CpuSource, CpuStates};
use crate::document::{TimeDistribution, WorkUnit};
use crate::loss::Ledger;

/// The CPUs that a trial's parts were bound to, and where the polls were seen to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    /// The core that the sending thread was pinned to.
    pub sender_cpu: u32,
    /// The core that the receiving thread was pinned to.
    pub receiver_cpu: u32,
    /// The cores on which polls of the receiver's NAPI ran; empty when there were none.
    pub poll_cpus: Vec<u32>,
}

/// What one side counted itself: payload and the time that it took by its own clock.
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
    /// Figures from counts; rates are 0 when the window is empty.
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

    /// What was counted in two windows at the same time: rates add up, and the longer one is the length.
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

/// Socket buffer sizes as asked for and as the kernel granted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SocketBuffers {
    /// Asked for the sender's send buffer; null when left to the kernel.
    pub send_asked_bytes: Option<u64>,
    /// Granted, as `getsockopt` reports it.
    pub send_granted_bytes: u64,
    /// Asked for the receiver's receive buffer; null when left to the kernel.
    pub receive_asked_bytes: Option<u64>,
    /// Granted, as `getsockopt` reports it.
    pub receive_granted_bytes: u64,
}

/// Round trips in nanoseconds, from the shortest to the longest. Null is what a program of the user's own, or a text of
/// another tool, does not tell.
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
    /// How long they took.
    #[serde(flatten)]
    pub quantiles: RoundTripQuantiles,
}

impl RoundTrip {
    /// Round trips of two streams at the same time. Their quantiles cannot be put together: the longer one stands
    /// for both, so that neither looks better than it was.
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PollEvidence {
    /// Inode number of the receiver's network namespace, which the count is limited to.
    pub netns_inode: u64,
    /// Id of the NAPI instance; null when there is none and the whole namespace was watched.
    pub napi_id: Option<u32>,
    /// Length of the window in which polls were counted.
    pub seconds: f64,
    /// Calls of the poll function.
    pub polls: u64,
    /// Polls whose work was below the budget: each ends a round.
    pub rounds: u64,
    /// Polls that found nothing.
    pub empty_polls: u64,
    /// Frames that the polls reported as their work.
    pub frames: u64,
    /// Polls by core.
    pub polls_by_cpu: Vec<u64>,
}

/// How the kernel's timer was set so that one round a period came out.
///
/// The kernel restarts `gro_flush_timeout` when a round *ends*, so the time from round to round
/// is that timeout plus the timer's latency plus the round itself. During warm-up the timeout is
/// shortened until the measured time from round to round is the period that was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// The period that was asked for.
    pub period_ns: u64,
    /// `gro_flush_timeout` during the measured window.
    pub gro_flush_timeout_ns: u64,
    /// `napi_defer_hard_irqs` during the measured window.
    pub defer_hard_irqs: u32,
    /// Time from round to round measured at each step of the warm-up.
    pub steps_ns: Vec<u64>,
}

/// The traffic before the measured window: shown, never counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Warmup {
    /// How long it took.
    pub seconds: f64,
    /// What was delivered meanwhile: bytes of payload.
    pub delivered_bytes: u64,
}

/// Whether a run counts, and for what. All null when nothing was wrong.
///
/// A trial has a figure when it ran to its end with its setting in force, and no cause that is known to be external
/// befell it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Validity {
    /// Why an event from outside voids the run: the clock was stepped, another process changed a
    /// setting, an operator took the link down. The pairs that the run belongs to are dropped.
    pub external: Option<String>,
    /// Why the run ended without a result, when its own setting may be the cause: the link lost its
    /// carrier, the NAPI instance was replaced, nothing was delivered, an end failed. The run has no figure and
    /// takes part in no comparison, unless nothing was delivered: then its rate is 0.
    pub failure: Option<String>,
    /// Why the setting is not proven to have been in force as asked: the evidence is missing, or the
    /// rounds were not one a period. Only a run whose rounds were the timer's, if off rhythm, has a figure.
    pub unproven: Option<String>,
    /// Why the account of losses does not close: the drain did not finish, or the residual is too
    /// large. It voids the ledger and the loss, not the receiver's own rates.
    pub ledger_void: Option<String>,
}

impl Validity {
    /// Whether the run takes part in the primary estimate: nothing external befell it.
    pub fn is_kept(&self) -> bool {
        self.external.is_none()
    }

    /// Whether the run gave a result under a setting that is proven to have been in force.
    pub fn is_proven(&self) -> bool {
        self.is_kept() && self.failure.is_none() && self.unproven.is_none()
    }
}

/// CPU time of threads that are not the study's, on one core.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForeignCpu {
    /// Number of the core.
    pub core: u32,
    /// Share of the core's time, 0 to 1.
    pub busy_ratio: f64,
}

/// What a trial met on its machine. Findings are shown and decide nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// The greatest share of a core's time that the hypervisor took during the measured window, 0 to
    /// 1, sampled by the kernel's clock tick.
    pub steal_ratio: Option<f64>,
    /// Time of threads that are not the study's, by core, during the run in which CPU time is
    /// accounted for. Empty when that was not exact.
    pub foreign_cpu: Vec<ForeignCpu>,
    /// How far the rounds a second were from one a period: 0.1 is 10 % more. Null unless the setting
    /// has a period.
    pub rhythm_deviation_ratio: Option<f64>,
    /// Tasks that run or wait to run, averaged by the kernel over the last minute, as the trial began.
    pub load_average_1min: Option<f64>,
}

/// Where CPU time went: exactly, in a run of its own, or else sampled in the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialCpu {
    /// How it was measured.
    pub source: CpuSource,
    /// Length of the window: the measured window when sampled, a run of its own, under the same
    /// traffic and setting, when exact.
    pub seconds: f64,
    /// How that run was carried out, judged as the trial is.
    #[serde(flatten)]
    pub validity: Validity,
    /// Shares of time by core and state.
    pub cores: Vec<CpuStates>,
    /// Busy time of both cores, without that of threads that are not the study's, over delivered
    /// datagrams (`rr`: over transactions). Null for byte streams: what the receiver reads of one is in no packets.
    pub busy_ns_per_packet: Option<f64>,
    /// The same over delivered bytes of payload. A nanosecond a byte is a second a GB (10^9 bytes).
    pub busy_ns_per_byte: Option<f64>,
    /// What the receiver read a second by its own clock in that window: payload.
    pub delivered_bits_per_second: Option<f64>,
}

impl TrialCpu {
    /// Busy share of both cores together, 0 to the number of cores.
    pub fn busy(&self) -> f64 {
        self.cores.iter().map(CpuStates::busy).sum()
    }
}

/// What a computing program got on the receiver's core while traffic ran, in a run of its own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpinnerShare {
    /// Length of that run.
    pub seconds: f64,
    /// Share of the core's time that the program got, 0 to 1. It is an ordinary program, as the receiver of a socket is.
    pub cpu_ratio: f64,
    /// What the receiver read a second meanwhile. Null for TCP.
    pub delivered_packets_per_second: Option<f64>,
}

/// What was measured in a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialFigures {
    /// Datagrams that the sending programs handed to their sockets (`rr`: requests and responses).
    /// Null for TCP.
    pub offered_packets: Option<u64>,
    /// Datagrams that the receiving programs read. Null for TCP.
    pub delivered_packets: Option<u64>,
    /// Payload that the receiver read, a second, by the receiver's clock.
    pub delivered_bits_per_second: f64,
    /// Datagrams that the receiver read, a second, by the receiver's clock. Null for TCP.
    pub delivered_packets_per_second: Option<f64>,
    /// Share of the line that the delivered datagrams take with headers, preamble and gap, 0 to 1.
    /// Null for TCP and `rr`, and where there is no line: see `no_line_because`.
    pub delivered_line_ratio: Option<f64>,
    /// Share of the offered datagrams that was not delivered, 0 to 1. Null for TCP.
    pub loss_ratio: Option<f64>,
    /// The sender's own figures.
    pub sender: WindowRates,
    /// The receiver's own figures.
    pub receiver: WindowRates,
    /// Interarrival jitter by RFC 3550 section 6.4.1, at the receiver. Null for TCP and `rr`.
    pub jitter_seconds: Option<f64>,
    /// From the time that a datagram bears to the receiver's program. Null where datagrams bear none (TCP, `rr`,
    /// netblast's), and for trials of earlier versions.
    #[serde(default)]
    pub one_way_delays: Option<TimeDistribution>,
    /// Datagrams that arrived after a later one. Null for TCP and `rr`.
    pub out_of_order_packets: Option<u64>,
    /// Round trips. Null for one-way workloads.
    pub round_trip: Option<RoundTrip>,
    /// How these round trips are distributed. Null for one-way workloads, and for trials of earlier versions.
    #[serde(default)]
    pub round_trip_distribution: Option<TimeDistribution>,
    /// Polls of the receiver's NAPI a second; measured 0 when it has none.
    pub polls_per_second: Option<f64>,
    /// Rounds of polls a second; a round ends with a poll whose work is below its budget.
    pub rounds_per_second: Option<f64>,
    /// Frames a poll. Null when nothing was polled.
    pub packets_per_poll: Option<f64>,
    /// The counts behind the three figures above. Null when they could not be counted.
    pub polls: Option<PollEvidence>,
    /// How the timer was set. Null unless the setting is `polling`.
    pub calibration: Option<Calibration>,
    /// Where CPU time went. Null when that was not measured.
    pub cpu: Option<TrialCpu>,
    /// Shares of time by core and state during the measured window, sampled by the kernel's clock tick.
    pub cpu_tick_sampled: Vec<CpuStates>,
    /// What a program got that shared the core with the receiver. Null unless the workload asks for it.
    #[serde(default)]
    pub spinner: Option<SpinnerShare>,
    /// Context switches a second, of the whole machine.
    pub context_switches_per_second: f64,
    /// Interrupts a second, of the whole machine: of devices, of the timer and between cores. Null where the kernel
    /// does not tell, and for trials of earlier versions.
    #[serde(default)]
    pub interrupts_per_second: Option<f64>,
    /// What passed from step to step. Null when the counters could not be read, and for trials of earlier versions.
    #[serde(default)]
    pub series: Option<TrialSeries>,
    /// Buffers of the workload's sockets.
    pub socket_buffers: SocketBuffers,
    /// Where each offered packet ended.
    pub ledger: Ledger,
}

/// One run of one workload under one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Position in the study, from 1.
    pub sequence: u32,
    /// The block that the trial belongs to, from 1.
    pub block: u32,
    /// What the traffic was.
    pub workload: String,
    /// The setting that was asked for.
    pub setting: String,
    /// How it was carried out.
    #[serde(flatten)]
    pub validity: Validity,
    /// How often the setting was proven before traffic counted, until it was or attempts ran out: 1
    /// when the first proof held. Nothing is run again afterwards.
    pub proof_attempts: u32,
    /// What it met on its machine.
    pub findings: Findings,
    /// Warm-up, excluded from every figure.
    pub warmup: Warmup,
    /// Where everything ran.
    pub placement: Placement,
    /// What was measured. Null when the trial ended before there was anything.
    pub figures: Option<Box<TrialFigures>>,
}

impl Trial {
    /// The figures, if the trial takes part in the primary estimate and gave a result.
    pub fn result(&self) -> Option<&TrialFigures> {
        let counts = self.validity.is_kept() && self.validity.failure.is_none();
        self.figures.as_deref().filter(|_| counts)
    }

    /// Where each offered packet of a trial with a result ended, if the account closes.
    pub fn ledger(&self) -> Option<&Ledger> {
        let closes = self.validity.ledger_void.is_none();
        self.result()
            .filter(|_| closes)
            .map(|figures| &figures.ledger)
    }

    /// The share of the offered that was lost, if the account closes.
    pub fn loss_ratio(&self) -> Option<f64> {
        self.ledger().and(self.result()?.loss_ratio)
    }
}

/// Time between two readings, in seconds: the shortest of these with which a trial has at most [`STEPS_MAX`] steps.
const STEPS_SECONDS: [f64; 9] = [0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];

/// Steps of a trial at most, except of one that takes longer than so many of the longest.
pub const STEPS_MAX: u32 = 300;

/// So often a second the kernel ends its receive softirq with packets left in a storm. Each time it has handled
/// `net.core.netdev_budget` packets (300) or worked for `netdev_budget_usecs` (2 to 20 ms) without a pause.
const STORM_PER_SECOND: f64 = 25.0;

/// What one core did from step to step, as the kernel's clock tick saw it: in parts of 10 ms, so that of short steps
/// only the sum over several trials tells much. Work in step with the tick is misjudged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoreSeries {
    /// Number of the core.
    pub core: u32,
    /// Time in which it worked: all but idle and steal.
    pub busy_seconds: Vec<f64>,
    /// Of it, the time in interrupts: irq and softirq.
    pub interrupt_seconds: Vec<f64>,
}

/// What passed in a trial from step to step, by counters of the hosts' kernels.
///
/// Each list has a figure for each step. Both hosts are read at about the same time, each by its own clock. What a
/// trial counts from its beginning to its end is more exact than the sum of its steps: the last one ends when the
/// sender does, before what is on its way has arrived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialSeries {
    /// Time from reading to reading that was asked for.
    pub step_seconds: f64,
    /// When each step ended, by the receiver's clock, in seconds since both ends of the traffic ran.
    pub end_seconds: Vec<f64>,
    /// Frames that the sender's interfaces sent, and those that their driver dropped, which it counts separately.
    pub sent_frames: Vec<u64>,
    /// Bytes that the receiver's interfaces received: frames, from the Ethernet header to the end of the payload.
    pub received_bytes: Vec<u64>,
    /// Datagrams that programs on the receiver read; `rr`: requests. Null for TCP.
    pub read_datagrams: Option<Vec<u64>>,
    /// Frames that were lost between the sender's driver and the receiver's protocols, as far as interfaces count
    /// them. What both ends of a link count as dropped is taken once.
    pub dropped_frames: Vec<u64>,
    /// Datagrams that the receiver's sockets dropped. Null for TCP.
    pub dropped_datagrams: Option<Vec<u64>>,
    /// Polls of the NAPI instance that is studied. Null when they could not be counted.
    pub polls: Option<Vec<u64>>,
    /// The sender's and the receiver's cores. Empty in trials of earlier versions.
    #[serde(default)]
    pub cores: Vec<CoreSeries>,
    /// How often the studied machine's kernel ended its receive softirq with packets left, whatever they were
    /// (`time_squeeze` of all cores). Null in trials of earlier versions.
    #[serde(default)]
    pub cut_short_softirqs: Option<Vec<u64>>,
}

impl TrialSeries {
    /// The time between two readings of a trial that takes so long.
    pub fn step_seconds(trial_seconds: f64) -> f64 {
        let fits = |step: &&f64| trial_seconds / **step <= f64::from(STEPS_MAX);
        let fitting = STEPS_SECONDS.iter().find(fits);
        let longest = trial_seconds / f64::from(STEPS_MAX);
        fitting.copied().unwrap_or(longest)
    }

    /// The length of each step.
    pub fn lengths(&self) -> impl Iterator<Item = f64> {
        let begins = std::iter::once(0.0).chain(self.end_seconds.iter().copied());
        let ends = self.end_seconds.iter();
        ends.zip(begins).map(|(end, begin)| end - begin)
    }

    /// Counts of each step as counts a second, each with the middle of its step.
    pub fn rates<'a>(&'a self, counts: &'a [u64]) -> impl Iterator<Item = (f64, f64)> + 'a {
        let steps = self.lengths().zip(&self.end_seconds).zip(counts);
        steps.map(|((length, end), count)| (end - length / 2.0, *count as f64 / length.max(1e-9)))
    }

    /// What the receiver got in each step, in the unit of the workload: bytes of frames, or datagrams read.
    pub fn received(&self, unit: WorkUnit) -> Option<&[u64]> {
        match unit {
            WorkUnit::Bytes => Some(&self.received_bytes),
            WorkUnit::Datagrams | WorkUnit::Transactions => self.read_datagrams.as_deref(),
        }
    }

    /// Whether each step was a storm: packets came faster than the kernel took them, so that it ended its receive
    /// softirq with packets left 25 times a second or more. Empty where that was not read.
    pub fn storms(&self) -> Vec<bool> {
        let counts = self.cut_short_softirqs.as_deref().unwrap_or_default();
        let rates = self.rates(counts);
        rates.map(|(_, rate)| rate >= STORM_PER_SECOND).collect()
    }

    /// What was lost in each step: frames, and datagrams at sockets.
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
