//! Clocks: the monotonic clock, exact sleeping and spinning, and the clocks of cards that stamp packets.
//!
//! A card's clock is read several times a second and never set; others may set it (`ptp4l`, `phc2sys`). Each reading is
//! taken between two readings of `CLOCK_MONOTONIC`. A line through the latest readings converts a card's time stamps,
//! and the next reading shows the line's error. A line with an error above `ERROR_MAX_NS` is dropped, and delays of
//! that time are reported as invalid.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, thread};

use aya::maps::{HashMap, MapData};
use nicpoll_model::units::NS_PER_SECOND;
use nicpoll_sys::bpf_maps::{CLOCK_RATE_SHIFT, ClockLine};
use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, DynamicClockId, Timespec, clock_gettime, clock_gettime_dynamic};
use thiserror::Error;

use crate::bpf::Histogram;

/// Longer than any gap between two clock readings of a spinning thread, shorter than any interrupt.
const LOOK_MAX_NS: u64 = 1_000;

/// How a spinning load spent its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spun {
    /// Time spent busy.
    pub own_ns: u64,
    /// Time taken away by interrupts, other programs and other guests.
    pub away_ns: u64,
    /// Number of interruptions. Entering and leaving one is in no event, so each may add some microseconds that an
    /// account by events attributes to the load, more in a virtual machine.
    pub interruptions: u64,
}

impl Spun {
    /// Counts the time between two clock readings.
    fn step(&mut self, ns: u64) {
        if ns <= LOOK_MAX_NS {
            self.own_ns += ns;
        } else {
            self.away_ns += ns;
            self.interruptions += 1;
        }
    }

    /// Adds another load's times.
    pub fn plus(self, other: Spun) -> Spun {
        Spun {
            own_ns: self.own_ns + other.own_ns,
            away_ns: self.away_ns + other.away_ns,
            interruptions: self.interruptions + other.interruptions,
        }
    }
}

/// Reads a clock.
pub fn clock_ns(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec * NS_PER_SECOND as i64 + now.tv_nsec
}

/// Reads `CLOCK_MONOTONIC`, which BPF programs read too.
pub fn monotonic_ns() -> u64 {
    clock_ns(ClockId::Monotonic) as u64
}

/// Returns the length of the kernel's clock tick.
pub fn tick_ns() -> u64 {
    let tick = rustix::time::clock_getres(ClockId::MonotonicCoarse);
    tick.tv_sec as u64 * NS_PER_SECOND + tick.tv_nsec as u64
}

/// Sleeps until `CLOCK_MONOTONIC` shows `until_ns`.
pub fn sleep_until(until_ns: u64) -> io::Result<()> {
    let until = Timespec {
        tv_sec: (until_ns / NS_PER_SECOND) as i64,
        tv_nsec: (until_ns % NS_PER_SECOND) as i64,
    };
    loop {
        match clock_nanosleep_absolute(ClockId::Monotonic, &until) {
            Err(error) if error == Errno::INTR => {}
            done => return Ok(done?),
        }
    }
}

/// Spins in user mode until `CLOCK_MONOTONIC` shows `until_ns`.
pub fn spin_until(until_ns: u64) -> Spun {
    let mut spun = Spun::default();
    let mut last = monotonic_ns();
    while last < until_ns {
        let now = monotonic_ns();
        spun.step(now - last);
        last = now;
    }
    spun
}

/// Returns the first moment from `now_ns` on that is `phase_ns` past a multiple of `period_ns`.
pub fn next_phase(now_ns: u64, period_ns: u64, phase_ns: u64) -> u64 {
    let into = (now_ns + period_ns - phase_ns % period_ns) % period_ns;
    now_ns + (period_ns - into) % period_ns
}

/// Largest tolerated error of a card's clock. Packets wait for a poll ten times as long, or longer.
pub(crate) const ERROR_MAX_NS: u64 = 10_000;
/// Time between readings.
const INTERVAL: Duration = Duration::from_millis(250);
/// Readings of both clocks for one result: the closest counts. If all were interrupted, more are taken, up to the
/// maximum.
const LOOKS: usize = 10;
const LOOKS_MAX: usize = 100;
/// Time between the readings that define a line: the minimum, and the target.
const BASE_MIN_NS: i64 = 50_000_000;
const BASE_NS: i64 = 1_000_000_000;
/// Clocks that differ in rate by more than one part in this many are not both valid.
const APART: i64 = 1_000;

/// Why a card's clock cannot be used.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("its clock {name} {why}")]
pub struct CardClockError {
    name: String,
    why: String,
}

impl CardClockError {
    fn unreadable(name: String, source: &io::Error) -> Self {
        let why = format!("cannot be read ({source})");
        CardClockError { name, why }
    }
}

/// Both clocks at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClockReading {
    card_ns: i64,
    /// By `CLOCK_MONOTONIC`.
    kernel_ns: i64,
    /// Possible error of the kernel's time, either way.
    half_ns: u64,
}

/// What a reading says about the line in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClockFit {
    /// There was no line yet.
    Begins,
    /// The line was wrong by at most this many ns.
    Within(u64),
    /// The line is invalid: the clock was set, or cannot be read closely enough.
    Broken,
}

/// Readings of one clock, and the line through them.
#[derive(Debug, Default)]
struct Course {
    readings: VecDeque<ClockReading>,
    line: Option<ClockLine>,
}

impl Course {
    fn add(&mut self, reading: ClockReading) -> ClockFit {
        let before = self.line.take();
        let off = before.map(|line| off_ns(&line, &reading));
        let is_good = off.is_none_or(|off| off <= ERROR_MAX_NS) && reading.half_ns <= ERROR_MAX_NS;
        if is_good {
            self.readings.push_back(reading);
            let is_old = |second: &ClockReading| reading.kernel_ns - second.kernel_ns >= BASE_NS;
            while self.readings.get(1).is_some_and(is_old) {
                self.readings.pop_front();
            }
            match self.drawn() {
                Ok(line) => self.line = line,
                Err(Crooked) => return self.broken(reading),
            }
            return off.map_or(ClockFit::Begins, ClockFit::Within);
        }
        self.broken(reading)
    }

    fn broken(&mut self, reading: ClockReading) -> ClockFit {
        self.readings.clear();
        self.readings.push_back(reading);
        ClockFit::Broken
    }

    /// The line through the oldest and the newest reading; none while they are too close.
    fn drawn(&self) -> Result<Option<ClockLine>, Crooked> {
        let (Some(first), Some(last)) = (self.readings.front(), self.readings.back()) else {
            return Ok(None);
        };
        let kernel = last.kernel_ns - first.kernel_ns;
        if kernel < BASE_MIN_NS {
            return Ok(None);
        }
        let card = last.card_ns.saturating_sub(first.card_ns);
        let gain = kernel.saturating_sub(card);
        if gain.saturating_abs() > kernel / APART {
            return Err(Crooked);
        }
        let rate = (i128::from(gain) << CLOCK_RATE_SHIFT) / i128::from(card);
        Ok(Some(ClockLine {
            card_ns: last.card_ns,
            kernel_ns: last.kernel_ns,
            rate: rate as i64,
        }))
    }
}

/// Two readings that cannot be from two valid clocks.
struct Crooked;

/// The kernel's time for a time of the card's clock, computed as in the BPF programs.
fn kernel_ns_at(line: &ClockLine, card_ns: i64) -> i64 {
    let since = card_ns.saturating_sub(line.card_ns);
    let gain = (i128::from(since) * i128::from(line.rate)) >> CLOCK_RATE_SHIFT;
    line.kernel_ns
        .saturating_add(since)
        .saturating_add(gain as i64)
}

/// Greatest possible error of a line at a reading.
fn off_ns(line: &ClockLine, reading: &ClockReading) -> u64 {
    let off = kernel_ns_at(line, reading.card_ns).abs_diff(reading.kernel_ns);
    off.saturating_add(reading.half_ns)
}

type ReadCard = Box<dyn FnMut() -> io::Result<Timespec> + Send>;

/// The clock of a card.
pub struct CardClock {
    read_card: ReadCard,
    course: Course,
}

impl CardClock {
    /// Opens the clock `/dev/ptpN`.
    ///
    /// # Errors
    /// When it cannot be read, or is unreliable.
    pub fn open(number: u32) -> Result<Self, CardClockError> {
        let name = format!("/dev/ptp{number}");
        match File::open(&name) {
            Ok(file) => CardClock::of(name, move || {
                let clock = DynamicClockId::Dynamic(file.as_fd());
                Ok(clock_gettime_dynamic(clock)?)
            }),
            Err(source) => Err(CardClockError::unreadable(name, &source)),
        }
    }

    /// Checks a clock of any kind for a tenth of a second.
    ///
    /// # Errors
    /// When it cannot be read, or is unreliable.
    pub fn of(
        name: String,
        read_card: impl FnMut() -> io::Result<Timespec> + Send + 'static,
    ) -> Result<Self, CardClockError> {
        let mut clock = CardClock {
            read_card: Box::new(read_card),
            course: Course::default(),
        };
        for pause_ns in [0, 2 * BASE_MIN_NS as u64] {
            thread::sleep(Duration::from_nanos(pause_ns));
            match clock.reading() {
                Ok(ClockReading { half_ns, .. }) if half_ns > ERROR_MAX_NS => {
                    let why = format!(
                        "can only be read to within {half_ns} ns, and {ERROR_MAX_NS} ns are needed"
                    );
                    return Err(CardClockError { name, why });
                }
                Ok(reading) => clock.course.add(reading),
                Err(source) => return Err(CardClockError::unreadable(name, &source)),
            };
        }
        if clock.course.line.is_none() {
            // Its rate is wrong, or it was set in between.
            let why = String::from("does not run steadily");
            return Err(CardClockError { name, why });
        }
        Ok(clock)
    }

    /// Reads both clocks.
    fn reading(&mut self) -> io::Result<ClockReading> {
        let mut closest: Option<ClockReading> = None;
        for look in 0..LOOKS_MAX {
            if look >= LOOKS && closest.is_some_and(|it| it.half_ns <= ERROR_MAX_NS) {
                break;
            }
            let before = monotonic_ns();
            let card = (self.read_card)()?;
            let after = monotonic_ns();
            let half_ns = (after - before).div_ceil(2);
            if closest.is_none_or(|closest| half_ns < closest.half_ns) {
                closest = Some(ClockReading {
                    card_ns: card.tv_sec * 1_000_000_000 + card.tv_nsec,
                    kernel_ns: (before + half_ns) as i64,
                    half_ns,
                });
            }
        }
        closest.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

/// Errors of lines so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClockAccount {
    /// Greatest possible errors at each reading.
    errors: Histogram,
    /// Number of lines found invalid.
    breaks: u64,
}

impl ClockAccount {
    /// Returns the possible error of a stamp's time, in ns, since an `earlier` account. `None` if a line broke
    /// meanwhile, or nothing was read.
    pub(crate) fn error_ns_since(&self, earlier: &ClockAccount) -> Option<f64> {
        let errors = self.errors.since(&earlier.errors);
        errors
            .quantile_ns(1.0)
            .filter(|_| self.breaks == earlier.breaks)
    }
}

/// Clocks whose lines a BPF program uses.
struct Followed {
    clocks: Vec<CardClock>,
    /// By number of the clock, from 1.
    lines: HashMap<MapData, u32, ClockLine>,
    account: ClockAccount,
}

impl Followed {
    fn look(&mut self) {
        for (number, clock) in (1..).zip(&mut self.clocks) {
            let reading = clock.reading();
            let fit = reading.map_or(ClockFit::Broken, |reading| clock.course.add(reading));
            let line = clock.course.line.filter(|_| fit != ClockFit::Broken);
            let written = match line {
                Some(line) => self.lines.insert(number, line, 0),
                // The map may have no entry.
                None => self.lines.remove(&number).or(Ok(())),
            };
            match fit {
                ClockFit::Within(ns) if written.is_ok() => self.account.errors.count_one(ns),
                ClockFit::Begins if written.is_ok() => {}
                _ => self.account.breaks += 1,
            }
        }
    }
}

/// Keeps the lines of clocks up to date until dropped.
pub(crate) struct CardClocks {
    followed: Arc<Mutex<Followed>>,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl CardClocks {
    /// Follows clocks, which have numbers from 1 in the map.
    pub(crate) fn follow(clocks: Vec<CardClock>, lines: HashMap<MapData, u32, ClockLine>) -> Self {
        let mut followed = Followed {
            clocks,
            lines,
            account: ClockAccount::default(),
        };
        followed.look();
        let followed = Arc::new(Mutex::new(followed));
        let (end, ended) = mpsc::channel();
        let shared = Arc::clone(&followed);
        let thread = thread::spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(INTERVAL) {
                shared.lock().unwrap_or_else(PoisonError::into_inner).look();
            }
        });
        CardClocks {
            followed,
            end: Some(end),
            thread: Some(thread),
        }
    }

    /// Reads the clocks once more, and returns the errors of lines so far.
    pub(crate) fn account(&self) -> ClockAccount {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.look();
        followed.account.clone()
    }
}

impl Drop for CardClocks {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic has printed its own message.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod card_clock_tests;

#[cfg(test)]
mod reference_tests {
    use super::*;

    #[test]
    fn the_next_phase_is_never_in_the_past() {
        assert_eq!(next_phase(1_000, 400, 0), 1_200);
        assert_eq!(next_phase(1_200, 400, 0), 1_200);
        assert_eq!(next_phase(1_201, 400, 0), 1_600);
        assert_eq!(next_phase(1_000, 400, 100), 1_300);
        assert_eq!(next_phase(1_000, 400, 300), 1_100);
        assert_eq!(next_phase(1_000, 400, 700), 1_100);
    }

    #[test]
    fn a_long_step_is_not_the_loads() {
        let mut spun = Spun::default();
        for ns in [40, 60, 5_000, 50] {
            spun.step(ns);
        }
        assert_eq!((spun.own_ns, spun.away_ns), (150, 5_000));
        assert_eq!(spun.interruptions, 1);
    }

    #[test]
    fn spinning_takes_the_time_that_was_asked_for() {
        let from = monotonic_ns();
        let spun = spin_until(from + 2_000_000);
        let took = monotonic_ns() - from;
        assert!(took >= 2_000_000);
        assert!(spun.own_ns + spun.away_ns <= took);
    }

    #[test]
    fn a_tick_is_that_of_a_kernel() {
        assert!(
            (1_000_000..=10_000_000).contains(&tick_ns()),
            "{}",
            tick_ns()
        );
    }
}
