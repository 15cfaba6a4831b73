//! Restores values in the order that works, and finds changes that somebody else made meanwhile.
//!
//! The order matters (see the kernel's `napi_complete_done`): if only the deferral count is set to 0, an idle NAPI
//! keeps counting down the old number. So first count and timeout are set to 0. Then one old timeout passes, in which
//! the timer fires a last time and unmasks the interrupt. Only then are the old values written: those of the interface
//! first, because the kernel copies them to every NAPI instance, then those of each instance. Threads come before all
//! this, while they exist; features come last, because turning them off may remove the NAPI. Apart from the zeros in
//! between, only recorded values are written.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use nicpoll_model::DriftShow;
use nicpoll_sys::schedule::Policy;

use crate::error::SwitchError;
use crate::journal::{Change, fault_point};
use crate::kernel::{Kernel, Target};
use crate::knob::row::{Phase, WriteRule};
use crate::knob::{KnobRow, KnobUnit, Scope, ScopedKnob, Value, table};

/// Latest start of a due timer and its softirq on a busy machine.
const TIMER_LATENCY: Duration = Duration::from_millis(10);

/// A step of restoring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UndoStep {
    /// Writes a value unless the knob has it already.
    Write(ScopedKnob, Value),
    /// Waits until a timer that may be running has fired a last time.
    Wait(Duration),
}

/// A knob that somebody else changed after nicpoll did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drift {
    /// The knob.
    pub knob: ScopedKnob,
    /// The value written.
    pub written: Value,
    /// The value now; null if the knob is gone.
    pub now: Option<Value>,
}

impl Drift {
    /// Describes the change.
    pub fn describe(&self, interface: &str) -> String {
        let Drift { knob, written, now } = self;
        match now {
            Some(now) => format!(
                "{interface}: {knob} is {now}; nicpoll had set it to {written}, and somebody else changed it since"
            ),
            None => format!("{interface}: {knob} is gone; nicpoll had set it to {written}"),
        }
    }
}

impl From<&Drift> for DriftShow {
    fn from(drift: &Drift) -> Self {
        DriftShow {
            name: drift.knob.to_string(),
            written: drift.written.to_string(),
            now: drift.now.as_ref().map(Value::to_string),
        }
    }
}

/// Finds values that somebody else changed: an administrator, NetworkManager, tuned, or the driver at a reset.
pub fn drift(
    kernel: &mut dyn Kernel,
    target: &Target,
    changes: &[Change],
) -> Result<Vec<Drift>, SwitchError> {
    let mut found = Vec::new();
    for change in changes {
        let now = kernel.read(target, &change.knob)?;
        if now.as_ref() == Some(&change.written) {
            continue;
        }
        // An instance disappears when the interface goes down; the interface's own value stays.
        let device = change.knob.of_device();
        let is_kept = device.is_some_and(|device| changes.iter().any(|c| c.knob == device));
        if now.is_some() || !is_kept {
            found.push(Drift {
                knob: change.knob.clone(),
                written: change.written.clone(),
                now,
            });
        }
    }
    Ok(found)
}

/// Finds such values before restoring, except those that an earlier try restored or left at rest.
pub(crate) fn drift_before_putting_back(
    kernel: &mut dyn Kernel,
    target: &Target,
    changes: &[Change],
) -> Result<Vec<Drift>, SwitchError> {
    let mut found = drift(kernel, target, changes)?;
    found.retain(|drift| {
        let is_back = |change: &Change| {
            change.knob == drift.knob && Some(&change.before) == drift.now.as_ref()
        };
        let is_at_rest = drift.knob.is_deferral() && drift.now == Some(Value::Number(0));
        !is_at_rest && !changes.iter().any(is_back)
    });
    Ok(found)
}

/// Restores every change. Values that are restored already are skipped, so this may be repeated after an interruption.
pub fn restore(
    kernel: &mut dyn Kernel,
    target: &Target,
    changes: &[Change],
) -> Result<(), SwitchError> {
    let is_down =
        kernel.read(target, &ScopedKnob::of_interface(&table::UP))? == Some(Value::flag(false));
    if is_down && has_values_of_instances(changes) {
        return Err(when_up(
            target,
            "is down, and its NAPI instances had values of their own, which can be put back only while it is up. Bring \
             it up",
            "",
        ));
    }
    run(kernel, target, &steps_back(changes))?;
    for change in changes {
        match kernel.read(target, &change.knob)? {
            // The knob no longer exists, nor does its value.
            None => {}
            Some(now) if now == change.before => {}
            Some(now) => {
                return Err(not_taken(target, &change.knob, &change.before, Some(now)));
            }
        }
    }
    Ok(())
}

/// Ends timer polling in the scopes of these changes, so new values start from rest.
pub(crate) fn come_to_rest(
    kernel: &mut dyn Kernel,
    target: &Target,
    changes: &[Change],
) -> Result<(), SwitchError> {
    run(kernel, target, &steps_to_rest(changes))
}

fn run(kernel: &mut dyn Kernel, target: &Target, steps: &[UndoStep]) -> Result<(), SwitchError> {
    for step in steps {
        match step {
            UndoStep::Wait(time) => kernel.wait(*time),
            UndoStep::Write(knob, value) => {
                let now = kernel.read(target, knob)?;
                if now.is_some_and(|now| now != *value) {
                    fault_point();
                    let written = kernel.write(target, knob, value);
                    written.map_err(|error| explained(error, target, knob))?;
                }
            }
        }
    }
    Ok(())
}

fn explained(error: SwitchError, target: &Target, knob: &ScopedKnob) -> SwitchError {
    let is_of_all = knob.row().place.phase() == Phase::Napi && knob.scope() == Scope::Device;
    if is_of_all && error.kind() == io::ErrorKind::Unsupported {
        return when_up(
            target,
            "has no NAPI instance now, and the kernel changes 'threaded' only while it has one. Bring it up",
            "; a veth needs GRO on, too",
        );
    }
    error
}

/// The error when values can be restored only while the interface is up.
fn when_up(target: &Target, why: &str, more: &str) -> SwitchError {
    let (name, up) = (&target.interface.name, target.bring_up());
    let netns = target.netns_option();
    SwitchError::Failed(format!(
        "{name} {why} ({up}{more}), then: nicpoll restore {name}{netns}"
    ))
}

/// The error when the kernel or driver refuses a value; it keeps the kind of the kernel's answer.
pub(crate) fn refused(
    error: SwitchError,
    target: &Target,
    knob: &ScopedKnob,
    asked: &Value,
) -> SwitchError {
    let SwitchError::System { doing, source } = error else {
        return error;
    };
    let name = &target.interface.name;
    SwitchError::System {
        doing: format!(
            "{name} does not take {knob} = {asked}, and is as it was; ask for another value or leave it out (its driver and \
             'nicpoll show {name}' tell what it has). {doing}"
        ),
        source,
    }
}

/// The error when the kernel accepts a value but shows another one.
pub(crate) fn not_taken(
    target: &Target,
    knob: &ScopedKnob,
    asked: &Value,
    is: Option<Value>,
) -> SwitchError {
    let is = is.map_or_else(|| String::from("gone"), |is| is.to_string());
    SwitchError::Failed(format!(
        "{}: {knob} is {is} after it was set to {asked}; the driver does not allow it, or \
         something else changes it too",
        target.interface.name
    ))
}

/// Whether NAPI instances had values of their own, which are accessible only while the interface is up.
fn has_values_of_instances(changes: &[Change]) -> bool {
    changes
        .iter()
        .filter(|change| change.knob.napi_id().is_some())
        .any(|change| {
            let device = change.knob.of_device();
            let whole = changes.iter().find(|c| Some(&c.knob) == device.as_ref());
            whole.is_none_or(|whole| whole.before != change.before)
        })
}

fn steps_to_rest(changes: &[Change]) -> Vec<UndoStep> {
    let scopes: BTreeSet<Scope> = changes
        .iter()
        .filter(|change| change.knob.is_deferral())
        .map(|change| change.knob.scope())
        .collect();
    if scopes.is_empty() {
        return Vec::new();
    }
    let zero = |row, scope| UndoStep::Write(ScopedKnob::new(row, scope), Value::Number(0));
    let of = |scope| deferral_rows().map(move |row| zero(row, scope));
    let mut steps: Vec<UndoStep> = scopes.into_iter().flat_map(of).collect();
    let longest = changes
        .iter()
        .filter(|change| change.knob.is_deferral() && change.knob.row().unit == KnobUnit::Time)
        .flat_map(|change| [change.before.number(), change.written.number()])
        .flatten()
        .max();
    steps.push(UndoStep::Wait(
        Duration::from_nanos(longest.unwrap_or(0)) + TIMER_LATENCY,
    ));
    steps
}

fn deferral_rows() -> impl Iterator<Item = &'static KnobRow> {
    let rows = table::TABLE.iter().copied();
    rows.filter(|row| row.rule == WriteRule::FromRest)
}

fn back(change: &Change) -> UndoStep {
    UndoStep::Write(change.knob.clone(), change.before.clone())
}

pub(crate) fn steps_back(changes: &[Change]) -> Vec<UndoStep> {
    let of = |phase: Phase| {
        changes
            .iter()
            .filter(move |change| change.knob.row().place.phase() == phase)
    };
    let mut steps = thread_steps(of(Phase::Thread).collect());
    steps.extend(steps_to_rest(changes));
    // The interface's own values come before those of its instances, and in each group threads before deferral.
    let mut values: Vec<&Change> = of(Phase::Napi).collect();
    values.sort_by_key(|change| (change.knob.scope(), table::position_of(change.knob.row())));
    steps.extend(values.into_iter().map(back));
    steps.extend(card_steps(&of(Phase::Card).collect::<Vec<_>>()));
    let mut features: Vec<&Change> = of(Phase::Feature).collect();
    features.reverse();
    steps.extend(features.into_iter().map(back));
    steps.extend(of(Phase::Link).map(back));
    steps.extend(of(Phase::Host).map(back));
    steps
}

/// Orders the steps of threads. A SCHED_DEADLINE thread may use every CPU and cannot be bound, so a thread leaves that
/// class before its CPUs are restored, and enters it after.
fn thread_steps(mut changes: Vec<&Change>) -> Vec<UndoStep> {
    changes.sort_by_key(|change| match &change.before {
        Value::Policy(Policy::Deadline { .. }) => 2,
        Value::Policy(_) => 0,
        Value::Cpus(_) | Value::Number(_) | Value::Text(_) => 1,
    });
    changes.into_iter().map(back).collect()
}

/// Orders the steps of a card: adaptive moderation is turned off before the numbers are written.
fn card_steps(changes: &[&Change]) -> Vec<UndoStep> {
    let of = |adaptive: bool| {
        let own = changes.iter().copied();
        own.filter(move |change| change.knob.row().is_adaptive() == adaptive)
    };
    let off = of(true).map(|change| UndoStep::Write(change.knob.clone(), Value::Number(0)));
    off.chain(of(false).map(back))
        .chain(of(true).map(back))
        .collect()
}

#[cfg(test)]
mod tests;
