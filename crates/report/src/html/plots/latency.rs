//! Round trips of each setting, from the shortest to the longest.

use nicpoll_model::{RoundTrip, Study, WorkloadFacts};

use super::trials::median;
use crate::figures::Group;
use crate::html::figure::Figure;
use crate::numbers::figure;
use crate::plot::{self, LEFT, LETTERS, LogAxis, Look, RIGHT, mark, short, text};

/// Height of the area of the curves.
const AREA: f64 = 250.0;
/// A line of the legend.
const LINE: f64 = 24.0;

/// A quantile: its name, and how it is read, in nanoseconds.
type Quantile = (&'static str, fn(&RoundTrip) -> u64);

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
    let curves: Vec<Option<[f64; 5]>> = groups.iter().map(quantiles).collect();
    let all = || curves.iter().flatten().flatten().copied();
    all().next()?;
    let axis = LogAxis::over(
        all().fold(f64::INFINITY, f64::min),
        all().fold(0.0, f64::max),
    );
    let names: Vec<&str> = study
        .settings
        .iter()
        .map(|it| it.setting.as_str())
        .collect();
    let colours = plot::colours(&names);
    let (top, bottom) = (14.0, 14.0 + AREA);
    let x = |index: usize| LEFT + 24.0 + (RIGHT - LEFT - 60.0) * index as f64 / 4.0;
    let y = |value: f64| bottom - AREA * axis.share(value);
    let height = bottom + 62.0 + LINE * names.len() as f64;
    let mut svg = plot::drawing(
        height,
        &format!("{}: quantiles of the round trip", facts.workload),
    );
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
    plot::line(&mut svg, (LEFT, bottom), (RIGHT, bottom), true);
    for (index, (name, _)) in QUANTILES.iter().enumerate() {
        text(&mut svg, (x(index), bottom + 22.0), "middle", LETTERS, name);
    }
    plot::upright(&mut svg, (20, f64::midpoint(top, bottom)), "round trip, us");
    let middle = f64::midpoint(LEFT, RIGHT);
    text(
        &mut svg,
        (middle, bottom + 46.0),
        "middle",
        LETTERS,
        "share of the round trips at or below",
    );
    for (index, curve) in curves.iter().enumerate() {
        let look = Look {
            colour: colours[index],
            mark: index,
        };
        if let Some(curve) = curve {
            let places: Vec<(f64, f64)> = curve
                .iter()
                .enumerate()
                .map(|(at, value)| (x(at), y(*value)))
                .collect();
            let points: Vec<String> = places
                .iter()
                .map(|(x, y)| format!("{x:.1},{y:.1}"))
                .collect();
            svg += &format!(
                "<polyline points=\"{}\" {}/>\n",
                points.join(" "),
                plot::stroke(look.colour)
            );
            for place in places {
                mark(&mut svg, look, place);
            }
        }
        let at = bottom + 68.0 + LINE * index as f64;
        mark(&mut svg, look, (LEFT + 6.0, at));
        text(
            &mut svg,
            (LEFT + 20.0, at + 6.0),
            "start",
            LETTERS,
            names[index],
        );
    }
    svg += plot::END;
    let rows = names.iter().zip(&curves).filter_map(|(name, curve)| {
        let values = (*curve)?.map(figure);
        Some([vec![String::from(*name)], values.to_vec()].concat())
    });
    Some(Figure {
        title: String::from("Round trips, from the shortest to the longest"),
        caption: String::from(
            "Each mark is the median over the trials of that quantile. A trial keeps five quantiles and not every \
             round trip, so there is nothing between them.",
        ),
        svg,
        rows: rows.collect(),
        head: [
            vec![String::from("setting, us")],
            QUANTILES.map(|(name, _)| String::from(name)).to_vec(),
        ]
        .concat(),
    })
}

/// The medians of the quantiles over the trials, in microseconds.
fn quantiles(group: &Group) -> Option<[f64; 5]> {
    let trips: Vec<RoundTrip> = group
        .results()
        .filter_map(|figures| figures.round_trip)
        .collect();
    trips.first()?;
    Some(QUANTILES.map(|(_, read)| {
        let values = trips.iter().map(|trips| read(trips) as f64 / 1e3).collect();
        median(values).unwrap_or_default()
    }))
}
