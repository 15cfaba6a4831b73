//! The figures of a trial, each with the end that counted it and its place.
//!
//! What must hold: the receiver's own count decides; the client's copy of its report stands in where it is missing, and
//! what differs between the two is said. netblast's error rate is not used: it is an integer division.

use nicpoll_model::{ImportedBasis, ImportedFigure, ImportedInterval, ImportedTrial, Side};

use super::block::{Counted, Line};
use super::found::{Blast, CpuLine, Stretch};
use super::netrate::{self, BlastField};
use super::trials::{End, Pair, side};

/// A figure that is told in so many words.
fn said(side: Option<Side>, name: &str, value: f64, of: &Counted) -> ImportedFigure {
    ImportedFigure {
        name: String::from(name),
        side,
        value,
        printed: of.printed.clone(),
        basis: ImportedBasis::Said,
        place: of.place,
        since: None,
    }
}

/// The figures of a line of iperf.
fn of_line(trial: &mut ImportedTrial, side: Option<Side>, line: &Line) {
    let it = &line.figures;
    let [lost, total] = it.datagrams.map_or([None; 2], |both| both.map(Some));
    let figures = [
        ("payload_bits_per_second", Some(it.bits_per_second)),
        ("payload_bytes", Some(it.bytes.round())),
        ("jitter_seconds", it.jitter_seconds),
        ("lost_datagrams", lost),
        ("datagrams", total),
    ];
    for (name, value) in figures {
        trial.figures.extend(value.map(|value| ImportedFigure {
            name: String::from(name),
            side,
            value,
            printed: line.printed.clone(),
            basis: ImportedBasis::Said,
            place: line.place,
            since: None,
        }));
    }
}

/// Fills a trial with what its ends printed.
pub fn of_iperf(trial: &mut ImportedTrial, pair: &Pair) {
    for end in pair.ends() {
        let side = side(end);
        if let Some(total) = end.stream.total() {
            of_line(trial, side, total);
        }
        for counted in end.stream.counted.iter().chain(end.block.sizes()) {
            // What a client copies of its server's report was counted there.
            let is_copied = counted.name == "out_of_order_datagrams" && side == Some(Side::Sender);
            let side = if is_copied {
                Some(Side::Receiver)
            } else {
                side
            };
            let is_known = is_copied && pair.receiver.is_some();
            if !is_known {
                trial
                    .figures
                    .push(said(side, counted.name, counted.value, counted));
            }
        }
        asked(trial, end);
    }
    let own = pair.receiver.as_ref().and_then(|it| it.stream.total());
    let copy = pair
        .sender
        .as_ref()
        .and_then(|it| it.stream.report.as_ref());
    match (own, copy) {
        (Some(own), Some(copy)) => note_differences(trial, own, copy),
        (None, Some(copy)) => {
            of_line(trial, Some(Side::Receiver), copy);
            trial.notes.push(String::from(
                "What arrived is the client's copy of the server's report.",
            ));
        }
        _ => {}
    }
    let sent = pair.sender.as_ref().and_then(|it| it.stream.total());
    let decides = own.or(copy).or(sent);
    trial.value = decides.map(|line| line.figures.bits_per_second);
    trial.duration_seconds = decides.map(|line| line.figures.end - line.figures.start);
    let is_udp = pair.ends().any(|it| it.is_udp);
    trial.is_sent = own.is_none() && copy.is_none() && is_udp;
    // The receiver's intervals where it has any.
    let ends = pair.receiver.iter().chain(&pair.sender);
    let series = ends
        .map(|it| it.stream.intervals())
        .find(|it| !it.is_empty());
    trial.series = series
        .unwrap_or_default()
        .into_iter()
        .map(interval)
        .collect();
    if trial.value.is_none() {
        trial.notes.push(String::from(
            "The line of the whole test is missing: it has no rate.",
        ));
    }
    let is_other = |it: &&End| it.host().basis == ImportedBasis::Inferred;
    if pair.ends().any(|it| is_other(&it)) && pair.basis != ImportedBasis::Said {
        trial
            .notes
            .push(String::from("The host follows from what stands near."));
    }
}

fn interval(line: &Line) -> ImportedInterval {
    ImportedInterval {
        start_seconds: line.figures.start,
        end_seconds: line.figures.end,
        value: line.figures.bits_per_second,
        place: line.place,
    }
}

/// The rate that a command asks for.
fn asked(trial: &mut ImportedTrial, end: &End) {
    let Some(word) = end.block.command.as_ref().and_then(|it| it.option('b')) else {
        return;
    };
    let digits = word.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let power = match word[digits.len()..].to_ascii_lowercase().as_str() {
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        _ => 1.0,
    };
    let value = digits.parse::<f64>().ok().filter(|it| it.is_finite());
    trial.figures.extend(value.map(|value| ImportedFigure {
        name: String::from("asked_bits_per_second"),
        side: Some(Side::Sender),
        value: value * power,
        printed: format!("-b {word}"),
        basis: ImportedBasis::Said,
        place: end.block.place,
        since: None,
    }));
}

/// The client's copy of the server's report may differ in a last digit.
fn note_differences(trial: &mut ImportedTrial, own: &Line, copy: &Line) {
    let (one, other) = (&own.figures, &copy.figures);
    let parts = [
        (
            "bits a second",
            Some(one.bits_per_second),
            Some(other.bits_per_second),
        ),
        ("bytes", Some(one.bytes), Some(other.bytes)),
        (
            "seconds of jitter",
            one.jitter_seconds,
            other.jitter_seconds,
        ),
        (
            "lost datagrams",
            one.datagrams.map(|it| it[0]),
            other.datagrams.map(|it| it[0]),
        ),
        (
            "datagrams",
            one.datagrams.map(|it| it[1]),
            other.datagrams.map(|it| it[1]),
        ),
    ];
    for (what, own, copied) in parts {
        if own != copied
            && let (Some(own), Some(copied)) = (own, copied)
        {
            trial.notes.push(format!(
                "The server says {own} {what}, and the client's copy of its report (line {}) {copied}: the server's \
                 own count is used.",
                copy.place.line
            ));
        }
    }
}

/// Fills a trial with what netblast printed.
pub fn of_blast(trial: &mut ImportedTrial, blast: &Blast) {
    let field = |which: BlastField| {
        blast
            .fields
            .iter()
            .find(|(field, _)| *field == which)
            .map(|(_, it)| it)
    };
    let side = Some(Side::Sender);
    let (calls, errors) = (field(BlastField::Calls), field(BlastField::Errors));
    let names = [
        (BlastField::Calls, "send_calls"),
        (BlastField::Errors, "send_errors"),
        (BlastField::Rate, "approximate_packets_per_second"),
        (BlastField::Throughput, "frame_bits_per_second"),
    ];
    for (which, name) in names {
        trial
            .figures
            .extend(field(which).map(|it| said(side, name, it.value, it)));
    }
    let (start, finish) = (field(BlastField::Start), field(BlastField::Finish));
    let elapsed = start
        .zip(finish)
        .map(|(start, finish)| finish.value - start.value);
    let asked = || blast.command.as_ref()?.words.get(3)?.parse().ok();
    let seconds = elapsed
        .filter(|it| *it > 0.0)
        .or_else(asked)
        .filter(|it| *it > 0.0);
    trial.duration_seconds = seconds;
    trial.is_sent = true;
    if let Some((calls, errors)) = calls
        .zip(errors)
        .filter(|(calls, errors)| errors.value <= calls.value)
    {
        let sent = calls.value - errors.value;
        trial.figures.push(said(side, "sent_packets", sent, calls));
        trial.value = seconds.map(|seconds| sent / seconds);
        if field(BlastField::ErrorRate).is_some_and(|it| it.value == 0.0) && errors.value > 0.0 {
            trial.notes.push(format!(
                "It prints an error rate of 0 beside {} errors in {} calls: that rate is an integer division, and is \
                 not used.",
                errors.value, calls.value
            ));
        }
    }
    let told = field(BlastField::Rate);
    if trial.value.is_none() {
        trial.value = told.map(|it| it.value);
    }
    if let Some((value, told)) = trial.value.zip(told)
        && (value / told.value - 1.0).abs() > 0.05
        && told.value > 20.0
    {
        trial.notes.push(format!(
            "Its counts and times give {value:.0} packets a second, and it prints {}.",
            told.value
        ));
    }
}

/// Adds what netreceive counted.
pub fn of_stretch(trial: &mut ImportedTrial, stretch: &Stretch, basis: ImportedBasis) {
    let whole = netrate::steady(&stretch.lines);
    let packets: f64 = whole.iter().map(|(packets, ..)| packets).sum();
    let seconds: f64 = whole.iter().map(|(_, seconds, _)| seconds).sum();
    let Some((_, _, first)) = whole.first().filter(|_| seconds > 0.0) else {
        return;
    };
    let side = Some(Side::Receiver);
    let all: f64 = stretch.lines.iter().map(|(packets, ..)| packets).sum();
    let figures = [
        ("packets_per_second", packets / seconds),
        ("received_packets", all),
    ];
    for (name, value) in figures {
        trial.figures.push(ImportedFigure {
            basis,
            ..said(side, name, value, first)
        });
    }
    let mut at = 0.0;
    for (packets, seconds, of) in whole {
        trial.series.push(ImportedInterval {
            start_seconds: at,
            end_seconds: at + seconds,
            value: packets / seconds,
            place: of.place,
        });
        at += seconds;
    }
    trial.value = Some(packets / seconds);
    trial.is_sent = false;
}

/// Adds a line of CPU states.
pub fn of_cpu(trial: &mut ImportedTrial, side: Side, line: &CpuLine) {
    const NAMES: [&str; 5] = [
        "cpu_user_ratio",
        "cpu_nice_ratio",
        "cpu_system_ratio",
        "cpu_interrupt_ratio",
        "cpu_idle_ratio",
    ];
    for (name, value) in NAMES.into_iter().zip(line.states) {
        trial.figures.push(ImportedFigure {
            name: String::from(name),
            side: Some(side),
            value,
            printed: line.printed.clone(),
            // Nothing but its place ties a line of top to a test.
            basis: ImportedBasis::Inferred,
            place: line.place,
            since: None,
        });
    }
}
