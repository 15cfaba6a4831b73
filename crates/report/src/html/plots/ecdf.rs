//! How the round trips, or the one-way delays, of each setting are distributed: the share at or below each time.
//!
//! What must hold: all times of the trials that count are in it. The scale of the shares gives each further nine
//! the same room, since the rare long ones are what is asked about.

use nicpoll_model::{Study, TimeDistribution, TrialFigures, WorkloadFacts};

use super::scatter::{self, BOTTOM, Series, TOP, looks};
use super::setting_names;
use crate::figures::Group;
use crate::html::figure::Figure;
use crate::numbers::{MISSING, figure};
use crate::plot::{self, LEFT, LETTERS, LogAxis, Look, RIGHT, short, text};

/// Shares with a line of their own, and in the table.
const SHARES: [(&str, f64); 7] = [
    ("0 %", 0.0),
    ("50 %", 0.5),
    ("90 %", 0.9),
    ("99 %", 0.99),
    ("99.9 %", 0.999),
    ("99.99 %", 0.9999),
    ("99.999 %", 0.99999),
];

/// Times of which the distribution is drawn.
struct Times {
    /// What the axis calls one.
    name: &'static str,
    /// What the table calls several.
    names: &'static str,
    /// What heads the plot.
    title: &'static str,
    caption: &'static str,
    of: fn(&TrialFigures) -> Option<&TimeDistribution>,
}

const ROUND_TRIPS: Times = Times {
    name: "round trip",
    names: "round trips",
    title: "Round trips: the share at or below each time",
    caption: "All round trips of the trials together.",
    of: |figures| figures.round_trip_distribution.as_ref(),
};

const ONE_WAY: Times = Times {
    name: "one-way delay",
    names: "datagrams",
    title: "One-way delay: the share at or below each time",
    caption: "From the time that a datagram bears to the receiver's program, all datagrams of the trials together.",
    of: |figures| figures.one_way_delays.as_ref(),
};

/// The times of one setting.
struct Curve<'a> {
    name: &'a str,
    look: Look,
    all: TimeDistribution,
}

impl Curve<'_> {
    fn samples(&self) -> u64 {
        self.all.entries.iter().sum()
    }

    /// Shares that so many round trips can tell: one of them lies beyond.
    fn tells(&self, share: f64) -> bool {
        (1.0 - share) * self.samples() as f64 >= 1.0
    }

    /// The time that a share does not exceed, in microseconds, to the width of a bucket.
    fn at(&self, share: f64) -> Option<f64> {
        self.all.quantile_ns(share).map(|ns| ns as f64 / 1e3)
    }
}

/// The distribution of a workload's round trips; `None` when the trials hold none.
pub fn round_trips(study: &Study, facts: &WorkloadFacts) -> Option<Figure> {
    plot(study, facts, &ROUND_TRIPS)
}

/// The distribution of the one-way delays of a workload's datagrams; `None` when the trials hold none.
pub fn one_way(study: &Study, facts: &WorkloadFacts) -> Option<Figure> {
    plot(study, facts, &ONE_WAY)
}

fn plot(study: &Study, facts: &WorkloadFacts, times: &Times) -> Option<Figure> {
    let groups = Group::of_workload(study, &facts.workload);
    let names = setting_names(study);
    let curves: Vec<Curve> = groups
        .iter()
        .zip(names.iter().zip(looks(&names)))
        .filter_map(|(group, (name, look))| {
            let each = group.results();
            let each = each.filter_map(|figures| (times.of)(figures).cloned());
            let all = each.reduce(|sum, other| sum.and(&other))?;
            Some(Curve { name, look, all })
        })
        .collect();
    curves.first()?;
    let told = || {
        let is_told = |share: &f64| curves.iter().any(|one| one.tells(*share));
        SHARES.into_iter().filter(move |(_, share)| is_told(share))
    };
    let head = [String::from("setting, us"), String::from(times.names)];
    let shares = told().skip(1).map(|(name, _)| String::from(name));
    let row = |one: &Curve| {
        let cell = |(_, share): (&str, f64)| {
            let time = one.at(share).filter(|_| one.tells(share));
            time.map_or(String::from(MISSING), figure)
        };
        let name = [String::from(one.name), one.samples().to_string()];
        name.into_iter().chain(told().skip(1).map(cell)).collect()
    };
    Some(Figure {
        title: String::from(times.title),
        caption: format!(
            "{} The further left, the better. Each further nine has the same room, so that the rare long ones can be \
             seen.",
            times.caption
        ),
        svg: drawn(
            (&facts.workload, times),
            &curves,
            &told().collect::<Vec<_>>(),
        ),
        head: head.into_iter().chain(shares).collect(),
        rows: curves.iter().map(row).collect(),
    })
}

/// Where a share stands: at how many nines.
fn nines(share: f64) -> f64 {
    -(1.0 - share).max(1e-12).log10()
}

fn drawn((workload, times): (&str, &Times), curves: &[Curve], shares: &[(&str, f64)]) -> String {
    let ends = || curves.iter().flat_map(|one| one.all.below_ns.iter());
    let us = |ns: Option<&u64>| ns.map_or(1.0, |ns| *ns as f64 / 1e3);
    let axis = LogAxis::over(us(ends().min()), us(ends().max()));
    let most = curves.iter().map(Curve::samples).max().unwrap_or(1);
    let top = (most.max(10) as f64).log10();
    let x = |us: f64| LEFT + (RIGHT - LEFT) * axis.share(us);
    let y = |share: f64| BOTTOM - (BOTTOM - TOP) * (nines(share) / top).min(1.0);
    let title = format!(
        "{workload}: the share of {} at or below each time",
        times.names
    );
    let mut svg = plot::drawing(scatter::height(curves.len()), &title);
    for tick in axis.decades(0.09) {
        plot::line(&mut svg, (x(tick), TOP), (x(tick), BOTTOM), false);
        let place = (x(tick), BOTTOM + 22.0);
        text(&mut svg, place, "middle", LETTERS, &short(tick));
    }
    for (name, share) in shares {
        let is_first = *share == 0.0;
        plot::line(&mut svg, (LEFT, y(*share)), (RIGHT, y(*share)), is_first);
        // Below a half there is no room for a name.
        if !is_first {
            let place = (LEFT - 4.0, y(*share) + 6.0);
            text(&mut svg, place, "end", LETTERS, &name.replace(' ', ""));
        }
    }
    let place = (f64::midpoint(LEFT, RIGHT), BOTTOM + 46.0);
    let name = format!("{}, us", times.name);
    text(&mut svg, place, "middle", LETTERS, &name);
    for one in curves {
        let mut points = String::new();
        let mut below = 0.0;
        for (end, share) in one.all.shares_below() {
            let at = x(end as f64 / 1e3);
            points += &format!("{at:.1},{:.1} {at:.1},{:.1} ", y(below), y(share));
            below = share;
        }
        let stroke = plot::stroke(one.look.colour);
        svg += &format!("<polyline points=\"{}\" {stroke}/>\n", points.trim_end());
    }
    let legend = curves.iter().map(|one| Series {
        name: one.name,
        look: one.look,
        points: Vec::new(),
    });
    scatter::legend(&mut svg, &legend.collect::<Vec<_>>());
    svg + plot::END
}
