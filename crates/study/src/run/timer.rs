//! Applies settings, and finds the kernel timeout that gives one round a period.
//!
//! The kernel restarts `gro_flush_timeout` when a round ends (napi_complete_done), so the time from round to round is that
//! timeout plus the timer's latency plus the round itself: 270 us at 350,000 packets/s with a timeout of 200 us. FreeBSD's
//! tick does not stretch under load. During warm-up the timeout is therefore shortened, under the workload's own traffic,
//! until the measured time from round to round is the requested period. It stays fixed during the measured window and never
//! exceeds the period.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_lab::{HostRequest, Lab, LabError, Polls};
use nicpoll_model::Calibration;
use nicpoll_switch::DEFER_HARD_IRQS_MAX;

use crate::design::{NamedSetting, NamedWorkload};
use crate::plan::durations::CALIBRATION_ROUNDS;

/// Applies a setting at every host that it concerns, the sender first: its packets must suit the receiver's NAPI. May
/// be called again to change the timeout.
pub fn apply(
    lab: &mut Lab,
    setting: &NamedSetting,
    timeout_ns: Option<u64>,
) -> Result<(), LabError> {
    lab.give_cpus(setting.cpus);
    for host in lab.hosts() {
        if let Some(request) = setting.request(host.role(), timeout_ns) {
            host.tell(HostRequest::Apply(request))?;
        }
        if let Some(program) = setting.xdp.get(host.role()) {
            host.tell(HostRequest::AttachXdp(program.clone()))?;
        }
    }
    if let Some(engine) = &setting.engine {
        let (engine, cpu) = (engine.clone(), lab.receiver_cpu);
        lab.receiver.tell(HostRequest::ReceiveBy { engine, cpu })?;
    }
    Ok(())
}

/// Runs the commands of a setting and of the traffic under it, the setting's first. Restoring the lab runs those that undo
/// them.
pub fn begin_commands(
    lab: &mut Lab,
    workload: &NamedWorkload,
    setting: &NamedSetting,
    cancel: &AtomicBool,
) -> Result<(), LabError> {
    let of_workload = workload.under(setting).commands;
    lab.begin_commands(&setting.commands.around(&of_workload), cancel)
}

/// The timeout is at least this fraction of the period (1/20): a longer round cannot be compensated.
const TIMEOUT_FRACTION_MIN: u64 = 20;

/// Deviation below which the timeout is not changed.
const GOOD_ENOUGH: f64 = 0.01;

/// Time for the traffic to reach its rate.
const RAMP_UP: Duration = Duration::from_millis(20);

/// Minimum length of a step: a shorter one would measure the noise of single rounds.
const STEP_MIN: Duration = Duration::from_millis(30);

/// Gain of the first step. A shorter timeout also shortens the round (2.3 times as much under TCP), so a gain of 1
/// would overshoot.
const FIRST_GAIN: f64 = 0.7;

/// Minimum gain of later steps. Single steps scatter by a tenth under TCP; decreasing gains average over them.
const LAST_GAIN: f64 = 0.04;

/// Gain after a measured window, which is much longer than a step.
const WINDOW_GAIN: f64 = 0.3;

/// The timeout found by earlier trials of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimerMemory {
    timeout_ns: Option<u64>,
    steps: u32,
}

impl TimerMemory {
    /// Returns the timeout to begin with.
    pub fn timeout_ns(&self, period_ns: u64) -> u64 {
        self.timeout_ns.unwrap_or(period_ns)
    }

    /// Learns from a step of the warm-up: `timeout_ns` gave rounds `gap_ns` apart. Returns the next
    /// timeout.
    fn learn_from_step(&mut self, timeout_ns: u64, gap_ns: u64, period_ns: u64) -> u64 {
        self.steps += 1;
        let gain = (FIRST_GAIN / f64::from(self.steps)).max(LAST_GAIN);
        let next = next_timeout_ns(timeout_ns, gap_ns, period_ns, gain);
        self.timeout_ns = Some(next);
        next
    }

    /// Learns from a measured window, for the next trial.
    pub fn learn_from_window(&mut self, timeout_ns: u64, gap_ns: u64, period_ns: u64) {
        self.timeout_ns = Some(next_timeout_ns(timeout_ns, gap_ns, period_ns, WINDOW_GAIN));
    }
}

/// Adjusts the timeout until `deadline`, starting from that of `memory`, which is in force.
pub fn calibrate(
    lab: &mut Lab,
    setting: &NamedSetting,
    period_ns: u64,
    memory: &mut TimerMemory,
    deadline: Instant,
) -> Result<Calibration, LabError> {
    let mut calibration = Calibration {
        period_ns,
        gro_flush_timeout_ns: memory.timeout_ns(period_ns),
        defer_hard_irqs: DEFER_HARD_IRQS_MAX,
        steps_ns: Vec::new(),
    };
    let step = STEP_MIN.max(Duration::from_nanos(period_ns) * CALIBRATION_ROUNDS);
    thread::sleep(RAMP_UP);
    while Instant::now() + step < deadline {
        let before = lab.studied().polls()?;
        thread::sleep(step);
        let Some(gap_ns) = gap_ns(&before, &lab.studied().polls()?) else {
            continue;
        };
        calibration.steps_ns.push(gap_ns);
        let next = memory.learn_from_step(calibration.gro_flush_timeout_ns, gap_ns, period_ns);
        if next != calibration.gro_flush_timeout_ns {
            apply(lab, setting, Some(next))?;
            calibration.gro_flush_timeout_ns = next;
        }
    }
    Ok(calibration)
}

/// Mean time from round to round between two readings; `None` without rounds.
pub fn gap_ns(before: &Polls, after: &Polls) -> Option<u64> {
    let rounds = after.since(before)?.rounds;
    (after.at_ns - before.at_ns).checked_div(rounds)
}

fn next_timeout_ns(timeout_ns: u64, gap_ns: u64, period_ns: u64, gain: f64) -> u64 {
    let deviation = gap_ns as f64 - period_ns as f64;
    if deviation.abs() <= GOOD_ENOUGH * period_ns as f64 {
        return timeout_ns;
    }
    let next = timeout_ns as f64 - gain * deviation;
    (next.max(0.0) as u64).clamp(period_ns / TIMEOUT_FRACTION_MIN, period_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Models the kernel's rounds: the timeout, a latency, and a share of the gap for the packets that arrived in it.
    fn gap_under_load_ns(timeout_ns: u64, latency_ns: u64, load: f64) -> u64 {
        ((timeout_ns + latency_ns) as f64 / (1.0 - load)) as u64
    }

    #[test]
    fn the_timeout_converges_on_the_period_under_any_load_that_leaves_room() {
        for load in [0.0, 0.1, 0.3, 0.5, 0.7] {
            let period_ns = 200_000;
            let mut memory = TimerMemory::default();
            let mut timeout_ns = memory.timeout_ns(period_ns);
            for _ in 0..30 {
                let gap_ns = gap_under_load_ns(timeout_ns, 20_000, load);
                timeout_ns = memory.learn_from_step(timeout_ns, gap_ns, period_ns);
            }
            let gap = gap_under_load_ns(timeout_ns, 20_000, load) as f64;
            assert!((gap / 200_000.0 - 1.0).abs() < 0.03, "load {load}: {gap}");
        }
    }

    #[test]
    fn the_first_step_makes_up_for_most_and_later_ones_average() {
        let mut memory = TimerMemory::default();
        assert_eq!(memory.learn_from_step(200_000, 300_000, 200_000), 130_000);
        assert_eq!(memory.timeout_ns(200_000), 130_000);
        for _ in 0..20 {
            memory.learn_from_step(130_000, 200_000, 200_000);
        }
        assert_eq!(memory.learn_from_step(130_000, 220_000, 200_000), 129_200);
        memory.learn_from_window(129_200, 220_000, 200_000);
        assert_eq!(memory.timeout_ns(200_000), 123_200);
    }

    #[test]
    fn the_timeout_stays_within_the_period() {
        assert_eq!(next_timeout_ns(100_000, 10_000_000, 200_000, 0.7), 10_000);
        assert_eq!(next_timeout_ns(190_000, 50_000, 200_000, 0.7), 200_000);
        assert_eq!(next_timeout_ns(123_000, 200_500, 200_000, 0.7), 123_000);
    }
}
