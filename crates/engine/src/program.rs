//! An XDP program at an interface: how it is loaded, attached and counted, for all that takes frames.
//!
//! What must hold: the program leaves the interface with the [`Program`], or with the process. Nobody else's program is
//! replaced.

use std::io;
use std::os::fd::AsFd;

use aya::maps::{Map, MapData, MapError, PerCpuArray};
use aya::programs::{ProgramError, TestRun, TestRunAttrs, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfLoader};
use nicpoll_sys::xdp::{AttachMode, XdpLink};
use rustix::io::Errno;

use crate::error::EngineError;

/// A loaded program with its maps, for one interface.
pub(crate) struct Program {
    interface: String,
    name: &'static str,
    ebpf: Ebpf,
    attached: Option<(XdpLink, AttachMode)>,
}

impl Program {
    /// Loads the program of a name out of an object, with the values of its constants.
    ///
    /// # Errors
    /// Without the privileges for BPF.
    pub(crate) fn load(
        interface: &str,
        object: &[u8],
        name: &'static str,
        constants: &[(&str, u64)],
    ) -> Result<Self, EngineError> {
        let refused = |error: &(dyn std::error::Error + 'static)| refusal(interface, error);
        let mut loader = EbpfLoader::new();
        for (name, value) in constants {
            loader.override_global(name, value, true);
        }
        let mut ebpf = loader.load(object).map_err(|error| refused(&error))?;
        let program = find(&mut ebpf, name).map_err(|error| refused(&error))?;
        program.load().map_err(|error| refused(&error))?;
        Ok(Program {
            interface: interface.to_owned(),
            name,
            ebpf,
            attached: None,
        })
    }

    /// Takes one of its maps.
    pub(crate) fn map<M>(&mut self, name: &str) -> Result<M, EngineError>
    where
        M: TryFrom<Map, Error = MapError>,
    {
        let map = self.ebpf.take_map(name);
        let map = map.ok_or_else(|| EngineError::Program {
            interface: self.interface.clone(),
            why: format!("it has no map {name}"),
        })?;
        map.try_into()
            .map_err(|error: MapError| self.refused(&error))
    }

    /// Attaches the program to the interface: in its driver where that runs programs, else in the kernel's own code.
    ///
    /// # Errors
    /// When the interface has an XDP program.
    pub(crate) fn attach(&mut self, ifindex: u32) -> Result<AttachMode, EngineError> {
        let refused = |error: &(dyn std::error::Error + 'static)| refusal(&self.interface, error);
        let program = find(&mut self.ebpf, self.name).map_err(|error| refused(&error))?;
        let program = program.fd().map_err(|error| refused(&error))?;
        let program = program.as_fd();
        let mut attached = Err(io::Error::from(Errno::OPNOTSUPP));
        for mode in [AttachMode::Driver, AttachMode::Generic] {
            attached = XdpLink::attach(program, ifindex, mode).map(|link| (link, mode));
            // Another mode is tried where the driver will not have it, not where the interface is taken.
            if attached.is_ok() || attached.as_ref().is_err_and(is_taken) {
                break;
            }
        }
        match attached {
            Ok((link, mode)) => {
                self.attached = Some((link, mode));
                Ok(mode)
            }
            Err(error) if is_taken(&error) => Err(EngineError::ForeignProgram {
                interface: self.interface.clone(),
            }),
            Err(error) => Err(refused(&error)),
        }
    }

    /// Runs the program `runs` times on frames that are sent where it says, `batch` at a time, and attaches it nowhere.
    /// The kernel makes memory for them that holds `frame`; what comes back from receivers is used again as it is.
    ///
    /// # Errors
    /// What the kernel says; `EINTR` when a signal came, after part of the runs.
    pub(crate) fn run_live(&self, frame: &[u8], runs: u32, batch: u32) -> io::Result<()> {
        let program = self.ebpf.program(self.name);
        let program: &Xdp = program
            .and_then(|program| program.try_into().ok())
            .ok_or(io::ErrorKind::NotFound)?;
        let options = TestRunOptions {
            data_in: Some(frame),
            repeat: runs,
            attrs: TestRunAttrs::new().xdp_live_frames(batch),
            ..TestRunOptions::new()
        };
        match program.test_run(options) {
            Ok(_) => Ok(()),
            Err(ProgramError::SyscallError(error)) => Err(error.io_error),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// Whether the kernel knows of such frames. None is sent: it is asked for more at a time than any kernel allows.
    pub(crate) fn knows_live_frames(&self, frame: &[u8]) -> bool {
        !is_unknown(&self.run_live(frame, 1, u32::MAX))
    }

    /// Takes the program off the interface; its maps stay.
    pub(crate) fn detach(&mut self) {
        self.attached = None;
    }

    /// Where the program runs; `None` before it is attached.
    pub(crate) fn mode(&self) -> Option<AttachMode> {
        self.attached.as_ref().map(|(_, mode)| *mode)
    }

    /// The first `N` counters of a map, each summed over all CPUs.
    pub(crate) fn sums<const N: usize>(
        &self,
        counters: &PerCpuArray<MapData, u64>,
    ) -> Result<[u64; N], EngineError> {
        let mut sums = [0; N];
        for (key, sum) in sums.iter_mut().enumerate() {
            let by_cpu = counters.get(&(key as u32), 0);
            *sum = by_cpu.map_err(|error| self.refused(&error))?.iter().sum();
        }
        Ok(sums)
    }

    /// The error of a refusal.
    pub(crate) fn refused(&self, error: &(dyn std::error::Error + 'static)) -> EngineError {
        refusal(&self.interface, error)
    }
}

fn find<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Xdp, aya::EbpfError> {
    let program = ebpf.program_mut(name).ok_or(aya::EbpfError::NoBTF)?;
    Ok(program.try_into()?)
}

/// Linux before 5.18 calls a request with a number of frames at a time invalid; later ones say that it is too large.
fn is_unknown(outcome: &io::Result<()>) -> bool {
    let error = outcome.as_ref().err();
    error.and_then(Errno::from_io_error) == Some(Errno::INVAL)
}

fn is_taken(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::BUSY | Errno::EXIST)
    )
}

/// The error of a refusal, from the innermost cause.
pub(crate) fn refusal(interface: &str, error: &(dyn std::error::Error + 'static)) -> EngineError {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let errno = cause
        .downcast_ref::<io::Error>()
        .and_then(Errno::from_io_error);
    match errno {
        Some(errno @ (Errno::PERM | Errno::ACCESS)) => EngineError::Privileges {
            doing: "an XDP program for frames",
            capabilities: "CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF",
            source: errno.into(),
        },
        _ => EngineError::Program {
            interface: interface.to_owned(),
            why: cause.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_live_frames_calls_the_request_invalid() {
        let answer = |errno: Errno| Err(io::Error::from(errno));
        assert!(is_unknown(&answer(Errno::INVAL)));
        assert!(!is_unknown(&answer(Errno::TOOBIG)));
    }
}
