//! Request and response over UDP as a workload: the shortest messages, of one client or of many, each one at
//! a time or all together at a rate.

use std::num::{NonZeroU16, NonZeroU32, NonZeroU64};
use std::thread;
use std::time::Duration;

use nicpoll_model::{Rate, Side, WorkUnit};
use nicpoll_wire::rr::Message;
use serde::{Deserialize, Serialize};

use super::{
    ClientConfig, ClientError, ClientReport, End as RrEnd, Pacing, Server, ServerConfig,
    ServerError, run_client,
};
use crate::Signals;
use crate::workload::{End, EndBooks, IDLE_TIMEOUT, Payload, PreparedEnd, Workload, WorkloadError};

/// What there is to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RrWorkload {
    /// Clients that ask at once, each from a socket of its own; one when null.
    pub clients: Option<NonZeroU16>,
    /// Requests a second, of all clients together and whatever becomes of them; each client asks one at a time,
    /// as fast as it is answered, when null.
    pub requests_per_second: Option<NonZeroU32>,
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
            Side::Sender => Box::new(Clients {
                config: ClientConfig::udp(end.receiver, end.duration),
                count: self.clients.unwrap_or(NonZeroU16::MIN),
                requests_per_second: self.requests_per_second,
            }),
            Side::Receiver => {
                let server = Server::bind(&ServerConfig {
                    bind: end.receiver,
                    receive_buffer_bytes: self.receive_buffer_bytes,
                    idle_timeout: IDLE_TIMEOUT,
                })?;
                Box::new(match self.clients() {
                    1 => server,
                    _ => server.for_all(),
                })
            }
        })
    }
}

impl RrWorkload {
    /// How many clients ask.
    pub fn clients(&self) -> u16 {
        self.clients.map_or(1, NonZeroU16::get)
    }
}

/// Clients that begin together. At a rate, each has its share of it, and their requests are evenly apart.
struct Clients {
    config: ClientConfig,
    count: NonZeroU16,
    requests_per_second: Option<NonZeroU32>,
}

impl Clients {
    /// The n-th client, and how long after the others' beginning it begins.
    fn client(&self, index: u16) -> (ClientConfig, Duration) {
        let all = self
            .requests_per_second
            .and_then(|rate| Rate::packets_per_second(rate.get().into()));
        let Some(all) = all else {
            return (self.config, Duration::ZERO);
        };
        let each = all.share(NonZeroU64::from(self.count));
        let pacing = each.map(|rate| Pacing::Open { rate });
        let config = ClientConfig {
            pacing: pacing.unwrap_or(self.config.pacing),
            ..self.config
        };
        (config, all.time_of(index.into(), 0))
    }
}

fn messages(count: u64) -> Payload {
    Payload::datagrams(count, Message::BYTES as u64)
}

impl PreparedEnd for Clients {
    fn run(self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        let report = match self.count.get() {
            1 => run_client(&self.client(0).0, signals, &mut |_| {})?,
            _ => thread::scope(|scope| {
                let clients: Vec<_> = (0..self.count.get())
                    .map(|index| {
                        let (config, after) = self.client(index);
                        scope.spawn(move || {
                            thread::sleep(after);
                            run_client(&config, signals, &mut |_| {})
                        })
                    })
                    .collect();
                together(clients.into_iter().map(|client| match client.join() {
                    Ok(report) => report,
                    Err(panic) => std::panic::resume_unwind(panic),
                }))
            })?,
        };
        Ok(EndBooks {
            received: messages(report.responses_received),
            control_sent: report.refused_sends.control().to_vec(),
            round_trip: report.round_trip(),
            round_trip_distribution: report.round_trip_distribution(),
            ..EndBooks::of_sender(
                messages(report.requests_sent),
                report.seconds,
                report.send_buffer,
            )
        })
    }
}

/// What all clients counted together. Each begins a moment after the one before it: the longest time counts.
fn together(
    reports: impl Iterator<Item = Result<ClientReport, ClientError>>,
) -> Result<ClientReport, ClientError> {
    let mut sum: Option<ClientReport> = None;
    // All of them are waited for, whatever became of one.
    let reports: Vec<_> = reports.collect();
    for report in reports {
        let report = report?;
        match &mut sum {
            Some(sum) => sum.add(&report),
            None => sum = Some(report),
        }
    }
    sum.ok_or(ClientError::Cancelled)
}

impl PreparedEnd for Server {
    fn run(self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        let report = Server::run(*self, signals)?;
        Ok(EndBooks {
            sent: messages(report.responses_sent),
            control_sent: report.refused_sends.control().to_vec(),
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
