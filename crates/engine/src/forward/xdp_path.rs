//! Forwarding by the XDP program alone: it changes the headers and sends the frame out through the other interface. The
//! kernel's tracepoints say what became of redirected frames.

use std::collections::BTreeMap;

use aya::maps::{MapData, PerCpuHashMap, PerCpuValues};
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf, EbpfLoader};
use netlink_socket2::NetlinkSocket;
use nicpoll_sys::bpf_maps::{ExitWay, KERNEL_TYPES, Passage};
use nicpoll_sys::netns::NetNamespace;
use nicpoll_sys::xdp::AttachMode;

use crate::device::interface::{EthernetInterface, takes_redirected};
use crate::device::xdp::{explained, map};
use crate::error::EngineError;
use crate::forward::classifier::{Classifier, ClassifierResult, SENDS_ON};
use crate::forward::path::{Path, Started, keep_fresh};

/// Each program of the object, with its tracepoint.
const PROGRAMS: [(&str, &str); 2] = [
    ("count_sent", "xdp_devmap_xmit"),
    ("count_refused", "xdp_redirect_err"),
];
/// No interface has this index: frames that came to none.
const NOWHERE: u32 = 0;

/// Counts what the programs at all interfaces redirect.
struct XdpPath {
    // The programs stay attached as long as this lives.
    _programs: Ebpf,
    ways: PerCpuHashMap<MapData, ExitWay, Passage>,
    names: String,
    indices: Vec<u32>,
    socket: NetlinkSocket,
    /// By interface index: whether it takes frames.
    exits: BTreeMap<u32, bool>,
}

/// Attaches the programs.
///
/// # Errors
/// When an interface has a program of somebody else's, or its driver runs none.
pub(super) fn start(interfaces: &[EthernetInterface]) -> Result<Started, EngineError> {
    let mut socket = NetlinkSocket::new();
    let mut veths = interfaces.iter().filter(|it| it.kind == "veth");
    // It would lose all frames whose exit's other end has no NAPI.
    if let Some(veth) = veths.find(|it| takes_redirected(&mut socket, it.ifindex).is_none()) {
        return Err(EngineError::Device(format!(
            "the kernel does not say whether the other end of '{}' takes what XDP programs redirect, as Linux 6.3 does",
            veth.name
        )));
    }
    let path = XdpPath::between(interfaces)?;
    let (mut classifiers, mut all_next_hops) = (Vec::new(), Vec::new());
    for interface in interfaces {
        let (classifier, next_hops) = Classifier::load(interface, SENDS_ON, &path.indices)?;
        classifiers.push(classifier);
        all_next_hops.push(next_hops);
    }
    let freshness = keep_fresh(all_next_hops)?;
    for (interface, classifier) in interfaces.iter().zip(&mut classifiers) {
        if classifier.program.attach(interface.ifindex)? == AttachMode::Generic {
            return Err(EngineError::NoDriverProgram(interface.name.clone()));
        }
    }
    Ok(Started {
        path: Box::new(path),
        classifiers,
        _freshness: freshness,
    })
}

impl XdpPath {
    /// Counts what goes from each of these interfaces to each, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// Without the privileges for BPF, and where the kernel does not describe its types.
    fn between(interfaces: &[EthernetInterface]) -> Result<Self, EngineError> {
        let names: Vec<&str> = interfaces.iter().map(|it| it.name.as_str()).collect();
        let (names, indices) = (names.join(", "), interfaces.iter().map(|it| it.ifindex));
        let namespace = NetNamespace::current()
            .map_err(|source| EngineError::io("asking for the network namespace", &source))?;
        let object = aya::include_bytes_aligned!("../../bpf/xdp_exits.bpf.o");
        let btf = Btf::from_sys_fs().map_err(|error| {
            let why =
                format!("without {KERNEL_TYPES} nobody counts what XDP programs redirect: {error}");
            EngineError::Device(why)
        })?;
        let mut loader = EbpfLoader::new();
        let netns = namespace.inode() as u32;
        loader.override_global("NETNS", &netns, true);
        let mut ebpf = explained(&names, loader.load(object))?;
        let mut ways: PerCpuHashMap<_, ExitWay, Passage> = map(&mut ebpf, &names, "WAYS")?;
        let cpus = explained(&names, aya::util::nr_cpus().map_err(|(_, error)| error))?;
        for from in indices.clone() {
            for to in indices.clone().chain([NOWHERE]) {
                let none = PerCpuValues::try_from(vec![Passage::default(); cpus]);
                let inserted = ways.insert(ExitWay { from, to }, explained(&names, none)?, 0);
                explained(&names, inserted)?;
            }
        }
        for (program, tracepoint) in PROGRAMS {
            explained(&names, attach(&mut ebpf, program, tracepoint, &btf))?;
        }
        Ok(XdpPath {
            _programs: ebpf,
            ways,
            names,
            indices: indices.collect(),
            socket: NetlinkSocket::new(),
            exits: BTreeMap::new(),
        })
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

impl Path for XdpPath {
    fn done(&self) -> Result<Vec<ClassifierResult>, EngineError> {
        let mut done = vec![ClassifierResult::default(); self.indices.len()];
        for entry in self.ways.iter() {
            let (way, by_cpu) = explained(&self.names, entry)?;
            let place = self.indices.iter().position(|from| *from == way.from);
            let Some(done) = place.map(|place| &mut done[place]) else {
                continue;
            };
            for passage in by_cpu.iter() {
                done.forwarded += passage.sent_frames;
                // The exit took none, or its driver had no room for them.
                match way.to {
                    NOWHERE => done.lost.exit_refused += passage.lost_frames,
                    _ => done.lost.exit_full += passage.lost_frames,
                }
            }
        }
        Ok(done)
    }

    fn look_around(&mut self, classifiers: &mut [Classifier]) -> Result<(), EngineError> {
        for (place, ifindex) in self.indices.iter().copied().enumerate() {
            // Where the kernel does not say, what an exit does not take is counted as lost.
            let takes = takes_redirected(&mut self.socket, ifindex).unwrap_or(true);
            if self.exits.insert(ifindex, takes) == Some(takes) {
                continue;
            }
            for classifier in &mut *classifiers {
                classifier.set_exit((place, ifindex), takes)?;
            }
        }
        Ok(())
    }
}
