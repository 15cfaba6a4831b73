//! What programs do.

use super::{Discipline, Link, Machine, Stream};
use crate::cpu::{Level, State, Step};
use crate::packet::Packet;

const LEVEL: Level = Level::Program;
const NS_PER_US: u64 = 1000;

/// What a program does, and where it is with it.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// Reads datagrams.
    Read {
        /// Of which flow.
        flow: usize,
        /// Whether it reads the clock for each, as iperf does.
        reads_clock: bool,
    },
    /// Sends without a pause.
    Blast {
        /// Into which flow.
        flow: usize,
    },
    /// Sends as iperf 2 does.
    Pace(Pacer),
    /// Sends a request, waits for the reply, and sends the next.
    Request {
        /// Into which flow.
        flow: usize,
        /// Number of the request that has no reply yet.
        waits_for: Option<u64>,
        /// When that was sent.
        sent_ns: u64,
    },
    /// Answers each request.
    Respond {
        /// From the number of the flow of a request to that of its reply.
        to_replies: usize,
        /// The request that it has read and not answered.
        owes: Option<Request>,
    },
    /// Writes to a TCP connection as much as it takes, as iperf does.
    Write(Stream),
    /// Reads what a TCP connection brings.
    Take(Stream),
}

/// What of a request its reply follows from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(super) flow: usize,
    pub(super) number: u64,
    pub(super) client: u16,
    pub(super) sent_ns: u64,
}

impl Request {
    fn of(packet: &Packet) -> Self {
        Request {
            flow: usize::from(packet.flow),
            number: packet.number,
            client: packet.client,
            sent_ns: packet.sent_ns,
        }
    }
}

/// How iperf 2.0.2 keeps its rate: with a running error in whole microseconds, and by reading the clock over
/// and over until a pause is over (`delay_loop`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    pub(crate) flow: usize,
    /// From datagram to datagram, as asked.
    target_us: i64,
    last_us: i64,
    delay_us: i64,
    spins_until_ns: u64,
}

impl Pacer {
    pub(crate) fn new(flow: usize, payload_bytes: u32, bits_per_second: u64) -> Self {
        let target_us = 8_000_000 * u64::from(payload_bytes) / bits_per_second.max(1);
        Pacer {
            flow,
            // 65,535 bytes at 1 bit/s are far from the end of the range.
            target_us: target_us as i64,
            last_us: 0,
            delay_us: 0,
            spins_until_ns: 0,
        }
    }

    /// The clock was read before a datagram.
    fn read_clock(&mut self, now_ns: u64) {
        let now_us = (now_ns / NS_PER_US) as i64;
        let adjust_us = self.target_us + self.last_us - now_us;
        self.last_us = now_us;
        if adjust_us > 0 || self.delay_us > 0 {
            self.delay_us += adjust_us;
        }
    }
}

impl Task {
    pub(super) fn is_self_starting(&self) -> bool {
        matches!(
            self,
            Task::Blast { .. } | Task::Pace(_) | Task::Request { .. } | Task::Write(_)
        )
    }

    /// Whether a host of several processors has one of it: it keeps its own time, or waits for an answer.
    pub(crate) fn is_for_one_processor(&self) -> bool {
        matches!(self, Task::Pace(_) | Task::Request { .. })
    }

    /// Whether it is in the middle of a call that moves a stream's bytes.
    pub(super) fn is_in_stream_call(&self) -> bool {
        matches!(self, Task::Write(stream) | Task::Take(stream) if stream.is_in_call())
    }

    /// Whether it has woken in a call that is not over.
    pub(super) fn is_raised(&self) -> bool {
        matches!(self, Task::Write(stream) | Task::Take(stream) if stream.has_slept)
    }

    /// The request that it has read and not answered.
    pub(super) fn owed(&self) -> Option<&Request> {
        match self {
            Task::Respond { owes, .. } => owes.as_ref(),
            _ => None,
        }
    }

    /// The flow that a program reads or sends.
    pub(super) fn flow(&self) -> usize {
        match self {
            Task::Read { flow, .. } | Task::Blast { flow } | Task::Request { flow, .. } => *flow,
            // Requests and replies are alike.
            Task::Respond { to_replies, .. } => *to_replies,
            Task::Pace(pacer) => pacer.flow,
            Task::Write(stream) | Task::Take(stream) => stream.flow,
        }
    }
}

impl<D: Discipline, L: Link> Machine<D, L> {
    /// Begins with what a program does next.
    pub(super) fn next_of(&mut self, id: usize) {
        match &self.programs.list[id].task {
            Task::Read { .. } => D::on_read(self, id),
            Task::Blast { flow } => self.call(*flow),
            Task::Pace(pacer) if self.now_ns < pacer.spins_until_ns => {
                self.spin(pacer.spins_until_ns - self.now_ns);
            }
            Task::Pace(_) => self.read_clock(),
            Task::Request {
                waits_for: None,
                flow,
                ..
            } => self.call(*flow),
            Task::Request { .. } => self.await_reply(id),
            Task::Respond {
                owes: Some(request),
                to_replies,
            } => self.call(request.flow + to_replies),
            Task::Respond { .. } => D::on_read(self, id),
            Task::Write(_) | Task::Take(_) => self.next_of_stream(id),
        }
    }

    fn call(&mut self, flow: usize) {
        let cost_ns = self.call_ns(flow);
        self.cpu.start(LEVEL, Step::Call, cost_ns, State::System);
    }

    fn read_clock(&mut self) {
        let cost_ns = self.host.application.clock_ns;
        self.cpu.start(LEVEL, Step::Clock, cost_ns, State::System);
    }

    /// The program's own work on a datagram comes after that is its own, or has been sent.
    pub(super) fn work_on_packet(&mut self) {
        let cost_ns = self.host.application.packet_ns;
        self.cpu.start(LEVEL, Step::Use, cost_ns, State::User);
    }

    /// A step of a program's own is done.
    pub(super) fn program_done(&mut self, id: usize, step: Step) {
        let is_stream = matches!(self.programs.list[id].task, Task::Write(_) | Task::Take(_));
        match step {
            Step::Read | Step::Call if is_stream => self.stream_copied(id),
            Step::Transmit if is_stream => {
                self.output_done(LEVEL);
                self.send_all_of_stream(id);
            }
            Step::Read => self.has_read(id),
            Step::Clock => self.clock_was_read(id),
            Step::Call => {
                self.called(id);
                self.send_all();
            }
            Step::Transmit => {
                self.output_done(LEVEL);
                self.send_all();
            }
            Step::Use => self.worked(id),
            // A pause is over, or not: see `next_of`.
            _ => self.go_on(id),
        }
    }

    fn send_all(&mut self) {
        if !self.output_next(LEVEL, State::System) {
            self.work_on_packet();
        }
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
            Task::Request {
                flow,
                waits_for,
                sent_ns,
            } if *waits_for == Some(packet.number) => {
                *waits_for = None;
                let round_trip_ns = now_ns - *sent_ns;
                self.shared.flows[*flow].answer(round_trip_ns);
            }
            Task::Respond { owes, .. } => *owes = Some(Request::of(&packet)),
            _ => {}
        }
        self.work_on_packet();
    }

    fn clock_was_read(&mut self, id: usize) {
        let now_ns = self.now_ns;
        if let Task::Pace(pacer) = &mut self.programs.list[id].task {
            pacer.read_clock(now_ns);
            let flow = pacer.flow;
            self.call(flow);
        } else {
            self.work_on_packet();
        }
    }

    fn called(&mut self, id: usize) {
        let (flow, request) = match &self.programs.list[id].task {
            Task::Read { .. } | Task::Write(_) | Task::Take(_) => return,
            Task::Blast { flow } | Task::Request { flow, .. } => (*flow, None),
            Task::Pace(pacer) => (pacer.flow, None),
            Task::Respond { to_replies, owes } => {
                let flow = owes.map_or(0, |request| request.flow);
                (flow + to_replies, *owes)
            }
        };
        let number = self.make_datagram(flow, request);
        let program = &mut self.programs.list[id];
        match &mut program.task {
            Task::Request {
                waits_for, sent_ns, ..
            } => {
                *waits_for = Some(number);
                *sent_ns = self.now_ns;
                // A request without reply is given up after a second.
                program.wakes_at_tick = Some(self.clock.tick() + self.host.cpu.hz);
            }
            Task::Respond { owes, .. } => *owes = None,
            _ => {}
        }
    }

    fn await_reply(&mut self, id: usize) {
        let program = &mut self.programs.list[id];
        // The clock has taken its wish away when it woke the program.
        let is_given_up = program.wakes_at_tick.is_none() && program.socket.is_empty();
        match &mut program.task {
            Task::Request {
                flow, waits_for, ..
            } if is_given_up => {
                *waits_for = None;
                let flow = *flow;
                self.call(flow);
            }
            _ => D::on_read(self, id),
        }
    }

    /// The program has done its own work on a datagram.
    fn worked(&mut self, id: usize) {
        let now_ns = self.now_ns;
        if let Task::Pace(pacer) = &mut self.programs.list[id].task
            && pacer.delay_us > 0
        {
            // The end of the pause follows from the first reading of the clock.
            let pause_ns = pacer.delay_us as u64 * NS_PER_US;
            pacer.spins_until_ns = now_ns + self.host.application.clock_ns + pause_ns;
        }
        self.go_on(id);
    }

    /// Reads the clock once more before the pause is over.
    fn spin(&mut self, left_ns: u64) {
        let cost_ns = match self.host.application.clock_ns {
            0 => left_ns,
            clock_ns => clock_ns,
        };
        self.cpu.start(LEVEL, Step::Spin, cost_ns, State::System);
    }
}
