//! Request and response over UDP as a workload: the shortest messages, one at a time.

use nicpoll_model::{Side, WorkUnit};
use nicpoll_wire::rr::Message;
use serde::{Deserialize, Serialize};

use super::{
    ClientConfig, ClientError, End as RrEnd, Server, ServerConfig, ServerError, run_client,
};
use crate::Signals;
use crate::workload::{End, EndBooks, IDLE_TIMEOUT, Payload, PreparedEnd, Workload, WorkloadError};

/// What there is to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RrWorkload {
    /// Receive buffer to ask for at the end that answers; null leaves it to the kernel.
    pub receive_buffer_bytes: Option<usize>,
}

impl Workload for RrWorkload {
    fn unit(&self) -> WorkUnit {
        WorkUnit::Transactions
    }

    fn datagram_bytes(&self) -> Option<u32> {
        Some(Message::BYTES as u32)
    }

    fn prepare(&self, end: &End) -> Result<Box<dyn PreparedEnd>, WorkloadError> {
        Ok(match end.side {
            Side::Sender => Box::new(ClientConfig::udp(end.receiver, end.duration)),
            Side::Receiver => Box::new(Server::bind(&ServerConfig {
                bind: end.receiver,
                receive_buffer_bytes: self.receive_buffer_bytes,
                idle_timeout: IDLE_TIMEOUT,
            })?),
        })
    }
}

fn messages(count: u64) -> Payload {
    Payload::datagrams(count, Message::BYTES as u64)
}

impl PreparedEnd for ClientConfig {
    fn run(self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        let report = run_client(&self, signals, &mut |_| {})?;
        Ok(EndBooks {
            received: messages(report.responses_received),
            round_trip: report.round_trip(),
            ..EndBooks::of_sender(
                messages(report.requests_sent),
                report.seconds,
                report.send_buffer,
            )
        })
    }
}

impl PreparedEnd for Server {
    fn run(self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        let report = Server::run(*self, signals)?;
        Ok(EndBooks {
            sent: messages(report.responses_sent),
            undrained: (report.end == RrEnd::Idle)
                .then(|| String::from("the responder heard nothing for too long and gave up")),
            ..EndBooks::of_receiver(
                messages(report.requests_received),
                report.seconds,
                report.receive_buffer,
            )
        })
    }
}

impl From<ClientError> for WorkloadError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Cancelled => WorkloadError::Cancelled,
            error => WorkloadError::failed(error),
        }
    }
}

impl From<ServerError> for WorkloadError {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::Cancelled => WorkloadError::Cancelled,
            error => WorkloadError::failed(error),
        }
    }
}
