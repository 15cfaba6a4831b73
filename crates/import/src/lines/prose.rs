//! Prose: what each sentence, label or heading says of hosts, ends and settings; rates and shares in them.

use crate::cursor::{Cursor, MeasuredNumber, MeasuredUnit, measured, shared};
use crate::lines::clause::{
    ALL, BEFORE_INTERRUPTS, CHANGES, INTERRUPTS, JOINTS, LISTINGS, NEGATES, NamedParts, OFF, ON,
    POLLING_SWITCHES, POLLS, RECEIVERS, RUNS, SENDERS, SWITCH_WORDS, SWITCHES, WITHOUT, agreed,
    is_in, names_run, parts, phrase_at, switches, turns_round, words_of,
};
use crate::lines::seen::Seen;

/// Reads a figure: a number with its unit.
pub fn figure(cursor: &mut Cursor) -> Option<Seen> {
    cursor.begins_number()?;
    // `pc07%` is a prompt.
    (!cursor.behind().is_ascii_alphabetic()).then_some(())?;
    // Times of a range are what a tool prints.
    let is_result = |it: &MeasuredNumber| it.unit != MeasuredUnit::Seconds;
    let figure = measured(cursor).or_else(|| shared(cursor).filter(is_result));
    let figure = figure.filter(|it| it.unit != MeasuredUnit::Bytes)?;
    Some(Seen::Loose(figure.value, figure.unit))
}

/// What a sentence is to its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentenceKind {
    /// A heading: it says something of all up to the next one.
    Heading,
    /// It begins with a mark such as `=>` or `^`, or with `that was`: it says something of what comes before.
    Conclusion,
    /// A comment within a listing, or any other that ends with a colon: it introduces what follows.
    Comment,
    /// Any other.
    Plain,
}

/// Longer headings are none.
pub const HEADING_MAX: usize = 80;
/// Marks with which a conclusion begins, and words.
pub const CONCLUSIONS: &str = "=> ==> -> --> ^ <-";
const BACKWARD: &str = "which is|which was|was|that is|that was|that s|those were|that top is|that top was|this top is|this top was|this was|these were|first one|the last is|the last one is|\
    first is|the first is|the first one is|the above|above";
/// Phrases of a writer who does not know, either.
pub const DOUBTS: &str = "no idea|not sure|do not know|don t know|forgot which|forgot what|forgot whether|unknown|\
    without writing down|found out any more|forgot to note|forgot to write|forgot to mark|did not note|didn t note|    nothing running|nobody knows|nobody remembers|where to where|can not tell|cannot tell|can t tell|not remember|don t remember|do not ask me|\
    don t ask me|did not write|didn t write|did not say|tells neither|says neither|gives neither|no longer know|no longer sure|not certain|not recorded|lost track|\
    can t remember|cannot remember|not recall|t recall|not mention|t mention|not say which|not say what|not say how|\
    not say whether|not say where|can t assign|cannot assign|no word|not a word|without a word|without any word|without any words|keine ahnung|not noted|wasn t noted|\
    don t trust|do not trust|couldn t tell|could not tell|no names|no name|no date|no notes|no labels|no details|no host|do not build on|don t build on|not know any more|without name";
/// Phrases of hosts that are as they came, and those that say so of all.
pub const UNTOUCHED: &str =
    "not touch|not touched|didn t touch|untouched|left alone|left as it was|left as it is";
pub const ALL_UNTOUCHED: &str = "no polling compiled in|polling not compiled in|no devicepolling compiled in|touched nothing|nothing touched|everything at its default|everything at the defaults|everything at default|as found|as they come|as it comes|out of the box|\
    as installed|as delivered|as shipped|as distributed|as supplied|nothing switched on|nothing turned on|anything switched on|nothing enabled|untuned";
/// The same of a host that stands before them.
pub const UNTUNED: &str =
    "nothing tuned|default everything|everything default|nothing changed there";
/// Phrases of what is of no test that the text shows.
pub const ELSEWHERE: &str = "from the try before|from the run before|from another|of another|from an earlier|of an earlier|\
    not from this|did not keep|before we started|before i started|before the first|before the test|before the run|\
    before it started|no traffic|nothing to do|doing nothing|does nothing|at rest|sleeping|nothing running|is idle|\
    without load|without traffic|everything was over|everything was finished|link quiet|nothing is going on|nothing going on|idle again|pulled the cable|cable out|no test running|nothing on the wire|cable pulled|cable unplugged|nobody sending|nobody sends|no test is running|not during|between the|of yesterday|yesterday s|without any traffic|nothing on the cable|nobody talking|nothing on any|not with iperf|in production|ignore that one|\
    minutes later|hours later|all quiet|in the night|at night|this morning|last night|network quiet|network is quiet|no ttcp|no iperf|no netblast|nobody on";
/// Phrases with which a writer takes back what is said before.
pub const RETRACTS: &str = "sorry|my mistake|by mistake|by error|oops|mistyped|wrong window|wrong box|wrong host|wrong machine|\
    wrong interface|wrong card|wrong xterm|wrong terminal|wrong port|wrong console|wrong shell|correction|turned out|fell back|was not on|were not on|had no effect|did not take|\
    not really on|was not really|in fact|wrongly|after all|errata|erratum|in reality|was not polling|were not polling|\
    was not enabled|were not enabled|was not active|was still polling|was still on|were still on";
/// Phrases of the host that was shown last.
pub const SAME_HOST: &str = "of it|on it|top there|there at the same time|same place|same box|same machine|same host|same window|same terminal|same shell";
/// Phrases of what holds in all tests, and those that make a sentence one that says so.
pub const LASTING: &str = "ever|never|the whole time|the whole day|the whole evening|the whole page|the whole session|all the time|has no polling|no support|does not know|\
    does not support|can not poll|cannot poll|knows no polling";
/// Phrases of a host that cannot poll, or never does.
pub const CANNOT: &str = "cannot poll|can t poll|can not poll|has no polling|knows no polling|never polls|no polling possible|\
    does not know polling";
pub const ALWAYS: &str = "always|throughout|in every run|in every test|in each run|in each test|in all runs|in all tests|\
    in all of these|all day|the whole time|the whole session|as ever|in any of the runs|in any of the tests|\
    in any run|in any test|in everything below|in everything that follows|in what follows|in the later runs|in anything below|in anything that follows|in all that follows";
/// Phrases after which a setting may be another, though they do not tell it.
const MOVES: &str = "vice versa|reboot|rebooted|rebooting|reset|power cycle|\
    power cycled|everything back|put it back|set it back|put back|reverted|undid|undone|fresh boot|other kernel|another kernel|new kernel|sys class net";
/// Words of top's screens, which are no prose.
const SCREENS: &str = "last pid|iperf done|load average|load averages|zombie|mem|swap|current cache|interface traffic|interval transfer|total rate|ipkts ierrs|rx ok rx err";
/// What is left of markup around a listing, and of a banner.
const MARKUP: &str = "console code verbatim pre text sh bash shell quote noformat tt default";
/// Phrases of another test.
pub const ONE_MORE: &str = "one more|another run|another test|another transfer|last one";

/// A sentence, with its words in lower case between single spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    pub kind: SentenceKind,
    /// Whether it ends with a colon.
    pub introduces: bool,
    /// Whether it is a question.
    pub asks: bool,
    /// Whether it ends with a full stop.
    pub is_whole: bool,
    /// How deep a heading is, by its marks.
    pub level: usize,
    /// ` on pc2 ipv6 64 b `.
    pub words: String,
    /// The same, cut at commas, brackets and conjunctions.
    pub clauses: Vec<String>,
    /// The cells, if it is a row of a table.
    pub cells: Vec<String>,
    /// The numbers to which it sets variables that turn polling on: `busy_poll=50`.
    sets: Vec<u32>,
    /// How both ends receive by a heading such as `64 bytes, off/off`.
    pub modes: Option<Modes>,
}

/// A pair of states: of the sender and of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    /// Whether they poll.
    pub polls: [bool; 2],
    /// Whether the text says no more of them.
    pub is_all: bool,
    /// Whether they are letters, `i/p`: another text has `P` for plain.
    pub are_letters: bool,
}

/// The numbers to which a text sets variables that turn polling on.
fn sets(text: &str) -> Vec<u32> {
    let value = |it: &str| {
        let (name, value) = it.split_once('=')?;
        let mut switches = POLLING_SWITCHES.iter();
        let value = value.trim_end_matches(|it: char| !it.is_ascii_digit());
        value
            .parse()
            .ok()
            .filter(|_| switches.any(|it| name.ends_with(it)))
    };
    text.split_whitespace().filter_map(value).collect()
}

/// The two states in `off/off`, `irq / poll`, `r2: i/p`.
fn modes(text: &str) -> Option<Modes> {
    const POLLING: &str = "on poll polling polled p";
    const NOT_POLLING: &str = "off irq irqs int intr interrupt interrupts i";
    const LABELS: [char; 4] = [':', ')', '.', '-'];
    let text = text.to_ascii_lowercase();
    let text = text.trim_matches(|it: char| !it.is_ascii_alphanumeric() && it != ')');
    let (before, after) = text.split_once('/')?;
    let (before, after) = (before.trim(), after.trim());
    let edge = |it: char| !it.is_ascii_alphanumeric();
    let (one, other) = (before.rsplit(edge).next()?, after.split(edge).next()?);
    let state = |it: &str| match it {
        it if is_in(it, POLLING) => Some(true),
        it if is_in(it, NOT_POLLING) => Some(false),
        _ => None,
    };
    let polls = [state(one)?, state(other)?];
    let are_letters = one.len() == 1;
    // `I/on` is of something else.
    (are_letters == (other.len() == 1)).then_some(())?;
    let label = before[..before.len() - one.len()].trim_end();
    let remark = after[other.len()..].trim_start();
    let is_labelled = label.is_empty() || label.ends_with(LABELS);
    let is_all = is_labelled && (remark.is_empty() || remark.starts_with(['(', ',']));
    Some(Modes {
        polls,
        is_all,
        are_letters,
    })
}

impl Sentence {
    /// Reads one; `None` without a word.
    pub fn of(text: &str, mark: SentenceMark, is_after_output: bool) -> Option<Self> {
        let text = text.trim();
        let asks = text.ends_with('?');
        let introduces = text.trim_end_matches([' ', '*', '_', '`']).ends_with(':');
        let bullet = text.trim_start_matches(['*', ' ']);
        // `^ Run ^ Rate ^` is the head of a table.
        let is_table = text.len() > 1 && text.starts_with('^') && text.ends_with('^');
        let is_marked = CONCLUSIONS.split(' ').any(|mark| bullet.starts_with(mark)) && !is_table;
        let mut letters = text.split(|it: char| !it.is_ascii_alphabetic());
        let least = match mark {
            SentenceMark::Heading | SentenceMark::Row => 1,
            SentenceMark::None if !introduces && !is_marked => 3,
            _ => 2,
        };
        let modes = modes(text);
        let is_pair = modes.is_some_and(|it| it.is_all);
        // What is left of a screen are units and dashes; `a on` sets something.
        let is_word = letters.any(|word| word.len() >= least || is_in(word, "on off"));
        (is_word || is_pair).then_some(())?;
        let (words, clauses) = words_of(text);
        let begins = |it: &str| {
            words
                .strip_prefix(' ')
                .is_some_and(|words| words.starts_with(&format!("{it} ")))
        };
        let is_backward = is_after_output && !introduces && BACKWARD.split('|').any(begins);
        let is_heading = mark == SentenceMark::Heading && text.len() <= HEADING_MAX;
        let kind = match mark {
            _ if is_marked || is_backward => SentenceKind::Conclusion,
            SentenceMark::Caption if !introduces => SentenceKind::Conclusion,
            SentenceMark::Comment => SentenceKind::Comment,
            _ if is_heading => SentenceKind::Heading,
            _ => SentenceKind::Plain,
        };
        let introduces = introduces || mark == SentenceMark::Comment;
        let is_head = kind != SentenceKind::Plain || introduces;
        let sentence = Sentence {
            kind,
            introduces,
            asks,
            is_whole: text.ends_with(['.', '!', '?']),
            level: text.bytes().take_while(|it| b"=#".contains(it)).count(),
            words,
            clauses,
            cells: Vec::new(),
            sets: sets(text),
            modes: modes.filter(|_| is_head || is_pair),
        };
        // netstat begins a protocol's counters with its name.
        let is_protocol = is_in(&text.to_ascii_lowercase(), "udp: tcp: ip: icmp: ip6:");
        let is_screen = sentence.has_any(SCREENS)
            || sentence.has("threads processes") && sentence.has("sleeping")
            || is_in(sentence.words.trim(), MARKUP) && !introduces
            || is_in(text, "Code: Quote:")
            || is_protocol;
        (!is_screen && !text.ends_with("wrote:")).then_some(sentence)
    }

    /// The number of the test that it names, and whether it is of that: `for the second one`, `in run 2`. 0 stands for
    /// several: `during the first and the second`.
    pub fn run_number(&self) -> Option<(usize, bool)> {
        const ORDINALS: &str = "first second third fourth fifth sixth seventh eighth ninth";
        const OF: &str = "for in of during from";
        let words: Vec<&str> = self.words.split_whitespace().collect();
        let word = |at: Option<usize>| at.and_then(|at| words.get(at)).copied().unwrap_or("");
        // `29 % less than in run 1` is of another.
        let is_of = |at: Option<usize>| {
            let before = at.and_then(|it| it.checked_sub(1));
            is_in(word(at), OF) && !is_in(word(before), "than as like unlike")
        };
        let is_list = words
            .windows(3)
            .any(|it| it[..2] == ["and", "the"] && is_in(it[2], ORDINALS));
        words.iter().enumerate().find_map(|(at, it)| {
            let next = word(Some(at + 1));
            match ORDINALS.split(' ').position(|ordinal| ordinal == *it) {
                Some(ordinal) => {
                    let is_of = word(at.checked_sub(1)) == "the" && is_of(at.checked_sub(2));
                    // `the second one`, or `the second of these two`, counts from anywhere.
                    let is_run = is_in(next, RUNS);
                    let number = if is_list { 0 } else { ordinal + 1 };
                    is_run.then_some((number, is_of))
                }
                None if is_in(it, RUNS) => Some((next.parse().ok()?, is_of(at.checked_sub(1)))),
                None => None,
            }
        })
    }

    /// Whether it is of the second of the last two tests: `during the first of the two`.
    pub fn of_two(&self) -> Option<bool> {
        let of = |ordinal: &str| {
            let phrases = ["the two", "these two", "those two", "them", "these"];
            phrases
                .iter()
                .any(|it| self.find(&format!("{ordinal} of {it}")).is_some())
        };
        match (of("first"), of("second")) {
            (true, false) => Some(false),
            (false, true) => Some(true),
            _ => None,
        }
    }

    /// Whether it names polling, or a variable that turns polling on.
    pub fn names_polling(&self) -> bool {
        let is_switch = |it: &str| SWITCH_WORDS.iter().any(|end| it.ends_with(end));
        self.has(POLLS) || self.has("devicepolling") || self.words.split(' ').any(is_switch)
    }

    /// Whether it begins with the number of a test: `3) oak back to 0`.
    pub fn is_numbered(&self) -> bool {
        // `i` may be the writer.
        const ROMAN: &str = "ii iii iv v vi vii viii ix x";
        let first = self.words.split_whitespace().next().unwrap_or("");
        let is_digit = first.len() == 1 && first.bytes().all(|it| it.is_ascii_digit());
        is_digit || is_in(first, ROMAN)
    }

    /// The same without the number or the name of the test with which it begins, if it has one.
    pub fn without_number(&self) -> Self {
        let mut bare = self.clone();
        let many = match () {
            () if self.is_numbered() => 1,
            () if self.names_run() => 2,
            () => 0,
        };
        let number = self.words.split_whitespace().take(many);
        let size: usize = number.map(|it| it.len() + 1).sum();
        let words = [&mut bare.words]
            .into_iter()
            .chain(bare.clauses.first_mut());
        words.for_each(|it| drop(it.drain(..size.min(it.len()))));
        bare
    }

    /// Whether it is a label that says that nothing is set: `default settings`, `everything at default`.
    pub fn is_default(&self) -> bool {
        const PLAIN: &str = "default defaults stock settings setting everything all both at the with on now then again \
            results numbers round step experiment one two three four first second third last test run case tcp udp";
        let is_plain = |it: &str| is_in(it, PLAIN) || it.len() == 1;
        let is_head = self.introduces || self.kind != SentenceKind::Plain;
        let mut words = self.words.split_whitespace();
        is_head && self.has("default defaults stock") && words.all(is_plain)
    }

    /// Whether it is the label of a run: `run D, after the power cut`.
    pub fn begins_run(&self) -> bool {
        self.names_run() && !self.is_whole
    }

    /// How many runs it names: `interrupts (run D1), then polling (run D2)`.
    pub fn runs(&self) -> usize {
        let words: Vec<&str> = self.words.split_whitespace().collect();
        let named = words
            .windows(2)
            .filter(|it| is_in(it[0], RUNS) && it[1].len() < 3);
        named.count()
    }

    /// Whether it begins with the name of a run.
    pub fn names_run(&self) -> bool {
        let words: Vec<&str> = self.words.split_whitespace().take(3).collect();
        names_run(&words)
    }

    /// Whether it names a case of a table: `Run B`, `B, from alpha to beta`, or a longer name anywhere.
    pub fn is_of_case(&self, label: &str) -> bool {
        if label.len() > 2 && label.parse::<u32>().is_err() {
            return self.find(label).is_some();
        }
        let first = self.clauses.first().map_or("", |it| it.trim());
        let is_number = label.parse::<u32>().is_ok();
        let mut kinds = RUNS.split(' ').chain([
            "setup",
            "config",
            "configuration",
            "cfg",
            "variant",
            "scenario",
            "mode",
            "no",
            "nr",
            "number",
        ]);
        first == label && !is_number
            || kinds.any(|it| self.find(&format!("{it} {label}")).is_some())
    }

    /// Whether it is of a test above: `So that one has polling on both ends`.
    pub fn is_of_that(&self) -> bool {
        self.has_any("that one has|that one had|that run has|that run had|that one is|that one was")
    }

    /// Whether it is of something that ran in no test of the text.
    pub fn is_elsewhere(&self) -> bool {
        self.has_any(ELSEWHERE)
            && !self.has_any(
                "same run|same test|nothing but|nothing except|during it|during this|during that",
            )
            || self.clauses.iter().any(|it| it == " idle ")
    }

    /// Reads words as others.
    pub fn take_for(&mut self, words: &str, others: &str) {
        for cell in self
            .cells
            .iter_mut()
            .filter(|it| it.eq_ignore_ascii_case(words))
        {
            *cell = String::from(others);
        }
        let (words, others) = (format!(" {words} "), format!(" {others} "));
        for text in self.clauses.iter_mut().chain([&mut self.words]) {
            if text.contains(&words) {
                *text = text.replace(&words, &others);
            }
        }
    }

    /// The number of the test whose setting it says to be the same: `settings as in run 4`, `same as section 3`.
    pub fn same_as(&self) -> Option<&str> {
        const BETWEEN: &str = "in for of from run test experiment section round case entry step it was is they were are";
        let words: Vec<&str> = self.words.split_whitespace().collect();
        let as_in = words.iter().position(|it| is_in(it, "as like"))?;
        let mut rest = words[as_in + 1..]
            .iter()
            .skip_while(|it| is_in(it, BETWEEN));
        let is_between = words.get(as_in + 1).is_some_and(|it| is_in(it, BETWEEN));
        // `run D: as C, but backwards`
        let is_run = self.begins_run();
        let is_label = |it: &str| {
            it.bytes().all(|it| it.is_ascii_digit()) || is_run && it.len() == 1 && it != "a"
        };
        let is_set = |it: &str| it.len() == 1 && self.has("settings setting");
        let number = rest.next().filter(|it| is_label(it) || is_set(it))?;
        // `as 3.2`
        let is_part = rest
            .next()
            .is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()));
        if is_part {
            return None;
        }
        let is_first = is_run
            || words[..as_in]
                .iter()
                .all(|it| it.bytes().all(|it| it.is_ascii_digit()));
        let is_setting = (self.has("setting settings set polling same") || is_between || is_first)
            && !self.has("command commands client test");
        is_setting.then_some(number)
    }

    /// Whether it says that something is the other way round.
    pub fn turns_round(&self) -> bool {
        turns_round(&self.words)
    }

    /// Whether it says that the server sends: `the same with -R`.
    pub fn reverses(&self) -> bool {
        self.has_any("with r|and r|then r|now r|just r|this time r|but r|again r")
            && !self.has("dropped removed without")
    }

    /// Whether it may say in words that are not understood that the next test runs another way.
    pub fn may_turn(&self) -> bool {
        const TURNS: &str =
            "arrow opposite reverse reversed backwards becomes become swapped swap shoots";
        const REVERSED: &str = "turned the direction|changed the direction|swapped the direction|with r|add a r|just r|then r|now r|this r|the r|without r|no r";
        const PARTS: &str =
            "as the client|as the server|as client|as server|is the client|is the server";
        self.turns_round() || self.has(TURNS) || self.has_any(REVERSED) || self.has_any(PARTS)
    }

    /// Whether it takes back which host a screen shows: `I pasted the two CPU lines under the wrong names`.
    pub fn retracts_screens(&self) -> bool {
        let is_of_screens = self.has("cpu top vmstat screen screens picture");
        is_of_screens
            && self.has_any(
                "wrong names|wrong name|wrong order|wrong host|wrong window|mixed up|swapped",
            )
    }

    /// Whether it begins what another writer measured on hosts of his own: `Mine, for what it is worth`.
    pub fn is_mine(&self) -> bool {
        self.words.starts_with(" mine ")
            || self.has_any("mine at|mine for|mine from|worth mine|here is mine|mine are")
    }

    /// Whether it says of which traffic something is as before: `UDP as in A`, `direction as in 2`.
    fn is_of_traffic(&self) -> bool {
        const TRAFFIC: &str = "udp tcp direction traffic load packets datagrams datagram";
        let words: Vec<&str> = self.words.split_whitespace().collect();
        let mut like = words.windows(2).filter(|it| is_in(it[1], "as like"));
        like.any(|it| is_in(it[0], TRAFFIC))
    }

    /// Whether settings may be others from here on; `are_alike` if those of all hosts are.
    pub fn moves(&self, are_alike: bool) -> bool {
        const STOCK: &str = "stock default defaults baseline standard vanilla";
        const NUMBERS: &str = "i ii iii iv v vi 1 2 3 4 5 6 7 8 9";
        let is_stock = |it: &String| is_in(it.trim(), STOCK);
        let words = self.words.split_whitespace();
        let mut words = words.skip_while(|it| !is_in(it, "as like"));
        let is_numbered = words.nth(1).is_some_and(|it| is_in(it, NUMBERS));
        let is_drawn = self.has("drawing picture diagram sketch figure");
        // `UDP as in A` is of traffic.
        let is_like = is_numbered || self.has_any("same as in|like in|as in") && !is_drawn;
        let is_like = is_like && !self.is_of_traffic();
        is_like
            || self.has_any(MOVES)
            || !are_alike
                && self.turns_round()
                && !self.has(
                    "sends send sending receives direction pushes traffic client server same r",
                )
            || self.introduces && self.clauses.iter().any(is_stock)
    }

    /// Whether a clause ends as one that sets something does: `a on`, `now 1`.
    pub fn hints(&self) -> bool {
        self.clauses.iter().any(|it| {
            let words: Vec<&str> = it.split_whitespace().collect();
            let last = words.last().copied().unwrap_or("");
            let sets = words.iter().any(|it| is_in(it, SWITCHES));
            is_in(last, "on off") && words.len() <= 4
                || is_in(last, "0 1") && words.len() == 2
                || is_in(last, "on off 0 1") && sets && words.len() <= 8
        })
    }

    /// Whether it has a word with which hosts are set in ways that are not understood: `echo 1, plover only`.
    pub fn may_set(&self) -> bool {
        // `during listing 3-1`
        let is_of_listing = |it: &str| {
            let mut before = it.split_whitespace().rev().skip(1);
            let word = before.find(|it| it.bytes().any(|it| !it.is_ascii_digit()));
            word.is_some_and(|it| is_in(it, LISTINGS) || is_in(it, RUNS))
        };
        let is_valued = |it: &String| {
            (it.ends_with(" 0 ") || it.ends_with(" 1 ")) && it.len() > 3 && !is_of_listing(it)
        };
        self.has("off echo module modules preset knob flag threaded defer defers")
            || self.has("first") && self.has("did done took")
            || self.has_any("on at|on on|as well")
            || self.clauses.iter().any(is_valued)
    }

    /// The position of a word, or of several.
    pub fn find(&self, word: &str) -> Option<usize> {
        phrase_at(&self.words, word)
    }

    /// Whether it has one of these words.
    pub fn has(&self, words: &str) -> bool {
        self.words.split_whitespace().any(|word| is_in(word, words))
    }

    /// Whether it has one of these phrases, which `|` separates.
    pub fn has_any(&self, phrases: &str) -> bool {
        phrases.split('|').any(|it| self.find(it).is_some())
    }

    /// The numbers that a variable that turns polling on has by a sentence that names one: those in it, 0 and 1.
    pub fn values(&self) -> impl Iterator<Item = u32> {
        let numbers = self.words.split(' ').filter_map(|it| it.parse().ok());
        let numbers = numbers.chain([0, 1]).filter(|_| self.names_variable());
        numbers.chain(self.sets.iter().copied())
    }

    /// Whether it is of numbers that hosts have of something else: `MTU: both at 1500`.
    pub fn counts_others(&self) -> bool {
        self.has("mtu threads streams rings ring queues queue loss lost drops drop dropped errors collisions")
    }

    /// Whether it names a variable that turns polling on.
    pub fn names_variable(&self) -> bool {
        let is_variable = |it: &str| SWITCH_WORDS.iter().any(|end| it.ends_with(end));
        self.words.split(' ').any(is_variable)
    }

    /// Whether it says that something holds in all tests.
    pub fn lasts(&self) -> bool {
        self.has_any(LASTING) || self.lasts_always()
    }

    /// The same, with a word for all tests.
    pub fn lasts_always(&self) -> bool {
        self.has_any(ALWAYS) && !self.has_any("as always")
    }

    /// Whether it tells how something is done: `turning it on and off is easy`.
    pub fn is_how(&self) -> bool {
        self.has_any("on and off is|on and off with|on and off by")
    }

    /// Whether it says what a word means, or how something is done.
    pub fn explains(&self) -> bool {
        self.has("means mean") || self.is_how()
    }

    /// Whether it begins a judgement of all tests, or advice.
    pub fn concludes(&self) -> bool {
        const ADVICE: &str = "decision conclusion conclusions summary recommendation recommendations advice lesson verdict";
        let mut first = self.clauses.iter().take(1);
        self.kind == SentenceKind::Plain
            && !self.introduces
            && first.any(|it| is_in(it.trim(), ADVICE))
    }

    /// Whether it is a row of a letter and what that stands for: `(a) polling off on both`.
    pub fn is_case(&self) -> bool {
        self.cells.len() == 2 && self.cells[0].len() == 1
    }

    /// Whether it says what `on` or `off` stands for.
    pub fn defines_states(&self) -> bool {
        let words: Vec<&str> = self.words.split_whitespace().collect();
        let means = words.iter().position(|it| is_in(it, "means mean"));
        let before = means.map(|at| &words[at.saturating_sub(4)..at]);
        before.is_some_and(|it| it.iter().any(|it| is_in(it, "on off")))
    }

    /// Whether it says what words mean or how something is done, and not what was done.
    pub fn defines(&self) -> bool {
        self.has_any("is switched with|is switched by|is turned on with|is turned on by|is enabled with|is enabled by|stands for|stand for")
            || self.is_how()
            || self.has_any("is switched|is turned on|is enabled") && self.has_any("with sysctl|by sysctl|with ifconfig|by ifconfig")
            || ["check that", "note that", "make sure", "remember that"].iter().any(|it| self.find(it) == Some(0))
            || self.has("means mean")
                && !self.has_any("which means|that means|this means|it means")
                && (self.has("ifconfig sysctl") || self.has_any("on and off|off and on"))
    }

    /// Whether its writer does not know something: `the file does not tell in which state it was`.
    pub fn doubts(&self) -> bool {
        const VERBS: &str = "know knows tell tells say says remember write note recall";
        const WHICH: &str = "which whether whom if how state settings";
        let words: Vec<&str> = self.words.split_whitespace().collect();
        let is_open = |it: &[&str]| {
            let is_not = is_in(it[0], "not t no nor neither nobody");
            let verb = it[1..3].iter().position(|it| is_in(it, VERBS));
            is_not && verb.is_some_and(|at| it[at + 2..].iter().any(|it| is_in(it, WHICH)))
        };
        let turns = self.has("switching flipping toggling switched flipped");
        self.has_any(DOUBTS)
            && !self.has_any("no idea why|can not tell from|cannot tell from|can t tell from")
            || (0..words.len()).any(|at| {
                words.get(at..at + 4).is_some() && is_open(&words[at..(at + 6).min(words.len())])
            })
            || turns && self.has_any("on and off|off and on|back and forth")
    }

    /// Whether it speaks of interrupts, and neither of polling nor of a change: of their share of the time, as a rule.
    pub fn is_of_interrupts(&self) -> bool {
        let is_topic =
            self.has(POLLS) || self.has(CHANGES) || self.has(SWITCHES) || self.has("devicepolling");
        self.has(INTERRUPTS) && !is_topic && !self.introduces && self.kind == SentenceKind::Plain
    }

    /// Whether it compares results: `76 Mbit/s more than with interrupts`.
    pub fn compares(&self) -> bool {
        const UNITS: &str =
            "mbit mbits gbit gbits mb kpps mpps pps idle percent us ms faster slower better worse";
        let is_plain = self.kind == SentenceKind::Plain && !self.introduces;
        let compares = self.has("than against instead loses lost gains costs gives better worse");
        is_plain
            && compares
            && self.has(UNITS)
            && !switches(&self.words.split_whitespace().collect::<Vec<_>>())
    }

    /// Whether it tells that someone turned something on or off.
    pub fn switches(&self) -> bool {
        self.has(SWITCHES) || self.has("now")
    }

    /// The parts in a test that it names.
    pub fn parts(&self) -> NamedParts {
        parts(&self.words)
    }

    /// Polling (`true`) or interrupts; `None` when it names both or neither.
    pub fn setting(&self) -> Option<bool> {
        agreed(&self.clauses)
    }

    /// Whether all of a clause's words belong to a label such as `with polling on the receiver`.
    pub fn is_label(clause: &str, hosts: &[&str]) -> bool {
        const LABEL: &str = "before napi hard other others rest here nor sudo i a it is to of in on at we as an my so be by the this that was were are them run one two three four \
            first second third last same kernel there over enter device busy sh side sides end ends machine machines box boxes board boards host hosts and too just any all yes ok \
            everything mode driven section page unit units measurement measurements result results experiment slide step with plain have had has here been test round case ifconfig sysctl sysctls network card cards nic \
            nics interface interfaces port ports for once more time everywhere anywhere tcp udp stream streams byte bytes packets small";
        const LISTS: [&str; 14] = [
            LABEL,
            POLLS,
            INTERRUPTS,
            OFF,
            WITHOUT,
            NEGATES,
            ON,
            SENDERS,
            RECEIVERS,
            ALL,
            CHANGES,
            SWITCHES,
            BEFORE_INTERRUPTS,
            JOINTS,
        ];
        let is_name = |it: &str| hosts.iter().any(|host| host.eq_ignore_ascii_case(it));
        let is_number = |it: &str| it.ends_with(|it: char| it.is_ascii_digit());
        clause.split_whitespace().all(|it| {
            let is_switch = SWITCH_WORDS.iter().any(|end| it.ends_with(end));
            let is_letter = it.len() == 1;
            is_name(it)
                || is_number(it)
                || is_letter
                || is_switch
                || LISTS.iter().any(|list| is_in(it, list))
        })
    }
}

/// What a line is by its marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentenceMark {
    Heading,
    /// A comment in a listing.
    Comment,
    /// It says something of what comes before.
    Caption,
    /// A row of a table.
    Row,
    None,
}
