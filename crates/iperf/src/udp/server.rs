//! The receiving end of a UDP stream.

use std::net::SocketAddr;

use nicpoll_model::TimeDistribution;
use nicpoll_sys::socket;

use nicpoll_traffic::sockets::SocketBuffer;
use nicpoll_traffic::udp_server::{BoundUdp, ServerConfig, ServerError};
use nicpoll_traffic::{RefusedSends, Signals};

use super::receiver::Receiver;
use crate::observer::IntervalRecord;
use crate::times::Distribution;

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The sender's FIN came, and silence after it where it is answered.
    Fin,
    /// [`Signals::sender_done`] was set and the socket is empty.
    SenderDone,
    /// Nothing came for the idle timeout, or for some time when the test should have been over.
    Idle,
}

/// What the receiver counted. FINs are no data: they are in no other figure.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReceiveReport {
    /// The sender; `None` when nobody came.
    pub peer: Option<SocketAddr>,
    /// Datagrams of data that were read, duplicates included.
    pub datagrams_received: u64,
    /// Their payload.
    pub bytes_received: u64,
    /// From the first datagram to the last one of data.
    pub seconds: f64,
    /// From the first datagram to the first FIN: what 2.1.8 divides by. `None` without FIN.
    pub seconds_to_fin: Option<f64>,
    /// The highest id known to be data: datagrams that the sender sent.
    pub datagrams_expected: u64,
    /// Ids up to the highest known that did not arrive. The first FIN tells of the last ones, and
    /// of one too many for each FIN that was lost before it.
    pub lost: u64,
    /// Datagrams that arrived after a later one.
    pub out_of_order: u64,
    /// Datagrams whose id had arrived before.
    pub duplicates: u64,
    /// Jitter after RFC 3550 section 6.4.1 from the kernel's times of arrival; `None` below two
    /// datagrams.
    pub jitter_seconds: Option<f64>,
    /// FINs that were read.
    pub fins_received: u64,
    /// Answers to them that the kernel took,
    pub fin_acks_sent: u64,
    /// and those that it refused.
    pub refused_sends: RefusedSends,
    /// Datagrams of other peers, and those that are none of iperf's.
    pub foreign_datagrams: u64,
    /// How the session ended.
    pub end: End,
    /// The stream as one interval that ends with the first FIN, without one with the last datagram of
    /// data.
    pub whole: IntervalRecord,
    /// Gaps between arrivals by the kernel's times; datagrams that were handed over as one batch have
    /// none between them. `None` when they are not recorded, and below two datagrams.
    pub gaps: Option<Box<Distribution>>,
    /// From sending to arrival. `None` when it is not recorded, unless the client says that both ends
    /// have one clock (`--trip-times`), and when a datagram arrived before it was sent.
    pub one_way_delays: Option<Box<Distribution>>,
    /// From sending until this program had it. `None` unless it was said beforehand that both ends have one clock.
    pub delays_to_program: Option<TimeDistribution>,
    /// The receive buffer.
    pub receive_buffer: SocketBuffer,
}

/// A bound server, for one stream.
#[derive(Debug)]
pub struct Server {
    bound: BoundUdp,
}

impl Server {
    /// Binds the socket; datagrams are queued from now on.
    ///
    /// # Errors
    /// [`ServerError::Bind`] and [`ServerError::Setup`].
    pub fn bind(config: &ServerConfig) -> Result<Self, ServerError> {
        let bound = BoundUdp::bind(config)?;
        socket::enable_arrival_times(&bound.socket).map_err(|source| ServerError::Setup {
            address: config.bind,
            source,
        })?;
        Ok(Server { bound })
    }

    /// The address bound to, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.bound.address
    }

    /// Receives one stream to its end, from a sender that has this host's clock. The first good datagram decides
    /// whose.
    ///
    /// # Errors
    /// See [`ServerError`]. A client that never comes is no error: see [`ReceiveReport::end`].
    pub fn run(self, signals: &Signals) -> Result<ReceiveReport, ServerError> {
        let mut unheard = ();
        let receiver = Receiver::new(&self.bound, None, &mut unheard);
        receiver.recording_delays().run(signals)
    }
}
