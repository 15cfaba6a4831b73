//! Workloads: traffic between two hosts, of which each end counts for itself.
//!
//! A workload is data, so that a study's plan, a file and another machine can hold it. A prepared end loses nothing that the
//! other end sends from then on. Both ends' figures are kept apart; only [`Books::of`] compares them. A receiver counts the
//! same, whether its datagrams come by a socket or are handed to it ([`DatagramReceiver`]).

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

/// How long a receiver waits in silence before it gives up.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(3);

/// A kind of traffic between a sender and a receiver.
pub trait Workload {
    /// What its work is counted in: datagrams unless it says otherwise.
    fn unit(&self) -> WorkUnit {
        WorkUnit::Datagrams
    }

    /// Bytes of UDP payload in each datagram; `None` without datagrams.
    fn datagram_bytes(&self) -> Option<u32> {
        None
    }

    /// Makes one end ready: a receiver has its socket from now on.
    ///
    /// # Errors
    /// When the socket cannot be had.
    fn prepare(&self, end: &EndTerms) -> Result<Box<dyn PreparedEnd>, WorkloadError>;

    /// A receiver of its datagrams that has no socket; `None` for traffic that cannot be received so.
    fn datagram_receiver(&self) -> Option<Box<dyn DatagramReceiver>> {
        None
    }
}

/// One end of a workload that can run at once.
pub trait PreparedEnd {
    /// Runs it on the calling thread: a sender for its time, a receiver until the sender is done.
    ///
    /// # Errors
    /// [`WorkloadError::Cancelled`] when `signals` say so; when the socket fails for good.
    fn run(self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError>;
}

/// Which end is meant, and of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndTerms {
    /// Sends or receives.
    pub side: Side,
    /// Where the receiver listens.
    pub receiver: SocketAddr,
    /// How long the sender sends.
    pub duration: Duration,
    /// How much later each packet arrives than it would, each way: what is waited for takes twice as much longer.
    pub link_delay: Duration,
}

/// Why an end could not do its part.
#[derive(Debug, Error)]
pub enum WorkloadError {
    /// Whoever ran it gave up.
    #[error("cancelled")]
    Cancelled,
    /// What the workload's own code met with.
    #[error(transparent)]
    Failed(Box<dyn Error + Send + Sync>),
}

impl WorkloadError {
    /// An error of the workload's own.
    pub fn failed(error: impl Error + Send + Sync + 'static) -> Self {
        WorkloadError::Failed(Box::new(error))
    }

    /// What failed in words that say what to do about it, and what the kernel said.
    pub(crate) fn because(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| WorkloadError::failed(Because { what, source })
    }
}

/// What the kernel refused for good.
#[derive(Debug, Error)]
#[error("{what}")]
pub struct Because {
    /// What was tried, and what to look at.
    pub what: String,
    /// What the kernel said.
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

/// Two figures together, either of which may be unknown.
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

/// Datagrams and bytes of payload that one end sent or received.
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

    /// What two ends sent, or received. An end that had nothing to send or receive counts no packets.
    fn plus(self, other: Payload) -> Payload {
        Payload {
            packets: merged(self.packets, other.packets, u64::add),
            bytes: self.bytes + other.bytes,
        }
    }
}

/// What one end counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndBooks {
    /// Payload that it sent.
    pub sent: Payload,
    /// Payload that it received.
    pub received: Payload,
    /// Its own figures of its main direction: the sender's of sending, the receiver's of receiving.
    pub rates: WindowRates,
    /// The receiver's figures, where this end is told them; `None`: the receiver's own `rates` are.
    pub receiver_rates: Option<WindowRates>,
    /// Datagrams that it sent, or tried to, besides those of `sent`, by kind.
    pub control_sent: Vec<(ControlKind, u64)>,
    /// Those that it received.
    pub control_received: Vec<(ControlKind, u64)>,
    /// Interarrival jitter of what it received.
    pub jitter_seconds: Option<f64>,
    /// From sending to this end's program, of what it received; `None` when the datagrams do not bear when they were
    /// sent.
    pub one_way_delays: Option<TimeDistribution>,
    /// Datagrams that reached it after a later one.
    pub out_of_order_packets: Option<u64>,
    /// Datagrams of `received` that it had received before; `None` when they have no numbers.
    pub duplicate_packets: Option<u64>,
    /// Round trips that it timed.
    pub round_trip: Option<RoundTrip>,
    /// How they are distributed.
    pub round_trip_distribution: Option<TimeDistribution>,
    /// The buffer of its socket in its main direction.
    pub socket_buffer: SocketBuffer,
    /// Why it cannot say that all is read or sent; `None` when it can.
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

/// What one run of a workload came to, as its two ends counted it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Books {
    /// Datagrams offered and delivered, each once; `None` for a stream.
    pub packets: Option<(u64, u64)>,
    /// Datagrams that arrived a second time; `None` when they have no numbers.
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
    /// From sending to the receiver's program.
    pub one_way_delays: Option<TimeDistribution>,
    /// Datagrams that reached the receiver after a later one.
    pub out_of_order_packets: Option<u64>,
    /// Round trips at the sender.
    pub round_trip: Option<RoundTrip>,
    /// How they are distributed.
    pub round_trip_distribution: Option<TimeDistribution>,
    /// Datagrams besides the workload's own.
    pub control: Vec<ControlLine>,
    /// Buffers of the sockets.
    pub socket_buffers: SocketBuffers,
    /// Why not everything that was sent could be waited for; `None` when it was.
    pub undrained: Option<String>,
}

impl Books {
    /// Both ends' books side by side.
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

    /// The books of a stream that the receiver's host sent to the sender's.
    #[must_use]
    pub fn reversed(mut self) -> Self {
        for line in &mut self.control {
            line.from = line.from.other();
        }
        self
    }

    /// The books of traffic and of other traffic that ran at the same time. What was offered and delivered is of
    /// both, so that the account of losses closes; the other's rates and round trips are added only if they are
    /// `counted`. Where one is a stream and the other datagrams, the other stays out of the account.
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

/// A datagram in the program's hands.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Who sent it.
    pub source: SocketAddr,
    /// Its payload.
    pub payload: &'a [u8],
    /// When the program had it.
    pub at: Instant,
}

/// The receiving end of a workload without a socket.
pub trait DatagramReceiver: Send {
    /// Takes a datagram. What is returned is to be sent to its source.
    fn take(&mut self, arrival: &Arrival<'_>) -> Option<Vec<u8>>;

    /// What it counted.
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
