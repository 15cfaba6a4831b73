//! Maps of the programs in `bpf/` as plain data.
//!
//! Layouts are those of the C structures and have no padding, because the loader copies their bytes.
#![allow(missing_docs, reason = "the C structures say what the fields are")]

/// Where the kernel describes its types.
pub const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Polls to count.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct PollTarget {
    /// Inode number of the network namespace.
    pub netns: u32,
    /// Id of the NAPI instance; 0: every instance of the namespace.
    pub napi_id: u32,
}

/// A NAPI instance as `napi_list.bpf.c` lists it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ListedNapi {
    /// 0: it has no number of its own.
    pub id: u32,
    /// Of the kernel thread that polls; 0: none.
    pub thread_pid: u32,
}

/// Counts of one core.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CorePollCounts {
    pub polls: u64,
    pub rounds: u64,
    pub empty_polls: u64,
    pub frames: u64,
}

/// CPU states as numbered in `cpu_time.bpf.c`.
pub mod state {
    pub const IDLE: usize = 0;
    pub const USER: usize = 1;
    pub const NICE: usize = 2;
    pub const SYSTEM: usize = 3;
    pub const IRQ: usize = 4;
    /// Soft interrupts: this plus the vector.
    pub const SOFTIRQ: usize = 5;
    pub const SOFTIRQ_VECTORS: usize = 10;
    pub const ALL: usize = SOFTIRQ + SOFTIRQ_VECTORS;
    /// Task states, which come first.
    pub const TASKS: usize = SYSTEM + 1;
}

/// Time of one core by state. A consistent copy has `ns` adding up to `last_ns - start_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CoreTimes {
    pub last_ns: u64,
    pub task: u32,
    pub user: u32,
    pub softirq: u32,
    pub irq_depth: u32,
    pub ns: [u64; state::ALL],
    pub start_ns: u64,
    pub switches: u64,
    pub irq_entered_ns: u64,
    pub slice_ns: [u64; state::TASKS],
    pub irq_source: u32,
    /// PID of the running thread; 0 unless threads are counted.
    pub pid: u32,
    pub tgid: u32,
    pub reserved: u32,
    /// Address of the running thread, used to notice a missed switch.
    pub running: u64,
}

/// Hard interrupts of one source on one core.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct SourceInterrupts {
    pub ns: u64,
    pub entries: u64,
    pub run: u64,
    pub longest_run: u64,
    pub storm_entries: u64,
    pub task_ns: u64,
}

/// Time that one thread used in its finished slices.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Thread {
    pub started_ns: u64,
    pub ns: [u64; state::TASKS],
    pub slices: u64,
    pub tgid: u32,
    pub starter_tgid: u32,
    pub comm: [u8; 16],
}

/// Bins of the folded period.
pub const FOLD_BINS: usize = 20;
/// Folded rows: user, system, irq, softirq.
pub const FOLD_ROWS: usize = 4;

/// Time of one core by phase of a period.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Fold {
    pub ns: [[u64; FOLD_BINS]; FOLD_ROWS],
}

// SAFETY: integers without padding: one of 8 bytes, 4 of 4, 22 of 8, 4 of 4; every bit pattern is valid.
unsafe impl aya::Pod for CoreTimes {}
// SAFETY: six integers without padding; every bit pattern is valid.
unsafe impl aya::Pod for SourceInterrupts {}
// SAFETY: six integers of 8 bytes, two of 4 and 16 bytes, without padding; every bit pattern is valid.
unsafe impl aya::Pod for Thread {}
// SAFETY: integers of one size without padding; every bit pattern is valid.
unsafe impl aya::Pod for Fold {}
/// Lower end of the first octave of gaps: 2 to this power, in ns.
pub const GAP_FIRST_OCTAVE: u32 = 8;
/// Buckets per octave.
pub const GAP_PARTS: usize = 16;
/// Buckets of all octaves together.
pub const GAP_BUCKETS: usize = 26 * GAP_PARTS;
/// Buckets of work per poll: 0 to 64 frames, and more.
pub const WORK_BUCKETS: usize = 66;
/// CPUs told apart: polls on higher ones are counted without their CPU.
pub const CPUS_MAX: usize = 256;

/// Poll rhythm of one NAPI instance.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct NapiRhythm {
    pub period_ns: u64,
    pub polls: u64,
    pub frames: u64,
    pub full_polls: u64,
    pub foreign_polls: u64,
    pub rounds: u64,
    pub timer_rounds: u64,
    pub empty_rounds: u64,
    pub short_gaps: u64,
    pub long_gaps: u64,
    pub missed_periods: u64,
    pub stalls: u64,
    pub timer_gaps: u64,
    pub began_ns: u64,
    pub round_frames: u64,
    pub budget: u32,
    pub in_round: u32,
    pub timer_fired: u32,
    pub by_timer: u32,
    pub timer_known: u32,
    pub reserved: u32,
    pub gaps: [u64; GAP_BUCKETS],
    pub work: [u64; WORK_BUCKETS],
    pub polls_by_cpu: [u64; CPUS_MAX],
}

impl NapiRhythm {
    /// Returns an empty rhythm to compare with `period_ns`.
    pub const fn of_period(period_ns: u64) -> Self {
        // SAFETY: integers only, for which zeros are valid.
        let nothing: NapiRhythm = unsafe { std::mem::zeroed() };
        NapiRhythm {
            period_ns,
            ..nothing
        }
    }
}

// SAFETY: integers without padding: 15 of 8 bytes, 6 of 4, then arrays of 8; every bit pattern is valid.
unsafe impl aya::Pod for NapiRhythm {}

/// Delays of one kind measured on one core, of `packet_delay.bpf.c` and `run_queue.bpf.c`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CoreDelays {
    pub buckets: [u64; GAP_BUCKETS],
}

// SAFETY: integers of one size without padding; every bit pattern is valid.
unsafe impl aya::Pod for CoreDelays {}

/// A card's clock and the kernel's at one moment, and their rates, of `card_clock.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ClockLine {
    pub card_ns: i64,
    pub kernel_ns: i64,
    /// How much the kernel's clock gains on the card's, in units of 2 to the power -[`CLOCK_RATE_SHIFT`].
    pub rate: i64,
}

/// `RATE_SHIFT` of `card_clock.h`.
pub const CLOCK_RATE_SHIFT: u32 = 32;

// SAFETY: integers of one size without padding; every bit pattern is valid.
unsafe impl aya::Pod for ClockLine {}
// SAFETY: two integers without padding; every bit pattern is valid.
unsafe impl aya::Pod for PollTarget {}
// SAFETY: two integers without padding; every bit pattern is valid.
unsafe impl aya::Pod for ListedNapi {}
// SAFETY: four integers without padding; every bit pattern is valid.
unsafe impl aya::Pod for CorePollCounts {}

/// Key by which `drop_reasons.bpf.c` tells dropped packets apart.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Drop {
    pub location: u64,
    pub netns: u32,
    pub ifindex: u32,
    pub reason: u32,
    /// In network byte order.
    pub ethertype: u16,
    pub ip_protocol: u8,
    pub reserved: u8,
}

/// Dropped packets with the same [`Drop`] key, on one core.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Dropped {
    pub packets: u64,
    pub bytes: u64,
}

/// Dropped packets that one core could not count by [`Drop`].
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Uncounted {
    pub overflow_packets: u64,
    pub unattributed_packets: u64,
}

// SAFETY: integers of 8, 4, 4, 4, 2, 1 and 1 bytes, without padding; every bit pattern is valid.
unsafe impl aya::Pod for Drop {}
// SAFETY: two integers without padding; every bit pattern is valid.
unsafe impl aya::Pod for Dropped {}
// SAFETY: two integers without padding; every bit pattern is valid.
unsafe impl aya::Pod for Uncounted {}

/// A frame that `xdp_blast.bpf.c` sends repeatedly.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Template {
    pub head: [u8; 64],
    pub sum: u32,
    pub bytes: u32,
}

/// Progress of `xdp_blast.bpf.c`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Blasted {
    pub frames: u64,
    pub bytes: u64,
    pub sequence: u64,
    pub flow: u32,
    pub template_index: u32,
    pub template_of_first_flow: u32,
    pub reserved: u32,
}

// SAFETY: 64 bytes and two integers of 4, without padding; every bit pattern is valid.
unsafe impl aya::Pod for Template {}
// SAFETY: three integers of 8 bytes and four of 4, without padding; every bit pattern is valid.
unsafe impl aya::Pod for Blasted {}

/// A redirection of `xdp_exits.bpf.c`, by interface index; `to` is 0 for frames that reached no exit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ExitWay {
    pub from: u32,
    pub to: u32,
}

/// Frames that one core counted for a [`ExitWay`].
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Passage {
    pub sent_frames: u64,
    pub lost_frames: u64,
}

/// Next hop of forwarded frames, by the exit's interface index; `address` has an IPv4 address in its first word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct NextHop {
    pub ifindex: u32,
    pub family: u32,
    pub address: [u32; 4],
}

// SAFETY: two integers without padding; every bit pattern is valid.
unsafe impl aya::Pod for ExitWay {}
// SAFETY: two integers without padding; every bit pattern is valid.
unsafe impl aya::Pod for Passage {}
// SAFETY: integers of one size without padding; every bit pattern is valid.
unsafe impl aya::Pod for NextHop {}
