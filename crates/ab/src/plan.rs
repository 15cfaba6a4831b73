//! The length of a comparison and of its blocks.
//!
//! The part left out at the start of a block never exceeds a quarter of the shortest block.

use std::ops::RangeInclusive;
use std::time::Duration;

use nicpoll_lab::Refused;
use nicpoll_model::ab::AbPlan;
use nicpoll_model::units::parse_seconds;
use nicpoll_stats::ab::{LEFT_OUT_SECONDS_MIN, MARGIN, PAIRS_MIN};
use nicpoll_switch::{KnobValues, Name, TurnRules};

/// Range of the mean block length. Too much of shorter blocks would be left out.
const BLOCK: RangeInclusive<Duration> = Duration::from_millis(400)..=Duration::from_secs(600);

/// Shortest and longest block, relative to the mean.
const SPREAD: [f64; 2] = [0.5, 1.5];

/// Limit of what is left out, as a share of the shortest block.
const LEFT_OUT_SHARE: f64 = 0.25;

/// The request for a comparison.
#[derive(Clone, Debug)]
pub struct AbRequest {
    /// The interface, or a part of it.
    pub name: Name,
    /// The values to compare with the present ones.
    pub values: KnobValues,
    /// The words of `nicpoll set` that follow the interface: `polling --period=50us`. Unused if a setting is compared
    /// with itself.
    pub words: String,
    /// Network namespace, by its name for 'ip netns'; `None`: the caller's.
    pub netns: Option<String>,
    /// Seed, lengths and limits.
    pub plan: AbPlan,
    /// Whether values whose change restarts the queues may alternate.
    pub is_disruptive: bool,
    /// The run ends when a block loses this many times as much as the reference.
    pub loss_factor: f64,
}

impl AbRequest {
    /// Returns the rules by which the two settings alternate.
    pub fn rules(&self) -> TurnRules {
        TurnRules {
            is_disruptive: self.is_disruptive,
            is_null: self.plan.is_null,
        }
    }
}

/// Plans a comparison of this length, with blocks of this mean length.
pub fn plan(duration: Duration, block: Duration, duty: Option<Duty>, seed: u64) -> AbPlan {
    let [shortest, longest] = SPREAD.map(|share| share * block.as_secs_f64());
    AbPlan {
        is_null: false,
        seed,
        duration_seconds: duration.as_secs_f64(),
        duty_seconds: duty.map(|duty| [duty.measured, duty.every].map(|time| time.as_secs_f64())),
        block_seconds: [shortest, longest],
        left_out_seconds: LEFT_OUT_SECONDS_MIN.min(most_left_out(shortest)),
        settling_seconds: None,
        pairs_min: PAIRS_MIN,
        confidence_ratio: 0.95,
        margin_ratio: MARGIN,
    }
}

/// How much of the shortest block may be left out, in seconds.
pub fn most_left_out(shortest: f64) -> f64 {
    LEFT_OUT_SHARE * shortest
}

/// The next step of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// A pair of the drawn length.
    Pair,
    /// A pause until this many seconds after the start.
    Pause(f64),
    /// The end.
    End,
}

/// The next step of a plan for a drawn pair of this length. A pair never extends past the end of a stretch.
pub fn next(plan: &AbPlan, elapsed: f64, pair: f64) -> Next {
    let [measured, every] = plan.duty_seconds.unwrap_or([plan.duration_seconds; 2]);
    let stretch = (elapsed / every).floor();
    let end = (stretch * every + measured).min(plan.duration_seconds);
    let later = (stretch + 1.0) * every;
    if elapsed + pair <= end {
        Next::Pair
    } else if plan.duty_seconds.is_some() && later + pair <= plan.duration_seconds {
        Next::Pause(later)
    } else {
        Next::End
    }
}

/// The measured part of each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duty {
    /// Measured time of each period.
    pub measured: Duration,
    /// The period.
    pub every: Duration,
}

/// Minimum measured time of a period: a pair of the shortest blocks.
const MEASURED_MIN: Duration = Duration::from_secs(1);

/// Parses the measured part of each period.
pub fn parse_duty(text: &str) -> Result<Duty, Refused> {
    let refused = |why: &str| Refused(String::from(why));
    let two = text.split_once('/');
    let (measured, every) = two.ok_or_else(|| {
        refused("give two times, as in 5m/1h: measure for 5 minutes of each hour")
    })?;
    let [measured, every] = [seconds(measured)?, seconds(every)?];
    match MEASURED_MIN <= measured && measured < every {
        true => Ok(Duty { measured, every }),
        false => Err(refused(
            "the first time has to be the shorter one, and 1s or more",
        )),
    }
}

/// Parses the mean length of a block.
pub fn parse_block(text: &str) -> Result<Duration, Refused> {
    let block = seconds(text)?;
    match BLOCK.contains(&block) {
        true => Ok(block),
        false => Err(Refused(String::from("a block lasts from 0.4s to 10m"))),
    }
}

fn seconds(text: &str) -> Result<Duration, Refused> {
    parse_seconds(text).map_err(|error| Refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_stay_within_the_stretches_of_a_duty() {
        let duty = parse_duty("1m/10m").unwrap();
        let plan = |duty| plan(Duration::from_secs(1_800), Duration::from_secs(4), duty, 1);
        let with = |elapsed| next(&plan(Some(duty)), elapsed, 8.0);
        assert_eq!(with(0.0), Next::Pair);
        assert_eq!(with(52.0), Next::Pair);
        assert_eq!(with(52.1), Next::Pause(600.0));
        assert_eq!(with(300.0), Next::Pause(600.0));
        assert_eq!(with(600.0), Next::Pair);
        assert_eq!(with(1_255.0), Next::End);
        let without = |elapsed| next(&plan(None), elapsed, 8.0);
        assert_eq!(without(1_792.0), Next::Pair);
        assert_eq!(without(1_792.1), Next::End);
        for (wrong, why) in [
            ("5m", "give two times"),
            ("1h/5m", "the shorter one"),
            ("0.5s/1m", "1s or more"),
        ] {
            let error = parse_duty(wrong).unwrap_err().to_string();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    #[test]
    fn blocks_are_those_of_the_method_and_short_ones_keep_most_of_their_time() {
        let of = |millis| {
            plan(
                Duration::from_secs(600),
                Duration::from_millis(millis),
                None,
                1,
            )
        };
        let usual = of(4_000);
        assert_eq!(usual.block_seconds, nicpoll_stats::ab::BLOCK_SECONDS);
        assert_eq!(usual.left_out_seconds, LEFT_OUT_SECONDS_MIN);
        assert_eq!(of(400).left_out_seconds, 0.05);
    }
}
