//! Runners on threads of their own: an [`Engine`] for one CPU, [`Engines`] for the queues of one interface.
//!
//! Only its thread touches a runner. Others send it jobs, which it does between two turns; none of them waits. A thread ends
//! when it is told to, or when nobody is left to tell it. Each queue has one engine. A knob is written on all CPUs or on none.

use std::io;
use std::sync::mpsc::{self, TryRecvError};
use std::thread::{self, JoinHandle};

use nicpoll_core::Knob;
use nicpoll_model::engine::{PollingOfCpu, SinkVariable};

use crate::device::port::AnyPort;
use crate::error::{EngineEnded, EngineError};
use crate::knob_socket::{self, KnobServer};
use crate::knobs::{over_all_cpus, write_knob};
use crate::runner::charge::CpuAccounts;
use crate::runner::idle::{Scheduling, prepare};
use crate::runner::{PortRunner, RunnerSettings};

type Job<I> = Box<dyn FnOnce(&mut PortRunner<I>) + Send>;

/// A running engine. It ends with this value.
pub struct Engine<I> {
    jobs: Option<mpsc::Sender<Job<I>>>,
    thread: Option<JoinHandle<PortRunner<I>>>,
    scheduling: Scheduling,
}

impl<I: 'static> Engine<I> {
    /// Starts `runner` on a thread that is bound to `cpu` and in the network namespace of the calling one.
    ///
    /// # Errors
    /// When the CPU cannot be had.
    pub fn start(runner: PortRunner<I>, cpu: u32) -> Result<Self, EngineError> {
        let (jobs, inbox) = mpsc::channel::<Job<I>>();
        let (ready, prepared) = mpsc::channel();
        let wanted = runner.settings().drive.scheduling();
        let doing = || format!("starting the engine on CPU {cpu}");
        let failed = |source| EngineError::Thread {
            doing: doing(),
            source,
        };
        let thread = thread::Builder::new()
            .name(String::from("nicpoll-engine"))
            .spawn(move || {
                let prepared = prepare(cpu, wanted);
                let scheduling = *prepared.as_ref().unwrap_or(&Scheduling::Fair);
                let _ = ready.send(prepared);
                work_through(runner, scheduling, &inbox)
            })
            .map_err(failed)?;
        let ended = || io::Error::other(EngineEnded);
        let scheduling = prepared.recv().map_err(|_| failed(ended()))?;
        Ok(Engine {
            jobs: Some(jobs),
            thread: Some(thread),
            scheduling: scheduling.map_err(failed)?,
        })
    }

    /// How its thread is scheduled: as its discipline wants, or `Fair` without the privilege for that.
    pub fn scheduling(&self) -> Scheduling {
        self.scheduling
    }

    /// Has the engine's thread do something between two turns, and waits for the result.
    ///
    /// # Errors
    /// When the thread has ended.
    pub fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut PortRunner<I>) -> T + Send + 'static,
    ) -> Result<T, EngineEnded> {
        self.asker().ask(job)
    }

    /// The same for another thread, which must be done with it before the engine ends.
    pub(crate) fn asker(&self) -> Asker<I> {
        Asker {
            jobs: self.jobs.clone(),
        }
    }

    /// Ends it, and gives the runner back.
    ///
    /// # Errors
    /// When its thread panicked.
    pub fn end(mut self) -> Result<PortRunner<I>, EngineEnded> {
        self.jobs = None;
        let thread = self.thread.take().ok_or(EngineEnded)?;
        thread.join().map_err(|_| EngineEnded)
    }
}

/// Asks an engine from any thread.
pub(crate) struct Asker<I> {
    jobs: Option<mpsc::Sender<Job<I>>>,
}

impl<I: 'static> Asker<I> {
    /// As [`Engine::ask`].
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut PortRunner<I>) -> T + Send + 'static,
    ) -> Result<T, EngineEnded> {
        let (answer, result) = mpsc::channel();
        let job: Job<I> = Box::new(move |runner| {
            let _ = answer.send(job(runner));
        });
        self.jobs
            .as_ref()
            .and_then(|jobs| jobs.send(job).ok())
            .ok_or(EngineEnded)?;
        result.recv().map_err(|_| EngineEnded)
    }
}

impl<I> Drop for Engine<I> {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work_through<I>(
    mut runner: PortRunner<I>,
    scheduling: Scheduling,
    inbox: &mpsc::Receiver<Job<I>>,
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

impl<I: 'static> Engines<I> {
    /// Starts them: queue after queue goes to CPU after CPU.
    ///
    /// # Errors
    /// When a setting is out of range or a CPU cannot be had.
    pub fn start(
        settings: &EngineSettings,
        ports: Vec<AnyPort<I>>,
        accounts: &dyn CpuAccounts,
    ) -> Result<Self, EngineError> {
        let mut engines = Vec::new();
        let mut cpus = Vec::new();
        for cpu in &settings.cpus {
            if !cpus.contains(cpu) {
                cpus.push(*cpu);
            }
        }
        for (cpu, ports) in shared_out(ports, &cpus) {
            let runner = PortRunner::new(settings.runner, ports)?;
            let mut runner = runner.charged(accounts.of_cpu(cpu));
            for (knob, value) in &settings.knobs {
                write_knob(runner.poller_mut(), *knob, *value)?;
            }
            engines.push((cpu, Engine::start(runner, cpu)?));
        }
        Ok(Engines { engines })
    }

    /// The CPUs, each with its engine.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Engine<I>)> {
        self.engines.iter().map(|(cpu, engine)| (*cpu, engine))
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

    /// How they are scheduled: the least of what was wanted.
    pub fn scheduling(&self) -> Scheduling {
        let mut each = self.iter().map(|(_, engine)| engine.scheduling());
        if each.all(|scheduling| scheduling == Scheduling::Fifo) {
            Scheduling::Fifo
        } else {
            Scheduling::Fair
        }
    }

    /// Serves their knobs to `nicpoll sysctl`, as those of the engine at `interface`.
    ///
    /// # Errors
    /// When no socket can be made for it.
    pub(crate) fn serve_knobs(&self, interface: &str) -> Result<KnobServer, EngineError> {
        let askers: Vec<(u32, Asker<I>)> = self.iter().map(|(cpu, e)| (cpu, e.asker())).collect();
        let ask = move |request: String| {
            let copy = |(cpu, asker): &(u32, Asker<I>)| {
                Ok((*cpu, asker.ask(|runner| runner.poller().clone())?))
            };
            let copies = askers.iter().map(copy).collect();
            knob_socket::answer(copies, &request, |(cpus, knob, value)| {
                let mut written = askers.iter().filter(|(cpu, _)| cpus.contains(cpu));
                // It was tried on a copy a moment ago; what changed since is the client's own race.
                let write = move |runner: &mut PortRunner<I>| {
                    let _ = runner.poller_mut().write(knob, value);
                };
                written.try_for_each(|(_, asker)| asker.ask(write))
            })
        };
        KnobServer::start(interface, ask).map_err(|source| EngineError::Thread {
            doing: String::from("serving the knobs to 'nicpoll sysctl'"),
            source,
        })
    }

    /// The same where this process may. Without root's rights nobody is served, and it is said why.
    ///
    /// # Errors
    /// When no socket can be made for another reason.
    pub(crate) fn serve_knobs_where_allowed(
        &self,
        interface: &str,
    ) -> Result<(Option<KnobServer>, Option<String>), EngineError> {
        match self.serve_knobs(interface) {
            Err(EngineError::Thread { source, .. })
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                let why = format!("only root may use {}: {source}", knob_socket::FOLDER);
                Ok((None, Some(why)))
            }
            served => Ok((Some(served?), None)),
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
pub fn knob_of_all<I>(runners: &[PortRunner<I>], knob: Knob) -> u32 {
    let values: Vec<u32> = runners
        .iter()
        .map(|runner| runner.poller().read(knob))
        .collect();
    over_all_cpus(knob, &values)
}

/// The knobs and counters over all CPUs.
pub(crate) fn polling_of_all<I>(runners: &[PortRunner<I>]) -> Vec<SinkVariable> {
    let variable = |knob: &Knob| SinkVariable {
        name: String::from(knob.name()),
        value: knob_of_all(runners, *knob),
    };
    Knob::ALL.iter().map(variable).collect()
}

/// The knobs and counters of each CPU; the runners are in the order of the CPUs.
pub(crate) fn polling_by_cpu<I>(cpus: &[u32], runners: &[PortRunner<I>]) -> Vec<PollingOfCpu> {
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
