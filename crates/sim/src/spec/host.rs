//! A simulated host: what its hardware holds, and what each step costs.
//!
//! One table holds every number with its section, range and meaning. A number that results rest on has no default:
//! the host file states it, with a remark on its source. A default means that the host lacks the feature; the section
//! of a veth pair may be left out as a whole.

use super::options::{SimError, refuse};

/// A number of a host file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Section and name, such as `cpu.hz`.
    pub name: &'static str,
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
    /// Value when a file leaves it out; `None` if it is required.
    pub default: Option<u64>,
    /// Its meaning, a sentence for messages.
    pub meaning: &'static str,
}

const fn first(of: &[u64]) -> Option<u64> {
    match of {
        [first, ..] => Some(*first),
        [] => None,
    }
}

macro_rules! host {
    ($($(#[$about:meta])* $section:ident: $Section:ident {
        $($(#[doc = $meaning:literal])+ $field:ident: $min:literal..=$max:literal $(= $default:literal)?,)*
    })*) => {
        $(
            $(#[$about])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub struct $Section {
                $($(#[doc = $meaning])+ pub $field: u64,)*
            }
        )*

        /// A host.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct HostModel {
            /// Its name.
            pub name: String,
            $($(#[$about])* pub $section: $Section,)*
        }

        impl HostModel {
            /// Every number of a host file, in the order of its sections.
            pub const FIELDS: &'static [Field] = &[$($(Field {
                name: concat!(stringify!($section), ".", stringify!($field)),
                min: $min,
                max: $max,
                default: first(&[$($default)?]),
                meaning: concat!($($meaning,)+).trim_ascii_start(),
            },)*)*];

            /// Returns the number with a name such as `cpu.hz`.
            pub fn get(&self, name: &str) -> Option<u64> {
                match name {
                    $($(concat!(stringify!($section), ".", stringify!($field)) => {
                        Some(self.$section.$field)
                    })*)*
                    _ => None,
                }
            }

            fn slot(&mut self, name: &str) -> Option<&mut u64> {
                match name {
                    $($(concat!(stringify!($section), ".", stringify!($field)) => {
                        Some(&mut self.$section.$field)
                    })*)*
                    _ => None,
                }
            }
        }
    };
}

host! {
    /// The processors: each does one thing at a time, and all cost the same.
    cpu: Cpu {
        /// Clock ticks a second.
        hz: 1..=10_000,
        /// The work of a clock tick, without entering its interrupt.
        tick_ns: 0..=1_000_000,
        /// Millionths by which the time between ticks is too long: no two crystals are alike.
        tick_slow_ppm: 0..=1_000,
        /// Entering a hard interrupt and leaving it.
        interrupt_entry_ns: 0..=1_000_000,
        /// Switching to another thread.
        context_switch_ns: 0..=1_000_000,
        /// What a preempted thread takes to refill the caches with its code and data, once for all that ran in
        /// between.
        refill_ns: 0..=1_000_000,
        /// What a thread or a software interrupt takes to refill the caches when it starts new work after another one
        /// has run; 0 when the switch to it includes that.
        wake_refill_ns: 0..=1_000_000 = 0,
        /// A system call that moves a datagram, without copying.
        syscall_ns: 1..=10_000_000,
        /// A round of the network software interrupt that polls, without the look at the card: scheduling, loop, the
        /// poller's locks.
        netisr_ns: 0..=10_000_000,
        /// Samples a second of the sampling CPU account, by a clock of its own (`stathz`; FreeBSD's RTC has 128); 0
        /// when each clock tick samples, before its own work.
        stat_hz: 0..=10_000 = 0,
        /// Waking a program that sleeps on another processor, to hand over a packet.
        wake_other_ns: 0..=10_000_000 = 0,
        /// Processors. Each serves the card's queue with its number, if there is one.
        cpus: 1..=16 = 1,
    }
    /// The network card and its driver.
    card: Card {
        /// Receive descriptors.
        rx_ring: 1..=65_536,
        /// Transmit descriptors.
        tx_ring: 1..=65_536,
        /// Minimum time from interrupt to interrupt; 0 without moderation.
        moderation_ns: 0..=100_000_000,
        /// The handler's work on an interrupt, without packets: reading and clearing the cause.
        interrupt_ns: 0..=10_000_000,
        /// FreeBSD's interrupt thread after the packets of a pass: other handlers on the line, ending the interrupt.
        rearm_ns: 0..=10_000_000,
        /// One look at the rings, without packets.
        poll_ns: 1..=10_000_000,
        /// A look at status registers, which a polled driver takes now and then.
        status_ns: 0..=10_000_000,
        /// The driver's work on a received packet.
        rx_packet_ns: 1..=10_000_000,
        /// The driver's work on a packet to send.
        tx_packet_ns: 1..=10_000_000,
        /// The driver's work on a sent packet.
        tx_done_ns: 0..=10_000_000,
        /// The driver's copying of 1024 received bytes; 0 when it passes on what the card wrote.
        rx_kib_ns: 0..=10_000_000,
        /// The driver's copying of 1024 bytes to send; 0 when the card reads them where they are.
        tx_kib_ns: 0..=10_000_000,
        /// Time that the card needs between two sent frames, besides the line's own gap.
        tx_gap_ns: 0..=10_000_000,
        /// Most packets of one pass of the interrupt handler.
        pass_packets: 1..=65_536,
        /// 1 when a full pass hands the rest to a task, with the card masked until that ends, and the handler itself
        /// unmasks the card, which interrupts at once if anything came meanwhile (FreeBSD's em(4) with MSI-X); 0 when
        /// the thread unmasks it after the pass, and packets handled in the pass interrupt no more.
        hands_over: 0..=1 = 0,
        /// Receive queues of each card, each with rings and an interrupt of its own. A flow arrives on one of them.
        queues: 1..=16 = 1,
    }
    /// The line to the card, and the queue at its far end.
    link: Link {
        /// Speed at layer 1, each way.
        bits_per_second: 1_000_000..=400_000_000_000,
        /// The longest IP packet in a frame.
        mtu_bytes: 576..=65_535,
        /// Packets that may wait at the far end for the line.
        queue_packets: 1..=65_536,
        /// Delay from one end to the other, besides the time of the frame itself.
        delay_ns: 0..=1_000_000_000,
        /// 1 when both ways share the line, 0 when each has its own.
        half_duplex: 0..=1,
    }
    /// The protocols.
    network: Network {
        /// Packets that may wait for IP; 0 when drivers pass on each packet at once.
        ip_queue_packets: 0..=65_536,
        /// IP version 4, receiving a packet.
        ipv4_ns: 0..=10_000_000,
        /// IP version 6, receiving a packet.
        ipv6_ns: 0..=10_000_000,
        /// UDP, receiving a packet: checksum, finding the socket, waking its program.
        udp_ns: 0..=10_000_000,
        /// UDP and IP version 4, sending a packet.
        output_ns: 0..=10_000_000,
        /// UDP and IP version 6, sending a packet.
        output6_ns: 0..=10_000_000,
        /// Forwarding a packet to another card: the route, the time to live, the output.
        forward_ns: 0..=10_000_000,
        /// Making a fragment of a datagram. Receiving one costs as much as a packet.
        fragment_ns: 0..=10_000_000,
        /// The checksum over 1024 bytes of payload; 0 when the card computes it.
        checksum_kib_ns: 0..=10_000_000,
        /// Packets that may wait for the transmit ring.
        send_queue_packets: 1..=65_536,
        /// 1 when in-order segments of a TCP stream in one poll are merged before IP (GRO), 0 when each passes by
        /// itself.
        gro: 0..=1 = 0,
        /// Merging a segment into the previous one, instead of passing it through IP and TCP or to another card.
        gro_ns: 0..=10_000_000 = 0,
    }
    /// TCP, including IP on what it sends.
    tcp: Tcp {
        /// Receiving a segment with data: finding the connection, the buffer, waking the program.
        segment_ns: 0..=10_000_000,
        /// Receiving an acknowledgement: the timers, freeing what it acknowledges.
        ack_ns: 0..=10_000_000,
        /// Sending a segment.
        output_ns: 0..=10_000_000,
        /// Sending an acknowledgement.
        send_ack_ns: 0..=10_000_000,
        /// A buffer in a program's call, besides copying: each 2048 bytes written, each segment read (`sosend`,
        /// `soreceive`).
        buffer_ns: 0..=10_000_000,
        /// The send buffer of a connection, unless the workload sets it.
        send_buffer_bytes: 2_048..=1_073_741_824,
        /// The receive buffer of a connection, unless the workload sets it.
        receive_buffer_bytes: 2_048..=1_073_741_824,
    }
    /// The socket of the receiving program.
    socket: Socket {
        /// Bytes that the socket's buffer holds.
        buffer_bytes: 1..=2_147_483_648,
        /// Bytes of the buffer that a packet takes besides its payload.
        packet_overhead_bytes: 0..=65_535,
        /// Copying 1024 bytes between kernel and program.
        copy_kib_ns: 0..=10_000_000,
    }
    /// The programs that receive or send.
    application: Application {
        /// The program's own work on a packet.
        packet_ns: 0..=1_000_000_000,
        /// Reading the clock, which iperf does for each packet (`gettimeofday`).
        clock_ns: 0..=10_000_000,
        /// The processor of the program, from 1; 0 for a program on each processor that has a queue, with a socket of
        /// its own (`SO_REUSEPORT`).
        cpu: 0..=16 = 0,
        /// Programs that compute without a pause, on each processor with a program that receives or sends.
        computing: 0..=16 = 0,
    }
    /// Kernel work that every interrupt of the card causes, such as entropy harvesting.
    background: Background {
        /// Work that an interrupt causes at once, before its handler.
        at_once_ns: 0..=10_000_000,
        /// Work that an interrupt causes for later.
        interrupt_ns: 0..=10_000_000,
        /// Interrupts whose later work may wait; that of more is dropped.
        queue_events: 0..=1_000_000,
    }
    /// Interrupt storm detection (`hw.intr_storm_threshold`).
    storm: Storm {
        /// Back-to-back passes after which a source is throttled; 0 for never.
        threshold: 0..=1_000_000,
    }
    /// A veth pair in place of card and line. The sending processor also receives, up to a program that waits on the
    /// other processor.
    veth: Veth {
        /// 1 when the two ends of a path are processors of one machine, joined by a veth pair.
        pair: 0..=1,
        /// Waking a program that sleeps on the other processor.
        wake_ns: 0..=10_000_000,
        /// Time from that wake-up until the other processor runs the program.
        wake_delay_ns: 0..=100_000_000,
        /// How late the deferral timer interrupts.
        timer_delay_ns: 0..=100_000_000,
    }
}

/// The section that a host file may leave out; its numbers are 0 then.
pub(crate) const OPTIONAL_SECTION: &str = "veth";

/// Numbers of a card and its driver: sizes, and times that wait for the bus or the card. The driver's other costs per
/// packet depend on the processor.
pub(crate) const OF_CARD: [&str; 13] = [
    "card.rx_ring",
    "card.tx_ring",
    "card.moderation_ns",
    "card.interrupt_ns",
    "card.rearm_ns",
    "card.poll_ns",
    "card.status_ns",
    "card.rx_kib_ns",
    "card.tx_kib_ns",
    "card.tx_gap_ns",
    "card.pass_packets",
    "card.hands_over",
    "network.checksum_kib_ns",
];

/// A number that no host file has, since it changes others: what the processor does by itself costs as much less time
/// as it is faster.
const SPEED: Field = Field {
    name: "cpu.speed_percent",
    min: 10,
    max: 1_000,
    default: None,
    meaning: "The processor's speed, of the one that the host's costs are of; what waits for bus or memory stays.",
};

impl HostModel {
    /// Returns the field with a name such as `cpu.hz`.
    pub fn field(name: &str) -> Option<&'static Field> {
        let mut all = HostModel::FIELDS.iter().chain([&SPEED]);
        all.find(|field| field.name == name)
    }

    /// Makes the processor faster, or slower.
    fn set_speed(&mut self, percent: u64) {
        for field in HostModel::FIELDS.iter().filter(|field| field.is_work()) {
            // It is one of the table.
            let Some(cost_ns) = self.slot(field.name) else {
                continue;
            };
            *cost_ns = (*cost_ns * 100)
                .div_ceil(percent)
                .clamp(field.min, field.max);
        }
    }

    /// Whether a veth pair joins this processor to another one of the same machine: frames take no time on a line,
    /// and the sending processor polls the receiving end.
    pub(crate) fn is_veth_end(&self) -> bool {
        self.veth.pair > 0
    }

    /// Returns the bytes of the socket's buffer that a packet takes: at least 1, or the buffer would hold any number
    /// of empty ones.
    pub(crate) fn packet_bytes(&self, payload_bytes: u32) -> u64 {
        (u64::from(payload_bytes) + self.socket.packet_overhead_bytes).max(1)
    }

    /// Sets the number with a name such as `cpu.hz`.
    ///
    /// # Errors
    /// What is wrong with name or value, and what would be right.
    /// ```
    /// use nicpoll_sim::{EmbeddedHost, HostModel};
    ///
    /// let generic = EmbeddedHost::named("generic").unwrap();
    /// let mut host = HostModel::parse(generic.text)?;
    /// host.set("cpu.hz", 2_000)?;
    /// assert_eq!(host.get("cpu.hz"), Some(2_000));
    /// let error = host.set("cpu.warp", 9).unwrap_err();
    /// assert!(error.to_string().starts_with("no such number: cpu.warp"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), SimError> {
        let Some(field) = HostModel::field(name) else {
            let known: Vec<_> = HostModel::FIELDS.iter().map(|field| field.name).collect();
            return refuse(format!(
                "no such number: {name}; there are {}, {}",
                known.join(", "),
                SPEED.name
            ));
        };
        if !(field.min..=field.max).contains(&value) {
            return refuse(field.refusal(&value.to_string()));
        }
        match self.slot(name) {
            Some(slot) => *slot = value,
            None => self.set_speed(value),
        }
        Ok(())
    }
}

impl Field {
    /// Whether it is the cost of work that a faster processor does in less time.
    fn is_work(&self) -> bool {
        /// What waits for memory.
        const MEMORY: [&str; 3] = ["cpu.refill_ns", "cpu.wake_refill_ns", "socket.copy_kib_ns"];
        let is_outside = self.name.starts_with("link.") || self.name.starts_with("veth.");
        let waits = OF_CARD.contains(&self.name) || MEMORY.contains(&self.name);
        self.name.ends_with("_ns") && !is_outside && !waits
    }

    pub(crate) fn refusal(&self, value: &str) -> String {
        format!(
            "{} = {value} is out of range; give a whole number from {} to {}: {}",
            self.name,
            self.min,
            self.max,
            lowered(self.meaning)
        )
    }
}

/// Returns the meaning as the rest of a sentence: abbreviations keep their capitals.
pub(crate) fn lowered(meaning: &str) -> String {
    let meaning = meaning.trim_end_matches('.');
    let mut letters = meaning.chars();
    let first = letters.next().unwrap_or_default();
    let is_word = letters
        .as_str()
        .starts_with(|c: char| c.is_lowercase() || c == ' ');
    if is_word {
        first.to_lowercase().chain(letters).collect()
    } else {
        String::from(meaning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_faster_processor_works_faster_and_waits_as_long() {
        let mut host = HostModel::default();
        for (name, value) in [
            ("cpu.hz", 1000),
            ("cpu.syscall_ns", 2001),
            ("cpu.refill_ns", 10_000),
            ("card.rx_packet_ns", 1),
            ("card.poll_ns", 1000),
            ("link.delay_ns", 70),
        ] {
            host.set(name, value).unwrap();
        }
        host.set("cpu.speed_percent", 200).unwrap();
        assert_eq!((host.cpu.syscall_ns, host.card.rx_packet_ns), (1001, 1));
        assert_eq!((host.cpu.refill_ns, host.card.poll_ns), (10_000, 1000));
        assert_eq!((host.cpu.hz, host.link.delay_ns), (1000, 70));
        assert!(host.set("cpu.speed_percent", 9).is_err());
    }
}
