//! Realtime scheduling (-z). Threads inherit it, so that it is asked for before any is made.

use nicpoll_sys::schedule::{Policy, set_policy};
use nicpoll_sys::tell;

use crate::options::Common;

/// The least there is: before every program without one, and behind the kernel's own threads.
const POLICY: Policy = Policy::RoundRobin { priority: 1 };
/// The calling thread.
const SELF: u32 = 0;

/// Asks for it, where the options do. A refusal is told, and the test goes on, as with 2.1.8.
pub fn begin(common: &Common) {
    if common.is_realtime
        && let Err(error) = set_policy(SELF, POLICY)
    {
        tell!("WARNING: no realtime priority (-z): {error}; run it as root or with CAP_SYS_NICE");
    }
}
