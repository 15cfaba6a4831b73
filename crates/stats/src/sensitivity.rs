//! Whether a verdict hangs on which trials count.
//!
//! The primary estimate takes every pair under the setting that was asked for. Beside it stand the pairs
//! that are proven to have run as asked, and the missing ones as the worst and as the best.
//!
//! What must hold: a word is only given when each of these gives it too. A rule of what counts is never
//! chosen after its result was seen: all are computed, always.

use nicpoll_model::{IntervalMethod, Metric, MetricKind, Scenario, Sensitivity, Verdict};

use crate::comparison::{Found, Rule};
use crate::paired::Pair;

/// Below this share of its trials a setting was not in force often enough for a verdict on having it.
const IN_FORCE_MIN: f64 = 0.9;

/// Which trials are proven to have run under their setting as asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proofs<'a> {
    /// For each pair whether both its trials are.
    pub is_proven: &'a [bool],
    /// Trials of the judged setting, and how many of them are.
    pub setting: [u32; 2],
    /// The same of the reference.
    pub reference: [u32; 2],
}

impl Proofs<'_> {
    fn is_on_asking(&self) -> bool {
        [self.setting, self.reference]
            .iter()
            .any(|[trials, proven]| f64::from(*proven) < IN_FORCE_MIN * f64::from(*trials))
    }
}

/// What other rules of what counts come to; `says` gives the word for what pairs come to.
pub(crate) fn sensitivity(
    rule: &Rule,
    pairs: &[Pair],
    proofs: Proofs<'_>,
    says: impl Fn(&Found) -> Option<Verdict>,
) -> Sensitivity {
    let scenario = |pairs: &[Pair]| {
        let found = rule.apply(pairs);
        let shown = found.shown(rule.metric.kind());
        Scenario {
            blocks: pairs.iter().filter(|pair| !pair.is_missing()).count() as u32,
            estimate: shown.estimate,
            interval: shown.ends,
            verdict: says(&found).unwrap_or(Verdict::Inconclusive),
        }
    };
    let proven = pairs.iter().zip(proofs.is_proven);
    let proven: Vec<Pair> = proven
        .filter(|(_, is)| **is)
        .map(|(pair, _)| *pair)
        .collect();
    // Student's interval cannot hold a rank.
    let can_rank = rule.method == IntervalMethod::HodgesLehmann;
    let is_missing = can_rank && pairs.iter().any(Pair::is_missing);
    let filled = |with: Pair| {
        let filled = pairs.iter();
        let filled = filled.map(|pair| if pair.is_missing() { with } else { *pair });
        is_missing.then(|| scenario(&filled.collect::<Vec<_>>()))
    };
    let (worst, best) = extremes(rule.metric);
    Sensitivity {
        in_force_trials: proofs.setting,
        reference_in_force_trials: proofs.reference,
        is_on_asking: proofs.is_on_asking(),
        proven_only: scenario(&proven),
        missing_as_worst: filled(worst),
        missing_as_best: filled(best),
    }
}

/// The pairs that could not be worse, or better, for the judged setting.
fn extremes(metric: Metric) -> (Pair, Pair) {
    let all_and_nothing = match metric.kind() {
        MetricKind::Ratio => (f64::INFINITY, 1.0),
        MetricKind::Points => (1.0, 0.0),
    };
    let (more, less) = (
        Pair::measured(all_and_nothing.0, all_and_nothing.1),
        Pair::measured(all_and_nothing.1, all_and_nothing.0),
    );
    if metric.more_is_better() {
        (less, more)
    } else {
        (more, less)
    }
}

/// The word that the primary estimate and every other rule of what counts agree on.
///
/// Where they agree but for "and it matters", that is dropped. A rule that leaves no interval says nothing.
/// Pairs that are proven say nothing about a verdict on asking alone.
pub(crate) fn settled(word: Verdict, sensitivity: Option<&Sensitivity>) -> Verdict {
    let Some(sensitivity) = sensitivity else {
        return word;
    };
    let proven = Some(sensitivity.proven_only).filter(|_| !sensitivity.is_on_asking);
    let scenarios = [
        proven,
        sensitivity.missing_as_worst,
        sensitivity.missing_as_best,
    ];
    let others = scenarios.into_iter().flatten().map(|it| it.verdict);
    let others = others.filter(|other| *other != Verdict::Inconclusive);
    others.fold(word, |word, other| {
        if word == Verdict::Inconclusive || word == other {
            word
        } else if word.without_weight() == other.without_weight() {
            word.without_weight()
        } else {
            Verdict::DependsOnWhatCounts
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicpoll_model::Ends;

    fn scenario(verdict: Verdict) -> Scenario {
        Scenario {
            blocks: 16,
            estimate: None,
            interval: Ends::default(),
            verdict,
        }
    }

    fn settles(
        word: Verdict,
        proven: Verdict,
        worst: Option<Verdict>,
        is_on_asking: bool,
    ) -> Verdict {
        let sensitivity = Sensitivity {
            in_force_trials: [16, 16],
            reference_in_force_trials: [16, 16],
            is_on_asking,
            proven_only: scenario(proven),
            missing_as_worst: worst.map(scenario),
            missing_as_best: worst.map(|_| scenario(word)),
        };
        settled(word, Some(&sensitivity))
    }

    #[test]
    fn a_word_stands_only_when_every_rule_gives_it() {
        use Verdict::*;
        assert_eq!(settles(Better, Better, None, false), Better);
        assert_eq!(
            settles(Better, NoDifferenceProven, None, false),
            DependsOnWhatCounts
        );
        assert_eq!(
            settles(Better, Better, Some(Worse), false),
            DependsOnWhatCounts
        );
        assert_eq!(
            settles(NoDifferenceProven, Better, None, false),
            DependsOnWhatCounts
        );
        // Both are better: only that it matters hangs on what counts.
        assert_eq!(settles(BetterAndItMatters, Better, None, false), Better);
        assert_eq!(settles(Worse, WorseAndItMatters, None, false), Worse);
    }

    #[test]
    fn a_verdict_on_asking_does_not_hang_on_proofs() {
        use Verdict::*;
        assert_eq!(settles(Better, NoDifferenceProven, None, true), Better);
        assert_eq!(
            settles(Better, Better, Some(Worse), true),
            DependsOnWhatCounts
        );
    }

    #[test]
    fn what_has_no_interval_contradicts_nothing() {
        use Verdict::*;
        assert_eq!(settles(Better, Inconclusive, None, false), Better);
        assert_eq!(settles(Inconclusive, Better, None, false), Inconclusive);
    }

    #[test]
    fn nine_trials_of_ten_are_enough() {
        let proofs = |setting, reference| Proofs {
            is_proven: &[],
            setting,
            reference,
        };
        assert!(!proofs([20, 18], [20, 20]).is_on_asking());
        assert!(proofs([20, 17], [20, 20]).is_on_asking());
        assert!(proofs([20, 20], [20, 17]).is_on_asking());
    }
}
