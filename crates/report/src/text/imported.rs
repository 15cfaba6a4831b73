//! Trials that a text tells of: what was found, under which setting, and what has no place.
//!
//! What must hold: the page says first that the trials were imported, and that they are not paired. What is inferred is
//! marked, with the line that it stands in. A workload with one trial a setting has no verdict.

use nicpoll_model::{Imported, ImportedBasis, ImportedTrial, Side, SourcePlace};

use super::compared;
use super::page::{Align, Ink, Page, Row};
use crate::numbers::{MISSING, counted, figure, figure_or_missing};

/// Width of the labels.
const LABEL: usize = 26;
/// Figures without a place that the page shows; the document has all.
const UNPLACED_SHOWN: usize = 40;

/// Writes the page.
pub fn write(page: &mut Page, imported: &Imported) {
    page.heading(&title(imported));
    page.paragraph(
        Ink::Unsure,
        "Imported: other people measured these trials, and a text tells of them. They took no turns, so that nothing \
         here is paired: what changed between two settings beside the setting is in the figures.",
    );
    for comparison in &imported.comparisons {
        page.paragraph(
            Ink::of(comparison.ratio.map(|_| comparison.verdict)),
            &compared::sentence(comparison, imported.margin_ratio),
        );
    }
    if imported.comparisons.is_empty() && !imported.trials.is_empty() {
        page.paragraph(
            Ink::Plain,
            "No two settings have trials of one workload: nothing is compared. --map says what the text does not.",
        );
    }
    if imported.comparisons_left_out > 0 {
        page.paragraph(
            Ink::Unsure,
            &format!(
                "{} of more settings are left out here; 'nicpoll study compare ID:ONE ID:OTHER' makes each of them.",
                counted(imported.comparisons_left_out, "comparison")
            ),
        );
    }
    for (workload, of) in imported.by_workload() {
        page.heading(workload);
        trials(page, imported, &of);
    }
    notes(page, imported);
    differences(page, imported);
    readings(page, imported);
    unplaced(page, imported);
}

/// What the page is about.
pub fn title(imported: &Imported) -> String {
    let files: Vec<&str> = imported.files.iter().map(|it| it.name.as_str()).collect();
    let trials = counted(imported.trials.len() as u32, "trial");
    format!("{trials} imported from {}", files.join(", "))
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

fn trials(page: &mut Page, imported: &Imported, of: &[&ImportedTrial]) {
    let is_bits = of.iter().all(|it| it.quantity == "bits_per_second");
    let rate = if is_bits { "Mbit/s" } else { "packets/s" };
    let head = [
        rate,
        "lost",
        "jitter, ms",
        "CPU sender",
        "CPU receiver",
        "from, to",
        "line",
    ];
    let mut rows = vec![Row::new(
        "trial, setting",
        head.map(String::from).to_vec(),
        Ink::Faint,
    )];
    for trial in of {
        let scale = if is_bits { 1e-6 } else { 1.0 };
        let sent = if trial.is_sent { " sent" } else { "" };
        let lost = loss(trial).map_or_else(
            || String::from(MISSING),
            |it| format!("{} %", figure(100.0 * it)),
        );
        let jitter = value(trial, Side::Receiver, "jitter_seconds").map(|it| it * 1e3);
        let host = |name: &Option<String>| name.clone().unwrap_or_else(|| String::from("?"));
        let cells = vec![
            figure_or_missing(trial.value.map(|it| it * scale)) + sent,
            lost,
            figure_or_missing(jitter),
            cpu(trial, Side::Sender),
            cpu(trial, Side::Receiver),
            format!(
                "{}, {}{}",
                host(&trial.sender),
                host(&trial.receiver),
                mark(trial.pairing)
            ),
            line(imported, &trial.place),
        ];
        let label = format!(
            "{} {}{}",
            trial.sequence,
            trial.setting,
            mark(trial.setting_basis)
        );
        rows.push(Row::new(label, cells, Ink::Plain));
    }
    page.table(&rows, LABEL, Align::Right);
}

/// A figure of an end of a trial.
pub fn value(trial: &ImportedTrial, side: Side, name: &str) -> Option<f64> {
    let mut figures = trial.figures.iter();
    let found = figures.find(|it| it.side == Some(side) && it.name == name);
    found.map(|it| it.value)
}

/// Lost of all that were sent.
pub fn loss(trial: &ImportedTrial) -> Option<f64> {
    let lost = value(trial, Side::Receiver, "lost_datagrams")?;
    let all = value(trial, Side::Receiver, "datagrams")?;
    (all > 0.0).then(|| lost / all)
}

/// Busy time, of which that in interrupts.
fn cpu(trial: &ImportedTrial, side: Side) -> String {
    let idle = value(trial, side, "cpu_idle_ratio");
    let interrupt = value(trial, side, "cpu_interrupt_ratio");
    match idle.zip(interrupt) {
        Some((idle, interrupt)) => {
            let percent = |share: f64| figure((share * 1000.0).round() / 10.0);
            format!("{}, irq {} %", percent(1.0 - idle), percent(interrupt))
        }
        None => String::from(MISSING),
    }
}

fn notes(page: &mut Page, imported: &Imported) {
    page.heading("What to know");
    page.paragraph(
        Ink::Plain,
        "'?' marks what follows from what stands near: a setting from a heading or from one of the hosts, two ends that \
         agree. CPU shares are always tied to a trial by nearness: busy time, and that in interrupts, in % of all.",
    );
    for trial in &imported.trials {
        for note in &trial.notes {
            page.item(
                "- ",
                Ink::Plain,
                &format!("Trial {}: {note}", trial.sequence),
            );
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
            page.item("- ", Ink::Plain, &text);
        }
    }
}

fn readings(page: &mut Page, imported: &Imported) {
    if imported.readings.is_empty() {
        return;
    }
    page.heading("What the hosts printed");
    let head = ["value", "near trial", "line"].map(String::from).to_vec();
    let mut rows = vec![Row::new("host and name", head, Ink::Faint)];
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
        let cells = vec![
            reading.value.clone() + since,
            near,
            line(imported, &reading.place),
        ];
        rows.push(Row::new(
            format!("{host} {}", reading.name),
            cells,
            Ink::Plain,
        ));
    }
    page.table(&rows, LABEL, Align::Left);
}

/// By how much counters grew during a test, with both lines; those that did not move are in the document.
fn differences(page: &mut Page, imported: &Imported) {
    let head = ["grew by", "lines"].map(String::from).to_vec();
    let mut rows = vec![Row::new("trial, end and counter", head, Ink::Faint)];
    for trial in &imported.trials {
        for one in trial.figures.iter().filter(|it| it.value > 0.0) {
            let Some(since) = &one.since else { continue };
            let side = one.side.map_or(String::from("?"), |side| side.to_string());
            let counter = one.name.trim_start_matches("difference of ");
            let lines = [since, &one.place].map(|place| line(imported, place));
            rows.push(Row::new(
                format!("{} {side} {counter}", trial.sequence),
                vec![figure(one.value), lines.join(" to ")],
                Ink::Plain,
            ));
        }
    }
    if rows.len() > 1 {
        page.heading("What counters counted during a test");
        page.paragraph(
            Ink::Plain,
            "Counters that count from a host's start, before the test and after it. Whatever else the host did in between \
             is in them.",
        );
        page.table(&rows, LABEL, Align::Left);
    }
}

fn unplaced(page: &mut Page, imported: &Imported) {
    if imported.unplaced.is_empty() {
        return;
    }
    let count = counted(imported.unplaced.len() as u32, "figure");
    page.heading(&format!("Without a place: {count}"));
    for one in imported.unplaced.iter().take(UNPLACED_SHOWN) {
        let text = format!(
            "line {}: {} ({})",
            line(imported, &one.place),
            one.printed,
            one.reason
        );
        page.item("- ", Ink::Plain, &text);
    }
    if imported.unplaced.len() > UNPLACED_SHOWN {
        let more = imported.unplaced.len() - UNPLACED_SHOWN;
        page.paragraph(Ink::Plain, &format!("{more} more are in the JSON."));
    }
}
