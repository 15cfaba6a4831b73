//! What `nicpoll tune` found: the setting to use, why, and every candidate that was tried.

use nicpoll_model::numbers::{MISSING, aligned, count, counted, figure, figure_or_missing, span};
use nicpoll_model::tune::{Tune, TuneCandidate, TuneDropped, TuneGoal};
use nicpoll_model::{MetricFacts, Unseen};

use super::answer;
use crate::documents::ab::words;
use crate::documents::data::{add_saved, json};
use crate::page::{Align, Block, Document, Figure, Ink, Medium, Page, Part, Rank, Row, Table};
use crate::plots::axis::Axis;
use crate::plots::curves::{Curves, Marks};
use crate::plots::svg::looks;

const TITLE: &str = "The setting to use";

impl Document for Tune {
    fn page(&self) -> Page<'_> {
        let mut page = Page::new(TITLE);
        page.linked(Medium::All, ("answer", "Answer"), |part| {
            part.title(Rank::Browser, TITLE);
            write_answer(part, self);
        });
        page.linked(Medium::All, ("race", "The race"), |part| {
            part.heading("The race");
            part.figures(frontier(self));
            part.table(candidates(self));
            part.blank();
            part.say(effort(self));
            for Unseen { what, why } in &self.not_tried {
                part.item("! ", Ink::Unsure, format!("not tried: {what}: {why}"));
            }
        });
        if self.study.is_some() || self.ab.is_some() {
            page.linked(Medium::All, ("final", "The final comparison"), |part| {
                part.heading("The winner against what it had");
                if let Some(study) = &self.study {
                    answer::write_below(part, study);
                }
                let compared = self.ab.iter().flat_map(words::answer);
                compared.for_each(|it| part.say(it));
            });
        }
        page.linked(Medium::Html, ("repeat", "Repeat it"), |part| {
            part.heading("Repeat it");
            part.blocks.push(Block::Code(self.argv.join(" ")));
            part.say(format!("Seed {}.", self.seed));
        });
        add_saved(&mut page, |part| {
            part.blocks
                .push(json("tune.json", self, "all of it (docs/tune.md)"));
        });
        page
    }
}

fn write_answer(part: &mut Part, tune: &Tune) {
    if !tune.is_finished {
        part.warn(format!("Unfinished: {}.", tune.because));
        return;
    }
    let because = &tune.because;
    match tune.choice.as_ref().and_then(|it| tune.candidate(it)) {
        None => part.paragraph(Ink::Strong, format!("Keep what you have: {because}.")),
        Some(choice) => {
            part.paragraph(Ink::Good, format!("Set {}: {because}.", choice.name));
            let command = choice
                .command
                .replace(" IF ", &format!(" {} ", interface(tune)));
            part.line(vec![(format!("  {command}"), Ink::Strong)]);
        }
    }
    part.blank();
    let goal = match tune.goal {
        TuneGoal::Throughput => "the most throughput",
        TuneGoal::Latency => "the shortest delay",
        TuneGoal::Cpu => "the least CPU time",
    };
    let limits = match tune.limits_words() {
        none if none.is_empty() => none,
        limits => format!(", with {limits}"),
    };
    part.say(format!("Tuned for {goal}{limits}, under {}.", tune.traffic));
}

/// Returns the interface as the user types it; a lab's own has no name outside.
fn interface(tune: &Tune) -> &str {
    match tune.ab.is_some() || tune.metric.is_none() {
        true => &tune.interface,
        false => "IF",
    }
}

fn effort(tune: &Tune) -> String {
    let grid = match tune.grid_trials {
        0 => String::new(),
        grid => format!(" of the {} that the whole grid takes", count(grid)),
    };
    let trials = counted(tune.race_trials, "trial");
    format!(
        "The race took {trials}{grid}; all took {}.",
        span(tune.elapsed_seconds)
    )
}

/// Returns the name of the goal's figure with its unit, and the unit's size.
fn value_of(tune: &Tune) -> (String, f64) {
    let Some(MetricFacts { label, unit, .. }) = tune.metric.map(|it| it.facts()) else {
        return match tune.goal {
            TuneGoal::Latency => (String::from("median delay, us"), 1000.0),
            _ => (String::from("CPU time a byte, ratio"), 1.0),
        };
    };
    match label.contains(unit.0) {
        true => (String::from(label), unit.1),
        false => (format!("{label}, {}", unit.0), unit.1),
    }
}

/// Returns every candidate, the best first.
fn candidates(tune: &Tune) -> Table {
    let (name, scale) = value_of(tune);
    let limits = tune.limits.iter().map(ToString::to_string);
    let head = [name, format!("ratio to {}", tune.reference)];
    let head = head
        .into_iter()
        .chain(limits)
        .chain(["blocks", ""].map(String::from));
    let mut table = Table::new("setting", head, Align::Right);
    for own in in_order(tune) {
        let limited = tune
            .limits
            .iter()
            .zip(&own.limited)
            .map(|(limit, figures)| {
                figures.map_or_else(|| String::from(MISSING), |[value, ..]| limit.show(value))
            });
        let ratio = own.ratio.map(|ends| {
            let [ratio, low, high] = aligned(ends, &[1.0]);
            format!("{ratio} [{low}, {high}]")
        });
        let ratio = ratio.unwrap_or_else(|| String::from(MISSING));
        let value = figure_or_missing(own.value.map(|it| it / scale));
        let cells = [value, ratio].into_iter().chain(limited);
        let cells = cells.chain([format!("{}{}", fate(tune, own), own.blocks)]);
        let ink = match &tune.winner {
            Some(winner) if *winner == own.name => Ink::Good,
            _ if own.dropped.is_some() => Ink::Faint,
            _ => Ink::Plain,
        };
        table.rows.push(Row::new(own.name.clone(), cells, ink));
    }
    table
}

fn fate(tune: &Tune, own: &TuneCandidate) -> String {
    let words = match own.dropped {
        _ if tune.winner.as_ref() == Some(&own.name) => "won, ",
        None => "",
        Some(TuneDropped::Worse) => "worse, ",
        Some(TuneDropped::BreaksLimit) => "breaks a limit, ",
        Some(TuneDropped::NoFigure) => "no figure, ",
        Some(TuneDropped::Refused) => "refused, ",
        Some(TuneDropped::Alarm) => "alarm, ",
    };
    String::from(words)
}

/// Returns the candidates: those in the race to the end first, each kind with the best first.
fn in_order(tune: &Tune) -> Vec<&TuneCandidate> {
    let sign = match tune.metric.is_some_and(|it| it.facts().more_is_better) {
        true => -1.0,
        false => 1.0,
    };
    let mut all: Vec<&TuneCandidate> = tune.candidates.iter().collect();
    let value = |it: &TuneCandidate| it.value.map_or(f64::INFINITY, |value| sign * value);
    all.sort_by(|one, other| {
        let is_out = |it: &TuneCandidate| it.dropped.is_some();
        let order = is_out(one).cmp(&is_out(other));
        order.then(value(one).total_cmp(&value(other)))
    });
    all
}

/// Plots what was tried: CPU time against delay, and the frontier, of which none is better in both. `None` if fewer
/// than two candidates have both.
fn frontier(tune: &Tune) -> Option<Figure> {
    let point = |it: &TuneCandidate| Some((it.delay_p50_ns? / 1000.0, it.cpu?));
    let named = tune
        .candidates
        .iter()
        .filter_map(|it| Some((it, point(it)?)));
    let named: Vec<(&TuneCandidate, (f64, f64))> = named.collect();
    if named.len() < 2 {
        return None;
    }
    let winner = tune.winner.as_deref();
    let of = |kept: &dyn Fn(&TuneCandidate) -> bool| {
        let own = named.iter().filter(|(it, _)| kept(it));
        own.map(|(_, point)| *point).collect::<Vec<_>>()
    };
    let is_reference = |it: &TuneCandidate| it.name == tune.reference;
    let is_winner = |it: &TuneCandidate| Some(&*it.name) == winner && !is_reference(it);
    let parts = [
        ("others", of(&|it| !is_reference(it) && !is_winner(it))),
        (&*tune.reference, of(&is_reference)),
        (winner.unwrap_or_default(), of(&is_winner)),
    ];
    let parts: Vec<_> = parts
        .into_iter()
        .filter(|(_, points)| !points.is_empty())
        .collect();
    let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
    let series = parts.iter().zip(looks(&names));
    let series = series.map(|((name, points), look)| Marks::of(name, look, points.clone()));
    let series: Vec<Marks> = series.collect();
    let most = |of: fn(&(f64, f64)) -> f64| named.iter().map(|(_, it)| of(it)).fold(0.0, f64::max);
    let cpu = tune
        .metric
        .map_or("busy cores", |_| "CPU time of the work, ns");
    let mut curves = Curves::new(
        "CPU time against delay",
        (Axis::up_to(most(|it| it.0)), "median delay, us"),
        (Axis::up_to(most(|it| it.1)), cpu),
        0.0,
        series.len(),
    );
    let mut best: Vec<(f64, f64)> = Vec::new();
    let mut sorted: Vec<(f64, f64)> = named.iter().map(|(_, point)| *point).collect();
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    for point in sorted {
        if best.last().is_none_or(|last| point.1 < last.1) {
            best.push(point);
        }
    }
    curves.curve(
        best,
        "fill=\"none\" stroke=\"#888\" stroke-dasharray=\"3 4\"",
    );
    let rows = named.iter().map(|(it, (delay, cpu))| {
        let is_out = it.dropped.map_or("", |_| "out");
        let cells = [it.name.clone(), figure(*delay), figure(*cpu)];
        cells.into_iter().chain([String::from(is_out)]).collect()
    });
    Some(Figure::new(
        "What was tried",
        "A mark is a candidate. No candidate has both less CPU time and less delay than the dashed line.",
        curves.end(&series),
        ["setting", "median delay, us", cpu, ""],
        rows,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TextOptions, render_html, render_text};

    fn candidate(name: &str, value: f64, dropped: Option<TuneDropped>) -> TuneCandidate {
        TuneCandidate {
            name: String::from(name),
            command: format!("nicpoll set IF {name}"),
            blocks: 4,
            value: Some(value),
            ratio: Some([value / 100.0, 0.3, 0.7]),
            cpu: Some(value),
            delay_p50_ns: Some(2e6 / value),
            dropped,
            ..TuneCandidate::default()
        }
    }

    fn tune(choice: Option<&str>) -> Tune {
        Tune {
            interface: String::from("eth0"),
            traffic: String::from("the traffic that it has"),
            goal: TuneGoal::Cpu,
            reference: String::from("as it is"),
            candidates: vec![
                candidate("as it is", 100.0, None),
                candidate("polling", 50.0, None),
                candidate("slow", 200.0, Some(TuneDropped::Worse)),
            ],
            is_finished: true,
            winner: Some(String::from("polling")),
            choice: choice.map(String::from),
            because: String::from("so it was"),
            ..Tune::default()
        }
    }

    #[test]
    fn the_first_line_says_what_to_do_whatever_was_found() {
        let first = |tune: &Tune| {
            let text = render_text(tune, &TextOptions::default());
            text.lines().next().unwrap().trim().to_owned()
        };
        assert_eq!(first(&tune(Some("polling"))), "Set polling: so it was.");
        assert_eq!(first(&tune(None)), "Keep what you have: so it was.");
        let ended = Tune {
            is_finished: false,
            ..tune(Some("polling"))
        };
        assert_eq!(first(&ended), "Unfinished: so it was.");
        let text = render_text(&tune(Some("polling")), &TextOptions::default());
        assert!(text.contains("  nicpoll set eth0 polling\n"), "{text}");
        let order: Vec<_> = ["polling", "as it is", "slow"]
            .map(|name| text.rfind(&format!("  {name} ")).unwrap())
            .to_vec();
        assert!(order.is_sorted(), "the best first: {text}");
    }

    #[test]
    fn the_frontier_is_drawn_where_two_candidates_have_both_figures() {
        assert!(render_html(&tune(None)).contains("CPU time against delay"));
        let mut bare = tune(None);
        for own in &mut bare.candidates {
            own.delay_p50_ns = None;
        }
        assert!(!render_html(&bare).contains("CPU time against delay"));
    }
}
