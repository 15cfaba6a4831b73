//! What `nicpoll set` and `nicpoll restore` did, as text.

use nicpoll_model::{SwitchProof, SwitchValue, SwitchWrite};

/// One line for each value that changes; `label` is the name of a write's interface as the reader knows it. Values of NAPI
/// instances that the kernel sets along with the interface's own are not listed.
pub fn render_switch_writes(
    writes: &[SwitchWrite],
    is_open_ended: bool,
    label: impl Fn(&SwitchWrite) -> String,
) -> String {
    let mut text: String = own(writes)
        .map(|write| format!("{}: {}\n", label(write), change(write)))
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
pub(crate) fn own(writes: &[SwitchWrite]) -> impl Iterator<Item = &SwitchWrite> {
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

/// What a value is of, as the kernel names it.
pub(crate) fn name(write: &SwitchWrite) -> String {
    let instance = write
        .napi_id
        .map_or_else(String::new, |id| format!("NAPI {id} "));
    format!("{instance}{}", write.name)
}

/// The interface whose value it is, with a blank before it; nothing for a sysctl, which is of the namespace or the machine.
pub(crate) fn of_interface(write: &SwitchWrite) -> String {
    match write.name.starts_with("sysctl ") {
        true => String::new(),
        false => format!(" {}", write.interface),
    }
}

/// A value, before and after.
pub(crate) fn change(write: &SwitchWrite) -> String {
    let (before, after) = (value(&write.before), value(&write.after));
    format!("{} {before} -> {after}", name(write))
}

/// A value as the kernel's own tools write it.
pub(crate) fn value(value: &SwitchValue) -> String {
    match value {
        SwitchValue::Number(number) => number.to_string(),
        SwitchValue::Cpus(cpus) => {
            let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
            cpus.join(",")
        }
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
