//! The cost of switching threads, of waking one, and of a clock tick, measured without a network.
//!
//! Two threads on one CPU pass a byte to and fro over pipes; the same calls of a thread that writes to itself are
//! subtracted. The cost of waking is how much longer a write to a thread asleep on the other CPU takes than a write
//! to nobody.

use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_lab::LabError;
use nicpoll_observe::ExactCpu;
use nicpoll_stats::Summary;
use nicpoll_sys::schedule;
use rustix::time::{ClockId, clock_getres};

use crate::measure::probe::timer;

type Result<T> = std::result::Result<T, LabError>;

/// Each batch is timed as a whole, and the median of all batches counts: whatever else ran meanwhile spoils a few.
const BATCHES: usize = 21;

const TRIPS: u32 = 100;

/// Measures a switch between two threads of `cpu`, in nanoseconds.
pub fn switch_ns(cpu: u32) -> Result<f64> {
    let on_cpu = thread::spawn(move || -> Result<f64> {
        schedule::pin(cpu)?;
        let (mut back, mut forth) = pipe()?;
        let alone = middle(|| hand_over(&mut forth, &mut back))?;
        let (inbox, mut to_other) = pipe()?;
        let (mut from_other, outbox) = pipe()?;
        let other = thread::spawn(move || echo(inbox, outbox));
        let both = middle(|| hand_over(&mut to_other, &mut from_other))?;
        // Closing the pipe ends the other thread.
        drop(to_other);
        other.join().map_err(|_| LabError::Panicked("echoing"))??;
        // There and back: two switches, and each thread's two calls.
        Ok(both / 2.0 - alone)
    });
    on_cpu.join().map_err(|_| LabError::Panicked("switching"))?
}

fn hand_over(to: &mut PipeWriter, from: &mut PipeReader) -> Result<()> {
    to.write_all(&[0])?;
    from.read_exact(&mut [0])?;
    Ok(())
}

/// Timed wake-ups, and the time before each: long enough for the other thread to sleep, and no longer than receivers
/// of the demo's traffic do. A processor that sleeps for longer costs more to wake.
const WAKINGS: usize = 500;

const ASLEEP_AFTER: Duration = Duration::from_micros(20);

/// Measures how long a thread of `waker_cpu` takes to wake one asleep on `sleeper_cpu`, in nanoseconds.
pub fn wake_ns(waker_cpu: u32, sleeper_cpu: u32) -> Result<f64> {
    let waker = thread::spawn(move || -> Result<f64> {
        schedule::pin(waker_cpu)?;
        let (mut inbox, mut to_sleeper) = pipe()?;
        let (there, is_there) = mpsc::channel();
        let sleeper = thread::spawn(move || -> Result<()> {
            schedule::pin(sleeper_cpu)?;
            // If the waiting thread has gone, it has an error of its own.
            let _ = there.send(());
            io::copy(&mut inbox, &mut io::sink())?;
            Ok(())
        });
        // The sleeper starts on this processor, and has to leave it first.
        let _ = is_there.recv();
        let waking = writes(&mut to_sleeper)?;
        drop(to_sleeper);
        sleeper
            .join()
            .map_err(|_| LabError::Panicked("sleeping"))??;
        // Nobody reads, and the pipe has room for all the bytes.
        let (_unread, mut to_nobody) = pipe()?;
        Ok(waking - writes(&mut to_nobody)?)
    });
    waker.join().map_err(|_| LabError::Panicked("waking"))?
}

/// Returns the median time of many writes with a pause before each, in nanoseconds.
fn writes(to: &mut PipeWriter) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..WAKINGS {
        // A sleep would let this processor sleep as well, and its own wake-up would spoil the time.
        let pause = Instant::now();
        while pause.elapsed() < ASLEEP_AFTER {}
        let begin = Instant::now();
        to.write_all(&[0])?;
        times.push(begin.elapsed().as_nanos() as f64);
    }
    let summary = Summary::of(&times).ok_or_else(no_times)?;
    Ok(summary.median)
}

fn no_times() -> LabError {
    LabError::Unexpected(String::from("a clock that has no times"))
}

/// Echoes bytes, on the caller's processor.
fn echo(mut from: PipeReader, mut to: PipeWriter) -> Result<()> {
    let mut byte = [0];
    while from.read(&mut byte)? > 0 {
        to.write_all(&byte)?;
    }
    Ok(())
}

/// Returns the time of one call, the median of several batches, in nanoseconds.
fn middle(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut batches = Vec::new();
    for _ in 0..BATCHES {
        let begin = Instant::now();
        for _ in 0..TRIPS {
            work()?;
        }
        batches.push(begin.elapsed().as_nanos() as f64 / f64::from(TRIPS));
    }
    let summary = Summary::of(&batches).ok_or_else(no_times)?;
    Ok(summary.median)
}

/// Returns the clock ticks a second: the coarse clock advances by one tick at a time.
pub fn ticks_per_second() -> f64 {
    let tick = clock_getres(ClockId::MonotonicCoarse);
    1e9 / (tick.tv_sec as f64 * 1e9 + tick.tv_nsec as f64)
}

/// Measures the interrupt time of a tick on a busy `cpu`, in nanoseconds. `exact` must be attached.
pub fn tick_ns(exact: &ExactCpu, cpu: u32, time: Duration) -> Result<Option<f64>> {
    let spinner = thread::spawn(move || -> Result<()> {
        schedule::pin(cpu)?;
        let begin = Instant::now();
        while begin.elapsed() < time {}
        Ok(())
    });
    let before = exact.interrupts()?;
    thread::sleep(time * 9 / 10);
    let after = exact.interrupts()?;
    spinner
        .join()
        .map_err(|_| LabError::Panicked("spinning"))??;
    Ok(timer(&before, &after).map(|(entries, ns)| ns / entries as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_between_threads_is_measured() {
        let cpu = schedule::allowed_cpus().unwrap()[0];
        assert!(switch_ns(cpu).unwrap().is_finite());
        if let Some(other) = schedule::allowed_cpus().unwrap().get(1) {
            assert!(wake_ns(cpu, *other).unwrap().is_finite());
        }
        assert!(ticks_per_second() >= 1.0);
    }
}
