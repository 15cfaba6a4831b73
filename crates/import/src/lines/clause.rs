//! Clauses: the words for polling, interrupts, ends and hosts, and what a clause says with them of the way to receive.

/// Most bytes of a sentence.
const SENTENCE_MAX: usize = 400;
/// Words that name polling, and interrupts as the way to receive.
pub const POLLS: &str = "polling polled poll polls unpolled knob knobs deferral defers deferred deferring threaded spin spins spinning";
pub const INTERRUPTS: &str = "interrupt interrupts intr irq irqs";
/// Words for what turns polling on, if they are known from above.
const SETTINGS: &str = "values echos echoes commands sysctls lines";
/// Words of what polls in an explanation.
const WORKERS: &str = "kernel process program driver thread napi";
/// Words before or after interrupts that make them the way to receive, and words after that do not.
pub const BEFORE_INTERRUPTS: &str = "taking takes on its their with plain old in at to using uses use used normal usual by pure stays only still both";
const AFTER_INTERRUPTS: &str = "mode driven only again both on at everywhere";
const COLUMNS: &str = "column load time share rate handler handlers thread statistics per counts counters counter \
    table storm storms moderation coalescing mitigation nearly gone fewer less down up drop dropped fell";
/// Words that turn off, those right before polling that do, and those that negate what follows.
pub const OFF: &str = "off disabled disable disabling deactivated deactivate unpolled nobody none neither nowhere \
    masked stopped unticked unchecked removed";
pub const WITHOUT: &str = "without no non nothing";
pub const NEGATES: &str = "not never don doesn didn isn wasn aren hasn longer";
/// Words that turn on.
pub const ON: &str =
    "on enabled enable enabling with using active activated activate use uses used ticked checked";
/// Words that tell a change, or that nothing changed.
pub const CHANGES: &str = "now again next then finally left stays stay stayed remains still back went goes done did \
    nobody never yet moved set reset put change changed changing masks masked leaves";
pub const SWITCHES: &str = "enable enabled enabling disable disabled disabling turn turned turning switch switched \
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
pub const ALL: &str = "both everywhere anywhere everybody everyone nobody neither either";
/// Words after `all`, `two`, `each` and `every` that make them a group of hosts, and after `both` that do not.
pub const MACHINES: &str = "machines machine boxes box boards board hosts host ends end sides side computers pcs nodes units unit devices";
const NOT_HOSTS: &str = "files sysctls variables knobs values settings directions streams interfaces ports cards runs tests cases protocols";
/// Words after `all three` that leave it a group of hosts.
const OF_GROUPS: &str = "on at with in of poll polled polling stay";
/// Marks that end a clause, and words that begin one.
const CUTS: [char; 6] = [',', ';', ':', '(', ')', '/'];
pub const JOINTS: &str = "and but while whereas so because";
/// Variables that turn polling on unless they are 0.
pub const POLLING_SWITCHES: [&str; 4] = [
    "polling.enable",
    "busy_poll",
    "busy_read",
    "gro_flush_timeout",
];
/// The same as words of a sentence.
pub const SWITCH_WORDS: [&str; 3] = ["pollingenable", "busypoll", "busyread"];
/// Words that stand for a host without naming it.
pub const KINDS: &str = "laptop desktop workstation notebook nas router gateway firewall";
/// Words for a host between the ends of a test.
pub const BOXES: &str = "router gateway firewall bridge forwarder";
/// Words before the number of a listing.
pub const LISTINGS: &str = "listing figure fig table example output screen";
/// Words before the number or the letter of a test.
pub const RUNS: &str = "run runs test tests try case";
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

/// Whether a word is in a list of words. Asked thousands of times for each sentence.
pub fn is_in(word: &str, words: &str) -> bool {
    let (word, words) = (word.as_bytes(), words.as_bytes());
    let mut rest = Some(words);
    while let Some(list) = rest {
        let is_end = list.get(word.len()).is_none_or(|it| *it == b' ');
        if is_end && list.starts_with(word) {
            return true;
        }
        let end = list.iter().position(|it| *it == b' ');
        rest = end.map(|at| &list[at + 1..]);
    }
    false
}

/// Where words that begin and end with a space have a phrase: its space.
pub fn phrase_at(words: &str, phrase: &str) -> Option<usize> {
    let (words, phrase) = (words.as_bytes(), phrase.as_bytes());
    (0..words.len().checked_sub(phrase.len() + 1)?).find(|at| {
        words[*at] == b' '
            // Most words differ in the first letter.
            && Some(&words[at + 1]) == phrase.first()
            && words[at + 1..].starts_with(phrase)
            && words[at + 1 + phrase.len()] == b' '
    })
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
        let interrupts = names_interrupts(&words);
        let off = negations(&words, is_it);
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
            _ if clause.contains(" napi threads on ") && off == 0 => Some(true),
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
            is_unreal: is_unreal(&words)
                || is_in(word(Some(0)), ASKS) && !is_number(word(Some(1))) && !names_run(&words),
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
        // `polling on oak, elm stock`
        if (is_label || is_topic)
            && first == "@"
            && words.len() == 2
            && is_in(last, "stock default plain normal")
        {
            return Some(false);
        }
        if is_label && words == ["normal"] {
            return Some(false);
        }
        if is_label && words == ["and", "on"] {
            return Some(true);
        }
        // `to start with` is none.
        if is_label && words.len() <= 3 && first != "to" && is_in(last, "without off with") {
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

/// Whether words begin with the name of a test: `run 3`, `case b`, `run a no polling`. `Run a server` asks for something.
pub fn names_run(words: &[&str]) -> bool {
    const AFTER_A: &str = "with on off ifconfig plain stock";
    let is_label = |it: &&str| {
        let lists = [POLLS, INTERRUPTS, WITHOUT, ALL, AFTER_A];
        lists.iter().any(|list| is_in(it, list))
    };
    match words {
        ["run", "a", next, ..] => is_label(next),
        ["run" | "test" | "case", name, ..] => {
            name.len() == 1 || name.bytes().all(|it| it.is_ascii_digit())
        }
        _ => false,
    }
}

/// Whether words name interrupts as the way to receive.
fn names_interrupts(words: &[&str]) -> bool {
    let is_number = |it: &str| it.starts_with(|it: char| it.is_ascii_digit());
    let word = |at: Option<usize>| at.and_then(|at| words.get(at)).copied().unwrap_or("");
    let defers = words
        .iter()
        .any(|it| is_in(it, "deferral deferring deferred"));
    let is_interrupt = |at: usize| {
        let (before, after) = (word(at.checked_sub(1)), word(Some(at + 1)));
        let is_mode = is_in(before, BEFORE_INTERRUPTS)
            || is_in(before, "default stock")
            || is_in(after, AFTER_INTERRUPTS) && !is_number(word(Some(at + 2)));
        is_in(words[at], INTERRUPTS)
            && !defers
            && !is_in(after, COLUMNS)
            && !is_in(before, WITHOUT)
            && (before.len() < 3 || !is_number(before))
            && (is_mode || words.len() <= 3)
    };
    (0..words.len()).any(is_interrupt)
}

/// How many words turn polling off; `is_it` when `it` stands for polling.
fn negations(words: &[&str], is_it: bool) -> usize {
    let off = words.iter().enumerate().filter(|(at, it)| {
        let near = |list: &str, by: usize| {
            let mut next = words[at + 1..].iter().take(by);
            next.any(|it| is_in(it, list) || is_it && *it == "it")
        };
        // `no longer` is one.
        let is_part = **it == "longer" && *at > 0 && words[at - 1] == "no";
        is_in(it, OFF)
            || is_in(it, WITHOUT) && near(POLLS, 2)
            || is_in(it, NEGATES)
                && !is_part
                && (near(POLLS, 3) || near("on enabled active appear appears listed", 3))
    });
    off.count()
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
pub fn switches(words: &[&str]) -> bool {
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
    ROUND.split('|').any(|it| phrase_at(words, it).is_some())
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
        stayed remains keeps kept left set value values knob knobs sysctl sysctls at to of in the them two a both still again back also too as well does do did t only";
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
    let tokens = text.split_ascii_whitespace().flat_map(by_arrows);
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
            if ARROWS.contains(&token) && read.0.len() > 1 {
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

/// Marks that stand for `to`, a longer one before its own end.
const ARROWS: [&str; 5] = ["-->", "==>", "->", "=>", ">"];

/// The parts of `oak->elm`.
fn by_arrows(token: &str) -> impl Iterator<Item = &str> {
    let is_word =
        |it: &str| it.contains(|it: char| it.is_ascii_alphanumeric()) && !it.contains('<');
    let glued = ARROWS.iter().find_map(|arrow| {
        let (one, other) = token.split_once(arrow)?;
        (is_word(one) && is_word(other)).then_some([one, arrow, other])
    });
    let whole = glued.is_none().then_some(token);
    glued.into_iter().flatten().chain(whole)
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
pub fn agreed(clauses: &[String]) -> Option<bool> {
    let mut said = clauses.iter().filter_map(|it| {
        let mode = ClauseMode::of(it, false);
        mode.polls.filter(|_| !mode.is_unreal)
    });
    let first = said.next()?;
    said.all(|it| it == first).then_some(first)
}
