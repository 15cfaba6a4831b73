//! Confounders: differences between two compared settings other than the one that the comparison is about, and properties of
//! the machine that disturb measurements.
//!
//! An unasked difference is listed, whether the kernel, the driver, or somebody before the study made it. A requested
//! one is listed, too, if a setting changes both the discipline and an offload, a ring or a CPU: the verdict is then
//! about both.

use std::collections::{BTreeMap, BTreeSet};

use nicpoll_inspect::is_read_in_user_mode;
use nicpoll_model::{Confounder, HostFacts, Side, Warning, WarningName};
use nicpoll_switch::Value;
use nicpoll_switch::knob::{KnobRow, table};

use crate::design::{Design, NamedSetting, Versus};
use crate::judge::warnings::warning;

/// Values of both interfaces under a setting, by name: what [`crate::Lab::settings`] reads.
pub type SeenValues = BTreeMap<String, BTreeMap<String, String>>;

/// Returns the confounders of a design's comparisons, for settings that have been in force.
pub fn confounders(design: &Design, seen: &SeenValues) -> Vec<Confounder> {
    let of = |versus: &Versus| {
        let (Some(setting), Some(reference)) = (
            design.setting(&versus.setting),
            design.setting(&versus.reference),
        ) else {
            return Vec::new();
        };
        let asked = asked(setting, reference).into_iter();
        let not_asked = not_asked(setting, reference, seen).into_iter();
        let found = asked.map(|it| (it, true));
        let found = found.chain(not_asked.map(|it| (it, false)));
        let of =
            |((name, [value, reference_value]), is_asked): (NamedDifference, bool)| Confounder {
                setting: versus.setting.clone(),
                reference: versus.reference.clone(),
                name,
                value,
                reference_value,
                is_asked,
            };
        found.map(of).collect()
    };
    design.contrasts.iter().flat_map(of).collect()
}

/// The name of a difference, with its value under the setting and under the reference.
type NamedDifference = (String, [Option<String>; 2]);

/// Returns the knobs in which two settings differ, with the host and both values.
fn differences<'a>(
    setting: &'a NamedSetting,
    reference: &'a NamedSetting,
) -> Vec<(&'a str, &'static KnobRow, [Option<&'a Value>; 2])> {
    let of = |one: &'a NamedSetting, host: &str| one.setting.hosts.get(host).map(|own| &own.set);
    let hosts = [setting, reference].map(|one| one.setting.hosts.iter());
    let hosts = hosts.into_iter().flatten();
    let hosts: BTreeSet<&str> = hosts.map(|(host, _)| host.as_str()).collect();
    let mut found = Vec::new();
    for host in hosts {
        let sets = [of(setting, host), of(reference, host)];
        let mut rows: Vec<&'static KnobRow> = Vec::new();
        for (row, _) in sets.iter().flatten().flat_map(|set| set.iter()) {
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        for row in rows {
            let values = sets.map(|set| set.and_then(|set| set.get(row)));
            if values[0] != values[1] {
                found.push((host, row, values));
            }
        }
    }
    found
}

/// Returns the offloads, rings and cores in which two settings differ by request, besides the discipline.
fn asked(setting: &NamedSetting, reference: &NamedSetting) -> Vec<NamedDifference> {
    let all = differences(setting, reference);
    let is_along = |row: &KnobRow| row.is_offload() || row.is_of_card();
    if setting.xdp == reference.xdp && all.iter().all(|(_, row, _)| is_along(row)) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (host, row, values) in all {
        if is_along(row) {
            let values = values.map(|value| value.map(|value| row.show(value)));
            found.push((format!("{host}: {}", row.name), values));
        }
    }
    for side in Side::ALL {
        let cpus = [setting, reference].map(|one| one.cpus.of(side));
        if cpus[0] != cpus[1] {
            let values = cpus.map(|cpu| cpu.map(|cpu| cpu.to_string()));
            found.push((format!("{side}: CPU of the traffic"), values));
        }
    }
    found
}

/// Returns values that differed although neither setting writes them.
fn not_asked(
    setting: &NamedSetting,
    reference: &NamedSetting,
    seen: &SeenValues,
) -> Vec<NamedDifference> {
    let (Some(own), Some(others)) = (seen.get(setting.name()), seen.get(reference.name())) else {
        return Vec::new();
    };
    let is_written = |name: &str| {
        let sets = [setting, reference].map(|one| one.setting.hosts.iter());
        let mut written = sets.into_iter().flatten().flat_map(|(host, request)| {
            let rows = request.set.iter().map(|(row, _)| row);
            rows.map(move |row| (host, row))
        });
        written.any(|(host, row)| is_of(name, host, row))
    };
    let names: BTreeSet<&String> = own.keys().chain(others.keys()).collect();
    let differing = names.into_iter().filter_map(|name| {
        let values = [own.get(name), others.get(name)];
        let is_meant = values[0] != values[1] && !is_instance(name) && !is_written(name);
        is_meant.then_some((name.as_str(), values))
    });
    let found = with_tso_as_one(differing).into_iter();
    let cloned = found.map(|(name, values)| (name, values.map(|value| value.cloned())));
    cloned.collect()
}

/// Values under the setting and under the reference.
type ValuePair<'a> = [Option<&'a String>; 2];

/// Joins TSO features that differ alike, because ethtool switches them together.
fn with_tso_as_one<'a>(
    differing: impl Iterator<Item = (&'a str, ValuePair<'a>)>,
) -> Vec<(String, ValuePair<'a>)> {
    let mut groups: Vec<(Vec<&str>, ValuePair<'_>)> = Vec::new();
    for (name, values) in differing {
        let place = tso_of(name).map(|(place, _)| place);
        let same = groups.iter_mut().find(|(names, known)| {
            let known_place = tso_of(names[0]).map(|(place, _)| place);
            place.is_some() && known_place == place && *known == values
        });
        match same {
            Some((names, _)) => names.push(name),
            None => groups.push((vec![name], values)),
        }
    }
    let named = groups.into_iter().map(|(names, values)| {
        let name = match (&names[..], tso_of(names[0])) {
            ([_, _, ..], Some(([before, behind], _))) => format!("{before}tso{behind}"),
            _ => String::from(names[0]),
        };
        (name, values)
    });
    named.collect()
}

/// Splits a value's name around that of a TSO feature; `None` for other values.
fn tso_of(name: &str) -> Option<([&str; 2], &str)> {
    let (before, rest) = name.split_once("feature ")?;
    let named = &rest[..rest.find(" (").unwrap_or(rest.len())];
    // Values of other interfaces than the first begin with its name.
    let feature = named.rsplit(' ').next()?;
    let begin = before.len() + "feature ".len() + named.len() - feature.len();
    let around = [&name[..begin], &name[begin + feature.len()..]];
    table::TSO.stands_for(feature).then_some((around, feature))
}

/// Returns whether a value is a NAPI instance's: those repeat the interface's, and the ids differ each time.
fn is_instance(name: &str) -> bool {
    name.contains(": NAPI ")
}

/// Returns whether a value is one that a knob writes at a host's interfaces; names of those after the first contain
/// the interface.
fn is_of(name: &str, host: &str, row: &KnobRow) -> bool {
    let own = name.strip_prefix(host);
    let Some((kind, rest)) = own
        .and_then(|rest| rest.strip_prefix(": "))
        .and_then(|name| name.split_once(' '))
    else {
        return false;
    };
    let named = &rest[..rest.find(" (").unwrap_or(rest.len())];
    let value = named.rsplit(' ').next().unwrap_or(named);
    match kind {
        "feature" => row.stands_for(value),
        "sysfs" | "sysctl" => value == row.name,
        _ => false,
    }
}

/// Returns the machine's properties that disturb measurements, with remedies. `has_both_ends` of the traffic.
pub fn machine_confounders(facts: &HostFacts, has_both_ends: bool) -> Vec<Warning> {
    let governor = facts.governors.iter().find(|name| *name != "performance");
    let governor = governor.map(|governor| {
        format!(
            "the frequency governor is '{governor}': the clock follows the load and distorts CPU time; set \
             'performance' while measuring"
        )
    });
    let few = "there are only two CPUs: sender, receiver, polls and everything else share them";
    let few = (has_both_ends && facts.cpus.len() == 2).then(|| String::from(few));
    let source = facts.clocksource.as_deref();
    let source = source.filter(|source| !is_read_in_user_mode(source));
    let source = source.map(|source| {
        format!(
            "the clock source is '{source}': reading the time may need a system call for each datagram"
        )
    });
    let found = [governor, few, source].into_iter().flatten();
    found
        .map(|text| warning(WarningName::Confounder, text))
        .collect()
}

#[cfg(test)]
mod confounders_tests {
    use super::*;
    use crate::design::demo;
    use std::time::Duration;

    fn found(design: &Design, seen: &SeenValues, setting: &str, reference: &str) -> Vec<String> {
        let all = confounders(design, seen).into_iter();
        all.filter(|one| one.setting == setting && one.reference == reference)
            .map(|one| one.name)
            .collect()
    }

    #[test]
    fn what_a_setting_changes_beside_how_packets_are_received_is_listed() {
        let design = demo::design(Duration::from_micros(200));
        assert_eq!(
            found(&design, &SeenValues::new(), "polling", "default"),
            ["receiver: gro", "sender: tso"]
        );
        // These differ only in the discipline.
        assert!(found(&design, &SeenValues::new(), "polling", "interrupt").is_empty());
    }

    #[test]
    fn what_nobody_asked_for_is_listed_with_both_values() {
        let design = demo::design(Duration::from_micros(200));
        let values = |queue: &str, timeout: &str, tso: &str| {
            let all = [
                ("sender: sysfs tx_queue_len", queue),
                ("receiver: sysfs gro_flush_timeout", timeout),
                ("receiver: sysfs em1 gro_flush_timeout", timeout),
                ("receiver: sysfs em1 tx_queue_len", queue),
                ("receiver: feature em1 rx-gro (active)", tso),
                ("sender: feature em3 tx-tcp-segmentation (active)", tso),
                ("receiver: NAPI 0", timeout),
                ("sender: feature tx-tcp6-segmentation (active)", tso),
                ("receiver: feature tx-tcp-segmentation (active)", tso),
                ("receiver: feature tx-tcp6-segmentation (active)", tso),
                ("receiver: feature tx-tcp6-segmentation (wanted)", tso),
                ("router: feature em1 tx-tcp-segmentation (active)", tso),
                ("router: feature em1 tx-tcp6-segmentation (active)", tso),
                ("router: feature em1 tx-udp-segmentation (active)", tso),
            ];
            let all = all.map(|(name, value)| (String::from(name), String::from(value)));
            BTreeMap::from(all)
        };
        let seen = SeenValues::from([
            (String::from("polling"), values("1000", "7", "true")),
            (String::from("interrupt"), values("2000", "0", "false")),
        ]);
        // Written values are not listed, at any interface; the receiver's TSO was not asked for.
        assert_eq!(
            found(&design, &seen, "polling", "interrupt"),
            [
                "receiver: feature tso (active)",
                "receiver: feature tx-tcp6-segmentation (wanted)",
                "receiver: sysfs em1 tx_queue_len",
                "router: feature em1 tso (active)",
                "router: feature em1 tx-udp-segmentation (active)",
                "sender: sysfs tx_queue_len"
            ]
        );
        let all = confounders(&design, &seen);
        let queue = all.iter().find(|one| one.name.ends_with("tx_queue_len"));
        let queue = queue.unwrap();
        assert_eq!(queue.value.as_deref(), Some("1000"));
        assert_eq!(queue.reference_value.as_deref(), Some("2000"));
        assert!(!queue.is_asked);
    }
}

#[cfg(test)]
mod facts_tests {
    use super::*;

    #[test]
    fn each_confounder_is_named() {
        let mut facts = nicpoll_inspect::host_facts().unwrap();
        facts.cpus = vec![0, 1, 2, 3];
        facts.clocksource = Some(String::from("tsc"));
        facts.governors = vec![String::from("performance")];
        assert!(machine_confounders(&facts, true).is_empty());
        facts.clocksource = Some(String::from("arch_sys_counter"));
        assert!(machine_confounders(&facts, true).is_empty());
        facts.governors.push(String::from("powersave"));
        facts.clocksource = Some(String::from("hpet"));
        facts.cpus.truncate(2);
        assert_eq!(machine_confounders(&facts, true).len(), 3);
    }
}
