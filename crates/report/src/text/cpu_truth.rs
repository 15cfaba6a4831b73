//! The proof of the CPU account: what each account made of a load that measured itself, phase by phase.

use nicpoll_model::{CpuTruth, FoldBin, FoldedPulses, TruthPhase, TruthVerdict};

use super::page::{Align, Ink, Page, Row};
use crate::numbers::{MISSING, count, figure};

/// Width of the labels.
const LABEL: usize = 15;
/// Columns of the longest bar.
const BAR: u64 = 40;

pub fn write(page: &mut Page, truth: &CpuTruth) {
    page.heading("Is the account of CPU time right?");
    page.paragraph(
        Ink::Plain,
        &format!(
            "A load on CPU {} is busy for {} of every {} us, in step with the kernel's clock tick, at {} \
             phases of it. It measures itself by looking at the clock all the time.",
            truth.core,
            figure(truth.pulse_ns as f64 / 1e3),
            figure(truth.tick_ns as f64 / 1e3),
            truth.phases.len()
        ),
    );
    page.blank();
    page.table(&phase_rows(&truth.phases), LABEL, Align::Right);
    page.blank();
    page.paragraph(
        Ink::Plain,
        "Shares of one core in %. Exact: the load's thread in user mode, where it is busy; \"+ kernel\", where \
         it goes to sleep and wakes up; and the whole core. What /proc/stat sampled is off by what lies below the \
         load's own measure, or above that and all else that ran.",
    );
    page.paragraph(Ink::Plain, &cost(truth));
    if let Some(fold) = &truth.fold {
        write_fold(page, fold);
    }
    page.blank();
    let (word, ink) = match truth.verdict {
        TruthVerdict::Holds => ("It is", Ink::Good),
        TruthVerdict::Inconclusive => ("It cannot be told now", Ink::Unsure),
        TruthVerdict::Fails => ("It is not", Ink::Bad),
    };
    page.paragraph(ink, &format!("{word}: {}.", truth.reason));
}

fn phase_rows(phases: &[TruthPhase]) -> Vec<Row> {
    let names = [
        "itself", "exact", "off, pt", "+ kernel", "core", "sampled", "off, pt",
    ];
    let mut rows = vec![Row::new(
        "pulse begins at",
        names.map(String::from).to_vec(),
        Ink::Strong,
    )];
    for phase in phases {
        let share = |ratio: f64| format!("{:.1}", 100.0 * ratio);
        let cells = vec![
            share(phase.own_ratio),
            share(phase.exact_ratio),
            format!("{:+.2}", phase.exact_error_points()),
            share(phase.exact_system_ratio),
            share(phase.exact_core_ratio),
            share(phase.tick_sampled_core_ratio),
            format!("{:+.1}", phase.tick_sampled_error_points()),
        ];
        let label = format!("{} us", count(phase.phase_ns / 1_000));
        rows.push(Row::new(label, cells, Ink::Plain));
    }
    rows
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

fn write_fold(page: &mut Page, fold: &FoldedPulses) {
    page.heading(&format!(
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
        page.item(&lead, Ink::Plain, &bar(bin, greatest));
    }
    let phase =
        |phase_ns: Option<u64>| phase_ns.map_or(String::from(MISSING), |ns| count(ns / 1_000));
    page.paragraph(
        Ink::Plain,
        &format!(
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
