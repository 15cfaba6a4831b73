//! The exact account of CPU time on a real kernel: it adds up, and agrees with loads whose time is known independently.

use std::fs::{self, File};
use std::io::Read;
use std::net::UdpSocket;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_observe::clock::{Spun, monotonic_ns, next_phase, sleep_until, spin_until};
use nicpoll_observe::{
    CpuSample, CpuTimes, ExactCpu, ExactCpuOptions, FoldOptions, TaskTimes, start_timing,
};
use nicpoll_testkit::{Need, needs, skip, test_name};
use rustix::process::setpriority_process;
use rustix::thread::gettid;

/// Length of the loads.
const LOAD: Duration = Duration::from_millis(300);
/// Share of the cores taken by the hypervisor above which a check is meaningless: the load notices its absence, the
/// kernel's events do not.
const STEAL_MAX: f64 = 0.01;
/// Tolerated error of the account, relative to the load's own measure.
const TOLERANCE: f64 = 0.02;
/// Tolerated time per interruption: entering and leaving one is in no event, and on a virtual machine is the
/// hypervisor's work too.
const INTERRUPTION_NS: f64 = 30_000.0;
/// Tries, since occasional other work spoils one.
const TRIES: u32 = 5;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// An account of each thread.
const THREADS: ExactCpuOptions = ExactCpuOptions {
    fold: None,
    has_threads: true,
    passes_over_syscalls: false,
    storm_threshold: 0,
};

/// Keeps the other tests of this program away, because they are loads too. Raises the calling thread's priority, so its
/// pulses start in time on a busy machine; its charged time stays the same.
fn alone() -> MutexGuard<'static, ()> {
    let _ = setpriority_process(Some(gettid()), -20);
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The programs, attached.
fn exact(options: ExactCpuOptions) -> ExactCpu {
    let mut exact = ExactCpu::load(&options).unwrap();
    exact.attach().unwrap();
    exact
}

/// CPU time of this thread so far.
fn own_times(exact: &ExactCpu) -> TaskTimes {
    let tid = gettid().as_raw_nonzero().get() as u32;
    let threads = exact.threads().unwrap();
    let own = threads.iter().find(|thread| thread.tid == tid);
    own.map(|thread| thread.times).unwrap_or_default()
}

/// A thread that switched during the reading may have one slice too much.
fn since(now: TaskTimes, then: TaskTimes) -> TaskTimes {
    TaskTimes {
        user_ns: now.user_ns.saturating_sub(then.user_ns),
        nice_ns: now.nice_ns.saturating_sub(then.nice_ns),
        system_ns: now.system_ns.saturating_sub(then.system_ns),
    }
}

/// Excess of the account's error against the load's own measure over the tolerance, in words.
fn off(accounted_ns: u64, spun: Spun) -> Option<String> {
    let off_ns = accounted_ns as f64 - spun.own_ns as f64;
    let beside_ns = spun.interruptions as f64 * INTERRUPTION_NS;
    let allowed_ns = TOLERANCE * spun.own_ns as f64;
    (off_ns < -allowed_ns || off_ns > allowed_ns + beside_ns)
        .then(|| format!("{off_ns:+.0} ns off {spun:?}"))
}

/// Runs `check` until it passes; tries in which the hypervisor took time do not count.
fn try_often(test: &str, mut check: impl FnMut() -> Result<(), String>) {
    let mut complaints = Vec::new();
    for _ in 0..TRIES {
        let before = CpuSample::now().unwrap();
        let outcome = check();
        let cores: Vec<u32> = (0..1024).collect();
        let states = CpuSample::now().unwrap().since(&before, &cores).states;
        let steal = states
            .iter()
            .map(|core| core.steal_ratio)
            .fold(0.0, f64::max);
        match outcome {
            Ok(()) => return,
            Err(_) if steal > STEAL_MAX => println!("a try of {test} had {steal:.3} steal"),
            Err(complaint) => complaints.push(complaint),
        }
    }
    if complaints.is_empty() {
        let reason = "the hypervisor took time in every try";
        skip(test, Need::QuietMachine, reason);
    } else {
        panic!("{complaints:#?}");
    }
}

/// Datagrams over loopback: system calls and soft interrupts.
fn send_datagrams(until: Instant) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(socket.local_addr().unwrap()).unwrap();
    let mut datagram = [0; 64];
    while Instant::now() < until {
        socket.send(&datagram).unwrap();
        socket.recv(&mut datagram).unwrap();
    }
}

#[test]
fn the_states_of_each_cpu_add_up_to_wall_time() {
    needs!(Root);
    let _alone = alone();
    let exact = exact(ExactCpuOptions::default());
    let (before, from) = (exact.read().unwrap(), Instant::now());
    let traffic = thread::spawn(|| send_datagrams(Instant::now() + Duration::from_millis(500)));
    thread::sleep(Duration::from_secs(1));
    traffic.join().unwrap();
    let (after, wall) = (exact.read().unwrap(), from.elapsed());
    let cores = nicpoll_sys::schedule::allowed_cpus().unwrap();
    let times = after.since(&before, &cores);
    assert_eq!(times.len(), cores.len(), "every CPU has an account");
    for core in &times {
        let off = core.residual_ns.unsigned_abs() as f64 / core.wall_ns as f64;
        assert!(off < 0.005, "{core:?}");
        // Two clocks of this process against the account's: another error would show here.
        let wall_off = core.wall_ns as f64 / wall.as_nanos() as f64 - 1.0;
        assert!(wall_off.abs() < 0.005, "{wall:?} {core:?}");
    }
    let of_all = |read: fn(&CpuTimes) -> u64| times.iter().map(read).sum::<u64>();
    const NET_RX: usize = 3;
    assert!(of_all(|core| core.softirq_ns[NET_RX]) > 0, "{times:?}");
    assert!(of_all(|core| core.system_ns) > 0, "{times:?}");
    assert!(of_all(|core| core.irq_ns) > 0, "{times:?}");
    assert!(of_all(|core| core.context_switches) > 0, "{times:?}");
}

#[test]
fn a_busy_loop_is_given_the_time_that_it_measured_itself() {
    needs!(Root);
    let _alone = alone();
    let exact = exact(THREADS);
    try_often(test_name!(), || {
        let before = own_times(&exact);
        let spun = spin_until(monotonic_ns() + LOAD.as_nanos() as u64);
        let times = since(own_times(&exact), before);
        let in_user_mode = times.user_ns + times.nice_ns;
        if let Some(off) = off(in_user_mode, spun) {
            return Err(off);
        }
        if in_user_mode < 20 * times.system_ns {
            return Err(format!("a busy loop is in user mode: {times:?}"));
        }
        Ok(())
    });
}

#[test]
fn time_in_system_calls_is_the_kernels() {
    needs!(Root);
    let _alone = alone();
    let exact = exact(THREADS);
    let mut zeros = File::open("/dev/zero").unwrap();
    let mut buffer = vec![0; 4 << 20];
    let before = own_times(&exact);
    let until = Instant::now() + LOAD;
    while Instant::now() < until {
        zeros.read_exact(&mut buffer).unwrap();
    }
    let times = since(own_times(&exact), before);
    assert!(times.system_ns > 20 * times.user_ns, "{times:?}");
}

#[test]
fn interrupts_have_a_source_and_the_threshold_is_that_of_a_run() {
    needs!(Root);
    let _alone = alone();
    for threshold in [0, 1, u64::MAX] {
        let options = ExactCpuOptions {
            storm_threshold: threshold,
            ..ExactCpuOptions::default()
        };
        let exact = exact(options);
        // Clock ticks and timers.
        spin_until(monotonic_ns() + 50_000_000);
        thread::sleep(Duration::from_millis(10));
        let interrupts = exact.interrupts().unwrap();
        assert!(!interrupts.0.is_empty());
        for counts in &interrupts.0 {
            assert!(counts.ns > 0, "{counts:?}");
            // Every entry is a run of at least one; none is as long as the maximum.
            let storm = if threshold == 1 { counts.entries } else { 0 };
            assert_eq!(counts.storm_entries, storm, "{counts:?}");
            assert!(!counts.source.name().is_empty() || counts.entries > 0);
        }
    }
}

#[test]
fn a_pulse_is_found_at_its_phase() {
    needs!(Root);
    let _alone = alone();
    const PERIOD_NS: u64 = 4_000_000;
    let fold = FoldOptions {
        period_ns: PERIOD_NS,
        tgid: std::process::id(),
    };
    let options = ExactCpuOptions {
        fold: Some(fold),
        ..ExactCpuOptions::default()
    };
    let exact = exact(options);
    try_often(test_name!(), || {
        let before = exact.fold().unwrap().unwrap();
        let mut spun = Spun::default();
        for _ in 0..50 {
            let begin = next_phase(monotonic_ns(), PERIOD_NS, PERIOD_NS / 4);
            sleep_until(begin).unwrap();
            spun = spun.plus(spin_until(begin + PERIOD_NS / 4));
        }
        // Time up to a thread's latest event is folded, and sleeping is an event.
        thread::sleep(Duration::from_millis(1));
        let after = exact.fold().unwrap().unwrap();
        let bins = after.iter().zip(before);
        let user: Vec<u64> = bins
            .map(|(after, before)| after.user_ns - before.user_ns)
            .collect();
        let bins = user.len();
        let inside: u64 = user[bins / 4..bins / 2].iter().sum();
        let total: u64 = user.iter().sum();
        if let Some(off) = off(total, spun) {
            return Err(off);
        }
        // A thread kept from its CPU at the end of a pulse ends it late.
        if (inside as f64) < 0.9 * total as f64 {
            return Err(format!("{user:?}"));
        }
        Ok(())
    });
}

#[test]
fn detached_programs_run_no_more() {
    needs!(Root);
    let _alone = alone();
    let mut exact = exact(ExactCpuOptions::default());
    let _timing = start_timing().unwrap();
    let before = exact.programs.timed_runs().unwrap();
    thread::sleep(Duration::from_millis(20));
    let attached = exact.programs.timed_runs().unwrap();
    let time = attached.since(before).expect("this very test makes events");
    assert!(time.runs > 0 && time.ns_per_run > 0.0);
    exact.detach().unwrap();
    // A program running on another CPU may end a moment later.
    thread::sleep(Duration::from_millis(20));
    let detached = exact.programs.timed_runs().unwrap();
    thread::sleep(Duration::from_millis(20));
    assert_eq!(exact.programs.timed_runs().unwrap().since(detached), None);
    exact.attach().unwrap();
    thread::sleep(Duration::from_millis(20));
    assert!(
        exact
            .programs
            .timed_runs()
            .unwrap()
            .since(detached)
            .is_some()
    );
}

#[test]
fn a_program_that_does_nothing_takes_less_than_those_that_count() {
    needs!(Root);
    let _alone = alone();
    let mut exact = exact(ExactCpuOptions::default());
    assert!(exact.threads().unwrap().is_empty(), "nobody asked for them");
    let measured = exact.with_idle_program(|exact| {
        let _timing = start_timing()?;
        let before = exact.programs.timed_runs()?;
        for _ in 0..100 {
            thread::sleep(Duration::from_micros(200));
        }
        Ok(exact.programs.timed_runs()?.since(before))
    });
    let (counting, idle) = measured.unwrap();
    let (counting, idle) = (counting.unwrap(), idle.unwrap());
    assert!(idle.runs >= 100, "each sleep is a switch: {idle:?}");
    assert!(
        idle.ns_per_run < counting.ns_per_run,
        "{idle:?} {counting:?}"
    );
}

#[test]
fn a_thread_has_the_name_that_it_gave_itself_last() {
    needs!(Root);
    let _alone = alone();
    let exact = exact(THREADS);
    // Its account begins with its first switch, under its name at that time.
    thread::sleep(Duration::from_millis(1));
    for name in ["renamed once", "sixteen is too much"] {
        fs::write("/proc/thread-self/comm", name).unwrap();
        let tid = gettid().as_raw_nonzero().get() as u32;
        let threads = exact.threads().unwrap();
        let own = threads.iter().find(|thread| thread.tid == tid).unwrap();
        assert_eq!(own.name, name[..name.len().min(15)]);
    }
}
