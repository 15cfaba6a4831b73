//! A thread that does something over and over until nobody wants it any more.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// The thread. It ends with this value.
pub(crate) struct Background {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts a thread that takes one turn after another. A turn waits for what it waits for, but not for long, or in
    /// [`thread::park_timeout`], which ends when the thread is to end.
    ///
    /// # Errors
    /// When no thread can be had.
    pub(crate) fn start(name: &str, mut turn: impl FnMut() + Send + 'static) -> io::Result<Self> {
        let ends = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&ends);
        let turns = move || {
            while !is_over.load(Ordering::Relaxed) {
                turn();
            }
        };
        let thread = thread::Builder::new().name(String::from(name));
        Ok(Background {
            ends,
            thread: Some(thread.spawn(turns)?),
        })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
