//! Which end of which test a screen shows: what speaks for each, and what is clear enough to be booked.
//!
//! A screen of CPU states is weighed twice: for the host that it shows, and for the test that ran. The prompt, the
//! sentences before it, a conclusion after it and its clock count; each with the weight below. What wins by
//! [`MARGIN`] is booked, with its reasons; all else is listed with its candidates.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use nicpoll_model::{
    ImportedBasis, ImportedEvidence, ImportedFigure, ImportedTrial, Side, SourcePlace,
    UnplacedFigure,
};

use crate::lines::clause::{self, RECEIVERS, SENDERS};
use crate::lines::layout;
use crate::lines::prose::{self, DOUBTS, SAME_HOST, Sentence, SentenceKind};
use crate::transcript::found::{
    Authors, CpuLine, HostNames, Scene, Statement, end, stated_figure, unplaced,
};
use crate::transcript::setting::HostSettings;
use crate::transcript::told::{headed, nth_test};

/// By how much the best reading must win, and the least weight that it needs.
const MARGIN: i32 = 2;
const LEAST: i32 = 3;
/// Weight of a sentence right before a screen, and of a conclusion right after it.
const SENTENCE: i32 = 5;
/// Weight of a sentence before that.
const EARLIER: i32 = 3;
const PROMPT: i32 = 1;
/// Weight of a prompt whose command printed the screen; sentences before it may be of another.
const ASKED: i32 = 6;
/// Weight of another screen with the same start of the host.
const BOOT: i32 = 4;
/// Weight of a clock that stands within a test, and of one that does not though others of that host do.
const CLOCK: i32 = 6;
/// Weight of the test right before a screen, and of the one after it.
const BEFORE: i32 = 4;
const AFTER: i32 = 2;
/// Weight of a word that fits a test or its setting; one that does not weighs twice as much against it.
const WORD: i32 = 3;
/// Most sentences between a heading and what it is of.
const HEADING_REACH: usize = 64;
/// Most tests before and after a screen that are weighed without a clock.
const REACH: usize = 8;
/// Most screens in a row.
const IN_ROW_MAX: usize = 4;
/// Phrases of a screen that was taken for another host's, and most sentences between the two.
const WRONG_WINDOW: &str = "wrong window|wrong pane|wrong xterm|wrong terminal|wrong tab|wrong shell|wrong console|wrong box";
const CORRECTED_WITHIN: usize = 8;
/// Phrases of a screen that is of a test further up.
const EARLIER_TEST: &str = "up the page|further up|from above|run above|test above|shown above";
/// Phrases of when a screen was taken.
const TIMED_BY: &str = " after the client | after the sender | after the server | after the receiver | before the client ";
/// Most words of a label that names no host, so that the terminal stays.
const SHORT_WORDS: usize = 5;
/// Sentences further before a screen say nothing of it.
const NEAR_BYTES: u64 = 600;
/// Most hosts that are told apart by their start, and most tests whose clocks are looked at for that.
const HOSTS_MAX: usize = 64;
const WINDOWS_MAX: usize = 512;
/// The directions of a test stand within so many trials of each other.
const WAYS: usize = 3;
/// Hosts whose starts differ by less are one: Linux prints minutes.
const BOOT_SECONDS: f64 = 61.0;

/// Something that speaks for a reading or against it.
#[derive(Clone, Debug)]
struct Reason {
    weight: i32,
    text: String,
    place: SourcePlace,
}

/// The host that a screen shows, as a name, as an end of the test, or as a box that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shown {
    Host(String),
    End(Side),
    Between,
}

/// What is known of a text beyond its screens.
pub struct Context<'a> {
    pub statements: &'a [Statement],
    pub hosts: &'a HostNames,
    pub settings: &'a HostSettings<'a>,
    pub authors: &'a Authors,
    /// Where trials begin, and where screens of CPU states do.
    pub trials: Vec<SourcePlace>,
    pub screens: Vec<SourcePlace>,
    /// All lines of CPU states.
    pub rows: Vec<SourcePlace>,
    /// The hosts on which screens are taken where nothing else is said, from a place on.
    pub standing: Vec<(SourcePlace, String)>,
    /// The tests of numbered listings.
    pub listings: HashMap<String, u32>,
    /// Start and end of the tests that print them, in seconds of a clock, by where they begin.
    pub windows: BTreeMap<SourcePlace, [f64; 2]>,
}

/// The tests that numbered listings show: that before a caption below, and that behind one above.
pub fn listings(statements: &[Statement], trials: &[ImportedTrial]) -> HashMap<String, u32> {
    let of = |statement: &Statement| {
        let (numbers, is_caption) = layout::listings(&statement.sentence.words);
        let number = numbers.into_iter().next().filter(|_| is_caption)?;
        let after = trials.partition_point(|it| it.place < statement.place);
        let is_below = statement.sentence.kind == SentenceKind::Conclusion;
        let trial = trials.get(after.checked_sub(usize::from(is_below))?)?;
        Some((number, trial.test))
    };
    statements.iter().filter_map(of).collect()
}

/// The lines of each screen: rows of `vmstat` and of single processors below another one are of the same.
fn by_screen(lines: &[CpuLine]) -> impl Iterator<Item = &[CpuLine]> {
    let is_row = |it: &CpuLine| {
        let printed = it.states.printed.trim_start_matches("CPU ");
        printed
            .trim_start()
            .starts_with(|it: char| it.is_ascii_digit())
    };
    // Below them stands the mean.
    let is_mean = |it: &CpuLine| it.states.printed.starts_with("Average");
    lines.chunk_by(move |one, next| {
        let is_same = is_row(next) || is_mean(next) && !is_mean(one);
        one.states.place.line + 1 == next.states.place.line && is_same
    })
}

/// Where screens begin.
pub fn screens(lines: &[CpuLine]) -> Vec<SourcePlace> {
    by_screen(lines).map(|it| it[0].states.place).collect()
}

/// Where hosts idle: by themselves, or nearly so among rows of which others are busy.
fn idle(lines: &[CpuLine]) -> BTreeSet<SourcePlace> {
    const NEARLY: f64 = 0.9;
    const BUSIER: f64 = 0.25;
    let of = |screen: &[CpuLine]| {
        let idle = |it: &CpuLine| it.states.value[4].unwrap_or(0.0);
        let least = screen.iter().map(idle).fold(1.0, f64::min);
        let is_idle =
            |it: &&CpuLine| it.idles() || idle(it) >= NEARLY && idle(it) >= least + BUSIER;
        let idle = screen.iter().filter(is_idle);
        idle.map(|it| it.states.place).collect::<Vec<_>>()
    };
    by_screen(lines).flat_map(of).collect()
}

/// Where sentences say on which host all screens are taken: `top is always that of oak`, `vmstat runs on elm unless noted`.
pub fn standing(statements: &[Statement], hosts: &HostNames) -> Vec<(SourcePlace, String)> {
    const ALL: &str = "unless|otherwise|if no|if nothing|in all|everywhere|always|all top|all tops|all mpstat|all vmstat|\
        all systat|all cpu|all screens";
    let is_of_all = |it: &&Statement| it.sentence.lasts_always() || it.sentence.has_any(ALL);
    let of_all = statements.iter().filter(is_of_all);
    // `(that's oak, as are all below)`
    let is_of_later = |it: &Statement| {
        it.sentence.kind == SentenceKind::Conclusion
            && it.sentence.has_any("all below|all that follow")
    };
    let of = |it: &Statement| {
        let named = hosts.named_in(&it.sentence.words);
        let later = named
            .first()
            .filter(|_| is_of_later(it) && named.len() == 1);
        let later = later.map(|host| (String::from(*host), it.place));
        of_screens(it, hosts).or(later)
    };
    of_all.filter_map(of).map(|(host, at)| (at, host)).collect()
}

/// The host that a sentence names for screens, and its place.
fn of_screens(
    Statement {
        place, sentence, ..
    }: &Statement,
    hosts: &HostNames,
) -> Option<(String, SourcePlace)> {
    const TOOLS: &str = "top mpstat vmstat systat cpu";
    let is_tool = |it: &&String| it.split(' ').any(|it| clause::is_in(it, TOOLS));
    let clause = sentence.clauses.iter().find(is_tool)?;
    let named = hosts.named_in(clause);
    let [host] = named[..] else { return None };
    (!sentence.asks).then(|| (String::from(host), *place))
}

impl Context<'_> {
    /// The host or end that a sentence is about.
    fn about(&self, sentence: &Sentence) -> Option<Shown> {
        // `tui (top of kea was not saved):`
        let said = sentence.clauses.iter().filter(|it| !clause::negates(it));
        let mut said: String = said.map(String::as_str).collect();
        // `three seconds after the client` tells when.
        for end in TIMED_BY.split('|') {
            said = said.replace(end, " ");
        }
        // `That top is from while oak was sending` tells when, too.
        let is_conclusion = sentence.kind == SentenceKind::Conclusion;
        let is_when = |at: &usize| is_conclusion && said[..*at].trim_end().ends_with(" from");
        let until = said.find(" while ").filter(is_when);
        said.truncate(until.map_or(said.len(), |at| at + 1));
        let named = self.hosts.meant_in(&said);
        let parts = clause::parts(&said);
        // "client" may be a host's name, too.
        let at = |name: &&&str| {
            let small = name.to_ascii_lowercase();
            let mut phrases = ["on", "of", "at"]
                .map(|it| format!("{it} {small}"))
                .to_vec();
            phrases.extend(["s top", "during", "while"].map(|it| format!("{small} {it}")));
            phrases.iter().any(|it| sentence.find(it).is_some())
        };
        // `oak in the first half (elm sends):`
        let first = sentence.clauses.first().map_or("", String::as_str);
        let is_one = sentence.introduces && !sentence.has("then both");
        let begins = |it: &&&str| {
            let name = format!(" {} ", it.to_ascii_lowercase());
            is_one && first.starts_with(&name) && self.hosts.named_in(first) == [**it]
        };
        let shown = named.iter().find(at).or(named.iter().find(begins));
        let shown = shown.filter(|_| named.len() > 1);
        match (&named[..], shown) {
            ([one], _) | ([_, _, ..], Some(one)) => Some(Shown::Host(String::from(*one))),
            ([_, _, ..], None) => None,
            ([], _) => match (parts.sender, parts.receiver) {
                (true, false) => Some(Shown::End(Side::Sender)),
                (false, true) => Some(Shown::End(Side::Receiver)),
                // A box in between has no part in a test.
                (false, false) if clause::has_between(&said) => Some(Shown::Between),
                _ => None,
            },
        }
    }

    /// The sentences before a screen, the nearest first, without what concludes something else.
    fn before<'s>(
        &'s self,
        scene: &Scene,
        place: &SourcePlace,
    ) -> impl Iterator<Item = &'s Statement> {
        let of = &self.statements[scene.statements.clone()];
        let start = scene.begins.min(place.start_byte);
        let is_near = move |it: &&Statement| {
            it.place.end_byte + NEAR_BYTES >= start && it.place.end_byte <= start
        };
        of.iter()
            .rev()
            .filter(|it| {
                it.sentence.kind != SentenceKind::Conclusion && it.sentence.cells.is_empty()
            })
            .filter(is_near)
            .take(3)
    }

    /// The first sentences right after a screen.
    fn after(&self, place: &SourcePlace) -> impl Iterator<Item = &Statement> {
        let after = self.statements.partition_point(|it| it.place < *place);
        let next = self.statements[after..].iter().take(4);
        next.filter(|it| {
            let is_of_next = it.sentence.introduces || it.sentence.kind == SentenceKind::Heading;
            it.after == Some(*place) && !is_of_next
        })
    }

    /// The host that a sentence tells of this screen and the one before or behind it: `both tops are of oak`.
    fn of_both(&self, place: &SourcePlace) -> Option<(Shown, Reason)> {
        const BOTH: &str =
            "both tops|both screens|both top|both vmstats|these tops|the tops|all tops|tops are";
        const WITHIN: usize = 8;
        self.rows.binary_search(place).ok()?;
        let next = self.screens.partition_point(|it| it <= place);
        let until = self.screens.get(next + 1);
        let after = self.statements.partition_point(|it| it.place < *place);
        let near = self.statements[after..].iter().take(WITHIN);
        let mut near = near.take_while(|it| until.is_none_or(|until| it.place < *until));
        let said = near.find(|it| it.sentence.has_any(BOTH))?;
        let is_one = self.authors.is_one(&said.place, place) && !said.sentence.asks;
        let shown = self.about(&said.sentence).filter(|_| is_one)?;
        let text = "the text behind it names the host of both screens";
        Some((shown, reason(SENTENCE, text, said.place)))
    }

    /// The conclusion right after a screen.
    fn conclusion(&self, place: &SourcePlace) -> Option<&Statement> {
        let after = self.statements.partition_point(|it| it.place < *place);
        let next = self.statements[after..].iter().take(6);
        // Rows of one listing have one caption.
        let of = |place: &SourcePlace| {
            let screens = self.screens.partition_point(|it| it <= place);
            (self.trials.partition_point(|it| it < place), screens)
        };
        let is_same =
            |after: SourcePlace| after == *place || after > *place && of(&after) == of(place);
        let mut next = next.filter(|it| it.after.is_some_and(is_same));
        next.find(|it| it.sentence.kind == SentenceKind::Conclusion)
    }

    /// The host of a screen in a row, by a sentence right before or after them: `kestrel first, then heron`. What a prompt
    /// asked for (`is_asked`) is of its host if the sentence tells no order.
    fn listed(&self, place: &SourcePlace, is_asked: bool) -> Option<(Shown, SourcePlace)> {
        const ORDER: &str = "first second then last upper lower above below respectively resp";
        let is_apart = |one: &SourcePlace, other: &SourcePlace| {
            let at = |place: &SourcePlace| self.statements.partition_point(|it| it.place < *place);
            let of = |place: &SourcePlace| self.trials.partition_point(|it| it < place);
            at(one) != at(other) || of(one) != of(other)
        };
        self.rows.binary_search(place).ok()?;
        let at = self.screens.partition_point(|it| it <= place);
        let at = at.checked_sub(1)?;
        let before = self.screens[..at].iter().rev().take(IN_ROW_MAX);
        let before = before.take_while(|it| !is_apart(it, place)).count();
        let after = self.screens[at..].iter().take(IN_ROW_MAX);
        let after = after.take_while(|it| !is_apart(place, it)).count();
        let next = self.statements.partition_point(|it| it.place < *place);
        let near = next.saturating_sub(2)..(next + 2).min(self.statements.len());
        self.statements[near].iter().find_map(|statement| {
            let sentence = &statement.sentence;
            let mut named: Vec<(usize, Shown)> = Vec::new();
            for name in self.hosts.named_in(&sentence.words) {
                let at = sentence.find(&name.to_ascii_lowercase())?;
                named.push((at, Shown::Host(String::from(name))));
            }
            if named.is_empty() {
                for (words, side) in [(SENDERS, Side::Sender), (RECEIVERS, Side::Receiver)] {
                    let at = words.split(' ').filter_map(|it| sentence.find(it)).min();
                    named.extend(at.map(|at| (at, Shown::End(side))));
                }
            }
            // `the sender first`
            if let [(at, Shown::End(side))] = named[..]
                && sentence.has("first")
                && before + after == 2
            {
                named.push((at + 1, Shown::End(side.other())));
            }
            named.sort_by_key(|it| it.0);
            let is_list = named.len() > 1 && named.len() == before + after;
            let is_ordered =
                sentence.has(ORDER) || sentence.introduces && !is_asked && statement.place < *place;
            (is_list && is_ordered).then(|| (named.swap_remove(before).1, statement.place))
        })
    }

    /// The heading above a place.
    fn heading(&self, place: &SourcePlace) -> Option<&Statement> {
        let before = self.statements.partition_point(|it| it.place < *place);
        let above = self.statements[..before].iter().rev().take(HEADING_REACH);
        let mut above = above.filter(|it| it.place.file == place.file);
        above.find(|it| {
            let is_heading = it.sentence.kind == SentenceKind::Heading && !it.sentence.introduces;
            is_heading && !self.is_label(&it.sentence)
        })
    }

    /// Whether a heading is no more than the label of a screen: `CPU of oak`, `## oak`.
    fn is_label(&self, sentence: &Sentence) -> bool {
        let is_short = sentence.words.split_whitespace().count() <= SHORT_WORDS;
        is_short && self.about(sentence).is_some() && sentence.setting().is_none()
    }

    /// What speaks for each host that a screen may show.
    fn hosts_of(&self, scene: &Scene, place: &SourcePlace) -> Vec<(Shown, Reason)> {
        let mut found = Vec::new();
        let mut weight = if scene.is_asked { EARLIER } else { SENTENCE };
        let is_asked = scene.is_asked && scene.host.name.is_some();
        let listed = self.listed(place, is_asked);
        let is_list = |it: &&Statement| listed.as_ref().is_some_and(|list| list.1 == it.place);
        // `oak, before and with polling, in the same order`
        let is_order = |it: &&Statement| is_list(it) || it.sentence.has("order");
        for statement in self.before(scene, place).filter(|it| !is_order(it)) {
            if let Some(shown) = self.about(&statement.sentence) {
                let text = "the text before it names the host";
                found.push((shown, reason(weight, text, statement.place)));
                weight = EARLIER.min(weight) - 1;
            } else {
                weight = weight.min(EARLIER);
            }
            if weight <= 0 {
                break;
            }
        }
        if let Some(statement) = self.conclusion(place)
            && !statement.sentence.doubts()
            && let Some(shown) = self.about(&statement.sentence)
        {
            let text = "the conclusion after it names the host";
            found.push((shown, reason(SENTENCE + 1, text, statement.place)));
        }
        // `0.0% idle  (volga)`
        let behind = self.statements.partition_point(|it| it.place < *place);
        let behind = self.statements.get(behind);
        let is_short = |it: &Statement| it.sentence.words.split_whitespace().count() <= SHORT_WORDS;
        let behind = behind.filter(|it| {
            it.place.file == place.file && it.place.line == place.line && is_short(it)
        });
        if let Some(statement) = behind
            && let Some(shown @ Shown::Host(_)) = self.about(&statement.sentence)
        {
            let text = "the remark behind it names the host";
            found.push((shown, reason(SENTENCE + 1, text, statement.place)));
        }
        found.extend(self.of_both(place));
        found.extend(self.standing_host(place));
        found.extend(self.announced(place));
        let text = "the text lists the hosts of these screens";
        found.extend(listed.map(|(shown, at)| (shown, reason(SENTENCE + 1, text, at))));
        if let Some(name) = &scene.host.name {
            let text = match scene.host.basis {
                ImportedBasis::Mapped => "--map says the host",
                ImportedBasis::Inferred => "a label names the terminal's host",
                _ => "the last prompt names the host",
            };
            // A terminal that ran a test, or prose in between: the screen may be another's.
            let statements = &self.statements[scene.statements.clone()];
            let last = statements.last().filter(|it| Some(it.place) > scene.prompt);
            // Output of a test in between may be of another terminal.
            let tests = |place: &SourcePlace| self.trials.partition_point(|it| it < place);
            let is_apart = scene.prompt.is_some_and(|it| tests(&it) + 1 < tests(place));
            let is_other = |it: &Statement| {
                let named = self.hosts.named_in(&it.sentence.words);
                Some(it.place) > scene.prompt && named.iter().any(|it| it != name)
            };
            let is_apart = is_apart || statements.iter().any(is_other);
            let is_same = last.is_some_and(|it| it.sentence.has_any(SAME_HOST)) && !is_apart;
            let weight = match scene.host.basis {
                ImportedBasis::Mapped => 2 * ASKED,
                ImportedBasis::Inferred if last.is_none() => EARLIER,
                _ if scene.is_asked => ASKED,
                _ if is_same => EARLIER,
                _ => PROMPT,
            };
            found.push((Shown::Host(name.clone()), reason(weight, text, *place)));
        }
        found
    }

    /// The host of all screens, if a sentence names it.
    fn standing_host(&self, place: &SourcePlace) -> Option<(Shown, Reason)> {
        let until = self.standing.partition_point(|it| it.0 < *place);
        let last = self.standing[..until].last();
        let (at, host) = last.filter(|it| self.authors.is_one(&it.0, place))?;
        let text = "the text names the host of all screens";
        Some((Shown::Host(host.clone()), reason(LEAST, text, *at)))
    }

    /// The host that the sentence before the test names for the screen behind it: `oak sends, top is from elm:`.
    fn announced(&self, place: &SourcePlace) -> Option<(Shown, Reason)> {
        const LEAD: usize = 3;
        self.rows.binary_search(place).ok()?;
        let test = self
            .trials
            .partition_point(|it| it < place)
            .checked_sub(1)?;
        let at = |place: &SourcePlace| self.statements.partition_point(|it| it.place < *place);
        let until = at(&self.trials[test]);
        let last = self.statements[..until].last()?;
        (until == at(place) && last.sentence.introduces).then_some(())?;
        let since = test.checked_sub(1).map(|test| self.trials[test]);
        let mut lead = self.statements[..until].iter().rev().take(LEAD);
        let lead = lead.by_ref().take_while(|it| Some(it.place) > since);
        let of = |it: &Statement| {
            let (host, at) = of_screens(it, self.hosts)?;
            let text = "the text before the test names the host of the screen";
            Some((Shown::Host(host), reason(SENTENCE, text, at)))
        };
        lead.filter(|it| self.authors.is_one(&it.place, place))
            .find_map(of)
    }

    /// The screens of which the writer says afterwards that he took them for another host's, each with the right one:
    /// `oops, wrong window. that was elm`.
    fn corrected(&self) -> BTreeMap<SourcePlace, (Shown, Reason)> {
        let of = |(at, statement): (usize, &Statement)| {
            let is_wrong = statement.sentence.has_any(WRONG_WINDOW);
            let screens = self.screens.partition_point(|it| *it < statement.place);
            let screen = *self.screens.get(screens.checked_sub(1)?)?;
            let since = self.statements.partition_point(|it| it.place < screen);
            let is_near = is_wrong && at - since < CORRECTED_WITHIN;
            (is_near && self.authors.is_one(&screen, &statement.place)).then_some(())?;
            let mut near = self.statements[at..].iter().take(CORRECTED_WITHIN / 2);
            let host = near.find_map(|it| {
                let named = self.hosts.named_in(&it.sentence.words);
                let was = |it: &&&str| format!("was {}", it.to_ascii_lowercase());
                named
                    .iter()
                    .find(|name| it.sentence.find(&was(name)).is_some())
                    .map(|it| Shown::Host(String::from(*it)))
            })?;
            let text = "its writer corrects which host it shows";
            Some((screen, (host, reason(2 * ASKED, text, statement.place))))
        };
        let all = self.statements.iter().enumerate();
        all.filter_map(of).collect()
    }

    /// Whether the writer does not know of what host something is.
    pub fn is_doubted(&self, scene: &Scene, place: &SourcePlace) -> bool {
        let mut lead = self.before(scene, place).take(2);
        lead.any(|it| it.sentence.doubts())
    }

    /// The host of a reading, by the same evidence; `ends` are the hosts that all tests have for sender and receiver.
    pub fn host_of(
        &self,
        scene: &Scene,
        place: &SourcePlace,
        ends: &[Option<String>; 2],
    ) -> Option<String> {
        if self.is_doubted(scene, place) {
            return None;
        }
        let mut named = self.hosts_of(scene, place);
        // `And the interrupts:`, of the terminal of the counters above
        let last = self.statements[scene.statements.clone()].last();
        let is_short =
            |it: &Sentence| it.introduces && it.words.split_whitespace().count() <= SHORT_WORDS;
        if let [(_, only)] = &mut named[..]
            && scene.looks
            && only.weight == PROMPT
            && last.is_some_and(|it| is_short(&it.sentence))
        {
            only.weight = LEAST;
        }
        let named = named.into_iter().map(|(shown, reason)| {
            let host = match shown {
                Shown::Host(name) => Some(name),
                Shown::End(Side::Sender) => ends[0].clone(),
                Shown::End(_) => ends[1].clone(),
                Shown::Between => None,
            };
            (host, reason.weight)
        });
        let mut weights: HashMap<Option<String>, i32> = HashMap::new();
        named.for_each(|(host, weight)| *weights.entry(host).or_default() += weight);
        let mut all = weights.iter();
        let best = all.clone().max_by_key(|it| (*it.1, it.0.clone()))?;
        let is_clear = all.all(|it| it.0 == best.0 || it.1 + MARGIN <= *best.1);
        best.0.clone().filter(|_| is_clear && *best.1 >= LEAST)
    }
}

/// The sender and the receiver on which all trials agree.
pub fn agreed<'t>(
    trials: impl IntoIterator<Item = &'t ImportedTrial> + Clone,
) -> [Option<String>; 2] {
    Side::ALL.map(|side| {
        let all = trials.clone().into_iter();
        let mut ends = all.filter_map(|it| end(it, side));
        let first = ends.next();
        first.filter(|first| ends.all(|it| it == *first)).cloned()
    })
}

/// The same, of trials that all name both of their ends.
pub fn agreed_by_all(trials: &[ImportedTrial]) -> [Option<String>; 2] {
    let is_known = |it: &ImportedTrial| it.sender.is_some() && it.receiver.is_some();
    match trials.iter().all(is_known) {
        true => agreed(trials),
        false => [None, None],
    }
}

fn reason(weight: i32, text: &str, place: SourcePlace) -> Reason {
    Reason {
        weight,
        text: String::from(text),
        place,
    }
}

/// Whether a clock's time of day lies in a test. Hosts may stand in different time zones.
fn is_within([start, finish]: [f64; 2], time: f64) -> bool {
    let since = (time - start + 2.0).rem_euclid(3600.0);
    since <= finish - start + 6.0
}

/// The kinds of words that tell tests apart: each a group of which one applies.
fn word_weight(sentence: &Sentence, trial: &ImportedTrial) -> i32 {
    let has = |words: &[&str]| words.iter().any(|it| sentence.find(it).is_some());
    let workload = trial.workload.as_str();
    let mut weight = 0;
    let mut is = |said: [bool; 2], is_first: Option<bool>| {
        if let ([true, false] | [false, true], Some(is_first)) = (said, is_first) {
            weight += if said[0] == is_first { WORD } else { -2 * WORD };
        }
    };
    is(
        [has(&["ipv6", "v6", "inet6"]), has(&["ipv4", "v4"])],
        Some(workload.contains("ipv6")),
    );
    is(
        [has(&["udp"]), has(&["tcp"])],
        match trial.tool.as_str() {
            "iperf" | "ttcp" => Some(workload.contains("udp")),
            _ => None,
        },
    );
    is(
        [has(&["iperf"]), has(&["netblast"])],
        Some(trial.tool == "iperf"),
    );
    let mut words = sentence.words.split(' ').peekable();
    let mut sizes = Vec::new();
    while let Some(word) = words.next() {
        let is_size = words
            .peek()
            .is_some_and(|it| ["b", "byte", "bytes"].contains(it));
        let number = Some(word).filter(|_| is_size);
        let number = number.or(word.strip_suffix('b'));
        sizes
            .extend(number.filter(|it| it.bytes().all(|it| it.is_ascii_digit()) && !it.is_empty()));
    }
    let own = workload
        .split('-')
        .find(|it| it.bytes().all(|it| it.is_ascii_digit()) && !it.is_empty());
    if let (Some(own), [_, ..]) = (own, &sizes[..]) {
        let is_own = sizes.contains(&own);
        weight += if is_own { WORD } else { -2 * WORD };
    }
    weight
}

/// Weighs a word for a setting against that of a trial, at one end or at any.
fn setting_weight(said: bool, trial: &ImportedTrial, side: Option<Side>) -> i32 {
    let at_end = |polls: Side| match side {
        Some(side) if (side == polls) == said => WORD,
        Some(_) => -2 * WORD,
        None => 0,
    };
    match trial.setting.split('+').next() {
        Some("polling-sender-only") => at_end(Side::Sender),
        Some("polling-receiver-only") => at_end(Side::Receiver),
        Some("polling") if said => WORD,
        Some("interrupt") if !said => WORD,
        Some("polling" | "interrupt") => -2 * WORD,
        _ => 0,
    }
}

/// A screen with what stands around it.
struct Screen<'a> {
    line: &'a CpuLine,
    /// The sentences before it, and the conclusion after it.
    labels: Vec<&'a Statement>,
    heading: Option<&'a Statement>,
    /// The host that is clear before the test is known.
    host: Option<Shown>,
    /// Whether the clock of its host agrees with those of the tests.
    is_timed: bool,
    /// Whether the host runs no test.
    idles: bool,
}

impl Screen<'_> {
    /// The tests that it may show, with what speaks for each.
    fn tests(&self, trials: &[ImportedTrial], context: &Context) -> Vec<(usize, Vec<Reason>)> {
        let place = self.line.states.place;
        let after = trials.partition_point(|it| it.place < place);
        let mut seen = Vec::new();
        let mut tests: Vec<usize> = Vec::new();
        let near = after.saturating_sub(4 * REACH)..(after + 4 * REACH).min(trials.len());
        for at in near.filter(|at| trials[*at].place.file == place.file) {
            if !seen.contains(&trials[at].test) {
                seen.push(trials[at].test);
                tests.push(at);
            }
        }
        let last = tests.iter().copied().rfind(|at| trials[*at].place < place);
        let next = tests.iter().copied().find(|at| trials[*at].place > place);
        let with = |at: usize| {
            let mut reasons = self.words(&trials[at], context);
            let trial = trials[at].place;
            if Some(at) == last {
                reasons.push(reason(BEFORE, "it follows this test", trial));
            } else if Some(at) == next {
                reasons.push(reason(AFTER, "it stands before this test", trial));
            }
            let mut labels = self.labels.iter();
            if labels.any(|it| it.sentence.doubts() && self.is_of_it(it, DOUBTS, context)) {
                reasons.push(reason(-2 * BEFORE, "the writer does not know", place));
            }
            reasons.extend(self.named(at, trials, (&tests, last), context));
            let after = context.after(&place);
            let mut near = self.labels.iter().copied().chain(after);
            let is_of_it = |it: &&Statement| self.is_of_it(it, prose::ELSEWHERE, context);
            if near.any(|it| it.sentence.is_elsewhere() && is_of_it(&it)) {
                let text = "the text says that it is of another";
                reasons.push(reason(-2 * BEFORE, text, place));
            }
            if self.idles {
                reasons.push(reason(-2 * BEFORE, "the host idles", place));
            }
            reasons.retain(|it| it.weight != 0);
            (at, reasons)
        };
        tests.iter().copied().map(with).collect()
    }

    /// What the text before it says by numbers: of which of two tests, of which test, and of which listing it is.
    fn named(
        &self,
        at: usize,
        trials: &[ImportedTrial],
        (tests, last): (&[usize], Option<usize>),
        context: &Context,
    ) -> Vec<Reason> {
        let place = self.line.states.place;
        let mut reasons = Vec::new();
        let mut add = |is_it: bool, text: &str| {
            let weight = if is_it { 2 * CLOCK } else { -CLOCK };
            reasons.push(reason(weight, text, place));
        };
        let sentences = || self.labels.iter().map(|it| &it.sentence);
        let of_two = sentences().find_map(Sentence::of_two);
        if let Some((is_second, last)) = of_two.zip(last) {
            let of = tests.iter().position(|it| *it == last).unwrap_or_default();
            let one = tests.get(of.wrapping_sub(usize::from(!is_second)));
            add(one == Some(&at), "the text before it tells which of two");
        }
        let is_above = |it: &Sentence| it.has_any(EARLIER_TEST);
        if trials[at].place > place && sentences().any(is_above) {
            add(false, "the text says that it is of a test above");
        }
        let numbers = sentences().filter_map(Sentence::run_number);
        let mut numbers = numbers.filter(|it| it.1).map(|it| it.0);
        // Who writes again counts from the start of the post.
        let post = context.authors.post(&place);
        let of_post = &trials[trials.partition_point(|it| it.place < post)..];
        let of = |number: usize| {
            let head = headed(context.statements, trials, &place, &number.to_string());
            let head = head.and_then(|it| trials.get(it));
            head.or(nth_test(of_post, number).map(|it| &of_post[it]))
        };
        if let Some(one) = numbers.next().map(of) {
            let is_it = one.is_some_and(|one| one.test == trials[at].test);
            add(is_it, "the text before it numbers the test");
        }
        let listings = sentences().flat_map(|it| {
            let (names, is_caption) = layout::listings(&it.words);
            names.into_iter().skip(usize::from(is_caption))
        });
        let mut listings = listings.filter_map(|it| context.listings.get(&it));
        if let Some(test) = listings.next() {
            add(
                *test == trials[at].test,
                "the text names the test's listing",
            );
        }
        reasons
    }

    /// Whether the clause with one of these phrases, or else the sentence, names no other host than that of the screen.
    fn is_of_it(&self, statement: &Statement, phrases: &str, context: &Context) -> bool {
        let sentence = &statement.sentence;
        let has = |it: &&String| {
            let mut phrases = phrases.split('|');
            phrases.any(|phrase| clause::phrase_at(it, phrase).is_some())
        };
        let clause = sentence.clauses.iter().find(has);
        let clause = clause.filter(|it| !context.hosts.named_in(it).is_empty());
        let named = context.hosts.named_in(clause.unwrap_or(&sentence.words));
        let is_it = |host: &Shown| matches!(host, Shown::Host(it) if !named.contains(&it.as_str()));
        named.is_empty() || !self.host.as_ref().is_some_and(is_it)
    }

    /// What its clock, headings and words say of a test.
    fn words(&self, trial: &ImportedTrial, context: &Context) -> Vec<Reason> {
        let place = self.line.states.place;
        let mut reasons = Vec::new();
        // In a chat one shows a screen of the other's test.
        let is_end = |host: &String| Side::ALL.iter().any(|it| end(trial, *it) == Some(host));
        let is_known = matches!(&self.host, Some(Shown::Host(host)) if is_end(host));
        if !is_known && !context.authors.is_one(&place, &trial.place) {
            return vec![reason(
                -CLOCK,
                "another author tells of this test",
                trial.place,
            )];
        }
        let clock = self.line.clock.zip(context.windows.get(&trial.place));
        let is_within = clock.map(|(clock, window)| is_within(*window, clock.time_seconds));
        let text = match is_within {
            Some(true) => Some((CLOCK, "its clock stands within this test")),
            Some(false) if self.is_timed => Some((-CLOCK, "its clock stands outside this test")),
            _ => None,
        };
        reasons.extend(text.map(|(weight, text)| reason(weight, text, trial.place)));
        // A clock within a test says more than where the screen stands.
        let is_timed_in = is_within == Some(true);
        let of = |heading: Option<&Statement>| heading.map(|it| it.place);
        let is_other = !is_timed_in && of(context.heading(&trial.place)) != of(self.heading);
        if is_other {
            reasons.push(reason(-WORD, "a heading stands in between", trial.place));
        }
        let heads = self.heading.filter(|_| is_other);
        for statement in self.labels.iter().copied().chain(heads) {
            let weight = word_weight(&statement.sentence, trial);
            reasons.push(reason(weight, "words for the traffic", statement.place));
        }
        let [first, second] = [trial.place.min(place), trial.place.max(place)];
        let mut said = self.labels.iter();
        match said.find_map(|it| Some((it.sentence.setting()?, it.place))) {
            Some((said, at)) => {
                let side = self
                    .host
                    .as_ref()
                    .and_then(|it| side_of(it, trial, context.hosts));
                let weight = setting_weight(said, trial, side);
                reasons.push(reason(weight, "words for the setting", at));
            }
            None if !is_timed_in && context.settings.changes_between(&first, &second) => {
                let text = "a setting changes in between";
                reasons.push(reason(-2 * WORD, text, trial.place));
            }
            None => {}
        }
        reasons
    }
}

/// Groups screens by the start of their host.
fn boots(lines: &[CpuLine]) -> Vec<Option<usize>> {
    let mut starts: Vec<f64> = Vec::new();
    let of = |clock: f64, starts: &mut Vec<f64>| {
        let distance = |start: &f64| {
            let apart = (clock - start).rem_euclid(86_400.0);
            apart.min(86_400.0 - apart)
        };
        let known = starts
            .iter()
            .position(|start| distance(start) < BOOT_SECONDS);
        known.or_else(|| {
            // No text has so many hosts.
            (starts.len() < HOSTS_MAX).then(|| starts.push(clock))?;
            Some(starts.len() - 1)
        })
    };
    let clocks = lines.iter().map(|it| it.clock?.boot_seconds);
    clocks.map(|clock| of(clock?, &mut starts)).collect()
}

/// The end of a trial that a host is; `None` for a third host.
fn side_of(shown: &Shown, trial: &ImportedTrial, hosts: &HostNames) -> Option<Side> {
    let host = match shown {
        Shown::End(side) => return Some(*side),
        Shown::Between => return None,
        Shown::Host(host) => host,
    };
    let mut sides = Side::ALL.into_iter();
    if let Some(side) = sides.find(|side| end(trial, *side) == Some(host)) {
        return Some(side);
    }
    // Of two hosts in the text, the one that is not this end is the other.
    let known = Side::ALL.map(|side| end(trial, side).is_some_and(|it| hosts.has(it)));
    match (hosts.count(), known) {
        (2, [true, false]) => Some(Side::Receiver),
        (2, [false, true]) => Some(Side::Sender),
        _ => None,
    }
}

/// A reading with what speaks for it.
type Weighed<K> = (K, Vec<Reason>);

/// The reading that wins, or those between which nothing decides.
fn decided<K: Clone>(readings: &[Weighed<K>]) -> Result<Weighed<K>, Vec<(K, i32)>> {
    let sum = |reasons: &[Reason]| reasons.iter().map(|it| it.weight).sum::<i32>();
    let mut by_weight: Vec<(i32, &K, &Vec<Reason>)> = readings
        .iter()
        .map(|(key, reasons)| (sum(reasons), key, reasons))
        .collect();
    by_weight.sort_by_key(|it| -it.0);
    match &by_weight[..] {
        [(best, key, reasons), rest @ ..]
            if *best >= LEAST && rest.first().is_none_or(|second| second.0 + MARGIN <= *best) =>
        {
            Ok(((*key).clone(), (*reasons).clone()))
        }
        _ => {
            let possible = by_weight.iter().filter(|it| it.0 > 0).take(4);
            Err(possible.map(|it| (it.1.clone(), it.0)).collect())
        }
    }
}

/// Attaches each line of CPU states to the test and the end that it shows.
pub fn book(
    trials: &mut [ImportedTrial],
    lines: &[CpuLine],
    context: &Context,
    mapped: impl Fn(&SourcePlace) -> (Option<u32>, Option<Side>),
    left: &mut Vec<UnplacedFigure>,
) {
    let boots = boots(lines);
    let idle = idle(lines);
    let mut known: HashMap<String, u32> = HashMap::new();
    let mut groups: BTreeMap<usize, BootGroup> = BTreeMap::new();
    for (line, boot) in lines.iter().zip(&boots) {
        if let Some(boot) = boot {
            groups.entry(*boot).or_default().add(line, context);
        }
    }
    let statements = context.statements.iter();
    let retracted = statements.filter(|it| it.sentence.retracts_screens());
    let retracted: Vec<SourcePlace> = retracted.map(|it| it.place).take(REACH).collect();
    let corrected = context.corrected();
    let mut last: Option<Shown> = None;
    for (line, boot) in lines.iter().zip(&boots) {
        let place = line.states.place;
        let is_figure = |it: &char| it.is_ascii_digit() || *it == '.';
        let figures = line.states.printed.chars().filter(is_figure).collect();
        // The mean of a single row stands right below that.
        let again = known.insert(figures, place.line);
        let again = again.filter(|it| !idle.contains(&place) && it + 1 < place.line);
        let is_back = |it: &SourcePlace| *it > place && context.authors.is_one(it, &place);
        let why = match again {
            Some(first) => Some(format!("line {first} says the same: it is quoted again")),
            None if retracted.iter().any(is_back) => {
                Some(String::from("its writer takes back which host it shows"))
            }
            None => None,
        };
        let said = mapped(&place);
        if let Some(why) = why.filter(|_| said == (None, None)) {
            left.push(unplaced(&line.states.printed, &why, place));
            continue;
        }
        let group = boot.and_then(|boot| groups.get(&boot));
        let mut shown = match corrected.get(&place) {
            Some(host) => vec![host.clone()],
            None => context.hosts_of(&line.scene, &place),
        };
        if let Some((host, at)) = group.and_then(|group| group.host_but(&place)) {
            let text = "a screen of a host that started at the same time names it";
            shown.push((host.clone(), reason(BOOT, text, at)));
        }
        // `Same window, a few seconds into that:`
        let mut lead = context.before(&line.scene, &place);
        let same = lead.next().filter(|it| it.sentence.has_any(SAME_HOST));
        if let Some((statement, host)) = same.zip(last.take()) {
            let text = "the text says that it is the host of the last screen";
            shown.push((host, reason(EARLIER, text, statement.place)));
        }
        last = clear_host(&shown);
        let before = context.before(&line.scene, &place);
        let screen = Screen {
            line,
            labels: before.chain(context.conclusion(&place)).collect(),
            heading: context.heading(&place),
            host: clear_host(&shown),
            is_timed: group.is_some_and(|group| group.is_timed),
            idles: idle.contains(&place),
        };
        let tests = screen.tests(trials, context);
        let outcome = end_of(line, &shown, &tests, trials, context, said);
        match outcome {
            Ok((at, side, reasons)) => take(trials, at, side, line, &reasons),
            Err(Undecided { why, candidates }) => left.push(UnplacedFigure {
                candidates,
                ..unplaced(&line.states.printed, &why, place)
            }),
        }
    }
}

/// The screens of a host, by its start.
#[derive(Default)]
struct BootGroup {
    /// The first two that name the host clearly.
    named: Vec<(Shown, SourcePlace)>,
    /// Whether others name another host.
    is_disputed: bool,
    /// Whether the clock of one stands within a test.
    is_timed: bool,
}

impl BootGroup {
    fn add(&mut self, line: &CpuLine, context: &Context) {
        let place = line.states.place;
        if let Some(host) = clear_host(&context.hosts_of(&line.scene, &place)) {
            self.is_disputed |= self.named.first().is_some_and(|(first, _)| *first != host);
            if self.named.len() < 2 {
                self.named.push((host, place));
            }
        }
        self.is_timed |= line.clock.is_some_and(|clock| {
            let mut windows = context.windows.iter().take(WINDOWS_MAX);
            windows.any(|(at, window)| {
                context.authors.is_one(at, &place) && is_within(*window, clock.time_seconds)
            })
        });
    }

    /// The host that a screen other than this one names.
    fn host_but(&self, place: &SourcePlace) -> Option<(&Shown, SourcePlace)> {
        let mut others = self.named.iter().filter(|(_, at)| at != place);
        let (host, at) = others.next().filter(|_| !self.is_disputed)?;
        Some((host, *at))
    }
}

/// The host that a screen's own evidence names clearly.
fn clear_host(own: &[(Shown, Reason)]) -> Option<Shown> {
    let (first, _) = own.iter().max_by_key(|it| it.1.weight)?;
    let is_named = matches!(first, Shown::Host(_));
    let weight = |is: bool| -> i32 {
        let of = own.iter().filter(|it| (it.0 == *first) == is);
        of.map(|it| it.1.weight).sum()
    };
    let is_clear = weight(true) >= LEAST && weight(true) >= weight(false) + MARGIN;
    (is_named && is_clear).then(|| first.clone())
}

/// The test and end of a screen with all reasons, or why nothing decides.
fn end_of(
    line: &CpuLine,
    shown: &[(Shown, Reason)],
    tests: &[(usize, Vec<Reason>)],
    trials: &[ImportedTrial],
    context: &Context,
    (test, side): (Option<u32>, Option<Side>),
) -> Result<(usize, Side, Vec<Reason>), Undecided> {
    let place = line.states.place;
    let (at, mut reasons) = match test {
        Some(line) => {
            let here = |it: &ImportedTrial| (it.place.file, it.place.line);
            let at = trials.partition_point(|it| here(it) < (place.file, line));
            let is_one = trials
                .get(at)
                .is_some_and(|it| here(it) == (place.file, line));
            if !is_one {
                return Err(Undecided {
                    why: format!("--map says the test of line {line}, and none begins there"),
                    candidates: Vec::new(),
                });
            }
            (at, vec![reason(2 * CLOCK, "--map says the test", place)])
        }
        None => decided(tests).map_err(|all| Undecided::tests(&all, trials, place))?,
    };
    if let Some(side) = side {
        reasons.push(reason(2 * CLOCK, "--map says the end", place));
        return Ok((at, side, reasons));
    }
    let mut sides: Vec<(Option<Side>, Vec<Reason>)> = Vec::new();
    for (host, why) in shown {
        let side = side_of(host, &trials[at], context.hosts);
        match sides.iter_mut().find(|(known, _)| *known == side) {
            Some((_, reasons)) => reasons.push(why.clone()),
            None => sides.push((side, vec![why.clone()])),
        }
    }
    let of_test = format!("{}:test={}", place.line, trials[at].place.line);
    let ends = ["sender", "receiver"].map(|end| format!("{}:end={end}", place.line));
    let undecided = |why: String| Undecided {
        why,
        candidates: [of_test].into_iter().chain(ends).collect(),
    };
    if sides.is_empty() {
        let why = String::from("nothing says on which host it was seen");
        return Err(undecided(why));
    }
    match decided(&sides) {
        Ok((Some(side), of_host)) => {
            reasons.extend(of_host);
            Ok((at, side, reasons))
        }
        Ok((None, _)) => Err(Undecided {
            why: String::from("it is of a host that is no end of a test"),
            candidates: Vec::new(),
        }),
        Err(ends) => {
            let name = |end: Option<Side>| end.map_or("another host", Side::name);
            let ends = ends
                .iter()
                .map(|(end, weight)| format!("{} ({weight})", name(*end)));
            let ends: Vec<String> = ends.collect();
            Err(undecided(format!(
                "what stands around it speaks for {}",
                ends.join(" and ")
            )))
        }
    }
}

/// Why a screen is booked nowhere, and the corrections that would decide.
struct Undecided {
    why: String,
    candidates: Vec<String>,
}

impl Undecided {
    fn tests(tests: &[(usize, i32)], trials: &[ImportedTrial], place: SourcePlace) -> Self {
        let line = |at: usize| trials[at].place.line;
        let lines = || tests.iter().map(|it| (line(it.0), it.1));
        let told = lines().map(|(line, weight)| format!("line {line} ({weight})"));
        let told: Vec<String> = told.collect();
        let maps = lines().map(|it| format!("{}:test={}", place.line, it.0));
        Undecided {
            why: match told.is_empty() {
                true => String::from("nothing ties it to a test"),
                false => format!("it may be of the test in {}", told.join(", ")),
            },
            candidates: maps.collect(),
        }
    }
}

/// Adds a line of CPU states to a test, with the reasons.
fn take(trials: &mut [ImportedTrial], at: usize, side: Side, line: &CpuLine, reasons: &[Reason]) {
    let (test, sender) = (trials[at].test, trials[at].sender.clone());
    // The other directions of a test ran at the same time on the same hosts.
    let near = at.saturating_sub(WAYS)..(at + WAYS + 1).min(trials.len());
    for trial in trials[near].iter_mut().filter(|it| it.test == test) {
        let is_other_way = trial.sender != sender;
        let side = if is_other_way { side.other() } else { side };
        of_cpu(trial, side, line);
        trial
            .evidence
            .extend(reasons.iter().map(|it| ImportedEvidence {
                of: format!("CPU states of line {}", line.states.place.line),
                points: it.weight,
                reason: it.text.clone(),
                place: it.place,
            }));
    }
}

/// Attaches a line of CPU states.
fn of_cpu(trial: &mut ImportedTrial, side: Side, line: &CpuLine) {
    const NAMES: [&str; 5] = ["user", "nice", "system", "interrupt", "idle"];
    let told = NAMES.into_iter().zip(line.states.value);
    for (name, value) in told.filter_map(|(name, value)| Some((name, value?))) {
        trial.figures.push(ImportedFigure {
            basis: ImportedBasis::Inferred,
            ..stated_figure(
                Some(side),
                &format!("cpu_{name}_ratio"),
                value,
                &line.states,
            )
        });
    }
}
