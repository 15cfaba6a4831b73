//! Compares two results: stored studies, or files that other tools printed.
//!
//! Values from the blocks of one study are compared in pairs; all others are unpaired, and labelled so. A file's
//! values are its runs if it has three or more, else the intervals of a single run, labelled so. Results that cannot
//! be compared are refused, with those that could.

use std::collections::{BTreeMap, BTreeSet};

use nicpoll_model::numbers::counted;
use nicpoll_model::{
    COMPARED_SCHEMA, Compared, ComparedAlone, ComparedMethod, ComparedSets, ComparedSide,
    Comparison, Ends, IntervalMethod, Metric, MetricKind, Origin, SettingFacts, Study, Verdict,
    WorkloadFacts,
};
use nicpoll_stats::order::Seed;
use nicpoll_stats::{
    Confidence, Margin, NoInterval, Series, Summary, Unpaired, VALUES_MIN, compare_unpaired, holm,
    mean, outliers, standard_deviation, verdict,
};

use crate::design::Versus;
use crate::design::measures::judged_of;
use crate::judge::comparisons::{compare_pair, margin_of};
use crate::judge::findings::series_tests;
use crate::plan::MARGIN;
use crate::results::read::{ResultError, ResultSource, StudySource, ValueSet};
use crate::run::conditions::{ConditionChange, conditions, differences};

/// Seed of permutations: the same values give the same p values.
const SEED: Seed = Seed(1);

/// Options of a comparison of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompareOptions {
    /// Whether smaller values are better, for figures of unknown direction.
    pub less_is_better: bool,
    /// Whether to compare even if a name means two things in two studies.
    pub anyway: bool,
}

/// Compares `judged` with `reference`.
///
/// # Errors
/// [`ResultError`] when the two have nothing in common that could be compared, and when a name that they share means
/// another thing in each.
pub fn compare_results(
    reference: &ResultSource,
    judged: &ResultSource,
    options: CompareOptions,
    origin: &Origin,
) -> Result<Compared, ResultError> {
    let mut alone = Vec::new();
    let mut differences = Vec::new();
    let mut comparisons = match (reference, judged) {
        (ResultSource::Study(one), ResultSource::Study(other)) if one.id == other.id => {
            if one.name.setting.is_none() && other.name.setting.is_none() {
                return Err(one.compared_with_itself());
            }
            let (setting, against) = (other.setting()?, one.setting()?);
            if setting == against {
                return Err(ResultError::Named(format!(
                    "{} is both results; name another one to compare it with",
                    other.name
                )));
            }
            match &one.study {
                Some(study) => paired(study, one, other, Versus::of(&setting, &against))?,
                // Trials of an import did not alternate.
                None => studies(one, other, &mut alone)?,
            }
        }
        (ResultSource::Study(one), ResultSource::Study(other)) => {
            differences = differences_of(one, other, options.anyway)?;
            studies(one, other, &mut alone)?
        }
        _ => {
            let one = (&*reference.to_string(), reference.values()?);
            let other = (&*judged.to_string(), judged.values()?);
            vec![unpaired(None, one, other, options.less_is_better, 1)?]
        }
    };
    let p_values: Vec<Option<f64>> = comparisons.iter().map(|one| one.difference_p).collect();
    for (one, p) in comparisons.iter_mut().zip(holm(&p_values, p_values.len())) {
        one.holm_p = p;
    }
    Ok(Compared {
        schema: String::from(COMPARED_SCHEMA),
        nicpoll_version: origin.nicpoll_version.clone(),
        argv: origin.argv.clone(),
        margin_ratio: MARGIN,
        comparisons,
        alone,
        differences,
    })
}

/// Compares two settings of one study, block by block, under each of its workloads.
fn paired(
    study: &Study,
    reference: &StudySource,
    judged: &StudySource,
    versus: Versus,
) -> Result<Vec<ComparedSets>, ResultError> {
    let workloads: Vec<_> = study
        .workloads
        .iter()
        .filter(|it| reference.name.takes(&it.workload) && judged.name.takes(&it.workload))
        .collect();
    let mut plan = study.plan.clone();
    let pair = (&*versus.setting, &*versus.reference);
    let mut compared: Vec<(&WorkloadFacts, Metric)> = Vec::new();
    for it in workloads {
        let metrics = match study.plan.judged(&it.workload, pair) {
            [] => judged_of(it),
            planned => planned.to_vec(),
        };
        compared.extend(metrics.into_iter().map(|metric| (it, metric)));
    }
    plan.family_comparisons = compared.len() as u32;
    let mut sets = Vec::new();
    for (workload, metric) in compared {
        let compared = compare_pair(
            &plan,
            &study.trials,
            &workload.workload,
            &versus,
            metric,
            Seed(study.seed),
        );
        let compared = compared.map_err(|error| ResultError::Unfit(error.to_string()))?;
        let side = |source: &StudySource, setting: &str| {
            let values = source.values_of(&workload.workload, setting, metric);
            side(source.name.to_string(), values)
        };
        sets.push(of_pairs(
            compared,
            side(judged, &versus.setting),
            side(reference, &versus.reference),
        ));
    }
    match sets.is_empty() {
        true => Err(nothing_in_common(reference, judged)),
        false => Ok(sets),
    }
}

fn nothing_in_common(reference: &StudySource, judged: &StudySource) -> ResultError {
    let [one, other] = [reference, judged].map(StudySource::contents);
    ResultError::Unfit(format!(
        "no workload has a setting of one name in both: {one}, and {other}; name a setting of each, as in 7:polling \
         8:interrupt"
    ))
}

fn of_pairs(compared: Comparison, judged: ComparedSide, reference: ComparedSide) -> ComparedSets {
    ComparedSets {
        workload: Some(compared.workload),
        quantity: String::from(compared.metric.name()),
        measure: Some(compared.metric.measure()),
        kind: compared.kind,
        more_is_better: compared.metric.more_is_better(),
        judged,
        reference,
        method: match compared.method {
            IntervalMethod::HodgesLehmann => ComparedMethod::SignedRanks,
            IntervalMethod::PairedT => ComparedMethod::PairedT,
        },
        ratio: compared.ratio,
        share_difference: compared.share_difference,
        interval: Ends {
            low: compared.ratio_low.or(compared.share_difference_low),
            high: compared.ratio_high.or(compared.share_difference_high),
        },
        confidence_ratio: compared.confidence_ratio,
        verdict: compared.verdict.unwrap_or(Verdict::Inconclusive),
        no_verdict: compared.no_verdict,
        difference_p: compared.difference_p,
        holm_p: None,
        welch: Ends::default(),
        welch_p: None,
        mann_whitney: Ends::default(),
        mann_whitney_p: None,
    }
}

/// Returns the other differences between two measured studies, a sentence each, those in a name's meaning first.
///
/// # Errors
/// When a name means another thing in each, unless they are compared `anyway`.
fn differences_of(
    reference: &StudySource,
    judged: &StudySource,
    anyway: bool,
) -> Result<Vec<String>, ResultError> {
    let (Some(one), Some(other)) = (&reference.study, &judged.study) else {
        return Ok(Vec::new());
    };
    let mut found = other_meanings(reference, judged, anyway)?;
    let differing = differences(conditions_of(one), conditions_of(other));
    found.extend(differing.map(|change| told(reference, judged, change)));
    Ok(found)
}

fn told(
    reference: &StudySource,
    judged: &StudySource,
    (what, there, here): ConditionChange,
) -> String {
    let (reference, judged) = (reference.id, judged.id);
    format!("{what} is {there} in {reference} and {here} in {judged}")
}

/// Returns what a name means in each of two measured studies, a sentence for each that means two things.
///
/// # Errors
/// When there is such a name, unless they are compared `anyway`.
pub fn other_meanings(
    reference: &StudySource,
    judged: &StudySource,
    anyway: bool,
) -> Result<Vec<String>, ResultError> {
    let (Some(one), Some(other)) = (&reference.study, &judged.study) else {
        return Ok(Vec::new());
    };
    let meanings = meanings(reference, judged, one, other).into_iter();
    let found: Vec<String> = meanings
        .map(|change| told(reference, judged, change))
        .collect();
    if !anyway && !found.is_empty() {
        let (found, id) = (found.join("; "), judged.id);
        return Err(ResultError::Named(format!(
            "{found}: no comparison of the same thing; --anyway compares them, or name others, as in {id}:SETTING:WORKLOAD"
        )));
    }
    Ok(found)
}

/// Returns the compared names of settings and workloads that mean another thing in each study.
fn meanings(
    reference: &StudySource,
    judged: &StudySource,
    one: &Study,
    other: &Study,
) -> Vec<ConditionChange> {
    let takes = |workload: &str| reference.name.takes(workload) && judged.name.takes(workload);
    let is_asked = |setting: &str| {
        let asked = [&reference.name.setting, &judged.name.setting];
        asked.into_iter().flatten().all(|it| it == setting)
    };
    let described = |it: &WorkloadFacts| (it.description.clone(), it.datagram_bytes);
    let workloads = one.workloads.iter().filter_map(|there| {
        let mut others = other.workloads.iter();
        let here = others.find(|it| it.workload == there.workload && takes(&it.workload))?;
        let quoted = |it: &WorkloadFacts| format!("'{}'", it.description);
        (described(here) != described(there)).then(|| {
            let name = format!("the workload {}", there.workload);
            (name, quoted(there), quoted(here))
        })
    });
    let settings = one.settings.iter().filter_map(|there| {
        let mut others = other.settings.iter();
        let here = others.find(|it| it.setting == there.setting && is_asked(&it.setting))?;
        (!here.is_same_as(there)).then(|| {
            let name = format!("the setting {}", there.setting);
            (name, written(there, here), written(here, there))
        })
    });
    workloads.chain(settings).collect()
}

/// Returns the conditions of a study besides its settings and workloads.
pub fn conditions_of(study: &Study) -> BTreeMap<String, String> {
    let trial = format!("{} s", study.plan.trial_seconds);
    let mut all = conditions(&study.host);
    all.extend(
        [
            ("the length of a trial", trial),
            ("the driver", study.lab.driver.clone()),
            ("the version of nicpoll", study.nicpoll_version.clone()),
        ]
        .map(|(what, value)| (String::from(what), value)),
    );
    all
}

/// Returns, in quotes, what a setting writes and another one of its name does not.
fn written(setting: &SettingFacts, unlike: &SettingFacts) -> String {
    let unlike = all_written(unlike);
    let mut own = all_written(setting);
    own.retain(|write| !unlike.contains(write));
    match own.is_empty() {
        true => String::from("without that"),
        false => format!("'{}'", own.join(", ")),
    }
}

fn all_written(setting: &SettingFacts) -> Vec<String> {
    let written = setting.all_writes().map(|(place, name, value)| {
        let place = match place {
            "machine" | "command" => String::new(),
            place => format!("{place} "),
        };
        format!("{place}{name} = {value}")
    });
    written.collect()
}

/// Compares the workloads and settings that two studies share, or the named ones. Those of only one study go to
/// `alone`.
fn studies(
    reference: &StudySource,
    judged: &StudySource,
    alone: &mut Vec<ComparedAlone>,
) -> Result<Vec<ComparedSets>, ResultError> {
    let others = reference.cells(judged);
    let mut matched = BTreeSet::new();
    let mut found = Vec::new();
    for ((workload, setting), own) in judged.cells(reference) {
        // A named setting of the reference is compared, whatever its name.
        let against = reference.name.setting.as_ref().unwrap_or(&setting);
        let other = (workload.clone(), against.clone());
        if let Some(others) = others.get(&other) {
            found.push((workload, [own, others.clone()], setting, other.1.clone()));
            matched.insert(other);
        } else if reference.name.takes(&own) {
            alone.push(judged.alone(own, setting));
        }
    }
    // Workloads that the other name excludes are not reported as missing.
    let is_asked = |workload: &str| judged.name.setting.is_none() && judged.name.takes(workload);
    let rest = others
        .into_iter()
        .filter(|(cell, own)| !matched.contains(cell) && is_asked(own));
    alone.extend(rest.map(|((_, setting), own)| reference.alone(own, setting)));
    if found.is_empty() {
        return Err(nothing_in_common(reference, judged));
    }
    let mut sets = Vec::new();
    for (workload, own, setting, against) in found {
        let names = [
            format!("{}:{against}", reference.id),
            format!("{}:{setting}", judged.id),
        ];
        let both = judged.judged(&own[0]).into_iter();
        let both = both.filter(|metric| reference.judged(&own[1]).contains(metric));
        let mut of_both: Vec<[ValueSet; 2]> = both
            .map(|metric| {
                let one = reference.values_of(&own[1], &against, metric);
                [one, judged.values_of(&own[0], &setting, metric)]
            })
            .collect();
        // An import, and a study of an earlier version, have only rates.
        if of_both.is_empty() {
            let one = reference.values(&own[1], &against);
            let other = judged.values(&own[0], &setting).in_quantity(&one.quantity);
            of_both.push([one.in_quantity(&other.quantity), other]);
        }
        sets.extend(
            of_both
                .into_iter()
                .map(|both| (workload.clone(), names.clone(), both)),
        );
    }
    let family = sets.len() as u32;
    let compared = sets.into_iter().map(|(workload, names, [one, other])| {
        let less_is_better = other.metric.is_some_and(|it| !it.more_is_better());
        let [reference, judged] = &names;
        unpaired(
            Some(workload),
            (reference, one),
            (judged, other),
            less_is_better,
            family,
        )
    });
    compared.collect()
}

pub fn unpaired(
    workload: Option<String>,
    (reference_name, reference): (&str, ValueSet),
    (judged_name, judged): (&str, ValueSet),
    less_is_better: bool,
    family: u32,
) -> Result<ComparedSets, ResultError> {
    if reference.quantity != judged.quantity {
        return Err(ResultError::Unfit(format!(
            "{reference_name} has {}, and {judged_name} has {}: only figures of one kind can be compared",
            reference.quantity, judged.quantity
        )));
    }
    let kind = judged.kind();
    for (name, set) in [(reference_name, &reference), (judged_name, &judged)] {
        if set.values.iter().any(|it| *it < 0.0) {
            return Err(ResultError::Unfit(format!(
                "{name} has values below 0, which have no ratio; --ministat compares differences"
            )));
        }
    }
    let confidence = Confidence::for_family(family);
    let found = compare_unpaired(&judged.values, &reference.values, kind, confidence);
    let (quantity, measure) = (judged.quantity.clone(), judged.measure());
    let named = [(reference_name, &reference), (judged_name, &judged)];
    let no_verdict = found.interval.err().map(|error| why_none(error, named));
    let (judged, reference) = (
        side(judged_name.into(), judged),
        side(reference_name.into(), reference),
    );
    let finite = |end: f64| Some(end).filter(|it| it.is_finite());
    let estimate = found.interval.ok().and_then(|it| finite(it.estimate));
    Ok(ComparedSets {
        workload,
        quantity,
        measure,
        kind,
        more_is_better: !less_is_better,
        method: found.method,
        ratio: estimate.filter(|_| kind == MetricKind::Ratio),
        share_difference: estimate.filter(|_| kind == MetricKind::Points),
        interval: found.interval.map_or(Ends::default(), |it| Ends {
            low: finite(it.low),
            high: finite(it.high),
        }),
        confidence_ratio: confidence.level(),
        verdict: word(&found, kind, less_is_better),
        no_verdict,
        difference_p: found.difference_p,
        holm_p: None,
        welch: found.welch,
        welch_p: found.welch_p,
        mann_whitney: found.mann_whitney,
        mann_whitney_p: found.mann_whitney_p,
        judged,
        reference,
    })
}

/// Returns why there is no verdict: the number of values of each side, what happened to the trials without one, and how
/// many values it takes.
fn why_none(error: NoInterval, sides: [(&str, &ValueSet); 2]) -> String {
    if !matches!(error, NoInterval::TooFewValues { .. }) {
        return String::from("values of 0, or without end, have no ratio to each other");
    }
    let told = sides.map(|(name, side)| {
        let values = counted(side.values.len() as u32, "value");
        let why = side.unmeasured.as_ref();
        let why = why.map_or(String::new(), |why| format!(" ({why})"));
        format!("{name} has {values}{why}")
    });
    format!("{}, and it takes {VALUES_MIN} of each", told.join(", "))
}

fn word(found: &Unpaired, kind: MetricKind, less_is_better: bool) -> Verdict {
    let margin = Margin::new(kind, margin_of(kind, MARGIN)).expect("the margin fits its kind");
    let oriented = found.interval.ok();
    let oriented = oriented.map(|it| it.oriented(kind, !less_is_better));
    verdict(oriented.as_ref(), &margin)
}

fn side(name: String, values: ValueSet) -> ComparedSide {
    let position = |index: usize| index as u32 + 1;
    ComparedSide {
        name,
        read_as: values.read_as,
        are_intervals: values.are_intervals,
        is_sent: values.is_sent,
        median: Summary::of(&values.values).map(|it| it.median),
        mean: mean(&values.values),
        standard_deviation: standard_deviation(&values.values),
        outliers: outliers(&values.values).into_iter().map(position).collect(),
        order: series_tests(&Series::of(&values.values, SEED)),
        values: values.values,
    }
}

#[cfg(test)]
mod tests;
