//! How much of the time that was asked for a test obtained.
//!
//! What must hold: a test that ended early never passes for one that was carried out, and a test that
//! was only stopped a little late or early does.

use std::fmt;
use std::time::Duration;

/// A test may end earlier by this part of its time, within these bounds: clocks and last datagrams differ.
const TOLERANCE_PART: u32 = 8;
const TOLERANCE_MIN: Duration = Duration::from_millis(150);
const TOLERANCE_MAX: Duration = Duration::from_secs(1);

/// A test that ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// What was asked for.
    pub asked: Duration,
    /// Until when data flowed.
    pub obtained: Duration,
}

impl Shortfall {
    /// `None` when the test lasted as long as was asked.
    pub fn of(asked: Duration, obtained: Duration) -> Option<Self> {
        let tolerance = (asked / TOLERANCE_PART).clamp(TOLERANCE_MIN, TOLERANCE_MAX);
        (obtained.saturating_add(tolerance) < asked).then_some(Shortfall { asked, obtained })
    }
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [obtained, asked] = [self.obtained, self.asked].map(|time| time.as_secs_f64());
        write!(f, "ended after {obtained:.1} of {asked:.1} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_falls_short_by_more_than_its_tolerance() {
        let ms = Duration::from_millis;
        for (asked, obtained, is_short) in [
            (4000, 1000, true),
            (4000, 3499, true),
            (4000, 3500, false),
            (4000, 5000, false),
            (300, 149, true),
            (300, 150, false),
            (60_000, 58_999, true),
            (60_000, 59_000, false),
        ] {
            let shortfall = Shortfall::of(ms(asked), ms(obtained));
            assert_eq!(shortfall.is_some(), is_short, "{obtained} of {asked} ms");
        }
    }

    #[test]
    fn it_says_how_much_of_what() {
        let shortfall = Shortfall::of(Duration::from_secs(4), Duration::from_millis(1020));
        let text = shortfall.map(|shortfall| shortfall.to_string());
        assert_eq!(text.as_deref(), Some("ended after 1.0 of 4.0 s"));
    }
}
