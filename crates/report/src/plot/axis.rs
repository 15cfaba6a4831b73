//! Axes: from figures to places, and where their lines stand.
//!
//! What must hold: an axis holds every figure that it was made for, and its lines stand at round figures. One that does
//! not begin at 0 is asked for by another name, so that nobody cuts an axis unawares.

/// About so many lines across.
const TICKS: f64 = 6.0;
/// Figures that differ by less than this share of the greatest are shown on an axis that does not begin at 0.
const NEAR: f64 = 0.5;
/// Figures at which an axis of ratios may have lines.
const RATIOS: [f64; 25] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0, 1.02, 1.05, 1.1, 1.25,
    1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0,
];

/// One axis: its ends, and how far apart its lines are.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    pub min: f64,
    pub max: f64,
    step: f64,
}

impl Axis {
    /// From 0, for figures up to `most`, in steps of 1, 2 or 5 times a power of ten.
    pub fn up_to(most: f64) -> Self {
        let step = step(most);
        Axis {
            min: 0.0,
            max: (most / step).ceil().max(1.0) * step,
            step,
        }
    }

    /// For figures from `least` to `most`: from 0, unless they lie near together and far from it.
    pub fn around(least: f64, most: f64) -> Self {
        if most - least >= NEAR * most || least <= 0.0 {
            return Axis::up_to(most);
        }
        // Some room to both sides, also where all figures are one.
        let room = (most - least).max(0.02 * most) * 0.1;
        let (least, most) = (least - room, most + room);
        let step = step(most - least);
        Axis {
            min: (least / step).floor() * step,
            max: (most / step).ceil() * step,
            step,
        }
    }

    /// Whether it begins at 0, so that lengths can be compared.
    pub fn is_from_zero(&self) -> bool {
        self.min == 0.0
    }

    /// Where a figure lies, from 0 at the beginning of the axis to 1 at its end.
    pub fn share(&self, figure: f64) -> f64 {
        self.along(figure, 1.0)
    }

    /// How far along an axis of that length a figure lies.
    pub fn along(&self, figure: f64, length: f64) -> f64 {
        length * (figure - self.min) / (self.max - self.min)
    }

    /// The figures at which its lines stand.
    pub fn ticks(&self) -> impl Iterator<Item = f64> {
        let count = ((self.max - self.min) / self.step).round() as u32;
        let Axis { min, step, .. } = *self;
        (0..=count).map(move |tick| min + f64::from(tick) * step)
    }
}

fn step(most: f64) -> f64 {
    let rough = most.max(1e-9) / TICKS;
    let power = 10f64.powi(rough.log10().floor() as i32);
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough)
        .unwrap_or(10.0 * power)
}

/// An axis on which equal ratios are equally far apart.
#[derive(Clone, Copy, Debug)]
pub struct LogAxis {
    low: f64,
    high: f64,
}

impl LogAxis {
    /// For figures above 0 from `least` to `most`, with some room to both sides.
    pub fn over(least: f64, most: f64) -> Self {
        let (low, high) = (least.max(1e-12).ln(), most.max(1e-12).ln());
        let room = ((high - low) * 0.06).max(0.01);
        LogAxis {
            low: low - room,
            high: high + room,
        }
    }

    /// Where a figure lies, from 0 at the beginning of the axis to 1 at its end; what lies beyond is at the end.
    pub fn share(&self, figure: f64) -> f64 {
        let share = (figure.max(1e-12).ln() - self.low) / (self.high - self.low);
        share.clamp(0.0, 1.0)
    }

    fn holds(&self, figure: f64) -> bool {
        (self.low..=self.high).contains(&figure.ln())
    }

    /// Ratios for its lines: 1 if it holds that, and others no nearer to one another than `gap`, a share of the axis.
    pub fn ratios(&self, gap: f64) -> Vec<f64> {
        let mut chosen: Vec<f64> = Vec::new();
        let held = RATIOS.into_iter().filter(|ratio| self.holds(*ratio));
        let mut held: Vec<f64> = held.collect();
        held.sort_by(|one, other| one.ln().abs().total_cmp(&other.ln().abs()));
        for ratio in held {
            let is_free = |other: &f64| (self.share(*other) - self.share(ratio)).abs() >= gap;
            if chosen.iter().all(is_free) {
                chosen.push(ratio);
            }
        }
        chosen
    }

    /// Figures of 1, 2 and 5 times a power of ten for its lines, no nearer to one another than `gap`.
    pub fn decades(&self, gap: f64) -> Vec<f64> {
        let (first, last) = (
            (self.low / 10f64.ln()).floor() as i32,
            (self.high / 10f64.ln()).ceil() as i32,
        );
        let mut chosen: Vec<f64> = Vec::new();
        for factor in [1.0, 2.0, 5.0] {
            for power in first..=last {
                let figure = factor * 10f64.powi(power);
                let is_free = |other: &f64| (self.share(*other) - self.share(figure)).abs() >= gap;
                if self.holds(figure) && chosen.iter().all(is_free) {
                    chosen.push(figure);
                }
            }
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_on_a_round_figure_at_or_above_the_greatest() {
        for (most, max, step) in [
            (200_000.0, 200_000.0, 50_000.0),
            (61_000.0, 80_000.0, 20_000.0),
            (7.0, 8.0, 2.0),
            // An axis of nothing still has a length.
            (0.0, 2e-10, 2e-10),
        ] {
            let axis = Axis::up_to(most);
            assert!(axis.max >= most);
            assert!((axis.max / max - 1.0).abs() < 1e-9, "{most}: {}", axis.max);
            assert!(
                (axis.step / step - 1.0).abs() < 1e-9,
                "{most}: {}",
                axis.step
            );
        }
    }

    #[test]
    fn only_figures_that_lie_near_together_leave_0_out() {
        assert!(Axis::around(10.0, 100.0).is_from_zero());
        assert!(Axis::around(0.0, 0.0).is_from_zero());
        let near = Axis::around(95.0, 100.0);
        assert!(!near.is_from_zero());
        assert!(near.share(95.0) > 0.0 && near.share(100.0) < 1.0);
        let one = Axis::around(7.0, 7.0);
        assert!(one.min < 7.0 && one.max > 7.0);
    }

    #[test]
    fn an_axis_of_ratios_names_1_and_keeps_its_lines_apart() {
        let axis = LogAxis::over(0.7, 2.1);
        let lines = axis.ratios(0.12);
        assert!(lines.contains(&1.0) && lines.len() > 2, "{lines:?}");
        for (index, one) in lines.iter().enumerate() {
            for other in &lines[index + 1..] {
                assert!((axis.share(*one) - axis.share(*other)).abs() >= 0.12);
            }
        }
        assert_eq!(axis.share(1e9), 1.0);
        let twice = axis.share(2.0) - axis.share(1.0);
        assert!((twice - (axis.share(1.6) - axis.share(0.8))).abs() < 1e-9);
    }

    #[test]
    fn an_axis_of_decades_has_round_figures() {
        let lines = LogAxis::over(30.0, 4_000.0).decades(0.1);
        assert!(
            lines.contains(&100.0) && lines.contains(&1_000.0),
            "{lines:?}"
        );
    }
}
