//! Which verdicts make a command fail, so that a script or a CI job can stop at a regression.
//!
//! A verdict fails only by what is proven: the whole interval is beyond the limit. What is not proven passes. A comparison
//! without an interval does not: a gate without information stays shut.

use std::str::FromStr;

use nicpoll_lab::Refused;
use nicpoll_model::{Compared, MetricKind, Study, Verdict};

/// What must not be proven: `worse`, `worse:5%`, `different`, `different:5%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailOn {
    /// Whether better is as wrong as worse.
    is_either_way: bool,
    /// From which share on: 0.05 is 5 %.
    from: f64,
}

/// What a gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Nothing that was forbidden is proven.
    Open,
    /// It is.
    Shut,
    /// A comparison has no interval, so that nothing can be said.
    Blind,
}

impl FromStr for FailOn {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Self, Refused> {
        let wrong = || {
            Refused(format!(
                "'{text}' is no limit: give 'worse', 'different', or either with a share of more than 0 and less than \
                 100 %, as in worse:5%"
            ))
        };
        let (word, share) = match text.split_once(':') {
            Some((word, share)) => (word, Some(share)),
            None => (text, None),
        };
        let is_either_way = match word {
            "worse" => false,
            "different" => true,
            _ => return Err(wrong()),
        };
        let from = match share {
            None => 0.0,
            Some(share) => {
                let number = share
                    .strip_suffix('%')
                    .and_then(|it| it.parse::<f64>().ok());
                let number = number.filter(|it| 0.0 < *it && *it < 100.0);
                number.ok_or_else(wrong)? / 100.0
            }
        };
        Ok(FailOn {
            is_either_way,
            from,
        })
    }
}

/// A verdict with its interval of ratios, and whether more is better.
type Judged = (Verdict, [Option<f64>; 2], bool);

impl FailOn {
    /// What the verdicts of a study come to.
    pub fn of_study(&self, study: &Study) -> Gate {
        let primary = study.comparisons.iter().filter(|one| one.primary);
        self.of(primary.map(|one| {
            let verdict = one.verdict.unwrap_or(Verdict::Inconclusive);
            let of_points = [one.share_difference_low, one.share_difference_high];
            let ends = match one.kind {
                MetricKind::Ratio => [one.ratio_low, one.ratio_high],
                // 5 points are taken like 5 %.
                MetricKind::Points => of_points.map(|end| end.map(|end| 1.0 + end)),
            };
            (verdict, ends, one.metric.more_is_better())
        }))
    }

    /// What the verdicts on results come to.
    pub fn of_results(&self, compared: &Compared) -> Gate {
        let sets = compared.comparisons.iter();
        self.of(sets.map(|one| {
            let ends = [one.interval.low, one.interval.high];
            (one.verdict, ends, one.more_is_better)
        }))
    }

    fn of(&self, judged: impl Iterator<Item = Judged>) -> Gate {
        let all: Vec<Judged> = judged.collect();
        if all.iter().any(|one| self.is_met(*one)) {
            Gate::Shut
        } else if all.is_empty() || all.iter().any(|one| one.0 == Verdict::Inconclusive) {
            Gate::Blind
        } else {
            Gate::Open
        }
    }

    fn is_met(&self, (verdict, [low, high], more_is_better): Judged) -> bool {
        let limit = 1.0 + self.from;
        let [low, high] = match more_is_better {
            true => [low, high],
            false => [high, low].map(|end| end.map(f64::recip)),
        };
        match verdict {
            Verdict::Worse | Verdict::WorseAndItMatters => {
                high.is_some_and(|high| high <= 1.0 / limit)
            }
            Verdict::Better | Verdict::BetterAndItMatters => {
                self.is_either_way && low.is_some_and(|low| low >= limit)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(limit: &str, verdict: Verdict, low: f64, high: f64) -> Gate {
        let limit: FailOn = limit.parse().unwrap();
        limit.of([(verdict, [Some(low), Some(high)], true)].into_iter())
    }

    #[test]
    fn only_what_is_proven_shuts_the_gate() {
        use Verdict::*;
        assert_eq!(gate("worse", Worse, 0.96, 0.99), Gate::Shut);
        assert_eq!(gate("worse:5%", Worse, 0.96, 0.99), Gate::Open);
        assert_eq!(gate("worse:5%", WorseAndItMatters, 0.8, 0.9), Gate::Shut);
        assert_eq!(gate("worse:20%", WorseAndItMatters, 0.8, 0.9), Gate::Open);
        assert_eq!(gate("worse", NoDifferenceProven, 0.5, 1.5), Gate::Open);
        assert_eq!(gate("worse", BetterAndItMatters, 1.2, 1.5), Gate::Open);
        assert_eq!(gate("different", BetterAndItMatters, 1.2, 1.5), Gate::Shut);
        assert_eq!(
            gate("different:30%", BetterAndItMatters, 1.2, 1.5),
            Gate::Open
        );
        let blind = (Inconclusive, [None, None], true);
        let limit: FailOn = "worse".parse().unwrap();
        assert_eq!(limit.of([blind].into_iter()), Gate::Blind);
        assert_eq!(limit.of(std::iter::empty()), Gate::Blind);
        // Twice the latency is worse.
        let slow = (WorseAndItMatters, [Some(1.9), Some(2.1)], false);
        assert_eq!(limit.of([slow, blind].into_iter()), Gate::Shut);
    }

    #[test]
    fn what_is_no_limit_is_refused() {
        for text in [
            "",
            "wors",
            "worse:",
            "worse:5",
            "worse:0%",
            "worse:-1%",
            "worse:x%",
            "different:100%",
        ] {
            let error = text.parse::<FailOn>().unwrap_err().to_string();
            assert!(error.contains("as in worse:5%"), "{error}");
        }
    }
}
