//! An interval of a ratio as a bar on a common scale, for a terminal.
//!
//! What must hold: the scale is one for all bars of a page and logarithmic, so that twice as much and half
//! as much are equally far from no difference; what lies beyond the scale shows as `<` or `>`, never as if
//! it ended there.

/// Ratios that a scale may end at.
const ENDS: [f64; 6] = [1.1, 1.25, 1.5, 2.0, 3.0, 4.0];
/// Cells to either side of no difference.
const SIDE: usize = 9;
/// Cells of a bar.
pub const BAR: usize = 2 * SIDE + 1;

/// A ratio with the ends of its interval; an end is `None` where the interval has none.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The lower end.
    pub low: Option<f64>,
    /// The estimate.
    pub ratio: f64,
    /// The upper end.
    pub high: Option<f64>,
}

/// The scale of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    end: f64,
}

impl Scale {
    /// The narrowest scale that holds all spans, or else the widest that there is: on a wider one the
    /// differences that are hard to judge would be too small to see.
    pub fn of(spans: &[Span]) -> Self {
        let ratios = spans
            .iter()
            .flat_map(|span| [span.low, Some(span.ratio), span.high]);
        let farthest = ratios
            .flatten()
            .filter(|ratio| *ratio > 0.0)
            .map(|ratio| ratio.ln().abs())
            .fold(0.0, f64::max);
        let wide_enough = ENDS.iter().find(|end| end.ln() >= farthest);
        let end = *wide_enough.unwrap_or(&ENDS[ENDS.len() - 1]);
        Scale { end }
    }

    /// What stands above the bars: the scale's ends, and no difference in the middle.
    pub fn head(&self) -> String {
        let (less, more) = (format!("1/{}", self.end), format!("{}x", self.end));
        format!("{less:<SIDE$}1{more:>SIDE$}")
    }

    /// The bar of a span: `   ---o---|   `.
    pub fn bar(&self, span: Span) -> String {
        let low = span
            .low
            .map_or(f64::NEG_INFINITY, |ratio| self.place(ratio));
        let high = span.high.map_or(f64::INFINITY, |ratio| self.place(ratio));
        let middle = self.place(span.ratio);
        let last = (BAR - 1) as f64;
        let cell = |index: usize| {
            let at = index as f64;
            if index == 0 && low < -0.5 {
                '<'
            } else if index == BAR - 1 && high > last + 0.5 {
                '>'
            } else if middle.round() == at {
                'o'
            } else if index == SIDE {
                '|'
            } else if low.round() <= at && at <= high.round() {
                '-'
            } else {
                ' '
            }
        };
        (0..BAR).map(cell).collect()
    }

    /// The ratio that the scale ends at; it begins at 1 over that.
    pub fn end(&self) -> f64 {
        self.end
    }

    /// Where a ratio lies, in cells from the left.
    fn place(&self, ratio: f64) -> f64 {
        SIDE as f64 * (1.0 + ratio.ln() / self.end.ln())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(low: f64, ratio: f64, high: f64) -> Span {
        Span {
            low: Some(low),
            ratio,
            high: Some(high),
        }
    }

    #[test]
    fn twice_and_half_are_equally_far() {
        let scale = Scale::of(&[span(0.26, 0.5, 0.9), span(1.1, 2.0, 3.9)]);
        assert_eq!(scale.head(), "1/4      1       4x");
        assert_eq!(scale.bar(span(0.26, 0.5, 0.9)), "-----o---|         ");
        assert_eq!(scale.bar(span(1.1, 2.0, 3.9)), "         |----o----");
        assert_eq!(scale.bar(span(0.9, 1.0, 1.1)), "        -o-        ");
    }

    #[test]
    fn what_lies_beyond_the_scale_is_marked() {
        let scale = Scale { end: 2.0 };
        assert!(scale.bar(span(0.1, 0.8, 3.0)).starts_with('<'));
        assert!(scale.bar(span(0.1, 0.8, 3.0)).ends_with('>'));
        let open = Span {
            low: Some(1.2),
            ratio: 1.5,
            high: None,
        };
        assert!(scale.bar(open).ends_with("->"));
        // Where even the estimate lies beyond, only the mark is left.
        let far = scale.bar(span(0.01, 0.02, 0.03));
        assert_eq!(far, "<        |         ");
    }

    #[test]
    fn the_scale_holds_all_and_is_no_wider() {
        assert_eq!(Scale::of(&[]), Scale { end: 1.1 });
        assert_eq!(Scale::of(&[span(0.6, 0.7, 0.9)]), Scale { end: 2.0 });
        assert_eq!(Scale::of(&[span(0.001, 1.0, 2.0)]), Scale { end: 4.0 });
    }
}
