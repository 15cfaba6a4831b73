//! A descriptor that is kept for the moment when there are no more.
//!
//! A connection that cannot be accepted for want of a descriptor stays in the kernel's queue, and its
//! client believes to be connected. The spare one is given up to take such a connection and to close it,
//! so that its client learns of it at once.

use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};
use std::thread;

use rustix::io::Errno;

use crate::LOOK_EVERY;

/// Opened for no other reason than to be closed.
const NOTHING: &str = "/dev/null";

/// One descriptor, when there is one. A server makes it before it takes anyone.
#[derive(Debug)]
pub struct Spare(Mutex<Option<File>>);

impl Default for Spare {
    fn default() -> Self {
        Spare(Mutex::new(File::open(NOTHING).ok()))
    }
}

impl Spare {
    /// Closes the connection that is next in the queue. Takes some time when that is not possible either,
    /// so that its caller does not try again at once.
    pub fn turn_away(&self, listener: &TcpListener) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(spare.take());
        if listener.accept().is_err() {
            thread::sleep(LOOK_EVERY);
        }
        *spare = File::open(NOTHING).ok();
    }
}

/// Whether a descriptor or the memory behind it could not be had, which passes.
pub fn is_exhausted(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
