//! A live comparison of two settings: the answer, the intervals it is based on, and what to do.
//!
//! The answer comes first, the command last. The load stands above CPU time, because a setting that carries less also
//! uses less. Without a verdict the page says why, and recommends nothing.

mod details;
mod plan;
pub(super) mod words;

pub use plan::render_ab_plan;

use nicpoll_model::ab::{AbAnswer, AbCores, AbRatio, LiveAb};
use nicpoll_model::numbers::{MISSING, counted, figure, span};
use nicpoll_model::{Measure, Verdict};

use super::data::{add_saved, json};
use super::study::comparisons::with_interval;
use super::study::run::{fold_sysctls, write_host, write_repeat};
use super::switch::{named, value as value_text};
use crate::page::{Document, Ink, Medium, Page, Part, Rank, Scale, Span, Table};
use crate::text::shortened_apart;

const LABEL: usize = 18;
const FIGURE: usize = 9;
const VALUE: usize = 21;

impl Document for LiveAb {
    fn page(&self) -> Page<'_> {
        let mut page = Page::new(format!(
            "{}: {} against {}",
            self.interface, self.judged.name, self.reference.name
        ));
        page.part(Medium::Text, |part| write_answer(part, self));
        // On a page the recommendation comes first; on a terminal the last lines are seen.
        page.linked(Medium::Html, ("answer", "Answer"), |part| {
            write_answer(part, self);
            write_command(part, self);
        });
        page.linked(Medium::Html, ("pairs", "Pairs"), |part| {
            part.heading("Block by block");
            part.figures(details::figures(self));
        });
        page.part(Medium::All, |part| details::write(part, self));
        page.part(Medium::Text, |part| write_command(part, self));
        page.linked(Medium::Html, ("machine", "The machine"), |part| {
            write_machine(part, self);
        });
        page.linked(Medium::Html, ("repeat", "Repeat it"), |part| {
            let origin = &self.origin;
            write_repeat(part, &origin.argv, self.plan.seed, &origin.nicpoll_version);
        });
        add_saved(&mut page, |part| {
            let whole = json("ab.json", self, "the whole comparison (docs/ab.md)");
            part.blocks.push(whole);
        });
        page
    }
}

fn write_answer(part: &mut Part, compared: &LiveAb) {
    part.title(Rank::Title, title(compared));
    let mut ink = Ink::of(compared.answer.verdict);
    for sentence in words::answer(compared) {
        part.paragraph(ink, sentence);
        ink = Ink::Plain;
    }
    write_intervals(part, compared);
}

fn title(compared: &LiveAb) -> String {
    let blocks = compared.pairs.iter();
    let measured: f64 = blocks
        .map(|pair| pair.reference.duration_seconds + pair.judged.duration_seconds)
        .sum();
    format!(
        "{}: {} against {} on live traffic, {} of blocks in {}",
        compared.interface,
        compared.judged.name,
        compared.reference.name,
        counted(compared.answer.pairs, "pair"),
        span(measured)
    )
}

/// Writes the machine, and the values that alternated, for a browser.
fn write_machine(part: &mut Part, compared: &LiveAb) {
    part.heading("The machine");
    write_host(part, &compared.host);
    fold_sysctls(part, &compared.host);
    part.heading("What took turns");
    let head = ["value", &compared.reference.name, &compared.judged.name];
    let turns = compared.turns().into_iter().map(|turn| {
        let [one, other] = turn.values.map(|it| value_text(turn.name, it));
        let name = named(None, turn.name);
        vec![format!("{}: {name}", turn.place()), one, other]
    });
    part.table(Table::of("Values under each setting", head, turns));
}

/// Writes the recommended command, or that there is none.
fn write_command(part: &mut Part, compared: &LiveAb) {
    if compared.plan.is_null {
        return;
    }
    part.heading("What to do");
    let answer = &compared.answer;
    if answer.is_recommended {
        return part.paragraph(Ink::Strong, &compared.judged.command);
    }
    let is_worse = answer.verdict.map(Verdict::without_weight) == Some(Verdict::Worse);
    let ink = if is_worse { Ink::Good } else { Ink::Plain };
    part.paragraph(ink, "Keep what you have.");
}

/// A measure with its label, two figures, their ratio, and its ink.
type MeasureLine = (Measure, String, [String; 2], Option<Span>, Ink);

fn write_intervals(part: &mut Part, compared: &LiveAb) {
    let lines = lines(&compared.answer);
    if lines.is_empty() {
        return;
    }
    part.blank();
    let spans: Vec<Span> = lines.iter().filter_map(|line| line.3).collect();
    let scale = Scale::of(&spans);
    let names = [&compared.reference.name, &compared.judged.name];
    let names = shortened_apart(&names.map(String::as_str), FIGURE - 1);
    let columns = |label: &str, [one, other]: [&str; 2], value: &str| {
        format!("{label:<LABEL$}{one:>FIGURE$}{other:>FIGURE$}  {value:<VALUE$}")
    };
    let head = columns("", [&names[0], &names[1]], "ratio [95 %]") + &scale.head();
    part.line(vec![(head, Ink::Strong)]);
    let mut above = None;
    for (measure, label, figures, ratio, ink) in lines {
        if above.replace(measure) != Some(measure) {
            let named = match measure {
                Measure::Cost => words::cost(&compared.answer),
                _ => measure.name().to_owned(),
            };
            part.line(vec![(named, Ink::Faint)]);
        }
        let value = ratio.map_or(String::from(MISSING), value);
        let bar = ratio.map_or(String::new(), |ratio| scale.bar(ratio));
        let figures = columns(&label, figures.each_ref().map(String::as_str), &value);
        part.line(vec![(figures, Ink::Plain), (bar, ink)]);
    }
}

/// Formats a ratio with its interval. Its ends get as many decimals as keep them on their side of 1, if the column
/// has room.
fn value(span: Span) -> String {
    let ends = [span.low, Some(span.ratio), span.high];
    let with = |thresholds: &[f64]| with_interval(ends, thresholds, "x", str::to_string);
    let exact = with(&[1.0]);
    match exact.len() < VALUE {
        true => exact,
        false => with(&[]),
    }
}

fn lines(answer: &AbAnswer) -> Vec<MeasureLine> {
    use Measure::{Cost, Rate};
    let line = |measure, label: &str, figures: [f64; 2], ratio: Option<Span>, ink: Ink| {
        let label = String::from(label);
        (measure, label, figures.map(figure), ratio, ink)
    };
    let plain =
        |measure, label, figures, ratio| line(measure, label, figures, of_ratio(ratio), Ink::Plain);
    let mut lines = Vec::new();
    if let Some(load) = &answer.load {
        let (packets, bytes) = (load.packets_per_second(), load.bytes_per_second());
        let megabits = bytes.map(|bytes| bytes * 8.0 / 1e6);
        // A million packets a second leaves no blank between the columns.
        let is_wide = packets.iter().any(|rate| *rate >= 999_500.0);
        let (unit, shown) = match is_wide {
            true => ("kpps", packets.map(|rate| rate / 1e3)),
            false => ("packets/s", packets),
        };
        lines.push(plain(Rate, unit, shown, load.packets));
        lines.push(plain(Rate, "Mbit/s of frames", megabits, load.bytes));
        if let Some(cpu) = &answer.cpu {
            // Adjusted to equal load, more than everything may seem to be saved.
            let judged = (cpu.reference_cores + cpu.equal_load.cores).max(0.0);
            let as_it_was = [cpu.reference_cores, cpu.judged_cores];
            let cores = |label, figures, difference: &AbCores| {
                let ratio = of_cores(difference, cpu.reference_cores);
                line(Cost, label, figures, ratio, Ink::of(answer.verdict))
            };
            let at_equal_load = [cpu.reference_cores, judged];
            lines.push(cores("cores, equal load", at_equal_load, &cpu.equal_load));
            lines.push(cores("cores, as it was", as_it_was, &cpu.total));
            let per_byte = [0, 1].map(|arm| as_it_was[arm] / bytes[arm] * 1e9);
            lines.push(plain(Cost, "CPU s per GB", per_byte, cpu.per_byte));
        }
    }
    let mut delays: Vec<_> = answer.delays.iter().collect();
    delays.sort_by_key(|delay| delay.kind.measure());
    lines.extend(delays.into_iter().map(|delay| {
        let label = format!(
            "{} {}",
            words::kind(delay.kind),
            words::quantile(delay.quantile)
        );
        let times = [delay.reference_ns, delay.judged_ns].map(words::time);
        let ratio = of_ratio(delay.ratio);
        (delay.kind.measure(), label, times, ratio, Ink::Plain)
    }));
    lines
}

fn of_ratio(ratio: Option<AbRatio>) -> Option<Span> {
    let ratio = ratio?;
    Span::of([ratio.ratio_low, Some(ratio.ratio), ratio.ratio_high])
}

/// Converts a difference to a ratio to the reference's use.
fn of_cores(difference: &AbCores, reference_cores: f64) -> Option<Span> {
    let ends = difference.with_ends();
    // An estimated saving may exceed the reference's use.
    let ratio = |cores: f64| (1.0 + cores / reference_cores).max(0.0);
    Span::of(ends.map(|cores| Some(ratio(cores)).filter(|it| it.is_finite())))
}
