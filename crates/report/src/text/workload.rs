//! One workload: what it comes to, the figures of each setting side by side, where packets were
//! lost, and the differences.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use nicpoll_model::{
    CpuSource, CpuStates, LossPlace, Side, Study, TrialFigures, WorkUnit, WorkloadFacts,
};

use super::differences;
use super::evenness;
use super::met;
use super::page::{Align, Ink, Page, Row};
use crate::figures::{Group, middle};
use crate::numbers::{MISSING, count, figure, figure_or_missing, percent};

/// Width of the widest label.
const LABEL: usize = 27;
/// Cores shown in one group of rows: more do not fit into a column.
const CORES_A_GROUP: usize = 2;

pub fn write(page: &mut Page, study: &Study, facts: &WorkloadFacts) {
    let workload = &facts.workload;
    let groups = Group::of_workload(study, workload);
    page.heading(&format!("{workload}: {}", facts.description));
    differences::write_sentences(page, study, workload);
    for sentence in evenness::sentences(study, workload) {
        page.paragraph(Ink::Unsure, &sentence);
    }
    if groups.iter().all(|group| group.good.is_empty()) {
        return;
    }
    page.blank();
    let mut rows = head(study);
    rows.extend(traffic_rows(facts.unit, &groups));
    rows.extend(cpu_rows(study, &groups));
    rows.extend(cost_rows(facts.unit, &groups));
    rows.extend(met::rows(study, workload, facts.unit));
    rows.extend(loss_rows(&groups));
    page.table(&rows, LABEL, Align::Right);
    differences::write_table(page, study, facts);
}

fn head(study: &Study) -> Vec<Row> {
    let names = study.settings.iter().map(|facts| facts.setting.clone());
    vec![Row::new("median of trials", names.collect(), Ink::Strong)]
}

/// A row with the median of a figure for each setting.
fn median_row(label: &str, groups: &[Group], read: impl Fn(&TrialFigures) -> Option<f64>) -> Row {
    let cells = groups
        .iter()
        .map(|group| figure_or_missing(group.median(&read)))
        .collect();
    Row::new(label, cells, Ink::Plain)
}

/// The median of a figure for each setting, and below it how far the trials spread.
fn spread_rows(
    label: &str,
    groups: &[Group],
    read: impl Fn(&TrialFigures) -> Option<f64>,
) -> impl Iterator<Item = Row> {
    let ranges: Vec<_> = groups.iter().map(|group| group.range(&read)).collect();
    let measured = ranges.iter().any(Option::is_some);
    let cells = ranges
        .into_iter()
        .map(|range| match range {
            Some((low, high)) => format!("{}..{}", figure(low), figure(high)),
            None => String::from(MISSING),
        })
        .collect();
    let spread = Row::new("  lowest..highest", cells, Ink::Faint);
    iter::once(median_row(label, groups, &read)).chain(measured.then_some(spread))
}

fn traffic_rows(unit: WorkUnit, groups: &[Group]) -> Vec<Row> {
    if unit == WorkUnit::Transactions {
        return round_trip_rows(groups);
    }
    let greatest = groups
        .iter()
        .filter_map(|group| group.median(|trial| Some(trial.delivered_bits_per_second)))
        .fold(0.0, f64::max);
    let (unit, scale) = if greatest >= 1e9 {
        ("Gbit/s", 1e9)
    } else {
        ("Mbit/s", 1e6)
    };
    let mut rows = Vec::new();
    rows.extend(spread_rows(
        &format!("delivered, {unit}"),
        groups,
        |trial| Some(trial.delivered_bits_per_second / scale),
    ));
    rows.extend(spread_rows("delivered, packets/s", groups, |trial| {
        trial.delivered_packets_per_second
    }));
    let line_percent = |trial: &TrialFigures| Some(trial.delivered_line_ratio? * 100.0);
    if groups
        .iter()
        .any(|group| group.range(line_percent).is_some())
    {
        rows.push(median_row("delivered, % of the line", groups, line_percent));
    }
    rows.push(median_row("offered, packets/s", groups, |trial| {
        trial.sender.packets_per_second
    }));
    rows.push(loss_row(groups));
    rows.push(median_row("jitter, us", groups, |trial| {
        Some(trial.jitter_seconds? * 1e6)
    }));
    rows.extend(receiver_rows(groups));
    rows
}

/// Reads a figure of a trial.
type Figure = fn(&TrialFigures) -> Option<f64>;

/// What only some workloads measure at their receiver; no row for what none of the settings has.
fn receiver_rows(groups: &[Group]) -> Vec<Row> {
    fn delay(trial: &TrialFigures, share: f64) -> Option<f64> {
        Some(trial.one_way_delays.as_ref()?.quantile_ns(share)? as f64 / 1e3)
    }
    let figures: [(&str, Figure); 4] = [
        ("one-way delay p50, us", |trial| delay(trial, 0.5)),
        ("one-way delay p99, us", |trial| delay(trial, 0.99)),
        ("one-way delay p99.9, us", |trial| delay(trial, 0.999)),
        ("program beside it, % of CPU", |trial| {
            Some(100.0 * trial.spinner?.cpu_ratio)
        }),
    ];
    let is_measured =
        |(_, read): &(_, Figure)| groups.iter().any(|group| group.range(read).is_some());
    let measured = figures.into_iter().filter(is_measured);
    measured
        .map(|(label, read)| median_row(label, groups, read))
        .collect()
}

/// The median loss of each setting. That none was seen is not a loss of 0.
fn loss_row(groups: &[Group]) -> Row {
    let cell = |group: &Group| match &group.losses()[..] {
        [] => String::from(MISSING),
        [.., 0.0] => String::from("none seen"),
        losses => figure_or_missing(middle(losses).map(|loss| loss * 100.0)),
    };
    Row::new("loss, %", groups.iter().map(cell).collect(), Ink::Plain)
}

fn round_trip_rows(groups: &[Group]) -> Vec<Row> {
    let mut rows = Vec::new();
    rows.extend(spread_rows("transactions/s", groups, |trial| {
        Some(trial.round_trip?.transactions_per_second)
    }));
    rows.push(median_row("round trip p50, us", groups, |trial| {
        Some(trial.round_trip?.quantiles.p50_ns? as f64 / 1e3)
    }));
    rows.push(median_row("round trip p99, us", groups, |trial| {
        Some(trial.round_trip?.quantiles.p99_ns? as f64 / 1e3)
    }));
    rows.push(median_row("round trip p99.9, us", groups, |trial| {
        Some(trial.round_trip?.quantiles.p999_ns? as f64 / 1e3)
    }));
    rows
}

/// Reads one state's share.
type Share = fn(&CpuStates) -> f64;
/// Reads the states of a trial's cores.
type States = fn(&TrialFigures) -> &[CpuStates];

fn cpu_rows(study: &Study, groups: &[Group]) -> Vec<Row> {
    let source = source(groups);
    let states: [(&str, Share); 4] = [
        ("  user + nice", |cpu| cpu.user + cpu.nice),
        ("  system", |cpu| cpu.system),
        ("  irq + softirq", |cpu| cpu.irq + cpu.softirq),
        ("  idle", |cpu| cpu.idle),
    ];
    let cores: BTreeSet<u32> = groups
        .iter()
        .flat_map(Group::results)
        .flat_map(|trial| cores_of(trial).iter().map(|cpu| cpu.core))
        .collect();
    let cores: Vec<u32> = cores.into_iter().collect();
    let mut rows = Vec::new();
    for cores in cores.chunks(CORES_A_GROUP) {
        let names: Vec<String> = cores.iter().map(|core| core_name(study, *core)).collect();
        let title = format!("{}: % of time, {}", names.join(" | "), source.name());
        rows.push(Row::new(title, vec![], Ink::Plain));
        for (label, read) in states {
            rows.push(core_row(label, groups, cores, cores_of, read));
        }
        if source == CpuSource::Exact {
            let sampled: States = |trial| &trial.cpu_tick_sampled;
            rows.push(core_row(
                "  steal, sampled",
                groups,
                cores,
                sampled,
                |cpu| cpu.steal,
            ));
            rows.push(core_row(
                "  busy, sampled",
                groups,
                cores,
                sampled,
                CpuStates::busy,
            ));
        } else {
            rows.push(core_row("  steal", groups, cores, cores_of, |cpu| {
                cpu.steal
            }));
        }
    }
    rows
}

/// Where CPU time went in a trial, core by core; empty when that was not measured.
pub fn cores_of(trial: &TrialFigures) -> &[CpuStates] {
    trial.cpu.as_ref().map_or(&[], |cpu| &cpu.cores)
}

/// A core and what ran there.
pub fn core_name(study: &Study, core: u32) -> String {
    let lab = &study.lab;
    match (core == lab.sender_cpu, core == lab.receiver_cpu) {
        (true, true) => format!("CPU {core} (sender and receiver)"),
        (true, false) => format!("CPU {core} (sender)"),
        (false, true) => format!("CPU {core} (receiver)"),
        (false, false) => format!("CPU {core}"),
    }
}

/// How CPU time was measured: in one way throughout a study. A study without good trials shows none.
pub fn source(groups: &[Group]) -> CpuSource {
    let mut results = groups.iter().flat_map(Group::results);
    results
        .find_map(|trial| trial.cpu.as_ref())
        .map_or(CpuSource::TickSampled, |cpu| cpu.source)
}

fn core_row(label: &str, groups: &[Group], cores: &[u32], states: States, read: Share) -> Row {
    let cells = groups
        .iter()
        .map(|group| core_shares(group, cores, states, read))
        .collect();
    Row::new(label, cells, Ink::Plain)
}

/// The share of one state on each of the cores: ` 52 |   3`.
fn core_shares(group: &Group, cores: &[u32], states: States, read: Share) -> String {
    let shares: Vec<String> = cores
        .iter()
        .map(|core| {
            let share = group.median(|trial| {
                let states = states(trial).iter().find(|states| states.core == *core)?;
                Some(read(states))
            });
            format!("{:>3}", share.map_or(String::from(MISSING), percent))
        })
        .collect();
    shares.join(" | ")
}

fn cost_rows(unit: WorkUnit, groups: &[Group]) -> Vec<Row> {
    let source = source(groups).name();
    let time = match unit {
        // The counter is a byte's; a byte's share is too small a figure to read.
        WorkUnit::Bytes => median_row(&format!("CPU ns/KiB, {source}"), groups, |trial| {
            Some(trial.cpu.as_ref()?.busy_ns_per_byte? * 1024.0)
        }),
        WorkUnit::Transactions => {
            median_row(&format!("CPU ns/transaction, {source}"), groups, |trial| {
                trial.cpu.as_ref()?.busy_ns_per_packet
            })
        }
        WorkUnit::Datagrams => median_row(&format!("CPU ns/packet, {source}"), groups, |trial| {
            trial.cpu.as_ref()?.busy_ns_per_packet
        }),
    };
    vec![
        time,
        median_row("context switches/s", groups, |trial| {
            Some(trial.context_switches_per_second)
        }),
        median_row("polls/s", groups, |trial| trial.polls_per_second),
        median_row("rounds/s", groups, |trial| trial.rounds_per_second),
        median_row("packets per poll", groups, |trial| trial.packets_per_poll),
        median_row("gro_flush_timeout, us", groups, |trial| {
            Some(trial.calibration.as_ref()?.gro_flush_timeout_ns as f64 / 1e3)
        }),
    ]
}

/// What the ledgers of a group's good trials add up to.
pub struct Sums {
    /// What was offered, in packets or bytes.
    pub offered: u64,
    /// What was delivered.
    pub delivered: u64,
    /// Packets by place and side, and whether every trial's counter could be read.
    pub lost: BTreeMap<(LossPlace, Side), (Option<u64>, bool)>,
    /// What no counter explains.
    pub residual: Option<i64>,
    /// Datagrams that arrived a second time.
    duplicates: u64,
}

impl Sums {
    /// Nothing when no trial is good.
    pub fn of(group: &Group) -> Option<Self> {
        let ledgers = || group.good.iter().filter_map(|trial| trial.ledger());
        ledgers().next()?;
        let mut lost = BTreeMap::new();
        for line in ledgers().flat_map(|ledger| &ledger.lines) {
            let (sum, complete) = lost.entry((line.place, line.side)).or_insert((None, true));
            match line.packets {
                Some(packets) => *sum = Some(sum.unwrap_or(0) + packets),
                None => *complete = false,
            }
        }
        Some(Sums {
            offered: ledgers().map(|ledger| ledger.offered()).sum(),
            delivered: ledgers().map(|ledger| ledger.delivered()).sum(),
            lost,
            residual: ledgers()
                .map(|ledger| ledger.residual_packets.or(ledger.residual_bytes))
                .sum(),
            duplicates: ledgers()
                .filter_map(|ledger| ledger.duplicate_packets)
                .sum(),
        })
    }

    /// What was lost at a place, as text.
    pub fn at(&self, place: LossPlace, side: Side) -> String {
        match self.lost.get(&(place, side)) {
            Some((Some(sum), true)) => count(sum),
            // A counter that could not be read in every trial has counted at least this much.
            Some((Some(sum), false)) => format!(">={}", count(sum)),
            Some((None, _)) | None => String::from(MISSING),
        }
    }
}

/// Where packets were lost: the places at which any were, or whose counter could not be read.
fn loss_rows(groups: &[Group]) -> Vec<Row> {
    let in_bytes = groups
        .iter()
        .flat_map(Group::results)
        .any(|trial| trial.ledger.is_in_bytes());
    let unit = if in_bytes { "bytes" } else { "packets" };
    let sums: Vec<Option<Sums>> = groups.iter().map(Sums::of).collect();
    let cells = |read: &dyn Fn(&Sums) -> String| -> Vec<String> {
        sums.iter()
            .map(|sums| sums.as_ref().map_or(String::from(MISSING), read))
            .collect()
    };
    let places: BTreeSet<(LossPlace, Side)> = sums
        .iter()
        .flatten()
        .flat_map(|sums| &sums.lost)
        .filter(|(_, (sum, complete))| *sum != Some(0) || !complete)
        .map(|(key, _)| *key)
        .collect();
    let mut rows = vec![
        Row::new("where packets went: all trials", vec![], Ink::Plain),
        Row::new(
            format!("  offered, {unit}"),
            cells(&|sums| count(sums.offered)),
            Ink::Plain,
        ),
        Row::new(
            format!("  delivered, {unit}"),
            cells(&|sums| count(sums.delivered)),
            Ink::Plain,
        ),
    ];
    for (place, side) in places {
        rows.push(Row::new(
            format!("  {} ({side})", place.name()),
            cells(&|sums| sums.at(place, side)),
            Ink::Plain,
        ));
    }
    rows.push(Row::new(
        format!("  residual, {unit}"),
        cells(&|sums| sums.residual.map_or(String::from(MISSING), count)),
        Ink::Plain,
    ));
    if sums.iter().flatten().any(|sums| sums.duplicates > 0) {
        rows.push(Row::new(
            "  and came twice, packets",
            cells(&|sums| count(sums.duplicates)),
            Ink::Plain,
        ));
    }
    rows
}
