//! A sweep of the simulator: as a table, and as a plot of all disciplines (the livelock curve) in a file of its own.
//!
//! The plot names its axes with units, its curves and their source. Curves differ in colour and in mark.

use nicpoll_model::numbers::figure_or_missing;
use nicpoll_model::sim::{SimPlan, SimPoint, SimSweep};

use super::run::delivered_unit;
use crate::fields::filled;
use crate::lists::distinct;
use crate::plots::axis::Axis;
use crate::plots::curves::PlotFrame;
use crate::plots::svg::{self, CurveLook, LEFT, LINE, RIGHT, TEXT, looks, mark, text, wrapped};
use crate::text::aligned_lines;

/// Height of the area of the curves.
const AREA: f64 = 330.0;
/// Distance from the area to the legend.
const BELOW: f64 = 76.0;
/// Distance from a legend's mark to its name.
const LEGEND_NAME: f64 = 36.0;

/// Plots a sweep as an SVG document.
pub fn plot_sweep(sweep: &SimSweep) -> String {
    let names = disciplines(sweep);
    let looks = looks(&names);
    let (title, facts) = heading(sweep);
    let top = svg::below_heading(&title, &facts) + 8.0;
    let bottom = top + AREA;
    let of_legend = |name: &&str| wrapped(name, TEXT, LEFT + LEGEND_NAME).len();
    let lines: usize = names.iter().map(of_legend).sum();
    let mut svg = svg::page(bottom + BELOW + LINE * lines as f64, &title);
    svg::heading(&mut svg, &title, &facts);
    let frame = frame(sweep, top, bottom);
    frame.grid(&mut svg, 19.0);
    let middle = (LEFT + RIGHT) / 2.0;
    let x_name = axis(&sweep.parameter);
    text(&mut svg, (middle, bottom + 44.0), "middle", TEXT, &x_name);
    let middle = (top + bottom) / 2.0;
    let unit = delivered_unit(&sweep.workload);
    svg::upright(&mut svg, (20, middle), &format!("delivered {unit}"));
    if sweep.parameter == "offered" {
        frame.diagonal(&mut svg);
    }
    let mut y = bottom + BELOW;
    for (index, name) in names.iter().enumerate() {
        let points = sweep.points.iter();
        let own: Vec<_> = points
            .filter(|point| discipline(&point.plan) == *name)
            .collect();
        curve(&mut svg, &frame, looks[index], &own);
        legend(&mut svg, looks[index], &mut y, name);
    }
    svg.push_str(svg::END);
    svg
}

/// Returns the plot's title, and the source of its figures.
fn heading(sweep: &SimSweep) -> (String, String) {
    let title = match sweep.parameter.as_str() {
        "offered" => String::from("Delivered against offered load"),
        other => format!("Delivered against {other}"),
    };
    let Some(point) = sweep.points.first() else {
        return (title, String::new());
    };
    let (host, workload) = (host(&point.plan), &sweep.workload);
    let length = filled("{seconds:raw} s a point, seed {seed:raw}", &point.plan);
    (
        title,
        format!("simulated: host {host}, {workload}, {length}"),
    )
}

fn frame(sweep: &SimSweep, top: f64, bottom: f64) -> PlotFrame {
    let most = |of: fn(&SimPoint) -> f64| sweep.points.iter().map(of).fold(0.0, f64::max);
    PlotFrame {
        x: Axis::up_to(most(|point| point.value)),
        y: Axis::up_to(most(|point| point.figures.delivered_packets_per_second)),
        top,
        bottom,
        letters: TEXT,
    }
}

fn curve(svg: &mut String, frame: &PlotFrame, look: CurveLook, points: &[&SimPoint]) {
    let points = points.iter();
    let figures = points.map(|point| (point.value, point.figures.delivered_packets_per_second));
    frame.curve(svg, figures.clone(), &svg::stroke(look.colour));
    for (x, y) in figures {
        mark(svg, look, (frame.x(x), frame.y(y)));
    }
}

/// Draws a curve's line of the legend at `y`, and moves `y` to the next one.
fn legend(svg: &mut String, look: CurveLook, y: &mut f64, name: &str) {
    let stroke = svg::stroke(look.colour);
    svg::straight(svg, "", (LEFT, *y), (LEFT + 28.0, *y), &stroke);
    mark(svg, look, (LEFT + 14.0, *y));
    for line in wrapped(name, TEXT, LEFT + LEGEND_NAME) {
        text(svg, (LEFT + LEGEND_NAME, *y + 5.0), "start", TEXT, &line);
        *y += LINE;
    }
}

/// Renders a sweep as a table: a row for each value, a column for each discipline.
pub fn render_sim_sweep(sweep: &SimSweep) -> String {
    let Some(first) = sweep.points.first() else {
        return String::from("No points in this part of the sweep.\n");
    };
    let (host, workload) = (host(&first.plan), &sweep.workload);
    let length =
        "{seconds:raw} s of virtual time after {warmup_seconds:raw} s of warm-up, seed {seed:raw}.";
    let length = filled(length, &first.plan);
    let (unit, axis) = (delivered_unit(workload), axis(&sweep.parameter));
    let head = format!(
        "Simulated, not measured: host {host}, {workload}, {length}\nDelivered {unit} by {axis}.\n\n"
    );
    let disciplines = disciplines(sweep);
    let names = [sweep.parameter.as_str()].into_iter();
    let names = names.chain(disciplines.iter().copied()).map(String::from);
    let mut lines: Vec<Vec<String>> = vec![names.collect()];
    for value in values(sweep) {
        let cells = disciplines.iter().map(|discipline| {
            let mut points = sweep.points.iter();
            let at =
                |it: &&SimPoint| it.value == value && self::discipline(&it.plan) == *discipline;
            figure_or_missing(
                points
                    .find(at)
                    .map(|point| point.figures.delivered_packets_per_second),
            )
        });
        lines.push([value.to_string()].into_iter().chain(cells).collect());
    }
    head + &aligned_lines(&lines, 1)
}

/// Returns the axis's name of a parameter.
fn axis(parameter: &str) -> String {
    match parameter {
        "offered" => String::from("offered packets/s"),
        other => String::from(other),
    }
}

/// Returns the single host of a sweep's run.
fn host(plan: &SimPlan) -> &str {
    plan.hosts.first().map_or("", |stop| &stop.host)
}

/// Its discipline.
fn discipline(plan: &SimPlan) -> &str {
    plan.hosts.first().map_or("", |stop| &stop.discipline)
}

/// Returns the disciplines in the order of the points.
fn disciplines(sweep: &SimSweep) -> Vec<&str> {
    distinct(sweep.points.iter().map(|point| discipline(&point.plan)))
}

/// Returns every value of the parameter once, ascending.
fn values(sweep: &SimSweep) -> Vec<f64> {
    let mut values: Vec<f64> = sweep.points.iter().map(|point| point.value).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}
