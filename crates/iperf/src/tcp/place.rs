//! Where a stream is read into: little room at a server, until the stream fills it.

use crate::slots::{Grown, STRANGER_BYTES, Ticket};

/// What one reader reads into.
pub(super) struct Place<'a> {
    bytes: Vec<u8>,
    /// What reads are to be as long as.
    read_bytes: usize,
    /// Counts what a server's streams hold; nothing counts that of others.
    ticket: Option<&'a Ticket>,
    _grown: Option<Grown>,
}

impl<'a> Place<'a> {
    /// For reads of `read_bytes`, once that is proved worth it.
    pub(super) fn new(read_bytes: usize, ticket: Option<&'a Ticket>) -> Self {
        let read_bytes = read_bytes.max(1);
        let first_bytes = match ticket {
            Some(_) => read_bytes.min(STRANGER_BYTES),
            None => read_bytes,
        };
        Place {
            bytes: vec![0; first_bytes],
            read_bytes,
            ticket,
            _grown: None,
        }
    }

    /// What the next read fills.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Takes note of a read of `read` bytes: one that filled the place shows that more would have come.
    pub(super) fn after(&mut self, read: usize) {
        let missing = self.read_bytes - self.bytes.len();
        if missing > 0
            && read == self.bytes.len()
            && let Some(grown) = self.ticket.and_then(|ticket| ticket.grow(missing))
        {
            self.bytes = vec![0; self.read_bytes];
            self._grown = Some(grown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slots::Slots;

    #[test]
    fn a_place_grows_when_it_is_filled_and_nobody_counts_it_at_a_client() {
        let slots = Slots::new();
        let ticket = slots.take(([192, 0, 2, 1], 1).into(), 1).unwrap();
        let mut place = Place::new(131_072, Some(&ticket));
        assert_eq!(place.bytes().len(), STRANGER_BYTES);
        place.after(STRANGER_BYTES - 1);
        assert_eq!(place.bytes().len(), STRANGER_BYTES);
        place.after(STRANGER_BYTES);
        assert_eq!(place.bytes().len(), 131_072);
        assert_eq!(Place::new(131_072, None).bytes().len(), 131_072);
    }

    #[test]
    fn what_no_server_gives_stays_as_it_is() {
        let slots = Slots::new();
        let ticket = slots.take(([192, 0, 2, 1], 1).into(), 1).unwrap();
        let mut place = Place::new(1 << 30, Some(&ticket));
        place.after(STRANGER_BYTES);
        assert_eq!(place.bytes().len(), STRANGER_BYTES);
    }
}
