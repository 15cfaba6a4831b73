//! A sweep as a table and as CSV.

use std::fmt::Write;

use nicpoll_model::sim::{SIM_PLACES, SimPlan, SimPoint, SimSweep};

use super::delivered_unit;
use crate::line_rates::aligned;
use crate::numbers::{MISSING, figure};

/// A sweep as a table: a row for each value, a column for each discipline.
pub fn render_sim_sweep(sweep: &SimSweep) -> String {
    let Some(first) = sweep.points.first() else {
        return String::from("No points in this part of the sweep.\n");
    };
    let plan = &first.plan;
    let mut text = format!(
        "Simulated, not measured: host {}, {}, {} s of virtual time after {} s of warm-up, seed {}.\n\
         Delivered {} by {}.\n\n",
        host(plan),
        sweep.workload,
        plan.seconds,
        plan.warmup_seconds,
        plan.seed,
        delivered_unit(&sweep.workload),
        axis(&sweep.parameter)
    );
    let disciplines = disciplines(sweep);
    let mut names = vec![sweep.parameter.clone()];
    names.extend(disciplines.iter().map(|name| String::from(*name)));
    let mut lines = vec![names];
    for value in values(sweep) {
        let mut cells = vec![plain(value)];
        cells.extend(disciplines.iter().map(|discipline| {
            let at = |point: &&SimPoint| {
                point.value == value && self::discipline(&point.plan) == *discipline
            };
            let point = sweep.points.iter().find(at);
            point.map_or_else(
                || String::from(MISSING),
                |point| figure(point.figures.delivered_pps),
            )
        }));
        lines.push(cells);
    }
    text.push_str(&aligned(&lines));
    text
}

/// A sweep as CSV: a line for each point, with a line of names first.
pub fn sweep_as_csv(sweep: &SimSweep) -> String {
    let mut text = format!(
        "host,discipline,workload,seed,seconds,{},offered_pps,delivered_pps,loss_ratio,user,system,\
         interrupt,soft_interrupt,idle,interrupts,context_switches,latency_p50_ns,latency_p99_ns,jitter_ns",
        sweep.parameter
    );
    for place in SIM_PLACES {
        let _ = write!(text, ",lost_{}", place.key());
    }
    text.push('\n');
    for point in &sweep.points {
        csv_line(&mut text, point);
    }
    text
}

fn csv_line(text: &mut String, point: &SimPoint) {
    let (plan, figures) = (&point.plan, &point.figures);
    let Some(host_figures) = figures.hosts.first() else {
        return;
    };
    let cpu = &host_figures.cpu;
    let optional = |value: Option<f64>| value.map(plain).unwrap_or_default();
    let ns = |value: Option<u64>| value.map(|ns| ns.to_string()).unwrap_or_default();
    let mut cells = vec![
        quoted(host(plan)),
        quoted(discipline(plan)),
        quoted(&plan.workload),
        plan.seed.to_string(),
        plain(plan.seconds),
        plain(point.value),
        plain(figures.offered_pps),
        plain(figures.delivered_pps),
        optional(figures.loss_ratio),
    ];
    cells.extend(
        [
            cpu.user,
            cpu.system,
            cpu.interrupt,
            cpu.soft_interrupt,
            cpu.idle,
        ]
        .map(plain),
    );
    cells.push(host_figures.interrupts.to_string());
    cells.push(host_figures.context_switches.to_string());
    cells.push(ns(figures.latency.p50_ns));
    cells.push(ns(figures.latency.p99_ns));
    cells.push(optional(figures.jitter_ns));
    let losses = SIM_PLACES.map(|place| figures.ledger.lost_in(place).to_string());
    cells.extend(losses);
    text.push_str(&cells.join(","));
    text.push('\n');
}

/// A number without separators, as short as it reads back the same.
fn plain(value: f64) -> String {
    value.to_string()
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        String::from(cell)
    }
}

/// The parameter as an axis is named.
pub(super) fn axis(parameter: &str) -> String {
    match parameter {
        "offered" => String::from("offered packets/s"),
        other => String::from(other),
    }
}

/// The host of a sweep's run, which has but one.
pub(super) fn host(plan: &SimPlan) -> &str {
    plan.hosts.first().map_or("", |stop| &stop.host)
}

/// Its discipline.
pub(super) fn discipline(plan: &SimPlan) -> &str {
    plan.hosts.first().map_or("", |stop| &stop.discipline)
}

/// In the order of the points.
pub(super) fn disciplines(sweep: &SimSweep) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for point in &sweep.points {
        let name = discipline(&point.plan);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Every value of the parameter once, the least first.
fn values(sweep: &SimSweep) -> Vec<f64> {
    let mut values: Vec<f64> = sweep.points.iter().map(|point| point.value).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}
