//! The programs of a machine: which one runs, and what its socket has for it.
//!
//! One goes on until it waits for something. A tick, or a program that wakes, lets another run, at the end of
//! what the first one is doing in the kernel. In a stream's call, which may be long, ticks do not: FreeBSD takes the
//! processor from a thread in the kernel for one of higher priority only, as one has that woke in the kernel, until
//! it is back in its program (4BSD scheduler; `msleep`, `userret`).

use std::collections::VecDeque;

use super::{Counts, Discipline, Link, Machine, Of, Task};
use crate::cpu::{Level, State, Step};
use crate::packet::Packet;
use crate::queue::Queue;

const LEVEL: Level = Level::Program;

#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) task: Task,
    pub(super) socket: Queue,
    /// The card that the socket's last packet came in by: the one to poll for the next.
    pub(super) polls: usize,
    /// When the clock wakes it.
    pub(super) wakes_at_tick: Option<u64>,
}

impl Program {
    pub(super) fn new(task: Task, socket_packets: u64, polls: usize) -> Self {
        Program {
            task,
            socket: Queue::new(socket_packets),
            polls,
            wakes_at_tick: None,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Programs {
    pub(super) list: Vec<Program>,
    /// The one that has the level.
    current: Option<usize>,
    /// The one that had it last.
    last: usize,
    /// Those that could run, the next one first.
    ready: VecDeque<usize>,
    /// Whether another one is to run.
    is_rescheduled: bool,
}

impl Programs {
    pub(super) fn new(list: Vec<Program>) -> Self {
        Programs {
            list,
            current: None,
            last: 0,
            ready: VecDeque::new(),
            is_rescheduled: false,
        }
    }
}

impl Programs {
    /// A packet goes into a program's socket, from a card. False when there is no room.
    #[must_use]
    pub(super) fn receive(&mut self, id: usize, card: usize, packet: Packet) -> bool {
        let program = &mut self.list[id];
        program.polls = card;
        program.socket.push(packet)
    }

    pub(super) fn has_packets(&self, id: usize) -> bool {
        !self.list[id].socket.is_empty()
    }

    /// The card that a program's last packet came in by: the one to poll for the next.
    pub(super) fn polls(&self, id: usize) -> usize {
        self.list[id].polls
    }
}

impl<D: Discipline, L: Link> Machine<D, L> {
    pub(super) fn start_programs(&mut self) {
        for id in 0..self.programs.list.len() {
            if self.programs.list[id].task.is_self_starting() {
                self.wake_program(id);
            }
        }
        // Of several processors one may have the program.
        if self.programs.current.is_none() && !self.programs.list.is_empty() {
            self.shared.sleeping.insert(self.number);
        }
    }

    /// There is something for a program.
    pub(super) fn wake_program(&mut self, id: usize) {
        if !self.is_asleep(id) {
            return;
        }
        let programs = &mut self.programs;
        let Some(current) = programs.current else {
            return self.run_program(id);
        };
        if programs.list[current].task.is_raised() {
            // Both have the priority of a thread that wakes in the kernel: the running one goes on.
            programs.ready.push_back(id);
        } else {
            // Who has that goes before who has not.
            programs.ready.push_front(id);
            programs.is_rescheduled = true;
        }
    }

    /// A program's call is over: those that wait in the kernel go before it.
    pub(super) fn leave_kernel(&mut self) {
        self.programs.is_rescheduled |= !self.programs.ready.is_empty();
    }

    /// Whether nothing of its own keeps it from running, or runs it already.
    pub(super) fn is_asleep(&self, id: usize) -> bool {
        self.programs.current != Some(id) && !self.programs.ready.contains(&id)
    }

    /// The clock's tick gives the next one its turn, unless the running one is in the kernel for long, and wakes
    /// those that wanted it.
    pub(super) fn tick_programs(&mut self) {
        let programs = &mut self.programs;
        let is_in_call = |id: usize| programs.list[id].task.is_in_stream_call();
        let can_be_switched = !programs.current.is_some_and(is_in_call);
        programs.is_rescheduled |= can_be_switched && !programs.ready.is_empty();
        for id in 0..self.programs.list.len() {
            let is_due = self.programs.list[id]
                .wakes_at_tick
                .is_some_and(|due| due <= self.clock.tick());
            // One that polls has to stop first.
            if is_due && self.programs.current != Some(id) {
                self.programs.list[id].wakes_at_tick = None;
                self.wake_program(id);
            }
        }
    }

    fn run_program(&mut self, id: usize) {
        let programs = &mut self.programs;
        let is_other = programs.last != id && self.cpu.thread() == LEVEL;
        programs.current = Some(id);
        programs.last = id;
        self.shared.sleeping.remove(self.number);
        self.next_of(id);
        if is_other && self.programs.current == Some(id) {
            self.cpu.switch_within(LEVEL);
        }
    }

    /// What a program does next, unless another one is to run.
    pub(super) fn go_on(&mut self, id: usize) {
        if self.programs.is_rescheduled {
            self.programs.is_rescheduled = false;
            if let Some(next) = self.programs.ready.pop_front() {
                self.programs.ready.push_back(id);
                return self.run_program(next);
            }
        }
        self.next_of(id);
    }

    /// The program waits: another one has the processor, if one can run.
    pub(super) fn block(&mut self) {
        self.programs.current = None;
        match self.programs.ready.pop_front() {
            Some(next) => self.run_program(next),
            None => {
                self.shared.sleeping.insert(self.number);
                self.cpu.stop(LEVEL);
            }
        }
    }

    pub(super) fn program_step_done(&mut self, step: Step) {
        let Some(id) = self.programs.current else {
            return;
        };
        if !D::on_program_step(self, id, step) {
            self.program_done(id, step);
        }
    }

    pub(super) fn read(&mut self, id: usize) {
        let Some(packet) = self.programs.list[id].socket.front() else {
            return self.block();
        };
        let cost_ns = self.read_ns(packet);
        self.cpu.start(LEVEL, Step::Read, cost_ns, State::System);
    }

    /// The program has read a datagram.
    pub(super) fn deliver(&mut self, id: usize) -> Option<Packet> {
        let packet = self.programs.list[id].socket.pop()?;
        let flow = usize::from(packet.flow);
        let transit_ns = self.now_ns - packet.sent_ns;
        self.tally.taken += 1;
        let tally = &mut self.shared.flows[flow];
        tally.read_bytes += u64::from(packet.payload_bytes);
        let latency_ns = match self.flows[flow].counts {
            Counts::FromCard => self.now_ns - packet.arrived_ns,
            Counts::FromCall => transit_ns,
            Counts::Exchange => return Some(packet),
        };
        tally.deliver(packet.number, transit_ns, latency_ns);
        self.shared.serve(packet.client);
        Some(packet)
    }

    /// Reads what the socket has, and waits when it has nothing.
    pub(super) fn read_or_block(&mut self, id: usize) {
        if self.programs.has_packets(id) {
            self.read(id);
        } else {
            self.block();
        }
    }

    /// A socket has a packet for a program.
    pub(super) fn wake_for_packet(&mut self, id: usize) {
        let delay_ns = self.host.veth.wake_delay_ns;
        let card = self.flows[self.programs.list[id].task.flow()].card;
        if delay_ns == 0 {
            self.wake_program(id);
        } else if self.is_asleep(id) && !self.timers.is_set(card, Of::Woken) {
            self.timers.set(card, Of::Woken, self.now_ns + delay_ns);
        }
    }

    /// The processor has heard that its programs were woken.
    pub(super) fn woken(&mut self, card: usize) {
        self.timers.clear(card, Of::Woken);
        for id in 0..self.programs.list.len() {
            if self.programs.has_packets(id) {
                self.wake_program(id);
            }
        }
    }
}
