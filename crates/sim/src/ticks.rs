//! The tick-sampling trap: work that comes in pulses, seen by a clock that ticks nearly in step with them.
//!
//! A sampling kernel looks at each tick at what the processor does, and charges the whole tick to that. When pulses
//! come at a multiple or a fraction of the tick's period, each tick sees the same phase of a pulse; when the pulses
//! come from another clock, the phase drifts slowly through the pulse. Short readings then show that phase, not the
//! processor's load.
//!
//! Time is kept in whole units: the phase of the last tick is as exact as that of the first. The work of the ticks
//! themselves is left out.

use nicpoll_model::cpu::{SIM_TICKS_SCHEMA, SimTicks, TickReading, TickShares};

use crate::spec::options::{SimError, refuse};

const BILLION: u128 = 1_000_000_000;
const MILLION: u128 = 1_000_000;
/// Most ticks: they take about a second and little memory.
const TICKS_MAX: u128 = 100_000_000;
/// Most readings: they fit on a plot, and a period in them is found quickly.
const READINGS_MAX: u128 = 10_000;
/// Default duration without drift, when nothing repeats: long enough to see that.
const STILL_NS: u64 = 60_000_000_000;
/// Default duration with drift, in periods: enough to see the repetition.
const ROUNDS: f64 = 3.0;
/// Least readings of a default duration.
const READINGS_MIN: u64 = 10;

/// Pulses of work and the clock that samples them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// Time from pulse to pulse by the pulses' own clock; 1 us to 1 s.
    pub pulse_ns: u64,
    /// How much slower that clock is than the ticks', in billionths; at most 1 %.
    pub drift_ppb: u32,
    /// Ticks a second; 1 to 10000.
    pub hz: u32,
    /// Share of a pulse's period that the kernel works, from its start, in millionths.
    pub kernel_ppm: u32,
    /// Share that the program then works, in millionths.
    pub user_ppm: u32,
    /// Length of a reading: at least a tick.
    pub reading_ns: u64,
    /// Duration of all readings, rounded down to whole ones; `None` for three periods and at least ten readings, or
    /// for a minute without drift.
    pub duration_ns: Option<u64>,
}

/// [`Ticks`] in whole units of time; a nanosecond has `hz` billion of them.
struct WholeUnits {
    nanosecond: u128,
    tick: u128,
    pulse: u128,
    kernel: u128,
    user: u128,
    reading: u128,
    readings: u128,
}

/// Samples the pulses.
///
/// # Errors
/// What is out of range, and the range.
pub fn sample_ticks(ticks: &Ticks) -> Result<SimTicks, SimError> {
    let units = units(ticks)?;
    let readings: Vec<_> = (0..units.readings)
        .map(|reading| units.look(reading * units.reading, (reading + 1) * units.reading))
        .collect();
    let load = TickShares {
        kernel_ratio: f64::from(ticks.kernel_ppm) / 1e6,
        user_ratio: f64::from(ticks.user_ppm) / 1e6,
    };
    let greatest = |error: fn(&TickReading, &TickShares) -> f64| {
        let errors = readings.iter().map(|reading| error(reading, &load));
        errors.fold(0.0, f64::max)
    };
    let reading_seconds = ticks.reading_ns as f64 / 1e9;
    let least_step = 1.0 / (f64::from(ticks.hz) * reading_seconds);
    Ok(SimTicks {
        schema: String::from(SIM_TICKS_SCHEMA),
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        pulse_seconds: ticks.pulse_ns as f64 / 1e9,
        drift_ppm: f64::from(ticks.drift_ppb) / 1e3,
        ticks_per_second: ticks.hz,
        load,
        reading_seconds,
        period_seconds: period_ns(ticks).map(|ns| ns / 1e9),
        period_found_seconds: period_in(&readings, least_step).map(|lag| lag * reading_seconds),
        whole: units.look(0, units.readings * units.reading),
        reading_error_max_ratio: greatest(|reading, _| reading.sampled.distance(&reading.exact)),
        exact_error_max_ratio: greatest(|reading, load| reading.exact.distance(load)),
        readings,
    })
}

/// Returns the period of the phase: pulse and tick meet at multiples of their greatest common divisor, and the drift
/// crosses one of them.
fn period_ns(ticks: &Ticks) -> Option<f64> {
    let common = gcd(u128::from(ticks.pulse_ns) * u128::from(ticks.hz), BILLION);
    let common_ns = common as f64 / f64::from(ticks.hz);
    (ticks.drift_ppb > 0).then(|| common_ns * 1e9 / f64::from(ticks.drift_ppb))
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn units(ticks: &Ticks) -> Result<WholeUnits, SimError> {
    let within = |name: &str, value: u64, min: u64, max: u64| {
        if (min..=max).contains(&value) {
            return Ok(());
        }
        refuse(format!(
            "{name} = {value} is out of range; give {min} to {max}"
        ))
    };
    within("pulse in ns", ticks.pulse_ns, 1_000, 1_000_000_000)?;
    within("ppm in billionths", ticks.drift_ppb.into(), 0, 10_000_000)?;
    within("hz", ticks.hz.into(), 1, 10_000)?;
    let busy_ppm = u64::from(ticks.kernel_ppm) + u64::from(ticks.user_ppm);
    let busy = "kernel and user together, in millionths";
    within(busy, busy_ppm, 1, 1_000_000)?;
    let (reading_ns, hz) = (ticks.reading_ns, u64::from(ticks.hz));
    let tick_ns = 1_000_000_000u64.div_ceil(hz);
    within("reading in ns", reading_ns, tick_ns, 1_000_000_000_000)?;
    let rounds_ns = period_ns(ticks).map_or(STILL_NS, |ns| (ROUNDS * ns).ceil() as u64);
    let whole_readings = rounds_ns.div_ceil(ticks.reading_ns).max(READINGS_MIN);
    let whole_readings_ns = whole_readings.saturating_mul(ticks.reading_ns);
    let duration_ns = ticks.duration_ns.unwrap_or(whole_readings_ns);
    let readings = u128::from(duration_ns / ticks.reading_ns);
    let samples = u128::from(duration_ns) * u128::from(ticks.hz) / BILLION;
    if readings == 0 {
        return refuse(
            "not one reading fits into the duration; give a longer duration or a shorter reading",
        );
    }
    if readings > READINGS_MAX || samples > TICKS_MAX {
        return refuse(format!(
            "this takes {readings} readings of {samples} ticks, of at most {READINGS_MAX} and \
             {TICKS_MAX}; give a shorter duration or a longer reading"
        ));
    }
    let hz = u128::from(hz);
    let nanosecond = hz * BILLION;
    let pulse = u128::from(ticks.pulse_ns) * hz * (BILLION + u128::from(ticks.drift_ppb));
    Ok(WholeUnits {
        nanosecond,
        tick: BILLION * BILLION,
        pulse,
        kernel: pulse * u128::from(ticks.kernel_ppm) / MILLION,
        user: pulse * u128::from(ticks.user_ppm) / MILLION,
        reading: u128::from(ticks.reading_ns) * nanosecond,
        readings,
    })
}

impl WholeUnits {
    /// Returns what the processor did from `from` to before `to`, and what the ticks in between say.
    fn look(&self, from: u128, to: u128) -> TickReading {
        let (mut kernel, mut user, mut all) = (0u64, 0u64, 0u64);
        let mut tick = from.div_ceil(self.tick) * self.tick;
        while tick < to {
            let phase = tick % self.pulse;
            kernel += u64::from(phase < self.kernel);
            user += u64::from((self.kernel..self.kernel + self.user).contains(&phase));
            all += 1;
            tick += self.tick;
        }
        let share = |part: u64| part as f64 / all as f64;
        let exact = |worked: fn(&Self, u128) -> u128| {
            (worked(self, to) - worked(self, from)) as f64 / (to - from) as f64
        };
        TickReading {
            end_seconds: (to / self.nanosecond) as f64 / 1e9,
            exact: TickShares {
                kernel_ratio: exact(Self::kernel_until),
                user_ratio: exact(Self::user_until),
            },
            sampled: TickShares {
                kernel_ratio: share(kernel),
                user_ratio: share(user),
            },
        }
    }

    fn kernel_until(&self, time: u128) -> u128 {
        time / self.pulse * self.kernel + (time % self.pulse).min(self.kernel)
    }

    fn user_until(&self, time: u128) -> u128 {
        let since_kernel = (time % self.pulse).saturating_sub(self.kernel);
        time / self.pulse * self.user + since_kernel.min(self.user)
    }
}

/// Returns the period of the sampled figures, in readings: the first peak of their autocorrelation after it has been
/// negative. `None` when they vary by less than two ticks or do not repeat twice.
fn period_in(readings: &[TickReading], least_step: f64) -> Option<f64> {
    let figures = [
        centred(readings.iter().map(|reading| reading.sampled.kernel_ratio)),
        centred(readings.iter().map(|reading| reading.sampled.user_ratio)),
    ];
    let correlation = |lag: usize| -> f64 {
        let products = figures.iter().flat_map(|figure| {
            let later = &figure[lag..];
            figure.iter().zip(later).map(|(a, b)| a * b)
        });
        products.sum::<f64>() / (readings.len() - lag) as f64
    };
    if correlation(0) <= (2.0 * least_step).powi(2) {
        return None;
    }
    let lags = 0..=readings.len() / 2;
    let correlations: Vec<f64> = lags.map(correlation).collect();
    let fallen = correlations.iter().position(|value| *value < 0.0)?;
    let risen = fallen
        + correlations[fallen..]
            .iter()
            .position(|value| *value > 0.0)?;
    let positive = correlations[risen..]
        .iter()
        .take_while(|value| **value > 0.0);
    let (lag, _) =
        positive.enumerate().fold(
            (0, 0.0),
            |best, (lag, value)| {
                if *value > best.1 { (lag, *value) } else { best }
            },
        );
    // A peak on the last lag may still be rising.
    let lag = risen + lag;
    (lag + 1 < correlations.len()).then_some(lag as f64)
}

fn centred(values: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    values.map(|value| value - mean).collect()
}
