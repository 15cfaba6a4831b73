//! The senders at the ideal far end of a line: at constant, random, pulsed and recorded times, and clients that ask
//! again upon each reply.
//!
//! Guarantees: the same seed gives the same draws on every machine and in every release: the generator is named, and no
//! draw goes through a floating-point logarithm, whose last digit differs between mathematics libraries. Each client
//! has its own start and random numbers, so one affects another only through the host. Clients due at the same
//! moment send in the order of their numbers.

use std::mem::size_of;

use nicpoll_core::NS_PER_SECOND;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use crate::spec::simulation::Simulation;
use crate::spec::traffic::{Pattern, TrafficModel};

/// The time of what is not set.
pub const NEVER: u64 = u64::MAX;
/// A request without reply is given up after this.
const GIVE_UP_NS: u64 = NS_PER_SECOND;
/// Difference of successive clients' seeds (2^64 over the golden ratio, as in SplitMix64). The first has the run's
/// seed.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The clients of one line.
#[derive(Clone, Debug)]
pub struct Clients {
    list: Vec<SimulatedClient>,
    /// A tournament tree: index `n` holds the earlier time of indices `2n` and `2n + 1`. The second half holds the
    /// clients' times.
    due_ns: Vec<u64>,
    /// Number of line queues among which the workload's clients are dealt out, and the number of this one.
    links: u16,
    link: u16,
    /// Delay of a frame to the host and of its reply back.
    both_ways_ns: u64,
}

/// A line, and one of the queues of the card at its end.
#[derive(Clone, Copy, Debug)]
pub struct LinkQueue {
    pub link: u8,
    pub queue: u16,
    /// Queues of the card that receive packets.
    pub queues: u16,
}

/// How a client decides when to send.
#[derive(Clone, Debug)]
enum SimulatedClient {
    /// At times of its own.
    Timed(Source),
    /// When its last request is answered.
    Asking {
        /// Time of the next request; while it waits, when it gives up.
        next_ns: u64,
        waits_for: Option<u64>,
    },
}

impl SimulatedClient {
    /// Creates a client; `None` when no other host sends.
    fn new(plan: &Simulation, number: u16, frame_ns: u64) -> Option<Self> {
        let seed = plan
            .seed
            .wrapping_add(SEED_STEP.wrapping_mul(u64::from(number)));
        if plan.workload.pattern == Pattern::RequestResponse {
            return Some(SimulatedClient::Asking {
                // All begin during the warm-up.
                next_ns: Chance::new(seed).below(plan.warmup_ns.max(1)),
                waits_for: None,
            });
        }
        Source::new(&plan.workload, number, frame_ns, seed).map(SimulatedClient::Timed)
    }

    fn next_ns(&self) -> u64 {
        match self {
            SimulatedClient::Timed(source) => source.next_ns,
            SimulatedClient::Asking { next_ns, .. } => *next_ns,
        }
    }
}

impl Clients {
    /// Creates the clients of a line whose packets go to one queue of the card; `None` if no other host sends.
    /// `frame_ns` is a datagram's time on the line, `delay_ns` the line's delay.
    pub fn new(plan: &Simulation, queue: LinkQueue, frame_ns: u64, delay_ns: u64) -> Option<Self> {
        // The clients of a line are dealt out to its queues, as clients are to lines.
        let links = u16::from(plan.workload.links) * queue.queues;
        let link = u16::from(queue.link) + u16::from(plan.workload.links) * queue.queue;
        let numbers = (link..plan.workload.clients).step_by(usize::from(links));
        let list: Vec<_> = numbers
            .map(|number| SimulatedClient::new(plan, number, frame_ns))
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

    /// Returns the bytes that a workload's clients take.
    pub fn memory_bytes(workload: &TrafficModel) -> u64 {
        // The tree has at most four times per client.
        let each = size_of::<SimulatedClient>() + 4 * size_of::<u64>();
        u64::from(workload.clients) * each as u64
    }

    /// Returns when the next client sends.
    pub fn next_ns(&self) -> u64 {
        self.due_ns[1]
    }

    /// Lets the next client send this datagram. Returns the client's number, and the payload if datagrams differ.
    pub fn send(&mut self, datagram: u64) -> (u16, Option<u32>) {
        let first = self.first();
        let mut payload_bytes = None;
        match &mut self.list[first] {
            SimulatedClient::Timed(source) => {
                payload_bytes = source.payload_bytes();
                source.advance();
            }
            SimulatedClient::Asking { next_ns, waits_for } => {
                *next_ns = next_ns.saturating_add(GIVE_UP_NS);
                *waits_for = Some(datagram);
            }
        }
        self.set(first, self.list[first].next_ns());
        (self.link + self.links * first as u16, payload_bytes)
    }

    /// Handles the reply to a client's datagram when it reaches the line.
    pub fn answer(&mut self, number: u16, datagram: u64, now_ns: u64) {
        let index = usize::from(number / self.links);
        let at_ns = now_ns.saturating_add(self.both_ways_ns);
        // A reply after the give-up time is ignored.
        if let SimulatedClient::Asking { next_ns, waits_for } = &mut self.list[index]
            && *waits_for == Some(datagram)
            && at_ns < *next_ns
        {
            (*next_ns, *waits_for) = (at_ns, None);
            self.set(index, at_ns);
        }
    }

    /// Returns the index of the next client to send.
    fn first(&self) -> usize {
        let half = self.due_ns.len() / 2;
        let mut place = 1;
        while place < half {
            place *= 2;
            place += usize::from(self.due_ns[place] > self.due_ns[place + 1]);
        }
        place - half
    }

    /// Sets a client's time.
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

/// The times at which a client hands packets to the line.
#[derive(Clone, Debug)]
pub struct Source {
    pattern: Pattern,
    /// Rate of all clients together, and their number.
    rate_pps: u64,
    clients: u64,
    /// Whole nanoseconds from packet to packet, on average.
    gap_ns: u64,
    /// The remainder, in units of 1 / `rate_pps` ns.
    gap_rest: u64,
    rest: u64,
    frame_ns: u64,
    /// When the next packet is sent.
    next_ns: u64,
    /// Start of the current pulse, and its packets left.
    pulse_ns: u64,
    pulse_left: u64,
    /// Fraction of a packet left over by a pulse, in units of 1 / ([`NS_PER_SECOND`] * `clients`).
    pulse_rest: u128,
    chance: Chance,
    /// Of a trace: the next packet's index, and the start of this repetition.
    place: usize,
    round_ns: u64,
}

impl Source {
    /// Creates the source of one client, by number; `None` when no other host sends. `frame_ns` is a datagram's time
    /// on the line.
    pub fn new(workload: &TrafficModel, client: u16, frame_ns: u64, seed: u64) -> Option<Self> {
        let rate_pps = workload.rate_pps?;
        let clients = u64::from(workload.clients);
        let mut source = Source {
            pattern: workload.pattern.clone(),
            rate_pps,
            clients,
            gap_ns: clients * NS_PER_SECOND / rate_pps,
            gap_rest: clients * NS_PER_SECOND % rate_pps,
            rest: 0,
            frame_ns,
            next_ns: 0,
            pulse_ns: 0,
            pulse_left: 0,
            // Clients with less than a packet a pulse send in different pulses.
            pulse_rest: u128::from(client) * u128::from(NS_PER_SECOND),
            chance: Chance::new(seed),
            place: 0,
            round_ns: 0,
        };
        if let Pattern::Trace { .. } = workload.pattern {
            // A trace has its own start.
            return Some(source);
        }
        // Clocks of different hosts start at random phases.
        let phase = match workload.pattern {
            Pattern::Pulses { period_ns } => period_ns,
            _ => source.gap_ns.max(1),
        };
        source.next_ns = source.chance.below(phase);
        source.pulse_ns = source.next_ns;
        source.advance();
        Some(source)
    }

    /// Returns the next packet's payload, if packets differ.
    pub fn payload_bytes(&self) -> Option<u32> {
        match &self.pattern {
            Pattern::Trace { trace, .. } => Some(trace.packets()[self.place].payload_bytes),
            _ => None,
        }
    }

    /// Moves on after the next packet has been sent.
    pub fn advance(&mut self) {
        match &self.pattern {
            Pattern::Constant => self.next_ns += self.gap(),
            Pattern::Poisson => {
                let gap_ns = self.gap();
                self.next_ns = self.next_ns.saturating_add(self.chance.exponential(gap_ns));
            }
            Pattern::Pulses { period_ns } => self.advance_in_pulse(*period_ns),
            Pattern::Trace { .. } => self.advance_in_trace(),
            // The others have no times of their own.
            _ => self.next_ns = NEVER,
        }
    }

    /// Returns the mean gap in whole nanoseconds; the remainder is carried over.
    fn gap(&mut self) -> u64 {
        self.rest += self.gap_rest;
        let carried = self.rest >= self.rate_pps;
        if carried {
            self.rest -= self.rate_pps;
        }
        self.gap_ns + u64::from(carried)
    }

    fn advance_in_trace(&mut self) {
        let Pattern::Trace { trace, repeats } = &self.pattern else {
            return;
        };
        if self.place + 1 < trace.packets().len() {
            self.place += 1;
        } else if *repeats {
            self.place = 0;
            self.round_ns = self.round_ns.saturating_add(trace.period_ns());
        } else {
            self.next_ns = NEVER;
            return;
        }
        let at_ns = trace.packets()[self.place].at_ns;
        self.next_ns = self.round_ns.saturating_add(at_ns);
    }

    fn advance_in_pulse(&mut self, period_ns: u64) {
        if self.pulse_left > 0 {
            self.pulse_left -= 1;
            self.next_ns += self.frame_ns;
            return;
        }
        let whole = u128::from(self.clients) * u128::from(NS_PER_SECOND);
        let a_pulse = u128::from(self.rate_pps) * u128::from(period_ns);
        // Pulses until the next packet: far fewer than 2^64, even with the most clients at the lowest rate.
        let missing = whole.saturating_sub(self.pulse_rest);
        let pulses = missing.div_ceil(a_pulse).max(1) as u64;
        self.pulse_ns = self
            .pulse_ns
            .saturating_add(pulses.saturating_mul(period_ns));
        self.pulse_rest += u128::from(pulses) * a_pulse;
        let packets = (self.pulse_rest / whole) as u64;
        self.pulse_rest %= whole;
        // A pulse that outlasts its period runs into the next one.
        self.next_ns = self.pulse_ns.max(self.next_ns + self.frame_ns);
        self.pulse_left = packets - 1;
    }
}

/// Random numbers from a seed.
#[derive(Clone, Debug)]
pub struct Chance(Pcg64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Chance(Pcg64::seed_from_u64(seed))
    }

    /// Draws a whole number below `bound`, uniform but for a bias of `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        scaled(bound, self.0.next_u64())
    }

    /// Draws an exponentially distributed time with this mean, in the mean's unit.
    ///
    /// Von Neumann's method (Various techniques used in connection with random digits, 1951): compares
    /// uniform draws only. A run of falling draws of odd length accepts its first as the fraction; each
    /// refusal adds one whole mean.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        let mut whole: u64 = 0;
        loop {
            let first = self.0.next_u64();
            let mut last = first;
            let mut is_odd = true;
            loop {
                let next = self.0.next_u64();
                if next >= last {
                    break;
                }
                last = next;
                is_odd = !is_odd;
            }
            if is_odd {
                return whole
                    .saturating_mul(mean)
                    .saturating_add(scaled(mean, first));
            }
            whole += 1;
        }
    }
}

/// Returns `bound` * `draw` / 2^64.
fn scaled(bound: u64, draw: u64) -> u64 {
    ((u128::from(bound) * u128::from(draw)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(workload: &str) -> Simulation {
        Simulation {
            // Clients do not depend on the host.
            stops: Vec::new(),
            workload: TrafficModel::parse(workload).unwrap(),
            duration_ns: 1,
            warmup_ns: 1_000_000,
            seed: 7,
            slices: 0,
        }
    }

    /// Returns what is sent within a second, by time and client.
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
                let mut client = SimulatedClient::new(&plan(&workload), number, 672).unwrap();
                while client.next_ns() < 1_000_000_000 {
                    alone.push((client.next_ns(), number));
                    let SimulatedClient::Timed(source) = &mut client else {
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
        // The first is not the reply it waits for; the second comes too late.
        clients.answer(0, 0, start_ns + 200);
        clients.answer(0, 1, start_ns + 110 + GIVE_UP_NS - 100);
        assert_eq!(clients.next_ns(), start_ns + 110 + GIVE_UP_NS);
    }

    fn times(workload: &str, seconds: u64) -> Vec<u64> {
        let workload = TrafficModel::parse(workload).unwrap();
        let mut source = Source::new(&workload, 0, 672, 1).unwrap();
        let mut times = Vec::new();
        while source.next_ns < seconds * NS_PER_SECOND {
            times.push(source.next_ns);
            source.advance();
        }
        assert!(times.is_sorted());
        times
    }

    #[test]
    fn a_constant_rate_is_kept_to_the_packet() {
        let sent = times("constant:rate=70001", 3).len();
        assert!(sent.abs_diff(3 * 70_001) <= 1, "{sent}");
    }

    #[test]
    fn random_times_have_their_rate() {
        let sent = times("poisson:rate=100k", 2).len() as f64;
        // Four standard deviations.
        assert!((sent - 200e3).abs() < 4.0 * 200e3f64.sqrt(), "{sent}");
    }

    #[test]
    fn pulses_carry_the_rate_in_bursts() {
        let times = times("pulses:rate=50500:period=1ms", 2);
        assert!(times.len().abs_diff(101_000) <= 51, "{}", times.len());
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        let breaks = gaps.filter(|gap| *gap > 672).count();
        // The first pulse comes within two periods and has no break before it.
        assert!((1997..2000).contains(&breaks), "{breaks}");
    }

    #[test]
    fn exponential_times_have_their_distribution() {
        let mut chance = Chance::new(7);
        let draws = 200_000;
        let mut sum = 0.0;
        let mut square_sum = 0.0;
        let mut beyond_mean = 0;
        for _ in 0..draws {
            let time = chance.exponential(1_000_000) as f64 / 1e6;
            sum += time;
            square_sum += time * time;
            beyond_mean += u32::from(time > 1.0);
        }
        let mean = sum / f64::from(draws);
        let variance = square_sum / f64::from(draws) - mean * mean;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        assert!((variance - 1.0).abs() < 0.03, "{variance}");
        let share = f64::from(beyond_mean) / f64::from(draws);
        assert!((share - (-1.0f64).exp()).abs() < 0.005, "{share}");
    }

    #[test]
    fn a_seed_gives_its_draws_again() {
        let draws = |seed| {
            let mut chance = Chance::new(seed);
            [(); 20].map(|()| chance.exponential(1 << 40))
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
        let mut chance = Chance::new(1);
        assert!((0..1000).all(|_| chance.below(10) < 10));
    }
}
