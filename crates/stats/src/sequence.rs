//! Loss, order and jitter of a numbered stream of datagrams. Pure: no clock, no socket.
//!
//! For ids that count from 1, `received = distinct + duplicates` and `lost = highest - distinct`.

/// How far back ids are remembered. iperf remembers none, and takes a duplicate for a late datagram.
const WINDOW_IDS: u64 = 4096;
const WORD_BITS: u64 = u64::BITS as u64;

/// Reads the ids of the datagrams of one stream, as their sender numbered them. The bytes of a payload do not show
/// whether it was numbered at all.
pub trait Ids: Send {
    /// Returns the id of a datagram: 1 and up, ascending. `None` when it has none.
    fn id(&mut self, payload: &[u8]) -> Option<u64>;

    /// Returns how long ago it was sent, in ns, if it carries the time by CLOCK_MONOTONIC, which now shows `now_ns`.
    fn age_ns(&self, _payload: &[u8], _now_ns: u64) -> Option<u64> {
        None
    }
}

/// Which ids of a stream arrived, and in which order.
///
/// Counts are those of iperf 2.1.8 (each id that is not the next one is a gap or late), but duplicates among the last
/// 4096 ids are told from late ones. An older id counts as late.
#[derive(Clone, Debug)]
pub struct Sequence {
    highest: u64,
    distinct: u64,
    out_of_order: u64,
    duplicates: u64,
    /// One bit for each of the last ids, at `id % WINDOW_IDS`.
    window: [u64; (WINDOW_IDS / WORD_BITS) as usize],
}

impl Default for Sequence {
    fn default() -> Self {
        Sequence {
            highest: 0,
            distinct: 0,
            out_of_order: 0,
            duplicates: 0,
            window: [0; (WINDOW_IDS / WORD_BITS) as usize],
        }
    }
}

impl Sequence {
    /// Records an id, 1 and up.
    pub fn record(&mut self, id: u64) {
        if id > self.highest {
            self.advance(id);
        } else if self.highest - id < WINDOW_IDS && self.is_marked(id) {
            self.duplicates += 1;
            return;
        } else {
            self.out_of_order += 1;
        }
        self.distinct += 1;
        // An id older than the window would mark a younger one.
        if self.highest - id < WINDOW_IDS {
            let (word, bit) = Self::place(id);
            self.window[word] |= bit;
        }
    }

    /// Records that ids up to `id` were sent, whether or not they arrived: what the end marker of a stream says.
    pub fn expect_up_to(&mut self, id: u64) {
        self.advance(id.max(self.highest));
    }

    /// Returns the highest id that arrived or is known to have been sent.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// Returns how many ids up to the highest did not arrive.
    pub fn lost(&self) -> u64 {
        self.highest.saturating_sub(self.distinct)
    }

    /// Returns how many datagrams arrived after one with a higher id.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Returns how many datagrams had an id that had arrived before.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    fn advance(&mut self, id: u64) {
        if id - self.highest >= WINDOW_IDS {
            self.window.fill(0);
        } else {
            for skipped in self.highest + 1..=id {
                let (word, bit) = Self::place(skipped);
                self.window[word] &= !bit;
            }
        }
        self.highest = id;
    }

    fn is_marked(&self, id: u64) -> bool {
        let (word, bit) = Self::place(id);
        self.window[word] & bit != 0
    }

    fn place(id: u64) -> (usize, u64) {
        let index = id % WINDOW_IDS;
        ((index / WORD_BITS) as usize, 1 << (index % WORD_BITS))
    }
}

/// Interarrival jitter after RFC 3550 section 6.4.1: the mean deviation of the transit time from one
/// datagram to the next, `J += (|D| - J) / 16`.
///
/// The two clocks need not agree. Unlike in iperf 2.1.8 the first datagram, which has no predecessor,
/// does not count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jitter {
    previous_transit_ns: Option<i64>,
    jitter_ns: Option<f64>,
}

impl Jitter {
    /// Records a datagram: when it was sent by the sender's clock, and when it arrived by the receiver's.
    pub fn record(&mut self, sent_ns: i64, arrival_ns: i64) {
        let transit_ns = arrival_ns.saturating_sub(sent_ns);
        if let Some(previous_ns) = self.previous_transit_ns {
            let deviation_ns = transit_ns.abs_diff(previous_ns) as f64;
            let jitter_ns = self.jitter_ns.unwrap_or(0.0);
            self.jitter_ns = Some(jitter_ns + (deviation_ns - jitter_ns) / 16.0);
        }
        self.previous_transit_ns = Some(transit_ns);
    }

    /// Returns the transit time of the last datagram in nanoseconds, including the offset of the two clocks; `None`
    /// before the first.
    pub fn transit_ns(&self) -> Option<i64> {
        self.previous_transit_ns
    }

    /// Returns the jitter in nanoseconds; `None` before the second datagram.
    pub fn ns(&self) -> Option<f64> {
        self.jitter_ns
    }
}
