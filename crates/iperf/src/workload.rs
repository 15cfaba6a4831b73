//! iperf streams in one direction, as workloads.

use std::num::NonZeroU64;
use std::time::Duration;

use nicpoll_model::{ControlKind, Rate, Side, WorkUnit};
use nicpoll_traffic::Signals;
use nicpoll_traffic::workload::DatagramReceiver;
use nicpoll_traffic::workload::{
    EndBooks, EndTerms, IDLE_TIMEOUT, Payload, PreparedEnd, Workload, WorkloadError,
};
use serde::{Deserialize, Serialize};

use crate::config::ClientConfig;
use crate::records::{self, Total};
use crate::stream::Error;
use crate::wire::Amount;
use crate::{tcp, udp};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// One UDP stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpWorkload {
    /// Bytes of UDP payload in each datagram.
    pub payload_bytes: u16,
    /// Datagrams per second; null is unlimited.
    pub packets_per_second: Option<NonZeroU64>,
    /// Receive buffer to ask for; null is the kernel's default.
    pub receive_buffer_bytes: Option<usize>,
}

impl Workload for UdpWorkload {
    fn datagram_bytes(&self) -> Option<u32> {
        Some(self.payload_bytes.into())
    }

    fn prepare(&self, end: &EndTerms) -> Result<Box<dyn PreparedEnd>, WorkloadError> {
        Ok(match end.side {
            Side::Sender => {
                let amount = Amount::Time(end.duration);
                let payload_bytes = self.payload_bytes.into();
                let mut config = ClientConfig::udp(end.receiver, payload_bytes, amount);
                let rate = self.packets_per_second;
                config.stream.rate = rate.and_then(|rate| Rate::packets_per_second(rate.get()));
                Box::new(UdpSendingEnd(config))
            }
            Side::Receiver => {
                let server = udp::Server::bind(&udp::ServerConfig {
                    bind: end.receiver,
                    receive_buffer_bytes: self.receive_buffer_bytes,
                    idle_timeout: IDLE_TIMEOUT,
                })?;
                Box::new(server.ahead_by(end.receiver_ahead_ns))
            }
        })
    }

    fn datagram_receiver(&self) -> Option<Box<dyn DatagramReceiver>> {
        Some(Box::new(udp::DatagramServer::default()))
    }
}

struct UdpSendingEnd(ClientConfig);

impl PreparedEnd for UdpSendingEnd {
    fn run(self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        let total = udp::run_client(&self.0, signals, &mut ())?;
        Ok(EndBooks {
            control_sent: vec![
                (ControlKind::Fin, total.fins),
                (ControlKind::Refused, total.refused.all()),
            ],
            control_received: vec![(ControlKind::FinAcknowledgement, total.fin_answers)],
            ..EndBooks::of_sender(udp::datagrams(&total), total.seconds, total.buffer)
        })
    }
}

impl PreparedEnd for udp::Server {
    fn run(self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        let total = udp::Server::run(*self, signals)?;
        let mut books = udp::books_of_receiver(&total);
        books.control_sent.extend(total.refused.control());
        books.undrained = (total.end == Some(records::End::Idle))
            .then(|| String::from("the receiver heard nothing for too long and gave up"));
        Ok(books)
    }
}

/// One TCP stream, unpaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpWorkload {}

impl Workload for TcpWorkload {
    fn unit(&self) -> WorkUnit {
        WorkUnit::Bytes
    }

    fn prepare(&self, end: &EndTerms) -> Result<Box<dyn PreparedEnd>, WorkloadError> {
        Ok(match end.side {
            Side::Sender => Box::new(TcpSendingEnd(ClientConfig {
                connect_timeout: CONNECT_TIMEOUT,
                ..ClientConfig::tcp(end.receiver, Amount::Time(end.duration))
            })),
            Side::Receiver => Box::new(tcp::Server::bind(&tcp::ServerConfig {
                bind: end.receiver,
                receive_buffer_bytes: None,
                idle_timeout: IDLE_TIMEOUT,
            })?),
        })
    }
}

struct TcpSendingEnd(ClientConfig);

impl PreparedEnd for TcpSendingEnd {
    fn run(self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        let total = tcp::run_client(&self.0, signals, &mut ())?;
        let books = EndBooks::of_sender(bytes(&total), total.seconds, total.buffer);
        Ok(closed(books, total.close_seconds.is_some()))
    }
}

impl PreparedEnd for tcp::Server {
    fn run(self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        let total = tcp::Server::run(*self, signals)?;
        let books = EndBooks::of_receiver(bytes(&total), total.seconds, total.buffer);
        Ok(closed(books, total.end == Some(records::End::Closed)))
    }
}

fn bytes(total: &Total) -> Payload {
    Payload {
        packets: None,
        bytes: total.whole.bytes,
    }
}

/// A stream was read to its end only if both ends closed it.
fn closed(mut books: EndBooks, is_closed: bool) -> EndBooks {
    let why = "the connection was not closed by both ends in time";
    books.undrained = (!is_closed).then(|| String::from(why));
    books
}

impl From<Error> for WorkloadError {
    fn from(error: Error) -> Self {
        match error {
            Error::Cancelled => WorkloadError::Cancelled,
            error => WorkloadError::failed(error),
        }
    }
}
