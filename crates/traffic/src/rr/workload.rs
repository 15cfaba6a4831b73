//! Request and response over UDP or TCP as a workload: the shortest messages, from one client or many, each
//! with one request at a time or all together at a rate.

use std::num::{NonZeroU16, NonZeroU32, NonZeroU64};
use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use nicpoll_model::{Protocol, Rate, Side, WorkUnit};
use nicpoll_wire::rr::Message;
use serde::{Deserialize, Serialize};

use crate::rr::client::{Pacing, RrClientConfig, run_client};
use crate::rr::server::{Responder, Served, Service, ServiceConfig};
use crate::signals::Signals;
use crate::sockets::SocketBuffer;
use crate::udp_server::{BoundUdp, ServerConfig};
use crate::workload::{
    EndBooks, EndTerms, IDLE_TIMEOUT, Payload, PreparedEnd, Workload, WorkloadError,
};

/// Over TCP, an answer may need several retransmissions; after this silence, the session is dead.
const SESSION_TIMEOUT: Duration = Duration::from_secs(2);
/// Parameters of the workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RrWorkload {
    /// Clients that run in parallel, each with its own socket; null is one.
    pub clients: Option<NonZeroU16>,
    /// Requests per second, of all clients together and regardless of responses; null lets each client send one
    /// at a time, as fast as it is answered.
    pub requests_per_second: Option<NonZeroU32>,
    /// Transport protocol; null is UDP. Over TCP, a lost request is retransmitted and counts as answered when
    /// its answer comes.
    #[serde(default)]
    pub protocol: Option<Protocol>,
    /// Receive buffer of the server over UDP; null is the kernel's default.
    pub receive_buffer_bytes: Option<usize>,
}

impl Workload for RrWorkload {
    fn unit(&self) -> WorkUnit {
        WorkUnit::Transactions
    }

    fn datagram_bytes(&self) -> Option<u32> {
        (self.protocol() == Protocol::Udp).then_some(Message::BYTES as u32)
    }

    fn prepare(&self, end: &EndTerms) -> Result<Box<dyn PreparedEnd>, WorkloadError> {
        Ok(match end.side {
            Side::Sender => Box::new(ClientGroup {
                config: self.client(end),
                count: self.clients.unwrap_or(NonZeroU16::MIN),
                requests_per_second: self.requests_per_second,
            }),
            Side::Receiver if self.protocol() == Protocol::Tcp => {
                Box::new(Sessions(Service::bind(&ServiceConfig {
                    bind: end.receiver,
                    duration: None,
                })?))
            }
            Side::Receiver => Box::new(Responder(BoundUdp::bind(&ServerConfig {
                bind: end.receiver,
                receive_buffer_bytes: self.receive_buffer_bytes,
                idle_timeout: IDLE_TIMEOUT,
            })?)),
        })
    }
}

impl RrWorkload {
    /// The number of clients.
    pub fn clients(&self) -> u16 {
        self.clients.map_or(1, NonZeroU16::get)
    }

    /// The transport protocol.
    pub fn protocol(&self) -> Protocol {
        self.protocol.unwrap_or(Protocol::Udp)
    }

    fn client(&self, end: &EndTerms) -> RrClientConfig {
        let udp = RrClientConfig::udp(end.receiver, end.duration);
        match self.protocol() {
            Protocol::Udp => RrClientConfig {
                timeout: udp.timeout + 2 * end.link_delay,
                ..udp
            },
            Protocol::Tcp => RrClientConfig {
                protocol: Protocol::Tcp,
                timeout: SESSION_TIMEOUT,
                ..udp
            },
        }
    }
}

/// Clients that start together. At a rate, each has its share, and their requests are evenly spaced.
struct ClientGroup {
    config: RrClientConfig,
    count: NonZeroU16,
    requests_per_second: Option<NonZeroU32>,
}

impl ClientGroup {
    /// The configuration of a client, and its start relative to the first.
    fn client(&self, index: u16) -> (RrClientConfig, Duration) {
        let all = self
            .requests_per_second
            .and_then(|rate| Rate::packets_per_second(rate.get().into()));
        let Some(all) = all else {
            return (self.config, Duration::ZERO);
        };
        let each = all.share(NonZeroU64::from(self.count));
        let pacing = each.map(|rate| Pacing::Open { rate });
        let config = RrClientConfig {
            pacing: pacing.unwrap_or(self.config.pacing),
            ..self.config
        };
        (config, all.time_of(index.into(), 0))
    }
}

/// Over TCP, the kernel divides messages into packets, so only bytes count.
fn messages(protocol: Protocol, count: u64) -> Payload {
    match protocol {
        Protocol::Udp => Payload::datagrams(count, Message::BYTES as u64),
        Protocol::Tcp => Payload {
            packets: None,
            bytes: count * Message::BYTES as u64,
        },
    }
}

/// The server over TCP.
struct Sessions(Service);

impl PreparedEnd for Sessions {
    fn run(self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        let served = Served::default();
        let seconds = self.0.run(signals, &served)?.as_secs_f64();
        signals.check()?;
        let served = served.tcp();
        let received = messages(Protocol::Tcp, served.requests_received);
        Ok(EndBooks {
            sent: messages(Protocol::Tcp, served.responses_sent),
            // The kernel sizes the buffers of accepted connections.
            ..EndBooks::of_receiver(received, seconds, SocketBuffer::default())
        })
    }
}

impl PreparedEnd for ClientGroup {
    fn run(self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        let protocol = self.config.protocol;
        let report = match self.count.get() {
            1 => run_client(&self.client(0).0, signals, &mut |_| {})?,
            count => thread::scope(|scope| {
                let clients = (0..count).map(|index| {
                    let (config, after) = self.client(index);
                    scope.spawn(move || {
                        thread::sleep(after);
                        run_client(&config, signals, &mut |_| {})
                    })
                });
                let clients: Vec<_> = clients.collect();
                let reports = clients
                    .into_iter()
                    .map(|client| client.join().unwrap_or_else(|panic| resume_unwind(panic)));
                // The clients start at slightly different times: the longest duration counts.
                let all = reports.reduce(|sum, report| Ok(sum?.and(report?)));
                all.unwrap_or(Err(WorkloadError::Cancelled))
            })?,
        };
        let requests = report.requests;
        let sent = messages(protocol, requests.sent);
        Ok(EndBooks {
            received: messages(protocol, requests.answered + requests.late),
            control_sent: report.refused_sends.control().to_vec(),
            round_trip: report.round_trip(),
            round_trip_distribution: report.round_trip_distribution(),
            ..EndBooks::of_sender(sent, report.seconds, report.send_buffer)
        })
    }
}

impl PreparedEnd for Responder {
    fn run(self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        let responded = Responder::run(&self, signals)?;
        let received = messages(Protocol::Udp, responded.served.requests_received);
        Ok(EndBooks {
            sent: messages(Protocol::Udp, responded.served.responses_sent),
            control_sent: responded.refused.control().to_vec(),
            undrained: responded
                .is_idle
                .then(|| String::from("the responder heard nothing for too long and gave up")),
            ..EndBooks::of_receiver(received, responded.seconds, self.0.receive_buffer)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rr::client::RESPONSE_TIMEOUT;

    /// Over a link with 60 ms of delay each way, an answer takes longer than a local client waits.
    #[test]
    fn an_answer_has_the_links_own_time_too() {
        let end = |link_delay| EndTerms {
            side: Side::Sender,
            receiver: ([127, 0, 0, 1], 9).into(),
            duration: Duration::from_secs(1),
            link_delay,
            receiver_ahead_ns: 0,
        };
        let udp = RrWorkload::default();
        assert_eq!(udp.client(&end(Duration::ZERO)).timeout, RESPONSE_TIMEOUT);
        let far = udp.client(&end(Duration::from_millis(60)));
        assert!(far.timeout >= RESPONSE_TIMEOUT + Duration::from_millis(120));
    }
}
