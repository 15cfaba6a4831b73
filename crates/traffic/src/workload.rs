//! Workloads: traffic between two hosts whose ends count separately.
//!
//! A workload is data, for use in a study's plan, a file or on another host. A prepared end loses nothing that
//! the other end sends from then on. The ends' figures are kept apart; only [`Books::of`] combines them. A
//! receiver counts the same, whether its datagrams come from a socket or are passed to it
//! ([`DatagramReceiver`]).

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::ops::Add;
use std::time::{Duration, Instant};

use nicpoll_model::{
    ControlKind, ControlLine, RoundTrip, Side, SocketBuffers, TimeDistribution, WindowRates,
    WorkUnit,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::signals::{Cancelled, Signals};
use crate::sockets::SocketBuffer;

/// Silence after which a receiver gives up.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(3);

/// A kind of traffic between a sender and a receiver.
pub trait Workload {
    /// The unit of its work; datagrams by default.
    fn unit(&self) -> WorkUnit {
        WorkUnit::Datagrams
    }

    /// UDP payload bytes per datagram; `None` without datagrams.
    fn datagram_bytes(&self) -> Option<u32> {
        None
    }

    /// Prepares one end: a receiver has its socket from now on.
    ///
    /// # Errors
    /// When the socket is not available.
    fn prepare(&self, end: &EndTerms) -> Result<Box<dyn PreparedEnd>, WorkloadError>;

    /// A receiver of its datagrams without a socket; `None` if the traffic needs one.
    fn datagram_receiver(&self) -> Option<Box<dyn DatagramReceiver>> {
        None
    }
}

/// One end of a workload, ready to run.
pub trait PreparedEnd {
    /// Runs it on the calling thread: a sender for its time, a receiver until the sender is done.
    ///
    /// # Errors
    /// [`WorkloadError::Cancelled`] if `signals` cancel; when the socket fails permanently.
    fn run(self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError>;
}

/// Which end to prepare, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndTerms {
    /// Whether it sends or receives.
    pub side: Side,
    /// Where the receiver listens.
    pub receiver: SocketAddr,
    /// How long the sender sends.
    pub duration: Duration,
    /// Extra delay of each packet, in each direction: timeouts are longer by twice this.
    pub link_delay: Duration,
    /// How far the receiver's wall clock is ahead of the sender's, ns. One-way delays are less by this.
    pub receiver_ahead_ns: i64,
}

/// Why an end failed.
#[derive(Debug, Error)]
pub enum WorkloadError {
    /// The caller cancelled it.
    #[error("cancelled")]
    Cancelled,
    /// An error in the workload's own code.
    #[error(transparent)]
    Failed(Box<dyn Error + Send + Sync>),
}

impl WorkloadError {
    /// An error in the workload's own code.
    pub fn failed(error: impl Error + Send + Sync + 'static) -> Self {
        WorkloadError::Failed(Box::new(error))
    }

    /// Combines what failed, with its remedy, and the kernel's error.
    pub(crate) fn because(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| WorkloadError::failed(Because { what, source })
    }
}

/// A permanent refusal by the kernel.
#[derive(Debug, Error)]
#[error("{what}")]
pub struct Because {
    /// What was tried, and what to check.
    pub what: String,
    /// The kernel's error.
    pub source: io::Error,
}

impl From<Because> for WorkloadError {
    fn from(failed: Because) -> Self {
        WorkloadError::failed(failed)
    }
}

impl From<Cancelled> for WorkloadError {
    fn from(_: Cancelled) -> Self {
        WorkloadError::Cancelled
    }
}

/// Combines two figures, either of which may be unknown.
pub(crate) fn merged<T>(
    one: Option<T>,
    other: Option<T>,
    merge: impl FnOnce(T, T) -> T,
) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(merge(one, other)),
        (one, other) => one.or(other),
    }
}

/// Datagrams and payload bytes that one end sent or received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    /// Datagrams; `None` for a stream.
    pub packets: Option<u64>,
    /// Bytes.
    pub bytes: u64,
}

impl Payload {
    /// Datagrams of one size.
    pub fn datagrams(packets: u64, payload_bytes: u64) -> Self {
        Payload {
            packets: Some(packets),
            bytes: packets * payload_bytes,
        }
    }

    /// Adds two ends' payload. An end that had nothing to send or receive has no packet count.
    fn plus(self, other: Payload) -> Payload {
        Payload {
            packets: merged(self.packets, other.packets, u64::add),
            bytes: self.bytes + other.bytes,
        }
    }
}

/// The counts of one end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndBooks {
    /// Payload sent.
    pub sent: Payload,
    /// Payload received.
    pub received: Payload,
    /// Figures of its main direction: a sender's of sending, a receiver's of receiving.
    pub rates: WindowRates,
    /// The receiver's figures, if reported to this end; otherwise the receiver's own `rates` count.
    pub receiver_rates: Option<WindowRates>,
    /// Datagrams sent, or tried, other than those in `sent`, by kind.
    pub control_sent: Vec<(ControlKind, u64)>,
    /// Datagrams received other than those in `received`.
    pub control_received: Vec<(ControlKind, u64)>,
    /// Interarrival jitter of what it received.
    pub jitter_seconds: Option<f64>,
    /// One-way delays to this end's program; `None` when the datagrams have no send times.
    pub one_way_delays: Option<TimeDistribution>,
    /// Datagrams that arrived after a later one.
    pub out_of_order_packets: Option<u64>,
    /// Datagrams in `received` that had arrived before; `None` when they have no numbers.
    pub duplicate_packets: Option<u64>,
    /// Round trips measured at this end.
    pub round_trip: Option<RoundTrip>,
    /// Their distribution.
    pub round_trip_distribution: Option<TimeDistribution>,
    /// The socket buffer of its main direction.
    pub socket_buffer: SocketBuffer,
    /// Why it cannot say that everything was read or sent; `None` when it can.
    pub undrained: Option<String>,
}

impl EndBooks {
    /// Books of an end that only sent.
    pub fn of_sender(sent: Payload, seconds: f64, socket_buffer: SocketBuffer) -> Self {
        EndBooks {
            sent,
            rates: WindowRates::new(sent.packets, sent.bytes, seconds),
            socket_buffer,
            ..EndBooks::default()
        }
    }

    /// Books of an end that only received.
    pub fn of_receiver(received: Payload, seconds: f64, socket_buffer: SocketBuffer) -> Self {
        EndBooks {
            received,
            rates: WindowRates::new(received.packets, received.bytes, seconds),
            socket_buffer,
            ..EndBooks::default()
        }
    }
}

/// The combined counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Books {
    /// Datagrams offered and delivered, without duplicates; `None` for a stream.
    pub packets: Option<(u64, u64)>,
    /// Datagrams that arrived again; `None` when they have no numbers.
    pub duplicate_packets: Option<u64>,
    /// Payload offered.
    pub offered_bytes: u64,
    /// Payload delivered.
    pub delivered_bytes: u64,
    /// The sender's own figures.
    pub sender: WindowRates,
    /// The receiver's own figures.
    pub receiver: WindowRates,
    /// Interarrival jitter at the receiver.
    pub jitter_seconds: Option<f64>,
    /// One-way delays to the receiver's program.
    pub one_way_delays: Option<TimeDistribution>,
    /// Datagrams that reached the receiver after a later one.
    pub out_of_order_packets: Option<u64>,
    /// Round trips measured at the sender.
    pub round_trip: Option<RoundTrip>,
    /// Their distribution.
    pub round_trip_distribution: Option<TimeDistribution>,
    /// Datagrams other than the workload's own.
    pub control: Vec<ControlLine>,
    /// The socket buffers.
    pub socket_buffers: SocketBuffers,
    /// Why not all sent data could be waited for; `None` when it was.
    pub undrained: Option<String>,
}

impl Books {
    /// Combines both ends' books.
    pub fn of(sender: EndBooks, receiver: EndBooks) -> Self {
        let offered = sender.sent.plus(receiver.sent);
        let delivered = receiver.received.plus(sender.received);
        let mut control = control_lines(
            Side::Sender,
            &sender.control_sent,
            &receiver.control_received,
        );
        control.extend(control_lines(
            Side::Receiver,
            &receiver.control_sent,
            &sender.control_received,
        ));
        let duplicate_packets = merged(
            sender.duplicate_packets,
            receiver.duplicate_packets,
            u64::add,
        );
        let told = sender.receiver_rates.or(receiver.receiver_rates);
        let once = |packets: u64| packets.saturating_sub(duplicate_packets.unwrap_or(0));
        Books {
            packets: offered.packets.zip(delivered.packets.map(once)),
            duplicate_packets,
            offered_bytes: offered.bytes,
            delivered_bytes: delivered.bytes,
            sender: sender.rates,
            receiver: told.unwrap_or(receiver.rates),
            jitter_seconds: receiver.jitter_seconds.or(sender.jitter_seconds),
            one_way_delays: receiver.one_way_delays.or(sender.one_way_delays),
            out_of_order_packets: receiver.out_of_order_packets,
            round_trip: sender.round_trip,
            round_trip_distribution: sender.round_trip_distribution,
            control,
            socket_buffers: SocketBuffers {
                send_asked_bytes: sender.socket_buffer.asked_bytes,
                send_granted_bytes: sender.socket_buffer.granted_bytes,
                receive_asked_bytes: receiver.socket_buffer.asked_bytes,
                receive_granted_bytes: receiver.socket_buffer.granted_bytes,
            },
            undrained: sender.undrained.or(receiver.undrained),
        }
    }

    /// The books of a stream from the receiver's host to the sender's.
    #[must_use]
    pub fn reversed(mut self) -> Self {
        for line in &mut self.control {
            line.from = line.from.other();
        }
        self
    }

    /// Adds the books of other traffic that ran at the same time. Offered and delivered counts include both, so
    /// the loss account closes; the other's rates and round trips are added only if `counted`. If only one of
    /// them is a stream, the other is left out of the account.
    #[must_use]
    pub fn and(mut self, other: Books, counted: bool) -> Self {
        self.control.extend(other.control);
        self.undrained = self.undrained.or(other.undrained);
        if self.packets.is_some() == other.packets.is_some() {
            self.packets = self
                .packets
                .zip(other.packets)
                .map(|(own, others)| (own.0 + others.0, own.1 + others.1));
            self.duplicate_packets =
                merged(self.duplicate_packets, other.duplicate_packets, u64::add);
            self.offered_bytes += other.offered_bytes;
            self.delivered_bytes += other.delivered_bytes;
        }
        if counted {
            self.sender = self.sender.and(other.sender);
            self.receiver = self.receiver.and(other.receiver);
            self.jitter_seconds = merged(self.jitter_seconds, other.jitter_seconds, f64::max);
            self.out_of_order_packets = self
                .out_of_order_packets
                .zip(other.out_of_order_packets)
                .map(|(own, others)| own + others);
            self.round_trip = merged(self.round_trip, other.round_trip, RoundTrip::and);
            let both = |one: TimeDistribution, two| one.and(&two);
            self.round_trip_distribution = merged(
                self.round_trip_distribution,
                other.round_trip_distribution,
                both,
            );
            self.one_way_delays = merged(self.one_way_delays, other.one_way_delays, both);
        }
        self
    }
}

fn control_lines(
    from: Side,
    sent: &[(ControlKind, u64)],
    received: &[(ControlKind, u64)],
) -> Vec<ControlLine> {
    let arrived = |kind| received.iter().find(|(other, _)| *other == kind);
    sent.iter()
        .map(|&(kind, sent)| ControlLine {
            kind,
            from,
            sent_packets: Some(sent),
            received_packets: Some(arrived(kind).map_or(0, |(_, received)| *received)),
            in_balance: !kind.is_refused(),
        })
        .collect()
}

/// A datagram read by the program.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The sender.
    pub source: SocketAddr,
    /// Its payload.
    pub payload: &'a [u8],
    /// When the program read it.
    pub at: Instant,
}

/// The receiving end of a workload, without a socket.
pub trait DatagramReceiver: Send {
    /// Takes a datagram; returns the reply to its source, if any.
    fn take(&mut self, arrival: &Arrival<'_>) -> Option<Vec<u8>>;

    /// Its counts.
    fn books(&self) -> EndBooks;
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUFFER: SocketBuffer = SocketBuffer {
        asked_bytes: None,
        granted_bytes: 4096,
    };

    #[test]
    fn what_one_end_sent_and_the_other_received_stand_side_by_side() {
        let mut sender = EndBooks::of_sender(Payload::datagrams(10, 64), 1.0, BUFFER);
        sender.control_sent = vec![(ControlKind::Fin, 3)];
        sender.control_received = vec![(ControlKind::FinAcknowledgement, 1)];
        let mut receiver = EndBooks::of_receiver(Payload::datagrams(11, 64), 1.1, BUFFER);
        receiver.duplicate_packets = Some(2);
        receiver.control_sent = vec![(ControlKind::FinAcknowledgement, 2)];
        receiver.control_received = vec![(ControlKind::Fin, 2)];
        receiver.undrained = Some(String::from("silence"));
        let books = Books::of(sender, receiver);
        assert_eq!(books.packets, Some((10, 9)));
        assert_eq!(books.duplicate_packets, Some(2));
        assert_eq!((books.offered_bytes, books.delivered_bytes), (640, 704));
        assert_eq!(books.receiver.packets_per_second, Some(10.0));
        let control: Vec<_> = books
            .control
            .iter()
            .map(|line| {
                (
                    line.kind,
                    line.from,
                    line.sent_packets,
                    line.received_packets,
                )
            })
            .collect();
        let both = |sent, received| (Some(sent), Some(received));
        let (fin, answer) = (both(3, 2), both(2, 1));
        assert_eq!(
            control,
            [
                (ControlKind::Fin, Side::Sender, fin.0, fin.1),
                (
                    ControlKind::FinAcknowledgement,
                    Side::Receiver,
                    answer.0,
                    answer.1
                ),
            ]
        );
        assert_eq!(books.undrained.as_deref(), Some("silence"));
    }

    #[test]
    fn what_runs_beside_is_in_the_account_and_in_no_rate() {
        let books = |packets: u64, lost: u64| {
            let sender = EndBooks::of_sender(Payload::datagrams(packets, 64), 1.0, BUFFER);
            let received = Payload::datagrams(packets - lost, 64);
            let mut books = Books::of(sender, EndBooks::of_receiver(received, 1.0, BUFFER));
            books.control = control_lines(Side::Sender, &[(ControlKind::Fin, 1)], &[]);
            books
        };
        let beside = books(10, 0).and(books(100, 40).reversed(), false);
        assert_eq!(beside.packets, Some((110, 70)));
        assert_eq!(beside.receiver.packets_per_second, Some(10.0));
        let from: Vec<Side> = beside.control.iter().map(|line| line.from).collect();
        assert_eq!(from, [Side::Sender, Side::Receiver]);
        let counted = books(10, 0).and(books(100, 40), true);
        assert_eq!(counted.receiver.packets_per_second, Some(70.0));
        assert_eq!(counted.delivered_bytes, 70 * 64);
        // A stream has no packets: the account stays that of the datagrams.
        let stream = Books {
            packets: None,
            ..books(50, 0)
        };
        assert_eq!(books(10, 1).and(stream, false).packets, Some((10, 9)));
    }

    #[test]
    fn a_stream_has_bytes_and_no_packets() {
        let stream = |bytes| Payload {
            packets: None,
            bytes,
        };
        let sender = EndBooks::of_sender(stream(1000), 1.0, BUFFER);
        let receiver = EndBooks::of_receiver(stream(900), 1.0, BUFFER);
        let books = Books::of(sender, receiver);
        assert_eq!(books.packets, None);
        assert_eq!((books.offered_bytes, books.delivered_bytes), (1000, 900));
    }
}
