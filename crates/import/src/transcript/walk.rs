//! Reads a text from beginning to end, tracking the current host, command and block.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::ops::Range;
use std::rc::Rc;

use nicpoll_model::{ImportedBasis, ImportedReading, SourcePlace};

use crate::cursor::Cursor;
use crate::lines;
use crate::lines::clause::{self, POLLING_SWITCHES};
use crate::lines::prose::{Sentence, SentenceKind, SentenceMark};
use crate::lines::seen::{Anchor, Banner, BlastField, ConnectedLine, Seen, Tool, ToolCommand};
use crate::lines::{Budget, address, command, layout, ttcp};
use crate::plain::Plain;
use crate::transcript::found::{
    BlastLines, CpuLine, Found, IntervalLine, LineTaken, PollingSwitch, Printed, PrintedRun,
    QUOTED, Scene, ScreenClock, Statement, Stretch, SwitchScope, TerminalHost, ToolBlock,
    ToolSetting, unplaced,
};
use crate::transcript::setting::Map;
use crate::transcript::words::OwnWords;

/// Most bytes of a sentence behind a command in marks that are looked at.
const PROMPTED_MAX: usize = 200;
/// Most settings other than polling, since each trial is compared with all.
const KNOBS_MAX: usize = 32;
/// Most bytes of prose before a finding that are read, and most sentences of all texts.
const PROSE_MAX: usize = 4000;
const STATEMENTS_MAX: usize = 100_000;
/// Most words next to addresses that are looked for in the whole text.
const WORDS_MAX: usize = 64;
/// Most variables that one command sets and prints.
const KNOBS_TOLD: usize = 16;

/// What is known of a terminal.
#[derive(Default)]
struct Terminal {
    host: TerminalHost,
    blast_command: Option<Rc<ToolCommand>>,
    receiver: TerminalHost,
    servers: [Option<(Rc<ToolCommand>, TerminalHost)>; 2],
    labelled: Option<String>,
}

/// A walk through one file.
pub struct Walk<'a> {
    plain: &'a Plain<'a>,
    file: u32,
    map: &'a Map<'a>,
    out: &'a mut Found,
    host: TerminalHost,
    interface: Option<String>,
    /// The polling interfaces of each host.
    polls: HashMap<Option<String>, HashSet<String>>,
    block: Option<ToolBlock>,
    blast: Option<BlastLines>,
    stretch: Option<Stretch>,
    blast_command: Option<Rc<ToolCommand>>,
    /// Whether the output of that command is over.
    has_blasted: bool,
    /// Where netreceive runs.
    receiver: TerminalHost,
    /// The running servers: TCP, then UDP.
    servers: [Option<(Rc<ToolCommand>, TerminalHost)>; 2],
    /// The end of the last finding that is no figure in prose.
    prose_from: usize,
    /// The last output of a tool.
    output: Option<SourcePlace>,
    /// What stands before the output that is being read.
    scene: Scene,
    /// Whether a command or prose came since the last output.
    is_new_scene: bool,
    /// The host of the last label, if it is that of the terminal below.
    labelled: Option<String>,
    /// Whether no output came since, and whether it says no more.
    is_fresh_label: bool,
    is_bare_label: bool,
    /// Where the last prompt stands.
    prompt: Option<SourcePlace>,
    uptime: Option<ScreenClock>,
    /// Whether the last prompted command prints what a host says of itself.
    looks: bool,
    /// Whether it cannot have printed the lines of a test.
    tests_nothing: bool,
    /// The heading of the table at hand, and the line of its last row.
    table_head: Vec<String>,
    table_line: u32,
    /// Whether captions stand under what they name.
    captions_below: Option<bool>,
    /// Words next to addresses, and whether the text has each twice.
    used: HashMap<String, bool>,
    /// Words that may be hosts, and whether they are.
    placed: HashMap<String, bool>,
    /// Whether it is a mail that quotes another.
    quotes: bool,
    /// Words that it has for polling and interrupts.
    words: OwnWords,
    /// Who shows output in a chat: what the others say is of those hosts, too.
    shows: HashSet<&'a str>,
    /// Where they were when another took over.
    terminals: HashMap<String, Terminal>,
}

impl<'a> Walk<'a> {
    /// At the beginning of a file.
    fn of(plain: &'a Plain<'a>, file: u32, map: &'a Map<'a>, out: &'a mut Found) -> Self {
        Walk {
            plain,
            file,
            map,
            out,
            host: TerminalHost::default(),
            interface: None,
            polls: HashMap::new(),
            block: None,
            blast: None,
            stretch: None,
            blast_command: None,
            has_blasted: false,
            receiver: TerminalHost::default(),
            servers: [None, None],
            prose_from: 0,
            output: None,
            scene: Scene::default(),
            is_new_scene: true,
            labelled: None,
            is_fresh_label: false,
            is_bare_label: false,
            prompt: None,
            uptime: None,
            looks: false,
            tests_nothing: false,
            table_head: Vec::new(),
            table_line: 0,
            captions_below: None,
            used: HashMap::new(),
            placed: HashMap::new(),
            quotes: false,
            words: OwnWords::default(),
            shows: plain
                .spoken()
                .filter(|it| is_output(it.1))
                .map(|it| it.0)
                .collect(),
            terminals: HashMap::new(),
        }
    }

    /// Adds the findings of a file; `None` when they exceed the budget.
    pub fn through(
        plain: &'a Plain<'a>,
        file: u32,
        map: &'a Map<'a>,
        budget: &mut Budget,
        out: &'a mut Found,
    ) -> Option<()> {
        let mut walk = Walk::of(plain, file, map, out);
        lines::scan(plain, budget, |anchor| {
            let place = walk.place(&anchor);
            if walk.map.at("skip", &place).is_some() {
                walk.prose_from = anchor.at.end;
                return;
            }
            if let Seen::Command(command) = &anchor.seen
                && walk.is_told(command, anchor.at.start)
            {
                // The sentence tells what polls.
                let host = walk.host(&place).name;
                let switched = walk.out.switches.len();
                walk.knobs(command, host, place);
                return walk.out.switches.truncate(switched);
            }
            if !matches!(anchor.seen, Seen::Loose(..) | Seen::Clock(..)) {
                walk.prose(anchor.at.start);
                walk.prose_from = walk.prose_from.max(anchor.at.end);
                // A longer line was taken with its first words.
                let near = anchor.at.start.saturating_sub(PROMPTED_MAX);
                let mut before = plain.bytes[near..anchor.at.start].iter();
                if let Some(line) = before.rposition(|it| *it == b'\n') {
                    walk.quotation("", near + line + 1);
                }
            }
            walk.speaks(&anchor, place);
            walk.step(&anchor, place);
            if let Seen::Command(command) = &anchor.seen
                && command.is_prompted
            {
                // The rest of the line is the command's, such as `| head`.
                let rest = plain.bytes[walk.prose_from..].iter();
                let rest = rest.take_while(|it| **it != b'\n').count();
                let line = &plain.bytes[walk.prose_from..walk.prose_from + rest];
                let line = String::from_utf8_lossy(line);
                // `now oak# ifconfig em0 polling, and elm stays on interrupts`
                let sets = matches!(command.tool, Tool::Ifconfig | Tool::Sysctl);
                if sets && line.starts_with([',', '.']) {
                    return;
                }
                walk.prose_from += rest;
            }
        })?;
        walk.prose(plain.bytes.len());
        walk.end_block();
        walk.end_blast();
        walk.end_stretch();
        Some(())
    }

    fn place(&self, anchor: &Anchor) -> SourcePlace {
        self.place_of(&anchor.at)
    }

    /// Whether a command stands in a sentence, which then says where and when.
    fn is_told(&self, command: &ToolCommand, start: usize) -> bool {
        let since = self.prose_from.min(start);
        let mut before = self.plain.bytes[since..start].iter();
        let line = before.rposition(|it| *it == b'\n');
        let from = line.map_or(self.prose_from, |at| since + at + 1);
        let before = self.plain.bytes.get(from..start).unwrap_or_default();
        let is_within = before.iter().any(u8::is_ascii_alphabetic);
        let goes_on = command
            .words
            .iter()
            .skip(1)
            .any(|it| clause::is_in(it, "on at of for"));
        // `ifconfig em0 polling` on both
        let rest = self.plain.bytes[start..].iter().take(PROMPTED_MAX);
        let rest = rest.take_while(|it| **it != b'\n');
        // `2. ifconfig em0 polling; ifconfig em1 polling, on oak`
        let line = String::from_utf8(rest.clone().copied().collect());
        let is_joined = line.is_ok_and(|it| it.contains("; ifconfig ") && it.contains(" on "));
        let mark = before.last().filter(|it| b"`\"".contains(it));
        let mut after = rest.skip_while(|it| Some(*it) != mark);
        let is_followed = mark.is_some() && after.any(u8::is_ascii_alphabetic);
        !command.is_prompted && (is_within || goes_on || is_joined || is_followed)
    }

    /// Reads the sentences between the last finding and `end`.
    fn prose(&mut self, end: usize) {
        let from = self.prose_from.max(end.saturating_sub(PROSE_MAX));
        let text = String::from_utf8_lossy(&self.plain.bytes[from.min(end)..end]);
        let is_near = from == self.prose_from;
        self.authors(&text, from);
        let plain = self.plain;
        let is_said = |at: usize| plain.speaker(from + at).is_some();
        for (range, mut mark) in layout::sentences(&text, from == 0, is_said) {
            let of = &text[range.clone()];
            let last = self.out.statements.last().map(|it| it.place);
            let is_after_output = is_near && self.output.is_some() && last < self.output;
            let known = self.out.statements.iter().rev();
            let since = known.take_while(|it| Some(it.place) > self.output).count();
            let before = text[..range.start].trim_end_matches(' ');
            let is_line = before.ends_with(['\n', '.', ')']) || before.is_empty() && from == 0;
            let is_next = is_line && is_near && self.output.is_some() && since < 2;
            if is_next && layout::is_aside(of) {
                mark = SentenceMark::Caption;
            }
            if layout::is_caption(of) {
                let is_below = *self.captions_below.get_or_insert(is_after_output);
                if is_below && is_near && self.output.is_some() {
                    mark = SentenceMark::Caption;
                }
            }
            let lead = text[range.clone()].len() - text[range.clone()].trim_start().len();
            let place = self.place_of(&(from + range.start + lead..from + range.end));
            if self.map.at("skip", &place).is_some() {
                continue;
            }
            self.addresses(&text[range.clone()]);
            let Some(mut sentence) = Sentence::of(of, mark, is_after_output) else {
                continue;
            };
            if mark == SentenceMark::Row {
                sentence.cells = layout::cells(of).into_iter().map(String::from).collect();
                self.columns(&sentence.cells, place.line);
            }
            let hosts = &self.out.hosts;
            self.words.read(of, &mut sentence, |it| hosts.knows(it));
            if self.out.statements.len() == STATEMENTS_MAX {
                return;
            }
            for name in layout::paired(of).into_iter().chain(layout::called(of)) {
                self.out.hosts.add(name);
            }
            for name in layout::listed(&text[range.clone()]) {
                if self.is_placed(name) {
                    self.out.hosts.add(name);
                }
            }
            self.labels(&sentence);
            self.is_new_scene = true;
            self.out.statements.push(Statement {
                place,
                sentence,
                after: self.output.filter(|_| is_near),
            });
        }
    }

    /// Takes the authors of posts, and drawings; a terminal is of one author.
    fn authors(&mut self, text: &str, from: usize) {
        const BELOW: usize = 4;
        let mut at = from;
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for (index, line) in lines.iter().copied().enumerate() {
            let below = &lines[index + 1..lines.len().min(index + BELOW)];
            let begins = at == 0 || self.plain.bytes[at - 1] == b'\n';
            if begins && !line.trim().is_empty() {
                self.quotation(line, at);
            }
            let (mut hosts, three) = address::drawing(line, below.first().unwrap_or(&""));
            hosts.extend(address::columns(line, below));
            if let Some(three) = three {
                self.out.hosts.call("router", &three[1]);
                self.out.hosts.join(three);
            }
            // A sentence in it may end before the address.
            let item = line.trim_start();
            if item.starts_with(['*', '-', '+']) || item.starts_with("[*]") {
                self.addresses(line);
            }
            if let Some(name) = layout::defined(line).filter(|it| self.is_placed(it)) {
                self.out.hosts.add(name);
            }
            for (address, name) in hosts {
                self.out.hosts.add(&name);
                self.out.addresses.entry(address).or_insert(name);
            }
            // phpBB has the name in a line of its own.
            let above = text[..at - from].lines().next_back().unwrap_or("");
            let is_posted = line.starts_with("Posted: ") && !above.trim().is_empty();
            if let Some(name) = Some(above.trim())
                .filter(|_| is_posted)
                .or(self.plain.speaker(at).filter(|it| self.shows.contains(it)))
                .or_else(|| layout::author(line))
            {
                let place = self.place_of(&(at..at + line.trim_end().len()));
                let name = String::from(name);
                self.turn_to(name, place, false);
            }
            at += line.len();
        }
    }

    /// Takes output in a chat for that of who shows it.
    fn speaks(&mut self, anchor: &Anchor, place: SourcePlace) {
        let speaker = self.plain.last_speaker(anchor.at.start);
        if let Some(name) = speaker.filter(|it| self.shows.contains(it))
            && self.out.authors.of(&place) != name
        {
            self.turn_to(String::from(name), place, false);
        }
    }

    /// Takes what follows for this author's.
    fn turn_to(&mut self, name: String, place: SourcePlace, goes_on: bool) {
        let last = self.out.authors.of(&place);
        if last != name {
            let last = String::from(last);
            self.end_block();
            self.end_blast();
            // Who goes on in a chat, or behind a quotation, is where he was.
            let goes_on = goes_on || !self.shows.is_empty();
            let next = self.terminals.remove(&name).filter(|_| goes_on);
            let left = self.terminal(next.unwrap_or_default());
            if goes_on {
                self.terminals.insert(last, left);
            }
        }
        // The first sentence of the line is his, too.
        let end_byte = place.start_byte;
        let place = SourcePlace { end_byte, ..place };
        self.out.authors.0.push((place, name));
    }

    /// Goes to another terminal; returns the one that is left.
    fn terminal(&mut self, next: Terminal) -> Terminal {
        let Terminal {
            host,
            blast_command,
            receiver,
            servers,
            labelled,
        } = next;
        Terminal {
            host: std::mem::replace(&mut self.host, host),
            blast_command: std::mem::replace(&mut self.blast_command, blast_command),
            receiver: std::mem::replace(&mut self.receiver, receiver),
            servers: std::mem::replace(&mut self.servers, servers),
            labelled: std::mem::replace(&mut self.labelled, labelled),
        }
    }

    /// Takes the lines that a mail quotes for another author's.
    fn quotation(&mut self, line: &str, at: usize) {
        let line = line.trim();
        self.quotes |= line.ends_with("wrote:");
        if !self.quotes {
            return;
        }
        let before = self.plain.before(self.plain.source(at));
        let mark = before.rsplit('\n').next().unwrap_or(before);
        let own = mark.contains('>').then_some(QUOTED);
        let last = self
            .out
            .authors
            .0
            .last()
            .filter(|it| it.0.file == self.file);
        let was_quoted = last.is_some_and(|it| it.1 == QUOTED);
        if own.is_some() == was_quoted {
            return;
        }
        let mut authors = self.out.authors.0.iter().rev();
        let author = authors.find(|it| it.1 != QUOTED && it.0.file == self.file);
        let name = own.or(author.map(|it| it.1.as_str())).unwrap_or_default();
        let name = String::from(name);
        let place = self.place_of(&(at..at + line.len()));
        self.turn_to(name, place, true);
    }

    /// Takes the hosts in the heading of a table whose columns have addresses: `| address | 192.0.2.1 | 192.0.2.2 |`.
    fn columns(&mut self, cells: &[String], line: u32) {
        let is_address = |it: &String| address::is_address(it);
        let above = std::mem::replace(&mut self.table_line, line);
        // A ruled line may stand in between.
        if above == 0 || line > above + 2 {
            self.table_head = cells.to_vec();
            return;
        }
        let is_whole = cells.len() == self.table_head.len();
        let is_all = cells.len() > 2 && cells[1..].iter().all(is_address);
        let columns = self.table_head.iter().zip(cells).skip(1);
        for (name, address) in columns.filter(|_| is_whole && is_all) {
            let small = name.to_ascii_lowercase();
            if address::is_plain_name(name) && !clause::is_common(&small) {
                self.out.hosts.add(name);
                let plain = address.split('/').next().unwrap_or_default();
                let known = self.out.addresses.entry(String::from(plain));
                known.or_insert_with(|| name.clone());
            }
        }
    }

    /// Takes the hosts of `kestrel is 172.30.4.1 and merlin 172.30.4.2`.
    fn addresses(&mut self, text: &str) {
        let mentions = address::mentions(text);
        // `oak (192.0.2.1) sends, elm (192.0.2.2) receives`: one is like the other.
        let named = mentions.iter().filter_map(|it| it.bracketed(text));
        let named: Vec<String> = named.map(String::from).collect();
        let are_alike = named.len() > 1 && named.iter().any(|it| self.is_used(it));
        for mut mention in mentions {
            let is_like = are_alike && mention.bracketed(text).is_some();
            mention.doubt(|it| is_like || self.is_used(it));
            let name = mention.host(|it| self.out.hosts.has(it));
            if let Some(name) = name.filter(|it| !clause::is_common(&it.to_ascii_lowercase())) {
                // A sentence may begin with it.
                let is_title = name[1..].bytes().all(|it| !it.is_ascii_uppercase());
                let name = if is_title {
                    name.to_ascii_lowercase()
                } else {
                    name.clone()
                };
                self.out.hosts.add(&name);
            }
            self.out.mentions.push(mention);
        }
    }

    /// Whether a text has a word twice: a word next to an address that never comes again names no host.
    fn is_used(&mut self, word: &str) -> bool {
        if let Some(is_used) = self.used.get(word) {
            return *is_used;
        }
        if self.used.len() == WORDS_MAX {
            return false;
        }
        let is_of_name = |it: u8| it == b'-' || it == b'_' && word.contains('_');
        let plain = self.plain;
        let words = plain
            .bytes
            .split(|it| !it.is_ascii_alphanumeric() && !is_of_name(*it));
        let mut same = words.filter(|it| it.eq_ignore_ascii_case(word.as_bytes()));
        let is_used = same.nth(1).is_some();
        self.used.insert(String::from(word), is_used);
        is_used
    }

    /// Whether a text says that something is on a word, comes from it or goes to it, or has its prompt: then it is a host.
    fn is_placed(&mut self, name: &str) -> bool {
        if let Some(is_placed) = self.placed.get(name) {
            return *is_placed;
        }
        if self.placed.len() == WORDS_MAX {
            return false;
        }
        const BEFORE: &str = "on at in of from to by towards toward into";
        const ARTICLES: &str = "a an two three each";
        const PROMPTS: [&str; 6] = ["#", "$", "%", ":~", "> ", "'s"];
        let is_name = |it: &u8| it.is_ascii_alphanumeric() || *it == b'_';
        let bytes = &self.plain.bytes;
        // Whether a place speaks for a host; with an article it speaks against one.
        let is_it = |at: usize| {
            let (before, after) = (&bytes[..at], &bytes[at + name.len()..]);
            let is_part = before.last().is_some_and(is_name) || after.first().is_some_and(is_name);
            let mut words = before.trim_ascii_end().rsplit(u8::is_ascii_whitespace);
            // `on the nas`
            let word = words.find(|it| !it.eq_ignore_ascii_case(b"the"));
            let word = String::from_utf8_lossy(word.unwrap_or_default()).to_ascii_lowercase();
            let is_prompt = PROMPTS.iter().any(|it| after.starts_with(it.as_bytes()));
            let is_told = clause::is_in(&word, BEFORE) || is_prompt || before.ends_with(b"@");
            let is_thing = clause::is_in(&word, ARTICLES);
            let is_whole = !is_part && !after.starts_with(b"@");
            (is_whole && (is_told || is_thing)).then_some(is_told)
        };
        let found = bytes.windows(name.len()).enumerate();
        let found = found.filter(|(_, it)| *it == name.as_bytes());
        let mut said = found.filter_map(|(at, _)| is_it(at)).peekable();
        let is_placed = said.peek().is_some() && said.all(|it| it);
        self.placed.insert(String::from(name), is_placed);
        is_placed
    }

    /// Takes the host that a label such as `on alpha:` names for that of the terminal below.
    fn labels(&mut self, sentence: &Sentence) {
        let words: Vec<&str> = sentence.words.split_whitespace().collect();
        // `polling off on gate:` is no label of a terminal.
        let named = self.out.hosts.named_in(&sentence.words);
        let is_set = sentence.setting().is_some() || sentence.has("setting settings");
        let is_set = is_set || sentence.names_polling() && named.len() > 1;
        if is_set && !sentence.parts().all {
            return;
        }
        // `laptop sends, otter receives:` neither.
        let is_way = sentence.has("sends receives sending receiving pushes to into");
        // `kuha, only the end of the output:`
        let first = sentence.clauses.first().map_or("", |it| it.trim());
        let is_alone = named.iter().any(|it| it.eq_ignore_ascii_case(first));
        let is_label = sentence.introduces && (words.len() <= 6 || is_alone) && !is_way;
        let is_at = |name: &str| {
            let on = format!(" on {} ", name.to_ascii_lowercase());
            let leads = sentence.introduces || !sentence.is_whole;
            // `do this on node-b, nothing on node-a:`, `the same on elm too, so both poll`
            let is_not = |it: &str| {
                ["nothing", "not", "no", "the same on"]
                    .iter()
                    .any(|no| clause::phrase_at(it, no).is_some())
            };
            // `client on oak, server on elm`
            let is_part = |it: &str| {
                let parts = clause::parts(it);
                parts.sender || parts.receiver
            };
            let mut clauses = sentence.clauses.iter().filter(|it| !is_part(it));
            words.len() <= 16 && leads && clauses.any(|it| it.contains(&on) && !is_not(it))
        };
        let at = named.iter().rev().find(|name| is_at(name));
        // `and duke says`
        let saying = match &words[..] {
            [.., name, verb]
                if clause::is_in(
                    verb,
                    "says said shows showed printed prints reports reported had",
                ) =>
            {
                self.out
                    .hosts
                    .named_in(&format!(" {name} "))
                    .first()
                    .map(|it| String::from(*it))
            }
            _ => None,
        };
        let name = match (&named[..], &words[..]) {
            _ if saying.is_some() => saying,
            ([one], _) if is_label => Some(String::from(*one)),
            _ if at.is_some() => at.map(|name| String::from(*name)),
            ([], [.., before, name]) if is_label && ["on", "at", "host"].contains(before) => {
                let is_name = !clause::is_common(name) && name.len() > 1;
                let is_name = is_name && !address::is_interface(name);
                is_name.then(|| String::from(*name))
            }
            _ => None,
        };
        if let Some(name) = name {
            self.is_bare_label = is_bare_label(&words, &name);
            self.out.hosts.add(&name);
            self.labelled = Some(name);
            self.is_fresh_label = true;
        } else if sentence.kind == SentenceKind::Heading || sentence.introduces {
            self.labelled = None;
        }
    }

    /// What stands before the output at hand. Counters of a second command at a bare prompt keep what stands before
    /// the first.
    fn scene(&mut self, place: &SourcePlace, keeps: bool) -> Scene {
        if std::mem::take(&mut self.is_new_scene) {
            let statements = &self.out.statements;
            let since = self.output.map_or(0, |output| {
                statements.partition_point(|it| it.place < output)
            });
            let is_same = keeps && since == statements.len() && self.host.name.is_none();
            if !is_same {
                self.scene.statements = since..statements.len();
                self.scene.begins = place.start_byte;
            }
        }
        self.scene.host = self.host(place);
        self.scene.prompt = self.prompt;
        self.scene.looks = self.looks;
        self.scene.is_asked = self.looks && !self.is_apart();
        self.scene.clone()
    }

    fn place_of(&self, range: &Range<usize>) -> SourcePlace {
        let bytes = self.plain.sources(range);
        SourcePlace {
            file: self.file,
            line: self.plain.line(bytes.start),
            start_byte: bytes.start as u64,
            end_byte: bytes.end as u64,
        }
    }

    fn printed<T>(&self, anchor: &Anchor, place: SourcePlace, value: T) -> Printed<T> {
        Printed {
            value,
            printed: Cursor::shown(&self.plain.bytes, anchor.at.clone()),
            place,
        }
    }

    /// The host at a place.
    fn host(&self, place: &SourcePlace) -> TerminalHost {
        match self.map.at("host", place) {
            Some(name) => TerminalHost {
                name: Some(String::from(name)),
                basis: ImportedBasis::Mapped,
            },
            None => self.host.clone(),
        }
    }

    fn step(&mut self, anchor: &Anchor, place: SourcePlace) {
        self.seen(anchor, place);
        match anchor.seen {
            Seen::Command(_) => self.is_new_scene = true,
            Seen::Loose(..) | Seen::Clock(..) | Seen::Uptime(..) | Seen::Heads(_) => {}
            _ => {
                self.output = Some(place);
                self.is_fresh_label = false;
            }
        }
    }

    fn seen(&mut self, anchor: &Anchor, place: SourcePlace) {
        match &anchor.seen {
            Seen::Command(command) => self.command(command, place),
            Seen::Banner(banner) => self.banner(banner, place),
            Seen::Size(name, value) => {
                if self.block.is_some() {
                    let size = self.printed(anchor, place, (*name, *value));
                    self.open(place).size(size);
                }
            }
            Seen::Reverse => {
                if self.block.as_ref().is_some_and(ToolBlock::is_over) {
                    self.end_block();
                }
                self.open(place).is_reversed = true;
            }
            Seen::Connected(connected) => self.connected(connected, place),
            Seen::Report(id) => {
                // A test of which only the server's report is shown.
                if self.block.as_ref().is_some_and(|it| it.is_reported(id)) {
                    self.end_block();
                }
                self.open(place).report(id.clone());
            }
            Seen::Counted(id, name, value) => {
                let figure = self.printed(anchor, place, (*name, *value));
                if self.block.as_ref().is_some_and(|it| !it.takes(id)) {
                    self.end_block();
                }
                self.open(place).stream(id).counted.push(figure);
            }
            Seen::Interval(interval) => {
                self.line(self.printed(anchor, place, (**interval).clone()))
            }
            Seen::Blast(field, value) => self.blast(*field, self.printed(anchor, place, *value)),
            Seen::Receive(packets, seconds) => {
                self.receive(*seconds, self.printed(anchor, place, *packets));
            }
            Seen::Uptime(up, time) => {
                self.uptime = Some(ScreenClock {
                    boot_seconds: Some((time - up).rem_euclid(86_400.0)),
                    time_seconds: *time,
                });
            }
            Seen::Clock(time, step) => self.out.clocks.push((place, *time, *step)),
            Seen::Cpu(states) => {
                let last = self.out.clocks.last().filter(|it| it.0 == place);
                let of_row = last.map(|it| ScreenClock {
                    boot_seconds: None,
                    time_seconds: it.1,
                });
                let line = CpuLine {
                    scene: self.scene(&place, false),
                    states: self.printed(anchor, place, *states),
                    clock: self.uptime.take().or(of_row),
                };
                self.out.cpu.push(line);
            }
            Seen::Loose(value, unit) => {
                let figure = self.printed(anchor, place, (*value, *unit));
                self.out.loose.push(figure);
            }
            Seen::Spoilt(why) => {
                let printed = self.printed(anchor, place, ()).printed;
                self.out.unplaced.push(unplaced(&printed, why, place));
            }
            of_host => self.of_host(of_host, place),
        }
    }

    fn connected(&mut self, connected: &ConnectedLine, place: SourcePlace) {
        if self.block.as_ref().is_some_and(|it| it.refuses(connected)) {
            self.next_of_server();
        }
        self.open(place).connect(connected.clone());
    }

    fn banner(&mut self, banner: &Banner, place: SourcePlace) {
        // A server to which nobody connected yet has no client's banner.
        let is_idle = |it: &ToolBlock| it.is_server == Some(true) && it.streams.is_empty();
        // A client that runs both ways has a server's banner, too.
        let is_client = |it: &ToolBlock| {
            let command = it.command.as_ref();
            command.is_some_and(|it| it.has('c') && !it.has('d') && !it.has('r'))
        };
        let is_next = |it: &ToolBlock| match banner.is_server {
            true => it.has_figures() || is_client(it),
            false => it.is_over() || is_idle(it),
        };
        if self.block.as_ref().is_some_and(is_next) {
            self.end_block();
        }
        self.open(place).banner(banner.clone());
    }

    /// The open block, or a new one.
    fn open(&mut self, place: SourcePlace) -> &mut ToolBlock {
        // Output without a prompt is of the terminal's host if a label or the prompt right before says so.
        let mut host = self.host(&place);
        let is_mapped = host.basis == ImportedBasis::Mapped;
        let label = self.labelled.as_ref();
        let is_label = self.is_fresh_label && self.is_bare_label;
        if let Some(label) = label.filter(|_| is_label && !is_mapped) {
            host = TerminalHost::inferred(Some(label.clone()));
        } else if host.basis == ImportedBasis::Inferred
            || (self.is_apart() || self.tests_nothing) && !is_mapped
        {
            host = TerminalHost::default();
        }
        let is_quoted = self.is_quoted(&place);
        // `With -R:`
        let last = self.leads().next();
        let is_told = |it: &Sentence| it.has("from to towards sends");
        let is_reversed = last.is_some_and(|it| it.has_any("with r|now r|r again") && !is_told(it));
        let block = self.block.get_or_insert_with(|| {
            let mut block = ToolBlock::new(place, host, None);
            block.is_quoted = is_quoted;
            block.is_reversed = is_reversed;
            block.is_server = is_reversed.then_some(false);
            block
        });
        block.place.end_byte = block.place.end_byte.max(place.end_byte);
        block.begins.get_or_insert(place);
        block
    }

    /// Whether a line begins as a quotation or a sentence.
    fn is_quoted(&self, place: &SourcePlace) -> bool {
        let before = self.plain.before(place.start_byte as usize);
        let mut lines = before.rsplit('\n');
        let line = Plain::said(lines.next().unwrap_or(before));
        let above = lines.take(3).find(|it| !it.trim().is_empty());
        let is_within = before.rfind("[quote") > before.rfind("[/quote]");
        is_within
            || line.contains(|it: char| it == '>' || it.is_ascii_alphabetic())
            || above.is_some_and(|it| it.trim_end().ends_with(" wrote:"))
    }

    /// Whether prose stands between the last prompt and here.
    fn is_apart(&self) -> bool {
        let last = self.out.statements.last();
        last.is_some_and(|it| Some(it.place) > self.prompt)
    }

    /// Ends the block, and opens the next one of a running server.
    fn next_of_server(&mut self) {
        let block = self.block.as_ref();
        let server = block.filter(|it| it.is_server == Some(true));
        let again = server.map(|it| {
            // Its place is that of its first line.
            let place = SourcePlace::default();
            let mut next = ToolBlock::new(place, it.host.clone(), it.command.clone());
            let banners = it.banners.iter().filter(|it| it.is_server);
            next.banners = banners.cloned().collect();
            next.is_server = Some(true);
            next
        });
        let is_udp = self.block.as_ref().is_some_and(ToolBlock::is_udp);
        self.end_block();
        self.block = again.or_else(|| {
            let (command, host) = self.servers[usize::from(is_udp)].clone()?;
            let host = TerminalHost::inferred(host.name);
            Some(ToolBlock::new(SourcePlace::default(), host, Some(command)))
        });
    }

    fn end_block(&mut self) {
        let Some(mut block) = self.block.take() else {
            return;
        };
        if block.is_server == Some(true)
            && let Some(command) = &block.command
        {
            let server = (command.clone(), block.host.clone());
            self.servers[usize::from(block.is_udp())] = Some(server);
        }
        let asked = block.command.as_ref().and_then(|it| it.option('c'));
        let peer = block.peer().into_iter().chain(asked);
        let mut peer = peer.filter(|it| it.parse::<IpAddr>().is_err() && !it.contains(['.', ':']));
        let peer = peer.next().map(String::from);
        for stream in &block.streams {
            // Without a connection, as ttcp prints none, the command still names a host.
            peer.iter().for_each(|it| self.out.hosts.add(it));
            if let Some((connected, peer)) = stream.connected.as_ref().zip(peer.as_ref()) {
                let address = self.out.addresses.entry(connected.peer.0.clone());
                address.or_insert_with(|| peer.clone());
            }
            let known = stream.connected.as_ref().zip(block.host.name.as_ref());
            let known = known.filter(|_| block.command.is_some());
            if let Some((connected, name)) = known {
                let address = self.out.addresses.entry(connected.local.0.clone());
                address.or_insert_with(|| name.clone());
            }
        }
        if block.has_figures() {
            let streams = block.streams.iter();
            let lines = streams.flat_map(|it| it.lines.iter().chain(&it.report));
            let first = lines.map(|it| it.place).min();
            // A command may stand far above its output, for the tests of several sections.
            let is_above = |it: &&Statement| block.place.line > 0 && it.place > block.place;
            let mut told = self.out.statements.iter().rev().take_while(is_above);
            let is_apart = told.any(|it| {
                it.sentence.kind == SentenceKind::Heading && Some(it.place) < block.begins
            });
            let is_elsewhere = block.place.line == 0 || block.place.file != self.file || is_apart;
            let first = block.begins.filter(|_| is_apart).or(first);
            block.place = first.filter(|_| is_elsewhere).unwrap_or(block.place);
            self.out.blocks.push(block);
        }
    }

    fn line(&mut self, line: IntervalLine) {
        let place = line.place;
        let is_elsewhere = self.block.as_ref().is_some_and(|block| {
            let here = &self.host.name;
            here.is_some()
                && !self.tests_nothing
                && self.prompt > Some(block.place)
                && block.host.name.is_some()
                && *here != block.host.name
                && block.is_over()
        });
        let last = self.out.statements.last();
        let is_parted = last.is_some_and(|it| Some(it.place) > self.output);
        let is_of_next = self.block.as_ref().is_some_and(|it| {
            let is_new = it.streams.iter().all(|it| it.id != line.value.id);
            it.is_over() && (is_new || line.value.start == 0.0)
        });
        let is_ttcp = line.value.id.starts_with("ttcp");
        // The command at hand is that of the other end.
        let is_elsewhere = is_elsewhere
            || is_ttcp
                && self.block.as_ref().is_some_and(|block| {
                    let sends = block.command.as_ref().map(|it| it.has('c'));
                    sends.is_some_and(|sends| sends != (line.value.id == ttcp::SENDER))
                });
        // Lines of streams may be left out before their sum.
        let is_new = self.block.as_ref().is_none_or(|it| {
            let mut same = it.streams.iter().filter(|it| it.id == line.value.id);
            !same.any(|it| it.total().is_some())
        });
        // One stream has no sum.
        let is_one = self.block.as_ref().is_some_and(|it| {
            let is_parallel = it.command.as_ref().is_some_and(|it| it.has('P'));
            it.streams.len() == 1 && !is_parallel
        });
        let is_sum = line.value.id.starts_with("SUM") && is_new && !is_one;
        if is_elsewhere || (is_parted && !is_sum || is_ttcp) && is_of_next {
            self.end_block();
        }
        match self.open(place).line(line) {
            LineTaken::Yes => {}
            LineTaken::No(line) => {
                self.end_block();
                let _ = self.open(place).line(line);
            }
        }
    }

    fn command(&mut self, command: &ToolCommand, place: SourcePlace) {
        if command.is_prompted {
            self.looks = command.is_of_host();
            self.tests_nothing = command.looks() || command.tool == Tool::Ethtool;
            self.host = TerminalHost {
                name: command.host.clone(),
                basis: match command.host {
                    Some(_) => ImportedBasis::Said,
                    None => ImportedBasis::Unknown,
                },
            };
            if let Some(host) = &command.host {
                self.out.hosts.add(host);
                self.labelled = None;
            } else if let Some(label) = &self.labelled {
                self.host = TerminalHost::inferred(Some(label.clone()));
            }
        }
        // `On oak:` is of the commands below it, and not of what other terminals print next.
        self.is_fresh_label &= !matches!(command.tool, Tool::Sysctl | Tool::Ifconfig);
        // `when we say "busy" it means`
        let is_meant = self.leads().take(2).any(Sentence::explains) && !command.is_prompted;
        let (host, also, is_all) = self.typed_at(command, &place);
        self.prompt = Some(place).filter(|_| command.is_prompted).or(self.prompt);
        let switched = self.out.switches.len();
        let name = host.name.clone();
        self.interface = None;
        match command.tool {
            Tool::Iperf | Tool::Ttcp => {
                self.end_block();
                let is_quoted = self.is_quoted(&place);
                let mut block = ToolBlock::new(place, host, Some(Rc::new(command.clone())));
                block.is_quoted = is_quoted;
                self.block = Some(block);
            }
            Tool::Netblast | Tool::Netsend => {
                self.end_blast();
                self.end_stretch();
                self.blast_command = Some(Rc::new(command.clone()));
                self.has_blasted = false;
            }
            Tool::Netreceive => {
                self.end_stretch();
                self.receiver = host;
            }
            Tool::Ifconfig => {
                let word = |word: &str| command.words.iter().any(|it| it == word);
                self.interface = command.words.first().cloned();
                if word("polling") || word("-polling") {
                    let interface = command.words[0].clone();
                    self.polls_now(&host.name, interface, word("polling"));
                    self.switch(host.name, word("polling"), true, place);
                }
            }
            Tool::Look | Tool::Sysctl | Tool::Ethtool | Tool::Other => {}
        }
        if is_meant {
            self.out.switches.truncate(switched);
            return;
        }
        self.knobs(command, name, place);
        if let Some(also) = also {
            let scope = SwitchScope::Host(also);
            self.out.switches.extend_from_within(switched..);
            let added = self.out.switches.len() - (self.out.switches.len() - switched) / 2;
            let added = &mut self.out.switches[added..];
            added.iter_mut().for_each(|it| it.scope.clone_from(&scope));
        }
        for switch in &mut self.out.switches[switched..] {
            switch.is_told = is_all;
        }
    }

    /// Where a command was typed: the host, a second one that the sentence before it names, and whether that says all.
    fn typed_at(
        &self,
        command: &ToolCommand,
        place: &SourcePlace,
    ) -> (TerminalHost, Option<String>, bool) {
        // `Now on both machines:`
        let sets = matches!(command.tool, Tool::Ifconfig | Tool::Sysctl) && command.host.is_none();
        let last = self.leads().next();
        let last = last.filter(|_| !command.is_prompted || sets);
        let is_all = last.is_some_and(|it| it.parts().all && !it.is_whole);
        // `On oak, for both ports:`, `On oak and on elm, as root:`
        let named = last.map(|it| self.out.hosts.named_in(&it.words));
        let introduces = last.is_some_and(|it| it.introduces && it.find("on") == Some(0));
        let name = |it: &&str| Some(String::from(*it));
        let host = match named.as_deref() {
            _ if is_all => TerminalHost::default(),
            _ if command.is_prompted => self.host(place),
            Some([one]) => TerminalHost::inferred(name(one)),
            Some([one, other]) if introduces => {
                return (TerminalHost::inferred(name(one)), name(other), false);
            }
            _ => TerminalHost::inferred(self.host(place).name),
        };
        (host, None, is_all)
    }

    /// The sentences since the last output and prompt, the last one first.
    fn leads(&self) -> impl Iterator<Item = &Sentence> {
        let since = self.output.max(self.prompt);
        let last = self.out.statements.iter().rev();
        last.take_while(move |it| Some(it.place) > since)
            .map(|it| &it.sentence)
    }

    /// Records the settings other than polling that a command makes.
    fn knobs(&mut self, command: &ToolCommand, host: Option<String>, place: SourcePlace) {
        for (name, value) in command::set_by(command) {
            // An example in an explanation, for all that is known.
            let is_file = command::DEFERRAL.iter().any(|it| name.ends_with(it));
            if is_file && !command.is_prompted && host.is_none() {
                continue;
            }
            if name == command::POLLING_VARIABLE {
                self.switch(host.clone(), value != "0", true, place);
                continue;
            }
            let mut polling = command::LINUX_POLLING.iter().chain([&command::THREADED]);
            if polling.any(|it| name.ends_with(it)) {
                self.switch(host.clone(), value != "0", true, place);
            }
            let key = (host.clone(), name.clone());
            let is_known = self.out.knob_names.contains(&key);
            if !is_known && self.out.knob_names.len() == KNOBS_MAX {
                let why = format!("the text sets more than {KNOBS_MAX} things other than polling");
                let printed = format!("{name}={value}");
                self.out.unplaced.push(unplaced(&printed, &why, place));
                continue;
            }
            self.out.knob_names.insert(key);
            self.out.knobs.push(ToolSetting {
                place,
                host: host.clone(),
                name,
                value,
                before: None,
            });
        }
    }

    /// Records a variable's previous value, which sysctl(8) prints after the command.
    fn was(&mut self, host: Option<&str>, name: &str, before: &str) {
        let last = self.out.knobs.iter_mut().rev().take(KNOBS_TOLD);
        let mut set = last.filter(|it| it.host.as_deref() == host && it.name == name);
        if let Some(knob) = set.next() {
            knob.before = Some(String::from(before));
        }
    }

    /// Records that a host, or all, poll from here on, or that the text leaves it open.
    fn switch(
        &mut self,
        host: Option<String>,
        is_polling: impl Into<Option<bool>>,
        is_command: bool,
        place: SourcePlace,
    ) {
        self.out.switches.push(PollingSwitch {
            place,
            scope: host.map_or(SwitchScope::All, SwitchScope::Host),
            is_polling: is_polling.into(),
            is_command,
            ends: Vec::new(),
            is_lasting: false,
            is_told: false,
            is_heading: false,
            interface: self.interface.clone(),
        });
    }

    /// Records whether an interface polls; returns whether any interface of the host does.
    fn polls_now(&mut self, host: &Option<String>, interface: String, is_polling: bool) -> bool {
        let polling = self.polls.entry(host.clone()).or_default();
        match is_polling {
            true => polling.insert(interface),
            false => polling.remove(&interface),
        };
        !polling.is_empty()
    }

    fn of_host(&mut self, seen: &Seen, place: SourcePlace) {
        let host = self.host(&place);
        match seen {
            Seen::Interface(name) => self.interface = Some(name.clone()),
            Seen::Polls(is_polling) => {
                let interface = self.interface.clone().unwrap_or_default();
                // Without a command that turned it off, the host was started again.
                let polling = self.polls.entry(host.name.clone()).or_default();
                if !is_polling && polling.contains(&interface) {
                    polling.clear();
                }
                let any = self.polls_now(&host.name, interface, *is_polling);
                let last = self.out.statements.last().filter(|_| self.is_apart());
                let is_of_all = last.is_some_and(|it| it.sentence.parts().all);
                let host = host.name.filter(|_| !is_of_all);
                self.switch(host, any, false, place);
            }
            Seen::Address(address) => {
                let is_own = address.starts_with("127.") || address == "::1";
                if let Some(name) = host.name.filter(|_| !is_own) {
                    self.out.addresses.insert(address.clone(), name);
                }
            }
            Seen::Was(name, before) => self.was(host.name.as_deref(), name, before),
            Seen::Reading {
                name,
                value,
                is_cumulative,
            } => {
                let mut tells = POLLING_SWITCHES.iter().chain(&["polling.handlers"]);
                if tells.any(|it| name.ends_with(it)) {
                    let (host, polls) = (host.name.clone(), value != "0");
                    self.interface = None;
                    self.switch(host, polls, false, place);
                }
                let scene = self.scene(&place, true);
                self.out.reading_scenes.push(scene);
                self.out.readings.push(ImportedReading {
                    near_trial: None,
                    host: host.name,
                    name: name.clone(),
                    value: value.clone(),
                    is_cumulative: *is_cumulative,
                    place,
                });
            }
            _ => {}
        }
    }

    fn blast(&mut self, field: BlastField, figure: Printed<f64>) {
        let is_again = |it: &BlastLines| it.lines.iter().any(|(known, _)| *known == field);
        if self.blast.as_ref().is_some_and(is_again) {
            self.end_blast();
        }
        let (mut host, place) = (self.host(&figure.place), figure.place);
        // What the writer does not know is of no command before.
        let since = self.out.statements.iter().rev();
        let mut since = since.take_while(|it| Some(it.place) > self.output);
        let own = self.blast_command.as_ref().and_then(|it| it.host.clone());
        let hosts = &self.out.hosts;
        // `pc07 sends again to pc11`
        let is_anothers = |it: &&str| own.as_deref().is_some_and(|own| own != *it);
        let is_other = |it: &Statement| {
            let sentence = &it.sentence;
            let sends = |it: &str| {
                sentence
                    .find(&format!("{} sends", it.to_ascii_lowercase()))
                    .is_some()
            };
            let mut others = hosts
                .named_in(&sentence.words)
                .into_iter()
                .filter(is_anothers);
            sentence.doubts() || sentence.may_turn() || sentence.is_mine() || others.any(sends)
        };
        if self.blast.is_none() && self.has_blasted && since.any(is_other) {
            (self.blast_command, host) = (None, TerminalHost::default());
        }
        let command = self.blast_command.clone();
        // The prompt of another command says nothing: the tool still runs where it was started.
        let own = command.as_ref().and_then(|it| it.host.as_ref());
        if let Some(own) = own.filter(|own| host.name.as_ref() != Some(*own))
            && host.basis != ImportedBasis::Mapped
        {
            host = TerminalHost::inferred(Some(own.clone()));
        }
        add_to(&mut self.blast, (host, command), place, (field, figure));
    }

    fn end_blast(&mut self) {
        self.has_blasted |= self.blast.is_some();
        self.out.blasts.extend(self.blast.take());
    }

    fn receive(&mut self, seconds: f64, figure: Printed<f64>) {
        if figure.value == 0.0 {
            return self.end_stretch();
        }
        let (mut host, place) = (self.host(&figure.place), figure.place);
        // It still runs where it was started, and not where netblast does.
        let blaster = self.blast_command.as_ref();
        let is_blaster = blaster.is_some_and(|it| it.host == host.name);
        let label = self.labelled.clone().filter(|_| self.is_fresh_label);
        let own = label.or(self.receiver.name.clone());
        if host.basis != ImportedBasis::Mapped && (is_blaster || own.is_some()) {
            host = TerminalHost::inferred(own);
        }
        let line = (figure.value, seconds, figure);
        add_to(&mut self.stretch, (host, None), place, line);
    }

    fn end_stretch(&mut self) {
        self.out.stretches.extend(self.stretch.take());
    }
}

/// Whether words that name a host say no more: `Timer on oak, same values` may be of a setting.
fn is_bare_label(words: &[&str], name: &str) -> bool {
    const BARE: &str = "on the at and of in from it is this that was what s as seen says said shows showed prints printed \
        reports had now then here first last meanwhile same time end side box machine host server client sender receiver \
        output window terminal console iperf iperf3 ttcp netblast netreceive test run for only line lines two three \
        while during with my second middle again";
    let small = name.to_ascii_lowercase();
    let is_name = |word: &str| small.split('-').any(|part| part == word);
    let is_bare = |it: &&str| clause::is_in(it, BARE) || it.len() == 1 || is_name(it);
    words.iter().all(is_bare)
}

/// Whether a line looks like a tool's.
fn is_output(line: &str) -> bool {
    const OUTPUT: &str = "bits/sec|real seconds|send rate|pkts in|% idle|% user|id,";
    OUTPUT.split('|').any(|it| line.contains(it))
}

/// Adds a line to a run, or starts one with it.
fn add_to<T>(
    run: &mut Option<PrintedRun<T>>,
    (host, command): (TerminalHost, Option<Rc<ToolCommand>>),
    place: SourcePlace,
    line: T,
) {
    let run = run.get_or_insert_with(|| PrintedRun {
        place,
        host,
        command,
        lines: Vec::new(),
    });
    run.place.end_byte = place.end_byte;
    run.lines.push(line);
}
