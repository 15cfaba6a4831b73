//! Readings of clock ticks that sample a load in step with them, as text and as a plot.

use std::fmt::Write;

use nicpoll_model::cpu::{SimTicks, TickReading, TickShares};

use nicpoll_model::numbers::{MISSING, figure, time_figure};

use super::run::{item, percent, template};
use crate::fields::{filled, filled_lines, stated_or_missing};
use crate::plots::chart::{Chart, Curve, Panel, plot_chart};

/// Renders the load, the sampled figures, and the period of their error.
pub fn render_sim_ticks(ticks: &SimTicks) -> String {
    let mut text = format!("Simulated, not measured: {}.\n\n", facts(ticks));
    text += &filled_lines(template("ticks"), ticks);
    let mut tell = |name: &str, template: &str| item(&mut text, name, &filled(template, ticks));
    let [kernel, user] = [
        range(ticks, |it| it.kernel_ratio),
        range(ticks, |it| it.user_ratio),
    ];
    let points = "off by up to {reading_error_max_ratio:*100} points";
    tell(
        "sampled",
        &format!("kernel {kernel}, user {user}; {points}"),
    );
    let by_arithmetic = stated_or_missing(ticks, "{period_seconds} s");
    let found = stated_or_missing(ticks, "{period_found_seconds} s");
    let within = match ticks.period_found_seconds {
        Some(_) => ", to within one",
        None => "",
    };
    let period = format!("{by_arithmetic} by arithmetic; {found} in the readings{within}");
    tell("comes round", &period);
    let whole = &ticks.whole;
    let off = figure(100.0 * whole.sampled.distance(&whole.exact));
    let sampled = template("whole");
    tell("on average", &format!("{sampled}; off by {off} points"));
    if ticks.period_seconds.is_none() {
        text.push_str("Without drift every reading is wrong in the same way, however long.\n");
    } else if ticks.period_found_seconds.is_none() {
        let _ = writeln!(
            text,
            "{MISSING}: the readings show no period. They must come round twice, be shorter than half of \
             it, and move by more than two ticks."
        );
    }
    text
}

fn facts(ticks: &SimTicks) -> String {
    format!(
        "a pulse of work every {}, {} ticks a second, clocks {} PPM apart, readings of {} s",
        time_figure(Some((ticks.pulse_seconds * 1e9).round() as u64)),
        ticks.ticks_per_second,
        ticks.drift_ppm,
        ticks.reading_seconds
    )
}

fn range(ticks: &SimTicks, of: fn(&TickShares) -> f64) -> String {
    let figures = || ticks.readings.iter().map(|reading| of(&reading.sampled));
    format!(
        "{} to {}",
        percent(figures().fold(1.0, f64::min)),
        percent(figures().fold(0.0, f64::max))
    )
}

/// Plots the same as an SVG document.
pub fn plot_ticks(ticks: &SimTicks) -> String {
    let curve =
        |name: &str, shares: fn(&TickReading) -> &TickShares, of: fn(&TickShares) -> f64| {
            let readings = ticks.readings.iter();
            let points = readings.map(|it| (it.end_seconds, 100.0 * of(shares(it))));
            Curve {
                name: String::from(name),
                points: points.collect(),
            }
        };
    let panel = |name: &str, of: fn(&TickShares) -> f64| Panel {
        y_name: format!("{name}, % of the CPU"),
        curves: vec![
            curve("sampled at ticks", |reading| &reading.sampled, of),
            curve("exact", |reading| &reading.exact, of),
        ],
    };
    plot_chart(&Chart {
        title: String::from("The same load, as clock ticks sample it and exactly"),
        facts: format!("simulated: {}", facts(ticks)),
        x_name: String::from("seconds"),
        panels: vec![
            panel("kernel", |shares| shares.kernel_ratio),
            panel("user", |shares| shares.user_ratio),
        ],
    })
}
