//! How fast something is asked to be sent: the one type for it, whichever command reads it.
//!
//! What must hold: a rate is never zero and is kept as an exact fraction, so that what follows from it
//! (when the n-th packet is due) is rounded once and no error adds up.

use std::num::NonZeroU64;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const NS_PER_SECOND: u128 = 1_000_000_000;

/// What a rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateUnit {
    /// Bits of payload; of frames (layer 2) for a bare frame.
    BitsPerSecond,
    /// Packets: datagrams, frames or requests.
    PacketsPerSecond,
}

/// So many bits or packets a second, above 0 and exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    unit: RateUnit,
    numerator: NonZeroU64,
    denominator: NonZeroU64,
}

impl Rate {
    /// A whole number of bits a second; `None` for 0.
    pub const fn bits_per_second(bits: u64) -> Option<Self> {
        Self::whole(RateUnit::BitsPerSecond, bits)
    }

    /// A whole number of packets a second; `None` for 0.
    pub const fn packets_per_second(packets: u64) -> Option<Self> {
        Self::whole(RateUnit::PacketsPerSecond, packets)
    }

    const fn whole(unit: RateUnit, count: u64) -> Option<Self> {
        match NonZeroU64::new(count) {
            Some(numerator) => Some(Rate {
                unit,
                numerator,
                denominator: NonZeroU64::MIN,
            }),
            None => None,
        }
    }

    /// A decimal number (`0.4`, `1.5e3`) times `scale`, exactly. `None` for what is no such number, for 0
    /// and for fractions whose parts exceed 64 bits.
    pub fn decimal(unit: RateUnit, text: &str, scale: u64) -> Option<Self> {
        let (digits, exponent) = match text.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let fraction = fraction.trim_end_matches('0');
        let number = format!("{whole}{fraction}");
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let number: u128 = number.parse().ok()?;
        let power = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        let ten_to_power = 10_u128.checked_pow(power.unsigned_abs())?;
        let scaled = number.checked_mul(scale.into())?;
        if power < 0 {
            Self::fraction(unit, scaled, ten_to_power)
        } else {
            Self::fraction(unit, scaled.checked_mul(ten_to_power)?, 1)
        }
    }

    fn fraction(unit: RateUnit, numerator: u128, denominator: u128) -> Option<Self> {
        let divisor = greatest_common_divisor(numerator, denominator);
        Some(Rate {
            unit,
            numerator: NonZeroU64::new((numerator / divisor).try_into().ok()?)?,
            denominator: NonZeroU64::new((denominator / divisor).try_into().ok()?)?,
        })
    }

    /// The rate of each of so many that have it together.
    pub fn share(self, of: NonZeroU64) -> Option<Self> {
        let parts = self.denominator().checked_mul(of.get().into())?;
        Self::fraction(self.unit, self.numerator(), parts)
    }

    /// What it counts.
    pub const fn unit(self) -> RateUnit {
        self.unit
    }

    /// The number as it is shown.
    pub fn per_second(self) -> f64 {
        self.numerator.get() as f64 / self.denominator.get() as f64
    }

    /// The number, unless it has a fraction.
    pub fn whole_per_second(self) -> Option<u64> {
        (self.denominator == NonZeroU64::MIN).then_some(self.numerator.get())
    }

    /// The same rate in bits, of packets of so many: rounded, and 1 at least.
    pub fn bits_of(self, packet_bits: u64) -> u64 {
        match self.unit {
            RateUnit::BitsPerSecond => round(self.numerator(), self.denominator()),
            RateUnit::PacketsPerSecond => {
                let numerator = self.numerator().saturating_mul(packet_bits.into());
                round(numerator, self.denominator())
            }
        }
    }

    /// The time that so many packets of `packet_bits` bits take, cut to whole nanoseconds: when the packet
    /// is due that follows on them.
    pub fn time_of(self, packets: u64, packet_bits: u64) -> Duration {
        let ns = u128::from(packets).saturating_mul(self.packet_ns(packet_bits)) / self.numerator();
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// How many packets of `packet_bits` bits that time holds.
    pub fn packets_in(self, time: Duration, packet_bits: u64) -> u64 {
        let packet_ns = self.packet_ns(packet_bits).max(1);
        let packets = time.as_nanos().saturating_mul(self.numerator()) / packet_ns;
        u64::try_from(packets).unwrap_or(u64::MAX)
    }

    /// The time of one packet is this many nanoseconds divided by the numerator.
    fn packet_ns(self, packet_bits: u64) -> u128 {
        let units = match self.unit {
            RateUnit::BitsPerSecond => packet_bits,
            RateUnit::PacketsPerSecond => 1,
        };
        (u128::from(units) * self.denominator()).saturating_mul(NS_PER_SECOND)
    }

    fn numerator(self) -> u128 {
        self.numerator.get().into()
    }

    fn denominator(self) -> u128 {
        self.denominator.get().into()
    }
}

fn round(numerator: u128, denominator: u128) -> u64 {
    let rounded = (numerator + denominator / 2) / denominator;
    u64::try_from(rounded).unwrap_or(u64::MAX).max(1)
}

fn greatest_common_divisor(mut one: u128, mut other: u128) -> u128 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one.max(1)
}

#[cfg(test)]
mod tests {
    use super::RateUnit::{BitsPerSecond, PacketsPerSecond};
    use super::*;

    #[test]
    fn decimals_are_read_exactly() {
        for (text, scale, numerator, denominator) in [
            ("0.4", 1, 2, 5),
            ("1.4", 1, 7, 5),
            ("2.60", 1, 13, 5),
            ("1e3", 1, 1000, 1),
            ("25e-2", 1, 1, 4),
            (".5", 1000, 500, 1),
            ("3.", 1, 3, 1),
            ("1.5", 1 << 10, 1536, 1),
        ] {
            let rate = Rate::decimal(PacketsPerSecond, text, scale).unwrap();
            let fraction = (rate.numerator.get(), rate.denominator.get());
            assert_eq!(fraction, (numerator, denominator), "{text}");
        }
        for wrong in [
            "", ".", "0", "0.0", "-1", "+1", "1x", "1e", "inf", "nan", "1e40", "1e-30", "1.2.3",
        ] {
            assert_eq!(Rate::decimal(PacketsPerSecond, wrong, 1), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_due_is_exact_however_long_it_runs() {
        for (text, packets, seconds) in [
            ("0.4", 2, 5),
            ("1.4", 7, 5),
            ("2.6", 13, 5),
            ("2.6", 13_000_000, 5_000_000),
        ] {
            let rate = Rate::decimal(PacketsPerSecond, text, 1).unwrap();
            let time = Duration::from_secs(seconds);
            assert_eq!(rate.time_of(packets, 0), time, "{text}");
            assert_eq!(rate.packets_in(time, 0), packets, "{text}");
            assert_eq!(
                rate.packets_in(time - Duration::from_nanos(1), 0),
                packets - 1
            );
        }
        let bits = Rate::bits_per_second(1 << 20).unwrap();
        let million = bits.time_of(1_000_000, 8 * 1470);
        assert_eq!(million, Duration::from_nanos(11_215_209_960_937));
    }

    #[test]
    fn a_rate_of_packets_is_one_of_bits_when_their_length_is_known() {
        let rate = Rate::decimal(PacketsPerSecond, "1.4", 1).unwrap();
        assert_eq!(rate.bits_of(8 * 1470), 16_464);
        assert_eq!(rate.whole_per_second(), None);
        assert_eq!(rate.per_second(), 1.4);
        let slow = Rate::decimal(PacketsPerSecond, "0.001", 1).unwrap();
        assert_eq!(slow.bits_of(8), 1);
        let bits = Rate::decimal(BitsPerSecond, "2.5", 1_000_000).unwrap();
        assert_eq!(bits.whole_per_second(), Some(2_500_000));
    }

    #[test]
    fn extremes_neither_overflow_nor_divide_by_zero() {
        let slow = Rate::bits_per_second(1).unwrap();
        let long = slow.time_of(u64::MAX, u64::MAX);
        assert_eq!(long, Duration::from_nanos(u64::MAX));
        let fast = Rate::bits_per_second(u64::MAX).unwrap();
        assert_eq!(fast.packets_in(Duration::MAX, 0), u64::MAX);
        assert_eq!(Rate::bits_per_second(0), None);
        assert_eq!(Rate::packets_per_second(0), None);
    }
}
