//! The plots of a workload.
//!
//! Each draws only figures of the trials. A plot that would be empty is left out.

use std::collections::BTreeMap;
use std::fmt::Write;

use nicpoll_model::numbers::{MISSING, aligned, count, figure, figure_or_missing, percent};
use nicpoll_model::sim::{Simulated, SimulatedFigure};
use nicpoll_model::{
    CpuStates, Metric, MetricKind, Study, TimeDistribution, TrialFigures, WorkUnit, WorkloadFacts,
};

use super::answer::intervals;
use super::trials::{FigureOf, SettingPair, StudyArm, TrialGroup, arms};
use super::within;
use super::workload::{AccountLine, Sums, account_unit, core_name, cores, cores_of, source};
use crate::lists::{capital, joined};
use crate::page::{Figure, IntervalBar};
use crate::plots::axis::{Axis, SHARES};
use crate::plots::curves::{Curves, Marks, scatter, values};
use crate::plots::strips::{LINE, Strips};
use crate::plots::svg::{self, CurveLook, LETTERS, mark, text};

/// Note for an axis on which lengths cannot be compared.
const CUT: &str = " The axis does not begin at 0.";
/// Height of a strip of marks.
const STRIP: f64 = 34.0;

/// Returns a caption, with a note if its axis is cut.
pub fn caption(text: impl Into<String>, axis: &Axis) -> String {
    let cut = if axis.is_from_zero() { "" } else { CUT };
    text.into() + cut
}

/// A figure of a trial: its name with its unit, a function that reads it, and the unit's size in that of the reading.
#[derive(Clone, Copy)]
struct TrialFigure(&'static str, FigureOf, f64);

/// Counters of a trial that are drawn unchanged.
const EVENTS: [TrialFigure; 3] = [
    TrialFigure(
        "interrupts a second, whole machine",
        |it| it.interrupts_per_second,
        1.0,
    ),
    TrialFigure(
        "context switches a second, whole machine",
        |it| Some(it.context_switches_per_second),
        1.0,
    ),
    TrialFigure("polls a second, receiver", |it| it.polls_per_second, 1.0),
];

impl TrialFigure {
    /// Returns the judged rate of a workload, in a unit that suits the greatest one.
    fn rate(facts: &WorkloadFacts, arms: &[StudyArm]) -> Self {
        if facts.unit == WorkUnit::Transactions {
            let read: FigureOf = |it| Some(it.round_trip?.transactions_per_second);
            return TrialFigure("transactions a second", read, 1.0);
        }
        let read: FigureOf = |it| Some(it.delivered_bits_per_second);
        let greatest = arms.iter().filter_map(|arm| arm.group.range(read));
        match greatest.map(|(_, most)| most).fold(0.0, f64::max) >= 1e9 {
            true => TrialFigure("delivered, Gbit/s of payload", read, 1e9),
            false => TrialFigure("delivered, Mbit/s of payload", read, 1e6),
        }
    }

    /// Returns the figure of a trial, in the unit of its name; `None` if it was not measured.
    fn of(&self, figures: &TrialFigures) -> Option<f64> {
        Some((self.1)(figures)? / self.2)
    }
}

/// Returns the plots for which a workload's trials have figures.
pub fn of_workload(study: &Study, facts: &WorkloadFacts) -> Vec<Figure> {
    let arms = arms(study, facts);
    let rate = TrialFigure::rate(facts, &arms);
    let first = [
        each_trial(study, facts, &arms, &rate),
        ratios(study, facts, &arms),
        in_order(study, facts, &arms, &rate),
        within::rates(facts, &arms),
    ];
    let more = [
        distribution(facts, &arms, &ROUND_TRIPS),
        distribution(facts, &arms, &ONE_WAY),
        cpu_time(study, facts, &arms),
        flow(facts, &arms),
        predictions(study, facts, &arms),
    ];
    let events = EVENTS.iter();
    let events = events.map(|event| each_trial(study, facts, &arms, event));
    let first = first.into_iter().flatten();
    first
        .chain(within::core_use(study, facts, &arms))
        .chain(more.into_iter().chain(events).flatten())
        .collect()
}

/// Returns the height of a block's marks: marks of equal value stay apart.
fn lane(block: u32) -> f64 {
    (f64::from(block * 3 % 7) / 6.0 - 0.5) * (STRIP - 8.0)
}

/// Plots every trial as a mark, in a strip for each setting. `None` if no trial has the figure, or it is 0 in all.
fn each_trial(
    study: &Study,
    facts: &WorkloadFacts,
    arms: &[StudyArm],
    reading: &TrialFigure,
) -> Option<Figure> {
    let read = |figures: &TrialFigures| reading.of(figures);
    let ranges = arms.iter().filter_map(|arm| arm.group.range(read));
    let (least, most) = ranges.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))?;
    if most <= 0.0 {
        return None;
    }
    let axis = Axis::around(least, most);
    let mut strips = Strips::new();
    let mut rows = Vec::new();
    for StudyArm { name, look, group } in arms {
        let median = group.median(read);
        let shown = figure_or_missing(median);
        let label = format!("{name}: median {shown} of {} trials", group.good.len());
        let y = strips.next(&label, STRIP);
        let values = group.good.iter().map(|it| it.result().and_then(read));
        for (trial, value) in group.good.iter().zip(values.clone()) {
            let Some(value) = value else { continue };
            let place = (Strips::x(axis.share(value)), y + lane(trial.block));
            mark(&mut strips.svg, *look, place);
        }
        if let Some(median) = median {
            let ends = (y - STRIP / 2.0, y + STRIP / 2.0);
            svg::heavy(&mut strips.svg, Strips::x(axis.share(median)), ends);
        }
        let (least, most) = group.range(read).unzip();
        let ends = [least, most].map(figure_or_missing);
        let [least, most] = ends;
        let values = joined(values.map(figure_or_missing), " ");
        rows.push(vec![String::from(*name), shown, least, most, values]);
    }
    let title = capital(reading.0);
    let named = format!("{}: {title}, every trial by setting", facts.workload);
    let svg = strips.end_with(&named, &axis, reading.0);
    let trials = study.trials.iter();
    let of_workload = trials.filter(|trial| trial.workload == facts.workload);
    let missing = of_workload.filter(|trial| trial.result().is_none()).count();
    let mut text = caption("A mark is a trial, the line their median.", &axis);
    if missing > 0 {
        text += &format!(" Trials without a result, which are not drawn: {missing}.");
    }
    let head = ["setting", "median", "lowest", "highest", "by block"];
    let title = format!("{title}: every trial");
    Some(Figure::new(title, text, svg, head, rows))
}

/// The ratio of a pair by block.
type Ratios = BTreeMap<u32, f64>;

/// Plots the basis of the verdict: the ratio of two settings in each block, and the study's interval. `None` if
/// nothing was compared.
fn ratios(study: &Study, facts: &WorkloadFacts, arms: &[StudyArm]) -> Option<Figure> {
    let workload = &facts.workload;
    let mut pairs = SettingPair::of(study).into_iter();
    let metric = pairs.find_map(|pair| Some(intervals(study, pair, workload).ok()?.first()?.0))?;
    if metric.kind() == MetricKind::Points {
        return None;
    }
    let pairs = SettingPair::of(study).into_iter().filter_map(|pair| {
        let lines = intervals(study, pair, workload).ok()?;
        let (_, line) = lines.into_iter().find(|(own, _)| *own == metric)?;
        let ratios = block_ratios(arms, pair, metric);
        (!ratios.is_empty()).then_some((pair, line, ratios))
    });
    let pairs: Vec<(SettingPair, IntervalBar, Ratios)> = pairs.collect();
    pairs.first()?;
    // The axis holds every dot, every end of an interval, and 1.
    let ends = pairs.iter().filter_map(|(_, line, _)| line.span);
    let ends = ends.flat_map(|span| [span.low, span.high]).flatten();
    let dots = pairs
        .iter()
        .flat_map(|(.., ratios)| ratios.values().copied());
    let all = dots.chain(ends).filter(|ratio| *ratio > 0.0);
    let (least, most) = all.fold((1.0, 1.0), |(least, most): (f64, f64), ratio| {
        (least.min(ratio), most.max(ratio))
    });
    let axis = Axis::ratios(least, most);
    let mut strips = Strips::new();
    for (pair, line, ratios) in &pairs {
        let name = format!("{}: {}, {}", pair.title(study), line.word, line.value);
        let y = strips.next(&name, STRIP);
        let judged = pair.settings()[0].0;
        let arm = arms
            .iter()
            .find(|arm| arm.name == judged)
            .or(arms.first())?;
        strip(&mut strips.svg, line, ratios, &axis, arm.look, y);
    }
    let title = format!(
        "{workload}: ratio of the {} in each block, with the interval",
        metric.measure()
    );
    let rows = pairs.iter().map(|(pair, line, ratios)| {
        let blocks = ratios.values();
        let blocks = joined(blocks.map(|ratio| aligned([*ratio], &[]).concat()), " ");
        vec![pair.head(), line.value.clone(), blocks]
    });
    Some(Figure::new(
        "Block by block: the ratio that is judged",
        "A mark is a block: both settings within the same stretch of time. The bar is the interval, the line across it \
         the estimate. At 1 the two are alike.",
        strips.end_with(&title, &axis, "the first over the second"),
        ["compared", "ratio [interval]", "by block"],
        rows,
    ))
}

/// Returns the ratios of the blocks in which all trials have a result; of several pairs of settings the mean of the
/// logarithms.
fn block_ratios(arms: &[StudyArm], pair: SettingPair, metric: Metric) -> Ratios {
    let of = |setting: &str| -> Ratios {
        let arm = arms.iter().find(|arm| arm.name == setting);
        let trials = arm.into_iter().flat_map(|arm| &arm.group.good);
        trials
            .filter_map(|trial| Some((trial.block, metric.figure(trial.result()?)?)))
            .collect()
    };
    let settings = pair.settings();
    let mut logs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (setting, reference) in &settings {
        let references = of(reference);
        for (block, value) in of(setting) {
            if let Some(reference) = references.get(&block).filter(|it| **it > 0.0) {
                let log = (value / reference).ln();
                logs.entry(block).or_default().push(log);
            }
        }
    }
    let whole = logs
        .into_iter()
        .filter(|(_, logs)| logs.len() == settings.len());
    whole
        .map(|(block, logs)| (block, (logs.iter().sum::<f64>() / logs.len() as f64).exp()))
        .collect()
}

fn strip(
    svg: &mut String,
    line: &IntervalBar,
    ratios: &Ratios,
    axis: &Axis,
    look: CurveLook,
    y: f64,
) {
    let x = |ratio: f64| Strips::x(axis.share(ratio));
    let (top, bottom) = (y - STRIP / 2.0, y + STRIP / 2.0);
    if let Some(span) = line.span {
        let low = span.low.map_or(Strips::x(0.0), x);
        let high = span.high.map_or(Strips::x(1.0), x);
        let _ = writeln!(
            svg,
            "<rect class=\"span\" x=\"{low:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"9\"/>",
            y - 4.5,
            (high - low).max(2.0),
        );
        svg::heavy(svg, x(span.ratio), (top, bottom));
    }
    svg::line(svg, (x(1.0), top), (x(1.0), bottom), true);
    for (block, ratio) in ratios {
        mark(svg, look, (x(*ratio), y + lane(*block)));
    }
}

/// Plots the rate of each trial over its position in the study, which shows changes of the machine.
fn in_order(
    study: &Study,
    facts: &WorkloadFacts,
    arms: &[StudyArm],
    reading: &TrialFigure,
) -> Option<Figure> {
    let series = arms.iter().map(|arm| {
        let good = arm.group.good.iter();
        let points =
            good.filter_map(|it| Some((f64::from(it.sequence), reading.of(it.result()?)?)));
        Marks::of(arm.name, arm.look, points.collect())
    });
    let series: Vec<Marks> = series.collect();
    let y = Axis::around_all(values(&series))?;
    let name = reading.0;
    let title = format!("{}: {name} against the order of trials", facts.workload);
    let x = Axis::up_to(study.trials.len() as f64);
    let x = (x, "number of the trial in the study");
    let rows = series
        .iter()
        .map(|one| one.row(|number| number.to_string()));
    let drift = "A drift or a step is the machine's, not a setting's: blocks even it out.";
    Some(Figure::new(
        format!("{} in the order of the trials", capital(name)),
        caption(drift, &y),
        scatter(&title, x, (y, name), &series),
        ["setting", "trial: value"],
        rows,
    ))
}

/// Times whose distribution is drawn.
struct DrawnTimes {
    /// Its name at the axis.
    name: &'static str,
    /// Its plural in the table.
    names: &'static str,
    title: &'static str,
    caption: &'static str,
    of: fn(&TrialFigures) -> Option<&TimeDistribution>,
}

const ROUND_TRIPS: DrawnTimes = DrawnTimes {
    name: "round trip, us",
    names: "round trips",
    title: "Round trips: the share at or below each time",
    caption: "All round trips of the trials together.",
    of: |figures| figures.round_trip_distribution.as_ref(),
};

const ONE_WAY: DrawnTimes = DrawnTimes {
    name: "one-way delay, us",
    names: "datagrams",
    title: "One-way delay: the share at or below each time",
    caption: "From the time that a datagram bears to the receiver's program, all datagrams of the trials together.",
    of: |figures| figures.one_way_delays.as_ref(),
};

/// Plots the share of the trials' times at or below each time; `None` if there are none.
fn distribution(facts: &WorkloadFacts, arms: &[StudyArm], times: &DrawnTimes) -> Option<Figure> {
    let curves = arms.iter().filter_map(|arm| {
        let each = arm.group.results();
        let each = each.filter_map(|figures| (times.of)(figures).cloned());
        let all = each.reduce(|sum, other| sum.and(&other))?;
        let samples: u64 = all.entries.iter().sum();
        Some((arm, all, samples))
    });
    let curves: Vec<(&StudyArm, TimeDistribution, u64)> = curves.collect();
    let most = curves.iter().map(|(.., samples)| *samples).max()?;
    // A share is known only if at least one time is beyond it.
    let tells = |samples: u64, share: f64| (1.0 - share) * samples as f64 >= 1.0;
    let told = || SHARES[1..].iter().filter(|it| tells(most, it.1));
    let rows = curves.iter().map(|(arm, all, samples)| {
        let cells = told().map(|(_, share)| {
            let ns = all.quantile_ns(*share);
            let ns = ns.filter(|_| tells(*samples, *share));
            figure_or_missing(ns.map(|ns| ns as f64 / 1e3))
        });
        let name = [String::from(arm.name), samples.to_string()];
        name.into_iter().chain(cells).collect()
    });
    let us = |ns: Option<&u64>| ns.map_or(1.0, |ns| *ns as f64 / 1e3);
    let ends = || curves.iter().flat_map(|(_, all, _)| &all.below_ns);
    let x = Axis::decades(us(ends().min()), us(ends().max()));
    let x = (x, times.name);
    let (workload, names) = (&facts.workload, times.names);
    let title = format!("{workload}: the share of {names} at or below each time");
    let mut drawn = Curves::new(&title, x, (Axis::nines(most), ""), 0.0, curves.len());
    for (arm, all, _) in &curves {
        let mut below = 0.0;
        let steps = all.shares_below().flat_map(|(end, share)| {
            let at = end as f64 / 1e3;
            [(at, std::mem::replace(&mut below, share)), (at, share)]
        });
        drawn.curve(steps.collect::<Vec<_>>(), &svg::stroke(arm.look.colour));
    }
    let legend = curves.iter();
    let legend = legend.map(|(arm, ..)| Marks::of(arm.name, arm.look, Vec::new()));
    let svg = drawn.end(&legend.collect::<Vec<_>>());
    let head = ["setting, us", times.names].into_iter();
    let head = head.chain(told().map(|(name, _)| *name));
    let caption = times.caption.to_owned()
        + " The further left, the better. Each further nine has the same room, so that the rare long ones can be seen.";
    Some(Figure::new(times.title, caption, svg, head, rows))
}

/// A CPU state: its name, its colour's index, and a function that reads it. Idle, the rest, has no colour.
type DrawnState = (&'static str, Option<usize>, fn(&CpuStates) -> f64);

const STATES: [DrawnState; 4] = [
    ("user", Some(2), |cpu| cpu.user_ratio + cpu.nice_ratio),
    ("system", Some(3), |cpu| cpu.system_ratio),
    ("interrupt (irq + softirq)", Some(5), |cpu| {
        cpu.irq_ratio + cpu.softirq_ratio
    }),
    ("idle", None, |cpu| cpu.idle_ratio),
];
/// Height of a bar of states.
const STATES_HIGH: f64 = 22.0;

/// Plots each core's time by state: a bar for each setting. `None` if CPU time was not measured.
fn cpu_time(study: &Study, facts: &WorkloadFacts, arms: &[StudyArm]) -> Option<Figure> {
    let groups = TrialGroup::of_workload(study, &facts.workload);
    let cores = cores(&groups);
    cores.first()?;
    let mut strips = Strips::new();
    legend(&mut strips);
    let mut rows = Vec::new();
    for core in cores {
        for arm in arms {
            let Some(shares) = shares(&arm.group, core) else {
                continue;
            };
            let name = format!("{}, {}", core_name(study, core), arm.name);
            let y = strips.next(&name, STATES_HIGH) - STATES_HIGH / 2.0;
            let mut left = 0.0;
            for ((state, colour, _), share) in STATES.iter().zip(shares) {
                let from = Strips::x(left);
                left += share;
                let wide = (Strips::x(left.min(1.0)) - from).max(0.0);
                let title = format!("{state} {} %", percent(share));
                let look = state_look(*colour);
                let _ = writeln!(
                    strips.svg,
                    "<rect x=\"{from:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{STATES_HIGH}\" {look}>\
                     <title>{title}</title></rect>",
                );
            }
            let cells = [name].into_iter().chain(shares.map(percent));
            rows.push(cells.collect());
        }
    }
    let title = format!("{}: where each core's time went", facts.workload);
    let axis = "% of the core's time, mean of the trials";
    let svg = strips.end_with(&title, &Axis::percent(), axis);
    let states = STATES.iter().map(|(name, ..)| format!("{name}, %"));
    let head = [String::from("core, setting")].into_iter().chain(states);
    let caption = format!("The account of CPU time is {}.", source(&groups).name());
    let title = "Where each core's time went";
    Some(Figure::new(title, caption, svg, head, rows))
}

/// Returns the mean share of each state over the trials that have it: means add up, medians do not.
fn shares(group: &TrialGroup, core: u32) -> Option<[f64; 4]> {
    let states = group.results().flat_map(cores_of);
    let of_core: Vec<&CpuStates> = states.filter(|states| states.core == core).collect();
    let count = of_core.len() as f64;
    (!of_core.is_empty()).then(|| {
        STATES.map(|(.., read)| of_core.iter().map(|states| read(states)).sum::<f64>() / count)
    })
}

fn state_look(colour: Option<usize>) -> String {
    colour.map_or(String::from("class=\"idle\""), svg::fill)
}

fn legend(strips: &mut Strips) {
    let y = strips.y + 14.0;
    let mut x = 8.0;
    for (name, colour, _) in STATES {
        let _ = writeln!(
            strips.svg,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"14\" height=\"14\" {}/>",
            y - 12.0,
            state_look(colour)
        );
        text(&mut strips.svg, (x + 20.0, y), "start", LETTERS, name);
        x += 48.0 + 9.0 * name.len() as f64;
    }
    strips.y += 26.0;
}

/// Height of the band of all that was offered.
const BAND: f64 = 44.0;
/// Distance between branches.
const STEP: f64 = 34.0;
/// Left and right end of the band.
const FROM: f64 = 8.0;
const TO: f64 = 560.0;
/// Minimum visible width; the figure is next to it.
const SEEN: f64 = 1.5;
const UNEXPLAINED: &str = "what no counter explains";

/// Draws where the packets went, from offered to delivered. The branches are the ledger's lines; their width is the
/// share of the offered. `None` if no account closes.
fn flow(facts: &WorkloadFacts, arms: &[StudyArm]) -> Option<Figure> {
    let unit = account_unit(arms.iter().map(|arm| &arm.group));
    let caption = match unit {
        "bytes" => {
            "TCP sends lost packets again: its account is in bytes, and has no places of loss."
        }
        _ => {
            "Widths are shares of what was offered, of all trials of a setting that add up. In each setting, offered and \
             control packets sent are delivered, control packets received, each loss and what no counter explains."
        }
    };
    let mut strips = Strips::new();
    let mut rows = Vec::new();
    for arm in arms {
        let Some(sums) = Sums::of(&arm.group) else {
            continue;
        };
        let delivered = sums.sum(AccountLine::Delivered).unwrap_or(0);
        let delivered = share(&sums, delivered as f64);
        let (name, offered) = (arm.name, count(sums.offered));
        let (closed, all) = (arm.group.closed().count(), arm.group.good.len());
        strips.name(&format!(
            "{name}: {offered} {unit} offered in {closed} of {all} trials, {delivered} % delivered"
        ));
        draw_flow(&mut strips, &sums, arm.look.colour);
        rows.extend(flow_rows(arm.name, &sums));
    }
    rows.first()?;
    let workload = &facts.workload;
    let svg = strips.end(&format!(
        "{workload}: from what was offered to what was delivered"
    ));
    let head = ["setting: where", unit, "% of offered"];
    let title = "Where the packets went";
    Some(Figure::new(title, caption, svg, head, rows))
}

/// Formats a part of the offered in percent.
fn share(sums: &Sums, part: f64) -> String {
    figure(100.0 * part / sums.offered.max(1) as f64)
}

/// Draws the band of one setting. Each branch leaves at its lower edge and falls to its own line of text; the first
/// one falls deepest, so no line crosses a name.
fn draw_flow(strips: &mut Strips, sums: &Sums, colour: usize) {
    let lost = sums.printed().filter(|line| {
        matches!(line, AccountLine::Lost(..) | AccountLine::Residual) && sums.sum(*line) > Some(0)
    });
    let branches: Vec<AccountLine> = lost.collect();
    let top = strips.y + 6.0;
    let mut left = BAND;
    let mut edge = vec![(FROM, top + BAND)];
    let mut svg = String::new();
    for (index, line) in branches.iter().enumerate() {
        let packets = sums.sum(*line).unwrap_or(0) as f64;
        let lost = BAND * packets / sums.offered.max(1) as f64;
        let lost = lost.max(SEEN).min(left - SEEN);
        let at = FROM + 30.0 + STEP * index as f64;
        edge.extend([(at, top + left), (at, top + left - lost)]);
        left -= lost;
        let down = top + BAND + 10.0 + LINE * (branches.len() - index) as f64;
        let wide = lost.min(STEP - 6.0);
        let _ = writeln!(
            svg,
            "<path class=\"lost\" d=\"M{at:.1},{:.1} h{wide:.1} V{:.1} h-{wide:.1} Z\"/>",
            top + left,
            down - 4.0
        );
        let words = format!("{}: {} %", line_name(*line), share(sums, packets));
        text(&mut svg, (at + wide + 6.0, down), "start", LETTERS, &words);
    }
    edge.extend([(TO, top + left), (TO, top + left + 5.0)]);
    edge.extend([(TO + 26.0, top + left / 2.0), (TO, top - 5.0)]);
    edge.extend([(TO, top), (FROM, top)]);
    let (edge, fill) = (svg::places(edge.into_iter()), svg::fill(colour));
    let _ = writeln!(strips.svg, "<polygon points=\"{edge}\" {fill}/>");
    strips.svg += &svg;
    strips.y = top + BAND + 20.0 + LINE * branches.len() as f64;
}

/// Returns the name of a line in a figure.
fn line_name(line: AccountLine) -> String {
    match line {
        AccountLine::Residual => String::from(UNEXPLAINED),
        line => line.name(),
    }
}

/// Returns the account of one setting, without places at which nothing was lost.
fn flow_rows(name: &str, sums: &Sums) -> Vec<Vec<String>> {
    let rows = sums.printed().map(|line| {
        let part = sums.sum(line).map(|packets| share(sums, packets as f64));
        let part = part.unwrap_or(String::from(MISSING));
        vec![format!("{name}: {}", line_name(line)), sums.at(line), part]
    });
    rows.collect()
}

/// Plots the predictions made before the study next to the measurements; nothing is simulated here. `None` if no
/// prediction has a counterpart.
fn predictions(study: &Study, facts: &WorkloadFacts, arms: &[StudyArm]) -> Option<Figure> {
    let Simulated { host, figures } = study.simulated.as_ref()?;
    let of_workload = figures.iter().filter(|it| it.workload == facts.workload);
    let compared = of_workload.filter_map(|told| {
        let arm = arms.iter().find(|arm| arm.name == told.setting)?;
        let measured = arm.group.median(|trial| told.quantity.measured(trial));
        let positive = measured.filter(|measured| *measured > 0.0);
        let ratio = positive.map(|measured| told.value / measured);
        Some((arm, told, measured, ratio.filter(|ratio| *ratio > 0.0)))
    });
    let compared: Vec<(&StudyArm, &SimulatedFigure, Option<f64>, Option<f64>)> = compared.collect();
    let ratios = compared.iter().filter_map(|(.., ratio)| *ratio);
    let most = ratios
        .map(|ratio| ratio.max(1.0 / ratio))
        .reduce(f64::max)?;
    let axis = Axis::ratios(1.0 / most.max(1.1), most.max(1.1));
    let mut strips = Strips::new();
    let mut rows = Vec::new();
    for (arm, told, measured, ratio) in compared {
        let name = format!("{}: {}", told.setting, told.quantity.name());
        let y = strips.next(&name, STATES_HIGH);
        if let Some(ratio) = ratio {
            mark(&mut strips.svg, arm.look, (Strips::x(axis.share(ratio)), y));
            let middle = Strips::x(axis.share(1.0));
            let (top, bottom) = (y - STATES_HIGH / 2.0, y + STATES_HIGH / 2.0);
            svg::line(&mut strips.svg, (middle, top), (middle, bottom), true);
        }
        let figures = [Some(told.value), measured, ratio].map(figure_or_missing);
        rows.push([name].into_iter().chain(figures).collect());
    }
    let axis_name = "predicted over measured";
    let title = format!("{}: {axis_name}", facts.workload);
    let svg = strips.end_with(&title, &axis, axis_name);
    let caption = format!(
        "Predicted for the host {host} before the first trial. At 1 the prediction is what was measured."
    );
    let head = ["setting: figure", "predicted", "measured", axis_name];
    let title = "Predicted by the simulator, against the median of the trials";
    Some(Figure::new(title, caption, svg, head, rows))
}
