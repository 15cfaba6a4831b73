//! Programs of a machine: their tasks and progress, which one runs, and their ends of TCP connections.

use std::collections::VecDeque;

use crate::link::{BoundedQueue, Packet};
use crate::tcp::{TcpReceiver, TcpSender};

pub const NS_PER_US: u64 = 1000;

/// A program's task, and its progress. All but streams and replies use the world's first flow.
#[derive(Clone, Debug)]
pub enum Task {
    /// Reads datagrams.
    Read {
        /// Whether it reads the clock for each, as iperf does.
        reads_clock: bool,
    },
    /// Sends without a pause.
    Blast,
    /// Sends as iperf 2 does.
    Pace(Pacer),
    /// Sends a request, waits for the reply, and sends the next.
    Request {
        /// Number of the request that has no reply yet.
        waits_for: Option<u64>,
        /// When that request was sent.
        sent_ns: u64,
    },
    /// Answers each request.
    Respond {
        /// Distance from the number of a request's flow to that of its reply.
        to_replies: usize,
        /// The request that it has read and not answered.
        owes: Option<RequestParts>,
    },
    /// Writes to a TCP connection as much as it takes, as iperf does.
    Write(StreamCalls),
    /// Reads what a TCP connection brings.
    Take(StreamCalls),
    /// Computes without a pause, and wants nothing of the network.
    Compute,
}

/// The parts of a request that its reply needs.
#[derive(Clone, Copy, Debug)]
pub struct RequestParts {
    pub flow: usize,
    pub number: u64,
    pub client: u16,
    pub sent_ns: u64,
}

impl RequestParts {
    pub fn of(packet: &Packet) -> Self {
        RequestParts {
            flow: usize::from(packet.flow),
            number: packet.number,
            client: packet.client,
            sent_ns: packet.sent_ns,
        }
    }
}

/// The pacing of iperf 2: a running error in whole microseconds, and a pause (`delay_loop`), in which 2.0.2 polls the
/// clock and 2.0.5 sleeps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    /// Time from datagram to datagram at the rate asked for.
    target_us: i64,
    last_us: i64,
    pub delay_us: i64,
    pub sleeps: bool,
    pub spins_until_ns: u64,
}

impl Pacer {
    pub fn new(payload_bytes: u32, bits_per_second: u64, sleeps: bool) -> Self {
        let target_us = 8_000_000 * u64::from(payload_bytes) / bits_per_second.max(1);
        Pacer {
            // 65,535 bytes at 1 bit/s are far from the end of the range.
            target_us: target_us as i64,
            sleeps,
            ..Pacer::default()
        }
    }

    /// Adjusts the delay by a clock reading before a datagram.
    pub fn read_clock(&mut self, now_ns: u64) {
        let now_us = (now_ns / NS_PER_US) as i64;
        let adjust_us = self.target_us + self.last_us - now_us;
        self.last_us = now_us;
        if adjust_us > 0 || self.delay_us > 0 {
            self.delay_us += adjust_us;
        }
    }
}

/// Calls of a program that move the bytes of a stream. A call enters the kernel once and copies as long as it can: a
/// writer waits only while the send buffer is full, a reader only while there is nothing to read.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamCalls {
    /// The flow of the data.
    pub flow: usize,
    /// Index among the machine's ends of connections.
    pub end: usize,
    /// Bytes of a call.
    pub call_bytes: u64,
    /// Bytes of the call still to be moved; 0 between calls.
    pub left: u64,
    /// Bytes being copied.
    pub copying: u64,
    /// Whether the call has slept: its thread then has the kernel's priority (`PSOCK`) until the call is over.
    pub has_slept: bool,
}

impl Task {
    pub fn is_self_starting(&self) -> bool {
        matches!(
            self,
            Task::Blast | Task::Pace(_) | Task::Request { .. } | Task::Write(_) | Task::Compute
        )
    }

    /// Whether a host with several processors has it only once: it paces itself, or waits for an answer.
    pub fn is_for_one_processor(&self) -> bool {
        matches!(self, Task::Pace(_) | Task::Request { .. })
    }

    /// Returns the stream that it writes or reads.
    pub fn stream(&self) -> Option<&StreamCalls> {
        match self {
            Task::Write(stream) | Task::Take(stream) => Some(stream),
            _ => None,
        }
    }

    /// Returns the request that it has read and not answered.
    pub fn owed(&self) -> Option<&RequestParts> {
        match self {
            Task::Respond { owes, .. } => owes.as_ref(),
            _ => None,
        }
    }

    /// Returns the flow that the program reads or sends.
    pub fn flow(&self) -> usize {
        match self {
            Task::Write(stream) | Task::Take(stream) => stream.flow,
            // Requests and replies have the same payload and card.
            Task::Respond { to_replies, .. } => *to_replies,
            _ => 0,
        }
    }
}

/// A program and its socket.
#[derive(Clone, Debug)]
pub struct Program {
    pub task: Task,
    pub socket: BoundedQueue,
    /// The card by which the socket's last packet arrived: the one to poll for the next.
    pub polls: usize,
    /// When the clock wakes it.
    pub wakes_at_tick: Option<u64>,
}

/// The programs of a machine.
#[derive(Clone, Debug, Default)]
pub struct MachinePrograms {
    pub list: Vec<Program>,
    /// The program that runs.
    pub current: Option<usize>,
    /// The program that ran last.
    pub last: usize,
    /// Programs that could run, the next one first.
    pub ready: VecDeque<usize>,
    /// Whether another program must run next.
    pub is_rescheduled: bool,
}

impl MachinePrograms {
    /// Whether a program neither runs nor is ready to.
    pub fn is_asleep(&self, id: usize) -> bool {
        self.current != Some(id) && !self.ready.contains(&id)
    }

    pub fn has_packets(&self, id: usize) -> bool {
        !self.list[id].socket.is_empty()
    }
}

/// One end of a TCP connection.
#[derive(Clone, Debug)]
pub struct TcpEnd {
    /// The flow that it sends into.
    pub flow: usize,
    /// The flow that it receives.
    pub from: usize,
    /// The program whose stream it is.
    pub program: usize,
    pub half: Half,
}

/// The role of an end.
#[derive(Clone, Debug)]
pub enum Half {
    /// It sends the data.
    Sender(TcpSender),
    /// It receives the data.
    Receiver(TcpReceiver),
}

impl TcpEnd {
    pub fn deadline_tick(&self) -> Option<u64> {
        match &self.half {
            Half::Sender(tcp) => tcp.deadline_tick(),
            Half::Receiver(tcp) => tcp.delayed_ack_tick,
        }
    }
}
