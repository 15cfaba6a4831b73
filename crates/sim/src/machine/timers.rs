//! What is due when: the clock's tick, and for each card its own few timers.
//!
//! There is one timer for each source of events, so that no list of them has to be kept in order. At the
//! same moment the clock comes first, then the cards in their order, each with the order of [`Of`].

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
    Tick,
    Card(usize, Of),
}

#[derive(Clone, Debug)]
pub(super) struct Timers {
    /// The tick, then each card's.
    due_ns: Vec<u64>,
    /// The earliest.
    first: usize,
}

impl Timers {
    pub(super) fn new(cards: usize) -> Self {
        Timers {
            due_ns: vec![NEVER; 1 + cards * EACH],
            first: 0,
        }
    }

    /// The earliest, and when it is due.
    pub(super) fn first(&self) -> (u64, Due) {
        let due = match self.first.checked_sub(1) {
            None => Due::Tick,
            Some(index) => Due::Card(index / EACH, IN_ORDER[index % EACH]),
        };
        (self.due_ns[self.first], due)
    }

    pub(super) fn first_ns(&self) -> u64 {
        self.due_ns[self.first]
    }

    pub(super) fn set_tick(&mut self, ns: u64) {
        self.set_at(0, ns);
    }

    pub(super) fn set(&mut self, card: usize, of: Of, ns: u64) {
        self.set_at(1 + card * EACH + of as usize, ns);
    }

    pub(super) fn clear(&mut self, card: usize, of: Of) {
        self.set(card, of, NEVER);
    }

    pub(super) fn is_set(&self, card: usize, of: Of) -> bool {
        self.due_ns[1 + card * EACH + of as usize] != NEVER
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
