//! The clients at the far end of a line: which one sends next, and when.
//!
//! What must hold: each client has a start and a chance of its own, so that what one does moves no other but by
//! way of the host. Those that are due at the same moment send in the order of their numbers.

use std::mem::size_of;

use crate::chance::Chance;
use crate::plan::Simulation;
use crate::source::Source;
use crate::workload::{Pattern, TrafficModel};

/// Never.
const NEVER: u64 = u64::MAX;
/// A request without reply is given up after this.
const GIVE_UP_NS: u64 = 1_000_000_000;
/// From one client's seed to the next one's (2^64 over the golden ratio, as in SplitMix64). The first has that of
/// the run.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The clients of one line.
#[derive(Clone, Debug)]
pub(crate) struct Clients {
    list: Vec<Client>,
    /// A tree: place `n` holds the earlier time of places `2n` and `2n + 1`. The second half are the times of the
    /// clients.
    due_ns: Vec<u64>,
    /// Queues of lines that the workload's clients are dealt out to, and which one this is.
    links: u16,
    link: u16,
    /// The way of a frame to the host and of its answer back.
    both_ways_ns: u64,
}

/// A line, and one of the queues of the card at its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkQueue {
    pub(crate) link: u8,
    pub(crate) queue: u16,
    /// All that take packets.
    pub(crate) queues: u16,
}

/// What a client goes by.
#[derive(Clone, Debug)]
enum Client {
    /// Times of its own.
    Timed(Source),
    /// The answers that it gets.
    Asking(Asking),
}

/// Sends a request when its last one is answered.
#[derive(Clone, Copy, Debug)]
struct Asking {
    /// While it waits, when it gives up.
    next_ns: u64,
    waits_for: Option<u64>,
}

impl Client {
    /// `None` when no other host sends.
    fn new(plan: &Simulation, number: u16, frame_ns: u64) -> Option<Self> {
        let seed = plan
            .seed
            .wrapping_add(SEED_STEP.wrapping_mul(u64::from(number)));
        if plan.workload.pattern == Pattern::RequestResponse {
            return Some(Client::Asking(Asking {
                // All have begun when the counted time does.
                next_ns: Chance::new(seed).below(plan.warmup_ns.max(1)),
                waits_for: None,
            }));
        }
        Source::new(&plan.workload, number, frame_ns, seed).map(Client::Timed)
    }

    fn next_ns(&self) -> u64 {
        match self {
            Client::Timed(source) => source.next_ns(),
            Client::Asking(asking) => asking.next_ns,
        }
    }
}

impl Asking {
    fn send(&mut self, datagram: u64) {
        self.next_ns = self.next_ns.saturating_add(GIVE_UP_NS);
        self.waits_for = Some(datagram);
    }

    /// An answer is there at a time.
    fn answer(&mut self, datagram: u64, at_ns: u64) {
        // One that comes late is no longer waited for.
        if self.waits_for == Some(datagram) && at_ns < self.next_ns {
            self.waits_for = None;
            self.next_ns = at_ns;
        }
    }
}

impl Clients {
    /// Those of a line whose packets one queue of the card takes; `None` if no other host sends. `frame_ns` is a
    /// datagram's time on it, `delay_ns` its delay.
    pub(crate) fn new(
        plan: &Simulation,
        queue: LinkQueue,
        frame_ns: u64,
        delay_ns: u64,
    ) -> Option<Self> {
        // The clients of a line are dealt out to its queues, as clients are to lines.
        let links = u16::from(plan.workload.links) * queue.queues;
        let link = u16::from(queue.link) + u16::from(plan.workload.links) * queue.queue;
        let numbers = (link..plan.workload.clients).step_by(usize::from(links));
        let list: Vec<_> = numbers
            .map(|number| Client::new(plan, number, frame_ns))
            .collect::<Option<_>>()?;
        let mut clients = Clients {
            due_ns: vec![NEVER; 2 * list.len().next_power_of_two()],
            list,
            links,
            link,
            both_ways_ns: 2 * delay_ns,
        };
        for index in 0..clients.list.len() {
            clients.set(index, clients.list[index].next_ns());
        }
        Some(clients)
    }

    /// Bytes that those of a workload take.
    pub(crate) fn memory_bytes(workload: &TrafficModel) -> u64 {
        // The tree has four times for each at most.
        let each = size_of::<Client>() + 4 * size_of::<u64>();
        u64::from(workload.clients) * each as u64
    }

    /// When the next one sends.
    pub(crate) fn next_ns(&self) -> u64 {
        self.due_ns[1]
    }

    /// The next one sends this datagram. Returns the client's number, and the payload where datagrams differ.
    pub(crate) fn send(&mut self, datagram: u64) -> (u16, Option<u32>) {
        let first = self.first();
        let (next_ns, payload_bytes) = match &mut self.list[first] {
            Client::Timed(source) => {
                let payload_bytes = source.payload_bytes();
                source.advance();
                (source.next_ns(), payload_bytes)
            }
            Client::Asking(asking) => {
                asking.send(datagram);
                (asking.next_ns, None)
            }
        };
        self.set(first, next_ns);
        (self.link + self.links * first as u16, payload_bytes)
    }

    /// The answer to a client's datagram has reached the line.
    pub(crate) fn answer(&mut self, number: u16, datagram: u64, now_ns: u64) {
        let index = usize::from(number / self.links);
        if let Client::Asking(asking) = &mut self.list[index] {
            asking.answer(datagram, now_ns.saturating_add(self.both_ways_ns));
            let next_ns = asking.next_ns;
            self.set(index, next_ns);
        }
    }

    /// The place of the next one.
    fn first(&self) -> usize {
        let half = self.due_ns.len() / 2;
        let mut place = 1;
        while place < half {
            place *= 2;
            place += usize::from(self.due_ns[place] > self.due_ns[place + 1]);
        }
        place - half
    }

    /// A client's time may have changed.
    #[inline]
    fn set(&mut self, index: usize, next_ns: u64) {
        let mut place = self.due_ns.len() / 2 + index;
        self.due_ns[place] = next_ns;
        while place > 1 {
            place /= 2;
            self.due_ns[place] = self.due_ns[2 * place].min(self.due_ns[2 * place + 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(workload: &str) -> Simulation {
        Simulation {
            // Clients do not know the host.
            stops: Vec::new(),
            workload: TrafficModel::parse(workload).unwrap(),
            duration_ns: 1,
            warmup_ns: 1_000_000,
            seed: 7,
            slices: 0,
        }
    }

    /// What is sent within a second, by time and client.
    fn sent(workload: &str, link: u8) -> Vec<(u64, u16)> {
        sent_to(workload, alone(link))
    }

    fn alone(link: u8) -> LinkQueue {
        LinkQueue {
            link,
            queue: 0,
            queues: 1,
        }
    }

    fn sent_to(workload: &str, queue: LinkQueue) -> Vec<(u64, u16)> {
        let mut clients = Clients::new(&plan(workload), queue, 672, 0).unwrap();
        let mut sent = Vec::new();
        while clients.next_ns() < 1_000_000_000 {
            let at_ns = clients.next_ns();
            sent.push((at_ns, clients.send(sent.len() as u64).0));
        }
        sent
    }

    #[test]
    fn all_send_in_the_order_of_time_as_each_does_alone() {
        for name in ["constant", "poisson", "pulses"] {
            let workload = format!("{name}:rate=7k:clients=7");
            let all = sent(&workload, 0);
            let mut alone = Vec::new();
            for number in 0..7 {
                let mut client = Client::new(&plan(&workload), number, 672).unwrap();
                while client.next_ns() < 1_000_000_000 {
                    alone.push((client.next_ns(), number));
                    let Client::Timed(source) = &mut client else {
                        unreachable!("these have times of their own");
                    };
                    source.advance();
                }
            }
            alone.sort_unstable();
            assert_eq!(all, alone, "{name}");
            let starts: Vec<_> = all.iter().map(|(at_ns, _)| *at_ns).collect();
            assert!(starts.windows(2).any(|pair| pair[1] - pair[0] < 100_000));
        }
    }

    #[test]
    fn clients_are_dealt_out_to_the_lines() {
        let workload = "constant:rate=1k:clients=5:links=2";
        let of = |link| {
            let mut numbers: Vec<_> = sent(workload, link).iter().map(|sent| sent.1).collect();
            numbers.sort_unstable();
            numbers.dedup();
            numbers
        };
        assert_eq!((of(0), of(1)), (vec![0, 2, 4], vec![1, 3]));
    }

    #[test]
    fn those_of_a_line_are_dealt_out_to_the_queues_of_its_card() {
        let workload = "constant:rate=1k:clients=7:links=2";
        let of = |link, queue| {
            let queue = LinkQueue {
                link,
                queue,
                queues: 2,
            };
            let mut numbers: Vec<_> = sent_to(workload, queue).iter().map(|sent| sent.1).collect();
            numbers.sort_unstable();
            numbers.dedup();
            numbers
        };
        assert_eq!((of(0, 0), of(0, 1)), (vec![0, 4], vec![2, 6]));
        assert_eq!((of(1, 0), of(1, 1)), (vec![1, 5], vec![3]));
    }

    #[test]
    fn a_client_asks_again_when_it_is_answered_or_gives_up() {
        let mut clients = Clients::new(&plan("rr"), alone(0), 672, 50).unwrap();
        let start_ns = clients.next_ns();
        assert!(start_ns < 1_000_000);
        clients.send(0);
        assert_eq!(clients.next_ns(), start_ns + GIVE_UP_NS);
        clients.answer(0, 0, start_ns + 10);
        assert_eq!(clients.next_ns(), start_ns + 110);
        clients.send(1);
        // Not what it waits for, then too late to reach it.
        clients.answer(0, 0, start_ns + 200);
        clients.answer(0, 1, start_ns + 110 + GIVE_UP_NS - 100);
        assert_eq!(clients.next_ns(), start_ns + 110 + GIVE_UP_NS);
    }
}
