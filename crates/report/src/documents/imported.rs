//! Imported trials: what was found, under which setting, and figures that belong to no trial.
//!
//! The page says first that the trials were imported and are not paired. Inferred facts are marked, with their line.
//! A workload with one trial a setting has no verdict.

use std::collections::HashMap;

use nicpoll_model::numbers::{MISSING, counted, figure, figure_or_missing};
use nicpoll_model::{Imported, ImportedBasis, ImportedTrial, Side, SourcePlace};

use super::compared;
use super::data::{add_saved, csv, imported_as_csv, imported_figure, imported_loss, json};
use super::study::plots::caption;
use crate::fields::filled;
use crate::lists::listed;
use crate::page::{Align, Document, Figure, Ink, Medium, Page, Part, Rank, Row, Table};
use crate::plots::axis::Axis;
use crate::plots::curves::{Marks, scatter, values};
use crate::plots::svg::{CurveLook, looks};

/// Width of the labels.
const LABEL: usize = 26;
/// Most unplaced figures that the page shows; the document has all.
const UNPLACED_SHOWN: usize = 40;

impl Document for Imported {
    fn page(&self) -> Page<'_> {
        let mut page = Page::new(title(self));
        page.linked(Medium::All, ("answer", "Answer"), |part| {
            write_answer(part, self);
        });
        page.linked(Medium::Html, ("trials", "Trials"), |part| {
            part.heading("Trial by trial");
            part.figures(figures(self));
        });
        page.linked(Medium::All, ("figures", "Figures"), |part| {
            for (workload, of) in self.by_workload() {
                part.heading(workload);
                part.table(trial_table(self, &of));
            }
            if !self.trials.is_empty() {
                write_notes(part, self);
            }
            write_differences(part, self);
            write_readings(part, self);
            write_unplaced(part, self);
        });
        add_saved(&mut page, |part| {
            let whole = json("imported.json", self, "the whole import (docs/import.md)");
            let holds = "a line for each trial";
            let trials = csv("trials.csv", || imported_as_csv(self), holds);
            part.blocks.extend([whole, trials]);
        });
        page
    }
}

/// What speaks for the setting and the CPU states of each trial of an import.
pub struct EvidenceOf<'a>(pub &'a Imported);

impl Document for EvidenceOf<'_> {
    fn page(&self) -> Page<'_> {
        let mut page = Page::new(title(self.0));
        page.linked(Medium::All, ("evidence", "Evidence"), |part| {
            part.title(Rank::Title, title(self.0));
            part.say(
                "What speaks for each attribution, and how much. CPU states are booked where one test and one end \
                 win by 2 or more.",
            );
            for trial in &self.0.trials {
                part.heading(format!("Trial {}: {}", trial.sequence, trial.workload));
                part.table(evidence(self.0, trial));
            }
        });
        page
    }
}

fn evidence(imported: &Imported, trial: &ImportedTrial) -> Table {
    let setting = trial.setting_place.as_ref();
    let setting = setting.map_or(String::from(MISSING), |place| line(imported, place));
    let basis = match trial.setting_basis {
        ImportedBasis::Said => "said",
        ImportedBasis::Inferred => "inferred",
        ImportedBasis::Mapped => "by --map",
        ImportedBasis::Unknown => "not known",
    };
    let first = Row::plain(
        format!("setting {}", trial.setting),
        [String::from(basis), String::new(), setting],
    );
    let rows = trial.evidence.iter().map(|it| {
        let cells = [
            it.reason.clone(),
            format!("{:+}", it.points),
            line(imported, &it.place),
        ];
        Row::plain(it.of.clone(), cells)
    });
    let head = ["reason", "points", "line"];
    let rows = [first].into_iter().chain(rows);
    Table::faint("what", head, Align::Left).with(LABEL, rows)
}

fn title(imported: &Imported) -> String {
    let files = imported.files.iter().map(|it| &it.name);
    if imported.trials.is_empty() {
        let facts = counted(imported.readings.len() as u32, "fact");
        return format!("No test, and {facts} of hosts, in {}", listed(files));
    }
    let trials = counted(imported.trials.len() as u32, "trial");
    format!("{trials} imported from {}", listed(files))
}

fn write_answer(part: &mut Part, imported: &Imported) {
    part.title(Rank::Title, title(imported));
    if imported.trials.is_empty() {
        let rest = match imported.unplaced.len() {
            0 => "",
            _ => " Its figures belong to no test that nicpoll knows.",
        };
        return part.warn(format!(
            "Nothing that can be compared: other people's words of their hosts.{rest}"
        ));
    }
    part.warn("Imported: other people measured these trials, and a text reports them. They took no turns, so nothing here is \
         paired: whatever changed between two settings besides the setting is in the figures.",
    );
    for comparison in &imported.comparisons {
        let ink = Ink::of(comparison.ratio.map(|_| comparison.verdict));
        let sentence = compared::sentence(comparison, imported.margin_ratio);
        part.paragraph(ink, sentence);
    }
    if imported.comparisons.is_empty() && !imported.trials.is_empty() {
        part.say("No two settings have trials of one workload: nothing is compared. --map says what the text does not.",
        );
    }
    if imported.comparisons_left_out > 0 {
        let left_out = counted(imported.comparisons_left_out, "comparison");
        part.warn(format!(
                "{left_out} of more settings are left out here; 'nicpoll study compare ID:ONE ID:OTHER' makes each of them."
            ),
        );
    }
}

/// Formats a line of the source, with its file if there are several.
fn line(imported: &Imported, place: &SourcePlace) -> String {
    match imported.files.get(place.file as usize) {
        Some(file) if imported.files.len() > 1 => format!("{}:{}", file.name, place.line),
        _ => place.line.to_string(),
    }
}

fn mark(basis: ImportedBasis) -> &'static str {
    match basis {
        ImportedBasis::Inferred => "?",
        ImportedBasis::Said | ImportedBasis::Mapped | ImportedBasis::Unknown => "",
    }
}

/// Returns the unit of the rates of a workload's trials, in a table and at an axis, and its size in the document's
/// unit.
fn unit(of: &[&ImportedTrial]) -> (&'static str, &'static str, f64) {
    match of.iter().all(|it| it.quantity == "bits_per_second") {
        true => ("Mbit/s", "Mbit/s", 1e-6),
        false => ("packets/s", "packets a second", 1.0),
    }
}

fn trial_table(imported: &Imported, of: &[&ImportedTrial]) -> Table {
    let (rate, _, scale) = unit(of);
    let head = [
        rate,
        "lost",
        "jitter, ms",
        "CPU sender",
        "CPU receiver",
        "from, to",
        "line",
    ];
    let rows = of.iter().map(|trial| {
        let sent = if trial.is_sent { " sent" } else { "" };
        let lost = imported_loss(trial).map(|it| format!("{} %", figure(100.0 * it)));
        let jitter = imported_figure(trial, Side::Receiver, "jitter_seconds");
        let [sender, receiver] =
            [&trial.sender, &trial.receiver].map(|name| name.as_deref().unwrap_or("?"));
        let cells = [
            figure_or_missing(trial.value.map(|it| it * scale)) + sent,
            lost.unwrap_or(String::from(MISSING)),
            figure_or_missing(jitter.map(|it| it * 1e3)),
            cpu(trial, Side::Sender),
            cpu(trial, Side::Receiver),
            format!("{sender}, {receiver}{}", mark(trial.pairing)),
            line(imported, &trial.place),
        ];
        let basis = mark(trial.setting_basis);
        Row::plain(
            format!("{} {}{basis}", trial.sequence, trial.setting),
            cells,
        )
    });
    Table::faint("trial, setting", head, Align::Right).with(LABEL, rows)
}

/// A plot of the trials of each workload.
fn figures(imported: &Imported) -> Vec<Figure> {
    let settings = imported.settings();
    let looks = settings.iter().copied().zip(looks(&settings)).collect();
    let end = f64::from(imported.trials.last().map_or(1, |it| it.sequence));
    let workloads = imported.by_workload().into_iter();
    let figures = workloads.filter_map(|(workload, trials)| plot(workload, &trials, &looks, end));
    figures.collect()
}

/// Plots the rates of a workload's trials in the order of the text; the last one has the number `end`.
fn plot(
    workload: &str,
    trials: &[&ImportedTrial],
    looks: &HashMap<&str, CurveLook>,
    end: f64,
) -> Option<Figure> {
    let (_, name, scale) = unit(trials);
    let by_setting = ImportedTrial::by_setting(trials.iter().copied()).into_iter();
    let series = by_setting.map(|(setting, of)| {
        let points = of.iter();
        let points = points.filter_map(|it| Some((f64::from(it.sequence), it.value? * scale)));
        Marks::of(setting, looks[setting], points.collect())
    });
    let mut series: Vec<Marks> = series.filter(|one| !one.points.is_empty()).collect();
    // As everywhere else in the document.
    series.sort_by_key(|one| one.look.mark);
    let y = Axis::around_all(values(&series))?;
    values(&series).find(|value| *value > 0.0)?;
    let svg = scatter(
        &format!("{workload}: {name} of each imported trial"),
        (Axis::up_to(end), "trial, in the order of the text"),
        (y, name),
        &series,
    );
    let rows = trials.iter().filter_map(|it| {
        let value = figure(it.value? * scale);
        let [sequence, line] = [it.sequence, it.place.line].map(|it| it.to_string());
        Some(vec![sequence, it.setting.clone(), value, line])
    });
    Some(Figure::new(
        format!("{workload}, {name}"),
        caption("A mark is an imported trial. They took no turns.", &y),
        svg,
        ["trial", "setting", name, "line"],
        rows,
    ))
}

/// Formats busy time, and the part in interrupts if the program tells it: vmstat does not.
fn cpu(trial: &ImportedTrial, side: Side) -> String {
    let percent = |share: f64| figure((share * 1000.0).round() / 10.0);
    let of = |name| imported_figure(trial, side, name);
    match (of("cpu_idle_ratio"), of("cpu_interrupt_ratio")) {
        (Some(idle), Some(interrupt)) => {
            format!("{}, irq {} %", percent(1.0 - idle), percent(interrupt))
        }
        (Some(idle), None) => format!("{} %", percent(1.0 - idle)),
        (None, _) => String::from(MISSING),
    }
}

fn write_notes(part: &mut Part, imported: &Imported) {
    part.heading("What to know");
    part.say("'?' marks what follows from what stands near: a setting from a heading or from one of the hosts, two ends that \
         agree. CPU shares, busy time and that in interrupts in % of all, are tied to a trial by what stands around them: 'nicpoll \
         study show' with --evidence lists it.",
    );
    for trial in &imported.trials {
        let number = trial.sequence;
        for note in &trial.notes {
            part.item("- ", Ink::Plain, format!("Trial {number}: {note}"));
        }
        if !trial.quoted_again.is_empty() {
            let lines = listed(trial.quoted_again.iter().map(|it| line(imported, it)));
            let text = format!("Trial {number} is told again in line {lines}, and counts once.");
            part.item("- ", Ink::Plain, text);
        }
    }
}

fn write_readings(part: &mut Part, imported: &Imported) {
    if imported.readings.is_empty() {
        return;
    }
    part.heading("What the hosts printed");
    let rows = imported.readings.iter().map(|reading| {
        let host = reading.host.as_deref().unwrap_or("?");
        let since = match reading.is_cumulative {
            true => "{value} (since its start)",
            false => "{value}",
        };
        let [value, near] = [since, "{near_trial:raw}"].map(|it| filled(it, reading));
        let cells = [value, near, line(imported, &reading.place)];
        Row::plain(format!("{host} {}", reading.name), cells)
    });
    let head = ["value", "near trial", "line"];
    part.table(Table::faint("host and name", head, Align::Left).with(LABEL, rows));
}

/// Writes the growth of counters during a test, with both lines; counters that did not move are only in the document.
fn write_differences(part: &mut Part, imported: &Imported) {
    let trials = imported.trials.iter();
    let all = trials.flat_map(|trial| trial.figures.iter().map(move |one| (trial, one)));
    let rows = all.filter_map(|(trial, one)| {
        let since = one.since.as_ref().filter(|_| one.value > 0.0)?;
        let side = one.side.map_or("?", |side| side.name());
        let counter = one.name.trim_start_matches("difference of ");
        let lines = [since, &one.place].map(|place| line(imported, place));
        let label = format!("{} {side} {counter}", trial.sequence);
        Some(Row::plain(label, [figure(one.value), lines.join(" to ")]))
    });
    let head = ["grew by", "lines"];
    let table = Table::faint("trial, end and counter", head, Align::Left).with(LABEL, rows);
    if !table.rows.is_empty() {
        part.heading("What counters counted during a test");
        part.say(
            "Counters that count from a host's start, before the test and after it. Whatever else the host did in between \
             is in them.",
        );
        part.table(table);
    }
}

fn write_unplaced(part: &mut Part, imported: &Imported) {
    if imported.unplaced.is_empty() {
        return;
    }
    let count = counted(imported.unplaced.len() as u32, "figure");
    part.heading(format!("Without a place: {count}"));
    for one in imported.unplaced.iter().take(UNPLACED_SHOWN) {
        let place = line(imported, &one.place);
        // A quotation keeps its units as they are (`with_micros`).
        let quoted = one.printed.replace(" us", "\u{a0}us");
        let text = format!("line {place}: {quoted} ({})", one.reason);
        part.item("- ", Ink::Plain, text);
    }
    if imported.unplaced.len() > UNPLACED_SHOWN {
        let more = imported.unplaced.len() - UNPLACED_SHOWN;
        part.say(format!("{more} more are in the JSON."));
    }
}
