//! The text output of `nicpoll set` and `nicpoll restore`, and kernel values as its own tools print them.

use nicpoll_model::{SwitchProof, SwitchValue, SwitchWrite};

use crate::lists::{grouped, joined};

/// Renders a line for each value that changes; `label` returns the name of a write's interface. Values of NAPI
/// instances that the kernel sets with the interface's own are left out.
pub fn render_switch_writes(
    writes: &[SwitchWrite],
    is_open_ended: bool,
    label: impl Fn(&SwitchWrite) -> String,
) -> String {
    let changed = changed(writes).into_iter();
    let mut text: String = changed
        .map(|it| format!("{}: {}\n", label(it.write), it.change()))
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

/// Returns the values that change, without those of NAPI instances that the kernel sets with the interface's own.
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

/// A changed value, or the TSO features that changed together.
pub(crate) struct SwitchedValue<'a> {
    /// Its name: ethtool's for a feature, the kernel's for any other value.
    pub name: String,
    /// The first of the changes.
    pub write: &'a SwitchWrite,
}

impl SwitchedValue<'_> {
    /// Returns the old and the new value.
    pub fn change(&self) -> String {
        let [before, after] = self.values();
        format!("{} {before} -> {after}", self.name)
    }

    /// Returns the value before and after, with the unit of times.
    pub fn values(&self) -> [String; 2] {
        let of = |it| value(&self.write.name, it);
        let unit = match self.write.name.ends_with("_timeout") {
            true => " ns",
            false => "",
        };
        [of(&self.write.before), of(&self.write.after) + unit]
    }

    /// Returns the value's interface; `None` for a sysctl of the namespace or the machine.
    pub fn interface(&self) -> Option<&str> {
        let is_sysctl = self.write.name.starts_with("sysctl ");
        (!is_sysctl).then_some(&self.write.interface)
    }
}

/// Prefix of features' names in a record of writes.
const FEATURE: &str = "feature ";

/// ethtool's names of features, by prefix and suffix of the kernel's names. Only TSO has several.
const ETHTOOL: [([&str; 2], &str); 4] = [
    (["tx-tcp", "-segmentation"], "tso"),
    (["tx-generic-segmentation", ""], "gso"),
    (["rx-gro", ""], "gro"),
    (["rx-lro", ""], "lro"),
];

/// Returns ethtool's name of the features to which this one belongs.
fn ethtool_name(feature: &str) -> Option<&'static str> {
    let is_so = |[begin, end]: [&str; 2]| match end {
        "" => feature == begin,
        _ => feature.starts_with(begin) && feature.ends_with(end),
    };
    let known = ETHTOOL.iter().find(|(pattern, _)| is_so(*pattern));
    known.map(|(_, name)| *name)
}

/// Returns the values that change, once each, in the order of the writes.
pub(crate) fn changed(writes: &[SwitchWrite]) -> Vec<SwitchedValue<'_>> {
    let groups = own(writes).enumerate().map(|(number, write)| {
        let feature = write.name.strip_prefix(FEATURE).and_then(ethtool_name);
        let place = (&write.interface, write.netns_inode);
        // Others are groups of one, distinguished by their number.
        let number = feature.is_none().then_some(number);
        ((number, feature, place, &write.before, &write.after), write)
    });
    let named = grouped(groups)
        .into_iter()
        .map(|((_, feature, ..), group)| SwitchedValue {
            name: match (feature, &group[..]) {
                (Some(feature), [_, _, ..]) => String::from(feature),
                _ => named(group[0].napi_id, &group[0].name),
            },
            write: group[0],
        });
    named.collect()
}

/// Returns a value's name. A single TSO feature has its own name.
pub(crate) fn named(napi_id: Option<u32>, name: &str) -> String {
    let feature = name.strip_prefix(FEATURE);
    let whole = feature.and_then(ethtool_name).filter(|it| *it != "tso");
    let name = whole.or(feature).unwrap_or(name);
    match napi_id {
        Some(id) => format!("NAPI {id} {name}"),
        None => String::from(name),
    }
}

/// Formats a value as the kernel's own tools do; `name` is its name in a record of writes.
pub(crate) fn value(name: &str, value: &SwitchValue) -> String {
    match value {
        SwitchValue::Number(0) if name.starts_with(FEATURE) => String::from("off"),
        SwitchValue::Number(1) if name.starts_with(FEATURE) => String::from("on"),
        SwitchValue::Number(number) => number.to_string(),
        SwitchValue::Cpus(cpus) => joined(cpus, ","),
        SwitchValue::Words(words) => words.clone(),
    }
}

/// Renders what the interfaces' polls show, a line each.
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
