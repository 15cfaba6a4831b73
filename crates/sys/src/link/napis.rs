//! NAPI instances by BPF, for kernels that have them and do not list them (before Linux 6.8).
//!
//! The program runs by a call of its own, in the thread that asks, and follows the kernel's own lists.

use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::{fs, io};

use aya::maps::{Array, MapData};
use aya::programs::RawTracePoint;
use aya::{Ebpf, RawTracePointRunOptions, TestRun};

use crate::bpf_maps::{KERNEL_TYPES, ListedNapi};

/// What the program returns for an interface that is not there.
const ABSENT: u32 = u32::MAX;

/// The loaded program: loading takes longer than listing.
static LIST: Mutex<Option<NapiList>> = Mutex::new(None);

struct NapiList {
    ebpf: Ebpf,
    instances: Array<MapData, ListedNapi>,
}

/// Lists the NAPI instances of an interface of the calling thread's namespace: none while it is down or gone. Those
/// that only send have no number and are not listed.
///
/// # Errors
/// `Unsupported`, with the reason, without kernel types, CAP_BPF and CAP_PERFMON, or before Linux 5.10.
pub fn napis_of(ifindex: u32) -> io::Result<Vec<ListedNapi>> {
    let mut list = LIST.lock().unwrap_or_else(PoisonError::into_inner);
    let listed = match &mut *list {
        Some(list) => list.of(ifindex),
        none => NapiList::load().and_then(|loaded| none.insert(loaded).of(ifindex)),
    };
    listed.map_err(|error| {
        // The kernel's answer, without the verifier's steps.
        let mut cause: &dyn Error = &*error;
        while let Some(next) = cause.source() {
            cause = next;
        }
        io::Error::new(io::ErrorKind::Unsupported, cause.to_string())
    })
}

impl NapiList {
    fn load() -> Result<Self, Box<dyn Error>> {
        fs::metadata(KERNEL_TYPES).map_err(|error| format!("{KERNEL_TYPES}: {error}"))?;
        let mut ebpf = Ebpf::load(aya::include_bytes_aligned!("../../bpf/napi_list.bpf.o"))?;
        program(&mut ebpf)?.load()?;
        let instances = ebpf.take_map("INSTANCES").ok_or("no map INSTANCES")?;
        Ok(NapiList {
            instances: instances.try_into()?,
            ebpf,
        })
    }

    fn of(&mut self, ifindex: u32) -> Result<Vec<ListedNapi>, Box<dyn Error>> {
        let mut options = RawTracePointRunOptions::new();
        options.args[0] = u64::from(ifindex);
        let count = match program(&mut self.ebpf)?.test_run(options)?.return_value {
            ABSENT => 0,
            count => count,
        };
        let all = (0..count).map(|at| self.instances.get(&at, 0));
        let mut all = all.collect::<Result<Vec<ListedNapi>, _>>()?;
        all.retain(|napi| napi.id != 0);
        all.sort_by_key(|napi| napi.id);
        Ok(all)
    }
}

fn program(ebpf: &mut Ebpf) -> Result<&mut RawTracePoint, Box<dyn Error>> {
    let program = ebpf.program_mut("list_napis").ok_or("no program")?;
    Ok(program.try_into()?)
}
