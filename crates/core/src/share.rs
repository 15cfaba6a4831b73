//! The controller that goes by the cost of a packet.
//!
//! The original's adds or takes one packet a cycle: from 5 to 150 it needs 145 good cycles, and under a
//! load that suddenly costs more it stays over its share for as many. This one divides: a cycle that
//! moved `n` packets in `t` says that `n x share / t` would have filled the share. With a cost of
//! `f` a cycle and `c` a packet the step from `b` leads to `b x share / (f + c b)`, whose fixed point is
//! the burst that costs exactly the share; near it an error shrinks by the factor `f / share` a cycle.
//!
//! What must hold: near its aim the burst moves by no more than a tenth or one packet, so that noise
//! does not swing it; far from it, two cycles in a row that say so are enough to jump there; and no
//! cycle outlasts its share by more than one chunk.

/// One packet in the fixed-point numbers here.
const ONE: u64 = 256;
/// Steps below a quarter of the burst are near.
const NEAR_DIVISOR: u64 = 4;
/// Near the aim a step is at most a tenth.
const STEP_DIVISOR: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// A cycle that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cycle {
    /// Packets that each device was asked for.
    pub(crate) asked: u32,
    /// How long it took.
    pub(crate) elapsed_ns: u64,
    /// How long it should have taken.
    pub(crate) share_ns: u64,
    pub(crate) burst_max: u32,
    /// Ticks that came meanwhile and wait for their cycles.
    pub(crate) pending: u32,
}

/// What the controller remembers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// The aim in 256ths of a packet.
    aim: u64,
    /// Where the last cycle wanted to go, when that was far.
    far: Option<Direction>,
}

impl Share {
    pub(crate) fn new(burst: u32) -> Self {
        Share {
            aim: u64::from(burst) * ONE,
            far: None,
        }
    }

    /// The burst after `cycle`. While ticks wait for their cycles these are as short as can be: the time
    /// that they stand for has been used.
    pub(crate) fn next_burst(&mut self, cycle: &Cycle) -> u32 {
        let aim_max = u64::from(cycle.burst_max) * ONE;
        let wanted = u128::from(cycle.asked) * u128::from(ONE) * u128::from(cycle.share_ns)
            / u128::from(cycle.elapsed_ns.max(1));
        let wanted = u64::try_from(wanted)
            .unwrap_or(u64::MAX)
            .clamp(ONE, aim_max);
        self.approach(wanted);
        self.aim = self.aim.clamp(ONE, aim_max);
        if cycle.pending > 0 {
            return 1;
        }
        // The packet that would not fit whole is left, so that the cycle does not reach into the next
        // tick.
        u32::try_from(self.aim / ONE).unwrap_or(cycle.burst_max)
    }

    fn approach(&mut self, wanted: u64) {
        let distance = wanted.abs_diff(self.aim);
        let direction = if wanted > self.aim {
            Direction::Up
        } else {
            Direction::Down
        };
        let is_near = distance <= (self.aim / NEAR_DIVISOR).max(ONE);
        let step_max = (self.aim / STEP_DIVISOR).max(ONE);
        let step = if is_near {
            self.far = None;
            distance.div_ceil(2).min(step_max)
        } else if self.far == Some(direction) {
            self.far = None;
            distance
        } else {
            self.far = Some(direction);
            step_max
        };
        self.aim = match direction {
            Direction::Up => self.aim + step,
            Direction::Down => self.aim - step,
        };
    }
}
