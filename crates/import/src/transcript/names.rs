//! The ends of trials that print no name: by elimination, by sentences that say which host sends in the next test or in
//! all, by the tests that name theirs, and by the test before.

use std::collections::{HashMap, HashSet};

use nicpoll_model::{ImportedTrial, SourcePlace};

use crate::lines::clause::{self, RECEIVERS, SENDERS, is_in};
use crate::lines::iperf;
use crate::lines::prose::{Sentence, SentenceKind, SentenceMark};
use crate::transcript::found::{Authors, Found, HostNames, Statement};

/// Most sentences before a test that may say which way it ran, and how far before it.
const LEAD: usize = 4;
/// Sentences right before a test.
const NEAR: usize = 2;
const LEAD_BYTES: u64 = 1000;
/// Most sentences on all tests, and most screens behind one, that are looked at.
const LEARNT_MAX: usize = 64;
/// Words for another than the author: what they measured ran on hosts of their own.
const OTHERS: &str = "user she he his their someone somebody student students colleague friend reader customer guest commenter writes encloses";
/// Words of a sentence that says which way all tests run.
const STANDING: &str = "always everything all unless throughout every each whole below";
/// Most words between the host that sends and the one that receives.
const GOAL_WITHIN: usize = 8;

/// Names what ends of trials can be known by the text as a whole.
pub fn complete(trials: &mut [ImportedTrial], statements: &[Statement], found: &Found) {
    let (hosts, authors) = (&found.hosts, &found.authors);
    let terminals: HashSet<&str> = found.terminals().collect();
    for trial in trials.iter_mut() {
        for end in [&mut trial.sender, &mut trial.receiver]
            .into_iter()
            .flatten()
        {
            let own = without_link(end, &terminals).filter(|it| hosts.has(it));
            if let Some(own) = own {
                *end = String::from(own);
            }
        }
    }
    // Whose prompt stood last, that of a box in between, did not send what has no command.
    let is_box = |it: &String| hosts.is_between(it);
    for trial in trials.iter_mut().filter(|it| it.receiver.is_none()) {
        trial.sender.take_if(|it| is_box(it));
    }
    let mut named = Named::new();
    let mut known: HashSet<(&str, String)> = HashSet::new();
    for statement in statements {
        let author = authors.of(&statement.place);
        let of = hosts.named_in(&statement.sentence.words);
        known.extend(of.iter().map(|it| (author, String::from(*it))));
        named.entry(author).or_default().extend(of);
    }
    for trial in trials.iter() {
        let ends = [&trial.sender, &trial.receiver].into_iter().flatten();
        known.extend(ends.map(|it| (authors.of(&trial.place), it.clone())));
    }
    // One that only another author knows is not the other one of two.
    let other = |name: &str, author: &str| {
        let is_known = |it: &String| authors.0.is_empty() || known.contains(&(author, it.clone()));
        let other = hosts.other(name).map(String::from).filter(is_known);
        // Or the other one of two that this author names.
        other.or_else(|| {
            let own = named.get(author)?;
            let mut others = own
                .iter()
                .filter(|it| **it != name && !hosts.is_between(it));
            let other = others.next().filter(|_| own.contains(name))?;
            others.next().is_none().then(|| String::from(*other))
        })
    };
    by_two(trials, statements, &other, (hosts, authors));
    by_terminals(trials, &named, found);
    by_elimination(trials, &named, &other, (hosts, authors));
    let reversed = found.blocks.iter().filter(|it| it.reverses());
    let reversed: HashSet<u64> = reversed.map(|it| it.place.start_byte).collect();
    // The addresses to which each author's tests send.
    let mut to: HashMap<&str, HashSet<String>> = HashMap::new();
    for trial in trials.iter() {
        let of = to.entry(authors.of(&trial.place)).or_default();
        let goal = match reversed.contains(&trial.place.start_byte) {
            true => &trial.sender,
            false => &trial.receiver,
        };
        of.extend(goal.clone().filter(|it| is_address(it)));
    }
    by_direction(trials, statements, &other, (hosts, authors), &reversed);
    by_server(trials, statements, (hosts, authors), (&to, &reversed));
    by_repetition(trials, statements, (hosts, authors), &reversed);
    turn_back(trials, found);
    // Nobody sends to itself: then neither is known.
    let is_one = |it: &&mut ImportedTrial| it.sender.is_some() && it.sender == it.receiver;
    for trial in trials.iter_mut().filter(is_one) {
        [trial.sender, trial.receiver] = [None, None];
    }
}

/// Turns the second stream of `--bidir`, which runs against the first.
fn turn_back(trials: &mut [ImportedTrial], found: &Found) {
    let streams = found.blocks.iter().flat_map(|it| &it.streams);
    let is_back = |id: &str| iperf::role(id).is_some_and(|it| it.1 != id.ends_with('C'));
    let back = streams.filter(|it| is_back(&it.id));
    let back = back.filter_map(|it| Some(it.lines.last()?.place.end_byte));
    let back: HashSet<u64> = back.collect();
    for at in 1..trials.len() {
        let [first, second] = &mut trials[at - 1..=at] else {
            continue;
        };
        if first.test == second.test && back.contains(&second.place.end_byte) {
            second.sender.clone_from(&first.receiver);
            second.receiver.clone_from(&first.sender);
        }
    }
}

/// Names the ends that are not said, and the addresses, that only ever stand across from one of two hosts.
fn by_two(
    trials: &mut [ImportedTrial],
    statements: &[Statement],
    other_of: &dyn Fn(&str, &str) -> Option<String>,
    (hosts, authors): (&HostNames, &Authors),
) {
    let mut across: HashMap<String, HashSet<String>> = HashMap::new();
    let pairs = |it: &ImportedTrial| Some([it.sender.clone()?, it.receiver.clone()?]);
    for [one, other] in trials.iter().filter_map(pairs) {
        for (address, host) in [(&one, &other), (&other, &one)] {
            if is_address(address) {
                across
                    .entry(address.clone())
                    .or_default()
                    .insert(host.clone());
            }
        }
    }
    // A third host has addresses, too.
    let mut aims: HashMap<String, HashSet<String>> = HashMap::new();
    for [sender, receiver] in trials
        .iter()
        .filter_map(pairs)
        .filter(|_| hosts.count() > 2)
    {
        if is_address(&receiver) {
            aims.entry(sender).or_default().insert(receiver);
        }
    }
    for trial in trials {
        let author = authors.of(&trial.place);
        let is_known = trial.figures.iter().all(|it| it.side.is_some());
        let is_own = is_known && !is_foreign(statements, trial);
        let across_from = |it: &Option<String>| {
            let host = it.as_ref().filter(|it| is_own && hosts.has(it))?;
            other_of(host, author)
        };
        match (&trial.sender, &trial.receiver) {
            (one @ Some(_), None) => trial.receiver = across_from(one),
            (None, one @ Some(_)) => trial.sender = across_from(one),
            _ => {}
        }
        for end in [&mut trial.sender, &mut trial.receiver]
            .into_iter()
            .flatten()
        {
            let of = across.get(end).filter(|it| it.len() == 1);
            let host = of.into_iter().flatten().find(|it| hosts.has(it));
            let host = host.filter(|it| aims.get(*it).is_none_or(|it| it.len() < 2));
            if let Some(name) = host.and_then(|it| other_of(it, author)) {
                *end = name;
            }
        }
    }
}

/// Names the addresses with which tests of another host ran, if behind them stands what one host alone says of itself. Every
/// host that their author names must do so somewhere.
fn by_terminals(trials: &mut [ImportedTrial], named: &Named, found: &Found) {
    let mut seen: Vec<(SourcePlace, &str)> = found.seen_at().collect();
    seen.sort();
    let pair = |it: &ImportedTrial| {
        let (address, host) = match (it.sender.clone()?, it.receiver.clone()?) {
            (host, address) if is_address(&address) => (address, host),
            (address, host) => (address, host),
        };
        let is_it = is_address(&address) && found.hosts.has(&host);
        is_it.then(|| (found.authors.of(&it.place), address, host))
    };
    // The hosts behind the tests with each address.
    let mut across: HashMap<(&str, String), HashSet<&str>> = HashMap::new();
    for (at, trial) in trials.iter().enumerate() {
        let Some((author, address, host)) = pair(trial) else {
            continue;
        };
        let next = trials[at..].iter().find(|it| it.test != trial.test);
        let is_next = |it: &SourcePlace| next.is_some_and(|next| *it > next.place);
        let from = seen.partition_point(|it| it.0 < trial.place);
        let near = seen[from..].iter().take(LEARNT_MAX);
        let near = near.take_while(|it| !is_next(&it.0));
        let near = near.filter(|it| found.authors.is_one(&it.0, &trial.place));
        let behind = near.map(|it| it.1).filter(|it| *it != host);
        across.entry((author, address)).or_default().extend(behind);
    }
    let shown: HashSet<&str> = seen.iter().map(|it| it.1).collect();
    for trial in trials.iter_mut() {
        let Some((author, address, host)) = pair(trial) else {
            continue;
        };
        let mut named = named.get(author).into_iter().flatten();
        let is_known = |it: &&str| *it == host || shown.contains(it) || found.hosts.is_between(it);
        let only = across.get(&(author, address)).filter(|it| it.len() == 1);
        let only = only.filter(|_| named.all(is_known));
        let only = only.and_then(|it| it.iter().next());
        let only = only.filter(|it| **it != host && found.hosts.has(it));
        let ends = [&mut trial.sender, &mut trial.receiver]
            .into_iter()
            .flatten();
        if let Some((name, end)) = only.zip(ends.into_iter().find(|it| is_address(it))) {
            *end = String::from(*name);
        }
    }
}

/// Names the only address that tests of a host have at their other end, if their author names one other host.
fn by_elimination(
    trials: &mut [ImportedTrial],
    named: &Named,
    other_of: &dyn Fn(&str, &str) -> Option<String>,
    (hosts, authors): (&HostNames, &Authors),
) {
    // The address at the other end of each host, and the host at that of each address; none if there are several.
    let mut across: HashMap<(&str, String), Option<String>> = HashMap::new();
    for trial in trials.iter() {
        let (Some(one), Some(other)) = (&trial.sender, &trial.receiver) else {
            continue;
        };
        let author = authors.of(&trial.place);
        for (end, other) in [(one, other), (other, one)] {
            let known = across.entry((author, end.clone()));
            known
                .or_insert_with(|| Some(other.clone()))
                .take_if(|it| it != other);
        }
    }
    for trial in trials {
        let author = authors.of(&trial.place);
        let only = |it: &String| across.get(&(author, it.clone())).cloned().flatten();
        let of_author = named.get(author).filter(|_| !author.is_empty());
        for end in [&mut trial.sender, &mut trial.receiver]
            .into_iter()
            .flatten()
        {
            let name = only(end).filter(|it| is_address(end) && only(it).as_ref() == Some(end));
            let Some(name) = name.filter(|it| hosts.has(it)) else {
                continue;
            };
            let mut others = of_author
                .into_iter()
                .flatten()
                .filter(|it| **it != name && !hosts.is_between(it));
            let other = others.next().filter(|_| others.next().is_none());
            let other = other.map(|it| String::from(*it));
            if let Some(other) = other_of(&name, author).or(other) {
                *end = other;
            }
        }
    }
}

/// The hosts that each author names.
type Named<'a> = HashMap<&'a str, HashSet<&'a str>>;

/// Names the ends to which an author's tests send, if sentences say of one host that its server runs there: `iperf -s
/// runs on fw0`.
fn by_server(
    trials: &mut [ImportedTrial],
    statements: &[Statement],
    (hosts, authors): (&HostNames, &Authors),
    (to, reversed): (&HashMap<&str, HashSet<String>>, &HashSet<u64>),
) {
    let mut servers = Named::new();
    for statement in statements.iter().filter(|it| !it.sentence.asks) {
        for clause in &statement.sentence.clauses {
            // `netreceive is running on sink`
            let on = ["iperf s ", "iperf3 s ", "server ", "netreceive "];
            let on = on.iter().find_map(|it| clause.split_once(it));
            let on = on.and_then(|it| Some(it.1.split_once("on ")?.1));
            // `with iperf -s (or iperf -s -u) waiting on sink`
            let waits = ["waiting on ", "listening on ", "listens on "];
            let waits = waits.iter().find_map(|it| clause.split_once(it));
            let is_server = statement.sentence.has_any("iperf s|iperf3 s");
            let on = on.or(waits.map(|it| it.1).filter(|_| is_server));
            let runs = [
                " runs iperf s ",
                " runs iperf3 s ",
                " runs the server ",
                " has netreceive ",
            ];
            let runs = runs
                .iter()
                .find_map(|it| clause.split_once(it)?.0.rsplit(' ').next());
            let named = on.or(runs).and_then(|it| begins_with(it, hosts));
            let of = servers.entry(authors.of(&statement.place)).or_default();
            of.extend(named);
        }
    }
    for trial in trials
        .iter_mut()
        .filter(|it| is_in(&it.tool, "iperf netblast"))
    {
        let author = authors.of(&trial.place);
        let of = servers.get(author).filter(|it| it.len() == 1);
        let Some(server) = of.and_then(|it| it.iter().next()) else {
            continue;
        };
        // All addresses are the server's if tests run on no third host.
        let is_one = to[author].len() == 1 || hosts.count() == hosts.boxes().count() + 2;
        // The server of `-R` sends.
        let is_back = reversed.contains(&trial.place.start_byte);
        let (goal, other) = match is_back {
            true => (&trial.sender, &trial.receiver),
            false => (&trial.receiver, &trial.sender),
        };
        let is_goal = match goal {
            Some(end) => is_address(end) && is_one,
            None => other.is_some() && !is_back,
        };
        if is_goal && other.as_deref() != Some(server) && !is_foreign(statements, trial) {
            let end = match is_back {
                true => &mut trial.sender,
                false => &mut trial.receiver,
            };
            *end = Some(String::from(*server));
        }
    }
}

/// The host with whose name words begin.
fn begins_with<'h>(words: &str, hosts: &'h HostNames) -> Option<&'h str> {
    let words = words.strip_prefix("the ").unwrap_or(words);
    let named = hosts.named_in(&format!(" {words} "));
    let small = |it: &str| it.to_ascii_lowercase().replace('-', " ");
    named.into_iter().find(|it| words.starts_with(&small(it)))
}

/// The host of a name that it has on one of its links, and on no terminal: `dipper-10g`, `edge2-x`.
fn without_link<'n>(name: &'n str, terminals: &HashSet<&str>) -> Option<&'n str> {
    const LINKS: &str =
        "1g 10g 25g 40g 50g 100g 10ge 25ge 100ge 1ge ib lan data test eth0 eth1 ib0";
    let (own, link) = name.rsplit_once('-')?;
    let is_link = terminals.contains(own) && !terminals.contains(name);
    (is_in(link, LINKS) || is_link).then_some(own)
}

fn is_address(end: &str) -> bool {
    end.contains(['.', ':'])
}

/// Whether a test does not print the name of an end.
fn is_open(end: &Option<String>) -> bool {
    end.as_ref().is_none_or(|it| is_address(it))
}

/// Names the ends of trials of which the sentences before them, or their heading, say which way they ran: `birch to
/// alder`, `quince sends`, `the other way round`.
fn by_direction(
    trials: &mut [ImportedTrial],
    statements: &[Statement],
    other_of: &dyn Fn(&str, &str) -> Option<String>,
    (hosts, authors): (&HostNames, &Authors),
    reversed: &HashSet<u64>,
) {
    // The hosts of addresses.
    let mut learnt: HashMap<String, String> = HashMap::new();
    // Tests that name no end have the sentence before them in common.
    let mut told = SourcePlace::default();
    let standing = standing(trials, statements, other_of, (hosts, authors));
    let cases = cases(statements, hosts);
    // The other way again may be that before, or the same.
    let mut is_turned = false;
    for at in 0..trials.len() {
        let (before, rest) = trials.split_at_mut(at);
        let trial = &mut rest[0];
        if !is_open(&trial.sender) && !is_open(&trial.receiver) {
            (told, is_turned) = (trial.place, false);
            continue;
        }
        let was_turned = std::mem::take(&mut is_turned);
        let last = before.iter().rev().find(|it| it.test != trial.test);
        let author = authors.of(&trial.place);
        let other = |it: &String| other_of(it, author);
        let way = leading(statements, &trial.place, told).find_map(|it| {
            let way =
                direction(&it.sentence, hosts, &other).or_else(|| case_way(&cases, &it.sentence));
            // `Forward direction again:`
            let is_new = before.last().is_none_or(|last| last.place < it.place);
            let is_forward = is_new && it.sentence.has("forward forwards");
            let way = way.or_else(|| is_forward.then(|| first_way(before, author, authors))?);
            way.or_else(|| {
                // `polling still on, with -R`
                let is_asked = is_new && trial.tool == "iperf" && it.sentence.reverses();
                let is_round = it.sentence.turns_round();
                let is_turned_round = is_round && !turns_settings(&it.sentence, hosts);
                let last = last.filter(|_| is_asked || is_turned_round)?;
                is_turned = true;
                let ends = [last.sender.clone(), last.receiver.clone()];
                // Below a heading that says so they are turned once.
                let is_section = it.sentence.kind == SentenceKind::Heading && last.place > it.place;
                if is_section || is_asked && reversed.contains(&last.place.start_byte) {
                    return Some(ends);
                }
                let [sender, receiver] = ends;
                Some([receiver, sender].map(|it| it.filter(|_| !was_turned)))
            })
        });
        let is_own = !is_foreign(statements, trial);
        let standing = || of_all(&standing, &trial.place, authors).filter(|_| is_own);
        let way = way.or_else(standing);
        let Some(way) = way else {
            continue;
        };
        // A label says whose terminal it is, not who sends: `in oak only:`
        let is_label = trial.tool == "iperf" && trial.receiver.is_none();
        if is_label && trial.sender.is_some() && trial.sender == way[1] {
            trial.receiver = trial.sender.take();
        }
        let fits = |end: &Option<String>, said: &Option<String>| {
            is_open(end) || said.is_none() || end == said
        };
        if fits(&trial.sender, &way[0]) && fits(&trial.receiver, &way[1]) {
            for (end, said) in [&mut trial.sender, &mut trial.receiver]
                .into_iter()
                .zip(way)
            {
                if let Some((address, name)) =
                    end.as_ref().zip(said.as_ref()).filter(|it| it.0 != it.1)
                {
                    learnt.insert(address.clone(), name.clone());
                }
                *end = said.or(end.take());
            }
        }
    }
    rename(trials, &learnt);
}

/// Puts names in place of the addresses that they have; none that stands across from its host.
fn rename(trials: &mut [ImportedTrial], names: &HashMap<String, String>) {
    let of = |end: &Option<String>, other: &Option<String>| {
        let name = end.as_ref().and_then(|it| names.get(it));
        name.filter(|it| Some(*it) != other.as_ref()).cloned()
    };
    for trial in trials {
        let sender = of(&trial.sender, &trial.receiver);
        let receiver = of(&trial.receiver, &trial.sender);
        trial.sender = sender.or(trial.sender.take());
        trial.receiver = receiver.or(trial.receiver.take());
    }
}

/// The sender and the receiver of each case in tables with columns for both: `| A | apu-1 | apu-2 |` below `data from` and
/// `data to`.
fn cases(statements: &[Statement], hosts: &HostNames) -> Vec<(String, [Option<String>; 2])> {
    const FROM: [&str; 4] = ["data from", "from", "sender", "source"];
    const TO: [&str; 4] = ["data to", "to", "receiver", "sink"];
    const CASES_MAX: usize = 64;
    let mut columns = [None; 2];
    let mut found = Vec::new();
    for cells in statements.iter().map(|it| &it.sentence.cells) {
        let column = |names: [&str; 4]| {
            let mut cells = cells.iter();
            cells.position(|it| names.contains(&it.to_ascii_lowercase().as_str()))
        };
        let of_head = [column(FROM), column(TO)];
        if of_head.iter().all(Option::is_some) {
            columns = of_head;
            continue;
        }
        let host = |at: Option<usize>| {
            let named = hosts.named_in(&clause::words_of(cells.get(at?)?).0);
            named.first().map(|it| String::from(*it))
        };
        // `| 4 | n3 to n1 |`
        let ways = cells.iter().skip(1).filter_map(|it| {
            let sentence = Sentence::of(it, SentenceMark::Row, false)?;
            direction(&sentence, hosts, &|_| None)
        });
        let mut ways = ways.filter(|it| it.iter().all(Option::is_some));
        let ends = ways.next().unwrap_or_else(|| columns.map(host));
        let is_one = found.len() < CASES_MAX && ends.iter().all(Option::is_some);
        if let Some(case) = cells.first().filter(|_| is_one) {
            found.push((case.to_ascii_lowercase(), ends));
        }
    }
    found
}

/// The way of the only case that a sentence names.
fn case_way(
    cases: &[(String, [Option<String>; 2])],
    sentence: &Sentence,
) -> Option<[Option<String>; 2]> {
    let mut named = cases.iter().filter(|it| sentence.is_of_case(&it.0));
    let first = named.next()?;
    named.next().is_none().then(|| first.1.clone())
}

/// Which way an author's first test ran that names both ends.
fn first_way(
    before: &[ImportedTrial],
    author: &str,
    authors: &Authors,
) -> Option<[Option<String>; 2]> {
    let own = before.iter().take(LEARNT_MAX);
    let mut own = own.filter(|it| authors.of(&it.place) == author);
    let first = own.find(|it| !is_open(&it.sender) && !is_open(&it.receiver))?;
    Some([first.sender.clone(), first.receiver.clone()])
}

/// The sentences since a place that lead to a test, the nearest first, then the heading above it.
fn leading<'s>(
    statements: &'s [Statement],
    place: &SourcePlace,
    since: SourcePlace,
) -> impl Iterator<Item = &'s Statement> + use<'s> {
    let (file, start) = (place.file, place.start_byte);
    let until = statements.partition_point(|it| it.place < *place);
    let near = statements[..until].iter().rev();
    let near = near.take_while(move |it| it.place.file == file);
    let is_heading =
        |it: &&Statement| it.sentence.kind == SentenceKind::Heading && !it.sentence.introduces;
    let heading = near.clone().take(64).find(is_heading);
    let is_since =
        move |it: &&Statement| it.place > since && it.place.end_byte + LEAD_BYTES >= start;
    let lead = near.take(LEAD).take_while(is_since).chain(heading);
    let is_told = |it: &Sentence| it.cells.is_empty() || it.is_case();
    lead.filter(move |it| is_told(&it.sentence) && !it.sentence.asks)
}

/// Which way a test ran by the last sentence on all tests of its author.
fn of_all(
    standing: &[(SourcePlace, [String; 2])],
    place: &SourcePlace,
    authors: &Authors,
) -> Option<[Option<String>; 2]> {
    let said = standing.partition_point(|it| it.0 < *place);
    let mut of = standing[..said].iter().rev().take(LEARNT_MAX);
    let known = of.find(|it| authors.is_one(&it.0, place))?;
    Some(known.1.clone().map(Some))
}

/// What a file's sentences say of the way its tests run.
#[derive(Default)]
struct Setup<'a> {
    first: Option<SourcePlace>,
    hosts: HashSet<&'a str>,
    /// The addresses to which tests send: a third host has one of its own.
    goals: HashSet<&'a String>,
    /// The ways that sentences tell, and whether one may turn a test round.
    ways: HashSet<&'a [String; 2]>,
    may_turn: bool,
}

impl Setup<'_> {
    /// Whether a sentence before the first test tells the way of all.
    fn tells(&self, statement: &Statement) -> bool {
        let is_one = self.goals.len() < 2 && self.ways.len() == 1 && !self.may_turn;
        let is_one = is_one && self.hosts.len() == 2;
        let is_before = self.first.is_some_and(|it| statement.place < it);
        is_one && is_before && statement.sentence.is_whole
    }
}

/// Which way all tests of an author run from a place on: by a sentence that says so; or by one before any test, if none
/// says that another ran the other way.
fn standing(
    trials: &[ImportedTrial],
    statements: &[Statement],
    other_of: &dyn Fn(&str, &str) -> Option<String>,
    (hosts, authors): (&HostNames, &Authors),
) -> Vec<(SourcePlace, [String; 2])> {
    let way = |statement: &Statement| {
        let sentence = &statement.sentence;
        let other = |it: &String| other_of(it, authors.of(&statement.place));
        match direction(sentence, hosts, &other)? {
            [Some(one), Some(other)] => Some([one, other]),
            _ => None,
        }
    };
    let ways: Vec<Option<[String; 2]>> = statements.iter().map(way).collect();
    // Each author has a setup of his own.
    let key = |place: &SourcePlace| (place.file, authors.of(place));
    let mut files: HashMap<(u32, &str), Setup> = HashMap::new();
    for (statement, way) in statements.iter().zip(&ways) {
        let file = files.entry(key(&statement.place)).or_default();
        let named = hosts.named_in(&statement.sentence.words).into_iter();
        file.hosts.extend(named.filter(|it| !hosts.is_between(it)));
        file.may_turn |= statement.sentence.may_turn();
        file.ways.extend(way);
    }
    for trial in trials {
        let file = files.entry(key(&trial.place)).or_default();
        file.first.get_or_insert(trial.place);
        file.goals
            .extend(trial.receiver.as_ref().filter(|it| is_address(it)));
    }
    let of = |(statement, way): (&Statement, &Option<[String; 2]>)| {
        let (sentence, way) = (&statement.sentence, way.clone()?);
        let is_told = !sentence.asks && !sentence.has(OTHERS);
        let is_setup = files[&key(&statement.place)].tells(statement);
        let is_one = is_told && (sentence.has(STANDING) || is_setup);
        is_one.then_some((statement.place, way))
    };
    statements.iter().zip(&ways).filter_map(of).collect()
}

/// Whether a sentence turns the settings of two hosts, and not the way of a test: `the other way round, polling on elm and
/// interrupts on oak`.
fn turns_settings(sentence: &Sentence, hosts: &HostNames) -> bool {
    sentence.names_polling() && !sentence.has("r") && hosts.named_in(&sentence.words).len() > 1
}

/// Whether what leads to a test says that it is another's, or that the writer does not know.
fn is_foreign(statements: &[Statement], trial: &ImportedTrial) -> bool {
    let until = statements.partition_point(|it| it.place < trial.place);
    let mut lead = statements[..until].iter().rev().take(LEAD).enumerate();
    lead.any(|(at, Statement { sentence, .. })| {
        let is_others = sentence.has(OTHERS) || sentence.is_mine();
        at < NEAR && is_others || sentence.doubts()
    })
}

/// Names the ends of trials that tell nothing as those of the test before, if nothing that stands between them names
/// another host or author, doubts, or turns round. Whether one behind a `-R` (`reversed`) had that, too, is not known.
fn by_repetition(
    trials: &mut [ImportedTrial],
    statements: &[Statement],
    (hosts, authors): (&HostNames, &Authors),
    reversed: &HashSet<u64>,
) {
    let all_ends = trials.iter().flat_map(|it| [&it.sender, &it.receiver]);
    let all_ends: HashSet<String> = all_ends.flatten().cloned().collect();
    for at in 1..trials.len() {
        let (before, rest) = trials.split_at_mut(at);
        let trial = &mut rest[0];
        let own = [trial.sender.clone(), trial.receiver.clone()];
        let fits = |it: &&ImportedTrial| {
            let ends = [&it.sender, &it.receiver];
            (0..2).all(|at| own[at].is_none() || own[at] == *ends[at])
        };
        // One of two of its author that ran at once, the first if it is of another test.
        let near = before.iter().rev().take(LEARNT_MAX);
        let near = near.filter(|it| authors.is_one(&it.place, &trial.place));
        let near: Vec<&ImportedTrial> = near.take(2).collect();
        let is_both = near
            .iter()
            .all(|it| it.test == near[0].test && it.test != trial.test);
        let first = near.last().copied().filter(|it| is_both && fits(it));
        let Some(last) = first.or(near.into_iter().find(|it| fits(it))) else {
            continue;
        };
        let ends = [&last.sender, &last.receiver];
        if ends.iter().any(|it| it.is_none()) {
            continue;
        }
        let from = statements.partition_point(|it| it.place < last.place);
        let until = statements.partition_point(|it| it.place < trial.place);
        let parts = |it: &Statement| {
            let sentence = &it.sentence;
            // `polling on again on the router` tells of no end.
            let is_of_settings = sentence.names_polling() || sentence.has("interrupts");
            let is_end =
                |it: &&str| !is_of_settings || all_ends.len() > 2 && all_ends.contains(*it);
            // Nor does one on a box in between.
            let is_box = |it: &&str| hosts.is_between(it) && !all_ends.contains(*it);
            let named = hosts.named_in(&sentence.words).into_iter();
            let mut named = named.filter(is_end).filter(|it| !is_box(it));
            let is_other = named.any(|it| !ends.iter().any(|end| end.as_deref() == Some(it)));
            // `So I repeated run 2`
            let is_head = sentence.kind == SentenceKind::Heading
                || sentence.kind == SentenceKind::Plain && sentence.names_run();
            let is_of_other = sentence.run_number().is_some() && !is_head;
            let is_turned = sentence.may_turn() && !turns_settings(sentence, hosts);
            is_other || is_of_other || is_turned
        };
        let own = statements[from..until].iter().rev();
        let own = own.filter(|it| authors.is_one(&it.place, &trial.place));
        let mut lead = own.take(LEAD);
        // `and -R again:`, `Once more:`
        let is_reversed = reversed.contains(&last.place.start_byte);
        let is_short = |it: &Sentence| it.words.split_whitespace().count() <= 3;
        let is_again = |it: &Sentence| {
            it.has("r")
                || it.has("same") && !it.has_any("as in|as for")
                || it.introduces && is_short(it) && it.has("again more")
        };
        if is_reversed && !lead.clone().any(|it| is_again(&it.sentence)) {
            continue;
        }
        if !lead.any(parts) && !is_foreign(statements, trial) {
            [trial.sender, trial.receiver] = ends.map(Clone::clone);
        }
    }
}

/// The ends that a label names, each next to its part, if it says no more: `sender oak, receiver elm`, `oak (client)`.
fn by_label(words: &[&str], host: &dyn Fn(usize) -> Option<String>) -> Option<[Option<String>; 2]> {
    const BETWEEN: &str = "to on is the of and as at run runs test step round case now then tcp udp iperf iperf3 ttcp";
    let mut ends: [Option<String>; 2] = [None, None];
    let (mut name, mut part) = (None, None);
    for (at, word) in words.iter().enumerate() {
        let of = [SENDERS, RECEIVERS].iter().position(|it| is_in(word, it));
        match host(at) {
            Some(host) if name.is_none() => name = Some(host),
            None if of.is_some() && part.is_none() => part = of,
            None if of.is_none() && (is_in(word, BETWEEN) || word.len() == 1) => {}
            _ => return None,
        }
        if let (Some(_), Some(of)) = (&name, part) {
            ends[of] = name.take();
            part = None;
        }
    }
    let is_whole = name.is_none() && part.is_none() && ends[0] != ends[1];
    is_whole.then_some(ends)
}

/// The sender or the receiver of which a sentence tells by a command or by its part in the tests.
fn by_part(words: &[&str], host: &dyn Fn(usize) -> Option<String>) -> Option<[Option<String>; 2]> {
    // `iperf -u -c minnow`, of a sentence
    let client = words.iter().position(|it| is_in(it, "iperf iperf3"));
    let client = client.filter(|_| !words.contains(&"r")).and_then(|from| {
        let near = (from + 1..words.len().saturating_sub(1)).take(GOAL_WITHIN);
        near.filter(|at| words[*at] == "c")
            .find_map(|at| host(at + 1))
    });
    if let Some(to) = client {
        return Some([None, Some(to)]);
    }
    // `client on attic, server on cellar`, `the client of iperf3 is always attic, the server always cellar`
    let placed = |parts: &str| {
        const BETWEEN: &str =
            "of iperf iperf3 is was on runs lives sits always netblast netreceive netsend ttcp";
        let at = words.iter().position(|it| is_in(it, parts))? + 1;
        let mut next = (at..words.len()).skip_while(|at| is_in(words[*at], BETWEEN));
        next.next().filter(|it| *it > at).and_then(host)
    };
    // `On anton each time netblast 10.7.2.2, on gustav netreceive`, `mars runs netblast`
    let run = |tool: &str| {
        let at = words.iter().position(|it| *it == tool)?;
        let is_on = |it: &usize| words[it - 1] == "on";
        let mut before = (at.saturating_sub(GOAL_WITHIN).max(1)..at).rev();
        let own = before.find(is_on).and_then(host);
        if words.get(at + 1) == Some(&"on") {
            return host(at + 2);
        }
        let runs = at
            .checked_sub(2)
            .filter(|it| is_in(words[it + 1], "runs does has"));
        runs.and_then(host).or(own)
    };
    let ends = [
        placed("client sender").or_else(|| run("netblast")),
        placed("server receiver").or_else(|| run("netreceive")),
    ];
    ends.iter().any(Option::is_some).then_some(ends)
}

/// A sentence's words, with the hyphens of hosts' names.
fn with_whole_names(sentence: &Sentence, hosts: &HostNames) -> String {
    let mut text = sentence.words.clone();
    let named = hosts.named_in(&sentence.words);
    for name in named.into_iter().filter(|it| it.contains('-')) {
        let small = name.to_ascii_lowercase();
        let apart = format!(" {} ", small.replace('-', " "));
        text = text.replace(&apart, &format!(" {small} "));
    }
    text
}

/// The sender and the receiver of which a sentence tells.
fn direction(
    sentence: &Sentence,
    hosts: &HostNames,
    other: &dyn Fn(&String) -> Option<String>,
) -> Option<[Option<String>; 2]> {
    const SENDS: &str = "sends send sending sent transmits transmitting pushes pushing blasts blasting blast talks generates offered \
        offers uploads shoots shooting fires pumps pumping floods feeds";
    const RECEIVES: &str = "receives receive received receiving listens swallows swallowing eats";
    const ADVERBS: &str = "now then again always still has have only";
    let text = with_whole_names(sentence, hosts);
    let words: Vec<&str> = text.split_whitespace().collect();
    let host = |at: usize| {
        let word = words.get(at)?.replace('-', " ");
        hosts
            .meant_in(&format!(" {word} "))
            .first()
            .map(|it| String::from(*it))
    };
    // `ant blasts 18 byte UDP at bee`
    let goal = |at: usize| {
        let near = at + 2..(at + GOAL_WITHIN).min(words.len());
        near.clone()
            .find_map(|at| host(at).filter(|_| is_in(words[at - 1], "at to towards into")))
    };
    if let Some(way) = by_label(&words, &host).or_else(|| by_part(&words, &host)) {
        let [one, to] = &way;
        let across = [to, one].map(|it| it.as_ref().and_then(other));
        let [sender, receiver] = way;
        let [by_receiver, by_sender] = across;
        return Some([sender.or(by_receiver), receiver.or(by_sender)]);
    }
    (0..words.len()).find_map(|at| {
        let one = host(at)?;
        let is_late = words.get(at + 1).is_some_and(|it| is_in(it, ADVERBS));
        let at = at + usize::from(is_late);
        let next = words.get(at + 1).copied().unwrap_or("");
        // `ash through elm to oak`
        let is_box = at > 0 && is_in(words[at - 1], "through via over");
        if is_in(next, "to into towards toward") && !is_box {
            // `ash to elm to oak`: elm is in between.
            let is_line = is_in(words.get(at + 3).unwrap_or(&""), "to");
            let far = host(at + 4).filter(|far| is_line && *far != one);
            let to = far.or_else(|| host(at + 2).filter(|to| *to != one));
            let is_from = at > 0 && words[at - 1] == "from" && words.get(at + 2) == Some(&"the");
            let to = to.or_else(|| other(&one).filter(|_| is_from))?;
            return Some([Some(one), Some(to)]);
        }
        // `Towards oak:`
        if at == 1 && is_in(words[0], "towards toward") {
            return Some([other(&one), Some(one)]);
        }
        let part = if is_in(next, "that who which") {
            words.get(at + 2).copied().unwrap_or("")
        } else if is_in(next, "is as was runs becomes makes does") {
            let mut near = words[at + 2..].iter().copied().take(3);
            let part = near.find(|it| is_in(it, SENDERS) || is_in(it, RECEIVERS));
            part.unwrap_or("")
        } else {
            next
        };
        match () {
            () if is_in(part, SENDS) || part != next && is_in(part, SENDERS) => {
                // `shed pushes and cellar swallows`
                let mut takers = (1..words.len()).filter(|at| is_in(words[*at], RECEIVES));
                let taker = takers.find_map(|at| host(at - 1).filter(|it| *it != one));
                let to = goal(at).or(taker).or_else(|| other(&one));
                Some([Some(one), to])
            }
            () if is_in(part, RECEIVES) || part != next && is_in(part, RECEIVERS) => {
                Some([other(&one), Some(one)])
            }
            () => None,
        }
    })
}
