//! Whether a sender's datagrams could reach anyone for as long as they were sent.
//!
//! What must hold: a full queue is a send error like any other, and no reason to doubt a test. A receiver's
//! closed port, a route that is gone and a way out that takes nothing any more are.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::plain;
use crate::Shortfall;
use crate::netrate::{SendCount, SendProgress};

/// A sender whose datagrams come rarely may be silent for as long as this many of them take.
const SILENCE_DATAGRAMS: u64 = 8;

/// What was seen of the senders while they ran.
#[derive(Debug)]
pub struct Reach {
    senders: Vec<Arc<SendProgress>>,
    began: Instant,
    taken: u64,
    good_until: Duration,
    looked: Duration,
    is_cut_off: bool,
}

impl Reach {
    /// Senders that begin now.
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

    /// Looks at the senders.
    pub fn look(&mut self) {
        if self.senders.iter().all(|sender| !sender.has_begun()) {
            self.began = Instant::now();
        }
        self.looked = self.began.elapsed();
        self.is_cut_off |= self.senders.iter().any(|sender| sender.is_cut_off());
        let taken = self.senders.iter().map(|sender| sender.taken()).sum();
        if !self.is_cut_off && taken > self.taken {
            self.good_until = self.looked;
        }
        self.taken = taken;
    }

    /// What came short of what was asked for, and why; `None` when nothing did.
    pub fn shortfall(&self, count: &SendCount) -> Option<String> {
        let gap = |taken| {
            self.looked * SILENCE_DATAGRAMS as u32 / u32::try_from(taken).unwrap_or(u32::MAX)
        };
        let rests = match (self.is_cut_off, count.successes()) {
            (true, _) | (_, 0) => Duration::ZERO,
            (false, taken) => gap(taken),
        };
        let asked = self.looked;
        let obtained = self.good_until;
        Shortfall::of(asked, obtained.saturating_add(rests))?;
        Some(format!("{}: {}", Shortfall { asked, obtained }, why(count)))
    }
}

fn why(count: &SendCount) -> String {
    match count.cut_off() {
        Some(errno) if errno == rustix::io::Errno::CONNREFUSED.raw_os_error() => {
            String::from("nobody receives there, its port is closed")
        }
        Some(errno) => {
            let text = io::Error::from_raw_os_error(errno).to_string();
            format!("{}; see the route and whether the link is up", plain(&text))
        }
        None => String::from("nothing left this host any more; see whether the link is up"),
    }
}
