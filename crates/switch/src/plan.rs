//! From what is there and what is asked for to a list of writes, or a reason why not.
//!
//! What must hold: nothing here reads or writes anything; every write says what is there now; what
//! cannot work is refused before anything is changed.

use std::collections::BTreeSet;

use thiserror::Error;

use crate::control::Napi;
use crate::facts::{Facts, GRO_FEATURE};
use crate::kernel::Target;
use crate::knob::{Knob, Scope, Value};
use crate::lower::is_stacked;
use crate::probe::Abilities;
use crate::request::{Group, Part, Request};
use crate::transaction::Write;

/// Threads that poll without end.
const THREADED_BUSY_POLL: u32 = 2;

/// Why something is not done, and what helps.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{interface}: {reason}; {remedy}")]
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
    fn new(facts: &Facts, kind: RefusalKind, reason: &str, remedy: &str) -> Self {
        Refusal {
            interface: facts.target.interface.name.clone(),
            reason: String::from(reason),
            remedy: String::from(remedy),
            kind,
        }
    }
}

/// Refuses what can never work on this interface or kernel.
pub fn check(
    facts: &Facts,
    abilities: &Abilities,
    request: &Request,
    part: &Part,
) -> Result<(), Refusal> {
    if request.needs_napi() {
        check_kind(facts)?;
    }
    check_kernel(facts, abilities, request, part)?;
    let unknown = request
        .moderation
        .keys()
        .find(|parameter| !facts.moderation.contains_key(parameter));
    if let Some(parameter) = unknown {
        let names: Vec<&str> = facts.moderation.keys().map(|known| known.name()).collect();
        let reason = format!(
            "its driver has no coalescing parameter {}",
            parameter.name()
        );
        let remedy = if names.is_empty() {
            String::from("it has none at all; polling by a timer works without")
        } else {
            format!("it has {}", names.join(", "))
        };
        return Err(Refusal::new(facts, RefusalKind::Unknown, &reason, &remedy));
    }
    Ok(())
}

fn check_kind(facts: &Facts) -> Result<(), Refusal> {
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
    facts: &Facts,
    abilities: &Abilities,
    request: &Request,
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
    if request.irq_suspend_timeout_ns.is_some() && !abilities.has_suspend {
        return missing(
            "this kernel has no irq-suspend-timeout",
            "Linux 6.13 or later has it",
        );
    }
    if request.is_about_threads() && facts.napis.is_none() {
        return missing(
            "this kernel does not say which threads poll it",
            "find them by name (napi/IF-ID) and use taskset(1) or chrt(1); Linux 6.8 or later says it",
        );
    }
    let mode = request.threaded.unwrap_or(0);
    if mode == THREADED_BUSY_POLL && abilities.threaded_max < Some(mode) {
        return missing(
            "this kernel has no threads that poll without end",
            "use --threaded, with a short --period to poll often",
        );
    }
    if request.threaded.is_some() && *part != Part::Whole && abilities.threaded_max.is_none() {
        return missing(
            "this kernel cannot give a single NAPI instance a thread",
            "name the interface alone; Linux 6.17 or later can",
        );
    }
    Ok(())
}

/// What has to be changed before the settings can work: on the interface itself, or on its other end.
///
/// # Errors
/// A refusal when something has to be changed and `fix` does not allow it, or nothing would help.
pub fn preconditions(facts: &Facts, request: &Request, fix: bool) -> Result<Vec<Write>, Refusal> {
    if !request.needs_napi() {
        return Ok(Vec::new());
    }
    let mut writes = Vec::new();
    if !facts.link.is_up {
        writes.push(write(&facts.target, Knob::Up, 0, 1));
    }
    let lacks_napi = facts.napis().is_empty();
    if facts.link.interface.driver == "veth" {
        if lacks_napi && !facts.has_gro {
            let gro = Knob::Feature(String::from(GRO_FEATURE));
            writes.push(write(&facts.target, gro, 0, 1));
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
    if writes.is_empty() || fix {
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

fn reason_of(knob: &Knob) -> &'static str {
    match knob {
        Knob::Up => "it is down, and its NAPI instances can be reached only while it is up",
        Knob::Feature(name) if name == GRO_FEATURE => {
            "GRO is off, without which a veth has no receive NAPI"
        }
        _ => "TSO is on at its other end, so that packets go past a veth's NAPI",
    }
}

/// With an XDP program instead of GRO the kernel keeps TSO off at the other end by itself.
fn peer_writes(facts: &Facts, lacks_napi: bool) -> Result<Vec<Write>, Refusal> {
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
        .map(|name| write(target, Knob::Feature(name.clone()), 1, 0))
        .collect())
}

/// The writes of the settings themselves, in the order in which they are made.
pub fn settings(facts: &Facts, request: &Request, part: &Part) -> Result<Vec<Write>, Refusal> {
    let napis = chosen(facts, part)?;
    // The file takes 0 and 1 only, so the third mode is set on each instance.
    let by_instance = *part != Part::Whole || request.threaded == Some(THREADED_BUSY_POLL);
    let mut writes = if by_instance {
        of_instances(&facts.target, &napis, Group::Threads, request)
    } else {
        of_device(facts, Group::Threads, request)
    };
    writes.extend(if *part == Part::Whole {
        of_device(facts, Group::Deferral, request)
    } else {
        of_instances(&facts.target, &napis, Group::Deferral, request)
    });
    if let Some(ns) = request.irq_suspend_timeout_ns {
        for napi in &napis {
            let knob = Knob::IrqSuspendTimeout(napi.id);
            let from = napi.value_of(&knob).filter(|&from| from != ns);
            writes.extend(from.map(|from| write(&facts.target, knob, from, ns)));
        }
    }
    writes.extend(moderation(facts, request));
    Ok(writes)
}

/// A write to the interface goes to every instance at once, so what each of them held is recorded too.
fn of_device(facts: &Facts, group: Group, request: &Request) -> Vec<Write> {
    let mut writes = Vec::new();
    for (knob, asked) in request.group(group, Scope::Device) {
        let Some(&from) = facts.device.get(&knob) else {
            continue;
        };
        writes.push(Write {
            is_implied: asked.is_none_or(|asked| asked == from),
            ..write(&facts.target, knob, from, asked.unwrap_or(from))
        });
    }
    for napi in facts.napis() {
        let own = of_instance(&facts.target, napi, group, request);
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

fn of_instances(target: &Target, napis: &[&Napi], group: Group, request: &Request) -> Vec<Write> {
    napis
        .iter()
        .map(|napi| of_instance(target, napi, group, request))
        .filter(|writes| writes.iter().any(|write| write.from != write.to))
        .flatten()
        .collect()
}

fn of_instance(target: &Target, napi: &Napi, group: Group, request: &Request) -> Vec<Write> {
    let knobs = request.group(group, Scope::Napi(napi.id)).into_iter();
    knobs
        .filter_map(|(knob, asked)| {
            let from = napi.value_of(&knob)?;
            Some(Write {
                is_implied: asked.is_none_or(|asked| asked == from),
                ..write(target, knob, from, asked.unwrap_or(from))
            })
        })
        .collect()
}

/// The driver stops moving the numbers before they are written, and starts after.
fn moderation(facts: &Facts, request: &Request) -> Vec<Write> {
    let mut asked: Vec<_> = request.moderation.iter().collect();
    asked.sort_by_key(|(parameter, to)| match (parameter.is_adaptive(), **to) {
        (true, 0) => 0,
        (false, _) => 1,
        (true, _) => 2,
    });
    asked
        .into_iter()
        .filter_map(|(parameter, &to)| {
            let from = *facts.moderation.get(parameter)?;
            let knob = Knob::Moderation(*parameter);
            (from != to).then(|| write(&facts.target, knob, from.into(), to.into()))
        })
        .collect()
}

/// What becomes of the threads, once they are there.
pub fn threads(facts: &Facts, request: &Request, part: &Part) -> Result<Vec<Write>, Refusal> {
    let mut writes = Vec::new();
    if !request.is_about_threads() {
        return Ok(writes);
    }
    for napi in chosen(facts, part)? {
        let found = napi
            .thread_pid
            .and_then(|pid| Some((pid, facts.pollers.get(&pid)?)));
        let Some((pid, poller)) = found else {
            return Err(Refusal::new(
                facts,
                RefusalKind::Precondition,
                &format!("no thread polls NAPI instance {}", napi.id),
                "add --threaded",
            ));
        };
        let mut push = |knob, from: Value, to: Value| {
            if from != to {
                writes.push(Write {
                    target: facts.target.clone(),
                    knob,
                    from,
                    to,
                    is_implied: false,
                });
            }
        };
        if let Some(policy) = request.thread_policy {
            let (from, to) = (Value::Policy(poller.policy), Value::Policy(policy));
            push(Knob::ThreadPolicy(pid), from, to);
        }
        if let Some(cpus) = &request.thread_cpus {
            let (from, to) = (Value::Cpus(poller.cpus.clone()), Value::Cpus(cpus.clone()));
            push(Knob::ThreadCpus(pid), from, to);
        }
    }
    Ok(writes)
}

fn chosen<'a>(facts: &'a Facts, part: &Part) -> Result<Vec<&'a Napi>, Refusal> {
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

/// A ring that fills up between two polls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overflow {
    /// Slots of all receive rings together.
    pub slots: u64,
    /// What arrives between two polls at the rate seen.
    pub packets_per_period: f64,
    /// A period that would fit, in ns.
    pub fitting_period_ns: u64,
}

/// Whether the rate seen would overflow the rings between two polls of this period.
pub fn overflow(facts: &Facts, packets_per_second: f64, period_ns: u64) -> Option<Overflow> {
    let slots = u64::from(facts.ring_slots?) * (facts.napis().len().max(1) as u64);
    let packets_per_period = packets_per_second * period_ns as f64 / 1e9;
    (packets_per_period > slots as f64).then(|| Overflow {
        slots,
        packets_per_period,
        fitting_period_ns: (slots as f64 / packets_per_second * 1e9) as u64,
    })
}

#[cfg(test)]
mod tests;
