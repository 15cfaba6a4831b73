//! Signals that ask to stop: the first lets the study put everything back, a second one ends at once
//! (what is left then is put back by the next start).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

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
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Registered first, so it acts on the signal after the one that sets the flag.
            flag::register_conditional_shutdown(signal, 128 + signal, stop.asked.clone())?;
            flag::register_usize(signal, stop.number.clone(), signal as usize)?;
            flag::register(signal, stop.asked.clone())?;
        }
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
