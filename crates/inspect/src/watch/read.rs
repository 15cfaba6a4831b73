//! Everything that is counted, read at one moment.
//!
//! What must hold: what cannot be read is absent by itself and is named once, at the beginning.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nicpoll_model::Unseen;
use nicpoll_observe::{
    BpfError, CpuSample, ExactCpu, ExactSample, HostCounters, HostSnapshot, InterruptLine,
    Interrupts, PollRhythm, RhythmWatch, TimedPrograms,
};
use nicpoll_switch::{Control, ControlError, LinkFacts};
use nicpoll_sys::schedule::{CpuTime, process_cpu_time};

use super::cost::bpf_cpu_ratio;
use crate::InspectError;
use crate::error::Doing;
use crate::show::interrupts;
use crate::storms::look_for_storms;

/// What an interface's NAPI instances did since the reading before.
#[derive(Clone, Debug, Default)]
pub struct Polls {
    /// All instances together; `None` in the interval in which they came to be watched.
    pub rhythm: Option<PollRhythm>,
    /// Whether there are any.
    pub has_napi: bool,
    /// Kind of virtual device; `None` for one that is not virtual.
    pub kind: Option<String>,
}

/// The counts of one moment, but for `polls`, which are since the reading before.
pub struct Reading {
    pub at: Instant,
    /// The watched interfaces, by index.
    pub watched: Vec<u32>,
    pub namespace: HostSnapshot,
    /// By index of interface; `None` when polls cannot be watched.
    pub polls: Option<BTreeMap<u32, Polls>>,
    pub cpu: CpuSample,
    pub exact: Option<ExactSample>,
    /// `None` when storms are not looked for.
    pub storms: Option<Interrupts>,
    /// Vectors of the CPU whose interrupts no event shows here.
    pub unseen_vectors: Vec<&'static str>,
    pub interrupts: Option<Vec<InterruptLine>>,
    pub process: CpuTime,
}

/// Ids of NAPI instances and their timeouts in ns, by index of interface.
type Instances = BTreeMap<u32, Vec<(u32, u64)>>;

/// Reads the namespace that its thread is in.
pub struct Reader {
    names: Vec<String>,
    storm_threshold: u64,
    control: Control,
    counters: HostCounters,
    exact: Option<ExactCpu>,
    polls: Option<PollReader>,
    unseen: Vec<Unseen>,
}

/// Watches the instances that there are, and others as soon as they come.
struct PollReader {
    watch: RhythmWatch,
    instances: Instances,
    /// By id, at the reading before.
    then: BTreeMap<u32, PollRhythm>,
}

impl Reader {
    /// Readies what can be read of these interfaces, or of all but the loopback when none is named.
    ///
    /// # Errors
    /// When a name is no interface's.
    pub fn new(names: &[String], storm_threshold: u64) -> Result<Self, InspectError> {
        let mut reader = Reader {
            names: names.to_vec(),
            storm_threshold,
            control: Control::new(),
            counters: HostCounters::of_caller(),
            exact: None,
            polls: None,
            unseen: Vec::new(),
        };
        let links = reader.control.inventory().doing("listing interfaces")?;
        check_names(names, &links)?;
        let watched = reader.watched(&links);
        reader.begin_polls(&watched);
        reader.begin_exact();
        Ok(reader)
    }

    /// What cannot be seen, and what it takes.
    pub fn unseen(&self) -> &[Unseen] {
        &self.unseen
    }

    /// Reads everything now.
    pub fn read(&mut self) -> Result<Reading, InspectError> {
        let links = self.control.inventory().doing("listing interfaces")?;
        let watched = self.watched(&links);
        let instances = instances(&mut self.control, &watched);
        let mut polls = match (&mut self.polls, instances) {
            (Some(reader), Ok(instances)) => Some(reader.read(instances)?),
            _ => None,
        };
        for link in links {
            let own = polls
                .as_mut()
                .and_then(|polls| polls.get_mut(&link.ifindex));
            if let Some(own) = own {
                own.kind = link.kind;
            }
        }
        let exact = self.exact.as_ref();
        Ok(Reading {
            at: Instant::now(),
            watched,
            namespace: self.counters.snapshot(),
            polls,
            cpu: CpuSample::now().doing("reading CPU time")?,
            exact: exact.map(ExactCpu::read).transpose()?,
            storms: match exact {
                Some(exact) if self.storm_threshold > 0 => Some(exact.interrupts()?),
                _ => None,
            },
            unseen_vectors: exact.map_or_else(Vec::new, |exact| exact.unseen_vectors().to_vec()),
            interrupts: interrupts(),
            process: process_cpu_time().doing("reading this program's own CPU time")?,
        })
    }

    /// The BPF programs' share of one core, timed for so long; `None` when there are none.
    pub fn bpf_cpu_ratio(&mut self, time: Duration) -> Result<Option<f64>, BpfError> {
        let polls = self
            .polls
            .iter()
            .map(|polls| &polls.watch as &dyn TimedPrograms);
        let polls: Vec<&dyn TimedPrograms> = polls.collect();
        let exact = self.exact.as_mut();
        exact
            .map(|exact| bpf_cpu_ratio(exact, &polls, time))
            .transpose()
    }

    fn watched(&self, links: &[LinkFacts]) -> Vec<u32> {
        let is_watched = |link: &&LinkFacts| {
            if self.names.is_empty() {
                !link.is_loopback
            } else {
                self.names.contains(&link.name)
            }
        };
        let watched = links.iter().filter(is_watched);
        watched.map(|link| link.ifindex).collect()
    }

    fn begin_polls(&mut self, watched: &[u32]) {
        let begun = instances(&mut self.control, watched)
            .map_err(|error| format!("{error}; Linux 6.8 or later lists NAPI instances"))
            .and_then(|instances| {
                PollReader::begin(instances).map_err(|error| format!("{error}; run it as root"))
            });
        match begun {
            Ok(polls) => self.polls = Some(polls),
            Err(why) => self.unseen.push(Unseen {
                what: String::from("polls"),
                why,
            }),
        }
    }

    fn begin_exact(&mut self) {
        let begun = look_for_storms(self.storm_threshold);
        match begun {
            Ok(exact) => self.exact = Some(exact),
            Err(error) => self.unseen.push(Unseen {
                what: String::from("exact CPU time and interrupt storms"),
                why: format!("{error}; run it as root"),
            }),
        }
    }
}

impl PollReader {
    fn begin(instances: Instances) -> Result<Self, BpfError> {
        let all: Vec<(u32, u64)> = instances.values().flatten().copied().collect();
        Ok(PollReader {
            watch: RhythmWatch::begin(&all)?,
            then: all
                .iter()
                .map(|(id, _)| (*id, PollRhythm::default()))
                .collect(),
            instances,
        })
    }

    /// What the instances did since the reading before. When others have come by now, all are watched anew.
    fn read(&mut self, instances: Instances) -> Result<BTreeMap<u32, Polls>, InspectError> {
        let mut polls = BTreeMap::new();
        for (ifindex, of_interface) in &instances {
            let mut rhythm = Some(PollRhythm::default());
            for (id, _) in of_interface {
                rhythm = match (rhythm, self.then.get_mut(id)) {
                    (Some(sum), Some(then)) => {
                        let now = self.watch.read(*id)?;
                        let since = now.since(then);
                        *then = now;
                        Some(sum.plus(&since))
                    }
                    _ => None,
                };
            }
            let has_napi = !of_interface.is_empty();
            let own = Polls {
                rhythm,
                has_napi,
                kind: None,
            };
            polls.insert(*ifindex, own);
        }
        if instances != self.instances {
            *self = PollReader::begin(instances)?;
        }
        Ok(polls)
    }
}

/// The NAPI instances of the interfaces. One that has gone meanwhile has none.
fn instances(control: &mut Control, watched: &[u32]) -> Result<Instances, ControlError> {
    let mut instances = BTreeMap::new();
    for ifindex in watched {
        let napis = control.napis(*ifindex)?;
        let of_interface = napis
            .iter()
            .map(|napi| (napi.id, napi.gro_flush_timeout_ns.unwrap_or(0)));
        instances.insert(*ifindex, of_interface.collect());
    }
    Ok(instances)
}

fn check_names(names: &[String], links: &[LinkFacts]) -> Result<(), InspectError> {
    let is_here = |name: &&String| links.iter().any(|link| link.name == **name);
    match names.iter().find(|name| !is_here(name)) {
        None => Ok(()),
        Some(name) => Err(InspectError::no_interface(name, links, "watched")),
    }
}
