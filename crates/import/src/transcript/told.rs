//! What sentences tell of how hosts receive: from there on, or of a test before.
//!
//! A sentence counts if it says clause by clause whose setting it is and which. One that leads to a test, names polling
//! or interrupts and cannot be read so leaves the setting open from there on, until the text is clear again.

use std::collections::BTreeSet;

use nicpoll_model::{ImportedTrial, Side, SourcePlace};

use crate::lines::prose::{ClauseMode, Sentence, SentenceKind, is_in, parts};
use crate::transcript::found::{HostNames, PollingSwitch, Statement, SwitchScope};

/// Longer sentences tell no change.
const CHANGE_MAX: usize = 240;
/// A plain sentence that tells no change is a label if it is shorter.
const SHORT_MAX: usize = 60;
/// Most words of a clause that only adds a host to the one before: `and on egret`.
const ADDED_MAX: usize = 4;
/// The first lines of a text are its title.
const TITLE_LINES: u32 = 2;
/// The last sentences before a test lead to it.
const LEAD: usize = 2;

/// Most tests that a sentence takes back.
const RETRACTED_MAX: usize = 16;

/// Whose setting a clause tells, and which.
type Claim = (SwitchScope, bool);

/// What a sentence tells.
#[derive(Default)]
struct Told {
    claims: Vec<Claim>,
    /// Whether it names polling or interrupts, and it cannot be read what it says of them.
    is_open: bool,
}

/// Reads sentences in the order of the text.
struct Reader<'a> {
    hosts: &'a HostNames,
    /// Whose setting it is if a sentence does not say it.
    whose: SwitchScope,
    /// What was told last.
    last: Vec<Claim>,
    /// The hosts and ends that polled, by themselves or with all.
    polled: BTreeSet<SwitchScope>,
    /// Whether the last sentence or the one before named polling or interrupts.
    is_near_topic: bool,
    was_topic: bool,
}

impl Reader<'_> {
    /// The hosts or ends that a clause names, and whether no others are meant.
    fn scopes(&self, clause: &str) -> (Vec<SwitchScope>, bool) {
        let named = self.hosts.named_in(clause);
        let parts = parts(clause);
        let scopes = match (parts.sender, parts.receiver) {
            _ if parts.all => vec![SwitchScope::All],
            _ if !named.is_empty() => {
                let of = |name: &&str| SwitchScope::Host(String::from(*name));
                named.iter().map(of).collect()
            }
            (true, false) => vec![SwitchScope::End(Side::Sender)],
            (false, true) => vec![SwitchScope::End(Side::Receiver)],
            (true, true) => vec![SwitchScope::All],
            (false, false) => Vec::new(),
        };
        (scopes, parts.only && !parts.all)
    }

    /// Reads a sentence; `is_single` when it tells of a test before, and so of no change.
    fn read(&mut self, sentence: &Sentence, is_single: bool) -> Told {
        let mut told = Told::default();
        let (mut bare, mut waiting): (Vec<bool>, Vec<SwitchScope>) = (Vec::new(), Vec::new());
        let mut labels: Vec<SwitchScope> = Vec::new();
        let (mut changes, mut is_label, mut is_near, mut is_known) = (false, true, false, true);
        for clause in &sentence.clauses {
            let mode = ClauseMode::of(clause, told.is_open);
            let (scopes, only) = self.scopes(clause);
            told.is_open |= mode.is_topic;
            changes |= mode.changes;
            if mode.is_unreal {
                continue;
            }
            let was_near = std::mem::take(&mut is_near);
            let label = std::mem::take(&mut labels);
            let size = clause.split_whitespace().count();
            // `sink does not`, `but not on sink`, `sink too`
            let is_negated = clause.ends_with(" not ")
                || [" but not ", " not "]
                    .iter()
                    .any(|it| clause.starts_with(it));
            let others = || self.not_of(&scopes, &told.claims);
            let like = match has(clause, "too likewise also") && size <= ADDED_MAX + 2 {
                true => others(),
                false if is_negated => others().map(|it| !it),
                false => None,
            };
            let is_short = sentence.introduces || sentence.kind == SentenceKind::Heading;
            let like = like.filter(|_| !scopes.is_empty());
            let short = || ClauseMode::elliptic(clause, told.is_open, is_short);
            let short = short().filter(|_| !scopes.is_empty() || told.is_open || is_short);
            let polls = mode.polls.or(like).or(short);
            let named = self.hosts.named_in(clause);
            is_label &= polls.is_none() || Sentence::is_label(clause, &named);
            match polls {
                // `it does not know polling` is of a host that is not named here.
                Some(_)
                    if scopes.is_empty()
                        && clause.starts_with(" it ")
                        && waiting.is_empty()
                        && mode.is_of_it =>
                {
                    return Told {
                        is_open: true,
                        claims: Vec::new(),
                    };
                }
                // `server: polling, client: interrupts`
                Some(polls) if scopes.is_empty() && !label.is_empty() => {
                    waiting.retain(|it| !label.contains(it));
                    told.claims.extend(label.into_iter().map(|it| (it, polls)));
                }
                // Whose it is may be among the words that are not known.
                Some(polls) if scopes.is_empty() => {
                    is_known &= Sentence::is_label(clause, &[]);
                    bare.push(polls);
                }
                Some(polls) => {
                    // `client and server polling`
                    let both = label.into_iter().filter(|_| clause.starts_with(" and "));
                    told.claims.extend(both.map(|it| (it, polls)));
                    for scope in scopes {
                        if only && polls {
                            self.polled.insert(scope.clone());
                        }
                        let other = other(&scope, self.hosts).filter(|_| only);
                        told.claims.extend(other.map(|it| (it, !polls)));
                        told.claims.push((scope, polls));
                    }
                    is_near = true;
                }
                // `and on egret`
                None if was_near && clause.starts_with(" and ") && size <= ADDED_MAX => {
                    let polls = told.claims.last().is_some_and(|it| it.1);
                    told.claims.extend(scopes.into_iter().map(|it| (it, polls)));
                }
                None if size <= ADDED_MAX + 1 || mode.is_topic => {
                    if size <= scopes.len() + 1 {
                        labels.clone_from(&scopes);
                    }
                    waiting.extend(scopes);
                }
                None => {}
            }
        }
        let mut all = bare.iter().chain(told.claims.iter().map(|it| &it.1));
        let is_one = all.all(|it| Some(it) == bare.first());
        match bare.first() {
            Some(polls) if told.claims.is_empty() && is_one && is_known => {
                if waiting.is_empty() || waiting.len() > 2 || is_single {
                    waiting = vec![self.whose(*polls)];
                }
                told.claims
                    .extend(waiting.into_iter().map(|it| (it, *polls)));
            }
            Some(_) if !is_one => told.claims.clear(),
            _ => {}
        }
        let is_plain = sentence.kind == SentenceKind::Plain && !sentence.introduces;
        let is_short = sentence.words.len() <= SHORT_MAX;
        let is_said = is_single || !is_plain || changes || is_label && is_short;
        if !is_said || sentence.words.len() > CHANGE_MAX {
            told.claims.clear();
        }
        self.is_near_topic = self.was_topic || told.is_open;
        self.was_topic = told.is_open;
        let polled = told.claims.iter().filter(|it| it.1).map(|it| it.0.clone());
        self.polled.extend(polled);
        told.is_open = told.claims.is_empty() && (told.is_open || sentence.moves());
        if !told.claims.is_empty() {
            self.last.clone_from(&told.claims);
        }
        told
    }

    /// Whose setting it is if a sentence does not say it: of the only host that polled by itself before, or of all.
    fn whose(&self, polls: bool) -> SwitchScope {
        let mut all = self.polled.iter();
        match (all.next(), all.next()) {
            (Some(one), None) if polls => one.clone(),
            _ => self.whose.clone(),
        }
    }

    /// What was told last of hosts other than these.
    fn not_of(&self, scopes: &[SwitchScope], here: &[Claim]) -> Option<bool> {
        let mut others = self
            .last
            .iter()
            .chain(here)
            .filter(|it| !scopes.contains(&it.0));
        others.next_back().map(|it| it.1)
    }
}

fn has(clause: &str, words: &str) -> bool {
    clause.split_whitespace().any(|it| is_in(it, words))
}

/// The other end or host of two.
fn other(scope: &SwitchScope, hosts: &HostNames) -> Option<SwitchScope> {
    match scope {
        SwitchScope::End(side) => Some(SwitchScope::End(side.other())),
        SwitchScope::Host(name) => {
            let other = hosts.other(name);
            other.map(|it| SwitchScope::Host(String::from(it)))
        }
        SwitchScope::All => None,
    }
}

/// A switch of one trial alone, with the trial's place.
pub type SingleSwitch = (SourcePlace, PollingSwitch);

/// What sentences tell from their place on, and what they tell of single trials. `tested` is the only host that
/// commands set, if it is no end of a test; `screens` are the places of output
/// that is of no trial.
pub fn told(
    statements: &[Statement],
    (hosts, tested): (&HostNames, Option<&str>),
    trials: &[ImportedTrial],
    screens: &[SourcePlace],
) -> (Vec<PollingSwitch>, Vec<SingleSwitch>) {
    let tested = tested.map(|it| SwitchScope::Host(String::from(it)));
    let mut reader = Reader {
        hosts,
        whose: tested.unwrap_or(SwitchScope::All),
        last: Vec::new(),
        polled: BTreeSet::new(),
        is_near_topic: false,
        was_topic: false,
    };
    let (mut found, mut single) = (Vec::new(), Vec::new());
    let mut heading: Option<&Statement> = None;
    let mut since = SourcePlace::default();
    for (index, statement) in statements.iter().enumerate() {
        let Statement {
            place, sentence, ..
        } = statement;
        let is_conclusion = sentence.kind == SentenceKind::Conclusion;
        let before = trials.partition_point(|it| it.place < *place);
        let of = match is_conclusion {
            true => {
                let from = std::mem::replace(&mut since, *place);
                before.checked_sub(1).filter(|at| trials[*at].place > from)
            }
            false => referred(sentence, &trials[..before]),
        };
        let of = of
            .map(|at| &trials[at])
            .filter(|it| it.place.file == place.file);
        let next = trials.get(before).map(|it| it.place);
        let screen = screens.get(screens.partition_point(|it| it < place));
        // A label of a screen is of that alone, and a title of nothing.
        let is_of_screen =
            sentence.introduces && screen.is_some_and(|it| next.is_none_or(|next| *it < next));
        let is_head = sentence.kind == SentenceKind::Heading || index == 0;
        let is_first = is_head && before == 0 && place.line <= TITLE_LINES;
        let is_first = is_first || sentence.find("subject").is_some();
        let is_title = is_first && !sentence.introduces && !is_conclusion;
        let is_other = is_conclusion && (of.is_none() || !is_label(sentence));
        if sentence.asks || is_other || is_of_screen || is_title {
            continue;
        }
        let mut told = reader.read(sentence, of.is_some());
        let doubts = sentence.doubts() && of.is_none();
        if doubts {
            told.claims.clear();
        }
        let near = of
            .or(trials.get(before))
            .or_else(|| trials.get(before.checked_sub(1)?));
        let switch = |claim: Claim| switch(claim, statement, near);
        // What is taken back, and of which test, may be any before.
        if of.is_none() && sentence.retracts() && reader.is_near_topic {
            let file = trials[..before]
                .iter()
                .rev()
                .take_while(|it| it.place.file == place.file);
            let open = |at| {
                (
                    at,
                    PollingSwitch {
                        is_polling: None,
                        ..switch((SwitchScope::All, false))
                    },
                )
            };
            single.extend(file.take(RETRACTED_MAX).map(|it| open(it.place)));
        }
        if let Some(of) = of {
            single.extend(told.claims.into_iter().map(|it| (of.place, switch(it))));
            continue;
        }
        // A heading's setting ends with its section.
        let is_heading = sentence.kind == SentenceKind::Heading && !sentence.introduces;
        let ends = |it: &mut &Statement| is_heading && sentence.level <= it.sentence.level;
        let is_over = heading.take_if(ends).is_some();
        let after = statements.get(index + LEAD);
        let leads = after.is_none_or(|it| next.is_some_and(|next| it.place > next));
        let is_open = told.is_open && before > 0 && (leads || is_heading || sentence.introduces);
        if !told.claims.is_empty() {
            heading = is_heading.then_some(statement);
            found.extend(told.claims.into_iter().map(switch));
        } else if doubts || is_over || is_open {
            let named = hosts
                .named_in(&sentence.words)
                .into_iter()
                .filter(|_| doubts);
            let named = named.map(|it| SwitchScope::Host(String::from(it)));
            let mut scopes: Vec<SwitchScope> = named.collect();
            if scopes.is_empty() {
                scopes.push(SwitchScope::All);
            }
            let open = |scope| PollingSwitch {
                is_polling: None,
                ..switch((scope, false))
            };
            match trials.get(before).filter(|_| doubts && sentence.introduces) {
                Some(next) => single.extend(scopes.into_iter().map(|it| (next.place, open(it)))),
                None => found.extend(scopes.into_iter().map(open)),
            }
        }
    }
    (found, single)
}

/// What a claim switches; ends and all hosts are those of the nearest trial.
fn switch(
    (scope, polls): Claim,
    Statement {
        place, sentence, ..
    }: &Statement,
    near: Option<&ImportedTrial>,
) -> PollingSwitch {
    let ends = near.map(|it| [it.sender.clone(), it.receiver.clone()]);
    let (scope, ends) = match (scope, ends) {
        (SwitchScope::All, Some([Some(one), Some(other)])) => (SwitchScope::All, vec![one, other]),
        (SwitchScope::End(side), Some([sender, receiver])) => {
            let host = if side == Side::Sender {
                sender
            } else {
                receiver
            };
            (
                host.map_or(SwitchScope::End(side), SwitchScope::Host),
                Vec::new(),
            )
        }
        (scope, _) => (scope, Vec::new()),
    };
    PollingSwitch {
        place: *place,
        scope,
        ends,
        is_polling: Some(polls),
        is_command: sentence.kind == SentenceKind::Plain && sentence.switches(),
        is_lasting: sentence.is_lasting(),
        is_told: true,
    }
}

/// Whether a conclusion is a label of what stands before, and no judgement.
fn is_label(sentence: &Sentence) -> bool {
    let is_topic = |it: &&String| ClauseMode::of(it, false).is_topic;
    let mut topics = sentence.clauses.iter().filter(is_topic).peekable();
    topics.peek().is_some() && topics.all(|it| Sentence::is_label(it, &[]))
}

/// The test before that a sentence in the past tense names: `the second run was with polling off`.
fn referred(sentence: &Sentence, trials: &[ImportedTrial]) -> Option<usize> {
    const RUNS: &str = "run runs test tests try round measurement result listing";
    const ORDINALS: &str = "first second third fourth fifth sixth seventh eighth ninth";
    let is_past = sentence.has("was were had above polled");
    if sentence.introduces || sentence.kind == SentenceKind::Heading || !is_past {
        return None;
    }
    let words: Vec<&str> = sentence.words.split_whitespace().collect();
    let at = words.iter().position(|it| is_in(it, RUNS))?;
    let before = words[at.checked_sub(1)?];
    if is_in(before, "last previous") {
        return trials.len().checked_sub(1);
    }
    let number = match ORDINALS.split(' ').position(|it| it == before) {
        Some(at) => at + 1,
        None => words.get(at + 1)?.parse().ok()?,
    };
    let mut tests: Vec<usize> = Vec::new();
    for (at, trial) in trials.iter().enumerate() {
        if tests.last().is_none_or(|it| trials[*it].test != trial.test) {
            tests.push(at);
        }
    }
    tests.get(number.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::prose::SentenceMark;

    /// What a sentence tells: whose, and `+` for polling or `-` for interrupts.
    fn told_by(text: &str) -> String {
        let mut hosts = HostNames::default();
        ["gen", "sink"].iter().for_each(|it| hosts.add(it));
        let mut reader = Reader {
            hosts: &hosts,
            whose: SwitchScope::All,
            last: Vec::new(),
            polled: BTreeSet::new(),
            is_near_topic: false,
            was_topic: false,
        };
        let mark = match text.strip_prefix("== ") {
            Some(_) => SentenceMark::Heading,
            None => SentenceMark::None,
        };
        let told = reader.read(&Sentence::of(text, mark, false).unwrap(), false);
        let mut all: Vec<String> = told
            .claims
            .iter()
            .map(|(scope, polls)| {
                let whose = match scope {
                    SwitchScope::All => "both",
                    SwitchScope::Host(name) => name,
                    SwitchScope::End(side) => side.name(),
                };
                format!("{whose}{}", if *polls { '+' } else { '-' })
            })
            .collect();
        all.sort();
        all.join(" ")
    }

    #[test]
    fn a_sentence_tells_whose_setting_it_is_and_which() {
        let cases = include_str!("told.txt");
        let mut wrong = Vec::new();
        for line in cases
            .lines()
            .filter(|it| !it.is_empty() && !it.starts_with("# "))
        {
            let (text, expected) = line.rsplit_once('|').unwrap();
            let told = told_by(text.trim());
            if told != expected.trim() {
                wrong.push(format!("{text} | {told}, not {expected}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
