//! Runners on threads of their own: an [`Engine`] for one CPU, [`Engines`] for the queues of one interface.
//!
//! Only its thread touches a runner. Others send it jobs, which it does between two turns; none of them waits. A thread ends
//! when it is told to, or when nobody is left to tell it. Each queue has one engine. A knob is written on all CPUs or on none.

use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::{self, TryRecvError};
use std::thread::JoinHandle;

use nicpoll_core::Knob;
use nicpoll_model::engine::{EngineFacts, PollingOfCpu, SinkVariable};
use nicpoll_sys::link::LinkHandle;

use crate::application::Helpers;
use crate::device::port::{PacketInput, Port};
use crate::error::{EngineEnded, EngineError};
use crate::knob_socket::{self, KnobServer};
use crate::knobs::{KnobError, over_all_cpus, write_knob};
use crate::names::Named;
use crate::runner::idle::{Scheduling, start_on};
use crate::runner::{PortRunner, RunnerSettings};

type PortJob<I> = Box<dyn FnOnce(&mut PortRunner<I>) + Send>;

/// A running engine. It ends with this value.
pub struct Engine<I> {
    jobs: Option<Jobs<I>>,
    thread: Option<JoinHandle<PortRunner<I>>>,
    scheduling: Scheduling,
}

impl<I: PacketInput + Send + 'static> Engine<I> {
    /// Starts `runner` on a thread that is bound to `cpu` and in the network namespace of the calling one.
    ///
    /// # Errors
    /// When the CPU cannot be had.
    pub fn start(runner: PortRunner<I>, cpu: u32) -> Result<Self, EngineError> {
        let (jobs, inbox) = mpsc::channel::<PortJob<I>>();
        let wanted = runner.settings().drive.scheduling();
        let work = move |scheduling| work_through(runner, scheduling, &inbox);
        let (thread, scheduling) =
            start_on("nicpoll-engine", cpu, wanted, work).map_err(|source| {
                EngineError::io(&format!("starting the engine on CPU {cpu}"), &source)
            })?;
        Ok(Engine {
            jobs: Some(Jobs(jobs)),
            thread: Some(thread),
            scheduling,
        })
    }

    /// Has the engine's thread do something between two turns, and waits for the result.
    ///
    /// # Errors
    /// When the thread has ended.
    pub fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut PortRunner<I>) -> T + Send + 'static,
    ) -> Result<T, EngineEnded> {
        self.jobs.as_ref().ok_or(EngineEnded)?.ask(job)
    }

    /// Ends it, and gives the runner back.
    ///
    /// # Errors
    /// When its thread panicked.
    pub fn end(mut self) -> Result<PortRunner<I>, EngineEnded> {
        self.join().ok_or(EngineEnded)
    }
}

impl<I> Engine<I> {
    fn join(&mut self) -> Option<PortRunner<I>> {
        self.jobs = None;
        self.thread.take()?.join().ok()
    }
}

/// Where jobs for an engine go, from any thread.
struct Jobs<I>(mpsc::Sender<PortJob<I>>);

impl<I: 'static> Jobs<I> {
    /// As [`Engine::ask`].
    fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut PortRunner<I>) -> T + Send + 'static,
    ) -> Result<T, EngineEnded> {
        let (answer, result) = mpsc::channel();
        let job: PortJob<I> = Box::new(move |runner| {
            let _ = answer.send(job(runner));
        });
        self.0.send(job).map_err(|_| EngineEnded)?;
        result.recv().map_err(|_| EngineEnded)
    }
}

impl<I> Drop for Engine<I> {
    fn drop(&mut self) {
        self.join();
    }
}

fn work_through<I: PacketInput>(
    mut runner: PortRunner<I>,
    scheduling: Scheduling,
    inbox: &mpsc::Receiver<PortJob<I>>,
) -> PortRunner<I> {
    runner.begin(scheduling);
    loop {
        match inbox.try_recv() {
            Ok(job) => {
                runner.note_cpu_time();
                job(&mut runner);
            }
            Err(TryRecvError::Empty) => runner.turn(),
            Err(TryRecvError::Disconnected) => {
                runner.note_cpu_time();
                return runner;
            }
        }
    }
}

/// How the engines of an interface run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineSettings {
    /// The CPUs, each with a thread; those beyond the number of queues have none.
    pub cpus: Vec<u32>,
    /// How each of them runs.
    pub runner: RunnerSettings,
    /// Knobs to write before they start, in this order.
    pub knobs: Vec<(Knob, u32)>,
}

/// Running engines. They end with this value.
pub struct Engines<I> {
    engines: Vec<(u32, Engine<I>)>,
}

impl<I: PacketInput + Send + 'static> Engines<I> {
    /// Starts them: queue after queue goes to CPU after CPU.
    ///
    /// # Errors
    /// When a setting is out of range or a CPU cannot be had.
    pub fn start(
        settings: &EngineSettings,
        ports: Vec<Port<I>>,
        helpers: &dyn Helpers,
    ) -> Result<Self, EngineError> {
        let (mut engines, mut seen) = (Vec::new(), BTreeSet::new());
        let mut cpus = settings.cpus.clone();
        cpus.retain(|cpu| seen.insert(*cpu));
        for (cpu, ports) in shared_out(ports, &cpus) {
            let runner = PortRunner::new(settings.runner, ports)?;
            let mut runner = runner.charged(helpers.account_of(cpu));
            for (knob, value) in &settings.knobs {
                write_knob(runner.poller_mut(), *knob, *value)?;
            }
            engines.push((cpu, Engine::start(runner, cpu)?));
        }
        Ok(Engines { engines })
    }

    /// Has every engine's thread do something between two turns, and waits for the results, in the order of the CPUs.
    ///
    /// # Errors
    /// When a thread has ended.
    pub fn ask<T: Send + 'static>(
        &self,
        job: impl Fn(&mut PortRunner<I>) -> T + Clone + Send + 'static,
    ) -> Result<Vec<T>, EngineEnded> {
        let asked = self.engines.iter();
        asked.map(|(_, engine)| engine.ask(job.clone())).collect()
    }

    /// How they run. They are scheduled as the least of what was wanted.
    pub(crate) fn facts(&self, settings: &RunnerSettings) -> EngineFacts {
        let mut each = self.engines.iter().map(|(_, engine)| engine.scheduling);
        let scheduling = match each.all(|scheduling| scheduling == Scheduling::Fifo) {
            true => Scheduling::Fifo,
            false => Scheduling::Fair,
        };
        EngineFacts {
            discipline: String::from(settings.drive.name()),
            hz: settings.hz,
            controller: String::from(settings.controller.name()),
            storm_threshold_passes: settings.storm_threshold,
            cpus: self.engines.iter().map(|(cpu, _)| *cpu).collect(),
            scheduling: String::from(scheduling.name()),
        }
    }

    /// Serves their knobs to `nicpoll sysctl`, as those of the engine at `interface`. Without root's rights nobody is
    /// served, and it is said why.
    ///
    /// # Errors
    /// When no socket can be made for another reason.
    pub(crate) fn serve_knobs(
        &self,
        interface: &str,
    ) -> Result<(Option<KnobServer>, Option<String>), EngineError> {
        let engines = self.engines.iter();
        let jobs: Vec<(u32, Jobs<I>)> = engines
            .filter_map(|(cpu, engine)| Some((*cpu, Jobs(engine.jobs.as_ref()?.0.clone()))))
            .collect();
        let ended = |ended: EngineEnded| KnobError(ended.to_string());
        let ifindex = LinkHandle::named(interface).map_or(0, |link| link.ifindex());
        let served = KnobServer::start((interface, ifindex), move |request| {
            let copy = |(cpu, jobs): &(u32, Jobs<I>)| {
                Ok((*cpu, jobs.ask(|runner| runner.poller().clone())?))
            };
            let copies: Result<_, EngineEnded> = jobs.iter().map(copy).collect();
            let (answer, write) = knob_socket::carry_out(copies.map_err(ended)?, request)?;
            if let Some((cpus, knob, value)) = write {
                let mut written = jobs.iter().filter(|(cpu, _)| cpus.contains(cpu));
                // It was tried on a copy a moment ago; what changed since is the client's own race.
                let write = move |runner: &mut PortRunner<I>| {
                    let _ = runner.poller_mut().write(knob, value);
                };
                let written = written.try_for_each(|(_, jobs)| jobs.ask(write));
                written.map_err(ended)?;
            }
            Ok(answer)
        });
        match served {
            Ok(server) => Ok((Some(server), None)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let why = format!("only root may use {}: {error}", knob_socket::FOLDER);
                Ok((None, Some(why)))
            }
            Err(error) => {
                let doing = "serving the knobs to 'nicpoll sysctl'";
                Err(EngineError::io(doing, &error))
            }
        }
    }

    /// Ends them, and gives the runners back, in the order of the CPUs.
    ///
    /// # Errors
    /// When a thread panicked.
    pub fn end(self) -> Result<Vec<PortRunner<I>>, EngineEnded> {
        let engines = self.engines.into_iter();
        engines.map(|(_, engine)| engine.end()).collect()
    }
}

/// The value of a knob over all CPUs.
pub fn knob_of_all<I: PacketInput>(runners: &[PortRunner<I>], knob: Knob) -> u32 {
    let values: Vec<u32> = runners
        .iter()
        .map(|runner| runner.poller().read(knob))
        .collect();
    over_all_cpus(knob, &values)
}

/// The knobs and counters over all CPUs.
pub(crate) fn polling_of_all<I: PacketInput>(runners: &[PortRunner<I>]) -> Vec<SinkVariable> {
    let variable = |knob: &Knob| SinkVariable {
        name: String::from(knob.name()),
        value: knob_of_all(runners, *knob),
    };
    Knob::ALL.iter().map(variable).collect()
}

/// The knobs and counters of each CPU; the runners are in the order of the CPUs.
pub(crate) fn polling_by_cpu<I: PacketInput>(
    cpus: &[u32],
    runners: &[PortRunner<I>],
) -> Vec<PollingOfCpu> {
    let by_cpu = cpus.iter().zip(runners);
    by_cpu
        .map(|(cpu, runner)| PollingOfCpu {
            cpu: *cpu,
            polling: polling_of_all(std::slice::from_ref(runner)),
        })
        .collect()
}

/// Gives each CPU its ports: the first to the first CPU, the next to the next, and so on, round and round.
fn shared_out<P>(ports: Vec<P>, cpus: &[u32]) -> Vec<(u32, Vec<P>)> {
    let mut shares: Vec<(u32, Vec<P>)> = cpus.iter().map(|cpu| (*cpu, Vec::new())).collect();
    let count = shares.len().max(1);
    for (index, port) in ports.into_iter().enumerate() {
        if let Some((_, share)) = shares.get_mut(index % count) {
            share.push(port);
        }
    }
    shares.retain(|(_, share)| !share.is_empty());
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_go_round_the_cpus_and_a_cpu_without_any_has_no_engine() {
        assert_eq!(
            shared_out(vec!['a', 'b', 'c'], &[4, 1]),
            [(4, vec!['a', 'c']), (1, vec!['b'])]
        );
        assert_eq!(shared_out(vec!['a'], &[0, 1]), [(0, vec!['a'])]);
    }
}
