//! The first screen: the question, what came out under each workload, and what it means.
//!
//! What must hold: the words and figures are those of the terminal's answer.

use maud::{Markup, html};
use nicpoll_model::Study;

use super::blocks::class;
use crate::figures::Pair;
use crate::text::answer::{Line, meaning, spans, title};
use crate::text::bar::{Scale, Span};

/// Width and height of a bar, in units of the drawing.
const BAR: (f64, f64) = (180.0, 24.0);
/// Length of the arrow at either end.
const ARROW: f64 = 8.0;

/// The question, the answer and its meaning.
pub fn of_study(study: &Study) -> Markup {
    let scale = Scale::of(&spans(study));
    html! {
        header id="answer" {
            h1 { (study.question) }
            p.lead { (title(study)) }
            @for pair in Pair::of(study) { (of_pair(study, pair, &scale)) }
            p.faint {
                "All bars have one scale, from 1/" (scale.end()) " to " (scale.end()) " times the rate; at the \
                 line in the middle the two are alike. An arrow goes on beyond the scale."
            }
            h2 { "What this means here" }
            ul { @for (ink, sentence) in meaning(study) { li class=(class(ink)) { (sentence) } } }
        }
    }
}

fn of_pair(study: &Study, pair: Pair, scale: &Scale) -> Markup {
    html! {
        table.answer {
            caption { (pair.title(study)) }
            thead {
                tr {
                    th scope="col" { "traffic" }
                    th scope="col" { "verdict" }
                    th scope="col" { "rate [interval]" }
                    th scope="col" { "less | more" }
                    th scope="col" { "CPU time a packet" }
                    th scope="col" { "round trip" }
                }
            }
            tbody { @for facts in &study.workloads { (of_workload(study, pair, &facts.workload, scale)) } }
        }
    }
}

fn of_workload(study: &Study, pair: Pair, workload: &str, scale: &Scale) -> Markup {
    let line = match Line::of(study, pair, workload) {
        Ok(line) => line,
        Err(why) => {
            return html! { tr { th scope="row" { (name(workload)) } td.unsure colspan="5" { (why) } } };
        }
    };
    let ink = class(line.ink);
    html! {
        tr {
            th scope="row" { (name(workload)) }
            td class=(ink) { strong { (line.word) } }
            td data-name="rate" { (line.value) }
            td.drawn { @if let Some(span) = line.span { (bar(span, scale, ink)) } }
            td data-name="CPU time a packet" { (line.cpu) }
            td data-name="round trip" { (line.round_trip) }
        }
    }
}

/// A workload's name, which may go on in the next line where a part of it ends: `udp64@160000` behind the `@`.
fn name(workload: &str) -> Markup {
    let parts = workload.split_inclusive(['@', '-', '_', '+', '/', ',']);
    html! { @for part in parts { (part) wbr; } }
}

/// An interval as a bar; an arrow where it goes on beyond the scale. The cell beside it has it in figures, so a reader
/// who sees no drawing lacks nothing.
fn bar(span: Span, scale: &Scale, ink: &str) -> Markup {
    let (width, height) = BAR;
    let middle = height / 2.0;
    let place = |ratio: f64| {
        let share = 0.5 * (1.0 + ratio.max(1e-12).ln() / scale.end().ln());
        ARROW + (width - 2.0 * ARROW) * share
    };
    let low = span.low.map_or(f64::NEG_INFINITY, place);
    let high = span.high.map_or(f64::INFINITY, place);
    let inner = |place: f64| place.clamp(ARROW, width - ARROW);
    let arrow = |tip: f64, foot: f64| {
        format!(
            "{tip},{middle} {foot},{} {foot},{}",
            middle - 6.0,
            middle + 6.0
        )
    };
    let estimate = place(span.ratio);
    let rounded = |place: f64| format!("{place:.1}");
    html! {
        svg class={ "interval " (ink) } viewBox={ "0 0 " (width) " " (height) } aria-hidden="true" {
            line.none x1=(rounded(place(1.0))) y1="0" x2=(rounded(place(1.0))) y2=(height) {}
            line.span x1=(rounded(inner(low))) y1=(middle) x2=(rounded(inner(high))) y2=(middle) {}
            @if low < 0.0 { polygon points=(arrow(0.0, ARROW)) {} }
            @if high > width { polygon points=(arrow(width, width - ARROW)) {} }
            @if (0.0..=width).contains(&estimate) { circle cx=(rounded(estimate)) cy=(middle) r="5" {} }
        }
    }
}
