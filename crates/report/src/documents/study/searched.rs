//! A search for the highest load: the bounds first, then what limits or voids them, then the curve past them.

use nicpoll_model::numbers::{MISSING, count, counted, figure_or_missing, percent, span};
use nicpoll_model::{GoalBounds, LoadSearch, LoadTrial, SearchGoal, StudySearch};

use crate::documents::data::{add_saved, json};
use crate::page::{Align, Block, Document, Figure, Ink, Medium, Page, Part, Rank, Row, Table};
use crate::plots::chart::{Chart, Curve, Panel, plot_chart};

const TITLE: &str = "The highest load that holds";

impl Document for StudySearch {
    fn page(&self) -> Page<'_> {
        let mut page = Page::new(TITLE);
        page.linked(Medium::All, ("answer", "Answer"), |part| {
            part.title(Rank::Browser, TITLE);
            write_answer(part, self);
        });
        page.linked(Medium::Html, ("curve", "Curve"), |part| {
            part.heading("Delivered against offered");
            part.figures(self.workloads.iter().map(|it| plot(self, &it.workload)));
        });
        page.part(Medium::All, |part| {
            let curves = self.searches.iter().filter(|it| !it.curve.is_empty());
            for search in curves {
                part.blank();
                part.table(curve(search));
            }
        });
        page.linked(Medium::Html, ("repeat", "Repeat it"), |part| {
            part.heading("Repeat it");
            part.blocks.push(Block::Code(self.argv.join(" ")));
        });
        add_saved(&mut page, |part| {
            let whole = json("search.json", self, "the whole search (docs/search.md)");
            part.blocks.push(whole);
        });
        page
    }
}

fn write_answer(part: &mut Part, found: &StudySearch) {
    if !found.is_finished {
        part.warn("Unfinished: the search was ended; this is what it had found.");
        part.blank();
    }
    part.table(bounds(found));
    part.blank();
    for goal in &found.goals {
        part.say(format!("{}: {}", name(goal.loss_ratio), rule(goal)));
    }
    part.blank();
    for search in &found.searches {
        part.say(effort(search));
        for note in notes(search) {
            part.item("! ", Ink::Unsure, note);
        }
    }
}

/// Returns the bounds of each goal, workload and setting.
fn bounds(found: &StudySearch) -> Table {
    let head = ["held", "not held", "delivered", "of line"];
    let mut table = Table::new("Packets a second", head, Align::Right);
    let load = |load: Option<u64>| load.map_or_else(|| String::from(MISSING), count);
    for search in &found.searches {
        let group = format!("{} under {}", search.workload, search.setting);
        table.rows.push(Row::group(group, Ink::Strong));
        for bounds in &search.bounds {
            let GoalBounds {
                lower_per_second: lower,
                upper_per_second: upper,
                ..
            } = *bounds;
            let delivered = bounds.conditional_throughput_per_second;
            let of_line = lower.zip(search.line_per_second);
            // Rounded down: 100 % is the line itself.
            let of_line =
                of_line.map(|(lower, line)| (1000.0 * lower as f64 / line).floor() / 10.0);
            let of_line = of_line.map(|percent| format!("{percent:.1} %"));
            let delivered = delivered.map(|rate| rate as u64);
            let cells = [
                load(lower),
                load(upper),
                load(delivered),
                of_line.unwrap_or_else(|| String::from(MISSING)),
            ];
            let ink = if bounds.is_finished {
                Ink::Plain
            } else {
                Ink::Unsure
            };
            table.rows.push(Row::new(
                format!("  {}", name(bounds.loss_ratio)),
                cells,
                ink,
            ));
        }
    }
    table
}

/// Returns the name of a goal by its loss.
fn name(loss_ratio: f64) -> String {
    match loss_ratio {
        0.0 => String::from("NDR"),
        loss => format!("PDR {} %", rounded(100.0 * loss)),
    }
}

fn rounded(value: f64) -> f64 {
    (1e6 * value).round() / 1e6
}

/// Returns what a goal asks of a load.
fn rule(goal: &SearchGoal) -> String {
    let lost = match goal.loss_ratio {
        0.0 => String::from("nothing lost"),
        loss => format!("at most {} % lost", rounded(100.0 * loss)),
    };
    let often = match goal.exceed_ratio {
        0.0 => String::from("all"),
        exceed => format!("{} %", rounded(100.0 * (1.0 - exceed))),
    };
    format!(
        "{lost} in {often} of {} s, in trials of {} s; to {} %.",
        goal.duration_sum_seconds,
        goal.final_trial_seconds,
        rounded(100.0 * goal.width_ratio)
    )
}

fn effort(search: &LoadSearch) -> String {
    let void = search.trials.iter().filter(|it| it.void.is_some()).count();
    let void = match void {
        0 => String::new(),
        void => format!(" ({void} void)"),
    };
    let trials = counted(search.trials.len() as u32, "trial");
    let (workload, setting) = (&search.workload, &search.setting);
    format!(
        "{workload} under {setting}: {trials}{void} in {}.",
        span(search.elapsed_seconds)
    )
}

/// Returns what a reader must know about the bounds.
fn notes(search: &LoadSearch) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(failure) = &search.failure {
        notes.push(format!("it ended early: {failure}."));
    }
    if let Some(limit) = &search.sender_limit {
        notes.push(format!(
            "the sender could not offer more than {}/s (asked for {}): without an upper bound, the receiver holds what \
             it was sent, and perhaps more.",
            count(limit.offered_per_second as u64), count(limit.asked_per_second)
        ));
    }
    if search
        .bounds
        .iter()
        .any(|it| it.is_finished && it.lower_per_second.is_none())
    {
        notes.push(String::from("not even the lowest load was held."));
    }
    let unproven = search.trials.iter().filter(|it| it.unproven.is_some());
    if let Some(why) = unproven.clone().find_map(|it| it.unproven.as_ref()) {
        let (some, all) = (unproven.count(), search.trials.len());
        notes.push(format!(
            "in {some} of {all} trials nothing proves the setting in force: {why}."
        ));
    }
    notes
}

/// Returns the loads past the bounds.
fn curve(search: &LoadSearch) -> Table {
    let label = format!(
        "{} under {}, past the bounds",
        search.workload, search.setting
    );
    let mut table = Table::new(
        label,
        ["offered", "delivered", "lost", "late", ""],
        Align::Right,
    );
    for trial in &search.curve {
        let share = |ratio: Option<f64>| {
            ratio.map_or_else(|| String::from(MISSING), |ratio| percent(ratio) + " %")
        };
        let void = if trial.void.is_some() { "void" } else { "" };
        let cells = [
            figure_or_missing(trial.offered_per_second),
            figure_or_missing(trial.delivered_per_second),
            share(trial.loss_ratio),
            share(trial.late_ratio),
            String::from(void),
        ];
        table.rows.push(Row::plain(
            format!("  asked for {}", count(trial.asked_per_second)),
            cells,
        ));
    }
    table
}

/// Plots every trial of a workload: delivered against offered, a curve for each setting.
fn plot(found: &StudySearch, workload: &str) -> Figure {
    let searches = found.searches.iter().filter(|it| it.workload == workload);
    let curves = searches.map(|search| {
        let trials = search.trials.iter().chain(&search.curve);
        let point = |it: &LoadTrial| {
            let offered = it.offered_per_second?;
            Some((offered, offered * (1.0 - it.loss_ratio?)))
        };
        let mut points: Vec<(f64, f64)> = trials.filter_map(point).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Curve {
            name: search.setting.clone(),
            points,
        }
    });
    let y_name = String::from("delivered, packets a second");
    let panel = Panel {
        y_name,
        curves: curves.collect(),
    };
    let svg = plot_chart(&Chart {
        title: format!("Delivered against offered: {workload}"),
        facts: format!(
            "measured by nicpoll {}, {}",
            found.nicpoll_version, found.started_at
        ),
        x_name: String::from("offered, packets a second"),
        panels: vec![panel],
    });
    Figure {
        title: String::new(),
        caption: String::from("Every trial that was made, the void ones too."),
        svg,
        table: None,
    }
}
