//! The engine as a host's receiver: it takes the study's datagrams at the interface, past the kernel's stack, and
//! hands them to the receiving end of the workload that runs.
//!
//! What must hold: its XDP program is at the interface for as long as the setting is in force, so that no trial's
//! traffic meets the change. Only the study's own ports are taken.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_engine::{
    Engine, EngineError, FRAMES_MAX, PacketInput, PortRunner, Take, Taker, XdpPort, write_knob,
};
use nicpoll_traffic::datagrams::{Arrival, DatagramReceiver};
use nicpoll_traffic::workload::{End, EndBooks, PreparedEnd, Workload, WorkloadError};
use nicpoll_traffic::{LOOK_EVERY, Signals};
use nicpoll_wire::frame::Frame;
use thiserror::Error;

use crate::engine::{EngineRefusal, EngineRequest};
use crate::run::receiver_ports;

/// Ticks without a datagram after which nothing waits in the ring any more.
const QUIET_TICKS: u32 = 3;
/// The least time without one.
const QUIET_MIN: Duration = Duration::from_millis(5);
/// The longest time to empty the ring after the sender is done.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// The engine cannot receive at the interface.
#[derive(Debug, Error)]
pub enum ReceiveError {
    /// It was asked for what it does not have.
    #[error(transparent)]
    Refused(#[from] EngineRefusal),
    /// It cannot have the interface.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// The engine at an interface.
pub struct EngineReceiver {
    // Declared first: the engine's thread ends before the program leaves the interface.
    _engine: Engine<XdpPort<Inlet>>,
    _taker: Taker,
    inlet: Inlet,
}

impl EngineReceiver {
    /// Begins to receive at an interface of the calling thread's network namespace, on `cpu`.
    ///
    /// # Errors
    /// When the interface cannot be had.
    pub fn start(interface: &str, request: &EngineRequest, cpu: u32) -> Result<Self, ReceiveError> {
        let (settings, knobs) = request.settings()?;
        let take = Take::Ports(receiver_ports().collect());
        let tick = Duration::from_secs(1) / request.hz;
        let inlet = Inlet(Arc::new(Shared {
            quiet: QUIET_MIN.max(tick * QUIET_TICKS),
            ..Shared::default()
        }));
        let (taker, ports) = XdpPort::open(interface, &take, FRAMES_MAX, || inlet.clone())?;
        let mut runner = PortRunner::new(settings, ports)?;
        for (knob, value) in knobs {
            write_knob(runner.poller_mut(), knob, value).map_err(EngineRefusal::from)?;
        }
        Ok(EngineReceiver {
            _engine: Engine::start(runner, cpu)?,
            _taker: taker,
            inlet,
        })
    }

    /// Where its datagrams come out.
    pub fn inlet(&self) -> Inlet {
        self.inlet.clone()
    }
}

/// Where the engine hands over datagrams, and a workload's end picks them up.
#[derive(Clone, Default)]
pub struct Inlet(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Frames that have come.
    frames: AtomicU64,
    /// Without a frame for so long the ring is empty.
    quiet: Duration,
    /// Who receives, while somebody does.
    receiver: Mutex<Option<Receiver>>,
}

struct Receiver {
    datagrams: Box<dyn DatagramReceiver>,
    /// Answers leave through it. Nothing comes to it: the engine takes what is for its port.
    socket: UdpSocket,
}

impl Inlet {
    /// Makes the receiving end of a workload ready.
    ///
    /// # Errors
    /// When it cannot be received without a socket, or its address is not here.
    pub fn prepare(
        self,
        workload: &dyn Workload,
        end: &End,
    ) -> Result<Box<dyn PreparedEnd>, WorkloadError> {
        let unfit = || io::Error::other("the engine cannot receive this traffic");
        let datagrams = workload.datagram_receiver();
        let datagrams = datagrams.ok_or_else(|| WorkloadError::failed(unfit()))?;
        let socket = UdpSocket::bind(end.receiver).and_then(|socket| {
            // The engine's thread waits for nothing.
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        let socket = socket.map_err(WorkloadError::failed)?;
        *self.receiver() = Some(Receiver { datagrams, socket });
        Ok(Box::new(EngineEnd(self)))
    }

    fn receiver(&self) -> MutexGuard<'_, Option<Receiver>> {
        let receiver = self.0.receiver.lock();
        receiver.unwrap_or_else(PoisonError::into_inner)
    }

    fn frames(&self) -> u64 {
        self.0.frames.load(Ordering::Relaxed)
    }
}

impl PacketInput for Inlet {
    fn packet(&mut self, frame: &[u8]) {
        self.0.frames.fetch_add(1, Ordering::Relaxed);
        let Some((source, payload)) = datagram(frame) else {
            return;
        };
        let at = Instant::now();
        if let Some(receiver) = &mut *self.receiver() {
            let arrival = Arrival {
                source,
                payload,
                at,
            };
            if let Some(answer) = receiver.datagrams.take(&arrival) {
                // One that is lost is asked for again.
                let _ = receiver.socket.send_to(&answer, source);
            }
        }
    }
}

/// The receiving end of a workload whose datagrams the engine takes.
struct EngineEnd(Inlet);

impl PreparedEnd for EngineEnd {
    fn run(self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        while !signals.is_sender_done() {
            if signals.is_cancelled() {
                return Err(WorkloadError::Cancelled);
            }
            thread::sleep(LOOK_EVERY.min(self.0.0.quiet));
        }
        let deadline = Instant::now() + DRAIN_MAX;
        let mut frames = None;
        while frames != Some(self.0.frames()) && Instant::now() < deadline {
            frames = Some(self.0.frames());
            thread::sleep(self.0.0.quiet);
        }
        let books = self.0.receiver().as_ref().map(|it| it.datagrams.books());
        books.ok_or(WorkloadError::Cancelled)
    }
}

impl Drop for EngineEnd {
    fn drop(&mut self) {
        *self.0.receiver() = None;
    }
}

/// Who sent the UDP datagram of a frame, and its payload.
fn datagram(frame: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let frame = Frame::parse(frame).ok()?;
    let (ip, udp) = frame.udp()?;
    Some((SocketAddr::new(ip.source, udp.source), udp.payload))
}

#[cfg(test)]
mod tests {
    use nicpoll_wire::frame::{FRAME_BYTES_MIN, Mac, UdpPath};

    use super::*;

    #[test]
    fn a_datagram_is_read_without_the_padding_of_its_frame() {
        let path = UdpPath {
            source_mac: Mac([2, 0, 0, 0, 0, 1]),
            destination_mac: Mac([2, 0, 0, 0, 0, 2]),
            source: "198.18.0.1:4000".parse().unwrap(),
            destination: "198.18.0.2:5001".parse().unwrap(),
        };
        let mut frame = [0; 128];
        path.write(b"abc", &mut frame).unwrap();
        let read = datagram(&frame[..FRAME_BYTES_MIN]).unwrap();
        assert_eq!(read, (path.source, &b"abc"[..]));
        // What is cut off is none.
        assert_eq!(datagram(&frame[..44]), None);
    }
}
