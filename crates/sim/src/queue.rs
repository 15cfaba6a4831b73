//! Queues with a limit.
//!
//! What must hold: a queue never holds more than its limit, and what comes beyond is counted by its
//! caller as lost there and nowhere else.

use std::collections::VecDeque;

use crate::packet::Packet;

/// First in, first out.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    packets: VecDeque<Packet>,
    limit: usize,
    most: usize,
}

impl Queue {
    pub(crate) fn new(limit: u64) -> Self {
        // Limits are those of host files, which fit.
        let limit = limit as usize;
        Queue {
            packets: VecDeque::new(),
            limit,
            most: 0,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.packets.len() as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Appends a packet. False when the queue is full.
    #[must_use]
    pub(crate) fn push(&mut self, packet: Packet) -> bool {
        if self.packets.len() >= self.limit {
            return false;
        }
        self.packets.push_back(packet);
        self.most = self.most.max(self.packets.len());
        true
    }

    pub(crate) fn pop(&mut self) -> Option<Packet> {
        self.packets.pop_front()
    }

    /// The next to be popped.
    pub(crate) fn front(&self) -> Option<&Packet> {
        self.packets.front()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.packets.iter()
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit as u64
    }

    /// The most that it held.
    pub(crate) fn most(&self) -> u64 {
        self.most as u64
    }

    /// Forgets what it held before now.
    pub(crate) fn begin_counting(&mut self) {
        self.most = self.packets.len();
    }
}
