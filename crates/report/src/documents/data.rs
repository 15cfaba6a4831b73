//! Documents as data: the CSV columns of each, for spreadsheets and R, and the files that a page holds.
//!
//! A line for each trial, step, block or run, a column for each figure. Most columns are fields of the document's JSON
//! (docs/schema.md); the others are computed here.

use std::rc::Rc;

use nicpoll_model::ab::LiveAb;
use nicpoll_model::sim::{SIM_PLACES, SimSweep};
use nicpoll_model::{CoreSeries, Imported, ImportedTrial, LossPlace, Side, Study, Trial};
use serde::Serialize;
use serde_json::{Value, json as object};

use crate::csv::{table, with};
use crate::fields::section;
use crate::json::write_compact;
use crate::lists::joined;
use crate::page::{Block, Medium, Page, Part, Saved};

/// Adds the part of a page with files to save: the whole document.
pub(super) fn add_saved<'a>(page: &mut Page<'a>, write: impl FnOnce(&mut Part<'a>)) {
    page.linked(Medium::Html, ("data", "Data"), |part| {
        part.heading("The data");
        part.say(
            "This page holds what it is made of. A link saves it as a file; nothing is loaded.",
        );
        write(part);
    });
}

/// A document as a file of JSON.
pub(super) fn json<'a>(
    name: &'static str,
    document: &'a impl Serialize,
    holds: &'static str,
) -> Block<'a> {
    Block::Saved(Saved {
        name,
        kind: "application/json",
        write: Rc::new(|to| write_compact(document, to)),
        holds,
    })
}

/// A table as a file of CSV.
pub(super) fn csv<'a, L: Iterator<Item = String>>(
    name: &'static str,
    lines: impl Fn() -> L + 'a,
    holds: &'static str,
) -> Block<'a> {
    Block::Saved(Saved {
        name,
        kind: "text/csv",
        write: Rc::new(move |to| lines().try_for_each(|line| to.write_all(line.as_bytes()))),
        holds,
    })
}

/// Returns the columns of a kind of row, separated by bars.
fn columns(of: &str) -> String {
    section(include_str!("columns.txt"), of).replace('\n', "|")
}

/// The trials of a study, a line each.
pub fn trials_as_csv(study: &Study) -> impl Iterator<Item = String> {
    let rows = study.trials.iter();
    table(
        columns("trial"),
        rows.map(|trial| with(trial, computed_of(trial))),
    )
}

/// Returns the computed columns of a trial.
fn computed_of(trial: &Trial) -> Value {
    let delays = trial.figures.as_ref();
    let delays = delays.and_then(|it| it.one_way_delays.as_ref());
    let one_way = |share: f64| delays.and_then(|it| it.quantile_ns(share));
    let ledger = trial.figures.as_ref().map(|it| &it.ledger);
    let ledger = ledger.filter(|ledger| !ledger.is_in_bytes());
    let control = ledger.map(|ledger| ledger.control_packets());
    object!({
        "loss_ratio": trial.loss_ratio(),
        "one_way_p50_ns": one_way(0.5),
        "one_way_p99_ns": one_way(0.99),
        "refused_sends": ledger.map(|ledger| ledger.refused_sends()),
        "control_sent_packets": control.map(|[sent, _]| sent),
        "control_received_packets": control.map(|[_, received]| received),
        "lost_packets": ledger.map(|ledger| ledger.lost_packets()),
    })
}

/// Returns the steps within a study's trials, a line each.
pub fn series_as_csv(study: &Study) -> impl Iterator<Item = String> {
    table(columns("step"), study.trials.iter().flat_map(steps))
}

/// The steps of a trial.
fn steps(trial: &Trial) -> Vec<Value> {
    let figures = trial.figures.as_ref();
    let Some(series) = figures.and_then(|figures| figures.series.as_ref()) else {
        return Vec::new();
    };
    let ends = series.end_seconds.iter().enumerate();
    let step = |(index, end_seconds): (usize, &f64)| {
        let of = |counts: Option<&Vec<u64>>| counts?.get(index).copied();
        let of_cores = |read: fn(&CoreSeries) -> &Vec<f64>| {
            let cores = series.cores.iter();
            let seconds = cores.map(|core| read(core).get(index).copied());
            let sum = seconds.sum::<Option<f64>>();
            sum.filter(|_| !series.cores.is_empty())
        };
        object!({
            "sequence": trial.sequence,
            "block": trial.block,
            "workload": trial.workload,
            "setting": trial.setting,
            "end_seconds": end_seconds,
            "sent_frames": of(Some(&series.sent_frames)),
            "received_bytes": of(Some(&series.received_bytes)),
            "read_datagrams": of(series.read_datagrams.as_ref()),
            "dropped_frames": of(Some(&series.dropped_frames)),
            "dropped_datagrams": of(series.dropped_datagrams.as_ref()),
            "polls": of(series.polls.as_ref()),
            "busy_core_seconds": of_cores(|core| &core.busy_seconds),
            "interrupt_core_seconds": of_cores(|core| &core.interrupt_seconds),
            "cut_short_softirqs": of(series.cut_short_softirqs.as_ref()),
        })
    };
    ends.map(step).collect()
}

/// The blocks of a live comparison, a line each, in the order in which they ran.
pub fn blocks_as_csv(compared: &LiveAb) -> impl Iterator<Item = String> {
    let blocks = compared.pairs.iter().enumerate().flat_map(|(index, pair)| {
        let is_judged_first = pair.is_judged_first;
        let mut both = [
            (&compared.reference, &pair.reference, !is_judged_first),
            (&compared.judged, &pair.judged, is_judged_first),
        ];
        if is_judged_first {
            both.reverse();
        }
        both.map(|(setting, block, is_first)| {
            let places = LossPlace::ALL.iter();
            let known = places.filter_map(|place| block.dropped_packets.at(*place));
            let computed = object!({
                "pair": index + 1,
                "setting": setting.name,
                "is_first_of_pair": is_first,
                "set_aside_because": pair.set_aside_because,
                "cpu_busy_seconds": block.window.cpu.and_then(|cpu| cpu.busy_seconds()),
                "lost_packets": known.reduce(|sum, packets| sum + packets),
            });
            with(block, computed)
        })
    });
    table(columns("block"), blocks)
}

/// Imported trials, a line each, in the order of the text.
pub fn imported_as_csv(imported: &Imported) -> impl Iterator<Item = String> {
    let rows = imported.trials.iter().map(|trial| {
        let of = |side, name: &str| imported_figure(trial, side, name);
        let computed = object!({
            "loss_ratio": imported_loss(trial),
            "jitter_seconds": of(Side::Receiver, "jitter_seconds"),
            "sender_cpu_interrupt_ratio": of(Side::Sender, "cpu_interrupt_ratio"),
            "sender_cpu_idle_ratio": of(Side::Sender, "cpu_idle_ratio"),
            "receiver_cpu_interrupt_ratio": of(Side::Receiver, "cpu_interrupt_ratio"),
            "receiver_cpu_idle_ratio": of(Side::Receiver, "cpu_idle_ratio"),
        });
        with(trial, computed)
    });
    table(columns("imported trial"), rows)
}

/// A figure of an end of an imported trial.
pub(super) fn imported_figure(trial: &ImportedTrial, side: Side, name: &str) -> Option<f64> {
    let mut figures = trial.figures.iter();
    let found = figures.find(|it| it.side == Some(side) && it.name == name);
    found.map(|it| it.value)
}

/// Returns the share of the sent datagrams that an imported trial lost.
pub(super) fn imported_loss(trial: &ImportedTrial) -> Option<f64> {
    let lost = imported_figure(trial, Side::Receiver, "lost_datagrams")?;
    let all = imported_figure(trial, Side::Receiver, "datagrams")?;
    (all > 0.0).then(|| lost / all)
}

/// A sweep of the simulator, a line for each run.
pub fn sweep_as_csv(sweep: &SimSweep) -> String {
    let lost = joined(SIM_PLACES.map(|place| format!("lost_{}", place.key())), "|");
    let [run, figures] = ["run", "figures of a run"].map(columns);
    let columns = format!("{run}|{} value|{figures}|{lost}", sweep.parameter);
    let points = sweep.points.iter();
    let rows = points.filter(|point| !point.figures.hosts.is_empty());
    let rows = rows.map(|point| {
        let lost = SIM_PLACES.iter().map(|place| {
            let packets = point.figures.ledger.lost_in(*place);
            (format!("lost_{}", place.key()), Value::from(packets))
        });
        with(point, Value::Object(lost.collect()))
    });
    table(columns, rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_has_a_field_for_each_column_and_none_where_nothing_was_measured() {
        let text = include_str!("../../tests/golden/demo.json");
        let mut study: Study = serde_json::from_str(text).unwrap();
        study.trials.truncate(1);
        let trial = &mut study.trials[0];
        trial.figures = None;
        trial.validity.failure = Some(String::from("it said \"no\", and ended"));
        let csv: String = trials_as_csv(&study).collect();
        let [head, line] = csv.lines().collect::<Vec<_>>()[..] else {
            panic!("two lines: {csv}");
        };
        assert!(head.starts_with("sequence,block,workload,setting,"));
        let quoted = "\"it said \"\"no\"\", and ended\"";
        assert!(line.contains(quoted), "{line}");
        let commas = |text: &str| text.matches(',').count();
        assert_eq!(commas(head), commas(&line.replace(quoted, "")));
        assert!(line.ends_with(",,,,"), "{line}");
    }

    #[test]
    fn a_step_of_a_trial_is_a_line() {
        let text = include_str!("../../tests/golden/demo.json");
        let mut study: Study = serde_json::from_str(text).unwrap();
        study.trials.retain(|trial| trial.figures.is_some());
        study.trials.truncate(2);
        study.trials[1].figures.as_mut().unwrap().series = None;
        let figures = study.trials[0].figures.as_mut().unwrap();
        let series = figures.series.as_mut().unwrap();
        series.read_datagrams = None;
        let series = series.clone();
        let csv: String = series_as_csv(&study).collect();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 1 + series.end_seconds.len());
        let fields: Vec<&str> = lines[1].split(',').collect();
        assert_eq!(fields.len(), lines[0].split(',').count());
        assert_eq!(fields[5], series.sent_frames[0].to_string());
        assert_eq!(fields[7], "", "a stream has no datagrams: {}", lines[1]);
        // Both cores together.
        let busy: f64 = fields[11].parse().unwrap();
        assert!(busy > series.cores[0].busy_seconds[0], "{}", lines[1]);
        assert_eq!(fields[13], "0", "{}", lines[1]);
    }

    #[test]
    fn a_live_comparison_has_a_line_for_each_block_in_the_order_of_time() {
        let text = include_str!("../../tests/golden/ab.json");
        let mut compared: LiveAb = serde_json::from_str(text).unwrap();
        compared.pairs.truncate(1);
        compared.pairs[0].is_judged_first = true;
        compared.pairs[0].judged.window.cpu = None;
        let csv: String = blocks_as_csv(&compared).collect();
        let [head, first, second] = csv.lines().collect::<Vec<_>>()[..] else {
            panic!("three lines: {csv}");
        };
        let commas = |text: &str| text.matches(',').count();
        assert_eq!([commas(first), commas(second)], [commas(head); 2]);
        assert!(
            first.starts_with(&format!("1,{},true,", compared.judged.name)),
            "{first}"
        );
        assert!(
            second.starts_with(&format!("1,{},false,", compared.reference.name)),
            "{second}"
        );
        let column = head
            .split(',')
            .position(|name| name == "cpu_busy_seconds")
            .unwrap();
        assert_eq!(first.split(',').nth(column), Some(""));
        assert_ne!(second.split(',').nth(column), Some(""));
    }

    #[test]
    fn every_column_of_a_trial_and_a_block_is_a_field() {
        let has_all = |columns: &str, row: &Value| {
            for column in columns.split('|') {
                let path = column.split_once(' ').map_or(column, |(_, path)| path);
                // Parts that were not measured are absent.
                let known = path.rsplit_once('/').map_or("", |(parent, _)| parent);
                let parent = row
                    .pointer(&format!("/{known}"))
                    .filter(|_| !known.is_empty());
                let is_there = row.pointer(&format!("/{path}")).is_some();
                assert!(is_there || parent.is_some_and(Value::is_null), "{column}");
            }
        };
        let study: Study =
            serde_json::from_str(include_str!("../../tests/golden/demo.json")).unwrap();
        let trial = &study.trials[0];
        has_all(&columns("trial"), &with(trial, computed_of(trial)));
        let step = steps(&study.trials[0]);
        has_all(&columns("step"), &step[0]);
        let compared: LiveAb =
            serde_json::from_str(include_str!("../../tests/golden/ab.json")).unwrap();
        let computed = [
            "pair",
            "setting",
            "is_first_of_pair",
            "set_aside_because",
            "cpu_busy_seconds",
            "lost_packets",
        ];
        let computed = computed.map(|name| (String::from(name), Value::Null));
        let block = with(
            &compared.pairs[0].judged,
            Value::Object(computed.into_iter().collect()),
        );
        has_all(&columns("block"), &block);
    }
}
