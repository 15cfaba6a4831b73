//! Whether a study came to an answer, which its exit code says.

use nicpoll_model::{Plan, Study, Verdict};

/// Blocks that an interval takes: with fewer planned, being inconclusive is what was asked for.
const BLOCKS_FOR_INTERVALS: u32 = 3;

/// Whether a comparison of a study was decided. A setting that is compared with itself passes by not being told
/// apart.
pub fn is_decided(study: &Study) -> bool {
    let verdicts = study.comparisons.iter().filter_map(|one| one.verdict);
    decides(&study.plan, is_null(study), verdicts)
}

/// Whether a study compares a setting with itself; one that was resumed has no options to tell.
fn is_null(study: &Study) -> bool {
    matches!(&study.settings[..], [one, other] if one.is_same_as(other))
}

fn decides(plan: &Plan, is_null: bool, mut verdicts: impl Iterator<Item = Verdict>) -> bool {
    let is_answer =
        |word: Verdict| word.is_decided() || (is_null && word == Verdict::NoDifferenceProven);
    plan.blocks < BLOCKS_FOR_INTERVALS || verdicts.any(is_answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{DemoOptions, plan};
    use Verdict::*;
    use nicpoll_stats::order::Seed;

    fn passes(blocks: u32, is_null: bool, words: &[Verdict]) -> bool {
        let options = DemoOptions {
            blocks: Some(blocks),
            ..DemoOptions::default()
        };
        let (_, plan) = plan(&options, Seed(1)).unwrap();
        decides(&plan, is_null, words.iter().copied())
    }

    #[test]
    fn a_study_that_decides_nothing_is_undecided() {
        for word in [NoDifferenceProven, DependsOnWhatCounts, Inconclusive] {
            assert!(!passes(10, false, &[word, word]), "{word}");
            assert!(passes(10, false, &[word, Equivalent]), "{word}");
        }
        // All comparisons were given up.
        assert!(!passes(10, false, &[]));
        // So few blocks have no intervals: that is what was asked for.
        assert!(passes(1, false, &[Inconclusive]));
    }

    #[test]
    fn a_setting_that_is_not_told_from_itself_is_no_failure() {
        assert!(passes(10, true, &[NoDifferenceProven]));
        assert!(!passes(10, true, &[DependsOnWhatCounts]));
        assert!(!passes(10, true, &[Inconclusive]));
    }
}
