//! The knee that the shares of a sweep refer to: the greatest rate that every compared setting holds.
//!
//! Short runs find it under one setting after another, each up to what those before it hold. Whole trials then
//! confirm it: if one setting does not deliver it, the rate is lowered and all are tried again.

use std::ops::RangeInclusive;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use nicpoll_lab::{Doing, Lab, LabError, RATE_MAX, Running};
use nicpoll_model::{HELD_SHARE, Knee, KneePoint, Plan, SweepPoint, Trial, WorkUnit};
use nicpoll_traffic::workload::Books;

use crate::design::{Design, NamedWorkload};
use crate::judge::sweep::{point, rates_of};
use crate::judge::trial::TrialPlace;
use crate::plan::durations::SHOWN_SECONDS_MAX;
use crate::run::timer::{apply, begin_commands};
use crate::run::trial::Trials;

/// Traffic of a short run: at the lowest rate it still sends some hundred datagrams.
const RUN: Duration = Duration::from_millis(200);

/// Minimum time for stragglers of a short run.
const QUIET: Duration = Duration::from_millis(5);

/// The first rate that is tried, a second of each sender.
const FIRST_RATE: u64 = 1000;

/// The lowest rate that is tried.
const LAST_RATE: u64 = FIRST_RATE / 50;

/// Relative resolution of the short runs.
const RESOLUTION: f64 = 0.05;

/// Share of the requested rate that a short run must offer: a delayed sender catches up only in a longer trial.
const OFFERED_SHARE: f64 = 0.9;

/// Range of the factor by which a rate is lowered that a trial does not hold: the share that arrived.
const LOWERED: RangeInclusive<f64> = 0.8..=0.95;

/// Trials at a rate, of which two must agree: a moment's disturbance is not the system's limit.
const TRIALS: u32 = 3;

/// Finds each knee on the lab, and replaces shares of knees by rates.
///
/// # Errors
/// When no rate is held, or the traffic cannot be made.
pub(crate) fn resolved(
    lab: &mut Lab,
    mut design: Design,
    plan: &Plan,
    cancel: &AtomicBool,
) -> Result<(Design, Vec<Knee>), LabError> {
    let mut knees: Vec<Knee> = Vec::new();
    let mut per_sender = 0;
    for index in 0..design.workloads.len() {
        let Some((sweep, share)) = open_share(&design.workloads[index]) else {
            continue;
        };
        if knees.last().is_none_or(|knee| knee.sweep != sweep) {
            let mut tried = OnLab {
                lab,
                design: &design,
                plan,
                index,
                in_force: None,
                cancel,
            };
            let outcome = tried.knee();
            lab.restore()?;
            let knee = outcome.doing(|| format!("seeking the knee of {sweep}"))?;
            per_sender = knee.0;
            knees.push(Knee {
                sweep,
                asked_per_second: knee.1.first().map_or(0, |it| it.point.asked_per_second),
                shown: knee.1,
            });
        }
        let workload = &mut design.workloads[index];
        let per_second = ((per_sender as f64 * share) as u64).clamp(1, RATE_MAX);
        let asked = workload.send_at(per_second, lab.paths() as u64);
        if let (Some(load), Some(asked)) = (&mut workload.load, asked) {
            load.asked_per_second = Some(asked);
            workload.description += &format!(", {asked} a second");
        }
    }
    Ok((design, knees))
}

/// Returns the sweep and the share of its knee for which a workload has no rate yet.
fn open_share(workload: &NamedWorkload) -> Option<(String, f64)> {
    let load = workload.load.as_ref()?;
    let is_open = load.asked_per_second.is_none();
    Some((load.sweep.clone(), load.knee_ratio.filter(|_| is_open)?))
}

/// Something on which a sender's rates are tried.
trait Tried {
    /// Returns whether short runs hold a rate under a setting.
    fn holds(&mut self, setting: &str, rate: u64) -> Result<bool, LabError>;

    /// Runs trials at a rate under a setting, and sums them up.
    fn trials(&mut self, setting: &str, rate: u64) -> Result<SweepPoint, LabError>;
}

/// Returns the greatest rate that trials confirm under each of these settings, with their results.
fn knee(tried: &mut impl Tried, settings: &[&str]) -> Result<(u64, Vec<KneePoint>), LabError> {
    let mut at_most = None;
    for setting in settings {
        let held = narrowed(at_most, |rate| tried.holds(setting, rate))?;
        at_most = Some(held.ok_or_else(|| none_held(setting))?);
    }
    let mut rate = at_most.unwrap_or(FIRST_RATE);
    let mut shown: Vec<Option<(u64, SweepPoint)>> = vec![None; settings.len()];
    let mut at = 0;
    let is_open = |shown: &Option<(u64, _)>, rate| shown.as_ref().is_none_or(|it| it.0 != rate);
    // The setting that lowered the rate is tried first at the new one.
    while let Some(next) = (at..at + settings.len())
        .map(|index| index % settings.len())
        .find(|index| is_open(&shown[*index], rate))
    {
        at = next;
        let point = tried.trials(settings[at], rate)?;
        if point.ends().is_none() {
            shown[at] = Some((rate, point));
            continue;
        }
        rate = lowered(rate, &point);
        if rate < LAST_RATE {
            return Err(none_held(settings[at]));
        }
    }
    let points = shown.into_iter().flatten().zip(settings);
    let points = points.map(|((_, point), setting)| KneePoint {
        setting: String::from(*setting),
        point,
    });
    Ok((rate, points.collect()))
}

/// Returns nearly the greatest rate up to `at_most` that `holds`; `None` if none does. Without a limit the rate is
/// doubled until it is not held, then bisected.
fn narrowed(
    at_most: Option<u64>,
    mut holds: impl FnMut(u64) -> Result<bool, LabError>,
) -> Result<Option<u64>, LabError> {
    let (mut held, mut lost) = (0, at_most.unwrap_or(FIRST_RATE));
    while lost < RATE_MAX && holds(lost)? {
        if at_most.is_some() {
            return Ok(at_most);
        }
        (held, lost) = (lost, 2 * lost);
    }
    while lost - held > 1 && (lost - held) as f64 > RESOLUTION * lost as f64 && lost >= LAST_RATE {
        let between = held.midpoint(lost);
        match holds(between)? {
            true => held = between,
            false => lost = between,
        }
    }
    Ok((held > 0).then_some(held))
}

/// Returns the next rate to try after one that is not held.
fn lowered(rate: u64, point: &SweepPoint) -> u64 {
    let delivered = point.delivered_per_second.unwrap_or(0.0);
    let share = delivered / point.asked_per_second as f64;
    (rate as f64 * share.clamp(*LOWERED.start(), *LOWERED.end())) as u64
}

fn none_held(setting: &str) -> LabError {
    LabError::Unexpected(format!(
        "not even {LAST_RATE} a second are held under {setting}: there is no knee to take shares of; give rates a second"
    ))
}

/// A workload of a design on a lab.
struct OnLab<'a> {
    lab: &'a mut Lab,
    design: &'a Design,
    plan: &'a Plan,
    /// The workload.
    index: usize,
    /// The setting in force.
    in_force: Option<String>,
    cancel: &'a AtomicBool,
}

impl OnLab<'_> {
    fn knee(&mut self) -> Result<(u64, Vec<KneePoint>), LabError> {
        let settings = self.design.compared().map(|setting| setting.name());
        knee(self, &settings.collect::<Vec<&str>>())
    }

    /// Returns the workload at a rate of each sender, and the total rate.
    fn at(&self, rate: u64) -> (NamedWorkload, u64) {
        let mut rated = self.design.workloads[self.index].clone();
        rated.options.spinner = false;
        let asked = rated.send_at(rate, self.lab.paths() as u64);
        // Only workloads with a rate are swept.
        (rated, asked.unwrap_or(rate))
    }

    /// Applies a setting as in trials, or none.
    fn put(&mut self, name: Option<&str>) -> Result<(), LabError> {
        if self.in_force.as_deref() == name {
            return Ok(());
        }
        self.in_force = None;
        self.lab.restore()?;
        if let Some(setting) = name.and_then(|name| self.design.setting(name)) {
            apply(self.lab, setting, None)?;
            begin_commands(
                self.lab,
                &self.design.workloads[self.index],
                setting,
                self.cancel,
            )?;
            self.lab.watch_polls()?;
            self.in_force = Some(String::from(setting.name()));
        }
        Ok(())
    }

    fn is_held(&mut self, rate: u64) -> Result<bool, LabError> {
        let (rated, asked) = self.at(rate);
        let quiet = Duration::from_secs_f64(self.plan.drain_seconds)
            + 2 * Duration::from_nanos(self.plan.period_ns.unwrap_or(0));
        let books = Running::to_end(self.lab, &rated, RUN, quiet.max(QUIET), self.cancel)?;
        Ok(is_delivered(&books, asked, rated.request.workload().unit()))
    }
}

impl Tried for OnLab<'_> {
    fn holds(&mut self, setting: &str, rate: u64) -> Result<bool, LabError> {
        self.put(Some(setting))?;
        Ok(self.is_held(rate)? || self.is_held(rate)?)
    }

    fn trials(&mut self, setting: &str, rate: u64) -> Result<SweepPoint, LabError> {
        self.put(None)?;
        let (rated, asked) = self.at(rate);
        let (name, unit) = (rated.name.clone(), rated.request.workload().unit());
        let mut design = self.design.clone();
        design.workloads[self.index] = rated;
        let plan = Plan {
            trial_seconds: self.plan.trial_seconds.min(SHOWN_SECONDS_MAX),
            ..self.plan.clone()
        };
        let mut runs = Trials::new(self.lab, &design, &plan, self.cancel)?;
        let mut done: Vec<Trial> = Vec::new();
        for sequence in 1..=TRIALS {
            let place = TrialPlace {
                sequence,
                block: sequence,
                workload: name.clone(),
                setting: String::from(setting),
            };
            done.push(runs.run(place)?);
            if let [.., one, other] = &done[..] {
                let of = |trial| point(&name, asked, unit, &[trial]).ends().is_none();
                if of(one) == of(other) {
                    break;
                }
            }
        }
        let kept: Vec<&Trial> = done.iter().filter(|it| it.validity.is_kept()).collect();
        Ok(point(&name, asked, unit, &kept))
    }
}

/// Returns whether a short run offered nearly what was asked, and delivered it.
fn is_delivered(books: &Books, asked: u64, unit: WorkUnit) -> bool {
    let rates = rates_of(unit, books.sender, books.receiver, books.round_trip);
    rates.is_some_and(|rates| {
        let offered = match unit {
            WorkUnit::Transactions => rates.delivered,
            _ => rates.offered,
        };
        offered >= OFFERED_SHARE * asked as f64 && rates.ratio >= HELD_SHARE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host with a knee under each setting. Short runs seem to hold more, as with a queue that takes the excess;
    /// beyond the knee less is delivered than at it.
    struct Simulated {
        knees: Vec<(&'static str, u64)>,
        flattery: f64,
        trials: u32,
    }

    impl Simulated {
        fn of(&self, setting: &str) -> f64 {
            let mut knees = self.knees.iter();
            knees.find(|(name, _)| *name == setting).unwrap().1 as f64
        }
    }

    impl Tried for Simulated {
        fn holds(&mut self, setting: &str, rate: u64) -> Result<bool, LabError> {
            Ok(rate as f64 <= self.flattery * self.of(setting))
        }

        fn trials(&mut self, setting: &str, rate: u64) -> Result<SweepPoint, LabError> {
            self.trials += 1;
            let (knee, offered) = (self.of(setting), rate as f64);
            let delivered = offered.min(knee * knee / offered.max(knee));
            let point = serde_json::json!({
                "workload": "udp64@100%", "asked_per_second": rate, "offered_per_second": offered,
                "delivered_per_second": delivered, "delivered_ratio": delivered / offered, "trials": 2,
            });
            Ok(serde_json::from_value(point).unwrap())
        }
    }

    #[test]
    fn the_knee_is_what_the_worst_of_the_settings_holds_in_trials() {
        for knees in [
            vec![("interrupt", 352_000), ("polling", 410_000)],
            vec![("polling", 410_000), ("interrupt", 352_000)],
            vec![("interrupt", 352_000), ("polling", 9_000)],
            vec![("a", 70_000), ("b", 60_000), ("c", 65_000)],
            vec![("interrupt", 90)],
        ] {
            let least = knees.iter().map(|it| it.1).min().unwrap() as f64;
            let names: Vec<&str> = knees.iter().map(|it| it.0).collect();
            for flattery in [1.0, 1.27, 3.0] {
                let mut host = Simulated {
                    knees: knees.clone(),
                    flattery,
                    trials: 0,
                };
                let (rate, shown) = knee(&mut host, &names).unwrap();
                let found = rate as f64 / least;
                assert!(
                    (0.75..=1.01).contains(&found),
                    "{knees:?} {flattery}: {found}"
                );
                let settings: Vec<&str> = shown.iter().map(|it| it.setting.as_str()).collect();
                assert_eq!(settings, names);
                for one in &shown {
                    assert_eq!(one.point.asked_per_second, rate);
                    assert_eq!(one.point.ends(), None, "{knees:?} {flattery}: {one:?}");
                }
                assert!(host.trials < 20, "{knees:?} {flattery}: {}", host.trials);
            }
        }
    }

    #[test]
    fn where_a_setting_holds_nothing_it_is_named() {
        let mut host = Simulated {
            knees: vec![("interrupt", 50_000), ("deaf", 3)],
            flattery: 1.0,
            trials: 0,
        };
        let refused = knee(&mut host, &["interrupt", "deaf"]).unwrap_err();
        assert!(refused.to_string().contains("held under deaf"), "{refused}");
        // Short runs that seem to hold it are not enough.
        host.flattery = 100.0;
        let refused = knee(&mut host, &["interrupt", "deaf"]).unwrap_err();
        assert!(refused.to_string().contains("held under deaf"), "{refused}");
    }
}
