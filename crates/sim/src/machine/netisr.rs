//! FreeBSD's network software interrupt: what the poller asks for, then the IP queue, then the
//! poller's account of it (`netisr_poll`, `ipintr`, `netisr_pollmore`). The poller is that of the core.

use std::collections::VecDeque;

use nicpoll_core::{Command, DeviceId, Knob, Poller, Time};

use super::freebsd::Freebsd;
use super::{Link, Machine};
use crate::cpu::{Level, State, Step};

const LEVEL: Level = Level::Soft;
const STATE: State = State::SoftInterrupt;

#[derive(Clone, Debug)]
pub(super) struct Netisr {
    poller: Option<Poller>,
    /// What the poller has asked the cards for, and what the idle thread has.
    asked: VecDeque<Asked>,
    asked_idle: VecDeque<Asked>,
}

impl Netisr {
    pub(super) fn new(poller: Option<Poller>) -> Self {
        Netisr {
            poller,
            asked: VecDeque::new(),
            asked_idle: VecDeque::new(),
        }
    }

    pub(super) fn poller(&self) -> Option<&Poller> {
        self.poller.as_ref()
    }
}

/// What the poller asks a card for. The packets are moved afterwards, one by one, since each takes
/// its time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) card: usize,
    pub(super) command: Command,
    pub(super) count: u32,
}

impl<L: Link> Machine<Freebsd, L> {
    fn poller_mut(&mut self) -> Option<&mut Poller> {
        self.discipline.netisr.poller.as_mut()
    }

    pub(super) fn tick_netisr(&mut self) {
        let now = Time::from_ns(self.now_ns);
        if self
            .poller_mut()
            .is_some_and(|poller| poller.hardclock(now))
        {
            self.wake_netisr();
        }
    }

    /// There is something for netisr to do.
    pub(super) fn wake_netisr(&mut self) {
        if !self.cpu.has_work(LEVEL) {
            self.begin_netisr();
        }
    }

    fn begin_netisr(&mut self) {
        let now = Time::from_ns(self.now_ns);
        let mut cycle = None;
        let netisr = &mut self.discipline.netisr;
        if let Some(poller) = &mut netisr.poller {
            let state = poller.state();
            if state.poll_scheduled && state.residual_burst == 0 {
                cycle = Some((state.burst, state.burst_max));
            }
            let (asked, cards) = (&mut netisr.asked, &self.cards);
            poller.netisr_poll(now, &mut |id: DeviceId, command, count| {
                let card = id.0 as usize;
                asked.push_back(Asked {
                    card,
                    command,
                    count,
                });
                // Those that come while the others are taken are few.
                cards[card].rx_ring().len().min(count.into()) as u32
            });
        }
        if let Some((burst, limit)) = cycle {
            self.tally.cycles.begin(burst, limit);
        }
        self.next_look(self.host.cpu.netisr_ns);
    }

    /// Looks at the next card that the poller asked, or goes on to the protocols. A round's own work comes with
    /// its first look.
    fn next_look(&mut self, round_ns: u64) {
        if let Some(asked) = self.discipline.netisr.asked.pop_front() {
            return self.look_at_card(LEVEL, asked, round_ns);
        }
        self.cpu.end_batch(LEVEL);
        self.next_protocol();
    }

    pub(super) fn look_at_card(&mut self, level: Level, asked: Asked, round_ns: u64) {
        let card = &self.host.card;
        let status_ns = match asked.command {
            Command::PollOnly => 0,
            Command::PollAndCheckStatus => card.status_ns,
        };
        self.tally.cycles.asked += u64::from(asked.count);
        self.cpu.begin_batch(level, asked.card, asked.count.into());
        let state = if level == LEVEL { STATE } else { State::System };
        let cost_ns = round_ns + card.poll_ns + status_ns;
        self.cpu.start(level, Step::Look, cost_ns, state);
    }

    pub(super) fn netisr_done(&mut self, step: Step) {
        match step {
            Step::Look if self.reclaim(LEVEL, STATE) => return,
            Step::Reclaim { done } => self.reclaimed(LEVEL, done),
            Step::Receive => self.take_from_card(LEVEL),
            Step::Protocol => {
                self.take_from_ip_queue(LEVEL);
                return self.next_protocol();
            }
            Step::Transmit => self.output_done(LEVEL),
            _ => {}
        }
        if !self.receive_next(LEVEL, STATE) {
            self.next_look(0);
        }
    }

    fn next_protocol(&mut self) {
        if self.output_next(LEVEL, STATE) {
            return;
        }
        match self.next_protocol_ns() {
            Some(cost_ns) => self.cpu.start(LEVEL, Step::Protocol, cost_ns, STATE),
            None => self.end_netisr(),
        }
    }

    fn end_netisr(&mut self) {
        let now = Time::from_ns(self.now_ns);
        let runs_again = self.poller_mut().is_some_and(|poller| {
            // A tick may have come after the last look at the poller.
            poller.netisr_pollmore(now) || poller.state().poll_scheduled
        });
        if runs_again {
            self.begin_netisr();
        } else {
            self.cpu.stop(LEVEL);
        }
    }

    /// Begins idle polling, which then never ends.
    pub(super) fn start_idle_poll(&mut self) {
        let is_on = self
            .poller_mut()
            .is_some_and(|poller| poller.read(Knob::IdlePoll) != 0);
        if is_on {
            self.next_idle_poll();
        }
    }

    fn next_idle_poll(&mut self) {
        let mut asked = None;
        let netisr = &mut self.discipline.netisr;
        if let Some(poller) = &mut netisr.poller {
            let all = &mut netisr.asked_idle;
            if all.is_empty() {
                poller.idle_poll(&mut |id: DeviceId, command, count| {
                    let card = id.0 as usize;
                    all.push_back(Asked {
                        card,
                        command,
                        count,
                    });
                    // Nothing is learnt from what the idle thread does.
                    0
                });
            }
            asked = all.pop_front();
        }
        if let Some(asked) = asked {
            self.look_at_card(Level::Idle, asked, 0);
        }
    }

    pub(super) fn idle_poll_done(&mut self, step: Step) {
        match step {
            Step::Look if self.reclaim(Level::Idle, State::System) => return,
            Step::Reclaim { done } => self.reclaimed(Level::Idle, done),
            Step::Receive => self.take_from_card(Level::Idle),
            Step::Transmit => self.output_done(Level::Idle),
            _ => {}
        }
        if !self.receive_next(Level::Idle, State::System) {
            self.next_idle_poll();
        }
    }
}
