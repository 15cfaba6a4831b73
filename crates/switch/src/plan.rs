//! Plans: from the state of interfaces and the requested values to a list of writes, or a reason for refusal.
//!
//! Nothing here reads or writes an interface. Every write states the present value. Requests that cannot work are
//! refused before the first change. [`check`] refuses; [`features`], [`preconditions`], [`settings`] and [`threads`]
//! return the writes in their order; [`preview`] returns all of them.

use std::collections::BTreeSet;

use crate::error::{Refusal, SwitchError};
use crate::journal::Change;
use crate::kernel::{Abilities, GRO_FEATURE, Napi, Target, is_stacked};
use crate::knob::row::{KnobPlace, NapiPlace, Phase, WriteRule};
use crate::knob::{KnobRow, ScopedKnob, Value, table};
use crate::request::{InterfacePart, KnobValues, Order};

mod facts;

pub use facts::{InterfaceFacts, Peer, VETH_RING_SLOTS};

/// A change to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The interface.
    pub target: Target,
    /// The knob with its present value and the value to write, as it is recorded.
    pub change: Change,
    /// Whether another write changes it too, or the value stays. It is recorded, but written only if needed.
    pub is_implied: bool,
}

impl Write {
    /// Makes a write. One that changes nothing is only recorded.
    fn new(target: &Target, knob: ScopedKnob, before: Value, written: Value) -> Self {
        Write {
            target: target.clone(),
            is_implied: before == written,
            change: Change {
                knob,
                before,
                written,
            },
        }
    }

    /// Makes a write of 0 or 1.
    fn of_flag(target: &Target, knob: ScopedKnob, on: bool) -> Self {
        Write::new(target, knob, Value::flag(!on), Value::flag(on))
    }
}

/// The writes of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// The writes, in order.
    pub writes: Vec<Write>,
    /// Whether some NAPI instances or threads appear only with these writes and cannot be listed yet.
    pub is_open_ended: bool,
}

/// A kind of tunnel: each peer has a NAPI instance without a number, which no kernel lists.
const WIREGUARD: &str = "wireguard";

/// What happens when preconditions of polling are unmet. They are: the interface is up, GRO is on, and TSO is off at a
/// veth's other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The command is refused.
    Refuse,
    /// They are met along with the rest (`--fix`).
    Fix,
    /// They are not checked: the caller has met them, perhaps on another host.
    Trust,
}

impl InterfaceFacts {
    /// Whether nothing in it can be polled.
    pub(crate) fn has_no_napi(&self) -> bool {
        let is_listed = self.link.interface.driver != WIREGUARD;
        is_listed && self.napis.as_ref().is_some_and(Vec::is_empty)
    }
}

/// Whether any value belongs to NAPI instances or to the threads that poll.
pub fn needs_napi(values: &KnobValues) -> bool {
    has_phase(values, Phase::Napi) || has_phase(values, Phase::Thread)
}

fn has_phase(values: &KnobValues, phase: Phase) -> bool {
    values.iter().any(|(row, _)| row.place.phase() == phase)
}

/// Refuses values that this interface or kernel can never take.
pub fn check(facts: &InterfaceFacts, abilities: &Abilities) -> Result<(), Refusal> {
    let values = &facts.asked.values;
    if needs_napi(values) {
        check_kind(facts)?;
    }
    check_kernel(facts, abilities)?;
    require_files(facts)?;
    for (row, to) in values.iter() {
        let is_needed = match row.place.phase() {
            Phase::Card | Phase::Host => true,
            // A feature that the driver lacks is off already.
            Phase::Feature => to.number() != Some(0),
            Phase::Link | Phase::Napi | Phase::Thread => false,
        };
        if is_needed && !facts.values.keys().any(|knob| knob.row() == row) {
            return Err(unknown_row(facts, row));
        }
    }
    Ok(())
}

fn unknown_row(facts: &InterfaceFacts, row: &KnobRow) -> Refusal {
    if let KnobPlace::Sysctl(name) = row.place {
        return facts.refusal(
            format!("its network namespace has no sysctl {name} of its own"),
            "sysctl -a lists those it has; set one of the whole machine in the host's own namespace",
        );
    }
    let (kind, _) = row.place.describe();
    let is_like = |known: &&&'static KnobRow| {
        known.place.describe().0 == kind
            && facts.values.contains_key(&ScopedKnob::of_interface(known))
    };
    let known = table::TABLE.iter().filter(is_like);
    let names: Vec<&str> = known.map(|known| known.name).collect();
    let remedy = match names.is_empty() {
        true => String::from("it has none at all; polling by a timer works without it"),
        false => format!("it has {}", names.join(", ")),
    };
    facts.refusal(format!("its driver has no {kind} {}", row.name), remedy)
}

fn check_kind(facts: &InterfaceFacts) -> Result<(), Refusal> {
    let (reason, remedy) = match facts.link.interface.driver.as_str() {
        _ if facts.link.is_loopback => (
            "a loopback hands each packet over within the sender's own call and has no NAPI",
            "there is nothing to poll",
        ),
        "tun" => (
            "a tun or tap device is fed by writes of a program, which wake its NAPI each time, whatever is set",
            "set the interface that the program's packets come from",
        ),
        WIREGUARD => {
            let only = |(row, _): (&KnobRow, _)| {
                *row == table::THREADED || row.place.phase() < Phase::Napi
            };
            if facts.asked.part == InterfacePart::Whole && facts.asked.values.iter().all(only) {
                return Ok(());
            }
            (
                "each packet that it has deciphered wakes its NAPI, whatever is set, and the kernel lists no \
                 instance of it",
                "it takes --threaded; set polling of the interface that its packets come from",
            )
        }
        kind if is_stacked(kind) => (
            "it has no queue of its own, and nothing below it is in this namespace",
            "set the interface below it, where that one is (--netns)",
        ),
        _ => return Ok(()),
    };
    Err(facts.refusal(reason, remedy))
}

fn check_kernel(facts: &InterfaceFacts, abilities: &Abilities) -> Result<(), Refusal> {
    let Order { values, part, .. } = &facts.asked;
    let missing = |(reason, remedy): (&str, &str)| {
        Err(Refusal {
            is_of_kernel: true,
            ..facts.refusal(reason, remedy)
        })
    };
    if *part != InterfacePart::Whole && !abilities.has_napi_set {
        return missing((
            "this kernel cannot set a single NAPI instance",
            "name the interface alone; Linux 6.13 or later can",
        ));
    }
    if has_phase(values, Phase::Thread) && facts.napis.is_none() {
        return missing((
            "this kernel does not say which threads poll it",
            "find them by name (napi/IF-ID) and use taskset(1) or chrt(1); Linux 6.8 or later says it",
        ));
    }
    for (row, value) in values.iter() {
        let (KnobPlace::Napi(place), Some(number)) = (&row.place, value.number()) else {
            continue;
        };
        let max = abilities.napi_max(place.attribute);
        if is_by_instance(row, value, part) && max.is_none_or(|max| number > max) {
            let lacking = place.lacking.iter().find(|one| number >= one.from);
            return missing(lacking.map_or(
                (
                    "this kernel cannot set that of a single NAPI instance",
                    "name the interface alone",
                ),
                |lacking| (lacking.reason, lacking.remedy),
            ));
        }
    }
    Ok(())
}

/// Refuses values of whole interfaces whose file this kernel lacks; what it lacks is off already.
fn require_files(facts: &InterfaceFacts) -> Result<(), Refusal> {
    let Order { values, part, .. } = &facts.asked;
    for (row, to) in values.iter() {
        let KnobPlace::Napi(NapiPlace {
            file: Some((file, _, since)),
            ..
        }) = row.place
        else {
            continue;
        };
        let is_there = facts.values.contains_key(&ScopedKnob::of_interface(row));
        if !is_there && to.number() != Some(0) && !is_by_instance(row, to, part) {
            return Err(Refusal {
                is_of_kernel: true,
                ..facts.refusal(
                    format!("this kernel's interfaces have no {file}"),
                    format!("Linux {since} or later has it"),
                )
            });
        }
    }
    Ok(())
}

/// Whether a value has to be set on each NAPI instance, because only some are concerned or the interface's own file
/// does not take it.
fn is_by_instance(row: &KnobRow, value: &Value, part: &InterfacePart) -> bool {
    let KnobPlace::Napi(place) = &row.place else {
        return false;
    };
    let takes = |(_, max, _): (&str, u64, &str)| value.number().is_some_and(|number| number <= max);
    *part != InterfacePart::Whole || !place.file.is_some_and(takes)
}

/// Returns the writes of offload features and link state, which the other writes may need.
pub fn features(all: &[InterfaceFacts]) -> Vec<Write> {
    let mut writes = Vec::new();
    for facts in all {
        let values = facts.asked.values.iter();
        for (row, to) in values.filter(|(row, _)| row.place.phase() <= Phase::Feature) {
            let own = facts.values.iter().filter(|(knob, _)| knob.row() == row);
            let changed = own.filter(|(_, from)| *from != to);
            writes.extend(changed.map(|(knob, from)| {
                Write::new(&facts.asked.target, knob.clone(), from.clone(), to.clone())
            }));
        }
    }
    writes
}

/// Returns the writes that meet the preconditions of a command, each with the interface that needs it.
///
/// # Errors
/// A refusal when a precondition is unmet and `needs` forbids the change, or no change would help.
pub fn preconditions(
    all: &[InterfaceFacts],
    needs: Needs,
) -> Result<Vec<(Target, Write)>, Refusal> {
    let planned = features(all);
    let mut needed = Vec::new();
    for facts in all {
        let writes = preconditions_of(facts, &planned, needs)?.into_iter();
        needed.extend(writes.map(|write| (facts.asked.target.clone(), write)));
    }
    Ok(needed)
}

/// The writes on an interface and its other end without which its settings cannot work, except those in `planned`.
fn preconditions_of(
    facts: &InterfaceFacts,
    planned: &[Write],
    needs: Needs,
) -> Result<Vec<Write>, Refusal> {
    if !needs_napi(&facts.asked.values) || needs == Needs::Trust {
        return Ok(Vec::new());
    }
    let mut writes = Vec::new();
    if !facts.link.is_up {
        let up = ScopedKnob::of_interface(&table::UP);
        writes.push(Write::of_flag(&facts.asked.target, up, true));
    }
    let lacks_napi = facts.napis().is_empty();
    if facts.link.interface.driver == "veth" {
        if lacks_napi && !facts.has_gro {
            let gro = ScopedKnob::of_feature(GRO_FEATURE);
            writes.extend(gro.map(|gro| Write::of_flag(&facts.asked.target, gro, true)));
        }
        writes.extend(peer_writes(facts, lacks_napi)?);
    } else if facts.has_no_napi() && facts.link.is_up {
        return Err(facts.refusal(
            "it has no NAPI instance, so nothing in it can be polled",
            "set the interface that its packets come from",
        ));
    }
    writes.retain(|write| !planned.contains(write));
    if writes.is_empty() || needs == Needs::Fix {
        return Ok(writes);
    }
    let mut seen = BTreeSet::new();
    let reasons = writes.iter().map(|write| reason_of(&write.change.knob));
    let reasons: Vec<&str> = reasons.filter(|reason| seen.insert(*reason)).collect();
    Err(facts.refusal(
        reasons.join("; "),
        "add --fix to have that changed, and put back later with the rest",
    ))
}

/// Why a write of [`preconditions_of`] is needed.
fn reason_of(knob: &ScopedKnob) -> &'static str {
    if *knob.row() == table::UP {
        "it is down, and its NAPI instances can be reached only while it is up"
    } else if *knob.row() == table::GRO {
        "GRO is off, without which a veth has no receive NAPI"
    } else {
        "TSO is on at its other end, and packets bypass a veth's NAPI"
    }
}

/// With an XDP program instead of GRO, the kernel itself keeps TSO off at the other end.
fn peer_writes(facts: &InterfaceFacts, lacks_napi: bool) -> Result<Vec<Write>, Refusal> {
    if !facts.has_gro && !lacks_napi {
        return Ok(Vec::new());
    }
    let target = facts.peer.as_ref().and_then(|peer| peer.target.as_ref());
    let (Some(peer), Some(target)) = (&facts.peer, target) else {
        return Err(facts.refusal("the other end of this veth is in a network namespace that cannot be found from here, and \
             packets bypass the NAPI while that end has TSO on",
            "give the namespace a name (ip netns attach NAME PID)",
        ));
    };
    let on = peer.tso_features_on.iter();
    let off = |name: &String| Some(Write::of_flag(target, ScopedKnob::of_feature(name)?, false));
    Ok(on.filter_map(off).collect())
}

/// Returns the writes of card and NAPI values, in order.
pub fn settings(facts: &InterfaceFacts) -> Result<Vec<Write>, Refusal> {
    require_files(facts)?;
    let Order {
        target,
        part,
        values,
    } = &facts.asked;
    let napis = chosen(facts)?;
    let mut writes = Vec::new();
    for group in napi_groups(values) {
        let is_single = |(row, to): &(&'static KnobRow, Option<&Value>)| {
            to.is_some_and(|to| is_by_instance(row, to, part))
        };
        writes.extend(if group.iter().any(is_single) {
            of_instances(target, &napis, &group)
        } else {
            of_device(facts, &group)
        });
    }
    writes.extend(of_card(facts));
    Ok(writes)
}

/// Knobs that are recorded together, with their new values; `None` for a knob that is only recorded.
type KnobGroup<'a> = Vec<(&'static KnobRow, Option<&'a Value>)>;

/// Groups the values of NAPI instances. The deferral knobs form one group: restoring one disturbs the others.
fn napi_groups(values: &KnobValues) -> Vec<KnobGroup<'_>> {
    let is_deferral = |row: &KnobRow| row.rule == WriteRule::FromRest;
    let rows = table::TABLE
        .iter()
        .filter(|row| row.place.phase() == Phase::Napi);
    let mut groups: Vec<KnobGroup> = Vec::new();
    for row in rows {
        let to = values.get(row);
        let group = groups.last_mut().filter(|group| {
            is_deferral(row) && group.last().is_some_and(|(last, _)| is_deferral(last))
        });
        match group {
            Some(group) => group.push((row, to)),
            None => groups.push(vec![(row, to)]),
        }
    }
    groups.retain(|group| group.iter().any(|(_, to)| to.is_some()));
    groups
}

fn written(target: &Target, knob: ScopedKnob, from: Value, to: Option<&Value>) -> Write {
    let to = to.unwrap_or(&from).clone();
    Write::new(target, knob, from, to)
}

/// Writes the interface's own values. The kernel copies them to every instance, so those are recorded too.
fn of_device(facts: &InterfaceFacts, group: &KnobGroup) -> Vec<Write> {
    let mut writes = Vec::new();
    for (row, to) in group {
        let knob = ScopedKnob::of_interface(row);
        let from = facts.values.get(&knob).cloned();
        writes.extend(from.map(|from| written(&facts.asked.target, knob, from, *to)));
    }
    for napi in facts.napis() {
        let own = of_instance(&facts.asked.target, napi, group);
        writes.extend(own.into_iter().map(|write| Write {
            is_implied: true,
            ..write
        }));
    }
    if writes.iter().any(|write| write.change.is_any()) {
        writes
    } else {
        Vec::new()
    }
}

fn of_instances(target: &Target, napis: &[&Napi], group: &KnobGroup) -> Vec<Write> {
    napis
        .iter()
        .map(|napi| of_instance(target, napi, group))
        .filter(|writes| writes.iter().any(|write| write.change.is_any()))
        .flatten()
        .collect()
}

fn of_instance(target: &Target, napi: &Napi, group: &KnobGroup) -> Vec<Write> {
    let of = |(row, to): &(&'static KnobRow, Option<&Value>)| {
        let knob = ScopedKnob::of_napi(row, napi.id);
        let from = Value::Number(napi.value_of(&knob)?);
        Some(written(target, knob, from, *to))
    };
    group.iter().filter_map(of).collect()
}

/// Writes the card's values. Adaptive moderation is turned off before the numbers are written, and on after.
fn of_card(facts: &InterfaceFacts) -> Vec<Write> {
    let card = facts
        .asked
        .values
        .iter()
        .filter(|(row, _)| row.place.phase() == Phase::Card);
    let mut card: Vec<_> = card.collect();
    card.sort_by_key(|(row, to)| match (row.is_adaptive(), to.number()) {
        (true, Some(0)) => 0,
        (false, _) => 1,
        (true, _) => 2,
    });
    let write = |(row, to): (&'static KnobRow, &Value)| {
        let knob = ScopedKnob::of_interface(row);
        let from = facts.values.get(&knob)?.clone();
        Some(Write::new(&facts.asked.target, knob, from, to.clone()))
    };
    let writes = card.into_iter().filter_map(write);
    writes.filter(|write| !write.is_implied).collect()
}

/// Returns the writes to the threads, once they exist.
pub fn threads(facts: &InterfaceFacts) -> Result<Vec<Write>, Refusal> {
    let mut writes = Vec::new();
    let values = &facts.asked.values;
    if !has_phase(values, Phase::Thread) {
        return Ok(writes);
    }
    for napi in chosen(facts)? {
        for (row, to) in values
            .iter()
            .filter(|(row, _)| row.place.phase() == Phase::Thread)
        {
            let knob = napi.thread_pid.map(|pid| ScopedKnob::of_thread(row, pid));
            let found = knob.and_then(|knob| Some((facts.values.get(&knob)?.clone(), knob)));
            let Some((from, knob)) = found else {
                return Err(facts.refusal(
                    format!("no thread polls NAPI instance {}", napi.id),
                    "add --threaded",
                ));
            };
            writes.push(Write::new(&facts.asked.target, knob, from, to.clone()));
        }
    }
    writes.retain(|write| !write.is_implied);
    Ok(writes)
}

/// The NAPI instances that the order concerns.
fn chosen(facts: &InterfaceFacts) -> Result<Vec<&Napi>, Refusal> {
    let napis = facts.napis();
    let find = |id: &u32| napis.iter().find(|napi| napi.id == *id);
    let unknown = |what: String, known: String| facts.refusal(format!("it has no {what}"), known);
    match &facts.asked.part {
        InterfacePart::Whole => Ok(napis.iter().collect()),
        InterfacePart::Napis(ids) => {
            let known: Vec<String> = napis.iter().map(|napi| napi.id.to_string()).collect();
            let known = format!("it has: {}", known.join(", "));
            let of =
                |id| find(id).ok_or_else(|| unknown(format!("NAPI instance {id}"), known.clone()));
            ids.iter().map(of).collect()
        }
        InterfacePart::RxQueues(queues) => {
            let known: Vec<String> = facts.rx_queues.keys().map(|q| format!("rx{q}")).collect();
            let known = match known.is_empty() {
                true => String::from(
                    "its driver does not say which NAPI serves which queue: name it by id (IF:napiN)",
                ),
                false => format!("it has {}", known.join(", ")),
            };
            let of = |queue| {
                let napi = facts.rx_queues.get(queue).and_then(find);
                napi.ok_or_else(|| unknown(format!("receive queue {queue}"), known.clone()))
            };
            queues.iter().map(of).collect()
        }
    }
}

/// Returns all writes of a command. Nothing is changed.
///
/// # Errors
/// The refusal that the command itself would get.
pub fn preview(all: &[InterfaceFacts], needs: Needs) -> Result<Preview, SwitchError> {
    let mut writes = features(all);
    let needed = preconditions(all, needs)?;
    writes.extend(needed.into_iter().map(|(_, write)| write));
    let needs_more = !writes.is_empty();
    let mut is_open_ended = false;
    for facts in all {
        let values = &facts.asked.values;
        // Instances and threads may appear only with the first writes.
        let makes_threads = values.get(&table::THREADED).is_some();
        let steps = [
            (settings(facts), needs_more),
            (threads(facts), needs_more || makes_threads),
        ];
        for (step, may_come) in steps {
            match step {
                Ok(own) => writes.extend(own),
                Err(_) if may_come => is_open_ended = true,
                Err(refusal) => return Err(refusal.into()),
            }
        }
        let is_of_instance = |row: &KnobRow| row.place.phase() == Phase::Napi && !row.has_file();
        is_open_ended |= needs_more && values.iter().any(|(row, _)| is_of_instance(row));
    }
    Ok(Preview {
        writes,
        is_open_ended,
    })
}

#[cfg(test)]
pub(crate) mod tests;
