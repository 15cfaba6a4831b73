//! A machine: its parts, its setup and its event loop.

use nicpoll_core::Poller;
use nicpoll_model::LossPlace;

use super::card::{Attachment, Card, Input, LevelOutput};
use super::cpu::{Clock, Cpu, CpuStep, DueTimer, Level, Of, SampledCpu, Timers};
use super::kernel::{Freebsd, NapiState};
use super::programs::{MachinePrograms, Program, Task, TcpEnd};
use crate::account::{Shared, Tally};
use crate::link::{BoundedQueue, DeliveryCount, Flow, Packet};
use crate::spec::discipline::{HostKernel, NapiOptions};
use crate::spec::host::HostModel;

/// Stands for a card's number: the packet goes to a program on another processor.
pub const OTHER_PROCESSOR: usize = usize::MAX;

/// What a machine is made of.
#[derive(Debug)]
pub struct Setup {
    /// The number of its host in the world.
    pub number: usize,
    /// With the discipline's overrides.
    pub host: HostModel,
    /// How its kernel learns of packets: the kernel, the poller if it polls, and NAPI's options.
    pub discipline: (HostKernel, Option<Poller>, NapiOptions),
    /// One for each card.
    pub attachments: Vec<Attachment>,
    /// Every flow of the world, with this machine's card for it.
    pub flows: Vec<Flow>,
    pub tasks: Vec<Task>,
    /// Its ends of TCP connections.
    pub ends: Vec<TcpEnd>,
    /// Delay of its first tick, compared with a clock that starts with the run.
    pub tick_phase_ns: u64,
}

/// A machine. Each part owns its state; the other files of this folder describe how the parts interact.
#[derive(Debug)]
pub struct SimMachine {
    /// The number in the world of the host whose processor it is.
    pub number: usize,
    pub host: HostModel,
    pub now_ns: u64,
    pub timers: Timers,
    pub clock: Clock,
    pub sampling: SampledCpu,
    pub cpu: Cpu,
    pub cards: Vec<Card>,
    pub input: Input,
    pub output: LevelOutput,
    /// Every flow of the world.
    pub flows: Vec<Flow>,
    pub programs: MachinePrograms,
    /// Its ends of TCP connections.
    pub ends: Vec<TcpEnd>,
    pub kernel: HostKernel,
    /// Used by the kernel of that name.
    pub freebsd: Freebsd,
    pub napi: NapiState,
    /// Whether a veth pair joins it to its peer, instead of lines between cards.
    pub is_veth: bool,
    /// Whether the time for waking a program on another processor is still owed.
    pub owes_wake: bool,
    pub tally: Tally,
    /// A frame for another machine, with the card that it left; or a packet for a program on another processor.
    pub outbox: Option<(usize, Packet)>,
    /// The world's shared state, while this machine runs.
    pub shared: Box<Shared>,
}

impl SimMachine {
    pub fn new(setup: Setup) -> Self {
        let host = setup.host;
        let cards = setup.attachments.len();
        let (kernel, poller, napi) = setup.discipline;
        let has_soft_thread = kernel == HostKernel::Freebsd;
        let program = |task: Task| {
            let flow = &setup.flows[task.flow()];
            let packets = match task {
                Task::Compute => 0,
                // A program reads packets of the same length as it sends.
                _ => host.socket.buffer_bytes / host.packet_bytes(flow.payload_bytes),
            };
            Program {
                task,
                socket: BoundedQueue::new(packets),
                polls: flow.card,
                wakes_at_tick: None,
            }
        };
        let attachments = setup.attachments.into_iter();
        SimMachine {
            number: setup.number,
            now_ns: 0,
            timers: Timers::new(cards),
            clock: Clock::new(&host, setup.tick_phase_ns),
            sampling: SampledCpu::new(host.cpu.stat_hz),
            cpu: Cpu::new(&host.cpu, has_soft_thread),
            programs: MachinePrograms {
                list: setup.tasks.into_iter().map(program).collect(),
                ..MachinePrograms::default()
            },
            input: Input::new(has_soft_thread, &host, setup.flows.len()),
            output: LevelOutput::default(),
            flows: setup.flows,
            ends: setup.ends,
            kernel,
            freebsd: Freebsd::new(poller, &host, cards),
            napi: NapiState::new(napi, &host, cards),
            is_veth: host.is_veth_end(),
            owes_wake: false,
            tally: Tally::new(cards),
            outbox: None,
            shared: Box::default(),
            cards: attachments.map(|of| Card::new(&host, of)).collect(),
            host,
        }
    }

    /// Starts the clock, the cards and the programs.
    pub fn boot(&mut self) {
        self.timers.set_tick(self.clock.next_ns());
        self.timers.set_sample(self.sampling.next_ns());
        for (number, card) in self.cards.iter_mut().enumerate() {
            card.has_interrupts = self.freebsd.poller.is_none();
            if let Some(clients) = card.clients() {
                self.timers.set(number, Of::Offer, clients.next_ns());
            }
        }
        self.next_idle_poll();
        self.start_programs();
    }

    /// Returns the time of this machine's next event.
    pub fn next_event_ns(&mut self) -> u64 {
        let due_ns = self.timers.first_ns();
        match self.cpu.dispatch() {
            Some((_, remaining_ns)) => due_ns.min(self.now_ns.saturating_add(remaining_ns)),
            None => due_ns,
        }
    }

    /// Runs everything due before `end_ns`, until a packet leaves for another machine.
    pub fn run_before(&mut self, end_ns: u64) {
        loop {
            let running = self.cpu.dispatch();
            let (due_ns, due) = self.timers.first();
            match running {
                Some((level, remaining_ns))
                    if self.now_ns.saturating_add(remaining_ns) <= due_ns =>
                {
                    let done_ns = self.now_ns.saturating_add(remaining_ns);
                    if done_ns >= end_ns {
                        return;
                    }
                    self.cpu.run(level, remaining_ns);
                    self.now_ns = done_ns;
                    self.step_done(level, self.cpu.step(level));
                    if self.outbox.is_some() {
                        return;
                    }
                    continue;
                }
                _ if due_ns >= end_ns => return,
                Some((level, _)) => self.cpu.run(level, due_ns - self.now_ns),
                None => self.cpu.idle(due_ns - self.now_ns),
            }
            self.now_ns = due_ns;
            self.on_timer(due);
            if self.outbox.is_some() {
                return;
            }
        }
    }

    /// Advances to `edge_ns`, before which nothing is due. Events at `edge_ns` itself are left for later.
    pub fn advance_to(&mut self, edge_ns: u64) {
        match self.cpu.dispatch() {
            Some((level, _)) => self.cpu.run(level, edge_ns - self.now_ns),
            None => self.cpu.idle(edge_ns - self.now_ns),
        }
        self.now_ns = edge_ns;
    }

    fn on_timer(&mut self, due: DueTimer) {
        match due {
            DueTimer::Sample => {
                self.timers.set_sample(self.sampling.next_ns());
                self.sampling.look(&self.cpu);
            }
            DueTimer::Tick => {
                if self.sampling.hz == 0 {
                    self.sampling.look(&self.cpu);
                }
                self.timers.set_tick(self.clock.next_ns());
                self.raise_clock();
            }
            DueTimer::Card(card, Of::Offer) => self.offer(card),
            DueTimer::Card(card, Of::Arrival) => self.arrive(card),
            DueTimer::Card(card, Of::Moderation) => self.interrupt_now(card),
            DueTimer::Card(card, Of::Deferral) => {
                self.timers.clear(card, Of::Deferral);
                self.raise_deferral(card);
            }
            DueTimer::Card(card, Of::Sent) => self.frame_sent(card),
            DueTimer::Card(card, Of::Woken) => self.woken(card),
        }
    }

    pub fn step_done(&mut self, level: Level, step: CpuStep) {
        match level {
            Level::Hard => self.interrupt_done(step),
            Level::Kernel => self.kernel_step_done(step),
            Level::Program => self.program_step_done(step),
            _ if self.kernel == HostKernel::Linux => self.softirq_done(level, step),
            Level::InterruptThread => self.interrupt_thread_done(step),
            Level::Idle => self.idle_poll_done(step),
            _ => self.netisr_done(step),
        }
    }

    /// Counts a packet lost here.
    pub fn lose(&mut self, place: LossPlace, packet: &Packet) {
        self.tally.lose(place);
        self.shared.lose(self.number, place, packet);
    }

    /// Lets a frame leave a card for another machine.
    pub fn leave(&mut self, card: usize, packet: Packet) {
        self.tally.transmit(card, packet.line_bytes);
        self.outbox = Some((card, packet));
    }

    /// Returns how many packets are in this machine, even of datagrams already lost.
    pub fn packets(&self) -> u64 {
        let queued: u64 = self.queues().map(|queue| queue.len()).sum();
        queued + self.input.held() + self.output.iter().count() as u64
    }

    /// Returns every packet in this machine or on its way to its cards.
    pub fn each_packet(&self) -> impl Iterator<Item = &Packet> {
        let queued = self.queues().flat_map(BoundedQueue::iter);
        let coming = self.cards.iter().flat_map(Card::coming);
        queued.chain(self.output.iter()).chain(coming)
    }

    /// Returns the number of requests read but not answered, of those that count until answered.
    pub fn owed(&self) -> u64 {
        let programs = self.programs.list.iter();
        let owed = programs.filter_map(|program| program.task.owed());
        let counted =
            owed.filter(|request| self.flows[request.flow].counts == DeliveryCount::Exchange);
        counted.count() as u64
    }

    /// Returns every queue of this machine. Packets that wait at the far end are not here yet.
    fn queues(&self) -> impl Iterator<Item = &BoundedQueue> {
        let cards = self.cards.iter().flat_map(Card::queues);
        let sockets = self.programs.list.iter().map(|program| &program.socket);
        cards.chain([&self.input.ip_queue]).chain(sockets)
    }
}
