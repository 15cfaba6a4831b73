//! What interfaces and a machine can do and do: the pages of `show` and `doctor`, FreeBSD's variables, and the proof of
//! the CPU account.

use nicpoll_model::numbers::{MISSING, count, duration_text, figure, plain_number};
use nicpoll_model::{
    Ceiling, Check, CheckGroup, CheckStatus, CpuTruth, Doctor, DriftShow, EventCost, Finding,
    FoldBin, FoldedPulses, InterfaceShow, InterruptShow, NapiShow, PendingShow, PollingVariable,
    Show, TruthPhase, TruthVerdict, Unseen,
};

use crate::page::{Align, Document, Ink, Page, Part, Row, Table};

/// Width of the names before each line.
const LEAD: usize = 13;
/// Width of a variable's name, of its value, and of the word for where it comes from.
const VARIABLE: usize = 30;
const VALUE: usize = 8;
const SOURCE: usize = 9;
/// Width of the labels of phases.
const LABEL: usize = 15;
/// Columns of the longest bar.
const BAR: u64 = 40;

impl Document for Show {
    fn page(&self) -> Page {
        Page::of("Interfaces", |part| write_show(part, self))
    }
}

impl Document for Doctor {
    fn page(&self) -> Page {
        Page::of("The machine", |part| write_doctor(part, self))
    }
}

impl Document for CpuTruth {
    fn page(&self) -> Page {
        Page::of("The account of CPU time", |part| {
            write_cpu_truth(part, self)
        })
    }
}

fn write_show(part: &mut Part, show: &Show) {
    if show.interfaces.is_empty() {
        part.paragraph(Ink::Plain, "There is no interface here but the loopback.");
    }
    for interface in &show.interfaces {
        write_interface(part, interface, show.netns.as_deref());
    }
    if has_storm(show) {
        part.blank();
        part.paragraph(Ink::Unsure, storm_text(show.storm_threshold));
    }
    if let Some(cost) = &show.look_cost {
        part.blank();
        part.paragraph(Ink::Faint, cost_text(cost));
    }
    for unseen in &show.unseen {
        write_unseen(part, unseen);
    }
}

fn write_interface(part: &mut Part, interface: &InterfaceShow, netns: Option<&str>) {
    part.heading(format!("{}: {}", interface.name, summary(interface)));
    let mut line = |name: &str, text: String| part.fact(name, LEAD, text);
    let evidence = interface.evidence.as_ref();
    line("discipline", finding(evidence, "not looked at"));
    let setting = interface.setting.as_ref();
    line("setting", finding(setting, "cannot be read"));
    if let Some(pending) = &interface.pending {
        let name = format!("{:<LEAD$}", "pending");
        part.item(name, Ink::Unsure, waits(pending, &interface.name, netns));
    }
    for drift in interface.drift.iter().flatten() {
        let name = format!("{:<LEAD$}", "drift");
        part.item(name, Ink::Unsure, changed(drift));
    }
    let mut line = |name: &str, text: String| part.fact(name, LEAD, text);
    line("queues", queues(interface));
    for napi in interface.napis.iter().flatten() {
        line(&format!("NAPI {}", napi.id), instance(napi));
    }
    for interrupt in &interface.interrupts {
        line(&format!("IRQ {}", interrupt.irq), source(interrupt));
    }
    if !interface.moderation.is_empty() {
        let values = interface.moderation.iter();
        let values: Vec<String> = values
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        line("moderation", values.join(", "));
    }
    if let Some(packets) = interface.rx_packets_per_second {
        line("received", format!("{} packets/s", figure(packets)));
    }
    if let Some(ceiling) = &interface.ceiling {
        line("ceiling", limit(ceiling));
    }
    if interface.napis.as_ref().is_none_or(Vec::is_empty) {
        return;
    }
    part.blank();
    for variable in &interface.kern_polling {
        let name = format!("kern.polling.{}", variable.name);
        let value = plain_number(variable.value);
        let from = variable.source.to_string();
        let lead = format!("{name:<VARIABLE$}{value:>VALUE$}  {from:<SOURCE$}");
        let ink = if variable.value.is_some() {
            Ink::Plain
        } else {
            Ink::Faint
        };
        part.item(lead, ink, &variable.note);
    }
}

fn summary(interface: &InterfaceShow) -> String {
    let mut parts = vec![
        interface
            .driver
            .clone()
            .unwrap_or(String::from("no driver")),
    ];
    parts.push(String::from(if interface.is_up { "up" } else { "down" }));
    if let Some(speed) = interface.link_bits_per_second {
        parts.push(format!("{} Gbit/s", plain_number(Some(speed as f64 / 1e9))));
    }
    parts.join(", ")
}

fn finding(finding: Option<&Finding>, without: &str) -> String {
    match finding {
        Some(finding) => format!("{}: {}", finding.discipline, finding.why),
        None => String::from(without),
    }
}

fn changed(drift: &DriftShow) -> String {
    let now = match &drift.now {
        Some(now) => format!("is {now}"),
        None => String::from("is gone"),
    };
    format!(
        "{} {now}; nicpoll had set it to {}, and somebody else changed it since",
        drift.name, drift.written
    )
}

/// What becomes of a change that does not stand, and what can be done about it.
fn waits(pending: &PendingShow, interface: &str, netns: Option<&str>) -> String {
    let netns = netns.map_or_else(String::new, |netns| format!(" --netns {netns}"));
    let back = format!("put it back: nicpoll set {interface}{netns} -polling");
    let owner = pending.owner_pid;
    match (pending.is_owner_alive, pending.undone_in_seconds) {
        (true, Some(left)) if left > 0.0 => format!(
            "its settings are undone in {left:.0} s; keep them: nicpoll set {interface}{netns} --confirm"
        ),
        (true, Some(_)) => format!("process {owner} is putting its settings back"),
        (true, None) => {
            format!("its settings last as long as the program that process {owner} watches over")
        }
        (false, Some(left)) if left > 0.0 => {
            format!(
                "its settings were to be undone, and process {owner}, which would do it, is gone; {back}"
            )
        }
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

/// FreeBSD's variables of these names: values alone, or after their names when `is_named`, and of several interfaces
/// after theirs.
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
            if is_named {
                values
                    .text
                    .push_str(&format!("{whose}kern.polling.{name}: "));
            }
            values.text.push_str(&plain_number(variable.value));
            values.text.push('\n');
            if variable.value.is_none() {
                values.missing.push((&interface.name, variable));
            }
        }
    }
    values
}

fn queues(interface: &InterfaceShow) -> String {
    let number = |queues: Option<u32>| queues.map_or_else(|| String::from("?"), |n| n.to_string());
    let mut text = format!(
        "{} to receive, {} to send",
        number(interface.rx_queues),
        number(interface.tx_queues)
    );
    if let Some(slots) = interface.rx_ring_slots {
        text.push_str(&format!(", receive rings of {} slots", count(slots)));
    }
    if let Some(has_gro) = interface.has_gro {
        text.push_str(if has_gro { ", GRO on" } else { ", GRO off" });
    }
    text
}

fn instance(napi: &NapiShow) -> String {
    let mut parts = vec![format!(
        "defer-hard-irqs {}, gro-flush-timeout {}",
        napi.defer_hard_irqs,
        duration_text(napi.gro_flush_timeout_ns)
    )];
    if let Some(suspend) = napi.irq_suspend_timeout_ns {
        parts.push(format!("irq-suspend-timeout {}", duration_text(suspend)));
    }
    if let Some(threaded) = napi.threaded {
        parts.push(format!("threaded {threaded}"));
    }
    if let Some(irq) = napi.irq {
        parts.push(format!("IRQ {irq}"));
    }
    if !napi.rx_queues.is_empty() {
        let queues: Vec<String> = napi.rx_queues.iter().map(u32::to_string).collect();
        parts.push(format!("receive queue {}", queues.join(", ")));
    }
    if let Some(thread) = &napi.thread {
        let cpus = thread.cpus.as_deref().unwrap_or("?");
        parts.push(format!(
            "thread {} ({}) on CPUs {cpus}",
            thread.pid, thread.name
        ));
    }
    let mut text = parts.join(", ");
    if let Some(rhythm) = napi.rhythm.as_ref().filter(|rhythm| rhythm.polls > 0) {
        let cpus: Vec<String> = rhythm
            .polls_by_cpu
            .iter()
            .map(|(cpu, _)| cpu.to_string())
            .collect();
        text.push_str(&format!(
            "; {}: polls {}, rounds {}, packets {}, on CPU {}",
            rhythm.evidence.discipline,
            count(rhythm.polls),
            count(rhythm.rounds),
            count(rhythm.packets),
            cpus.join(", ")
        ));
    }
    text
}

fn source(interrupt: &InterruptShow) -> String {
    let mut text = interrupt.description.clone();
    if let Some(cpus) = &interrupt.cpus {
        text.push_str(&format!(", on CPU {cpus}"));
    }
    if let Some(rate) = interrupt.per_second {
        text.push_str(&format!(", {}/s", figure(rate)));
    }
    if interrupt.is_storm == Some(true) {
        text.push_str(", STORM");
    }
    text
}

fn limit(ceiling: &Ceiling) -> String {
    let how = if ceiling.is_measured {
        "measured"
    } else {
        "predicted from the timeout"
    };
    format!(
        "{} slots x {} rounds/s ({how}) = {} packets/s, and what comes while a round runs",
        count(ceiling.slots),
        figure(ceiling.rounds_per_second),
        figure(ceiling.packets_per_second)
    )
}

fn has_storm(show: &Show) -> bool {
    let mut interrupts = show.interfaces.iter().flat_map(|one| &one.interrupts);
    interrupts.any(|interrupt| interrupt.is_storm == Some(true))
}

fn storm_text(threshold: u64) -> String {
    format!(
        "STORM: {} or more entries of its handlers back to back, with no task in between; an approximation of \
         FreeBSD's interrupt storm.",
        count(threshold)
    )
}

fn cost_text(cost: &EventCost) -> String {
    let core_share = cost.ns_per_event * cost.events_per_second / 1e9;
    format!(
        "Watching cost {} ns for each of {} events a second: {} % of one core.",
        figure(cost.ns_per_event),
        figure(cost.events_per_second),
        figure(100.0 * core_share)
    )
}

fn write_unseen(part: &mut Part, unseen: &Unseen) {
    part.blank();
    part.paragraph(
        Ink::Unsure,
        format!("Not seen: {}: {}.", unseen.what, unseen.why),
    );
}

/// Width of the word for how a check came out.
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
    let (bad, ink) = match bad.count() {
        0 => (
            String::from("Nothing is missing, and nothing found disturbs measurements."),
            Ink::Good,
        ),
        1 => (
            String::from("One thing is missing or disturbs measurements."),
            Ink::Unsure,
        ),
        count => (
            format!("{count} things are missing or disturb measurements."),
            Ink::Unsure,
        ),
    };
    part.paragraph(ink, bad);
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
    // An interface may be called almost anything.
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
    part.paragraph(
        Ink::Plain,
        format!(
            "A load on CPU {} is busy for {} of every {} us, in step with the kernel's clock tick, at {} \
             phases of it. It measures itself by looking at the clock all the time.",
            truth.core,
            figure(truth.pulse_ns as f64 / 1e3),
            figure(truth.tick_ns as f64 / 1e3),
            truth.phases.len()
        ),
    );
    part.blank();
    part.table(phases(&truth.phases));
    part.blank();
    part.paragraph(
        Ink::Plain,
        "Shares of one core in %. Exact: the load's thread in user mode, where it is busy; \"+ kernel\", where \
         it goes to sleep and wakes up; and the whole core. What /proc/stat sampled is off by what lies below the \
         load's own measure, or above that and all else that ran.",
    );
    part.paragraph(Ink::Plain, cost(truth));
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
    let residual = truth.phases.iter().map(|phase| phase.residual_ratio);
    let residual = residual.fold(0.0, f64::max);
    let steal = truth.phases.iter().map(|phase| phase.steal_ratio);
    let steal = steal.fold(0.0, f64::max);
    let cost = truth.cost.map_or(String::from(MISSING), |cost| {
        format!(
            "{} ns an event at {} events/s, {} % of one core",
            figure(cost.ns_per_event),
            figure(cost.events_per_second),
            figure(cost.ns_per_event * cost.events_per_second / 1e7)
        )
    });
    format!(
        "The core's states add up to wall time but for {} %; steal was {} %. The account itself takes {cost}.",
        figure(100.0 * residual),
        figure(100.0 * steal)
    )
}

fn write_fold(part: &mut Part, fold: &FoldedPulses) {
    part.heading(format!(
        "CPU time by phase of a pulse: {} datagrams every {} us, {} pulses",
        fold.datagrams_per_pulse,
        figure(fold.period_ns as f64 / 1e3),
        count(fold.pulses)
    ));
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
    part.paragraph(
        Ink::Plain,
        format!(
            "k: kernel (system calls of the load, hard and soft interrupts), u: the load in user mode, in us of \
             CPU time a pulse, of all CPUs. The kernel is busiest from {} us on, user mode from {} us on.",
            phase(fold.kernel_peak_phase_ns()),
            phase(fold.user_peak_phase_ns())
        ),
    );
}

/// The kernel's part of a bin, then the load's own.
fn bar(bin: &FoldBin, greatest_ns: u64) -> String {
    let columns = |ns: u64| ((ns * BAR + greatest_ns / 2) / greatest_ns) as usize;
    let kernel = "k".repeat(columns(bin.kernel_ns()));
    let user = "u".repeat(columns(bin.user_ns));
    format!("{kernel}{user}")
}
