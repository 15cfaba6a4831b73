//! When a reader waits for as much as it can take.
//!
//! A reader that is woken for every segment costs a wake-up each, which on the sender's core is dearer
//! than the copy. One that waits for a whole read is woken once for it; but on a slow stream it would
//! learn of what came only when its wait is over, and tell it in a later interval.
//!
//! What must hold: no byte that has come waits for longer than about a millisecond.

use std::io;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use nicpoll_sys::socket;

/// How often the rate is looked at.
const WINDOW: Duration = Duration::from_millis(10);
/// A stream on which a whole read takes less than this is fast.
const FAST: Duration = Duration::from_millis(1);

/// The low-water mark of one reader, raised while its stream is fast.
#[derive(Debug)]
pub(super) struct LowWater {
    read_bytes: usize,
    is_raised: bool,
    window_begun: Instant,
    window_bytes: u64,
}

impl LowWater {
    /// For reads of `read_bytes`; not raised.
    pub(super) fn new(read_bytes: usize, now: Instant) -> Self {
        LowWater {
            read_bytes,
            is_raised: false,
            window_begun: now,
            window_bytes: 0,
        }
    }

    /// Takes note of a read that returned `read` bytes `now`.
    ///
    /// # Errors
    /// When the mark cannot be moved.
    pub(super) fn after(
        &mut self,
        stream: &TcpStream,
        read: usize,
        now: Instant,
    ) -> io::Result<()> {
        if let Some(is_raised) = self.change(read, now) {
            let bytes = if is_raised { self.read_bytes } else { 1 };
            socket::set_receive_low_water(stream, bytes)?;
        }
        Ok(())
    }

    /// Whether the mark is to be raised or lowered.
    fn change(&mut self, read: usize, now: Instant) -> Option<bool> {
        self.window_bytes += read as u64;
        let elapsed = now.duration_since(self.window_begun);
        if elapsed < WINDOW {
            return None;
        }
        let read_takes =
            elapsed.as_nanos() * self.read_bytes as u128 / u128::from(self.window_bytes.max(1));
        self.window_begun = now;
        self.window_bytes = 0;
        let is_fast = read_takes < FAST.as_nanos();
        let is_change = is_fast != self.is_raised;
        self.is_raised = is_fast;
        is_change.then_some(is_fast)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_raised_while_a_read_fills_within_a_millisecond() {
        let begun = Instant::now();
        let mut mark = LowWater::new(1000, begun);
        let ms = |ms| begun + Duration::from_millis(ms);
        assert_eq!(mark.change(1_000_000, ms(5)), None);
        assert_eq!(mark.change(1, ms(10)), Some(true));
        assert_eq!(mark.change(11_000, ms(20)), None);
        // Slower: 1 ms a read, then nothing for long.
        assert_eq!(mark.change(10_000, ms(30)), Some(false));
        assert_eq!(mark.change(1, ms(90)), None);
        assert_eq!(mark.change(10_001, ms(100)), Some(true));
    }
}
