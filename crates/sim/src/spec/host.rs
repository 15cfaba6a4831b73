//! A simulated host: what its hardware can hold and what each thing that it does costs.
//!
//! One table holds every number with its section, range and meaning. A number that a simulation rests on has no default:
//! the host file states it, with a remark on its source. A default means that the host has none of it; the section of a
//! veth pair may be left out as a whole.

use super::options::{SimError, refuse};

/// A number of a host file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Section and name, such as `cpu.hz`.
    pub name: &'static str,
    /// The least it may be.
    pub min: u64,
    /// The most it may be.
    pub max: u64,
    /// What it is in a file that leaves it out; `None` when it has to stand there.
    pub default: Option<u64>,
    /// What it says.
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
            /// What it is called.
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

            /// The number of a name such as `cpu.hz`.
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
        /// The work of a clock tick, the entry of its interrupt left out.
        tick_ns: 0..=1_000_000,
        /// By how many millionths of it the time between ticks is too long: no two crystals are alike.
        tick_slow_ppm: 0..=1_000,
        /// Entering a hard interrupt and leaving it.
        interrupt_entry_ns: 0..=1_000_000,
        /// Switching to another thread.
        context_switch_ns: 0..=1_000_000,
        /// What a thread that was preempted takes to fetch its code and data into the caches again, once for all
        /// that ran in between.
        refill_ns: 0..=1_000_000,
        /// What a thread or a software interrupt that starts again takes for the same, when another one has run since
        /// it ended its work; 0 when that is counted with the switch to it.
        wake_refill_ns: 0..=1_000_000 = 0,
        /// A system call that moves a datagram, without what it copies.
        syscall_ns: 1..=10_000_000,
        /// A round of the network software interrupt that polls, the look at the card left out: scheduling it,
        /// its loop, the poller's locks.
        netisr_ns: 0..=10_000_000,
        /// Samples a second of the CPU account that samples, by a clock of its own (`stathz`; FreeBSD's RTC has 128);
        /// 0 when each clock tick samples, before its own work.
        stat_hz: 0..=10_000 = 0,
        /// What a processor takes to wake a program that sleeps on another one, for a packet that it hands over.
        wake_other_ns: 0..=10_000_000 = 0,
        /// Processors. Each serves the card's queue of its number, if there is one.
        cpus: 1..=16 = 1,
    }
    /// The network card and its driver.
    card: Card {
        /// Receive descriptors.
        rx_ring: 1..=65_536,
        /// Transmit descriptors.
        tx_ring: 1..=65_536,
        /// The least time from interrupt to interrupt; 0 without moderation.
        moderation_ns: 0..=100_000_000,
        /// The handler's work of an interrupt, packets left out: reading and clearing the cause.
        interrupt_ns: 0..=10_000_000,
        /// FreeBSD's interrupt thread after the packets of a pass: other handlers on the line, ending the interrupt.
        rearm_ns: 0..=10_000_000,
        /// One look at the rings, packets left out.
        poll_ns: 1..=10_000_000,
        /// A look at status registers, which a polled driver takes now and then.
        status_ns: 0..=10_000_000,
        /// The driver's work on a received packet.
        rx_packet_ns: 1..=10_000_000,
        /// The driver's work on a packet to send.
        tx_packet_ns: 1..=10_000_000,
        /// The driver's work on a packet that was sent.
        tx_done_ns: 0..=10_000_000,
        /// The driver's copying of 1024 bytes that were received; 0 when it hands on what the card wrote.
        rx_kib_ns: 0..=10_000_000,
        /// The driver's copying of 1024 bytes to send; 0 when the card reads them where they are.
        tx_kib_ns: 0..=10_000_000,
        /// Time that the card needs between two frames that it sends, besides the line's own gap.
        tx_gap_ns: 0..=10_000_000,
        /// The most packets that one pass of the interrupt handler takes.
        pass_packets: 1..=65_536,
        /// 1 when a pass that takes as many hands the rest to a task, with the card masked until that is done, and the
        /// handler lets the card interrupt again itself, at once if anything came meanwhile (FreeBSD's em(4) with
        /// MSI-X); 0 when the thread does after the pass, and what was dealt with in the pass interrupts no more.
        hands_over: 0..=1 = 0,
        /// Receive queues of each card, each with rings and an interrupt of its own. A flow comes in by one of them.
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
        /// From one end to the other, besides the time of the frame itself.
        delay_ns: 0..=1_000_000_000,
        /// 1 when both ways share the line, 0 when each has its own.
        half_duplex: 0..=1,
    }
    /// The protocols.
    network: Network {
        /// Packets that may wait for IP; 0 when drivers hand each packet on at once.
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
        /// Making a fragment of a datagram. What takes one in pays for the packet that it is.
        fragment_ns: 0..=10_000_000,
        /// The checksum over 1024 bytes of payload; 0 when the card computes it.
        checksum_kib_ns: 0..=10_000_000,
        /// Packets that may wait for the transmit ring.
        send_queue_packets: 1..=65_536,
        /// 1 when segments of one TCP stream that a poll finds in order are merged before IP (GRO), 0 when each passes
        /// by itself.
        gro: 0..=1 = 0,
        /// Merging a segment into the one before it, in place of its way through IP and TCP or to another card.
        gro_ns: 0..=10_000_000 = 0,
    }
    /// TCP, with the work of IP on what it sends.
    tcp: Tcp {
        /// Receiving a segment with data: finding the connection, the buffer, waking the program.
        segment_ns: 0..=10_000_000,
        /// Receiving an acknowledgement: the timers, freeing what it answers.
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
        /// What its buffer holds.
        buffer_bytes: 1..=2_147_483_648,
        /// What a packet takes of it besides its payload.
        packet_overhead_bytes: 0..=65_535,
        /// Copying 1024 bytes between kernel and program.
        copy_kib_ns: 0..=10_000_000,
    }
    /// The programs that receive or send.
    application: Application {
        /// Its own work on a packet.
        packet_ns: 0..=1_000_000_000,
        /// Reading the clock, which iperf does for each packet (`gettimeofday`).
        clock_ns: 0..=10_000_000,
        /// The processor that it runs on, from 1; 0 for a program on each processor that has a queue, with a socket of
        /// its own (`SO_REUSEPORT`).
        cpu: 0..=16 = 0,
    }
    /// Kernel work that every interrupt of the card causes, such as entropy harvesting.
    background: Background {
        /// What an interrupt causes at once, before its handler.
        at_once_ns: 0..=10_000_000,
        /// What an interrupt causes for later.
        interrupt_ns: 0..=10_000_000,
        /// Interrupts whose work may wait; what comes beyond is forgotten.
        queue_events: 0..=1_000_000,
    }
    /// Interrupt storm detection (`hw.intr_storm_threshold`).
    storm: Storm {
        /// Passes back to back after which a source is throttled; 0 for never.
        threshold: 0..=1_000_000,
    }
    /// A veth pair in place of card and line. What a processor sends, it takes in itself, up to a program
    /// that waits on the other.
    veth: Veth {
        /// 1 when the two ends of a path are processors of one machine, joined by a veth pair.
        pair: 0..=1,
        /// Waking a program that sleeps on the other processor.
        wake_ns: 0..=10_000_000,
        /// From then until its processor turns to that program.
        wake_delay_ns: 0..=100_000_000,
        /// How late the deferral timer interrupts.
        timer_delay_ns: 0..=100_000_000,
    }
}

/// The section that a host file may leave out; its numbers are 0 then.
pub(crate) const OPTIONAL_SECTION: &str = "veth";

impl HostModel {
    /// The field of a name such as `cpu.hz`.
    pub fn field(name: &str) -> Option<&'static Field> {
        HostModel::FIELDS.iter().find(|field| field.name == name)
    }

    /// Whether it is a processor that a veth pair joins to another one of its machine: frames take no time on a line, and
    /// the processor that sends to an end polls it.
    pub(crate) fn is_veth_end(&self) -> bool {
        self.veth.pair > 0
    }

    /// Bytes of the socket's buffer that a packet takes. An empty one takes a byte, or the buffer would hold any number.
    pub(crate) fn packet_bytes(&self, payload_bytes: u32) -> u64 {
        (u64::from(payload_bytes) + self.socket.packet_overhead_bytes).max(1)
    }

    /// Sets the number of a name such as `cpu.hz`.
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
        let (Some(field), Some(slot)) = (HostModel::field(name), self.slot(name)) else {
            let known: Vec<_> = HostModel::FIELDS.iter().map(|field| field.name).collect();
            return refuse(format!(
                "no such number: {name}; there are {}",
                known.join(", ")
            ));
        };
        if !(field.min..=field.max).contains(&value) {
            return refuse(field.refusal(&value.to_string()));
        }
        *slot = value;
        Ok(())
    }
}

impl Field {
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

/// The meaning as the rest of a sentence: abbreviations keep their capitals.
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
