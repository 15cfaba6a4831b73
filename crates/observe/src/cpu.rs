//! CPU time by core and state, from `/proc/stat`: sampled at the kernel's clock tick.

use std::fs;
use std::io;

use nicpoll_model::CpuStates;
use serde::{Deserialize, Serialize};

use crate::proc_files::{CoreTicks, ProcStat, parse_stat};

/// `USER_HZ`: ticks a second in which `/proc/stat` counts, fixed by the kernel's ABI on every
/// architecture that nicpoll runs on.
pub const TICKS_PER_SECOND: f64 = 100.0;

/// Every core's account at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuSample(ProcStat);

/// What happened between two samples.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuDelta {
    /// Shares by core, in the order of the cores that were asked for.
    pub states: Vec<CpuStates>,
    /// Busy seconds of those cores together.
    pub busy_seconds: f64,
    /// Context switches of the whole machine.
    pub context_switches: u64,
    /// Interrupts of the whole machine; `None` where the kernel does not tell.
    pub interrupts: Option<u64>,
}

impl CpuSample {
    /// Reads the account now.
    pub fn now() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/stat")?;
        Ok(CpuSample(parse_stat(&text).map_err(io::Error::other)?))
    }

    /// Numbers of the cores that were online.
    pub fn cores(&self) -> Vec<u32> {
        self.0.cores.iter().map(|ticks| ticks.core).collect()
    }

    /// What `cores` did since `earlier`. A core that is missing from either sample is left out.
    pub fn since(&self, earlier: &CpuSample, cores: &[u32]) -> CpuDelta {
        let mut delta = CpuDelta {
            states: Vec::new(),
            busy_seconds: 0.0,
            context_switches: self
                .0
                .context_switches
                .saturating_sub(earlier.0.context_switches),
            interrupts: self
                .0
                .interrupts
                .zip(earlier.0.interrupts)
                .map(|(now, then)| now.saturating_sub(then)),
        };
        let find = |sample: &ProcStat, core| {
            sample
                .cores
                .iter()
                .find(|ticks| ticks.core == core)
                .copied()
        };
        for &core in cores {
            if let (Some(before), Some(after)) = (find(&earlier.0, core), find(&self.0, core)) {
                let ticks = ticks_between(before, after);
                delta.states.push(shares(ticks));
                delta.busy_seconds += ticks.busy() as f64 / TICKS_PER_SECOND;
            }
        }
        delta
    }
}

/// The kernel's idle and iowait counts can step back a little, hence saturating.
fn ticks_between(before: CoreTicks, after: CoreTicks) -> CoreTicks {
    CoreTicks {
        core: after.core,
        user: after.user.saturating_sub(before.user),
        nice: after.nice.saturating_sub(before.nice),
        system: after.system.saturating_sub(before.system),
        idle: after.idle.saturating_sub(before.idle),
        irq: after.irq.saturating_sub(before.irq),
        softirq: after.softirq.saturating_sub(before.softirq),
        steal: after.steal.saturating_sub(before.steal),
    }
}

fn shares(ticks: CoreTicks) -> CpuStates {
    let total = ticks.user
        + ticks.nice
        + ticks.system
        + ticks.idle
        + ticks.irq
        + ticks.softirq
        + ticks.steal;
    let share = |part: u64| {
        if total == 0 {
            0.0
        } else {
            part as f64 / total as f64
        }
    };
    CpuStates {
        core: ticks.core,
        user: share(ticks.user),
        nice: share(ticks.nice),
        system: share(ticks.system),
        irq: share(ticks.irq),
        softirq: share(ticks.softirq),
        idle: share(ticks.idle),
        steal: share(ticks.steal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(text: &str) -> CpuSample {
        CpuSample(parse_stat(text).unwrap())
    }

    #[test]
    fn shares_are_of_the_time_between_the_samples() {
        let before = sample("cpu0 100 0 100 1000 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0\nintr 7\nctxt 50\n");
        let after =
            sample("cpu0 110 0 120 1050 10 0 10 0\ncpu1 0 0 0 0 0 0 0 0\nintr 9 1\nctxt 150\n");
        let delta = after.since(&before, &[0]);
        assert_eq!(delta.context_switches, 100);
        assert_eq!(delta.interrupts, Some(2));
        assert_eq!(delta.busy_seconds, 0.4);
        let states = delta.states[0];
        assert_eq!(
            (states.user, states.system, states.softirq),
            (0.1, 0.2, 0.1)
        );
        assert_eq!(states.idle, 0.6);
        assert!((states.busy() - 0.4).abs() < 1e-12);
    }

    #[test]
    fn a_core_that_went_away_is_left_out() {
        let before = sample("cpu0 0 0 0 0 0 0 0 0\nctxt 0\n");
        assert!(before.since(&before, &[7]).states.is_empty());
        assert_eq!(before.cores(), [0]);
    }

    #[test]
    fn this_machine_is_read() {
        assert!(!CpuSample::now().unwrap().0.cores.is_empty());
    }
}
