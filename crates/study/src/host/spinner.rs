//! A program that computes beside the traffic: the share of a core that it gets is what the traffic leaves to others.
//!
//! What must hold: it is an ordinary program, scheduled as others are, and it ends by itself.

use std::hint;
use std::io;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nicpoll_sys::affinity;
use rustix::time::{ClockId, clock_gettime};

/// Rounds between two looks at the clock.
const ROUNDS: u32 = 1000;

/// A spinner at work.
pub struct Spinner(JoinHandle<io::Result<f64>>);

impl Spinner {
    /// Computes on `cpu` for so long.
    ///
    /// # Errors
    /// When there can be no further thread.
    pub fn start(cpu: u32, duration: Duration) -> io::Result<Self> {
        let thread = thread::Builder::new().name(String::from("nicpoll-spinner"));
        let thread = thread.spawn(move || {
            affinity::pin(cpu)?;
            Ok(spin(duration))
        });
        thread.map(Spinner)
    }

    /// Waits for its end: the share of the time that it got, 0 to 1.
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

/// What the calling thread has used.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_by_itself_with_its_share_and_says_when_there_is_no_such_core() {
        let cpu = affinity::allowed_cpus().unwrap()[0];
        let share = Spinner::start(cpu, Duration::from_millis(20)).unwrap();
        let share = share.end().unwrap();
        assert!(share > 0.0 && share <= 1.0, "{share}");
        let nowhere = Spinner::start(1_000, Duration::from_secs(60)).unwrap();
        nowhere.end().unwrap_err();
    }
}
