//! What the trials of a workload met under each setting, as rows of its table.
//!
//! What must hold: what differs between settings can be seen side by side. Nothing here decides anything.

use nicpoll_model::{Metric, RateOverTime, SettingFindings, Shares, Study, WorkUnit};

use super::evenness;
use super::page::{Ink, Row};
use crate::numbers::{MISSING, count, figure, figure_or_missing, percent};

type Read = fn(&SettingFindings) -> String;
/// A label with a number of trials.
type Amiss<'a> = (&'a str, fn(&SettingFindings) -> u32);
/// A label with what a rate does over time.
type OverTime<'a> = (&'a str, fn(&SettingFindings) -> Option<RateOverTime>);
/// A label with a share of a core, or of a period.
type Share<'a> = (&'a str, fn(&SettingFindings) -> Option<Shares>);

/// The rows; a row in which no setting has anything is left out.
pub fn rows(study: &Study, workload: &str, unit: WorkUnit) -> Vec<Row> {
    let of = |setting: &str| {
        let mut findings = study.findings.iter();
        findings.find(|it| it.workload == workload && it.setting == setting)
    };
    let settings = study.settings.iter();
    let found: Vec<_> = settings.map(|facts| of(&facts.setting)).collect();
    let row = |label: &str, read: Read| {
        let cells = found.iter();
        let cells = cells.map(|it| it.map_or(String::from(MISSING), read));
        Row::new(label, cells.collect(), Ink::Plain)
    };
    let mut rows = vec![
        Row::new("what the trials met", vec![], Ink::Plain),
        row("  trials", |it| count(it.trials)),
    ];
    let amiss: [Amiss<'_>; 6] = [
        ("  of them disturbed", |it| it.external_trials),
        ("  of them failed", |it| it.failed_trials),
        ("  of them not proven", |it| it.unproven_trials),
        ("  losses do not add up", |it| it.ledger_void_trials),
        ("  with losses", |it| it.loss_trials),
        ("  further proofs needed", |it| it.proof_retries),
    ];
    for (label, read) in amiss {
        if found.iter().flatten().any(|it| read(it) > 0) {
            let cells = found.iter();
            let cells = cells.map(|it| it.map_or(String::from(MISSING), |it| count(read(it))));
            rows.push(Row::new(label, cells.collect(), Ink::Plain));
        }
    }
    rows.push(row("  below half the median", |it| {
        it.below_half_median_ratio
            .map_or(String::from(MISSING), |share| {
                format!("{} %", percent(share))
            })
    }));
    rows.push(Row::new(
        format!("  worst tenth, {}", worst_unit(unit)),
        found
            .iter()
            .map(|it| figure_or_missing(it.and_then(worst_decile)))
            .collect(),
        Ink::Plain,
    ));
    rows.extend(over_time_rows(&found));
    let shares: [Share<'_>; 3] = [
        ("  steal, % of a core", |it| it.steal),
        ("  other programs, %", |it| it.foreign_cpu),
        ("  off the period, %", |it| it.rhythm_deviation),
    ];
    for (label, read) in shares {
        if found.iter().flatten().any(|it| read(it).is_some()) {
            let cells = found.iter();
            let cells = cells.map(|it| middle_and_most(it.and_then(read)));
            rows.push(Row::new(label, cells.collect(), Ink::Plain));
        }
    }
    if found
        .iter()
        .flatten()
        .any(|it| it.load_average_1min.is_some())
    {
        rows.push(row("  load, 1 min", |it| {
            it.load_average_1min.map_or(String::from(MISSING), figure)
        }));
    }
    rows
}

/// Whether the rate is even over time; no row for what was not tested.
fn over_time_rows(found: &[Option<&SettingFindings>]) -> Vec<Row> {
    let over_time: [OverTime<'_>; 2] = [
        ("  rate within a trial", |it| it.rate_within_trials),
        ("  rate over the trials", |it| it.rate_over_trials),
    ];
    let is_tested = |(_, read): &OverTime<'_>| found.iter().flatten().any(|it| read(it).is_some());
    let tested = over_time.into_iter().filter(is_tested);
    tested
        .map(|(label, read)| {
            let cells = found.iter().map(|it| evenness::cell(it.and_then(read)));
            Row::new(label, cells.collect(), Ink::Plain)
        })
        .collect()
}

fn middle_and_most(shares: Option<Shares>) -> String {
    shares.map_or(String::from(MISSING), |it| {
        format!(
            "{} (most {})",
            percent(it.median_ratio),
            percent(it.max_ratio)
        )
    })
}

fn worst_unit(unit: WorkUnit) -> &'static str {
    match unit {
        WorkUnit::Transactions => "trans./s",
        WorkUnit::Bytes | WorkUnit::Datagrams => "Mbit/s",
    }
}

fn worst_decile(found: &SettingFindings) -> Option<f64> {
    let scale = match found.metric {
        Metric::DeliveredBitsPerSecond => 1e6,
        _ => 1.0,
    };
    Some(found.worst_decile_per_second? / scale)
}
