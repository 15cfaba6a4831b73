//! The programs of a machine: which one runs, and what its socket has for it.
//!
//! One goes on until it waits for something. A tick, or a program that wakes, lets another run, at the end of
//! what the first one is doing in the kernel. In a stream's call, which may be long, ticks do not: FreeBSD takes the
//! processor from a thread in the kernel for one of higher priority only, as one has that woke in the kernel, until
//! it is back in its program (4BSD scheduler; `msleep`, `userret`).

use std::collections::VecDeque;

use super::{Counts, Machine, Of, Receive, Task};
use crate::cpu::{Level, State, Step};
use crate::discipline::{Busy, Kind};
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
    busy: Option<Busy>,
    /// When the program gives up polling for nothing.
    spins_until_ns: u64,
    /// Whether what it does is polling.
    is_polling: bool,
}

impl Programs {
    pub(super) fn new(list: Vec<Program>, discipline: &Kind) -> Self {
        Programs {
            list,
            current: None,
            last: 0,
            ready: VecDeque::new(),
            is_rescheduled: false,
            busy: match discipline {
                Kind::Napi(options) => options.busy,
                _ => None,
            },
            spins_until_ns: 0,
            is_polling: false,
        }
    }
}

impl Machine {
    pub(super) fn start_programs(&mut self) {
        for id in 0..self.programs.list.len() {
            if self.programs.list[id].task.is_self_starting() {
                self.wake_program(id);
            }
        }
        if self.programs.current.is_none() {
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
                .is_some_and(|due| due <= self.tick);
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
        let is_of_poll = matches!(step, Step::Look | Step::Reclaim { .. } | Step::Receive)
            || (step == Step::Transmit && self.programs.is_polling);
        if is_of_poll {
            self.busy_poll_done(id, step);
        } else {
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
    pub(super) fn read_or_wait(&mut self, id: usize) {
        if let Some(busy) = self.programs.busy {
            self.programs.spins_until_ns = self.now_ns + busy.spin_ns;
            self.poll_or_read(id, busy);
        } else if self.programs.list[id].socket.is_empty() {
            self.block();
        } else {
            self.read(id);
        }
    }

    /// Reads what there is; polls the card when there is nothing, for so long. When it does not poll, the
    /// deferral timer does in its place after a while, and at last lets the card interrupt again.
    fn poll_or_read(&mut self, id: usize, busy: Busy) {
        self.programs.is_polling = false;
        let held = self.looks_at[LEVEL as usize];
        if !self.programs.list[id].socket.is_empty() {
            if !self.is_taken(held) && !self.cards[held].has_interrupts {
                self.leave_to_timer(held);
            }
            return self.read(id);
        }
        if self.now_ns >= self.programs.spins_until_ns {
            if !self.is_taken(held) {
                self.leave_to_timer(held);
            }
            return self.block();
        }
        // If it is another one, the last was left to its timer when that one's packet was read.
        let card = self.programs.list[id].polls;
        self.looks_at[LEVEL as usize] = card;
        if self.is_taken(card) {
            self.left[LEVEL as usize] = 0;
        } else {
            self.mask(card);
            self.timers.clear(card, Of::Deferral);
            self.left[LEVEL as usize] = busy.budget;
        }
        self.programs.is_polling = true;
        self.tally.napi.busy_polls += 1;
        let cost_ns = self.host.card.poll_ns;
        self.cpu.start(LEVEL, Step::Look, cost_ns, State::System);
    }

    /// While a softirq or ksoftirqd has a card, there is nothing to poll and nothing to arm.
    fn is_taken(&self, card: usize) -> bool {
        matches!(&self.receive, Receive::Napi(napi) if napi.is_scheduled(card))
    }

    fn busy_poll_done(&mut self, id: usize, step: Step) {
        match step {
            Step::Look if self.reclaim(LEVEL, State::System) => return,
            Step::Reclaim { done } => self.reclaimed(LEVEL, done),
            Step::Receive => self.take_from_card(LEVEL),
            Step::Transmit => self.output_done(LEVEL),
            _ => {}
        }
        if self.receive_next(LEVEL, State::System) {
            return;
        }
        if let Some(busy) = self.programs.busy {
            self.poll_or_read(id, busy);
        }
    }
}
