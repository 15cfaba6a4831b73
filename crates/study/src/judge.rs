//! Judges a study: whether its trials count, and the results.
//!
//! In: a study with its trials. Out: the same study with comparisons, sweeps, findings and warnings. Start with
//! [`conclude`], which calls the parts in order; `trial` judges a single trial as it ends.

pub mod comparisons;
pub mod confounders;
pub mod findings;
pub mod sweep;
pub mod trial;
pub mod warnings;

use nicpoll_model::Study;
use nicpoll_stats::InvalidMargin;
use nicpoll_stats::order::Seed;

use crate::design::Design;
use crate::judge::comparisons::{add_pairs_of_trials, compare_all};
use crate::judge::findings::setting_findings;
use crate::judge::sweep::sweeps;
use crate::judge::warnings::warnings_of;

/// Adds the results of the trials that a study has.
///
/// # Errors
/// When the plan's margin does not fit a metric.
pub(crate) fn conclude(design: &Design, mut study: Study) -> Result<Study, InvalidMargin> {
    add_pairs_of_trials(&mut study.counting_costs, &study.trials);
    study.comparisons = compare_all(design, &study.plan, &study.trials, Seed(study.seed))?;
    study.sweeps = sweeps(design, &study.trials, &study.knees);
    let seed = Seed(study.seed);
    study.findings = setting_findings(design, &study.trials, study.plan.margin_ratio, seed);
    study.warnings.extend(warnings_of(&study, design));
    Ok(study)
}
