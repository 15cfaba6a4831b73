//! Points at which a test may kill the process: after each step of the journal, before each write to the
//! kernel. A build for use has none of them.

/// Names the point, counted from 1, at which the process kills itself.
#[cfg(debug_assertions)]
const VARIABLE: &str = "NICPOLL_TEST_KILL_AT_POINT";

/// A point. In a build with debug assertions, and with the variable set, the process ends here as by
/// `kill -9`: nothing is unwound, flushed or put back.
#[cfg(debug_assertions)]
pub fn point() {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static LEFT: LazyLock<Option<AtomicU64>> = LazyLock::new(|| {
        let point = std::env::var(VARIABLE).ok()?.parse().ok()?;
        Some(AtomicU64::new(point))
    });
    let Some(left) = &*LEFT else { return };
    if left.fetch_sub(1, Ordering::Relaxed) == 1 {
        let own = rustix::process::getpid();
        let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
    }
}

/// A point; nothing in this build.
#[cfg(not(debug_assertions))]
pub fn point() {}
