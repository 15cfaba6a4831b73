//! The core's conformance suite on the simulated card: the machine's own card, driver and interrupt paths, with the suite
//! in place of clock, line and program.

use nicpoll_core::conformance::{Bench, check};
use nicpoll_core::{Command, Device};

use super::card::{Attachment, FarEnd};
use super::cpu::Level;
use super::kernel::PollRequest;
use super::programs::Task;
use super::state::{Setup, SimMachine};
use crate::account::{FlowTally, Shared};
use crate::link::{BoundedQueue, DeliveryCount, FAR, Flow, Wire};
use crate::spec::discipline::ReceiveDiscipline;
use crate::spec::host::HostModel;
use crate::spec::simulation::shapes;
use crate::spec::traffic::TrafficModel;

/// A machine that is not booted: it has no ticks, and nobody sends to it.
struct PolledCard {
    machine: SimMachine,
    /// Packets that have arrived so far.
    sent: u64,
}

impl PolledCard {
    fn new() -> Self {
        let text = include_str!("../../hosts/generic.toml");
        let mut host = HostModel::parse(text).unwrap();
        // No queue above the card may lose packets: only what it hands up is checked.
        host.set("network.ip_queue_packets", 65_536).unwrap();
        host.set("socket.buffer_bytes", 1 << 31).unwrap();
        let discipline = ReceiveDiscipline::parse("freebsd-polling").unwrap();
        let discipline = discipline.method.kernel(&host, 1).unwrap();
        let workload = TrafficModel::parse("constant:rate=1k").unwrap();
        let wire = Wire::new(host.link.bits_per_second);
        let setup = Setup {
            number: 0,
            attachments: vec![Attachment {
                wire: 0,
                delay_ns: 0,
                far: Some(FarEnd {
                    clients: None,
                    flow: 0,
                    frames: Default::default(),
                    wire: 1,
                    queue: BoundedQueue::new(1),
                }),
                peer: None,
            }],
            flows: vec![Flow {
                number: 0,
                name: "datagrams",
                from: FAR,
                to: 0,
                card: 0,
                ip: workload.ip,
                payload_bytes: workload.payload_bytes,
                shapes: shapes(&workload, host.link.mtu_bytes).unwrap(),
                counts: DeliveryCount::FromCard,
                senders: 1,
            }],
            tasks: vec![Task::Read { reads_clock: false }],
            ends: Vec::new(),
            tick_phase_ns: 0,
            discipline,
            host,
        };
        let mut machine = SimMachine::new(setup);
        *machine.shared = Shared {
            wires: vec![wire; 2],
            flows: vec![FlowTally::new(0)],
            losses: vec![Default::default()],
            ..Shared::default()
        };
        PolledCard { machine, sent: 0 }
    }

    /// Runs the kernel until it has nothing more to do. The program never runs.
    fn run_kernel(&mut self) {
        let machine = &mut self.machine;
        let levels = [Level::Hard, Level::InterruptThread, Level::Soft];
        while levels.iter().any(|level| machine.cpu.has_work(*level)) {
            let (level, remaining_ns) = machine.cpu.dispatch().unwrap();
            machine.cpu.run(level, remaining_ns);
            machine.now_ns += remaining_ns;
            machine.step_done(level, machine.cpu.step(level));
        }
    }
}

impl Device for PolledCard {
    fn poll(&mut self, command: Command, count: u32) -> u32 {
        let before = self.machine.cards[0].rx_ring.len();
        let asked = PollRequest(0, command, count);
        self.machine.look_at_card(Level::Soft, asked, 0);
        self.run_kernel();
        (before - self.machine.cards[0].rx_ring.len()) as u32
    }

    fn set_interrupts(&mut self, on: bool) {
        if on {
            self.machine.unmask(0);
        } else {
            self.machine.mask(0);
        }
    }
}

impl Bench for PolledCard {
    fn room(&self) -> u32 {
        self.machine.cards[0].rx_ring.limit as u32
    }

    fn arrive(&mut self, count: u32) {
        for _ in 0..count {
            let packet = self.machine.flows[0].packet(0, self.sent, 0, self.machine.now_ns);
            self.sent += 1;
            let far = self.machine.cards[0].attachment.far.as_mut().unwrap();
            assert!(far.queue.push(packet), "the line is free");
            self.machine.arrive(0);
        }
    }

    fn handed_up(&mut self) -> Option<u64> {
        let socket = &mut self.machine.programs.list[0].socket;
        socket.pop().map(|packet| packet.number)
    }

    fn interrupts(&mut self) -> u64 {
        self.run_kernel();
        self.machine.tally.cards[0].figures.interrupts
    }
}

#[test]
fn the_simulated_card_conforms() {
    check(PolledCard::new).unwrap();
}
