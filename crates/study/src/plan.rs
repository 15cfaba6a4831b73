//! The plan: durations, repetitions and order, fixed before the first trial.

pub mod durations;

use std::time::Duration;

use nicpoll_lab::Refused;
use nicpoll_model::{ComparisonName, MainEffect, Plan};
use nicpoll_stats::Confidence;
use nicpoll_stats::order::{Seed, shuffle};
use serde::{Deserialize, Serialize};

use crate::design::{Design, NamedSetting};
use crate::plan::durations::{
    BASE, CALIBRATION_ROUNDS, CPU_WINDOW, DRAIN_MIN, RESERVE_SECONDS, SHARE, TIME_MAX,
    blocks_for_interval, blocks_needed, estimated_seconds, least_time, limit_seconds, trials,
    with_time_of_counting,
};

/// Ratio from which a difference matters.
pub const MARGIN: f64 = 1.05;

/// Default number of blocks.
pub const DEFAULT_BLOCKS: u32 = 16;

/// Many short trials find more than few long ones: the scatter of a difference is about 0.16 with 0.25 s and 0.10
/// with 1.5 s, and one long trial takes the time of four short ones.
const DEFAULT_TRIAL: Duration = Duration::from_millis(250);

pub const DEFAULT_WARMUP: Duration = Duration::from_millis(100);

/// Default period.
pub const DEFAULT_PERIOD: Duration = Duration::from_micros(200);

const TRIAL_MIN: Duration = Duration::from_millis(100);

const TRIAL_MAX: Duration = Duration::from_secs(600);

/// The longest drain: a receiver that is silent for longer considers its sender dead.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// The most blocks that a study may have.
pub(crate) const BLOCKS_MAX: u32 = 1000;

/// The shortest period: the timer's own latency in a virtual machine is about 20 us.
const PERIOD_MIN: Duration = Duration::from_micros(20);

/// Rounds that a trial must have for its rhythm to be proven.
const ROUNDS_MIN: u32 = 50;

const CALIBRATION_STEPS: u32 = 4;

/// Durations and repetitions of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lengths {
    /// Whether it is a short run that shows large effects only.
    pub quick: bool,
    /// Blocks.
    pub blocks: u32,
    /// Measured traffic of a trial.
    pub trial: Duration,
    /// Length of the warm-up; `None`: as long as the longest period needs.
    pub warmup: Option<Duration>,
    /// Time for stragglers after the last packet was sent; `None`: as long as the link needs.
    pub drain: Option<Duration>,
    /// Time in which the study ends; `None`: the estimate and a reserve.
    pub limit: Option<Duration>,
    /// The study ends once every interval is at most this share of its estimate wide; its blocks then fill its limit.
    pub stop_width: Option<f64>,
}

impl Default for Lengths {
    fn default() -> Self {
        Lengths {
            quick: false,
            blocks: DEFAULT_BLOCKS,
            trial: DEFAULT_TRIAL,
            warmup: None,
            drain: None,
            limit: None,
            stop_width: None,
        }
    }
}

/// Impossible lengths: the file's key for them, and the message.
pub(crate) struct Unfit {
    pub key: &'static str,
    pub why: Refused,
}

impl From<Unfit> for Refused {
    fn from(unfit: Unfit) -> Self {
        unfit.why
    }
}

impl Unfit {
    fn of(key: &'static str, why: impl Into<String>) -> Self {
        let why = Refused(why.into());
        Unfit { key, why }
    }
}

impl Lengths {
    pub(crate) fn check(&self) -> Result<(), Unfit> {
        if !(1..=BLOCKS_MAX).contains(&self.blocks) {
            let why = format!(
                "{} blocks are out of range; ask for 1 to {BLOCKS_MAX}",
                self.blocks
            );
            return Err(Unfit::of("blocks", why));
        }
        let warmup = self.warmup.unwrap_or_default();
        let drain = self.drain.unwrap_or(DRAIN_MIN);
        for (key, name, asked, least, most) in [
            ("trial", "trials", self.trial, TRIAL_MIN, TRIAL_MAX),
            ("warmup", "a warm-up", warmup, Duration::ZERO, TRIAL_MAX),
            ("drain", "a drain", drain, DRAIN_MIN, DRAIN_MAX),
        ] {
            if !(least..=most).contains(&asked) {
                let why = format!("{name} of {asked:?} cannot be; ask for {least:?} to {most:?}");
                return Err(Unfit::of(key, why));
            }
        }
        Ok(())
    }
}

/// Plans a design, or returns what is wrong with its lengths.
///
/// # Errors
/// When blocks, trials or a period are out of range, or a sender without nicpoll cannot send a workload.
pub fn plan_of(design: &Design, lengths: &Lengths, seed: Seed) -> Result<Plan, Refused> {
    design.sent_at_hosts()?;
    let plan = outline(design, lengths)?;
    let order = draw_order(design, plan.blocks, seed);
    let plan = Plan { order, ..plan };
    let estimated = estimated_seconds(design, &plan);
    let limit = lengths.limit.map(|limit| limit.as_secs_f64());
    Ok(Plan {
        estimated_seconds: Some(estimated.ceil()),
        limit_seconds: limit.unwrap_or_else(|| limit_seconds(estimated)),
        ..plan
    })
}

/// Returns a plan without order and time, or what is wrong with its lengths.
pub(crate) fn outline(design: &Design, lengths: &Lengths) -> Result<Plan, Unfit> {
    lengths.check()?;
    let Lengths { blocks, trial, .. } = *lengths;
    let mut period_ns = None;
    for own in design.timed().filter_map(NamedSetting::period_ns) {
        let period = check_period(Duration::from_nanos(own), trial);
        period.map_err(|why| Unfit { key: "trial", why })?;
        period_ns = period_ns.max(Some(own));
    }
    let needed = warmup(Duration::from_nanos(period_ns.unwrap_or(0)));
    let workloads = design.workloads.iter();
    let contrasts = design.contrasts.iter();
    let main_effects = design.main_effects();
    let compared = design.drop_order.iter();
    let drop_order: Vec<ComparisonName> = compared
        .map(|name| ComparisonName {
            metrics: design.judged(name),
            ..name.clone()
        })
        .collect();
    let family = family(&drop_order, &main_effects);
    let warmup_seconds = lengths.warmup.unwrap_or(needed).as_secs_f64();
    let runs = [
        warmup_seconds,
        trial.as_secs_f64(),
        CPU_WINDOW.as_secs_f64(),
    ];
    let drain = lengths
        .drain
        .unwrap_or(DRAIN_MIN + 2 * design.topology.delay());
    let mut plan = Plan {
        estimated_trial_seconds: trials(design, runs, drain),
        quick: lengths.quick,
        blocks,
        trial_seconds: trial.as_secs_f64(),
        warmup_seconds,
        cpu_window_seconds: CPU_WINDOW.as_secs_f64(),
        drain_seconds: drain.as_secs_f64(),
        period_ns,
        limit_seconds: 0.0,
        estimated_seconds: None,
        workloads: workloads.map(|workload| workload.name.clone()).collect(),
        drop_order,
        factors: design.factors.clone(),
        contrasts: contrasts
            .map(|versus| (versus.setting.clone(), versus.reference.clone()))
            .collect(),
        main_effects,
        family_comparisons: family,
        confidence_ratio: Confidence::for_family(family).level(),
        margin_ratio: MARGIN,
        stop_width_ratio: lengths.stop_width,
        order: Vec::new(),
    };
    match (lengths.stop_width, lengths.limit) {
        (Some(_), _) => plan.blocks = blocks_within(lengths, &plan, design)?,
        (None, Some(limit)) => check_time(limit, &plan)?,
        (None, None) => {}
    }
    Ok(plan)
}

/// Counts the verdicts: each judged metric, of settings and of factors' levels.
fn family(compared: &[ComparisonName], effects: &[MainEffect]) -> u32 {
    let of_settings = compared.iter().map(|one| one.metrics.len());
    let of_levels = effects.iter().flat_map(|effect| {
        let first = effect.settings.first();
        let is_first = move |one: &&ComparisonName| {
            first == Some(&(one.setting.clone(), one.reference.clone()))
        };
        compared
            .iter()
            .filter(is_first)
            .map(|one| one.metrics.len())
    });
    of_settings.chain(of_levels).sum::<usize>() as u32
}

/// Refuses a time too short for the blocks that an interval takes.
fn check_time(limit: Duration, plan: &Plan) -> Result<(), Unfit> {
    let needed = blocks_needed(plan).min(plan.blocks);
    let least = least_time(plan, needed);
    if limit >= least {
        return Ok(());
    }
    let why = format!(
        "a time of {limit:?} is too short: an interval takes {needed} blocks here, and they take {least:?} with what \
         comes before and after them"
    );
    Err(Unfit::of("time", why))
}

/// Returns the blocks that fill the time of a study with a stop rule.
fn blocks_within(lengths: &Lengths, plan: &Plan, design: &Design) -> Result<u32, Unfit> {
    let limit = lengths.limit.unwrap_or_default();
    let workloads: f64 = plan.estimated_trial_seconds.iter().sum();
    let block = design.settings.len() as f64 * workloads;
    let around = BASE.as_secs_f64() + RESERVE_SECONDS;
    let counting = (SHARE * limit.as_secs_f64()).min(TIME_MAX.as_secs_f64());
    let left = (limit.as_secs_f64() - around - counting).max(0.0);
    let blocks = (left / block) as u32;
    let needed = blocks_for_interval(plan.family_comparisons);
    if blocks < needed {
        let seconds = with_time_of_counting(around + f64::from(needed) * block);
        let least = Duration::from_secs(seconds.ceil() as u64);
        let why = format!(
            "at_most {limit:?} is too short for a stop rule: an interval takes {needed} blocks here, and they take \
             {least:?}"
        );
        return Err(Unfit::of("at_most", why));
    }
    Ok(blocks.min(BLOCKS_MAX))
}

/// Refuses a period that cannot be kept, or not be proven in a trial.
pub fn check_period(period: Duration, trial: Duration) -> Result<(), Refused> {
    if period < PERIOD_MIN {
        return Err(Refused(format!(
            "a period of {period:?} cannot be met: the kernel's timer alone takes about that long; ask for \
             {PERIOD_MIN:?} or more"
        )));
    }
    let longest = trial / ROUNDS_MIN;
    if period > longest {
        return Err(Refused(format!(
            "a period of {period:?} cannot be proven in trials of {trial:?}: they would hold fewer than {ROUNDS_MIN} \
             rounds; ask for a period of {longest:?} or less, or for longer trials"
        )));
    }
    Ok(())
}

/// Returns the length of a warm-up that tunes the timer for a period.
pub fn warmup(period: Duration) -> Duration {
    DEFAULT_WARMUP.max(period * CALIBRATION_ROUNDS * CALIBRATION_STEPS)
}

/// Draws the order: each block runs every workload in random order, each under every setting in random order.
fn draw_order(design: &Design, blocks: u32, seed: Seed) -> Vec<(String, String)> {
    let mut generator = seed.generator();
    let mut order = Vec::new();
    for _ in 0..blocks {
        let mut workloads: Vec<_> = design.workloads.iter().collect();
        shuffle(&mut workloads, &mut generator);
        for workload in workloads {
            let mut settings: Vec<_> = design.settings.iter().collect();
            shuffle(&mut settings, &mut generator);
            let settings = settings.into_iter();
            order.extend(
                settings.map(|setting| (workload.name.clone(), String::from(setting.name()))),
            );
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::demo::{self, DemoOptions, QUICK_BLOCKS, plan};
    use crate::plan::durations::trial_seconds;

    #[test]
    fn a_block_holds_every_workload_under_every_setting_once() {
        let (design, plan) = plan(&DemoOptions::default(), Seed(7)).unwrap();
        assert_eq!(plan.order.len(), 16 * 4 * 3);
        for block in plan.order.chunks(12) {
            for workload in &design.workloads {
                let mut settings: Vec<&str> = block
                    .iter()
                    .filter(|trial| trial.0 == workload.name)
                    .map(|trial| trial.1.as_str())
                    .collect();
                settings.sort();
                assert_eq!(settings, ["default", "interrupt", "polling"]);
            }
            // The settings of a workload follow one another: drift cancels.
            for trials in block.chunks(3) {
                assert!(trials.iter().all(|trial| trial.0 == trials[0].0));
            }
        }
        assert_eq!(plan.family_comparisons, 8);
    }

    #[test]
    fn the_seed_decides_the_order() {
        let order = |seed| plan(&DemoOptions::default(), Seed(seed)).unwrap().1.order;
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }

    #[test]
    fn what_cannot_be_met_is_refused_with_what_can() {
        let with = |options: DemoOptions| plan(&options, Seed(1)).unwrap_err().to_string();
        let period = |micros| DemoOptions {
            period: Some(Duration::from_micros(micros)),
            ..DemoOptions::default()
        };
        assert!(with(period(0)).contains("20µs or more"));
        assert!(with(period(1_000_000)).contains("5ms or less"));
        let trial = DemoOptions {
            trial: Some(Duration::from_millis(1)),
            ..DemoOptions::default()
        };
        assert!(with(trial).contains("100ms to 600s"));
        let blocks = DemoOptions {
            blocks: Some(0),
            ..DemoOptions::default()
        };
        assert!(with(blocks).contains("1 to 1000"));
    }

    #[test]
    fn workloads_are_reported_in_one_order_whatever_was_asked() {
        let options = DemoOptions {
            workloads: ["rr", "tcp", "rr"].map(String::from).to_vec(),
            quick: true,
            ..DemoOptions::default()
        };
        let (_, plan) = plan(&options, Seed(1)).unwrap();
        assert_eq!(plan.workloads, ["tcp", "rr"]);
        assert_eq!(plan.blocks, QUICK_BLOCKS);
        assert_eq!(plan.order.len(), 11 * 2 * 2);
    }

    #[test]
    fn the_time_is_fixed_and_grows_only_with_what_is_asked_for() {
        let limit = |options: &DemoOptions| plan(options, Seed(1)).unwrap().1.limit_seconds;
        assert_eq!(limit(&DemoOptions::default()), 150.0);
        let quick = DemoOptions {
            quick: true,
            ..DemoOptions::default()
        };
        assert_eq!(limit(&quick), 40.0);
        let long = DemoOptions {
            blocks: Some(160),
            ..DemoOptions::default()
        };
        let (_, plan) = plan(&long, Seed(1)).unwrap();
        let of = |trial: &(String, String)| trial_seconds(&plan, &trial.0);
        let planned: f64 = plan.order.iter().map(of).sum();
        assert!(plan.limit_seconds > planned && plan.limit_seconds > 150.0);
    }

    #[test]
    fn a_quick_demo_holds_polling_against_interrupts_under_two_workloads() {
        let options = DemoOptions {
            quick: true,
            ..DemoOptions::default()
        };
        let (design, plan) = plan(&options, Seed(1)).unwrap();
        assert_eq!((plan.workloads.len(), design.settings.len()), (2, 2));
        assert_eq!((plan.family_comparisons, plan.blocks), (2, QUICK_BLOCKS));
    }

    #[test]
    fn a_null_study_compares_one_setting_with_itself() {
        let options = DemoOptions {
            null: Some(String::from(demo::POLLING)),
            ..DemoOptions::default()
        };
        let (design, plan) = plan(&options, Seed(1)).unwrap();
        let [one, other] = &design.settings[..] else {
            panic!("two labels: {:?}", plan.contrasts);
        };
        assert_ne!(one.name(), other.name());
        assert_eq!(one.setting.hosts, other.setting.hosts);
        assert_eq!(one.evidence, other.evidence);
        assert_eq!(
            plan.contrasts,
            [(String::from(other.name()), String::from(one.name()))]
        );
        assert_eq!(plan.family_comparisons, 4);
    }

    #[test]
    fn a_long_period_gets_a_long_warm_up() {
        let options = DemoOptions {
            period: Some(Duration::from_millis(10)),
            trial: Some(Duration::from_secs(1)),
            ..DemoOptions::default()
        };
        assert_eq!(plan(&options, Seed(1)).unwrap().1.warmup_seconds, 1.0);
    }
}
