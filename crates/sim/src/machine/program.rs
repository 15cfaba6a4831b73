//! The program: it reads what its socket has, or sends without a pause.

use nicpoll_model::sim::SimPlace;

use super::{Machine, NEVER, Receive, Timer};
use crate::cpu::{Level, State, Step};
use crate::discipline::{Busy, Kind};
use crate::queue::Packet;
use crate::workload::{Pattern, Workload};

const LEVEL: Level = Level::Program;

#[derive(Clone, Debug)]
pub(super) struct Program {
    is_sender: bool,
    /// The packet that the driver is taking from it.
    sending: Option<Packet>,
    busy: Option<Busy>,
    /// When it gives up polling for nothing.
    spins_until_ns: u64,
}

impl Program {
    pub(super) fn new(workload: &Workload, discipline: &Kind) -> Self {
        Program {
            is_sender: workload.pattern == Pattern::Blast,
            sending: None,
            busy: match discipline {
                Kind::Napi(options) => options.busy,
                _ => None,
            },
            spins_until_ns: 0,
        }
    }

    /// Packets that are in no queue.
    pub(super) fn in_hand(&self) -> u64 {
        u64::from(self.sending.is_some())
    }
}

impl Machine {
    pub(super) fn start_program(&mut self) {
        if self.program.is_sender {
            self.call();
        }
    }

    /// The socket has a packet.
    pub(super) fn wake_program(&mut self) {
        if !self.cpu.has_work(LEVEL) {
            self.read();
        }
    }

    fn read(&mut self) {
        let cost_ns = self.costs.read_ns;
        self.cpu.start(LEVEL, Step::Read, cost_ns, State::System);
    }

    fn call(&mut self) {
        let cost_ns = self.costs.call_ns;
        self.cpu.start(LEVEL, Step::Call, cost_ns, State::System);
    }

    pub(super) fn program_done(&mut self, step: Step) {
        match step {
            Step::Read => {
                self.deliver();
                self.work_on_packet();
            }
            Step::Call => self.called(),
            Step::Transmit => {
                if let Some(packet) = self.program.sending.take() {
                    self.transmit(packet);
                }
                self.work_on_packet();
            }
            _ if self.program.is_sender => self.call(),
            _ => self.next_read(),
        }
    }

    /// The program's own work comes after the packet is its own, and before it sends the next.
    fn work_on_packet(&mut self) {
        let cost_ns = self.host.application.packet_ns;
        self.cpu.start(LEVEL, Step::Use, cost_ns, State::User);
    }

    fn deliver(&mut self) {
        if let Some(packet) = self.socket.pop() {
            let transit_ns = self.now_ns - packet.sent_ns;
            self.tally
                .deliver(transit_ns, self.now_ns - packet.arrived_ns);
        }
    }

    fn called(&mut self) {
        self.tally.offered += 1;
        let packet = Packet {
            sent_ns: self.now_ns,
            arrived_ns: self.now_ns,
        };
        if self.can_transmit_at_once() {
            self.program.sending = Some(packet);
            let cost_ns = self.host.card.tx_packet_ns;
            self.cpu
                .start(LEVEL, Step::Transmit, cost_ns, State::System);
        } else {
            self.queue_to_send(packet);
            self.work_on_packet();
        }
    }

    fn next_read(&mut self) {
        let Some(busy) = self.program.busy else {
            if self.socket.is_empty() {
                self.cpu.stop(LEVEL);
            } else {
                self.read();
            }
            return;
        };
        self.program.spins_until_ns = self.now_ns + busy.spin_ns;
        self.poll_or_read(busy);
    }

    /// Reads what there is; polls the card when there is nothing, for so long. When it does not poll, the
    /// deferral timer does in its place after a while, and at last lets the card interrupt again.
    fn poll_or_read(&mut self, busy: Busy) {
        // While a softirq or ksoftirqd has the card, there is nothing to poll and nothing to arm.
        let is_taken = matches!(&self.receive, Receive::Napi(napi) if napi.is_scheduled());
        if !self.socket.is_empty() {
            if !is_taken && !self.card.has_interrupts {
                self.leave_to_timer();
            }
            return self.read();
        }
        if self.now_ns >= self.program.spins_until_ns {
            if !is_taken {
                self.leave_to_timer();
            }
            return self.cpu.stop(LEVEL);
        }
        if is_taken {
            self.left[LEVEL as usize] = 0;
        } else {
            self.mask();
            self.timers[Timer::Deferral as usize] = NEVER;
            self.left[LEVEL as usize] = busy.budget;
        }
        self.tally.napi.busy_polls += 1;
        let cost_ns = self.host.card.poll_ns;
        self.cpu.start(LEVEL, Step::Look, cost_ns, State::System);
    }

    pub(super) fn busy_poll_done(&mut self, step: Step) {
        if step == Step::Receive {
            self.take_from_card();
        }
        if self.receive_next(LEVEL, State::System) {
            return;
        }
        if let Some(busy) = self.program.busy {
            self.poll_or_read(busy);
        }
    }

    /// A packet that has come through the protocols.
    pub(super) fn put_into_socket(&mut self, packet: Packet) {
        if self.socket.push(packet) {
            self.wake_program();
        } else {
            self.tally.lose(SimPlace::SocketBuffer);
        }
    }
}
