//! No verdict without enough pairs, on every way to a verdict: at the end of a study, after resuming, through a gate,
//! and as two results.

use nicpoll_model::{Metric, Origin, Study, Trial, Validity, Verdict};
use nicpoll_stats::order::Seed;
use proptest::prelude::*;

use crate::design::Design;
use crate::design::demo::{DemoOptions, plan};
use crate::judge::conclude;
use crate::results::compare::{CompareOptions, compare_results};
use crate::results::gate::{FailOn, Gate};
use crate::results::read::{ResultSource, StudySource};

const BLOCKS: u32 = 16;
const SETTINGS: [&str; 3] = ["default", "interrupt", "polling"];
/// Fewest values of a side in an unpaired comparison.
const VALUES_MIN: usize = 3;

/// What happens to a trial: why it has no figure, or the scatter of its rate in percent.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Failed,
    Void,
    Unproven,
    CutOff,
    Zero,
    Measured(u8),
}

impl Fate {
    fn of(number: u8) -> Self {
        match number {
            0..10 => Fate::Failed,
            10..20 => Fate::Void,
            20..30 => Fate::Unproven,
            30..40 => Fate::CutOff,
            40..50 => Fate::Zero,
            other => Fate::Measured(other - 50),
        }
    }

    /// Returns the rate; `None` without a figure.
    fn rate(self) -> Option<f64> {
        match self {
            Fate::Zero => Some(0.0),
            Fate::Measured(percent) => Some(1e8 * (1.0 + f64::from(percent) / 100.0)),
            _ => None,
        }
    }

    /// Applies the fate to a trial; `None` if it was never run.
    fn befalls(self, mut trial: Trial) -> Option<Trial> {
        let said = |words: &str| Some(String::from(words));
        trial.validity = Validity::default();
        match self {
            Fate::Failed => {
                trial.validity.failure = said("it crashed");
                trial.figures = None;
            }
            Fate::Void => trial.validity.external = said("the clock was stepped"),
            Fate::Unproven => {
                trial.validity.unproven = said("packets went around it");
                trial.findings.rhythm_deviation_ratio = Some(-1.0);
            }
            Fate::CutOff => return None,
            Fate::Zero | Fate::Measured(_) => {}
        }
        if let (Some(figures), Some(rate)) = (trial.figures.as_mut(), self.rate()) {
            figures.delivered_bits_per_second = rate;
        }
        Some(trial)
    }
}

/// The fate of the trial of a block under a setting.
type Fates = dyn Fn(u32, &str) -> Fate;

/// Makes a study of one workload without its trials, and the trials.
fn study(fates: &Fates) -> (Design, Study, Vec<Trial>) {
    let options = DemoOptions {
        blocks: Some(BLOCKS),
        workloads: vec![String::from("udp64")],
        ..DemoOptions::default()
    };
    let (design, plan) = plan(&options, Seed(1)).unwrap();
    let text = include_str!("../../../report/tests/golden/demo.json");
    let mut study: Study = serde_json::from_str(text).unwrap();
    let mut all = study.trials.iter();
    let one = all.find(|it| it.result().is_some()).unwrap().clone();
    study.plan = plan;
    study.trials.clear();
    study.workloads.retain(|it| it.workload == "udp64");
    let places = (1..=BLOCKS).flat_map(|block| SETTINGS.map(|setting| (block, setting)));
    let trials = places.filter_map(|(block, setting)| {
        let trial = Trial {
            block,
            workload: String::from("udp64"),
            setting: String::from(setting),
            ..one.clone()
        };
        fates(block, setting).befalls(trial)
    });
    let trials = trials.collect();
    (design, study, trials)
}

/// Counts the blocks in which both settings were measured and not both were 0.
fn pairs(fates: &Fates, setting: &str, reference: &str) -> u32 {
    let is_pair = |block: &u32| {
        let both = [setting, reference].map(|it| fates(*block, it).rate());
        both.iter().all(Option::is_some) && both.iter().flatten().any(|rate| *rate > 0.0)
    };
    (1..=BLOCKS).filter(is_pair).count() as u32
}

/// Returns whether half of the pairs are 0 on one side alone and half on the other: their ratios have no middle.
fn is_torn(fates: &Fates, setting: &str, reference: &str) -> bool {
    let zeros = [(setting, reference), (reference, setting)].map(|(zero, other)| {
        let is_it = |block: &u32| {
            fates(*block, zero).rate() == Some(0.0) && fates(*block, other).rate() > Some(0.0)
        };
        (1..=BLOCKS).filter(is_it).count() as u32
    });
    zeros[0] > 0 && zeros[0] == zeros[1] && 2 * zeros[0] == pairs(fates, setting, reference)
}

/// Returns whether this many pairs give a rank interval at a family's level: 1 + log2(family / 0.05) do.
fn suffice(pairs: u32, family: u32) -> bool {
    f64::from(pairs) >= 1.0 + (f64::from(family) / 0.05).log2()
}

fn source(id: i64, name: &str, study: &Study) -> ResultSource {
    let name = name.parse().unwrap();
    ResultSource::Study(Box::new(StudySource::of_study(id, name, study.clone())))
}

fn word_of(reference: &ResultSource, judged: &ResultSource) -> Verdict {
    let origin = Origin {
        nicpoll_version: String::from("0"),
        argv: vec![],
        started_at: String::new(),
    };
    let found = compare_results(reference, judged, CompareOptions::default(), &origin).unwrap();
    assert_eq!(found.comparisons.len(), 1);
    found.comparisons[0].verdict
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_way_to_a_verdict_gives_a_word_without_the_pairs_it_takes(
        numbers in proptest::collection::vec(0..65_u8, 3 * BLOCKS as usize),
        ended_after in 0..3 * BLOCKS as usize,
    ) {
        let fates = move |block: u32, setting: &str| {
            let arm = SETTINGS.iter().position(|it| *it == setting).unwrap();
            Fate::of(numbers[3 * (block as usize - 1) + arm])
        };
        let (design, head, trials) = study(&fates);
        let concluded = |trials: &[Trial]| {
            let study = Study { trials: trials.to_vec(), ..head.clone() };
            conclude(&design, study).unwrap()
        };
        let whole = concluded(&trials);
        let primary = || whole.comparisons.iter().filter(|one| one.primary);
        prop_assert_eq!(primary().count() as u32, whole.plan.family_comparisons);
        for one in primary() {
            let pairs = pairs(&fates, &one.setting, &one.reference);
            prop_assert_eq!(one.metric, Metric::DeliveredBitsPerSecond);
            prop_assert_eq!(one.blocks, pairs);
            let has_word = one.verdict != Some(Verdict::Inconclusive);
            let suffices = suffice(pairs, whole.plan.family_comparisons);
            let is_torn = is_torn(&fates, &one.setting, &one.reference);
            prop_assert_eq!(has_word, suffices && !is_torn);
            prop_assert_eq!(has_word, one.no_verdict.is_none());
        }
        // A gate opens only if all comparisons have a verdict.
        let limit: FailOn = "different:5%".parse().unwrap();
        if limit.of_study(&whole) == Gate::Open {
            prop_assert!(primary().all(|one| one.no_verdict.is_none()));
        }
        // An interrupted and resumed study has the verdicts of an uninterrupted one.
        let half = concluded(&trials[..ended_after.min(trials.len())]);
        let resumed = conclude(&design, Study { trials: trials.clone(), warnings: vec![], ..half });
        prop_assert_eq!(&resumed.unwrap().comparisons, &whole.comparisons);
        // Two settings of one study are compared in pairs.
        let [one, other] = ["7:interrupt", "7:polling"].map(|name| source(7, name, &whole));
        let has_word = word_of(&one, &other) != Verdict::Inconclusive;
        let suffices = suffice(pairs(&fates, "polling", "interrupt"), 1);
        let is_torn = is_torn(&fates, "polling", "interrupt");
        prop_assert_eq!(has_word, suffices && !is_torn);
        // Two studies are compared unpaired.
        let other = source(8, "8:polling", &whole);
        let fates = &fates;
        let rates = |setting: &'static str| {
            (1..=BLOCKS).filter_map(move |block| fates(block, setting).rate())
        };
        if word_of(&one, &other) != Verdict::Inconclusive {
            let [interrupt, polling] = ["interrupt", "polling"].map(rates);
            prop_assert!(interrupt.clone().count().min(polling.clone().count()) >= VALUES_MIN);
            prop_assert!(interrupt.chain(polling).any(|rate| rate > 0.0));
        }
    }
}
