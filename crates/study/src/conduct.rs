//! How a run was carried out, and what follows for how it counts.
//!
//! What must hold: only what is known to come from outside takes a run out of its pairs. What its own
//! setting may have caused counts for that setting. A reason is a sentence that names the figure and
//! its limit, and looks only at how the run was carried out, never at whether its result is liked.

use nicpoll_model::{Conduct, Ledger};

use crate::design::Evidence;
use crate::host::Changes;

/// Share of the offered that no counter may leave unexplained.
pub const RESIDUAL_MAX: f64 = 0.001;
/// How far the rounds a second may be from one a period.
pub const RHYTHM_TOLERANCE: f64 = 0.1;
/// A wall clock that moves against the monotonic one by more than this in a trial was stepped: the
/// greatest slew is 500 ppm.
pub const CLOCK_STEP_MAX_NS: u64 = 5_000_000;

/// What decides how a run counts.
#[derive(Clone, Debug)]
pub struct Circumstances<'a> {
    /// What must be seen of the polls.
    pub evidence: Evidence,
    /// Why the drain did not finish; `None` when it did.
    pub undrained: Option<&'a str>,
    /// How far the wall clock moved against the monotonic one.
    pub clock_step_ns: u64,
    /// The receiver's NAPI instances when the run began, and when it ended.
    pub napis: [&'a [u32]; 2],
    /// Polls and rounds a second.
    pub rhythm: (f64, f64),
    /// The first setting that is not what it was when the run began.
    pub changed: Option<&'a str>,
    /// What the kernel told of changes meanwhile.
    pub changes: &'a Changes,
    /// Whether anything was delivered.
    pub is_delivered: bool,
    /// Where the packets went; `None` when no account was kept.
    pub ledger: Option<&'a Ledger>,
}

/// How a run counts.
pub fn conduct(run: &Circumstances<'_>) -> Conduct {
    Conduct {
        external: external(run),
        failure: failure(run),
        unproven: unproven(run.evidence, run.napis[0].len(), run.rhythm),
        ledger_void: ledger_void(run),
    }
}

fn external(run: &Circumstances<'_>) -> Option<String> {
    if run.clock_step_ns > CLOCK_STEP_MAX_NS {
        return Some(format!(
            "the clock was stepped by {:.1} ms",
            run.clock_step_ns as f64 / 1e6
        ));
    }
    disturbed(run.changes).or_else(|| {
        let name = run.changed?;
        Some(format!("another process changed '{name}' during the trial"))
    })
}

/// What the kernel told of that somebody else did.
pub fn disturbed(changes: &Changes) -> Option<String> {
    if changes.is_taken_down {
        return Some(String::from("somebody took the link down"));
    }
    let what = changes.others.first()?;
    Some(format!("another process changed {what} during the trial"))
}

fn failure(run: &Circumstances<'_>) -> Option<String> {
    let [before, after] = run.napis;
    if run.changes.has_lost_carrier {
        return Some(String::from("the link lost its carrier"));
    }
    if before != after {
        return Some(format!(
            "the receiver's NAPI was made anew: {before:?} became {after:?}"
        ));
    }
    (!run.is_delivered).then(|| String::from("nothing was delivered"))
}

/// Why a setting is not proven to be in force by what was seen of the receiver's NAPI instances and its
/// polls and rounds a second.
pub fn unproven(evidence: Evidence, napis: usize, (polls, rounds): (f64, f64)) -> Option<String> {
    match evidence {
        Evidence::NoNapi if napis > 0 || polls > 0.0 => Some(format!(
            "the receiver has {napis} NAPI instances and {polls:.0} polls/s where it should have none"
        )),
        Evidence::Polls if polls == 0.0 => Some(String::from(
            "the receiver's NAPI was never polled: packets went around it",
        )),
        Evidence::Rounds { period_ns } => {
            let deviation = rhythm_deviation(period_ns, rounds);
            (deviation.abs() > RHYTHM_TOLERANCE).then(|| {
                format!(
                    "{rounds:.0} rounds/s are {:.1} % from one a period ({:.0}/s), more than {:.0} %",
                    100.0 * deviation.abs(),
                    1e9 / period_ns as f64,
                    100.0 * RHYTHM_TOLERANCE
                )
            })
        }
        Evidence::AsItIs | Evidence::NoNapi | Evidence::Polls => None,
    }
}

/// How far rounds a second are from one a period, as a share of it.
pub fn rhythm_deviation(period_ns: u64, rounds_per_second: f64) -> f64 {
    rounds_per_second * period_ns as f64 / 1e9 - 1.0
}

fn ledger_void(run: &Circumstances<'_>) -> Option<String> {
    if let Some(reason) = run.undrained {
        return Some(format!("the account stays open: {reason}"));
    }
    residual(run.ledger?)
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

    fn ledger(offered: u64, residual: i64) -> Ledger {
        Ledger {
            offered_packets: Some(offered),
            delivered_packets: Some(offered),
            offered_bytes: None,
            delivered_bytes: None,
            duplicate_packets: None,
            lines: vec![],
            control: vec![],
            residual_packets: Some(residual),
            residual_bytes: None,
            cross_checks: vec![],
        }
    }

    fn of(change: impl FnOnce(&mut Circumstances<'_>)) -> Conduct {
        let ledger = ledger(1000, 1);
        let changes = Changes::default();
        let mut run = Circumstances {
            evidence: Evidence::Rounds { period_ns: 200_000 },
            undrained: None,
            clock_step_ns: 0,
            napis: [&[1], &[1]],
            rhythm: (9000.0, 4600.0),
            changed: None,
            changes: &changes,
            is_delivered: true,
            ledger: Some(&ledger),
        };
        change(&mut run);
        conduct(&run)
    }

    #[test]
    fn a_run_as_it_should_be_is_proven() {
        assert_eq!(of(|_| ()), Conduct::default());
        assert_eq!(of(|run| run.evidence = Evidence::Polls), Conduct::default());
    }

    #[test]
    fn only_what_comes_from_outside_takes_a_run_out() {
        let stepped = of(|run| run.clock_step_ns = 6_000_000);
        assert!(!stepped.is_kept());
        assert!(stepped.external.unwrap().contains("6.0 ms"));
        let changed = of(|run| run.changed = Some("sysfs mtu"));
        assert!(changed.external.unwrap().contains("sysfs mtu"));

        let down = Changes {
            is_taken_down: true,
            ..Changes::default()
        };
        let flapped = conduct(&Circumstances {
            evidence: Evidence::Polls,
            undrained: None,
            clock_step_ns: 0,
            napis: [&[1], &[2]],
            rhythm: (1.0, 1.0),
            changed: None,
            changes: &down,
            is_delivered: true,
            ledger: None,
        });
        assert!(flapped.external.unwrap().contains("took the link down"));

        let anew = of(|run| run.napis = [&[1], &[2]]);
        assert!(anew.is_kept());
        assert!(anew.failure.unwrap().contains("made anew"));
        let silent = of(|run| run.is_delivered = false);
        assert!(silent.is_kept() && !silent.is_proven());
        let undrained = of(|run| run.undrained = Some("no acknowledgement"));
        assert!(undrained.is_proven());
        assert!(
            undrained
                .ledger_void
                .unwrap()
                .contains("no acknowledgement")
        );
    }

    #[test]
    fn a_setting_without_evidence_is_unproven_and_kept() {
        let says = |change: fn(&mut Circumstances<'_>), words: &str| {
            let conduct = of(change);
            assert!(conduct.is_kept() && !conduct.is_proven());
            let reason = conduct.unproven.expect(words);
            assert!(reason.contains(words), "{reason}");
        };
        says(|run| run.rhythm = (9000.0, 4400.0), "12.0 %");
        says(|run| run.rhythm = (9000.0, 5600.0), "12.0 %");
        says(
            |run| {
                run.evidence = Evidence::Polls;
                run.rhythm = (0.0, 0.0);
            },
            "never polled",
        );
        says(|run| run.evidence = Evidence::NoNapi, "should have none");
    }

    #[test]
    fn the_residual_may_be_a_thousandth_of_the_offered_either_way() {
        assert_eq!(residual(&ledger(1000, -1)), None);
        let reason = residual(&ledger(1000, -2)).unwrap();
        assert!(reason.contains("-2 packets, 0.20 %"), "{reason}");
        assert!(residual(&ledger(0, 0)).unwrap().contains("nothing"));
    }
}
