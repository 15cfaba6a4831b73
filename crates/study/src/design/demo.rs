//! The demo: the study of `studies/demo.toml`, changed by its options.

use std::time::Duration;

use nicpoll_lab::Refused;
use nicpoll_model::Plan;
use nicpoll_stats::order::Seed;

use crate::design::file::StudyFile;
use crate::design::ready::READY;
use crate::design::{Design, NamedSetting, Versus};
use crate::plan::{DEFAULT_PERIOD, DEFAULT_WARMUP, Lengths, check_period, plan_of, warmup};

/// The long help of `nicpoll demo`.
pub const ABOUT: &str = include_str!("demo-about.txt");

/// Its examples and exit codes.
pub const EXAMPLES: &str = include_str!("demo-examples.txt");

/// The receiver's NAPI, woken by each arrival.
pub const INTERRUPT: &str = "interrupt";

/// The receiver's NAPI, woken by a timer.
pub const POLLING: &str = "polling";

/// The link as it comes up.
pub const DEFAULT: &str = "default";

/// Checks the name of a setting of the demo.
pub fn setting_name(name: &str) -> Result<String, Refused> {
    match [DEFAULT, INTERRUPT, POLLING].contains(&name) {
        true => Ok(String::from(name)),
        false => Err(Refused(format!(
            "there is no setting '{name}'; known are {DEFAULT}, {INTERRUPT}, {POLLING}"
        ))),
    }
}

/// The workloads of a quick demo: one limited by packets a second, one by the delay of each packet.
pub(crate) const QUICK_WORKLOADS: [&str; 2] = ["udp64", "rr"];

/// Parses the demo's study file.
pub(crate) fn file() -> StudyFile {
    let (_, text) = READY[0];
    StudyFile::parse(text).expect("the program's own file is read by its tests")
}

/// The demo's design, for a period of polling.
pub fn design(period: Duration) -> Design {
    file().design.with_period(period)
}

/// Keeps the one comparison whose settings differ in the discipline alone.
pub(crate) fn polling_against_interrupt(design: Design) -> Design {
    let contrast = Versus::of(POLLING, INTERRUPT);
    let drop_order = design.drop_order_of(std::slice::from_ref(&contrast));
    let settings = design.settings.into_iter();
    Design {
        settings: settings
            .filter(|setting| setting.name() != DEFAULT)
            .collect(),
        drop_order,
        contrasts: vec![contrast],
        ..design
    }
}

/// Compares a setting with itself under two labels: any difference is chance or the method's error.
pub fn null(design: Design, setting: &str) -> Design {
    let labelled = |label: u32| {
        let own = design.settings.iter().filter(|own| own.name() == setting);
        own.cloned().map(move |mut own| {
            own.setting.name = format!("{setting}-{label}");
            own.noun = format!("the same {} again", own.noun);
            own
        })
    };
    let contrast = Versus::of(&format!("{setting}-2"), &format!("{setting}-1"));
    Design {
        topology: design.topology.clone(),
        settings: labelled(1).chain(labelled(2)).collect(),
        drop_order: design.drop_order_of(std::slice::from_ref(&contrast)),
        contrasts: vec![contrast],
        question: String::from("Is a setting unlike itself?"),
        factors: Vec::new(),
        workloads: design.workloads,
    }
}

/// Checks the name of a workload of the demo.
pub fn workload_name(name: &str) -> Result<String, Refused> {
    let name = String::from(name);
    file()
        .design
        .with_workloads(std::slice::from_ref(&name))
        .map(|_| name)
}

/// The demo's settings, for a period of polling.
pub fn settings(period: Duration) -> Vec<NamedSetting> {
    design(period).settings
}

/// Blocks with `--quick`.
pub(crate) const QUICK_BLOCKS: u32 = 11;

/// Time in which a demo ends with `--quick`.
pub(crate) const QUICK_LIMIT: Duration = Duration::from_secs(40);

/// The options of the demo.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DemoOptions {
    /// Whether the run is short and shows large effects only.
    pub quick: bool,
    /// Blocks.
    pub blocks: Option<u32>,
    /// Length of a trial.
    pub trial: Option<Duration>,
    /// Time from round to round under `polling`.
    pub period: Option<Duration>,
    /// Workloads; empty means all, or two with `quick`.
    pub workloads: Vec<String>,
    /// A setting to compare with itself, instead of the settings with one another.
    pub null: Option<String>,
}

impl DemoOptions {
    /// Returns whether the options change the demo's time.
    fn has_own_time(&self) -> bool {
        self.blocks.is_some()
            || self.trial.is_some()
            || self
                .period
                .is_some_and(|period| warmup(period) > DEFAULT_WARMUP)
            || !self.workloads.is_empty()
    }
}

/// Makes the demo's design and plan, or returns what is wrong with the options.
pub fn plan(options: &DemoOptions, seed: Seed) -> Result<(Design, Plan), Refused> {
    let demo = file().lengths;
    let (blocks, limit) = if options.quick {
        (QUICK_BLOCKS, Some(QUICK_LIMIT))
    } else {
        (demo.blocks, demo.limit)
    };
    let period = options.period.unwrap_or(DEFAULT_PERIOD);
    let lengths = Lengths {
        quick: options.quick,
        blocks: options.blocks.unwrap_or(blocks),
        trial: options.trial.unwrap_or(demo.trial),
        warmup: demo.warmup,
        drain: demo.drain,
        limit: limit.filter(|_| !options.has_own_time()),
        stop_width: None,
    };
    lengths.check()?;
    check_period(period, lengths.trial)?;
    let design = design_of(options, period)?;
    let plan = plan_of(&design, &lengths, seed)?;
    Ok((design, plan))
}

/// Returns the part of the demo's design that the options ask for.
fn design_of(options: &DemoOptions, period: Duration) -> Result<Design, Refused> {
    let design = design(period);
    let design = match (&options.null, options.quick) {
        (Some(setting), _) => null(design, setting),
        (None, true) => polling_against_interrupt(design),
        (None, false) => design,
    };
    match (&options.workloads[..], options.quick) {
        ([], true) => design.with_workloads(&QUICK_WORKLOADS.map(String::from)),
        ([], false) => Ok(design),
        (asked, _) => design.with_workloads(asked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_design_is_data_and_its_names_fit_together() {
        let design = design(Duration::from_micros(100));
        assert!(
            design
                .timed()
                .all(|setting| setting.period_ns() == Some(100_000))
        );
        let json = serde_json::to_string(&design).unwrap();
        assert_eq!(serde_json::from_str::<Design>(&json).unwrap(), design);
        for Versus {
            setting, reference, ..
        } in &design.contrasts
        {
            assert!(design.setting(setting).is_some() && design.setting(reference).is_some());
        }
        assert_eq!(design.drop_order.len(), 2 * design.workloads.len());
        for comparison in &design.drop_order {
            assert!(design.workload(&comparison.workload).is_some());
        }
    }

    #[test]
    fn an_unknown_workload_is_refused_with_those_that_there_are() {
        assert_eq!(workload_name("rr").unwrap(), "rr");
        let error = workload_name("sctp").unwrap_err().to_string();
        assert!(
            error.ends_with("known are tcp, udp1470, udp64, rr"),
            "{error}"
        );
    }

    #[test]
    fn settings_say_what_they_write() {
        let facts = settings(Duration::from_micros(200))[2].facts();
        let writes: Vec<String> = facts
            .writes
            .iter()
            .map(|(side, name, value)| format!("{side}: {name} {value}"))
            .collect();
        assert_eq!(
            writes,
            [
                "sender: tso off",
                "receiver: gro on",
                "receiver: napi_defer_hard_irqs 2147483647",
                "receiver: gro_flush_timeout calibrated in warm-up to one round in 200000 ns",
            ]
        );
    }
}
