//! All counters of a live comparison, read at one moment inside the interface's namespace.
//!
//! A counter that cannot be read is absent and is named once, at the start. The counting programs run under both
//! settings from the first block to the last: their costs differ only as far as events do, and are measured in the
//! part of each block that is left out. A card's time stamps are used if they are on, and never switched on here,
//! because some drivers then restart their queues.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use nicpoll_inspect::{bpf_cpu_ratio, device_irqs};
use nicpoll_lab::{KERNEL_RECEIVERS, LabError, Refused, own_process};
use nicpoll_model::Unseen;
use nicpoll_model::ab::AbDelayKind;
use nicpoll_observe::{
    BpfError, CardClock, CpuSample, ExactCpu, ExactCpuOptions, ExactSample, Histogram,
    HostCounters, HostSnapshot, InterruptLine, PacketDelays, PollRhythm, Programs, RhythmWatch,
    RunQueue, Stamped, ThreadTimes, parse_interrupts, processes, queue_counters,
};
use nicpoll_stats::ab::{PollCount, STEP_SECONDS};
use nicpoll_switch::Control;
use nicpoll_sys::ethtool::{ReceiveStamps, receive_stamps};
use nicpoll_sys::link::LinkHandle;

/// A NAPI instance of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its interface, by index.
    pub ifindex: u32,
    /// Its id.
    pub napi_id: u32,
    /// Numbers of its interrupts: the one that the driver names, or all of the card if this is its only instance.
    pub irqs: Vec<u32>,
    /// The receive queue that it serves, if the driver reports it.
    pub queue: Option<u32>,
}

/// Who used CPU time.
#[derive(Clone, Debug)]
pub struct Threads {
    /// Each thread; whole processes where CPU time is not counted by events.
    pub times: Vec<ThreadTimes>,
    /// Processes with a socket of the namespace; `None` if they cannot be determined.
    pub of_traffic: Option<BTreeSet<u32>>,
    /// This process.
    pub own_process: u32,
}

/// All counters at one moment.
#[derive(Clone, Debug)]
pub struct Reading {
    /// When.
    pub at: Instant,
    /// Interfaces and protocols.
    pub host: HostSnapshot,
    /// CPU time by events; `None` if the kernel does not allow it.
    pub exact: Option<ExactSample>,
    /// CPU time by the clock tick.
    pub sampled: CpuSample,
    /// CPU time by thread.
    pub threads: Threads,
    /// Polls by NAPI instance; `None` where they cannot be watched.
    pub rhythms: Option<BTreeMap<u32, PollRhythm>>,
    /// Hardware interrupts.
    pub interrupts: Option<Vec<InterruptLine>>,
    /// Soft interrupts that receive, of all CPUs.
    pub receive_softirqs: Option<u64>,
    /// Delays of each measured kind.
    pub delays: BTreeMap<AbDelayKind, Histogram>,
    /// Quality of the cards' time stamps; `None` if no card stamps packets.
    pub stamped: Option<Stamped>,
    /// Driver counters of each receive queue.
    pub queues: Queues,
}

/// Reads the counters of its thread's namespace.
pub struct Meter {
    counters: HostCounters,
    /// Reads the counters of queues.
    control: Control,
    exact: Option<(ExactCpu, u32)>,
    rhythms: Option<RhythmWatch>,
    delays: DelayMeters,
    members: Vec<u32>,
    /// The instances whose polls are watched.
    pub instances: Vec<Instance>,
    packets_per_second: f64,
    /// What cannot be measured, and why.
    pub unseen: Vec<Unseen>,
}

impl Meter {
    /// Starts counting for the members, given by index.
    pub fn begin(members: &[u32]) -> Self {
        let mut meter = Meter {
            counters: HostCounters::of_caller(),
            control: Control::new(),
            exact: None,
            rhythms: None,
            delays: DelayMeters::default(),
            members: members.to_vec(),
            instances: Vec::new(),
            packets_per_second: 0.0,
            unseen: Vec::new(),
        };
        match begin_exact() {
            Ok(exact) => meter.exact = Some(exact),
            Err(error) => meter.cannot_see("exact CPU time", &error),
        }
        meter.watch_instances();
        meter
    }

    /// Watches the polls of the members' current instances. Counts of those watched before start again.
    pub fn watch_instances(&mut self) {
        self.instances = instances(&mut Control::new(), &self.members);
        let all: Vec<(u32, u64)> = self
            .instances
            .iter()
            .map(|instance| (instance.napi_id, 0))
            .collect();
        match RhythmWatch::begin(&all) {
            Ok(watch) => self.rhythms = Some(watch),
            Err(error) => self.cannot_see("polls", &error),
        }
        if let Err(error) = self.delays.watch(self.instances.iter()) {
            self.cannot_see("delays of packets", &error);
        }
    }

    /// Starts measuring delays of a sample of this many packets a second. Returns what cannot be measured.
    pub fn begin_delays(&mut self, packets_per_second: f64) -> Vec<Unseen> {
        self.packets_per_second = packets_per_second;
        let own = self.exact.as_ref().map(|(_, own)| *own);
        let (delays, unseen) = DelayMeters::begin(&self.instances, packets_per_second, own);
        self.delays = delays;
        unseen
    }

    /// Detaches the counting programs.
    pub fn pause(&mut self) -> Result<(), LabError> {
        self.rhythms = None;
        self.delays = DelayMeters::default();
        match &mut self.exact {
            Some((exact, _)) => Ok(exact.detach()?),
            None => Ok(()),
        }
    }

    /// Attaches the counting programs again after a pause.
    pub fn resume(&mut self) -> Result<(), LabError> {
        if let Some((exact, _)) = &mut self.exact {
            exact.attach()?;
        }
        self.watch_instances();
        self.begin_delays(self.packets_per_second);
        Ok(())
    }

    /// Interfaces and protocols alone.
    pub fn counters(&mut self) -> HostSnapshot {
        self.counters.snapshot()
    }

    /// Reads the polls of all instances periodically until a time. Empty if polls cannot be watched.
    pub fn follow_polls(&self, since: Instant, until: Instant) -> Result<Vec<PollCount>, LabError> {
        let mut counts = Vec::new();
        while let (Some(watch), true) = (&self.rhythms, Instant::now() < until) {
            let mut all = PollRhythm::default();
            for instance in &self.instances {
                all = all.plus(&watch.read(instance.napi_id)?);
            }
            counts.push(PollCount {
                seconds: since.elapsed().as_secs_f64(),
                polls: all.polls,
                packets: all.frames,
            });
            thread::sleep(Duration::from_secs_f64(STEP_SECONDS));
        }
        thread::sleep(until.saturating_duration_since(Instant::now()));
        Ok(counts)
    }

    /// Reads everything now.
    pub fn read(&mut self) -> Result<Reading, LabError> {
        let (times, exact, own_process) = match &self.exact {
            Some((exact, own)) => (exact.threads()?, Some(exact.read()?), *own),
            None => (processes()?, None, std::process::id()),
        };
        let threads = Threads {
            times,
            of_traffic: (own_process == std::process::id()).then(with_sockets),
            own_process,
        };
        self.delays.watch_programs(&threads)?;
        let rhythms = match &self.rhythms {
            Some(watch) => {
                let of = |instance: &Instance| {
                    let id = instance.napi_id;
                    Ok::<_, LabError>((id, watch.read(id)?))
                };
                Some(self.instances.iter().map(of).collect::<Result<_, _>>()?)
            }
            None => None,
        };
        let (at, sampled) = (Instant::now(), CpuSample::now()?);
        let host = self.counters.snapshot();
        let name = |ifindex: &u32| {
            let interfaces = host.interfaces.as_ref()?;
            Some(interfaces.get(ifindex)?.name.as_str())
        };
        let named = self.members.iter().map(|index| (*index, name(index)));
        let queues = read_queues(&mut self.control, named);
        Ok(Reading {
            at,
            exact,
            sampled,
            threads,
            rhythms,
            interrupts: interrupts(),
            receive_softirqs: receive_softirqs(),
            delays: self.delays.read()?,
            stamped: self.delays.stamped()?,
            queues,
            host,
        })
    }

    /// CPU time of counting, in cores: the kernel times the programs for this long. 0 if none runs.
    pub fn counting_cores(&mut self, time: Duration) -> Result<f64, LabError> {
        match &mut self.exact {
            Some((exact, _)) => {
                let polls = self.rhythms.iter().map(|polls| &polls.programs);
                let others: Vec<_> = polls.chain(self.delays.timed()).collect();
                Ok(bpf_cpu_ratio(exact, &others, time)?)
            }
            None => Ok(0.0),
        }
    }

    fn cannot_see(&mut self, what: &str, error: &dyn Error) {
        // Instances are watched more than once.
        if self.unseen.iter().all(|unseen| unseen.what != what) {
            self.unseen.push(unseen(what, error.to_string()));
        }
    }
}

fn begin_exact() -> Result<(ExactCpu, u32), LabError> {
    let mut exact = ExactCpu::load(&ExactCpuOptions {
        has_threads: true,
        ..ExactCpuOptions::default()
    })?;
    exact.attach()?;
    let own = own_process(&exact)?;
    Ok((exact, own))
}

/// Returns the instances of the members. A removed member has none.
pub fn instances(control: &mut Control, members: &[u32]) -> Vec<Instance> {
    let mut all = Vec::new();
    for &ifindex in members {
        let queues = control.rx_queues(ifindex).unwrap_or_default();
        let napis = control.napis(ifindex).unwrap_or_default();
        // A veth does not report the queue, but with one queue and one instance it is known.
        let only = match (napis.len(), control.queues(ifindex)) {
            (1, Ok(all)) if all.iter().filter(|queue| queue.is_rx).count() == 1 => Some(0),
            _ => None,
        };
        all.extend(napis.iter().map(|napi| {
            let mut serves = queues.iter().filter(|(_, id)| **id == napi.id);
            Instance {
                ifindex,
                napi_id: napi.id,
                irqs: match (napi.irq, &napis[..]) {
                    (None, [_]) => of_card(ifindex),
                    (irq, _) => irq.into_iter().collect(),
                },
                queue: serves.next().map(|(queue, _)| *queue).or(only),
            }
        }));
    }
    all
}

fn of_card(ifindex: u32) -> Vec<u32> {
    let name = LinkHandle::of_index(ifindex).and_then(|link| link.name());
    name.map_or_else(|_| Vec::new(), |name| device_irqs(&name, ifindex))
}

fn interrupts() -> Option<Vec<InterruptLine>> {
    let text = fs::read_to_string("/proc/interrupts").ok()?;
    parse_interrupts(&text).ok()
}

fn receive_softirqs() -> Option<u64> {
    count_receive_softirqs(&fs::read_to_string("/proc/softirqs").ok()?)
}

/// The sum of the line `NET_RX` of `/proc/softirqs`.
fn count_receive_softirqs(text: &str) -> Option<u64> {
    let mut words = text
        .lines()
        .map(str::split_ascii_whitespace)
        .find_map(|mut words| (words.next() == Some("NET_RX:")).then_some(words))?;
    words.try_fold(0, |sum, word| Some(sum + word.parse::<u64>().ok()?))
}

/// Packets a second that are followed. More would only cost CPU time.
const FOLLOWED_PER_SECOND: f64 = 2_000.0;

/// The instruments for delays, as far as available.
#[derive(Default)]
pub struct DelayMeters {
    packets: Option<PacketDelays>,
    stamps: Stamps,
    waits: Option<RunQueue>,
}

impl DelayMeters {
    /// Starts measuring delays of the instances' packets and of threads. `own` is this process's number in the CPU
    /// account. Also returns what cannot be measured.
    pub fn begin(
        instances: &[Instance],
        packets_per_second: f64,
        own: Option<u32>,
    ) -> (Self, Vec<Unseen>) {
        let (stamps, clocks, mut missing) = Stamps::of(instances);
        let mut seen = |what: &str, error: BpfError| missing.push(unseen(what, error.to_string()));
        let one_in = (packets_per_second / FOLLOWED_PER_SECOND).ceil() as u32;
        let packets = PacketDelays::begin(&stamps.by_instance(instances.iter()), one_in, clocks);
        let packets = packets.map_err(|error| seen("delays of packets", error));
        let own = own.unwrap_or(std::process::id());
        let waits = RunQueue::begin(own, own == std::process::id());
        let waits = waits.map_err(|error| seen(AbDelayKind::RunQueue.name(), error));
        let delays = DelayMeters {
            packets: packets.ok(),
            stamps,
            waits: waits.ok(),
        };
        missing.extend(delays.packets.iter().flat_map(PacketDelays::unseen));
        (delays, missing)
    }

    /// Follows packets of these instances from now on.
    pub fn watch<'a>(
        &mut self,
        instances: impl Iterator<Item = &'a Instance>,
    ) -> Result<(), BpfError> {
        match &mut self.packets {
            Some(packets) => packets.watch(&self.stamps.by_instance(instances)),
            None => Ok(()),
        }
    }

    /// Times the threads of programs that now handle the traffic.
    pub fn watch_programs(&mut self, now: &Threads) -> Result<(), BpfError> {
        let (Some(waits), Some(of_traffic)) = (&mut self.waits, &now.of_traffic) else {
            return Ok(());
        };
        let receivers = now.times.iter().filter(|thread| is_receiver(thread));
        let all = of_traffic.iter().copied();
        waits.watch(all.chain(receivers.map(|thread| thread.pid)))
    }

    /// The programs in the kernel.
    pub fn timed(&self) -> impl Iterator<Item = &Programs> {
        let packets = self.packets.iter().map(|one| &one.programs);
        packets.chain(self.waits.iter().map(|one| &one.programs))
    }

    /// All delays so far.
    pub fn read(&self) -> Result<BTreeMap<AbDelayKind, Histogram>, BpfError> {
        let packets = self.packets.as_ref().map(PacketDelays::read).transpose()?;
        let mut all = packets.unwrap_or_default();
        if let Some(waits) = &self.waits {
            all.insert(AbDelayKind::RunQueue, waits.read()?);
        }
        Ok(all)
    }

    /// Quality of the cards' time stamps in the delays read before.
    pub fn stamped(&self) -> Result<Option<Stamped>, BpfError> {
        let stamped = self.packets.as_ref().map(PacketDelays::stamped);
        Ok(stamped.transpose()?.flatten())
    }
}

/// The members whose packets are stamped: by index, the place of the clock.
#[derive(Default)]
pub struct Stamps(BTreeMap<u32, usize>);

impl Stamps {
    /// Queries the cards of the instances, in the caller's namespace. Also returns their clocks, each once, and what is
    /// not measured.
    pub fn of(instances: &[Instance]) -> (Self, Vec<CardClock>, Vec<Unseen>) {
        let (mut clocks, mut places) = (Vec::new(), BTreeMap::new());
        let mut stamps = Stamps::default();
        let mut missing = Vec::new();
        let members: BTreeSet<u32> = instances.iter().map(|one| one.ifindex).collect();
        for ifindex in members {
            let name = LinkHandle::of_index(ifindex).and_then(|link| link.name());
            let member = name.unwrap_or_else(|_| format!("interface {ifindex}"));
            let number = clock_of(&member, receive_stamps(&member).ok());
            let place = number.and_then(|number| {
                if let Some(place) = places.get(&number) {
                    return Ok(*place);
                }
                let clock = CardClock::open(number);
                clocks.push(
                    clock.map_err(|error| Refused(format!("{member} stamps them, but {error}")))?,
                );
                places.insert(number, clocks.len() - 1);
                Ok(clocks.len() - 1)
            });
            match place {
                Ok(place) => {
                    stamps.0.insert(ifindex, place);
                }
                Err(why) => missing.push(unseen(
                    "what packets wait in the card until a poll takes them",
                    format!(
                        "no event tells when they came, and {why}; it is half a period on average, where packets come \
                         independently of the polls"
                    ),
                )),
            }
        }
        (stamps, clocks, missing)
    }

    /// Each instance with the place of the clock by which its packets are stamped.
    pub fn by_instance<'a>(
        &self,
        instances: impl Iterator<Item = &'a Instance>,
    ) -> BTreeMap<u32, Option<usize>> {
        let place = |instance: &Instance| self.0.get(&instance.ifindex).copied();
        instances.map(|one| (one.napi_id, place(one))).collect()
    }
}

/// The number of the clock by which every packet of a member is stamped, or why there is none.
fn clock_of(member: &str, stamps: Option<ReceiveStamps>) -> Result<u32, Refused> {
    match stamps {
        Some(ReceiveStamps {
            clock: Some(clock),
            stamps_all: true,
            ..
        }) => Ok(clock),
        Some(ReceiveStamps {
            clock: Some(_),
            can_stamp_all: true,
            ..
        }) => Err(Refused(format!(
            "{member} could stamp them and does not (`hwstamp_ctl -i {member} -r 1` has it do so, and begins the \
             queues of some cards again)"
        ))),
        _ => Err(Refused(format!(
            "{member} has no time stamps for all of them"
        ))),
    }
}

/// What cannot be measured, and why.
pub fn unseen(what: impl Into<String>, why: impl Into<String>) -> Unseen {
    Unseen {
        what: what.into(),
        why: why.into(),
    }
}

/// Tables of sockets, with the column of each in which the inode number stands.
const TABLES: [(&str, usize); 7] = [
    ("tcp", 9),
    ("tcp6", 9),
    ("udp", 9),
    ("udp6", 9),
    ("raw", 9),
    ("raw6", 9),
    ("packet", 8),
];

/// Processes with a socket of the calling thread's namespace, by number.
pub fn with_sockets() -> BTreeSet<u32> {
    let mut sockets = BTreeSet::new();
    for (table, column) in TABLES {
        let text = fs::read_to_string(format!("/proc/thread-self/net/{table}"));
        sockets.extend(inodes(&text.unwrap_or_default(), column));
    }
    let mut found = BTreeSet::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if has_one_of(&process.path().join("fd"), &sockets) {
            found.insert(pid);
        }
    }
    found
}

fn inodes(table: &str, column: usize) -> impl Iterator<Item = u64> {
    let lines = table.lines().skip(1);
    lines.filter_map(move |line| line.split_ascii_whitespace().nth(column)?.parse().ok())
}

fn has_one_of(descriptors: &Path, sockets: &BTreeSet<u64>) -> bool {
    let mut all = fs::read_dir(descriptors).into_iter().flatten().flatten();
    all.any(|descriptor| {
        let link = fs::read_link(descriptor.path()).unwrap_or_default();
        let inode = link.to_str().and_then(|link| {
            let number = link.strip_prefix("socket:[")?.strip_suffix(']')?;
            number.parse().ok()
        });
        inode.is_some_and(|inode| sockets.contains(&inode))
    })
}

/// Returns whether a thread is a kernel thread that receives packets.
pub fn is_receiver(thread: &ThreadTimes) -> bool {
    let mut names = KERNEL_RECEIVERS.iter();
    names.any(|name| thread.name.starts_with(name))
}

/// Counters by name of each receive queue, which is the interface's index and the queue's number.
pub type Queues = BTreeMap<(u32, u32), BTreeMap<String, u64>>;

/// Reads the members' queue counters, from driver statistics and the kernel's. Empty if there are none.
pub fn read_queues<'a>(
    control: &mut Control,
    members: impl Iterator<Item = (u32, Option<&'a str>)>,
) -> Queues {
    let mut queues = Queues::new();
    for (ifindex, name) in members {
        let own = name.and_then(|name| queue_counters(name).ok());
        for (queue, counters) in own.unwrap_or_default() {
            queues.entry((ifindex, queue)).or_default().extend(counters);
        }
        let asked = control.queue_statistics(ifindex).unwrap_or_default();
        for (queue, counters) in asked {
            let counters = counters
                .into_iter()
                .map(|(name, count)| (String::from(name), count));
            queues.entry((ifindex, queue)).or_default().extend(counters);
        }
    }
    queues
}

#[cfg(test)]
mod meter_tests {
    use super::*;

    #[test]
    fn receive_softirqs_are_those_of_all_cpus() {
        let text = "                    CPU0       CPU1\n          HI:         11          6\n      \
            NET_RX:      77180      89107\n";
        assert_eq!(count_receive_softirqs(text), Some(166_287));
        assert_eq!(count_receive_softirqs("CPU0\nHI: 1\n"), None);
    }
}

#[cfg(test)]
mod stamps_tests {
    use super::*;

    #[test]
    fn stamps_are_used_where_every_packet_has_one() {
        let all = ReceiveStamps {
            clock: Some(3),
            can_stamp_all: true,
            stamps_all: true,
        };
        assert_eq!(clock_of("eth0", Some(all)).unwrap(), 3);
        let off = ReceiveStamps {
            stamps_all: false,
            ..all
        };
        let why = clock_of("eth0", Some(off)).unwrap_err().to_string();
        assert!(why.contains("`hwstamp_ctl -i eth0 -r 1`"), "{why}");
        let of_none = ReceiveStamps { clock: None, ..all };
        let of_some = ReceiveStamps {
            can_stamp_all: false,
            ..off
        };
        for stamps in [Some(of_none), Some(of_some), None] {
            let why = clock_of("eth0", stamps).unwrap_err().to_string();
            assert_eq!(why, "eth0 has no time stamps for all of them");
        }
    }
}

#[cfg(test)]
mod programs_tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn a_process_with_a_socket_is_found() {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        assert!(with_sockets().contains(&std::process::id()));
        drop(socket);
    }

    #[test]
    fn the_inode_is_the_tenth_column_of_tcp() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000   105        0 23456 1 0 100\n";
        assert_eq!(inodes(table, 9).collect::<Vec<_>>(), [23_456]);
    }
}

#[cfg(test)]
mod tests;
