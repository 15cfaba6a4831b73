//! How many datagrams of a socket wait to leave the host. Pure: no clock, no socket.
//!
//! The kernel bounds them by the memory that they occupy, and charges a batch less for each datagram
//! than it charges a datagram that is sent alone. Left to itself, a sender of batches would therefore
//! have more of them in the queues on the way out, and a queue that is just long enough for single
//! datagrams would drop some.
//!
//! What must hold: batches and single datagrams together are never more than single ones alone could
//! be.

/// Headers of UDP and IPv4, and of UDP and IPv6.
pub const PACKET_HEADER_BYTES: [usize; 2] = [28, 48];
/// Room that the kernel leaves in front of a packet, and that its alignment may take.
const LINK_HEADER_BYTES: usize = 47;
/// `struct skb_shared_info` behind each packet, on 64 bits.
const SHARED_INFO_BYTES: usize = 320;
/// `struct sk_buff` beside it.
const BUFFER_HEADER_BYTES: usize = 256;

/// The account of what was sent and may wait.
#[derive(Debug)]
pub struct Backlog {
    send_buffer_bytes: usize,
    packet_bytes: usize,
    /// What the kernel charges a packet that is sent alone.
    single_bytes: usize,
    /// What it charges the batches that may wait less than their datagrams alone, at most.
    undercharged_bytes: usize,
    /// Datagrams that were sent alone behind the last batch.
    singles_since: usize,
}

impl Backlog {
    /// Nothing waits. `packet_bytes` is the length of an IP packet.
    pub fn new(send_buffer_bytes: usize, packet_bytes: usize) -> Self {
        // Memory for packets comes in pieces whose sizes are powers of two.
        let data_bytes = packet_bytes + LINK_HEADER_BYTES + SHARED_INFO_BYTES;
        Backlog {
            send_buffer_bytes,
            packet_bytes,
            single_bytes: data_bytes.next_power_of_two() + BUFFER_HEADER_BYTES,
            undercharged_bytes: 0,
            singles_since: 0,
        }
    }

    /// Whether only datagrams that were sent alone may wait.
    pub fn has_no_batch(&self) -> bool {
        self.undercharged_bytes == 0
    }

    /// Takes note of a call that sent so many datagrams.
    pub fn add(&mut self, datagrams: usize) {
        if datagrams > 1 {
            self.undercharged_bytes += datagrams * (self.single_bytes - self.packet_bytes);
            self.singles_since = 0;
        } else {
            self.singles_since = self.singles_since.saturating_add(1);
        }
    }

    /// How many more datagrams single sends would let wait, when the kernel has `unsent_bytes` of the
    /// send buffer taken.
    pub fn room(&mut self, unsent_bytes: usize) -> usize {
        // What was sent leaves in the same order: less than what came behind the last batch is none of it.
        let behind_bytes = self.singles_since.saturating_mul(self.packet_bytes);
        if unsent_bytes == 0 || unsent_bytes < behind_bytes {
            self.undercharged_bytes = 0;
        }
        let taken_bytes = unsent_bytes + self.undercharged_bytes;
        let left_bytes = self.send_buffer_bytes.saturating_sub(taken_bytes);
        left_bytes.div_ceil(self.single_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEND_BUFFER_BYTES: usize = 212_992;
    const PACKET_BYTES: usize = 1498;

    /// The kernel's account beside ours: what waits, as datagrams and their charge for each.
    #[derive(Default)]
    struct Kernel {
        queue: std::collections::VecDeque<usize>,
    }

    impl Kernel {
        fn unsent_bytes(&self) -> usize {
            self.queue.iter().sum()
        }

        fn take(&mut self, datagrams: usize, charge_bytes: usize) {
            self.queue
                .extend(std::iter::repeat_n(charge_bytes, datagrams));
        }
    }

    #[test]
    fn a_packet_that_is_sent_alone_is_charged_as_linux_charges_it() {
        for (packet_bytes, charge_bytes) in [(92, 768), (1498, 2304), (46, 768)] {
            let backlog = Backlog::new(SEND_BUFFER_BYTES, packet_bytes);
            assert_eq!(backlog.single_bytes, charge_bytes, "{packet_bytes}");
        }
    }

    #[test]
    fn no_more_wait_than_single_sends_would_leave() {
        const SINGLE_BYTES: usize = 2304;
        let most = SEND_BUFFER_BYTES.div_ceil(SINGLE_BYTES);
        // A batch that is cut before it waits is charged as its datagrams alone, another one hardly more
        // than its bytes.
        for batch_charge_bytes in [PACKET_BYTES, SINGLE_BYTES] {
            let mut kernel = Kernel::default();
            let mut backlog = Backlog::new(SEND_BUFFER_BYTES, PACKET_BYTES);
            let mut longest = 0;
            for turn in 0..10_000 {
                let room = backlog.room(kernel.unsent_bytes());
                let wanted = [1, 44, 1, 7][turn % 4];
                let datagrams = wanted.min(room);
                if datagrams > 0 {
                    backlog.add(datagrams);
                    let charge_bytes = match datagrams {
                        1 => SINGLE_BYTES,
                        _ => batch_charge_bytes,
                    };
                    kernel.take(datagrams, charge_bytes);
                }
                longest = longest.max(kernel.queue.len());
                kernel.queue.drain(..(turn % 23).min(kernel.queue.len()));
            }
            assert!(longest <= most, "{longest} of {most}");
            // But not many less: the queue on the way out is what the test of a slow link is about.
            assert!(longest >= most * 3 / 5, "{longest} of {most}");
        }
    }

    #[test]
    fn single_datagrams_behind_a_batch_show_that_it_has_left() {
        let mut backlog = Backlog::new(SEND_BUFFER_BYTES, PACKET_BYTES);
        backlog.add(44);
        assert!(!backlog.has_no_batch());
        (0..10).for_each(|_| backlog.add(1));
        backlog.room(44 * PACKET_BYTES);
        assert!(!backlog.has_no_batch());
        backlog.room(6 * 2304);
        assert!(backlog.has_no_batch());
    }
}
