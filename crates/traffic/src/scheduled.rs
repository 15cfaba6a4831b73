//! Datagrams at times that are known before: pulses, and what was recorded.
//!
//! What must hold: a datagram is due at its own time, whatever became of the one before, so that a sender that
//! was held up catches up and the pulses do not drift. They are numbered as netblast's are, and netreceive
//! counts them.

mod pulses;
mod replay;

use std::net::UdpSocket;
use std::num::NonZeroU64;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::thread::{current_timer_slack, set_current_timer_slack};

use crate::RefusedSends;
use crate::netrate::{connect_first, number, set_up};
use crate::signals::{LOOK_EVERY, Signals};
use crate::sockets::{self, SocketBuffer};
use crate::workload::{End, EndBooks, Payload, PreparedEnd, WorkloadError};

pub use pulses::PulseWorkload;
pub use replay::{ReplayError, ReplayWorkload};

/// A datagram that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Due {
    /// When, after the beginning.
    at: Duration,
    /// How long it is.
    payload_bytes: u16,
}

/// Sends what is due until its time is over.
struct Sender {
    socket: UdpSocket,
    flags: SendFlags,
    schedule: Box<dyn Iterator<Item = Due> + Send>,
    duration: Duration,
    buffer: SocketBuffer,
    /// Sends that the kernel refused.
    refused: RefusedSends,
}

impl Sender {
    /// A sender that is connected to the receiver of `end`.
    fn new(
        schedule: impl Iterator<Item = Due> + Send + 'static,
        end: &End,
    ) -> Result<Self, WorkloadError> {
        let (socket, peer) = connect_first(&[end.receiver]).map_err(WorkloadError::failed)?;
        Ok(Sender {
            flags: set_up(&socket, peer, true).map_err(WorkloadError::failed)?,
            buffer: sockets::send_buffer(&socket, None).map_err(WorkloadError::failed)?,
            socket,
            schedule: Box::new(schedule),
            duration: end.duration,
            refused: RefusedSends::default(),
        })
    }

    /// Sends one datagram, and says whether the kernel took it. Waits for room in the socket.
    fn send(&mut self, datagram: &[u8], signals: &Signals) -> bool {
        loop {
            let Err(errno) = send(&self.socket, datagram, self.flags) else {
                return true;
            };
            self.refused.note(&errno.into(), 1);
            let may_pass = matches!(errno, Errno::AGAIN | Errno::INTR);
            if !may_pass || signals.is_cancelled() || signals.is_finishing() {
                return false;
            }
        }
    }
}

impl PreparedEnd for Sender {
    fn run(mut self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        // The kernel may wake a sleeper late by the slack, 50 us by default: too late for a pulse.
        let slack = current_timer_slack();
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let begun = Instant::now();
        let mut schedule = std::mem::replace(&mut self.schedule, Box::new(std::iter::empty()));
        let mut datagram = Vec::new();
        let (mut packets, mut bytes, mut counter) = (0, 0, 0_u32);
        let mut now = Duration::ZERO;
        while let Some(due) = schedule.next().filter(|due| due.at < self.duration) {
            while now < due.at && !signals.is_cancelled() && !signals.is_finishing() {
                thread::sleep((due.at - now).min(LOOK_EVERY));
                now = begun.elapsed();
            }
            if signals.is_cancelled() || signals.is_finishing() {
                break;
            }
            datagram.resize(due.payload_bytes.into(), 0);
            number(&mut datagram, counter);
            counter = counter.wrapping_add(1);
            if self.send(&datagram, signals) {
                packets += 1;
                bytes += u64::from(due.payload_bytes);
            }
            now = begun.elapsed();
            // What was not sent in time stays unsent: the time is the receiver's, too.
            if now >= self.duration {
                break;
            }
        }
        if let Ok(slack) = slack {
            let _ = set_current_timer_slack(NonZeroU64::new(slack));
        }
        if signals.is_cancelled() {
            return Err(WorkloadError::Cancelled);
        }
        let sent = Payload {
            packets: Some(packets),
            bytes,
        };
        // The last pulse is over before its period is: the rate is over the time that was asked for.
        let seconds = begun.elapsed().max(self.duration).as_secs_f64();
        Ok(EndBooks {
            control_sent: self.refused.control().to_vec(),
            ..EndBooks::of_sender(sent, seconds, self.buffer)
        })
    }
}
