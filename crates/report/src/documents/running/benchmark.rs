//! The plots and tables of the engine's benchmark: delays by discipline, and delivery under overload.
//!
//! Simulated curves are labelled. A delay that was not measured has no mark.

use nicpoll_model::engine::{
    Delays, DelaysAtLoad, DisciplineDelay, LoadCurve, LoadPoint, Overload,
};

use nicpoll_model::numbers::{MISSING, count, percent};

use crate::fields::filled;
use crate::plots::axis::Axis;
use crate::plots::chart::{Chart, Curve, Panel};
use crate::plots::svg::{self, CurveLook, LEFT, LINE, RIGHT, TEXT, mark, text};

/// A percentile: its name, and a function that reads it in nanoseconds.
type Percentile = (&'static str, fn(&DisciplineDelay) -> Option<f64>);

/// Percentiles with a mark, each with its own.
const PERCENTILES: [Percentile; 3] = [
    ("p50", |delay| delay.p50_ns),
    ("p99", |delay| delay.p99_ns),
    ("p99.9", |delay| delay.p999_ns),
];
/// Height of a discipline's name and line.
const ROW: f64 = 42.0;
/// From the last line of a load to the next load.
const GAP: f64 = 34.0;
/// From the last line to the legend: the axis and its name.
const BELOW: f64 = 78.0;
/// From a mark of the legend to the next.
const LEGEND_STEP: f64 = 120.0;

/// Plots delays as an SVG document: for each load and discipline a line from the median to the 99.9th percentile, on
/// one axis of time.
pub fn plot_delays(delays: &Delays) -> String {
    let title = "How long packets take from sender to program";
    let first = svg::below_heading(title, &delays.facts) + LINE;
    let heights = delays
        .loads
        .iter()
        .map(|load| load.disciplines.len() as f64 * ROW + GAP);
    let bottom = first + heights.sum::<f64>();
    let axis = axis_of(delays);
    let x = |ns: f64| LEFT + (RIGHT - LEFT) * axis.share(ns / 1e3);
    let mut svg = svg::page(bottom + BELOW + LINE, title);
    svg::heading(&mut svg, title, &delays.facts);
    for tick in axis.ticks() {
        let x = x(tick.figure * 1e3);
        svg::line(&mut svg, (x, first), (x, bottom), false);
        text(&mut svg, (x, bottom + 19.0), "middle", TEXT, &tick.label);
    }
    svg::line(&mut svg, (LEFT, bottom), (RIGHT, bottom), true);
    let middle = f64::midpoint(LEFT, RIGHT);
    let name = "microseconds, equal ratios equally far apart";
    text(&mut svg, (middle, bottom + 44.0), "middle", TEXT, name);
    let mut y = first;
    for load in &delays.loads {
        let name = format!("{} packets/s", count(load.asked_pps.round()));
        text(&mut svg, (8.0, y + 16.0), "start", TEXT, &name);
        y += GAP;
        rows(&mut svg, load, x, &mut y);
    }
    for (index, (name, _)) in PERCENTILES.iter().enumerate() {
        let at = LEFT + LEGEND_STEP * index as f64;
        let look = CurveLook {
            colour: svg::COLOURS.len() - 1,
            mark: index,
        };
        mark(&mut svg, look, (at, bottom + BELOW));
        let place = (at + 12.0, bottom + BELOW + 5.0);
        text(&mut svg, place, "start", TEXT, name);
    }
    svg + svg::END
}

/// Draws the lines of one load from `y` on, and moves `y` to the next load.
fn rows(svg: &mut String, load: &DelaysAtLoad, x: impl Fn(f64) -> f64, y: &mut f64) {
    let names = load.disciplines.iter().map(|one| one.name.as_str());
    let colours = svg::colours(&names.collect::<Vec<_>>());
    for (one, colour) in load.disciplines.iter().zip(colours) {
        text(svg, (LEFT, *y + 12.0), "start", TEXT, &one.name);
        let line_y = *y + 26.0;
        let known = PERCENTILES.iter().enumerate();
        let known: Vec<(usize, f64)> = known
            .filter_map(|(index, (_, read))| Some((index, x(read(one)?))))
            .collect();
        let points = known.iter().map(|(_, x)| (*x, line_y));
        svg::curve(svg, points, &svg::stroke(colour));
        for (mark_of, x) in known {
            let look = CurveLook {
                colour,
                mark: mark_of,
            };
            mark(svg, look, (x, line_y));
        }
        *y += ROW;
    }
}

/// The axis of all delays, in microseconds.
fn axis_of(delays: &Delays) -> Axis {
    let disciplines = delays.loads.iter().flat_map(|load| &load.disciplines);
    let all = disciplines.flat_map(|one| PERCENTILES.iter().filter_map(|(_, read)| read(one)));
    let all: Vec<f64> = all.map(|ns| ns / 1e3).collect();
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    Axis::decades(least.min(1e9), all.iter().copied().fold(1.0, f64::max))
}

/// The same as a table of Markdown.
pub fn delays_as_markdown(delays: &Delays) -> String {
    let mut text = String::from(
        "| packets/s | discipline | p50, us | p99, us | p99.9, us | lost | CPU of the program |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for load in &delays.loads {
        let asked = count(load.asked_pps.round());
        for one in &load.disciplines {
            let times = "{name} | {p50_ns:/1e3} | {p99_ns:/1e3} | {p999_ns:/1e3}";
            let lost = percent((1.0 - one.delivered_pps / one.fed_pps.max(1.0)).max(0.0));
            let cpu = filled("{program_cpu:%}", one);
            text += &format!("| {asked} | {} | {lost} % | {cpu} |\n", filled(times, one));
        }
    }
    text
}

/// Makes a chart of the delivered rate and of an ordinary program's CPU share, over the load.
pub fn chart_of_overload(overload: &Overload) -> Chart {
    let panel = |y_name: &str, of: fn(&LoadPoint) -> Option<f64>| {
        let curves = overload.curves.iter().map(|curve| {
            let points = curve.points.iter();
            let points = points.filter_map(|it| Some((it.offered_pps, of(it)?)));
            Curve {
                name: name(curve),
                points: points.collect(),
            }
        });
        Panel {
            y_name: String::from(y_name),
            curves: curves.filter(|curve| !curve.points.is_empty()).collect(),
        }
    };
    Chart {
        title: String::from("Delivered against offered load"),
        facts: overload.facts.clone(),
        x_name: String::from("offered, packets/s"),
        panels: vec![
            panel("delivered, packets/s", |it| Some(it.delivered_pps)),
            panel("left to a program, %", |it| {
                Some(100.0 * it.programs_share?)
            }),
        ],
    }
}

/// Renders the same as a Markdown table: a line for each load, offered as measured.
pub fn overload_as_markdown(overload: &Overload) -> String {
    let mut text = String::from(
        "| receiver | offered, packets/s | delivered | another program got |\n|---|---|---|---|\n",
    );
    for curve in &overload.curves {
        for point in &curve.points {
            let [offered, delivered] =
                [point.offered_pps, point.delivered_pps].map(|pps| count(pps.round()));
            let share = point.programs_share.map(|share| percent(share) + " %");
            let share = share.as_deref().unwrap_or(MISSING);
            let name = name(curve);
            text += &format!("| {name} | {offered} | {delivered} | {share} |\n");
        }
    }
    text
}

/// Returns the name of a curve, labelled if simulated.
fn name(curve: &LoadCurve) -> String {
    match curve.is_simulated {
        true => format!("simulated: {}", curve.name),
        false => curve.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use nicpoll_testkit::assert_has;

    use super::*;

    fn delays() -> Delays {
        let one = |name: &str, p999_ns| DisciplineDelay {
            name: String::from(name),
            fed_pps: 1e4,
            delivered_pps: 1e4,
            program_cpu: 0.05,
            p50_ns: Some(9_000.0),
            p99_ns: Some(90_000.0),
            p999_ns,
        };
        Delays {
            facts: String::from("a < b"),
            loads: vec![DelaysAtLoad {
                asked_pps: 1e4,
                disciplines: vec![one("interrupt", Some(1e6)), one("polling", None)],
            }],
        }
    }

    #[test]
    fn a_percentile_that_is_not_known_has_no_mark_and_is_missing_in_the_table() {
        let svg = plot_delays(&delays());
        // Each percentile is once in the legend; discs and squares for both, a triangle for one of them.
        assert_eq!(svg.matches("<circle").count(), 3);
        assert_eq!(svg.matches("<polygon").count(), 3 + 2);
        assert!(svg.contains("a &lt; b") && svg.contains("10,000 packets/s"));
        let table = delays_as_markdown(&delays());
        assert_has(&table, "| polling | 9.00 | 90.0 | - | 0 % | 5.0 % |");
    }

    #[test]
    fn what_was_simulated_is_named_so_and_says_nothing_of_other_programs() {
        let curve = |is_simulated, programs_share| LoadCurve {
            name: String::from("napi"),
            is_simulated,
            points: vec![LoadPoint {
                offered_pps: 2e5,
                delivered_pps: 1e5,
                programs_share,
            }],
        };
        let overload = Overload {
            facts: String::new(),
            curves: vec![curve(false, Some(0.5)), curve(true, None)],
        };
        let chart = chart_of_overload(&overload);
        let names = |panel: usize| -> Vec<&str> {
            let curves = chart.panels[panel].curves.iter();
            curves.map(|curve| curve.name.as_str()).collect()
        };
        assert_eq!(names(0), ["napi", "simulated: napi"]);
        assert_eq!(names(1), ["napi"]);
        let table = overload_as_markdown(&overload);
        assert_has(&table, "| simulated: napi | 200,000 | 100,000 | - |");
        assert_has(&table, "| napi | 200,000 | 100,000 | 50 % |");
    }
}
