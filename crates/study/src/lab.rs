//! The lab as a whole: two hosts, their link, the journal, and the counter of polls.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nicpoll_model::line::Line;
use nicpoll_model::{LabFacts, Side};
use nicpoll_observe::{BpfError, ExactCpu, ExactCpuOptions, PollCounter};
pub use nicpoll_switch::VETH_RING_SLOTS;
use nicpoll_switch::{Journal, Recovered};
use nicpoll_sys::affinity;

use crate::INTERFACE;
use crate::host::{Host, Resident};
use crate::link::{self, Addresses};

/// The feature of a device that sends trains of datagrams whole.
const UDP_SEGMENTATION: &str = "tx-udp-segmentation";
/// Link MTU of a veth pair as it comes up.
const MTU_BYTES: u32 = 1500;

/// Two hosts and the link between them, for as long as this value lives.
pub struct Lab {
    /// The host that sends.
    pub sender: Host,
    /// The host that receives, and whose receive discipline is what is studied.
    pub receiver: Host,
    /// Where changes are recorded.
    pub journal: Journal,
    /// Counts the receiver's polls.
    pub polls: PollCounter,
    /// Accounts for CPU time exactly while it is attached, or why the kernel refuses: then trials say
    /// that their CPU time is sampled.
    pub exact_cpu: Result<ExactCpu, BpfError>,
    /// The core of the sending thread.
    pub sender_cpu: u32,
    /// The core of the receiving thread.
    pub receiver_cpu: u32,
    kept: Vec<PathBuf>,
}

/// Why this process can build no lab on this machine; `None` when it can.
///
/// # Errors
/// When the kernel does not say what the process may do.
pub fn why_not_here() -> io::Result<Option<String>> {
    let missing = nicpoll_sys::privilege::missing_for_lab()?;
    if !missing.is_empty() {
        return Ok(Some(format!("missing {}", missing.join(", "))));
    }
    let unsupported = nicpoll_switch::per_napi_settings().err();
    Ok(unsupported.map(|unsupported| unsupported.to_string()))
}

impl Lab {
    /// Builds the lab. What an earlier run left in the journal is put back or closed first.
    ///
    /// # Errors
    /// Without the privileges that [`nicpoll_sys::privilege`] names, with fewer than two CPUs, or when
    /// the kernel lacks a feature. Nothing is left behind then.
    pub fn build(journal: Journal) -> Result<Self> {
        let (sender_cpu, receiver_cpu) = two_cpus()?;
        recover(&journal)?;
        let polls = PollCounter::load()?;
        let sender = Host::new(Side::Sender)?;
        let receiver = Host::new(Side::Receiver)?;
        link::join(&sender, &receiver)?;
        Ok(Lab {
            sender,
            receiver,
            journal,
            polls,
            exact_cpu: ExactCpu::load(&ExactCpuOptions::default()),
            sender_cpu,
            receiver_cpu,
            kept: Vec::new(),
        })
    }

    /// Gives both namespaces names that outlive the process, for a look with ip-netns(8).
    pub fn keep(&mut self) -> Result<()> {
        let pid = std::process::id();
        for host in [&self.sender, &self.receiver] {
            let name = format!("nicpoll-{}-{pid}", host.side());
            let path = host
                .netns()
                .keep_as(&name)
                .with_context(|| format!("naming the {}'s namespace {name}", host.side()))?;
            self.kept.push(path);
        }
        Ok(())
    }

    /// The names under which the namespaces are kept; empty unless [`Lab::keep`] was called.
    pub fn kept_as(&self) -> Vec<String> {
        let name = |path: &PathBuf| Some(path.file_name()?.to_string_lossy().into_owned());
        self.kept.iter().filter_map(name).collect()
    }

    /// Both hosts, the sender first.
    pub fn hosts(&self) -> [&Host; 2] {
        [&self.sender, &self.receiver]
    }

    /// The cores of the traffic, the sender's first.
    pub fn cpus(&self) -> [u32; 2] {
        [self.sender_cpu, self.receiver_cpu]
    }

    /// Puts back every setting of both hosts, the receiver's first: its NAPI must go on being fed as
    /// it was until it is gone.
    pub fn restore(&self) -> Result<()> {
        for host in [&self.receiver, &self.sender] {
            host.run(Resident::restore)?
                .with_context(|| format!("putting back the {}'s settings", host.side()))?;
        }
        Ok(())
    }

    /// Has trains of datagrams (`UDP_SEGMENT`) be cut before the link, at both ends, so that it carries
    /// single frames and counts them as such. A veth carries whole trains otherwise.
    pub fn cut_trains(&self) -> Result<()> {
        for host in self.hosts() {
            host.run(|resident| {
                let ifindex = resident.control.interface(INTERFACE)?.ifindex;
                let off = BTreeMap::from([(String::from(UDP_SEGMENTATION), false)]);
                resident.control.set_features(ifindex, &off)
            })?
            .with_context(|| format!("turning off {UDP_SEGMENTATION} of the {}", host.side()))?;
        }
        Ok(())
    }

    /// Every setting of both interfaces that can bear on receiving, by name: features, NAPI values, and
    /// what the interface's directory in sysfs shows.
    pub fn settings(&self) -> Result<BTreeMap<String, String>> {
        let mut all = BTreeMap::new();
        for host in self.hosts() {
            let side = host.side();
            let settings = host
                .run(settings_of)?
                .with_context(|| format!("reading the {side}'s settings"))?;
            all.extend(
                settings
                    .into_iter()
                    .map(|(name, value)| (format!("{side}: {name}"), value)),
            );
        }
        Ok(all)
    }

    fn addresses(&self) -> Vec<(Side, String)> {
        let written = |side| {
            let in_use = Addresses::of(side).in_use().into_iter();
            in_use.map(move |(address, prefix)| (side, format!("{address}/{prefix}")))
        };
        self.hosts()
            .into_iter()
            .flat_map(|host| written(host.side()))
            .collect()
    }

    /// The line between the hosts. A veth pair has none, whatever speed its driver tells.
    pub fn line(&self) -> Option<Line> {
        None
    }

    /// What the lab is, for the record.
    pub fn facts(&self) -> Result<LabFacts> {
        let driver = self
            .receiver
            .run(|resident| resident.control.interface(INTERFACE))??
            .driver;
        Ok(LabFacts {
            is_virtual: true,
            interface: String::from(INTERFACE),
            driver,
            line_bits_per_second: self.line().map(|line| line.bits_per_second.get()),
            no_line_because: Some(String::from(
                "a veth pair has no line; the speed that its driver tells is nominal",
            )),
            mtu_bytes: MTU_BYTES,
            ring_slots: VETH_RING_SLOTS,
            netns_inodes: self
                .hosts()
                .map(|host| (host.side(), host.netns().inode()))
                .to_vec(),
            addresses: self.addresses(),
            kept_as: self.kept_as(),
            sender_cpu: self.sender_cpu,
            receiver_cpu: self.receiver_cpu,
            send_mode: String::from("one datagram a send call; no UDP_SEGMENT"),
            receive_mode: String::from(
                "up to 64 datagrams a recvmmsg call, payload copied; no UDP_GRO",
            ),
        })
    }
}

fn two_cpus() -> Result<(u32, u32)> {
    match affinity::allowed_cpus()?[..] {
        [sender, receiver, ..] => Ok((sender, receiver)),
        _ => bail!("two CPUs are needed, one for each end of the link; this process may use one"),
    }
}

/// Puts back what earlier runs left. A record that cannot be dealt with stops the run: its interface
/// may not be what a study would take it for.
fn recover(journal: &Journal) -> Result<()> {
    for (path, outcome) in nicpoll_switch::recover(journal)? {
        if let Recovered::Failed(error) = outcome {
            return Err(error)
                .with_context(|| format!("putting back what {} records", path.display()));
        }
    }
    Ok(())
}

fn settings_of(resident: &mut Resident) -> Result<BTreeMap<String, String>> {
    let ifindex = resident.control.interface(INTERFACE)?.ifindex;
    let mut settings = sysfs_attributes(&Path::new("/sys/class/net").join(INTERFACE))?;
    let features = resident.control.features(ifindex)?;
    for (kind, set) in [("wanted", features.wanted), ("active", features.active)] {
        for (name, on) in set {
            settings.insert(format!("feature {name} ({kind})"), on.to_string());
        }
    }
    for (index, napi) in resident.control.napis(ifindex)?.into_iter().enumerate() {
        settings.insert(format!("NAPI {index}"), format!("{napi:?}"));
    }
    Ok(settings)
}

/// The readable files of an interface's directory; those of a state that makes no sense for the
/// device give an error and are left out.
fn sysfs_attributes(directory: &Path) -> Result<BTreeMap<String, String>> {
    let mut attributes = BTreeMap::new();
    for file in fs::read_dir(directory)? {
        let path = file?.path();
        if let (true, Ok(value)) = (path.is_file(), fs::read_to_string(&path)) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            attributes.insert(format!("sysfs {name}"), String::from(value.trim_end()));
        }
    }
    Ok(attributes)
}
