//! The state machine: `sys/kern/kern_poll.c`, function by function.

use crate::controller::{Controller, ControllerState, Cycle, share_ns};
use crate::device::{Command, DeviceId, Devices, List, NS_PER_SECOND, Time};
use crate::knob::{Access, Errno, Knob, State};

/// `MIN_POLL_BURST_MAX`: the lower limit of `burst_max`.
const MIN_POLL_BURST_MAX: u32 = 10;
/// `MAX_POLL_BURST_MAX`: its upper limit; 1000 in FreeBSD 8.
const MAX_POLL_BURST_MAX: u32 = 20_000;
/// More pending ticks than this are given up.
const PENDING_POLLS_MAX: u32 = 100;
/// The part of a tick before its end in which not even unclaimed time is polled in: the kernel's receive threads have
/// their turn, and Linux takes a twentieth of the CPU from real-time threads.
const TURN_DIVISOR: u64 = 16;
/// Most ticks a second: a period of 1 us, the resolution of the original's clock.
pub const HZ_MAX: u32 = 1_000_000;

/// What a registration requires of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Registered {
    /// Whether the caller must wake the sleeping idle thread.
    pub wakes_idle_thread: bool,
}

/// The poller of one processor.
#[derive(Clone, Debug)]
pub struct Poller {
    hz: u32,
    state: State,
    list: List,
    memory: ControllerState,
    /// `prev_t`: the last tick that was not short.
    previous_tick: Time,
    /// The cycle under way, or the last one.
    cycle: Cycle,
    /// Set by [`Poller::charge`] for the next cycle.
    charge_ns: u64,
}

impl Poller {
    /// Creates a poller with the original's defaults and controller, whose clock ticks `hz` times a second, 1 to
    /// [`HZ_MAX`].
    ///
    /// # Errors
    /// `EINVAL` when `hz` is out of range.
    pub fn new(hz: u32) -> Result<Self, Errno> {
        if !(1..=HZ_MAX).contains(&hz) {
            return Err(Errno::Einval);
        }
        Ok(Poller {
            hz,
            state: State::INITIAL,
            list: List::new(),
            memory: ControllerState::Freebsd,
            previous_tick: Time::default(),
            cycle: Cycle {
                start: Time::default(),
                charge_ns: 0,
                share_start: Time::default(),
                share_ns: 0,
                hz,
            },
            charge_ns: 0,
        })
    }

    /// Ticks a second.
    pub fn hz(&self) -> u32 {
        self.hz
    }

    /// All knobs and counters.
    pub fn state(&self) -> State {
        self.state
    }

    /// The devices, in the order in which they are called.
    pub fn devices(&self) -> &[DeviceId] {
        self.list.as_slice()
    }

    /// How the burst is adapted.
    pub fn controller(&self) -> Controller {
        self.memory.controller()
    }

    /// Replaces the controller at once; the new one starts without anything learnt.
    pub fn set_controller(&mut self, controller: Controller) {
        self.memory = ControllerState::of(controller);
    }

    /// Reads a knob, as sysctl(8) does.
    pub fn read(&self, knob: Knob) -> u32 {
        self.state.read(knob)
    }

    /// Writes a knob, with the side effects of the original's handlers.
    ///
    /// # Errors
    /// `EPERM` for a read-only knob, `EINVAL` for a value out of range; nothing changes then.
    /// ```
    /// use nicpoll_core::{Errno, Knob, Poller};
    ///
    /// let mut poller = Poller::new(1_000)?;
    /// poller.write(Knob::BurstMax, 30)?;
    /// assert_eq!(poller.read(Knob::BurstMax), 30);
    /// // A burst for each device beyond the whole burst is refused, and so is a counter.
    /// assert_eq!(poller.write(Knob::EachBurst, 31), Err(Errno::Einval));
    /// assert_eq!(poller.write(Knob::LostPolls, 0), Err(Errno::Eperm));
    /// # Ok::<(), Errno>(())
    /// ```
    pub fn write(&mut self, knob: Knob, value: u32) -> Result<(), Errno> {
        if knob.access() == Access::ReadOnly {
            return Err(Errno::Eperm);
        }
        let state = &mut self.state;
        match knob {
            // poll_burst_max_sysctl
            Knob::BurstMax if (MIN_POLL_BURST_MAX..=MAX_POLL_BURST_MAX).contains(&value) => {
                state.burst_max = value;
                state.burst = state.burst.min(value);
                if state.each_burst > value {
                    // The original takes this minimum, not the new limit.
                    state.each_burst = MIN_POLL_BURST_MAX;
                }
            }
            // poll_each_burst_sysctl
            Knob::EachBurst if (1..=state.burst_max).contains(&value) => state.each_burst = value,
            Knob::IdlePoll => state.idle_poll = value,
            // user_frac_sysctl
            Knob::UserFrac if value <= 99 => state.user_frac = value,
            // reg_frac_sysctl
            Knob::RegFrac if (1..=self.hz).contains(&value) => {
                state.reg_frac = value;
                if state.reg_frac_count >= value {
                    state.reg_frac_count = 0;
                }
            }
            _ => return Err(Errno::Einval),
        }
        Ok(())
    }

    /// Adds a device at the end of the list (`ether_poll_register`). The caller then turns its interrupts off.
    ///
    /// # Errors
    /// `ENOMEM` when the list is full, `EEXIST` when it already holds the device.
    pub fn register(&mut self, id: DeviceId) -> Result<Registered, Errno> {
        self.list.register(id)?;
        self.state.handlers += 1;
        Ok(Registered {
            wakes_idle_thread: self.state.idlepoll_sleeping != 0,
        })
    }

    /// Removes a device; the last one in the list takes its place (`ether_poll_deregister`). The caller turns the
    /// device's interrupts on, even after an error, as em(4) does.
    ///
    /// # Errors
    /// `ENOENT` when the device is not in the list.
    pub fn deregister(&mut self, id: DeviceId) -> Result<(), Errno> {
        self.list.deregister(id)?;
        self.state.handlers -= 1;
        Ok(())
    }

    /// Ignores all ticks from now on (`poll_shutdown`).
    pub fn shutdown(&mut self) {
        self.state.shutting_down = true;
    }

    /// Handles a clock tick (`hardclock_device_poll`). Returns whether the network software interrupt must run
    /// ([`netisr_poll`](Self::netisr_poll), the protocols, then [`netisr_pollmore`](Self::netisr_pollmore)).
    pub fn hardclock(&mut self, now: Time) -> bool {
        let state = &mut self.state;
        if self.list.is_empty() || state.shutting_down {
            return false;
        }
        let delta_us = now.us_since(self.previous_tick);
        // Less than half a period. The original's product overflows an int; this one does not.
        if delta_us.saturating_mul(i64::from(self.hz)) < 500_000 {
            state.short_ticks = state.short_ticks.wrapping_add(1);
        } else {
            self.previous_tick = now;
        }
        if state.pending_polls > PENDING_POLLS_MAX {
            state.stalled = state.stalled.wrapping_add(1);
            state.pending_polls = 0;
            if !(state.pollmore_scheduled && self.memory.resumes_after_stall()) {
                state.phase = 0;
            }
        }
        let schedules = state.phase <= 2;
        if schedules {
            if state.phase != 0 {
                state.suspect = state.suspect.wrapping_add(1);
            }
            self.schedule(2);
        }
        let state = &mut self.state;
        if state.pending_polls > 0 {
            state.lost_polls = state.lost_polls.wrapping_add(1);
        }
        state.pending_polls += 1;
        schedules
    }

    /// Charges the next cycle for `ns` that networking used before it: the cycle counts as begun that much earlier.
    /// The original counts only the cycle itself.
    pub fn charge(&mut self, ns: u64) {
        self.charge_ns = ns;
    }

    /// Polls one chunk of the cycle: the first part of the network software interrupt (`netisr_poll`).
    pub fn netisr_poll<D: Devices + ?Sized>(&mut self, now: Time, devices: &mut D) {
        let state = &mut self.state;
        if self.list.is_empty() || !state.poll_scheduled {
            return;
        }
        state.poll_scheduled = false;
        let makes_up = state.phase == 6;
        state.phase = 3;
        let mut command = Command::PollOnly;
        if state.residual_burst == 0 {
            let charge_ns = core::mem::take(&mut self.charge_ns);
            let start = Time::from_ns(now.ns().saturating_sub(charge_ns));
            self.cycle = Cycle {
                start,
                charge_ns,
                share_start: if makes_up { self.previous_tick } else { start },
                share_ns: share_ns(self.hz, state.user_frac),
                hz: self.hz,
            };
            state.reg_frac_count += 1;
            if state.reg_frac_count == state.reg_frac {
                command = Command::PollAndCheckStatus;
                state.reg_frac_count = 0;
            }
            state.residual_burst = self.memory.begin(now, &self.cycle, state);
        }
        let count = state.residual_burst.min(state.each_burst);
        state.residual_burst -= count;
        let mut moved = 0;
        for id in self.list.as_slice() {
            moved = devices.poll(*id, command, count).max(moved);
        }
        self.memory.polled(now, count, moved);
        state.phase = 4;
    }

    /// Schedules the next chunk, or ends the cycle and adapts the burst: the last part of the network software
    /// interrupt, after the protocols (`netisr_pollmore`). Returns whether the interrupt must run again at once.
    pub fn netisr_pollmore(&mut self, now: Time) -> bool {
        let state = &mut self.state;
        if self.list.is_empty() || !state.pollmore_scheduled {
            return false;
        }
        state.pollmore_scheduled = false;
        state.phase = 5;
        state.residual_burst = self.memory.after_chunk(now, &self.cycle, state);
        if state.residual_burst > 0 {
            self.schedule(5);
            return true;
        }
        // The cycle's time includes the protocols and whatever else ran in between.
        state.burst = self.memory.after_cycle(now, &self.cycle, state);
        // A scheduled pollmore has a pending tick: nothing clears the one without the other.
        state.pending_polls = state.pending_polls.saturating_sub(1);
        if state.pending_polls == 0 {
            state.phase = 0;
            return false;
        }
        state.burst = self.memory.after_missed_tick(state);
        self.schedule(6);
        true
    }

    /// Runs one pass of the idle thread (`poll_idle`, `ether_poll`). Returns whether the thread yields and runs
    /// again; otherwise it sleeps for up to 3 s, or until a registration wakes it.
    pub fn idle_poll<D: Devices + ?Sized>(&mut self, devices: &mut D) -> bool {
        let is_polling = self.state.idle_poll != 0 && !self.list.is_empty();
        self.state.idlepoll_sleeping = u32::from(!is_polling);
        if is_polling {
            for id in self.list.as_slice() {
                devices.poll(*id, Command::PollOnly, self.state.each_burst);
            }
        }
        is_polling
    }

    /// Polls each device once more if the cycle is over and the controller takes time that user programs leave;
    /// `burst_max` limits the tick as a whole. Returns whether it polled. Call it while packets wait and nobody else
    /// wants the processor.
    pub fn poll_unclaimed<D: Devices + ?Sized>(&mut self, devices: &mut D) -> bool {
        let is_over = self.state.phase == 0 && !self.list.is_empty();
        let count = match is_over {
            true => self.memory.take_unclaimed(&self.state),
            false => 0,
        };
        if count > 0 {
            for id in self.list.as_slice() {
                devices.poll(*id, Command::PollOnly, count);
            }
        }
        count > 0
    }

    /// Returns until when [`poll_unclaimed`](Self::poll_unclaimed) may be called in the tick that ends at `next_tick`.
    pub fn unclaimed_until(&self, next_tick: Time) -> Time {
        let tick_ns = NS_PER_SECOND / u64::from(self.hz);
        Time::from_ns(next_tick.ns().saturating_sub(tick_ns / TURN_DIVISOR))
    }

    /// Schedules both parts of the software interrupt, and sets the phase.
    fn schedule(&mut self, phase: u32) {
        self.state.poll_scheduled = true;
        self.state.pollmore_scheduled = true;
        self.state.phase = phase;
    }
}
