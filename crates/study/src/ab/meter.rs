//! Everything that is counted of a live comparison, read at one moment inside the interface's namespace.
//!
//! What must hold: what cannot be read is absent by itself and is named once, at the beginning. The programs that
//! count run under both settings from the first block to the last, so that they cost both alike as far as events
//! are alike; what they cost is measured in the part of each block that is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_inspect::bpf_cpu_ratio;
use nicpoll_model::Unseen;
use nicpoll_model::ab::AbDelayKind;
use nicpoll_observe::{
    CpuSample, ExactCpu, ExactCpuOptions, ExactSample, Histogram, HostCounters, HostSnapshot,
    InterruptLine, PollRhythm, RhythmWatch, Stamped, ThreadTimes, TimedPrograms, parse_interrupts,
};
use nicpoll_stats::ab::{PollCount, STEP_SECONDS};
use nicpoll_switch::Control;

use super::delays::Delays;
use super::programs;
use super::queues::{self, Queues};
use crate::error::StudyError;
use crate::foreign::own_process;

/// A NAPI instance of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its interface, by index.
    pub ifindex: u32,
    /// Its id.
    pub napi_id: u32,
    /// Its interrupt's number, where it has one.
    pub irq: Option<u32>,
    /// The receive queue that it serves, where the driver says so.
    pub queue: Option<u32>,
}

/// CPU time by events.
#[derive(Clone, Debug)]
pub struct ExactReading {
    /// Of each core.
    pub cores: ExactSample,
    /// Of each thread.
    pub threads: Vec<ThreadTimes>,
    /// Processes with a socket of the namespace; `None` where processes cannot be told.
    pub of_traffic: Option<BTreeSet<u32>>,
    /// This process.
    pub own_process: u32,
}

/// The counts of one moment.
#[derive(Clone, Debug)]
pub struct Reading {
    /// When.
    pub at: Instant,
    /// Interfaces and protocols.
    pub host: HostSnapshot,
    /// CPU time by events; `None` where the kernel does not allow it.
    pub exact: Option<ExactReading>,
    /// CPU time by the clock tick.
    pub sampled: CpuSample,
    /// Polls by NAPI instance; `None` where they cannot be watched.
    pub rhythms: Option<BTreeMap<u32, PollRhythm>>,
    /// Hardware interrupts.
    pub interrupts: Option<Vec<InterruptLine>>,
    /// Soft interrupts that receive, of all CPUs.
    pub receive_softirqs: Option<u64>,
    /// Delays of each kind that is seen.
    pub delays: BTreeMap<AbDelayKind, Histogram>,
    /// What the time stamps of cards were good for; `None` where no card stamps packets.
    pub stamped: Option<Stamped>,
    /// What drivers count for each receive queue.
    pub queues: Queues,
}

/// Reads the namespace that its thread is in.
pub struct Meter {
    counters: HostCounters,
    /// Asks for the counters of queues.
    control: Control,
    exact: Option<(ExactCpu, u32)>,
    rhythms: Option<RhythmWatch>,
    delays: Delays,
    members: Vec<u32>,
    instances: Vec<Instance>,
    packets_per_second: f64,
    unseen: Vec<Unseen>,
}

impl Meter {
    /// Begins to count for the members, by index.
    pub fn begin(members: &[u32]) -> Self {
        let mut meter = Meter {
            counters: HostCounters::of_caller(),
            control: Control::new(),
            exact: None,
            rhythms: None,
            delays: Delays::default(),
            members: members.to_vec(),
            instances: Vec::new(),
            packets_per_second: 0.0,
            unseen: Vec::new(),
        };
        match begin_exact() {
            Ok(exact) => meter.exact = Some(exact),
            Err(error) => meter.cannot_see("exact CPU time", &error.to_string()),
        }
        meter.watch_instances();
        meter
    }

    /// Watches the polls of the instances that the members have now. Those watched before begin anew.
    pub fn watch_instances(&mut self) {
        self.instances = instances(&mut Control::new(), &self.members);
        let all: Vec<(u32, u64)> = self
            .instances
            .iter()
            .map(|instance| (instance.napi_id, 0))
            .collect();
        match RhythmWatch::begin(&all) {
            Ok(watch) => self.rhythms = Some(watch),
            Err(error) => self.cannot_see("polls", &error.to_string()),
        }
        if let Err(error) = self.delays.watch(self.instances.iter()) {
            self.cannot_see("delays of packets", &error.to_string());
        }
    }

    /// Begins to measure delays, of some of so many packets a second. Returns what cannot be seen of them.
    pub fn begin_delays(&mut self, packets_per_second: f64) -> Vec<Unseen> {
        self.packets_per_second = packets_per_second;
        let own = self.exact.as_ref().map(|(_, own)| *own);
        let (delays, unseen) = Delays::begin(&self.instances, packets_per_second, own);
        self.delays = delays;
        unseen
    }

    /// Takes the programs that count out of the kernel's way.
    pub fn pause(&mut self) -> Result<(), StudyError> {
        self.rhythms = None;
        self.delays = Delays::default();
        match &mut self.exact {
            Some((exact, _)) => Ok(exact.detach()?),
            None => Ok(()),
        }
    }

    /// Counts again what was counted before the pause.
    pub fn resume(&mut self) -> Result<(), StudyError> {
        if let Some((exact, _)) = &mut self.exact {
            exact.attach()?;
        }
        self.watch_instances();
        self.begin_delays(self.packets_per_second);
        Ok(())
    }

    /// The instances whose polls are watched.
    pub fn instances(&self) -> &[Instance] {
        &self.instances
    }

    /// What cannot be seen, and why.
    pub fn unseen(&self) -> &[Unseen] {
        &self.unseen
    }

    /// Interfaces and protocols alone.
    pub fn counters(&mut self) -> HostSnapshot {
        self.counters.snapshot()
    }

    /// Reads again and again what all instances polled, until a time. Nothing where polls cannot be watched.
    pub fn follow_polls(
        &self,
        since: Instant,
        until: Instant,
    ) -> Result<Vec<PollCount>, StudyError> {
        let mut counts = Vec::new();
        while let (Some(watch), true) = (&self.rhythms, Instant::now() < until) {
            let mut all = PollRhythm::default();
            for instance in &self.instances {
                all = all.plus(&watch.read(instance.napi_id)?);
            }
            counts.push(PollCount {
                seconds: since.elapsed().as_secs_f64(),
                polls: all.polls,
                packets: all.frames,
            });
            thread::sleep(Duration::from_secs_f64(STEP_SECONDS));
        }
        thread::sleep(until.saturating_duration_since(Instant::now()));
        Ok(counts)
    }

    /// Reads everything now.
    pub fn read(&mut self) -> Result<Reading, StudyError> {
        let exact = match &self.exact {
            Some((exact, own)) => Some(ExactReading {
                threads: exact.threads()?,
                // Last: its length is no part of what was read before.
                cores: exact.read()?,
                of_traffic: (*own == std::process::id()).then(programs::with_sockets),
                own_process: *own,
            }),
            None => None,
        };
        if let Some(exact) = &exact {
            self.delays.watch_programs(exact)?;
        }
        let rhythms = match &self.rhythms {
            Some(watch) => {
                let of = |instance: &Instance| {
                    let id = instance.napi_id;
                    Ok::<_, StudyError>((id, watch.read(id)?))
                };
                Some(self.instances.iter().map(of).collect::<Result<_, _>>()?)
            }
            None => None,
        };
        let at = Instant::now();
        let host = self.counters.snapshot();
        let name = |ifindex: &u32| {
            let interfaces = host.interfaces.as_ref()?;
            Some(interfaces.get(ifindex)?.name.as_str())
        };
        let named = self.members.iter().map(|index| (*index, name(index)));
        let queues = queues::read(&mut self.control, named);
        Ok(Reading {
            at,
            exact,
            sampled: CpuSample::now()?,
            rhythms,
            interrupts: interrupts(),
            receive_softirqs: receive_softirqs(),
            delays: self.delays.read()?,
            stamped: self.delays.stamped()?,
            queues,
            host,
        })
    }

    /// What counting takes now, in cores: the kernel times the programs for so long. 0 when none runs.
    pub fn counting_cores(&mut self, time: Duration) -> Result<f64, StudyError> {
        match &mut self.exact {
            Some((exact, _)) => {
                let polls = self.rhythms.iter().map(|polls| polls as &dyn TimedPrograms);
                let others: Vec<&dyn TimedPrograms> = polls.chain(self.delays.timed()).collect();
                Ok(bpf_cpu_ratio(exact, &others, time)?)
            }
            None => Ok(0.0),
        }
    }

    fn cannot_see(&mut self, what: &str, why: &str) {
        self.unseen.push(Unseen {
            what: String::from(what),
            why: String::from(why),
        });
    }
}

fn begin_exact() -> Result<(ExactCpu, u32), StudyError> {
    let mut exact = ExactCpu::load(&ExactCpuOptions {
        has_threads: true,
        ..ExactCpuOptions::default()
    })?;
    exact.attach()?;
    let own = own_process(&exact)?;
    Ok((exact, own))
}

/// The instances of the members. One that has gone meanwhile has none.
pub(super) fn instances(control: &mut Control, members: &[u32]) -> Vec<Instance> {
    let mut all = Vec::new();
    for &ifindex in members {
        let queues = control.rx_queues(ifindex).unwrap_or_default();
        let napis = control.napis(ifindex).unwrap_or_default();
        // A veth does not tell, but with one of each there is nothing to tell.
        let only = match (napis.len(), control.queues(ifindex)) {
            (1, Ok(all)) if all.iter().filter(|queue| queue.is_rx).count() == 1 => Some(0),
            _ => None,
        };
        all.extend(napis.iter().map(|napi| {
            let mut serves = queues.iter().filter(|(_, id)| **id == napi.id);
            Instance {
                ifindex,
                napi_id: napi.id,
                irq: napi.irq,
                queue: serves.next().map(|(queue, _)| *queue).or(only),
            }
        }));
    }
    all
}

fn interrupts() -> Option<Vec<InterruptLine>> {
    let text = fs::read_to_string("/proc/interrupts").ok()?;
    parse_interrupts(&text).ok()
}

fn receive_softirqs() -> Option<u64> {
    count_receive_softirqs(&fs::read_to_string("/proc/softirqs").ok()?)
}

/// The sum of the line `NET_RX` of `/proc/softirqs`.
fn count_receive_softirqs(text: &str) -> Option<u64> {
    let mut words = text
        .lines()
        .map(str::split_ascii_whitespace)
        .find_map(|mut words| (words.next() == Some("NET_RX:")).then_some(words))?;
    words.try_fold(0, |sum, word| Some(sum + word.parse::<u64>().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receive_softirqs_are_those_of_all_cpus() {
        let text = "                    CPU0       CPU1\n          HI:         11          6\n      \
            NET_RX:      77180      89107\n";
        assert_eq!(count_receive_softirqs(text), Some(166_287));
        assert_eq!(count_receive_softirqs("CPU0\nHI: 1\n"), None);
    }
}
