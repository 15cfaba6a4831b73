//! The demo: the study of `studies/demo.toml`, and what its options make of it.

use std::time::Duration;

use nicpoll_lab::Refused;
use nicpoll_model::Plan;
use nicpoll_stats::order::Seed;

use crate::design::file::StudyFile;
use crate::design::ready::READY;
use crate::design::{Design, NamedSetting, Versus};
use crate::plan::{DEFAULT_PERIOD, DEFAULT_WARMUP, Lengths, check_period, plan_of, warmup};

/// What `nicpoll demo` is.
pub const ABOUT: &str = include_str!("demo-about.txt");

/// How it is called, and how it ends.
pub const EXAMPLES: &str = include_str!("demo-examples.txt");

/// The receiver's NAPI, woken by each arrival.
pub const INTERRUPT: &str = "interrupt";

/// The receiver's NAPI, woken by a timer.
pub const POLLING: &str = "polling";

/// The link as it comes up.
pub const DEFAULT: &str = "default";

/// The name of one of the demo's settings, if it is one.
pub fn setting_name(name: &str) -> Result<String, Refused> {
    match [DEFAULT, INTERRUPT, POLLING].contains(&name) {
        true => Ok(String::from(name)),
        false => Err(Refused(format!(
            "there is no setting '{name}'; known are {DEFAULT}, {INTERRUPT}, {POLLING}"
        ))),
    }
}

/// The workloads of a quick demo: one that many packets decide, and one that each packet's delay does.
pub(crate) const QUICK_WORKLOADS: [&str; 2] = ["udp64", "rr"];

/// The demo as its study file has it.
pub(crate) fn file() -> StudyFile {
    let (_, text) = READY[0];
    StudyFile::parse(text).expect("the program's own file is read by its tests")
}

/// The demo's design, for a period of polling.
pub fn design(period: Duration) -> Design {
    file().design.with_period(period)
}

/// A design with the one comparison in which the settings differ in the discipline alone.
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

/// A design that compares a setting with itself under two labels: whatever differs is the instrument's.
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

/// The name of one of the demo's workloads, if it is one.
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

/// What a user may ask of the demo.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DemoOptions {
    /// Short run that can show large effects only.
    pub quick: bool,
    /// Blocks.
    pub blocks: Option<u32>,
    /// Length of a trial.
    pub trial: Option<Duration>,
    /// Time from round to round under `polling`.
    pub period: Option<Duration>,
    /// Workloads; empty means all, or two with `quick`.
    pub workloads: Vec<String>,
    /// A setting that is compared with itself, instead of the settings with one another.
    pub null: Option<String>,
}

impl DemoOptions {
    /// Whether the time of the demo as it comes does not hold.
    fn has_own_time(&self) -> bool {
        self.blocks.is_some()
            || self.trial.is_some()
            || self
                .period
                .is_some_and(|period| warmup(period) > DEFAULT_WARMUP)
            || !self.workloads.is_empty()
    }
}

/// Makes the demo's design and plan of options, or says what is wrong with them.
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

/// What is compared: the demo's design, as far as it was asked for.
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
