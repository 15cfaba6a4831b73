//! The clocks of cards that stamp packets, held against the kernel's: from readings of both comes a line, by which
//! BPF programs know when a packet came to its card.
//!
//! Both clocks run freely, and others may set the card's (`ptp4l`, `phc2sys`), so both are read again and again. Each
//! reading shows how far the line was off that the programs used until then.
//!
//! What must hold: a line that was found off by more than [`ERROR_MAX_NS`] is used no longer, and who asks for delays
//! learns of it ([`ClockAccount::breaks`]). Nothing is ever set.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use aya::maps::{HashMap, MapData};
use nicpoll_sys::bpf_maps::{CLOCK_RATE_SHIFT, ClockLine};
use rustix::time::{DynamicClockId, Timespec, clock_gettime_dynamic};
use thiserror::Error;

use crate::octaves::Histogram;
use crate::reference::monotonic_ns;

/// A card's clock is used while it is known as closely as this. Packets wait for a poll ten times as long, or more.
pub(crate) const ERROR_MAX_NS: u64 = 10_000;
/// Time between readings.
const INTERVAL: Duration = Duration::from_millis(250);
/// So often both clocks are read for one reading: the closest counts. Where something came between each time, more often.
const LOOKS: usize = 10;
const LOOKS_MAX: usize = 100;
/// Time between the readings that a line is drawn through: at the least, and where there are older ones.
const BASE_MIN_NS: i64 = 50_000_000;
const BASE_NS: i64 = 1_000_000_000;
/// Clocks that run apart by more than one part in so many are not both clocks.
const APART: i64 = 1_000;

/// Why the clock of a card cannot be used.
#[derive(Debug, Error)]
pub enum CardClockError {
    /// It cannot be read.
    #[error("its clock {name} cannot be read ({source})")]
    Unreadable {
        /// The clock.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// Reading it takes too long to know when it was read.
    #[error(
        "its clock {name} can only be read to within {half_ns} ns, and {ERROR_MAX_NS} ns are needed"
    )]
    Coarse {
        /// The clock.
        name: String,
        /// Half of the time that the quickest reading took.
        half_ns: u64,
    },
    /// It does not run like the kernel's clock, or was set in between.
    #[error("its clock {name} does not run steadily")]
    Unsteady {
        /// The clock.
        name: String,
    },
}

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClockReading {
    card_ns: i64,
    /// `CLOCK_MONOTONIC`.
    kernel_ns: i64,
    /// The kernel's clock may have been so far from that either way.
    half_ns: u64,
}

/// What a reading says of the line that was used until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// There was no line.
    Begins,
    /// The line was off by so many ns at most.
    Within(u64),
    /// The line is of no use: the clock was set, or cannot be read closely enough.
    Broken,
}

/// Readings of one clock, and the line through them.
#[derive(Debug, Default)]
struct Course {
    readings: VecDeque<ClockReading>,
    line: Option<ClockLine>,
}

impl Course {
    fn add(&mut self, reading: ClockReading) -> Fit {
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
            return off.map_or(Fit::Begins, Fit::Within);
        }
        self.broken(reading)
    }

    fn broken(&mut self, reading: ClockReading) -> Fit {
        self.readings.clear();
        self.readings.push_back(reading);
        Fit::Broken
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

/// Two readings that no two clocks give.
struct Crooked;

/// The kernel's clock when the card's shows a time, as the programs reckon it.
fn kernel_ns_at(line: &ClockLine, card_ns: i64) -> i64 {
    let since = card_ns.saturating_sub(line.card_ns);
    let gain = (i128::from(since) * i128::from(line.rate)) >> CLOCK_RATE_SHIFT;
    line.kernel_ns
        .saturating_add(since)
        .saturating_add(gain as i64)
}

/// How far a line is off at a reading, at most.
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
    /// The clock that is `/dev/ptpN`.
    ///
    /// # Errors
    /// When it cannot be read, or cannot be relied on.
    pub fn open(number: u32) -> Result<Self, CardClockError> {
        let path = PathBuf::from(format!("/dev/ptp{number}"));
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => CardClock::of(name, move || {
                Ok(clock_gettime_dynamic(DynamicClockId::Dynamic(
                    file.as_fd(),
                ))?)
            }),
            Err(source) => Err(CardClockError::Unreadable { name, source }),
        }
    }

    /// A clock of any kind, which takes a tenth of a second to be found good.
    ///
    /// # Errors
    /// When it cannot be read, or cannot be relied on.
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
                Ok(reading) if reading.half_ns > ERROR_MAX_NS => {
                    let half_ns = reading.half_ns;
                    return Err(CardClockError::Coarse { name, half_ns });
                }
                Ok(reading) => clock.course.add(reading),
                Err(source) => return Err(CardClockError::Unreadable { name, source }),
            };
        }
        match clock.course.line {
            Some(_) => Ok(clock),
            None => Err(CardClockError::Unsteady { name }),
        }
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

/// How far lines were off, so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClockAccount {
    /// By how much they were off at each reading, at most.
    errors: Histogram,
    /// How often a clock's line was found to be of no use.
    breaks: u64,
}

impl ClockAccount {
    /// How far a stamp's time may be from the truth, in ns, since `earlier`, a look at the same account. `None` when a
    /// line broke meanwhile, or nothing was read.
    pub(crate) fn error_ns_since(&self, earlier: &ClockAccount) -> Option<f64> {
        let errors = self.errors.since(&earlier.errors);
        errors
            .quantile_ns(1.0)
            .filter(|_| self.breaks == earlier.breaks)
    }
}

/// Clocks whose lines a program has.
struct Followed {
    clocks: Vec<CardClock>,
    /// By the number of the clock, from 1 on.
    lines: HashMap<MapData, u32, ClockLine>,
    account: ClockAccount,
}

impl Followed {
    fn look(&mut self) {
        for (number, clock) in (1..).zip(&mut self.clocks) {
            let reading = clock.reading();
            let fit = reading.map_or(Fit::Broken, |reading| clock.course.add(reading));
            let line = clock.course.line.filter(|_| fit != Fit::Broken);
            let written = match line {
                Some(line) => self.lines.insert(number, line, 0),
                // There may be none.
                None => self.lines.remove(&number).or(Ok(())),
            };
            match fit {
                Fit::Within(ns) if written.is_ok() => self.account.errors.count_one(ns),
                Fit::Begins if written.is_ok() => {}
                _ => self.account.breaks += 1,
            }
        }
    }
}

/// Keeps the lines of clocks true until it is dropped.
pub(crate) struct CardClocks {
    followed: Arc<Mutex<Followed>>,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl CardClocks {
    /// Follows clocks, which have numbers from 1 on in the map.
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

    /// Reads the clocks once more, and returns how far the lines were off until now.
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
            // What it panicked with it has told already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
