//! Interfaces as text: what each one can do and does, and FreeBSD's variables for it.

use nicpoll_model::{
    Ceiling, DriftShow, EventCost, Finding, InterfaceShow, InterruptShow, NapiShow, PendingShow,
    PollingVariable, Show, Unseen,
};

use super::page::{Ink, Page};
use crate::numbers::{count, duration_text, figure, plain_number};

/// Width of the names before each line.
const LEAD: usize = 13;
/// Width of a variable's name.
const VARIABLE: usize = 30;
/// Width of a variable's value.
const VALUE: usize = 8;
/// Width of the word for where it comes from.
const SOURCE: usize = 9;

pub fn write(page: &mut Page, show: &Show) {
    if show.interfaces.is_empty() {
        page.paragraph(Ink::Plain, "There is no interface here but the loopback.");
    }
    for interface in &show.interfaces {
        write_interface(page, interface, show.netns.as_deref());
    }
    if has_storm(show) {
        page.blank();
        page.paragraph(Ink::Unsure, &storm_text(show.storm_threshold));
    }
    if let Some(cost) = &show.look_cost {
        page.blank();
        page.paragraph(Ink::Faint, &cost_text(cost));
    }
    for unseen in &show.unseen {
        write_unseen(page, unseen);
    }
}

fn write_interface(page: &mut Page, interface: &InterfaceShow, netns: Option<&str>) {
    page.heading(&format!("{}: {}", interface.name, summary(interface)));
    line(
        page,
        "discipline",
        &finding(interface.evidence.as_ref(), "not looked at"),
    );
    line(
        page,
        "setting",
        &finding(interface.setting.as_ref(), "cannot be read"),
    );
    if let Some(pending) = &interface.pending {
        let name = format!("{:<LEAD$}", "pending");
        page.item(&name, Ink::Unsure, &waits(pending, &interface.name, netns));
    }
    for drift in interface.drift.iter().flatten() {
        let name = format!("{:<LEAD$}", "drift");
        page.item(&name, Ink::Unsure, &changed(drift));
    }
    line(page, "queues", &queues(interface));
    for napi in interface.napis.iter().flatten() {
        line(page, &format!("NAPI {}", napi.id), &instance(napi));
    }
    for interrupt in &interface.interrupts {
        line(page, &format!("IRQ {}", interrupt.irq), &source(interrupt));
    }
    if !interface.moderation.is_empty() {
        let values = interface.moderation.iter();
        let values: Vec<String> = values
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        line(page, "moderation", &values.join(", "));
    }
    if let Some(packets) = interface.rx_packets_per_second {
        line(page, "received", &format!("{} packets/s", figure(packets)));
    }
    if let Some(ceiling) = &interface.ceiling {
        line(page, "ceiling", &limit(ceiling));
    }
    if interface.napis.as_ref().is_none_or(Vec::is_empty) {
        return;
    }
    page.blank();
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
        page.item(&lead, ink, &variable.note);
    }
}

fn line(page: &mut Page, name: &str, text: &str) {
    page.item(&format!("{name:<LEAD$}"), Ink::Plain, text);
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
pub fn polling_values<'a>(show: &'a Show, names: &[&str], is_named: bool) -> PollingValues<'a> {
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

fn write_unseen(page: &mut Page, unseen: &Unseen) {
    page.blank();
    page.paragraph(
        Ink::Unsure,
        &format!("Not seen: {}: {}.", unseen.what, unseen.why),
    );
}
