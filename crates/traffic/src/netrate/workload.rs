//! netblast to netreceive as a workload: datagrams in one direction, as fast as one sender can.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::Side;
use serde::{Deserialize, Serialize};

use crate::netrate::blast::Blaster;
use crate::netrate::options::NetrateOptions;
use crate::netrate::receive::{self, RECEIVE_BUFFER_BYTES, ReceiveCount};
use crate::netrate::sending::connect_first;
use crate::signals::{LOOK_EVERY, Signals};
use crate::sockets::{self, SocketBuffer};
use crate::workload::{EndBooks, EndTerms, Payload, PreparedEnd, Workload, WorkloadError};

/// Parameters of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetrateWorkload {
    /// Bytes of UDP payload in each datagram.
    pub payload_bytes: u16,
}

impl Workload for NetrateWorkload {
    fn datagram_bytes(&self) -> Option<u32> {
        Some(self.payload_bytes.into())
    }

    fn prepare(&self, end: &EndTerms) -> Result<Box<dyn PreparedEnd>, WorkloadError> {
        Ok(match end.side {
            Side::Sender => Box::new(NetblastEnd::new(self.payload_bytes, end)?),
            Side::Receiver => Box::new(NetreceiveEnd::at(end.receiver, None)?),
        })
    }
}

struct NetblastEnd {
    blaster: Blaster,
    payload_bytes: u16,
    duration: Duration,
    buffer: SocketBuffer,
}

impl NetblastEnd {
    fn new(payload_bytes: u16, end: &EndTerms) -> Result<Self, WorkloadError> {
        let (socket, peer) = connect_first(&[end.receiver])?;
        let buffer = sockets::send_buffer(&socket, None).map_err(WorkloadError::failed)?;
        let options = NetrateOptions {
            payload_bytes: payload_bytes.into(),
            ..NetrateOptions::default()
        };
        Ok(NetblastEnd {
            blaster: Blaster::new(socket, peer, &options).map_err(WorkloadError::failed)?,
            payload_bytes,
            duration: end.duration,
            buffer,
        })
    }
}

impl PreparedEnd for NetblastEnd {
    fn run(mut self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        let own = Signals::default();
        let begun = Instant::now();
        let duration = self.duration;
        // netblast's loop reads no clock; another thread does, and checks the signals.
        let count = thread::scope(|scope| {
            scope.spawn(|| {
                while begun.elapsed() < duration
                    && !signals.is_cancelled()
                    && !signals.is_finishing()
                {
                    let left = duration.saturating_sub(begun.elapsed());
                    thread::sleep(left.min(LOOK_EVERY));
                }
                own.finish.store(true, Ordering::Relaxed);
            });
            self.blaster.run(&own)
        });
        signals.check()?;
        let sent = Payload::datagrams(count.successes(), self.payload_bytes.into());
        let seconds = begun.elapsed().as_secs_f64();
        Ok(EndBooks {
            control_sent: count.refused().control().to_vec(),
            ..EndBooks::of_sender(sent, seconds, self.buffer)
        })
    }
}

/// Counts what arrives, like netreceive.
pub(crate) struct NetreceiveEnd {
    socket: UdpSocket,
    buffer: SocketBuffer,
}

impl NetreceiveEnd {
    /// Receives at an address, optionally with another receive buffer than netreceive's.
    pub(crate) fn at(
        address: SocketAddr,
        receive_buffer_bytes: Option<usize>,
    ) -> Result<Self, WorkloadError> {
        let socket = receive::listen_at(address)?;
        let buffer = sockets::receive_buffer(&socket, receive_buffer_bytes);
        let buffer = buffer.map_err(WorkloadError::failed)?;
        let asked_bytes = buffer.asked_bytes.or(Some(RECEIVE_BUFFER_BYTES as u64));
        Ok(NetreceiveEnd {
            socket,
            buffer: SocketBuffer {
                asked_bytes,
                ..buffer
            },
        })
    }
}

impl PreparedEnd for NetreceiveEnd {
    fn run(self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        let count = ReceiveCount::default();
        receive::receive(&self.socket, &count, signals, Instant::now())
            .map_err(WorkloadError::failed)?;
        signals.check()?;
        let count = count.look();
        let received = Payload {
            packets: Some(count.datagrams),
            bytes: count.bytes,
        };
        let seconds = count
            .first_and_last
            .map_or(0.0, |(first, last)| (last - first).as_secs_f64());
        Ok(EndBooks {
            duplicate_packets: count.duplicates,
            ..EndBooks::of_receiver(received, seconds, self.buffer)
        })
    }
}
