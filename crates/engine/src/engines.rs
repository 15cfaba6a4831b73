//! The engines of one interface: a thread with a poller of its own on each CPU, which share out the receive queues.
//!
//! What must hold: each queue has one engine. A knob is written on all CPUs or on none.

use std::io;

use nicpoll_core::{Knob, Poller};
use nicpoll_model::engine::PollingOfCpu;
use nicpoll_model::sink::SinkVariable;

use crate::charge::CpuAccounts;
use crate::drive::Scheduling;
use crate::engine::{Asker, Engine, EngineEnded};
use crate::error::EngineError;
use crate::knob_socket::{self, KnobServer, Pollers};
use crate::knobs::{over_all_cpus, write_knob};
use crate::port::Port;
use crate::runner::{PortRunner, RunnerSettings};

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
pub struct Engines<P> {
    engines: Vec<(u32, Engine<P>)>,
}

impl<P: Port + Send + 'static> Engines<P> {
    /// Starts them: queue after queue goes to CPU after CPU.
    ///
    /// # Errors
    /// When a setting is out of range or a CPU cannot be had.
    pub fn start(
        settings: &EngineSettings,
        ports: Vec<P>,
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
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Engine<P>)> {
        self.engines.iter().map(|(cpu, engine)| (*cpu, engine))
    }

    /// Has every engine's thread do something between two turns, and waits for the results, in the order of the CPUs.
    ///
    /// # Errors
    /// When a thread has ended.
    pub fn ask<T: Send + 'static>(
        &self,
        job: impl Fn(&mut PortRunner<P>) -> T + Clone + Send + 'static,
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
        let askers = Askers(self.iter().map(|(cpu, e)| (cpu, e.asker())).collect());
        let ask = move |request: String| knob_socket::answer(&askers, &request);
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
    pub fn end(self) -> Result<Vec<PortRunner<P>>, EngineEnded> {
        let engines = self.engines.into_iter();
        engines.map(|(_, engine)| engine.end()).collect()
    }
}

/// The value of a knob over all CPUs.
pub fn knob_of_all<P: Port>(runners: &[PortRunner<P>], knob: Knob) -> u32 {
    let values: Vec<u32> = runners
        .iter()
        .map(|runner| runner.poller().read(knob))
        .collect();
    over_all_cpus(knob, &values)
}

/// The knobs and counters over all CPUs.
pub(crate) fn polling_of_all<P: Port>(runners: &[PortRunner<P>]) -> Vec<SinkVariable> {
    let variable = |knob: &Knob| SinkVariable {
        name: String::from(knob.name()),
        value: knob_of_all(runners, *knob),
    };
    Knob::ALL.iter().map(variable).collect()
}

/// The knobs and counters of each CPU; the runners are in the order of the CPUs.
pub(crate) fn polling_by_cpu<P: Port>(
    cpus: &[u32],
    runners: &[PortRunner<P>],
) -> Vec<PollingOfCpu> {
    let by_cpu = cpus.iter().zip(runners);
    by_cpu
        .map(|(cpu, runner)| PollingOfCpu {
            cpu: *cpu,
            polling: polling_of_all(std::slice::from_ref(runner)),
        })
        .collect()
}

/// Asks from the server's thread.
struct Askers<P>(Vec<(u32, Asker<P>)>);

impl<P: Port + 'static> Pollers for Askers<P> {
    fn copies(&self) -> Result<Vec<(u32, Poller)>, EngineEnded> {
        let copy = |runner: &mut PortRunner<P>| runner.poller().clone();
        let askers = self.0.iter();
        askers
            .map(|(cpu, asker)| Ok((*cpu, asker.ask(copy)?)))
            .collect()
    }

    fn write(&self, cpu: u32, knob: Knob, value: u32) -> Result<(), EngineEnded> {
        let Some((_, asker)) = self.0.iter().find(|(at, _)| *at == cpu) else {
            return Ok(());
        };
        // It was tried on a copy a moment ago; what changed since is the client's own race.
        asker.ask(move |runner| {
            let _ = runner.poller_mut().write(knob, value);
        })
    }
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
