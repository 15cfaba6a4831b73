//! A poller in a closed loop: a processor whose packets cost time, and a clock that ticks meanwhile.
// Each test program uses a part of this module.
#![allow(dead_code)]

use nicpoll_core::{Command, Controller, DeviceId, Knob, Poller, Time};

/// Ticks a second.
pub const HZ: u32 = 1000;
/// Time from tick to tick.
pub const TICK_NS: u64 = 1_000_000;
/// `burst_max`.
pub const BURST_MAX: u32 = 1000;

/// A cycle that has begun.
#[derive(Clone, Copy, Debug)]
pub struct Cycle {
    /// The tick in whose time it began, from 0.
    pub tick: u64,
    /// Its burst.
    pub burst: u32,
}

/// A host that always has packets, unless `arrivals` limits them. Only polling takes time.
#[derive(Clone, Debug)]
pub struct Host {
    /// The poller.
    pub poller: Poller,
    /// Fixed cost of a cycle.
    pub cycle_ns: u64,
    /// Cost of each packet of a device.
    pub packet_ns: u64,
    /// Random part of a call's cost, plus or minus, drawn for each call.
    pub noise_percent: u64,
    /// Packets that arrive in a tick for all devices together; without it packets always wait.
    pub arrivals: Option<fn(u64) -> u32>,
    /// Packets of `arrivals` that wait.
    waiting: u32,
    random: u64,
    /// The last tick that found an earlier one pending.
    pub late_tick: u64,
    /// All cycles so far.
    pub cycles: Vec<Cycle>,
    /// Time that polling used, tick by tick.
    used_ns: Vec<u64>,
    now_ns: u64,
    next_tick_ns: u64,
}

impl Host {
    /// A host with one device and a `burst_max` of [`BURST_MAX`].
    pub fn new(controller: Controller, user_frac: u32, packet_ns: u64) -> Self {
        Self::with_devices(1, controller, user_frac, packet_ns)
    }

    /// A host with several devices.
    pub fn with_devices(
        devices: u32,
        controller: Controller,
        user_frac: u32,
        packet_ns: u64,
    ) -> Self {
        let mut poller = Poller::new(HZ).unwrap();
        for device in 0..devices {
            let _ = poller.register(DeviceId(device)).unwrap();
        }
        poller.write(Knob::BurstMax, BURST_MAX).unwrap();
        poller.write(Knob::UserFrac, user_frac).unwrap();
        poller.set_controller(controller);
        Host {
            poller,
            cycle_ns: 10_000,
            packet_ns,
            noise_percent: 0,
            arrivals: None,
            waiting: 0,
            random: 1,
            late_tick: 0,
            cycles: Vec::new(),
            used_ns: Vec::new(),
            now_ns: 0,
            next_tick_ns: TICK_NS,
        }
    }

    /// Runs for some ticks, and until the chunk then under way ends.
    pub fn run(&mut self, ticks: u64) {
        let end_ns = self.now_ns + ticks * TICK_NS;
        while self.now_ns < end_ns {
            self.step();
        }
    }

    /// Runs to the end of the next cycle to begin.
    pub fn run_a_cycle(&mut self) {
        let before = self.cycles.len();
        while self.cycles.len() == before || self.poller.state().poll_scheduled {
            self.step();
        }
    }

    /// Waits for the next tick, or polls a chunk.
    fn step(&mut self) {
        let state = self.poller.state();
        if !state.poll_scheduled {
            self.pass(self.next_tick_ns - self.now_ns, false);
            return;
        }
        let is_first_chunk = state.residual_burst == 0;
        if is_first_chunk {
            self.cycles.push(Cycle {
                tick: self.now_ns / TICK_NS,
                burst: state.burst,
            });
        }
        let mut polled_ns = if is_first_chunk { self.cycle_ns } else { 0 };
        let (packet_ns, noise, random) = (self.packet_ns, self.noise_percent, &mut self.random);
        let (is_fed, waiting) = (self.arrivals.is_some(), &mut self.waiting);
        let mut devices = |_, _: Command, count: u32| {
            let moved = if is_fed { count.min(*waiting) } else { count };
            *waiting -= if is_fed { moved } else { 0 };
            *random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let percent = 100 - noise + (*random >> 33) % (2 * noise + 1);
            polled_ns += u64::from(moved) * packet_ns * percent / 100;
            moved
        };
        let now = Time::from_ns(self.now_ns);
        self.poller.netisr_poll(now, &mut devices);
        self.pass(polled_ns, true);
        self.poller.netisr_pollmore(Time::from_ns(self.now_ns));
    }

    /// Runs something else for `ns`, while scheduled work waits.
    pub fn pause(&mut self, ns: u64) {
        self.pass(ns, false);
    }

    /// Advances the time; the clock interrupts whatever runs.
    fn pass(&mut self, ns: u64, is_used: bool) {
        let end_ns = self.now_ns + ns;
        while self.now_ns < end_ns {
            let until_ns = end_ns.min(self.next_tick_ns);
            let tick = (self.now_ns / TICK_NS) as usize;
            self.used_ns.resize(tick + 1, 0);
            self.used_ns[tick] += if is_used { until_ns - self.now_ns } else { 0 };
            self.now_ns = until_ns;
            if self.now_ns == self.next_tick_ns {
                self.poller.hardclock(Time::from_ns(self.now_ns));
                let state = self.poller.state();
                // Work under way or waiting is late. A tick for which nothing is to run is lost.
                if state.pending_polls > 1 && (state.poll_scheduled || state.pollmore_scheduled) {
                    self.late_tick = self.now_ns / TICK_NS;
                }
                let arrivals = self.arrivals.map(|come| come(self.now_ns / TICK_NS));
                self.waiting += arrivals.unwrap_or(0);
                self.next_tick_ns += TICK_NS;
            }
        }
    }

    /// The current tick.
    pub fn tick(&self) -> u64 {
        self.now_ns / TICK_NS
    }

    /// Polling's share of each whole tick from `from_tick` on.
    pub fn shares(&self, from_tick: u64) -> Vec<f64> {
        let whole = self.used_ns.iter().take(self.tick() as usize);
        let from = whole.skip(from_tick as usize);
        from.map(|used_ns| *used_ns as f64 / TICK_NS as f64)
            .collect()
    }
}
