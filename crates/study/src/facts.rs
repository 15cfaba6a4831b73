//! What about the machine disturbs measurements.

use nicpoll_inspect::is_read_in_user_mode;
use nicpoll_model::{HostFacts, Warning, WarningName};

/// What about this machine disturbs measurements, with the remedy.
pub fn confounders(facts: &HostFacts) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |text: String| {
        warnings.push(Warning {
            name: WarningName::Confounder,
            text,
        });
    };
    if let Some(governor) = facts.governors.iter().find(|name| *name != "performance") {
        warn(format!(
            "the frequency governor is '{governor}': the clock follows the load and distorts CPU time; \
             set 'performance' while measuring"
        ));
    }
    if facts.cpus.len() == 2 {
        warn(String::from(
            "there are only two CPUs: sender, receiver, polls and everything else share them",
        ));
    }
    let clocksource = facts.clocksource.as_deref();
    if let Some(source) = clocksource.filter(|source| !is_read_in_user_mode(source)) {
        warn(format!(
            "the clock source is '{source}': reading the time may need a system call for each datagram"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_confounder_is_named() {
        let mut facts = nicpoll_inspect::host_facts().unwrap();
        facts.cpus = vec![0, 1, 2, 3];
        facts.clocksource = Some(String::from("tsc"));
        facts.governors = vec![String::from("performance")];
        assert!(confounders(&facts).is_empty());
        facts.clocksource = Some(String::from("arch_sys_counter"));
        assert!(confounders(&facts).is_empty());
        facts.governors.push(String::from("powersave"));
        facts.clocksource = Some(String::from("hpet"));
        facts.cpus.truncate(2);
        assert_eq!(confounders(&facts).len(), 3);
    }
}
