//! How the burst of the next cycle follows from the last one: the original's controller, and one that goes by the clock.
//!
//! [`Memory::Freebsd`] does exactly what `sys/kern/kern_poll.c` does at each of these places, and nothing at the others.
//!
//! The original adds or takes one packet a cycle: from 5 to 150 it needs 145 good cycles, and under a load that suddenly
//! costs more it stays over its share for as many. [`Share`] guesses no burst. After each chunk it looks at the time that
//! is left of the share, and the cycle ends before the chunk that would not fit. The filtered cost of a packet only says
//! how large the last chunks may be: once a chunk of `each_burst` no longer fits, each chunk takes half of what does, so
//! the error of the estimate shrinks with every call.
//!
//! The share is what polling has while others want the processor. What they leave goes to nobody else, so [`Share`] takes
//! that, too, once its cycle is over and packets wait; whether it is left, the caller observes.
//!
//! It guarantees that a cycle outlasts its share by no more than one chunk; that over some ticks the time that polling
//! takes is within one packet of every device of the share, however noisy the cost of a call; and that noise moves the
//! burst by no more than an eighth of what it moves the cost of a cycle.

use crate::device::Time;
use crate::knob::State;

const NS_PER_SECOND: u64 = 1_000_000_000;

/// A way to adapt the burst, chosen by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Controller {
    /// The original's: one packet less after a cycle that took more than its share, one more after
    /// any other, an eighth less when ticks were missed.
    #[default]
    Freebsd,
    /// By the clock: a cycle ends before the chunk that would not fit into the share.
    Share,
}

impl Controller {
    /// All of them.
    pub const ALL: [Controller; 2] = [Controller::Freebsd, Controller::Share];

    /// The name by which it is chosen.
    pub const fn name(self) -> &'static str {
        match self {
            Controller::Freebsd => "freebsd",
            Controller::Share => "share",
        }
    }

    /// The controller of a name.
    pub fn from_name(name: &str) -> Option<Controller> {
        Controller::ALL
            .into_iter()
            .find(|controller| controller.name() == name)
    }
}

/// A cycle, as a controller sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cycle {
    /// When it began (`poll_start_t`), less what it is charged for.
    pub(crate) start: Time,
    /// What it is charged for of that.
    pub(crate) charge_ns: u64,
    /// From when on it may use its share: its own beginning, or the last tick when it makes up for one
    /// that was missed.
    pub(crate) share_start: Time,
    /// The share: the time of a tick that is not user programs', short of its end, because a cycle that
    /// lasts until the next tick finds that pending.
    pub(crate) share_ns: u64,
    /// Ticks a second.
    pub(crate) hz: u32,
}

impl Cycle {
    /// What is left of its share.
    pub(crate) fn room_ns(&self, now: Time) -> u64 {
        let deadline_ns = self.share_start.ns().saturating_add(self.share_ns);
        deadline_ns.saturating_sub(now.ns())
    }

    /// Whether more is left of its share than may be: a fiftieth of a tick, or a quarter of a small share.
    pub(crate) fn has_time(&self, now: Time) -> bool {
        let tick_ns = NS_PER_SECOND / u64::from(self.hz);
        let most_ns = (tick_ns / 50).min(self.share_ns / 4);
        self.room_ns(now) > most_ns
    }
}

/// The time of a tick that polling may use.
pub(crate) fn share_ns(hz: u32, user_frac: u32) -> u64 {
    let tick_ns = NS_PER_SECOND / u64::from(hz);
    tick_ns * u64::from(100 - user_frac) / 100 - 1
}

/// A controller with what it remembers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Memory {
    Freebsd,
    Share(Share),
}

impl Memory {
    pub(crate) fn of(controller: Controller) -> Self {
        match controller {
            Controller::Freebsd => Memory::Freebsd,
            Controller::Share => Memory::Share(Share::default()),
        }
    }

    pub(crate) fn controller(&self) -> Controller {
        match self {
            Memory::Freebsd => Controller::Freebsd,
            Memory::Share(_) => Controller::Share,
        }
    }

    /// A cycle begins: the packets that its chunks may ask each device for.
    pub(crate) fn begin(&mut self, now: Time, cycle: &Cycle, state: &State) -> u32 {
        match self {
            Memory::Freebsd => state.burst,
            Memory::Share(share) => share.begin(now, cycle, state),
        }
    }

    /// A chunk that began at `began` asked each device for `requested` packets; none moved more than `moved`.
    pub(crate) fn polled(&mut self, began: Time, requested: u32, moved: u32) {
        if let Memory::Share(share) = self {
            share.polled(began, requested, moved);
        }
    }

    /// A chunk has ended at `now`: the packets that later ones may ask for.
    pub(crate) fn after_chunk(&mut self, now: Time, cycle: &Cycle, state: &State) -> u32 {
        match self {
            Memory::Freebsd => state.residual_burst,
            Memory::Share(share) => share.after_chunk(now, cycle, state),
        }
    }

    /// The cycle has ended at `now`: the burst. The original's first correction, by the load of the cycle
    /// in per cent of a tick.
    pub(crate) fn after_cycle(&mut self, now: Time, cycle: &Cycle, state: &State) -> u32 {
        match self {
            Memory::Freebsd => freebsd_step(now, cycle, state),
            Memory::Share(share) => share.after_cycle(now, cycle, state),
        }
    }

    /// Whether a cycle that stalls while it is under way just goes on. The original schedules another one on top. The
    /// pollmore of the first ends both, and no tick is polled until the next stall, 100 ticks later.
    pub(crate) fn resumes_after_stall(&self) -> bool {
        matches!(self, Memory::Share(_))
    }

    /// Packets that a device may still be asked for in this tick, of what nobody else wants of the processor. The
    /// original leaves that to its idle thread.
    pub(crate) fn take_unclaimed(&mut self, state: &State) -> u32 {
        match self {
            Memory::Freebsd => 0,
            Memory::Share(share) => share.take_unclaimed(state),
        }
    }

    /// Ticks were missed: the burst. The original's second correction.
    pub(crate) fn after_missed_tick(&self, state: &State) -> u32 {
        match self {
            Memory::Freebsd => (state.burst - state.burst / 8).max(1),
            // The clock ends what makes up for it.
            Memory::Share(_) => state.burst,
        }
    }
}

fn freebsd_step(now: Time, cycle: &Cycle, state: &State) -> u32 {
    let elapsed_us = now.us_since(cycle.start);
    let load_percent = elapsed_us.saturating_mul(i64::from(cycle.hz)) / 10_000;
    if load_percent > 100 - i64::from(state.user_frac) {
        state.burst.saturating_sub(1).max(1)
    } else {
        state.burst_max.min(state.burst + 1)
    }
}

/// Costs are kept in 256ths of a nanosecond.
const ONE: u64 = 256;
/// A cycle's cost moves the filtered one by this part of the difference.
const FILTER_DIVISOR: i64 = 8;
/// A cost that differs by more than this factor is no noise: it is believed at once.
const STEP: u64 = 2;
/// The least part of a lone chunk's time that its packets are taken to cost.
const LONE_DIVISOR: u64 = 8;

/// A chunk, or several: the packets that a device moved, the one that moved most, and the time it took.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    packets: u32,
    ns: u64,
}

/// A cycle so far: its first chunk, which bears what each cycle costs whatever it brings, and all others
/// that moved anything. What a device is asked for in vain costs next to nothing, and shows nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    requested: u32,
    first: Option<Work>,
    /// Whether more than the first chunk was tried.
    has_others: bool,
    others: Work,
}

/// What the controller remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    /// When the chunk under way began.
    chunk_start: Time,
    /// Packets that it requested from each device, and the most that one of them moved.
    chunk_requested: u32,
    chunk_moved: u32,
    spent: Spent,
    /// What one more packet of every device costs, protocols included, in 256ths of a nanosecond; 0:
    /// no cycle has shown it yet.
    packet_cost: u64,
    /// What a cycle costs besides.
    cycle_ns: u64,
}

impl Share {
    /// A cycle begins. At least one packet is requested, even when the time is used up already.
    pub(crate) fn begin(&mut self, now: Time, cycle: &Cycle, state: &State) -> u32 {
        self.spent = Spent::default();
        let room_ns = cycle.room_ns(now).saturating_sub(self.cycle_ns);
        halved_at_the_end(self.fits(room_ns).clamp(1, state.burst), state.each_burst)
    }

    /// A chunk has asked all devices.
    pub(crate) fn polled(&mut self, began: Time, requested: u32, moved: u32) {
        self.chunk_start = began;
        (self.chunk_requested, self.chunk_moved) = (requested, moved);
    }

    /// A chunk has ended: the packets that later ones may request.
    pub(crate) fn after_chunk(&mut self, now: Time, cycle: &Cycle, state: &State) -> u32 {
        let chunk = Work {
            packets: self.chunk_moved,
            ns: now.ns().saturating_sub(self.chunk_start.ns()),
        };
        let spent = &mut self.spent;
        spent.requested += self.chunk_requested;
        if spent.first.is_none() {
            spent.first = Some(chunk);
        } else {
            spent.has_others = true;
            if chunk.packets > 0 {
                spent.others.packets += chunk.packets;
                spent.others.ns += chunk.ns;
            }
        }
        let requested = spent.requested;
        if self.packet_cost == 0 && chunk.packets > 0 {
            self.packet_cost = cost(chunk);
        }
        let fits = self
            .fits(cycle.room_ns(now))
            .min(state.burst_max.saturating_sub(requested));
        halved_at_the_end(fits, state.each_burst)
    }

    /// A chunk after the cycle: `burst_max` is the most of a tick, whoever leaves what.
    fn take_unclaimed(&mut self, state: &State) -> u32 {
        let left = state.burst_max.saturating_sub(self.spent.requested);
        let count = left.min(state.each_burst);
        self.spent.requested += count;
        count
    }

    /// The cycle is over: learns what its packets cost. Returns the burst that would fill the share.
    pub(crate) fn after_cycle(&mut self, now: Time, cycle: &Cycle, state: &State) -> u32 {
        let first = self.spent.first.unwrap_or_default();
        let expected_ns = self.cycle_ns + self.packets_ns(first.packets);
        let before = self.packet_cost;
        if first.packets > 0 || self.spent.others.packets > 0 {
            self.packet_cost = self.learnt(first, expected_ns, cycle.has_time(now)).max(1);
        }
        // Whatever a packet is taken to cost now, the first chunk took what it took.
        let chunk_ns = if is_step(before, self.packet_cost) {
            first.ns
        } else {
            followed(expected_ns, first.ns)
        };
        self.cycle_ns = chunk_ns.saturating_sub(self.packets_ns(first.packets));
        let besides_ns = cycle.charge_ns.saturating_add(self.cycle_ns);
        self.fits(cycle.share_ns.saturating_sub(besides_ns))
            .clamp(1, state.burst_max)
    }

    /// The cost of a packet after this cycle, which had time left or not.
    fn learnt(&self, first: Work, expected_ns: u64, has_time: bool) -> u64 {
        let (spent, before) = (self.spent, self.packet_cost);
        if spent.others.packets > 0 {
            return followed(before, cost(spent.others));
        }
        // A lone chunk does not show what of it was the packets'.
        if spent.has_others {
            before.min(cost(first))
        } else if has_time {
            // At most all; then less and less, until another chunk is tried.
            let most = cost(first);
            filtered(before.min(most), most / LONE_DIVISOR)
        } else {
            filtered(before, scaled(before, first.ns, expected_ns))
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

/// What one packet of some work cost, in 256ths of a nanosecond.
fn cost(work: Work) -> u64 {
    scaled(ONE, work.ns, work.packets.into()).max(1)
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
