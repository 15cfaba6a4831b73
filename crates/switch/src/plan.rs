//! From what is there and what is asked for to a list of writes, or a reason why not.
//!
//! What must hold: nothing here reads or writes anything; every write says what is there now; what
//! cannot work is refused before anything is changed.

use std::collections::BTreeSet;

use thiserror::Error;

use crate::control::Napi;
use crate::facts::{GRO_FEATURE, InterfaceFacts};
use crate::kernel::Target;
use crate::knob::place::Place;
use crate::knob::{Knob, KnobRow, Manner, Phase, Value, table};
use crate::lower::is_stacked;
use crate::probe::Abilities;
use crate::request::{Part, Values};
use crate::sysctl;
use crate::transaction::Write;

/// Why something is not done, and what helps.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{interface}: {reason}; {remedy}")]
#[non_exhaustive]
pub struct Refusal {
    /// The interface.
    pub interface: String,
    /// Why.
    pub reason: String,
    /// What to do.
    pub remedy: String,
    /// What kind of refusal it is.
    pub kind: RefusalKind,
}

/// What kind of refusal it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalKind {
    /// This interface cannot do it.
    Impossible,
    /// It could after a change that was not asked for (`--fix`).
    Precondition,
    /// This kernel has no such thing.
    Kernel,
    /// The interface has no such part or parameter.
    Unknown,
}

impl Refusal {
    fn new(facts: &InterfaceFacts, kind: RefusalKind, reason: &str, remedy: &str) -> Self {
        Refusal {
            interface: facts.target.interface.name.clone(),
            reason: String::from(reason),
            remedy: String::from(remedy),
            kind,
        }
    }
}

/// Whether any of it is a value of NAPI instances or of the threads that poll.
pub fn needs_napi(values: &Values) -> bool {
    has_phase(values, Phase::Napi) || has_phase(values, Phase::Thread)
}

/// Whether threads come with it.
pub fn makes_threads(values: &Values) -> bool {
    values.get(&table::THREADED).is_some()
}

/// Whether any of it is set on each NAPI instance and never on the interface.
pub fn is_of_instances(values: &Values) -> bool {
    let is_of_instance = |row: &KnobRow| row.phase == Phase::Napi && !row.has_file();
    values.iter().any(|(row, _)| is_of_instance(row))
}

fn has_phase(values: &Values, phase: Phase) -> bool {
    values.iter().any(|(row, _)| row.phase == phase)
}

/// Refuses what can never work on this interface or kernel.
pub fn check(
    facts: &InterfaceFacts,
    abilities: &Abilities,
    values: &Values,
    part: &Part,
) -> Result<(), Refusal> {
    if needs_napi(values) {
        check_kind(facts)?;
    }
    check_kernel(facts, abilities, values, part)?;
    for (row, to) in values.iter() {
        let is_asked = match row.phase {
            Phase::Card | Phase::Host => true,
            // What cannot be on is off.
            Phase::Feature => to.number() != Some(0),
            Phase::Link | Phase::Napi | Phase::Thread => false,
        };
        if !is_asked || facts.values.keys().any(|knob| knob.row() == row) {
            continue;
        }
        if let Place::Sysctl(name) = row.place {
            let (reason, remedy) = sysctl::why_not(name);
            return Err(Refusal::new(facts, RefusalKind::Unknown, &reason, remedy));
        }
        let kind = row.place.describe();
        let is_like = |known: &&&'static KnobRow| {
            known.place.describe() == kind && facts.values.contains_key(&Knob::of_interface(known))
        };
        let known = table::TABLE.iter().filter(is_like);
        let names: Vec<&str> = known.map(|known| known.name).collect();
        let reason = format!("its driver has no {kind} {}", row.name);
        let remedy = if names.is_empty() {
            String::from("it has none at all; polling by a timer works without")
        } else {
            format!("it has {}", names.join(", "))
        };
        return Err(Refusal::new(facts, RefusalKind::Unknown, &reason, &remedy));
    }
    Ok(())
}

fn check_kind(facts: &InterfaceFacts) -> Result<(), Refusal> {
    let impossible = |reason: &str, remedy: &str| {
        Err(Refusal::new(facts, RefusalKind::Impossible, reason, remedy))
    };
    if facts.link.is_loopback {
        return impossible(
            "a loopback hands each packet over within the sender's own call and has no NAPI",
            "there is nothing to poll",
        );
    }
    match facts.link.interface.driver.as_str() {
        "tun" => impossible(
            "a tun or tap device is fed by writes of a program, which wake its NAPI each time, whatever is set",
            "set the interface that the program's packets come from",
        ),
        driver if is_stacked(driver) => impossible(
            "it has no queue of its own, and nothing below it is in this namespace",
            "set the interface below it, where that one is (--netns)",
        ),
        _ => Ok(()),
    }
}

fn check_kernel(
    facts: &InterfaceFacts,
    abilities: &Abilities,
    values: &Values,
    part: &Part,
) -> Result<(), Refusal> {
    let missing =
        |reason: &str, remedy: &str| Err(Refusal::new(facts, RefusalKind::Kernel, reason, remedy));
    if *part != Part::Whole && !abilities.has_napi_set {
        return missing(
            "this kernel cannot set a single NAPI instance",
            "name the interface alone; Linux 6.13 or later can",
        );
    }
    if has_phase(values, Phase::Thread) && facts.napis.is_none() {
        return missing(
            "this kernel does not say which threads poll it",
            "find them by name (napi/IF-ID) and use taskset(1) or chrt(1); Linux 6.8 or later says it",
        );
    }
    for (row, value) in values.iter() {
        let (Place::Napi(scoped), Some(number)) = (&row.place, value.number()) else {
            continue;
        };
        let max = abilities.napi_max(scoped.attribute);
        if is_by_instance(row, value, part) && max.is_none_or(|max| number > max) {
            let lacking = scoped.lacking.iter().find(|one| number >= one.from);
            return match lacking {
                Some(lacking) => missing(lacking.reason, lacking.remedy),
                None => missing(
                    "this kernel cannot set that of a single NAPI instance",
                    "name the interface alone",
                ),
            };
        }
    }
    Ok(())
}

/// Whether a value of NAPI instances is set on each of them, because only some are meant or the interface's
/// own file does not take it.
fn is_by_instance(row: &KnobRow, value: &Value, part: &Part) -> bool {
    let Place::Napi(scoped) = &row.place else {
        return false;
    };
    let takes = |(_, max): (&str, u64)| value.number().is_some_and(|number| number <= max);
    *part != Part::Whole || !scoped.file.is_some_and(takes)
}

/// The offload features and the link's state that are to be set.
pub fn features(facts: &InterfaceFacts, values: &Values) -> Vec<Write> {
    let mut writes = Vec::new();
    for (row, to) in values.iter().filter(|(row, _)| row.phase <= Phase::Feature) {
        let own = facts.values.iter().filter(|(knob, _)| knob.row() == row);
        for (knob, from) in own.filter(|(_, from)| *from != to) {
            writes.push(Write {
                target: facts.target.clone(),
                knob: knob.clone(),
                from: from.clone(),
                to: to.clone(),
                is_implied: false,
            });
        }
    }
    writes
}

/// What becomes of what polling needs and does not find: an interface that is up, GRO, and no TSO at a veth's other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The command is refused.
    Refuse,
    /// It is changed with the rest (`--fix`).
    Fix,
    /// Nothing: whoever asks has seen to it, on another host perhaps.
    Trust,
}

/// What has to be changed before the settings can work: on the interface itself, or on its other end. `planned` is
/// changed anyhow.
///
/// # Errors
/// A refusal when something has to be changed and `needs` does not allow it, or nothing would help.
pub fn preconditions(
    facts: &InterfaceFacts,
    values: &Values,
    planned: &[Write],
    needs: Needs,
) -> Result<Vec<Write>, Refusal> {
    if !needs_napi(values) || needs == Needs::Trust {
        return Ok(Vec::new());
    }
    let mut writes = Vec::new();
    if !facts.link.is_up {
        writes.push(write(&facts.target, Knob::of_interface(&table::UP), 0, 1));
    }
    let lacks_napi = facts.napis().is_empty();
    if facts.link.interface.driver == "veth" {
        if lacks_napi && !facts.has_gro {
            let gro = Knob::of_feature(GRO_FEATURE);
            writes.extend(gro.map(|gro| write(&facts.target, gro, 0, 1)));
        }
        writes.extend(peer_writes(facts, lacks_napi)?);
    } else if lacks_napi && facts.link.is_up && facts.napis.is_some() {
        return Err(Refusal::new(
            facts,
            RefusalKind::Impossible,
            "it has no NAPI instance, so nothing in it can be polled",
            "set the interface that its packets come from",
        ));
    }
    writes.retain(|write| !planned.contains(write));
    if writes.is_empty() || needs == Needs::Fix {
        return Ok(writes);
    }
    let reasons: Vec<&str> = writes.iter().map(|write| reason_of(&write.knob)).collect();
    let mut seen = BTreeSet::new();
    let reasons: Vec<&str> = reasons.into_iter().filter(|r| seen.insert(*r)).collect();
    Err(Refusal::new(
        facts,
        RefusalKind::Precondition,
        &reasons.join("; "),
        "add --fix to have that changed, and put back later with the rest",
    ))
}

/// The rows that [`preconditions`] writes, with the reason.
fn reason_of(knob: &Knob) -> &'static str {
    if *knob.row() == table::UP {
        "it is down, and its NAPI instances can be reached only while it is up"
    } else if *knob.row() == table::GRO {
        "GRO is off, without which a veth has no receive NAPI"
    } else {
        "TSO is on at its other end, so that packets go past a veth's NAPI"
    }
}

/// With an XDP program instead of GRO the kernel keeps TSO off at the other end by itself.
fn peer_writes(facts: &InterfaceFacts, lacks_napi: bool) -> Result<Vec<Write>, Refusal> {
    if !facts.has_gro && !lacks_napi {
        return Ok(Vec::new());
    }
    let target = facts.peer.as_ref().and_then(|peer| peer.target.as_ref());
    let (Some(peer), Some(target)) = (&facts.peer, target) else {
        return Err(Refusal::new(
            facts,
            RefusalKind::Precondition,
            "the other end of this veth is in a network namespace that cannot be found from here, and \
             packets go past the NAPI while that end has TSO on",
            "give the namespace a name (ip netns attach NAME PID)",
        ));
    };
    let off = peer.tso_features_on.iter();
    Ok(off
        .filter_map(|name| Some(write(target, Knob::of_feature(name)?, 1, 0)))
        .collect())
}

/// The writes of the settings themselves, in the order in which they are made.
pub fn settings(
    facts: &InterfaceFacts,
    values: &Values,
    part: &Part,
) -> Result<Vec<Write>, Refusal> {
    let napis = chosen(facts, part)?;
    let mut writes = Vec::new();
    for group in napi_groups(values) {
        let is_single = |(row, to): &(&'static KnobRow, Option<&Value>)| {
            to.is_some_and(|to| is_by_instance(row, to, part))
        };
        writes.extend(if group.iter().any(is_single) {
            of_instances(&facts.target, &napis, &group)
        } else {
            of_device(facts, &group)
        });
    }
    writes.extend(of_card(facts, values));
    Ok(writes)
}

/// Knobs that are recorded together, with what they are to hold; `None` for one that is only recorded.
type Group<'a> = Vec<(&'static KnobRow, Option<&'a Value>)>;

/// The values of NAPI instances that are to be set. All deferral knobs are one group: putting one of them back
/// disturbs the others.
fn napi_groups(values: &Values) -> Vec<Group<'_>> {
    let is_deferral = |row: &KnobRow| row.manner == Manner::Deferral;
    let rows = table::TABLE.iter().filter(|row| row.phase == Phase::Napi);
    let mut groups: Vec<Group> = Vec::new();
    for row in rows {
        let to = values.get(row);
        let beside = groups.last_mut().filter(|group| {
            is_deferral(row) && group.last().is_some_and(|(last, _)| is_deferral(last))
        });
        match beside {
            Some(group) => group.push((row, to)),
            None => groups.push(vec![(row, to)]),
        }
    }
    groups.retain(|group| group.iter().any(|(_, to)| to.is_some()));
    groups
}

/// A write to the interface goes to every instance at once, so what each of them held is recorded too.
fn of_device(facts: &InterfaceFacts, group: &Group) -> Vec<Write> {
    let mut writes = Vec::new();
    for (row, to) in group {
        let knob = Knob::of_interface(row);
        let from = facts.values.get(&knob).cloned();
        writes.extend(from.map(|from| grouped(&facts.target, knob, from, *to)));
    }
    for napi in facts.napis() {
        let own = of_instance(&facts.target, napi, group);
        writes.extend(own.into_iter().map(|write| Write {
            is_implied: true,
            ..write
        }));
    }
    if writes.iter().any(|write| write.from != write.to) {
        writes
    } else {
        Vec::new()
    }
}

fn of_instances(target: &Target, napis: &[&Napi], group: &Group) -> Vec<Write> {
    napis
        .iter()
        .map(|napi| of_instance(target, napi, group))
        .filter(|writes| writes.iter().any(|write| write.from != write.to))
        .flatten()
        .collect()
}

fn of_instance(target: &Target, napi: &Napi, group: &Group) -> Vec<Write> {
    let of = |(row, to): &(&'static KnobRow, Option<&Value>)| {
        let knob = Knob::of_napi(row, napi.id);
        let from = Value::Number(napi.value_of(&knob)?);
        Some(grouped(target, knob, from, *to))
    };
    group.iter().filter_map(of).collect()
}

/// A write of a group: one that changes nothing is only recorded.
fn grouped(target: &Target, knob: Knob, from: Value, to: Option<&Value>) -> Write {
    let to = to.unwrap_or(&from).clone();
    Write {
        target: target.clone(),
        knob,
        is_implied: to == from,
        from,
        to,
    }
}

/// The driver stops moving the numbers before they are written, and starts after.
fn of_card(facts: &InterfaceFacts, values: &Values) -> Vec<Write> {
    let card = values.iter().filter(|(row, _)| row.phase == Phase::Card);
    let mut card: Vec<_> = card.collect();
    card.sort_by_key(|(row, to)| match (row.is_adaptive(), to.number()) {
        (true, Some(0)) => 0,
        (false, _) => 1,
        (true, _) => 2,
    });
    let write = |(row, to): (&'static KnobRow, &Value)| {
        let knob = Knob::of_interface(row);
        let from = facts.values.get(&knob)?.clone();
        Some(grouped(&facts.target, knob, from, Some(to)))
    };
    let writes = card.into_iter().filter_map(write);
    writes.filter(|write| !write.is_implied).collect()
}

/// What becomes of the threads, once they are there.
pub fn threads(
    facts: &InterfaceFacts,
    values: &Values,
    part: &Part,
) -> Result<Vec<Write>, Refusal> {
    let mut writes = Vec::new();
    if !has_phase(values, Phase::Thread) {
        return Ok(writes);
    }
    for napi in chosen(facts, part)? {
        for (row, to) in values.iter().filter(|(row, _)| row.phase == Phase::Thread) {
            let knob = napi.thread_pid.map(|pid| Knob::of_thread(row, pid));
            let found = knob.and_then(|knob| Some((facts.values.get(&knob)?.clone(), knob)));
            let Some((from, knob)) = found else {
                return Err(Refusal::new(
                    facts,
                    RefusalKind::Precondition,
                    &format!("no thread polls NAPI instance {}", napi.id),
                    "add --threaded",
                ));
            };
            writes.push(grouped(&facts.target, knob, from, Some(to)));
        }
    }
    writes.retain(|write| !write.is_implied);
    Ok(writes)
}

fn chosen<'a>(facts: &'a InterfaceFacts, part: &Part) -> Result<Vec<&'a Napi>, Refusal> {
    let unknown = |what: &str, known: String| {
        let reason = format!("it has no {what}");
        Refusal::new(facts, RefusalKind::Unknown, &reason, &known)
    };
    let ids = match part {
        Part::Whole => return Ok(facts.napis().iter().collect()),
        Part::Napis(ids) => ids.clone(),
        Part::RxQueues(queues) => {
            let of = |queue: &u32| facts.rx_queues.get(queue).copied();
            let known: Vec<String> = facts.rx_queues.keys().map(|q| format!("rx{q}")).collect();
            let remedy = if known.is_empty() {
                String::from(
                    "its driver does not say which NAPI serves which queue: name it by id (IF:napiN)",
                )
            } else {
                format!("it has {}", known.join(", "))
            };
            let ids = queues.iter().map(|queue| {
                of(queue).ok_or_else(|| unknown(&format!("receive queue {queue}"), remedy.clone()))
            });
            ids.collect::<Result<_, _>>()?
        }
    };
    let known: Vec<String> = facts
        .napis()
        .iter()
        .map(|napi| napi.id.to_string())
        .collect();
    let find = |id: &u32| facts.napis().iter().find(|napi| napi.id == *id);
    ids.iter()
        .map(|id| {
            let remedy = format!("it has: {}", known.join(", "));
            find(id).ok_or_else(|| unknown(&format!("NAPI instance {id}"), remedy))
        })
        .collect()
}

fn write(target: &Target, knob: Knob, from: u64, to: u64) -> Write {
    Write {
        target: target.clone(),
        knob,
        from: Value::Number(from),
        to: Value::Number(to),
        is_implied: false,
    }
}

#[cfg(test)]
pub(crate) mod tests;
