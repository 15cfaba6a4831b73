//! Trials of netblast, with netreceive's counts.

use std::collections::{BTreeMap, HashMap};

use nicpoll_model::{
    ImportedBasis, ImportedFigure, ImportedInterval, ImportedTrial, Side, SourcePlace, TrafficKind,
    UnplacedFigure,
};

use crate::lines::netrate;
use crate::lines::seen::BlastField;
use crate::transcript::found;
use crate::transcript::found::{BlastLines, Found, Stretch, TerminalHost, blank, stated_figure};

/// How many netblast runs before and after a netreceive stretch may belong to it.
const REACH: usize = 16;

/// Makes trials of netblast runs and netreceive stretches; `is_one_run` unless something between two places says that
/// they are of different runs.
pub fn of_netrate(
    (blasts, stretches): (&[BlastLines], &[Stretch]),
    is_one_run: &dyn Fn(&SourcePlace, &SourcePlace) -> bool,
    name_of: &dyn Fn(&TerminalHost, Option<&str>) -> Option<String>,
    first: u32,
    unplaced: &mut Vec<UnplacedFigure>,
) -> Vec<ImportedTrial> {
    let mut known: HashMap<[u64; 2], usize> = HashMap::new();
    let mut trials: Vec<ImportedTrial> = Vec::new();
    for blast in blasts {
        let mut trial = trial_of_blast(blast, name_of);
        of_blast(&mut trial, blast);
        if trial.value.is_none() {
            let why = "the run of netblast that it is of has neither counts nor a rate";
            let fields = blast.lines.iter();
            unplaced.extend(fields.map(|(_, it)| found::unplaced(&it.printed, why, it.place)));
            continue;
        }
        let of = |name: &str| {
            trial
                .figures
                .iter()
                .find(|it| it.name == name)
                .map_or(0, |it| it.value.to_bits())
        };
        // A quotation may leave out the times, or all but the rate.
        let print = [of("send_calls"), of("send_errors")];
        let rate = of("approximate_packets_per_second");
        let is_alone = blast.lines.len() == 1 && blast.command.is_none();
        let same = trials.iter().position(|it| {
            let mut figures = it
                .figures
                .iter()
                .filter(|it| it.name == "approximate_packets_per_second");
            is_alone && figures.any(|it| it.value.to_bits() == rate)
        });
        match known
            .get(&print)
            .filter(|_| of("send_calls") != 0)
            .or(same.as_ref())
        {
            Some(same) => trials[*same].quoted_again.push(trial.place),
            None => {
                known.insert(print, trials.len());
                trial.test = first + trials.len() as u32;
                trials.push(trial);
            }
        }
    }
    let runs = trials.len();
    let mut taken = vec![false; runs];
    for stretch in stretches {
        let near = nearest_run(&trials[..runs], &taken, stretch, is_one_run);
        match near {
            Some(at) => {
                taken[at] = true;
                trials[at].pairing = ImportedBasis::Inferred;
                trials[at].receiver = stretch.host.name.clone().or(trials[at].receiver.take());
                of_stretch(&mut trials[at], stretch, ImportedBasis::Inferred);
            }
            None => {
                let mut trial = blank("netreceive", stretch.place);
                trial.receiver = name_of(&stretch.host, None);
                trial.workload = String::from("netreceive");
                trial.test = first + trials.len() as u32;
                of_stretch(&mut trial, stretch, ImportedBasis::Said);
                trials.push(trial);
            }
        }
    }
    trials
}

/// The netblast run nearest to a stretch. Timestamps do not help: the clocks of two hosts may differ by years.
fn nearest_run(
    runs: &[ImportedTrial],
    taken: &[bool],
    stretch: &Stretch,
    is_one_run: &dyn Fn(&SourcePlace, &SourcePlace) -> bool,
) -> Option<usize> {
    if let [one] = runs
        && one.place.file != stretch.place.file
    {
        return (!taken[0]).then_some(0);
    }
    let after = runs.partition_point(|it| it.place < stretch.place);
    let around = after.saturating_sub(REACH)..(after + REACH).min(runs.len());
    let free = around.filter(|at| {
        let run = &runs[*at];
        let hosts = (&run.sender, &stretch.host.name);
        let is_other_host = hosts.0.is_none() || hosts.1.is_none() || hosts.0 != hosts.1;
        let is_free = !taken[*at] && run.place.file == stretch.place.file;
        is_free && is_other_host && is_one_run(&run.place, &stretch.place)
    });
    free.min_by_key(|at| runs[*at].place.line.abs_diff(stretch.place.line))
}

/// The start and the end of each run that prints them, by its place, or by the time of day right before it.
pub fn windows(found: &Found, trials: &[ImportedTrial]) -> BTreeMap<SourcePlace, [f64; 2]> {
    /// A time further before a test is not of its start.
    const NEAR_BYTES: u64 = 400;
    let timed = trials.windows(2).map(|it| (Some(it[0].place), &it[1]));
    let timed = trials.first().map(|it| (None, it)).into_iter().chain(timed);
    let timed = timed.filter_map(|(before, trial)| {
        // Its command may stand before it, too.
        let ended = (trial.place.file, trial.place.end_byte);
        let is_before = |it: &SourcePlace| (it.file, it.start_byte) < ended;
        let at = found.clocks.partition_point(|it| is_before(&it.0));
        let (clock, start, step) = found.clocks[..at].last()?;
        let shown = found.cpu.partition_point(|it| is_before(&it.states.place));
        let shown = found.cpu[..shown].last().map(|it| it.states.place);
        let is_next = before.max(shown) < Some(*clock) && clock.file == trial.place.file;
        let is_near = clock.end_byte + NEAR_BYTES >= trial.place.start_byte;
        (is_next && is_near).then_some((
            trial.place,
            [*start, start + step - 1.0 + trial.duration_seconds?],
        ))
    });
    let printed = found.blasts.iter().filter_map(|blast| {
        let time = |which| {
            blast
                .lines
                .iter()
                .find(|(field, _)| *field == which)
                .map(|(_, it)| it.value)
        };
        Some((
            blast.place,
            [time(BlastField::Start)?, time(BlastField::Finish)?],
        ))
    });
    timed.chain(printed).collect()
}

fn trial_of_blast(
    blast: &BlastLines,
    name_of: &dyn Fn(&TerminalHost, Option<&str>) -> Option<String>,
) -> ImportedTrial {
    let words = blast.command.as_ref().map_or(&[][..], |it| &it.words[..]);
    let to = words.first().map(String::as_str);
    let mut trial = blank("netblast", blast.place);
    trial.sender = name_of(&blast.host, None);
    trial.receiver = to.and_then(|to| name_of(&TerminalHost::default(), Some(to)));
    let kind = TrafficKind {
        tool: "netblast",
        payload_bytes: words.get(2).map(String::as_str),
        is_ipv6: to.is_some_and(|to| to.contains(':')),
        streams: None,
        is_both_ways: false,
    };
    trial.workload = kind.to_string();
    trial
}

/// Adds netblast's figures to a trial.
pub fn of_blast(trial: &mut ImportedTrial, blast: &BlastLines) {
    let field = |which: BlastField| {
        let mut lines = blast.lines.iter();
        lines.find(|(field, _)| *field == which).map(|(_, it)| it)
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
            .extend(field(which).map(|it| stated_figure(side, name, it.value, it)));
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
        trial
            .figures
            .push(stated_figure(side, "sent_packets", sent, calls));
        trial.value = seconds.map(|seconds| sent / seconds);
        if field(BlastField::ErrorRate).is_some_and(|it| it.value == 0.0) && errors.value > 0.0 {
            trial.notes.push(format!(
                "It prints an error rate of 0 with {} errors in {} calls: that rate is an integer division, and is \
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

/// Adds netreceive's figures to a trial.
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
            ..stated_figure(side, name, value, first)
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
