//! The one place where threads of streams are made.
//!
//! What must hold: a thread that cannot be made is an error of whoever wanted it, and ends nothing else.

use std::io;
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// Runs `run` on a thread of its own.
///
/// # Errors
/// When there may be no more threads.
pub(crate) fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    run: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    let named = Builder::new().name(String::from("nicpoll-iperf"));
    named.spawn_scoped(scope, run)
}
