//! The tick-sampling trap: the sampled figure drifts with the computed period, the exact one stands still.

use nicpoll_sim::{Simulation, Ticks, sample_ticks, simulate};

use crate::common::*;

const TRAP: Ticks = Ticks {
    pulse_ns: 1_000_000,
    drift_ppb: 60_000,
    hz: 1000,
    kernel_ppm: 200_000,
    user_ppm: 150_000,
    reading_ns: 1_000_000_000,
    duration_ns: None,
};

/// Asserts that the period is `seconds`, by arithmetic and in the readings.
fn comes_round_in(ticks: &Ticks, seconds: f64) {
    let found = sample_ticks(ticks).unwrap();
    let period = found.period_seconds.unwrap();
    close(period, seconds, 1e-9);
    let seen = found.period_found_seconds.unwrap();
    near(seen, seconds, found.reading_seconds);
    assert!(
        found.reading_error_max_ratio > 0.5,
        "{}",
        found.reading_error_max_ratio
    );
    // A reading may cut a pulse at either end.
    let cut = 2.0 * found.pulse_seconds / found.reading_seconds;
    assert!(
        found.exact_error_max_ratio <= cut,
        "{}",
        found.exact_error_max_ratio
    );
}

#[test]
fn a_pulse_of_1_ms_wanders_through_ticks_of_1_ms_in_16_7_s() {
    comes_round_in(&TRAP, 1e-3 / 60e-6);
}

#[test]
fn a_pulse_of_4_ms_wanders_through_ticks_of_4_ms_in_66_7_s() {
    let slow = Ticks {
        pulse_ns: 4_000_000,
        hz: 250,
        ..TRAP
    };
    comes_round_in(&slow, 4e-3 / 60e-6);
}

#[test]
fn what_wanders_is_the_common_measure_of_pulse_and_tick() {
    // Every tick of 4 ms sees the same phase of a pulse of 1 ms.
    comes_round_in(&Ticks { hz: 250, ..TRAP }, 1e-3 / 60e-6);
    comes_round_in(
        &Ticks {
            drift_ppb: 25_000,
            ..TRAP
        },
        1e-3 / 25e-6,
    );
    // A tick of 10/3 ms sees three phases of a pulse of 1 ms, a third of a millisecond apart. Its reading
    // is off by less, and no less periodic.
    let thirds = sample_ticks(&Ticks {
        hz: 300,
        kernel_ppm: 100_000,
        ..TRAP
    })
    .unwrap();
    let period = 1e-3 / 3.0 / 60e-6;
    assert!((thirds.period_seconds.unwrap() - period).abs() < 1e-9);
    assert!((thirds.period_found_seconds.unwrap() - period).abs() <= 1.0);
}

#[test]
fn the_sampled_figure_goes_from_nothing_to_everything_and_only_its_long_average_is_right() {
    let found = sample_ticks(&TRAP).unwrap();
    let sampled = || found.readings.iter().map(|reading| reading.sampled);
    assert!(sampled().any(|shares| shares.kernel_ratio == 1.0));
    assert!(sampled().any(|shares| shares.user_ratio == 1.0));
    assert!(sampled().any(|shares| shares.kernel_ratio + shares.user_ratio == 0.0));
    // Kernel, then user, then idle: the phase runs backwards through the pulse, since it is the slower.
    let first = |of: fn(f64, f64) -> bool| {
        sampled()
            .position(|s| of(s.kernel_ratio, s.user_ratio))
            .unwrap()
    };
    let idle = first(|kernel, user| kernel + user == 0.0);
    assert!(idle < first(|_, user| user == 1.0));
    let whole = found.whole;
    assert!(whole.sampled.distance(&whole.exact) < 0.01, "{whole:?}");
    assert!((whole.exact.kernel_ratio - 0.2).abs() < 1e-3);
}

#[test]
fn without_drift_every_reading_is_as_wrong_as_the_last() {
    let still = sample_ticks(&Ticks {
        drift_ppb: 0,
        ..TRAP
    })
    .unwrap();
    assert_eq!(still.period_seconds, None);
    assert_eq!(still.period_found_seconds, None);
    let mut readings = still.readings.iter();
    assert!(readings.all(|reading| reading.sampled.kernel_ratio == 1.0));
    assert!((still.whole.sampled.kernel_ratio - still.whole.exact.kernel_ratio).abs() > 0.7);
}

#[test]
fn ticks_that_have_little_in_common_with_the_pulse_are_right_at_once() {
    let found = sample_ticks(&Ticks { hz: 1024, ..TRAP }).unwrap();
    below(found.reading_error_max_ratio, 0.02);
}

#[test]
fn what_is_too_short_to_come_round_shows_no_period() {
    let short = Ticks {
        duration_ns: Some(20_000_000_000),
        ..TRAP
    };
    assert_eq!(sample_ticks(&short).unwrap().period_found_seconds, None);
}

#[test]
fn what_is_out_of_range_is_refused_with_the_range() {
    type Change = fn(&mut Ticks);
    let cases: [(Change, &str); 8] = [
        (|ticks| ticks.pulse_ns = 10, "give 1000 to"),
        (|ticks| ticks.hz = 0, "give 1 to 10000"),
        (
            |ticks| ticks.kernel_ppm = 900_000,
            "kernel and user together",
        ),
        (|ticks| ticks.drift_ppb = u32::MAX, "give 0 to 10000000"),
        (|ticks| ticks.reading_ns = 1_000, "give 1000000 to"),
        (|ticks| ticks.duration_ns = Some(1), "a longer duration"),
        (
            |ticks| ticks.duration_ns = Some(u64::MAX),
            "a shorter duration",
        ),
        (|ticks| ticks.drift_ppb = 1, "a shorter duration"),
    ];
    for (change, words) in cases {
        let mut ticks = TRAP;
        change(&mut ticks);
        let error = sample_ticks(&ticks).unwrap_err().to_string();
        assert!(error.contains(words), "{ticks:?}: {error}");
    }
}

#[test]
fn a_simulated_host_has_the_same_load_at_every_phase_of_such_pulses() {
    // Pulses of a clock that is 60 PPM slower than the host's, a quarter of the way round after 4.2 s.
    let busy = [0, 4_200_000_000, 8_400_000_000, 12_600_000_000].map(|warmup_ns| {
        let plan = Simulation {
            duration_ns: 1_000_000_000,
            warmup_ns,
            ..plan("freebsd-interrupt", "pulses:rate=5k:period=1000060ns")
        };
        1.0 - simulate(&plan).unwrap().hosts[0].cpu.idle_ratio
    });
    for share in busy {
        assert!(share > 0.05, "{busy:?}");
        // A pulse more or less in the second, and the ticks that fall into one and delay it.
        assert!((share - busy[0]).abs() < 2e-3, "{busy:?}");
    }
}
