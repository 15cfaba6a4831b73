//! The limit on losses that ends a live comparison.
//!
//! Packets are lost in bursts: a receiver that waits for the CPU for a moment loses some dozens at once. A limit on single
//! blocks would end runs by chance. A run ends
//! - when two pairs in a row are over the limit: the judged block lost more than `factor` times what is usual under
//!   the reference, by more than chance explains, and more than a few;
//! - when all judged blocks together are over it, which finds a setting that loses a little too much in each;
//! - at once, when a block of either setting lost many times its limit.
//!
//! Usual is the greater of two rates: that of all stretches under the reference so far, and that of the last two. Traffic
//! that begins to lose more by itself does so under both settings and ends nothing.
//!
//! The bound is that of two Poisson rates, widened by the dispersion that the counts of both settings show
//! (quasi-Poisson: McCullagh and Nelder, Generalized Linear Models, 1989, section 6.2), or by that of usual bursts
//! where that is greater. The limit does not depend on how often a running block is checked.

/// Standard errors that chance explains.
const ERRORS: f64 = 3.0;
/// Pairs in a row over the limit that end a run.
const IN_A_ROW: usize = 2;
/// The fewest judged blocks that are checked together.
const TOGETHER: usize = 10;
/// The latest stretches under the reference, which show what is usual now.
const RECENT: usize = 2;
/// A block with so many times its limit ends the run at once.
const AT_ONCE: f64 = 5.0;
/// Losses that are never too many, before the factor: a share of a block's packets.
const FEW_SHARE: f64 = 0.0025;
/// Losses of a usual burst, and their largest share of a block's packets where there are few packets.
const BURST: f64 = 50.0;
const BURST_SHARE: f64 = 0.025;
/// Losses that are never too many in a block of hardly any packets.
const FEW_MIN: f64 = 5.0;

/// The losses of a stretch of traffic: packets, or retransmitted segments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// Its length.
    pub seconds: f64,
    /// Packets lost.
    pub lost: f64,
    /// Packets received and sent.
    pub packets: f64,
}

impl Losses {
    fn plus(self, other: &Losses) -> Losses {
        Losses {
            seconds: self.seconds + other.seconds,
            lost: self.lost + other.lost,
            packets: self.packets + other.packets,
        }
    }

    /// Returns losses a second; 0 for a stretch without length.
    fn rate(&self) -> f64 {
        per(self.lost, self.seconds)
    }
}

/// Too many losses.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TooMany {
    /// Losses: in one block, or in the last ones of the judged setting.
    pub lost: f64,
    /// Losses allowed.
    pub allowed: f64,
    /// Number of blocks.
    pub blocks: usize,
}

/// The limit of a run, and the losses so far.
#[derive(Clone, Debug)]
pub struct LossLimit {
    factor: f64,
    longest_seconds: f64,
    reference: Vec<Losses>,
    judged: Vec<Losses>,
    /// The latest pairs in a row that were over the limit.
    over: Vec<TooMany>,
}

impl LossLimit {
    /// Allows `factor` times the usual losses. `longest_seconds` is the length of the longest block, and `first` a
    /// stretch under the reference before the first one.
    pub fn new(factor: f64, longest_seconds: f64, first: Losses) -> Self {
        LossLimit {
            factor,
            longest_seconds,
            reference: vec![first],
            judged: Vec::new(),
            over: Vec::new(),
        }
    }

    /// Returns the losses of a stretch that by itself lost too much: no reason to end a run yet.
    pub fn alone(&self, stretch: &Losses) -> Option<TooMany> {
        over(stretch.lost, self.allowed(&[*stretch], self.usual()), 1)
    }

    /// Returns the losses of a running block, of either setting, that has lost so much that the run must end at once.
    pub fn at_once(&self, so_far: &Losses) -> Option<TooMany> {
        let all = sum(&self.reference);
        let packets = per(all.packets, all.seconds) * self.longest_seconds;
        let whole = Losses {
            seconds: self.longest_seconds,
            lost: so_far.lost,
            packets: packets.max(so_far.packets),
        };
        let allowed = AT_ONCE * self.allowed(&[whole], self.usual());
        over(so_far.lost, allowed, 1)
    }

    /// Adds a pair. Returns the losses if the run is over the limit with it.
    pub fn pair(&mut self, reference: Losses, judged: Losses) -> Option<TooMany> {
        self.reference.push(reference);
        self.judged.push(judged);
        match self.alone(&judged) {
            Some(one) => self.over.push(one),
            None => self.over.clear(),
        }
        if self.over.len() >= IN_A_ROW {
            return Some(TooMany {
                lost: self.over.iter().map(|one| one.lost).sum(),
                allowed: self.over.iter().map(|one| one.allowed).sum(),
                blocks: self.over.len(),
            });
        }
        if self.judged.len() < TOGETHER {
            return None;
        }
        let all = sum(&self.reference).rate();
        let lost = sum(&self.judged).lost;
        over(lost, self.allowed(&self.judged, all), self.judged.len())
    }

    /// Returns the usual losses a second, under the reference.
    fn usual(&self) -> f64 {
        let recent = self.reference.len().saturating_sub(RECENT);
        let recent = sum(&self.reference[recent..]).rate();
        sum(&self.reference).rate().max(recent)
    }

    /// Returns the losses that blocks may have where `usual` losses a second are usual.
    fn allowed(&self, blocks: &[Losses], usual: f64) -> f64 {
        let factor = self.factor;
        let seconds = sum(blocks).seconds;
        let usual = usual * seconds;
        // The variance of the blocks' own count, and of the reference's, which is multiplied by the factor.
        let uncertain = 1.0 + factor * per(seconds, sum(&self.reference).seconds);
        let variance = dispersion(&[&self.reference, &self.judged]) * factor * usual * uncertain;
        let few: f64 = blocks.iter().map(|block| few(block.packets)).sum();
        (factor * usual + ERRORS * variance.sqrt()).max(factor * few)
    }
}

fn over(lost: f64, allowed: f64, blocks: usize) -> Option<TooMany> {
    (lost > allowed).then_some(TooMany {
        lost,
        allowed,
        blocks,
    })
}

fn sum(stretches: &[Losses]) -> Losses {
    stretches.iter().fold(Losses::default(), Losses::plus)
}

fn per(count: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { count / seconds } else { 0.0 }
}

/// Returns the losses that are never too many in a block of so many packets.
fn few(packets: f64) -> f64 {
    let burst = BURST.min(BURST_SHARE * packets);
    burst.max(FEW_SHARE * packets).max(FEW_MIN)
}

/// Returns how much more the counts of stretches scatter around their setting's rate than independent losses would.
fn dispersion(settings: &[&Vec<Losses>]) -> f64 {
    let (mut squares, mut degrees) = (0.0, 0.0);
    for stretches in settings {
        let rate = sum(stretches).rate();
        let all = stretches.iter().map(|one| (one.seconds * rate, one.lost));
        let known = all.filter(|(expected, _)| *expected > 0.0);
        squares += known
            .map(|(expected, lost)| (lost - expected).powi(2) / expected)
            .sum::<f64>();
        degrees += stretches.len().saturating_sub(1) as f64;
    }
    per(squares, degrees).max(BURST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(lost: f64) -> Losses {
        Losses {
            seconds: 4.0,
            lost,
            packets: 80_000.0,
        }
    }

    /// A limit of twice the usual losses, after a stretch that lost `first`.
    fn limit(first: f64) -> LossLimit {
        LossLimit::new(2.0, 6.0, losses(first))
    }

    #[test]
    fn one_pair_over_the_limit_ends_nothing_and_the_second_in_a_row_does() {
        let mut clean = limit(0.0);
        let mut pair = |lost| clean.pair(losses(0.0), losses(lost)).map(|it| it.lost);
        assert_eq!([pair(116.0), pair(399.0)], [None, None]);
        // 0.5 % of the packets.
        assert_eq!([pair(401.0), pair(0.0), pair(900.0)], [None; 3]);
        assert_eq!(pair(402.0), Some(1_302.0));
    }

    #[test]
    fn what_the_reference_loses_as_well_is_usual() {
        let mut worse = limit(0.0);
        for _ in 0..10 {
            assert_eq!(worse.pair(losses(5_000.0), losses(8_000.0)), None);
        }
        assert_eq!(worse.pair(losses(5_000.0), losses(30_000.0)), None);
        let end = worse.pair(losses(5_000.0), losses(30_000.0)).unwrap();
        assert_eq!((end.lost, end.blocks), (60_000.0, 2));
        assert!((20_000.0..60_000.0).contains(&end.allowed), "{end:?}");
    }

    #[test]
    fn blocks_of_which_none_is_over_the_limit_are_over_it_together_from_the_tenth_on() {
        let mut worse = limit(5_000.0);
        for _ in 0..9 {
            assert_eq!(worse.pair(losses(5_000.0), losses(12_000.0)), None);
        }
        let end = worse.pair(losses(5_000.0), losses(12_000.0)).unwrap();
        assert_eq!((end.lost, end.blocks), (120_000.0, 10));
    }

    #[test]
    fn a_stretch_without_length_shows_nothing_usual() {
        let first = Losses {
            seconds: 0.0,
            ..losses(5.0)
        };
        let limit = LossLimit::new(2.0, 6.0, first);
        assert_eq!(limit.alone(&losses(400.0)), None);
        assert!(limit.alone(&losses(401.0)).is_some());
    }

    #[test]
    fn losses_scatter_by_what_their_setting_shows_even_where_the_other_has_none() {
        let none = vec![losses(0.0); 3];
        // Squares of 500 over 500, for two degrees of freedom of the one and three of the other.
        let judged = [0.0, 1_000.0, 0.0, 1_000.0].map(losses).to_vec();
        let scatter = dispersion(&[&none, &judged]);
        assert!((scatter - 4.0 * 500.0 / 5.0).abs() < 1e-9, "{scatter}");
    }

    #[test]
    fn a_block_that_loses_very_much_ends_a_run_before_it_is_over() {
        let limit = limit(0.0);
        let after = |lost| {
            limit.at_once(&Losses {
                seconds: 0.2,
                lost,
                packets: 4_000.0,
            })
        };
        // Five times 0.5 % of the longest block's 120,000 packets.
        assert_eq!(after(3_000.0), None);
        assert_eq!(after(3_001.0).map(|it| it.allowed), Some(3_000.0));
    }

    #[test]
    fn few_is_less_where_there_is_little_traffic() {
        let of = [0.0, 400.0, 2_000.0, 20_000.0, 80_000.0].map(few);
        assert_eq!(of, [5.0, 10.0, 50.0, 50.0, 200.0]);
    }
}
