//! Checks the exact account of CPU time and that of `/proc/stat` against a load that measures itself.
//!
//! The load is busy for a quarter of each clock tick's period, in step with the tick, which misleads `/proc/stat`. It
//! is pinned to one core and bounded in time. The verdict is inconclusive if the hypervisor or other work kept the load
//! from running. Pulses of datagrams over loopback show CPU time by the phase of a pulse; nothing leaves loopback.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::Duration;

use nicpoll_model::{
    CPU_TRUTH_SCHEMA, CpuTruth, EXACT_POINTS_MAX, EventCost, FoldedPulses, TICK_SAMPLED_POINTS_MIN,
    TruthPhase, TruthVerdict,
};
use nicpoll_observe::clock::{Spun, monotonic_ns, next_phase, sleep_until, spin_until, tick_ns};
use nicpoll_observe::{CpuSample, CpuTimes, ExactCpu, ExactCpuOptions, FoldOptions, start_timing};
use nicpoll_sys::schedule;
use rustix::process::setpriority_process;
use rustix::thread::gettid;

use crate::error::{InspectError, NamedStep};
use crate::interrupts::exact_cpu;

/// The highest priority of ordinary threads, as a nice value.
const NICENESS: i32 = -20;
/// Number of phases tried: with pulses of a quarter period, one of them coincides with the tick.
const PHASES: u64 = 4;
/// Length of one phase: all phases together stay below 3 s.
const PHASE_RUN: Duration = Duration::from_millis(700);
/// How long cores are observed to find the least busy one.
const LOOK_AROUND: Duration = Duration::from_millis(100);
/// How long events are timed.
const COST_RUN: Duration = Duration::from_millis(300);
/// Runs of all phases while others disturb, or the account seems wrong. A wrong account is wrong each time, unlike one
/// hit by an unreported pause of the hypervisor.
const TRIES: u32 = 3;
/// The load notices time taken by the hypervisor, events do not. More than this share is half the tolerance.
const STEAL_MAX: f64 = 0.005;
/// When others interrupt the load, or run before it wakes, some microseconds are in no event and count as the load's.
/// Above this share of others, they may add up to a percentage point.
const OTHERS_MAX: f64 = 0.1;
/// While another core is busier than this, interrupt entry and exit and pauses of the hypervisor may add up to a
/// percentage point: cores share parts of the processor.
const ELSEWHERE_MAX: f64 = 0.2;
/// A load with less of its quarter than this was kept from running.
const OWN_MIN: f64 = 0.15;

/// How long pulses are sent.
const PULSES_RUN: Duration = Duration::from_secs(2);
/// Datagrams per pulse.
const DATAGRAMS: u32 = 32;
const PAYLOAD_BYTES: usize = 64;
/// Divisor of the period: the reader works this part of it on each pulse.
const WORK_FRACTION: u64 = 4;
/// Silence after which the reader takes the sender to have ended.
const SILENCE: Duration = Duration::from_millis(200);

/// Compares both accounts of CPU time with a load that measures itself. With `fold`, also folds the CPU time of pulses
/// of datagrams at that period.
///
/// # Errors
/// When the exact account cannot be kept, or the load cannot run.
pub fn cpu_truth(fold: Option<Duration>) -> Result<CpuTruth, InspectError> {
    let options = ExactCpuOptions {
        has_threads: true,
        ..ExactCpuOptions::default()
    };
    let mut exact = exact_cpu(&options).map_err(InspectError::no_exact_account)?;
    let core = least_busy_core(&exact)?;
    let tick_ns = tick_ns();
    let mut phases = Vec::new();
    let mut verdict = (TruthVerdict::Inconclusive, String::new());
    let mut tries = 0;
    while verdict.0 != TruthVerdict::Holds && tries < TRIES {
        tries += 1;
        phases.clear();
        for index in 0..PHASES {
            let pulses = Pulses {
                core,
                tick_ns,
                phase_ns: index * tick_ns / PHASES,
            };
            phases.push(run_phase(&exact, pulses)?);
        }
        verdict = judge(&phases);
    }
    let cost = cost(&mut exact, core, tick_ns)?;
    drop(exact);
    let fold = fold.map(fold_pulses).transpose()?;
    let (verdict, reason) = verdict;
    Ok(CpuTruth {
        schema: String::from(CPU_TRUTH_SCHEMA),
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        core,
        tick_ns,
        pulse_ns: tick_ns / PHASES,
        phases,
        tries,
        cost,
        fold,
        verdict,
        reason,
    })
}

/// Raises the calling thread's priority, so its pulses keep their phase.
fn run_before_others() {
    // Without the privilege its priority stays ordinary, which may suffice.
    let _ = setpriority_process(Some(gettid()), NICENESS);
}

fn not_measured(why: impl Into<String>) -> InspectError {
    InspectError::Failed(why.into())
}

/// Joins a thread of the measurement and returns its result.
fn joined<T>(thread: thread::JoinHandle<Result<T, InspectError>>) -> Result<T, InspectError> {
    let panicked = |_| not_measured("a thread of the measurement panicked");
    thread.join().map_err(panicked)?
}

fn least_busy_core(exact: &ExactCpu) -> Result<u32, InspectError> {
    let allowed = schedule::allowed_cpus().doing("asking which CPUs may be used")?;
    let before = exact.read()?;
    thread::sleep(LOOK_AROUND);
    let times = exact.read()?.since(&before, &allowed);
    let least = times.iter().min_by_key(|core| core.busy_ns());
    least
        .map(|core| core.core)
        .ok_or_else(|| not_measured(format!("no CPU had an event within {LOOK_AROUND:?}")))
}

/// When the load is busy, and on which core.
#[derive(Clone, Copy, Debug)]
struct Pulses {
    core: u32,
    tick_ns: u64,
    phase_ns: u64,
}

impl Pulses {
    /// Runs the load on a thread of its own. Returns the thread's id and how it spent its time.
    fn run(self, duration: Duration) -> Result<(u32, Spun), InspectError> {
        let load = thread::spawn(move || -> Result<(u32, Spun), InspectError> {
            schedule::pin(self.core).doing("pinning the load")?;
            run_before_others();
            let mut spun = Spun::default();
            let end = monotonic_ns() + duration.as_nanos() as u64;
            while monotonic_ns() < end {
                let begin = next_phase(monotonic_ns(), self.tick_ns, self.phase_ns);
                sleep_until(begin).doing("sleeping until a pulse")?;
                spun = spun.plus(spin_until(begin + self.tick_ns / PHASES));
            }
            Ok((gettid().as_raw_nonzero().get() as u32, spun))
        });
        joined(load)
    }
}

fn run_phase(exact: &ExactCpu, pulses: Pulses) -> Result<TruthPhase, InspectError> {
    let stat = || CpuSample::now().doing("reading /proc/stat");
    let (exact_before, stat_before, from) = (exact.read()?, stat()?, monotonic_ns());
    let (tid, spun) = pulses.run(PHASE_RUN)?;
    let (exact_after, stat_after, until) = (exact.read()?, stat()?, monotonic_ns());
    let threads = exact.threads()?;
    let load = threads.iter().find(|thread| thread.tid == tid);
    let load = load.map(|thread| thread.times).unwrap_or_default();
    let core = [pulses.core];
    let all = exact_after.since(&exact_before, &exact_after.cores());
    let elsewhere = all.iter().filter(|one| one.core != pulses.core);
    let elsewhere_ns = elsewhere.map(CpuTimes::busy_ns).max().unwrap_or(0);
    let [times] = exact_after.since(&exact_before, &core)[..] else {
        return Err(not_measured(format!("CPU {} has no account", pulses.core)));
    };
    let sampled = stat_after.since(&stat_before, &core).states;
    let sampled = sampled
        .first()
        .ok_or_else(|| not_measured(format!("/proc/stat does not show CPU {}", pulses.core)))?;
    let ratio = |ns: u64| ns as f64 / (until - from) as f64;
    Ok(TruthPhase {
        phase_ns: pulses.phase_ns,
        wall_ns: until - from,
        own_ratio: ratio(spun.own_ns),
        exact_ratio: ratio(load.user_ns + load.nice_ns),
        exact_system_ratio: ratio(load.system_ns),
        exact_core_ratio: ratio(times.busy_ns()),
        tick_sampled_core_ratio: sampled.busy(),
        steal_ratio: sampled.steal_ratio,
        residual_ratio: ratio(times.residual_ns.unsigned_abs()),
        elsewhere_ratio: ratio(elsewhere_ns),
    })
}

fn judge(phases: &[TruthPhase]) -> (TruthVerdict, String) {
    let exact = greatest(phases, |phase| phase.exact_error_points().abs());
    let sampled = greatest(phases, |phase| phase.tick_sampled_error_points().abs());
    let own = phases.iter().map(|phase| phase.own_ratio);
    let own = own.fold(f64::INFINITY, f64::min);
    let quieter = "try again when the machine is quieter";
    if own < OWN_MIN {
        let reason = format!(
            "the load was kept from running: it got {:.1} % of its core where it asked for 25; {quieter}",
            100.0 * own
        );
        return (TruthVerdict::Inconclusive, reason);
    }
    if exact > EXACT_POINTS_MAX {
        let off = format!(
            "the exact account is {exact:.1} points off what the load measured itself, more than \
             {EXACT_POINTS_MAX:.0}"
        );
        return match disturbance(phases) {
            Some(why) => (
                TruthVerdict::Inconclusive,
                format!("{off}, and {why}; {quieter}"),
            ),
            None => (TruthVerdict::Fails, off),
        };
    }
    if sampled <= TICK_SAMPLED_POINTS_MIN {
        let reason = format!(
            "the exact account is right to {exact:.2} points, but /proc/stat was not seen to be wrong \
             by more than {TICK_SAMPLED_POINTS_MIN:.0}: others used up to {:.0} % of the core \
             meanwhile, or this kernel does not sample at the tick",
            100.0 * greatest(phases, TruthPhase::others_ratio)
        );
        return (TruthVerdict::Inconclusive, reason);
    }
    let reason = format!(
        "the exact account is right to {exact:.2} points at every phase; /proc/stat is wrong by up to \
         {sampled:.0}"
    );
    (TruthVerdict::Holds, reason)
}

/// Returns the maximum over all phases.
fn greatest(phases: &[TruthPhase], read: fn(&TruthPhase) -> f64) -> f64 {
    phases.iter().map(read).fold(0.0, f64::max)
}

/// Names a disturbance that takes time outside every event, so that a correct account may seem wrong.
fn disturbance(phases: &[TruthPhase]) -> Option<String> {
    let steal = greatest(phases, |phase| phase.steal_ratio);
    let others = greatest(phases, TruthPhase::others_ratio);
    let elsewhere = greatest(phases, |phase| phase.elsewhere_ratio);
    if steal > STEAL_MAX {
        return Some(format!(
            "the hypervisor took {:.1} % of the core, which the load sees and no event shows",
            100.0 * steal
        ));
    }
    if others > OTHERS_MAX {
        return Some(format!(
            "others used up to {:.0} % of the core, and no event shows the cost of switching to them",
            100.0 * others
        ));
    }
    (elsewhere > ELSEWHERE_MAX).then(|| {
        format!(
            "another core was busy for up to {:.0} % of the time, which slows interrupts down where no event \
             shows it",
            100.0 * elsewhere
        )
    })
}

fn cost(exact: &mut ExactCpu, core: u32, tick_ns: u64) -> Result<Option<EventCost>, InspectError> {
    let timing = start_timing()?;
    let (before, from) = (exact.programs.timed_runs()?, monotonic_ns());
    let phase_ns = 0;
    Pulses {
        core,
        tick_ns,
        phase_ns,
    }
    .run(COST_RUN)?;
    let seconds = (monotonic_ns() - from) as f64 / 1e9;
    let runs = exact.programs.timed_runs()?.since(before);
    drop(timing);
    Ok(runs.map(|runs| EventCost {
        ns_per_event: runs.ns_per_run,
        events_per_second: runs.runs as f64 / seconds,
    }))
}

/// Sends pulses `period` apart and folds the CPU time they take.
fn fold_pulses(period: Duration) -> Result<FoldedPulses, InspectError> {
    let period_ns = period.as_nanos() as u64;
    let options = ExactCpuOptions {
        fold: Some(FoldOptions {
            period_ns,
            tgid: std::process::id(),
        }),
        ..ExactCpuOptions::default()
    };
    let exact = exact_cpu(&options).map_err(InspectError::no_exact_account)?;
    let pulses = exchange(period_ns)?;
    let fold = exact.fold().map_err(InspectError::no_exact_account)?;
    let bins = fold.ok_or_else(|| not_measured("folding was asked for and did not take place"))?;
    Ok(FoldedPulses {
        period_ns,
        pulses,
        datagrams_per_pulse: DATAGRAMS,
        bins,
    })
}

/// Runs both ends and returns the number of pulses sent.
fn exchange(period_ns: u64) -> Result<u64, InspectError> {
    let cpus = schedule::allowed_cpus().doing("asking which CPUs may be used")?;
    let (Some(&sender_cpu), Some(&reader_cpu)) = (cpus.first(), cpus.last()) else {
        return Err(not_measured("this process may use no CPU"));
    };
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).doing("binding to loopback")?;
    let address = socket.local_addr().doing("binding to loopback")?;
    let timeout = socket.set_read_timeout(Some(SILENCE));
    timeout.doing("binding to loopback")?;
    let reader = thread::spawn(move || read_pulses(&socket, reader_cpu, period_ns));
    let sender = thread::spawn(move || -> Result<u64, InspectError> {
        schedule::pin(sender_cpu).doing("pinning the sender")?;
        run_before_others();
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
        let socket = socket.doing("binding to loopback")?;
        let connected = socket.connect(address);
        connected.doing("binding to loopback")?;
        send_pulses(&socket, period_ns).doing("sending over loopback")
    });
    let sent = joined(sender);
    joined(reader)?;
    sent
}

fn send_pulses(socket: &UdpSocket, period_ns: u64) -> io::Result<u64> {
    let end = monotonic_ns() + PULSES_RUN.as_nanos() as u64;
    let mut pulses = 0;
    while monotonic_ns() < end {
        sleep_until(next_phase(monotonic_ns(), period_ns, 0))?;
        for _ in 0..DATAGRAMS {
            socket.send(&[0; PAYLOAD_BYTES])?;
        }
        pulses += 1;
    }
    Ok(pulses)
}

/// Reads pulse after pulse, and works on each when it is complete.
fn read_pulses(socket: &UdpSocket, cpu: u32, period_ns: u64) -> Result<(), InspectError> {
    schedule::pin(cpu).doing("pinning the reader")?;
    run_before_others();
    let mut datagram = [0; PAYLOAD_BYTES];
    loop {
        for _ in 0..DATAGRAMS {
            match socket.recv(&mut datagram) {
                Ok(_) => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    ) =>
                {
                    return Ok(());
                }
                Err(error) => return Err(error).doing("reading from loopback"),
            }
        }
        spin_until(monotonic_ns() + period_ns / WORK_FRACTION);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase() -> TruthPhase {
        TruthPhase {
            phase_ns: 0,
            wall_ns: 700_000_000,
            own_ratio: 0.25,
            exact_ratio: 0.254,
            exact_system_ratio: 0.001,
            exact_core_ratio: 0.26,
            tick_sampled_core_ratio: 0.25,
            steal_ratio: 0.0,
            residual_ratio: 0.0,
            elsewhere_ratio: 0.0,
        }
    }

    fn verdict(change: impl FnOnce(&mut TruthPhase)) -> (TruthVerdict, String) {
        let mut changed = phase();
        change(&mut changed);
        judge(&[phase(), changed])
    }

    #[test]
    fn it_holds_when_one_is_right_and_the_other_wrong() {
        let (verdict, reason) = verdict(|phase| phase.tick_sampled_core_ratio = 0.57);
        assert_eq!(verdict, TruthVerdict::Holds, "{reason}");
        assert!(
            reason.contains("0.40 points") && reason.contains("31"),
            "{reason}"
        );
    }

    #[test]
    fn an_account_that_is_off_fails_unless_the_machine_was_disturbed() {
        let (failed, reason) = verdict(|phase| phase.exact_ratio = 0.265);
        assert_eq!(failed, TruthVerdict::Fails, "{reason}");
        let disturbances: [fn(&mut TruthPhase); 3] = [
            |phase| phase.steal_ratio = 0.02,
            |phase| phase.elsewhere_ratio = 0.7,
            |phase| phase.exact_core_ratio = 0.5,
        ];
        for disturb in disturbances {
            let (disturbed, reason) = verdict(|phase| {
                phase.exact_ratio = 0.265;
                disturb(phase);
            });
            assert_eq!(disturbed, TruthVerdict::Inconclusive, "{reason}");
        }
    }

    #[test]
    fn nothing_follows_from_a_load_that_did_not_run_or_a_sample_that_was_right() {
        let (kept, reason) = verdict(|phase| phase.own_ratio = 0.1);
        assert_eq!(kept, TruthVerdict::Inconclusive);
        assert!(reason.contains("kept from running"), "{reason}");
        let (right, reason) = verdict(|phase| phase.exact_core_ratio = 0.907);
        assert_eq!(right, TruthVerdict::Inconclusive);
        assert!(reason.contains("others used up to 65 %"), "{reason}");
    }
}
