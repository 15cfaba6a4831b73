//! `--fail-on`: the verdicts that make a command fail, for scripts and CI jobs that stop at a regression.
//!
//! A verdict fails only if the whole interval is beyond the limit; an unproven difference passes. A comparison
//! without an interval does not pass: a gate without information stays shut.

use std::str::FromStr;

use nicpoll_lab::Refused;
use nicpoll_model::{Compared, HostsCompared, Measure, MetricKind, Study, Verdict};

/// The difference that must not be proven: `worse`, `worse:5%`, `different`, `different:5%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailOn {
    /// Whether a better result fails, too.
    is_either_way: bool,
    /// The smallest difference that fails: 0.05 is 5 %.
    from: f64,
}

/// The state of a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// No failing difference is proven.
    Open,
    /// These comparisons prove one.
    Shut(Vec<String>),
    /// These comparisons have no interval, or there is no comparison.
    Blind(Vec<String>),
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

/// A verdict with its interval.
struct Judged {
    /// The workload, the measure and what is judged: `udp64: cost of polling`.
    name: String,
    verdict: Verdict,
    kind: MetricKind,
    ends: [Option<f64>; 2],
    more_is_better: bool,
}

/// Returns the name of a comparison in a gate's message.
fn name(workload: Option<&str>, measure: Option<Measure>, judged: &str) -> String {
    let workload = workload.map_or(String::new(), |it| format!("{it}: "));
    let measure = measure.map_or("values", Measure::name);
    format!("{workload}{measure} of {judged}")
}

impl FailOn {
    /// Returns the gate's state for a study.
    pub fn of_study(&self, study: &Study) -> Gate {
        let primary = study.comparisons.iter().filter(|one| one.primary);
        self.of(primary.map(|one| Judged {
            name: name(
                Some(&one.workload),
                Some(one.metric.measure()),
                &one.setting,
            ),
            verdict: one.verdict.unwrap_or(Verdict::Inconclusive),
            kind: one.kind,
            ends: match one.kind {
                MetricKind::Ratio => [one.ratio_low, one.ratio_high],
                MetricKind::Points => [one.share_difference_low, one.share_difference_high],
            },
            more_is_better: one.metric.more_is_better(),
        }))
    }

    /// Returns the gate's state for compared results.
    pub fn of_results(&self, compared: &Compared) -> Gate {
        let sets = compared.comparisons.iter();
        self.of(sets.map(|one| Judged {
            name: name(one.workload.as_deref(), one.measure, &one.judged.name),
            verdict: one.verdict,
            kind: one.kind,
            ends: [one.interval.low, one.interval.high],
            more_is_better: one.more_is_better,
        }))
    }

    /// Returns the gate's state for several hosts: what one of them proves shuts it.
    pub fn of_hosts(&self, compared: &HostsCompared) -> Gate {
        let comparisons = compared.comparisons.iter();
        self.of(comparisons.flat_map(|one| {
            let own = compared.hosts.iter().zip(&one.of_hosts);
            own.filter_map(move |(host, result)| {
                let result = result.as_ref()?;
                let judged = format!("{} at {}", one.setting, host.host);
                Some(Judged {
                    name: name(Some(&one.workload), Some(one.metric.measure()), &judged),
                    verdict: result.verdict,
                    kind: one.metric.kind(),
                    ends: [result.interval.low, result.interval.high],
                    more_is_better: one.metric.more_is_better(),
                })
            })
        }))
    }

    fn of(&self, judged: impl Iterator<Item = Judged>) -> Gate {
        let all: Vec<Judged> = judged.collect();
        let named = |holds: &dyn Fn(&Judged) -> bool| -> Vec<String> {
            let found = all.iter().filter(|one| holds(one));
            found.map(|one| one.name.clone()).collect()
        };
        let met = named(&|one| self.is_met(one));
        let unknown = named(&|one| one.verdict == Verdict::Inconclusive);
        if !met.is_empty() {
            Gate::Shut(met)
        } else if all.is_empty() || !unknown.is_empty() {
            Gate::Blind(unknown)
        } else {
            Gate::Open
        }
    }

    /// Returns whether the limit is exceeded; 5 points count as 5 %.
    fn is_met(&self, one: &Judged) -> bool {
        let turned = |end: f64| match (one.more_is_better, one.kind) {
            (true, _) => end,
            (false, MetricKind::Ratio) => end.recip(),
            (false, MetricKind::Points) => -end,
        };
        let mut ends = one.ends.map(|end| end.map(turned));
        if !one.more_is_better {
            ends.reverse();
        }
        let [low, high] = ends;
        let [worse, better] = match one.kind {
            MetricKind::Ratio => [(1.0 + self.from).recip(), 1.0 + self.from],
            MetricKind::Points => [-self.from, self.from],
        };
        match one.verdict {
            Verdict::Worse | Verdict::WorseAndItMatters => high.is_some_and(|high| high <= worse),
            Verdict::Better | Verdict::BetterAndItMatters => {
                self.is_either_way && low.is_some_and(|low| low >= better)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(name: &str, verdict: Verdict, ends: [Option<f64>; 2]) -> Judged {
        Judged {
            name: String::from(name),
            verdict,
            kind: MetricKind::Ratio,
            ends,
            more_is_better: true,
        }
    }

    fn gate(limit: &str, verdict: Verdict, low: f64, high: f64) -> Gate {
        let limit: FailOn = limit.parse().unwrap();
        limit.of([judged("one", verdict, [Some(low), Some(high)])].into_iter())
    }

    #[test]
    fn only_what_is_proven_shuts_the_gate() {
        use Verdict::*;
        let shut = || Gate::Shut(vec![String::from("one")]);
        assert_eq!(gate("worse", Worse, 0.96, 0.99), shut());
        assert_eq!(gate("worse:5%", Worse, 0.96, 0.99), Gate::Open);
        assert_eq!(gate("worse:5%", WorseAndItMatters, 0.8, 0.9), shut());
        assert_eq!(gate("worse:20%", WorseAndItMatters, 0.8, 0.9), Gate::Open);
        assert_eq!(gate("worse", NoDifferenceProven, 0.5, 1.5), Gate::Open);
        assert_eq!(gate("worse", BetterAndItMatters, 1.2, 1.5), Gate::Open);
        assert_eq!(gate("different", BetterAndItMatters, 1.2, 1.5), shut());
        assert_eq!(
            gate("different:30%", BetterAndItMatters, 1.2, 1.5),
            Gate::Open
        );
        let blind = || judged("blind", Inconclusive, [None, None]);
        let limit: FailOn = "worse".parse().unwrap();
        let unknown = limit.of([blind()].into_iter());
        assert_eq!(unknown, Gate::Blind(vec![String::from("blind")]));
        assert_eq!(limit.of(std::iter::empty()), Gate::Blind(Vec::new()));
        // Twice the latency is worse.
        let slow = Judged {
            more_is_better: false,
            ..judged("one", WorseAndItMatters, [Some(1.9), Some(2.1)])
        };
        assert_eq!(limit.of([slow, blind()].into_iter()), shut());
    }

    #[test]
    fn points_are_taken_like_percent_and_the_measure_is_named() {
        let busier = || Judged {
            kind: MetricKind::Points,
            more_is_better: false,
            ..judged(
                &name(Some("rr"), Some(Measure::Cost), "polling"),
                Verdict::WorseAndItMatters,
                [Some(0.06), Some(0.13)],
            )
        };
        let gate = |limit: &str| {
            let limit: FailOn = limit.parse().unwrap();
            limit.of([busier()].into_iter())
        };
        let named = vec![String::from("rr: cost of polling")];
        assert_eq!(gate("worse:6%"), Gate::Shut(named));
        assert_eq!(gate("worse:7%"), Gate::Open);
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
