//! Making a machine, from its host, its place in the world and what its programs do.

use std::collections::BTreeMap;

use nicpoll_core::Poller;

use super::card::Card;
use super::clock::Clock;
use super::input::Hold;
use super::interrupt_thread::InterruptThread;
use super::napi::Napi;
use super::netisr::Netisr;
use super::program::{Program, Programs};
use super::{End, Flow, LEVELS, Machine, Of, Outgoing, Receive, Task, Timers};
use crate::clients::Clients;
use crate::cpu::Cpu;
use crate::discipline::Kind;
use crate::host::Host;
use crate::packet::Shape;
use crate::plan::packet_bytes;
use crate::queue::Queue;
use crate::tally::Tally;

/// What a machine is made of.
#[derive(Debug)]
pub(crate) struct Setup<'a> {
    /// Which of the world's.
    pub(crate) number: usize,
    /// With the discipline's own numbers.
    pub(crate) host: Host,
    pub(crate) discipline: &'a Kind,
    /// With every card registered; `None` when the discipline has none.
    pub(crate) poller: Option<Poller>,
    /// One for each card.
    pub(crate) attachments: Vec<Attachment>,
    /// Every flow of the world, with this machine's card for it.
    pub(crate) flows: Vec<Flow>,
    pub(crate) tasks: Vec<Task>,
    /// Its ends of TCP connections.
    pub(crate) ends: Vec<End>,
    /// How much later than that of a clock that starts with the run its first tick comes.
    pub(crate) tick_phase_ns: u64,
}

/// What a card is attached to.
#[derive(Clone, Debug)]
pub(crate) struct Attachment {
    /// The line out, of the world's.
    pub(crate) wire: usize,
    /// The line's delay.
    pub(crate) delay_ns: u64,
    /// The far end, when it is no simulated machine.
    pub(crate) far: Option<FarEnd>,
}

/// The other end of a line, where ideal hosts are.
#[derive(Clone, Debug)]
pub(crate) struct FarEnd {
    /// Who sends; `None` when nobody does.
    pub(crate) clients: Option<Clients>,
    /// What they send.
    pub(crate) flow: usize,
    /// The frame of each payload, where packets differ.
    pub(crate) frames: BTreeMap<u32, Shape>,
    /// The line from it, of the world's.
    pub(crate) wire: usize,
    /// What waits for the line; the first packet is on it.
    pub(crate) queue: Queue,
}

impl Machine {
    pub(crate) fn new(setup: Setup<'_>) -> Self {
        let host = setup.host;
        let cards = setup.attachments.len();
        let receive = match setup.discipline {
            Kind::Napi(options) => Receive::Napi(Napi::new(*options, &host, cards)),
            Kind::Interrupt | Kind::Polling { .. } => Receive::Threads(
                InterruptThread::new(&host, cards),
                Netisr::new(setup.poller),
            ),
        };
        let is_napi = matches!(receive, Receive::Napi(_));
        let socket = |task: &Task| {
            // What a program reads is as long as what it sends.
            let payload_bytes = setup.flows[task.flow()].payload_bytes;
            host.socket.buffer_bytes / packet_bytes(&host, payload_bytes)
        };
        let programs = setup.tasks.into_iter().map(|task| {
            let packets = socket(&task);
            let card = setup.flows[task.flow()].card;
            Program::new(task, packets, card)
        });
        Machine {
            number: setup.number,
            now_ns: 0,
            timers: Timers::new(cards),
            clock: Clock::new(&host, setup.tick_phase_ns),
            tick: 0,
            cpu: Cpu::new(&host.cpu, !is_napi),
            hard_pending: 0,
            hard_served: 0,
            programs: Programs::new(programs.collect(), setup.discipline),
            // Linux has no queue between a NAPI driver and the protocols.
            is_queued: !is_napi && host.network.ip_queue_packets > 0,
            ip_queue: Queue::new(host.network.ip_queue_packets),
            receive,
            left: [0; LEVELS],
            looks_at: [0; LEVELS],
            outgoing: std::array::from_fn(|_| Outgoing::default()),
            holds: vec![Hold::default(); setup.flows.len()],
            flows: setup.flows,
            ends: setup.ends,
            background_events: 0,
            tally: Tally::new(cards),
            in_flight_at_start: 0,
            owes_wake: false,
            outbox: None,
            shared: Box::default(),
            cards: setup
                .attachments
                .into_iter()
                .map(|attachment| Card::new(&host, attachment))
                .collect(),
            host,
        }
    }

    /// Starts the clock, the cards and the programs.
    pub(crate) fn boot(&mut self) {
        self.timers.set_tick(self.clock.next_ns());
        let is_polled = matches!(&self.receive, Receive::Threads(_, netisr) if netisr.is_polling());
        for (number, card) in self.cards.iter_mut().enumerate() {
            card.has_interrupts = !is_polled;
            let clients = card.far.as_ref().and_then(|far| far.clients.as_ref());
            if let Some(clients) = clients {
                self.timers.set(number, Of::Offer, clients.next_ns());
            }
        }
        self.start_idle_poll();
        self.start_programs();
    }
}
