//! A sweep: offered against delivered at each rate, the greatest rate held, and CPU time at a fixed load.
//!
//! What must hold: both ways of comparing settings stand side by side; a sender that was too slow is never shown as
//! a limit of what receives.

use nicpoll_model::{Sweep, SweepEnd, SweepPoint, SweptSetting, WorkUnit};

use super::page::{Align, Ink, Page, Row};
use crate::numbers::{MISSING, count, figure};

/// Width of the names at the left.
const LABEL: usize = 22;

/// Writes one sweep.
pub fn write(page: &mut Page, sweep: &Sweep) {
    let (many, one) = match sweep.unit {
        WorkUnit::Transactions => ("requests", "transaction"),
        _ => ("packets", "packet"),
    };
    page.heading(&format!(
        "{}: offered against delivered, {many} a second (medians)",
        sweep.sweep
    ));
    let columns: Vec<&Column> = COLUMNS.iter().filter(|one| one.is_shown(sweep)).collect();
    let heads = columns.iter().map(|one| String::from(one.head));
    let mut rows = vec![Row::new("asked", heads.collect(), Ink::Strong)];
    let points = sweep.settings.first().map_or(0, |one| one.points.len());
    for index in 0..points {
        for setting in &sweep.settings {
            if let Some(point) = setting.points.get(index) {
                rows.push(row(setting, point, &columns));
            }
        }
    }
    page.table(&rows, LABEL, Align::Right);
    page.blank();
    let held: Vec<String> = sweep.settings.iter().map(held).collect();
    page.paragraph(
        Ink::Plain,
        &format!(
            "Greatest rate held, with 99 % of it delivered: {}.",
            held.join("; ")
        ),
    );
    page.paragraph(Ink::Plain, &at_fixed_load(sweep, one));
    let mut points = sweep.settings.iter().flat_map(|one| &one.points);
    if points.any(|point| point.spinner_ratio.is_some()) {
        page.paragraph(
            Ink::Plain,
            "p99: 99 of 100 took no longer from sending to the receiver's program. beside it: the share of the \
             receiver's core that another program got, in a run of its own.",
        );
    }
}

/// A column of the table.
struct Column {
    head: &'static str,
    /// Whether it is left out where no rate has its figure.
    is_optional: bool,
    read: fn(&SweepPoint) -> Option<String>,
}

const COLUMNS: [Column; 6] = [
    Column::always("offered", |point| point.offered_per_second.map(figure)),
    Column::always("delivered", |point| point.delivered_per_second.map(figure)),
    Column::always("arrived", |point| {
        let share = point.delivered_ratio.map(|ratio| 100.0 * ratio);
        share.map(|share| format!("{share:.1} %"))
    }),
    Column::always("CPU each, us", |point| {
        point.busy_ns_per_packet.map(|ns| figure(ns / 1e3))
    }),
    Column::where_measured("p99, us", |point| {
        point.one_way_p99_ns.map(|ns| figure(ns / 1e3))
    }),
    Column::where_measured("beside it", |point| {
        let share = point.spinner_ratio.map(|ratio| 100.0 * ratio);
        share.map(|share| format!("{share:.0} %"))
    }),
];

impl Column {
    const fn always(head: &'static str, read: fn(&SweepPoint) -> Option<String>) -> Self {
        Column {
            head,
            is_optional: false,
            read,
        }
    }

    const fn where_measured(head: &'static str, read: fn(&SweepPoint) -> Option<String>) -> Self {
        Column {
            is_optional: true,
            ..Column::always(head, read)
        }
    }

    fn is_shown(&self, sweep: &Sweep) -> bool {
        let mut points = sweep.settings.iter().flat_map(|one| &one.points);
        !self.is_optional || points.any(|point| (self.read)(point).is_some())
    }
}

fn row(setting: &SweptSetting, point: &SweepPoint, columns: &[&Column]) -> Row {
    let is_held = setting
        .held_per_second
        .is_some_and(|held| point.asked_per_second <= held);
    let cell = |column: &&Column| (column.read)(point).unwrap_or_else(|| String::from(MISSING));
    let cells = columns.iter().map(cell).collect();
    let label = format!("{} {}", count(point.asked_per_second), setting.setting);
    let ink = if is_held { Ink::Plain } else { Ink::Unsure };
    Row::new(label, cells, ink)
}

/// The greatest rate that a setting holds, and why no more.
fn held(setting: &SweptSetting) -> String {
    let name = &setting.setting;
    let why = match setting.ended_by {
        SweepEnd::Loss => "more is lost above it",
        SweepEnd::Sender => "the sender did not reach the next rate",
        SweepEnd::Sweep => "no higher rate was asked for",
        SweepEnd::NoResult => "the next rate gave no result",
    };
    match (setting.held_per_second, setting.ended_by) {
        (Some(rate), SweepEnd::Loss) => format!("{name} {} ({why})", count(rate)),
        (Some(rate), _) => format!("{name} at least {} ({why})", count(rate)),
        (None, SweepEnd::Loss) => format!("{name} none (more is lost at the lowest rate)"),
        (None, _) => format!("{name} not known ({why})"),
    }
}

fn at_fixed_load(sweep: &Sweep, one: &str) -> String {
    let Some(rate) = sweep.fixed_load_per_second else {
        return String::from(
            "CPU time at a fixed load is not compared: no rate of the sweep is half of what every setting holds, or \
             less.",
        );
    };
    let times = sweep.settings.iter().map(|setting| {
        let time = setting.fixed_load_busy_ns_per_packet;
        let time = time.map_or_else(
            || String::from("not measured"),
            |ns| format!("{} us", figure(ns / 1e3)),
        );
        format!("{} {time}", setting.setting)
    });
    let times: Vec<String> = times.collect();
    format!(
        "CPU time a {one} at the same load, {} a second: {}.",
        count(rate),
        times.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(name: &str, held: Option<u64>, ended_by: SweepEnd) -> SweptSetting {
        let point = |asked: u64, ratio: f64| SweepPoint {
            workload: format!("udp64@{asked}"),
            asked_per_second: asked,
            offered_per_second: Some(asked as f64),
            delivered_per_second: Some(asked as f64 * ratio),
            delivered_ratio: Some(ratio),
            busy_ns_per_packet: Some(3100.0),
            one_way_p50_ns: None,
            one_way_p99_ns: None,
            spinner_ratio: None,
            trials: 3,
        };
        SweptSetting {
            setting: String::from(name),
            held_per_second: held,
            ended_by,
            fixed_load_busy_ns_per_packet: Some(3100.0),
            points: vec![point(20_000, 1.0), point(40_000, 0.8)],
        }
    }

    #[test]
    fn both_ways_of_comparing_stand_below_the_table() {
        let sweep = Sweep {
            sweep: String::from("udp64"),
            unit: WorkUnit::Datagrams,
            fixed_load_per_second: Some(20_000),
            settings: vec![
                setting("interrupt", Some(20_000), SweepEnd::Loss),
                setting("polling", Some(40_000), SweepEnd::Sender),
            ],
        };
        let mut page = Page::new(80, false);
        write(&mut page, &sweep);
        let text = page.into_text();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.len() <= 80), "{text}");
        assert!(lines[2].contains("20,000 interrupt"), "{text}");
        assert!(lines[4].contains("40,000 interrupt") && lines[4].contains("80.0 %"));
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "interrupt 20,000 (more is lost above it); polling at least 40,000 (the sender did not reach",
            "CPU time a packet at the same load, 20,000 a second: interrupt 3.10 us; polling 3.10 us.",
        ] {
            assert!(flat.contains(words), "{words}: {text}");
        }
    }
}
