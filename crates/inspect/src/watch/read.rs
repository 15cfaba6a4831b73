//! Readings: all counters at one moment, and the cost of counting.
//!
//! Unreadable counters are absent, and reported once at the start.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::Unseen;
use nicpoll_observe::{
    BpfError, CpuSample, ExactCpu, ExactSample, HostCounters, HostSnapshot, InterruptLine,
    Interrupts, PollRhythm, Programs, RhythmWatch, RunTime, TimedRuns, start_timing,
};
use nicpoll_switch::{Control, LinkInfo, SwitchError, napi_list};
use nicpoll_sys::schedule::{CpuTime, process_cpu_time};

use crate::error::{InspectError, NamedStep, chosen, unseen};
use crate::interrupts::{interrupts, look_for_storms, softirqs};

/// Polls of an interface's NAPI instances since the previous reading.
#[derive(Clone, Debug, Default)]
pub struct InterfacePolls {
    /// Sum over the instances; `None` in the interval in which watching them started.
    pub rhythm: Option<PollRhythm>,
    /// Whether it has NAPI instances.
    pub has_napi: bool,
    /// Kind of virtual device; empty for a physical one.
    pub kind: String,
}

/// Counters at one moment, except `polls`, which is since the previous reading.
pub struct WatchReading {
    pub at: Instant,
    /// The watched interfaces, by index.
    pub watched: Vec<u32>,
    pub namespace: HostSnapshot,
    /// By interface index; `None` if polls cannot be watched.
    pub polls: Option<BTreeMap<u32, InterfacePolls>>,
    pub cpu: CpuSample,
    pub exact: Option<ExactSample>,
    /// `None` if storms are not detected.
    pub storms: Option<Interrupts>,
    /// Interrupt vectors without events here.
    pub unseen_vectors: Vec<&'static str>,
    pub interrupts: Option<Vec<InterruptLine>>,
    pub process: CpuTime,
}

/// Ids of NAPI instances with their timeouts in ns, by interface index.
type Instances = BTreeMap<u32, Vec<(u32, u64)>>;

/// Reads the namespace of its thread.
pub struct WatchReader {
    names: Vec<String>,
    storm_threshold: u64,
    control: Control,
    counters: HostCounters,
    exact: Option<ExactCpu>,
    polls: Option<InstanceReader>,
    unseen: Vec<Unseen>,
}

/// Watches the present instances, and new ones as soon as they appear.
struct InstanceReader {
    watch: RhythmWatch,
    instances: Instances,
    /// By NAPI id, at the previous reading.
    then: BTreeMap<u32, PollRhythm>,
}

impl WatchReader {
    /// Prepares to read the named interfaces, or all but the loopback without names.
    ///
    /// # Errors
    /// When a name is not that of an interface.
    pub fn new(names: &[String], storm_threshold: u64) -> Result<Self, InspectError> {
        let mut reader = WatchReader {
            names: names.to_vec(),
            storm_threshold,
            control: Control::new(),
            counters: HostCounters::of_caller(),
            exact: None,
            polls: None,
            unseen: Vec::new(),
        };
        let links = reader.control.links()?;
        chosen(&links, names, "watched")?;
        let watched = reader.watched(&links);
        reader.begin_polls(&watched);
        reader.begin_exact();
        Ok(reader)
    }

    /// Returns what cannot be observed, with remedies.
    pub fn unseen(&self) -> &[Unseen] {
        &self.unseen
    }

    /// Takes a reading.
    pub fn read(&mut self) -> Result<WatchReading, InspectError> {
        let links = self.control.links()?;
        let watched = self.watched(&links);
        let instances = instances(&mut self.control, &watched);
        let mut polls = match (&mut self.polls, instances) {
            (Some(reader), Ok(instances)) => Some(reader.read(instances)?),
            _ => None,
        };
        for LinkInfo { interface, .. } in links {
            let polls = polls.as_mut();
            if let Some(own) = polls.and_then(|polls| polls.get_mut(&interface.ifindex)) {
                own.kind = interface.driver;
            }
        }
        let exact = self.exact.as_ref();
        Ok(WatchReading {
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
            interrupts: interrupts().map(|hard| [hard, softirqs()].concat()),
            process: process_cpu_time().doing("reading this program's own CPU time")?,
        })
    }

    /// Measures the BPF programs' share of one core over `time`; `None` without programs.
    pub fn bpf_cpu_ratio(&mut self, time: Duration) -> Result<Option<f64>, BpfError> {
        let polls: Vec<_> = self.polls.iter().map(|it| &it.watch.programs).collect();
        let exact = self.exact.as_mut();
        exact
            .map(|exact| bpf_cpu_ratio(exact, &polls, time))
            .transpose()
    }

    fn watched(&self, links: &[LinkInfo]) -> Vec<u32> {
        let is_watched = |link: &&LinkInfo| match self.names.is_empty() {
            true => !link.is_loopback,
            false => self.names.contains(&link.interface.name),
        };
        let watched = links.iter().filter(is_watched);
        watched.map(|link| link.interface.ifindex).collect()
    }

    fn begin_polls(&mut self, watched: &[u32]) {
        let begun = instances(&mut self.control, watched)
            .map_err(|error| napi_list().err().unwrap_or(error).to_string())
            .and_then(|instances| {
                InstanceReader::begin(instances).map_err(|error| format!("{error}; run it as root"))
            });
        match begun {
            Ok(polls) => self.polls = Some(polls),
            Err(why) => self.unseen.push(unseen("polls", why)),
        }
    }

    fn begin_exact(&mut self) {
        let begun = look_for_storms(self.storm_threshold);
        match begun {
            Ok(exact) => self.exact = Some(exact),
            Err(error) => {
                let why = format!("{error}; run it as root");
                let what = "exact CPU time and interrupt storms";
                self.unseen.push(unseen(what, why));
            }
        }
    }
}

impl InstanceReader {
    fn begin(instances: Instances) -> Result<Self, BpfError> {
        let all: Vec<(u32, u64)> = instances.values().flatten().copied().collect();
        Ok(InstanceReader {
            watch: RhythmWatch::begin(&all)?,
            then: all
                .iter()
                .map(|(id, _)| (*id, PollRhythm::default()))
                .collect(),
            instances,
        })
    }

    /// Returns the instances' polls since the previous reading. If the set of instances has changed, watching restarts.
    fn read(
        &mut self,
        instances: Instances,
    ) -> Result<BTreeMap<u32, InterfacePolls>, InspectError> {
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
            let own = InterfacePolls {
                rhythm,
                has_napi,
                kind: String::new(),
            };
            polls.insert(*ifindex, own);
        }
        if instances != self.instances {
            *self = InstanceReader::begin(instances)?;
        }
        Ok(polls)
    }
}

/// Lists the NAPI instances of interfaces; none for a removed interface.
fn instances(control: &mut Control, watched: &[u32]) -> Result<Instances, SwitchError> {
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

/// Measures the programs' share of one core over `time`, by the kernel's timing, and subtracts the cost of timing.
pub fn bpf_cpu_ratio(
    exact: &mut ExactCpu,
    others: &[&Programs],
    time: Duration,
) -> Result<f64, BpfError> {
    let ((runs, seconds), idle) = exact.with_idle_program(|exact| {
        let timing = start_timing()?;
        let (before, began) = (timed_runs(exact, others)?, Instant::now());
        thread::sleep(time);
        let seconds = began.elapsed().as_secs_f64();
        let after = timed_runs(exact, others)?;
        drop(timing);
        let runs = after.iter().zip(before);
        let runs = runs.filter_map(|(after, before)| after.since(before));
        Ok((runs.collect::<Vec<RunTime>>(), seconds))
    })?;
    let timing_ns = idle.map_or(0.0, |idle| idle.ns_per_run);
    Ok(own_ns(&runs, timing_ns) / 1e9 / seconds)
}

/// Reads the run times, one entry for each set of programs.
fn timed_runs(exact: &mut ExactCpu, others: &[&Programs]) -> Result<Vec<TimedRuns>, BpfError> {
    let others = others.iter().map(|programs| programs.timed_runs());
    std::iter::once(exact.programs.timed_runs())
        .chain(others)
        .collect()
}

fn own_ns(runs: &[RunTime], timing_ns: f64) -> f64 {
    runs.iter()
        .map(|run| run.runs as f64 * (run.ns_per_run - timing_ns).max(0.0))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timing_is_taken_off_each_run_and_none_is_below_nothing() {
        let run = |runs, ns_per_run| RunTime { runs, ns_per_run };
        let runs = [run(10, 130.0), run(4, 200.0)];
        assert_eq!(own_ns(&runs, 0.0), 2_100.0);
        assert_eq!(own_ns(&runs, 80.0), 980.0);
        assert_eq!(own_ns(&runs, 150.0), 200.0);
    }
}
