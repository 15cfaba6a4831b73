//! When a trial does not count, and why.
//!
//! What must hold: a reason is a sentence that names the figure and its limit, and looks only at how
//! the trial was carried out, never at whether its result is liked.

use nicpoll_model::Ledger;

use crate::design::Evidence;

/// Share of the offered that no counter may leave unexplained.
pub const RESIDUAL_MAX: f64 = 0.001;
/// Share of a core's time that the hypervisor may take.
pub const STEAL_MAX: f64 = 0.05;
/// How far the rounds a second may be from one a period.
pub const RHYTHM_TOLERANCE: f64 = 0.1;
/// A wall clock that moves against the monotonic one by more than this in a trial was stepped: the
/// greatest slew is 500 ppm.
pub const CLOCK_STEP_MAX_NS: u64 = 5_000_000;

/// What decides whether a trial counts.
#[derive(Clone, Debug)]
pub struct Circumstances<'a> {
    /// What must be seen of the polls.
    pub evidence: Evidence,
    /// Why the drain did not finish; `None` when it did.
    pub undrained: Option<&'a str>,
    /// How far the wall clock moved against the monotonic one.
    pub clock_step_ns: u64,
    /// The greatest steal share of the cores in use.
    pub steal: f64,
    /// Number of NAPI instances that the receiver had.
    pub napis: usize,
    /// Polls and rounds a second.
    pub rhythm: (f64, f64),
    /// The first setting that is not what it was when the trial began.
    pub changed: Option<&'a str>,
    /// Where the packets went.
    pub ledger: &'a Ledger,
}

/// Why the trial is void; `None` when it counts.
pub fn void_reason(trial: &Circumstances<'_>) -> Option<String> {
    if let Some(reason) = trial.undrained {
        return Some(format!("the drain did not finish: {reason}"));
    }
    if trial.clock_step_ns > CLOCK_STEP_MAX_NS {
        return Some(format!(
            "the clock was stepped by {:.1} ms",
            trial.clock_step_ns as f64 / 1e6
        ));
    }
    if trial.steal > STEAL_MAX {
        return Some(format!(
            "the hypervisor took {:.1} % of a core, more than {:.0} %",
            100.0 * trial.steal,
            100.0 * STEAL_MAX
        ));
    }
    if let Some(reason) = unproven(trial) {
        return Some(reason);
    }
    if let Some(name) = trial.changed {
        return Some(format!("'{name}' changed during the trial"));
    }
    residual(trial.ledger)
}

/// The evidence that the setting was in force.
fn unproven(trial: &Circumstances<'_>) -> Option<String> {
    let (polls, rounds) = trial.rhythm;
    match trial.evidence {
        Evidence::NoNapi if trial.napis > 0 || polls > 0.0 => Some(format!(
            "the receiver has {} NAPI instances and {polls:.0} polls/s where it should have none",
            trial.napis
        )),
        Evidence::Polls if polls == 0.0 => Some(String::from(
            "the receiver's NAPI was never polled: packets went around it",
        )),
        Evidence::Rounds { period_ns } => {
            let expected = 1e9 / period_ns as f64;
            let deviation = rounds / expected - 1.0;
            (deviation.abs() > RHYTHM_TOLERANCE).then(|| {
                format!(
                    "{rounds:.0} rounds/s are {:.1} % from one a period ({expected:.0}/s), more than {:.0} %",
                    100.0 * deviation.abs(),
                    100.0 * RHYTHM_TOLERANCE
                )
            })
        }
        Evidence::NoNapi | Evidence::Polls => None,
    }
}

fn residual(ledger: &Ledger) -> Option<String> {
    let ratio = match ledger.residual_ratio() {
        Some(ratio) => ratio,
        None => return Some(String::from("nothing was offered")),
    };
    let residual = ledger.residual_packets.or(ledger.residual_bytes)?;
    let unit = if ledger.residual_packets.is_some() {
        "packets"
    } else {
        "bytes"
    };
    (ratio > RESIDUAL_MAX).then(|| {
        format!(
            "no counter explains {residual:+} {unit}, {:.2} % of the offered, more than {:.1} %",
            100.0 * ratio,
            100.0 * RESIDUAL_MAX
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicpoll_model::LedgerUnit;

    fn ledger(offered: u64, residual: i64) -> Ledger {
        Ledger {
            unit: LedgerUnit::Packets,
            offered,
            delivered: offered,
            lines: vec![],
            control: vec![],
            residual_packets: Some(residual),
            residual_bytes: None,
            cross_checks: vec![],
        }
    }

    fn reason(change: impl FnOnce(&mut Circumstances<'_>)) -> Option<String> {
        let ledger = ledger(1000, 1);
        let mut trial = Circumstances {
            evidence: Evidence::Rounds { period_ns: 200_000 },
            undrained: None,
            clock_step_ns: 0,
            steal: 0.0,
            napis: 1,
            rhythm: (9000.0, 4600.0),
            changed: None,
            ledger: &ledger,
        };
        change(&mut trial);
        void_reason(&trial)
    }

    #[test]
    fn a_trial_as_it_should_be_counts() {
        assert_eq!(reason(|_| ()), None);
        assert_eq!(reason(|trial| trial.evidence = Evidence::Polls), None);
    }

    #[test]
    fn each_rule_names_its_figure() {
        let says = |change: fn(&mut Circumstances<'_>), words: &str| {
            let reason = reason(change).expect(words);
            assert!(reason.contains(words), "{reason}");
        };
        says(
            |t| t.undrained = Some("no acknowledgement"),
            "no acknowledgement",
        );
        says(|t| t.clock_step_ns = 6_000_000, "6.0 ms");
        says(|t| t.steal = 0.06, "6.0 %");
        says(|t| t.rhythm = (9000.0, 4400.0), "12.0 %");
        says(|t| t.rhythm = (9000.0, 5600.0), "12.0 %");
        says(|t| t.changed = Some("sysfs mtu"), "sysfs mtu");
        says(
            |t| {
                t.evidence = Evidence::Polls;
                t.rhythm = (0.0, 0.0);
            },
            "never polled",
        );
        says(|t| t.evidence = Evidence::NoNapi, "should have none");
    }

    #[test]
    fn the_residual_may_be_a_thousandth_of_the_offered_either_way() {
        assert_eq!(residual(&ledger(1000, -1)), None);
        let reason = residual(&ledger(1000, -2)).unwrap();
        assert!(reason.contains("-2 packets, 0.20 %"), "{reason}");
        assert!(residual(&ledger(0, 0)).unwrap().contains("nothing"));
    }
}
