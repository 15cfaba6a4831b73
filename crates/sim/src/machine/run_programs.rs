//! Programs at work: which one runs, and what each does.
//!
//! A program runs until it waits for something. A tick or a waking program lets another run, after the first one's
//! current step in the kernel. In a stream's call, which may be long, ticks do not: FreeBSD preempts a thread in the
//! kernel only for one of higher priority, which a thread woken in the kernel has until it returns to its program
//! (4BSD scheduler; `msleep`, `userret`).

use nicpoll_core::NS_PER_SECOND;

use super::cpu::{CpuStep, Level, Of};
use super::programs::{Half, NS_PER_US, RequestParts, Task};
use super::receive::kib_ns;
use super::state::SimMachine;
use crate::link::{DeliveryCount, Packet};

const LEVEL: Level = Level::Program;
/// A step of a program that computes; ticks and other programs end it sooner.
const COMPUTE_NS: u64 = NS_PER_SECOND;
/// FreeBSD copies what a program writes into clusters of this size, and lets TCP send after each (`sosend`).
const CLUSTER_BYTES: u64 = 2048;

/// Scheduling.
impl SimMachine {
    pub fn start_programs(&mut self) {
        for id in 0..self.programs.list.len() {
            if self.programs.list[id].task.is_self_starting() {
                self.wake_program(id);
            }
        }
        // The program may be on another processor of the host.
        if self.programs.current.is_none() && !self.programs.list.is_empty() {
            self.shared.sleeping[self.number] = true;
        }
    }

    /// Wakes a program that has something to do.
    pub fn wake_program(&mut self, id: usize) {
        if !self.programs.is_asleep(id) {
            return;
        }
        let programs = &mut self.programs;
        let Some(current) = programs.current else {
            return self.run_program(id);
        };
        if matches!(programs.list[current].task, Task::Compute) {
            // It is never in the kernel, so it need not leave it first.
            programs.ready.push_back(current);
            return self.run_program(id);
        }
        let stream = programs.list[current].task.stream();
        if stream.is_some_and(|stream| stream.has_slept) {
            // Both have the priority of a thread woken in the kernel: the running one continues.
            programs.ready.push_back(id);
        } else {
            // A thread with that priority precedes one without.
            programs.ready.push_front(id);
            programs.is_rescheduled = true;
        }
    }

    /// Lets the next program run at a tick, unless the running one is in a stream's call, and wakes programs that
    /// asked for it.
    pub fn tick_programs(&mut self) {
        let programs = &mut self.programs;
        let is_in_call = |id: usize| {
            let stream = programs.list[id].task.stream();
            stream.is_some_and(|stream| stream.left > 0)
        };
        let can_be_switched = !programs.current.is_some_and(is_in_call);
        programs.is_rescheduled |= can_be_switched && !programs.ready.is_empty();
        if let Some(id) = programs.current
            && programs.is_rescheduled
            && matches!(programs.list[id].task, Task::Compute)
        {
            self.go_on(id);
        }
        for id in 0..self.programs.list.len() {
            let due = self.programs.list[id].wakes_at_tick;
            let is_due = due.is_some_and(|due| due <= self.clock.tick);
            // A running program that polls has to stop first.
            if is_due && self.programs.current != Some(id) {
                self.programs.list[id].wakes_at_tick = None;
                self.wake_program(id);
            }
        }
    }

    fn run_program(&mut self, id: usize) {
        let programs = &mut self.programs;
        let is_other = programs.last != id && self.cpu.thread == LEVEL;
        programs.current = Some(id);
        programs.last = id;
        self.shared.sleeping[self.number] = false;
        self.next_of(id);
        if is_other && self.programs.current == Some(id) {
            self.cpu.switch_within(LEVEL);
        }
    }

    /// Continues with a program, unless another one must run.
    fn go_on(&mut self, id: usize) {
        if self.programs.is_rescheduled {
            self.programs.is_rescheduled = false;
            if let Some(next) = self.programs.ready.pop_front() {
                self.programs.ready.push_back(id);
                return self.run_program(next);
            }
        }
        self.next_of(id);
    }

    /// Blocks the running program, and runs the next one that is ready.
    pub fn block(&mut self) {
        self.programs.current = None;
        match self.programs.ready.pop_front() {
            Some(next) => self.run_program(next),
            None => {
                self.shared.sleeping[self.number] = true;
                self.cpu.stop(LEVEL);
            }
        }
    }

    /// Wakes a program for a packet in its socket.
    pub fn wake_for_packet(&mut self, id: usize) {
        let delay_ns = self.host.veth.wake_delay_ns;
        let card = self.flows[self.programs.list[id].task.flow()].card;
        if delay_ns == 0 {
            self.wake_program(id);
        } else if self.programs.is_asleep(id) && !self.timers.is_set(card, Of::Woken) {
            self.timers.set(card, Of::Woken, self.now_ns + delay_ns);
        }
    }

    /// Wakes programs with packets, once the processor learns of them.
    pub fn woken(&mut self, card: usize) {
        self.timers.clear(card, Of::Woken);
        for id in 0..self.programs.list.len() {
            if self.programs.has_packets(id) {
                self.wake_program(id);
            }
        }
    }
}

/// What programs do.
impl SimMachine {
    /// Begins a program's next step.
    fn next_of(&mut self, id: usize) {
        match &self.programs.list[id].task {
            Task::Read { .. } => self.read_or_wait(id),
            Task::Pace(pacer) if self.now_ns < pacer.spins_until_ns => {
                // Reads the clock again until the pause is over.
                let cost_ns = match self.host.application.clock_ns {
                    0 => pacer.spins_until_ns - self.now_ns,
                    clock_ns => clock_ns,
                };
                self.cpu.start(LEVEL, CpuStep::Spin, cost_ns);
            }
            Task::Pace(_) => self.read_clock(),
            Task::Blast
            | Task::Request {
                waits_for: None, ..
            } => self.call(0),
            Task::Request { .. } => self.await_reply(id),
            Task::Respond {
                owes: Some(request),
                to_replies,
            } => self.call(request.flow + to_replies),
            Task::Respond { .. } => self.read_or_wait(id),
            Task::Write(_) | Task::Take(_) => self.next_of_stream(id),
            Task::Compute => self.cpu.start(LEVEL, CpuStep::Use, COMPUTE_NS),
        }
    }

    fn call(&mut self, flow: usize) {
        let cost_ns = self.call_ns(flow);
        self.cpu.start(LEVEL, CpuStep::Call, cost_ns);
    }

    fn read_clock(&mut self) {
        let cost_ns = self.host.application.clock_ns;
        self.cpu.start(LEVEL, CpuStep::Clock, cost_ns);
    }

    /// Begins the program's own work on a datagram that it has read or sent.
    fn work_on_packet(&mut self) {
        let cost_ns = self.host.application.packet_ns;
        self.cpu.start(LEVEL, CpuStep::Use, cost_ns);
    }

    pub fn program_step_done(&mut self, step: CpuStep) {
        let Some(id) = self.programs.current else {
            return;
        };
        if self.napi.is_busy_polling {
            return self.busy_poll_done(id, step);
        }
        let is_stream = self.programs.list[id].task.stream().is_some();
        match step {
            CpuStep::Read | CpuStep::Call if is_stream => self.stream_copied(id),
            CpuStep::Transmit if is_stream => {
                self.output_done(LEVEL);
                self.send_all_of_stream(id);
            }
            CpuStep::Read => self.has_read(id),
            CpuStep::Clock => self.clock_was_read(id),
            CpuStep::Call => {
                self.called(id);
                self.send_all();
            }
            CpuStep::Transmit => {
                self.output_done(LEVEL);
                self.send_all();
            }
            CpuStep::Use => self.worked(id),
            // `next_of` checks whether the pause is over.
            _ => self.go_on(id),
        }
    }

    fn send_all(&mut self) {
        if !self.output_next(LEVEL) {
            self.work_on_packet();
        }
    }

    /// Begins to read a datagram.
    pub fn read(&mut self, id: usize) {
        let Some(packet) = self.programs.list[id].socket.front() else {
            return self.block();
        };
        let copy_ns = kib_ns(self.host.socket.copy_kib_ns, packet.payload_bytes);
        let cost_ns = self.host.cpu.syscall_ns + copy_ns;
        self.cpu.start(LEVEL, CpuStep::Read, cost_ns);
    }

    fn has_read(&mut self, id: usize) {
        let Some(packet) = self.deliver(id) else {
            return self.go_on(id);
        };
        let now_ns = self.now_ns;
        match &mut self.programs.list[id].task {
            Task::Read {
                reads_clock: true, ..
            } => return self.read_clock(),
            Task::Request { waits_for, sent_ns } if *waits_for == Some(packet.number) => {
                *waits_for = None;
                self.shared.flows[0].answer(now_ns - *sent_ns);
            }
            Task::Respond { owes, .. } => *owes = Some(RequestParts::of(&packet)),
            _ => {}
        }
        self.work_on_packet();
    }

    /// Counts a datagram that the program has read.
    fn deliver(&mut self, id: usize) -> Option<Packet> {
        let packet = self.programs.list[id].socket.pop()?;
        let flow = usize::from(packet.flow);
        let transit_ns = self.now_ns - packet.sent_ns;
        self.tally.taken += 1;
        let tally = &mut self.shared.flows[flow];
        tally.read_bytes += u64::from(packet.payload_bytes);
        let latency_ns = match self.flows[flow].counts {
            DeliveryCount::FromCard => self.now_ns - packet.arrived_ns,
            DeliveryCount::FromCall => transit_ns,
            DeliveryCount::Exchange => return Some(packet),
        };
        tally.deliver(packet.number, transit_ns, latency_ns);
        self.shared.serve(packet.client);
        Some(packet)
    }

    fn clock_was_read(&mut self, id: usize) {
        if let Task::Pace(pacer) = &mut self.programs.list[id].task {
            pacer.read_clock(self.now_ns);
            self.call(0);
        } else {
            self.work_on_packet();
        }
    }

    fn called(&mut self, id: usize) {
        let (flow, request) = match &self.programs.list[id].task {
            Task::Read { .. } | Task::Write(_) | Task::Take(_) | Task::Compute => return,
            Task::Blast | Task::Request { .. } | Task::Pace(_) => (0, None),
            Task::Respond { to_replies, owes } => {
                let flow = owes.map_or(0, |request| request.flow);
                (flow + to_replies, *owes)
            }
        };
        let number = self.make_datagram(flow, request);
        let program = &mut self.programs.list[id];
        match &mut program.task {
            Task::Request { waits_for, sent_ns } => {
                *waits_for = Some(number);
                *sent_ns = self.now_ns;
                // A request without reply is given up after a second.
                program.wakes_at_tick = Some(self.clock.tick + self.host.cpu.hz);
            }
            Task::Respond { owes, .. } => *owes = None,
            _ => {}
        }
    }

    fn await_reply(&mut self, id: usize) {
        let program = &mut self.programs.list[id];
        // The tick clears this when it wakes the program.
        let is_given_up = program.wakes_at_tick.is_none() && program.socket.is_empty();
        match &mut program.task {
            Task::Request { waits_for, .. } if is_given_up => {
                *waits_for = None;
                self.call(0);
            }
            _ => self.read_or_wait(id),
        }
    }

    /// Ends the program's own work on a datagram.
    fn worked(&mut self, id: usize) {
        let program = &mut self.programs.list[id];
        if let Task::Pace(pacer) = &mut program.task
            && pacer.delay_us > 0
        {
            let pause_us = pacer.delay_us as u64;
            if pacer.sleeps {
                // The rest of the current tick counts for nothing (`tvtohz`).
                let ticks = (pause_us * self.host.cpu.hz).div_ceil(NS_PER_SECOND / NS_PER_US) + 1;
                program.wakes_at_tick = Some(self.clock.tick + ticks);
                return self.block();
            }
            // The pause begins with the first reading of the clock.
            let pause_ns = pause_us * NS_PER_US;
            pacer.spins_until_ns = self.now_ns + self.host.application.clock_ns + pause_ns;
        }
        self.go_on(id);
    }
}

/// Calls that write or read a stream.
impl SimMachine {
    /// Continues a program's call or begins the next one; the program waits when nothing can be moved.
    fn next_of_stream(&mut self, id: usize) {
        let (Task::Write(stream) | Task::Take(stream)) = &mut self.programs.list[id].task else {
            return;
        };
        let (step, possible, buffer_bytes) = match &self.ends[stream.end].half {
            Half::Sender(tcp) => {
                let room = if tcp.has_room() { tcp.room() } else { 0 };
                (CpuStep::Call, room.min(CLUSTER_BYTES), CLUSTER_BYTES)
            }
            // Each segment is in a buffer of its own.
            Half::Receiver(tcp) => (CpuStep::Read, tcp.readable(), tcp.segment_bytes_max),
        };
        if possible == 0 {
            stream.has_slept = true;
            return self.block();
        }
        let mut cost_ns = 0;
        if stream.left == 0 {
            stream.left = stream.call_bytes;
            cost_ns += self.host.cpu.syscall_ns;
        }
        stream.copying = possible.min(stream.left);
        cost_ns += kib_ns(self.host.socket.copy_kib_ns, stream.copying as u32);
        cost_ns += stream.copying.div_ceil(buffer_bytes) * self.host.tcp.buffer_ns;
        self.cpu.start(LEVEL, step, cost_ns);
    }

    /// Ends the copying of a piece of a call.
    fn stream_copied(&mut self, id: usize) {
        let (Task::Write(stream) | Task::Take(stream)) = &mut self.programs.list[id].task else {
            return;
        };
        stream.left -= stream.copying;
        let number = stream.end;
        // TCP may send after each written piece, and move its window at the end of a read (`pru_rcvd`).
        let sends = match &mut self.ends[number].half {
            Half::Sender(tcp) => {
                tcp.write(stream.copying);
                true
            }
            Half::Receiver(tcp) => {
                tcp.read(stream.copying);
                // A call returns as soon as there is no more.
                if tcp.readable() == 0 {
                    stream.left = 0;
                }
                stream.left == 0
            }
        };
        if sends {
            self.tcp_output(LEVEL, number);
        }
        self.send_all_of_stream(id);
    }

    /// Sends the packets that TCP has made; then continues the call, or begins the program's own work if the call is
    /// over.
    fn send_all_of_stream(&mut self, id: usize) {
        if self.output_next(LEVEL) {
            return;
        }
        let (Task::Write(stream) | Task::Take(stream)) = &mut self.programs.list[id].task else {
            return;
        };
        if stream.left > 0 {
            return self.go_on(id);
        }
        stream.has_slept = false;
        // Threads that wait in the kernel precede one that leaves it.
        self.programs.is_rescheduled |= !self.programs.ready.is_empty();
        self.work_on_packet();
    }
}
