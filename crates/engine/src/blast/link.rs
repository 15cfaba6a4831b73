//! The thread that sends by one link.
//!
//! It ends within a moment of being told to, whatever is due next. It waits for an interface that is down; one that is gone
//! ends the link. The counts are there at the end in either case.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nicpoll_model::engine::{BlastCounts, BlastLink, BlastLinkEnd};
use rustix::io::Errno;

use crate::blast::frames::Schedule;
use crate::blast::path::Outlet;
use crate::error::EngineError;
use crate::runner::clock::{await_end, now_ns, own_cpu_ns, sleep_until};
use crate::runner::idle::{Scheduling, start_on};

/// A sleep may end that much too late, so the rest is waited for awake.
const AWAKE_NS: u64 = 60_000;
/// The longest that it sleeps without looking whether to end.
const SLEEP_NS_MAX: u64 = 20_000_000;
/// How often progress is told, apart from frames and bytes.
const SAY_EVERY_NS: u64 = 10_000_000;
/// The pause before an interface that is down is tried again.
const DOWN_PAUSE: Duration = Duration::from_millis(5);
/// How often it is looked at the end whether the kernel is done with all frames.
const DRAIN_LOOKS: u32 = 40;

/// How long a link sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) frames: Option<u64>,
    pub(super) time: Option<Duration>,
}

/// How far a link is, for whoever watches it.
#[derive(Debug, Default)]
pub(super) struct Progress {
    stop: AtomicBool,
    is_over: AtomicBool,
    frames: AtomicU64,
    bytes: AtomicU64,
    cpu_ns: AtomicU64,
}

impl Progress {
    /// Whether all is sent that was to be sent.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// What was written, and the CPU time that it took.
    pub(super) fn look(&self) -> BlastCounts {
        BlastCounts {
            built_frames: self.frames.load(Ordering::Relaxed),
            built_bytes: self.bytes.load(Ordering::Relaxed),
            cpu_ns: self.cpu_ns.load(Ordering::Relaxed),
        }
    }
}

/// A link that is ready to send, and ends with this value.
pub(super) struct Link {
    progress: Arc<Progress>,
    go: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<Option<BlastLinkEnd>>>,
}

impl Link {
    /// Starts the thread, which sends once it is [told to go](Self::go).
    ///
    /// # Errors
    /// When the CPU cannot be had.
    pub(super) fn prepare(
        outlet: Box<dyn Outlet>,
        schedule: Schedule,
        bounds: Bounds,
        facts: &BlastLink,
    ) -> Result<Self, EngineError> {
        let progress = Arc::new(Progress::default());
        let (go, told) = mpsc::channel();
        let (shared, facts, cpu) = (Arc::clone(&progress), facts.clone(), facts.cpu);
        let work = move |_| {
            told.recv().ok()?;
            let end = Sending::new(outlet, schedule, bounds, &shared).send_to_the_end(facts);
            shared.is_over.store(true, Ordering::Relaxed);
            Some(end)
        };
        let thread = start_on("nicpoll-blast", cpu, Scheduling::Fair, work);
        let (thread, _) = thread.map_err(|source| {
            EngineError::io(&format!("starting to send on CPU {cpu}"), &source)
        })?;
        Ok(Link {
            progress,
            go: Some(go),
            thread: Some(thread),
        })
    }

    /// Begins to send.
    pub(super) fn go(&self) {
        if let Some(go) = &self.go {
            let _ = go.send(());
        }
    }

    pub(super) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Ends it. `None` when it never began.
    pub(super) fn end(mut self) -> Option<BlastLinkEnd> {
        self.join()
    }

    fn join(&mut self) -> Option<BlastLinkEnd> {
        self.progress.stop.store(true, Ordering::Relaxed);
        self.go = None;
        self.thread.take()?.join().ok()?
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.join();
    }
}

/// The thread's state.
struct Sending<'a> {
    outlet: Box<dyn Outlet>,
    schedule: Schedule,
    bounds: Bounds,
    progress: &'a Progress,
    began_ns: u64,
    said_ns: u64,
    link_losses: u64,
    is_down: bool,
}

impl<'a> Sending<'a> {
    fn new(
        outlet: Box<dyn Outlet>,
        schedule: Schedule,
        bounds: Bounds,
        progress: &'a Progress,
    ) -> Self {
        let began_ns = now_ns();
        Sending {
            outlet,
            schedule,
            bounds,
            progress,
            began_ns,
            said_ns: began_ns,
            link_losses: 0,
            is_down: false,
        }
    }

    fn send_to_the_end(mut self, facts: BlastLink) -> BlastLinkEnd {
        let failure = self.send_all().err();
        let duration_seconds = (now_ns() - self.began_ns) as f64 / 1e9;
        if failure.is_none() {
            self.drain();
        }
        self.note(u64::MAX);
        let failure = failure.map(|error| match Errno::from_io_error(&error) {
            Some(Errno::NXIO | Errno::NODEV) => String::from("the interface was removed"),
            _ => error.to_string(),
        });
        BlastLinkEnd {
            interface: facts.interface,
            path: facts.path,
            duration_seconds,
            totals: self.progress.look(),
            account: self.outlet.account(),
            link_loss_events: self.link_losses,
            failure,
        }
    }

    /// Sends until the bounds are reached, or it is told to stop, or the interface is gone.
    fn send_all(&mut self) -> io::Result<()> {
        let mut sent = 0;
        while !self.progress.stop.load(Ordering::Relaxed) {
            let now_ns = now_ns();
            let elapsed = Duration::from_nanos(now_ns - self.began_ns);
            let left = self.bounds.frames.map_or(u64::MAX, |frames| frames - sent);
            if left == 0 || self.bounds.time.is_some_and(|time| elapsed >= time) {
                break;
            }
            let ahead = self.schedule.ahead(sent, elapsed);
            if !ahead.is_zero() {
                self.wait(now_ns, ahead);
                continue;
            }
            let at_a_time = u64::from(self.outlet.at_a_time());
            let most = self.schedule.due(sent, elapsed, at_a_time.min(left));
            match self.outlet.send(most as u32) {
                Ok(0) => thread::yield_now(),
                Ok(more) => sent += u64::from(more),
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::NODATA) => break,
                    Some(Errno::NETDOWN) => self.wait_for_link(),
                    _ => return Err(error),
                },
            }
            self.note(now_ns);
        }
        Ok(())
    }

    /// Waits until a time ahead, or for a moment.
    fn wait(&mut self, now_ns: u64, ahead: Duration) {
        let ahead_ns = u64::try_from(ahead.as_nanos()).unwrap_or(u64::MAX);
        if ahead_ns <= AWAKE_NS {
            std::hint::spin_loop();
            return;
        }
        self.note(now_ns);
        sleep_until(now_ns + (ahead_ns - AWAKE_NS).min(SLEEP_NS_MAX));
    }

    fn wait_for_link(&mut self) {
        self.link_losses += u64::from(!self.is_down);
        self.is_down = true;
        thread::sleep(DOWN_PAUSE);
    }

    /// Says what was written, and now and then the CPU time that it took.
    fn note(&mut self, now_ns: u64) {
        let (built, progress) = (self.outlet.built(), self.progress);
        self.is_down &= progress.frames.load(Ordering::Relaxed) == built.built_frames;
        progress.frames.store(built.built_frames, Ordering::Relaxed);
        progress.bytes.store(built.built_bytes, Ordering::Relaxed);
        if now_ns >= self.said_ns + SAY_EVERY_NS {
            progress.cpu_ns.store(own_cpu_ns(), Ordering::Relaxed);
            self.said_ns = now_ns;
        }
    }

    /// Waits until the kernel is done with all frames, as long as it goes on.
    fn drain(&mut self) {
        await_end(DRAIN_LOOKS, || {
            let is_done = self.outlet.account().unfinished_frames == 0;
            if !is_done {
                let _ = self.outlet.send(0);
            }
            is_done
        });
    }
}
