//! One study on several hosts: the result of each host, and that of the typical one.
//!
//! Each host's verdict comes from its own study. Over hosts only the typical ratio is estimated, with an interval from
//! six hosts on: hosts are few, and what a ratio is at one of them says little about the next.

use std::collections::BTreeMap;

use nicpoll_model::ab::LiveAb;
use nicpoll_model::numbers::counted;
use nicpoll_model::{
    Comparison, Ends, HOSTS_SCHEMA, HostFacts, HostOfStudy, HostResult, HostsCompared,
    HostsComparison, Metric, MetricKind, Origin, Verdict,
};
use nicpoll_stats::{Confidence, hodges_lehmann, signed_rank_interval};

use crate::plan::MARGIN;
use crate::results::compare::{conditions_of, other_meanings};
use crate::results::read::{ResultError, ResultSource, StudySource};
use crate::run::conditions::conditions;

/// What is compared: workload, metric, setting and reference.
type Compared = (String, Metric, String, String);

/// What one host's study found.
struct HostFindings<'a> {
    host: HostOfStudy,
    /// The study, unless it is a comparison under live traffic.
    study: Option<&'a StudySource>,
    question: String,
    /// What has a verdict, in the study's order.
    results: Vec<(Compared, HostResult)>,
    conditions: BTreeMap<String, String>,
}

impl<'a> HostFindings<'a> {
    /// Returns what a result found; `None` if nicpoll has not measured it.
    fn of(result: &'a ResultSource) -> Option<Self> {
        match result {
            ResultSource::Study(source) => {
                let study = source.study.as_ref()?;
                let primary = study.comparisons.iter().filter(|one| one.primary);
                Some(HostFindings {
                    host: host_of(source.id, &study.host, &study.started_at),
                    study: Some(source),
                    question: study.question.clone(),
                    results: primary.map(result_of).collect(),
                    conditions: conditions_of(study),
                })
            }
            ResultSource::Live(id, live) => Some(HostFindings {
                host: host_of(*id, &live.host, &live.origin.started_at),
                study: None,
                question: format!(
                    "{} against {}, under the traffic that each host has",
                    live.judged.name, live.reference.name
                ),
                results: vec![result_of_live(live)],
                conditions: conditions(&live.host),
            }),
            ResultSource::File(_) => None,
        }
    }
}

fn host_of(study: i64, host: &HostFacts, started_at: &str) -> HostOfStudy {
    let machine = host.machine.clone();
    HostOfStudy {
        host: machine.unwrap_or_else(|| format!("study {study}")),
        study,
        started_at: String::from(started_at),
        kernel: host.kernel.clone(),
    }
}

/// Puts studies of several hosts side by side.
///
/// # Errors
/// [`ResultError`] when one of them is no study that was measured, when they have no comparison with a verdict, and when
/// a name means another thing in one of them, unless they are compared `anyway`.
pub fn compare_hosts(
    results: &[ResultSource],
    anyway: bool,
    origin: &Origin,
) -> Result<HostsCompared, ResultError> {
    let mut all = Vec::new();
    for result in results {
        all.push(HostFindings::of(result).ok_or_else(|| {
            ResultError::Unfit(format!(
                "{result} is no study that was measured, which --by host compares"
            ))
        })?);
    }
    all.sort_by_key(|one| (one.host.host.clone(), one.host.study));
    let mut differences = Vec::new();
    let mut studies = all.iter().filter_map(|one| one.study);
    if let Some(first) = studies.next() {
        for other in studies {
            differences.extend(other_meanings(first, other, anyway)?);
        }
    }
    differences.extend(differing(&all));
    let mut known: Vec<&Compared> = Vec::new();
    for (what, _) in all.iter().flat_map(|one| &one.results) {
        if !known.contains(&what) {
            known.push(what);
        }
    }
    let comparisons: Vec<HostsComparison> = known
        .into_iter()
        .map(|what| comparison(what, &all))
        .collect();
    if comparisons.is_empty() {
        let why = "none of these studies has a comparison with a verdict; one that is not finished has none yet";
        return Err(ResultError::Unfit(String::from(why)));
    }
    Ok(HostsCompared {
        schema: String::from(HOSTS_SCHEMA),
        nicpoll_version: origin.nicpoll_version.clone(),
        argv: origin.argv.clone(),
        question: all[0].question.clone(),
        margin_ratio: MARGIN,
        hosts: all.into_iter().map(|one| one.host).collect(),
        comparisons,
        differences,
    })
}

fn comparison(what: &Compared, hosts: &[HostFindings<'_>]) -> HostsComparison {
    let own = |host: &HostFindings| {
        let mut own = host.results.iter();
        let found = own.find(|(other, _)| other == what);
        found.map(|(_, result)| result.clone())
    };
    let of_hosts: Vec<Option<HostResult>> = hosts.iter().map(own).collect();
    let found = || of_hosts.iter().flatten();
    let with = |verdict: Verdict| {
        let alike = found().filter(|one| one.verdict.without_weight() == verdict);
        alike.count() as u32
    };
    let (workload, metric, setting, reference) = what.clone();
    let is_ratio = metric.kind() == MetricKind::Ratio;
    let scaled = |ratio: f64| if is_ratio { ratio.ln() } else { ratio };
    let back = |value: f64| if is_ratio { value.exp() } else { value };
    let ratios = found().filter_map(|one| one.ratio);
    let ratios: Vec<f64> = ratios.map(scaled).collect();
    let interval = signed_rank_interval(&ratios, Confidence::for_family(1)).ok();
    HostsComparison {
        better_hosts: with(Verdict::Better),
        worse_hosts: with(Verdict::Worse),
        equivalent_hosts: with(Verdict::Equivalent),
        typical_ratio: hodges_lehmann(&ratios).map(back),
        typical_interval: Ends {
            low: interval.map(|it| back(it.low)),
            high: interval.map(|it| back(it.high)),
        },
        of_hosts,
        workload,
        metric,
        setting,
        reference,
    }
}

fn result_of(one: &Comparison) -> (Compared, HostResult) {
    let (workload, setting) = (one.workload.clone(), one.setting.clone());
    let what = (workload, one.metric, setting, one.reference.clone());
    let result = HostResult {
        ratio: one.ratio.or(one.share_difference),
        interval: Ends {
            low: one.ratio_low.or(one.share_difference_low),
            high: one.ratio_high.or(one.share_difference_high),
        },
        verdict: one.verdict.unwrap_or(Verdict::Inconclusive),
    };
    (what, result)
}

/// Returns the verdict under live traffic: on CPU time at equal load, which is that of a packet.
fn result_of_live(live: &LiveAb) -> (Compared, HostResult) {
    let (setting, reference) = (live.judged.name.clone(), live.reference.name.clone());
    let workload = String::from("live traffic");
    let cpu = live.answer.cpu.as_ref();
    let cpu = cpu.filter(|cpu| cpu.reference_cores > 0.0);
    let ratio = |cores: f64| Some((1.0 + cores / cpu?.reference_cores).max(0.0));
    let cores = cpu.map(|cpu| &cpu.equal_load);
    let result = HostResult {
        ratio: cores.and_then(|it| ratio(it.cores)),
        interval: Ends {
            low: cores.and_then(|it| ratio(it.cores_low)),
            high: cores.and_then(|it| ratio(it.cores_high)),
        },
        verdict: live.answer.verdict.unwrap_or(Verdict::Inconclusive),
    };
    let what = (workload, Metric::CpuNsPerPacket, setting, reference);
    (what, result)
}

/// Returns the conditions that differ between the hosts, a sentence each: every value with its hosts.
fn differing(all: &[HostFindings<'_>]) -> Vec<String> {
    let mut values: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for one in all {
        for (what, value) in &one.conditions {
            let of_value = values.entry(what).or_default().entry(value).or_default();
            of_value.push(&one.host.host);
        }
    }
    // Hosts are other machines.
    values.remove("the machine");
    let differing = values.into_iter().filter(|(_, values)| values.len() > 1);
    let sentences = differing.map(|(what, values)| {
        let each = values.into_iter().map(|(value, hosts)| match &hosts[..] {
            few if few.len() < 4 => format!("{value} at {}", few.join(", ")),
            many => format!("{value} at {}", counted(many.len() as u32, "host")),
        });
        format!("{what} is {}", each.collect::<Vec<_>>().join("; "))
    });
    sentences.collect()
}

#[cfg(test)]
mod tests {
    use nicpoll_model::Study;
    use nicpoll_testkit::assert_has;

    use super::*;
    use crate::results::gate::{FailOn, Gate};

    /// A study at a host that found this ratio of one measure, with this verdict.
    fn at(host: &str, id: i64, ratio: f64, verdict: Verdict) -> ResultSource {
        let text = include_str!("../../../report/tests/golden/demo.json");
        let mut study: Study = serde_json::from_str(text).unwrap();
        study.host.machine = Some(String::from(host));
        study
            .comparisons
            .retain(|one| one.primary && one.kind == MetricKind::Ratio);
        study.comparisons.truncate(1);
        let one = &mut study.comparisons[0];
        (one.ratio, one.verdict) = (Some(ratio), Some(verdict));
        (one.ratio_low, one.ratio_high) = (Some(ratio - 0.02), Some(ratio + 0.02));
        source(id, study)
    }

    fn source(id: i64, study: Study) -> ResultSource {
        let name = id.to_string().parse().unwrap();
        ResultSource::Study(Box::new(StudySource::of_study(id, name, study)))
    }

    fn changed(from: ResultSource, change: impl FnOnce(&mut Study)) -> ResultSource {
        let ResultSource::Study(from) = from else {
            panic!("a study")
        };
        let mut study = *from.study.unwrap();
        change(&mut study);
        source(from.id, study)
    }

    fn six() -> Vec<ResultSource> {
        use Verdict::{
            BetterAndItMatters, Equivalent, NoDifferenceProven, Worse, WorseAndItMatters,
        };
        vec![
            at("f", 1, 1.1, BetterAndItMatters),
            at("a", 2, 0.8, WorseAndItMatters),
            at("b", 3, 0.97, Worse),
            at("c", 4, 1.0, Equivalent),
            at("d", 5, 1.01, Equivalent),
            at("e", 6, 1.02, NoDifferenceProven),
        ]
    }

    fn hosts(results: &[ResultSource], anyway: bool) -> Result<HostsCompared, ResultError> {
        let origin = Origin {
            nicpoll_version: String::from("0"),
            argv: Vec::new(),
            started_at: String::new(),
        };
        compare_hosts(results, anyway, &origin)
    }

    #[test]
    fn hosts_are_counted_by_their_words_and_six_give_the_typical_one_an_interval() {
        let found = hosts(&six(), false).unwrap();
        let names: Vec<&str> = found.hosts.iter().map(|host| host.host.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "d", "e", "f"]);
        let [one] = &found.comparisons[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            (one.better_hosts, one.worse_hosts, one.equivalent_hosts),
            (1, 2, 2)
        );
        assert_eq!(one.of_hosts[0].as_ref().unwrap().ratio, Some(0.8));
        // With six the exact interval at 95 % is from the least to the greatest.
        let ends = [one.typical_interval.low, one.typical_interval.high];
        let near = |end: Option<f64>, wanted: f64| (end.unwrap() - wanted).abs() < 1e-9;
        assert!(near(ends[0], 0.8) && near(ends[1], 1.1), "{ends:?}");
        assert!(
            (0.95..1.02).contains(&one.typical_ratio.unwrap()),
            "{one:?}"
        );
        let five = hosts(&six()[1..], false).unwrap();
        assert_eq!(five.comparisons[0].typical_interval, Ends::default());
        assert!(five.comparisons[0].typical_ratio.is_some());
    }

    #[test]
    fn one_host_shuts_the_gate_and_is_named() {
        let limit: FailOn = "worse:5%".parse().unwrap();
        let shut = limit.of_hosts(&hosts(&six(), false).unwrap());
        let Gate::Shut(by) = shut else {
            panic!("{shut:?}")
        };
        assert!(by.len() == 1 && by[0].ends_with(" at a"), "{by:?}");
        assert_eq!(
            limit.of_hosts(&hosts(&six()[2..], false).unwrap()),
            Gate::Open
        );
    }

    #[test]
    fn what_differs_between_hosts_is_told_and_a_name_of_two_meanings_is_refused() {
        let mut all = six();
        let last = all.pop().unwrap();
        all.push(changed(last, |study| {
            study.host.kernel = String::from("7.0")
        }));
        let told = hosts(&all, false).unwrap().differences;
        let kernel = told
            .iter()
            .find(|it| it.starts_with("the kernel is "))
            .unwrap();
        assert_has(kernel, "7.0 at e");
        assert_has(kernel, " at 5 hosts");
        assert!(
            !told.iter().any(|it| it.starts_with("the machine")),
            "{told:?}"
        );
        let other =
            |study: &mut Study| study.workloads[0].description = String::from("other traffic");
        let first = all.remove(0);
        all.push(changed(first, other));
        let refused = hosts(&all, false).unwrap_err().to_string();
        assert_has(refused, "'other traffic'");
        assert_has(
            hosts(&all, true).unwrap().differences.join("\n"),
            "'other traffic'",
        );
    }

    #[test]
    fn comparisons_under_live_traffic_are_put_side_by_side_too() {
        let text = include_str!("../../../report/tests/golden/ab.json");
        let live: LiveAb = serde_json::from_str(text).unwrap();
        let cpu = live.answer.cpu.unwrap();
        let all = [8, 9].map(|id| ResultSource::Live(id, Box::new(live.clone())));
        let found = hosts(&all, false).unwrap();
        let [one] = &found.comparisons[..] else {
            panic!("{found:?}")
        };
        assert_eq!(one.workload, "live traffic");
        let result = one.of_hosts[1].as_ref().unwrap();
        assert_eq!(Some(result.verdict), live.answer.verdict);
        let equal = cpu.reference_cores + cpu.equal_load.cores;
        let off = result.ratio.unwrap() * cpu.reference_cores - equal;
        assert!(off.abs() < 1e-9, "{result:?}");
    }

    #[test]
    fn a_study_without_a_verdict_is_refused() {
        let none = |source| changed(source, |study| study.comparisons.clear());
        let all: Vec<ResultSource> = six().into_iter().map(none).collect();
        assert_has(
            hosts(&all, false).unwrap_err(),
            "has a comparison with a verdict",
        );
    }
}
