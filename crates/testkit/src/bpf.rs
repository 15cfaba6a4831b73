//! A kernel that refuses BPF.

use std::collections::BTreeMap;
use std::process::{Command, Output};
use std::thread;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

/// Runs a program to which the kernel refuses BPF, as to everybody where it is locked down.
///
/// # Panics
/// If it does not start.
pub fn without_bpf(mut command: Command) -> Output {
    // A thread's filter is for good, and its children have it, too.
    let run = move || {
        let calls = BTreeMap::from([(libc::SYS_bpf, Vec::new())]);
        let refused = SeccompAction::Errno(libc::EPERM.cast_unsigned());
        let arch = std::env::consts::ARCH.try_into().unwrap();
        let filter = SeccompFilter::new(calls, SeccompAction::Allow, refused, arch).unwrap();
        apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();
        command.output().unwrap()
    };
    thread::spawn(run).join().unwrap()
}
