//! How to read the report: what its words mean.
//!
//! What must hold: every word of the tables that a network engineer may not know the same way is here.

use nicpoll_model::{CpuSource, IntervalMethod, Study, Trial};

use super::page::{Ink, Page};
use crate::numbers::figure;

/// Width of the words that are explained.
const WORD: usize = 9;

const FIRST: [(&str, &str); 2] = [
    (
        "-",
        "not measured, or without meaning under this traffic. It is never 0.",
    ),
    (
        "rates",
        "payload without headers. The receiver counts what is delivered, the sender what is offered, and \
         the side that asks times the round trips.",
    ),
];

const COUNTING: [(&str, &str); 3] = [
    (
        "counts",
        "each trial counts for the setting that it asked for, whatever befell it. One that gave no result \
         counts as the worst. Only an event from outside (a clock step, another process's change) takes a \
         pair out. Nothing is run again.",
    ),
    (
        "proven",
        "the setting was seen to be in force: polls came as asked, one round a period where it has one. A \
         verdict stands only if proven pairs alone say the same.",
    ),
    (
        "pt",
        "percentage points. 100 pt of CPU busy are one whole core.",
    ),
];

const EXACT: (&str, &str) = (
    "exact",
    "CPU time by switch and interrupt events, in a short run of its own after each trial: no rate above \
     was measured meanwhile. No event shows steal; it lies within the other states.",
);

const LAST: [(&str, &str); 5] = [
    (
        "sampled",
        "by /proc/stat: the kernel looks at each CPU once a clock tick. Work in step with the tick is \
         misjudged, timer polling most of all.",
    ),
    (
        "round",
        "polls up to the first that finds less than its budget. Timer polling means one round a period, \
         however many polls it takes. The kernel starts gro_flush_timeout anew when a round ends, so it \
         is set shorter than the period.",
    ),
    (
        "even",
        "the rate is the same over time, as far as tests tell: from step to step within a trial, or from trial \
         to trial. A step (a warm-up), a drift or slow swings are named where they are found and as great as the \
         margin. By chance alone one study in twenty has any of them.",
    ),
    (
        "residual",
        "what no counter explains: offered less delivered and every named loss.",
    ),
    (
        "none seen",
        "no datagram was lost. The bound holds at 95 % if datagrams are lost one at a time.",
    ),
];

pub fn write(page: &mut Page, study: &Study) {
    let intervals = intervals(study);
    let exact = study.trials.iter().any(is_exact).then_some(EXACT);
    let legend = FIRST
        .into_iter()
        .chain([("interval", intervals.as_str())])
        .chain(COUNTING)
        .chain(exact)
        .chain(LAST);
    page.heading("How to read it");
    for (word, text) in legend {
        page.item(&format!("{word:<WORD$}  "), Ink::Plain, text);
    }
}

/// How intervals were made, and when they have a verdict.
fn intervals(study: &Study) -> String {
    let plan = &study.plan;
    let mut judged = study.comparisons.iter().filter(|one| one.primary);
    let method = match judged.next().map(|one| one.method) {
        Some(IntervalMethod::HodgesLehmann) => {
            "for the typical ratio of a block, by signed ranks (Hodges-Lehmann). It holds whatever the \
             noise."
        }
        Some(IntervalMethod::PairedT) => {
            "for the mean ratio of a block, Student's: too few blocks were planned for ranks. It assumes \
             even noise, and spikes under one setting deceive it."
        }
        None => "nothing was compared.",
    };
    format!(
        "{method} Each of the {} that get a verdict holds at {} %, so that all of them together hold at \
         95 % (Bonferroni). \"Better\": all of it lies above 1; \"and it matters\": at {margin} or above, \
         and the interval of a tenth of the level above 1 as well; \"worse\" likewise. The others hold at 95 % each and decide nothing.",
        plan.family,
        figure(plan.confidence * 100.0),
        margin = plan.margin
    )
}

fn is_exact(trial: &Trial) -> bool {
    let figures = trial.figures.as_ref();
    let cpu = figures.and_then(|figures| figures.cpu.as_ref());
    cpu.is_some_and(|cpu| cpu.source == CpuSource::Exact)
}
