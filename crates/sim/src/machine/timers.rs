//! What is due when: a look of the sampling account, the clock's tick, and for each card its own few timers.
//!
//! There is one timer for each source of events, so that no list of them has to be kept in order. At the
//! same moment the look comes first, then the tick, then the cards in their order, each with the order of [`Of`].

/// Never.
pub(super) const NEVER: u64 = u64::MAX;

/// A card's timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// The far end hands over a packet.
    Offer,
    /// A frame reaches the card.
    Arrival,
    /// The card may interrupt again.
    Moderation,
    /// The deferral timer of its NAPI.
    Deferral,
    /// A frame has left the card.
    Sent,
    /// The processor turns to programs that another one woke.
    Woken,
}

const SAMPLE: usize = 0;
const TICK: usize = 1;
const FIRST_CARD: usize = 2;
const EACH: usize = 6;
const IN_ORDER: [Of; EACH] = [
    Of::Offer,
    Of::Arrival,
    Of::Moderation,
    Of::Deferral,
    Of::Sent,
    Of::Woken,
];

/// Which timer is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Sample,
    Tick,
    Card(usize, Of),
}

#[derive(Clone, Debug)]
pub(super) struct Timers {
    /// The look, the tick, then each card's.
    due_ns: Vec<u64>,
    /// The earliest.
    first: usize,
}

impl Timers {
    pub(super) fn new(cards: usize) -> Self {
        Timers {
            due_ns: vec![NEVER; FIRST_CARD + cards * EACH],
            first: 0,
        }
    }

    /// The earliest, and when it is due.
    pub(super) fn first(&self) -> (u64, Due) {
        let due = match self.first.checked_sub(FIRST_CARD) {
            None if self.first == SAMPLE => Due::Sample,
            None => Due::Tick,
            Some(index) => Due::Card(index / EACH, IN_ORDER[index % EACH]),
        };
        (self.due_ns[self.first], due)
    }

    pub(super) fn first_ns(&self) -> u64 {
        self.due_ns[self.first]
    }

    pub(super) fn set_tick(&mut self, ns: u64) {
        self.set_at(TICK, ns);
    }

    pub(super) fn set_sample(&mut self, ns: u64) {
        self.set_at(SAMPLE, ns);
    }

    pub(super) fn set(&mut self, card: usize, of: Of, ns: u64) {
        self.set_at(FIRST_CARD + card * EACH + of as usize, ns);
    }

    pub(super) fn clear(&mut self, card: usize, of: Of) {
        self.set(card, of, NEVER);
    }

    pub(super) fn is_set(&self, card: usize, of: Of) -> bool {
        self.due_ns[FIRST_CARD + card * EACH + of as usize] != NEVER
    }

    fn set_at(&mut self, index: usize, ns: u64) {
        self.due_ns[index] = ns;
        if index == self.first {
            self.first = 0;
            for other in 1..self.due_ns.len() {
                if self.due_ns[other] < self.due_ns[self.first] {
                    self.first = other;
                }
            }
        } else if (ns, index) < (self.due_ns[self.first], self.first) {
            self.first = index;
        }
    }
}
