//! CPU time: the states of a core, the test of the exact account (`doctor --cpu-truth`), and the simulated error of
//! tick sampling (`sim ticks`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::named;

named! {
    /// How CPU time was measured.
    #[derive(Default)]
    #[serde(rename_all = "snake_case")]
    pub enum CpuSource {
        /// Every thread switch and interrupt was an event counted by BPF: exact to the event.
        #[default]
        Exact = "exact",
        /// `/proc/stat`. Kernels without interrupt time accounting sample the state at each clock tick, so work in step
        /// with the tick is misjudged, timer polling most of all. Where a total is named, it is the time that was not
        /// idle, which kernels that stop the tick while they idle (`CONFIG_NO_HZ`) know by the clock.
        TickSampled = "tick-sampled",
    }
}

/// Shares of one core's time during a window, each 0 to 1.
///
/// Sampled shares add up to 1. Exact shares add up to 1 without `steal`: no event shows steal time, so it is taken from
/// `/proc/stat` and lies within the others. In JSON each name ends in `_ratio`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuStates {
    /// Number of the core.
    pub core: u32,
    /// User programs at normal priority.
    pub user_ratio: f64,
    /// User programs at lowered priority.
    pub nice_ratio: f64,
    /// The kernel on behalf of programs.
    pub system_ratio: f64,
    /// Hard interrupts.
    pub irq_ratio: f64,
    /// Soft interrupts: where NAPI polls and protocol processing run.
    pub softirq_ratio: f64,
    /// Idle, waiting for disks included.
    pub idle_ratio: f64,
    /// Taken by the hypervisor for other guests.
    pub steal_ratio: f64,
}

impl CpuStates {
    /// Share of time in which the core was busy: all but idle and steal.
    pub fn busy(&self) -> f64 {
        self.user_ratio + self.nice_ratio + self.system_ratio + self.irq_ratio + self.softirq_ratio
    }
}

/// Time of one core by state, exact to the event. Steal time, which no event shows, lies within the states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CoreStateTimes {
    /// Number of the core.
    pub core: u32,
    /// User programs at normal priority.
    pub user_ns: u64,
    /// User programs at lowered priority.
    pub nice_ns: u64,
    /// The kernel on behalf of programs, and its own threads.
    pub system_ns: u64,
    /// Hard interrupts.
    pub irq_ns: u64,
    /// Soft interrupts: where NAPI polls and protocol processing run.
    pub softirq_ns: u64,
    /// Idle.
    pub idle_ns: u64,
}

impl CoreStateTimes {
    /// Returns each state's name and time.
    pub fn states(self) -> [(&'static str, u64); 6] {
        [
            ("user", self.user_ns),
            ("nice", self.nice_ns),
            ("system", self.system_ns),
            ("irq", self.irq_ns),
            ("softirq", self.softirq_ns),
            ("idle", self.idle_ns),
        ]
    }

    /// Returns the greater time of each state: totals never fall.
    pub fn not_below(self, earlier: CoreStateTimes) -> CoreStateTimes {
        CoreStateTimes {
            core: self.core,
            user_ns: self.user_ns.max(earlier.user_ns),
            nice_ns: self.nice_ns.max(earlier.nice_ns),
            system_ns: self.system_ns.max(earlier.system_ns),
            irq_ns: self.irq_ns.max(earlier.irq_ns),
            softirq_ns: self.softirq_ns.max(earlier.softirq_ns),
            idle_ns: self.idle_ns.max(earlier.idle_ns),
        }
    }
}

/// Name and version of the JSON of [`CpuTruth`].
pub const CPU_TRUTH_SCHEMA: &str = "nicpoll.cpu-truth/1";

/// Tolerated error of the exact account, in percentage points of a core.
pub const EXACT_POINTS_MAX: f64 = 1.0;
/// Error in percentage points of a core from which on `/proc/stat` counts as wrong.
pub const TICK_SAMPLED_POINTS_MIN: f64 = 10.0;

/// The load at one phase of the clock tick. Shares are of one core's time, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TruthPhase {
    /// Start of the pulses within the tick's period.
    pub phase_ns: u64,
    /// How long the load ran.
    pub wall_ns: u64,
    /// Busy share measured by the load itself, which reads the clock all the time.
    pub own_ratio: f64,
    /// The load's thread in user mode, where it works, by the exact account.
    pub exact_ratio: f64,
    /// The load's thread in the kernel, where it sleeps and wakes up, by the exact account.
    pub exact_system_ratio: f64,
    /// The whole core except idle, by the exact account.
    pub exact_core_ratio: f64,
    /// The whole core except idle, by `/proc/stat`.
    pub tick_sampled_core_ratio: f64,
    /// Taken by the hypervisor, by `/proc/stat`.
    pub steal_ratio: f64,
    /// Greatest share of wall time by which a core's states miss their sum.
    pub residual_ratio: f64,
    /// The busiest other core except idle, by the exact account; 0 without one, and in output of earlier versions.
    #[serde(default)]
    pub elsewhere_ratio: f64,
}

impl TruthPhase {
    /// Share of the core used by everything but the load, interrupts included.
    pub fn others_ratio(&self) -> f64 {
        self.exact_core_ratio - self.exact_ratio - self.exact_system_ratio
    }

    /// Error of the exact account of the load against the load's own measure, in percentage points of the core.
    pub fn exact_error_points(&self) -> f64 {
        100.0 * (self.exact_ratio - self.own_ratio)
    }

    /// Error of `/proc/stat` in percentage points: distance from the range of possible busy time, which begins at the
    /// load's own measure and ends at that plus everything else that ran on the core. 0 within the range.
    pub fn tick_sampled_error_points(&self) -> f64 {
        let else_ran = (self.exact_core_ratio - self.exact_ratio).max(0.0);
        let (low, high) = (self.own_ratio, self.own_ratio + else_ran);
        let sampled = self.tick_sampled_core_ratio;
        100.0 * (sampled - sampled.clamp(low, high))
    }
}

/// Whether the exact account is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TruthVerdict {
    /// The exact account was right at every phase, and `/proc/stat` was wrong at one.
    Holds,
    /// The machine was too disturbed to conclude anything.
    Inconclusive,
    /// The exact account was wrong.
    Fails,
}

/// Cost of BPF programs that count events.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventCost {
    /// Mean run time per event, by the kernel's BPF statistics.
    pub ns_per_event: f64,
    /// Events per second on the whole machine during that measurement.
    pub events_per_second: f64,
}

/// CPU time in one bin of a pulse's period, summed over all CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FoldBin {
    /// Start of the bin within the period.
    pub phase_ns: u64,
    /// The load in user mode.
    pub user_ns: u64,
    /// The load in system calls.
    pub system_ns: u64,
    /// Hard interrupts, whichever thread they interrupted.
    pub irq_ns: u64,
    /// Soft interrupts, whichever thread they interrupted.
    pub softirq_ns: u64,
}

impl FoldBin {
    /// System calls, hard and soft interrupts.
    pub fn kernel_ns(&self) -> u64 {
        self.system_ns + self.irq_ns + self.softirq_ns
    }
}

/// Pulses of datagrams over loopback, folded by the phase of their period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FoldedPulses {
    /// Time from pulse to pulse.
    pub period_ns: u64,
    /// Pulses sent.
    pub pulses: u64,
    /// Datagrams per pulse.
    pub datagrams_per_pulse: u32,
    /// The bins of the period, in order.
    pub bins: Vec<FoldBin>,
}

impl FoldedPulses {
    /// Returns the start of the bin with the most time of a kind; `None` if there is no such time.
    pub fn peak_phase_ns(&self, read: impl Fn(&FoldBin) -> u64) -> Option<u64> {
        let peak = self.bins.iter().map(&read).max().filter(|&ns| ns > 0)?;
        let bin = self.bins.iter().find(|bin| read(bin) == peak)?;
        Some(bin.phase_ns)
    }
}

/// Everything that `nicpoll doctor --cpu-truth --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuTruth {
    /// Name and version of this layout: [`CPU_TRUTH_SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// The core that the load ran on.
    pub core: u32,
    /// Length of the kernel's clock tick, which is the period of the pulses.
    pub tick_ns: u64,
    /// Length of a pulse.
    pub pulse_ns: u64,
    /// The load at each phase, of the latest try.
    pub phases: Vec<TruthPhase>,
    /// Runs of all phases: repeated while inconclusive.
    pub tries: u32,
    /// Cost of the exact account.
    pub cost: Option<EventCost>,
    /// CPU time by phase of a pulse; null unless requested.
    pub fold: Option<FoldedPulses>,
    /// The verdict.
    pub verdict: TruthVerdict,
    /// The verdict's reason.
    pub reason: String,
}

/// Name and version of the JSON of [`SimTicks`].
pub const SIM_TICKS_SCHEMA: &str = "nicpoll.sim-ticks/2";

/// Simulated pulses of work, sampled by a clock tick.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimTicks {
    /// Name and version of this layout: [`SIM_TICKS_SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// Time from pulse to pulse, by the pulses' clock.
    pub pulse_seconds: f64,
    /// Lag of the pulses' clock behind the ticks' clock, in parts per million.
    pub drift_ppm: f64,
    /// Ticks per second.
    pub ticks_per_second: u32,
    /// Work of each pulse, as shares of the pulse's period.
    pub load: TickShares,
    /// Length of each reading.
    pub reading_seconds: f64,
    /// Computed period of the sampled figure: the greatest common divisor of pulse and tick, over the drift. Null
    /// without drift.
    pub period_seconds: Option<f64>,
    /// The same period found in the readings by autocorrelation, to within one reading; null when they show none.
    pub period_found_seconds: Option<f64>,
    /// The whole time as one reading.
    pub whole: TickReading,
    /// Greatest error of the sampled figures of a single reading.
    pub reading_error_max_ratio: f64,
    /// Greatest distance of a single reading's exact figures from the load.
    pub exact_error_max_ratio: f64,
    /// The readings, in order of time.
    pub readings: Vec<TickReading>,
}

/// The processor's work during one reading.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TickReading {
    /// End of the reading, from the first tick.
    pub end_seconds: f64,
    /// Its true work.
    pub exact: TickShares,
    /// Its work as sampled by the ticks.
    pub sampled: TickShares,
}

/// Shares of the processor's time, each 0 to 1. The rest is idle.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TickShares {
    /// The kernel's work, first in each pulse.
    pub kernel_ratio: f64,
    /// The program's work, after the kernel's.
    pub user_ratio: f64,
}

impl TickShares {
    /// Returns the greater difference of the two shares.
    pub fn distance(&self, other: &TickShares) -> f64 {
        let kernel = (self.kernel_ratio - other.kernel_ratio).abs();
        kernel.max((self.user_ratio - other.user_ratio).abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(exact_core_ratio: f64, tick_sampled_core_ratio: f64) -> TruthPhase {
        TruthPhase {
            phase_ns: 0,
            wall_ns: 1_000_000_000,
            own_ratio: 0.25,
            exact_ratio: 0.255,
            exact_system_ratio: 0.0,
            exact_core_ratio,
            tick_sampled_core_ratio,
            steal_ratio: 0.0,
            residual_ratio: 0.0,
            elsewhere_ratio: 0.0,
        }
    }

    #[test]
    fn proc_stat_is_wrong_only_beyond_what_others_can_have_used() {
        let near = |points: f64, expected: f64| (points - expected).abs() < 1e-9;
        assert!(near(phase(0.255, 0.25).exact_error_points(), 0.5));
        assert!(near(phase(0.255, 0.0).tick_sampled_error_points(), -25.0));
        assert!(near(phase(0.255, 0.57).tick_sampled_error_points(), 32.0));
        // Others used 40 points, so 57 % may be right.
        assert!(near(phase(0.655, 0.57).tick_sampled_error_points(), 0.0));
        assert!(near(phase(0.655, 0.95).tick_sampled_error_points(), 30.0));
    }

    #[test]
    fn a_peak_is_the_first_of_the_highest_bins() {
        let bin = |phase_ns, user_ns, softirq_ns| FoldBin {
            phase_ns,
            user_ns,
            system_ns: 1,
            irq_ns: 0,
            softirq_ns,
        };
        let fold = FoldedPulses {
            period_ns: 40,
            pulses: 1,
            datagrams_per_pulse: 1,
            bins: vec![bin(0, 0, 5), bin(10, 7, 9), bin(20, 8, 2), bin(30, 8, 0)],
        };
        assert_eq!(fold.peak_phase_ns(FoldBin::kernel_ns), Some(10));
        assert_eq!(fold.peak_phase_ns(|bin| bin.user_ns), Some(20));
        let idle = FoldedPulses {
            bins: vec![],
            ..fold
        };
        assert_eq!(idle.peak_phase_ns(|bin| bin.user_ns), None);
    }
}
