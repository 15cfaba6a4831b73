//! A seed for an order that nobody chose.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::SystemTime;

/// One that is short enough to type, from the hasher that the standard library seeds by chance.
pub fn draw_seed() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    hasher.write_u128(now.unwrap_or_default().as_nanos());
    hasher.finish() % 1_000_000
}
