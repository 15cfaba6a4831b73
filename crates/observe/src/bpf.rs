//! What the BPF programs of this crate share: why they cannot run, and what their runs take.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use aya::maps::{Map, MapError};
use aya::programs::{BtfTracePoint, ProgramError, ProgramInfo};
use aya::{Btf, BtfError, Ebpf, EbpfError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::kernel_types::KernelTypes;

/// The kernel's description of its types.
pub(crate) const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Why something cannot be counted in the kernel.
#[derive(Debug, Error)]
pub enum BpfError {
    /// The kernel gives no description of its types.
    #[error(
        "the kernel has no {KERNEL_TYPES}; {what} is counted by BPF, which needs a kernel built with \
         CONFIG_DEBUG_INFO_BTF"
    )]
    NoBtf {
        /// What was to be counted.
        what: &'static str,
        /// Why there are no types.
        source: io::Error,
    },
    /// The kernel refused the program.
    #[error(
        "the kernel refused the program that counts {what} ({why}); CAP_BPF and CAP_PERFMON are needed"
    )]
    Refused {
        /// What was to be counted.
        what: &'static str,
        /// The kernel's reason.
        why: String,
    },
}

impl BpfError {
    pub(crate) fn refused(what: &'static str, error: &dyn std::error::Error) -> Self {
        let mut why = String::new();
        for cause in std::iter::successors(Some(error), |error| error.source()) {
            let cause = without_log(&cause.to_string());
            // Some errors tell their cause themselves.
            if !why.contains(&cause) {
                let between = if why.is_empty() { "" } else { ": " };
                why.push_str(between);
                why.push_str(&cause);
            }
        }
        BpfError::Refused { what, why }
    }
}

/// What the verifier found wrong, without the steps that led there.
fn without_log(text: &str) -> String {
    let Some((before, log)) = text.split_once("Verifier output:") else {
        return String::from(text);
    };
    let end = log.find("\nverification time").unwrap_or(log.len());
    let verdict = log[..end].trim().lines().last().unwrap_or_default();
    format!("{before}{verdict}")
}

/// The kernel's description of its types, as it is read.
pub(crate) fn kernel_types(what: &'static str) -> Result<Vec<u8>, BpfError> {
    fs::read(KERNEL_TYPES).map_err(|source| BpfError::NoBtf { what, source })
}

/// The names of the kernel's tracepoints, for programs that attach to them.
pub(crate) fn tracepoints(what: &'static str) -> Result<Btf, BpfError> {
    names_of(&kernel_types(what)?, what)
}

/// The same out of a description that was read already.
pub(crate) fn names_of(types: &[u8], what: &'static str) -> Result<Btf, BpfError> {
    let types = KernelTypes::of_bytes(types).ok_or(BtfError::InvalidHeader);
    let names = types.and_then(|types| types.names());
    names.map_err(|error| BpfError::refused(what, &error))
}

/// Takes a map out of a loaded object.
pub(crate) fn take_map<M>(ebpf: &mut Ebpf, what: &'static str, name: &str) -> Result<M, BpfError>
where
    M: TryFrom<Map, Error = MapError>,
{
    let map = ebpf.take_map(name).ok_or_else(|| BpfError::Refused {
        what,
        why: format!("it has no map {name}"),
    })?;
    map.try_into()
        .map_err(|error: MapError| BpfError::refused(what, &error))
}

/// Mean run time of a program, by the kernel's BPF statistics.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunTime {
    /// Events that ran the program, of the whole machine.
    pub runs: u64,
    /// Nanoseconds a run, the kernel's own measuring included.
    pub ns_per_run: f64,
}

/// Runs that the kernel timed, and their time together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimedRuns {
    runs: u64,
    ns: u64,
}

impl TimedRuns {
    pub(crate) fn of(info: &ProgramInfo) -> Self {
        TimedRuns {
            runs: info.run_count(),
            ns: info.run_time().as_nanos() as u64,
        }
    }

    /// Runs of both.
    pub fn plus(self, other: TimedRuns) -> TimedRuns {
        TimedRuns {
            runs: self.runs + other.runs,
            ns: self.ns + other.ns,
        }
    }

    /// The mean of the runs since `earlier`; `None` when there were none.
    pub fn since(self, earlier: TimedRuns) -> Option<RunTime> {
        let (runs, ns) = (self.runs - earlier.runs, self.ns - earlier.ns);
        (runs > 0).then(|| RunTime {
            runs,
            ns_per_run: ns as f64 / runs as f64,
        })
    }
}

/// Programs in the kernel whose runs can be timed.
pub trait TimedPrograms {
    /// What their runs took that were timed so far ([`start_timing`]).
    fn timed_runs(&self) -> Result<TimedRuns, BpfError>;
}

/// The runs of all programs of an object, which are tracepoints'.
pub(crate) fn timed_runs(ebpf: &Ebpf, what: &'static str) -> Result<TimedRuns, BpfError> {
    let mut sum = TimedRuns::default();
    for (_, program) in ebpf.programs() {
        // One that was not loaded, for want of its tracepoint, has none.
        let program: Result<&BtfTracePoint, _> = program.try_into();
        let info = program.and_then(BtfTracePoint::info);
        match info {
            Ok(info) => sum = sum.plus(TimedRuns::of(&info)),
            Err(ProgramError::NotLoaded) => {}
            Err(error) => return Err(BpfError::refused(what, &error)),
        }
    }
    Ok(sum)
}

/// Loads a program for a tracepoint and attaches it.
pub(crate) fn attach(
    ebpf: &mut Ebpf,
    program: &str,
    tracepoint: &str,
    btf: &Btf,
) -> Result<(), EbpfError> {
    let program = ebpf.program_mut(program).ok_or(EbpfError::NoBTF)?;
    let program: &mut BtfTracePoint = program.try_into()?;
    program.load(tracepoint, btf)?;
    program.attach()?;
    Ok(())
}

/// Has the kernel time every run of every BPF program until the result is dropped. The timing itself
/// costs, so nothing else should be measured meanwhile.
pub fn start_timing() -> Result<OwnedFd, BpfError> {
    aya::sys::enable_stats(aya::sys::Stats::RunTime)
        .map_err(|error| BpfError::refused("run times", &error))
}

/// Whether a program could not be loaded because the kernel lacks the tracepoint it is for.
pub(crate) fn lacks_tracepoint(error: &EbpfError) -> bool {
    matches!(
        error,
        EbpfError::ProgramError(ProgramError::Btf(BtfError::UnknownBtfTypeName { .. }))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_line() {
        let log = "load returned EACCES. Verifier output: 0: R1=ctx()\n1: (79) r2\nR4 unbounded access\n\
                   verification time 8 usec\nstack depth 24\n";
        assert_eq!(
            without_log(log),
            "load returned EACCES. R4 unbounded access"
        );
        assert_eq!(
            without_log("load returned EPERM. Verifier output: "),
            "load returned EPERM. "
        );
        assert_eq!(without_log("EPERM"), "EPERM");
    }
}
