//! Offered against delivered of a workload that was swept, and what a packet cost on the way.
//!
//! What must hold: what was offered is what was sent, not what was asked for.

mod delay;

use nicpoll_model::{Sweep, SweepPoint, WorkUnit};

use super::scatter::{self, Series, looks};
use crate::html::figure::Figure;
use crate::numbers::figure;
use crate::plot::{self, Axis, Frame, LETTERS};

/// A figure of a rate.
type Read = fn(&SweepPoint) -> Option<f64>;

/// The plots that a sweep allows.
pub fn of_sweep(sweep: &Sweep) -> Vec<Figure> {
    let unit = match sweep.unit {
        WorkUnit::Transactions => "transactions a second",
        WorkUnit::Datagrams | WorkUnit::Bytes => "packets a second",
    };
    let delivered = curve(sweep, (unit, "delivered a second"), |point| {
        point.delivered_per_second
    });
    let cost = curve(sweep, (unit, "CPU ns a packet"), |point| {
        point.busy_ns_per_packet
    });
    let beside = curve(sweep, (unit, "left to a program, %"), |point| {
        Some(100.0 * point.spinner_ratio?)
    });
    let figure = |drawn: Option<Drawn>, title: &str, caption: &str| {
        let Drawn { svg, rows } = drawn?;
        Some(Figure {
            title: String::from(title),
            caption: String::from(caption),
            svg,
            head: ["setting", "offered: value"].map(String::from).to_vec(),
            rows,
        })
    };
    let delivered = figure(
        delivered,
        "Offered against delivered",
        "A mark is a rate, the median of its trials. On the dashed line everything that was sent arrived.",
    );
    let cost = figure(
        cost,
        "What a packet costs at each load",
        "CPU time of both cores over what was delivered, the median of the trials.",
    );
    let [half, most] = DELAYS.map(|(name, read)| delay::curve(sweep, (unit, name), read));
    let half = figure(
        half,
        "How long half of the datagrams take at most",
        "From the time that a datagram bears to the receiver's program, the median of the trials.",
    );
    let most = figure(
        most,
        "How long 99 of 100 datagrams take at most",
        "The same of the slow ones.",
    );
    let beside = figure(
        beside,
        "What a program beside the receiver gets at each load",
        "The share of the receiver's core that a program gets which computes there, in runs of their own.",
    );
    let figures = [delivered, cost, half, most, beside];
    figures.into_iter().flatten().collect()
}

/// Delays that are drawn, and how they are read.
const DELAYS: [(&str, Read); 2] = [
    ("one-way delay p50, us", |point| {
        Some(point.one_way_p50_ns? / 1e3)
    }),
    ("one-way delay p99, us", |point| {
        Some(point.one_way_p99_ns? / 1e3)
    }),
];

/// A drawing, and its figures as a table.
struct Drawn {
    svg: String,
    rows: Vec<Vec<String>>,
}

/// The curve of each setting that has points: offered, and the figure.
fn series_of(sweep: &Sweep, read: Read) -> Vec<Series<'_>> {
    let names = sweep.settings.iter().map(|one| one.setting.as_str());
    let names: Vec<&str> = names.collect();
    let looks = looks(&names).into_iter();
    let each = sweep.settings.iter().zip(looks);
    each.map(|(setting, look)| {
        let points = setting.points.iter();
        let points = points.filter_map(|point| Some((point.offered_per_second?, read(point)?)));
        Series {
            name: &setting.setting,
            look,
            points: points.collect(),
        }
    })
    .collect()
}

/// The figures of curves as a table.
fn rows_of(series: &[Series<'_>]) -> Vec<Vec<String>> {
    let rows = series.iter().map(|one| {
        let pairs = one.points.iter();
        let pairs: Vec<String> = pairs
            .map(|(offered, value)| format!("{}: {}", figure(*offered), figure(*value)))
            .collect();
        vec![String::from(one.name), pairs.join("; ")]
    });
    rows.collect()
}

/// A figure against what was offered; `None` when no rate has it.
fn curve(sweep: &Sweep, (unit, name): (&str, &str), read: Read) -> Option<Drawn> {
    let series = series_of(sweep, read);
    let all = || series.iter().flat_map(|one| &one.points);
    let most = |of: fn(&(f64, f64)) -> f64| all().map(of).reduce(f64::max);
    let frame = scatter::frame(Axis::up_to(most(|it| it.0)?), Axis::up_to(most(|it| it.1)?));
    let frame = Frame {
        top: plot::above_diagonal(LETTERS),
        ..frame
    };
    let title = format!("{}: {name} against what was offered", sweep.sweep);
    let mut svg = scatter::begin(
        &title,
        &frame,
        (&format!("offered, {unit}"), name),
        series.len(),
    );
    if name.starts_with("delivered") {
        plot::diagonal(&mut svg, &frame);
    }
    for one in &series {
        let points = frame.points(one.points.iter().copied());
        svg += &format!(
            "<polyline points=\"{points}\" {}/>\n",
            plot::stroke(one.look.colour)
        );
    }
    scatter::end(&mut svg, &frame, &series);
    let rows = rows_of(&series);
    Some(Drawn { svg, rows })
}
