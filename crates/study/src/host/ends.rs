//! The ends of workloads that run at a local host, each on a thread of its own.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use nicpoll_model::Side;
use nicpoll_sys::netns::NetnsThread;
use nicpoll_traffic::Signals;
use nicpoll_traffic::workload::{End, EndBooks, WorkloadError};

use super::{HostEvent, HostFailure};
use crate::workload::WorkloadRequest;

/// Threads of the two ends, by their names' beginnings: the account of CPU time knows them by these. The
/// kernel keeps 15 letters.
pub const SENDER: &str = "nicpoll-send";
/// The receiver's.
pub const RECEIVER: &str = "nicpoll-receive";

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

    /// Makes an end ready on a thread of `place` that is bound to `cpu`.
    pub fn prepare<S: 'static>(
        &mut self,
        place: &NetnsThread<S>,
        end: u32,
        workload: WorkloadRequest,
        terms: End,
        cpu: u32,
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
        let name = match terms.side {
            Side::Sender => "send",
            Side::Receiver => "receive",
        };
        let shared = Arc::clone(&signals);
        let thread = place
            .spawn_pinned(cpu, name, move || {
                run(&workload, &terms, &shared, &ready, &may_go, report);
            })
            .map_err(|error| HostFailure::of(&error))?;
        match is_ready.recv() {
            Ok(prepared) => prepared?,
            Err(_) => {
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

    /// Ends all of them, and waits until they have.
    pub fn cancel(&mut self) {
        for running in self.running.values_mut() {
            running.signals.cancel.store(true, Ordering::Relaxed);
            running.go = None;
        }
        for (_, running) in std::mem::take(&mut self.running) {
            // Whatever it ended with no longer matters.
            let _ = running.thread.join();
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
    workload: &WorkloadRequest,
    terms: &End,
    signals: &Signals,
    ready: &mpsc::Sender<Result<(), HostFailure>>,
    may_go: &mpsc::Receiver<()>,
    mut report: Report,
) {
    let prepared = match workload.workload().prepare(terms) {
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
