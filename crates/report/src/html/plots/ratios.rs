//! What the verdict rests on: the ratio of two settings in each block, and the interval that follows from them.
//!
//! What must hold: the interval is that of the study. The dots are the pairs that it is made of.

use std::collections::BTreeMap;
use std::fmt::Write;

use nicpoll_model::{Study, WorkloadFacts};

use super::scatter::looks;
use super::strips::{Strips, Ticks};
use super::{Reading, setting_names};
use crate::figures::Pair;
use crate::html::figure::Figure;
use crate::numbers::aligned;
use crate::plot::{self, LogAxis, Look, mark};
use crate::text::answer::Line;

/// Height of a strip.
const STRIP: f64 = 34.0;
/// Height of the interval's bar.
const BAR: f64 = 9.0;

/// The ratio of a pair in each block.
type Ratios = BTreeMap<u32, f64>;

/// A pair that was compared under a workload.
struct Compared<'a> {
    pair: Pair<'a>,
    line: Line,
    ratios: Ratios,
}

/// The pairs of a workload; `None` when nothing was compared.
pub fn plot(study: &Study, facts: &WorkloadFacts, reading: &Reading) -> Option<Figure> {
    let workload = &facts.workload;
    let pairs: Vec<Compared> = Pair::of(study)
        .into_iter()
        .filter_map(|pair| {
            let line = Line::of(study, pair, workload).ok()?;
            let ratios = ratios(study, workload, pair, reading);
            (!ratios.is_empty()).then_some(Compared { pair, line, ratios })
        })
        .collect();
    pairs.first()?;
    Some(Figure {
        title: String::from("Block by block: the ratio that is judged"),
        caption: String::from(
            "A mark is a block: both settings within the same stretch of time. The bar is the interval, the line \
             across it the estimate. At 1 the two are alike.",
        ),
        svg: drawn(study, workload, &pairs),
        head: ["compared", "ratio [interval]", "by block"]
            .map(String::from)
            .to_vec(),
        rows: pairs.iter().map(row).collect(),
    })
}

fn drawn(study: &Study, workload: &str, pairs: &[Compared]) -> String {
    let axis = axis(pairs);
    let names = setting_names(study);
    let looks = looks(&names);
    let mut strips = Strips::new();
    for one in pairs {
        let Compared { pair, line, .. } = one;
        let against = pair.title(study);
        let y = strips.next(&format!("{against}: {}, {}", line.word, line.value), STRIP);
        let index = names
            .iter()
            .position(|name| *name == pair.settings()[0].0)
            .unwrap_or(0);
        strip(strips.body(), one, axis, looks[index], y);
    }
    let ticks = axis.ratios(0.11).into_iter();
    let ticks: Ticks = ticks.map(|at| (axis.share(at), at.to_string())).collect();
    let title = format!("{workload}: ratio of the rates in each block, with the interval");
    strips.end(&title, &ticks, "rate of the first over rate of the second")
}

/// An axis that holds every dot, every end of an interval, and 1.
fn axis(pairs: &[Compared]) -> LogAxis {
    let ends = pairs.iter().filter_map(|one| one.line.span);
    let ends = ends.flat_map(|span| [span.low, span.high]).flatten();
    let dots = pairs.iter().flat_map(|one| one.ratios.values().copied());
    let all = dots.chain(ends).chain([1.0]).filter(|ratio| *ratio > 0.0);
    let (least, most) = all.fold((1.0, 1.0), |(least, most), ratio| {
        (ratio.min(least), ratio.max(most))
    });
    LogAxis::over(least, most)
}

fn row(Compared { pair, line, ratios }: &Compared) -> Vec<String> {
    let blocks = ratios
        .values()
        .map(|ratio| aligned([*ratio], &[])[0].clone());
    vec![
        pair.head(),
        line.value.clone(),
        blocks.collect::<Vec<_>>().join(" "),
    ]
}

/// The blocks in which all trials have a result; of several pairs of settings the mean of the logs.
fn ratios(study: &Study, workload: &str, pair: Pair, reading: &Reading) -> Ratios {
    let of = |setting: &str| -> Ratios {
        let trials = study.trials.iter();
        let own = trials.filter(|trial| trial.workload == workload && trial.setting == setting);
        own.filter_map(|trial| Some((trial.block, reading.of(trial.result()?)?)))
            .collect()
    };
    let settings = pair.settings();
    let mut logs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (setting, reference) in &settings {
        let references = of(reference);
        for (block, value) in of(setting) {
            if let Some(reference) = references.get(&block).filter(|it| **it > 0.0) {
                logs.entry(block)
                    .or_default()
                    .push((value / reference).ln());
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

fn strip(svg: &mut String, one: &Compared, axis: LogAxis, look: Look, y: f64) {
    let Compared { line, ratios, .. } = one;
    if let Some(span) = line.span {
        let low = Strips::x(span.low.map_or(0.0, |ratio| axis.share(ratio)));
        let high = Strips::x(span.high.map_or(1.0, |ratio| axis.share(ratio)));
        let middle = Strips::x(axis.share(span.ratio));
        let _ = writeln!(
            svg,
            "<rect class=\"span\" x=\"{low:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BAR}\"/>",
            y - BAR / 2.0,
            (high - low).max(2.0),
        );
        let _ = writeln!(
            svg,
            "<line class=\"axis\" x1=\"{middle:.1}\" y1=\"{:.1}\" x2=\"{middle:.1}\" y2=\"{:.1}\" \
             stroke=\"#222\" stroke-width=\"3\"/>",
            y - STRIP / 2.0,
            y + STRIP / 2.0
        );
    }
    let none = Strips::x(axis.share(1.0));
    plot::line(svg, (none, y - STRIP / 2.0), (none, y + STRIP / 2.0), true);
    for (block, ratio) in ratios {
        let lane = f64::from(block * 3 % 7) / 6.0 - 0.5;
        mark(
            svg,
            look,
            (Strips::x(axis.share(*ratio)), y + lane * (STRIP - 8.0)),
        );
    }
}
