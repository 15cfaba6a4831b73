//! netblast to netreceive as a workload: datagrams one way, as fast as one sender goes.

use std::net::UdpSocket;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::{Side, WorkUnit};
use serde::{Deserialize, Serialize};

use super::blast::{BlastConfig, Blaster};
use super::connect_first;
use super::receive::{self, RECEIVE_BUFFER_BYTES, ReceiveCount};
use crate::signals::{LOOK_EVERY, Signals};
use crate::sockets::{self, SocketBuffer};
use crate::workload::{End, EndBooks, Payload, PreparedEnd, Workload, WorkloadError};

/// What there is to choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetrateWorkload {
    /// Bytes of UDP payload in each datagram.
    pub payload_bytes: u16,
}

impl Workload for NetrateWorkload {
    fn unit(&self) -> WorkUnit {
        WorkUnit::Datagrams
    }

    fn datagram_bytes(&self) -> Option<u32> {
        Some(self.payload_bytes.into())
    }

    fn prepare(&self, end: &End) -> Result<Box<dyn PreparedEnd>, WorkloadError> {
        Ok(match end.side {
            Side::Sender => Box::new(Sender::new(self.payload_bytes, end)?),
            Side::Receiver => Box::new(Receiver {
                socket: receive::listen_at(end.receiver).map_err(WorkloadError::failed)?,
            }),
        })
    }
}

struct Sender {
    blaster: Blaster,
    payload_bytes: u16,
    duration: Duration,
    buffer: SocketBuffer,
}

impl Sender {
    fn new(payload_bytes: u16, end: &End) -> Result<Self, WorkloadError> {
        let (socket, peer) = connect_first(&[end.receiver]).map_err(WorkloadError::failed)?;
        let buffer = sockets::send_buffer(&socket, None).map_err(WorkloadError::failed)?;
        let config = BlastConfig {
            payload_bytes: payload_bytes.into(),
            is_batched: false,
            is_blocking: false,
        };
        Ok(Sender {
            blaster: Blaster::new(socket, peer, config).map_err(WorkloadError::failed)?,
            payload_bytes,
            duration: end.duration,
            buffer,
        })
    }
}

impl PreparedEnd for Sender {
    fn run(mut self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        let own = Signals::default();
        let begun = Instant::now();
        let duration = self.duration;
        // netblast's loop reads no clock; another thread does, and looks at the signals meanwhile.
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
        if signals.is_cancelled() {
            return Err(WorkloadError::Cancelled);
        }
        let sent = Payload::datagrams(count.successes(), self.payload_bytes.into());
        let seconds = begun.elapsed().as_secs_f64();
        Ok(EndBooks::of_sender(sent, seconds, self.buffer))
    }
}

struct Receiver {
    socket: UdpSocket,
}

impl PreparedEnd for Receiver {
    fn run(self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        let count = ReceiveCount::default();
        let buffer = sockets::receive_buffer(&self.socket, None).map_err(WorkloadError::failed)?;
        receive::receive(&self.socket, &count, signals, Instant::now())
            .map_err(WorkloadError::failed)?;
        if signals.is_cancelled() {
            return Err(WorkloadError::Cancelled);
        }
        let received = Payload {
            packets: Some(count.datagrams()),
            bytes: count.bytes(),
        };
        let seconds = count
            .first_and_last()
            .map_or(0.0, |(first, last)| (last - first).as_secs_f64());
        let asked_bytes = Some(RECEIVE_BUFFER_BYTES as u64);
        let buffer = SocketBuffer {
            asked_bytes,
            ..buffer
        };
        Ok(EndBooks {
            duplicate_packets: count.duplicates(),
            ..EndBooks::of_receiver(received, seconds, buffer)
        })
    }
}
