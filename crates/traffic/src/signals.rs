//! Requests to a running sender or receiver, and the signals that stop the program.
//!
//! After the first signal, the program restores everything and ends. After a later one it ends at once, and the
//! next start restores what is left; the terminal is restored in either case. Signals that come together are
//! one request: timeout(1) signals the program and then its whole process group.

use std::ffi::c_int;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_sys::schedule;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::low_level::{self, pipe};

/// Longest wait without a check of the signals.
pub const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Shared between the two ends of a stream and the code that runs them.
#[derive(Debug, Default)]
pub struct Signals {
    /// Give up: every loop returns its `Cancelled` error within 100 ms.
    pub cancel: AtomicBool,
    /// End normally: a sender ends its stream as if its time were up. For a receiver, set [`sender_done`].
    ///
    /// [`sender_done`]: Self::sender_done
    pub finish: AtomicBool,
    /// The sender has ended and nothing is in flight: receivers read what is queued in their sockets and end
    /// without waiting for silence.
    pub sender_done: AtomicBool,
}

/// [`Signals::cancel`] was set.
#[derive(Debug)]
pub struct Cancelled;

impl Signals {
    /// Whether to give up.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Fails if the operation is to give up.
    ///
    /// # Errors
    /// [`Cancelled`] if it is.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() {
            return Err(Cancelled);
        }
        Ok(())
    }

    /// Whether to end normally.
    pub fn is_finishing(&self) -> bool {
        self.finish.load(Ordering::Relaxed)
    }

    /// Whether the sender is done and nothing is in flight.
    pub fn is_sender_done(&self) -> bool {
        // Datagrams sent before the flag was set must be visible in the socket afterwards.
        self.sender_done.load(Ordering::Acquire)
    }
}

/// Signals that ask the program to end.
const SIGNALS: [c_int; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Signals this soon after the first belong to the same request.
const ONE_REQUEST: Duration = Duration::from_millis(500);

/// Limit on the last act before the end: the terminal may be blocked.
const LAST_ACT: Duration = Duration::from_millis(500);

/// Which signal came, if any.
#[derive(Debug)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    number: Arc<AtomicUsize>,
    last_act: Arc<OnceLock<fn()>>,
}

impl Stop {
    /// Catches the signals from now on.
    pub fn on_signals() -> io::Result<Self> {
        let stop = Stop::noted()?;
        stop.at_once_on_another()?;
        Ok(stop)
    }

    /// From now on, a later signal ends the program at once. It takes a thread.
    pub fn at_once_on_another(&self) -> io::Result<()> {
        let (came, told) = UnixStream::pair()?;
        for signal in SIGNALS {
            // Registered last: when the pipe is readable, the other two are set.
            pipe::register(signal, told.try_clone()?)?;
        }
        let (number, last_act) = (self.number.clone(), self.last_act.clone());
        // Sleeps until a signal; ends with the process.
        schedule::spawn("nicpoll-stop", move || {
            if await_second_request(came).is_ok() {
                end_at_once(&number, last_act.get().copied());
            }
        })?;
        Ok(())
    }

    /// Records the signals from now on, without a thread: a later signal does not end the program at once.
    pub fn noted() -> io::Result<Self> {
        let stop = Stop {
            asked: Arc::default(),
            number: Arc::default(),
            last_act: Arc::default(),
        };
        // A file at its size limit must be an error of its writer, so changes are still undone.
        flag::register(SIGXFSZ, Arc::default())?;
        for signal in SIGNALS {
            flag::register_usize(signal, stop.number.clone(), signal as usize)?;
            flag::register(signal, stop.asked.clone())?;
        }
        Ok(stop)
    }

    /// Runs `act` before a second request ends the program. Only the first call counts.
    pub fn before_end_at_once(&self, act: fn()) {
        let _ = self.last_act.set(act);
    }

    /// Becomes true when a signal comes.
    pub fn asked(&self) -> &AtomicBool {
        &self.asked
    }

    /// Waits until a time or a signal; returns `false` on a signal.
    pub fn wait_until(&self, until: Instant) -> bool {
        loop {
            if self.asked.load(Ordering::Relaxed) {
                return false;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            thread::sleep(left.min(LOOK_EVERY));
        }
    }

    /// The signal that came.
    pub fn signal(&self) -> Option<i32> {
        match self.number.load(Ordering::Relaxed) {
            0 => None,
            number => Some(number as i32),
        }
    }
}

/// Waits for a second request. Each signal is a byte; those soon after the first belong to it.
fn await_second_request(mut came: UnixStream) -> io::Result<()> {
    came.read_exact(&mut [0])?;
    thread::sleep(ONE_REQUEST);
    came.set_nonblocking(true)?;
    while matches!(came.read(&mut [0; 64]), Ok(1..)) {}
    came.set_nonblocking(false)?;
    came.read_exact(&mut [0])
}

/// Ends the process, whatever its other threads hold or wait for.
fn end_at_once(number: &AtomicUsize, last_act: Option<fn()>) {
    if let Some(act) = last_act {
        let (done, is_done) = mpsc::channel();
        let acting = thread::Builder::new().spawn(move || {
            act();
            let _ = done.send(());
        });
        if acting.is_ok() {
            let _ = is_done.recv_timeout(LAST_ACT);
        }
    }
    low_level::exit(128 + number.load(Ordering::Relaxed) as i32);
}

/// Calls `end` at the first signal, so results so far are still reported. A second signal ends the program at
/// once. The watching thread ends with the process.
pub fn on_signal(signals: &Arc<Signals>, end: fn(&Signals)) -> io::Result<Arc<Stop>> {
    let stop = Arc::new(Stop::on_signals()?);
    let signals = Arc::clone(signals);
    let looking = Arc::clone(&stop);
    schedule::spawn("nicpoll-signals", move || {
        while !looking.asked().load(Ordering::Relaxed) {
            thread::sleep(LOOK_EVERY);
        }
        end(&signals);
    })?;
    Ok(stop)
}
