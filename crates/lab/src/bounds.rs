//! What the numbers of a file may be: one table by their keys.

use nicpoll_model::numbers::count;

use crate::error::Refused;

/// Datagrams of a pulse: as many as one core sends in its time.
pub(crate) const PULSE_PACKETS_MAX: u32 = 4096;

/// The highest rate that can be asked for, a second.
pub const RATE_MAX: u64 = 100_000_000;

/// The numbers of files by their keys: from, to, and what they count.
const NUMBERS: [(&str, u64, u64, &str); 7] = [
    // The least datagram has room for what each kind of workload writes into it.
    ("payload_bytes", 20, 65_507, "bytes"),
    ("packets_per_second", 1, RATE_MAX, "a second"),
    ("requests_per_second", 1, RATE_MAX, "a second"),
    // Each is a thread.
    ("clients", 1, 256, "clients"),
    (
        "packets_per_pulse",
        1,
        PULSE_PACKETS_MAX as u64,
        "datagrams",
    ),
    // The kernel doubles it, in 32 bits.
    ("receive_buffer_bytes", 1, (1 << 30) - 1, "bytes"),
    ("links", 1, 8, "links"),
];

/// What a number of a file may be, in words: `20 to 65,507 bytes`. `None` of a key without bounds of its own.
pub fn bounds_of(key: &str) -> Option<String> {
    let (_, least, most, unit) = NUMBERS.iter().find(|(known, ..)| *known == key)?;
    Some(format!("{} to {} {unit}", count(least), count(most)))
}

/// Refuses a number of a file that is out of its bounds.
pub(crate) fn check_number(key: &str, number: u64) -> Result<(), Refused> {
    let mut bounds = NUMBERS.iter();
    let bounds = bounds.find(|(known, ..)| *known == key);
    match bounds.is_none_or(|(_, least, most, _)| (*least..=*most).contains(&number)) {
        true => Ok(()),
        false => Err(Refused(format!(
            "{key} = {number} is out of range; give {}",
            bounds_of(key).unwrap_or_default()
        ))),
    }
}
