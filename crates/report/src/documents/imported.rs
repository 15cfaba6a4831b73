//! Trials that a text reports: what was found, under which setting, and what has no place.
//!
//! The page says first that the trials were imported, and that they are not paired. What is inferred is marked, with the
//! line that it is in. A workload with one trial a setting has no verdict.

use std::collections::HashMap;

use nicpoll_model::numbers::{MISSING, counted, figure, figure_or_missing};
use nicpoll_model::{Imported, ImportedBasis, ImportedTrial, Side, SourcePlace};

use super::compared;
use super::data::{csv, imported_as_csv, imported_figure, imported_loss, json, saved};
use super::study::plots::caption;
use crate::page::{Align, Document, Figure, Ink, Level, Medium, Page, Part, Row, Table};
use crate::plots::axis::Axis;
use crate::plots::curves::{Series, scatter, values};
use crate::plots::svg::{Look, looks};

/// Width of the labels.
const LABEL: usize = 26;
/// Figures without a place that the page shows; the document has all.
const UNPLACED_SHOWN: usize = 40;

impl Document for Imported {
    fn page(&self) -> Page {
        let mut page = Page::new(title(self));
        let answer = Part::linked(Medium::All, "answer", "Answer");
        page.part(answer, |part| write_answer(part, self));
        let trials = Part::linked(Medium::Html, "trials", "Trials");
        page.part(trials, |part| {
            part.heading("Trial by trial");
            part.figures(figures(self));
        });
        let figures = Part::linked(Medium::All, "figures", "Figures");
        page.part(figures, |part| {
            for (workload, of) in self.by_workload() {
                part.heading(workload);
                part.table(trial_table(self, &of));
            }
            write_notes(part, self);
            write_differences(part, self);
            write_readings(part, self);
            write_unplaced(part, self);
        });
        page.part(saved(), |part| {
            let holds = "the whole import (docs/import.md)";
            part.blocks.push(json("imported.json", self, holds));
            let holds = "a line for each trial";
            let trials = csv("trials.csv", imported_as_csv(self), holds);
            part.blocks.push(trials);
        });
        page
    }
}

fn title(imported: &Imported) -> String {
    let files: Vec<&str> = imported.files.iter().map(|it| it.name.as_str()).collect();
    let trials = counted(imported.trials.len() as u32, "trial");
    format!("{trials} imported from {}", files.join(", "))
}

fn write_answer(part: &mut Part, imported: &Imported) {
    part.title(Level::Title, title(imported));
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

/// A line of the source: with its file where there are several.
fn line(imported: &Imported, place: &SourcePlace) -> String {
    match imported
        .files
        .get(place.file as usize)
        .filter(|_| imported.files.len() > 1)
    {
        Some(file) => format!("{}:{}", file.name, place.line),
        None => place.line.to_string(),
    }
}

fn mark(basis: ImportedBasis) -> &'static str {
    match basis {
        ImportedBasis::Inferred => "?",
        ImportedBasis::Said | ImportedBasis::Mapped | ImportedBasis::Unknown => "",
    }
}

/// The unit of the rates of a workload's trials, in a table and at an axis, and one of the document's in it.
fn unit(of: &[&ImportedTrial]) -> (&'static str, &'static str, f64) {
    match of.iter().all(|it| it.quantity == "bits_per_second") {
        true => ("Mbit/s", "Mbit/s", 1e-6),
        false => ("packets/s", "packets a second", 1.0),
    }
}

/// A table whose columns have these names.
fn table<const N: usize>(label: &str, head: [&str; N], align: Align) -> Table {
    Table {
        head: Row::new(label, head, Ink::Faint),
        ..Table::new(label, head, align)
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
    let mut table = table("trial, setting", head, Align::Right);
    table.label = LABEL;
    table.rows.extend(of.iter().map(|trial| {
        let sent = if trial.is_sent { " sent" } else { "" };
        let lost = imported_loss(trial).map(|it| format!("{} %", figure(100.0 * it)));
        let jitter = imported_figure(trial, Side::Receiver, "jitter_seconds");
        let host = |name: &Option<String>| name.clone().unwrap_or_else(|| String::from("?"));
        let (sender, receiver) = (host(&trial.sender), host(&trial.receiver));
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
        let label = format!("{} {}{basis}", trial.sequence, trial.setting);
        Row::plain(label, cells)
    }));
    table
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

/// The rates of a workload's trials in the order of the text, the last of which has the number `end`.
fn plot(
    workload: &str,
    trials: &[&ImportedTrial],
    looks: &HashMap<&str, Look>,
    end: f64,
) -> Option<Figure> {
    let (_, name, scale) = unit(trials);
    let by_setting = ImportedTrial::by_setting(trials.iter().copied()).into_iter();
    let series = by_setting.map(|(setting, of)| {
        let points = of.iter();
        let points = points.filter_map(|it| Some((f64::from(it.sequence), it.value? * scale)));
        Series {
            points: points.collect(),
            ..Series::named(setting, looks[setting])
        }
    });
    let mut series: Vec<Series> = series.filter(|one| !one.points.is_empty()).collect();
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

/// Busy time, of which that in interrupts.
fn cpu(trial: &ImportedTrial, side: Side) -> String {
    let idle = imported_figure(trial, side, "cpu_idle_ratio");
    let interrupt = imported_figure(trial, side, "cpu_interrupt_ratio");
    match idle.zip(interrupt) {
        Some((idle, interrupt)) => {
            let percent = |share: f64| figure((share * 1000.0).round() / 10.0);
            format!("{}, irq {} %", percent(1.0 - idle), percent(interrupt))
        }
        None => String::from(MISSING),
    }
}

fn write_notes(part: &mut Part, imported: &Imported) {
    part.heading("What to know");
    part.say("'?' marks what follows from what stands near: a setting from a heading or from one of the hosts, two ends that \
         agree. CPU shares are always tied to a trial by nearness: busy time, and that in interrupts, in % of all.",
    );
    for trial in &imported.trials {
        for note in &trial.notes {
            let note = format!("Trial {}: {note}", trial.sequence);
            part.item("- ", Ink::Plain, note);
        }
        if !trial.quoted_again.is_empty() {
            let lines: Vec<String> = trial
                .quoted_again
                .iter()
                .map(|it| line(imported, it))
                .collect();
            let text = format!(
                "Trial {} is told again in line {}, and counts once.",
                trial.sequence,
                lines.join(", ")
            );
            part.item("- ", Ink::Plain, text);
        }
    }
}

fn write_readings(part: &mut Part, imported: &Imported) {
    if imported.readings.is_empty() {
        return;
    }
    part.heading("What the hosts printed");
    let head = ["value", "near trial", "line"];
    let mut table = table("host and name", head, Align::Left);
    for reading in &imported.readings {
        let host = reading.host.as_deref().unwrap_or("?");
        let since = if reading.is_cumulative {
            " (since its start)"
        } else {
            ""
        };
        let near = reading
            .near_trial
            .map_or_else(|| String::from(MISSING), |it| it.to_string());
        let value = reading.value.clone() + since;
        let cells = [value, near, line(imported, &reading.place)];
        let label = format!("{host} {}", reading.name);
        table.rows.push(Row::plain(label, cells));
    }
    table.label = LABEL;
    part.table(table);
}

/// By how much counters grew during a test, with both lines; those that did not move are in the document.
fn write_differences(part: &mut Part, imported: &Imported) {
    let head = ["grew by", "lines"];
    let mut table = table("trial, end and counter", head, Align::Left);
    table.label = LABEL;
    for trial in &imported.trials {
        for one in trial.figures.iter().filter(|it| it.value > 0.0) {
            let Some(since) = &one.since else { continue };
            let side = one.side.map_or(String::from("?"), |side| side.to_string());
            let counter = one.name.trim_start_matches("difference of ");
            let lines = [since, &one.place].map(|place| line(imported, place));
            let label = format!("{} {side} {counter}", trial.sequence);
            let cells = [figure(one.value), lines.join(" to ")];
            table.rows.push(Row::plain(label, cells));
        }
    }
    if !table.rows.is_empty() {
        part.heading("What counters counted during a test");
        part.say("Counters that count from a host's start, before the test and after it. Whatever else the host did in between \
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
        let text = format!(
            "line {}: {} ({})",
            line(imported, &one.place),
            one.printed,
            one.reason
        );
        part.item("- ", Ink::Plain, text);
    }
    if imported.unplaced.len() > UNPLACED_SHOWN {
        let more = imported.unplaced.len() - UNPLACED_SHOWN;
        part.say(format!("{more} more are in the JSON."));
    }
}
