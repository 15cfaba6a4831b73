//! The sending end: what it may send, and what it does about losses.
//!
//! What must hold: `acknowledged <= next <= sent <= written`, no more than the buffer is held, and while
//! anything is held the retransmit or the persist timer runs.

use super::congestion::{Congestion, Loss};
use super::timing::{Now, RoundTrip};
use super::{Ack, Segment};

/// Room in the buffer for which a waiting writer is woken (`sb_lowat`).
const ROOM_MIN: u64 = 2048;

/// What keeps a sender from sending more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// The program has not written it.
    Program,
    /// The send buffer is full of what is not acknowledged.
    Buffer,
    /// The receiver's window.
    Window,
    /// The congestion window.
    Congestion,
}

/// What a sender has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SenderCounts {
    pub(crate) segments: u64,
    /// Of these, ones that begin with bytes that were sent before.
    pub(crate) retransmits: u64,
    /// Losses that duplicates told of.
    pub(crate) fast_retransmits: u64,
    pub(crate) timeouts: u64,
    /// Bytes sent into a closed window.
    pub(crate) probes: u64,
    /// Round trips, summed up and how many.
    pub(crate) round_trip_ns: u128,
    pub(crate) round_trips: u64,
    /// Time in which each of [`Held`] kept it from sending, in their order.
    pub(crate) held_ns: [u64; 4],
}

impl SenderCounts {
    /// Of these, what came after an earlier moment.
    pub(crate) fn since(&self, before: &SenderCounts) -> SenderCounts {
        SenderCounts {
            segments: self.segments - before.segments,
            retransmits: self.retransmits - before.retransmits,
            fast_retransmits: self.fast_retransmits - before.fast_retransmits,
            timeouts: self.timeouts - before.timeouts,
            probes: self.probes - before.probes,
            round_trip_ns: self.round_trip_ns - before.round_trip_ns,
            round_trips: self.round_trips - before.round_trips,
            held_ns: std::array::from_fn(|held| self.held_ns[held] - before.held_ns[held]),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    segment_bytes_max: u64,
    buffer_bytes: u64,
    /// First byte that is not acknowledged (`snd_una`).
    acknowledged: u64,
    /// Byte to be sent next (`snd_nxt`): below `sent` after a timeout.
    next: u64,
    /// End of what was sent (`snd_max`).
    sent: u64,
    /// End of what the program has written.
    written: u64,
    /// The receiver's window, from `window_from` on, and the greatest that there was (`snd_wnd`,
    /// `snd_wl2`, `max_sndwnd`).
    window: u64,
    window_from: u64,
    window_most: u64,
    congestion: Congestion,
    round_trip: RoundTrip,
    retransmit_tick: Option<u64>,
    persist_tick: Option<u64>,
    /// Timeouts in a row.
    shift: usize,
    /// Whether the first byte that is not acknowledged is to be sent again at once.
    resends: bool,
    probes: bool,
    held: Option<(Held, u64)>,
    counts: SenderCounts,
}

impl Sender {
    /// An open connection to a receiver whose first window is `window`.
    pub(crate) fn new(segment_bytes_max: u64, buffer_bytes: u64, window: u64, hz: u64) -> Self {
        Sender {
            segment_bytes_max,
            buffer_bytes,
            acknowledged: 0,
            next: 0,
            sent: 0,
            written: 0,
            window,
            window_from: 0,
            window_most: window,
            congestion: Congestion::new(segment_bytes_max),
            round_trip: RoundTrip::new(hz),
            retransmit_tick: None,
            persist_tick: None,
            shift: 0,
            resends: false,
            probes: false,
            held: None,
            counts: SenderCounts::default(),
        }
    }

    /// The program writes. Returns the bytes that found room.
    pub(crate) fn write(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.room());
        self.written += taken;
        taken
    }

    /// Bytes that the buffer has room for.
    pub(crate) fn room(&self) -> u64 {
        self.buffer_bytes - (self.written - self.acknowledged)
    }

    /// Whether a writer that waits for room goes on (`sbwait` until `sb_lowat`).
    pub(crate) fn has_room(&self) -> bool {
        self.room() >= ROOM_MIN.min(self.buffer_bytes)
    }

    /// Bytes that the receiver is known to have.
    #[cfg(test)]
    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Bytes that the program has written.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// What it has done until `now_ns`.
    pub(crate) fn counts(&self, now_ns: u64) -> SenderCounts {
        let mut counts = self.counts;
        if let Some((held, since_ns)) = self.held {
            counts.held_ns[held as usize] += now_ns - since_ns;
        }
        counts
    }

    /// An acknowledgement has arrived (`tcp_input`).
    pub(crate) fn acknowledge(&mut self, now: Now, ack: Ack) {
        if ack.next > self.sent {
            // Of nothing that was sent.
            return;
        }
        if ack.next > self.acknowledged {
            self.advance(now, ack);
        } else if ack.window == self.window
            && ack.next == self.acknowledged
            && self.retransmit_tick.is_some()
        {
            let loss = self
                .congestion
                .duplicate(self.acknowledged, self.sent, self.window);
            if loss == Loss::Found {
                self.counts.fast_retransmits += 1;
                self.resend();
            }
        } else {
            self.congestion.forget_duplicates();
        }
        // RFC 793, 3.9: no window of an older acknowledgement.
        let is_newer = ack.next > self.window_from
            || (ack.next == self.window_from && ack.window > self.window);
        if is_newer {
            self.window = ack.window;
            self.window_from = ack.next;
            self.window_most = self.window_most.max(ack.window);
        }
    }

    fn advance(&mut self, now: Now, ack: Ack) {
        let acked = ack.next - self.acknowledged;
        self.acknowledged = ack.next;
        self.next = self.next.max(ack.next);
        self.round_trip.sample(now, ack.echo);
        self.counts.round_trip_ns += u128::from(now.ns.saturating_sub(ack.echo.ns));
        self.counts.round_trips += 1;
        self.shift = 0;
        self.resends = false;
        self.retransmit_tick = None;
        if self.acknowledged == self.written {
            self.persist_tick = None;
        } else if self.acknowledged < self.sent && self.persist_tick.is_none() {
            self.start_retransmit_timer(now);
        }
        let loss = self
            .congestion
            .advance(acked, self.acknowledged, self.sent, self.window);
        if loss == Loss::Another {
            self.resend();
        }
    }

    /// The first segment that is not acknowledged goes out again, and its timer starts anew.
    fn resend(&mut self) {
        self.resends = true;
        self.retransmit_tick = None;
    }

    /// The next segment to send, if one may go (`tcp_output`). To be asked after each write,
    /// acknowledgement and timer, until there is none.
    pub(crate) fn poll_segment(&mut self, now: Now) -> Option<Segment> {
        let segment = self.next_segment(now);
        if segment.is_none() {
            self.wait(now);
        } else {
            self.count_held(now);
        }
        segment
    }

    fn next_segment(&mut self, now: Now) -> Option<Segment> {
        if std::mem::take(&mut self.probes) {
            return self.probe(now);
        }
        if std::mem::take(&mut self.resends) {
            let end = self.sent.min(self.acknowledged + self.segment_bytes_max);
            self.counts.retransmits += 1;
            self.next = self.next.max(end);
            return Some(self.segment(now, self.acknowledged, end));
        }
        let window = self.window.min(self.congestion.window());
        let end = self.written.min(self.acknowledged.saturating_add(window));
        let bytes = end.saturating_sub(self.next).min(self.segment_bytes_max);
        if bytes == 0 || !self.is_worth_sending(bytes) {
            return None;
        }
        self.persist_tick = None;
        let start = self.next;
        self.counts.retransmits += u64::from(start < self.sent);
        self.next += bytes;
        self.sent = self.sent.max(self.next);
        Some(self.segment(now, start, start + bytes))
    }

    /// A full segment, the last of what there is when nothing else is on its way (Nagle), half of the
    /// greatest window, or what was sent before.
    fn is_worth_sending(&self, bytes: u64) -> bool {
        let is_last = self.next + bytes == self.written && self.acknowledged == self.sent;
        bytes == self.segment_bytes_max
            || is_last
            || 2 * bytes >= self.window_most
            || self.next < self.sent
    }

    fn segment(&mut self, now: Now, seq: u64, end: u64) -> Segment {
        self.counts.segments += 1;
        if self.retransmit_tick.is_none() && self.persist_tick.is_none() {
            self.start_retransmit_timer(now);
        }
        Segment {
            seq,
            bytes: end - seq,
            stamp: now,
        }
    }

    /// One byte into a closed window, so that the receiver tells of it again; into one that is open but
    /// too small to be worth a segment, what fits (`tcp_timer_persist`).
    fn probe(&mut self, now: Now) -> Option<Segment> {
        let unsent = self.written - self.acknowledged;
        if unsent == 0 {
            return None;
        }
        let bytes = unsent.min(self.window.clamp(1, self.segment_bytes_max));
        if self.window > 0 {
            self.persist_tick = None;
            self.shift = 0;
            self.next = self.acknowledged + bytes;
        }
        self.counts.probes += 1;
        let end = self.acknowledged + bytes;
        self.sent = self.sent.max(end);
        Some(self.segment(now, self.acknowledged, end))
    }

    /// Nothing can be sent: some timer must run while anything is held.
    fn wait(&mut self, now: Now) {
        let is_unwatched = self.retransmit_tick.is_none() && self.persist_tick.is_none();
        if is_unwatched && self.written > self.acknowledged {
            self.shift = 0;
            self.start_persist_timer(now);
        }
        self.count_held(now);
        self.held = Some((self.reason(), now.ns));
    }

    fn reason(&self) -> Held {
        let wanted = (self.written - self.next).min(self.segment_bytes_max);
        let needed = self.next + wanted - self.acknowledged;
        if needed > self.window.min(self.congestion.window()) {
            if self.window <= self.congestion.window() {
                Held::Window
            } else {
                Held::Congestion
            }
        } else if self.has_room() {
            Held::Program
        } else {
            Held::Buffer
        }
    }

    /// Adds what it was held back for until now.
    fn count_held(&mut self, now: Now) {
        if let Some((held, since_ns)) = self.held.take() {
            self.counts.held_ns[held as usize] += now.ns - since_ns;
        }
    }

    fn start_retransmit_timer(&mut self, now: Now) {
        let ticks = self.round_trip.timeout_ticks(self.shift);
        self.retransmit_tick = Some(now.after(ticks));
    }

    fn start_persist_timer(&mut self, now: Now) {
        let ticks = self.round_trip.persist_ticks(self.shift);
        self.persist_tick = Some(now.after(ticks));
    }

    /// When it wants [`Sender::timer`] to be called.
    pub(crate) fn deadline_tick(&self) -> Option<u64> {
        self.retransmit_tick.or(self.persist_tick)
    }

    /// Time has come to `now`.
    pub(crate) fn timer(&mut self, now: Now) {
        let is_due = |due: Option<u64>| due.is_some_and(|due| due <= now.tick);
        if is_due(self.retransmit_tick) {
            self.counts.timeouts += 1;
            self.shift += 1;
            self.congestion.timeout(self.sent, self.window);
            self.next = self.acknowledged;
            self.resends = false;
            self.start_retransmit_timer(now);
        } else if is_due(self.persist_tick) {
            self.shift += 1;
            self.start_persist_timer(now);
            self.probes = true;
        }
    }
}
