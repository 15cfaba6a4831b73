//! The pages of `show` and `doctor`, FreeBSD's variables, and the check of the CPU account.

use nicpoll_model::numbers::{MISSING, count, figure, plain_number};
use nicpoll_model::{
    Check, CheckGroup, CheckStatus, CpuTruth, Doctor, Finding, FoldBin, FoldedPulses,
    InterfaceShow, NapiShow, PendingShow, PollingVariable, Show, TruthPhase, TruthVerdict,
};

use crate::fields::{filled, stated};
use crate::page::{Align, Document, Ink, Page, Part, Row, Table};

/// Width of the names before each line.
const LEAD: usize = 13;
/// Widths of a variable's name, of its value, and of its source.
const VARIABLE: usize = 30;
const VALUE: usize = 8;
const SOURCE: usize = 9;
/// Width of the labels of phases.
const LABEL: usize = 15;
/// Columns of the longest bar.
const BAR: u64 = 40;

impl Document for Show {
    fn page(&self) -> Page<'_> {
        Page::of("Interfaces", |part| write_show(part, self))
    }
}

impl Document for Doctor {
    fn page(&self) -> Page<'_> {
        Page::of("The machine", |part| write_doctor(part, self))
    }
}

impl Document for CpuTruth {
    fn page(&self) -> Page<'_> {
        Page::of("The account of CPU time", |part| {
            write_cpu_truth(part, self)
        })
    }
}

fn write_show(part: &mut Part, show: &Show) {
    if show.interfaces.is_empty() {
        part.say("There is no interface here but the loopback.");
    }
    for interface in &show.interfaces {
        write_interface(part, interface, show.netns.as_deref());
    }
    let mut below = |ink: Ink, text: String| {
        part.blank();
        part.paragraph(ink, text);
    };
    let mut interrupts = show.interfaces.iter().flat_map(|one| &one.interrupts);
    if interrupts.any(|interrupt| interrupt.is_storm == Some(true)) {
        let storm = "STORM: {storm_threshold_entries} or more entries of its handlers back to back, with no task in \
                     between; an approximation of FreeBSD's interrupt storm.";
        below(Ink::Unsure, filled(storm, show));
    }
    if let Some(cost) = &show.look_cost {
        let events =
            "Watching cost {ns_per_event} ns for each of {events_per_second} events a second";
        let core_share = cost.ns_per_event * cost.events_per_second / 1e9;
        let share = figure(100.0 * core_share);
        below(
            Ink::Faint,
            format!("{}: {share} % of one core.", filled(events, cost)),
        );
    }
    for unseen in &show.unseen {
        below(Ink::Unsure, filled("Not seen: {what}: {why}.", unseen));
    }
}

fn write_interface(part: &mut Part, interface: &InterfaceShow, netns: Option<&str>) {
    part.heading(format!("{}: {}", interface.name, summary(interface)));
    let mut line = |name: &str, ink: Ink, text: String| {
        part.item(format!("{name:<LEAD$}"), ink, text);
    };
    let evidence = interface.evidence.as_ref();
    line("discipline", Ink::Plain, finding(evidence, "not looked at"));
    let setting = interface.setting.as_ref();
    line("setting", Ink::Plain, finding(setting, "cannot be read"));
    if let Some(pending) = &interface.pending {
        let waits = waits(pending, &interface.name, netns);
        line("pending", Ink::Unsure, waits);
    }
    for drift in interface.drift.iter().flatten() {
        let now = stated(drift, &["is {now}"]).pop();
        let now = now.unwrap_or(String::from("is gone"));
        let set = "nicpoll had set it to {written}, and somebody else changed it since";
        let changed = format!("{} {now}; {}", drift.name, filled(set, drift));
        line("drift", Ink::Unsure, changed);
    }
    line("queues", Ink::Plain, queues(interface));
    for napi in interface.napis.iter().flatten() {
        line(&format!("NAPI {}", napi.id), Ink::Plain, instance(napi));
    }
    for interrupt in &interface.interrupts {
        let rates = [", on CPU {cpus}", ", {interrupts_per_second}/s"];
        let is_storm = interrupt.is_storm == Some(true);
        let storm = if is_storm { ", STORM" } else { "" };
        let rates = stated(interrupt, &rates).concat();
        let text = format!("{}{rates}{storm}", interrupt.description);
        line(&format!("IRQ {}", interrupt.irq), Ink::Plain, text);
    }
    if !interface.moderation.is_empty() {
        let values = interface.moderation.iter();
        let values: Vec<String> = values
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        line("moderation", Ink::Plain, values.join(", "));
    }
    for received in stated(interface, &["{rx_packets_per_second} packets/s"]) {
        line("received", Ink::Plain, received);
    }
    if let Some(ceiling) = &interface.ceiling {
        let how = match ceiling.is_measured {
            true => "measured",
            false => "predicted from the timeout",
        };
        let limit = format!(
            "{{slots}} slots x {{rounds_per_second}} rounds/s ({how}) = {{packets_per_second}} packets/s, and what comes \
             while a round runs"
        );
        line("ceiling", Ink::Plain, filled(&limit, ceiling));
    }
    if interface.napis.as_ref().is_some_and(|it| !it.is_empty()) {
        write_variables(part, &interface.kern_polling);
    }
}

/// Writes FreeBSD's variables with their values and sources.
fn write_variables(part: &mut Part, variables: &[PollingVariable]) {
    part.blank();
    for variable in variables {
        let name = format!("kern.polling.{}", variable.name);
        let value = plain_number(variable.value);
        let from = variable.source.name();
        let ink = match variable.value {
            Some(_) => Ink::Plain,
            None => Ink::Faint,
        };
        let lead = format!("{name:<VARIABLE$}{value:>VALUE$}  {from:<SOURCE$}");
        part.item(lead, ink, &variable.note);
    }
}

fn summary(interface: &InterfaceShow) -> String {
    let driver = interface.driver.as_deref().unwrap_or("no driver");
    let up = if interface.is_up { "up" } else { "down" };
    let speed = interface.link_bits_per_second;
    let speed = speed.map(|bits| plain_number(Some(bits as f64 / 1e9)));
    let speed = speed.map_or(String::new(), |speed| format!(", {speed} Gbit/s"));
    format!("{driver}, {up}{speed}")
}

fn finding(finding: Option<&Finding>, without: &str) -> String {
    match finding {
        Some(finding) => format!("{}: {}", finding.discipline, finding.why),
        None => String::from(without),
    }
}

/// Returns what will happen to a pending change, and the command that keeps or undoes it.
fn waits(pending: &PendingShow, interface: &str, netns: Option<&str>) -> String {
    let netns = netns.map_or_else(String::new, |netns| format!(" --netns {netns}"));
    let back = format!("put it back: nicpoll set {interface}{netns} -polling");
    let owner = pending.owner_pid;
    let left = pending.undone_in_seconds;
    match (pending.is_owner_alive, left.unwrap_or_default()) {
        (true, left) if left > 0.0 => format!(
            "its settings are undone in {left:.0} s; keep them: nicpoll set {interface}{netns} --confirm"
        ),
        (true, _) if left.is_some() => {
            format!("process {owner} is putting its settings back")
        }
        (true, _) => {
            format!("its settings last as long as the program that process {owner} watches over")
        }
        (false, left) if left > 0.0 => format!(
            "its settings were to be undone, and process {owner}, which would do it, is gone; {back}"
        ),
        (false, _) => format!(
            "its settings should have been undone by process {owner}, which is gone; {back}"
        ),
    }
}

/// Values of FreeBSD's variables, and those that have none.
#[derive(Clone, Debug, PartialEq)]
pub struct PollingValues<'a> {
    /// A line for each variable of each interface.
    pub text: String,
    /// Names of interfaces, and their variables without a value.
    pub missing: Vec<(&'a str, &'a PollingVariable)>,
}

/// Renders FreeBSD's variables of these names: values alone, or with their names if `is_named`, and with the
/// interface's if there are several.
pub fn render_polling_values<'a>(
    show: &'a Show,
    names: &[&str],
    is_named: bool,
) -> PollingValues<'a> {
    let mut values = PollingValues {
        text: String::new(),
        missing: Vec::new(),
    };
    for interface in &show.interfaces {
        let whose = match show.interfaces.len() {
            1 => String::new(),
            _ => format!("{}: ", interface.name),
        };
        for name in names {
            let mut all = interface.kern_polling.iter();
            let Some(variable) = all.find(|one| one.name == *name) else {
                continue;
            };
            let name = match is_named {
                true => format!("{whose}kern.polling.{name}: "),
                false => String::new(),
            };
            values.text += &format!("{name}{}\n", plain_number(variable.value));
            if variable.value.is_none() {
                values.missing.push((&interface.name, variable));
            }
        }
    }
    values
}

fn queues(interface: &InterfaceShow) -> String {
    let number = |queues: Option<u32>| queues.map_or(String::from("?"), |n| n.to_string());
    let [receive, send] = [interface.rx_queues, interface.tx_queues].map(number);
    let rings = stated(interface, &[", receive rings of {rx_ring_slots} slots"]).concat();
    let gro = match interface.has_gro {
        Some(true) => ", GRO on",
        Some(false) => ", GRO off",
        None => "",
    };
    format!("{receive} to receive, {send} to send{rings}{gro}")
}

fn instance(napi: &NapiShow) -> String {
    let known = [
        "defer-hard-irqs {defer_hard_irqs:raw}, gro-flush-timeout {gro_flush_timeout_ns:duration}",
        "irq-suspend-timeout {irq_suspend_timeout_ns:duration}",
        "threaded {threaded:raw}",
        "IRQ {irq:raw}",
        "receive queue {rx_queues:raw}",
    ];
    let mut parts = stated(napi, &known);
    parts.extend(napi.thread.as_ref().map(|thread| {
        let cpus = thread.cpus.as_deref().unwrap_or("?");
        format!("thread {} ({}) on CPUs {cpus}", thread.pid, thread.name)
    }));
    let mut text = parts.join(", ");
    if let Some(rhythm) = napi.rhythm.as_ref().filter(|rhythm| rhythm.polls > 0) {
        let cpus = rhythm.polls_by_cpu.iter();
        let cpus: Vec<String> = cpus.map(|(cpu, _)| cpu.to_string()).collect();
        text += &format!(
            "; {}: {}, on CPU {}",
            rhythm.evidence.discipline,
            filled("polls {polls}, rounds {rounds}, packets {packets}", rhythm),
            cpus.join(", ")
        );
    }
    text
}

/// Width of a check's status.
const STATUS: usize = 9;
/// Width of a check's name.
const CHECK: usize = 24;

const GROUPS: [(CheckGroup, &str); 4] = [
    (CheckGroup::Privilege, "What this process may do"),
    (CheckGroup::Kernel, "What the kernel can do"),
    (CheckGroup::Interface, "What the interfaces can do"),
    (CheckGroup::Measurement, "What disturbs measurements"),
];

fn write_doctor(part: &mut Part, doctor: &Doctor) {
    for (group, title) in GROUPS {
        part.heading(title);
        let checks = doctor.checks.iter().filter(|check| check.group == group);
        for check in checks {
            write_check(part, check);
        }
    }
    part.blank();
    let bad = doctor.checks.iter().filter(|it| it.status.is_bad());
    let bad = bad.count();
    let text = match bad {
        0 => "Nothing is missing, and nothing found disturbs measurements.",
        1 => "One thing is missing or disturbs measurements.",
        count => &*format!("{count} things are missing or disturb measurements."),
    };
    let ink = if bad == 0 { Ink::Good } else { Ink::Unsure };
    part.paragraph(ink, text);
}

fn write_check(part: &mut Part, check: &Check) {
    let ink = match check.status {
        CheckStatus::Good => Ink::Plain,
        CheckStatus::Absent | CheckStatus::Unknown => Ink::Faint,
        CheckStatus::Missing => Ink::Bad,
        CheckStatus::Confounds => Ink::Unsure,
    };
    let name = match &check.interface {
        Some(interface) => format!("{interface} {}", check.name),
        None => check.name.clone(),
    };
    // An interface's name may contain almost any character.
    let name = name.replace(char::is_control, "?");
    let status = check.status.to_string();
    let lead = format!("{status:<STATUS$}{name:<CHECK$}");
    part.item(lead, ink, &check.finding);
    if let Some(remedy) = &check.remedy {
        let lead = " ".repeat(STATUS + CHECK);
        part.item(lead, Ink::Plain, format!("-> {remedy}"));
    }
}

fn write_cpu_truth(part: &mut Part, truth: &CpuTruth) {
    part.heading("Is the account of CPU time right?");
    let load = "A load on CPU {core:raw} is busy for {pulse_ns:/1e3} of every {tick_ns:/1e3} us, in step with the kernel's \
                clock tick";
    let load = format!(
        "{}, at {} phases of it. It measures itself by looking at the clock all the time.",
        filled(load, truth),
        truth.phases.len()
    );
    part.say(load);
    part.blank();
    part.table(phases(&truth.phases));
    part.blank();
    part.say("Shares of one core in %. Exact: the load's thread in user mode, where it is busy; \"+ kernel\", where \
         it goes to sleep and wakes up; and the whole core. What /proc/stat sampled is off by what lies below the \
         load's own measure, or above that and all else that ran.",
    );
    part.say(cost(truth));
    if let Some(fold) = &truth.fold {
        write_fold(part, fold);
    }
    part.blank();
    let (word, ink) = match truth.verdict {
        TruthVerdict::Holds => ("It is", Ink::Good),
        TruthVerdict::Inconclusive => ("It cannot be told now", Ink::Unsure),
        TruthVerdict::Fails => ("It is not", Ink::Bad),
    };
    part.paragraph(ink, format!("{word}: {}.", truth.reason));
}

fn phases(phases: &[TruthPhase]) -> Table {
    let names = [
        "itself", "exact", "off, pt", "+ kernel", "core", "sampled", "off, pt",
    ];
    let mut table = Table::new("pulse begins at", names, Align::Right);
    table.label = LABEL;
    for phase in phases {
        let share = |ratio: f64| format!("{:.1}", 100.0 * ratio);
        let cells = [
            share(phase.own_ratio),
            share(phase.exact_ratio),
            format!("{:+.2}", phase.exact_error_points()),
            share(phase.exact_system_ratio),
            share(phase.exact_core_ratio),
            share(phase.tick_sampled_core_ratio),
            format!("{:+.1}", phase.tick_sampled_error_points()),
        ];
        let label = format!("{} us", count(phase.phase_ns / 1_000));
        table.rows.push(Row::plain(label, cells));
    }
    table
}

fn cost(truth: &CpuTruth) -> String {
    let most = |ratio: fn(&TruthPhase) -> f64| {
        let ratios = truth.phases.iter().map(ratio);
        figure(100.0 * ratios.fold(0.0, f64::max))
    };
    let (residual, steal) = (most(|it| it.residual_ratio), most(|it| it.steal_ratio));
    let cost = truth.cost.map_or(String::from(MISSING), |cost| {
        let share = figure(cost.ns_per_event * cost.events_per_second / 1e7);
        let events = filled(
            "{ns_per_event} ns an event at {events_per_second} events/s",
            &cost,
        );
        format!("{events}, {share} % of one core")
    });
    format!(
        "The core's states add up to wall time but for {residual} %; steal was {steal} %. The account itself takes {cost}."
    )
}

fn write_fold(part: &mut Part, fold: &FoldedPulses) {
    let pulses = "{datagrams_per_pulse:raw} datagrams every {period_ns:/1e3} us, {pulses} pulses";
    let pulses = filled(pulses, fold);
    part.heading(format!("CPU time by phase of a pulse: {pulses}"));
    let per_pulse = |ns: u64| ns as f64 / fold.pulses.max(1) as f64 / 1e3;
    let greatest = fold.bins.iter().map(|bin| bin.kernel_ns() + bin.user_ns);
    let greatest = greatest.max().unwrap_or(0).max(1);
    for bin in &fold.bins {
        let lead = format!(
            "{:>7} us  kernel {:>6.2}  user {:>6.2}  ",
            count(bin.phase_ns / 1_000),
            per_pulse(bin.kernel_ns()),
            per_pulse(bin.user_ns)
        );
        part.item(lead, Ink::Plain, bar(bin, greatest));
    }
    let phase =
        |phase_ns: Option<u64>| phase_ns.map_or(String::from(MISSING), |ns| count(ns / 1_000));
    part.say(format!(
            "k: kernel (system calls of the load, hard and soft interrupts), u: the load in user mode, in us of \
             CPU time a pulse, of all CPUs. The kernel is busiest from {} us on, user mode from {} us on.",
            phase(fold.peak_phase_ns(FoldBin::kernel_ns)),
            phase(fold.peak_phase_ns(|bin| bin.user_ns))
        ),
    );
}

/// Draws the kernel's part of a bin, then the load's own.
fn bar(bin: &FoldBin, greatest_ns: u64) -> String {
    let columns = |ns: u64| ((ns * BAR + greatest_ns / 2) / greatest_ns) as usize;
    let kernel = "k".repeat(columns(bin.kernel_ns()));
    let user = "u".repeat(columns(bin.user_ns));
    format!("{kernel}{user}")
}
