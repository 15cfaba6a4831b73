//! The controller that goes by the cost of a packet.
//!
//! The original's adds or takes one packet a cycle: from 5 to 150 it needs 145 good cycles, and under a
//! load that suddenly costs more it stays over its share for as many. This one divides: a cycle that
//! moved `n` packets in `t` says that `n x share / t` would have filled the share. With a cost of
//! `f` a cycle and `c` a packet the step from `b` leads to `b x share / (f + c b)`, whose fixed point is
//! the burst that costs exactly the share. By `f + c b` a packet seems dearer than it is, and the last one
//! that would fit could be left out for ever. Where a packet is a large part of the share, the step therefore
//! goes by `c` itself, which two cycles of different bursts show.
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

/// From so many packets on one is less than a fiftieth of the share, and its mean cost will do.
const FINE_MAX: u32 = 50;
/// Costs are alike when they differ by no more than this part of a packet's.
const ALIKE_DIVISOR: u64 = 16;
/// Confirmations that make sure of a packet's cost.
const SURE: u32 = 2;
/// One more packet costs no less than this part of the mean; what seems to is noise.
const MARGINAL_DIVISOR: u64 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// A cycle that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cycle {
    /// Packets requested from each device.
    pub(crate) requested: u32,
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
    /// Packets and time of the last cycle.
    last: Option<(u32, u64)>,
    /// What one more packet costs, as two cycles have shown it.
    marginal_ns: Option<u64>,
    /// How often in a row a pair of cycles has confirmed it. A pair may have had a change of cost between
    /// its cycles.
    confirmed: u32,
}

impl Share {
    pub(crate) fn new(burst: u32) -> Self {
        Share {
            aim: u64::from(burst) * ONE,
            far: None,
            last: None,
            marginal_ns: None,
            confirmed: 0,
        }
    }

    /// The burst after `cycle`. While ticks wait for their cycles these are as short as can be: the time
    /// that they stand for has been used.
    pub(crate) fn next_burst(&mut self, cycle: &Cycle) -> u32 {
        let aim_max = u64::from(cycle.burst_max) * ONE;
        self.learn(cycle);
        let wanted = u128::from(cycle.requested) * u128::from(ONE) * u128::from(cycle.share_ns)
            / u128::from(cycle.elapsed_ns.max(1));
        let wanted = u64::try_from(wanted)
            .unwrap_or(u64::MAX)
            .clamp(ONE, aim_max);
        let fine = self.fine(cycle).clamp(ONE, aim_max);
        let near = (self.aim / NEAR_DIVISOR).max(ONE);
        if wanted.abs_diff(self.aim).min(fine.abs_diff(self.aim)) <= near {
            self.far = None;
            self.approach(cycle, fine);
        } else {
            self.go_far(wanted);
        }
        self.aim = self.aim.clamp(ONE, aim_max);
        self.last = Some((cycle.requested, cycle.elapsed_ns));
        if cycle.pending > 0 {
            return 1;
        }
        // The packet that would not fit whole is left, so that the cycle does not reach into the next
        // tick.
        u32::try_from(self.aim / ONE).unwrap_or(cycle.burst_max)
    }

    /// Sees what one more packet costs, when the last cycle had another burst.
    fn learn(&mut self, cycle: &Cycle) {
        let Some((requested, elapsed_ns)) = self.last else {
            return;
        };
        let packets = i64::from(cycle.requested) - i64::from(requested);
        let is_alike = |one_ns: u64, other_ns: u64, packet_ns: u64| {
            one_ns.abs_diff(other_ns) <= packet_ns / ALIKE_DIVISOR
        };
        if packets == 0 {
            let marginal_ns = self.marginal_ns.unwrap_or(0);
            if !is_alike(cycle.elapsed_ns, elapsed_ns, marginal_ns) {
                self.confirmed = 0;
            }
            return;
        }
        let more_ns = (signed(cycle.elapsed_ns) - signed(elapsed_ns)) / packets;
        let marginal_ns = u64::try_from(more_ns).unwrap_or(0);
        let is_confirmed = self
            .marginal_ns
            .is_some_and(|before_ns| is_alike(marginal_ns, before_ns, before_ns));
        self.confirmed = if is_confirmed {
            SURE.min(self.confirmed + 1)
        } else {
            0
        };
        self.marginal_ns = Some(marginal_ns);
    }

    /// The burst that fills the share, by what one more packet costs.
    fn fine(&self, cycle: &Cycle) -> u64 {
        let mean_ns = (cycle.elapsed_ns / u64::from(cycle.requested.max(1))).max(1);
        let least_ns = (mean_ns / MARGINAL_DIVISOR).max(1);
        let is_sure = self.confirmed > 0 && cycle.requested < FINE_MAX;
        let marginal_ns = match self.marginal_ns.filter(|_| is_sure) {
            Some(marginal_ns) => marginal_ns.clamp(least_ns, mean_ns),
            None => mean_ns,
        };
        let room_ns = signed(cycle.share_ns) - signed(cycle.elapsed_ns);
        let room = room_ns.saturating_mul(signed(ONE)) / signed(marginal_ns);
        let wanted = signed(u64::from(cycle.requested) * ONE).saturating_add(room);
        u64::try_from(wanted).unwrap_or(0)
    }

    /// A small step to where the share is filled.
    fn approach(&mut self, cycle: &Cycle, wanted: u64) {
        let is_at_rest = self
            .last
            .is_none_or(|(requested, _)| requested == cycle.requested);
        if is_at_rest && self.confirmed < SURE && cycle.requested < FINE_MAX {
            // A packet less shows what it costs, and takes no one's time; from 1 there is but a packet more.
            let has_room = cycle.elapsed_ns < cycle.share_ns;
            match cycle.requested {
                0 => {}
                1 if has_room => self.aim = 2 * ONE,
                1 => self.aim = ONE,
                requested => self.aim = u64::from(requested - 1) * ONE,
            }
            return;
        }
        let distance = wanted.abs_diff(self.aim);
        let step_max = self.step_max();
        let step = distance.div_ceil(2).min(step_max);
        self.aim = if wanted > self.aim {
            self.aim + step
        } else {
            self.aim - step
        };
    }

    /// A small step if this is the first cycle that wants so much more or less, and the whole way if it is
    /// the second.
    fn go_far(&mut self, wanted: u64) {
        let direction = if wanted > self.aim {
            Direction::Up
        } else {
            Direction::Down
        };
        if self.far == Some(direction) {
            // The cost has changed.
            (self.marginal_ns, self.confirmed) = (None, 0);
            self.far = None;
            self.aim = wanted;
            return;
        }
        self.far = Some(direction);
        let step = self.step_max();
        self.aim = match direction {
            Direction::Up => self.aim + step,
            Direction::Down => self.aim - step.min(self.aim),
        };
    }

    /// A tenth of the packets, or one.
    fn step_max(&self) -> u64 {
        (self.aim / ONE / STEP_DIVISOR).max(1) * ONE
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
