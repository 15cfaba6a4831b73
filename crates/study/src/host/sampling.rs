//! Reads what passes through a host, again and again, on a thread of its own.
//!
//! What must hold: the thread wakes once a step and keeps to the clock: a late reading does not move those after it.
//! It holds a bounded number of readings, and ends with the value that it belongs to.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nicpoll_model::STEPS_MAX;
use nicpoll_observe::{FlowReader, FlowReading};

/// Steps that are read at most, of a run that takes longer than it was to.
const READINGS_MAX: usize = 2 * STEPS_MAX as usize;

/// Readings that are being taken.
pub struct Sampling {
    /// Ends the readings when it is dropped.
    go_on: mpsc::Sender<()>,
    thread: JoinHandle<io::Result<Vec<FlowReading>>>,
}

impl Sampling {
    /// Reads now, and once a step from now on. The thread is in the network namespace of the caller, as the reader is.
    ///
    /// # Errors
    /// When there can be no further thread.
    pub fn start(mut reader: FlowReader, step: Duration) -> io::Result<Self> {
        let (go_on, ended) = mpsc::channel::<()>();
        let thread = thread::Builder::new()
            .name(String::from("nicpoll-series"))
            .spawn(move || {
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

    /// Reads a last time; all readings.
    ///
    /// # Errors
    /// When the counters could not be read.
    pub fn end(self) -> io::Result<Vec<FlowReading>> {
        drop(self.go_on);
        let readings = self.thread.join();
        readings.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

#[cfg(test)]
mod tests {
    use nicpoll_model::line::IpVersion;

    use super::*;

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
