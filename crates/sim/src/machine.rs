//! The simulated machine: its clock, its events, and who does what when.
//!
//! Virtual time goes from one moment to the next at which something can change: a step of the processor
//! ends, or one of a few timers is due (there is one for each source of events, so that no list of them
//! has to be kept in order). At the same moment the step's end comes first, then the timers in their
//! order.
//!
//! What must hold: a packet is in exactly one queue, or its end is counted. The state follows from host,
//! plan and seed alone.

mod card;
mod figures;
mod hard;
mod interrupt_thread;
mod napi;
mod netisr;
mod program;
mod way;

use nicpoll_model::sim::{SimFigures, SimPlace};

use crate::cpu::{Cpu, Level, Step};
use crate::discipline::Kind;
use crate::host::Host;
use crate::line::Wire;
use crate::plan::{Plan, PlanError};
use crate::queue::{Packet, Queue};
use crate::source::Source;
use crate::tally::Tally;
use card::Card;
use interrupt_thread::InterruptThread;
use napi::Napi;
use netisr::Netisr;
use program::Program;
use way::Costs;

/// Never.
const NEVER: u64 = u64::MAX;
const NS_PER_SECOND: u64 = 1_000_000_000;

/// What can happen, the earlier ones first when it is at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// The counted time begins or ends.
    Edge,
    /// The clock ticks.
    Tick,
    /// The other host hands over a packet.
    Offer,
    /// A frame has reached the card.
    Arrival,
    /// The card may interrupt again.
    Moderation,
    /// The deferral timer.
    Deferral,
    /// A frame has left the card.
    Sent,
}

const TIMERS: [Timer; 7] = [
    Timer::Edge,
    Timer::Tick,
    Timer::Offer,
    Timer::Arrival,
    Timer::Moderation,
    Timer::Deferral,
    Timer::Sent,
];

/// How the host learns of packets, with what that remembers.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a run has one, and asks it at every step"
)]
enum Receive {
    /// FreeBSD: an interrupt thread, netisr, and the poller if it polls.
    Threads(InterruptThread, Netisr),
    /// Linux.
    Napi(Napi),
}

#[derive(Debug)]
struct Machine {
    host: Host,
    costs: Costs,
    now_ns: u64,
    timers: [u64; TIMERS.len()],
    /// Ticks so far.
    tick: u64,
    cpu: Cpu,
    /// Interrupts that wait, a bit for each.
    hard_pending: u8,
    source: Option<Source>,
    wire: Wire,
    /// Packets at the far end; the first one is on the line.
    far: Queue,
    card: Card,
    ip_queue: Queue,
    socket: Queue,
    receive: Receive,
    /// Packets that each level may still take in its batch.
    left: [u64; 7],
    program: Program,
    /// Interrupts whose background work waits.
    background_events: u64,
    tally: Tally,
    in_flight_at_start: u64,
}

/// Runs a plan on a host.
///
/// # Errors
/// Why the host cannot run it; see [`Plan::check`].
pub fn simulate(host: &Host, plan: &Plan) -> Result<SimFigures, PlanError> {
    plan.check(host)?;
    let mut machine = Machine::new(plan.discipline.applied_to(host), plan)?;
    machine.boot();
    machine.run_until(plan.warmup_ns);
    let start = machine.begin_counting();
    let slices = machine.run_slices(plan, &start);
    machine.run_until(plan.warmup_ns.saturating_add(plan.duration_ns));
    Ok(machine.figures(plan, &start, slices))
}

impl Machine {
    fn new(host: Host, plan: &Plan) -> Result<Self, PlanError> {
        let wire = plan.wire(&host)?;
        let receive = match &plan.discipline.kind {
            Kind::Napi(options) => Receive::Napi(Napi::new(*options, &host)),
            Kind::Interrupt | Kind::Polling { .. } => Receive::Threads(
                InterruptThread::new(&host),
                Netisr::new(plan.poller(&host)?),
            ),
        };
        let is_napi = matches!(receive, Receive::Napi(_));
        let socket_packets =
            host.socket.buffer_bytes / crate::plan::packet_bytes(&host, &plan.workload);
        Ok(Machine {
            costs: Costs::new(&host, &plan.workload, is_napi),
            now_ns: 0,
            timers: [NEVER; TIMERS.len()],
            tick: 0,
            cpu: Cpu::new(host.cpu.context_switch_ns, !is_napi),
            hard_pending: 0,
            source: Source::new(&plan.workload, wire.frame_ns(), plan.seed),
            wire,
            far: Queue::new(host.link.queue_packets),
            card: Card::new(&host),
            ip_queue: Queue::new(host.network.ip_queue_packets),
            socket: Queue::new(socket_packets),
            receive,
            left: [0; 7],
            program: Program::new(&plan.workload, &plan.discipline.kind),
            background_events: 0,
            tally: Tally::default(),
            in_flight_at_start: 0,
            host,
        })
    }

    fn boot(&mut self) {
        self.timers[Timer::Tick as usize] = NS_PER_SECOND / self.host.cpu.hz;
        self.timers[Timer::Offer as usize] = self.source.as_ref().map_or(NEVER, Source::next_ns);
        let is_polled = matches!(&self.receive, Receive::Threads(_, netisr) if netisr.is_polling());
        self.card.has_interrupts = !is_polled;
        self.start_idle_poll();
        self.start_program();
    }

    /// Lets time pass until `edge_ns`. What falls on the edge itself is left for later.
    fn run_until(&mut self, edge_ns: u64) {
        self.timers[Timer::Edge as usize] = edge_ns;
        loop {
            let running = self.cpu.dispatch();
            let (due_ns, timer) = self.next_timer();
            match running {
                Some((level, remaining_ns))
                    if self.now_ns.saturating_add(remaining_ns) <= due_ns =>
                {
                    self.cpu.run(level, remaining_ns);
                    self.now_ns += remaining_ns;
                    if self.now_ns == edge_ns {
                        // The edge comes before the end of the step.
                        return;
                    }
                    self.step_done(level, self.cpu.step(level));
                    continue;
                }
                Some((level, _)) => self.cpu.run(level, due_ns - self.now_ns),
                None => self.cpu.idle(due_ns - self.now_ns),
            }
            self.now_ns = due_ns;
            match timer {
                Timer::Edge => return,
                Timer::Tick => {
                    self.timers[Timer::Tick as usize] += NS_PER_SECOND / self.host.cpu.hz;
                    self.raise(hard::CLOCK);
                }
                Timer::Offer => self.offer(),
                Timer::Arrival => self.arrive(),
                Timer::Moderation => self.interrupt_now(),
                Timer::Deferral => {
                    self.timers[Timer::Deferral as usize] = NEVER;
                    self.raise(hard::DEFERRAL);
                }
                Timer::Sent => self.frame_sent(),
            }
        }
    }

    fn next_timer(&self) -> (u64, Timer) {
        let mut first = 0;
        for timer in 1..TIMERS.len() {
            if self.timers[timer] < self.timers[first] {
                first = timer;
            }
        }
        (self.timers[first], TIMERS[first])
    }

    fn step_done(&mut self, level: Level, step: Step) {
        match step {
            Step::Tick | Step::CardInterrupt | Step::Timer => self.interrupt_done(step),
            Step::Background => self.background_done(),
            Step::Read | Step::Use | Step::Call | Step::Transmit => self.program_done(step),
            Step::Look | Step::Reclaim { .. } | Step::Receive | Step::Protocol | Step::Wake => {
                match level {
                    Level::InterruptThread => self.interrupt_thread_done(step),
                    Level::Program => self.busy_poll_done(step),
                    Level::Idle => self.idle_poll_done(step),
                    _ if matches!(self.receive, Receive::Napi(_)) => self.softirq_done(level, step),
                    _ => self.netisr_done(step),
                }
            }
        }
    }

    /// The other host hands over its next packet.
    fn offer(&mut self) {
        let Some(source) = &mut self.source else {
            return;
        };
        let packet = Packet {
            sent_ns: self.now_ns,
            arrived_ns: self.now_ns,
        };
        source.advance();
        self.timers[Timer::Offer as usize] = source.next_ns();
        self.tally.offered += 1;
        if !self.far.push(packet) {
            self.tally.lose(SimPlace::FarQueue);
        } else if self.far.len() == 1 {
            self.timers[Timer::Arrival as usize] = self.wire.carry(self.now_ns);
        }
    }

    /// A frame has reached the card.
    fn arrive(&mut self) {
        let packet = self.far.pop();
        self.timers[Timer::Arrival as usize] = if self.far.is_empty() {
            NEVER
        } else {
            self.wire.carry(self.now_ns)
        };
        let Some(mut packet) = packet else {
            return;
        };
        packet.arrived_ns = self.now_ns;
        self.tally.line_frames += 1;
        if self.card.rx_ring.push(packet) {
            self.request_interrupt();
        } else {
            self.tally.lose(SimPlace::RxRing);
        }
    }

    /// Every queue with a limit.
    fn queues(&self) -> [(&'static str, &Queue); 6] {
        [
            ("queue at the far end", &self.far),
            ("receive ring", &self.card.rx_ring),
            ("IP input queue", &self.ip_queue),
            ("socket buffer", &self.socket),
            ("send queue", &self.card.send_queue),
            ("transmit ring", &self.card.tx_ring),
        ]
    }

    /// Packets that are somewhere between their start and their end.
    fn in_flight(&self) -> u64 {
        self.queues()
            .iter()
            .map(|(_, queue)| queue.len())
            .sum::<u64>()
            + self.program.in_hand()
    }
}
