//! What about the machine bears on measurements, read over a second.

use std::fs;
use std::thread;
use std::time::Duration;

use nicpoll_model::HostFacts;
use nicpoll_observe::{CpuSample, InterruptCounts, InterruptSource, Interrupts, parse_task_stat};

use super::interfaces::Found;
use crate::InspectError;
use crate::error::Doing;
use crate::storms::{STORM_THRESHOLD, look_for_storms};

/// How long the load of the machine is looked at.
const LOOK: Duration = Duration::from_secs(1);
const CPU: &str = "/sys/devices/system/cpu";

/// What was found. What cannot be read is absent.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// CPUs that this process may use.
    pub cpus: usize,
    pub clocksource: Option<String>,
    /// Frequency governors of the CPUs; empty when the frequency cannot be set here.
    pub governors: Vec<String>,
    /// Whether CPUs may run faster than their rating while they are cool.
    pub boosts: Option<bool>,
    /// Whether two CPUs of this machine are threads of one core.
    pub has_smt: Option<bool>,
    /// Name and latency in us of the deepest idle state that is in use.
    pub deepest_idle: Option<(String, u64)>,
    pub idle_governor: Option<String>,
    /// How long a guest's CPU polls before it halts, in ns.
    pub haltpoll_ns: Option<u64>,
    /// Pids of programs that move interrupts between CPUs.
    pub irqbalance: Vec<u32>,
    /// Interfaces whose moderation adapts itself.
    pub adaptive: Vec<String>,
    /// Share of all CPUs' time that was busy meanwhile.
    pub busy_ratio: Option<f64>,
    /// Share of the CPUs' time that the hypervisor took.
    pub steal_ratio: Option<f64>,
    /// Interrupts of devices that came in storms meanwhile; `None` when they could not be looked for.
    pub storms: Option<Vec<String>>,
    /// How late the kernel may end a sleep of this process.
    pub timer_slack_ns: Option<u64>,
}

/// Reads what there is.
pub fn look(host: &HostFacts, interfaces: &[Found]) -> Result<Machine, InspectError> {
    let exact = look_for_storms(STORM_THRESHOLD).ok();
    let (busy_ratio, steal_ratio) = load()?;
    // They count from when the look began.
    let interrupts = exact.and_then(|exact| exact.interrupts().ok());
    let adapts = |found: &&Found| {
        let values = found.moderation.iter().flatten();
        let mut adaptive = values.filter(|(row, _)| row.is_adaptive());
        adaptive.any(|(_, value)| *value != 0)
    };
    let adaptive = interfaces.iter().filter(adapts);
    Ok(Machine {
        cpus: host.cpus.len(),
        clocksource: host.clocksource.clone(),
        governors: host.governors.clone(),
        boosts: boosts(),
        has_smt: text(&format!("{CPU}/smt/active")).map(|active| active == "1"),
        deepest_idle: deepest_idle(),
        idle_governor: text(&format!("{CPU}/cpuidle/current_governor")),
        haltpoll_ns: number("/sys/module/haltpoll/parameters/guest_halt_poll_ns"),
        irqbalance: named("irqbalance"),
        adaptive: adaptive.map(|found| found.link.name.clone()).collect(),
        busy_ratio,
        steal_ratio,
        storms: interrupts.map(|interrupts| storms(&interrupts)),
        timer_slack_ns: number("/proc/self/timerslack_ns"),
    })
}

fn load() -> Result<(Option<f64>, Option<f64>), InspectError> {
    let sample = || CpuSample::now().doing("reading /proc/stat");
    let before = sample()?;
    thread::sleep(LOOK);
    let after = sample()?;
    let states = after.since(&before, &after.cores()).states;
    let mean = |share: fn(&nicpoll_model::CpuStates) -> f64| {
        (!states.is_empty()).then(|| states.iter().map(share).sum::<f64>() / states.len() as f64)
    };
    Ok((mean(|cpu| cpu.busy()), mean(|cpu| cpu.steal)))
}

fn storms(interrupts: &Interrupts) -> Vec<String> {
    let name = |counts: &InterruptCounts| match counts.source {
        InterruptSource::Irq(irq) if counts.storm_entries > 0 => {
            Some(format!("IRQ {irq} ({})", counts.source.name()))
        }
        _ => None,
    };
    interrupts.0.iter().filter_map(name).collect()
}

fn text(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(String::from(text.trim()))
}

fn number(path: &str) -> Option<u64> {
    text(path)?.parse().ok()
}

/// `intel_pstate` says it the other way round.
fn boosts() -> Option<bool> {
    let intel = number(&format!("{CPU}/intel_pstate/no_turbo")).map(|off| off == 0);
    intel.or_else(|| number(&format!("{CPU}/cpufreq/boost")).map(|on| on == 1))
}

/// Of the first CPU: the others are as a rule the same.
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

/// Pids of the programs of a name.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_devices_have_storms() {
        let counts = |source, storm_entries| InterruptCounts {
            source,
            entries: 9,
            ns: 9,
            longest_run: 9,
            storm_entries,
        };
        let irq = InterruptSource::Irq;
        let found = Interrupts(vec![
            counts(irq(4_000_000), 1),
            counts(irq(4_000_001), 0),
            counts(InterruptSource::Vector("local_timer"), 1),
        ]);
        assert_eq!(storms(&found), ["IRQ 4000000 ()"]);
    }

    #[test]
    fn this_test_is_found_by_its_name() {
        let stat = text("/proc/self/stat").unwrap();
        let (name, _) = parse_task_stat(&stat).unwrap();
        assert!(named(name).contains(&std::process::id()));
        assert!(named("no such program is here").is_empty());
    }
}
