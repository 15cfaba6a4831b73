//! Programs that write and read streams: iperf's over TCP.
//!
//! A call enters the kernel once and copies as long as it can. What must hold: a writer waits only while the
//! send buffer is full, a reader only while there is nothing to read.

use super::input::kib_ns;
use super::{Discipline, Half, Link, Machine, Task};
use crate::cpu::{Level, State, Step};

const LEVEL: Level = Level::Program;
/// FreeBSD copies what a program writes into clusters of this size, and lets TCP send after each
/// (`sosend`).
const CLUSTER_BYTES: u64 = 2048;

/// Calls of a program that move the bytes of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    /// The flow of the data.
    pub(crate) flow: usize,
    /// Which of the machine's ends of connections.
    pub(crate) end: usize,
    /// Bytes of a call.
    call_bytes: u64,
    /// What of the call is still to be moved; 0 between calls.
    left: u64,
    /// What is being copied.
    copying: u64,
    /// Whether the call has slept. Until it is over its thread then has the priority of the kernel (`PSOCK`).
    pub(super) has_slept: bool,
}

impl Stream {
    pub(crate) fn new(flow: usize, end: usize, call_bytes: u64) -> Self {
        Stream {
            flow,
            end,
            call_bytes,
            left: 0,
            copying: 0,
            has_slept: false,
        }
    }

    pub(super) fn is_in_call(&self) -> bool {
        self.left > 0
    }
}

impl<D: Discipline, L: Link> Machine<D, L> {
    fn stream(&mut self, id: usize) -> Option<&mut Stream> {
        match &mut self.programs.list[id].task {
            Task::Write(stream) | Task::Take(stream) => Some(stream),
            _ => None,
        }
    }

    /// The program goes on with its call or begins the next one; it waits when nothing can be moved.
    pub(super) fn next_of_stream(&mut self, id: usize) {
        let Some(stream) = self.stream(id).copied() else {
            return;
        };
        let (step, possible, buffer_bytes) = match &self.ends[stream.end].half {
            Half::Sender(tcp) => {
                let room = if tcp.has_room() { tcp.room() } else { 0 };
                (Step::Call, room.min(CLUSTER_BYTES), CLUSTER_BYTES)
            }
            // Each segment is in a buffer of its own.
            Half::Receiver(tcp) => (Step::Read, tcp.readable(), tcp.segment_bytes_max()),
        };
        if possible == 0 {
            if let Some(stream) = self.stream(id) {
                stream.has_slept = true;
            }
            return self.block();
        }
        let is_new = !stream.is_in_call();
        let left = if is_new {
            stream.call_bytes
        } else {
            stream.left
        };
        let copying = possible.min(left);
        if let Some(stream) = self.stream(id) {
            stream.left = left;
            stream.copying = copying;
        }
        let entry_ns = if is_new { self.host.cpu.syscall_ns } else { 0 };
        let copy_ns = kib_ns(self.host.socket.copy_kib_ns, copying as u32);
        let buffers_ns = copying.div_ceil(buffer_bytes) * self.host.tcp.buffer_ns;
        self.cpu
            .start(LEVEL, step, entry_ns + copy_ns + buffers_ns, State::System);
    }

    /// A piece of a call is copied.
    pub(super) fn stream_copied(&mut self, id: usize) {
        let Some(stream) = self.stream(id) else {
            return;
        };
        stream.left -= stream.copying;
        let (number, copied, mut left) = (stream.end, stream.copying, stream.left);
        let is_sender = match &mut self.ends[number].half {
            Half::Sender(tcp) => {
                tcp.write(copied);
                true
            }
            Half::Receiver(tcp) => {
                tcp.read(copied);
                // A call returns as soon as there is no more.
                if tcp.readable() == 0 {
                    left = 0;
                }
                false
            }
        };
        if let Some(stream) = self.stream(id) {
            stream.left = left;
        }
        // TCP may send after each piece that is written, and move its window at the end of a read
        // (`pru_rcvd`).
        if is_sender || left == 0 {
            self.tcp_output(LEVEL, number);
        }
        self.send_all_of_stream(id);
    }

    /// What the call leads TCP to send goes out first; then the program does its own work on a call that is
    /// over, or the call goes on.
    pub(super) fn send_all_of_stream(&mut self, id: usize) {
        if self.output_next(LEVEL, State::System) {
            return;
        }
        if self.stream(id).is_some_and(|stream| stream.is_in_call()) {
            return self.go_on(id);
        }
        if let Some(stream) = self.stream(id) {
            stream.has_slept = false;
        }
        self.leave_kernel();
        self.work_on_packet();
    }
}
