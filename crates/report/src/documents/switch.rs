//! What `nicpoll set` and `nicpoll restore` did, as text, and values of the kernel as its own tools write them.

use nicpoll_model::{SwitchProof, SwitchValue, SwitchWrite};

use crate::lists::{grouped, joined, listed};

/// One line for each value that changes; `label` is the name of a write's interface as the reader knows it. Values of NAPI
/// instances that the kernel sets along with the interface's own are not listed.
pub fn render_switch_writes(
    writes: &[SwitchWrite],
    is_open_ended: bool,
    label: impl Fn(&SwitchWrite) -> String,
) -> String {
    let mut text: String = own(writes)
        .map(|write| format!("{}: {}\n", label(write), change(&name(write), write)))
        .collect();
    if is_open_ended {
        text.push_str(
            "and what was asked for of NAPI instances or threads that come only with that\n",
        );
    }
    if text.is_empty() {
        text.push_str("nothing: everything is so already\n");
    }
    text
}

/// The values that change; those of NAPI instances that the kernel sets along with the interface's own are left out.
fn own(writes: &[SwitchWrite]) -> impl Iterator<Item = &SwitchWrite> {
    let comes_along = |write: &SwitchWrite| {
        let is_whole = |other: &SwitchWrite| {
            let is_same = (&other.interface, other.netns_inode, &other.name)
                == (&write.interface, write.netns_inode, &write.name);
            is_same && other.napi_id.is_none() && other.before != other.after
        };
        write.is_implied && write.napi_id.is_some() && writes.iter().any(is_whole)
    };
    writes
        .iter()
        .filter(move |write| write.before != write.after && !comes_along(write))
}

/// A value that changed, or the features of TSO that changed together.
pub(crate) struct Changed<'a> {
    /// What it is of: as the kernel names it, or "TSO" with the features.
    pub name: String,
    /// The first of the changes.
    pub write: &'a SwitchWrite,
}

impl Changed<'_> {
    /// What was there, and what was put there.
    pub fn change(&self) -> String {
        change(&self.name, self.write)
    }
}

/// How the features that ethtool switches together as "tso" begin and end.
const TSO: (&str, &str) = ("feature tx-tcp", "-segmentation");

/// The values that change, one each, in the order of the writes.
pub(crate) fn changed(writes: &[SwitchWrite]) -> Vec<Changed<'_>> {
    let is_tso = |write: &SwitchWrite| write.name.starts_with(TSO.0) && write.name.ends_with(TSO.1);
    // Others are groups of one: their number tells them apart.
    let key = |(number, write): (usize, _)| (Some(number).filter(|_| !is_tso(write)), write);
    let groups = own(writes).enumerate().map(key).map(|(number, write)| {
        let place = (&write.interface, write.netns_inode);
        ((number, place, &write.before, &write.after), write)
    });
    let named = grouped(groups).into_iter().map(|(_, group)| Changed {
        name: match &group[..] {
            [one] => name(one),
            several => {
                let features = several.iter();
                let features = features.map(|write| write.name.trim_start_matches("feature "));
                format!("TSO ({})", listed(features))
            }
        },
        write: group[0],
    });
    named.collect()
}

/// What a value is of, as the kernel names it.
fn name(write: &SwitchWrite) -> String {
    match write.napi_id {
        Some(id) => format!("NAPI {id} {}", write.name),
        None => write.name.clone(),
    }
}

/// The interface whose value it is, with a blank before it; nothing for a sysctl, which is of the namespace or the machine.
pub(crate) fn of_interface(write: &SwitchWrite) -> String {
    match write.name.starts_with("sysctl ") {
        true => String::new(),
        false => format!(" {}", write.interface),
    }
}

/// A value by its name, before and after.
fn change(name: &str, write: &SwitchWrite) -> String {
    let (before, after) = (value(&write.before), value(&write.after));
    format!("{name} {before} -> {after}")
}

/// A value as the kernel's own tools write it.
pub(crate) fn value(value: &SwitchValue) -> String {
    match value {
        SwitchValue::Number(number) => number.to_string(),
        SwitchValue::Cpus(cpus) => joined(cpus, ","),
        SwitchValue::Words(words) => words.clone(),
    }
}

/// What the polls of the interfaces show, a line each.
pub fn render_switch_proofs(proofs: &[SwitchProof], netns: Option<&str>) -> String {
    proofs.iter().map(|one| proof(one, netns)).collect()
}

fn proof(proof: &SwitchProof, netns: Option<&str>) -> String {
    let name = &proof.interface;
    match (proof.is_proven, &proof.evidence, &proof.setting) {
        (Some(true), Some(seen), _) => {
            format!("{name}: proven: {}: {}\n", seen.discipline, seen.why)
        }
        (Some(false), Some(seen), Some(set)) => format!(
            "{name}: NOT as set: {}: {}; its values mean {}\n",
            seen.discipline, seen.why, set.discipline
        ),
        (_, seen, _) => {
            let why = match (seen, proof.unseen.first()) {
                (Some(seen), _) => seen.why.clone(),
                (None, Some(unseen)) => format!("{}: {}", unseen.what, unseen.why),
                (None, None) => String::from("polls were not watched"),
            };
            let netns = netns.map_or_else(String::new, |netns| format!(" --netns {netns}"));
            format!("{name}: not proven yet: {why}; to look again: nicpoll show {name}{netns}\n")
        }
    }
}
