//! What became of frames that XDP programs redirected from one interface to another, by the kernel's tracepoints.

use std::collections::BTreeMap;

use aya::maps::{MapData, PerCpuHashMap, PerCpuValues};
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf, EbpfLoader};
use nicpoll_sys::bpf_maps::{Passage, Way};

use crate::error::EngineError;
use crate::program::refusal;

/// Each program of the object, with its tracepoint.
const PROGRAMS: [(&str, &str); 2] = [
    ("count_sent", "xdp_devmap_xmit"),
    ("count_refused", "xdp_redirect_err"),
];
/// No interface has this index: frames that came to none.
const NOWHERE: u32 = 0;

/// What became of the frames that were redirected away from one interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    /// Handed to the driver of the exit.
    pub(super) sent: u64,
    /// The exit's driver had no room for them.
    pub(super) lost_at_exit: u64,
    /// The exit took none.
    pub(super) refused: u64,
}

/// Counts until it is dropped.
pub(super) struct Passages {
    // The programs stay attached as long as this lives.
    _programs: Ebpf,
    ways: PerCpuHashMap<MapData, Way, Passage>,
    name: String,
}

impl Passages {
    /// Counts what goes from each of these interfaces to each, in the network namespace of that inode number.
    ///
    /// # Errors
    /// Without the privileges for BPF, and where the kernel does not describe its types.
    pub(super) fn between(
        interfaces: &[(u32, String)],
        netns_inode: u32,
    ) -> Result<Self, EngineError> {
        let names: Vec<&str> = interfaces.iter().map(|(_, name)| name.as_str()).collect();
        let name = names.join(", ");
        let refused = |error: &(dyn std::error::Error + 'static)| refusal(&name, error);
        let object = aya::include_bytes_aligned!("../../bpf/xdp_exits.bpf.o");
        let btf = Btf::from_sys_fs().map_err(|error| refused(&error))?;
        let mut loader = EbpfLoader::new();
        loader.override_global("NETNS", &netns_inode, true);
        let mut ebpf = loader.load(object).map_err(|error| refused(&error))?;
        let map = ebpf.take_map("WAYS").ok_or_else(|| EngineError::Program {
            interface: name.clone(),
            why: String::from("it has no map WAYS"),
        })?;
        let mut ways: PerCpuHashMap<_, Way, Passage> = map
            .try_into()
            .map_err(|e: aya::maps::MapError| refused(&e))?;
        let cpus = aya::util::nr_cpus().map_err(|(_, error)| refused(&error))?;
        let exits = || interfaces.iter().map(|(ifindex, _)| *ifindex);
        for from in exits() {
            for to in exits().chain([NOWHERE]) {
                let none = PerCpuValues::try_from(vec![Passage::default(); cpus]);
                let none = none.map_err(|error| refused(&error))?;
                let inserted = ways.insert(Way { from, to }, none, 0);
                inserted.map_err(|error| refused(&error))?;
            }
        }
        for (program, tracepoint) in PROGRAMS {
            attach(&mut ebpf, program, tracepoint, &btf).map_err(|error| refused(&error))?;
        }
        Ok(Passages {
            _programs: ebpf,
            ways,
            name,
        })
    }

    /// What became of all frames so far, by the interface that they came to.
    pub(super) fn left(&self) -> Result<BTreeMap<u32, Left>, EngineError> {
        let mut left: BTreeMap<u32, Left> = BTreeMap::new();
        for entry in self.ways.iter() {
            let (way, by_cpu) = entry.map_err(|error| refusal(&self.name, &error))?;
            let left = left.entry(way.from).or_default();
            for passage in by_cpu.iter() {
                left.sent += passage.sent_frames;
                if way.to == NOWHERE {
                    left.refused += passage.lost_frames;
                } else {
                    left.lost_at_exit += passage.lost_frames;
                }
            }
        }
        Ok(left)
    }
}

fn attach(
    ebpf: &mut Ebpf,
    program: &str,
    tracepoint: &str,
    btf: &Btf,
) -> Result<(), aya::EbpfError> {
    let program = ebpf.program_mut(program).ok_or(aya::EbpfError::NoBTF)?;
    let program: &mut BtfTracePoint = program.try_into()?;
    program.load(tracepoint, btf)?;
    program.attach()?;
    Ok(())
}
