//! Forwarding by the XDP program alone: it changes the headers and sends the frame out through the other interface. The
//! kernel's tracepoints say what became of redirected frames.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use aya::maps::{MapData, PerCpuHashMap, PerCpuValues};
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf, EbpfLoader};
use netlink_socket2::NetlinkSocket;
use nicpoll_model::engine::{ForwardAccount, Lost};
use nicpoll_sys::bpf_maps::{Passage, Way};
use nicpoll_sys::netns::NetNamespace;
use nicpoll_sys::xdp::AttachMode;

use crate::device::interface::{Interface, takes_redirected};
use crate::device::xdp::refusal;
use crate::error::EngineError;
use crate::forward::classifier::{Classifier, Seen, Verdict};
use crate::forward::path::{Freshness, Path};

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

/// How often it is looked whether all frames have left at the end, and the pause between.
const DRAIN_LOOKS: u32 = 20;
const DRAIN_PAUSE: Duration = Duration::from_millis(5);

/// The programs at all interfaces.
pub(super) struct XdpPath {
    // Declared first: the programs leave before those that count what they do.
    classifiers: Vec<(Interface, Classifier)>,
    passages: Passages,
    socket: NetlinkSocket,
    _freshness: Freshness,
    /// By interface index: whether it takes frames.
    exits: BTreeMap<u32, bool>,
}

impl XdpPath {
    /// Attaches the programs.
    ///
    /// # Errors
    /// When an interface has a program of somebody else's, or its driver runs none.
    pub(super) fn start(interfaces: &[Interface]) -> Result<Self, EngineError> {
        let names = interfaces.iter();
        let names: Vec<_> = names.map(|i| (i.ifindex, i.name.clone())).collect();
        let namespace = NetNamespace::current().map_err(|source| EngineError::Thread {
            doing: String::from("asking for the network namespace"),
            source,
        })?;
        let passages = Passages::between(&names, namespace.inode() as u32)?;
        let indices: Vec<u32> = names.iter().map(|(ifindex, _)| *ifindex).collect();
        let (mut classifiers, mut next_hops) = (Vec::new(), Vec::new());
        for interface in interfaces {
            let mut classifier = Classifier::load(interface, Verdict::SendOn, &indices)?;
            next_hops.extend(classifier.take_next_hops());
            classifiers.push((interface.clone(), classifier));
        }
        let mut path = XdpPath {
            classifiers,
            passages,
            socket: NetlinkSocket::new(),
            _freshness: Freshness::start(next_hops)?,
            exits: BTreeMap::new(),
        };
        for (interface, classifier) in &mut path.classifiers {
            if classifier.attach(interface)? == AttachMode::Generic {
                return Err(EngineError::NoDriverProgram {
                    interface: interface.name.clone(),
                });
            }
        }
        // Last: a veth takes frames once the other end has its program, which may be one of these.
        path.look_around()?;
        Ok(path)
    }
}

impl Path for XdpPath {
    fn program_modes(&self) -> Vec<&'static str> {
        vec!["driver"; self.classifiers.len()]
    }

    fn accounts(&self) -> Result<Vec<ForwardAccount>, EngineError> {
        // What has left was seen before.
        let left = self.passages.left()?;
        let classifiers = self.classifiers.iter();
        classifiers
            .map(|(interface, classifier)| {
                let left = left.get(&interface.ifindex).copied().unwrap_or_default();
                Ok(account(&classifier.seen()?, left))
            })
            .collect()
    }

    fn look_around(&mut self) -> Result<(), EngineError> {
        let indices: Vec<u32> = self.classifiers.iter().map(|(i, _)| i.ifindex).collect();
        for (place, ifindex) in indices.into_iter().enumerate() {
            // Where the kernel does not say, what an exit does not take is counted as lost.
            let takes = takes_redirected(&mut self.socket, ifindex).unwrap_or(true);
            if self.exits.insert(ifindex, takes) == Some(takes) {
                continue;
            }
            for (_, classifier) in &mut self.classifiers {
                classifier.set_exit((place, ifindex), takes)?;
            }
        }
        Ok(())
    }

    fn stop(&mut self) {
        for (_, classifier) in &mut self.classifiers {
            classifier.detach();
        }
        for _ in 0..DRAIN_LOOKS {
            let accounts = self.accounts().unwrap_or_default();
            if accounts.iter().all(|account| account.residual_packets == 0) {
                return;
            }
            thread::sleep(DRAIN_PAUSE);
        }
    }
}

fn account(seen: &Seen, left: Left) -> ForwardAccount {
    let lost = Lost {
        exit_refused: left.refused,
        exit_full: left.lost_at_exit,
        ..Lost::default()
    };
    ForwardAccount::of(seen.frames(), left.sent, seen.passed(0), lost)
}
