//! What `nicpoll set` says.

use nicpoll_model::SwitchProof;
use nicpoll_switch::persist::FileChange;
use nicpoll_switch::plan::Overflow;
use nicpoll_switch::standing::Preview;
use nicpoll_switch::{Drift, Facts, Target, Write};

/// One line for each value that changes, as seen from a namespace. Those of NAPI instances that the kernel
/// sets along with the interface's own are not listed.
fn writes(writes: &[Write], netns_inode: u64) -> String {
    let is_own_line = |write: &&Write| {
        let device = write.knob.of_device();
        let comes_along = writes.iter().any(|other| {
            other.target == write.target
                && other.from != other.to
                && Some(&other.knob) == device.as_ref()
        });
        write.from != write.to && !(write.is_implied && comes_along)
    };
    writes
        .iter()
        .filter(is_own_line)
        .map(|write| {
            let name = label(&write.target, netns_inode);
            format!("{name}: {} {} -> {}\n", write.knob, write.from, write.to)
        })
        .collect()
}

/// An interface's name, with its namespace when that is another one: both ends of a pair may have one name.
pub fn label(target: &Target, netns_inode: u64) -> String {
    let name = &target.interface.name;
    if target.netns_inode == netns_inode {
        return name.clone();
    }
    match nicpoll_sys::netns::name_of(target.netns_inode) {
        Some(netns) => format!("{name} (netns {netns})"),
        None => format!("{name} (net:[{}])", target.netns_inode),
    }
}

/// What is written, or would be.
pub fn preview(preview: &Preview, netns_inode: u64) -> String {
    let mut text = writes(&preview.writes, netns_inode);
    if preview.is_open_ended {
        text.push_str(
            "and what was asked for of NAPI instances or threads that come only with that\n",
        );
    }
    if text.is_empty() {
        text.push_str("nothing: everything is so already\n");
    }
    text
}

/// The files that are written or removed, as differences.
pub fn file_changes(changes: &[FileChange]) -> String {
    changes.iter().map(FileChange::diff).collect()
}

/// What the polls of the interfaces show.
pub fn proofs(proofs: &[SwitchProof], netns: Option<&str>) -> String {
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
                (None, None) => String::from("nobody looked"),
            };
            let netns = netns.map_or_else(String::new, |netns| format!(" --netns {netns}"));
            format!("{name}: not proven yet: {why}; to look again: nicpoll show {name}{netns}\n")
        }
    }
}

/// That somebody else changed a value.
pub fn drift(interface: &str, drift: &Drift) -> String {
    let Drift { knob, written, now } = drift;
    match now {
        Some(now) => format!(
            "{interface}: {knob} is {now}; nicpoll had set it to {written}, and somebody else changed it since"
        ),
        None => format!("{interface}: {knob} is gone; nicpoll had set it to {written}"),
    }
}

/// That a ring would fill up between polls.
pub fn overflow(facts: &Facts, overflow: &Overflow) -> String {
    format!(
        "warning: {} receives {:.0} packets a period now, and its rings have {} slots, so packets will be \
         lost; a period of {} us would fit",
        facts.target.interface.name,
        overflow.packets_per_period,
        overflow.slots,
        overflow.fitting_period_ns / 1_000
    )
}
