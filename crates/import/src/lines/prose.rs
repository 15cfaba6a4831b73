//! Prose: what each sentence, label or heading says of hosts, ends and settings; rates and shares in them.

use crate::cursor::{Cursor, MeasuredUnit, measured};
use crate::lines::seen::Seen;

/// Reads a figure: a number with its unit.
pub fn figure(cursor: &mut Cursor) -> Option<Seen> {
    cursor.begins_number()?;
    // `pc07%` is a prompt.
    (!cursor.behind().is_ascii_alphabetic()).then_some(())?;
    let figure = measured(cursor).filter(|it| it.unit != MeasuredUnit::Bytes)?;
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
/// Most bytes of a sentence.
const SENTENCE_MAX: usize = 400;
/// Marks with which a conclusion begins, and words.
pub const CONCLUSIONS: &str = "=> ==> -> --> ^ <-";
const BACKWARD: &str = "which is|which was|was|that is|that was|that s|those were|this top is|this top was|this was|these were|first one|the last is|the last one is|\
    first is|the first is|the first one is|the above|above";

/// Words that name polling, and interrupts as the way to receive.
pub const POLLS: &str = "polling polled poll polls unpolled knob knobs deferral defers deferred deferring threaded spin spins spinning";
const INTERRUPTS: &str = "interrupt interrupts intr irq irqs";
/// Words for what turns polling on, if they are known from above.
const SETTINGS: &str = "values echos echoes commands sysctls lines";
/// Words of what polls in an explanation.
const WORKERS: &str = "kernel process program driver thread napi";
/// Words before or after interrupts that make them the way to receive, and words after that do not.
const BEFORE_INTERRUPTS: &str = "taking takes on its their with plain old in at to using uses use used normal usual by pure stays only still";
const AFTER_INTERRUPTS: &str = "mode driven only again both on at everywhere";
const COLUMNS: &str = "column load time share rate handler handlers thread statistics per counts counters counter \
    table storm storms moderation coalescing mitigation nearly gone fewer less down up drop dropped fell";
/// Words that turn off, those right before polling that do, and those that negate what follows.
const OFF: &str = "off disabled disable disabling deactivated deactivate unpolled nobody none neither nowhere \
    masked stopped unticked unchecked removed";
const WITHOUT: &str = "without no non nothing";
const NEGATES: &str = "not never don doesn didn isn wasn aren hasn longer";
/// Words that turn on.
const ON: &str =
    "on enabled enable enabling with using active activated activate use uses used ticked checked";
/// Words that tell a change, or that nothing changed.
const CHANGES: &str = "now again next then finally left stays stay stayed remains still back went goes done did \
    nobody never yet moved set reset put change changed changing masks masked leaves";
const SWITCHES: &str = "enable enabled enabling disable disabled disabling turn turned turning switch switched \
    switching activate activated deactivated ticked unticked checked unchecked set put";
/// Words of a clause that tells what a command prints.
const LOOKS: &str = "above see shown shows says output prints checked";
/// Words after which a clause asks, wishes, compares or supposes, or tells of another time.
const UNREAL: &str = "would should could if why can may might whether how expected expect planned want wanted think \
    guess wonder must unless when whenever until try than vs versus against instead or ago yesterday years believe \
    claimed claims recommend suggest advises what which need needs please";
/// Verbs with which a clause begins that asks others.
const ASKS: &str = "enable disable turn switch activate deactivate run use set put type do add leave build compile";
pub const SENDERS: &str = "sender client sending source blasting pushing transmitting transmitter generator tx blaster senders clients talker";
pub const RECEIVERS: &str = "receiver server receiving sink target rx listener receivers servers";
const ALL: &str = "both everywhere anywhere everybody everyone nobody neither either";
/// Words after `all`, `two`, `each` and `every` that make them a group of hosts, and after `both` that do not.
pub const MACHINES: &str = "machines machine boxes box boards board hosts host ends end sides side computers pcs nodes units unit devices";
const NOT_HOSTS: &str = "files sysctls variables knobs values settings directions streams interfaces ports cards runs tests cases protocols";
/// Words after `all three` that leave it a group of hosts.
const OF_GROUPS: &str = "on at with in of poll polled polling stay";
/// Marks that end a clause, and words that begin one.
const CUTS: [char; 6] = [',', ';', ':', '(', ')', '/'];
const JOINTS: &str = "and but while whereas so because";
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
    without load|without traffic|everything was over|everything was finished|link quiet|no test running|nothing on the wire|cable pulled|cable unplugged|nobody sending|nobody sends|no test is running|not during|between the|of yesterday|yesterday s|without any traffic|nothing on the cable|nobody talking|nothing on any|not with iperf|in production|ignore that one|\
    minutes later|hours later|all quiet|in the night|at night";
/// Phrases with which a writer takes back what is said before.
pub const RETRACTS: &str = "sorry|my mistake|by mistake|by error|oops|mistyped|wrong window|wrong box|wrong host|wrong machine|\
    wrong interface|wrong card|wrong xterm|wrong terminal|wrong port|wrong console|wrong shell|correction|turned out|fell back|was not on|were not on|had no effect|did not take|\
    not really on|was not really|in fact|wrongly|after all|errata|erratum|in reality|was not polling|were not polling|\
    was not enabled|were not enabled|was not active|was still polling|was still on|were still on";
/// Phrases of the host that was shown last.
pub const SAME_HOST: &str = "of it|on it|top there|there at the same time|same place|same box|same machine|same host|same window|same terminal|same shell";
/// Phrases of what holds in all tests, and those that make a sentence one that says so.
pub const LASTING: &str = "ever|never|the whole|all the time|has no polling|no support|does not know|\
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
const SCREENS: &str = "last pid|iperf done|load average|load averages|processes|zombie|mem|swap|current cache|interface traffic|interval transfer|total rate|ipkts ierrs|rx ok rx err";

/// What is left of markup around a listing, and of a banner.
const MARKUP: &str = "console code verbatim pre text sh bash shell quote noformat tt default";

/// Variables that turn polling on unless they are 0.
pub const POLLING_SWITCHES: [&str; 4] = [
    "polling.enable",
    "busy_poll",
    "busy_read",
    "gro_flush_timeout",
];
/// The same as words of a sentence.
const SWITCH_WORDS: [&str; 3] = ["pollingenable", "busypoll", "busyread"];
/// Words that stand for a host without naming it.
pub const KINDS: &str = "laptop desktop workstation notebook nas router gateway firewall";
/// Words for a host between the ends of a test.
pub const BOXES: &str = "router gateway firewall bridge forwarder";
/// Words before the number of a listing.
pub const LISTINGS: &str = "listing figure fig table example output screen";
/// Words before the number or the letter of a test.
const RUNS: &str = "run runs test tests try case";

/// Phrases of another test.
pub const ONE_MORE: &str = "one more|another run|another test|another transfer|last one";

/// Words after `on` that name no host.
const NO_HOSTS: &str = "stock plain normal vanilla performance powersave either neither test tests run input output other he she who nobody somebody the it this that both all each linux freebsd netbsd openbsd debian ubuntu off one two side box \
    host machine average top tcp udp ip ipv4 ipv6 http nfs i o cpu irq idle less more then not so again now \
    are zero default defaults none here there once last least first same everything about what which how some most many course time only too";

/// Whether a word names no host, though one could stand there.
pub fn is_common(word: &str) -> bool {
    let lists = [
        NO_HOSTS, POLLS, INTERRUPTS, SENDERS, RECEIVERS, KINDS, MACHINES,
    ];
    lists.iter().any(|list| is_in(word, list))
}

/// Whether a word is in a list of words.
pub fn is_in(word: &str, words: &str) -> bool {
    words.split(' ').any(|it| it == word)
}

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
}

/// Which hosts a sentence is of, by their part in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedParts {
    pub sender: bool,
    pub receiver: bool,
    pub all: bool,
    /// No other host.
    pub only: bool,
}

/// What a clause says of the way to receive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClauseMode {
    /// Whether it names polling or interrupts.
    pub is_topic: bool,
    /// Whether it names them itself, and does not say `it`.
    pub is_named: bool,
    /// Polling (`true`) or interrupts.
    pub polls: Option<bool>,
    /// Whether it tells a change, or that nothing changed.
    pub changes: bool,
    /// Whether it asks, compares, or supposes.
    pub is_unreal: bool,
}

impl ClauseMode {
    /// Reads a clause; `is_it` when `it` stands for polling.
    pub fn of(clause: &str, is_it: bool) -> Self {
        let words = asserted(clause);
        let is_number = |it: &str| it.starts_with(|it: char| it.is_ascii_digit());
        let word = |at: Option<usize>| at.and_then(|at| words.get(at)).copied().unwrap_or("");
        let has = |list: &str| words.iter().any(|it| is_in(it, list));
        let is_in_place = is_in_place(&words);
        let as_was = [
            "how it was",
            "as it was",
            "as it is",
            "how it is",
            "as before",
            "during it",
        ];
        let is_as_was = as_was.iter().any(|it| clause.contains(it));
        // `the kernel polls` explains how it works.
        let is_poll = |at: &usize| match words[*at] {
            "it" => is_it && words[0] != "because" && !is_as_was,
            "polls" => !is_in(word(at.checked_sub(1)), WORKERS),
            // `the same two values on oak, too`
            other if is_in(other, SETTINGS) => is_known(&words[..*at]),
            other => is_in(other, POLLS),
        };
        let polls: Vec<usize> = (0..words.len()).filter(is_poll).collect();
        // Support for polling in a kernel is no setting.
        let is_built = has("compiled built support supports options") && !has("ifconfig")
            || has("knows know") && !has("no not");
        let is_interrupt = |at: &usize| {
            let (before, after) = (word(at.checked_sub(1)), word(Some(at + 1)));
            let is_mode = is_in(before, BEFORE_INTERRUPTS)
                || is_in(after, AFTER_INTERRUPTS) && !is_number(word(Some(at + 2)));
            is_in(words[*at], INTERRUPTS)
                && !has("deferral deferring deferred")
                && !is_in(after, COLUMNS)
                && !is_in(before, WITHOUT)
                && (before.len() < 3 || !is_number(before))
                && (is_mode || words.len() <= 3)
        };
        let interrupts = (0..words.len()).any(|at| is_interrupt(&at));
        let off = words.iter().enumerate().filter(|(at, it)| {
            let near = |list: &str, by: usize| {
                let next = words[at + 1..].iter().take(by);
                next.clone().any(|it| is_in(it, list))
                    || is_it && next.clone().any(|it| *it == "it")
            };
            is_in(it, OFF)
                || is_in(it, WITHOUT) && near(POLLS, 2)
                || is_in(it, NEGATES)
                    && (near(POLLS, 3) || near("on enabled active appear appears listed", 3))
        });
        let off = off.count();
        let is_on = clause.contains(" as well ");
        let is_on =
            is_on || has("too also got gets gave given wrote both only polls polled ifconfig");
        // `The knobs` is a heading of an explanation.
        let is_knob = polls.iter().all(|at| is_in(words[*at], "knob knobs"));
        let is_short = words.len() <= 4 && !is_knob;
        let is_on = is_on || has(ON) || has(CHANGES) || is_short || is_in_place;
        let valued = value_said(&words);
        let polls_now = match (polls.is_empty(), interrupts) {
            _ if valued.is_some() => valued,
            // `polling=0/1` counts ends.
            _ if is_built || polls.iter().any(|at| is_number(word(Some(at + 1)))) => None,
            (false, false) if off == 0 => is_on.then_some(true),
            (false, false) if off == 1 => Some(false),
            (true, true) if off == 0 => Some(false),
            _ => None,
        };
        ClauseMode {
            is_topic: !polls.is_empty()
                || interrupts
                || valued.is_some()
                || has("devicepolling threaded")
                || clause.contains(" threads on ")
                || clause.contains(" threads off "),
            is_named: interrupts || has(POLLS),
            polls: polls_now,
            changes: has(CHANGES)
                || switches(&words)
                || has("ifconfig") && !has(LOOKS)
                || valued.is_some(),
            is_unreal: is_unreal(&words) || is_in(word(Some(0)), ASKS) && !is_number(word(Some(1))),
        }
    }

    /// What a clause that names neither says: `left in place`, `switched it off`, `back to normal`; behind a clause that does also
    /// `not active`, and as a label (`is_label`) `and without`.
    pub fn elliptic(clause: &str, is_topic: bool, is_label: bool) -> Option<bool> {
        let words: Vec<&str> = clause.split_whitespace().collect();
        let has = |list: &str| words.iter().any(|it| is_in(it, list));
        let (first, last) = (*words.first()?, *words.last()?);
        let negates = has(NEGATES) || has(OFF);
        if has("back")
            && !has("its ethtool")
            && has("normal stock plain default defaults interrupt zero zeros 0 factory was")
            || has("left stays stay still remains") && is_in(last, "plain stock normal untouched")
        {
            return Some(false);
        }
        if has("it them") && has("ticked unticked") {
            return Some(has("ticked"));
        }
        // `took it off on oak`, `left it on at elm`
        let mut told = words
            .windows(3)
            .filter(|it| is_in(it[0], "took left leave kept") && it[1] == "it");
        if let Some([_, _, state]) = told.next()
            && is_in(state, "on off away")
        {
            return Some(*state == "on");
        }
        if is_topic && (words == ["on"] || clause.contains(" left in place ")) {
            return Some(true);
        }
        if is_topic && (first == "off" || negates && has("enabled active activated used")) {
            return Some(false);
        }
        // `default on both machines`
        let is_plain = |it: &&str| {
            is_in(it, "@ default defaults settings setting on both all at the")
                || is_in(it, MACHINES)
        };
        if is_label && has("default defaults") && has("@ both") && words.iter().all(is_plain) {
            return Some(false);
        }
        if is_label && words == ["normal"] {
            return Some(false);
        }
        if is_label && words == ["and", "on"] {
            return Some(true);
        }
        if is_label && words.len() <= 3 && is_in(last, "without off with") {
            return Some(last == "with");
        }
        // `set both sysctls on oak` turns nothing on.
        let is_end = |it: &str| is_in(it, "@ a the each every all both either");
        const TURNS: &str = "turn turned turning switch switched switching switches it";
        let mut places = words
            .windows(3)
            .filter(|it| it[1] == "on" && is_end(it[2]) && !is_in(it[0], TURNS));
        let is_place = places.next().is_some() && !clause.contains(" on on ");
        // `set the sysctl to 1`
        let mut values = words.windows(2).filter(|it| is_in(it[0], "to at"));
        let value = values.find_map(|it| it[1].parse::<u32>().ok());
        if let Some(value) = value.filter(|_| has("sysctl sysctls knob knobs")) {
            return Some(value > 0);
        }
        let is_on = has("on") && !has(OFF);
        (switches(&words) && (has("off") || has("on") && !is_place))
            .then_some(is_on && !has("nobody never not nothing"))
    }
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
        // What is left of a screen are units and dashes; `a on` sets something.
        letters.find(|word| word.len() >= least || is_in(word, "on off"))?;
        let (words, clauses) = words_of(text);
        let begins = |it: &str| {
            words
                .strip_prefix(' ')
                .is_some_and(|words| words.starts_with(&format!("{it} ")))
        };
        let is_backward = is_after_output && !introduces && BACKWARD.split('|').any(begins);
        let is_heading = mark == SentenceMark::Heading && text.len() <= HEADING_MAX;
        let sentence = Sentence {
            kind: match mark {
                _ if is_marked || is_backward => SentenceKind::Conclusion,
                SentenceMark::Caption if !introduces => SentenceKind::Conclusion,
                SentenceMark::Comment => SentenceKind::Comment,
                _ if is_heading => SentenceKind::Heading,
                _ => SentenceKind::Plain,
            },
            introduces: introduces || mark == SentenceMark::Comment,
            asks,
            is_whole: text.ends_with(['.', '!', '?']),
            level: text.bytes().take_while(|it| b"=#".contains(it)).count(),
            words,
            clauses,
            cells: Vec::new(),
        };
        // netstat begins a protocol's counters with its name.
        let is_protocol = is_in(&text.to_ascii_lowercase(), "udp: tcp: ip: icmp: ip6:");
        let is_screen = sentence.has_any(SCREENS)
            || sentence.has("threads processes") && sentence.has("sleeping")
            || is_in(sentence.words.trim(), MARKUP) && !introduces
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
        let first = self.words.split_whitespace().next().unwrap_or("");
        first.len() == 1 && first.bytes().all(|it| it.is_ascii_digit())
    }

    /// The same without that number.
    pub fn without_number(&self) -> Self {
        let mut bare = self.clone();
        let words = [&mut bare.words]
            .into_iter()
            .chain(bare.clauses.first_mut());
        words.for_each(|it| drop(it.drain(..2)));
        bare
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
        let mut words = self.words.split_whitespace();
        let (first, second) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let is_name = second.len() == 1 || second.bytes().all(|it| it.is_ascii_digit());
        is_in(first, "run test case") && is_name && !second.is_empty()
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

    /// What a heading such as `on/off, with the patch` or `64 bytes, off/off` says of two ends.
    pub fn modes(&self) -> Option<[bool; 2]> {
        let is_head = self.kind != SentenceKind::Plain || self.introduces;
        let mode = |it: &String| match it.split_whitespace().next()? {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        };
        // `polling on/off`
        let bare = |it: &String| it.replace(" polling ", " ");
        let is_whole = |it: &String| it.split_whitespace().count() == 1;
        let pairs = self.clauses.windows(2).take(3);
        let pairs = pairs.map(|it| [bare(&it[0]), bare(&it[1])]);
        let mut pairs = pairs.filter(|it| is_whole(&it[0]));
        let modes = pairs.find_map(|it| Some([mode(&it[0])?, mode(&it[1])?]));
        modes.filter(|_| is_head)
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
        let number = rest.next().filter(|it| is_label(it))?;
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

    /// Whether settings may be others from here on; `are_alike` if those of all hosts are.
    pub fn moves(&self, are_alike: bool) -> bool {
        const STOCK: &str = "stock default defaults baseline standard vanilla";
        const NUMBERS: &str = "i ii iii iv v vi 1 2 3 4 5 6 7 8 9";
        let is_stock = |it: &String| is_in(it.trim(), STOCK);
        let words = self.words.split_whitespace();
        let mut words = words.skip_while(|it| !is_in(it, "as like"));
        let is_numbered = words.nth(1).is_some_and(|it| is_in(it, NUMBERS));
        let is_drawn = self.has("drawing picture diagram sketch figure");
        let is_like = is_numbered || self.has_any("same as in|like in|as in") && !is_drawn;
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
                || is_in(last, "0 1") && words.len() <= 2
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
        let is_valued =
            |it: &String| (it.ends_with(" 0 ") || it.ends_with(" 1 ")) && !is_of_listing(it);
        self.has("off echo module modules preset knob flag threaded defer defers")
            || self.has("first") && self.has("did done took")
            || self.has_any("on at|on on|as well")
            || self.clauses.iter().any(is_valued)
    }

    /// The position of a word, or of several.
    pub fn find(&self, word: &str) -> Option<usize> {
        self.words.find(&format!(" {word} "))
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
        numbers.chain([0, 1]).filter(|_| self.names_variable())
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
        let means = words.iter().position(|it| *it == "means");
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

    /// Whether it tells of a kernel that is built: that turns nothing on.
    pub fn builds(&self) -> bool {
        self.has("devicepolling")
            && self.has("built build compiled options option")
            && !self.hints()
            && !self.has("on enabled sysctl ifconfig")
            && !self.has(INTERRUPTS)
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
        const LABEL: &str = "before napi hard here nor sudo i a it is to of in on at we as an my so be by the this that was were are them run one two three four \
            first second third last same kernel there over enter device busy sh side sides end ends machine machines box boxes board boards host hosts and too just any all yes ok \
            everything mode driven section page unit units measurement measurements result results experiment slide step with plain have had has here been test round case ifconfig sysctl network card cards nic \
            nics interface interfaces port ports for once more time everywhere anywhere";
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
            is_name(it) || is_number(it) || is_switch || LISTS.iter().any(|list| is_in(it, list))
        })
    }
}

/// The words of a clause behind what it is for, or does not hold for: `To see which end gains I switched it off`,
/// `Unless I say so both are 0`.
fn asserted(clause: &str) -> Vec<&str> {
    let words: Vec<&str> = clause.split_whitespace().collect();
    let at = |list: &str| words.iter().position(|it| is_in(it, list));
    let skipped = match words.first() {
        Some(&"to") => at("i we"),
        Some(&"unless") => at("so stated noted otherwise said").map(|at| at + 1),
        _ => None,
    };
    words[skipped.unwrap_or(0)..].to_vec()
}

/// Whether words stand before things that the text told of before: `the same two values`, `those three lines`.
fn is_known(before: &[&str]) -> bool {
    let [.., the, count] = before else {
        return false;
    };
    is_in(the, "the same these those") && is_in(count, "two three")
}

/// Whether words ask, wish, compare or suppose; `how it was with interrupts` does not.
fn is_unreal(words: &[&str]) -> bool {
    let word = |at: usize| words.get(at).copied().unwrap_or("");
    let is_it = |(at, it): (usize, &&str)| {
        let is_told = *it == "how" && is_in(word(at + 2), "was is");
        let is_since = *it == "years" && at > 0 && word(at - 1) == "since";
        is_in(it, UNREAL) && !is_told && !is_since
    };
    words.iter().enumerate().any(is_it)
}

/// Whether words begin with `polling in the two machines`, perhaps behind a number.
fn is_in_place(words: &[&str]) -> bool {
    let is_number = |it: &&&str| it.starts_with(|it: char| it.is_ascii_digit());
    let mut words = words.iter().skip_while(is_number);
    words.next() == Some(&"polling") && words.next().is_some_and(|it| is_in(it, "in at for"))
}

/// What `busy_poll is 50` and `all busy poll sysctls are 0` say.
fn value_said(words: &[&str]) -> Option<bool> {
    (0..words.len()).find_map(|at| {
        let is_variable = SWITCH_WORDS.iter().any(|it| words[at].ends_with(it))
            || is_in(words[at], "sysctls knobs files values settings echos");
        let mut near = words[at + 1..].windows(2).take(7);
        // `kern.polling.enable: 0`
        let is_number = |it: &&&str| it.bytes().all(|it| it.is_ascii_digit());
        let own = words.get(at + 1).filter(is_number).filter(|_| is_variable);
        let value = own.or_else(|| {
            let is_value = |it: &&[&str]| is_number(&&it[1]) || is_in(it[1], "zero");
            near.find(|it| is_in(it[0], "is are was were at to") && is_value(it))
                .map(|it| &it[1])
        })?;
        let is_off = is_in(value, "0 zero") && (is_variable || is_in(words[at], POLLS));
        let is_number = value.starts_with(|it: char| it.is_ascii_digit());
        (is_off || is_variable && is_number).then_some(!is_off)
    })
}

/// Whether words switch something; a switch may also be a thing.
fn switches(words: &[&str]) -> bool {
    let is_verb = |(at, it): (usize, &&str)| {
        let is_thing = at > 0 && !is_in(words[at - 1], "i we to and then now");
        is_in(it, SWITCHES) && (*it != "switch" || !is_thing)
    };
    words.iter().enumerate().any(is_verb)
}

/// Whether words say that something is the other way round.
pub fn turns_round(words: &str) -> bool {
    const ROUND: &str = "reversed|backward|backwards|other way|other direction|opposite direction|reverse direction|\
        turned round|turned around";
    ROUND
        .split('|')
        .any(|it| words.contains(&format!(" {it} ")))
}

/// The parts in a test that a text names.
pub fn parts(text: &str) -> NamedParts {
    let words: Vec<&str> = text.split_whitespace().collect();
    let has = |list: &str| words.iter().any(|it| is_in(it, list));
    let all = words.iter().enumerate().any(|(at, word)| {
        let near = |by: usize| words.get(at + by).copied().unwrap_or("");
        // `all the boxes`, `all three on interrupts`, `polling on the two`
        let is_count = *word == "all" && is_in(near(1), "three four");
        let next = near(1 + usize::from(is_count || *word == "all" && near(1) == "the"));
        let is_them = is_count && (next.is_empty() || is_in(next, OF_GROUPS))
            || *word == "two" && is_in(next, "of") && near(2) == "them"
            || *word == "two" && is_in(near(2), MACHINES)
            || *word == "two" && next.is_empty() && words[..at].ends_with(&["on", "the"])
            || *word == "two" && is_in(next, POLLS) && words[..at].ends_with(&["the"])
            || next == "of" && near(2) == "them";
        let is_group = is_in(word, "all two each every pair") && (is_in(next, MACHINES) || is_them);
        let is_value = next.bytes().all(|it| it.is_ascii_digit()) && !next.is_empty();
        let is_none = *word == "nothing" && is_in(near(1), POLLS);
        let is_here = *word == "here" && is_in(near(1), "and or") && near(2) == "there"
            || *word == "any" && near(1) == "place";
        is_group || is_none || is_here || is_in(word, ALL) && !is_in(next, NOT_HOSTS) && !is_value
    });
    NamedParts {
        sender: has(SENDERS),
        receiver: has(RECEIVERS),
        all,
        only: has("only alone just"),
    }
}

/// The number that `1 on oak`, `oak stays at 0` and `both at 50` set, where the text says what a variable is.
pub fn value_set(clause: &str) -> Option<u32> {
    const BETWEEN: &str =
        "with and then now really is are was were stays stay remains set goes back still";
    const PLAIN: &str = "@ on at to in both all machines boxes hosts ends sides two of them the it has have had its kept keeps \
        file value values sysctl sysctls knob knobs flag variable too also as well alike so first times";
    let is_number = |it: &&str| it.bytes().all(|it| it.is_ascii_digit());
    let words = clause.split_whitespace().filter(|it| !is_in(it, BETWEEN));
    let words: Vec<&str> = words.collect();
    let mut others = words.iter().copied().filter(|it| !is_in(it, PLAIN));
    let alone = others.next().filter(is_number);
    // `1. oak to elm`
    let is_label =
        words.first() == alone.as_ref() && !is_in(words.get(1).unwrap_or(&""), "on at in");
    let alone = alone.filter(|one| !is_label && others.all(|it| it == *one));
    let value = match &words[..] {
        _ if alone.is_some() => alone.unwrap_or_default(),
        [value, "on", _, ..] | [_, "at" | "to", value] | [_, value] => *value,
        [_, "at", value, next, ..] if is_in(next, "for in from until during too again") => *value,
        _ => return None,
    };
    match value {
        "zero" | "zeros" | "zeroes" => Some(0),
        value => value.parse().ok(),
    }
}

/// What a clause says with a state alone, of hosts or ends that it names: `oak off`, `elm has it on`, `0 on ash`, `oak
/// does not`. `None` if another word is in it. Hosts are `@`.
pub fn state_alone(clause: &str) -> Option<bool> {
    const PLAIN: &str = "and but now then so here test run case setup config has have had it its is are was were stays stay \
        stayed remains keeps kept left set value values knob knobs sysctl sysctls at to of in the two a both still again back also too as well does do did t only";
    const STATES: &str = "on yes with enabled enable active 1";
    const NOT: &str =
        "off no none nothing without not doesn don isn wasn disabled disable inactive never 0";
    let words: Vec<&str> = clause.split_whitespace().collect();
    let is_end = |it: &str| {
        it == "@"
            || [SENDERS, RECEIVERS, ALL, MACHINES]
                .iter()
                .any(|list| is_in(it, list))
    };
    let is_number = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    let mut states = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).copied().unwrap_or("");
        let is_numbered = at > 0 && is_in(words[at - 1], RUNS) && is_number(word);
        let is_place = *word == "on" && (is_end(next) || next == "the");
        let is_value = next == "on" || at > 0 && is_in(words[at - 1], "at to is was were");
        let is_label = is_number(word) && !is_value;
        if is_numbered || is_place || is_label || is_end(word) {
            continue;
        }
        match *word {
            it if is_in(it, NOT) => states.push(false),
            it if is_in(it, STATES) => states.push(true),
            it if is_in(it, PLAIN) => {}
            _ => return None,
        }
    }
    // `not on` is off.
    (!states.is_empty()).then(|| states.iter().all(|it| *it))
}

/// Whether a text is of a box between the ends of a test.
pub fn has_between(text: &str) -> bool {
    text.split_whitespace().any(|it| is_in(it, BOXES))
}

/// Whether a clause says what was not kept.
pub fn negates(clause: &str) -> bool {
    let has = |list: &str| clause.split_whitespace().any(|it| is_in(it, list));
    has(NEGATES)
        && has(
            "saved save kept keep shown show taken took pasted paste copied noted recorded looked",
        )
}

/// The words of a text between single spaces, and the same cut into clauses.
pub fn words_of(text: &str) -> (String, Vec<String>) {
    let mut read = (String::from(" "), vec![String::from(" ")]);
    let mut letters = 0;
    let tokens = text.split_ascii_whitespace();
    for token in tokens.take_while(|it| {
        letters += it.len();
        letters <= SENTENCE_MAX
    }) {
        let is_edge = |it: char| !it.is_ascii_alphanumeric();
        let mut lower = token.to_ascii_lowercase();
        // `top(1)` is a page of the manual.
        let section = lower
            .find('(')
            .filter(|at| *at > 0 && lower[*at..].find(')') == Some(2));
        if let Some(at) = section {
            lower.replace_range(at..at + 3, "");
        }
        let name = lower.trim_matches(is_edge);
        // A variable is one word, whatever its parts mean.
        let is_variable =
            (name.contains("poll") || name.ends_with("busy_read")) && name.contains(['_', '.']);
        if lower.starts_with(CUTS) {
            read.1.push(String::from(" "));
        }
        let is_switch = |it: &str| {
            is_in(it, "enable p poll threaded")
                || POLLING_SWITCHES.iter().any(|end| it.ends_with(end))
        };
        // `poll-on.sh`
        let mut parts = name.split(is_edge);
        let script = parts
            .find(|it| is_in(it, "on off"))
            .filter(|_| name.starts_with("poll"));
        if let Some(state) = script {
            add_word(&mut read, "polling");
            add_word(&mut read, state);
        } else if let Some((_, value)) = name.split_once('=').filter(|it| is_switch(it.0)) {
            add_word(&mut read, "polling");
            add_word(&mut read, if value == "0" { "off" } else { "on" });
        } else if is_variable {
            add_word(&mut read, &name.replace(is_edge, ""));
        } else {
            if lower
                .trim_start_matches(['`', '"', '\'', '('])
                .starts_with("-poll")
            {
                add_word(&mut read, "no");
            }
            if matches!(token, "->" | "-->" | "→") {
                add_word(&mut read, "to");
            }
            for part in lower.split_inclusive(is_edge) {
                add_word(&mut read, part.trim_end_matches(is_edge));
                if part.ends_with(CUTS) {
                    read.1.push(String::from(" "));
                }
            }
            continue;
        }
        if lower.ends_with(CUTS) && !(is_variable && lower.ends_with(':')) {
            read.1.push(String::from(" "));
        }
    }
    read.1.retain(|it| it.len() > 1);
    read
}

/// Adds a word to the words and to the last clause.
fn add_word((words, clauses): &mut (String, Vec<String>), word: &str) {
    if word.is_empty() {
        return;
    }
    if is_in(word, JOINTS) {
        clauses.push(String::from(" "));
    }
    for text in [Some(words), clauses.last_mut()].into_iter().flatten() {
        text.push_str(word);
        text.push(' ');
    }
}

/// Whether words mean polling (`true`) or interrupts; `None` when they name both or neither.
pub fn setting(text: &str) -> Option<bool> {
    let (_, clauses) = words_of(text);
    agreed(&clauses)
}

/// What all clauses say that say it.
fn agreed(clauses: &[String]) -> Option<bool> {
    let mut said = clauses.iter().filter_map(|it| {
        let mode = ClauseMode::of(it, false);
        mode.polls.filter(|_| !mode.is_unreal)
    });
    let first = said.next()?;
    said.all(|it| it == first).then_some(first)
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
