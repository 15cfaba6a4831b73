//! Signals that ask to stop: the first lets the study put everything back, a later one ends at once
//! (what is left then is put back by the next start).
//!
//! What must hold: one request is one, however many signals carry it: timeout(1), for one, signals the
//! program and then its whole process group.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use nicpoll_traffic::Signals;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::pipe;

/// Signals that follow the first one within this time belong to it.
const ONE_REQUEST: Duration = Duration::from_millis(500);

/// How often the signals are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Which signal came, if any.
#[derive(Debug)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    number: Arc<AtomicUsize>,
}

impl Stop {
    /// Catches the signals from now on.
    pub fn on_signals() -> io::Result<Self> {
        let stop = Stop {
            asked: Arc::default(),
            number: Arc::default(),
        };
        let is_repeated = Arc::new(AtomicBool::new(false));
        let (mut first, told) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register_conditional_shutdown(signal, 128 + signal, is_repeated.clone())?;
            flag::register_usize(signal, stop.number.clone(), signal as usize)?;
            flag::register(signal, stop.asked.clone())?;
            pipe::register(signal, told.try_clone()?)?;
        }
        // Asleep until the first signal; ends with the process.
        thread::Builder::new()
            .name(String::from("nicpoll-stop"))
            .spawn(move || {
                if first.read_exact(&mut [0]).is_ok() {
                    thread::sleep(ONE_REQUEST);
                    is_repeated.store(true, Ordering::Relaxed);
                }
            })?;
        Ok(stop)
    }

    /// Becomes true when a signal came.
    pub fn asked(&self) -> &AtomicBool {
        &self.asked
    }

    /// The signal that came.
    pub fn signal(&self) -> Option<i32> {
        match self.number.load(Ordering::Relaxed) {
            0 => None,
            number => Some(number as i32),
        }
    }
}

/// Has `end` called with the first signal that asks to stop, so that what was measured until then is
/// still told. A second signal ends the program at once. The thread that looks ends with the process.
pub fn on_signal(signals: &Arc<Signals>, end: fn(&Signals)) -> io::Result<Arc<Stop>> {
    let stop = Arc::new(Stop::on_signals()?);
    let signals = Arc::clone(signals);
    let looking = Arc::clone(&stop);
    thread::Builder::new()
        .name(String::from("nicpoll-signals"))
        .spawn(move || {
            while !looking.asked().load(Ordering::Relaxed) {
                thread::sleep(LOOK_EVERY);
            }
            end(&signals);
        })?;
    Ok(stop)
}
