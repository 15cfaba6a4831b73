//! Costs of preemption and wake-up; ticks of slow clocks.

use super::*;

const REFILL_NS: u64 = 1000;
const SWITCH_NS: u64 = 100;

fn cpu(soft_is_thread: bool) -> Cpu {
    let host = host::Cpu {
        context_switch_ns: SWITCH_NS,
        refill_ns: REFILL_NS,
        ..host::Cpu::default()
    };
    Cpu::new(&host, soft_is_thread)
}

/// A processor whose program has 500 ns of its step left.
fn with_program(soft_is_thread: bool) -> Cpu {
    let mut cpu = cpu(soft_is_thread);
    cpu.start(Level::Program, CpuStep::Use, 700);
    assert_eq!(cpu.dispatch(), Some((Level::Program, 700 + SWITCH_NS)));
    cpu.run(Level::Program, 200 + SWITCH_NS);
    cpu
}

/// Runs a step of a level to its end.
fn comes_and_goes(cpu: &mut Cpu, level: Level) {
    cpu.start(level, CpuStep::Look, 50);
    let (running, ns) = cpu.dispatch().unwrap();
    assert_eq!(running, level);
    cpu.run(level, ns);
    cpu.stop(level);
}

#[test]
fn a_chain_of_interrupts_costs_the_thread_below_one_refill() {
    let mut cpu = with_program(true);
    comes_and_goes(&mut cpu, Level::Hard);
    // Netisr has work before the interrupt thread is done.
    cpu.start(Level::InterruptThread, CpuStep::Look, 50);
    let (level, ns) = cpu.dispatch().unwrap();
    assert_eq!(level, Level::InterruptThread);
    cpu.start(Level::Soft, CpuStep::Protocol, 50);
    cpu.run(level, ns);
    cpu.stop(level);
    // The program has not continued yet: no refill.
    assert_eq!(cpu.dispatch(), Some((Level::Soft, 50 + SWITCH_NS)));
    cpu.run(Level::Soft, 50 + SWITCH_NS);
    cpu.stop(Level::Soft);
    let left_ns = 500 + SWITCH_NS + REFILL_NS;
    assert_eq!(cpu.dispatch(), Some((Level::Program, left_ns)));
    // Asked again, it is the same.
    assert_eq!(cpu.dispatch(), Some((Level::Program, left_ns)));
    cpu.run(Level::Program, left_ns);
    assert_eq!(
        cpu.times.of(TimeState::User),
        700 + 2 * SWITCH_NS + REFILL_NS
    );
}

#[test]
fn a_hard_interrupt_alone_takes_no_caches() {
    let mut cpu = with_program(true);
    comes_and_goes(&mut cpu, Level::Hard);
    assert_eq!(cpu.dispatch(), Some((Level::Program, 500)));
}

#[test]
fn a_softirq_takes_the_caches_of_the_thread_that_it_borrows() {
    let mut cpu = with_program(false);
    comes_and_goes(&mut cpu, Level::Soft);
    // There is no switch.
    assert_eq!(cpu.dispatch(), Some((Level::Program, 500 + REFILL_NS)));
}

#[test]
fn a_refill_cut_short_is_not_paid_twice() {
    let mut cpu = with_program(false);
    for _ in 0..10 {
        comes_and_goes(&mut cpu, Level::Soft);
        let (level, left_ns) = cpu.dispatch().unwrap();
        assert_eq!((level, left_ns), (Level::Program, 500 + REFILL_NS));
        cpu.run(level, 300);
    }
    // Into the work this time: that is not done again.
    cpu.run(Level::Program, 800);
    assert_eq!(cpu.dispatch(), Some((Level::Program, 400)));
    comes_and_goes(&mut cpu, Level::Soft);
    assert_eq!(cpu.dispatch(), Some((Level::Program, 400 + REFILL_NS)));
}

#[test]
fn who_is_done_or_idle_has_nothing_to_refill() {
    let mut cpu = with_program(true);
    cpu.stop(Level::Program);
    cpu.start(Level::Idle, CpuStep::Look, 50);
    comes_and_goes(&mut cpu, Level::Soft);
    assert_eq!(cpu.dispatch(), Some((Level::Idle, 50)));
    comes_and_goes(&mut cpu, Level::Soft);
    assert_eq!(cpu.dispatch(), Some((Level::Idle, 50)));
    cpu.start(Level::Program, CpuStep::Use, 700);
    assert_eq!(cpu.dispatch(), Some((Level::Program, 700 + SWITCH_NS)));
}

/// A program that sleeps and wakes, with another thread or a softirq in between.
#[test]
fn a_thread_that_wakes_after_others_ran_is_cold() {
    const WAKE_NS: u64 = 3000;
    let host = host::Cpu {
        context_switch_ns: SWITCH_NS,
        wake_refill_ns: WAKE_NS,
        ..host::Cpu::default()
    };
    let mut cpu = Cpu::new(&host, false);
    let wakes = |cpu: &mut Cpu| {
        cpu.start(Level::Program, CpuStep::Use, 700);
        let (level, ns) = cpu.dispatch().unwrap();
        assert_eq!(level, Level::Program);
        // Asked again, it is the same.
        assert_eq!(cpu.dispatch(), Some((level, ns)));
        cpu.run(level, ns);
        cpu.stop(level);
        assert_eq!(cpu.dispatch(), None);
        ns
    };
    assert_eq!(wakes(&mut cpu), 700 + SWITCH_NS);
    // Nobody else ran, or a hard interrupt only.
    assert_eq!(wakes(&mut cpu), 700 + SWITCH_NS);
    comes_and_goes(&mut cpu, Level::Hard);
    assert_eq!(wakes(&mut cpu), 700 + SWITCH_NS);
    comes_and_goes(&mut cpu, Level::Soft);
    assert_eq!(wakes(&mut cpu), 700 + SWITCH_NS + WAKE_NS);
    // The softirq is cold too; the program has run since.
    cpu.start(Level::Soft, CpuStep::Look, 50);
    assert_eq!(cpu.dispatch(), Some((Level::Soft, 50 + WAKE_NS)));
}

fn ticks(hz: u64, slow_ppm: u64, phase_ns: u64) -> impl FnMut() -> u64 {
    let mut host = HostModel::default();
    host.cpu.hz = hz;
    host.cpu.tick_slow_ppm = slow_ppm;
    let mut clock = Clock::new(&host, phase_ns);
    move || clock.next_ns()
}

#[test]
fn a_slow_clock_loses_what_it_should() {
    let mut right = ticks(1000, 0, 0);
    let mut slow = ticks(1000, 60, 0);
    assert_eq!((right(), slow()), (1_000_000, 1_000_060));
    // A whole tick after 1 ms / 60 PPM = 16.7 s.
    let (right, slow) = (1..16_668).map(|_| (right(), slow())).last().unwrap();
    assert!(slow - right >= 1_000_000 && slow - right < 1_000_120);
}

#[test]
fn fractions_of_a_nanosecond_are_kept() {
    let mut clock = ticks(3, 0, 5);
    let ticks = [clock(), clock(), clock()];
    assert_eq!(ticks, [333_333_338, 666_666_671, 1_000_000_005]);
}
