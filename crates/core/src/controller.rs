//! How the next cycle's burst follows from the last cycle: the original's controller, and one driven by the clock.
//!
//! [`ControllerState::Freebsd`] does at each step what `sys/kern/kern_poll.c` does there, and nothing where the original has
//! no such step.
//!
//! The original adds or removes one packet a cycle: from 5 to 150 takes 145 good cycles, and when packets suddenly
//! cost more it exceeds its share for as long. [`Share`] guesses no burst. After each chunk it checks how much of the
//! share is left, and ends the cycle before a chunk that would not fit. The filtered cost of a packet only sizes the
//! last chunks: once two chunks of `each_burst` no longer fit, each chunk takes half of what fits, so the estimate's
//! error shrinks with every call.
//!
//! The share limits polling only while others want the processor. Once its cycle is over and packets wait, [`Share`]
//! also takes time that nobody else wants; the caller observes whether there is any.
//!
//! It guarantees that a cycle outlasts its share by no more than one chunk; that over some ticks polling's time
//! differs from the share by at most the cost of one packet of every device, however noisy a call's cost; and that
//! noise moves the burst by no more than an eighth of what it moves the cost of a cycle.

use crate::device::{NS_PER_SECOND, Time};
use crate::knob::State;

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
    /// All controllers.
    pub const ALL: [Controller; 2] = [Controller::Freebsd, Controller::Share];

    /// The name in options and files.
    pub const fn name(self) -> &'static str {
        match self {
            Controller::Freebsd => "freebsd",
            Controller::Share => "share",
        }
    }

    /// Returns the controller named `name`.
    pub fn from_name(name: &str) -> Option<Controller> {
        Controller::ALL
            .into_iter()
            .find(|controller| controller.name() == name)
    }
}

/// A cycle, as a controller sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cycle {
    /// Its start (`poll_start_t`), moved back by `charge_ns`.
    pub(crate) start: Time,
    /// Time before the cycle that counts as its own (`Poller::charge`).
    pub(crate) charge_ns: u64,
    /// When its share begins: at `start`, or at the last tick if the cycle makes up for a missed one.
    pub(crate) share_start: Time,
    /// The share: the part of a tick not reserved for user programs, less 1 ns, because a cycle that lasts until the
    /// next tick finds that tick pending.
    pub(crate) share_ns: u64,
    /// Ticks a second.
    pub(crate) hz: u32,
}

impl Cycle {
    /// Returns the time left of the share.
    pub(crate) fn room_ns(&self, now: Time) -> u64 {
        let deadline_ns = self.share_start.ns().saturating_add(self.share_ns);
        deadline_ns.saturating_sub(now.ns())
    }

    /// Whether a good part of the share is unused: more than a fiftieth of a tick, or a quarter of a small share.
    pub(crate) fn has_time(&self, now: Time) -> bool {
        let tick_ns = NS_PER_SECOND / u64::from(self.hz);
        let most_ns = (tick_ns / 50).min(self.share_ns / 4);
        self.room_ns(now) > most_ns
    }
}

/// Returns the time of a tick that polling may use.
pub(crate) fn share_ns(hz: u32, user_frac: u32) -> u64 {
    let tick_ns = NS_PER_SECOND / u64::from(hz);
    tick_ns * u64::from(100 - user_frac) / 100 - 1
}

/// A controller and its state.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ControllerState {
    Freebsd,
    Share(Share),
}

impl ControllerState {
    pub(crate) fn of(controller: Controller) -> Self {
        match controller {
            Controller::Freebsd => ControllerState::Freebsd,
            Controller::Share => ControllerState::Share(Share::default()),
        }
    }

    pub(crate) fn controller(&self) -> Controller {
        match self {
            ControllerState::Freebsd => Controller::Freebsd,
            ControllerState::Share(_) => Controller::Share,
        }
    }

    /// Begins a cycle; returns how many packets its chunks may request from each device.
    pub(crate) fn begin(&mut self, now: Time, cycle: &Cycle, state: &State) -> u32 {
        match self {
            ControllerState::Freebsd => state.burst,
            ControllerState::Share(share) => share.begin(now, cycle, state),
        }
    }

    /// Records a chunk that began at `began` and requested `requested` packets from each device; none moved more than
    /// `moved`.
    pub(crate) fn polled(&mut self, began: Time, requested: u32, moved: u32) {
        if let ControllerState::Share(share) = self {
            share.polled(began, requested, moved);
        }
    }

    /// Ends a chunk at `now`; returns how many packets later chunks may request.
    pub(crate) fn after_chunk(&mut self, now: Time, cycle: &Cycle, state: &State) -> u32 {
        match self {
            ControllerState::Freebsd => state.residual_burst,
            ControllerState::Share(share) => share.after_chunk(now, cycle, state),
        }
    }

    /// Ends the cycle at `now`; returns the new burst. The original's first correction, by the cycle's load in per
    /// cent of a tick.
    pub(crate) fn after_cycle(&mut self, now: Time, cycle: &Cycle, state: &State) -> u32 {
        match self {
            ControllerState::Freebsd => freebsd_step(now, cycle, state),
            ControllerState::Share(share) => share.after_cycle(now, cycle, state),
        }
    }

    /// Whether a cycle under way simply continues after a stall. The original schedules a second one; the first one's
    /// pollmore ends both, and no tick is polled until the next stall, 100 ticks later.
    pub(crate) fn resumes_after_stall(&self) -> bool {
        matches!(self, ControllerState::Share(_))
    }

    /// Returns how many more packets to request from each device in this tick, in time that nobody else wants. The
    /// original leaves such time to its idle thread.
    pub(crate) fn take_unclaimed(&mut self, state: &State) -> u32 {
        match self {
            ControllerState::Freebsd => 0,
            ControllerState::Share(share) => share.take_unclaimed(state),
        }
    }

    /// Returns the burst after missed ticks. The original's second correction.
    pub(crate) fn after_missed_tick(&self, state: &State) -> u32 {
        match self {
            ControllerState::Freebsd => (state.burst - state.burst / 8).max(1),
            // The clock ends the cycle that makes up for the tick.
            ControllerState::Share(_) => state.burst,
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

/// Costs are in 256ths of a nanosecond.
const ONE: u64 = 256;
/// Each cycle moves the filtered cost by the difference divided by this.
const FILTER_DIVISOR: i64 = 8;
/// A cost that differs by more than this factor is a step, not noise: it replaces the filtered one at once.
const STEP: u64 = 2;
/// A cycle with a single chunk and time left moves the packet cost towards the chunk's time per packet divided by
/// this.
const LONE_DIVISOR: u64 = 8;

/// One or several chunks: the packets of the device that moved most, and the time taken.
#[derive(Clone, Copy, Debug, Default)]
struct ChunkWork {
    packets: u32,
    ns: u64,
}

/// A cycle so far: its first chunk, which bears the fixed cost of a cycle, and all others that moved packets. A chunk
/// that moves nothing costs next to nothing, and tells nothing of a packet's cost.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    requested: u32,
    first: Option<ChunkWork>,
    /// Whether a second chunk ran.
    has_others: bool,
    others: ChunkWork,
}

/// The state of [`Controller::Share`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    /// When the chunk under way began.
    chunk_start: Time,
    /// Packets it requested from each device, and the most that any of them moved.
    chunk_requested: u32,
    chunk_moved: u32,
    spent: Spent,
    /// Cost of one more packet of every device, protocols included, in 256ths of a nanosecond; 0 until a cycle has
    /// shown it.
    packet_cost: u64,
    /// Fixed cost of a cycle.
    cycle_ns: u64,
}

impl Share {
    /// Begins a cycle, which requests at least one packet even when no time is left.
    pub(crate) fn begin(&mut self, now: Time, cycle: &Cycle, state: &State) -> u32 {
        self.spent = Spent::default();
        let room_ns = cycle.room_ns(now).saturating_sub(self.cycle_ns);
        halved_at_the_end(self.fits(room_ns).clamp(1, state.burst), state.each_burst)
    }

    /// Records a chunk that has polled all devices.
    pub(crate) fn polled(&mut self, began: Time, requested: u32, moved: u32) {
        self.chunk_start = began;
        (self.chunk_requested, self.chunk_moved) = (requested, moved);
    }

    /// Ends a chunk; returns how many packets later chunks may request.
    pub(crate) fn after_chunk(&mut self, now: Time, cycle: &Cycle, state: &State) -> u32 {
        let chunk = ChunkWork {
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

    /// Returns the size of a chunk after the cycle. `burst_max` limits the tick as a whole.
    fn take_unclaimed(&mut self, state: &State) -> u32 {
        let left = state.burst_max.saturating_sub(self.spent.requested);
        let count = left.min(state.each_burst);
        self.spent.requested += count;
        count
    }

    /// Ends the cycle and learns what its packets cost. Returns the burst that would fill the share.
    pub(crate) fn after_cycle(&mut self, now: Time, cycle: &Cycle, state: &State) -> u32 {
        let first = self.spent.first.unwrap_or_default();
        let expected_ns = self.cycle_ns + self.packets_ns(first.packets);
        let before = self.packet_cost;
        if first.packets > 0 || self.spent.others.packets > 0 {
            self.packet_cost = self.learnt(first, expected_ns, cycle.has_time(now)).max(1);
        }
        // After a step of the packet cost `expected_ns` is outdated: the measured time counts.
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

    /// Returns the packet cost after this cycle, which had time left or not.
    fn learnt(&self, first: ChunkWork, expected_ns: u64, has_time: bool) -> u64 {
        let (spent, before) = (self.spent, self.packet_cost);
        if spent.others.packets > 0 {
            return followed(before, cost(spent.others));
        }
        // A single chunk does not show how much of its time was the packets'.
        if spent.has_others {
            before.min(cost(first))
        } else if has_time {
            // At most all of it; less with each cycle, until a second chunk fits.
            let most = cost(first);
            filtered(before.min(most), most / LONE_DIVISOR)
        } else {
            filtered(before, scaled(before, first.ns, expected_ns))
        }
    }

    /// Returns the time that `packets` packets of every device take.
    fn packets_ns(&self, packets: u32) -> u64 {
        self.packet_cost.saturating_mul(packets.into()) / ONE
    }

    /// Returns how many packets of every device fit into `room_ns`, exceeded by an eighth of a packet at most: the
    /// cost is an estimate.
    fn fits(&self, room_ns: u64) -> u32 {
        let packet_cost = self.packet_cost.max(1);
        let room = room_ns.saturating_mul(ONE).saturating_add(packet_cost / 8);
        let packets = room / packet_cost;
        u32::try_from(packets).unwrap_or(u32::MAX)
    }
}

/// Returns what to request when `fits` packets fit: all while half of them exceeds a chunk, then half.
fn halved_at_the_end(fits: u32, each_burst: u32) -> u32 {
    let half = fits.div_ceil(2);
    if half > each_burst { fits } else { half }
}

/// Returns the cost of one packet, in 256ths of a nanosecond.
fn cost(work: ChunkWork) -> u64 {
    scaled(ONE, work.ns, work.packets.into()).max(1)
}

/// Returns `value` * `numerator` / `denominator`.
fn scaled(value: u64, numerator: u64, denominator: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(numerator) / u128::from(denominator.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Like [`filtered`], but takes over a step at once.
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
