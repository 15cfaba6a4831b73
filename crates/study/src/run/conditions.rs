//! Conditions of a host on which a study's figures depend, besides settings and workloads.

use std::collections::BTreeMap;

use nicpoll_model::HostFacts;

/// A condition, its old value, and its new value.
pub(crate) type ConditionChange = (String, String, String);

/// Returns a host's known conditions, by name.
pub(crate) fn conditions(host: &HostFacts) -> BTreeMap<String, String> {
    let list = |words: &[String]| match words {
        [] => String::from("none"),
        words => words.join(" "),
    };
    let cpus: Vec<String> = host.cpus.iter().map(ToString::to_string).collect();
    let conditions = [
        ("the machine", host.machine.clone()),
        ("the CPU", host.cpu_model.clone()),
        ("the kernel", Some(host.kernel.clone())),
        ("the governor of the cores", Some(list(&host.governors))),
        ("the cores", Some(cpus.join(", "))),
        ("the clock source", host.clocksource.clone()),
        ("the boot options", Some(list(&host.boot_options))),
    ];
    let conditions = conditions.into_iter();
    let known = conditions.filter_map(|(what, value)| Some((String::from(what), value?)));
    known.chain(host.sysctls.iter().cloned()).collect()
}

/// Returns the differing conditions, of those known on both sides.
pub(crate) fn differences(
    then: BTreeMap<String, String>,
    now: BTreeMap<String, String>,
) -> impl Iterator<Item = ConditionChange> {
    then.into_iter().filter_map(move |(what, was)| {
        let is = now.get(&what).filter(|is| **is != was)?;
        Some((what, was, is.clone()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the differences that `change` makes at a host.
    fn changed(change: impl FnOnce(&mut HostFacts)) -> Vec<ConditionChange> {
        let mut then = nicpoll_inspect::host_facts().unwrap();
        then.machine = Some(String::from("bench-0123abcd"));
        then.sysctls = ["net.core.netdev_budget", "net.ipv4.tcp_congestion_control"]
            .map(|name| (String::from(name), String::from("before")))
            .to_vec();
        let mut now = then.clone();
        change(&mut now);
        differences(conditions(&then), conditions(&now)).collect()
    }

    #[test]
    fn what_changed_of_the_host_is_named_and_what_was_not_recorded_is_not() {
        assert_eq!(changed(|_| ()), []);
        let all = changed(|now| {
            now.machine = Some(String::from("other-00000000"));
            now.kernel = String::from("7.0");
            now.governors = vec![String::from("powersave")];
            for (_, value) in &mut now.sysctls {
                *value = String::from("after");
            }
        });
        let all: Vec<&str> = all.iter().map(|(what, ..)| what.as_str()).collect();
        let wanted = [
            "net.core.netdev_budget",
            "net.ipv4.tcp_congestion_control",
            "the governor of the cores",
            "the kernel",
            "the machine",
        ];
        assert_eq!(all, wanted);
        // An older record without the fact differs in neither direction.
        assert_eq!(changed(|now| now.machine = None), []);
        assert_eq!(changed(|now| now.sysctls.clear()), []);
        let new = (String::from("net.core.rmem_max"), String::from("1"));
        assert_eq!(changed(|now| now.sysctls.push(new)), []);
    }
}
