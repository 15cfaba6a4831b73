use nicpoll_stats::order::Seed;

use super::*;

/// A number between -0.5 and 0.5 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
fn noise(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut bits = *state;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64 - 0.5
}

const RULE: FindingThresholds = FindingThresholds {
    family: 24,
    margin: 1.05,
    seed: Seed(1),
};

/// Makes sixteen trials of this many whole steps. `level` gives the rate by trial and step; a tenth of noise is
/// added.
fn trials(mut seed: u64, steps: usize, level: impl Fn(usize, usize) -> f64) -> Vec<TrialSeries> {
    let mut of_trial = |trial: usize| {
        let mut packets = |step: usize| {
            let rate = level(trial, step) * (1.0 + 0.2 * noise(&mut seed));
            (2000.0 * rate) as u64
        };
        // The traffic ends in the last step.
        let mut counts: Vec<u64> = (0..steps).map(&mut packets).collect();
        counts.push(300);
        TrialSeries {
            step_seconds: 0.02,
            end_seconds: (1..=steps + 1).map(|step| 0.02 * step as f64).collect(),
            sent_frames: counts.clone(),
            received_bytes: vec![0; steps + 1],
            read_datagrams: Some(counts),
            dropped_frames: vec![0; steps + 1],
            dropped_datagrams: None,
            polls: None,
            cores: Vec::new(),
            cut_short_softirqs: None,
        }
    };
    (0..16).map(&mut of_trial).collect()
}

/// Returns the finding within such trials.
fn found(trials: &[TrialSeries]) -> RateOverTime {
    let steps = trials.iter().map(|it| steps(it, WorkUnit::Datagrams));
    let steps: Vec<Steps> = steps.collect::<Option<_>>().unwrap();
    let rates: Vec<&[f64]> = steps.iter().map(|it| it.rates.as_slice()).collect();
    judged(&rates, 16, &RULE).unwrap()
}

#[test]
fn a_warm_up_is_a_step_with_its_size() {
    let found = found(&trials(1, 12, |_, step| if step < 3 { 0.8 } else { 1.0 }));
    assert_eq!(found.found, Some(Unevenness::Step), "{found:?}");
    assert_eq!(found.tests.step_at, Some(4));
    let size = found.size_ratio.unwrap();
    assert!((1.2..1.3).contains(&size), "{size}");
    assert_eq!(first_after(&found), Some(3));
}

#[test]
fn a_sawtooth_that_begins_anywhere_swings() {
    let tooth = |trial: usize, step: usize| 0.7 + 0.1 * ((5 * trial + step) % 7) as f64;
    let found = found(&trials(2, 30, tooth));
    assert_eq!(found.found, Some(Unevenness::Swings), "{found:?}");
    assert!(found.size_ratio > Some(0.05), "{found:?}");
}

#[test]
fn a_rise_is_a_drift_or_a_step_and_what_is_smaller_than_the_margin_is_not_told() {
    let rise = |most: f64| move |_: usize, step: usize| 1.0 + most * step as f64 / 11.0;
    let great = found(&trials(3, 12, rise(0.3)));
    assert!(
        great.found.is_some() && great.size_ratio > Some(1.1),
        "{great:?}"
    );
    let small = found(&trials(3, 12, rise(0.03)));
    assert_eq!(small.found, None, "{small:?}");
}

#[test]
fn even_trials_are_not_called_uneven() {
    // One in twenty studies of 24 answers may have a finding: of 48 answers, hardly any.
    let alarms = (0..48).filter(|seed| found(&trials(100 + seed, 12, |_, _| 1.0)).tests.is_uneven);
    assert!(alarms.count() <= 1);
}

#[test]
fn the_step_in_which_the_traffic_ends_is_left_out_and_long_trials_are_put_together() {
    let short = steps(&trials(4, 12, |_, _| 1.0)[0], WorkUnit::Datagrams).unwrap();
    assert_eq!((short.rates.len(), short.end_seconds.len()), (12, 12));
    assert!(short.rates.iter().all(|rate| *rate > 80_000.0));
    let mut long = trials(4, 12, |_, _| 1.0).remove(0);
    long.end_seconds = (1..=301).map(f64::from).collect();
    long.received_bytes = vec![10; 301];
    let long = steps(&long, WorkUnit::Bytes).unwrap();
    assert_eq!((long.rates.len(), long.end_seconds[0]), (38, 8.0));
    assert!(long.rates.iter().all(|rate| *rate == 10.0));
    assert_eq!(long.end_seconds.last(), Some(&300.0));
}

#[test]
fn a_machine_that_becomes_slower_is_seen_from_trial_to_trial() {
    let mut seed = 5;
    let mut rates = |late: f64| -> Vec<f64> {
        let level = |trial: usize| if trial < 10 { 1.0 } else { late };
        let mut rate = |trial| level(trial) * (1.0 + 0.1 * noise(&mut seed));
        (0..24).map(&mut rate).collect()
    };
    let slower = judged(&[&rates(0.7)], 24, &RULE).unwrap();
    assert_eq!(slower.found, Some(Unevenness::Step), "{slower:?}");
    assert_eq!(first_after(&slower), Some(10));
    assert_eq!(judged(&[&rates(1.0)], 24, &RULE).unwrap().found, None);
    assert!(judged(&[&rates(1.0)[..9]], 9, &RULE).is_none());
}
