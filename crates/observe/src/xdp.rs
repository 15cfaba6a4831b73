//! An XDP program on an interface, for as long as a value lives.
//!
//! What must hold: the kernel takes the program off when this process ends, however it ends (a `bpf_link`). Nobody
//! else's program is replaced.

use std::os::fd::AsFd;
use std::path::Path;

use aya::Ebpf;
use aya::programs::{ProgramError, Xdp};
use nicpoll_sys::xdp::{AttachMode, XdpLink};
use serde::{Deserialize, Serialize};

use crate::bpf::BpfError;

/// What errors say the program is for.
const WHAT: &str = "nothing, and is to run as XDP";

/// Where an XDP program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum XdpMode {
    /// In the driver, before a packet has a socket buffer.
    #[default]
    Native,
    /// In the kernel's stack, whatever the driver.
    Generic,
}

/// A program on an interface.
pub struct AttachedXdp {
    // Declared first: the program is taken off before it goes.
    _link: XdpLink,
    _ebpf: Ebpf,
}

impl AttachedXdp {
    /// Attaches a program that lets every frame pass to an interface of the caller's namespace.
    ///
    /// # Errors
    /// When the driver has no native XDP, or there is a program already.
    pub fn pass(ifindex: u32, mode: XdpMode) -> Result<Self, BpfError> {
        let loaded = Ebpf::load(aya::include_bytes_aligned!("../bpf/xdp_pass.bpf.o"));
        AttachedXdp::attach(
            loaded.map_err(|error| BpfError::refused(WHAT, &error))?,
            "pass",
            ifindex,
            mode,
        )
    }

    /// Attaches the program `name` of an object file.
    ///
    /// # Errors
    /// As [`AttachedXdp::pass`]; when the file cannot be loaded or has no such program.
    pub fn of_file(file: &Path, name: &str, ifindex: u32, mode: XdpMode) -> Result<Self, BpfError> {
        let loaded = Ebpf::load_file(file);
        let loaded = loaded.map_err(|error| BpfError::refused(WHAT, &error))?;
        AttachedXdp::attach(loaded, name, ifindex, mode)
    }

    fn attach(mut ebpf: Ebpf, name: &str, ifindex: u32, mode: XdpMode) -> Result<Self, BpfError> {
        let refused = |error: ProgramError| BpfError::refused(WHAT, &error);
        let program = ebpf.program_mut(name).ok_or_else(|| BpfError::Refused {
            what: WHAT,
            why: format!("the file has no program {name}"),
        })?;
        let program: &mut Xdp = program.try_into().map_err(refused)?;
        program.load().map_err(refused)?;
        let mode = match mode {
            XdpMode::Native => AttachMode::Driver,
            XdpMode::Generic => AttachMode::Generic,
        };
        // Not by aya, which falls back to a way that replaces a program and leaves its own behind.
        let program = program.fd().map_err(refused)?;
        let link = XdpLink::attach(program.as_fd(), ifindex, mode);
        let link = link.map_err(|error| BpfError::refused(WHAT, &error))?;
        Ok(AttachedXdp {
            _link: link,
            _ebpf: ebpf,
        })
    }
}
