//! Reads a text from beginning to end, tracking the current host, command and block.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use nicpoll_model::{ImportedBasis, ImportedReading, SourcePlace};

use crate::cursor::Cursor;
use crate::lines;
use crate::lines::seen::{Anchor, Banner, BlastField, ConnectedLine, Seen, Tool, ToolCommand};
use crate::lines::{Budget, command};
use crate::plain::Plain;
use crate::transcript::found::{
    BlastLines, CpuLine, Found, IntervalLine, LineTaken, PollingSwitch, Printed, PrintedRun,
    Stretch, TerminalHost, ToolBlock, ToolSetting, unplaced,
};
use crate::transcript::setting::Map;

/// Most settings other than polling, since each trial is compared with all.
const KNOBS_MAX: usize = 32;
/// Most variables that one command sets and prints.
const KNOBS_TOLD: usize = 16;

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
    /// The running servers: TCP, then UDP.
    servers: [Option<(Rc<ToolCommand>, TerminalHost)>; 2],
    last_end: usize,
}

impl<'a> Walk<'a> {
    /// Adds the findings of a file; `None` when they exceed the budget.
    pub fn through(
        plain: &'a Plain<'a>,
        file: u32,
        map: &'a Map<'a>,
        budget: &mut Budget,
        out: &'a mut Found,
    ) -> Option<()> {
        let mut walk = Walk {
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
            servers: [None, None],
            last_end: 0,
        };
        lines::scan(plain, budget, |anchor| {
            let place = walk.place(&anchor);
            if walk.map.at("skip", &place).is_none() {
                walk.step(&anchor, place);
            }
            walk.last_end = anchor.at.end;
        })?;
        walk.end_block();
        walk.end_blast();
        walk.end_stretch();
        Some(())
    }

    fn place(&self, anchor: &Anchor) -> SourcePlace {
        let bytes = self.plain.sources(&anchor.at);
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
        match &anchor.seen {
            Seen::Command(command) => self.command(command, place),
            Seen::Banner(banner) => self.banner(banner, place),
            Seen::Size(name, value) => {
                if self.block.is_some() {
                    let size = self.printed(anchor, place, (*name, *value));
                    self.open(place).size(size);
                }
            }
            Seen::Connected(connected) => self.connected(connected, place),
            Seen::Report(id) => self.open(place).report(id.clone()),
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
            Seen::Cpu(states) => self.out.cpu.push(CpuLine {
                host: self.host(&place),
                states: self.printed(anchor, place, *states),
                before: self.words_before(anchor),
            }),
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
        let is_next = |it: &ToolBlock| it.is_over() || (banner.is_server && it.has_figures());
        if self.block.as_ref().is_some_and(is_next) {
            self.end_block();
        }
        self.open(place).banner(banner.clone());
    }

    fn words_before(&self, anchor: &Anchor) -> String {
        let from = self.last_end.max(anchor.at.start.saturating_sub(200));
        Cursor::shown(
            &self.plain.bytes,
            from.min(anchor.at.start)..anchor.at.start,
        )
    }

    /// The open block, or a new one.
    fn open(&mut self, place: SourcePlace) -> &mut ToolBlock {
        let host = self.host(&place);
        let block = self
            .block
            .get_or_insert_with(|| ToolBlock::new(place, host, None));
        block.place.end_byte = block.place.end_byte.max(place.end_byte);
        block
    }

    /// Ends the block, and opens the next one of a running server.
    fn next_of_server(&mut self) {
        let block = self.block.as_ref();
        let server = block.filter(|it| it.is_server == Some(true));
        let again = server.map(|it| {
            let mut next = ToolBlock::new(it.place, it.host.clone(), it.command.clone());
            let banners = it.banners.iter().filter(|it| it.is_server);
            next.banners = banners.cloned().collect();
            next.is_server = Some(true);
            next
        });
        let is_udp = self.block.as_ref().is_some_and(ToolBlock::is_udp);
        self.end_block();
        self.block = again.or_else(|| {
            let (command, host) = self.servers[usize::from(is_udp)].clone()?;
            let host = TerminalHost {
                name: host.name,
                basis: ImportedBasis::Inferred,
            };
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
        for stream in &block.streams {
            let known = stream.connected.as_ref().zip(block.host.name.as_ref());
            if let Some((connected, name)) = known {
                let address = self.out.addresses.entry(connected.local.0.clone());
                address.or_insert_with(|| name.clone());
            }
        }
        if block.has_figures() {
            let streams = block.streams.iter();
            let lines = streams.flat_map(|it| it.lines.iter().chain(&it.report));
            let first = lines.map(|it| it.place).min();
            let is_elsewhere = block.place.line == 0 || block.place.file != self.file;
            block.place = first.filter(|_| is_elsewhere).unwrap_or(block.place);
            self.out.blocks.push(block);
        }
    }

    fn line(&mut self, line: IntervalLine) {
        let place = line.place;
        let is_elsewhere = self.block.as_ref().is_some_and(|block| {
            let here = &self.host.name;
            here.is_some()
                && block.host.name.is_some()
                && *here != block.host.name
                && block.is_over()
        });
        if is_elsewhere {
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
            self.host = TerminalHost {
                name: command.host.clone(),
                basis: match command.host {
                    Some(_) => ImportedBasis::Said,
                    None => ImportedBasis::Unknown,
                },
            };
            if let Some(host) = &command.host {
                self.out.hosts.add(host);
            }
        }
        let host = match command.is_prompted {
            true => self.host(&place),
            false => TerminalHost {
                basis: ImportedBasis::Inferred,
                ..self.host(&place)
            },
        };
        match command.tool {
            Tool::Iperf => {
                self.end_block();
                self.block = Some(ToolBlock::new(place, host, Some(Rc::new(command.clone()))));
            }
            Tool::Netblast | Tool::Netsend => {
                self.end_blast();
                self.blast_command = Some(Rc::new(command.clone()));
            }
            Tool::Netreceive => self.end_stretch(),
            Tool::Ifconfig => {
                let word = |word: &str| command.words.iter().any(|it| it == word);
                if word("polling") || word("-polling") {
                    let interface = command.words[0].clone();
                    self.polls_now(&host.name, interface, word("polling"));
                    self.switch(host.name, word("polling"), true, place);
                }
            }
            Tool::Look | Tool::Sysctl | Tool::Ethtool => {}
        }
        self.knobs(command, self.host(&place).name, place);
    }

    /// Records the settings other than polling that a command makes.
    fn knobs(&mut self, command: &ToolCommand, host: Option<String>, place: SourcePlace) {
        for (name, value) in command::set_by(command) {
            if name == command::POLLING_VARIABLE {
                self.switch(host.clone(), value != "0", true, place);
                continue;
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

    fn switch(
        &mut self,
        host: Option<String>,
        is_polling: bool,
        is_command: bool,
        place: SourcePlace,
    ) {
        self.out.switches.push(PollingSwitch {
            place,
            host,
            is_polling,
            is_command,
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
                let any = self.polls_now(&host.name, interface, *is_polling);
                self.switch(host.name, any, false, place);
            }
            Seen::Address(address) => {
                let is_own = address.starts_with("127.") || address == "::1";
                if let Some(name) = host.name.filter(|_| !is_own) {
                    self.out.addresses.insert(address.clone(), name);
                }
            }
            Seen::Heading(is_polling) => self.switch(None, *is_polling, false, place),
            Seen::Was(name, before) => self.was(host.name.as_deref(), name, before),
            Seen::Reading {
                name,
                value,
                is_cumulative,
            } => {
                if name == "kern.polling.handlers" {
                    let (host, polls) = (host.name.clone(), value != "0");
                    self.switch(host, polls, false, place);
                }
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
        let (host, place) = (self.host(&figure.place), figure.place);
        let command = self.blast_command.clone();
        add_to(&mut self.blast, (host, command), place, (field, figure));
    }

    fn end_blast(&mut self) {
        self.out.blasts.extend(self.blast.take());
    }

    fn receive(&mut self, seconds: f64, figure: Printed<f64>) {
        if figure.value == 0.0 {
            return self.end_stretch();
        }
        let (host, place) = (self.host(&figure.place), figure.place);
        let line = (figure.value, seconds, figure);
        add_to(&mut self.stretch, (host, None), place, line);
    }

    fn end_stretch(&mut self) {
        self.out.stretches.extend(self.stretch.take());
    }
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
