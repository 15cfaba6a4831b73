//! What a kernel is around the polling core: it brings the ticks, runs the software interrupt, and sleeps.
//!
//! A kernel's clock interrupts whatever runs. Here one thread does everything, so it reads the clock between two chunks and
//! hands the core each tick that has come meanwhile, with the time at which it was due. A tick that comes during work thus
//! counts as a lost poll, and more than a hundred as a stall, as in the original.
//!
//! The core hears of every tick once, in order. Under `polling` no arrival wakes the thread but the first one after a lull:
//! then it sleeps over ticks, and tells the core of each when it is awake. A turn ends soon, whatever the load, so requests
//! are heard. A new way to learn of packets is a row of [`Drive`] and a turn.

pub mod charge;
pub mod clock;
pub mod idle;

use std::time::Duration;

use nicpoll_core::{
    Command, Controller, Device, DeviceId, Errno, HZ_MAX, Knob, NS_PER_SECOND, POLL_LIST_LEN, Pass,
    Poller, StormDetector, Time,
};
use nicpoll_model::engine::{SinkCounts, SinkEvents};
use nicpoll_sys::link::LinkState;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::device::port::{PacketInput, Port};
use crate::error::EngineError;
use crate::names::Named;
use crate::runner::charge::{Charges, CpuAccount};
use crate::runner::clock::{now_ns, own_cpu_ns, sleep_until};
use crate::runner::idle::{IdlePolling, Rest, Scheduling};

/// A way to learn of packets, chosen by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drive {
    /// At each tick, as FreeBSD's polling does. Only the first arrival after a lull wakes the program.
    #[default]
    Polling,
    /// An arrival wakes the program, which then reads until nothing is left.
    Interrupt,
    /// The program asks without a pause, and takes a whole CPU.
    BusyPoll,
    /// `Interrupt` while packets are rare, `Polling` while they are not.
    Adaptive,
}

/// Each with its name, and how its thread is best scheduled. Only one that leaves others their share may go before them.
const DRIVES: [(Drive, &str, Scheduling); 4] = [
    (Drive::Polling, "polling", Scheduling::Fifo),
    (Drive::Interrupt, "interrupt", Scheduling::Fair),
    (Drive::BusyPoll, "busy-poll", Scheduling::Fair),
    (Drive::Adaptive, "adaptive", Scheduling::Fair),
];

impl Drive {
    /// Whether the core's poller says when to poll, at least at times.
    pub fn polls(self) -> bool {
        matches!(self, Drive::Polling | Drive::Adaptive)
    }

    /// Whether the kernel's NAPI is best run in the program's own polls, which never pause.
    pub fn busy_polls(self) -> bool {
        self == Drive::BusyPoll
    }

    /// How its thread is best scheduled.
    pub fn scheduling(self) -> Scheduling {
        let row = DRIVES.iter().find(|(drive, ..)| *drive == self);
        row.expect("every discipline has its row").2
    }
}

impl Named for Drive {
    fn all() -> impl Iterator<Item = (Self, &'static str)> {
        DRIVES.into_iter().map(|(drive, name, _)| (drive, name))
    }
}

/// Frames of one call when no poller says how many: NAPI's.
const BUDGET: u32 = 64;
/// The longest sleep: requests are heard by then, and the status is checked.
const ATTENTION: Duration = Duration::from_millis(20);
/// Ticks that came longer ago are not made up for: the machine was suspended.
const CATCH_UP_NS: u64 = 10_000_000_000;

/// A lull begins when no frame came for so long, and for so many ticks. The thread sleeps for so long then, at most.
const LULL_NS: u64 = 20_000_000;
const QUIET_TICKS: u64 = 32;
const REST_NS: u64 = 10_000_000;

/// A cycle that takes more than this part of a tick is a long one.
const LONG_CYCLE_DIVISOR: u64 = 8;

/// Unless they are held back, the kernel's receive threads get at least this part of the network's part of a tick. The
/// next cycle is charged for what they used.
const KERNEL_LEAST_DIVISOR: u64 = 4;

/// How long the engine leaves its CPU to see who wants it, and what one who does has of that at least.
const LOOK_AWAY_NS: u64 = 30_000;
const WANTED_NS: i64 = 8_000;

/// How a runner runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunnerSettings {
    /// How it learns of packets.
    pub drive: Drive,
    /// Ticks a second.
    pub hz: u32,
    /// How the burst is adapted.
    pub controller: Controller,
    /// Passes back to back after which an interrupt is throttled; 0: never.
    pub storm_threshold: u32,
}

/// Ports with the poller that polls them.
pub struct PortRunner<I> {
    poller: Poller,
    ports: Vec<Port<I>>,
    settings: RunnerSettings,
    tallies: Tallies,
    period_ns: u64,
    next_tick_ns: u64,
    next_status_ns: u64,
    /// The software interrupt is to run.
    is_scheduled: bool,
    /// By port: whether its interrupt handler is to run again.
    pending: Vec<bool>,
    storms: Vec<StormDetector>,
    cycle_began_ns: u64,
    /// The packets that were counted when the last cycle began.
    packets_before_cycle: u64,
    chunk_ended_ns: u64,
    /// When frames were last seen.
    busy_ns: u64,
    /// How long the last tick before a lull took, and what it was charged; `None` while there is none.
    empty_tick: Option<(u64, u64)>,
    charges: Charges,
    idle_polling: IdlePolling,
    /// Made when idle polling is turned on.
    rest: Option<Rest>,
    /// Whether nobody else wanted the CPU, in the tick that ends then.
    unclaimed: Option<(u64, bool)>,
    /// What others had of the CPU when that was last looked at.
    others_ns: i64,
    scheduling: Scheduling,
    adapt: Adapt,
    /// Packets and ticks that `adapt` has seen.
    observed: (u64, u64),
}

impl<I: PacketInput> PortRunner<I> {
    /// A runner for these ports.
    ///
    /// # Errors
    /// When `hz` is out of range or there are more ports than a poller takes.
    pub fn new(settings: RunnerSettings, ports: Vec<Port<I>>) -> Result<Self, EngineError> {
        let (hz, queues) = (settings.hz, ports.len());
        debug_assert_eq!(HZ_MAX, 1_000_000);
        let mut poller = Poller::new(hz).map_err(|errno| {
            EngineError::Usage(format!(
                "{hz} ticks a second: {errno}: 1 to 1000000 are possible"
            ))
        })?;
        poller.set_controller(settings.controller);
        if queues > POLL_LIST_LEN {
            let errno = Errno::Enomem;
            return Err(EngineError::Usage(format!(
                "{queues} queues: {errno}: 128 are the most"
            )));
        }
        let period_ns = NS_PER_SECOND / u64::from(hz);
        Ok(PortRunner {
            poller,
            pending: vec![false; queues],
            storms: vec![StormDetector::new(settings.storm_threshold, hz); queues],
            ports,
            settings,
            tallies: Tallies::default(),
            period_ns,
            next_tick_ns: 0,
            next_status_ns: 0,
            is_scheduled: false,
            cycle_began_ns: 0,
            packets_before_cycle: 0,
            chunk_ended_ns: 0,
            busy_ns: 0,
            empty_tick: None,
            charges: Charges::at(hz),
            idle_polling: IdlePolling::ShareCheck,
            rest: None,
            unclaimed: None,
            others_ns: 0,
            scheduling: Scheduling::Fair,
            adapt: Adapt::default(),
            observed: (0, 0),
        })
    }

    /// Has what the kernel takes of the runner's CPU be charged to polling.
    #[must_use]
    pub fn charged(mut self, account: Option<Box<dyn CpuAccount>>) -> Self {
        self.charges.account = account;
        self
    }

    /// How idle polling leaves ordinary programs their share, once the runner has its thread.
    pub fn idle_polling(&self) -> IdlePolling {
        self.idle_polling
    }

    /// How it runs.
    pub fn settings(&self) -> RunnerSettings {
        self.settings
    }

    /// The poller, with its knobs and counters.
    pub fn poller(&self) -> &Poller {
        &self.poller
    }

    /// The same, to write knobs.
    pub fn poller_mut(&mut self) -> &mut Poller {
        &mut self.poller
    }

    /// The ports.
    pub fn ports(&self) -> &[Port<I>] {
        &self.ports
    }

    /// Its ports, when it has ended.
    pub(crate) fn into_ports(self) -> Vec<Port<I>> {
        self.ports
    }

    /// Checks the status of every port.
    pub(crate) fn check_ports(&mut self) {
        self.ports.iter_mut().for_each(Port::check);
    }

    /// What was counted.
    pub fn tallies(&self) -> Tallies {
        self.tallies
    }

    /// Takes note of the CPU time of the calling thread, which is the runner's, and of the one that helps it.
    pub(crate) fn note_cpu_time(&mut self) {
        self.tallies.counts.cpu_ns = own_cpu_ns() + self.rest.as_ref().map_or(0, Rest::cpu_ns);
        self.tallies.counts.kernel_ns = self.charges.kernel_charged_ns();
    }

    /// Begins on the calling thread, which is scheduled like that: the clock ticks from now on.
    pub(crate) fn begin(&mut self, scheduling: Scheduling) {
        self.scheduling = scheduling;
        self.idle_polling = IdlePolling::here(scheduling);
        let now_ns = now_ns();
        self.next_tick_ns = now_ns + self.period_ns;
        (self.next_status_ns, self.busy_ns) = (now_ns, now_ns);
        self.set_polling(self.settings.drive == Drive::Polling);
        if self.settings.drive.busy_polls() {
            for port in &mut self.ports {
                port.queue.prefer_busy_polling();
            }
        }
    }

    /// Does what is due, or sleeps for a while.
    pub(crate) fn turn(&mut self) {
        let is_gone = |port: &Port<I>| port.watch.state == LinkState::Gone;
        if self.ports.iter().all(is_gone) {
            // There is nothing to poll, so no poll is lost and no burst adapted.
            self.pass_ticks(now_ns());
            for index in 0..self.ports.len() {
                self.poll_port(index, Command::PollAndCheckStatus, 0);
            }
            return sleep_until(now_ns() + ATTENTION.as_nanos() as u64);
        }
        match self.settings.drive {
            Drive::Polling => self.polling_turn(),
            Drive::Interrupt => self.interrupt_turn(),
            Drive::BusyPoll => self.busy_poll_turn(),
            Drive::Adaptive => self.adaptive_turn(),
        }
    }

    /// `polling`: ticks that have come, then a chunk of the cycle or a sleep until the next tick.
    fn polling_turn(&mut self) {
        if self.is_scheduled {
            // Since the last chunk there were requests at most: the clock need not be read again.
            return self.chunk(self.chunk_ended_ns);
        }
        let now_ns = now_ns();
        if self.bring_ticks(now_ns) {
            self.chunk(now_ns);
        } else if !self.let_kernel_receive(now_ns)
            && !self.poll_when_idle(now_ns)
            && !self.poll_unclaimed(now_ns)
            && !self.sleep_over_ticks(now_ns)
        {
            sleep_until(self.next_tick_ns);
        }
    }

    /// Sleeps over ticks in a lull, until the last of them or the first arrival. Returns whether there is one.
    fn sleep_over_ticks(&mut self, now_ns: u64) -> bool {
        let ticks = REST_NS / self.period_ns;
        let quiet_ns = now_ns.saturating_sub(self.busy_ns);
        let cycle_ns = self.chunk_ended_ns - self.cycle_began_ns;
        if ticks < 2
            || self.poller.read(Knob::IdlePoll) != 0
            || quiet_ns < LULL_NS.max(QUIET_TICKS * self.period_ns)
            || cycle_ns > self.period_ns / LONG_CYCLE_DIVISOR
        {
            return false;
        }
        let until_ns = self.next_tick_ns + (ticks - 1) * self.period_ns;
        self.arm(true);
        // Whatever arrives is brought by the kernel's threads, which nothing holds back meanwhile.
        self.charges.let_kernel_run(true);
        self.await_arrivals(Duration::from_nanos(until_ns - now_ns));
        self.charges.let_kernel_run(false);
        self.arm(false);
        let woken_ns = clock::now_ns();
        // One after a sleep takes longer.
        let empty_tick = *self
            .empty_tick
            .get_or_insert((cycle_ns, self.charges.last_ns()));
        self.run_empty_ticks(
            until_ns.min(woken_ns.saturating_sub(self.period_ns / 2)),
            empty_tick,
        );
        if woken_ns < until_ns {
            (self.busy_ns, self.empty_tick) = (woken_ns, None);
        }
        true
    }

    /// Tells the core of the ticks before that time that were slept over: nothing waited then. Each takes so long, and is
    /// charged so much. The interface's status is checked once if one of them is to.
    fn run_empty_ticks(&mut self, before_ns: u64, (cycle_ns, charge_ns): (u64, u64)) {
        let (mut slept_over, mut command) = (0, Command::PollOnly);
        let mut nothing = |_: DeviceId, asked: Command, _: u32| {
            if asked == Command::PollAndCheckStatus {
                command = asked;
            }
            0
        };
        while self.next_tick_ns < before_ns {
            let mut began = Time::from_ns(self.next_tick_ns);
            let ended = Time::from_ns(self.next_tick_ns + cycle_ns);
            slept_over += 1;
            if !self.bring_tick() {
                continue;
            }
            self.poller.charge(charge_ns);
            self.poller.netisr_poll(began, &mut nothing);
            while self.poller.netisr_pollmore(ended) {
                began = ended;
                self.poller.netisr_poll(began, &mut nothing);
            }
        }
        self.charges.pass(slept_over);
        if command == Command::PollAndCheckStatus {
            self.check_ports();
        }
    }

    /// Sleeps while the kernel's receive threads on this CPU go before ordinary programs: in what the cycle left of the
    /// network's part of the tick, or in the little beyond it that brings the next cycle its packets. Returns whether
    /// there was anything left.
    ///
    /// While more packets wait than a cycle gets to, those threads do not run: what they brought in addition would find
    /// the ports' memory full before long, and their time would be charged to the cycles that are to empty it. What
    /// stays in the card, and is lost there, costs nothing. While fewer wait they run in each tick, or the card's ring
    /// would have to hold what comes in two.
    fn let_kernel_receive(&mut self, now_ns: u64) -> bool {
        let share_ns = self.share_ns();
        let tick_ns = self.next_tick_ns - self.period_ns;
        let Some(share_end_ns) = self.charges.kernel_until_ns(tick_ns, share_ns) else {
            return false;
        };
        let taken = self.tallies.counts.received_packets - self.packets_before_cycle;
        if waiting(&self.ports) > taken {
            return false;
        }
        let least_end_ns = self.chunk_ended_ns + share_ns / KERNEL_LEAST_DIVISOR;
        let until_ns = share_end_ns.max(least_end_ns).min(self.next_tick_ns);
        if now_ns >= until_ns {
            return false;
        }
        self.charges.let_kernel_run(true);
        sleep_until(until_ns);
        self.charges.let_kernel_run(false);
        true
    }

    /// The network's part of a tick.
    fn share_ns(&self) -> u64 {
        self.period_ns - self.user_ns()
    }

    /// The part of a tick that is user programs'.
    fn user_ns(&self) -> u64 {
        self.period_ns * u64::from(self.poller.read(Knob::UserFrac)) / 100
    }

    /// `interrupt`: a pass of each handler that has something to do, or a sleep until one has.
    fn interrupt_turn(&mut self) {
        let now_ns = now_ns();
        self.pass_ticks(now_ns);
        if !self.pending.contains(&true) {
            self.await_arrivals(ATTENTION);
        }
        let command = self.command(now_ns);
        let mut is_throttled = false;
        for index in 0..self.ports.len() {
            if !std::mem::take(&mut self.pending[index]) {
                if command == Command::PollAndCheckStatus {
                    self.poll_port(index, command, 0);
                }
                continue;
            }
            self.poll_port(index, command, BUDGET);
            let storm = &mut self.storms[index];
            if matches!(storm.pass(self.tallies.events.ticks), Pass::Throttle { .. }) {
                is_throttled = true;
            }
            self.pending[index] = self.ports[index].queue.waiting() > 0;
            if !self.pending[index] {
                self.storms[index].sleep();
            }
        }
        if is_throttled {
            self.tallies.counts.throttled_passes += 1;
            sleep_until(self.next_tick_ns.max(now_ns));
        }
    }

    /// `busy-poll`: every port, again and again.
    fn busy_poll_turn(&mut self) {
        let now_ns = now_ns();
        self.pass_ticks(now_ns);
        let command = self.command(now_ns);
        for index in 0..self.ports.len() {
            self.poll_port(index, command, BUDGET);
        }
    }

    /// `adaptive`: one of the first two, by the packets of a tick.
    fn adaptive_turn(&mut self) {
        if self.adapt.is_polling() {
            self.polling_turn();
        } else {
            self.interrupt_turn();
        }
        // A cycle under way is finished first: its burst is the poller's.
        if self.is_scheduled {
            return;
        }
        let (packets, ticks) = (
            self.tallies.counts.received_packets,
            self.tallies.events.ticks,
        );
        let (packets_before, ticks_before) = self.observed;
        if ticks == ticks_before {
            return;
        }
        self.observed = (packets, ticks);
        if self
            .adapt
            .observe(ticks - ticks_before, packets - packets_before)
        {
            self.tallies.events.discipline_switches += 1;
            self.set_polling(self.adapt.is_polling());
        }
    }

    /// Registers all ports and turns their interrupts off, or the other way round.
    fn set_polling(&mut self, polling: bool) {
        for index in 0..self.ports.len() {
            let id = DeviceId(index as u32);
            if polling {
                // There are no more ports than places, and none is registered twice.
                let _ = self.poller.register(id);
            } else {
                let _ = self.poller.deregister(id);
            }
        }
        self.arm(!polling);
        // What was used before is nobody's cycle's.
        self.charges.end(true);
    }

    /// Turns the interrupts of all ports on or off.
    fn arm(&mut self, on: bool) {
        self.ports
            .iter_mut()
            .for_each(|port| port.set_interrupts(on));
        // An interrupt that came before is one that may be missed; a level that stands is seen again.
        self.pending.fill(false);
    }

    /// Tells the core of each tick up to `now_ns`. Returns whether the software interrupt is to run.
    fn bring_ticks(&mut self, now_ns: u64) -> bool {
        let mut schedules = false;
        self.next_tick_ns = self.next_tick_ns.max(now_ns.saturating_sub(CATCH_UP_NS));
        while self.next_tick_ns <= now_ns {
            schedules |= self.bring_tick();
        }
        schedules
    }

    fn bring_tick(&mut self) -> bool {
        let due = Time::from_ns(self.next_tick_ns);
        self.next_tick_ns += self.period_ns;
        self.tallies.events.ticks += 1;
        self.poller.hardclock(due)
    }

    /// Counts the ticks up to `now_ns`, which nobody waits for.
    fn pass_ticks(&mut self, now_ns: u64) {
        if self.next_tick_ns <= now_ns {
            let ticks = (now_ns - self.next_tick_ns) / self.period_ns + 1;
            self.tallies.events.ticks += ticks;
            self.next_tick_ns += ticks * self.period_ns;
        }
    }

    /// The software interrupt: one chunk, which includes what the protocols do with it. A cycle is charged for what was
    /// used of the CPU since the last one.
    fn chunk(&mut self, began_ns: u64) {
        if self.poller.read(Knob::ResidualBurst) == 0 {
            self.cycle_began_ns = began_ns;
            self.packets_before_cycle = self.tallies.counts.received_packets;
            let charge_ns = self.charges.begin(self.share_ns());
            self.poller.charge(charge_ns);
        }
        self.poller.netisr_poll(
            Time::from_ns(began_ns),
            &mut counted(&mut self.ports, &mut self.tallies),
        );
        let now_ns = now_ns();
        self.chunk_ended_ns = now_ns;
        if self.tallies.counts.received_packets != self.packets_before_cycle {
            (self.busy_ns, self.empty_tick) = (now_ns, None);
        }
        let is_scheduled = self.bring_ticks(now_ns);
        let runs_again = self.poller.netisr_pollmore(Time::from_ns(now_ns));
        if self.poller.read(Knob::ResidualBurst) == 0 {
            let cycle_ns = now_ns - self.cycle_began_ns;
            self.charges
                .end(cycle_ns > self.period_ns / LONG_CYCLE_DIVISOR);
        }
        self.is_scheduled = is_scheduled || runs_again;
    }

    /// The idle thread: it polls until the next tick with what nobody else wants, or, where that cannot be had, in the
    /// part of the tick that is not user programs'. Returns whether it polled.
    fn poll_when_idle(&mut self, now_ns: u64) -> bool {
        if self.poller.read(Knob::IdlePoll) == 0 {
            // Nothing is polled; it notes that it sleeps.
            return self
                .poller
                .idle_poll(&mut |_: DeviceId, _: Command, _: u32| 0);
        }
        let until_ns = self.idle_until_ns();
        if now_ns >= until_ns {
            return false;
        }
        if self.scheduling == Scheduling::Fifo && self.rest.is_none() {
            // Without another thread it keeps to its part of the tick.
            self.rest = Rest::of_caller(self.scheduling.policy()).ok();
        }
        let mut devices = counted(&mut self.ports, &mut self.tallies);
        let poller = &mut self.poller;
        let Some(rest) = &self.rest else {
            return self.charges.leave_out(|| poller.idle_poll(&mut devices));
        };
        let mut poll = || while poller.idle_poll(&mut devices) && clock::now_ns() < until_ns {};
        self.charges.leave_out(|| rest.until(until_ns, &mut poll));
        true
    }

    /// When idle polling ends: at the next tick, or where user programs' part of this one begins.
    fn idle_until_ns(&self) -> u64 {
        let left_ns = match self.idle_polling {
            IdlePolling::IdlePriority if self.rest.is_some() => 0,
            _ => self.user_ns() + self.charges.last_ns(),
        };
        self.next_tick_ns.saturating_sub(left_ns)
    }

    /// Polls what waits after the cycle in the part of the tick that user programs leave, but for its end. Returns whether
    /// it polled. That is not charged: nobody else wanted it.
    fn poll_unclaimed(&mut self, now_ns: u64) -> bool {
        let next_tick = Time::from_ns(self.next_tick_ns);
        let until_ns = self.poller.unclaimed_until(next_tick).ns();
        if self.settings.controller != Controller::Share
            || now_ns + 2 * LOOK_AWAY_NS > until_ns
            || waiting(&self.ports) == 0
            || !self.is_unclaimed()
        {
            return false;
        }
        let mut has_polled = false;
        let (poller, ports, tallies) = (&mut self.poller, &mut self.ports, &mut self.tallies);
        self.charges.leave_out(|| {
            while clock::now_ns() < until_ns
                && waiting(ports) > 0
                && poller.poll_unclaimed(&mut counted(ports, tallies))
            {
                has_polled = true;
            }
        });
        has_polled
    }

    /// Whether nobody else wants the CPU in this tick: others had nothing of it since the last look, not even at the end of
    /// the tick, and nothing while the engine leaves it for a moment. One who comes later waits for the next tick at most.
    fn is_unclaimed(&mut self) -> bool {
        if let Some((tick_ns, is_unclaimed)) = self.unclaimed
            && tick_ns == self.next_tick_ns
        {
            return is_unclaimed;
        }
        let is_unclaimed = self.others_have_nothing() && {
            sleep_until(now_ns() + LOOK_AWAY_NS);
            self.others_have_nothing()
        };
        self.unclaimed = Some((self.next_tick_ns, is_unclaimed));
        is_unclaimed
    }

    /// Whether others had nothing of the CPU since the last call; false where nobody sees that.
    fn others_have_nothing(&mut self) -> bool {
        let Some(now_ns) = self.charges.others_ns() else {
            return false;
        };
        let had_ns = now_ns - std::mem::replace(&mut self.others_ns, now_ns);
        had_ns < WANTED_NS
    }

    fn poll_port(&mut self, index: usize, command: Command, count: u32) {
        counted(&mut self.ports, &mut self.tallies)(DeviceId(index as u32), command, count);
    }

    /// A poll, with a check of status when one is due.
    fn command(&mut self, now_ns: u64) -> Command {
        if now_ns < self.next_status_ns {
            return Command::PollOnly;
        }
        self.next_status_ns = now_ns + ATTENTION.as_nanos() as u64;
        Command::PollAndCheckStatus
    }

    /// Sleeps until frames wait at a port whose interrupts are on, or it is time to look at something else.
    fn await_arrivals(&mut self, most: Duration) {
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: most.as_nanos() as _,
        };
        let armed = self.ports.iter().enumerate();
        let (indices, mut fds): (Vec<_>, Vec<_>) = armed
            .filter_map(|(index, port)| {
                let fd = port.wake_up()?;
                Some((index, PollFd::from_borrowed_fd(fd, PollFlags::IN)))
            })
            .unzip();
        // A signal or a want of memory ends the sleep like its end does.
        let _ = poll(&mut fds, Some(&timeout));
        let mut is_woken = false;
        for (index, fd) in indices.into_iter().zip(&fds) {
            let events = fd.revents();
            if events.contains(PollFlags::IN) {
                self.pending[index] = true;
                is_woken = true;
            }
            if events.intersects(PollFlags::ERR | PollFlags::HUP) {
                // The next check of status says what it is.
                self.next_status_ns = 0;
            }
        }
        self.tallies.counts.wake_up_events += u64::from(is_woken);
    }
}

/// Frames that wait at these ports.
fn waiting<I>(ports: &[Port<I>]) -> u64 {
    let waiting = ports.iter().map(|port| u64::from(port.queue.waiting()));
    waiting.sum()
}

/// Ports as the poller asks them, with what they answer counted.
fn counted<I: PacketInput>(
    ports: &mut [Port<I>],
    tallies: &mut Tallies,
) -> impl FnMut(DeviceId, Command, u32) -> u32 {
    move |id, command, count| {
        let moved = ports[id.0 as usize].poll(command, count);
        if count > 0 {
            tallies.polled(moved);
        }
        moved
    }
}

/// What a runner counted of its own work since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tallies {
    /// Its polls, what they brought, and CPU time as of the last request.
    pub counts: SinkCounts,
    /// Its ticks, and how often it changed between interrupts and polling.
    pub events: SinkEvents,
}

impl Tallies {
    /// A port was asked, and moved so many packets.
    pub(crate) fn polled(&mut self, work: u32) {
        self.counts.polls += 1;
        self.counts.empty_polls += u64::from(work == 0);
        self.counts.received_packets += u64::from(work);
    }
}

/// Packets a tick from which on a tick is busy.
const BUSY_PACKETS: u64 = 4;
/// Busy ticks in a row before polling begins.
const BUSY_TICKS: u64 = 3;
/// Ticks that are looked at together before polling ends: fewer packets than ticks end it.
const LULL_TICKS: u64 = 50;

/// What the rule remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Adapt {
    is_polling: bool,
    ticks: u64,
    packets: u64,
}

impl Adapt {
    /// Whether it polls now.
    pub(crate) fn is_polling(&self) -> bool {
        self.is_polling
    }

    /// So many packets came in the `ticks` since the last call. Returns whether the discipline changes.
    pub(crate) fn observe(&mut self, ticks: u64, packets: u64) -> bool {
        self.ticks += ticks;
        self.packets += packets;
        let is_busy = packets >= ticks * BUSY_PACKETS;
        let changes = match self.is_polling {
            true if self.ticks < LULL_TICKS => return false,
            true => self.packets < self.ticks,
            false if is_busy && self.ticks < BUSY_TICKS => return false,
            false => is_busy,
        };
        self.is_polling ^= changes;
        (self.ticks, self.packets) = (0, 0);
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicpoll_core::State;

    const HZ: u32 = 1000;
    const TICKS: u64 = 70;
    const PERIOD_NS: u64 = 1_000_000;

    /// What the core says after so many ticks without a frame, each run for itself.
    fn ticked(mut poller: Poller, (cycle_ns, charge_ns): (u64, u64)) -> State {
        for tick in 1..=TICKS {
            let due = Time::from_ns(tick * PERIOD_NS);
            let ended = Time::from_ns(tick * PERIOD_NS + cycle_ns);
            assert!(poller.hardclock(due));
            poller.charge(charge_ns);
            poller.netisr_poll(due, &mut |_: DeviceId, _: Command, _: u32| 0);
            while poller.netisr_pollmore(ended) {
                poller.netisr_poll(ended, &mut |_: DeviceId, _: Command, _: u32| 0);
            }
        }
        poller.state()
    }

    #[test]
    fn ticks_that_were_slept_over_leave_the_core_as_if_each_had_been_run() {
        // A cycle within its share, and one that its charge takes beyond it.
        for (controller, user_frac, charge_ns, changes) in [
            (Controller::Freebsd, 50, 30_000, i64::from(TICKS as u32)),
            (Controller::Freebsd, 90, 90_000, -4),
            (Controller::Share, 50, 30_000, 145),
        ] {
            let cycle_ns = 20_000;
            let settings = RunnerSettings {
                drive: Drive::Polling,
                hz: HZ,
                controller,
                storm_threshold: 0,
            };
            let mut runner = PortRunner::<fn(&[u8])>::new(settings, Vec::new()).unwrap();
            runner.poller.write(Knob::UserFrac, user_frac).unwrap();
            let _ = runner.poller.register(DeviceId(0)).unwrap();
            let (before, expected) = (
                runner.poller.state(),
                ticked(runner.poller.clone(), (cycle_ns, charge_ns)),
            );
            runner.next_tick_ns = PERIOD_NS;
            runner.run_empty_ticks(TICKS * PERIOD_NS + 1, (cycle_ns, charge_ns));
            assert_eq!(runner.poller.state(), expected);
            assert_eq!(runner.next_tick_ns, (TICKS + 1) * PERIOD_NS);
            assert_eq!(runner.tallies.events.ticks, TICKS);
            let grown = i64::from(expected.burst) - i64::from(before.burst);
            assert_eq!((grown, expected.lost_polls), (changes, 0), "{controller:?}");
        }
    }

    #[test]
    fn a_load_that_lasts_begins_polling_and_a_lull_that_lasts_ends_it() {
        let mut adapt = Adapt::default();
        // Two busy ticks, a quiet one: a burst.
        for packets in [9, 9, 3] {
            assert!(!adapt.observe(1, packets));
        }
        assert!(!adapt.observe(1, 4) && !adapt.observe(1, 4));
        assert!(adapt.observe(1, 4) && adapt.is_polling());
        // A packet a tick is enough to stay.
        assert!((0..500).all(|_| !adapt.observe(1, 1)));
        let lull = (0..500).position(|_| adapt.observe(1, 0));
        assert_eq!(lull, Some(LULL_TICKS as usize - 1));
        assert!(!adapt.is_polling());
    }

    #[test]
    fn several_ticks_at_once_count_by_their_mean() {
        let mut adapt = Adapt::default();
        assert!(!adapt.observe(20, 79));
        assert!(adapt.observe(20, 80));
    }
}
