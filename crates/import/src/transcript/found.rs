//! What terminals showed, as the walk through a text finds it: material for trials.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use nicpoll_model::{ImportedBasis, SourcePlace, UnplacedFigure};

use super::block::{Block, Counted, Host};
use super::command::Command;
use super::netrate::BlastField;
use crate::units::Unit;

/// One run of netblast or netsend.
#[derive(Clone, Debug)]
pub struct Blast {
    pub place: SourcePlace,
    pub host: Host,
    pub command: Option<Rc<Command>>,
    pub fields: Vec<(BlastField, Counted)>,
}

/// Lines of netreceive between two of silence.
#[derive(Clone, Debug)]
pub struct Stretch {
    pub place: SourcePlace,
    pub host: Host,
    /// Packets and seconds of each line, and where it stands.
    pub lines: Vec<(f64, f64, Counted)>,
}

/// A line of CPU states.
#[derive(Clone, Debug)]
pub struct CpuLine {
    pub host: Host,
    pub states: [f64; 5],
    pub printed: String,
    pub place: SourcePlace,
    /// The words between it and what was found before it.
    pub before: String,
}

/// Something that a host prints of itself.
#[derive(Clone, Debug)]
pub struct Read {
    pub host: Host,
    pub name: String,
    pub value: String,
    pub is_cumulative: bool,
    pub place: SourcePlace,
}

/// What says that a host polls from here on, or does not.
#[derive(Clone, Debug)]
pub struct Switch {
    pub place: SourcePlace,
    /// The host; none for all.
    pub host: Option<String>,
    pub is_polling: bool,
    /// Whether a command changed it here: before, it was the other way.
    pub is_command: bool,
    pub basis: ImportedBasis,
}

/// What a command sets beside polling.
#[derive(Clone, Debug)]
pub struct Knob {
    pub place: SourcePlace,
    /// The host; none where nothing says it.
    pub host: Option<String>,
    pub name: String,
    pub value: String,
    /// What it was before, where the command told that.
    pub before: Option<String>,
}

/// A figure in prose or in a table.
#[derive(Clone, Debug)]
pub struct Loose {
    pub place: SourcePlace,
    pub printed: String,
    pub value: f64,
    pub unit: Unit,
}

/// All that was found.
#[derive(Debug, Default)]
pub struct Found {
    pub blocks: Vec<Block>,
    pub blasts: Vec<Blast>,
    pub stretches: Vec<Stretch>,
    pub cpu: Vec<CpuLine>,
    pub readings: Vec<Read>,
    pub switches: Vec<Switch>,
    pub knobs: Vec<Knob>,
    /// Host and name of each of them.
    pub knob_names: HashSet<(Option<String>, String)>,
    pub loose: Vec<Loose>,
    pub unplaced: Vec<UnplacedFigure>,
    /// Hosts by their addresses, as ifconfig and iperf told them.
    pub addresses: HashMap<String, String>,
    /// Names of hosts in prompts.
    pub hosts: HostNames,
}

/// Names of hosts.
#[derive(Debug, Default)]
pub struct HostNames {
    all: HashSet<String>,
    /// The first of them in small letters, and as they are.
    looked_for: Vec<(String, String)>,
}

impl HostNames {
    /// Names that are looked for in other words: each is held against all of these.
    const LOOKED_FOR_MAX: usize = 64;

    pub fn add(&mut self, name: &str) {
        if !self.all.contains(name) {
            self.all.insert(String::from(name));
            if self.looked_for.len() < Self::LOOKED_FOR_MAX {
                self.looked_for
                    .push((name.to_ascii_lowercase(), String::from(name)));
            }
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.all.contains(name)
    }

    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The name that stands last in words of small letters.
    pub fn last_in(&self, words: &str) -> Option<&str> {
        let found = self.looked_for.iter();
        let found = found.filter_map(|(small, name)| Some((words.rfind(small.as_str())?, name)));
        found.max().map(|(_, name)| name.as_str())
    }
}
