//! What disturbs measurements, from what was found of the machine.

use nicpoll_model::numbers::{count, duration_text, figure};
use nicpoll_model::{Check, CheckGroup, CheckStatus};

use super::machine::Machine;
use super::{check, with_remedy};
use crate::host_facts::is_read_in_user_mode;
use crate::storms::STORM_THRESHOLD;

/// With fewer, the ends of a link, the polls and everything else share CPUs.
const CPUS_MIN: usize = 4;
/// Share of the CPUs that others may use before they are heard in the figures.
const BUSY_MAX: f64 = 0.1;
/// Share that the hypervisor may take.
const STEAL_MAX: f64 = 0.01;
/// A CPU that takes longer to wake adds that to latencies and to the time between polls.
const IDLE_LATENCY_MAX_US: u64 = 50;
/// What the kernel gives every process.
const TIMER_SLACK_NS: u64 = 50_000;

pub fn checks(machine: &Machine) -> Vec<Check> {
    vec![
        cpus(machine),
        smt(machine),
        clocksource(machine),
        governor(machine),
        boost(machine),
        idle(machine),
        haltpoll(machine),
        irqbalance(machine),
        storms(machine),
        moderation(machine),
        load(machine),
        steal(machine),
        timer_slack(machine),
    ]
}

fn good(name: &str, finding: impl Into<String>) -> Check {
    check(CheckGroup::Measurement, name, CheckStatus::Good, finding)
}

fn unknown(name: &str) -> Check {
    let finding = "the kernel does not say";
    check(CheckGroup::Measurement, name, CheckStatus::Unknown, finding)
}

fn disturbs(name: &str, finding: impl Into<String>, remedy: impl Into<String>) -> Check {
    let check = check(
        CheckGroup::Measurement,
        name,
        CheckStatus::Confounds,
        finding,
    );
    with_remedy(check, remedy)
}

fn cpus(machine: &Machine) -> Check {
    let name = "CPUs";
    if machine.cpus >= CPUS_MIN {
        return good(name, format!("{} may be used", machine.cpus));
    }
    disturbs(
        name,
        format!(
            "{}: sender, receiver, polls and everything else share them",
            machine.cpus
        ),
        format!("{CPUS_MIN} or more; compare only figures of this machine with each other"),
    )
}

fn smt(machine: &Machine) -> Check {
    let name = "SMT";
    match machine.has_smt {
        Some(false) => good(name, "no two CPUs are threads of one core"),
        Some(true) => disturbs(
            name,
            "CPUs are threads of shared cores: one slows its twin down",
            "while measuring: echo off > /sys/devices/system/cpu/smt/control, or use one CPU of each pair in \
             /sys/devices/system/cpu/cpu*/topology/thread_siblings_list",
        ),
        None => unknown(name),
    }
}

fn clocksource(machine: &Machine) -> Check {
    let name = "clock source";
    match machine.clocksource.as_deref() {
        Some(source) if is_read_in_user_mode(source) => good(name, source),
        Some(source) => disturbs(
            name,
            format!(
                "{source}: reading the time may take a system call or a trip to the hypervisor"
            ),
            "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource, if \
             available_clocksource has it",
        ),
        None => unknown(name),
    }
}

fn governor(machine: &Machine) -> Check {
    let name = "frequency governor";
    let other = machine.governors.iter().find(|one| *one != "performance");
    match other {
        Some(other) => disturbs(
            name,
            format!("{other}: the clock follows the load, and CPU time with it"),
            "while measuring: cpupower frequency-set -g performance",
        ),
        None if machine.governors.is_empty() => {
            good(name, "none: the frequency is not this kernel's to set")
        }
        None => good(name, "performance"),
    }
}

fn boost(machine: &Machine) -> Check {
    let name = "frequency boost";
    match machine.boosts {
        Some(true) => disturbs(
            name,
            "on: CPUs run faster while they are cool or few are busy",
            "while measuring: echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 > \
             /sys/devices/system/cpu/cpufreq/boost",
        ),
        Some(false) => good(name, "off"),
        None => good(name, "none that this kernel could set"),
    }
}

fn idle(machine: &Machine) -> Check {
    let name = "idle states";
    match &machine.deepest_idle {
        Some((state, latency_us)) if *latency_us > IDLE_LATENCY_MAX_US => disturbs(
            name,
            format!("an idle CPU may go to {state}, from which it takes {latency_us} us to wake"),
            format!("while measuring: cpupower idle-set -D {IDLE_LATENCY_MAX_US}"),
        ),
        Some((state, latency_us)) => good(
            name,
            format!("{state} at the deepest, {latency_us} us to wake"),
        ),
        None => good(name, "none that this kernel chooses"),
    }
}

fn haltpoll(machine: &Machine) -> Check {
    let name = "haltpoll";
    let is_governor = machine.idle_governor.as_deref() == Some("haltpoll");
    match machine.haltpoll_ns {
        Some(ns @ 1..) if is_governor => disturbs(
            name,
            format!(
                "idle CPUs poll for up to {} before they halt: they look busy to the host and wake sooner",
                duration_text(ns)
            ),
            "while measuring: echo 0 > /sys/module/haltpoll/parameters/guest_halt_poll_ns, or leave it and \
             say so",
        ),
        _ if is_governor => good(
            name,
            "the governor, but it does not poll (guest_halt_poll_ns 0)",
        ),
        _ => good(name, "not in use"),
    }
}

fn irqbalance(machine: &Machine) -> Check {
    let name = "irqbalance";
    match machine.irqbalance.first() {
        None => good(name, "not running"),
        Some(pid) => disturbs(
            name,
            format!("running (pid {pid}): it moves interrupts between CPUs"),
            "while measuring: systemctl stop irqbalance; or ban the interrupts of the interfaces \
             (IRQBALANCE_ARGS=--banirq=N)",
        ),
    }
}

fn storms(machine: &Machine) -> Check {
    let name = "interrupt storms";
    let threshold = count(STORM_THRESHOLD);
    let Some(storms) = &machine.storms else {
        let finding = "counting them needs root (CAP_BPF, CAP_PERFMON)";
        return check(CheckGroup::Measurement, name, CheckStatus::Unknown, finding);
    };
    if storms.is_empty() {
        let finding = format!("none just now of {threshold} entries back to back (approximated)");
        return good(name, finding);
    }
    disturbs(
        name,
        format!(
            "{}: entered {threshold} times or more with no task in between (approximated)",
            storms.join(", ")
        ),
        "have its interface polled (nicpoll set IF polling) or its interrupts moderated (ethtool -C IF \
         rx-usecs 50)",
    )
}

fn moderation(machine: &Machine) -> Check {
    let name = "adaptive moderation";
    let Some(first) = machine.adaptive.first() else {
        return good(name, "off, or no driver has it");
    };
    disturbs(
        name,
        format!(
            "on at {}: the driver changes its interrupt rate by itself",
            machine.adaptive.join(", ")
        ),
        format!("while measuring: ethtool -C {first} adaptive-rx off adaptive-tx off"),
    )
}

fn load(machine: &Machine) -> Check {
    let name = "other load";
    let percent = |ratio: f64| figure(100.0 * ratio);
    match machine.busy_ratio {
        None => unknown(name),
        Some(busy) if busy > BUSY_MAX => disturbs(
            name,
            format!(
                "the CPUs were {} % busy with other things just now",
                percent(busy)
            ),
            "see who: top; stop it, or measure when it is quiet",
        ),
        Some(busy) => good(
            name,
            format!("the CPUs were {} % busy just now", percent(busy)),
        ),
    }
}

fn steal(machine: &Machine) -> Check {
    let name = "steal time";
    match machine.steal_ratio {
        None => unknown(name),
        Some(steal) if steal > STEAL_MAX => disturbs(
            name,
            format!(
                "the hypervisor took {} % of the CPUs just now",
                figure(100.0 * steal)
            ),
            "measure when its other guests are quiet, or on dedicated CPUs",
        ),
        Some(steal) => good(name, format!("{} % just now", figure(100.0 * steal))),
    }
}

fn timer_slack(machine: &Machine) -> Check {
    let name = "timer slack";
    match machine.timer_slack_ns {
        None => unknown(name),
        Some(slack) if slack > TIMER_SLACK_NS => disturbs(
            name,
            format!("the kernel may end sleeps {} late", duration_text(slack)),
            "run it from a shell whose slack is not raised (prctl PR_SET_TIMERSLACK, or a service's \
             TimerSlackNSec=50us)",
        ),
        Some(slack) => good(name, format!("{}, as usual", duration_text(slack))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> Machine {
        Machine {
            cpus: 8,
            clocksource: Some(String::from("tsc")),
            governors: vec![String::from("performance")],
            boosts: Some(false),
            has_smt: Some(false),
            deepest_idle: Some((String::from("C1"), 2)),
            idle_governor: Some(String::from("menu")),
            haltpoll_ns: Some(200_000),
            irqbalance: Vec::new(),
            adaptive: Vec::new(),
            busy_ratio: Some(0.01),
            steal_ratio: Some(0.0),
            storms: Some(Vec::new()),
            timer_slack_ns: Some(50_000),
        }
    }

    /// Names of the checks that are bad after a change.
    fn bad(change: impl FnOnce(&mut Machine)) -> Vec<String> {
        let mut machine = quiet();
        change(&mut machine);
        let checks = checks(&machine);
        let bad = checks.into_iter().filter(|check| check.status.is_bad());
        bad.map(|check| {
            assert!(check.remedy.is_some(), "{}", check.name);
            check.name
        })
        .collect()
    }

    #[test]
    fn a_quiet_machine_is_well() {
        assert!(bad(|_| ()).is_empty());
    }

    #[test]
    fn each_disturbance_is_named_alone() {
        assert_eq!(bad(|m| m.cpus = 2), ["CPUs"]);
        assert_eq!(bad(|m| m.has_smt = Some(true)), ["SMT"]);
        assert_eq!(
            bad(|m| m.clocksource = Some("hpet".into())),
            ["clock source"]
        );
        assert_eq!(
            bad(|m| m.governors.push("powersave".into())),
            ["frequency governor"]
        );
        assert_eq!(bad(|m| m.boosts = Some(true)), ["frequency boost"]);
        assert_eq!(
            bad(|m| m.deepest_idle = Some(("C6".into(), 133))),
            ["idle states"]
        );
        assert_eq!(
            bad(|m| m.idle_governor = Some("haltpoll".into())),
            ["haltpoll"]
        );
        assert_eq!(bad(|m| m.irqbalance = vec![812]), ["irqbalance"]);
        assert_eq!(
            bad(|m| m.storms = Some(vec!["IRQ 38 (em0)".into()])),
            ["interrupt storms"]
        );
        assert_eq!(
            bad(|m| m.adaptive = vec!["eth0".into()]),
            ["adaptive moderation"]
        );
        assert_eq!(bad(|m| m.busy_ratio = Some(0.4)), ["other load"]);
        assert_eq!(bad(|m| m.steal_ratio = Some(0.03)), ["steal time"]);
        assert_eq!(bad(|m| m.timer_slack_ns = Some(1_000_000)), ["timer slack"]);
    }

    #[test]
    fn what_cannot_be_read_is_not_bad() {
        let unread = Machine {
            cpus: 8,
            ..Machine::default()
        };
        assert!(checks(&unread).iter().all(|check| !check.status.is_bad()));
    }
}
