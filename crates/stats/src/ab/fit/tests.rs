use super::*;

fn pair(judged_load: f64, reference_load: f64, difference: f64) -> LoadedDifference {
    LoadedDifference {
        difference,
        judged_load,
        reference_load,
    }
}

/// Pairs whose differences follow the model exactly, around a mean load of 3,000.
fn exact(delta: f64, beta: f64, gamma: f64) -> Vec<LoadedDifference> {
    let loads = [
        (1000.0, 3000.0),
        (5000.0, 3000.0),
        (2000.0, 1000.0),
        (4000.0, 6000.0),
        (3500.0, 2500.0),
        (2400.0, 2600.0),
    ];
    let mean = loads.iter().map(|(a, b)| (a + b) / 2.0).sum::<f64>() / 6.0;
    loads
        .iter()
        .map(|&(judged, reference)| {
            let load = f64::midpoint(judged, reference) - mean;
            pair(
                judged,
                reference,
                delta + beta * (judged - reference) + gamma * load,
            )
        })
        .collect()
}

#[test]
fn the_model_is_found_again() {
    let fit = LoadFit::of(&exact(-0.2, 3e-5, -1e-5), Confidence::PERCENT_95).unwrap();
    assert!((fit.delta.estimate + 0.2).abs() < 1e-12, "{fit:?}");
    assert!((fit.beta - 3e-5).abs() < 1e-15, "{fit:?}");
    assert!((fit.gamma + 1e-5).abs() < 1e-15, "{fit:?}");
    assert!(fit.delta.high - fit.delta.low < 1e-9);
    let adjusted = fit.adjusted(&exact(-0.2, 3e-5, -1e-5));
    assert!(adjusted.iter().all(|it| (it + 0.2).abs() < 1e-12));
}

#[test]
fn errors_are_those_of_another_program() {
    // numpy 2: b = (X'X)^-1 X'y; HC3 = (X'X)^-1 X' diag(e^2 / (1 - h)^2) X (X'X)^-1; t with 5 degrees of freedom.
    let pairs = [
        pair(10.0, 12.0, 0.30),
        pair(15.0, 11.0, 0.52),
        pair(9.0, 9.5, 0.28),
        pair(20.0, 22.0, 0.61),
        pair(13.0, 12.0, 0.40),
        pair(14.0, 18.0, 0.35),
        pair(11.0, 10.0, 0.45),
        pair(16.0, 14.0, 0.57),
    ];
    let fit = LoadFit::of(&pairs, Confidence::PERCENT_95).unwrap();
    let half = (fit.delta.high - fit.delta.low) / 2.0;
    let found = [fit.delta.estimate, fit.beta, fit.gamma, half];
    let expected = [
        0.437_090_448_427_204_6,
        0.033_447_174_835_273_95,
        0.029_645_500_496_434_704,
        0.048_702_309_845_473_85,
    ];
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }
}

#[test]
fn a_load_that_never_differs_leaves_the_mean() {
    let pairs: Vec<LoadedDifference> = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
        .map(|difference| pair(1000.0, 1000.0, difference))
        .to_vec();
    let fit = LoadFit::of(&pairs, Confidence::PERCENT_95).unwrap();
    assert!((fit.delta.estimate - 0.35).abs() < 1e-12);
    assert_eq!((fit.beta, fit.gamma), (0.0, 0.0));
    assert!(fit.delta.low < 0.3 && 0.4 < fit.delta.high);
}

#[test]
fn a_load_that_differs_by_a_hair_of_itself_does_not_differ() {
    let hair = |index: u32| 1e7 + 1e-4 * f64::from(index * index % 7);
    let pairs: Vec<LoadedDifference> = (0..8)
        .map(|index| pair(hair(index), hair(3 * index + 1), hair(index) - 1e7))
        .collect();
    let fit = LoadFit::of(&pairs, Confidence::PERCENT_95).unwrap();
    assert_eq!((fit.beta, fit.gamma), (0.0, 0.0));
}

#[test]
fn without_enough_to_go_by_there_is_no_fit() {
    let pairs = exact(0.1, 0.0, 0.0);
    assert!(LoadFit::of(&pairs[..4], Confidence::PERCENT_95).is_none());
    let mut endless = pairs.clone();
    endless[0].difference = f64::INFINITY;
    assert!(LoadFit::of(&endless, Confidence::PERCENT_95).is_none());
    // Only one pair has another load: it decides the slope, and its error is unknown.
    for other in 0..50 {
        let other = 1000.0 + 7.3 * f64::from(other);
        // The loads of the others are equal, or equal within each pair.
        for step in [0.0, 110.7] {
            let alone: Vec<LoadedDifference> = (0..6)
                .map(|index| {
                    let load = 1500.0 + step * f64::from(index);
                    match index {
                        0 => pair(2000.0, other, 0.5),
                        _ => pair(load, load, f64::from(index * index % 5)),
                    }
                })
                .collect();
            assert!(LoadFit::of(&alone, Confidence::PERCENT_95).is_none());
        }
    }
}
