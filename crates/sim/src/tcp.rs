//! TCP: a connection with data one way, as iperf's are, and acknowledgements the other way.
//!
//! Pure state machines: the caller tells a [`TcpSender`] and a [`TcpReceiver`] of segments, acknowledgements, reads, writes
//! and the time, and asks what to send and when to wake them. The rules are those of FreeBSD 6 (`tcp_input.c`,
//! `tcp_output.c`, `tcp_timer.c`; its function names are given here) and RFC 793 and 1122 (windows), 1323
//! (timestamps), 3042 (limited transmit), 3390 (initial window), 3782 (NewReno), 5681 (congestion control) and 6298
//! (timeout).
//!
//! Guarantees that every byte written leaves the receiver once and in order, whatever is lost, and that a timer runs
//! while data waits. Nothing here reads a clock or draws random numbers.
//!
//! Left out: opening and closing (a connection begins open, with the peer's first window known), data in both directions
//! of one connection, selective acknowledgement, the exceptions to the Nagle rule, giving up after too many timeouts,
//! undoing a spurious timeout, and the bandwidth-delay limit of `net.inet.tcp.inflight`, which leaves paths below 10 ms
//! alone. Bytes are counted, not carried. Sequence numbers have 64 bits, count from 0 and do not wrap.

#[cfg(test)]
mod tests;

use nicpoll_model::line::{
    FCS_BYTES, FRAME_MIN_BYTES, GAP_BYTES, IpVersion, MAC_HEADER_BYTES, PREAMBLE_BYTES,
};

/// A TCP header with the timestamp option, which FreeBSD 6 sends in every segment (`net.inet.tcp.rfc1323`).
const TCP_HEADER_BYTES: u64 = 32;

/// Returns the most data bytes of a segment at this MTU.
pub fn segment_bytes_max(mtu_bytes: u64, ip: IpVersion) -> u64 {
    mtu_bytes.saturating_sub(headers_bytes(ip))
}

fn headers_bytes(ip: IpVersion) -> u64 {
    let ip_header_bytes = match ip {
        IpVersion::V4 => 20,
        IpVersion::V6 => 40,
    };
    ip_header_bytes + TCP_HEADER_BYTES
}

/// Returns the bytes of a segment's frame on the line, with preamble and gap.
pub fn line_bytes(ip: IpVersion, data_bytes: u32) -> u32 {
    let packet_bytes = headers_bytes(ip) + u64::from(data_bytes);
    let frame_bytes = (MAC_HEADER_BYTES + packet_bytes + FCS_BYTES).max(FRAME_MIN_BYTES);
    // Far below 2^32: the longest packet has 65,535 bytes.
    (frame_bytes + PREAMBLE_BYTES + GAP_BYTES) as u32
}

/// A data segment under way: its place in the stream, without the data themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of the first byte.
    pub seq: u64,
    /// Bytes, above 0.
    pub bytes: u64,
    /// When it was made: the timestamp option.
    pub stamp: Now,
}

impl Segment {
    /// Number of the byte after the last one.
    pub fn end(&self) -> u64 {
        self.seq + self.bytes
    }
}

/// An acknowledgement on its way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Number of the next byte expected.
    pub next: u64,
    /// Bytes after it that the receiver has room for.
    pub window: u64,
    /// The stamp of the segment that it acknowledges.
    pub echo: Now,
}

/// Fraction bits of the smoothed round trip (`TCP_RTT_SHIFT`) and of its variation (`TCP_RTTVAR_SHIFT`), in ticks;
/// both are summed up in quarters of a tick (`TCP_DELTA_SHIFT`).
const RTT_SHIFT: u32 = 5;
const VARIATION_SHIFT: u32 = 4;
const DELTA_SHIFT: u32 = 2;
/// Factors on the timeout, by timeouts in a row (`tcp_backoff`).
const BACKOFF: [u64; 13] = [1, 2, 4, 8, 16, 32, 64, 64, 64, 64, 64, 64, 64];

/// The time as a host sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Virtual time.
    pub ns: u64,
    /// Ticks of the host's clock so far.
    pub tick: u64,
}

impl Now {
    /// Returns the tick `ticks` from now, at least the next one.
    pub fn after(&self, ticks: u64) -> u64 {
        self.tick + ticks.max(1)
    }
}

/// `TCPTV_DELACK`, `net.inet.tcp.delacktime`: a tenth of a second.
pub fn delayed_ack_ticks(hz: u64) -> u64 {
    hz / 10
}

/// Estimates how long to wait for an acknowledgement (RFC 6298, `tcp_xmit_timer`).
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTripEstimator {
    hz: u64,
    /// In 1/32 of a tick; 0 before the first sample.
    smoothed: i64,
    /// In 1/16 of a tick.
    variation: i64,
}

impl RoundTripEstimator {
    pub fn new(hz: u64) -> Self {
        RoundTripEstimator {
            hz,
            smoothed: 0,
            // Makes the first timeout TCPTV_RTOBASE, three seconds (`tcp_newtcpcb`).
            variation: ((3 * hz) << VARIATION_SHIFT >> DELTA_SHIFT) as i64,
        }
    }

    /// Takes the round trip of a segment sent at `sent` and acknowledged at `now`.
    pub fn sample(&mut self, now: Now, sent: Now) {
        // A run is shorter than 2^63 ticks.
        let sample = now.tick.saturating_sub(sent.tick) as i64;
        if self.smoothed == 0 {
            self.smoothed = (sample + 1) << RTT_SHIFT;
            self.variation = (sample + 1) << (VARIATION_SHIFT - 1);
            return;
        }
        let delta = (sample << DELTA_SHIFT) - (self.smoothed >> (RTT_SHIFT - DELTA_SHIFT));
        self.smoothed = (self.smoothed + delta).max(1);
        let beyond = delta.abs() - (self.variation >> (VARIATION_SHIFT - DELTA_SHIFT));
        self.variation = (self.variation + beyond).max(1);
    }

    /// Returns the timeout after `shift` timeouts in a row (`TCP_REXMTVAL`, `TCPT_RANGESET`): the estimate, at least
    /// 1/33 s, backed off, plus 0.2 s (`net.inet.tcp.rexmit_slop`), at most 64 s.
    pub fn timeout_ticks(&self, shift: usize) -> u64 {
        let hz = self.hz;
        let quarters = (self.smoothed >> (RTT_SHIFT - DELTA_SHIFT)) + self.variation;
        let estimate = (quarters >> DELTA_SHIFT) as u64;
        let backed_off = estimate.max((hz / 33).max(1)) * backoff(shift);
        (backed_off + hz / 5).min(64 * hz)
    }

    /// Returns the time before a closed window is probed (`tcp_setpersist`): 5 to 60 s.
    pub fn persist_ticks(&self, shift: usize) -> u64 {
        let hz = self.hz;
        let estimate = ((self.smoothed >> DELTA_SHIFT) + self.variation) >> 1;
        (estimate as u64 * backoff(shift) + hz / 5).clamp(5 * hz, 60 * hz)
    }
}

fn backoff(shift: usize) -> u64 {
    BACKOFF[shift.min(BACKOFF.len() - 1)]
}

/// Free bytes of the buffer at which a waiting writer wakes (`sb_lowat`).
const ROOM_MIN: u64 = 2048;

/// What keeps a sender from sending more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendLimit {
    /// The program has not written more.
    Program,
    /// The send buffer is full of unacknowledged data.
    Buffer,
    /// The receiver's window.
    Window,
    /// The congestion window.
    Congestion,
}

/// Counts of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounts {
    pub segments: u64,
    /// Segments that begin with bytes sent before.
    pub retransmits: u64,
    /// Losses found by duplicate acknowledgements.
    pub fast_retransmits: u64,
    pub timeouts: u64,
    /// Bytes sent into a closed window.
    pub probes: u64,
    /// Sum and number of round trips.
    pub round_trip_ns: u128,
    pub round_trips: u64,
    /// Time in which each of [`SendLimit`] kept it from sending, in that order.
    pub held_ns: [u64; 4],
}

impl SenderCounts {
    /// Returns the counts since `before`.
    pub fn since(&self, before: &SenderCounts) -> SenderCounts {
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

#[derive(Clone, Debug, Default)]
pub struct TcpSender {
    segment_bytes_max: u64,
    buffer_bytes: u64,
    /// First unacknowledged byte (`snd_una`).
    pub acknowledged: u64,
    /// Next byte to send (`snd_nxt`): below `sent` after a timeout.
    next: u64,
    /// End of what was sent (`snd_max`).
    sent: u64,
    /// End of what the program has written.
    pub written: u64,
    /// The receiver's window, from `window_from` on, and the largest so far (`snd_wnd`, `snd_wl2`, `max_sndwnd`).
    window: u64,
    window_from: u64,
    window_most: u64,
    congestion: Congestion,
    round_trip: RoundTripEstimator,
    retransmit_tick: Option<u64>,
    persist_tick: Option<u64>,
    /// Timeouts in a row.
    shift: usize,
    /// Whether to resend the first unacknowledged segment at once.
    resends: bool,
    probes: bool,
    held: Option<(SendLimit, u64)>,
    counts: SenderCounts,
}

impl TcpSender {
    /// Creates the sender of an open connection whose receiver's first window is `window`.
    pub fn new(segment_bytes_max: u64, buffer_bytes: u64, window: u64, hz: u64) -> Self {
        TcpSender {
            segment_bytes_max,
            buffer_bytes,
            window,
            window_most: window,
            congestion: Congestion::new(segment_bytes_max),
            round_trip: RoundTripEstimator::new(hz),
            ..TcpSender::default()
        }
    }

    /// Takes what the program writes. Returns the bytes that fit.
    pub fn write(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.room());
        self.written += taken;
        taken
    }

    /// Returns the free bytes of the buffer.
    pub fn room(&self) -> u64 {
        self.buffer_bytes - (self.written - self.acknowledged)
    }

    /// Whether a writer waiting for room continues (`sbwait` until `sb_lowat`).
    pub fn has_room(&self) -> bool {
        self.room() >= ROOM_MIN.min(self.buffer_bytes)
    }

    /// Returns the counts until `now_ns`.
    pub fn counts(&self, now_ns: u64) -> SenderCounts {
        let mut counts = self.counts;
        if let Some((held, since_ns)) = self.held {
            counts.held_ns[held as usize] += now_ns - since_ns;
        }
        counts
    }

    /// Handles an acknowledgement (`tcp_input`).
    pub fn acknowledge(&mut self, now: Now, ack: Ack) {
        if ack.next > self.sent {
            // It acknowledges bytes never sent.
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
        // RFC 793, 3.9: an older acknowledgement does not update the window.
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

    /// Has the first unacknowledged segment sent again, and its timer restarted with it.
    fn resend(&mut self) {
        self.resends = true;
        self.retransmit_tick = None;
    }

    /// Returns the next segment to send, if one may go (`tcp_output`). Call it after each write, acknowledgement and
    /// timer, until it returns `None`.
    pub fn poll_segment(&mut self, now: Now) -> Option<Segment> {
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

    /// Whether it is a full segment, the last data with nothing else in flight (Nagle), half of the largest window,
    /// or a retransmission.
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

    /// Sends one byte into a closed window, to make the receiver announce it again; into a window open but too small
    /// for a segment, what fits (`tcp_timer_persist`).
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

    /// Records that nothing can be sent, and why; a timer must run while data waits.
    fn wait(&mut self, now: Now) {
        let is_unwatched = self.retransmit_tick.is_none() && self.persist_tick.is_none();
        if is_unwatched && self.written > self.acknowledged {
            self.shift = 0;
            self.start_persist_timer(now);
        }
        self.count_held(now);
        self.held = Some((self.reason(), now.ns));
    }

    fn reason(&self) -> SendLimit {
        let wanted = (self.written - self.next).min(self.segment_bytes_max);
        let needed = self.next + wanted - self.acknowledged;
        if needed > self.window.min(self.congestion.window()) {
            if self.window <= self.congestion.window() {
                SendLimit::Window
            } else {
                SendLimit::Congestion
            }
        } else if self.has_room() {
            SendLimit::Program
        } else {
            SendLimit::Buffer
        }
    }

    /// Adds the time it was held back until now.
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

    /// Returns the tick at which [`TcpSender::timer`] must be called.
    pub fn deadline_tick(&self) -> Option<u64> {
        self.retransmit_tick.or(self.persist_tick)
    }

    /// Handles the timers due at `now`.
    pub fn timer(&mut self, now: Now) {
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

/// Duplicate acknowledgements that indicate a loss (`tcprexmtthresh`).
const DUPLICATES_MIN: u64 = 3;

#[derive(Clone, Copy, Debug, Default)]
pub struct Congestion {
    segment_bytes_max: u64,
    window: u64,
    slow_start_until: u64,
    duplicates: u64,
    is_recovering: bool,
    /// End of what was sent at the last loss (`snd_recover`).
    recover: Option<u64>,
}

/// What an acknowledgement says of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// No loss.
    No,
    /// A new loss: the first unacknowledged byte.
    Found,
    /// Another loss in the same window.
    Another,
}

impl Congestion {
    pub fn new(segment_bytes_max: u64) -> Self {
        // RFC 3390 (`tcp_mss`).
        let first = (4 * segment_bytes_max).min(4380.max(2 * segment_bytes_max));
        Congestion {
            segment_bytes_max,
            window: first,
            slow_start_until: u64::MAX,
            ..Congestion::default()
        }
    }

    /// Returns the bytes that may be in flight, with a segment more for each of the first two duplicates: others have
    /// arrived (RFC 3042).
    pub fn window(&self) -> u64 {
        let limited = if self.is_recovering {
            0
        } else {
            self.duplicates.min(DUPLICATES_MIN - 1)
        };
        self.window + limited * self.segment_bytes_max
    }

    /// Handles a duplicate acknowledgement of `una`, with the stream sent up to `sent`. `peer_window` is the
    /// receiver's window.
    pub fn duplicate(&mut self, una: u64, sent: u64, peer_window: u64) -> Loss {
        if self.is_recovering {
            self.window += self.segment_bytes_max;
            return Loss::No;
        }
        self.duplicates += 1;
        if self.duplicates < DUPLICATES_MIN {
            return Loss::No;
        }
        // After a timeout, duplicates come from the segments it resent (RFC 3782, 4).
        if self.recover.is_some_and(|recover| una <= recover) {
            self.duplicates = 0;
            return Loss::No;
        }
        self.halve(peer_window);
        self.is_recovering = true;
        self.recover = Some(sent);
        self.window = self.slow_start_until + DUPLICATES_MIN * self.segment_bytes_max;
        Loss::Found
    }

    /// Resets the count of duplicates: the last acknowledgement was none.
    pub fn forget_duplicates(&mut self) {
        if !self.is_recovering {
            self.duplicates = 0;
        }
    }

    /// Handles an acknowledgement of `acked` more bytes, up to `una`, with the stream sent up to `sent`.
    pub fn advance(&mut self, acked: u64, una: u64, sent: u64, peer_window: u64) -> Loss {
        let mss = self.segment_bytes_max;
        if self.is_recovering {
            if self.recover.is_some_and(|recover| una < recover) {
                // `tcp_newreno_partial_ack`
                self.window = self.window.saturating_sub(acked) + mss;
                return Loss::Another;
            }
            self.is_recovering = false;
            self.window = self.slow_start_until.min(sent - una + mss);
        } else if self.window < peer_window {
            // The original's fast path does not grow a window that is not the limit.
            let in_slow_start = self.window <= self.slow_start_until;
            self.window += if in_slow_start {
                mss
            } else {
                (mss * mss / self.window).max(1)
            };
        }
        self.duplicates = 0;
        Loss::No
    }

    /// Handles a retransmission timeout, with the stream sent up to `sent` (`tcp_timer_rexmt`).
    pub fn timeout(&mut self, sent: u64, peer_window: u64) {
        self.halve(peer_window);
        self.window = self.segment_bytes_max;
        self.duplicates = 0;
        self.is_recovering = false;
        self.recover = Some(sent);
    }

    fn halve(&mut self, peer_window: u64) {
        let mss = self.segment_bytes_max;
        let segments = self.window.min(peer_window) / 2 / mss;
        self.slow_start_until = segments.max(2) * mss;
    }
}

#[derive(Clone, Debug, Default)]
pub struct TcpReceiver {
    pub segment_bytes_max: u64,
    buffer_bytes: u64,
    hz: u64,
    /// Next byte expected (`rcv_nxt`): all before it have come.
    pub next: u64,
    /// Bytes that the program has read.
    pub read: u64,
    /// Right edge of the advertised window (`rcv_adv`).
    told_edge: u64,
    /// Whether the last advertised window was closed (`TF_RXWIN0SENT`).
    told_closed: bool,
    /// Next byte in the last acknowledgement (`last_ack_sent`).
    acknowledged: u64,
    out_of_order: Reassembly,
    /// The stamp to echo (`ts_recent`).
    stamp: Now,
    owes_ack: bool,
    /// Tick at which [`TcpReceiver::timer`] must be called.
    pub delayed_ack_tick: Option<u64>,
    /// Acknowledgements sent so far.
    pub acknowledgements: u64,
}

impl TcpReceiver {
    /// Creates the receiver of an open connection whose sender knows the first window, the whole buffer.
    pub fn new(segment_bytes_max: u64, buffer_bytes: u64, hz: u64) -> Self {
        TcpReceiver {
            segment_bytes_max,
            buffer_bytes,
            hz,
            told_edge: buffer_bytes,
            ..TcpReceiver::default()
        }
    }

    /// Takes a segment. The acknowledgement of the first of two in order may wait for the second, or a tenth of a
    /// second; anything else is acknowledged at once (RFC 1122, 4.2.3.2; RFC 5681, 4.2). Returns the bytes that have
    /// become readable.
    pub fn take(&mut self, now: Now, segment: Segment) -> u64 {
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

    /// Returns the bytes that the program can read.
    pub fn readable(&self) -> u64 {
        self.next - self.read
    }

    /// Reads up to `bytes_max` bytes for the program. Returns how many.
    pub fn read(&mut self, bytes_max: u64) -> u64 {
        let bytes = self.readable().min(bytes_max);
        self.read += bytes;
        bytes
    }

    /// Returns the free bytes of the buffer; no advertised window exceeds them.
    fn free(&self) -> u64 {
        self.buffer_bytes - self.readable()
    }

    /// Returns the acknowledgement to send, if one is due: one is owed, or the window's edge can move by two segments
    /// or by half the buffer (`tcp_output`). Call it after each segment, read and timer.
    pub fn poll_ack(&mut self) -> Option<Ack> {
        // RFC 1122, 4.2.3.3: avoids silly windows.
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

    /// Handles the timer due at `now` (`tcp_timer_delack`).
    pub fn timer(&mut self, now: Now) {
        if self.delayed_ack_tick.is_some_and(|due| due <= now.tick) {
            self.delayed_ack_tick = None;
            self.owes_ack = true;
        }
    }
}

/// Ranges of a stream that have arrived out of order.
#[derive(Clone, Debug, Default)]
pub struct Reassembly {
    /// First byte and the byte after the last of each, in order.
    ranges: Vec<(u64, u64)>,
}

impl Reassembly {
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Keeps the bytes from `start` to before `end`, at least one.
    pub fn insert(&mut self, start: u64, end: u64) {
        let first = self.ranges.partition_point(|range| range.1 < start);
        let after = self.ranges.partition_point(|range| range.0 <= end);
        let touched = &self.ranges[first..after];
        let start = touched.first().map_or(start, |range| range.0.min(start));
        let end = touched.last().map_or(end, |range| range.1.max(end));
        self.ranges.splice(first..after, [(start, end)]);
    }

    /// Removes the range that follows `next` without a gap. Returns the byte after it.
    pub fn take_from(&mut self, next: u64) -> u64 {
        match self.ranges.first() {
            Some(&(start, end)) if start <= next => {
                self.ranges.remove(0);
                next.max(end)
            }
            _ => next,
        }
    }
}
