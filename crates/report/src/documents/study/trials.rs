//! A study by workload and setting: which settings are compared, and the trials of each.
//!
//! Trials that were disturbed from outside, ran without their setting in force or gave no result take part in no figure. A figure that no trial has is
//! `None`.

use nicpoll_model::{Comparison, MainEffect, Study, Trial, TrialFigures, WorkloadFacts};
use nicpoll_stats::Summary;

use crate::plots::svg::{CurveLook, looks};

/// Reads a figure of a trial.
pub type FigureOf = fn(&TrialFigures) -> Option<f64>;

/// A compared pair: two settings, or two levels of a factor over all combinations of the other factors.
#[derive(Clone, Copy)]
pub struct SettingPair<'a> {
    /// The setting, or the level, that is judged.
    pub setting: &'a str,
    /// The reference.
    pub reference: &'a str,
    /// For levels: the factor, and the settings that have them.
    pub effect: Option<&'a MainEffect>,
}

impl<'a> SettingPair<'a> {
    /// Returns the pairs of a study's plan: levels of factors over all combinations first, then settings.
    pub fn of(study: &'a Study) -> Vec<Self> {
        let effects = study.plan.main_effects.iter().map(|effect| SettingPair {
            setting: &effect.level,
            reference: &effect.reference,
            effect: Some(effect),
        });
        let contrasts = study.plan.contrasts.iter();
        let contrasts = contrasts.map(|(setting, reference)| SettingPair {
            setting,
            reference,
            effect: None,
        });
        effects.chain(contrasts).collect()
    }

    /// Returns the compared settings, the judged one first.
    pub fn settings(self) -> Vec<(&'a str, &'a str)> {
        match self.effect {
            None => vec![(self.setting, self.reference)],
            Some(effect) => {
                let settings = effect.settings.iter();
                settings.map(|(one, other)| (&**one, &**other)).collect()
            }
        }
    }

    /// Returns the pair's comparisons, in the order of the study.
    pub fn all(self, study: &'a Study, workload: &'a str) -> impl Iterator<Item = &'a Comparison> {
        study.comparisons.iter().filter(move |comparison| {
            comparison.workload == workload
                && comparison.factor.as_deref() == self.factor()
                && comparison.setting == self.setting
                && comparison.reference == self.reference
        })
    }

    /// Returns the pair's comparisons that get a verdict, the most important first.
    pub fn judged_all(
        self,
        study: &'a Study,
        workload: &'a str,
    ) -> impl Iterator<Item = &'a Comparison> {
        self.all(study, workload).filter(|one| one.primary)
    }

    /// Returns the first of them.
    pub fn judged(self, study: &'a Study, workload: &'a str) -> Option<&'a Comparison> {
        self.judged_all(study, workload).next()
    }

    /// Returns the reference's name in a sentence.
    pub fn noun(self, study: &'a Study) -> &'a str {
        let mut settings = study.settings.iter();
        let facts = settings.find(|facts| facts.setting == self.reference);
        facts
            .filter(|_| self.effect.is_none())
            .map_or(self.reference, |facts| &facts.noun)
    }

    /// Returns the pair's names for a heading.
    pub fn title(self, study: &Study) -> String {
        let against = format!("{} against {}", self.setting, self.noun(study));
        self.of_factor(against)
    }

    /// Returns the pair's names for a column.
    pub fn head(self) -> String {
        self.of_factor(format!("{} / {}", self.setting, self.reference))
    }

    fn factor(self) -> Option<&'a str> {
        self.effect.map(|effect| effect.factor.as_str())
    }

    fn of_factor(self, text: String) -> String {
        match self.factor() {
            Some(factor) => format!("{factor}: {text}"),
            None => text,
        }
    }
}

/// The trials of one workload under one setting.
pub struct TrialGroup<'a> {
    /// The trials that count and gave a result.
    pub good: Vec<&'a Trial>,
}

impl<'a> TrialGroup<'a> {
    /// Gathers the trials.
    pub fn of(study: &'a Study, workload: &str, setting: &str) -> Self {
        let alike = study.trials.iter().filter(|trial| {
            trial.workload == workload && trial.setting == setting && trial.result().is_some()
        });
        TrialGroup {
            good: alike.collect(),
        }
    }

    /// Returns the groups of a workload, one for each setting in the order of the study.
    pub fn of_workload(study: &'a Study, workload: &str) -> Vec<Self> {
        let settings = study.settings.iter();
        settings
            .map(|facts| TrialGroup::of(study, workload, &facts.setting))
            .collect()
    }

    /// The figures of the good trials.
    pub fn results(&self) -> impl Iterator<Item = &'a TrialFigures> {
        self.good.iter().filter_map(|trial| trial.result())
    }

    /// Returns the median of a figure over the good trials that have it.
    pub fn median(&self, figure: impl Fn(&TrialFigures) -> Option<f64>) -> Option<f64> {
        Some(self.summary(figure)?.median)
    }

    /// Returns the good trials whose account closes.
    pub fn closed(&self) -> impl Iterator<Item = &'a Trial> {
        let good = self.good.iter().copied();
        good.filter(|trial| trial.ledger().is_some())
    }

    /// Returns the lost shares of the offered, ascending, of the trials whose account closes.
    pub fn losses(&self) -> Vec<f64> {
        let mut losses: Vec<f64> = self.good.iter().filter_map(|it| it.loss_ratio()).collect();
        losses.sort_by(f64::total_cmp);
        losses
    }

    /// Returns the smallest and greatest value of a figure over the good trials that have it.
    pub fn range(&self, figure: impl Fn(&TrialFigures) -> Option<f64>) -> Option<(f64, f64)> {
        let Summary { min, max, .. } = self.summary(figure)?;
        Some((min, max))
    }

    fn summary(&self, figure: impl Fn(&TrialFigures) -> Option<f64>) -> Option<Summary> {
        let values: Vec<f64> = self.results().filter_map(figure).collect();
        Summary::of(&values)
    }
}

/// A setting under a workload.
pub struct StudyArm<'a> {
    /// The name of the setting.
    pub name: &'a str,
    /// Its colour and mark.
    pub look: CurveLook,
    pub group: TrialGroup<'a>,
}

/// The settings of a study under a workload, in the order of the study.
pub fn arms<'a>(study: &'a Study, facts: &WorkloadFacts) -> Vec<StudyArm<'a>> {
    let names = study.settings.iter().map(|it| it.setting.as_str());
    let names: Vec<&str> = names.collect();
    let arms = names.iter().zip(looks(&names));
    arms.map(|(name, look)| StudyArm {
        name,
        look,
        group: TrialGroup::of(study, &facts.workload, name),
    })
    .collect()
}
