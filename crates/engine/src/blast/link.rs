//! The thread that sends by one link.
//!
//! It ends within a moment of being told to, whatever is due next. It waits for an interface that is down, gone or not to be
//! had, and opens the way out again when that has changed. Each frame is counted once: sent, dropped, or lost with the ring
//! of an interface that went. The counts are there at the end in any case.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nicpoll_model::engine::{BlastAccount, BlastCounts, BlastLink, BlastLinkEnd, LinkEvent};
use rustix::io::Errno;

use crate::blast::frames::FrameSchedule;
use crate::blast::path::{Closed, Outlet};
use crate::blast::target::UpCheck;
use crate::device::presence::{Presence, PresenceChange};
use crate::error::EngineError;
use crate::runner::clock::{now_ns, own_cpu_ns, sleep_until};
use crate::runner::idle::{Scheduling, start_on};

/// A sleep ends that much before the frame is due, and the rest is waited for awake.
const AWAKE_NS: u64 = 5_000;
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

/// A way for frames to leave, and what says whether its interface is up.
pub(super) struct WayOut {
    pub(super) outlet: Box<dyn Outlet>,
    pub(super) up: UpCheck,
}

/// What finds an interface again that is gone.
pub(super) struct Again {
    pub(super) presence: Presence,
    /// Opens the way out of the interface of a name, for what comes after so many frames.
    pub(super) open: Box<OpenAgain>,
}

pub(super) type OpenAgain = dyn FnMut(&str, u64) -> Result<WayOut, EngineError> + Send;

/// How far a link is, for whoever watches it.
#[derive(Debug, Default)]
pub(super) struct LinkProgress {
    stop: AtomicBool,
    is_over: AtomicBool,
    frames: AtomicU64,
    bytes: AtomicU64,
    cpu_ns: AtomicU64,
    events: Mutex<Vec<LinkEvent>>,
}

impl LinkProgress {
    /// Whether all is sent that was to be sent.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// What became of the interface since the last call.
    pub(super) fn events(&self) -> Vec<LinkEvent> {
        std::mem::take(&mut self.of_link())
    }

    fn of_link(&self) -> MutexGuard<'_, Vec<LinkEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
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
pub(super) struct ReadyLink {
    progress: Arc<LinkProgress>,
    go: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<Option<BlastLinkEnd>>>,
}

impl ReadyLink {
    /// Starts the thread, which sends once it is [told to go](Self::go).
    ///
    /// # Errors
    /// When the CPU cannot be had.
    pub(super) fn prepare(
        way_out: WayOut,
        schedule: FrameSchedule,
        bounds: Bounds,
        again: Again,
        facts: &BlastLink,
    ) -> Result<Self, EngineError> {
        let progress = Arc::new(LinkProgress::default());
        let (go, told) = mpsc::channel();
        let (shared, facts, cpu) = (Arc::clone(&progress), facts.clone(), facts.cpu);
        let work = move |_| {
            told.recv().ok()?;
            let end =
                Sending::new(way_out, schedule, bounds, again, &shared).send_to_the_end(facts);
            shared.is_over.store(true, Ordering::Relaxed);
            Some(end)
        };
        let thread = start_on("nicpoll-blast", cpu, Scheduling::Fair, work);
        let (thread, _) = thread.map_err(|source| {
            EngineError::io(&format!("starting to send on CPU {cpu}"), &source)
        })?;
        Ok(ReadyLink {
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

    pub(super) fn progress(&self) -> &LinkProgress {
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

impl Drop for ReadyLink {
    fn drop(&mut self) {
        self.join();
    }
}

/// The thread's state.
struct Sending<'a> {
    way_out: WayOut,
    again: Again,
    /// What went by an interface that was removed.
    past: BlastCounts,
    past_account: Option<BlastAccount>,
    schedule: FrameSchedule,
    bounds: Bounds,
    progress: &'a LinkProgress,
    began_ns: u64,
    said_ns: u64,
    losses: LinkLosses,
    /// Since when the interface is down.
    down_since_ns: Option<u64>,
    /// How long it was down. Nothing is due in that time: the rate is that of a link that is up.
    down_ns: u64,
}

/// How often the link was down, and what was dropped meanwhile. The kernel counts the losses of its carrier, so one between
/// two looks is seen, too; what was dropped between these two looks is put down to it.
#[derive(Default)]
struct LinkLosses {
    /// Of interfaces that were removed.
    past: u64,
    /// Looks that found it down or gone, and losses of its carrier.
    seen: u64,
    of_carrier: u64,
    /// Frames that the driver had refused, and those that it had neither sent nor refused, as of the last look.
    dropped: [u64; 2],
    /// Of those, dropped while the link was down, or took no such frames.
    while_down: [u64; 2],
}

impl LinkLosses {
    fn count(&self) -> u64 {
        self.past + self.seen.max(self.of_carrier)
    }

    /// Takes note of the account as it is now, and whether the link is down or was since the last time.
    fn note(&mut self, account: &BlastAccount, was_down: bool) {
        let refused = account.refused_frames.unwrap_or(0);
        for (place, now) in [refused, missing(account)].into_iter().enumerate() {
            let before = std::mem::replace(&mut self.dropped[place], now);
            if was_down {
                self.while_down[place] += now.saturating_sub(before);
            }
        }
    }

    /// The interface has changed, and takes such frames no longer if some are missing since the last look.
    fn note_missing(&mut self, account: &BlastAccount) {
        let before = std::mem::replace(&mut self.dropped[1], missing(account));
        self.while_down[1] += self.dropped[1].saturating_sub(before);
    }

    /// Names the link as the reason for what was dropped while it was down.
    fn explain(&self, account: &mut BlastAccount) {
        let [refused, missing] = self.while_down;
        account.link_down_frames = account.refused_frames.map(|_| refused + missing);
        account.refused_frames = account
            .refused_frames
            .map(|all| all.saturating_sub(refused));
        account.residual_frames = account
            .residual_frames
            .map(|all| all - missing.cast_signed());
    }
}

/// Frames that nobody counts as sent or dropped.
fn missing(account: &BlastAccount) -> u64 {
    let frames = account.residual_frames.unwrap_or(0);
    frames.max(0).cast_unsigned()
}

impl<'a> Sending<'a> {
    fn new(
        way_out: WayOut,
        schedule: FrameSchedule,
        bounds: Bounds,
        again: Again,
        progress: &'a LinkProgress,
    ) -> Self {
        let began_ns = now_ns();
        Sending {
            way_out,
            again,
            past: BlastCounts::default(),
            past_account: None,
            schedule,
            bounds,
            progress,
            began_ns,
            said_ns: began_ns,
            losses: LinkLosses::default(),
            down_since_ns: None,
            down_ns: 0,
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
            Some(Errno::NXIO | Errno::NODEV) => {
                String::from("the interface is gone, or cannot be had")
            }
            _ => error.to_string(),
        });
        BlastLinkEnd {
            interface: facts.interface,
            path: facts.path,
            duration_seconds,
            totals: self.progress.look(),
            account: self.whole_account(),
            link_loss_events: self.losses.count(),
            failure,
        }
    }

    /// Sends until the bounds are reached, or it is told to stop, or the interface is gone.
    fn send_all(&mut self) -> io::Result<()> {
        while !self.progress.stop.load(Ordering::Relaxed) {
            let now_ns = now_ns();
            let elapsed = Duration::from_nanos(now_ns - self.began_ns);
            // What waits in a ring is sent once the interface is up: it counts.
            let sent = self.built().built_frames;
            let left = self.bounds.frames.map_or(u64::MAX, |frames| frames - sent);
            if left == 0 || self.bounds.time.is_some_and(|time| elapsed >= time) {
                break;
            }
            let in_use = elapsed.saturating_sub(Duration::from_nanos(self.down_ns));
            let ahead = self.schedule.ahead(sent, in_use);
            if !ahead.is_zero() {
                self.wait(now_ns, ahead);
                continue;
            }
            let at_a_time = u64::from(self.way_out.outlet.at_a_time());
            let most = self.schedule.due(sent, in_use, at_a_time.min(left));
            match self.send(most as u32) {
                Ok(0) => thread::yield_now(),
                Ok(_) => {}
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::NODATA) => break,
                    Some(Errno::NETDOWN) => self.wait_for_link(now_ns),
                    Some(Errno::NXIO | Errno::NODEV | Errno::MSGSIZE) => {
                        self.wait_for_interface(now_ns, error)?;
                    }
                    _ => return Err(error),
                },
            }
            self.note(now_ns);
        }
        Ok(())
    }

    /// Sends up to `most` frames while the interface is up.
    fn send(&mut self, most: u32) -> io::Result<u32> {
        if self.way_out.up.is_due() {
            self.attend();
            self.look()?;
        }
        if !self.again.presence.is_there() {
            return Err(Errno::NODEV.into());
        }
        let sent = self.way_out.outlet.send(most)?;
        if let Some(since_ns) = self.down_since_ns.take() {
            self.down_ns += now_ns() - since_ns;
        }
        Ok(sent)
    }

    /// Looks whether the interface is up, and what was dropped if it was not.
    fn look(&mut self) -> io::Result<()> {
        let is_up = self.way_out.up.check();
        let (of_carrier, had_none) = self.way_out.up.carrier_losses();
        let account = self.way_out.outlet.account();
        self.losses.of_carrier += of_carrier;
        self.losses.note(&account, had_none || is_up.is_err());
        is_up
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

    fn wait_for_link(&mut self, now_ns: u64) {
        self.losses.seen += u64::from(self.down_since_ns.is_none());
        self.pause(now_ns);
    }

    fn pause(&mut self, now_ns: u64) {
        self.down_since_ns.get_or_insert(now_ns);
        thread::sleep(DOWN_PAUSE);
    }

    /// Waits for an interface that is gone, and opens the way out of it again.
    ///
    /// # Errors
    /// What the kernel said, when nobody is to wait.
    fn wait_for_interface(&mut self, now_ns: u64, error: io::Error) -> io::Result<()> {
        let is_otherwise = self.attend();
        let presence = &self.again.presence;
        // Where it is there as it was, it has another trouble.
        if presence.ends() || presence.is_there() && !is_otherwise {
            return Err(error);
        }
        self.pause(now_ns);
        Ok(())
    }

    /// Looks whether the interface went, is back or has changed, and opens the way out of it again. Returns whether it did.
    fn attend(&mut self) -> bool {
        let Some(found) = self.again.presence.look() else {
            return false;
        };
        let opened = match found.0 {
            PresenceChange::Gone => {
                self.losses.seen += u64::from(self.down_since_ns.is_none());
                Ok(())
            }
            PresenceChange::Back => self.open_again(),
            PresenceChange::Otherwise => {
                let account = self.way_out.outlet.account();
                self.losses.note_missing(&account);
                self.drain();
                self.open_again()
            }
        };
        let told = self.again.presence.events_of(found, opened);
        self.progress.of_link().extend(told);
        true
    }

    fn open_again(&mut self) -> Result<(), EngineError> {
        let (sent, name) = (self.built(), self.again.presence.name.clone());
        self.past_account = Some(self.account());
        self.losses = LinkLosses {
            past: self.losses.count(),
            ..LinkLosses::default()
        };
        self.past = sent;
        // First: a queue has one socket.
        self.way_out.outlet = Box::new(Closed);
        self.way_out = (self.again.open)(&name, sent.built_frames)?;
        Ok(())
    }

    /// What was written so far.
    fn built(&self) -> BlastCounts {
        let now = self.way_out.outlet.built();
        BlastCounts {
            built_frames: self.past.built_frames + now.built_frames,
            built_bytes: self.past.built_bytes + now.built_bytes,
            ..now
        }
    }

    /// Says what was written, and now and then the CPU time that it took.
    fn note(&mut self, now_ns: u64) {
        let (built, progress) = (self.built(), self.progress);
        progress.frames.store(built.built_frames, Ordering::Relaxed);
        progress.bytes.store(built.built_bytes, Ordering::Relaxed);
        if now_ns >= self.said_ns + SAY_EVERY_NS {
            progress.cpu_ns.store(own_cpu_ns(), Ordering::Relaxed);
            self.said_ns = now_ns;
        }
    }

    /// Waits until the kernel is done with all frames, as long as it goes on; for an interface that is down, until it is
    /// up or the time is over.
    fn drain(&mut self) {
        let mut looks = 0;
        while looks < DRAIN_LOOKS && self.way_out.outlet.account().unfinished_frames > 0 {
            let error = self.send(0).err();
            let errno = error.as_ref().and_then(Errno::from_io_error);
            let is_down = errno == Some(Errno::NETDOWN);
            if error.is_some() && !is_down {
                // Whatever waits there goes with the interface, or can never leave, and was not taken.
                return;
            }
            let is_late = self.bounds.time.is_some_and(|time| {
                now_ns() - self.began_ns >= u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
            });
            let has_to_end = is_late || self.progress.stop.load(Ordering::Relaxed);
            looks += u32::from(!is_down || has_to_end);
            thread::sleep(DOWN_PAUSE);
        }
    }

    /// Where all its frames ended.
    fn whole_account(&mut self) -> BlastAccount {
        let mut account = self.account();
        let was_down = self.losses.count() > 0;
        let of_link = account.link_down_frames;
        account.link_down_frames = of_link.filter(|frames| was_down || *frames > 0);
        account
    }

    fn account(&mut self) -> BlastAccount {
        // A last look. One that finds it down is told of, and no failure.
        let _ = self.look();
        let mut account = self.way_out.outlet.account();
        self.losses.explain(&mut account);
        match &self.past_account {
            Some(past) => sum(past, &account),
            None => account,
        }
    }
}

/// Two accounts together. What one does not know, nobody knows of both.
fn sum(one: &BlastAccount, other: &BlastAccount) -> BlastAccount {
    let both = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
    BlastAccount {
        built_frames: one.built_frames + other.built_frames,
        handed_frames: one.handed_frames + other.handed_frames,
        refused_frames: both(one.refused_frames, other.refused_frames),
        link_down_frames: both(one.link_down_frames, other.link_down_frames),
        completed_frames: both(one.completed_frames, other.completed_frames),
        unfinished_frames: one.unfinished_frames + other.unfinished_frames,
        residual_frames: one
            .residual_frames
            .zip(other.residual_frames)
            .map(|(one, other)| one + other),
    }
}
