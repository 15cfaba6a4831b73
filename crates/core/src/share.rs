//! The controller that goes by the clock.
//!
//! The original's adds or takes one packet a cycle: from 5 to 150 it needs 145 good cycles, and under a
//! load that suddenly costs more it stays over its share for as many. This one guesses no burst. After
//! each chunk it looks at the time that is left of the share, and the cycle ends before the chunk that
//! would not fit. What a packet costs, filtered over cycles, only says how large the last chunks may be:
//! once a chunk of `each_burst` no longer fits, each chunk takes half of what does, so that the error of
//! the estimate shrinks with every call.
//!
//! What must hold: a cycle outlasts its share by no more than one chunk; over some ticks the time that
//! polling takes is within one packet of every device of the share, whatever the noise of a call's cost;
//! noise moves the burst by no more than an eighth of what it moves the cost of a cycle.

use crate::controller::Cycle;
use crate::poller::State;
use crate::time::Time;

/// Costs are kept in 256ths of a nanosecond.
const ONE: u64 = 256;
/// A cycle's cost moves the filtered one by this part of the difference.
const FILTER_DIVISOR: i64 = 8;
/// A cost that differs by more than this factor is no noise: it is believed at once.
const STEP: u64 = 2;
/// The least part of a lone chunk's time that its packets are taken to cost.
const LONE_DIVISOR: u64 = 8;

/// Packets and time of a cycle so far: its first chunk, which bears what each cycle costs whatever it
/// brings, and all others.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    first_packets: u32,
    first_ns: u64,
    other_packets: u32,
    other_ns: u64,
}

/// What the controller remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    /// When the chunk under way began.
    chunk_start: Time,
    /// Packets that it requests from each device.
    chunk_packets: u32,
    spent: Spent,
    /// What one more packet of every device costs, protocols included, in 256ths of a nanosecond; 0:
    /// no cycle has shown it yet.
    packet_cost: u64,
    /// What a cycle costs besides.
    cycle_ns: u64,
}

impl Share {
    /// A cycle begins. At least one packet is requested, even when the time is used up already.
    pub(crate) fn begin(&mut self, cycle: &Cycle, state: &State) -> u32 {
        self.spent = Spent::default();
        if cycle.deadline() <= cycle.start {
            return 1;
        }
        halved_at_the_end(state.burst, state.each_burst)
    }

    /// A chunk begins.
    pub(crate) fn begin_chunk(&mut self, now: Time, packets: u32) {
        self.chunk_start = now;
        self.chunk_packets = packets;
    }

    /// A chunk has ended: the packets that later ones may request.
    pub(crate) fn after_chunk(&mut self, now: Time, cycle: &Cycle, state: &State) -> u32 {
        let elapsed_ns = now.ns().saturating_sub(self.chunk_start.ns());
        let spent = &mut self.spent;
        if spent.first_packets == 0 {
            (spent.first_packets, spent.first_ns) = (self.chunk_packets, elapsed_ns);
        } else {
            spent.other_packets += self.chunk_packets;
            spent.other_ns += elapsed_ns;
        }
        let requested = spent.first_packets + spent.other_packets;
        if self.packet_cost == 0 {
            self.packet_cost = cost(spent.first_ns, spent.first_packets);
        }
        let room_ns = cycle.deadline().ns().saturating_sub(now.ns());
        let fits = self
            .fits(room_ns)
            .min(state.burst_max.saturating_sub(requested));
        halved_at_the_end(fits, state.each_burst)
    }

    /// The cycle is over: learns what its packets cost. Returns the burst that would fill the share.
    pub(crate) fn after_cycle(&mut self, now: Time, cycle: &Cycle, state: &State) -> u32 {
        let Spent {
            first_packets,
            first_ns,
            ..
        } = self.spent;
        let expected_ns = self.cycle_ns + self.packets_ns(first_packets);
        let before = self.packet_cost;
        self.packet_cost = self.learnt(expected_ns, cycle.has_time(now)).max(1);
        // Whatever a packet is taken to cost now, the first chunk took what it took.
        let chunk_ns = if is_step(before, self.packet_cost) {
            first_ns
        } else {
            followed(expected_ns, first_ns)
        };
        self.cycle_ns = chunk_ns.saturating_sub(self.packets_ns(first_packets));
        self.fits(cycle.share_ns.saturating_sub(self.cycle_ns))
            .clamp(1, state.burst_max)
    }

    /// The cost of a packet after this cycle, which had time left or not.
    fn learnt(&self, expected_ns: u64, has_time: bool) -> u64 {
        let (spent, before) = (self.spent, self.packet_cost);
        if spent.other_packets > 0 {
            return followed(before, cost(spent.other_ns, spent.other_packets));
        }
        // A lone chunk does not show what of it was the packets'.
        if has_time {
            // At most all; then less and less, until another chunk is tried.
            let most = cost(spent.first_ns, spent.first_packets);
            filtered(before.min(most), most / LONE_DIVISOR)
        } else {
            filtered(before, scaled(before, spent.first_ns, expected_ns))
        }
    }

    /// What so many packets of every device take.
    fn packets_ns(&self, packets: u32) -> u64 {
        self.packet_cost.saturating_mul(packets.into()) / ONE
    }

    /// Packets of every device that take no longer than `room_ns`, but for an eighth of a packet: the
    /// cost is an estimate.
    fn fits(&self, room_ns: u64) -> u32 {
        let packet_cost = self.packet_cost.max(1);
        let room = room_ns.saturating_mul(ONE).saturating_add(packet_cost / 8);
        let packets = room / packet_cost;
        u32::try_from(packets).unwrap_or(u32::MAX)
    }
}

/// What to request when `fits` packets fit: all of them while half is more than a chunk, then half.
fn halved_at_the_end(fits: u32, each_burst: u32) -> u32 {
    let half = fits.div_ceil(2);
    if half > each_burst { fits } else { half }
}

fn cost(elapsed_ns: u64, packets: u32) -> u64 {
    scaled(ONE, elapsed_ns, packets.into()).max(1)
}

/// `value` by `numerator` / `denominator`.
fn scaled(value: u64, numerator: u64, denominator: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(numerator) / u128::from(denominator.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// [`filtered`], but what is no noise is believed at once.
fn followed(before: u64, seen: u64) -> u64 {
    if is_step(before, seen) {
        seen
    } else {
        filtered(before, seen)
    }
}

fn is_step(before: u64, seen: u64) -> bool {
    seen / STEP > before || seen < before / STEP
}

fn filtered(before: u64, seen: u64) -> u64 {
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let difference = signed(seen).saturating_sub(signed(before));
    before.saturating_add_signed(difference / FILTER_DIVISOR)
}
