//! Shared by netblast and netsend: sockets, datagram counters, send counts, and whether sent datagrams can
//! reach anyone.
//!
//! A full queue is a send error like any other and does not fail a test. A closed port at the receiver, a
//! missing route, or an interface that takes nothing does.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nicpoll_sys::socket;
use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::sockets::{RefusedSends, SEND_TIMEOUT, any_address, kernel_words};
use crate::timing::Shortfall;
use crate::workload::Because;

/// Most datagrams per batch: `UDP_MAX_SEGMENTS` of Linux before 6.9; later kernels take more.
pub(crate) const BATCH_DATAGRAMS_MAX: usize = 64;

/// The result of a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// The send calls.
    pub count: SendCount,
    /// The start, since 1970; for netsend, that of its schedule.
    pub start: Duration,
    /// The end, since 1970.
    pub finish: Duration,
    /// How long sending took.
    pub elapsed: Duration,
    /// How many of netsend's clock readings were too early.
    pub waited: u64,
}

/// Counts of send calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendCount {
    /// Datagrams passed to the kernel.
    pub calls: u64,
    /// Datagrams that the kernel refused.
    pub errors: u64,
    /// Refused datagrams by errno(3), in order of first occurrence.
    pub errors_by_number: Vec<(i32, u64)>,
    /// System calls made.
    pub system_calls: u64,
}

impl SendCount {
    /// Datagrams that the kernel took.
    pub fn successes(&self) -> u64 {
        self.calls - self.errors
    }

    /// Datagrams that the kernel refused and also counted where it dropped them.
    pub fn refused(&self) -> RefusedSends {
        let mut refused = RefusedSends::default();
        for &(number, count) in &self.errors_by_number {
            refused.note(&io::Error::from_raw_os_error(number), count);
        }
        refused
    }

    /// The problem if one port of a range is closed: others may be open, so the test goes on.
    pub(super) fn closed_of(&self, ports: RangeInclusive<u16>) -> Option<String> {
        let refused = Errno::CONNREFUSED.raw_os_error();
        let mut errors = self.errors_by_number.iter();
        let (_, told) = errors.find(|(number, _)| *number == refused)?;
        let (first, last) = ports.into_inner();
        (first < last).then(|| {
            format!(
                "at least one port of {first}-{last} is closed: {told} of {} send calls were refused",
                self.calls
            )
        })
    }

    /// The first error that means a datagram cannot reach its receiver.
    fn cut_off(&self) -> Option<Errno> {
        let numbers = self.errors_by_number.iter().map(|(number, _)| *number);
        let mut errors = numbers.map(Errno::from_raw_os_error);
        errors.find(|errno| is_cut_off(*errno))
    }

    /// Adds another sender's counts.
    pub fn add(&mut self, other: &SendCount) {
        self.calls += other.calls;
        self.system_calls += other.system_calls;
        for &(number, count) in &other.errors_by_number {
            self.count_errors(number, count);
        }
    }

    pub(super) fn count(&mut self, datagrams: u64, result: Result<(), Errno>) {
        self.calls += datagrams;
        self.system_calls += 1;
        if let Err(errno) = result {
            self.count_errors(errno.raw_os_error(), datagrams);
        }
    }

    fn count_errors(&mut self, number: i32, count: u64) {
        self.errors += count;
        let mut known = self.errors_by_number.iter_mut();
        match known.find(|(known, _)| *known == number) {
            Some((_, sum)) => *sum += count,
            None => self.errors_by_number.push((number, count)),
        }
    }
}

/// Whether an error means that datagrams cannot reach the receiver, regardless of queues.
fn is_cut_off(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::CONNREFUSED | Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::NETDOWN | Errno::NODEV
    )
}

/// A sender's progress, for a watching thread.
#[derive(Debug, Default)]
pub struct SendProgress {
    taken: AtomicU64,
    has_begun: AtomicBool,
    is_cut_off: AtomicBool,
}

impl SendProgress {
    pub(super) fn note(&self, count: &SendCount, result: Result<(), Errno>) {
        self.has_begun.store(true, Ordering::Relaxed);
        self.taken.store(count.successes(), Ordering::Relaxed);
        if result.is_err_and(is_cut_off) {
            self.is_cut_off.store(true, Ordering::Relaxed);
        }
    }
}

/// A slow sender may be silent for as long as this many of its datagrams take.
const SILENCE_DATAGRAMS: u32 = 8;

/// What the watching thread saw of the senders.
#[derive(Debug)]
pub(super) struct Reach {
    senders: Vec<Arc<SendProgress>>,
    began: Instant,
    taken: u64,
    good_until: Duration,
    looked: Duration,
    is_cut_off: bool,
}

impl Reach {
    /// Senders that start now.
    pub fn new(senders: Vec<Arc<SendProgress>>) -> Self {
        Reach {
            senders,
            began: Instant::now(),
            taken: 0,
            good_until: Duration::ZERO,
            looked: Duration::ZERO,
            is_cut_off: false,
        }
    }

    /// Reads the senders' progress.
    pub fn look(&mut self) {
        let any = |of: fn(&SendProgress) -> &AtomicBool| {
            let mut senders = self.senders.iter();
            senders.any(|sender| of(sender).load(Ordering::Relaxed))
        };
        if !any(|sender| &sender.has_begun) {
            self.began = Instant::now();
        }
        self.looked = self.began.elapsed();
        self.is_cut_off |= any(|sender| &sender.is_cut_off);
        let taken = self
            .senders
            .iter()
            .map(|one| one.taken.load(Ordering::Relaxed));
        let taken = taken.sum();
        if !self.is_cut_off && taken > self.taken {
            self.good_until = self.looked;
        }
        self.taken = taken;
    }

    /// How the test fell short, and why; `None` if it did not.
    pub fn shortfall(&self, count: &SendCount) -> Option<String> {
        let rests = match (self.is_cut_off, count.successes()) {
            (true, _) | (_, 0) => Duration::ZERO,
            (false, taken) => {
                self.looked * SILENCE_DATAGRAMS / u32::try_from(taken).unwrap_or(u32::MAX)
            }
        };
        let (asked, obtained) = (self.looked, self.good_until);
        Shortfall::of(asked, obtained.saturating_add(rests))?;
        let why = match count.cut_off() {
            Some(Errno::CONNREFUSED) => String::from("nobody receives there, its port is closed"),
            Some(errno) => format!(
                "{}; see the route and whether the link is up",
                words_of(errno.raw_os_error())
            ),
            None => String::from("nothing left this host any more; see whether the link is up"),
        };
        let shortfall = Shortfall { asked, obtained };
        Some(format!("{}: {why}", shortfall.while_sending()))
    }
}

/// The kernel's words for an error.
pub(super) fn words_of(errno: i32) -> String {
    kernel_words(&io::Error::from_raw_os_error(errno))
}

/// An error of a step with the original's name: `socket`, `connect`, `SO_RCVBUF` or `bind`.
pub(super) fn at<E: Into<io::Error>>(step: &str) -> impl Fn(E) -> Because {
    move |error| Because {
        what: String::from(step),
        source: error.into(),
    }
}

/// Connects a socket to the first address that works.
///
/// # Errors
/// The last address's error; without any address, that there is none.
pub fn connect_first(addresses: &[SocketAddr]) -> Result<(UdpSocket, SocketAddr), Because> {
    let mut failed = at("connect")(io::ErrorKind::AddrNotAvailable);
    for &peer in addresses {
        match open(peer).and_then(|socket| connect(socket, peer, "connect")) {
            Ok(socket) => return Ok((socket, peer)),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Connects a socket; the originals have different names for this step.
pub(super) fn connect(
    socket: UdpSocket,
    peer: SocketAddr,
    step: &str,
) -> Result<UdpSocket, Because> {
    let connected = socket.connect(peer).map_err(at(step));
    connected.map(|()| socket)
}

/// Opens a socket of the peer's family on a port that the kernel chooses.
pub(super) fn open(peer: SocketAddr) -> Result<UdpSocket, Because> {
    let bound = UdpSocket::bind(any_address(peer.is_ipv6(), 0));
    bound.map_err(at("socket"))
}

/// Makes sends wait for room, or fail at once without it.
///
/// Linux reports a refusal by the sender's own interface only to sockets that ask for errors; FreeBSD always
/// does.
pub(crate) fn set_up(
    socket: &UdpSocket,
    peer: SocketAddr,
    is_blocking: bool,
) -> io::Result<SendFlags> {
    if is_blocking {
        socket.set_write_timeout(Some(SEND_TIMEOUT))?;
        return Ok(SendFlags::empty());
    }
    socket::enable_send_errors(socket, peer.is_ipv6())?;
    Ok(SendFlags::DONTWAIT)
}

/// Whether a send has no outcome yet: a blocking one timed out so the signals can be checked, and is repeated.
pub(super) fn is_unfinished(flags: SendFlags, errno: Errno) -> bool {
    !flags.contains(SendFlags::DONTWAIT) && matches!(errno, Errno::AGAIN | Errno::INTR)
}

/// Writes the counter at the start of a datagram, if it fits.
pub(crate) fn number(datagram: &mut [u8], counter: u32) {
    if let Some(room) = datagram.first_chunk_mut() {
        *room = counter.to_be_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_by_their_number() {
        let mut count = SendCount::default();
        count.count(64, Ok(()));
        count.count(64, Err(Errno::AGAIN));
        count.count(1, Err(Errno::CONNREFUSED));
        count.count(1, Err(Errno::AGAIN));
        let mut sum = count.clone();
        sum.add(&count);
        assert_eq!((sum.calls, sum.errors, sum.successes()), (260, 132, 128));
        assert_eq!(sum.system_calls, 8);
        let [again, refused] = [Errno::AGAIN, Errno::CONNREFUSED].map(Errno::raw_os_error);
        assert_eq!(sum.errors_by_number, [(again, 130), (refused, 2)]);
    }

    #[test]
    fn a_closed_port_of_a_range_is_told_and_is_no_end() {
        let mut count = SendCount::default();
        count.count(1, Ok(()));
        assert_eq!(count.closed_of(9000..=9001), None);
        count.count(1, Err(Errno::CONNREFUSED));
        let told = "at least one port of 9000-9001 is closed: 1 of 2 send calls were refused";
        assert_eq!(count.closed_of(9000..=9001).as_deref(), Some(told));
        assert_eq!(count.closed_of(9000..=9000), None);
    }

    #[test]
    fn what_the_kernel_refused_and_counted_is_told_from_other_errors() {
        let mut count = SendCount::default();
        assert_eq!(count.refused().all(), 0);
        count.count(1, Err(Errno::AGAIN));
        count.count(3, Err(Errno::NOBUFS));
        count.count(1, Err(Errno::NETUNREACH));
        count.count(1, Err(Errno::NOBUFS));
        assert_eq!((count.refused().all(), count.errors), (5, 6));
    }

    #[test]
    fn a_counter_is_big_endian_and_needs_four_bytes() {
        let mut datagram = [0; 6];
        number(&mut datagram, 0x0102_0304);
        assert_eq!(datagram, [1, 2, 3, 4, 0, 0]);
        let mut short = [0; 3];
        number(&mut short, 0x0102_0304);
        assert_eq!(short, [0; 3]);
    }

    #[test]
    fn the_first_address_that_works_is_taken() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let good = receiver.local_addr().unwrap();
        // A datagram to a broadcast address needs a permission that the socket does not request.
        let bad: SocketAddr = "255.255.255.255:9".parse().unwrap();
        assert_eq!(connect_first(&[bad, good]).unwrap().1, good);
        let error = connect_first(&[bad]).unwrap_err();
        assert_eq!(error.to_string(), "connect");
        assert!(connect_first(&[]).is_err());
    }
}
