//! An XDP program that a setting has on a host's interfaces, as data.
//!
//! What must hold: where it runs is said, never left to the kernel: native and generic cost differently.

use std::path::PathBuf;

use nicpoll_observe::{AttachedXdp, BpfError, XdpMode};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An XDP program: one of the user's, or one that lets every frame pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XdpProgram {
    /// Where it runs.
    #[serde(default)]
    pub mode: XdpMode,
    /// The object file that has it; null for the one that lets every frame pass.
    #[serde(default)]
    pub object: Option<PathBuf>,
    /// Its name there.
    #[serde(default)]
    pub program: Option<String>,
}

/// A program without its file, or a file without its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "object and program belong together, such as {{ mode = \"native\", object = \"filter.bpf.o\", program = \"filter\" \
     }}; without both, a program that lets every frame pass is attached"
)]
pub struct HalfAProgram;

impl XdpProgram {
    /// Whether it says which program it is.
    ///
    /// # Errors
    /// When the file is given without the program's name, or the name without the file.
    pub fn check(&self) -> Result<(), HalfAProgram> {
        match self.object.is_some() == self.program.is_some() {
            true => Ok(()),
            false => Err(HalfAProgram),
        }
    }

    /// Puts it on an interface of the caller's namespace.
    pub(crate) fn attach(&self, ifindex: u32) -> Result<AttachedXdp, BpfError> {
        match (&self.object, &self.program) {
            (Some(object), Some(name)) => AttachedXdp::of_file(object, name, ifindex, self.mode),
            _ => AttachedXdp::pass(ifindex, self.mode),
        }
    }

    /// What it is, for the record.
    pub(crate) fn words(&self) -> String {
        let mode = match self.mode {
            XdpMode::Native => "native",
            XdpMode::Generic => "generic",
        };
        match (&self.object, &self.program) {
            (Some(object), Some(name)) => format!("{name} of {}, {mode}", object.display()),
            _ => format!("passes every frame, {mode}"),
        }
    }
}
