//! The result of a live comparison in sentences.
//!
//! The first sentence is the verdict with its figure, its interval and its load, or the reason for having none. The
//! price of a saving in delay follows.

use nicpoll_model::ab::{
    AbAnswer, AbCpuCost, AbDelayAnswer, AbDelayKind, AbLoad, AbNoVerdict, AbQuantile, LiveAb,
};
use nicpoll_model::numbers::{aligned, duration_text, figure, percent, span};
use nicpoll_model::{CpuSource, Measure, Verdict};

use super::plan::stands_for;
use crate::documents::study::comparisons::surely;
use crate::fields::stated;
use crate::lists::{capital, joined};

/// Returns every sentence, the verdict first.
pub fn answer(compared: &LiveAb) -> Vec<String> {
    let answer = &compared.answer;
    let mut sentences = Vec::new();
    if compared.plan.is_null {
        let itself =
            "A setting against itself: any difference here is chance, or the method's own error.";
        sentences.push(String::from(itself));
    }
    match (answer.verdict, &answer.load, &answer.cpu) {
        (Some(verdict), Some(load), Some(cpu)) => {
            let said = verdict_sentence(compared, verdict, load, cpu);
            let measure = capital(&cost(answer));
            sentences.push(format!("{measure}: {said}"));
            sentences.extend(about_load(compared, verdict, load));
        }
        _ => sentences.extend(answer.no_verdict.iter().map(|why| reason(compared, *why))),
    }
    if answer.is_recommended {
        sentences.extend(price(compared));
    }
    // An abort is already a reason against a verdict.
    if !compared.end.cause.is_abort() {
        sentences.extend(stated(&compared.end, &["It ended early: {text}."]));
    }
    sentences.extend(more_time(compared));
    sentences.extend(stands_for(compared));
    sentences
}

/// Names the cost, with how its CPU time was measured unless it was counted.
pub fn cost(answer: &AbAnswer) -> String {
    let measure = answer.measure.unwrap_or(Measure::Cost).name();
    match answer.cpu.map(|cpu| cpu.source) {
        Some(CpuSource::TickSampled) => format!("{measure}, CPU time sampled by ticks"),
        _ => String::from(measure),
    }
}

fn verdict_sentence(compared: &LiveAb, verdict: Verdict, load: &AbLoad, cpu: &AbCpuCost) -> String {
    let judged = &compared.judged.name;
    let margin = percent(compared.plan.margin_ratio);
    let mean = |[one, other]: [f64; 2]| f64::midpoint(one, other);
    let packets = figure(mean(load.packets_per_second()));
    let megabits = figure(mean(load.bytes_per_second()) * 8.0 / 1e6);
    let at = format!("at equal load ({packets} packets/s, {megabits} Mbit/s of frames)");
    let difference = &cpu.equal_load;
    let of_all = figure(cpu.reference_cores);
    let verdict = verdict.without_weight();
    // A saving is shown as a positive number.
    let sign = if verdict == Verdict::Better {
        -1.0
    } else {
        1.0
    };
    let mut ends = difference.with_ends().map(|cores| sign * cores);
    if verdict == Verdict::Better {
        ends.reverse();
    }
    let thresholds: &[f64] = match verdict {
        Verdict::Equivalent => &[],
        _ => &[0.0],
    };
    let [low, middle, high] = aligned(ends, thresholds);
    let cores = format!("{middle} cores [{low}, {high}]");
    let share = percent(sign * difference.cores / cpu.reference_cores);
    let packet = a_packet(cpu, sign);
    match verdict {
        Verdict::Better => {
            format!("{judged} saves {cores} {at}: {share} % of {of_all}{packet}.")
        }
        Verdict::Worse => {
            format!("{judged} costs {cores} {at}: {share} % more than {of_all}{packet}.")
        }
        Verdict::Equivalent => {
            let ends = [difference.cores_low, difference.cores_high];
            let surely = surely(ends.map(|cores| Some(1.0 + cores / cpu.reference_cores)));
            format!(
                "{judged} makes no difference of {margin} % or more{surely}: {cores} of {of_all} {at}."
            )
        }
        _ => format!("no difference proven: {cores} of {of_all} {at}."),
    }
}

fn a_packet(cpu: &AbCpuCost, sign: f64) -> String {
    let ns = cpu.ns_per_packet.map(|[ns, _, _]| time(sign * ns));
    ns.map_or(String::new(), |ns| format!(", {ns} a packet"))
}

/// Returns a sentence about the load's effect on the verdict.
fn about_load(compared: &LiveAb, verdict: Verdict, load: &AbLoad) -> Option<String> {
    if load.is_equal {
        return None;
    }
    let what = match load.is_moved {
        true => "The setting moves the load",
        false => "The load varied too much to tell whether the setting moves it",
    };
    let three = "the difference at equal load, the difference as it was, and CPU time per GB";
    let agree = match verdict.without_weight() {
        Verdict::NoDifferenceProven => "do not all agree",
        _ => "agree",
    };
    let less = match verdict.without_weight() == Verdict::Better && !compared.answer.is_recommended
    {
        true => " But it carries less, so it is not recommended.",
        false => "",
    };
    Some(format!(
        "{what}, so three figures have to agree: {three}. They {agree}.{less}"
    ))
}

fn reason(compared: &LiveAb, why: AbNoVerdict) -> String {
    let cpu = compared.answer.cpu;
    let pairs = cpu.map_or(0, |cpu| cpu.pairs);
    let because = match why {
        AbNoVerdict::Aborted => {
            let text = compared.end.text.as_deref();
            let text = text.unwrap_or("something happened to the traffic");
            format!("the run was given up and everything put back: {text}")
        }
        AbNoVerdict::NoCpuTime => String::from(
            "CPU time could not be counted exactly (nicpoll doctor says what it takes)",
        ),
        AbNoVerdict::NoTraffic => String::from("the interface carried nothing"),
        AbNoVerdict::BelowCounting => {
            let below = cpu.map_or(0, |cpu| cpu.pairs_below_counting);
            let floor = match cpu.map(|cpu| cpu.source) {
                Some(CpuSource::TickSampled) => "what other programs cost",
                _ => "what counting costs",
            };
            format!(
                "what the traffic costs is below {floor}, in {below} of {pairs} pairs of blocks: such a \
                 comparison takes more traffic"
            )
        }
        AbNoVerdict::TooFewPairs => {
            let least = compared.plan.pairs_min;
            format!("{pairs} pairs of blocks count, and it takes {least}")
        }
        AbNoVerdict::CarryOver => carried(compared),
        AbNoVerdict::NoFit => {
            String::from("one pair alone has another load, so nothing can be said at equal load")
        }
    };
    format!("No verdict: {because}.")
}

fn carried(compared: &LiveAb) -> String {
    let found = compared.answer.cpu.and_then(|cpu| cpu.carry_over);
    match found {
        Some(found) => format!(
            "carry-over: without the first {} of blocks the difference is {} cores, and without twice that \
             time it is {}. One setting works on what the other left: use longer blocks",
            time(compared.plan.left_out_seconds * 1e9),
            figure(compared.answer.cpu.map_or(0.0, |cpu| cpu.equal_load.cores)),
            figure(found.later.cores)
        ),
        None => String::from(
            "blocks are too short to tell whether one setting works on what the other left: use longer ones",
        ),
    }
}

/// Returns a sentence about the delays that a recommended setting makes longer; `None` if it makes none longer.
fn price(compared: &LiveAb) -> Option<String> {
    let is_longer = |delay: &&AbDelayAnswer| {
        let low = delay.ratio.and_then(|ratio| ratio.ratio_low);
        low.is_some_and(|low| low > 1.0)
    };
    let one = |delay: &AbDelayAnswer| {
        let (name, quantile) = (delay.kind.name(), quantile(delay.quantile));
        let [judged, reference] = [delay.judged_ns, delay.reference_ns].map(time);
        format!("{name}, {quantile} {judged} instead of {reference}")
    };
    let delays = compared.answer.delays.iter();
    let longer = joined(delays.filter(is_longer).map(one), "; ");
    (!longer.is_empty()).then(|| format!("The price is delay: {longer}."))
}

/// Returns the time that a verdict would take, if time is what it lacks.
fn more_time(compared: &LiveAb) -> Option<String> {
    let answer = &compared.answer;
    let is_open = answer.verdict == Some(Verdict::NoDifferenceProven)
        || answer.no_verdict == [AbNoVerdict::TooFewPairs];
    let needed = answer.cpu?.time_needed?;
    let is_more = needed.pairs > answer.cpu?.pairs;
    let (time, cores) = (span(needed.seconds), figure(needed.aim_cores));
    (is_open && is_more).then(|| {
        format!(
            "With this scatter it takes about {time} to know the difference at equal load to {cores} cores either way."
        )
    })
}

/// Formats a time in a suitable unit.
pub fn time(ns: f64) -> String {
    duration_text(ns.round() as u64)
}

/// A delay's name in a table.
pub fn kind(kind: AbDelayKind) -> &'static str {
    match kind {
        AbDelayKind::UdpStackToRead => "UDP to read",
        AbDelayKind::TcpStackToRead => "TCP to read",
        AbDelayKind::UdpWireToRead => "UDP from wire",
        AbDelayKind::TcpWireToRead => "TCP from wire",
        AbDelayKind::SmoothedRoundTrip => "TCP round trip",
        AbDelayKind::RunQueue => "wait for CPU",
    }
}

/// A quantile's name.
pub fn quantile(quantile: AbQuantile) -> &'static str {
    match quantile {
        AbQuantile::P50 => "p50",
        AbQuantile::P99 => "p99",
    }
}
