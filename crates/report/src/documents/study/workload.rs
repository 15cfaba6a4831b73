//! One workload: the figures of each setting side by side, what happened in the trials, and where packets were lost.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use nicpoll_model::numbers::{MISSING, aligned, count, figure, figure_or_missing, percent};
use nicpoll_model::{
    CpuSource, CpuStates, LossPlace, Measure, Metric, MetricFacts, RateOverTime, SettingFindings,
    Shares, Side, Study, Trial, TrialFigures, Unevenness, WorkUnit, WorkloadFacts,
};
use nicpoll_stats::Summary;

use super::comparisons;
use super::trials::{FigureOf, TrialGroup};
use crate::lists::{distinct, joined};
use crate::page::{Align, Block, Figure, Ink, Part, Row, Table};

/// Width of the widest label.
const LABEL: usize = 27;
/// Cores shown in one group of rows: more do not fit into a column.
const CORES_A_GROUP: usize = 2;
/// A rate that changed by more than this factor is described as a factor.
const FACTOR_FROM: f64 = 2.0;

/// Writes the part of a workload, with its plots.
pub fn write(part: &mut Part, study: &Study, facts: &WorkloadFacts, figures: Vec<Figure>) {
    let workload = &facts.workload;
    let groups = TrialGroup::of_workload(study, workload);
    part.heading(format!("{workload}: {}", facts.description));
    comparisons::write_sentences(part, study, workload);
    let uneven = uneven_rates(study, workload).into_iter();
    for sentence in uneven.chain(open_accounts(study, workload)) {
        part.warn(sentence);
    }
    part.figures(figures);
    if groups.iter().all(|group| group.good.is_empty()) {
        return;
    }
    let names = study.settings.iter().map(|facts| facts.setting.clone());
    let rows = traffic_rows(facts.unit, &groups).into_iter();
    let rows = rows
        .chain(cpu_rows(study, &groups))
        .chain(cost_rows(facts, &groups))
        .chain(findings_rows(study, workload, facts.unit))
        .chain(loss_rows(&groups));
    let table = Table::new("median of trials", names, Align::Right).with(LABEL, rows);
    let compared = comparisons::table(study, facts).into_iter();
    let tables = [table].into_iter().chain(compared);
    let blocks = tables.flat_map(|table| [Block::Blank, Block::Table(table)]);
    let summary = format!("All figures of {workload} as tables");
    part.blocks.push(Block::Folded(summary, blocks.collect()));
}

/// Makes a row with the median of a figure for each setting.
fn median_row(
    label: &str,
    groups: &[TrialGroup],
    read: impl Fn(&TrialFigures) -> Option<f64>,
) -> Row {
    let medians = groups.iter().map(|group| group.median(&read));
    Row::plain(label, medians.map(figure_or_missing))
}

/// Makes rows of medians.
fn median_rows(figures: &[FigureRow], groups: &[TrialGroup]) -> impl Iterator<Item = Row> {
    let figures = figures.iter();
    figures.map(|(label, read)| median_row(label, groups, read))
}

/// Makes rows of medians, without rows that no setting has.
fn measured_rows(figures: &[FigureRow], groups: &[TrialGroup]) -> impl Iterator<Item = Row> {
    let is_measured = |(_, read): &&FigureRow| groups.iter().any(|it| it.range(read).is_some());
    let measured = figures.iter().filter(is_measured);
    measured.map(|(label, read)| median_row(label, groups, read))
}

/// Makes a row with the median of a figure for each setting, and one with the trials' range.
fn spread_rows(
    label: &str,
    groups: &[TrialGroup],
    read: impl Fn(&TrialFigures) -> Option<f64>,
) -> impl Iterator<Item = Row> {
    let ranges: Vec<_> = groups.iter().map(|group| group.range(&read)).collect();
    let measured = ranges.iter().any(Option::is_some);
    let cells = ranges.into_iter().map(|range| match range {
        Some((low, high)) => format!("{}..{}", figure(low), figure(high)),
        None => String::from(MISSING),
    });
    let spread = Row::new("  lowest..highest", cells, Ink::Faint);
    iter::once(median_row(label, groups, &read)).chain(measured.then_some(spread))
}

fn traffic_rows(unit: WorkUnit, groups: &[TrialGroup]) -> Vec<Row> {
    if unit == WorkUnit::Transactions {
        let rate = spread_rows("transactions/s", groups, |trial| {
            Some(trial.round_trip?.transactions_per_second)
        });
        return rate.chain(median_rows(&ROUND_TRIPS, groups)).collect();
    }
    let delivered = |trial: &TrialFigures| Some(trial.delivered_bits_per_second);
    let medians = groups.iter().filter_map(|group| group.median(delivered));
    let (unit, scale) = match medians.fold(0.0, f64::max) >= 1e9 {
        true => ("Gbit/s", 1e9),
        false => ("Mbit/s", 1e6),
    };
    let label = format!("delivered, {unit}");
    let bits = spread_rows(&label, groups, |it| {
        Some(it.delivered_bits_per_second / scale)
    });
    let packets = spread_rows("delivered, packets/s", groups, |it| {
        it.delivered_packets_per_second
    });
    bits.chain(packets)
        .chain(measured_rows(&LINE, groups))
        .chain(median_rows(&OFFERED, groups))
        .chain([loss_row(groups)])
        .chain(median_rows(&JITTER, groups))
        .chain(measured_rows(&RECEIVER, groups))
        .collect()
}

/// A label, and how its figure is read.
type FigureRow<'a> = (&'a str, FigureOf);

const ROUND_TRIPS: [FigureRow; 3] = [
    ("round trip p50, us", |it| {
        us(it.round_trip?.quantiles.p50_ns?)
    }),
    ("round trip p99, us", |it| {
        us(it.round_trip?.quantiles.p99_ns?)
    }),
    ("round trip p99.9, us", |it| {
        us(it.round_trip?.quantiles.p999_ns?)
    }),
];
const LINE: [FigureRow; 1] = [("delivered, % of the line", |it| {
    Some(it.delivered_line_ratio? * 100.0)
})];
const OFFERED: [FigureRow; 1] = [("offered, packets/s", |it| it.sender.packets_per_second)];
const JITTER: [FigureRow; 1] = [("jitter, us", |it| Some(it.jitter_seconds? * 1e6))];
/// Figures that only some workloads measure at their receiver.
const RECEIVER: [FigureRow; 4] = [
    ("one-way delay p50, us", |it| one_way_us(it, 0.5)),
    ("one-way delay p99, us", |it| one_way_us(it, 0.99)),
    ("one-way delay p99.9, us", |it| one_way_us(it, 0.999)),
    ("other program, % of CPU", |it| {
        Some(100.0 * it.spinner?.cpu_ratio)
    }),
];
const COSTS: [FigureRow; 5] = [
    ("context switches/s", |it| {
        Some(it.context_switches_per_second)
    }),
    ("polls/s", |it| it.polls_per_second),
    ("rounds/s", |it| it.rounds_per_second),
    ("packets per poll", |it| it.packets_per_poll),
    ("gro_flush_timeout, us", |it| {
        us(it.calibration.as_ref()?.gro_flush_timeout_ns)
    }),
];

fn us(ns: u64) -> Option<f64> {
    Some(ns as f64 / 1e3)
}

fn one_way_us(trial: &TrialFigures, share: f64) -> Option<f64> {
    us(trial.one_way_delays.as_ref()?.quantile_ns(share)?)
}

/// Makes a row with the median loss of each setting. No loss seen is not a loss of 0.
fn loss_row(groups: &[TrialGroup]) -> Row {
    let cell = |group: &TrialGroup| match &group.losses()[..] {
        [] => String::from(MISSING),
        [.., 0.0] => String::from("none seen"),
        losses => figure_or_missing(Summary::of(losses).map(|it| it.median * 100.0)),
    };
    Row::plain("loss, %", groups.iter().map(cell))
}

/// Reads one state's share.
type StateShare = fn(&CpuStates) -> f64;
/// Reads the states of a trial's cores.
type States = fn(&TrialFigures) -> &[CpuStates];

fn cpu_rows(study: &Study, groups: &[TrialGroup]) -> Vec<Row> {
    let source = source(groups);
    let sampled: States = |trial| &trial.cpu_tick_sampled;
    let mut states: Vec<(&str, States, StateShare)> = vec![
        ("  user + nice", cores_of, |cpu| {
            cpu.user_ratio + cpu.nice_ratio
        }),
        ("  system", cores_of, |cpu| cpu.system_ratio),
        ("  irq + softirq", cores_of, |cpu| {
            cpu.irq_ratio + cpu.softirq_ratio
        }),
        ("  idle", cores_of, |cpu| cpu.idle_ratio),
    ];
    if source == CpuSource::Exact {
        states.push(("  steal, sampled", sampled, |cpu| cpu.steal_ratio));
        states.push(("  busy, sampled", sampled, CpuStates::busy));
    } else {
        states.push(("  steal", cores_of, |cpu| cpu.steal_ratio));
    }
    let mut rows = Vec::new();
    for host in &study.lab.hosts {
        let title = format!("{}, all CPUs: % of time, sampled", host.host);
        rows.push(Row::group(title, Ink::Plain));
        for (label, _, read) in states.iter().take(HOST_STATES) {
            let cells = groups.iter().map(|group| {
                let share = group.median(|trial| mean_share(trial, &host.host, *read));
                share.map_or(String::from(MISSING), percent)
            });
            rows.push(Row::plain(*label, cells));
        }
    }
    for cores in cores(groups).chunks(CORES_A_GROUP) {
        let names = joined(cores.iter().map(|core| core_name(study, *core)), " | ");
        let title = format!("{names}: % of time, {}", source.name());
        rows.push(Row::group(title, Ink::Plain));
        for (label, states, read) in &states {
            let groups = groups.iter();
            let cells = groups.map(|group| core_shares(group, cores, *states, *read));
            rows.push(Row::plain(*label, cells));
        }
    }
    rows
}

/// The states of a whole machine that are shown: those that top(1) shows.
const HOST_STATES: usize = 4;

/// Returns a machine's mean share of time in a state, over its CPUs.
fn mean_share(trial: &TrialFigures, host: &str, read: StateShare) -> Option<f64> {
    let host = trial.hosts.iter().find(|one| one.host == host)?;
    let sum: f64 = host.cores.iter().map(read).sum();
    (!host.cores.is_empty()).then(|| sum / host.cores.len() as f64)
}

/// Of more cores than this, those that were never busy are left out.
const IDLE_CORES_MAX: usize = 4;

/// A core that is busy for less than this share of its time is idle.
const IDLE_SHARE: f64 = 0.01;

/// Returns the cores whose time was measured, in their order.
pub fn cores(groups: &[TrialGroup]) -> Vec<u32> {
    let trials = groups.iter().flat_map(TrialGroup::results);
    let states: Vec<&CpuStates> = trials.flat_map(cores_of).collect();
    let of = |states: &mut dyn Iterator<Item = &&CpuStates>| -> BTreeSet<u32> {
        states.map(|cpu| cpu.core).collect()
    };
    let all = of(&mut states.iter());
    let shown = match all.len() > IDLE_CORES_MAX {
        true => of(&mut states.iter().filter(|cpu| cpu.busy() >= IDLE_SHARE)),
        false => all,
    };
    shown.into_iter().collect()
}

/// Returns the CPU states of a trial by core; empty if not measured.
pub fn cores_of(trial: &TrialFigures) -> &[CpuStates] {
    trial.cpu.as_ref().map_or(&[], |cpu| &cpu.cores)
}

/// Returns a core's name, with what ran there.
pub fn core_name(study: &Study, core: u32) -> String {
    let lab = &study.lab;
    let what = match (core == lab.sender_cpu, core == lab.receiver_cpu) {
        // Of the studied machine alone.
        _ if lab.hosts.len() > 2 => " (router)",
        (_, true) if !lab.hosts.is_empty() => " (receiver)",
        (_, false) if !lab.hosts.is_empty() => "",
        (true, true) => " (sender and receiver)",
        (true, false) => " (sender)",
        (false, true) => " (receiver)",
        (false, false) => "",
    };
    format!("CPU {core}{what}")
}

/// Returns how CPU time was measured, which is the same throughout a study. A study without good trials shows none.
pub fn source(groups: &[TrialGroup]) -> CpuSource {
    let mut results = groups.iter().flat_map(TrialGroup::results);
    results
        .find_map(|trial| trial.cpu.as_ref())
        .map_or(CpuSource::TickSampled, |cpu| cpu.source)
}

/// Formats the share of one state on each of the cores: ` 52 |   3`.
fn core_shares(group: &TrialGroup, cores: &[u32], states: States, read: StateShare) -> String {
    let shares = cores.iter().map(|core| {
        let share = group.median(|trial| {
            let states = states(trial).iter().find(|states| states.core == *core)?;
            Some(read(states))
        });
        format!("{:>3}", share.map_or(String::from(MISSING), percent))
    });
    joined(shares, " | ")
}

fn cost_rows(facts: &WorkloadFacts, groups: &[TrialGroup]) -> impl Iterator<Item = Row> {
    let (what, read): FigureRow = match facts.unit {
        // A nanosecond a byte is a second a GB.
        WorkUnit::Bytes => ("s/GB", |it| it.cpu.as_ref()?.busy_ns_per_byte),
        WorkUnit::Transactions => ("ns/transaction", |it| it.cpu.as_ref()?.busy_ns_per_packet),
        WorkUnit::Datagrams => ("ns/packet", |it| it.cpu.as_ref()?.busy_ns_per_packet),
    };
    let time = format!("CPU {what}, {}", source(groups).name());
    let time = median_row(&time, groups, read);
    // CPU time includes that of background traffic, so a figure per packet would be wrong.
    let of_one = [Metric::CpuNsPerByte, Metric::CpuNsPerPacket];
    let is_alone = facts.metrics.is_empty() || facts.metrics.iter().any(|it| of_one.contains(it));
    let time = is_alone.then_some(time).into_iter();
    time.chain(median_rows(&COSTS, groups))
}

/// Returns the findings on a workload's trials, by setting, without empty rows.
fn findings_rows(study: &Study, workload: &str, unit: WorkUnit) -> Vec<Row> {
    let of = |setting: &str| {
        let mut findings = study.findings.iter();
        findings.find(|it| it.workload == workload && it.setting == setting)
    };
    let settings = study.settings.iter();
    let found: Vec<_> = settings.map(|facts| of(&facts.setting)).collect();
    let row = |label: &str, read: &dyn Fn(&SettingFindings) -> Option<String>| {
        let cells = found.iter().map(|it| it.and_then(read));
        Row::plain(label, cells.map(|it| it.unwrap_or(String::from(MISSING))))
    };
    let has =
        |is_told: &dyn Fn(&SettingFindings) -> bool| found.iter().flatten().any(|it| is_told(it));
    let mut rows = vec![
        Row::group("what happened in the trials", Ink::Plain),
        row("  trials", &|it| Some(count(it.trials))),
    ];
    for (label, read) in TROUBLES {
        if has(&|it| read(study, it) > 0) {
            rows.push(row(label, &|it| Some(count(read(study, it)))));
        }
    }
    rows.push(row("  below half the median", &|it| {
        Some(format!("{} %", percent(it.below_half_median_ratio?)))
    }));
    let worst = match unit {
        WorkUnit::Transactions => "  worst tenth, trans./s",
        WorkUnit::Bytes | WorkUnit::Datagrams => "  worst tenth, Mbit/s",
    };
    rows.push(row(worst, &|it| Some(figure(worst_decile(it)?))));
    let judged = found.iter().flatten().flat_map(|it| &it.judged);
    for metric in distinct(judged.map(|it| it.metric)) {
        let MetricFacts { measure, unit, .. } = metric.facts();
        if measure == Measure::Rate {
            continue;
        }
        let label = format!("  worst 1/10, {measure} {}", unit.0);
        rows.push(row(&label, &|it| {
            let own = it.judged.iter().find(|it| it.metric == metric)?;
            Some(figure(own.worst_decile / unit.1))
        }));
    }
    for (label, read) in OVER_TIME {
        if has(&|it| read(it).is_some()) {
            rows.push(row(label, &|it| Some(evenness(read(it)?))));
        }
    }
    for (label, read) in SHARES {
        if has(&|it| read(it).is_some()) {
            rows.push(row(label, &|it| {
                let shares = read(it)?;
                let [median, most] = [shares.median_ratio, shares.max_ratio].map(percent);
                Some(format!("{median} (most {most})"))
            }));
        }
    }
    if has(&|it| it.load_average_1min.is_some()) {
        rows.push(row("  load, 1 min", &|it| it.load_average_1min.map(figure)));
    }
    rows
}

/// A label, and how the number of such trials is read.
type Trouble = (&'static str, fn(&Study, &SettingFindings) -> u32);

const TROUBLES: [Trouble; 8] = [
    ("  of them disturbed", |_, it| it.external_trials),
    ("  of them failed", |_, it| it.failed_trials),
    ("  of them not in force", not_in_force),
    ("  of them read back only", read_back_only),
    ("  of them out of rhythm", |study, it| {
        let known = not_in_force(study, it) + read_back_only(study, it);
        it.unproven_trials.saturating_sub(known)
    }),
    ("  losses do not add up", |_, it| it.ledger_void_trials),
    ("  with losses", |_, it| it.loss_trials),
    ("  further proofs needed", |_, it| it.proof_retries),
];

/// Counts the trials without their setting in force, which have no figure. One that is merely out of rhythm has.
fn not_in_force(study: &Study, found: &SettingFindings) -> u32 {
    kept(study, found).filter(|it| !it.is_in_force()).count() as u32
}

/// Counts the trials whose setting polls could not prove.
fn read_back_only(study: &Study, found: &SettingFindings) -> u32 {
    let unproven = kept(study, found).filter(|it| it.validity.unproven.is_some());
    unproven.filter(|it| it.is_unwatched()).count() as u32
}

fn kept<'a>(study: &'a Study, found: &'a SettingFindings) -> impl Iterator<Item = &'a Trial> {
    study.trials.iter().filter(|it| {
        (&it.workload, &it.setting) == (&found.workload, &found.setting) && it.validity.is_kept()
    })
}

/// A label, and how its figure is read.
type FindingRow<T> = (&'static str, fn(&SettingFindings) -> T);

/// Evenness of the rate over time; no row for tests that were not made.
const OVER_TIME: [FindingRow<Option<RateOverTime>>; 2] = [
    ("  rate within a trial", |it| it.rate_within_trials),
    ("  rate over the trials", |it| it.rate_over_trials),
];

/// Shares of a core, or of a period.
const SHARES: [FindingRow<Option<Shares>>; 3] = [
    ("  steal, % of a core", |it| it.steal),
    ("  other programs, %", |it| it.foreign_cpu),
    ("  off the period, %", |it| it.rhythm_deviation),
];

fn worst_decile(found: &SettingFindings) -> Option<f64> {
    let scale = match found.metric {
        Metric::DeliveredBitsPerSecond => 1e6,
        _ => 1.0,
    };
    Some(found.worst_decile_per_second? / scale)
}

/// Returns a sentence for each uneven rate of a workload's settings, which their means hide.
fn uneven_rates(study: &Study, workload: &str) -> Vec<String> {
    let findings = study.findings.iter().filter(|it| it.workload == workload);
    findings
        .flat_map(|it| [within_trials(it), over_trials(it)])
        .flatten()
        .collect()
}

/// Returns the finding within the trials, and what their mean hides.
fn within_trials(findings: &SettingFindings) -> Option<String> {
    let rate = findings.rate_within_trials?;
    let after = rate.step_at_seconds.map_or(MISSING.into(), millis);
    let what = unevenness(
        rate,
        |change| format!("changes once, after {after} s: it is {change} from there on"),
        "",
        "slowly as in a sawtooth",
    )?;
    let (workload, setting, trials) = (&findings.workload, &findings.setting, rate.trials);
    Some(format!(
        "Within the trials of {workload} under {setting} the rate {what} ({trials} trials tested together). A trial's \
         figure is the mean of all of it."
    ))
}

/// Returns the finding from trial to trial.
fn over_trials(findings: &SettingFindings) -> Option<String> {
    let rate = findings.rate_over_trials?;
    let block = rate.step_at_block;
    let block = block.map_or(MISSING.into(), |it| it.to_string());
    let what = unevenness(
        rate,
        |change| format!("changes once: it is {change} from block {block} on"),
        " of the blocks",
        "and trials next to each other are alike",
    )?;
    let (workload, setting) = (&findings.workload, &findings.setting);
    Some(format!(
        "From trial to trial the rate of {workload} under {setting} {what}. Comparisons are made within blocks, which \
         leaves out what befalls all settings alike; the median of the trials has it in it."
    ))
}

/// Words for an uneven rate: of a step, of thirds, and of ups and downs.
fn unevenness(
    rate: RateOverTime,
    step: impl Fn(String) -> String,
    of: &str,
    swings: &str,
) -> Option<String> {
    Some(match rate.found? {
        Unevenness::Step => step(changed(rate)?),
        Unevenness::Drift => {
            let change = changed(rate)?;
            format!("drifts: it is {change} in the last third{of} than in the first")
        }
        Unevenness::Swings => {
            let size = percent(rate.size_ratio?);
            format!("goes up and down by {size} % either way, {swings}")
        }
    })
}

/// Formats seconds to the millisecond.
fn millis(seconds: f64) -> String {
    ((seconds * 1e3).round() / 1e3).to_string()
}

/// Formats a rate's change: `12 % lower`, `3.1 times as high`.
fn changed(rate: RateOverTime) -> Option<String> {
    let size = rate.size_ratio?;
    Some(match size {
        FACTOR_FROM.. => format!("{} times as high", aligned([size], &[])[0]),
        1.0.. => format!("{} % higher", percent(size - 1.0)),
        _ => format!("{} % lower", percent(1.0 - size)),
    })
}

/// Describes a rate's course in a few words for a table.
fn evenness(rate: RateOverTime) -> String {
    let size = rate.size_ratio.unwrap_or(1.0);
    let sign = if size < 1.0 { "-" } else { "+" };
    let change = percent((size - 1.0).abs());
    match rate.found {
        None => String::from("even"),
        Some(Unevenness::Step) => format!("step {sign}{change} %"),
        Some(Unevenness::Drift) => format!("drift {sign}{change} %"),
        Some(Unevenness::Swings) => format!("swings {} %", percent(size)),
    }
}

/// A line of an account, in the order in which it is printed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccountLine {
    /// Sends that the kernel refused, which are in no other line.
    Refused,
    /// What was offered.
    Offered,
    /// Control packets, which the sum has on both sides.
    ControlSent,
    /// What was delivered.
    Delivered,
    /// Control packets that arrived.
    ControlReceived,
    /// Losses at a place.
    Lost(LossPlace, Side),
    /// Packets that no counter explains.
    Residual,
    /// Datagrams that arrived a second time, which are in no other line.
    Duplicates,
}

impl AccountLine {
    /// Returns the line's name.
    pub fn name(self) -> String {
        let name = match self {
            AccountLine::Refused => "refused, not offered",
            AccountLine::Offered => "offered",
            AccountLine::ControlSent => "control packets sent",
            AccountLine::Delivered => "delivered",
            AccountLine::ControlReceived => "control packets received",
            AccountLine::Lost(place, side) => return format!("{} ({side})", place.name()),
            AccountLine::Residual => "residual",
            AccountLine::Duplicates => "and came twice",
        };
        String::from(name)
    }

    /// Returns whether it is printed even if it is 0.
    fn is_always(self) -> bool {
        matches!(
            self,
            AccountLine::Offered | AccountLine::Delivered | AccountLine::Residual
        )
    }
}

/// Sums of the ledgers of a group's good trials, of those that close.
pub struct Sums {
    /// What was offered, in packets or bytes.
    pub offered: u64,
    /// By line: the sum, and whether every trial's counter could be read.
    lines: BTreeMap<AccountLine, (Option<i64>, bool)>,
}

impl Sums {
    /// Returns the sums; `None` without a good trial.
    pub fn of(group: &TrialGroup) -> Option<Self> {
        let ledgers = || group.good.iter().filter_map(|trial| trial.ledger());
        ledgers().next()?;
        let mut lines = BTreeMap::new();
        let mut add = |line, count: Option<i64>| {
            let (sum, is_whole) = lines.entry(line).or_insert((None, true));
            match count {
                Some(count) => *sum = Some(sum.unwrap_or(0) + count),
                None => *is_whole = false,
            }
        };
        for ledger in ledgers() {
            let [sent, received] = ledger.control_packets();
            for (line, count) in [
                (AccountLine::Refused, ledger.refused_sends()),
                (AccountLine::Offered, ledger.offered()),
                (AccountLine::ControlSent, sent),
                (AccountLine::Delivered, ledger.delivered()),
                (AccountLine::ControlReceived, received),
                (
                    AccountLine::Duplicates,
                    ledger.duplicate_packets.unwrap_or(0),
                ),
            ] {
                add(line, Some(count as i64));
            }
            for line in &ledger.lines {
                let lost = AccountLine::Lost(line.place, line.side);
                add(lost, line.packets.map(|packets| packets as i64));
            }
            let residual = ledger.residual_packets.or(ledger.residual_bytes);
            add(AccountLine::Residual, residual);
        }
        Some(Sums {
            offered: ledgers().map(|ledger| ledger.offered()).sum(),
            lines,
        })
    }

    /// Returns the printed lines, in their order.
    pub fn printed(&self) -> impl Iterator<Item = AccountLine> {
        let lines = self.lines.iter();
        let printed = lines
            .filter(|(line, (sum, is_whole))| line.is_always() || *sum != Some(0) || !is_whole);
        printed.map(|(line, _)| *line)
    }

    /// Returns the sum of a line; `None` if no trial's counter could be read.
    pub fn sum(&self, line: AccountLine) -> Option<i64> {
        self.lines.get(&line)?.0
    }

    /// Returns the sum of a line as text.
    pub fn at(&self, line: AccountLine) -> String {
        match self.lines.get(&line) {
            Some((Some(sum), true)) => count(sum),
            // If some trial's counter could not be read, the sum is a lower bound.
            Some((Some(sum), false)) => format!(">={}", count(sum)),
            // No trial has a count of this place.
            Some((None, _)) | None => String::from(MISSING),
        }
    }
}

/// Returns the unit of accounts: packets, or bytes of TCP.
pub fn account_unit<'a>(groups: impl Iterator<Item = &'a TrialGroup<'a>>) -> &'static str {
    let mut results = groups.flat_map(TrialGroup::results);
    match results.any(|trial| trial.ledger.is_in_bytes()) {
        true => "bytes",
        false => "packets",
    }
}

/// Makes the rows of each setting's account. The printed lines add up.
fn loss_rows(groups: &[TrialGroup]) -> Vec<Row> {
    let unit = account_unit(groups.iter());
    let sums: Vec<Option<Sums>> = groups.iter().map(Sums::of).collect();
    let row = |label: String, read: &dyn Fn(&Sums) -> String| {
        let sums = sums.iter().map(Option::as_ref);
        let cells = sums.map(|sums| sums.map_or(String::from(MISSING), read));
        Row::plain(format!("  {label}"), cells)
    };
    let told = sums.iter().flatten().flat_map(Sums::printed);
    let lines: BTreeSet<AccountLine> = told.collect();
    let closed = groups
        .iter()
        .map(|group| (group.closed().count(), group.good.len()));
    let is_whole = closed.clone().all(|(closed, all)| closed == all);
    let title = match is_whole {
        true => format!("where {unit} went: all trials"),
        false => format!("where {unit} went"),
    };
    let mut rows = vec![Row::group(title, Ink::Plain)];
    if !is_whole {
        let cells = closed.map(|(closed, all)| format!("{closed} of {all}"));
        rows.push(Row::plain("  trials that add up", cells));
    }
    rows.extend(
        lines
            .into_iter()
            .map(|line| row(line.name(), &|sums| sums.at(line))),
    );
    rows
}

/// Returns which settings' accounts leave trials out, and why.
fn open_accounts(study: &Study, workload: &str) -> Vec<String> {
    let settings = study.settings.iter().filter_map(|facts| {
        let group = TrialGroup::of(study, workload, &facts.setting);
        let mut reasons = group.good.iter();
        let why = reasons.find_map(|trial| trial.validity.ledger_void.as_deref())?;
        let (setting, closed, all) = (&facts.setting, group.closed().count(), group.good.len());
        let for_one = if closed + 1 < all { ", for one" } else { "" };
        Some(format!(
            "{workload} under {setting}: losses are those of {closed} of {all} trials. The rest does not add up{for_one}: \
             {why}."
        ))
    });
    settings.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(found: Unevenness, size: f64) -> RateOverTime {
        RateOverTime {
            trials: 16,
            tests: Default::default(),
            found: Some(found),
            size_ratio: Some(size),
            step_at_seconds: Some(0.06),
            step_at_block: Some(7),
        }
    }

    #[test]
    fn each_kind_has_its_words() {
        let text = include_str!("../../../tests/golden/demo.json");
        let mut study: Study = serde_json::from_str(text).unwrap();
        let workload = study.findings[0].workload.clone();
        study.findings.truncate(1);
        let mut told = |within: Option<RateOverTime>, over: Option<RateOverTime>| {
            study.findings[0].rate_within_trials = within;
            study.findings[0].rate_over_trials = over;
            uneven_rates(&study, &workload).join("\n")
        };
        let warm_up = told(Some(found(Unevenness::Step, 1.25)), None);
        assert!(
            warm_up
                .contains("changes once, after 0.06 s: it is 25 % higher from there on (16 trials"),
            "{warm_up}"
        );
        let drift = told(Some(found(Unevenness::Drift, 0.9)), None);
        assert!(drift.contains("10 % lower in the last third"), "{drift}");
        let swings = told(Some(found(Unevenness::Swings, 0.08)), None);
        assert!(swings.contains("by 8 % either way"), "{swings}");
        let slower = told(None, Some(found(Unevenness::Step, 0.7)));
        assert!(
            slower.contains("it is 30 % lower from block 7 on"),
            "{slower}"
        );
        let even = RateOverTime {
            found: None,
            ..found(Unevenness::Step, 1.0)
        };
        assert_eq!(told(Some(even), None), "");
        assert_eq!(evenness(even), "even");
        assert_eq!(evenness(found(Unevenness::Drift, 0.9)), "drift -10 %");
        assert_eq!(
            changed(found(Unevenness::Step, 2.5)).unwrap(),
            "2.50 times as high"
        );
    }
}
