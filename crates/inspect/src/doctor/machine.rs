//! Disturbances of measurements: the machine's state, read over a second and judged.

use std::fs;
use std::thread;
use std::time::Duration;

use nicpoll_model::numbers::{count, duration_text, figure};
use nicpoll_model::{Check, CheckGroup, HostFacts};
use nicpoll_observe::{CpuSample, InterruptCounts, InterruptSource, Interrupts, parse_task_stat};
use nicpoll_switch::Journal;
use nicpoll_switch::persist::{files_left, orphans_here};

use super::check::{Outcome, disturbs, good, group, unknown};
use super::interfaces::ExaminedInterface;
use crate::error::{InspectError, NamedStep};
use crate::host_facts::{is_read_in_user_mode, text};
use crate::interrupts::{STORM_THRESHOLD, look_for_storms};

/// How long the machine's load is observed.
const LOOK: Duration = Duration::from_secs(1);
/// With fewer CPUs, both ends of a link, the polls and everything else share them.
const CPUS_MIN: usize = 4;
/// Share of the CPUs that others may use without affecting figures.
const BUSY_MAX: f64 = 0.1;
/// Share of the CPUs that the hypervisor may take.
const STEAL_MAX: f64 = 0.01;
/// Longest tolerated wake-up of a CPU, which adds to latencies and to the time between polls.
const IDLE_LATENCY_MAX_US: u64 = 50;
/// The kernel's default.
const TIMER_SLACK_NS: u64 = 50_000;

const CPU: &str = "/sys/devices/system/cpu";

/// Reads the machine's state over a second, and judges it. Unreadable state is not a disturbance.
pub fn checks(
    host: &HostFacts,
    interfaces: &[ExaminedInterface],
) -> Result<Vec<Check>, InspectError> {
    let exact = look_for_storms(STORM_THRESHOLD).ok();
    let (busy_ratio, steal_ratio) = read_load()?;
    // Counted since the look began.
    let interrupts = exact.and_then(|exact| exact.interrupts().ok());
    let has_smt = text(&format!("{CPU}/smt/active")).map(|active| active == "1");
    let idle_governor = text(&format!("{CPU}/cpuidle/current_governor"));
    let haltpoll_ns = number("/sys/module/haltpoll/parameters/guest_halt_poll_ns");
    let outcomes = [
        ("CPUs", cpus(host.cpus.len())),
        ("SMT", smt(has_smt)),
        ("clock source", clocksource(host.clocksource.as_deref())),
        ("frequency governor", governor(&host.governors)),
        ("frequency boost", boost(boosts())),
        ("idle states", idle(deepest_idle())),
        ("haltpoll", haltpoll(idle_governor.as_deref(), haltpoll_ns)),
        ("irqbalance", irqbalance(&named("irqbalance"))),
        ("interrupt storms", storms(interrupts.as_ref())),
        ("adaptive moderation", moderation(&adaptive(interfaces))),
        ("other load", load(busy_ratio)),
        ("steal time", steal(steal_ratio)),
        (
            "timer slack",
            timer_slack(number("/proc/self/timerslack_ns")),
        ),
        ("files for the boot", boot_files()),
    ];
    Ok(group(CheckGroup::Measurement, None, outcomes))
}

/// Checks whether a killed `set --persist` left incomplete files.
fn boot_files() -> Outcome {
    let journal = Journal::of_this_machine();
    let mut left = match files_left(&journal) {
        Ok(left) => left,
        Err(error) => return unknown(error.to_string()),
    };
    left.extend(orphans_here(&journal).into_iter().map(|orphan| orphan.path));
    if left.is_empty() {
        return good("none is incomplete");
    }
    let left: Vec<String> = left.iter().map(|path| path.display().to_string()).collect();
    let finding = format!("'set --persist' was killed and left {}", left.join(", "));
    disturbs(finding, "nicpoll restore")
}

/// Interfaces with adaptive interrupt moderation.
fn adaptive(interfaces: &[ExaminedInterface]) -> Vec<&str> {
    let adapts = |found: &&ExaminedInterface| {
        let values = found.moderation.iter().flatten();
        let mut adaptive = values.filter(|(row, _)| row.is_adaptive());
        adaptive.any(|(_, value)| *value != 0)
    };
    let adaptive = interfaces.iter().filter(adapts);
    adaptive
        .map(|found| found.link.interface.name.as_str())
        .collect()
}

/// Shares of all CPUs' time: busy, and taken by the hypervisor.
fn read_load() -> Result<(Option<f64>, Option<f64>), InspectError> {
    let sample = || CpuSample::now().doing("reading /proc/stat");
    let before = sample()?;
    thread::sleep(LOOK);
    let after = sample()?;
    let states = after.since(&before, &after.cores()).states;
    let mean = |share: fn(&nicpoll_model::CpuStates) -> f64| {
        (!states.is_empty()).then(|| states.iter().map(share).sum::<f64>() / states.len() as f64)
    };
    Ok((mean(|cpu| cpu.busy()), mean(|cpu| cpu.steal_ratio)))
}

fn storms_of(interrupts: &Interrupts) -> Vec<String> {
    let name = |counts: &InterruptCounts| match counts.source {
        InterruptSource::Irq(irq) if counts.storm_entries > 0 => {
            Some(format!("IRQ {irq} ({})", counts.source.name()))
        }
        _ => None,
    };
    interrupts.0.iter().filter_map(name).collect()
}

fn number(path: &str) -> Option<u64> {
    text(path)?.parse().ok()
}

/// Whether frequency boost is on; `intel_pstate` shows the opposite.
fn boosts() -> Option<bool> {
    let intel = number(&format!("{CPU}/intel_pstate/no_turbo")).map(|off| off == 0);
    intel.or_else(|| number(&format!("{CPU}/cpufreq/boost")).map(|on| on == 1))
}

/// The deepest idle state of the first CPU; the others usually have the same.
fn deepest_idle() -> Option<(String, u64)> {
    let states = fs::read_dir(format!("{CPU}/cpu0/cpuidle")).ok()?;
    let in_use = states.flatten().filter_map(|state| {
        let path = state.path();
        let path = path.to_str()?;
        let is_off = number(&format!("{path}/disable")) == Some(1);
        let name = text(&format!("{path}/name"))?;
        let latency_us = number(&format!("{path}/latency"))?;
        (!is_off).then_some((name, latency_us))
    });
    in_use.max_by_key(|(_, latency_us)| *latency_us)
}

/// Pids of the processes with a name.
fn named(wanted: &str) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pid_of = |process: fs::DirEntry| {
        let pid = process.file_name().to_str()?.parse().ok()?;
        let stat = text(&format!("/proc/{pid}/stat"))?;
        let (name, _) = parse_task_stat(&stat).ok()?;
        (name == wanted).then_some(pid)
    };
    let mut pids: Vec<u32> = processes.filter_map(pid_of).collect();
    pids.sort_unstable();
    pids
}

const UNKNOWN: &str = "the kernel does not report it";

fn cpus(cpus: usize) -> Outcome {
    if cpus >= CPUS_MIN {
        return good(format!("{cpus} may be used"));
    }
    disturbs(
        format!("{cpus}: sender, receiver, polls and everything else share them"),
        format!("{CPUS_MIN} or more; compare only figures of this machine with each other"),
    )
}

fn smt(is_on: Option<bool>) -> Outcome {
    match is_on {
        Some(false) => good("no two CPUs are threads of one core"),
        Some(true) => disturbs(
            "CPUs are threads of shared cores: one slows its twin down",
            "while measuring: echo off > /sys/devices/system/cpu/smt/control, or use one CPU of each pair in \
             /sys/devices/system/cpu/cpu*/topology/thread_siblings_list",
        ),
        None => unknown(UNKNOWN),
    }
}

fn clocksource(source: Option<&str>) -> Outcome {
    match source {
        Some(source) if is_read_in_user_mode(source) => good(source),
        Some(source) => disturbs(
            format!(
                "{source}: reading the time may take a system call or a trip to the hypervisor"
            ),
            "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource, if \
             available_clocksource has it",
        ),
        None => unknown(UNKNOWN),
    }
}

/// There is no governor if the frequency cannot be set here.
fn governor(governors: &[String]) -> Outcome {
    let other = governors.iter().find(|one| *one != "performance");
    match other {
        Some(other) => disturbs(
            format!("{other}: the clock follows the load, and CPU time with it"),
            "while measuring: cpupower frequency-set -g performance",
        ),
        None if governors.is_empty() => good("none: the frequency is not this kernel's to set"),
        None => good("performance"),
    }
}

fn boost(boosts: Option<bool>) -> Outcome {
    match boosts {
        Some(true) => disturbs(
            "on: CPUs run faster while they are cool or few are busy",
            "while measuring: echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 > \
             /sys/devices/system/cpu/cpufreq/boost",
        ),
        Some(false) => good("off"),
        None => good("none that this kernel could set"),
    }
}

fn idle(deepest: Option<(String, u64)>) -> Outcome {
    match deepest {
        Some((state, latency_us)) if latency_us > IDLE_LATENCY_MAX_US => disturbs(
            format!("an idle CPU may go to {state}, from which it takes {latency_us} us to wake"),
            format!("while measuring: cpupower idle-set -D {IDLE_LATENCY_MAX_US}"),
        ),
        Some((state, latency_us)) => {
            good(format!("{state} at the deepest, {latency_us} us to wake"))
        }
        None => good("none that this kernel chooses"),
    }
}

fn haltpoll(governor: Option<&str>, poll_ns: Option<u64>) -> Outcome {
    let is_governor = governor == Some("haltpoll");
    match poll_ns {
        Some(ns @ 1..) if is_governor => disturbs(
            format!(
                "idle CPUs poll for up to {} before they halt: they look busy to the host and wake sooner",
                duration_text(ns)
            ),
            "while measuring: echo 0 > /sys/module/haltpoll/parameters/guest_halt_poll_ns, or report it with \
             the results",
        ),
        _ if is_governor => good("the governor, but it does not poll (guest_halt_poll_ns 0)"),
        _ => good("not in use"),
    }
}

fn irqbalance(pids: &[u32]) -> Outcome {
    match pids.first() {
        None => good("not running"),
        Some(pid) => disturbs(
            format!("running (pid {pid}): it moves interrupts between CPUs"),
            "while measuring: systemctl stop irqbalance; or ban the interrupts of the interfaces \
             (IRQBALANCE_ARGS=--banirq=N)",
        ),
    }
}

/// `interrupts` is `None` if they could not be counted.
fn storms(interrupts: Option<&Interrupts>) -> Outcome {
    let threshold = count(STORM_THRESHOLD);
    let Some(storms) = interrupts.map(storms_of) else {
        let finding = "counting them needs root (CAP_BPF, CAP_PERFMON)";
        return unknown(finding);
    };
    if storms.is_empty() {
        let finding = format!("none just now of {threshold} entries back to back (approximated)");
        return good(finding);
    }
    disturbs(
        format!(
            "{}: entered {threshold} times or more with no task in between (approximated)",
            storms.join(", ")
        ),
        "have its interface polled (nicpoll set IF polling) or its interrupts moderated (ethtool -C IF \
         rx-usecs 50)",
    )
}

fn moderation(adaptive: &[&str]) -> Outcome {
    let Some(first) = adaptive.first() else {
        return good("off, or no driver has it");
    };
    disturbs(
        format!(
            "on at {}: the driver changes its interrupt rate by itself",
            adaptive.join(", ")
        ),
        format!("while measuring: ethtool -C {first} adaptive-rx off adaptive-tx off"),
    )
}

fn load(busy_ratio: Option<f64>) -> Outcome {
    let percent = |ratio: f64| figure(100.0 * ratio);
    match busy_ratio {
        None => unknown(UNKNOWN),
        Some(busy) if busy > BUSY_MAX => disturbs(
            format!(
                "the CPUs were {} % busy with other things just now",
                percent(busy)
            ),
            "see who: top; stop it, or measure when it is quiet",
        ),
        Some(busy) => good(format!("the CPUs were {} % busy just now", percent(busy))),
    }
}

fn steal(ratio: Option<f64>) -> Outcome {
    match ratio {
        None => unknown(UNKNOWN),
        Some(steal) if steal > STEAL_MAX => disturbs(
            format!(
                "the hypervisor took {} % of the CPUs just now",
                figure(100.0 * steal)
            ),
            "measure when its other guests are quiet, or on dedicated CPUs",
        ),
        Some(steal) => good(format!("{} % just now", figure(100.0 * steal))),
    }
}

fn timer_slack(slack_ns: Option<u64>) -> Outcome {
    match slack_ns {
        None => unknown(UNKNOWN),
        Some(slack) if slack > TIMER_SLACK_NS => disturbs(
            format!("the kernel may end sleeps {} late", duration_text(slack)),
            "run it from a shell whose slack is not raised (prctl PR_SET_TIMERSLACK, or a service's \
             TimerSlackNSec=50us)",
        ),
        Some(slack) => good(format!("{}, as usual", duration_text(slack))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_devices_have_storms() {
        let counts = |source, storm_entries| InterruptCounts {
            source,
            entries: 9,
            ns: 9,
            storm_entries,
        };
        let irq = InterruptSource::Irq;
        let found = Interrupts(vec![
            counts(irq(4_000_000), 1),
            counts(irq(4_000_001), 0),
            counts(InterruptSource::Vector("local_timer"), 1),
        ]);
        assert_eq!(storms_of(&found), ["IRQ 4000000 ()"]);
    }

    #[test]
    fn this_test_is_found_by_its_name() {
        let stat = text("/proc/self/stat").unwrap();
        let (name, _) = parse_task_stat(&stat).unwrap();
        assert!(named(name).contains(&std::process::id()));
        assert!(named("no such program is here").is_empty());
    }

    /// Each check on a quiet machine, on a disturbed one, and without readable state.
    #[test]
    fn a_disturbance_is_named_with_its_remedy_and_what_cannot_be_read_is_none() {
        let counted = |storm_entries| {
            Interrupts(vec![InterruptCounts {
                source: InterruptSource::Irq(4_000_000),
                entries: 9,
                ns: 9,
                storm_entries,
            }])
        };
        let state = |name: &str, us| Some((String::from(name), us));
        let governors =
            |names: &[&str]| governor(&names.iter().copied().map(String::from).collect::<Vec<_>>());
        let slow = ["performance", "powersave"];
        for (name, outcomes) in [
            ("CPUs", [8, 2, 8].map(cpus)),
            ("SMT", [Some(false), Some(true), None].map(smt)),
            (
                "clock source",
                [Some("tsc"), Some("hpet"), None].map(clocksource),
            ),
            (
                "frequency governor",
                [&slow[..1], &slow, &[]].map(governors),
            ),
            (
                "frequency boost",
                [Some(false), Some(true), None].map(boost),
            ),
            (
                "idle states",
                [state("C1", 2), state("C6", 133), None].map(idle),
            ),
            (
                "haltpoll",
                [Some("menu"), Some("haltpoll"), None].map(|it| haltpoll(it, Some(200_000))),
            ),
            ("irqbalance", [&[][..], &[812], &[]].map(irqbalance)),
            (
                "interrupt storms",
                [Some(counted(0)), Some(counted(1)), None].map(|it| storms(it.as_ref())),
            ),
            (
                "adaptive moderation",
                [&[][..], &["eth0"], &[]].map(moderation),
            ),
            ("other load", [Some(0.01), Some(0.4), None].map(load)),
            ("steal time", [Some(0.0), Some(0.03), None].map(steal)),
            (
                "timer slack",
                [Some(50_000), Some(1_000_000), None].map(timer_slack),
            ),
        ] {
            let is_bad = outcomes.each_ref().map(|outcome| outcome.status.is_bad());
            assert_eq!(is_bad, [false, true, false], "{name}");
            assert!(outcomes[1].remedy.is_some(), "{name}");
        }
    }
}
