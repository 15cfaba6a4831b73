//! A search for the least sum of squares of some functions of a few whole numbers: points all over, descents from
//! the best of them ([`crate::descent`]), and at last a search in small steps in the manner of Hooke and Jeeves
//! ("Direct search" solution of numerical and statistical problems, Journal of the ACM 8, 1961), which does not
//! mind that simulations count in whole packets.
//!
//! What must hold: the same functions and start give the same result on every machine. Hence whole numbers, a
//! fixed order, and no function of the C library. It is no proof that there is nothing less elsewhere.

use crate::descent::{Place, descend};

/// Where to begin, and between what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchSpan {
    /// Least value, above 0.
    pub min: u64,
    /// Greatest value.
    pub max: u64,
    /// First value.
    pub start: u64,
}

/// What a search came to.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    /// The numbers, in the order of the spans.
    pub values: Vec<u64>,
    /// The function there.
    pub cost: f64,
    /// How often it was asked.
    pub calls: u64,
}

/// Points that are looked at first. A valley beside the deepest one is no place to begin.
const POINTS: u32 = 150;
/// The points are the start with each number multiplied or divided by powers of two, up to this.
const POWER_MAX: u64 = 1;
/// Descents, from the best of these points.
const DESCENTS: usize = 16;
/// Errors whose mean square is this small are small enough.
const ENOUGH: f64 = 0.001;
/// Small steps: numbers are multiplied by the first over the second, and divided by it.
const STEPS: [(u64, u64); 4] = [(17, 16), (33, 32), (65, 64), (129, 128)];
/// Rounds at each step; one that finds nothing better is the last.
const ROUNDS: u32 = 12;

#[derive(Clone, Copy)]
enum Way {
    Up,
    Down,
}

impl SearchSpan {
    fn stepped(&self, value: u64, way: Way, (by, of): (u64, u64)) -> u64 {
        let moved = match way {
            Way::Up => (value.saturating_mul(by) / of).max(value.saturating_add(1)),
            Way::Down => (value.saturating_mul(of) / by).min(value.saturating_sub(1)),
        };
        moved.clamp(self.min, self.max)
    }
}

/// Looks for the least sum of squares of what `errors` gives.
pub fn search(spans: &[SearchSpan], mut errors: impl FnMut(&[u64]) -> Vec<f64>) -> SearchResult {
    let mut calls = 0;
    let mut ask = |values: &[u64]| {
        calls += 1;
        errors(values)
    };
    let mut beginnings: Vec<Place> = Vec::new();
    let mut chance = 0;
    for point in 0..POINTS {
        let values: Vec<u64> = match point {
            0 => spans.iter().map(|span| span.start).collect(),
            _ => spans
                .iter()
                .map(|span| anywhere(span, &mut chance))
                .collect(),
        };
        let place = Place::at(values, &mut ask);
        let rank = beginnings.partition_point(|other| other.cost() <= place.cost());
        beginnings.insert(rank, place);
        beginnings.truncate(DESCENTS);
    }
    let mut best: Option<Place> = None;
    for from in beginnings {
        let place = descend(spans, from, &mut ask);
        if best.as_ref().is_none_or(|best| place.cost() < best.cost()) {
            best = Some(place);
        }
        if best.as_ref().is_some_and(is_enough) {
            break;
        }
    }
    let mut best = best.expect("there is at least one point");
    for step in STEPS {
        for _ in 0..ROUNDS {
            if !explore(spans, &mut best, step, &mut ask) {
                break;
            }
        }
    }
    SearchResult {
        cost: best.cost(),
        values: best.values,
        calls,
    }
}

fn is_enough(place: &Place) -> bool {
    place.cost() <= ENOUGH * place.errors.len() as f64
}

/// Tries each number by itself, up and then down, and keeps what is better.
fn explore(
    spans: &[SearchSpan],
    best: &mut Place,
    step: (u64, u64),
    ask: &mut impl FnMut(&[u64]) -> Vec<f64>,
) -> bool {
    let mut is_better = false;
    for (index, span) in spans.iter().enumerate() {
        for way in [Way::Up, Way::Down] {
            let mut values = best.values.clone();
            values[index] = span.stepped(values[index], way, step);
            if values == best.values {
                continue;
            }
            let place = Place::at(values, ask);
            if place.cost() < best.cost() {
                *best = place;
                is_better = true;
                break;
            }
        }
    }
    is_better
}

/// A number of the span, by a congruential sequence (Knuth's MMIX).
fn anywhere(span: &SearchSpan, chance: &mut u64) -> u64 {
    *chance = chance
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    let power = (*chance >> 33) % (2 * POWER_MAX + 1);
    let value = if power >= POWER_MAX {
        span.start.saturating_mul(1 << (power - POWER_MAX))
    } else {
        span.start >> (POWER_MAX - power)
    };
    value.clamp(span.min, span.max)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: SearchSpan = SearchSpan {
        min: 1,
        max: 1_000_000,
        start: 1000,
    };

    fn ratios(values: &[u64], aims: &[f64]) -> Vec<f64> {
        let both = values.iter().zip(aims);
        both.map(|(value, aim)| *value as f64 / aim - 1.0).collect()
    }

    #[test]
    fn it_finds_the_least_of_a_bowl() {
        let aims = [17_000.0, 90.0, 1000.0];
        let found = search(&[WIDE; 3], |values| ratios(values, &aims));
        for (value, aim) in found.values.iter().zip(aims) {
            assert!((*value as f64 / aim - 1.0).abs() < 0.02, "{found:?}");
        }
    }

    #[test]
    fn it_finds_the_deeper_of_two_valleys() {
        let errors = |values: &[u64]| {
            let mut near = ratios(values, &[1100.0, 900.0]);
            let mut far = ratios(values, &[2100.0, 450.0]);
            near.push(0.3);
            far.push(0.0);
            let cost = |errors: &[f64]| errors.iter().map(|error| error * error).sum::<f64>();
            if cost(&near) < cost(&far) { near } else { far }
        };
        let found = search(&[WIDE; 2], errors);
        assert!(found.values[0].abs_diff(2100) < 50, "{found:?}");
    }

    #[test]
    fn it_stays_within_its_spans_and_ends() {
        let span = SearchSpan {
            min: 10,
            max: 20,
            start: 15,
        };
        let up = search(&[span], |values| vec![100.0 - values[0] as f64]);
        assert_eq!(up.values, [20]);
        let down = search(&[span], |values| vec![values[0] as f64]);
        assert_eq!(down.values, [10]);
        let flat = search(&[span, span], |_| vec![1.0]);
        assert_eq!(flat.values, [15, 15]);
        assert_eq!(search(&[], |_| vec![0.0]).values, [0u64; 0]);
    }
}
