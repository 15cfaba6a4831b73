//! Round trips of each setting, from the shortest to the longest.

use nicpoll_model::{RoundTripQuantiles, Study, WorkloadFacts};

use super::scatter::{self, BOTTOM, Series, TOP, looks};
use super::setting_names;
use super::trials::median;
use crate::figures::Group;
use crate::html::figure::Figure;
use crate::numbers::figure;
use crate::plot::{self, LEFT, LETTERS, LogAxis, RIGHT, mark, short, text};

/// A quantile: its name, and how it is read, in nanoseconds.
type Quantile = (&'static str, fn(&RoundTripQuantiles) -> Option<u64>);

const QUANTILES: [Quantile; 5] = [
    ("least", |trips| trips.min_ns),
    ("50 %", |trips| trips.p50_ns),
    ("99 %", |trips| trips.p99_ns),
    ("99.9 %", |trips| trips.p999_ns),
    ("most", |trips| trips.max_ns),
];

/// The quantiles of a workload; `None` when it measured no round trips.
pub fn plot(study: &Study, facts: &WorkloadFacts) -> Option<Figure> {
    let groups = Group::of_workload(study, &facts.workload);
    let names = setting_names(study);
    let series: Vec<Series> = groups
        .iter()
        .zip(names.iter().zip(looks(&names)))
        .filter_map(|(group, (name, look))| {
            let points = quantiles(group)?;
            Some(Series { name, look, points })
        })
        .collect();
    series.first()?;
    let rows = series.iter().map(|one| {
        let values = one.points.iter().map(|(_, value)| figure(*value));
        [String::from(one.name)].into_iter().chain(values).collect()
    });
    let quantiles = QUANTILES.map(|(name, _)| String::from(name));
    Some(Figure {
        title: String::from("Round trips, from the shortest to the longest"),
        caption: String::from(
            "Each mark is the median over the trials of that quantile. A trial keeps five quantiles and not every \
             round trip, so the lines between them only lead the eye.",
        ),
        svg: drawn(
            &format!("{}: quantiles of the round trip", facts.workload),
            &series,
        ),
        rows: rows.collect(),
        head: [String::from("setting, us")]
            .into_iter()
            .chain(quantiles)
            .collect(),
    })
}

/// The medians of the quantiles over the trials, in microseconds, each with its number.
fn quantiles(group: &Group) -> Option<Vec<(f64, f64)>> {
    let trips: Vec<RoundTripQuantiles> = group
        .results()
        .filter_map(|figures| Some(figures.round_trip?.quantiles))
        .collect();
    let quantiles = QUANTILES.iter().enumerate();
    quantiles
        .map(|(index, (_, read))| {
            let known = trips.iter().filter_map(read);
            let values = known.map(|ns| ns as f64 / 1e3).collect();
            Some((index as f64, median(values)?))
        })
        .collect()
}

fn drawn(title: &str, series: &[Series]) -> String {
    let all = || {
        series
            .iter()
            .flat_map(|one| &one.points)
            .map(|(_, value)| *value)
    };
    let axis = LogAxis::over(
        all().fold(f64::INFINITY, f64::min),
        all().fold(0.0, f64::max),
    );
    let x = |index: f64| LEFT + 24.0 + (RIGHT - LEFT - 60.0) * index / 4.0;
    let y = |value: f64| BOTTOM - (BOTTOM - TOP) * axis.share(value);
    let mut svg = plot::drawing(scatter::height(series.len()), title);
    for tick in axis.decades(0.09) {
        plot::line(&mut svg, (LEFT, y(tick)), (RIGHT, y(tick)), false);
        text(
            &mut svg,
            (LEFT - 8.0, y(tick) + 6.0),
            "end",
            LETTERS,
            &short(tick),
        );
    }
    plot::line(&mut svg, (LEFT, BOTTOM), (RIGHT, BOTTOM), true);
    for (index, (name, _)) in QUANTILES.iter().enumerate() {
        text(
            &mut svg,
            (x(index as f64), BOTTOM + 22.0),
            "middle",
            LETTERS,
            name,
        );
    }
    scatter::names(
        &mut svg,
        "share of the round trips at or below",
        "round trip, us",
    );
    for one in series {
        let places = one
            .points
            .iter()
            .map(|(index, value)| (x(*index), y(*value)));
        let points: Vec<String> = places
            .clone()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        svg += &format!(
            "<polyline points=\"{}\" {}/>\n",
            points.join(" "),
            plot::stroke(one.look.colour)
        );
        for place in places {
            mark(&mut svg, one.look, place);
        }
    }
    scatter::legend(&mut svg, series);
    svg + plot::END
}
