//! What a runner counts of its own work.

/// What the runner counted since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tallies {
    /// Ticks that the core was told of, or that passed without one.
    pub ticks: u64,
    /// Times that a port was asked for packets.
    pub polls: u64,
    /// Of those, how many found none.
    pub empty_polls: u64,
    /// Packets that polls moved.
    pub packets: u64,
    /// Times that arrivals woke the thread.
    pub wake_ups: u64,
    /// Times that a storm was throttled.
    pub throttled: u64,
    /// Changes between interrupts and polling.
    pub changes: u64,
    /// CPU time of the thread in ns, as of the last request.
    pub cpu_ns: u64,
    /// CPU time in ns that the kernel took for the network on the engine's CPU between cycles, and that was charged to
    /// them; `None` when nobody counts it.
    pub kernel_ns: Option<u64>,
}

impl Tallies {
    /// A port was asked, and moved so many packets.
    pub(crate) fn polled(&mut self, work: u32) {
        self.polls += 1;
        self.empty_polls += u64::from(work == 0);
        self.packets += u64::from(work);
    }
}
