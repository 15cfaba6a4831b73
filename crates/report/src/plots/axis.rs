//! Axes: positions of figures, and of the grid lines.
//!
//! An axis holds every figure for which it was made, and its lines are at round figures. Only [`Axis::around`] may
//! begin elsewhere than at 0.

use super::svg::short;

/// Approximate number of lines.
const TICKS: f64 = 6.0;
/// Figures that differ by less than this share of the greatest get an axis that does not begin at 0.
const NEAR: f64 = 0.5;
/// Minimum distance of lines on a logarithmic axis, as a share of it.
const DECADES_GAP: f64 = 0.09;
const RATIOS_GAP: f64 = 0.11;
/// Figures at which an axis of ratios may have lines.
const RATIOS: [f64; 25] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0, 1.02, 1.05, 1.1, 1.25,
    1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0,
];
/// Shares at which an axis of nines may have lines.
pub const SHARES: [(&str, f64); 7] = [
    ("0 %", 0.0),
    ("50 %", 0.5),
    ("90 %", 0.9),
    ("99 %", 0.99),
    ("99.9 %", 0.999),
    ("99.99 %", 0.9999),
    ("99.999 %", 0.99999),
];

/// One axis.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    low: f64,
    high: f64,
    kind: AxisKind,
}

#[derive(Clone, Copy, Debug)]
enum AxisKind {
    /// Linear, with the distance of lines.
    Linear(f64),
    /// Logarithmic; `low` and `high` are logarithms.
    Decades,
    /// The same for ratios around 1.
    Ratios,
    /// Shares from 0 to 1.
    Percent,
    /// Shares, each further nine with the same room; `high` is the number of nines.
    Nines,
}

/// A line of an axis.
pub struct Tick {
    /// Its figure.
    pub figure: f64,
    /// Its label; may be empty.
    pub label: String,
    /// Whether the other axis starts here.
    pub is_first: bool,
}

impl Axis {
    fn new(low: f64, high: f64, kind: AxisKind) -> Self {
        Axis { low, high, kind }
    }

    /// Makes an axis from 0 for figures up to `most`, in steps of 1, 2 or 5 times a power of ten.
    pub fn up_to(most: f64) -> Self {
        let step = step(most);
        Axis::new(
            0.0,
            (most / step).ceil().max(1.0) * step,
            AxisKind::Linear(step),
        )
    }

    /// Makes an axis for figures from `least` to `most`: from 0, unless they are close together and far from 0.
    pub fn around(least: f64, most: f64) -> Self {
        if most - least >= NEAR * most || least <= 0.0 {
            return Axis::up_to(most);
        }
        // Some room on both sides, even if all figures are equal.
        let room = (most - least).max(0.02 * most) * 0.1;
        let (least, most) = (least - room, most + room);
        let step = step(most - least);
        Axis::new(
            (least / step).floor() * step,
            (most / step).ceil() * step,
            AxisKind::Linear(step),
        )
    }

    /// Makes an axis of shares from 0 to 1, in percent.
    pub fn percent() -> Self {
        Axis::new(0.0, 1.0, AxisKind::Percent)
    }

    /// Makes an [`Axis::around`] all values; `None` without any.
    pub fn around_all(values: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let least = values.clone().reduce(f64::min)?;
        Some(Axis::around(least, values.reduce(f64::max)?))
    }

    /// Makes a logarithmic axis for figures above 0, with some room on both sides.
    pub fn decades(least: f64, most: f64) -> Self {
        Axis::logarithmic(least, most, AxisKind::Decades)
    }

    /// The same for ratios around 1.
    pub fn ratios(least: f64, most: f64) -> Self {
        Axis::logarithmic(least, most, AxisKind::Ratios)
    }

    fn logarithmic(least: f64, most: f64, kind: AxisKind) -> Self {
        let (low, high) = (least.max(1e-12).ln(), most.max(1e-12).ln());
        let room = ((high - low) * 0.06).max(0.01);
        Axis {
            low: low - room,
            high: high + room,
            kind,
        }
    }

    /// Makes an axis of the shares that this many samples can resolve.
    pub fn nines(samples: u64) -> Self {
        Axis::new(0.0, (samples.max(10) as f64).log10(), AxisKind::Nines)
    }

    /// Returns whether it begins at 0, so lengths can be compared.
    pub fn is_from_zero(&self) -> bool {
        self.low == 0.0
    }

    /// Returns the figure at its end.
    pub fn end(&self) -> f64 {
        self.high
    }

    /// Returns the position of a figure, from 0 at the start of the axis to 1 at its end.
    pub fn share(&self, figure: f64) -> f64 {
        self.along(figure, 1.0)
    }

    /// Returns the position of a figure along an axis of that length.
    pub fn along(&self, figure: f64, length: f64) -> f64 {
        let of = |figure: f64| length * (figure - self.low) / (self.high - self.low);
        match self.kind {
            AxisKind::Linear(_) | AxisKind::Percent => of(figure),
            AxisKind::Decades | AxisKind::Ratios => of(figure.max(1e-12).ln()).clamp(0.0, length),
            AxisKind::Nines => length * (-(1.0 - figure).max(1e-12).log10() / self.high).min(1.0),
        }
    }

    /// Returns its lines.
    pub fn ticks(&self) -> Vec<Tick> {
        let tick = |figure: f64, label: String| Tick {
            figure,
            label,
            is_first: false,
        };
        match self.kind {
            AxisKind::Linear(step) => {
                let count = ((self.high - self.low) / step).round() as u32;
                let figures = (0..=count).map(|index| self.low + f64::from(index) * step);
                let ticks = figures.map(|figure| Tick {
                    is_first: figure == self.low,
                    ..tick(figure, short(figure))
                });
                ticks.collect()
            }
            AxisKind::Percent => {
                let quarters = (0..=4).map(|it| f64::from(it) / 4.0);
                quarters
                    .map(|it| tick(it, (100.0 * it).to_string()))
                    .collect()
            }
            AxisKind::Decades => {
                let lines = self.decade_lines().into_iter();
                lines.map(|figure| tick(figure, short(figure))).collect()
            }
            AxisKind::Ratios => {
                let mut held = RATIOS.to_vec();
                held.sort_by(|one, other| one.ln().abs().total_cmp(&other.ln().abs()));
                let lines = self.spread(held.into_iter(), RATIOS_GAP).into_iter();
                lines.map(|ratio| tick(ratio, ratio.to_string())).collect()
            }
            AxisKind::Nines => {
                let samples = 10f64.powf(self.high) * (1.0 + 1e-9);
                let told = SHARES.iter().filter(|(_, it)| (1.0 - it) * samples >= 1.0);
                let ticks = told.map(|(name, share)| match *share == 0.0 {
                    // Below a half there is no room for a name.
                    true => Tick {
                        is_first: true,
                        ..tick(*share, String::new())
                    },
                    false => tick(*share, name.replace(' ', "")),
                });
                ticks.collect()
            }
        }
    }

    /// 1, 2 and 5 times powers of ten.
    fn decade_lines(&self) -> Vec<f64> {
        let power = |ln: f64| ln / 10f64.ln();
        let (first, last) = (
            power(self.low).floor() as i32,
            power(self.high).ceil() as i32,
        );
        let figures = [1.0, 2.0, 5.0]
            .into_iter()
            .flat_map(|factor| (first..=last).map(move |power| factor * 10f64.powi(power)));
        self.spread(figures, DECADES_GAP)
    }

    /// Selects figures on the axis that are at least `gap` apart; earlier ones take precedence.
    fn spread(&self, figures: impl Iterator<Item = f64>, gap: f64) -> Vec<f64> {
        let mut chosen: Vec<f64> = Vec::new();
        for figure in figures.filter(|it| (self.low..=self.high).contains(&it.ln())) {
            let is_free = |other: &f64| (self.share(*other) - self.share(figure)).abs() >= gap;
            if chosen.iter().all(is_free) {
                chosen.push(figure);
            }
        }
        chosen
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_on_a_round_figure_at_or_above_the_greatest() {
        for (most, end, step) in [
            (200_000.0, 200_000.0, 50_000.0),
            (61_000.0, 80_000.0, 20_000.0),
            (7.0, 8.0, 2.0),
            // An axis without figures still has a length.
            (0.0, 2e-10, 2e-10),
        ] {
            let axis = Axis::up_to(most);
            assert!(axis.high >= most);
            assert!((axis.high / end - 1.0).abs() < 1e-9, "{most}: {axis:?}");
            let AxisKind::Linear(own) = axis.kind else {
                panic!("{axis:?}")
            };
            assert!((own / step - 1.0).abs() < 1e-9, "{most}: {axis:?}");
        }
    }

    #[test]
    fn only_figures_that_are_near_together_leave_0_out() {
        assert!(Axis::around(10.0, 100.0).is_from_zero());
        assert!(Axis::around(0.0, 0.0).is_from_zero());
        let near = Axis::around(95.0, 100.0);
        assert!(!near.is_from_zero());
        assert!(near.share(95.0) > 0.0 && near.share(100.0) < 1.0);
        let one = Axis::around(7.0, 7.0);
        assert!(one.low < 7.0 && one.high > 7.0);
    }

    #[test]
    fn an_axis_of_ratios_names_1_and_keeps_its_lines_apart() {
        let axis = Axis::ratios(0.7, 2.1);
        let lines = axis.ticks();
        assert!(lines.iter().any(|line| line.label == "1") && lines.len() > 2);
        for (index, one) in lines.iter().enumerate() {
            for other in &lines[index + 1..] {
                let shares = [one, other].map(|line| axis.share(line.figure));
                assert!((shares[0] - shares[1]).abs() >= RATIOS_GAP);
            }
        }
        assert_eq!(axis.share(1e9), 1.0);
        let twice = axis.share(2.0) - axis.share(1.0);
        assert!((twice - (axis.share(1.6) - axis.share(0.8))).abs() < 1e-9);
    }

    #[test]
    fn an_axis_of_decades_has_round_figures() {
        let lines = Axis::decades(30.0, 4_000.0).ticks();
        for label in ["100", "1k"] {
            assert!(lines.iter().any(|line| line.label == label), "{label}");
        }
    }

    #[test]
    fn an_axis_of_nines_has_the_shares_that_so_many_samples_can_tell() {
        for (samples, lines) in [(1, 3), (100, 4), (999, 4), (1_000, 5), (100_000, 7)] {
            assert_eq!(Axis::nines(samples).ticks().len(), lines, "{samples}");
        }
        let axis = Axis::nines(1_000);
        assert_eq!([0.0, 1.0].map(|it| axis.share(it)), [0.0, 1.0]);
    }
}
