//! Passes packets to and from a machine's ends of TCP connections.
//!
//! An end sends only what its state machine returns, at the level that triggered it: the protocols on arrival, a
//! program in its call, a kernel thread when a timer expires.

use super::cpu::Level;
use super::programs::Half;
use super::receive::kib_ns;
use super::state::SimMachine;
use crate::link::{Packet, PacketKind, Shape};
use crate::tcp::{Now, line_bytes};

impl SimMachine {
    fn now(&self) -> Now {
        Now {
            ns: self.now_ns,
            tick: self.clock.tick,
        }
    }

    /// Handles a segment or an acknowledgement after IP (`tcp_input`). Merged segments are acknowledged together.
    pub fn tcp_input(&mut self, level: Level, packet: Packet, is_merged: bool) {
        let now = self.now();
        let flow = usize::from(packet.flow);
        let took_ns = self.now_ns - packet.sent_ns;
        self.tally.taken += 1;
        let tally = &mut self.shared.flows[flow];
        tally.deliver(packet.number, took_ns, took_ns);
        tally.arrived_bytes += u64::from(packet.payload_bytes);
        let Some(number) = self.ends.iter().position(|end| end.from == flow) else {
            return;
        };
        let end = &mut self.ends[number];
        let is_woken = match (&mut end.half, packet.kind) {
            (Half::Sender(tcp), PacketKind::Ack(ack)) => {
                tcp.acknowledge(now, ack);
                tcp.has_room()
            }
            (Half::Receiver(tcp), PacketKind::Segment(segment)) => tcp.take(now, segment) > 0,
            _ => false,
        };
        if is_woken {
            let program = end.program;
            self.wake_program(program);
        }
        if is_merged {
            self.input.gro.owes_answer = true;
        } else {
            self.tcp_output(level, number);
        }
    }

    /// Sends all that an end may send now (`tcp_output`). A level already sending for it holds its lock, and sends
    /// this too: packets leave in the order in which they are made.
    pub fn tcp_output(&mut self, level: Level, number: usize) {
        let now = self.now();
        let sending = self.output.level_of(self.ends[number].flow);
        let level = sending.unwrap_or(level);
        loop {
            let end = &mut self.ends[number];
            let kind = match &mut end.half {
                Half::Sender(tcp) => tcp.poll_segment(now).map(PacketKind::Segment),
                Half::Receiver(tcp) => tcp.poll_ack().map(PacketKind::Ack),
            };
            let flow = end.flow;
            match kind {
                Some(kind) => self.send_tcp(level, flow, kind),
                None => return,
            }
        }
    }

    fn send_tcp(&mut self, level: Level, flow: usize, kind: PacketKind) {
        let tcp = &self.host.tcp;
        let (bytes, work_ns) = match kind {
            // A segment is no longer than a packet.
            PacketKind::Segment(segment) => (segment.bytes as u32, tcp.output_ns),
            _ => (0, tcp.send_ack_ns),
        };
        let checksum_ns = kib_ns(self.host.network.checksum_kib_ns, bytes);
        let tally = &mut self.shared.flows[flow];
        let number = tally.offer();
        tally.sent_bytes += u64::from(bytes);
        let of = &self.flows[flow];
        let shape = Shape {
            line_bytes: line_bytes(of.ip, bytes),
            payload_bytes: bytes,
        };
        let packet = of.packet_of(kind, shape, number, self.now_ns);
        self.tally.made += 1;
        self.send_from(level, packet, work_ns + checksum_ns);
    }

    /// Handles the timers due at this tick; a kernel thread sends the resulting packets.
    pub fn tick_tcp(&mut self) {
        let now = self.now();
        for number in 0..self.ends.len() {
            let end = &mut self.ends[number];
            if end.deadline_tick().is_none_or(|due| due > now.tick) {
                continue;
            }
            match &mut end.half {
                Half::Sender(tcp) => tcp.timer(now),
                Half::Receiver(tcp) => tcp.timer(now),
            }
            self.tcp_output(Level::Kernel, number);
        }
        if !self.cpu.has_work(Level::Kernel) {
            self.next_of_kernel();
        }
    }
}
