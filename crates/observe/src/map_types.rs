//! The maps of `bpf/napi_poll.bpf.c` as plain data. The layouts are those of the C structures.
#![allow(unsafe_code)]

/// Which polls are counted.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Target {
    /// Inode number of the network namespace.
    pub netns: u32,
    /// Id of the NAPI instance; 0: every instance of the namespace.
    pub napi_id: u32,
}

/// What one core counted.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Counts {
    pub polls: u64,
    pub rounds: u64,
    pub empty_polls: u64,
    pub frames: u64,
}

// SAFETY: two integers without padding; every bit pattern is valid.
unsafe impl aya::Pod for Target {}
// SAFETY: four integers without padding; every bit pattern is valid.
unsafe impl aya::Pod for Counts {}
