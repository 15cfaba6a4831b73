//! iperf's streams as workloads, one way.

use std::num::NonZeroU64;
use std::time::Duration;

use nicpoll_model::{ControlKind, Rate, Side, WorkUnit};
use nicpoll_traffic::Signals;
use nicpoll_traffic::workload::DatagramReceiver;
use nicpoll_traffic::workload::{
    End, EndBooks, IDLE_TIMEOUT, Payload, PreparedEnd, Workload, WorkloadError,
};
use serde::{Deserialize, Serialize};

use crate::config::ClientConfig;
use crate::wire::Amount;
use crate::{tcp, udp};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// One UDP stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpWorkload {
    /// Bytes of UDP payload in each datagram.
    pub payload_bytes: u16,
    /// Datagrams a second; as fast as one sender goes when null.
    pub packets_per_second: Option<NonZeroU64>,
    /// Receive buffer to ask for; null leaves it to the kernel.
    pub receive_buffer_bytes: Option<usize>,
}

impl Workload for UdpWorkload {
    fn unit(&self) -> WorkUnit {
        WorkUnit::Datagrams
    }

    fn datagram_bytes(&self) -> Option<u32> {
        Some(self.payload_bytes.into())
    }

    fn prepare(&self, end: &End) -> Result<Box<dyn PreparedEnd>, WorkloadError> {
        Ok(match end.side {
            Side::Sender => {
                let amount = Amount::Time(end.duration);
                let payload_bytes = self.payload_bytes.into();
                let mut config = ClientConfig::udp(end.receiver, payload_bytes, amount);
                let rate = self.packets_per_second;
                config.stream.rate = rate.and_then(|rate| Rate::packets_per_second(rate.get()));
                Box::new(UdpSender(config))
            }
            Side::Receiver => Box::new(udp::Server::bind(&udp::ServerConfig {
                bind: end.receiver,
                receive_buffer_bytes: self.receive_buffer_bytes,
                idle_timeout: IDLE_TIMEOUT,
            })?),
        })
    }

    fn datagram_receiver(&self) -> Option<Box<dyn DatagramReceiver>> {
        Some(Box::new(udp::DatagramServer::default()))
    }
}

struct UdpSender(ClientConfig);

impl PreparedEnd for UdpSender {
    fn run(self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        let report = udp::run_client(&self.0, signals, &mut ()).map_err(|error| match error {
            udp::SendError::Cancelled => WorkloadError::Cancelled,
            error => WorkloadError::failed(error),
        })?;
        let sent = Payload {
            packets: Some(report.datagrams_sent),
            bytes: report.bytes_sent,
        };
        Ok(EndBooks {
            control_sent: vec![
                (ControlKind::Fin, report.fins_sent),
                (ControlKind::Refused, report.refused_sends),
            ],
            control_received: vec![(ControlKind::FinAcknowledgement, report.fin_acks_received)],
            ..EndBooks::of_sender(sent, report.seconds, report.send_buffer)
        })
    }
}

impl PreparedEnd for udp::Server {
    fn run(self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        let report = udp::Server::run(*self, signals)?;
        let received = Payload {
            packets: Some(report.datagrams_received),
            bytes: report.bytes_received,
        };
        Ok(EndBooks {
            control_sent: [
                &[(ControlKind::FinAcknowledgement, report.fin_acks_sent)],
                &report.refused_sends.control()[..],
            ]
            .concat(),
            control_received: vec![(ControlKind::Fin, report.fins_received)],
            jitter_seconds: report.jitter_seconds,
            one_way_delays: report.delays_to_program,
            out_of_order_packets: Some(report.out_of_order),
            duplicate_packets: Some(report.duplicates),
            undrained: (report.end == udp::End::Idle)
                .then(|| String::from("the receiver heard nothing for too long and gave up")),
            ..EndBooks::of_receiver(received, report.seconds, report.receive_buffer)
        })
    }
}

/// One TCP stream, as fast as it goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpWorkload {}

/// Why a stream is not known to have been read to its end.
const NOT_CLOSED: &str = "the connection was not closed by both ends in time";

impl Workload for TcpWorkload {
    fn unit(&self) -> WorkUnit {
        WorkUnit::Bytes
    }

    fn datagram_bytes(&self) -> Option<u32> {
        None
    }

    fn prepare(&self, end: &End) -> Result<Box<dyn PreparedEnd>, WorkloadError> {
        Ok(match end.side {
            Side::Sender => Box::new(TcpSender(ClientConfig {
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

fn bytes(bytes: u64) -> Payload {
    Payload {
        packets: None,
        bytes,
    }
}

struct TcpSender(ClientConfig);

impl PreparedEnd for TcpSender {
    fn run(self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        let report = tcp::run_client(&self.0, signals, &mut ())?;
        Ok(EndBooks {
            undrained: report
                .seconds_to_close
                .is_none()
                .then(|| String::from(NOT_CLOSED)),
            ..EndBooks::of_sender(bytes(report.bytes_sent), report.seconds, report.send_buffer)
        })
    }
}

impl PreparedEnd for tcp::Server {
    fn run(self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        let report = tcp::Server::run(*self, signals)?;
        Ok(EndBooks {
            undrained: (report.end != tcp::End::Closed).then(|| String::from(NOT_CLOSED)),
            ..EndBooks::of_receiver(
                bytes(report.bytes_received),
                report.seconds,
                report.receive_buffer,
            )
        })
    }
}

impl From<tcp::Error> for WorkloadError {
    fn from(error: tcp::Error) -> Self {
        match error {
            tcp::Error::Cancelled => WorkloadError::Cancelled,
            error => WorkloadError::failed(error),
        }
    }
}
