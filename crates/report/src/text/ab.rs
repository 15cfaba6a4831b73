//! A live comparison of two settings: the answer, the intervals it rests on, and what to do.
//!
//! What must hold: the answer stands first and the command last. The load stands above CPU time, since a setting
//! that carries less also uses less. Without a verdict the page says why, and recommends nothing.

mod details;
mod words;

use nicpoll_model::Verdict;
use nicpoll_model::ab::{AbAnswer, AbCores, AbDelayKind, AbQuantile, AbRatio, LiveAb};

use super::bar::{BAR, Scale, Span};
use super::columns::shortened_apart;
use super::differences::with_interval;
use super::page::{Ink, Page};
use crate::numbers::{MISSING, counted, duration_text, figure, span};

const LABEL: usize = 18;
const FIGURE: usize = 9;
const VALUE: usize = 21;

pub fn write(page: &mut Page, compared: &LiveAb) {
    page.heading(&title(compared));
    for (index, sentence) in words::answer(compared).iter().enumerate() {
        let ink = match index {
            0 => Ink::of(compared.answer.verdict),
            _ => Ink::Plain,
        };
        page.paragraph(ink, sentence);
    }
    write_intervals(page, compared);
    details::write(page, compared);
    page.heading("What to do");
    write_command(page, compared);
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

/// A line of the screen: two figures, and their ratio.
struct Line {
    label: String,
    reference: String,
    judged: String,
    ratio: Option<Span>,
    ink: Ink,
}

fn write_intervals(page: &mut Page, compared: &LiveAb) {
    let lines = lines(&compared.answer);
    if lines.is_empty() {
        return;
    }
    page.blank();
    let spans: Vec<Span> = lines.iter().filter_map(|line| line.ratio).collect();
    let scale = Scale::of(&spans);
    let names = [&compared.reference.name, &compared.judged.name];
    let names = shortened_apart(&names.map(String::as_str), FIGURE - 1);
    let head = format!(
        "{:LABEL$}{:>FIGURE$}{:>FIGURE$}  {:<VALUE$}{}",
        "",
        names[0],
        names[1],
        "ratio [95 %]",
        scale.head()
    );
    page.cells(&[(head, Ink::Strong)]);
    for line in lines {
        let value = line.ratio.map_or(String::from(MISSING), value);
        let bar = line.ratio.map_or(" ".repeat(BAR), |ratio| scale.bar(ratio));
        let figures = format!(
            "{:<LABEL$}{:>FIGURE$}{:>FIGURE$}  ",
            line.label, line.reference, line.judged
        );
        page.cells(&[
            (figures, Ink::Plain),
            (format!("{value:<VALUE$}"), Ink::Plain),
            (bar, line.ink),
        ]);
    }
}

/// A ratio with its interval. Its ends keep to their side of 1 where the column has room for so many decimals.
fn value(span: Span) -> String {
    let ends = [span.low, Some(span.ratio), span.high];
    let with = |thresholds: &[f64]| with_interval(ends, thresholds, "x", str::to_string);
    let exact = with(&[1.0]);
    match exact.len() < VALUE {
        true => exact,
        false => with(&[]),
    }
}

fn lines(answer: &AbAnswer) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(load) = &answer.load {
        let line = |label: &str, [reference, judged]: [f64; 2], ratio: Option<AbRatio>| Line {
            label: String::from(label),
            reference: figure(reference),
            judged: figure(judged),
            ratio: ratio.map(of_ratio),
            ink: Ink::Plain,
        };
        let packets = [
            load.reference_packets_per_second,
            load.judged_packets_per_second,
        ];
        let bytes = [
            load.reference_bytes_per_second,
            load.judged_bytes_per_second,
        ];
        let megabits = bytes.map(|bytes| bytes * 8.0 / 1e6);
        lines.push(line("packets/s", packets, load.packets));
        lines.push(line("Mbit/s of frames", megabits, load.bytes));
        if let Some(cpu) = &answer.cpu {
            // The adjustment may save more than there is.
            let judged = (cpu.reference_cores + cpu.equal_load.cores).max(0.0);
            let at_equal_load = [cpu.reference_cores, judged];
            let cores = |label: &str, values: [f64; 2], difference: &AbCores| Line {
                label: String::from(label),
                reference: figure(values[0]),
                judged: figure(values[1]),
                ratio: of_cores(difference, cpu.reference_cores),
                ink: Ink::of(answer.verdict),
            };
            lines.push(cores("cores, equal load", at_equal_load, &cpu.equal_load));
            let as_it_was = [cpu.reference_cores, cpu.judged_cores];
            lines.push(cores("cores, as it was", as_it_was, &cpu.total));
            let per_byte = [0, 1].map(|arm| as_it_was[arm] / bytes[arm] * 1e9);
            lines.push(line("CPU ns a byte", per_byte, cpu.per_byte));
        }
    }
    lines.extend(answer.delays.iter().map(|delay| Line {
        label: format!("{} {}", kind(delay.kind), quantile(delay.quantile)),
        reference: duration_text(delay.reference_ns.round() as u64),
        judged: duration_text(delay.judged_ns.round() as u64),
        ratio: delay.ratio.map(of_ratio),
        ink: Ink::Plain,
    }));
    lines
}

fn of_ratio(ratio: AbRatio) -> Span {
    Span {
        low: ratio.ratio_low,
        ratio: ratio.ratio,
        high: ratio.ratio_high,
    }
}

/// A difference as the ratio to what the reference used.
fn of_cores(difference: &AbCores, reference_cores: f64) -> Option<Span> {
    // An estimate may save more than there is.
    let ratio = |cores: f64| (1.0 + cores / reference_cores).max(0.0);
    let known = |cores: f64| Some(ratio(cores)).filter(|it| it.is_finite());
    Some(Span {
        low: known(difference.cores_low),
        ratio: known(difference.cores)?,
        high: known(difference.cores_high),
    })
}

/// A delay's name on the page.
fn kind(kind: AbDelayKind) -> &'static str {
    match kind {
        AbDelayKind::UdpStackToRead => "UDP to read",
        AbDelayKind::TcpStackToRead => "TCP to read",
        AbDelayKind::UdpWireToRead => "UDP from wire",
        AbDelayKind::TcpWireToRead => "TCP from wire",
        AbDelayKind::SmoothedRoundTrip => "TCP round trip",
        AbDelayKind::RunQueue => "wait for CPU",
    }
}

fn quantile(quantile: AbQuantile) -> &'static str {
    match quantile {
        AbQuantile::P50 => "p50",
        AbQuantile::P99 => "p99",
    }
}

/// The one command, or that there is none.
fn write_command(page: &mut Page, compared: &LiveAb) {
    let answer = &compared.answer;
    if answer.is_recommended {
        page.item("", Ink::Strong, &compared.judged.command);
        return;
    }
    let worse = answer.verdict.map(Verdict::without_weight) == Some(Verdict::Worse);
    let ink = if worse { Ink::Good } else { Ink::Plain };
    page.paragraph(ink, "Keep what you have.");
}
