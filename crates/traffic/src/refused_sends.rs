//! Datagrams that the kernel refused to send, for the account of where each ended.
//!
//! What must hold: whoever sends datagrams for an account counts with this, servers too. The kernel counts each of
//! them in a line of its own, so that one which the program leaves out would be lost twice over.

use std::io;
use std::ops::AddAssign;

use nicpoll_model::ControlKind;
use rustix::io::Errno;

use crate::sockets;

/// Sends that were refused, by what the kernel counts them as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedSends {
    /// There was no room, or the host's own queue or interface dropped them.
    pub unsent: u64,
    /// A filter of the host dropped them on their way out: `EPERM`.
    pub filtered: u64,
}

impl RefusedSends {
    /// Counts datagrams that met with an error, if it is one after which the next send may succeed: whether it is.
    pub fn note(&mut self, error: &io::Error, datagrams: u64) -> bool {
        let count = if error.raw_os_error() == Some(Errno::PERM.raw_os_error()) {
            &mut self.filtered
        } else if sockets::is_refused_send(error) {
            &mut self.unsent
        } else {
            return false;
        };
        *count += datagrams;
        true
    }

    /// All of them.
    pub fn all(self) -> u64 {
        self.unsent + self.filtered
    }

    /// The same as lines of an account.
    pub fn control(self) -> [(ControlKind, u64); 2] {
        [
            (ControlKind::Refused, self.unsent),
            (ControlKind::Filtered, self.filtered),
        ]
    }
}

impl AddAssign for RefusedSends {
    fn add_assign(&mut self, other: Self) {
        self.unsent += other.unsent;
        self.filtered += other.filtered;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_filter_dropped_is_told_from_what_had_no_room_and_from_what_ends_the_sending() {
        let mut refused = RefusedSends::default();
        for (errno, passes) in [
            (Errno::PERM, true),
            (Errno::NOBUFS, true),
            (Errno::AGAIN, true),
            (Errno::NETUNREACH, false),
        ] {
            assert_eq!(refused.note(&errno.into(), 3), passes, "{errno}");
        }
        let expected = RefusedSends {
            unsent: 6,
            filtered: 3,
        };
        assert_eq!(refused, expected);
        refused += expected;
        assert_eq!(refused.all(), 18);
        assert_eq!(
            refused.control(),
            [(ControlKind::Refused, 12), (ControlKind::Filtered, 6)]
        );
    }
}
