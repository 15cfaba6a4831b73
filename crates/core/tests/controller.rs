//! Both controllers in a closed loop: a processor whose packets cost time, and a clock that ticks
//! meanwhile.

use nicpoll_core::{Command, Controller, DeviceId, Knob, Poller, Time};

const HZ: u32 = 1000;
const TICK_NS: u64 = 1_000_000;

/// A host that always has packets. Only what the poller does takes time.
struct Host {
    poller: Poller,
    now_ns: u64,
    next_tick_ns: u64,
    /// What a cycle costs, and what each packet does.
    cycle_ns: u64,
    packet_ns: u64,
    /// Time used by polling since the last look.
    used_ns: u64,
    /// Bursts of the cycles since the last look.
    bursts: Vec<u32>,
}

impl Host {
    fn new(controller: Controller, user_frac: u32, packet_ns: u64) -> Self {
        let mut poller = Poller::new(HZ).unwrap();
        let _ = poller.register(DeviceId(0)).unwrap();
        poller.write(Knob::BurstMax, 1000).unwrap();
        poller.write(Knob::UserFrac, user_frac).unwrap();
        poller.set_controller(controller);
        Host {
            poller,
            now_ns: 0,
            next_tick_ns: TICK_NS,
            cycle_ns: 10_000,
            packet_ns,
            used_ns: 0,
            bursts: Vec::new(),
        }
    }

    fn work(&mut self, ns: u64) {
        self.used_ns += ns;
        self.pass(ns);
    }

    /// Time passes; the clock interrupts whatever runs.
    fn pass(&mut self, ns: u64) {
        self.now_ns += ns;
        while self.next_tick_ns <= self.now_ns {
            self.poller.hardclock(Time::from_ns(self.next_tick_ns));
            self.next_tick_ns += TICK_NS;
        }
    }

    /// Runs for some ticks; returns the share of the time that polling used.
    fn run(&mut self, ticks: u64) -> f64 {
        let begun_ns = self.now_ns;
        (self.used_ns, self.bursts) = (0, Vec::new());
        while self.now_ns < begun_ns + ticks * TICK_NS {
            let state = self.poller.state();
            if !state.poll_scheduled {
                self.pass(self.next_tick_ns - self.now_ns);
                continue;
            }
            let is_first_chunk = state.residual_burst == 0;
            if is_first_chunk {
                self.bursts.push(state.burst);
            }
            let mut packets = 0;
            let mut devices = |_, _: Command, count: u32| packets += u64::from(count);
            let now = Time::from_ns(self.now_ns);
            self.poller.netisr_poll(now, &mut devices);
            let cycle_ns = if is_first_chunk { self.cycle_ns } else { 0 };
            self.work(cycle_ns + packets * self.packet_ns);
            self.poller.netisr_pollmore(Time::from_ns(self.now_ns));
        }
        self.used_ns as f64 / (self.now_ns - begun_ns) as f64
    }

    fn aim(&self) -> f64 {
        1.0 - f64::from(self.poller.state().user_frac) / 100.0
    }

    fn tolerance(&self) -> f64 {
        f64::max(0.02, self.packet_ns as f64 / TICK_NS as f64) + 1e-9
    }
}

#[test]
fn share_keeps_the_share_within_20_ticks_of_any_step_and_holds_still() {
    for user_frac in [1, 10, 50, 80, 99] {
        for packet_ns in [600, 2_500, 12_000, 70_000] {
            let mut host = Host::new(Controller::Share, user_frac, packet_ns);
            for step_ns in [packet_ns, packet_ns * 8, packet_ns / 4, packet_ns * 3] {
                host.packet_ns = step_ns;
                host.run(20);
                for _ in 0..5 {
                    let share = host.run(20);
                    let case = format!("user_frac {user_frac}, {step_ns} ns a packet");
                    let burst = host.poller.state().burst;
                    let is_at_limit = burst == 1 || burst == 1000;
                    assert!(
                        (share - host.aim()).abs() <= host.tolerance() || is_at_limit,
                        "{case}: {share}"
                    );
                    for pair in host.bursts.windows(2) {
                        let moved = pair[0].abs_diff(pair[1]);
                        assert!(moved <= 1.max(pair[0] / 10), "{case}: {:?}", host.bursts);
                    }
                }
            }
        }
    }
}

#[test]
fn no_cycle_of_share_outlasts_its_share_by_more_than_a_chunk() {
    let mut host = Host::new(Controller::Share, 50, 500);
    host.run(50);
    assert!(host.poller.state().burst > 500);
    // Every packet costs 40 times as much from now on.
    host.packet_ns = 20_000;
    host.run(5);
    assert!(host.poller.state().lost_polls == 0, "{:?}", host.bursts);
}

#[test]
fn freebsd_falls_by_one_an_overloaded_cycle() {
    let mut host = Host::new(Controller::Freebsd, 50, 500);
    host.run(400);
    let high = host.poller.state().burst;
    assert!(high > 300);
    // A little over the share, no tick missed.
    host.packet_ns = 1_600;
    host.run(10);
    assert!(
        host.bursts.windows(2).all(|pair| pair[1] + 1 == pair[0]),
        "{:?}",
        host.bursts
    );
}
