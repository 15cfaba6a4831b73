//! Rates, speeds and times: exact arithmetic, the grammar of options and files, and send schedules.
//!
//! Rates are fractions of whole numbers, and schedules are computed from the start of a stream, so rounding errors do
//! not accumulate. Prefixes are powers of ten.

use std::num::NonZeroU64;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Nanoseconds in a second.
pub const NS_PER_SECOND: u64 = 1_000_000_000;

/// The unit that a rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateUnit {
    /// Bits of payload; of frames (layer 2) for a bare frame.
    BitsPerSecond,
    /// Packets: datagrams, frames or requests.
    PacketsPerSecond,
}

/// Bits or packets per second, above 0 and exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    unit: RateUnit,
    numerator: NonZeroU64,
    denominator: NonZeroU64,
}

impl Rate {
    /// A whole number of bits per second; `None` for 0.
    pub const fn bits_per_second(bits: u64) -> Option<Self> {
        Self::whole(RateUnit::BitsPerSecond, bits)
    }

    /// A whole number of packets per second; `None` for 0.
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

    /// Computes a decimal number (`0.4`, `1.5e3`) times `scale`, exactly. `None` for other texts, for 0, and for
    /// fractions whose parts exceed 64 bits.
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

    /// Divides the rate equally among a number of streams.
    pub fn share(self, of: NonZeroU64) -> Option<Self> {
        let parts = self.denominator().checked_mul(of.get().into())?;
        Self::fraction(self.unit, self.numerator(), parts)
    }

    /// Returns the unit it counts.
    pub const fn unit(self) -> RateUnit {
        self.unit
    }

    /// Returns the rate per second, rounded.
    pub fn per_second(self) -> f64 {
        self.numerator.get() as f64 / self.denominator.get() as f64
    }

    /// Returns the rate per second if it is whole.
    pub fn whole_per_second(self) -> Option<u64> {
        (self.denominator == NonZeroU64::MIN).then_some(self.numerator.get())
    }

    /// Converts a packet rate to bits per second, for packets of `packet_bits` bits; rounded, at least 1.
    pub fn bits_of(self, packet_bits: u64) -> u64 {
        let bits = match self.unit {
            RateUnit::BitsPerSecond => self.numerator(),
            RateUnit::PacketsPerSecond => self.numerator().saturating_mul(packet_bits.into()),
        };
        let rounded = (bits + self.denominator() / 2) / self.denominator();
        u64::try_from(rounded).unwrap_or(u64::MAX).max(1)
    }

    /// Returns the time that `packets` packets take, in whole nanoseconds: the next packet is due then.
    pub fn time_of(self, packets: u64, packet_bits: u64) -> Duration {
        let ns = u128::from(packets).saturating_mul(self.packet_ns(packet_bits)) / self.numerator();
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Returns how many packets of `packet_bits` bits fit into a time.
    pub fn packets_in(self, time: Duration, packet_bits: u64) -> u64 {
        let packet_ns = self.packet_ns(packet_bits).max(1);
        let packets = time.as_nanos().saturating_mul(self.numerator()) / packet_ns;
        u64::try_from(packets).unwrap_or(u64::MAX)
    }

    /// The time of one packet in nanoseconds, times the numerator.
    fn packet_ns(self, packet_bits: u64) -> u128 {
        let units = match self.unit {
            RateUnit::BitsPerSecond => packet_bits,
            RateUnit::PacketsPerSecond => 1,
        };
        (u128::from(units) * self.denominator()).saturating_mul(NS_PER_SECOND.into())
    }

    fn numerator(self) -> u128 {
        self.numerator.get().into()
    }

    fn denominator(self) -> u128 {
        self.denominator.get().into()
    }
}

fn greatest_common_divisor(mut one: u128, mut other: u128) -> u128 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one.max(1)
}

/// Why a request cannot be met, and what can be had: a complete sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Refused(pub String);

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Refused(why)
    }
}

/// Why a text does not parse: the expected form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct NoQuantity(String);

fn no_quantity<T>(why: impl Into<String>) -> Result<T, NoQuantity> {
    Err(NoQuantity(why.into()))
}

/// Parses a line speed in bits per second: `100m`, `2.5g`, `10Gbit/s`. It must be a whole number.
pub fn parse_speed(text: &str) -> Result<u64, NoQuantity> {
    let lower = text.trim().to_ascii_lowercase();
    let (digits, unit) = split_unit(&lower);
    let prefix = without_bits(unit);
    if digits.parse() == Ok(0.0) && scale(prefix).is_some() {
        return no_quantity("a line of 0 bit/s carries nothing");
    }
    let rate = scaled(RateUnit::BitsPerSecond, digits, prefix);
    let speed = rate.and_then(Rate::whole_per_second);
    speed.map_or_else(
        || no_quantity("a speed such as 100m, 2.5g or 10g was expected, in bit/s"),
        Ok,
    )
}

/// Parses a rate: packets per second (`70kpps`) or bits per second (`36m`, `36mbit/s`).
pub fn parse_rate(text: &str) -> Result<Rate, NoQuantity> {
    let lower = text.trim().to_ascii_lowercase();
    let (digits, unit) = split_unit(&lower);
    let rate = match unit.strip_suffix("pps") {
        Some(prefix) => scaled(RateUnit::PacketsPerSecond, digits, prefix.trim()),
        None => scaled(RateUnit::BitsPerSecond, digits, without_bits(unit)),
    };
    let expected = "a rate such as 70kpps (packets/s) or 36m (bit/s) was expected";
    rate.map_or_else(|| no_quantity(expected), Ok)
}

/// Parses a number per second, from 0.001 to a million: `500`, `10k`, `2.5k/s`.
pub fn parse_count_rate(text: &str) -> Result<Rate, NoQuantity> {
    let lower = text.trim().to_ascii_lowercase();
    let (digits, unit) = split_unit(lower.strip_suffix("/s").unwrap_or(&lower));
    let rate = scaled(RateUnit::PacketsPerSecond, digits, unit);
    let rate = rate.filter(|rate| (0.001..=1e6).contains(&rate.per_second()));
    let expected = "a rate from 0.001 to 1m a second was expected, such as 10k";
    rate.map_or_else(|| no_quantity(expected), Ok)
}

fn scaled(unit: RateUnit, digits: &str, prefix: &str) -> Option<Rate> {
    Rate::decimal(unit, digits, scale(prefix)?)
}

fn without_bits(unit: &str) -> &str {
    ["bit/s", "bps", "bit", "b"]
        .into_iter()
        .find_map(|suffix| unit.strip_suffix(suffix))
        .unwrap_or(unit)
        .trim()
}

fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
    (digits, unit.trim())
}

fn scale(prefix: &str) -> Option<u64> {
    let power = ["", "k", "m", "g", "t"].iter().position(|it| *it == prefix);
    power.map(|power| 1000_u64.pow(power as u32))
}

/// Longest time, 11 days: longer ones would lose exactness.
const NANOSECONDS_MAX: f64 = 1e15;

/// Parses a time with a unit: `200us`, `0.5ms`. Minutes are refused as unit of a period: `50m` is probably a mistyped
/// `50ms`.
///
/// # Errors
/// Also without a unit, because a bare number is ambiguous.
pub fn parse_time(text: &str) -> Result<Duration, NoQuantity> {
    // Numbers as long as that are in the kernel's unit.
    let is_long = split_unit(text).0.len() > 4;
    let like = if is_long { ["ns", "us"] } else { ["us", "ms"] };
    time(with_unit(text, like)?, &PERIODS)
}

/// Parses the length of a whole run, with a unit: `150s`, `10m`, `2h`, `3d`.
///
/// # Errors
/// Also without a unit.
pub fn parse_length(text: &str) -> Result<Duration, NoQuantity> {
    time(with_unit(text, ["s", "m"])?, &LENGTHS)
}

/// Parses a time in seconds, or with another unit: `1.5`, `250ms`, `10m`, `2h`, `3d`.
pub fn parse_seconds(text: &str) -> Result<Duration, NoQuantity> {
    match split_unit(text) {
        (number, "") => time((number, "s"), &LENGTHS),
        parts => time(parts, &LENGTHS),
    }
}

/// Formats a time in the largest unit that keeps it a whole number: `200us`.
pub fn show_time(nanoseconds: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let fits = |(scale, _): &&(u64, &str)| nanoseconds > 0 && nanoseconds.is_multiple_of(*scale);
    match units.iter().find(fits) {
        Some((scale, unit)) => format!("{}{unit}", nanoseconds / scale),
        None => format!("{nanoseconds}ns"),
    }
}

fn with_unit<'a>(text: &'a str, like: [&str; 2]) -> Result<(&'a str, &'a str), NoQuantity> {
    let [one, other] = like;
    match split_unit(text) {
        ("", _) => no_quantity(format!(
            "'{text}' is not a time: a number above 0 and its unit were expected, such as 200{one}"
        )),
        (number, "") => no_quantity(format!(
            "a unit is needed, such as '{number}{one}' or '{number}{other}'"
        )),
        parts => Ok(parts),
    }
}

/// The units, shortest first, with their nanoseconds.
static NANOS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3_600e9),
    ("d", 86_400e9),
];

/// The permitted units of a time, and their names in a sentence.
type Units = (&'static [(&'static str, f64)], &'static str);

static PERIODS: Units = (NANOS.split_at(5).0, "ns, us, ms or s");
static LENGTHS: Units = (&NANOS, "ms, s, m, h or d");

fn time((number, unit): (&str, &str), (known, names): &Units) -> Result<Duration, NoQuantity> {
    let Some((_, nanos_per_unit)) = known.iter().find(|(name, _)| *name == unit) else {
        let why = format!("'{unit}' is not a unit of time here; use {names}");
        return no_quantity(why);
    };
    let Ok(value) = number.parse::<f64>() else {
        return no_quantity("a number and a unit were expected, such as 200us");
    };
    let nanos = value * nanos_per_unit;
    if !(0.0..=NANOSECONDS_MAX).contains(&nanos) {
        return no_quantity(format!(
            "{number}{unit} is out of range; a time is at most 11 days"
        ));
    }
    Ok(Duration::from_nanos(nanos.round() as u64))
}

/// A stream that is later than this sends all due units together. iperf 2.1.8 does not sleep for shorter times either,
/// and sends what falls due in them back to back.
const LATE_MAX: Duration = Duration::from_micros(100);

/// Units that a late stream sends at once.
const LATE_BATCH: u64 = 64;

/// A schedule: when each unit (byte or datagram) is due.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    rate: Rate,
    unit_bits: u64,
    /// Units that are due together, at the time of the first.
    burst: u64,
}

impl Pace {
    /// Schedules bytes.
    pub fn of_bytes(rate: Rate) -> Self {
        Self::of_datagrams(rate, 1)
    }

    /// Schedules datagrams of equal length.
    pub fn of_datagrams(rate: Rate, payload_bytes: usize) -> Self {
        Pace {
            rate,
            unit_bits: 8 * payload_bytes as u64,
            burst: 1,
        }
    }

    /// Keeps the rate but sends in bursts of this many units, at least 1.
    pub fn in_bursts(self, units: u32) -> Self {
        Pace {
            burst: u64::from(units.max(1)),
            ..self
        }
    }

    /// Returns the time until the unit after `sent` others is due, `elapsed` after the start; zero when it is due
    /// already.
    pub fn ahead(&self, sent: u64, elapsed: Duration) -> Duration {
        self.due(sent).saturating_sub(elapsed)
    }

    /// Returns how many units to send together when the unit after `sent` others is due: the rest of its burst, or, if
    /// the stream is late by 100 µs, all that are due.
    pub fn due_together(&self, sent: u64, elapsed: Duration) -> u64 {
        if elapsed.saturating_sub(self.due(sent)) < LATE_MAX {
            return self.burst - sent % self.burst;
        }
        let bursts = self.rate.packets_in(elapsed, self.unit_bits) / self.burst;
        bursts
            .saturating_add(1)
            .saturating_mul(self.burst)
            .saturating_sub(sent)
    }

    /// Returns how many units a stream that has been late `for_time`, and sent `since` then, may send: a batch, and 1.5
    /// times as many as fell due. All at once would fill the receiver's buffer, however low the rate.
    pub fn catching_up(&self, since: u64, for_time: Duration) -> u64 {
        let allowed = self
            .rate
            .packets_in(for_time.saturating_mul(3) / 2, self.unit_bits);
        allowed.saturating_add(LATE_BATCH).saturating_sub(since)
    }

    /// When the unit after `sent` others is due, from the start.
    fn due(&self, sent: u64) -> Duration {
        let first_of_burst = sent - sent % self.burst;
        self.rate.time_of(first_of_burst, self.unit_bits)
    }
}

#[cfg(test)]
mod rate_tests {
    use self::RateUnit::{BitsPerSecond, PacketsPerSecond};
    use super::*;

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

#[cfg(test)]
mod pace_tests {
    use super::*;

    fn packets(per_second: u64) -> Rate {
        Rate::packets_per_second(per_second).unwrap()
    }

    #[test]
    fn the_default_rate_has_the_gap_that_iperf_prints() {
        let pace = Pace::of_datagrams(Rate::bits_per_second(1_048_576).unwrap(), 1470);
        let gap = pace.ahead(1, Duration::ZERO);
        assert_eq!(gap, Duration::from_nanos(11_215_209));
        // No error adds up: a million gaps are a million times the exact gap.
        let million = pace.ahead(1_000_000, Duration::ZERO);
        assert_eq!(million, Duration::from_nanos(11_215_209_960_937));
    }

    #[test]
    fn the_first_is_due_at_once_and_a_late_one_too() {
        let pace = Pace::of_datagrams(packets(1000), 64);
        assert_eq!(pace.ahead(0, Duration::ZERO), Duration::ZERO);
        assert_eq!(pace.ahead(5, Duration::from_millis(7)), Duration::ZERO);
        let ahead = pace.ahead(5, Duration::from_millis(3));
        assert_eq!(ahead, Duration::from_millis(2));
    }

    #[test]
    fn only_a_late_stream_sends_datagrams_together() {
        let pace = Pace::of_datagrams(packets(100_000), 64);
        let us = Duration::from_micros;
        for (sent, elapsed_us, together) in [
            (0, 0, 1),
            (0, 99, 1),
            // Due at 0, 10, ... 100.
            (0, 100, 11),
            (5, 149, 1),
            (5, 155, 11),
            (1_000_000, 10_000_200, 21),
        ] {
            assert_eq!(pace.due_together(sent, us(elapsed_us)), together, "{sent}");
        }
    }

    #[test]
    fn a_stream_that_stood_still_catches_up_at_half_as_much_again_as_its_rate() {
        let pace = Pace::of_datagrams(packets(60_000), 18);
        let us = Duration::from_micros;
        let begun = us(30_000);
        let (mut sent, mut elapsed) = (0, begun);
        while pace.due(sent) + LATE_MAX <= elapsed {
            let due = pace.due_together(sent, elapsed);
            sent += due.min(pace.catching_up(sent, elapsed - begun));
            let allowed = 64 + packets(90_000).packets_in(elapsed - begun, 0);
            assert!(sent <= allowed, "{sent} > {allowed}");
            // A call takes this long.
            elapsed += us(6);
        }
        assert!(elapsed < us(90_000), "{elapsed:?}");
        assert_eq!(pace.catching_up(64, Duration::ZERO), 0);
    }

    #[test]
    fn a_burst_is_due_at_once_and_the_next_one_when_its_rate_allows() {
        let pace = Pace::of_datagrams(packets(10_000), 64);
        let pace = pace.in_bursts(10);
        let us = Duration::from_micros;
        for (sent, elapsed_us, ahead_us) in [
            (0, 0, 0),
            (9, 5, 0),
            (10, 5, 995),
            (10, 1_000, 0),
            (19, 1_000, 0),
            (20, 1_500, 500),
        ] {
            assert_eq!(pace.ahead(sent, us(elapsed_us)), us(ahead_us), "{sent}");
        }
        for (sent, elapsed_us, together) in [
            (0, 0, 10),
            (3, 50, 7),
            (10, 1_000, 10),
            // Two bursts were missed.
            (10, 3_150, 30),
            (14, 3_150, 26),
        ] {
            assert_eq!(pace.due_together(sent, us(elapsed_us)), together, "{sent}");
        }
    }

    /// What a stream sends that looks at the clock as often as it likes: each when it is due.
    #[test]
    fn fractions_of_a_datagram_are_neither_rounded_nor_lost() {
        let rate = |text| Rate::decimal(RateUnit::PacketsPerSecond, text, 1).unwrap();
        for (text, seconds, sent) in [
            ("0.4", 1, 1),
            ("0.4", 5, 2),
            ("0.4", 6, 3),
            ("1.4", 1, 2),
            ("1.4", 1000, 1400),
            ("2.6", 1, 3),
            ("2.6", 1000, 2600),
        ] {
            let pace = Pace::of_datagrams(rate(text), 1470);
            let end = Duration::from_secs(seconds);
            let mut now = Duration::ZERO;
            let mut count = 0;
            while now < end {
                now += pace.ahead(count, now);
                count += u64::from(now < end);
            }
            assert_eq!(count, sent, "{text} for {seconds} s");
        }
    }
}
