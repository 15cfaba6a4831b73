//! Finds the kernel timeout that gives one round a period.
//!
//! The kernel starts `gro_flush_timeout` anew when a round ends (napi_complete_done), so the time from
//! round to round is that timeout, plus the timer's latency, plus the round itself: at 350,000
//! packets/s and a timeout of 200 us, 270 us. FreeBSD's tick, which `polling` stands for, does not
//! stretch under load. So during warm-up, under the workload's own traffic, the timeout is shortened
//! until the measured time from round to round is the period that was asked for.
//!
//! What must hold: the timeout stands still during the measured window, and never exceeds the period.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use nicpoll_model::Calibration;
use nicpoll_napi::DEFER_HARD_IRQS_MAX;

use crate::lab::Lab;
use crate::plan::CALIBRATION_ROUNDS;
use crate::setting;

/// Part of the period that the timeout keeps at the least: a round that takes longer than the rest
/// cannot be made up for.
const TIMEOUT_FRACTION_MIN: u64 = 20;
/// Below this deviation the timeout is left alone.
const GOOD_ENOUGH: f64 = 0.01;
/// Time for the traffic to come to speed.
const RAMP_UP: Duration = Duration::from_millis(20);
/// A shorter look would see the noise of single rounds.
const STEP_MIN: Duration = Duration::from_millis(30);
/// A shorter timeout makes a shorter round too, so the whole deviation would be too much.
const GAIN: f64 = 0.7;

/// Adjusts the timeout of the receiver's NAPI until `deadline`, starting from `start_timeout_ns`, which
/// is in force.
pub fn calibrate(
    lab: &Lab,
    napi_id: u32,
    period_ns: u64,
    start_timeout_ns: u64,
    deadline: Instant,
) -> Result<Calibration> {
    let mut calibration = Calibration {
        period_ns,
        gro_flush_timeout_ns: start_timeout_ns,
        defer_hard_irqs: DEFER_HARD_IRQS_MAX,
        steps_ns: Vec::new(),
    };
    let step = STEP_MIN.max(Duration::from_nanos(period_ns) * CALIBRATION_ROUNDS);
    thread::sleep(RAMP_UP);
    while Instant::now() + step < deadline {
        let (before, from) = (lab.polls.read()?.rounds, Instant::now());
        thread::sleep(step);
        let rounds = lab.polls.read()?.rounds - before;
        if rounds == 0 {
            continue;
        }
        let gap_ns = from.elapsed().as_nanos() as u64 / rounds;
        calibration.steps_ns.push(gap_ns);
        let next = next_timeout_ns(calibration.gro_flush_timeout_ns, gap_ns, period_ns);
        if next != calibration.gro_flush_timeout_ns {
            setting::set_timeout(lab, napi_id, next)?;
            calibration.gro_flush_timeout_ns = next;
        }
    }
    Ok(calibration)
}

fn next_timeout_ns(timeout_ns: u64, gap_ns: u64, period_ns: u64) -> u64 {
    let deviation = gap_ns as f64 - period_ns as f64;
    if deviation.abs() <= GOOD_ENOUGH * period_ns as f64 {
        return timeout_ns;
    }
    let next = timeout_ns as f64 - GAIN * deviation;
    (next.max(0.0) as u64).clamp(period_ns / TIMEOUT_FRACTION_MIN, period_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds as the kernel makes them: the timeout, a latency, and a share of the time between for
    /// the packets that arrived meanwhile.
    fn gap_ns(timeout_ns: u64, latency_ns: u64, load: f64) -> u64 {
        ((timeout_ns + latency_ns) as f64 / (1.0 - load)) as u64
    }

    #[test]
    fn the_timeout_converges_on_the_period_under_any_load_that_leaves_room() {
        for load in [0.0, 0.1, 0.3, 0.5, 0.7] {
            let period_ns = 200_000;
            let mut timeout_ns = period_ns;
            for _ in 0..12 {
                timeout_ns =
                    next_timeout_ns(timeout_ns, gap_ns(timeout_ns, 20_000, load), period_ns);
            }
            let gap = gap_ns(timeout_ns, 20_000, load) as f64;
            assert!((gap / 200_000.0 - 1.0).abs() < 0.03, "load {load}: {gap}");
        }
    }

    #[test]
    fn the_timeout_stays_within_the_period() {
        assert_eq!(next_timeout_ns(100_000, 10_000_000, 200_000), 10_000);
        assert_eq!(next_timeout_ns(190_000, 50_000, 200_000), 200_000);
        assert_eq!(next_timeout_ns(123_000, 200_500, 200_000), 123_000);
    }
}
