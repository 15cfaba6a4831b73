//! Trials of iperf: the ends of tests, without repetitions, paired into trials with their figures.

use std::collections::HashMap;

use nicpoll_model::{
    ImportedBasis, ImportedInterval, ImportedTrial, Side, SourcePlace, TrafficKind,
};

use crate::transcript::found::{
    IntervalLine, Printed, StreamLines, TerminalHost, ToolBlock, blank, stated_figure,
};

/// One direction of a test, as one end printed it.
pub struct PrintedEnd<'a> {
    pub block: &'a ToolBlock,
    pub stream: &'a StreamLines,
    pub sends: Option<bool>,
    pub index: usize,
    pub again: Vec<SourcePlace>,
    /// The same for all streams of a block, so computed once.
    pub is_udp: bool,
    is_dual: bool,
    pub place: SourcePlace,
}

/// Address and port of the sender, then of the receiver.
type Endpoints = ((String, u16), (String, u16));

impl PrintedEnd<'_> {
    pub fn host(&self) -> TerminalHost {
        match self.is_far() {
            true => TerminalHost::inferred(self.block.peer().map(String::from)),
            false => self.block.host.clone(),
        }
    }

    /// The host across from it, as the command or the banner has it.
    fn peer(&self) -> Option<&str> {
        match self.is_far() {
            true => self.block.host.name.as_deref(),
            false => self.block.peer(),
        }
    }

    /// Whether a client's command is followed by what its server counted alone.
    fn is_far(&self) -> bool {
        let command = self.block.command.as_ref();
        let is_client = command.is_some_and(|it| it.has('c') && it.has('u') && !it.has('R'));
        let is_counted = self.sends == Some(false) && self.stream.connected.is_none();
        is_client && is_counted && !self.is_dual && !self.stream.id.starts_with("ttcp")
    }

    pub fn way(&self) -> Option<Endpoints> {
        let connected = self.stream.connected.as_ref()?;
        let (local, peer) = (connected.local.clone(), connected.peer.clone());
        Some(match self.sends? {
            true => (local, peer),
            false => (peer, local),
        })
    }

    /// Lost and total datagrams, from the server's report or the total line.
    fn datagrams(&self) -> Option<[f64; 2]> {
        let line = self.stream.report.as_ref().or(self.stream.total())?;
        line.value.datagrams.filter(|[_, total]| *total > 0.0)
    }

    /// What tells its result from others, and the same of what it says of the other end: a quotation may have either.
    fn prints(&self) -> Vec<[u64; 4]> {
        let counted = self
            .datagrams()
            .map(|[lost, total]| [u64::MAX, lost.to_bits(), total.to_bits(), 0]);
        let of = |line: &IntervalLine| {
            let figures = &line.value;
            [
                figures.end.to_bits(),
                figures.bytes.to_bits(),
                figures.bits_per_second.to_bits(),
                u64::from(self.is_udp),
            ]
        };
        let printed = self.stream.total().into_iter().chain(&self.stream.report);
        match counted {
            Some(counted) => vec![counted],
            None => printed.map(of).collect(),
        }
    }
}

/// Every end of every block.
pub fn ends(blocks: &[ToolBlock]) -> Vec<PrintedEnd<'_>> {
    let mut ends = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let (is_udp, is_dual) = (block.is_udp(), block.is_dual());
        let first_connected = block.streams.iter().find(|it| it.connected.is_some());
        let is_sum = |it: &StreamLines| it.id.starts_with("SUM");
        let with_figures = || block.streams.iter().filter(|it| it.has_figures());
        let sum = with_figures().find(|it| is_sum(it) && !is_dual);
        let streams: Vec<&StreamLines> = match sum {
            Some(sum) => vec![sum],
            None => with_figures().filter(|it| !is_sum(it)).collect(),
        };
        for stream in streams {
            // A sum covers the connections before it.
            let of = match stream.connected {
                None => first_connected.unwrap_or(stream),
                Some(_) => stream,
            };
            let sends = block.sends(if is_sum(stream) { of } else { stream });
            ends.push(PrintedEnd {
                block,
                stream,
                sends,
                index,
                again: stream.again.clone(),
                is_udp,
                is_dual,
                place: place(block, stream),
            });
        }
    }
    ends
}

/// The place of a stream: from the start of its block or its first line to its last byte.
fn place(block: &ToolBlock, stream: &StreamLines) -> SourcePlace {
    let lines = || stream.lines.iter().chain(&stream.report);
    let first = lines().map(|it| it.place).min().unwrap_or_default();
    let last = lines().map(|it| it.place.end_byte).max();
    let is_blocks = block.place.line > 0 && block.place <= first && !block.is_bare();
    SourcePlace {
        end_byte: last.unwrap_or(first.end_byte),
        ..if is_blocks { block.place } else { first }
    }
}

/// Removes ends that repeat a result.
pub fn once(ends: Vec<PrintedEnd<'_>>) -> Vec<PrintedEnd<'_>> {
    let mut known: HashMap<[u64; 4], Vec<usize>> = HashMap::new();
    let mut kept: Vec<PrintedEnd> = Vec::new();
    for end in ends {
        let prints = end.prints();
        let alike = prints.first().and_then(|it| known.get(it));
        let mut alike = alike.into_iter().flatten().rev().take(8).copied();
        let same = alike.find(|at| is_told_again(&kept[*at], &end));
        match same {
            Some(at) => {
                let mut other = end.place;
                if kept[at].block.is_bare() && !end.block.is_bare() {
                    other = kept[at].place;
                    let again = std::mem::take(&mut kept[at].again);
                    kept[at] = PrintedEnd { again, ..end };
                }
                kept[at].again.push(other);
            }
            None => {
                for print in prints {
                    known.entry(print).or_default().push(kept.len());
                }
                kept.push(end);
            }
        }
    }
    kept
}

fn is_told_again(known: &PrintedEnd, end: &PrintedEnd) -> bool {
    if let (Some(one), Some(other)) = (known.way(), end.way()) {
        return one == other
            && known.sends == end.sends
            && known.block.is_server == end.block.is_server;
    }
    let hosts = (known.host().name, end.host().name);
    if hosts.0.is_some() && hosts.1.is_some() && hosts.0 != hosts.1 {
        return false;
    }
    // A quotation may leave out the banner and the connection.
    let is_cut = end.block.banners.is_empty() && end.stream.connected.is_none();
    let words = |it: &PrintedEnd| it.block.command.as_ref().map(|it| it.words.clone());
    match (known.block.is_bare(), end.block.is_bare()) {
        (false, false) => is_cut && end.block.is_quoted && words(known) == words(end),
        // Lines picked out of a text follow each other; a repetition is elsewhere.
        (true, true) => end.block.is_quoted,
        // So does what only looks like one, as all tests at the speed of the wire do.
        _ => end.block.is_quoted || known.block.is_bare() && known.block.is_quoted,
    }
}

/// The two ends of one direction.
pub struct EndPair<'a> {
    pub sender: Option<PrintedEnd<'a>>,
    pub receiver: Option<PrintedEnd<'a>>,
    pub basis: ImportedBasis,
}

impl<'a> EndPair<'a> {
    fn of(end: PrintedEnd<'a>) -> Self {
        let (sender, receiver) = match end.sends {
            Some(false) => (None, Some(end)),
            _ => (Some(end), None),
        };
        EndPair {
            sender,
            receiver,
            basis: ImportedBasis::Unknown,
        }
    }

    pub fn ends(&self) -> impl Iterator<Item = &PrintedEnd<'a>> {
        self.sender.iter().chain(&self.receiver)
    }

    pub fn place(&self) -> SourcePlace {
        self.ends().map(|it| it.place).min().unwrap_or_default()
    }
}

/// Pairs the ends, in text order; what only stands near each other `is_one_run` must take for the ends of one test.
pub fn pairs<'a>(
    ends: Vec<PrintedEnd<'a>>,
    is_one_run: &dyn Fn(&SourcePlace, &SourcePlace) -> bool,
) -> Vec<EndPair<'a>> {
    let mut waiting: HashMap<(Endpoints, bool), usize> = HashMap::new();
    let mut pairs: Vec<Option<EndPair>> = Vec::new();
    for end in ends {
        let way = end.way().zip(end.sends);
        let other = way
            .clone()
            .and_then(|(way, sends)| waiting.remove(&(way, !sends)));
        if let Some(pair) = other.and_then(|at| pairs[at].as_mut()) {
            match end.sends {
                Some(true) => pair.sender = Some(end),
                _ => pair.receiver = Some(end),
            }
            pair.basis = ImportedBasis::Said;
            continue;
        }
        if let Some(key) = way {
            waiting.insert(key, pairs.len());
        }
        pairs.push(Some(EndPair::of(end)));
    }
    let found = by_counts(&pairs);
    join(&mut pairs, found);
    let mut found = by_place(&pairs);
    found.retain(|(one, other)| {
        let at = |index: &usize| {
            pairs[*index]
                .as_ref()
                .map(EndPair::place)
                .unwrap_or_default()
        };
        at(one).file != at(other).file || is_one_run(&at(one), &at(other))
    });
    join(&mut pairs, found);
    let mut pairs: Vec<EndPair> = pairs.into_iter().flatten().collect();
    pairs.sort_by_key(EndPair::place);
    pairs
}

/// Joins pairs of a lone sender and a lone receiver, by their indices.
fn join(pairs: &mut [Option<EndPair>], found: Vec<(usize, usize)>) {
    for (one, other) in found {
        let Some(receiver) = pairs[other]
            .take_if(|it| it.sender.is_none())
            .and_then(|it| it.receiver)
        else {
            continue;
        };
        match pairs[one].as_mut().filter(|it| it.receiver.is_none()) {
            Some(pair) => {
                pair.receiver = Some(receiver);
                pair.basis = ImportedBasis::Inferred;
            }
            None => pairs[other] = Some(EndPair::of(receiver)),
        }
    }
}

/// Both ends state the same lost and total datagrams.
fn by_counts(pairs: &[Option<EndPair>]) -> Vec<(usize, usize)> {
    let key = |end: &Option<PrintedEnd>| Some(end.as_ref()?.datagrams()?.map(f64::to_bits));
    let all = || {
        let all = pairs.iter().enumerate();
        all.filter_map(|(at, pair)| Some((at, pair.as_ref()?)))
    };
    let receivers = all().filter(|(_, it)| it.sender.is_none());
    let receivers = receivers.filter_map(|(at, it)| Some((key(&it.receiver)?, at)));
    let mut receivers: HashMap<[u64; 2], usize> = receivers.collect();
    let senders = all().filter(|(_, it)| it.receiver.is_none());
    senders
        .filter_map(|(at, it)| Some((at, receivers.remove(&key(&it.sender)?)?)))
        .collect()
}

/// Both are neighbours among the lone ends, and their figures agree.
fn by_place(pairs: &[Option<EndPair>]) -> Vec<(usize, usize)> {
    let is_lone = |it: &EndPair| it.sender.is_some() != it.receiver.is_some();
    let lone = pairs.iter().enumerate().filter_map(|(at, pair)| {
        let pair = pair.as_ref().filter(|it| is_lone(it))?;
        Some((at, pair.sender.is_some(), pair.ends().next()?))
    });
    let lone: Vec<(usize, bool, &PrintedEnd)> = lone.collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at + 1 < lone.len() {
        let ((one, sends, end), (other, other_sends, next)) = (lone[at], lone[at + 1]);
        if sends != other_sends && agree(end, next) {
            found.push(if sends { (one, other) } else { (other, one) });
            at += 1;
        }
        at += 1;
    }
    found
}

/// Lines between the results of both ends of a transfer, where one listing has both.
const NEXT_LINES: u32 = 3;

fn agree(one: &PrintedEnd, other: &PrintedEnd) -> bool {
    let both_say_ports = one.way().is_some() && other.way().is_some();
    let hosts = (one.host().name, other.host().name);
    let are_known = hosts.0.is_some() && hosts.1.is_some();
    let (Some(a), Some(b)) = (one.stream.total(), other.stream.total()) else {
        return false;
    };
    let apart = (a.value.end - b.value.end).abs();
    let is_as_long = apart <= 2.0;
    // The two ends of one transfer of ttcp count the same in nearly the same time.
    let is_ttcp = one.stream.id.starts_with("ttcp") && other.stream.id.starts_with("ttcp");
    let is_next = a.place.file == b.place.file && a.place.line.abs_diff(b.place.line) <= NEXT_LINES;
    // Of UDP some may be lost.
    let fewer =
        |sent: &IntervalLine, received: &IntervalLine| sent.value.bytes > received.value.bytes;
    let is_lossy = is_ttcp
        && match one.sends {
            Some(false) => fewer(b, a),
            _ => fewer(a, b),
        };
    let is_same = (a.value.bytes == b.value.bytes || is_next || is_lossy)
        && apart < 0.05 + a.value.end / 200.0;
    let are_two = hosts.0 != hosts.1 && are_known;
    let are_two = if is_ttcp {
        is_same && (are_two || !are_known)
    } else {
        are_two
    };
    let ratio = a.value.bits_per_second / b.value.bits_per_second;
    let is_near = one.is_udp || is_lossy || (0.95..1.05).contains(&ratio);
    let is_one_kind = (one.is_udp == other.is_udp || is_lossy)
        && one.stream.report.is_none()
        && other.stream.report.is_none();
    // The sum of several streams is no single one.
    let is_sum = |it: &PrintedEnd| it.stream.id.starts_with("SUM");
    !both_say_ports
        && is_sum(one) == is_sum(other)
        && are_two
        && is_as_long
        && is_near
        && is_one_kind
}

/// Makes a trial of a pair; its number, setting and final workload name come later.
pub fn trial(
    pair: &EndPair,
    name_of: &dyn Fn(&TerminalHost, Option<&str>) -> Option<String>,
) -> ImportedTrial {
    let way = pair.ends().find_map(PrintedEnd::way);
    let [from, to] = match &way {
        Some((from, to)) => [Some(from.0.as_str()), Some(to.0.as_str())],
        None => [&pair.receiver, &pair.sender].map(|end| end.as_ref()?.peer()),
    };
    let host = |end: &Option<PrintedEnd>| {
        end.as_ref()
            .map_or_else(TerminalHost::default, PrintedEnd::host)
    };
    let mut place = pair.place();
    let same_file = pair
        .ends()
        .map(|it| it.place)
        .filter(|it| it.file == place.file);
    place.end_byte = same_file
        .map(|it| it.end_byte)
        .max()
        .unwrap_or(place.end_byte);
    // What one client ran at the same time is one test.
    let first = pair.ends().map(|it| it.index).min();
    let mut trial = ImportedTrial {
        test: 1 + first.unwrap_or_default() as u32,
        workload: workload(pair),
        sender: name_of(&host(&pair.sender), from),
        receiver: name_of(&host(&pair.receiver), to),
        pairing: pair.basis,
        quantity: String::from("bits_per_second"),
        quoted_again: pair.ends().flat_map(|it| it.again.clone()).collect(),
        ..blank(tool(pair), place)
    };
    of_iperf(&mut trial, pair);
    trial
}

fn tool(pair: &EndPair) -> &'static str {
    let is_ttcp = pair.ends().any(|it| it.stream.id.starts_with("ttcp"));
    if is_ttcp { "ttcp" } else { "iperf" }
}

/// `iperf-tcp`, `iperf-tcp-both-ways`, `iperf-udp-1470-ipv6`, `ttcp-tcp`.
fn workload(pair: &EndPair) -> String {
    let is_udp = pair.ends().any(|it| it.is_udp);
    let option = |letter: char| {
        pair.ends()
            .find_map(|it| it.block.command.as_ref()?.option(letter))
    };
    let told = pair.ends().find_map(|it| {
        let mut sizes = it.block.sizes.iter();
        sizes.find(|it| it.value.0 == "datagram_bytes")
    });
    let told = told.map(|it| it.value.1.to_string());
    let size = told.or_else(|| option('l').map(String::from));
    let has_colon = |address: &str| address.contains(':');
    let is_ipv6 = pair
        .ends()
        .filter_map(PrintedEnd::way)
        .any(|way| has_colon(&way.0.0))
        || pair
            .ends()
            .any(|it| it.block.command.as_ref().is_some_and(|it| it.has('V')));
    TrafficKind {
        tool: &format!("{}-{}", tool(pair), if is_udp { "udp" } else { "tcp" }),
        payload_bytes: size.as_deref().filter(|_| is_udp),
        is_ipv6,
        streams: option('P').filter(|it| *it != "1"),
        is_both_ways: pair.ends().any(|it| it.is_dual),
    }
    .to_string()
}

/// The side of an end's own figures.
pub fn side(end: &PrintedEnd) -> Option<Side> {
    end.sends
        .map(|sends| if sends { Side::Sender } else { Side::Receiver })
}

/// The figures of an interval line: name, words for a sentence, and value.
fn figures_of(line: &IntervalLine) -> [(&'static str, &'static str, Option<f64>); 5] {
    let it = &line.value;
    let [lost, total] = it.datagrams.map_or([None; 2], |both| both.map(Some));
    let (rate, bytes) = (Some(it.bits_per_second), Some(it.bytes));
    [
        ("payload_bits_per_second", "bits a second", rate),
        ("payload_bytes", "bytes", bytes),
        ("jitter_seconds", "seconds of jitter", it.jitter_seconds),
        ("lost_datagrams", "lost datagrams", lost),
        ("datagrams", "datagrams", total),
    ]
}

fn of_line(trial: &mut ImportedTrial, side: Option<Side>, line: &IntervalLine) {
    for (name, _, value) in figures_of(line) {
        let value = match name {
            "payload_bytes" => value.map(f64::round),
            _ => value,
        };
        let figure = |value| stated_figure(side, name, value, line);
        trial.figures.extend(value.map(figure));
    }
}

/// Adds the figures of both ends to a trial.
pub fn of_iperf(trial: &mut ImportedTrial, pair: &EndPair) {
    for end in pair.ends() {
        let side = side(end);
        if let Some(total) = end.stream.total() {
            of_line(trial, side, total);
        }
        for counted in end.stream.counted.iter().chain(&end.block.sizes) {
            // A client's copy of its server's report was counted at the server.
            let (name, value) = counted.value;
            let is_copied = name == "out_of_order_datagrams" && side == Some(Side::Sender);
            let side = side.map(|side| if is_copied { side.other() } else { side });
            if !is_copied || pair.receiver.is_none() {
                let figure = stated_figure(side, name, value, counted);
                trial.figures.push(figure);
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
    let told = pair
        .receiver
        .as_ref()
        .and_then(|it| it.stream.report.as_ref());
    if let Some(told) = told {
        of_line(trial, Some(Side::Sender), told);
    }
    let decides = own.or(copy).or(sent);
    trial.value = decides.map(|line| line.value.bits_per_second);
    trial.duration_seconds = decides.map(|line| line.value.end - line.value.start);
    let is_udp = pair.ends().any(|it| it.is_udp);
    trial.is_sent = own.is_none() && copy.is_none() && is_udp;
    // The receiver's intervals, if any; otherwise the sender's.
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
    let is_inferred = |it: &PrintedEnd| it.host().basis == ImportedBasis::Inferred;
    if pair.ends().any(is_inferred) && pair.basis != ImportedBasis::Said {
        trial
            .notes
            .push(String::from("The host follows from what stands near."));
    }
}

fn interval(line: &IntervalLine) -> ImportedInterval {
    ImportedInterval {
        start_seconds: line.value.start,
        end_seconds: line.value.end,
        value: line.value.bits_per_second,
        place: line.place,
    }
}

/// Adds the rate that a command requests, if it is in bits.
fn asked(trial: &mut ImportedTrial, end: &PrintedEnd) {
    let Some(word) = end.block.command.as_ref().and_then(|it| it.option('b')) else {
        return;
    };
    let digits = word.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let power = match word[digits.len()..].to_ascii_lowercase().as_str() {
        "" => Some(1.0),
        "k" => Some(1e3),
        "m" => Some(1e6),
        "g" => Some(1e9),
        _ => None,
    };
    let value = digits.parse::<f64>().ok().zip(power);
    let value = value.map(|(number, power)| number * power);
    let asked = |value| {
        let printed = Printed {
            value: (),
            printed: format!("-b {word}"),
            place: end.block.place,
        };
        let name = "asked_bits_per_second";
        stated_figure(Some(Side::Sender), name, value, &printed)
    };
    let possible = value.filter(|it| it.is_finite() && *it >= 0.0);
    trial.figures.extend(possible.map(asked));
}

/// Notes where the client's copy of the server's report differs.
fn note_differences(trial: &mut ImportedTrial, own: &IntervalLine, copy: &IntervalLine) {
    for ((_, what, own), (.., copied)) in figures_of(own).into_iter().zip(figures_of(copy)) {
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
