//! The ends of workloads that run at a local host, each on a thread of its own.
//!
//! What must hold: no end is waited for without a limit. One that heeds nothing is left to itself: a thread
//! cannot be ended from outside, and the process takes it along.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nicpoll_model::Side;
use nicpoll_sys::netns::NetnsThread;
use nicpoll_traffic::Signals;
use nicpoll_traffic::workload::{End, EndBooks, PreparedEnd, WorkloadError};

use super::{HostEvent, HostFailure};

/// An end that is not ready after this is given up: a connection takes a thousandth of it.
const READY_MAX: Duration = Duration::from_secs(2);
/// How often is looked whether an end has ended.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// How long ends that were told to end may take, all together.
const GRACE: Duration = Duration::from_secs(1);

/// Threads of the two ends, by their names' beginnings: the account of CPU time knows them by these. The
/// kernel keeps 15 letters.
pub const SENDER: &str = "nicpoll-send";
/// The receiver's.
pub const RECEIVER: &str = "nicpoll-receive";

/// The engine's, which is on the receiver's core.
pub const ENGINE: &str = "nicpoll-engine";

/// The ends that have not been waited for.
pub struct Ends {
    running: BTreeMap<u32, Running>,
    events: mpsc::Sender<HostEvent>,
}

struct Running {
    signals: Arc<Signals>,
    go: Option<mpsc::Sender<()>>,
    thread: JoinHandle<io::Result<()>>,
}

impl Ends {
    /// None yet; what they end with goes to `events`.
    pub fn new(events: mpsc::Sender<HostEvent>) -> Self {
        Ends {
            running: BTreeMap::new(),
            events,
        }
    }

    /// Makes an end ready on a thread of `place` at a host that is bound to a core: `workload` prepares it there.
    ///
    /// # Errors
    /// When it cannot be made ready, or is not within a time that is ample.
    pub fn prepare<S: 'static>(
        &mut self,
        place: &NetnsThread<S>,
        end: u32,
        workload: impl FnOnce(&End) -> Result<Box<dyn PreparedEnd>, WorkloadError> + Send + 'static,
        terms: End,
        (at, cpu): (Side, u32),
    ) -> Result<(), HostFailure> {
        self.running
            .retain(|_, running| !running.thread.is_finished());
        let signals = Arc::new(Signals::default());
        let (go, may_go) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let report = Report {
            end,
            events: self.events.clone(),
            is_due: false,
        };
        // The account of CPU time of `fit` knows the threads by these names.
        let name = match at {
            Side::Sender => "send",
            Side::Receiver => "receive",
        };
        let shared = Arc::clone(&signals);
        let thread = place
            .spawn_pinned(cpu, name, move || {
                run(workload, &terms, &shared, &ready, &may_go, report);
            })
            .map_err(|error| HostFailure::of(&error))?;
        match is_ready.recv_timeout(READY_MAX) {
            Ok(prepared) => prepared?,
            Err(RecvTimeoutError::Timeout) => {
                return Err(HostFailure::new(format!(
                    "it was not ready after {READY_MAX:?}"
                )));
            }
            Err(RecvTimeoutError::Disconnected) => {
                let failure = match thread.join() {
                    Ok(Err(error)) => HostFailure::of(&error),
                    _ => HostFailure::new("the traffic's thread panicked"),
                };
                return Err(failure);
            }
        }
        let running = Running {
            signals,
            go: Some(go),
            thread,
        };
        self.running.insert(end, running);
        Ok(())
    }

    /// Lets an end run.
    pub fn start(&mut self, end: u32) -> Result<(), HostFailure> {
        let go = self.find(end)?.go.take();
        go.and_then(|go| go.send(()).ok())
            .ok_or_else(|| HostFailure::new(format!("end {end} cannot be started again")))
    }

    /// Tells an end that everything is sent.
    pub fn sender_done(&mut self, end: u32) -> Result<(), HostFailure> {
        let running = self.find(end)?;
        running.signals.sender_done.store(true, Ordering::Release);
        Ok(())
    }

    /// Ends all of them, and waits until they have, or are seen to hang.
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
                // Whatever it ended with no longer matters.
                let _ = running.thread.join();
            }
        }
    }

    fn find(&mut self, end: u32) -> Result<&mut Running, HostFailure> {
        self.running
            .get_mut(&end)
            .ok_or_else(|| HostFailure::new(format!("no end {end} was prepared")))
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.cancel();
    }
}

fn run(
    workload: impl FnOnce(&End) -> Result<Box<dyn PreparedEnd>, WorkloadError>,
    terms: &End,
    signals: &Signals,
    ready: &mpsc::Sender<Result<(), HostFailure>>,
    may_go: &mpsc::Receiver<()>,
    mut report: Report,
) {
    let prepared = match workload(terms) {
        Ok(prepared) => prepared,
        Err(error) => {
            let _ = ready.send(Err(HostFailure::of(&error)));
            return;
        }
    };
    let _ = ready.send(Ok(()));
    // Without a start it was cancelled, and nobody waits for it.
    if may_go.recv().is_ok() {
        report.is_due = true;
        report.send(prepared.run(signals));
    }
}

/// Sends what an end came to, and says so if the end panicked instead.
struct Report {
    end: u32,
    events: mpsc::Sender<HostEvent>,
    is_due: bool,
}

impl Report {
    fn send(&mut self, books: Result<EndBooks, WorkloadError>) {
        let books = books.map(Box::new);
        let books = books.map_err(|error| HostFailure::of(&error));
        self.event(books);
    }

    fn event(&mut self, books: Result<Box<EndBooks>, HostFailure>) {
        self.is_due = false;
        // Nobody may be there to hear it any more.
        let _ = self.events.send(HostEvent::Ended {
            end: self.end,
            books,
        });
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if self.is_due {
            self.event(Err(HostFailure::new("the traffic's thread panicked")));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use nicpoll_sys::netns::NetNamespace;
    use nicpoll_testkit::needs;

    use super::*;

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
        ends: &mut Ends,
        workload: impl FnOnce(&End) -> Result<Box<dyn PreparedEnd>, WorkloadError> + Send + 'static,
    ) -> Result<(), HostFailure> {
        let place = NetnsThread::enter(NetNamespace::create().unwrap(), || ()).unwrap();
        let terms = End {
            side: Side::Sender,
            receiver: SocketAddr::from(([127, 0, 0, 1], 9)),
            duration: Duration::from_millis(1),
            link_delay: Duration::ZERO,
        };
        let cpu = nicpoll_sys::affinity::allowed_cpus().unwrap()[0];
        ends.prepare(&place, 1, workload, terms, (Side::Sender, cpu))
    }

    #[test]
    fn an_end_that_heeds_nothing_is_left_to_itself() {
        needs!(Root);
        let (events, heard) = mpsc::channel();
        let mut ends = Ends::new(events);
        prepare(&mut ends, |_| Ok(Box::new(Deaf))).unwrap();
        ends.start(1).unwrap();
        ends.cancel();
        assert!(heard.try_recv().is_err(), "it has not ended");
        assert!(ends.running.is_empty());
    }

    #[test]
    fn an_end_that_is_never_ready_is_an_error() {
        needs!(Root);
        let mut ends = Ends::new(mpsc::channel().0);
        let never = |_: &End| loop {
            thread::park();
        };
        let error = prepare(&mut ends, never).unwrap_err().to_string();
        assert!(error.contains("not ready after 2s"), "{error}");
    }
}
