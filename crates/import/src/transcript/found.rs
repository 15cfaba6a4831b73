//! What the walk collects: blocks of iperf, runs of netblast, counters, settings and loose figures.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use nicpoll_model::{
    ImportedBasis, ImportedFigure, ImportedReading, ImportedTrial, Side, SourcePlace,
    UnplacedFigure,
};

use crate::cursor::MeasuredUnit;
use crate::lines::address::{self, AddressMention};
use crate::lines::clause::{
    self, BOXES, KINDS, MACHINES, POLLS, RECEIVERS, SENDERS, is_in, phrase_at,
};
use crate::lines::is_variable;
use crate::lines::layout;
use crate::lines::prose::Sentence;
use crate::lines::seen::{Banner, BlastField, ConnectedLine, Id, IperfLine, Lines, ToolCommand};
use crate::lines::{iperf, ttcp};

/// A value, its text, and its place.
#[derive(Clone, Debug)]
pub struct Printed<T> {
    pub value: T,
    pub printed: String,
    pub place: SourcePlace,
}

/// The lines that one run of a tool printed.
#[derive(Clone, Debug)]
pub struct PrintedRun<T> {
    pub place: SourcePlace,
    pub host: TerminalHost,
    pub command: Option<Rc<ToolCommand>>,
    pub lines: Vec<T>,
}

/// A run of netblast or netsend.
pub type BlastLines = PrintedRun<(BlastField, Printed<f64>)>;

/// Lines of netreceive between silent ones: packets and seconds of each.
pub type Stretch = PrintedRun<(f64, f64, Printed<f64>)>;

/// A sentence, and where it stands.
#[derive(Clone, Debug)]
pub struct Statement {
    pub place: SourcePlace,
    pub sentence: Sentence,
    /// The end of the tool's output that it follows, if only prose stands in between.
    pub after: Option<SourcePlace>,
}

/// What stands right before a tool's output: the prompt's host, and the sentences since the previous output.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    pub host: TerminalHost,
    /// Where the last prompt stands.
    pub prompt: Option<SourcePlace>,
    /// Whether the command at it prints what a host says of itself, and whether it printed this.
    pub looks: bool,
    pub is_asked: bool,
    /// A range of [`Found::statements`].
    pub statements: Range<usize>,
    /// Where its first output begins.
    pub begins: u64,
}

/// A line of CPU states.
#[derive(Clone, Debug)]
pub struct CpuLine {
    pub scene: Scene,
    pub states: Printed<[Option<f64>; 5]>,
    /// The time of day, if the screen prints it.
    pub clock: Option<ScreenClock>,
}

/// A host that idles for more than this runs no test.
const IDLE: f64 = 0.98;

impl CpuLine {
    /// Whether the host does nothing.
    pub fn idles(&self) -> bool {
        self.states.value[4] >= Some(IDLE)
    }
}

/// The clock of a screen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScreenClock {
    /// The time of day at the host's start, less its days, if `top` prints it. All screens of a host have the same.
    pub boot_seconds: Option<f64>,
    pub time_seconds: f64,
}

/// The hosts on which polling is turned on or off.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SwitchScope {
    /// All, or the text names none.
    All,
    Host(String),
    /// That at one end of a test.
    End(Side),
}

/// Where a host turns polling on or off.
#[derive(Clone, Debug)]
pub struct PollingSwitch {
    pub place: SourcePlace,
    pub scope: SwitchScope,
    /// Whether they poll; `None` when the text says that some do, and not which.
    pub is_polling: Option<bool>,
    /// Whether a command changed it here; before, it was the opposite.
    pub is_command: bool,
    /// Of a sentence on all hosts, the two that are meant, if known.
    pub ends: Vec<String>,
    /// Whether it holds in all tests.
    pub is_lasting: bool,
    /// Whether a sentence tells it.
    pub is_told: bool,
    /// Whether it is a heading that names no host: what follows may say which ones poll.
    pub is_heading: bool,
    /// The interface of a command or a screen, which may tell the host.
    pub interface: Option<String>,
}

impl PollingSwitch {
    /// Whether one for all hosts is also for this one.
    pub fn is_meant(&self, host: Option<&str>) -> bool {
        self.ends.is_empty() || host.is_none_or(|host| self.ends.iter().any(|it| it == host))
    }
}

/// A setting other than polling that a command changes.
#[derive(Clone, Debug)]
pub struct ToolSetting {
    pub place: SourcePlace,
    /// The host; `None` where the text names none.
    pub host: Option<String>,
    pub name: String,
    pub value: String,
    /// The previous value, if the command printed it.
    pub before: Option<String>,
}

/// A figure in prose or in a table.
pub type Loose = Printed<(f64, MeasuredUnit)>;

/// Everything collected.
#[derive(Debug, Default)]
pub struct Found {
    pub blocks: Vec<ToolBlock>,
    pub blasts: Vec<BlastLines>,
    pub stretches: Vec<Stretch>,
    pub cpu: Vec<CpuLine>,
    /// Times of day, and what each is rounded down to, in seconds.
    pub clocks: Vec<(SourcePlace, f64, f64)>,
    /// Values that hosts print about themselves, not yet attached to trials.
    pub readings: Vec<ImportedReading>,
    pub switches: Vec<PollingSwitch>,
    pub knobs: Vec<ToolSetting>,
    /// Host and name of each knob.
    pub knob_names: HashSet<(Option<String>, String)>,
    pub loose: Vec<Loose>,
    pub unplaced: Vec<UnplacedFigure>,
    /// Host names by address, from ifconfig and iperf.
    pub addresses: HashMap<String, String>,
    /// Addresses in sentences.
    pub mentions: Vec<AddressMention>,
    /// Host names in prompts and labels.
    pub hosts: HostNames,
    /// Who wrote what.
    pub authors: Authors,
    /// The sentences.
    pub statements: Vec<Statement>,
    /// What stands before each of [`Found::readings`].
    pub reading_scenes: Vec<Scene>,
}

impl Found {
    /// The hosts on whose terminals tests, screens and counters stand, by a prompt or a label.
    pub fn terminals(&self) -> impl Iterator<Item = &str> {
        let screens = self.cpu.iter().map(|it| &it.scene);
        let scenes = screens.chain(&self.reading_scenes).map(|it| &it.host);
        let tests = self.blocks.iter().map(|it| &it.host);
        scenes.chain(tests).filter_map(|it| it.name.as_deref())
    }

    /// Where screens and counters stand whose host a prompt says.
    pub fn seen_at(&self) -> impl Iterator<Item = (SourcePlace, &str)> {
        let screens = self.cpu.iter().map(|it| (it.states.place, &it.scene));
        // What a command says that sets a variable is no counter.
        let readings = self.readings.iter().zip(&self.reading_scenes);
        let readings = readings.filter(|it| !is_variable(&it.0.name));
        let all = screens.chain(readings.map(|it| (it.0.place, it.1)));
        let said = all.filter(|it| it.1.host.basis == ImportedBasis::Said && it.1.is_asked);
        said.filter_map(|(place, scene)| Some((place, scene.host.name.as_deref()?)))
    }

    /// Forgets whose interfaces are that commands and counters show at other hosts' terminals.
    pub fn deny_parts(&mut self) {
        let switches = self.switches.iter().filter_map(|it| match &it.scope {
            SwitchScope::Host(host) => Some((it.interface.clone()?, host.clone())),
            _ => None,
        });
        let asked = self.reading_scenes.iter().map(|it| it.is_asked);
        let readings = self.readings.iter().zip(asked).filter(|it| it.1);
        let readings = readings.filter_map(|(it, _)| {
            let mut words = it.name.split(|it: char| !it.is_ascii_alphanumeric());
            let part = words.find(|it| address::is_numbered(it))?;
            Some((String::from(part), it.host.clone()?))
        });
        let shown: Vec<(String, String)> = switches.chain(readings).collect();
        for (part, host) in shown {
            self.hosts.deny_part(&part, &host);
        }
    }

    /// Takes for commands and screens of no known host the one that alone has their interface, if it is an end of a test.
    pub fn take_interfaces(&mut self, trials: &[ImportedTrial]) {
        let ends = trials.iter().flat_map(|it| [&it.sender, &it.receiver]);
        let ends: HashSet<&str> = ends.flatten().map(String::as_str).collect();
        let switches = self.switches.iter_mut();
        for switch in switches.filter(|it| it.scope == SwitchScope::All) {
            let part = switch.interface.as_ref().map(|it| format!(" {it} "));
            let mut named = part.iter().flat_map(|it| self.hosts.meant_in(it));
            if let Some(name) = named.next().filter(|it| ends.contains(it)) {
                switch.scope = SwitchScope::Host(String::from(name));
            }
        }
    }
}

/// The author of what a mail quotes.
pub const QUOTED: &str = ">";

/// Where mails, posts and comments begin, and their authors: what one says of his hosts is not of another's.
#[derive(Debug, Default)]
pub struct Authors(pub Vec<(SourcePlace, String)>);

impl Authors {
    fn last(&self, place: &SourcePlace) -> Option<&(SourcePlace, String)> {
        let after = self.0.partition_point(|it| it.0 <= *place);
        after.checked_sub(1).map(|at| &self.0[at])
    }

    /// The author of a place; empty before the first that is named.
    pub fn of(&self, place: &SourcePlace) -> &str {
        let last = self.last(place).filter(|it| it.0.file == place.file);
        last.map_or("", |it| it.1.as_str())
    }

    /// Whether a mail quotes what stands at a place.
    pub fn is_quoted(&self, place: &SourcePlace) -> bool {
        self.of(place) == QUOTED
    }

    /// Where the mail, post or comment of a place begins.
    pub fn post(&self, place: &SourcePlace) -> SourcePlace {
        self.last(place).map(|it| it.0).unwrap_or_default()
    }

    /// Whether two places have the same author.
    pub fn is_one(&self, one: &SourcePlace, other: &SourcePlace) -> bool {
        one.file == other.file && self.of(one) == self.of(other)
    }
}

/// Words that stand for a host, with that host, or none if they stand for several.
#[derive(Default)]
struct Kinds(BTreeMap<String, Option<String>>);

impl Kinds {
    fn add(&mut self, word: &str, name: &str) {
        let known = self.0.entry(String::from(word));
        known
            .or_insert_with(|| Some(String::from(name)))
            .take_if(|it| it != name);
    }
}

/// Host names.
#[derive(Debug, Default)]
pub struct HostNames {
    all: HashSet<String>,
    /// The same in lower case.
    small: HashSet<String>,
    /// The first of them, in lower case and as printed.
    looked_for: Vec<(String, String)>,
    /// What only one of them is made of, and that host.
    parts: Vec<(String, String)>,
    /// The pairs of hosts that a cable joins, or a box in between.
    joined: Vec<[String; 2]>,
    /// The boxes in between.
    boxes: BTreeSet<String>,
}

impl HostNames {
    /// Most names to look for in text.
    const LOOKED_FOR_MAX: usize = 64;

    pub fn add(&mut self, name: &str) {
        let small = name.to_ascii_lowercase();
        // `f1` is sin-f1.
        let long = format!("-{small}");
        let mut known = self.looked_for.iter();
        let is_part = is_short_name(&small) && known.any(|it| it.1.ends_with(&long));
        if !is_part && !is_in(&small, POLLS) && self.small.insert(small) {
            self.all.insert(String::from(name));
            if self.looked_for.len() < Self::LOOKED_FOR_MAX {
                // As words of a sentence are.
                let small = name.to_ascii_lowercase();
                let parts = small.split(|it: char| !it.is_ascii_alphanumeric());
                let parts: Vec<&str> = parts.filter(|it| !it.is_empty()).collect();
                // `f1` is sin-f1, if no other name ends so.
                if let [.., _, short] = parts[..]
                    && is_short_name(short)
                {
                    let ends = |it: &&String| it.ends_with(&format!("-{short}"));
                    if self.small.iter().filter(ends).count() == 1 {
                        self.call(short, name);
                    } else {
                        self.looked_for.retain(|it| it.0 != short);
                    }
                }
                self.looked_for.push((parts.join(" "), String::from(name)));
            }
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.all.contains(name)
    }

    /// The same, of a name in lower case.
    pub fn knows(&self, small: &str) -> bool {
        self.small.contains(small)
    }

    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The other one of two hosts.
    pub fn other(&self, name: &str) -> Option<&str> {
        if !self.joined.is_empty() {
            let mut across = self.joined.iter().filter_map(|[one, other]| match () {
                () if one == name => Some(other.as_str()),
                () if other == name => Some(one.as_str()),
                () => None,
            });
            let first = across.next()?;
            return across.all(|it| it == first).then_some(first);
        }
        let mut others = self.all.iter().filter(|it| *it != name);
        let other = others.next()?;
        others.next().is_none().then_some(other)
    }

    /// Whether a host stands in between others.
    pub fn is_between(&self, name: &str) -> bool {
        self.boxes.contains(name) && self.count() > 2
    }

    /// The hosts that stand in between others, by name.
    pub fn boxes(&self) -> impl Iterator<Item = &String> {
        self.boxes.iter().filter(|it| self.is_between(it))
    }

    /// The hosts that a sentence's words name, in its order.
    pub fn named_in(&self, words: &str) -> Vec<&str> {
        let found = self.looked_for.iter();
        let mut found: Vec<(usize, &str)> = found
            .filter_map(|(small, name)| Some((phrase_at(words, small)?, name.as_str())))
            .collect();
        found.sort_unstable();
        let mut seen = HashSet::new();
        found.retain(|(_, name)| seen.insert(*name));
        found.into_iter().map(|(_, name)| name).collect()
    }

    /// The same, or the hosts that are meant by what only they are made of: `the Athlon`, `em0`.
    pub fn meant_in(&self, words: &str) -> Vec<&str> {
        let named = self.named_in(words);
        if !named.is_empty() {
            return named;
        }
        let parts = self.parts.iter();
        let mut meant: Vec<&str> = parts
            .filter(|(part, _)| words.contains(part))
            .map(|it| it.1.as_str())
            .collect();
        meant.sort_unstable();
        meant.dedup();
        meant
    }

    /// Takes the words that stand for a host: `a NAS called vault`, `rtr is our router`.
    pub fn take_kinds(&mut self, statements: &[Statement]) {
        let mut kinds = Kinds::default();
        for Statement { sentence, .. } in statements {
            let words: Vec<&str> = sentence.words.split_whitespace().collect();
            self.nicknames(&sentence.clauses, &words, &mut kinds);
            self.kinds(&words, &mut kinds);
            // `oak forwards`
            let does = words.windows(2);
            let does = does.filter(|it| is_in(it[1], "forwards routes"));
            // `Between them sits elm`
            let sits = words
                .windows(4)
                .filter(|it| it[..2] == ["between", "them"] && is_in(it[2], "is sits stands was"));
            // `oak: Atom, em0 towards elm, em1 towards ash, routes between the two`
            let is_between = sentence.has_any("routes between|forwards between|bridges between");
            let first = words.first().copied().filter(|_| is_between);
            // `| oak | router | em0, em1 |`
            let is_box = words.get(1).is_some_and(|it| is_in(it, BOXES));
            let of_row = words.first().copied().filter(|_| is_box);
            let named = does.map(|it| it[0]).chain(sits.map(|it| it[3]));
            for word in named.chain(first).chain(of_row) {
                let named = self.named_in(&format!(" {word} "));
                let named = named.first().map(|it| String::from(*it));
                self.boxes.extend(named);
            }
        }
        self.take_last_kind(&mut kinds, statements);
        let known = kinds.0.into_iter();
        for (kind, name) in known.filter_map(|(kind, name)| Some((kind, name?))) {
            self.call(&kind, &name);
            if is_in(&kind, BOXES) {
                self.boxes.insert(name);
            }
        }
    }

    /// Adds the words that a sentence gives a host besides its name.
    fn nicknames(&self, clauses: &[String], words: &[&str], kinds: &mut Kinds) {
        const MACHINES: &str = "server pc box machine board computer workstation";
        const NOBODY: &str = "it he she who which that this one box machine also still and only kernel each everybody";
        let host = |word: &str| self.named_in(&format!(" {word} ")).first().copied();
        // `bocian (the stork)`
        for pair in clauses.windows(2) {
            let name = pair[0].split_whitespace().next_back().and_then(host);
            let nick = pair[1].trim().strip_prefix("the ");
            let nick = nick.filter(|it| !it.contains(' ') && !clause::is_common(it));
            if let Some((name, nick)) = name.zip(nick) {
                kinds.add(nick, name);
            }
        }
        // `maja has minnow`
        let has = words.windows(3);
        for has in has.filter(|it| it[1] == "has" && !is_in(it[0], NOBODY)) {
            if let Some(name) = host(has[2]).filter(|_| host(has[0]).is_none()) {
                kinds.add(has[0], name);
            }
        }
        // `the picture server REPRO`, `refpc: reference PC of the workshop`
        for (at, of) in words.windows(3).enumerate() {
            let (name, phrase) = match is_in(of[1], MACHINES) {
                true => (of[2], &of[..2]),
                false if at == 0 && is_in(of[2], MACHINES) => (of[0], &of[1..]),
                false => continue,
            };
            let is_plain = is_in(phrase[0], "the a an my our this that other same");
            if let Some(name) = host(name).filter(|_| !is_plain && host(phrase[0]).is_none()) {
                kinds.add(&phrase.join(" "), name);
            }
        }
    }

    /// Adds the kinds of host that a sentence gives names.
    fn kinds(&self, words: &[&str], kinds: &mut Kinds) {
        const LINKS: &str = "called named hostname";
        let name = |word: Option<&&str>| self.named_in(&format!(" {} ", word?)).first().copied();
        for (at, kind) in words.iter().enumerate().filter(|it| is_in(it.1, KINDS)) {
            let is_own = at > 0 && is_in(words[at - 1], "a my our");
            let mut after = words[at + 1..].iter();
            let after = after.find(|it| !is_in(it, LINKS));
            let before = at.checked_sub(3).map(|at| &words[at]);
            // `rtr is our router`; `corsair, my ubuntu desktop` has one word more.
            let near = [at.checked_sub(3), at.checked_sub(2)].into_iter().flatten();
            let mut near = near.filter(|it| is_in(words[it + 1], "my our"));
            let before = before.filter(|_| is_own && words[at - 2] == "is");
            let before = before.or(near.next().map(|it| &words[it]));
            if let Some(name) = name(after).or(name(before)) {
                kinds.add(kind, name);
            }
        }
    }

    /// Of two hosts, takes `the nas` for the one that no other such word is for.
    fn take_last_kind(&self, Kinds(kinds): &mut Kinds, statements: &[Statement]) {
        let phrases = KINDS.split(' ').map(|it| (it, format!("the {it}")));
        let open = phrases.filter(|(kind, phrase)| {
            !kinds.contains_key(*kind)
                && statements
                    .iter()
                    .any(|it| it.sentence.find(phrase).is_some())
        });
        let mut open = open.map(|it| it.0);
        let one = open.next().filter(|_| open.next().is_none());
        let [known] = &kinds.values().flatten().collect::<Vec<_>>()[..] else {
            return;
        };
        if let Some((kind, other)) = one.zip(self.other(known)) {
            let other = String::from(other);
            kinds.insert(String::from(kind), Some(other));
        }
    }

    /// Takes the hosts that are named with another one: `tuna and herring are twins`. Such a word is one of which the
    /// text says that something is on it, or what it does, as in `tuna (sends) and herring (receives)`.
    pub fn take_partners(&mut self, statements: &[Statement]) {
        const BEFORE: &str = "on at of by";
        const AFTER: &str = "gets sends receives runs";
        const NOUNS: &str = "the a an no my our this with without";
        const SENDS: &str = "sends blasts pushes transmits";
        let (mut partners, mut aims): (Vec<String>, Vec<String>) = Default::default();
        let mut placed: HashSet<&str> = HashSet::new();
        let mut common: HashSet<&str> = HashSet::new();
        for statement in statements {
            let words: Vec<&str> = statement.sentence.words.split_whitespace().collect();
            for pair in words.windows(2) {
                placed.extend(is_in(pair[0], BEFORE).then_some(pair[1]));
                placed.extend(is_in(pair[1], AFTER).then_some(pair[0]));
                common.extend(is_in(pair[0], NOUNS).then_some(pair[1]));
            }
            // `amsel blasts towards drossel`
            let goals = words.windows(4).filter(|it| {
                is_in(it[1], SENDS) && is_in(it[2], "to towards at") && self.small.contains(it[0])
            });
            aims.extend(goals.map(|it| String::from(it[3])));
            // `pantry is the client, den the server`
            let parts = statement.sentence.clauses.windows(2).filter_map(|it| {
                let [one, other] = [&it[0], &it[1]].map(|it| it.trim());
                let (known, _) = one.split_once(" is the ")?;
                let (name, part) = other.split_once(" the ")?;
                let is_part = is_in(part, SENDERS) || is_in(part, RECEIVERS);
                (is_part && self.small.contains(known)).then(|| String::from(name))
            });
            aims.extend(parts);
            // `two machines, stoat and mink`
            let pairs = words.windows(4).filter(|it| {
                is_in(it[0], MACHINES) && it[2] == "and" && self.small.contains(it[1])
            });
            aims.extend(pairs.map(|it| String::from(it[3])));
            let is_part = |it: &str| is_in(it, "sends receives");
            let parts = words.windows(5).filter(|it| it[2] == "and");
            let parts = parts.filter(|it| is_part(it[1]) && is_part(it[4]));
            let parts = parts.map(|it| [it[0], it[3]]);
            let pairs = words.windows(3).filter(|it| it[1] == "and");
            for pair in pairs.map(|it| [it[0], it[2]]).chain(parts) {
                match pair.map(|it| self.small.contains(it)) {
                    [true, false] => partners.push(String::from(pair[1])),
                    [false, true] => partners.push(String::from(pair[0])),
                    _ => {}
                }
            }
        }
        partners.retain(|it| placed.contains(it.as_str()));
        partners.append(&mut aims);
        partners.retain(|it| !common.contains(it.as_str()));
        partners.retain(|it| address::is_name(it) && !clause::is_common(it));
        partners.iter().for_each(|it| self.add(it));
    }

    /// Takes a line of three hosts: the one in the middle joins the others.
    pub fn join(&mut self, three: [String; 3]) {
        three.iter().for_each(|it| self.add(it));
        let [one, between, other] = three;
        if self.joined.len() < Self::LOOKED_FOR_MAX {
            self.joined.push([one, other]);
            self.boxes.insert(between);
        }
    }

    /// Takes the two that a sentence says a cable joins, and the ends of a way through a box: `ash -> elm -> oak`.
    pub fn take_joined(&mut self, statements: &[Statement]) {
        const JOINED: &str = "back to back|crossed cable|crossover cable|direct cable|directly connected|one cable|patch cable";
        let mut cabled: Option<[String; 2]> = None;
        let mut ways: Vec<[String; 3]> = Vec::new();
        for Statement { sentence, .. } in statements {
            let words: Vec<&str> = sentence.words.split_whitespace().collect();
            let is_way =
                |it: &&[&str]| it[1] == "to" && it[3] == "to" && self.small.contains(it[0]);
            for way in words
                .windows(5)
                .filter(is_way)
                .map(|it| [it[0], it[2], it[4]])
            {
                let named = self.named_in(&format!(" {} ", way.join(" ")));
                if let Ok(way) = <[&str; 3]>::try_from(named) {
                    ways.push(way.map(String::from));
                } else if way
                    .iter()
                    .all(|it| address::is_name(it) && !clause::is_common(it))
                {
                    ways.push(way.map(String::from));
                }
            }
            let named = self.named_in(&sentence.words).try_into().ok();
            let named = named.filter(|_| sentence.has_any(JOINED));
            cabled = cabled.or(named.map(|it: [&str; 2]| it.map(String::from)));
        }
        self.joined.extend(cabled);
        ways.into_iter().for_each(|it| self.join(it));
    }

    /// The addresses of two hosts that a sentence names before both: `oak and elm share a cable, 192.0.2.1 and 192.0.2.2`.
    pub fn in_order(&self, statements: &[Statement]) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for Statement { sentence, .. } in statements {
            let words: Vec<&str> = sentence.words.split_whitespace().collect();
            let is_address = |at: usize| {
                let parts = words.get(at..at + 4);
                parts.is_some_and(|it| it.iter().all(|it| it.parse::<u8>().is_ok()))
            };
            let Some(first) = (0..words.len()).find(|at| is_address(*at)) else {
                continue;
            };
            let second = first + 4 + usize::from(words.get(first + 4) == Some(&"and"));
            let is_more = (second + 1..words.len()).any(is_address);
            let before = format!(" {} ", words[..first].join(" "));
            let named = self.named_in(&before);
            if let ([one, other], true, false) = (&named[..], is_address(second), is_more) {
                let address = |at: usize| words[at..at + 4].join(".");
                all.push((address(first), String::from(*one)));
                all.push((address(second), String::from(*other)));
            }
        }
        all
    }

    /// Takes what only one host is made of for that host, as in `the Athlon` and `em0 was polling`, by the sentences that
    /// first name hosts and by `em0 of kestrel`.
    pub fn take_parts(&mut self, statements: &[Statement]) {
        const SHARED: &str = "both each all two twins twin identical every everywhere";
        const NONE: &str = "release stable ghz mhz";
        let mut owners: HashMap<String, Option<String>> = HashMap::new();
        let mut met: HashSet<String> = HashSet::new();
        for Statement { sentence, .. } in statements {
            let words: Vec<&str> = sentence.words.split_whitespace().collect();
            let host = |at: usize| {
                let named = self.named_in(&format!(" {} ", words.get(at)?));
                named.first().map(|it| String::from(*it))
            };
            let is_shared = sentence.has(SHARED);
            // A drawing of cables, as `gen em0 gw em1 sink`, does not tell whose they are.
            let is_between =
                |at: usize| host(at + 1).is_some() && at.checked_sub(1).and_then(&host).is_some();
            let mut introduced: Option<String> = None;
            let mut new: Vec<String> = Vec::new();
            for (at, word) in words.iter().enumerate() {
                if let Some(name) = host(at) {
                    introduced = Some(name.clone()).filter(|it| !met.contains(it));
                    new.push(name);
                } else if layout::is_part(word) && !is_in(word, NONE) {
                    let is_of = words.get(at + 1).is_some_and(|it| is_in(it, "of on at"));
                    let is_one_of = is_of && words[at + 1] != "of";
                    let of = host(at + 2).filter(|_| is_of);
                    let is_told = of.is_some();
                    let Some(owner) = of.or(introduced.clone()) else {
                        continue;
                    };
                    // `em0 on kestrel` tells it from that of another host.
                    let is_own = !is_one_of && (is_told || !is_shared && !is_between(at));
                    let owner = Some(owner).filter(|_| is_own);
                    if owners.len() < Self::LOOKED_FOR_MAX || owners.contains_key(*word) {
                        let known = owners.entry(String::from(*word));
                        known
                            .or_insert_with(|| owner.clone())
                            .take_if(|it| Some(&*it) != owner.as_ref());
                    }
                }
            }
            met.extend(new);
        }
        let known = owners.into_iter();
        self.parts = known
            .filter_map(|(part, owner)| Some((format!(" {part} "), owner?)))
            .collect();
    }

    /// Forgets whose an interface is if another host has one of that name.
    fn deny_part(&mut self, part: &str, host: &str) {
        let part = format!(" {part} ");
        self.parts.retain(|it| it.0 != part || it.1 == host);
    }

    /// Takes `the gateway` for the only host that is no end of a trial.
    pub fn take_box(&mut self, trials: &[ImportedTrial]) {
        let ends = trials.iter().flat_map(|it| [&it.sender, &it.receiver]);
        let ends: HashSet<&String> = ends.flatten().collect();
        let mut others = self.all.iter().filter(|it| !ends.contains(it));
        let Some(name) = others.next().filter(|_| others.next().is_none()).cloned() else {
            return;
        };
        for kind in BOXES.split(' ') {
            self.call(kind, &name);
        }
    }

    /// Takes a word for a host.
    pub fn call(&mut self, kind: &str, name: &str) {
        if self.looked_for.iter().all(|it| it.0 != kind) {
            self.looked_for
                .push((String::from(kind), String::from(name)));
        }
    }
}

/// Whether the end of a name may stand for the name: it has a letter and a number.
fn is_short_name(end: &str) -> bool {
    end.starts_with(|it: char| it.is_ascii_alphabetic())
        && end.ends_with(|it: char| it.is_ascii_digit())
}

/// An empty trial of a tool.
pub fn blank(tool: &str, place: SourcePlace) -> ImportedTrial {
    ImportedTrial {
        tool: String::from(tool),
        quantity: String::from("packets_per_second"),
        place,
        ..ImportedTrial::default()
    }
}

/// The host at an end of a trial.
pub fn end(trial: &ImportedTrial, side: Side) -> Option<&String> {
    match side {
        Side::Sender => trial.sender.as_ref(),
        Side::Receiver => trial.receiver.as_ref(),
    }
}

/// A figure that the text states.
pub fn stated_figure<T>(
    side: Option<Side>,
    name: &str,
    value: f64,
    of: &Printed<T>,
) -> ImportedFigure {
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

/// A figure that belongs to no trial.
pub fn unplaced(printed: &str, reason: &str, place: SourcePlace) -> UnplacedFigure {
    UnplacedFigure {
        printed: String::from(printed),
        reason: String::from(reason),
        candidates: Vec::new(),
        place,
    }
}

/// Most streams in a block; `iperf -P` runs fewer. Later ones count as another test's.
pub const STREAMS_MAX: usize = 512;
/// Most banners kept: those of both directions, and some.
const BANNERS_MAX: usize = 8;
/// Most sizes kept.
const SIZES_MAX: usize = 16;
/// How many of a stream's last lines to search for a repetition.
const TOLD_AGAIN_WITHIN: usize = 64;

/// An interval line.
pub type IntervalLine = Printed<IperfLine>;

impl AsRef<IperfLine> for IntervalLine {
    fn as_ref(&self) -> &IperfLine {
        &self.value
    }
}

/// A single figure, by name.
pub type CountedFigure = Printed<(&'static str, f64)>;

/// The host of a terminal, and how it is known; no name by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TerminalHost {
    pub name: Option<String>,
    pub basis: ImportedBasis,
}

impl TerminalHost {
    /// A host that is known by what stands near.
    pub fn inferred(name: Option<String>) -> Self {
        let basis = ImportedBasis::Inferred;
        TerminalHost { name, basis }
    }
}

/// The lines with one id in brackets.
#[derive(Clone, Debug, Default)]
pub struct StreamLines {
    pub id: Id,
    pub connected: Option<ConnectedLine>,
    pub lines: Lines<IntervalLine>,
    pub report: Option<IntervalLine>,
    pub counted: Vec<CountedFigure>,
    /// Places where its lines are repeated.
    pub again: Vec<SourcePlace>,
}

/// One end's output.
#[derive(Clone, Debug)]
pub struct ToolBlock {
    pub place: SourcePlace,
    /// Where its output begins.
    pub begins: Option<SourcePlace>,
    pub host: TerminalHost,
    pub command: Option<Rc<ToolCommand>>,
    pub banners: Vec<Banner>,
    /// The sizes in its banners.
    pub sizes: Vec<CountedFigure>,
    pub streams: Vec<StreamLines>,
    pub is_server: Option<bool>,
    /// Whether it says that the server sends.
    pub is_reversed: bool,
    /// Whether it stands behind the mark of a mail's quotation, or in a sentence.
    pub is_quoted: bool,
    awaits_report: Option<Id>,
}

/// Whether a block took a line.
pub enum LineTaken {
    /// It did.
    Yes,
    /// The line belongs to another block.
    No(IntervalLine),
}

impl StreamLines {
    /// The line of the whole test.
    pub fn total(&self) -> Option<&IntervalLine> {
        self.lines.whole().map(|at| &self.lines[at])
    }

    /// The other lines, by start time.
    pub fn intervals(&self) -> Vec<&IntervalLine> {
        let total = self.total().map(|line| line.place);
        let others = self.lines.iter().filter(|line| Some(line.place) != total);
        let others = others.filter(|line| line.value.is_receivers.is_none());
        let mut others: Vec<&IntervalLine> = others.collect();
        others.sort_by(|one, other| one.value.start.total_cmp(&other.value.start));
        others
    }

    pub fn has_figures(&self) -> bool {
        !self.lines.is_empty() || self.report.is_some()
    }

    fn is_over(&self) -> bool {
        self.total().is_some()
    }

    /// Whether a line from 0 can follow the only one so far, as the total after a single interval.
    fn goes_on_with(&self, line: &IntervalLine) -> bool {
        let [first] = &self.lines[..] else {
            return false;
        };
        let (first, whole) = (&first.value, &line.value);
        let is_alike = (first.bits_per_second / whole.bits_per_second - 1.0).abs() < 0.02;
        first.end < 0.9 * whole.end
            || (is_alike && first.end <= whole.end && self.connected.is_some())
    }
}

impl ToolBlock {
    pub fn new(place: SourcePlace, host: TerminalHost, command: Option<Rc<ToolCommand>>) -> Self {
        let is = |letter| command.as_ref().is_some_and(|it| it.has(letter));
        let is_server = (is('s') || is('c')).then(|| is('s'));
        ToolBlock {
            place,
            begins: None,
            host,
            command,
            banners: Vec::new(),
            sizes: Vec::new(),
            streams: Vec::new(),
            is_server,
            is_reversed: false,
            is_quoted: false,
            awaits_report: None,
        }
    }

    pub fn has_figures(&self) -> bool {
        self.streams.iter().any(StreamLines::has_figures)
    }

    /// Whether it has only figures: no command, banner or connection.
    pub fn is_bare(&self) -> bool {
        let is_connected = self.streams.iter().any(|it| it.connected.is_some());
        self.command.is_none() && self.banners.is_empty() && !is_connected
    }

    /// The server to which a client connects.
    pub fn peer(&self) -> Option<&str> {
        let told = self.banners.iter().find_map(|it| it.peer.as_deref());
        told.or_else(|| self.command.as_ref()?.option('c'))
    }

    /// Whether all of its streams have their last line.
    pub fn is_over(&self) -> bool {
        let is_whole = self.has_figures() && self.streams.iter().all(StreamLines::is_over);
        is_whole && self.awaits_report.is_none()
    }

    /// Whether its streams run one after another (`-r`).
    fn takes_turns(&self) -> bool {
        let has_both = |is_server| self.banners.iter().any(|it| it.is_server == is_server);
        match &self.command {
            Some(command) => command.has('r'),
            None => self.is_server == Some(false) && has_both(true) && has_both(false),
        }
    }

    /// Whether both directions run at the same time.
    pub fn is_dual(&self) -> bool {
        let is_asked = self.command.as_ref().is_some_and(|it| it.has('d'));
        let ways = self.streams.iter().filter_map(|it| self.sends(it));
        let ways: Vec<bool> = ways.collect();
        is_asked || (ways.contains(&true) && ways.contains(&false) && !self.takes_turns())
    }

    pub fn banner(&mut self, banner: Banner) {
        let is_connected = self.streams.iter().any(|it| it.connected.is_some());
        self.is_server = self
            .is_server
            .filter(|_| self.command.is_some() || is_connected || banner.is_server);
        if self.is_server.is_none()
            && !(banner.is_server && self.banners.is_empty() && self.command.is_some())
        {
            self.is_server = Some(banner.is_server);
        }
        if self.banners.len() < BANNERS_MAX {
            self.banners.push(banner);
        }
    }

    pub fn size(&mut self, size: CountedFigure) {
        if self.sizes.len() < SIZES_MAX {
            self.sizes.push(size);
        }
    }

    /// Whether there is room for a stream with this id.
    pub fn takes(&self, id: &Id) -> bool {
        self.streams.len() < STREAMS_MAX || self.streams.iter().any(|it| it.id == *id)
    }

    pub fn stream(&mut self, id: &Id) -> &mut StreamLines {
        let known = self.streams.iter().rposition(|it| it.id == *id);
        let index = known.unwrap_or_else(|| self.another(id));
        &mut self.streams[index]
    }

    /// Adds a stream with this id.
    fn another(&mut self, id: &Id) -> usize {
        self.streams.push(StreamLines {
            id: id.clone(),
            ..StreamLines::default()
        });
        self.streams.len() - 1
    }

    /// Whether a connection must belong to another block: the other end's view of one here, or the next test.
    pub fn refuses(&self, connected: &ConnectedLine) -> bool {
        let mut known = self.streams.iter().filter_map(|it| it.connected.as_ref());
        let is_mirrored = known.any(|it| it.local == connected.peer && it.peer == connected.local);
        let is_full = self.streams.len() >= STREAMS_MAX;
        let ways: HashSet<bool> = self
            .streams
            .iter()
            .filter_map(|it| self.sends(it))
            .collect();
        let is_done = !self.takes_turns() || ways.len() == 2;
        is_mirrored || is_full || self.is_over() && is_done
    }

    pub fn connect(&mut self, connected: ConnectedLine) {
        let id = connected.id.clone();
        let is_used = |it: &StreamLines| it.connected.is_some() || it.has_figures();
        if self.streams.iter().any(|it| it.id == id && is_used(it)) {
            self.another(&id);
        }
        self.stream(&id).connected = Some(connected);
    }

    /// Whether it has the server's report on a stream.
    pub fn is_reported(&self, id: &Id) -> bool {
        let mut of = self.streams.iter().filter(|it| it.id == *id);
        of.any(|it| it.report.is_some())
    }

    pub fn report(&mut self, id: Id) {
        if self.takes(&id) {
            self.awaits_report = Some(id);
        }
    }

    pub fn line(&mut self, line: IntervalLine) -> LineTaken {
        let id = line.value.id.clone();
        if self
            .awaits_report
            .as_ref()
            .is_some_and(|it| *it == id || id.is_empty())
        {
            let id = self.awaits_report.take().unwrap_or(id);
            self.stream(&id).report = Some(line);
            return LineTaken::Yes;
        }
        let is_server = self.is_server == Some(true);
        let reverses = match iperf::role(&id) {
            Some((_, sends)) => !sends && !is_server,
            None => self.reverses(),
        };
        // The connection has the number alone.
        if let Some((number, _)) = iperf::role(&id)
            && let Some(stream) = self.streams.iter_mut().find(|it| it.id == number)
        {
            stream.id.clone_from(&id);
        }
        // A client that receives prints the other end's line first.
        if reverses && line.value.is_receivers == Some(false) {
            self.stream(&id).report = Some(line);
            return LineTaken::Yes;
        }
        let known = self.streams.iter_mut().rev().find(|it| it.id == id);
        if let Some(stream) = known {
            // iperf3 ends with a line of each end.
            if line.value.is_receivers == Some(true) && !is_server && !reverses {
                stream.report = Some(line);
                return LineTaken::Yes;
            }
            // iperf3 marks its total, which may be that of the only interval.
            let is_total = line.value.is_receivers.is_some() && stream.connected.is_some();
            let is_same = |it: &IntervalLine| {
                it.value.is_same_as(&line.value)
                    && (!is_total || it.value.is_receivers == line.value.is_receivers)
            };
            let mut last = stream.lines.iter().rev().take(TOLD_AGAIN_WITHIN);
            if last.any(is_same) || !reverses && stream.report.as_ref().is_some_and(is_same) {
                stream.again.push(line.place);
                return LineTaken::Yes;
            }
            // Its server ends with both lines, and counts nothing at the other end.
            let is_servers = is_total && is_server;
            if is_servers && line.value.bytes == 0.0 {
                return LineTaken::Yes;
            }
            let goes_on = is_servers || stream.goes_on_with(&line);
            if line.value.start == 0.0 && stream.is_over() && !goes_on {
                return LineTaken::No(line);
            }
        } else if id.is_empty() && !self.is_bare() && self.is_over() {
            return LineTaken::No(line);
        }
        if !self.takes(&id) {
            return LineTaken::No(line);
        }
        self.stream(&id).lines.add(line);
        LineTaken::Yes
    }

    fn port_option(&self, letter: char) -> Option<u16> {
        self.command.as_ref()?.option(letter)?.parse().ok()
    }

    /// The port that the server listens on.
    fn server_port(&self) -> u16 {
        let asked = self.port_option('p');
        let told = || self.banners.iter().find_map(|it| it.port);
        asked.or_else(told).unwrap_or(5001)
    }

    /// Whether this end sends the stream.
    pub fn sends(&self, stream: &StreamLines) -> Option<bool> {
        if stream.id.starts_with("ttcp") {
            return Some(stream.id == ttcp::SENDER);
        }
        if let Some((_, sends)) = iperf::role(&stream.id) {
            return Some(sends);
        }
        // A server whose total is that of the sender was asked to send.
        let total = stream.total().and_then(|it| it.value.is_receivers);
        if self.is_server == Some(true) && total == Some(false) {
            return Some(true);
        }
        let port = self.server_port();
        let reverses = self.reverses();
        if let Some(ConnectedLine { local, peer, .. }) = &stream.connected {
            let reverse = self.port_option('L');
            match (local.1 == port || Some(local.1) == reverse, peer.1 == port) {
                (true, false) => return Some(reverses),
                (false, true) => return Some(!reverses),
                _ => {}
            }
        }
        if stream.report.is_some() {
            return Some(!reverses);
        }
        if stream.lines.iter().any(|it| it.value.datagrams.is_some()) {
            return Some(false);
        }
        self.is_server.map(|is_server| is_server == reverses)
    }

    /// Whether the client asked the server to send.
    pub fn reverses(&self) -> bool {
        let command = self.command.as_ref();
        let is_asked = command.is_some_and(|it| it.has('R'));
        self.is_server == Some(false) && (self.is_reversed || is_asked)
    }

    pub fn is_udp(&self) -> bool {
        let is_asked = self.command.as_ref().is_some_and(|it| it.has('u'));
        let has_loss = |it: &StreamLines| {
            let mut all = it.lines.iter().chain(&it.report);
            all.any(|it| it.value.datagrams.is_some())
        };
        is_asked || self.banners.iter().any(|it| it.is_udp) || self.streams.iter().any(has_loss)
    }
}
