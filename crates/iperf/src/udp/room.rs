//! Where a receiver's datagrams are read into: little room, until they have come fast.
//!
//! What must hold: who has not sent fast has no more than [`STRANGER_BYTES`]; who has stopped gives the
//! rest back.

use std::io;
use std::time::{Duration, Instant};

use nicpoll_sys::socket::ReceiveBatch;

use crate::slots::{Grown, STRANGER_BYTES, Ticket};
use crate::wire::datagram::PAYLOAD_BYTES_MAX;

/// Datagrams, or trains of them, that are taken with one system call once they come fast.
pub(super) const BATCH_DATAGRAMS: usize = 32;
/// A sender is fast whose next so many datagrams
const PROOF_DATAGRAMS: u32 = 64;
/// come within this time.
const PROOF_TIME: Duration = Duration::from_millis(1);

const _: () = assert!(PAYLOAD_BYTES_MAX <= STRANGER_BYTES);

/// What one receiver reads into.
pub(super) struct Room<'a> {
    /// Counts what a server's streams hold; nothing counts that of others.
    ticket: Option<&'a Ticket>,
    small: ReceiveBatch,
    large: Option<(ReceiveBatch, Option<Grown>)>,
    since: Instant,
    datagrams: u32,
}

impl<'a> Room<'a> {
    /// For a stream whose sender is not known yet.
    ///
    /// # Errors
    /// When the process may have no more memory.
    pub(super) fn new(ticket: Option<&'a Ticket>, now: Instant) -> io::Result<Self> {
        Ok(Room {
            ticket,
            small: ReceiveBatch::new(1, PAYLOAD_BYTES_MAX)?,
            large: None,
            since: now,
            datagrams: 0,
        })
    }

    /// What the next call reads into.
    pub(super) fn batch(&mut self) -> &mut ReceiveBatch {
        match &mut self.large {
            Some((batch, _)) => batch,
            None => &mut self.small,
        }
    }

    /// Takes note of a call that returned `datagrams` `now`.
    pub(super) fn after(&mut self, datagrams: u32, now: Instant) {
        if self.large.is_some() {
            return;
        }
        self.datagrams += datagrams;
        if self.datagrams >= PROOF_DATAGRAMS {
            if now.duration_since(self.since) < PROOF_TIME {
                self.large = self.grown();
            }
            (self.since, self.datagrams) = (now, 0);
        }
    }

    /// Takes note of a wait in vain.
    pub(super) fn after_silence(&mut self, now: Instant) {
        self.large = None;
        (self.since, self.datagrams) = (now, 0);
    }

    /// `None` when there is no room for it now.
    fn grown(&self) -> Option<(ReceiveBatch, Option<Grown>)> {
        let grown = match self.ticket {
            Some(ticket) => Some(ticket.grow(BATCH_DATAGRAMS * PAYLOAD_BYTES_MAX)?),
            None => None,
        };
        let batch = ReceiveBatch::new(BATCH_DATAGRAMS, PAYLOAD_BYTES_MAX).ok()?;
        Some((batch, grown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slots::Slots;

    #[test]
    fn room_grows_with_proof_and_shrinks_with_silence() {
        let slots = Slots::new();
        let ticket = slots.take(([192, 0, 2, 1], 1).into(), 1).unwrap();
        let begun = Instant::now();
        let us = |us| begun + Duration::from_micros(us);
        let mut room = Room::new(Some(&ticket), begun).unwrap();
        assert_eq!(room.batch().datagrams_max(), 1);
        room.after(64, us(1000));
        assert_eq!(room.batch().datagrams_max(), 1);
        room.after(63, us(1001));
        assert_eq!(room.batch().datagrams_max(), 1);
        room.after(1, us(1999));
        assert_eq!(room.batch().datagrams_max(), BATCH_DATAGRAMS);
        room.after_silence(us(3000));
        assert_eq!(room.batch().datagrams_max(), 1);
    }

    #[test]
    fn all_streams_together_have_so_much_room_and_no_more() {
        let slots = Slots::new();
        let now = Instant::now();
        let tickets: Vec<_> = (0..64)
            .map(|host| slots.take(([192, 0, 2, host], 1).into(), 1).unwrap())
            .collect();
        let large = tickets.iter().map(|ticket| {
            let mut room = Room::new(Some(ticket), now).unwrap();
            room.after(PROOF_DATAGRAMS, now);
            room
        });
        let rooms: Vec<_> = large.collect();
        let grown = rooms.iter().filter(|room| room.large.is_some()).count();
        assert!((8..32).contains(&grown), "{grown}");
    }
}
