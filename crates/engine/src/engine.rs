//! A runner on a thread of its own.
//!
//! What must hold: the thread alone touches the runner. What others want of it are jobs, which it does between two
//! turns; none of them waits for anything. The thread ends when it is told to, or when nobody is left to tell it.

use std::io;
use std::sync::mpsc::{self, TryRecvError};
use std::thread::{self, JoinHandle};

use nicpoll_sys::schedule;
use rustix::thread::gettid;
use thiserror::Error;

use crate::drive::Scheduling;
use crate::error::EngineError;
use crate::port::Port;
use crate::runner::PortRunner;

type Job<P> = Box<dyn FnOnce(&mut PortRunner<P>) + Send>;

/// The engine's thread has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the engine's thread has ended")]
pub struct EngineEnded;

/// A running engine. It ends with this value.
pub struct Engine<P> {
    jobs: Option<mpsc::Sender<Job<P>>>,
    thread: Option<JoinHandle<PortRunner<P>>>,
    scheduling: Scheduling,
}

impl<P: Port + Send + 'static> Engine<P> {
    /// Starts `runner` on a thread that is bound to `cpu` and in the network namespace of the calling one.
    ///
    /// # Errors
    /// When the CPU cannot be had.
    pub fn start(runner: PortRunner<P>, cpu: u32) -> Result<Self, EngineError> {
        let (jobs, inbox) = mpsc::channel::<Job<P>>();
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
        job: impl FnOnce(&mut PortRunner<P>) -> T + Send + 'static,
    ) -> Result<T, EngineEnded> {
        self.asker().ask(job)
    }

    /// The same for another thread, which must be done with it before the engine ends.
    pub(crate) fn asker(&self) -> Asker<P> {
        Asker {
            jobs: self.jobs.clone(),
        }
    }

    /// Ends it, and gives the runner back.
    ///
    /// # Errors
    /// When its thread panicked.
    pub fn end(mut self) -> Result<PortRunner<P>, EngineEnded> {
        self.jobs = None;
        let thread = self.thread.take().ok_or(EngineEnded)?;
        thread.join().map_err(|_| EngineEnded)
    }
}

/// Asks an engine from any thread.
pub(crate) struct Asker<P> {
    jobs: Option<mpsc::Sender<Job<P>>>,
}

impl<P: 'static> Asker<P> {
    /// As [`Engine::ask`].
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut PortRunner<P>) -> T + Send + 'static,
    ) -> Result<T, EngineEnded> {
        let (answer, result) = mpsc::channel();
        let job: Job<P> = Box::new(move |runner| {
            let _ = answer.send(job(runner));
        });
        self.jobs
            .as_ref()
            .and_then(|jobs| jobs.send(job).ok())
            .ok_or(EngineEnded)?;
        result.recv().map_err(|_| EngineEnded)
    }
}

impl<P> Drop for Engine<P> {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Makes the calling thread the engine's.
pub(crate) fn prepare(cpu: u32, wanted: Scheduling) -> io::Result<Scheduling> {
    schedule::pin(cpu)?;
    // A timer may be late by 50 us otherwise; the least that can be asked is 1 ns.
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?;
    let thread = gettid().as_raw_nonzero().get().unsigned_abs();
    Ok(match schedule::set_policy(thread, wanted.policy()) {
        Ok(()) => wanted,
        Err(_) => Scheduling::Fair,
    })
}

fn work_through<P: Port>(
    mut runner: PortRunner<P>,
    scheduling: Scheduling,
    inbox: &mpsc::Receiver<Job<P>>,
) -> PortRunner<P> {
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
