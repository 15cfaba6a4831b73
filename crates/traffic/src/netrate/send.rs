//! netsend: sends at a steady rate by watching the clock instead of sleeping.
//!
//! The n-th datagram is due n intervals after a start on a whole second. As in the original, the interval is
//! truncated to whole nanoseconds, and the clock is read only before every k-th datagram; those in between are
//! sent at once.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nicpoll_model::Rate;
use nicpoll_model::units::NS_PER_SECOND;
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketAddrAny, send, sendto};
use rustix::time::{ClockId, clock_getres};

use crate::netrate::options::NetrateOptions;
use crate::netrate::sending::{self, SendCount, SendProgress, Sent, number};
use crate::signals::Signals;
use crate::workload::Because;

/// Least time between the original's clock readings, unless a datagram takes longer.
const LOOK_EVERY_NS: u64 = 200_000;
/// Most datagrams between clock readings.
const DATAGRAMS_A_LOOK_MAX: u64 = 100;
/// Sleep until this close to the start, then spin.
const SPIN_NS: u64 = 20_000_000;

/// When datagrams are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendSchedule {
    /// Nanoseconds between datagrams; 0 sends without waiting.
    pub interval_ns: u64,
    /// The clock is read before every n-th datagram; 0 and 1 both mean each.
    pub datagrams_a_look: u64,
}

impl SendSchedule {
    /// The original's schedule for a rate. At 1 datagram per second, the original takes the interval for none
    /// and sends 99 at once; here, the interval is kept.
    pub(crate) fn of_rate(rate: Option<Rate>) -> Self {
        let interval = rate.map_or(Duration::ZERO, |rate| rate.time_of(1, 0));
        let interval_ns = interval.as_nanos() as u64;
        let datagrams_a_look = if interval_ns < LOOK_EVERY_NS / DATAGRAMS_A_LOOK_MAX {
            DATAGRAMS_A_LOOK_MAX
        } else {
            LOOK_EVERY_NS / interval_ns
        };
        SendSchedule {
            interval_ns,
            datagrams_a_look,
        }
    }

    /// The clock's resolution, if the interval does not exceed it.
    pub(crate) fn finer_than_clock(&self) -> Option<Duration> {
        let resolution = clock_getres(ClockId::Realtime);
        let resolution = Duration::new(resolution.tv_sec as u64, resolution.tv_nsec as u32);
        (Duration::from_nanos(self.interval_ns) <= resolution).then_some(resolution)
    }
}

/// A sender with its socket and its datagram.
#[derive(Debug)]
pub struct PacedSender {
    socket: UdpSocket,
    flags: SendFlags,
    /// The receiver's address and first port.
    peer: SocketAddr,
    /// Its last port. All ports get datagrams in turn, and each port gets every counter value. With only one
    /// port, the socket is connected.
    port_max: u16,
    schedule: SendSchedule,
    /// How long to send; zero sends until told to stop.
    duration: Duration,
    packet: Vec<u8>,
    counter: u32,
    port: u16,
    progress: Arc<SendProgress>,
}

impl PacedSender {
    /// Opens a socket that sends to `peer` and its following ports as the options say.
    ///
    /// # Errors
    /// With the original's word for the failed step.
    pub fn new(peer: SocketAddr, options: &NetrateOptions) -> Result<Self, Because> {
        let mut socket = sending::open(peer)?;
        if peer.port() == options.port_max {
            let step = match peer {
                SocketAddr::V4(_) => "connect (ipv4)",
                SocketAddr::V6(_) => "connect (ipv6)",
            };
            socket = sending::connect(socket, peer, step)?;
        }
        let flags =
            sending::set_up(&socket, peer, options.is_blocking).map_err(sending::at("socket"))?;
        Ok(PacedSender {
            socket,
            flags,
            peer,
            port_max: options.port_max,
            schedule: SendSchedule::of_rate(options.rate),
            duration: Duration::from_secs(options.duration_seconds),
            packet: vec![0; options.payload_bytes],
            counter: 0,
            port: peer.port(),
            progress: Arc::default(),
        })
    }

    /// The sender's progress, for another thread to watch.
    pub fn progress(&self) -> Arc<SendProgress> {
        Arc::clone(&self.progress)
    }

    /// Waits for the start, then sends until the time is up or `signals` finish or cancel.
    pub fn run(&mut self, signals: &Signals) -> Sent {
        let is_over = || signals.is_finishing() || signals.is_cancelled();
        let clock = || (!is_over()).then(real_time_ns);
        let start_ns = start_ns(clock);
        let mut count = SendCount::default();
        let (schedule, duration) = (self.schedule, self.duration);
        let waited = pace(schedule, start_ns, duration, clock, || {
            self.send_next(&mut count, signals);
        });
        // A signal may come before the start.
        let finish_ns = real_time_ns().max(start_ns);
        let [start, finish] = [start_ns, finish_ns].map(Duration::from_nanos);
        Sent {
            count,
            start,
            finish,
            elapsed: finish - start,
            waited,
        }
    }

    fn send_next(&mut self, count: &mut SendCount, signals: &Signals) {
        if self.port == self.peer.port() {
            number(&mut self.packet, self.counter);
            self.counter = self.counter.wrapping_add(1);
        }
        let result = loop {
            match self.send() {
                Err(errno) if sending::is_unfinished(self.flags, errno) => {
                    if signals.is_finishing() || signals.is_cancelled() {
                        return;
                    }
                }
                result => break result,
            }
        };
        let result = result.map(|_| ());
        count.count(1, result);
        // In a range, one closed port does not cut off the others.
        let is_range = self.peer.port() < self.port_max;
        let is_closed = is_range && result == Err(Errno::CONNREFUSED);
        self.progress
            .note(count, if is_closed { Ok(()) } else { result });
        self.port = if self.port == self.port_max {
            self.peer.port()
        } else {
            self.port + 1
        };
    }

    fn send(&self) -> rustix::io::Result<usize> {
        if self.peer.port() == self.port_max {
            return send(&self.socket, &self.packet, self.flags);
        }
        let mut peer = self.peer;
        peer.set_port(self.port);
        sendto(
            &self.socket,
            &self.packet,
            self.flags,
            &SocketAddrAny::from(peer),
        )
    }
}

/// Picks a whole second more than one from now. Returns shortly before it, or when the clock ends.
fn start_ns(mut clock: impl FnMut() -> Option<u64>) -> u64 {
    let start_ns = (real_time_ns() / NS_PER_SECOND + 2) * NS_PER_SECOND;
    while let Some(now_ns) = clock() {
        let left_ns = start_ns.saturating_sub(now_ns);
        if left_ns <= SPIN_NS {
            break;
        }
        thread::sleep(Duration::from_nanos((left_ns - SPIN_NS).min(SPIN_NS)));
    }
    start_ns
}

fn real_time_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_nanos() as u64
}

/// The original's loop. Calls `send_next` for each datagram that is due; returns how many clock readings were
/// too early. The clock counts nanoseconds since 1970; `None` ends the loop.
fn pace(
    schedule: SendSchedule,
    start_ns: u64,
    duration: Duration,
    mut clock: impl FnMut() -> Option<u64>,
    mut send_next: impl FnMut(),
) -> u64 {
    let second = |ns: u64| ns / NS_PER_SECOND;
    let finish_second = second(start_ns).saturating_add(duration.as_secs());
    let Some(mut now_ns) = wait_beyond(start_ns, &mut clock).0 else {
        return 0;
    };
    let mut all_waited = 0;
    let mut due_ns = start_ns;
    let mut until_look = schedule.datagrams_a_look;
    loop {
        due_ns = due_ns.saturating_add(schedule.interval_ns);
        until_look = until_look.saturating_sub(1);
        if until_look == 0 {
            until_look = schedule.datagrams_a_look;
            let (seen_ns, waited) = wait_beyond(due_ns, &mut clock);
            all_waited += waited;
            let Some(seen_ns) = seen_ns else {
                return all_waited;
            };
            now_ns = seen_ns;
        }
        send_next();
        if !duration.is_zero() && second(now_ns) >= finish_second {
            return all_waited;
        }
    }
}

/// Watches the clock until it passes a time. Returns that reading, and how many were too early.
fn wait_beyond(time_ns: u64, clock: &mut impl FnMut() -> Option<u64>) -> (Option<u64>, u64) {
    let mut waited = 0;
    loop {
        match clock() {
            Some(now_ns) if now_ns <= time_ns => waited += 1,
            other => return (other, waited),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_NS: u64 = 1_000 * NS_PER_SECOND;

    /// The clock advances by a step per reading, and once by an extra tenth of a second.
    fn sent(packets_per_second: u64, seconds: u64, step_ns: u64, stalls_at_ns: u64) -> (u64, u64) {
        let (mut now_ns, mut stalls_at_ns) = (START_NS - 10 * step_ns, stalls_at_ns);
        let clock = || {
            now_ns += step_ns;
            if now_ns >= stalls_at_ns {
                stalls_at_ns = u64::MAX;
                now_ns += NS_PER_SECOND / 10;
            }
            Some(now_ns)
        };
        let mut sent = 0;
        let schedule = SendSchedule::of_rate(Rate::packets_per_second(packets_per_second));
        let duration = Duration::from_secs(seconds);
        let waited = pace(schedule, START_NS, duration, clock, || sent += 1);
        (sent, waited)
    }

    #[test]
    fn intervals_and_looks_are_the_originals() {
        for (rate, interval_ns, datagrams_a_look) in [
            (0, 0, 100),
            (2, 500_000_000, 0),
            (3, 333_333_333, 0),
            (5_000, 200_000, 1),
            (1_000, 1_000_000, 0),
            (100_000, 10_000, 20),
            (500_000, 2_000, 100),
            (1_000_000, 1_000, 100),
            (100_000_000, 10, 100),
        ] {
            let schedule = SendSchedule::of_rate(Rate::packets_per_second(rate));
            assert_eq!(schedule.interval_ns, interval_ns, "{rate}");
            assert_eq!(schedule.datagrams_a_look, datagrams_a_look, "{rate}");
        }
        // The original's 100 would mean 99 datagrams at once.
        assert_eq!(
            SendSchedule::of_rate(Rate::packets_per_second(1)).datagrams_a_look,
            0
        );
    }

    #[test]
    fn as_many_are_sent_as_the_schedule_has() {
        for (rate, seconds) in [(1, 3), (2, 1), (1_000, 2), (5_000, 1), (100_000, 1)] {
            let (count, waited) = sent(rate, seconds, 90, u64::MAX);
            assert_eq!(count, rate * seconds, "{rate}");
            assert!(waited > count, "{rate}");
        }
    }

    #[test]
    fn what_was_missed_is_made_up_for_and_the_end_stays() {
        let (count, _) = sent(1_000, 1, 90, START_NS + NS_PER_SECOND / 2);
        assert_eq!(count, 1_000);
        let (count, _) = sent(1_000, 1, 90, START_NS + NS_PER_SECOND * 95 / 100);
        assert!((940..=960).contains(&count), "{count}");
    }

    #[test]
    fn without_a_rate_the_clock_is_watched_for_the_end_only() {
        let (count, waited) = sent(0, 1, 1_000_000, u64::MAX);
        assert!(count >= 100 && count.is_multiple_of(100), "{count}");
        assert_eq!(waited, 0);
    }
}
