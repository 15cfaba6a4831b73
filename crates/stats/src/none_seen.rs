//! What the lack of an event allows: "none seen, at most x", never a plain 0.

use crate::confidence::Confidence;

/// The greatest share of events that still leaves so many chances without one, with the probability
/// outside one end of the confidence (C. J. Clopper and E. S. Pearson, Biometrika 26, 1934; with 95 % about
/// 3.7 / chances). It takes the events to come one at a time.
///
/// 1 of no chances.
pub fn none_seen_at_most(chances: u64, confidence: Confidence) -> f64 {
    if chances == 0 {
        return 1.0;
    }
    // 1 - tail^(1/n), in a form that keeps the digits of a small share.
    -(confidence.tail().ln() / chances as f64).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabled_upper_ends() {
        // Clopper and Pearson's 95 % limits for none of 10, 20 and 100.
        for (chances, most) in [(10, 0.3085), (20, 0.1684), (100, 0.03622)] {
            let found = none_seen_at_most(chances, Confidence::PERCENT_95);
            assert!((found - most).abs() < 5e-5, "{chances}: {found}");
        }
        assert_eq!(none_seen_at_most(0, Confidence::PERCENT_95), 1.0);
        let many = none_seen_at_most(10_000_000_000, Confidence::PERCENT_95);
        assert!((many * 1e10 - 3.689).abs() < 1e-3, "{many}");
    }
}
