//! Threads that run at a local host: the ends of workloads, periodic readings, and a program that computes.
//!
//! Waiting for an end has a limit. An end that does not respond is abandoned, because a thread cannot be ended from
//! outside; it ends with the process.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{hint, io};

use nicpoll_model::{STEPS_MAX, Side};
use nicpoll_observe::clock::clock_ns;
use nicpoll_observe::{FlowReader, FlowReading};
use nicpoll_sys::netns::NetnsThread;
use nicpoll_sys::schedule;
use nicpoll_traffic::Signals;
use nicpoll_traffic::workload::{EndBooks, EndTerms, PreparedEnd, WorkloadError};
use rustix::time::ClockId;

use crate::error::HostFailure;
use crate::host::HostEvent;

/// An end that is not ready after this time is abandoned. A connection takes a thousandth of it.
const READY_MAX: Duration = Duration::from_secs(2);

/// Interval of checks whether an end has ended.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Time for all ends together to finish after they were told to.
const GRACE: Duration = Duration::from_secs(1);

const PANICKED: &str = "the traffic's thread panicked";

/// Prefix of the sending threads' names, by which the CPU account finds them. The kernel keeps 15 characters.
pub const SENDER_THREAD: &str = "nicpoll-send";

/// Prefix of the receiving threads' names.
pub const RECEIVER_THREAD: &str = "nicpoll-receive";

/// Prefix of the engine's threads' names, which run on the receiver's core.
pub const ENGINE_THREAD: &str = "nicpoll-engine";

/// Ends that run, or have not been collected.
pub struct RunningEnds {
    running: BTreeMap<u32, RunningEnd>,
    events: mpsc::Sender<HostEvent>,
}

struct RunningEnd {
    signals: Arc<Signals>,
    go: Option<mpsc::Sender<()>>,
    thread: JoinHandle<io::Result<()>>,
}

impl RunningEnds {
    /// Starts without ends. Their results go to `events`.
    pub fn new(events: mpsc::Sender<HostEvent>) -> Self {
        RunningEnds {
            running: BTreeMap::new(),
            events,
        }
    }

    /// Prepares an end by `workload`, on a thread in `place` that is bound to a core.
    ///
    /// # Errors
    /// When it cannot be made ready, or not within `READY_MAX`.
    pub fn prepare<S: 'static>(
        &mut self,
        place: &NetnsThread<S>,
        end: u32,
        workload: impl FnOnce(&EndTerms) -> Result<Box<dyn PreparedEnd>, WorkloadError> + Send + 'static,
        terms: EndTerms,
        (at, cpu): (Side, u32),
    ) -> Result<(), HostFailure> {
        self.running
            .retain(|_, running| !running.thread.is_finished());
        let signals = Arc::new(Signals::default());
        let (go, may_go) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let events = self.events.clone();
        // The account of CPU time of `fit` knows the threads by these names.
        let name = at.of("send", "receive");
        let shared = Arc::clone(&signals);
        let thread = place
            .spawn_pinned(cpu, name, move || {
                if let Some(books) = run(workload, &terms, &shared, &ready, &may_go) {
                    // The receiver may be gone.
                    let _ = events.send(HostEvent::Ended { end, books });
                }
            })
            .map_err(HostFailure::of)?;
        match is_ready.recv_timeout(READY_MAX) {
            Ok(prepared) => prepared?,
            Err(RecvTimeoutError::Timeout) => {
                return Err(HostFailure::new(format!(
                    "it was not ready after {READY_MAX:?}"
                )));
            }
            Err(RecvTimeoutError::Disconnected) => {
                let failure = match thread.join() {
                    Ok(Err(error)) => HostFailure::of(error),
                    _ => HostFailure::new(PANICKED),
                };
                return Err(failure);
            }
        }
        let running = RunningEnd {
            signals,
            go: Some(go),
            thread,
        };
        self.running.insert(end, running);
        Ok(())
    }

    /// Starts a prepared end.
    pub fn start(&mut self, end: u32) -> Result<(), HostFailure> {
        let go = self.find(end)?.go.take();
        go.and_then(|go| go.send(()).ok())
            .ok_or_else(|| HostFailure::new(format!("end {end} cannot be started again")))
    }

    /// Tells an end that the sender is done.
    pub fn sender_done(&mut self, end: u32) -> Result<(), HostFailure> {
        let running = self.find(end)?;
        running.signals.sender_done.store(true, Ordering::Release);
        Ok(())
    }

    /// Cancels all ends, and waits until they have ended or are found to hang.
    pub fn cancel(&mut self) {
        for running in self.running.values_mut() {
            running.signals.cancel.store(true, Ordering::Relaxed);
            running.go = None;
        }
        let deadline = Instant::now() + GRACE;
        for (_, running) in std::mem::take(&mut self.running) {
            while !running.thread.is_finished() && Instant::now() < deadline {
                thread::sleep(LOOK_EVERY);
            }
            if running.thread.is_finished() {
                // Its result no longer matters.
                let _ = running.thread.join();
            }
        }
    }

    fn find(&mut self, end: u32) -> Result<&mut RunningEnd, HostFailure> {
        self.running
            .get_mut(&end)
            .ok_or_else(|| HostFailure::new(format!("no end {end} was prepared")))
    }
}

impl Drop for RunningEnds {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Prepares an end and runs it when started. Returns `None` if nobody waits for it: it could not be made ready, or
/// was cancelled before its start.
fn run(
    workload: impl FnOnce(&EndTerms) -> Result<Box<dyn PreparedEnd>, WorkloadError>,
    terms: &EndTerms,
    signals: &Signals,
    ready: &mpsc::Sender<Result<(), HostFailure>>,
    may_go: &mpsc::Receiver<()>,
) -> Option<Result<Box<EndBooks>, HostFailure>> {
    let prepared = workload(terms).map_err(HostFailure::of);
    let (prepared, is_ready) = match prepared {
        Ok(prepared) => (Some(prepared), Ok(())),
        Err(failure) => (None, Err(failure)),
    };
    let _ = ready.send(is_ready);
    let prepared = prepared?;
    may_go.recv().ok()?;
    let books = catch_unwind(AssertUnwindSafe(|| prepared.run(signals)));
    Some(match books {
        Ok(books) => books.map(Box::new).map_err(HostFailure::of),
        Err(_) => Err(HostFailure::new(PANICKED)),
    })
}

/// Limit of readings, for a run that takes longer than planned.
const READINGS_MAX: usize = 2 * STEPS_MAX as usize;

/// A thread that takes readings.
pub struct Sampling {
    /// Ends the readings when it is dropped.
    go_on: mpsc::Sender<()>,
    thread: JoinHandle<io::Result<Vec<FlowReading>>>,
}

impl Sampling {
    /// Reads now and once a step, in the caller's network namespace.
    ///
    /// # Errors
    /// When there can be no further thread.
    pub fn start(mut reader: FlowReader, step: Duration) -> io::Result<Self> {
        let (go_on, ended) = mpsc::channel::<()>();
        let thread = schedule::spawn("nicpoll-series", move || {
            let mut readings = vec![reader.read()?];
            let mut next = Instant::now() + step;
            loop {
                let left = next.saturating_duration_since(Instant::now());
                let is_over = ended.recv_timeout(left) == Err(RecvTimeoutError::Disconnected);
                if readings.len() < READINGS_MAX {
                    readings.push(reader.read()?);
                }
                if is_over {
                    return Ok(readings);
                }
                while next <= Instant::now() {
                    next += step;
                }
            }
        })?;
        Ok(Sampling { go_on, thread })
    }

    /// Reads once more and returns all readings.
    ///
    /// # Errors
    /// When the counters could not be read.
    pub fn end(self) -> io::Result<Vec<FlowReading>> {
        drop(self.go_on);
        let readings = self.thread.join();
        readings.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Rounds between two readings of the clock.
const ROUNDS: u32 = 1000;

/// A spinner at work.
pub struct CpuSpinner(JoinHandle<io::Result<f64>>);

impl CpuSpinner {
    /// Computes on `cpu` for `duration`.
    ///
    /// # Errors
    /// When there can be no further thread.
    pub fn start(cpu: u32, duration: Duration) -> io::Result<Self> {
        let thread = schedule::spawn("nicpoll-spinner", move || {
            schedule::pin(cpu)?;
            Ok(spin(duration))
        });
        thread.map(CpuSpinner)
    }

    /// Waits for its end and returns its share of the time, 0 to 1.
    ///
    /// # Errors
    /// When it may not run on that core.
    pub fn end(self) -> io::Result<f64> {
        let share = self.0.join();
        share.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn spin(duration: Duration) -> f64 {
    let (begun, used) = (Instant::now(), cpu_time());
    while begun.elapsed() < duration {
        (0..ROUNDS).for_each(|_| hint::spin_loop());
    }
    let share = (cpu_time() - used).as_secs_f64() / begun.elapsed().as_secs_f64();
    share.clamp(0.0, 1.0)
}

/// CPU time of the calling thread.
fn cpu_time() -> Duration {
    Duration::from_nanos(clock_ns(ClockId::ThreadCPUTime).unsigned_abs())
}

#[cfg(test)]
mod ends_tests {
    use super::*;
    use nicpoll_sys::netns::NetNamespace;
    use nicpoll_testkit::needs;
    use std::net::SocketAddr;

    /// An end that heeds no signal.
    struct Deaf;

    impl PreparedEnd for Deaf {
        fn run(self: Box<Self>, _: &Signals) -> Result<EndBooks, WorkloadError> {
            loop {
                thread::park();
            }
        }
    }

    fn prepare(
        ends: &mut RunningEnds,
        workload: impl FnOnce(&EndTerms) -> Result<Box<dyn PreparedEnd>, WorkloadError> + Send + 'static,
    ) -> Result<(), HostFailure> {
        let place = NetnsThread::enter(NetNamespace::create().unwrap(), || ()).unwrap();
        let terms = EndTerms {
            side: Side::Sender,
            receiver: SocketAddr::from(([127, 0, 0, 1], 9)),
            duration: Duration::from_millis(1),
            link_delay: Duration::ZERO,
            receiver_ahead_ns: 0,
        };
        let cpu = nicpoll_sys::schedule::allowed_cpus().unwrap()[0];
        ends.prepare(&place, 1, workload, terms, (Side::Sender, cpu))
    }

    #[test]
    fn an_end_that_heeds_nothing_is_left_to_itself() {
        needs!(Root);
        let (events, heard) = mpsc::channel();
        let mut ends = RunningEnds::new(events);
        prepare(&mut ends, |_| Ok(Box::new(Deaf))).unwrap();
        ends.start(1).unwrap();
        ends.cancel();
        assert!(heard.try_recv().is_err(), "it has not ended");
        assert!(ends.running.is_empty());
    }

    #[test]
    fn an_end_that_is_never_ready_is_an_error() {
        needs!(Root);
        let mut ends = RunningEnds::new(mpsc::channel().0);
        let never = |_: &EndTerms| loop {
            thread::park();
        };
        let error = prepare(&mut ends, never).unwrap_err().to_string();
        assert!(error.contains("not ready after 2s"), "{error}");
    }
}

#[cfg(test)]
mod sampling_tests {
    use super::*;
    use nicpoll_model::line::IpVersion;

    #[test]
    fn readings_are_a_step_apart_until_they_are_ended() {
        let reader = FlowReader::of_caller(IpVersion::V4, None, &[0]).unwrap();
        let step = Duration::from_millis(2);
        let sampling = Sampling::start(reader, step).unwrap();
        thread::sleep(10 * step);
        let readings = sampling.end().unwrap();
        assert!((3..=12).contains(&readings.len()), "{}", readings.len());
        // The last one was not waited for.
        for pair in readings[..readings.len() - 1].windows(2) {
            assert!(pair[1].at_ns > pair[0].at_ns);
        }
    }
}

#[cfg(test)]
mod spinner_tests {
    use super::*;

    #[test]
    fn it_ends_by_itself_with_its_share_and_says_when_there_is_no_such_core() {
        let cpu = schedule::allowed_cpus().unwrap()[0];
        let share = CpuSpinner::start(cpu, Duration::from_millis(20)).unwrap();
        let share = share.end().unwrap();
        assert!(share > 0.0 && share <= 1.0, "{share}");
        let nowhere = CpuSpinner::start(1_000, Duration::from_secs(60)).unwrap();
        nowhere.end().unwrap_err();
    }
}
