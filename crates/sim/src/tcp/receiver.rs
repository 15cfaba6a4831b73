//! The receiving end: what it takes, when it acknowledges, and the window that it tells.
//!
//! What must hold: the window's right edge never moves back, and what the program has not read never takes
//! more than the buffer holds.

use super::reassembly::Reassembly;
use super::timing::{Now, delayed_ack_ticks};
use super::{Ack, Segment};

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    segment_bytes_max: u64,
    buffer_bytes: u64,
    hz: u64,
    /// The byte that is expected next (`rcv_nxt`).
    next: u64,
    /// Bytes that the program has read.
    read: u64,
    /// The right edge of the window that was told (`rcv_adv`).
    told_edge: u64,
    /// Whether the window that was told last is closed (`TF_RXWIN0SENT`).
    told_closed: bool,
    /// What the last acknowledgement said (`last_ack_sent`).
    acknowledged: u64,
    out_of_order: Reassembly,
    /// The stamp to echo (`ts_recent`).
    stamp: Now,
    owes_ack: bool,
    delayed_ack_tick: Option<u64>,
    acknowledgements: u64,
}

impl Receiver {
    /// An open connection whose first window, all of the buffer, the sender knows.
    pub(crate) fn new(segment_bytes_max: u64, buffer_bytes: u64, hz: u64) -> Self {
        Receiver {
            segment_bytes_max,
            buffer_bytes,
            hz,
            next: 0,
            read: 0,
            told_edge: buffer_bytes,
            told_closed: false,
            acknowledged: 0,
            out_of_order: Reassembly::default(),
            stamp: Now::default(),
            owes_ack: false,
            delayed_ack_tick: None,
            acknowledgements: 0,
        }
    }

    /// A segment has arrived. The first of two in order may wait for the second, or for
    /// a tenth of a second; anything else is answered at once (RFC 1122, 4.2.3.2; RFC 5681, 4.2).
    /// Returns the bytes that the program can read now and could not before.
    pub(crate) fn take(&mut self, now: Now, segment: Segment) -> u64 {
        // RFC 1323, 4.3: the stamp of the segment that the next acknowledgement answers.
        if segment.seq <= self.acknowledged && segment.end() > self.acknowledged {
            self.stamp = segment.stamp;
        }
        let start = segment.seq.max(self.next);
        let end = segment.end().min(self.next + self.free());
        if start >= end {
            // A duplicate, a probe of a closed window, or beyond any window.
            self.owes_ack = true;
            return 0;
        }
        let before = self.next;
        if start == self.next && self.out_of_order.is_empty() {
            self.next = end;
            if self.delayed_ack_tick.is_some() || self.told_closed {
                self.owes_ack = true;
            } else {
                self.delayed_ack_tick = Some(now.after(delayed_ack_ticks(self.hz)));
            }
        } else {
            self.out_of_order.insert(start, end);
            self.next = self.out_of_order.take_from(self.next);
            self.owes_ack = true;
        }
        self.next - before
    }

    /// Bytes of a full segment.
    pub(crate) fn segment_bytes_max(&self) -> u64 {
        self.segment_bytes_max
    }

    /// Bytes that the program can read.
    pub(crate) fn readable(&self) -> u64 {
        self.next - self.read
    }

    /// Bytes that have come in order.
    pub(crate) fn received(&self) -> u64 {
        self.next
    }

    /// Acknowledgements sent so far.
    pub(crate) fn acknowledgements(&self) -> u64 {
        self.acknowledgements
    }

    /// The program reads up to so many bytes. Returns how many it gets.
    pub(crate) fn read(&mut self, bytes_max: u64) -> u64 {
        let bytes = self.readable().min(bytes_max);
        self.read += bytes;
        bytes
    }

    /// Room in the buffer. What was told never ends beyond it.
    fn free(&self) -> u64 {
        self.buffer_bytes - self.readable()
    }

    /// The acknowledgement to send, if one is due: one is owed, or the window's edge can move by two
    /// segments or by half the buffer (`tcp_output`). To be asked after each segment, read and timer.
    pub(crate) fn poll_ack(&mut self) -> Option<Ack> {
        // RFC 1122, 4.2.3.3: no window that opens by crumbs.
        let is_silly = self.free() < self.segment_bytes_max && self.free() < self.buffer_bytes / 4;
        let free = if is_silly { 0 } else { self.free() };
        let edge = (self.next + free).max(self.told_edge);
        let gain = edge - self.told_edge;
        let is_update =
            gain > 0 && (gain >= 2 * self.segment_bytes_max || 2 * gain >= self.buffer_bytes);
        if !self.owes_ack && !is_update {
            return None;
        }
        self.told_edge = edge;
        self.told_closed = edge == self.next;
        self.acknowledged = self.next;
        self.owes_ack = false;
        self.delayed_ack_tick = None;
        self.acknowledgements += 1;
        Some(Ack {
            next: self.next,
            window: edge - self.next,
            echo: self.stamp,
        })
    }

    /// When it wants [`Receiver::timer`] to be called.
    pub(crate) fn deadline_tick(&self) -> Option<u64> {
        self.delayed_ack_tick
    }

    /// Time has come to `now` (`tcp_timer_delack`).
    pub(crate) fn timer(&mut self, now: Now) {
        if self.delayed_ack_tick.is_some_and(|due| due <= now.tick) {
            self.delayed_ack_tick = None;
            self.owes_ack = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1448;
    const START: Now = Now { ns: 0, tick: 0 };

    fn at(tick: u64) -> Now {
        Now {
            ns: tick * 1_000_000,
            tick,
        }
    }

    fn receiver(buffer_bytes: u64) -> Receiver {
        Receiver::new(MSS, buffer_bytes, 1000)
    }

    fn segment(number: u64) -> Segment {
        Segment {
            seq: number * MSS,
            bytes: MSS,
            stamp: at(number + 1),
        }
    }

    #[test]
    fn every_second_segment_is_acknowledged_and_the_first_after_a_tenth_of_a_second() {
        let mut receiver = receiver(65_536);
        assert_eq!(receiver.take(START, segment(0)), MSS);
        assert_eq!(receiver.poll_ack(), None);
        assert_eq!(receiver.take(START, segment(1)), MSS);
        let ack = receiver.poll_ack().unwrap();
        // The echo is that of the first segment that it answers.
        assert_eq!(
            (ack.next, ack.window, ack.echo.tick),
            (2 * MSS, 65_536 - 2 * MSS, 1)
        );
        assert_eq!(
            (receiver.poll_ack(), receiver.deadline_tick()),
            (None, None)
        );
        receiver.take(at(5), segment(2));
        assert_eq!(receiver.deadline_tick(), Some(105));
        receiver.timer(at(104));
        assert_eq!(receiver.poll_ack(), None);
        receiver.timer(at(105));
        assert_eq!(receiver.poll_ack().map(|ack| ack.next), Some(3 * MSS));
    }

    #[test]
    fn a_read_of_two_segments_moves_the_window_and_a_read_of_one_does_not() {
        let mut receiver = receiver(65_536);
        receiver.take(START, segment(0));
        receiver.take(START, segment(1));
        receiver.poll_ack().unwrap();
        assert_eq!(receiver.read(MSS), MSS);
        assert_eq!(receiver.poll_ack(), None);
        assert_eq!(receiver.read(u64::MAX), MSS);
        assert_eq!(receiver.poll_ack().map(|ack| ack.window), Some(65_536));
    }

    #[test]
    fn what_is_out_of_order_is_answered_at_once_and_kept() {
        let mut receiver = receiver(65_536);
        assert_eq!(receiver.take(START, segment(1)), 0);
        assert_eq!(receiver.poll_ack().map(|ack| ack.next), Some(0));
        assert_eq!(receiver.take(START, segment(3)), 0);
        assert_eq!(receiver.poll_ack().map(|ack| ack.next), Some(0));
        // The gap closes up to the next one.
        assert_eq!(receiver.take(START, segment(0)), 2 * MSS);
        assert_eq!(receiver.poll_ack().map(|ack| ack.next), Some(2 * MSS));
        assert_eq!(receiver.take(START, segment(2)), 2 * MSS);
        assert_eq!(receiver.poll_ack().map(|ack| ack.next), Some(4 * MSS));
        // A duplicate too.
        assert_eq!(receiver.take(START, segment(2)), 0);
        assert_eq!(receiver.poll_ack().map(|ack| ack.next), Some(4 * MSS));
    }

    #[test]
    fn a_closed_window_opens_in_one_step_and_its_probes_are_answered() {
        let mut receiver = receiver(4 * MSS);
        for number in 0..4 {
            receiver.take(START, segment(number));
        }
        let ack = receiver.poll_ack().unwrap();
        assert_eq!((ack.next, ack.window), (4 * MSS, 0));
        let probe = Segment {
            bytes: 1,
            ..segment(4)
        };
        assert_eq!(receiver.take(START, probe), 0);
        assert_eq!(receiver.poll_ack().map(|ack| ack.window), Some(0));
        // Less than two segments, and less than half the buffer.
        receiver.read(MSS - 1);
        assert_eq!(receiver.poll_ack(), None);
        receiver.read(MSS + 1);
        assert_eq!(receiver.poll_ack().map(|ack| ack.window), Some(2 * MSS));
    }
}
