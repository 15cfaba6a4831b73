//! A lab: two hosts, perhaps a router between them, and the link that joins them.
//!
//! Restoring or dropping a lab restores settings in the reverse order of a packet's path.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::{HostFacts, LabFacts, LabHost, SettingChanges, Side, SwitchWrite};
use nicpoll_observe::{Between, HostSnapshot};
use nicpoll_switch::{Guard, Journal, Owner};
use nicpoll_sys::netns::NetNamespace;

use crate::error::{Doing, LabError};
use crate::host::Commands;
use crate::host::changes::Changes;
use crate::host::commands::LOOK_EVERY;
use crate::host::local::LocalHost;
use crate::host::protocol::SILENCE_MAX;
use crate::host::{
    Counter, Cpus, Host, HostClient, HostInterface, HostRequest, MACHINE, MACHINE_INTERFACE,
    RECEIVER, ROUTER, RefusedCounters, SENDER,
};
use crate::join::FurtherHost;
use crate::link::hosts::Hosts;
use crate::link::{Link, LinkEnd};
use crate::machine::{recover, two_cpus};

/// Two hosts and the link between them, for as long as this value lives.
pub struct Lab {
    /// The host that sends.
    pub sender: HostClient,
    /// The host that receives. Without a router its receive discipline is studied.
    pub receiver: HostClient,
    /// The machine that both are part of, for values that are not per namespace; `None` if the hosts are separate
    /// machines.
    machine: Option<HostClient>,
    /// The host that forwards between them, if any. Then its receive discipline is studied.
    pub router: Option<HostClient>,
    /// Further senders and receivers, each on a path of its own.
    further: Vec<FurtherHost>,
    /// The link between them.
    pub link: Arc<Link>,
    /// What cannot be counted: trials then report sampled CPU time, and no polls.
    pub refused: RefusedCounters,
    /// The core of the sending thread.
    pub sender_cpu: u32,
    /// The core of the receiving thread.
    pub receiver_cpu: u32,
    /// The cores of both unless a setting has others.
    own_cpus: [u32; 2],
    /// Names of namespaces that outlive the lab.
    pub kept_as: Vec<String>,
    /// Deadline of all traffic; `None` without a limit.
    pub deadline: Option<Instant>,
    /// What commands changed and nobody undid, in words.
    pub left: BTreeSet<String>,
    /// Ends of workloads so far.
    ends: u32,
    /// Ends that were abandoned. Such a thread may still hold its port.
    pub hung_ends: u16,
    /// How far the receiver's wall clock is ahead of the sender's, ns: 0 on one machine.
    pub receiver_ahead_ns: i64,
    /// The machines of the hosts, if each is one of its own.
    apart: Option<Apart>,
}

/// Hosts on machines of their own.
struct Apart {
    hosts: Hosts,
    /// The CPUs of the studied one.
    studied_cpus: Vec<u32>,
}

/// Time to reach a lost host again.
const REOPEN_MAX: Duration = Duration::from_secs(60);

/// Interval between attempts.
const REOPEN_EVERY: Duration = Duration::from_secs(1);

/// A silent controller's agent has restored everything after this time.
const AGENT_GONE_AFTER: Duration = SILENCE_MAX.saturating_add(Duration::from_secs(2));

impl Lab {
    /// Builds a lab of a link's namespaces. Records that earlier runs left in the journal are restored or closed first.
    /// Changes are recorded for `owner`: this process or its guard.
    ///
    /// # Errors
    /// With fewer than two CPUs, or when the kernel lacks a feature.
    pub fn local(link: Arc<Link>, journal: &Journal, owner: Owner) -> Result<Self, LabError> {
        recover(journal)?;
        let host = |end: &LinkEnd| -> Result<Box<dyn Host>, LabError> {
            let namespace = end.namespace.as_ref().ok_or_else(|| {
                LabError::Unexpected(format!("the {} is not on this machine", end.host))
            })?;
            let (namespace, interfaces) = (namespace.try_clone()?, end.interfaces.clone());
            let host = LocalHost::new(namespace, interfaces, journal, owner)
                .doing(|| format!("entering the {}'s namespace", end.host))?;
            Ok(Box::new(host))
        };
        let sender = host(link.end(Side::Sender))?;
        let receiver = host(link.end(Side::Receiver))?;
        let router = link.router().map(&host).transpose()?;
        let mut lab = Lab::of(sender, router, receiver, link)?;
        let namespace = NetNamespace::current().doing(|| "opening the network namespace")?;
        let machine = LocalHost::new(
            namespace,
            vec![String::from(MACHINE_INTERFACE)],
            journal,
            owner,
        )
        .doing(|| "entering the network namespace")?;
        lab.machine = Some(HostClient::new(MACHINE, Box::new(machine)));
        Ok(lab)
    }

    /// Like [`Lab::local`], with a guard that restores settings if this process is killed. `program` calls
    /// [`nicpoll_switch::watch_over`]. Drop the lab before the guard.
    ///
    /// # Errors
    /// As [`Lab::local`]; when the guard does not start.
    pub fn guarded(
        link: Arc<Link>,
        journal: &Journal,
        program: Command,
    ) -> Result<(Guard, Self), LabError> {
        let guard = Guard::start(program, journal, None)?;
        let lab = Lab::local(link, journal, guard.owner())?;
        Ok((guard, lab))
    }

    /// Builds a lab of hosts of one machine that `link` joins.
    ///
    /// # Errors
    /// With fewer than two CPUs, or when the studied host cannot count.
    pub fn of(
        sender: Box<dyn Host>,
        router: Option<Box<dyn Host>>,
        receiver: Box<dyn Host>,
        link: Arc<Link>,
    ) -> Result<Self, LabError> {
        let router = router.map(|router| HostClient::new(ROUTER, router));
        let sender = HostClient::new(SENDER, sender);
        let receiver = HostClient::new(RECEIVER, receiver);
        Lab::counting([sender, receiver], router, link, two_cpus()?)
    }

    /// Builds a lab of hosts on machines of their own.
    ///
    /// # Errors
    /// When a host cannot be reached, or they cannot reach each other by their interfaces.
    pub fn apart(hosts: &Hosts) -> Result<Self, LabError> {
        let mut connected = hosts.connect()?;
        let (receiver, sender) = (connected.way.pop(), connected.way.drain(..1).next());
        let ends = sender
            .zip(receiver)
            .map(|(sender, receiver)| [sender, receiver]);
        let ends = ends.ok_or(LabError::Panicked("connecting"))?;
        let router = connected.way.pop();
        let mut lab = Lab::counting(ends, router, connected.link, connected.cpus)?;
        lab.further = connected.further;
        lab.machine = Some(connected.machine);
        lab.apart = Some(Apart {
            hosts: hosts.clone(),
            studied_cpus: lab.studied().facts()?.machine.cpus,
        });
        Ok(lab)
    }

    fn counting(
        [sender, receiver]: [HostClient; 2],
        router: Option<HostClient>,
        link: Arc<Link>,
        cpus: [u32; 2],
    ) -> Result<Self, LabError> {
        let [sender_cpu, receiver_cpu] = cpus;
        let mut lab = Lab {
            sender,
            router,
            receiver,
            further: Vec::new(),
            machine: None,
            link,
            refused: RefusedCounters::default(),
            sender_cpu,
            receiver_cpu,
            own_cpus: cpus,
            kept_as: Vec::new(),
            deadline: None,
            left: BTreeSet::new(),
            ends: 0,
            hung_ends: 0,
            receiver_ahead_ns: 0,
            apart: None,
        };
        lab.refused = lab.studied().ask(HostRequest::LoadCounters)?;
        Ok(lab)
    }

    /// Whether the hosts are machines of their own, each with its own CPUs and clocks.
    pub fn is_apart(&self) -> bool {
        self.apart.is_some()
    }

    /// Whether the sender is a host without nicpoll.
    pub fn has_plain_sender(&self) -> bool {
        let apart = self.apart.as_ref();
        apart.is_some_and(|apart| apart.hosts.has_plain_sender())
    }

    /// Connects lost hosts again, once their agents have restored everything. Gives up when `cancel` becomes true.
    ///
    /// # Errors
    /// When one cannot be reached for a minute.
    pub fn reopen(&mut self, cancel: &AtomicBool) -> Result<(), LabError> {
        let Some(apart) = self.apart.take() else {
            return Ok(());
        };
        let reopened = self.reopen_of(&apart, cancel);
        self.apart = Some(apart);
        reopened
    }

    fn reopen_of(&mut self, apart: &Apart, cancel: &AtomicBool) -> Result<(), LabError> {
        let lost = self.way().filter(|host| host.is_lost());
        let lost: Vec<String> = lost.map(|host| String::from(host.name())).collect();
        let begin = Instant::now();
        for role in lost {
            let mut next = begin + AGENT_GONE_AFTER;
            let (host, machine) = loop {
                while Instant::now() < next {
                    LabError::unless(cancel)?;
                    thread::sleep(LOOK_EVERY);
                }
                match apart.hosts.connect_one(&role) {
                    Err(failure) if begin.elapsed() > REOPEN_MAX => return Err(failure.into()),
                    Err(_) => next = Instant::now() + REOPEN_EVERY,
                    Ok(both) => break both,
                }
            };
            if let Some(client) = self.way().find(|host| host.name() == role) {
                client.replace(host);
            }
            if let (Some(machine), Some(client)) = (machine, &mut self.machine) {
                client.replace(Box::new(machine));
                self.refused = self.studied().ask(HostRequest::LoadCounters)?;
            }
        }
        Ok(())
    }

    /// The paths of traffic between the hosts.
    pub fn paths(&self) -> usize {
        let of = |side| 1 + self.further(side).count();
        let pairs = of(Side::Sender).max(of(Side::Receiver));
        self.link.paths().max(pairs)
    }

    /// Whether there are several senders or receivers.
    pub fn has_further(&self) -> bool {
        !self.further.is_empty()
    }

    fn further(&self, side: Side) -> impl Iterator<Item = &FurtherHost> {
        self.further.iter().filter(move |one| one.side == side)
    }

    /// Returns the further host at one end of a path; `None` where it is the first.
    fn further_at(&self, side: Side, path: usize) -> Option<&FurtherHost> {
        self.further(side).nth(path.checked_sub(1)?)
    }

    /// Returns the host at one end of a path.
    pub fn host(&mut self, side: Side, path: usize) -> &mut HostClient {
        let mut further = self.further.iter_mut().filter(|one| one.side == side);
        match path.checked_sub(1).and_then(|at| further.nth(at)) {
            Some(one) => &mut one.client,
            None => side.of(&mut self.sender, &mut self.receiver),
        }
    }

    /// Returns the core of the traffic at one end of a path.
    pub(crate) fn cpu(&self, side: Side, path: usize) -> u32 {
        let further = self.further_at(side, path).map(|one| one.cpu);
        further.unwrap_or(side.of(self.sender_cpu, self.receiver_cpu))
    }

    /// Returns the addresses at one end of a path: the first of a family is that of the path.
    pub(crate) fn addresses(&self, side: Side, path: usize) -> impl Iterator<Item = IpAddr> {
        let (end, skipped) = match self.further_at(side, path) {
            Some(one) => (&one.end, 0),
            None if self.has_further() => (self.link.end(side), 0),
            None => (self.link.end(side), path),
        };
        let of = |is_v4| {
            let own = end.addresses.iter().map(|(address, _)| *address);
            own.filter(move |address| address.is_ipv4() == is_v4)
                .skip(skipped)
        };
        of(true).chain(of(false))
    }

    /// Reads the counters of all hosts of an end together.
    ///
    /// # Errors
    /// When a host cannot be reached.
    pub fn counters(&mut self, side: Side) -> Result<HostSnapshot, LabError> {
        let link = Arc::clone(&self.link);
        let is_one_machine = link.between != Between::Cards;
        let own = side.of(&mut self.sender, &mut self.receiver).counters()?;
        let mut all = link.own(own, link.end(side));
        for one in self.further.iter_mut().filter(|one| one.side == side) {
            let further = link.own(one.client.counters()?, &one.end);
            all = all.and(further, is_one_machine);
        }
        Ok(all)
    }

    /// Returns the host whose receive discipline is studied and whose polls and CPU time are counted.
    pub fn studied(&mut self) -> &mut HostClient {
        self.router.as_mut().unwrap_or(&mut self.receiver)
    }

    /// Attaches or detaches a counter of the studied host.
    pub fn count(&mut self, counter: Counter, is_on: bool) -> Result<(), LabError> {
        self.studied().tell(HostRequest::Count { counter, is_on })
    }

    /// Starts counting polls of the studied host's NAPI: of the only instance, or of all. Returns the instances.
    pub fn watch_polls(&mut self) -> Result<Vec<u32>, LabError> {
        let napis = self.studied().napis()?;
        let napi_id = watched(&napis);
        self.studied().tell(HostRequest::WatchPolls(napi_id))?;
        Ok(napis)
    }

    /// The studied machine's cores whose time counts: those of the traffic, the sender's first, or all of a machine that
    /// is the studied host alone.
    pub fn cpus(&self) -> Vec<u32> {
        match &self.apart {
            None => vec![self.sender_cpu, self.receiver_cpu],
            Some(apart) => apart.studied_cpus.clone(),
        }
    }

    /// The core of the studied machine's sending threads, if it has any, and that of its receiving ones.
    pub fn bound_cpus(&self) -> [Option<u32>; 2] {
        let (sender, receiver) = (Some(self.sender_cpu), Some(self.receiver_cpu));
        match (&self.apart, &self.router) {
            (None, _) => [sender, receiver],
            (Some(_), None) => [None, receiver],
            (Some(_), Some(_)) => [None, None],
        }
    }

    /// Assigns a setting's cores to traffic, and the lab's own where it has none.
    pub fn give_cpus(&mut self, cpus: Cpus) {
        let [sender, receiver] = self.own_cpus;
        self.sender_cpu = cpus.sender.unwrap_or(sender);
        self.receiver_cpu = cpus.receiver.unwrap_or(receiver);
    }

    /// Ends traffic that still runs and restores every setting, the receiver's first: its NAPI must be fed as before
    /// until it is gone.
    pub fn restore(&mut self) -> Result<(), LabError> {
        let hosts: Vec<_> = self.hosts().collect();
        let mut left = Vec::new();
        for host in hosts.into_iter().rev() {
            let name = String::from(host.name());
            let own = match host.restore() {
                // Its agent or that one's guard restores it.
                Err(error) if error.of_lost_host().is_some() => continue,
                own => own?.into_iter(),
            };
            left.extend(own.map(|what| format!("{name}: {what}")));
        }
        self.left.extend(left);
        Ok(())
    }

    /// Runs commands before traffic. Restoring runs those after it.
    ///
    /// # Errors
    /// [`LabError::Traffic`] with the last words of one that failed; [`LabError::Cancelled`] when `cancel` became true.
    pub fn begin_commands(
        &mut self,
        commands: &Commands,
        cancel: &AtomicBool,
    ) -> Result<(), LabError> {
        if commands.is_empty() {
            return Ok(());
        }
        for host in self.way() {
            let own = commands.after.iter().filter(|one| one.host == host.role());
            let after = own.cloned().collect();
            host.tell(HostRequest::BeginCommands(after))?;
        }
        for command in &commands.before {
            for host in self.way().filter(|host| host.role() == command.host) {
                host.tell(HostRequest::StartCommand(command.clone()))?;
                let mut has_ended = || -> Result<bool, LabError> {
                    let ended = host.ask(HostRequest::CommandEnded);
                    ended.map_err(|error| error.into_traffic("a command before the traffic"))
                };
                while !has_ended()? {
                    LabError::unless(cancel)?;
                    thread::sleep(LOOK_EVERY);
                }
            }
        }
        Ok(())
    }

    /// Returns the values that commands have changed, as they were before, by the names of [`Lab::settings`].
    pub fn values_before_commands(&mut self) -> Result<BTreeMap<String, String>, LabError> {
        self.values(HostRequest::ValuesBefore)
    }

    /// Every host that a setting may concern, in the order of application: the machine, then the hosts on a packet's
    /// path.
    pub fn hosts(&mut self) -> impl Iterator<Item = &mut HostClient> {
        let machine = self.machine.iter_mut();
        let further = self.further.iter_mut().map(|one| &mut one.client);
        let senders = [&mut self.sender].into_iter().chain(further);
        let way = senders.chain(&mut self.router);
        machine.chain(way).chain([&mut self.receiver])
    }

    /// The hosts on a packet's path.
    pub fn way(&mut self) -> impl Iterator<Item = &mut HostClient> {
        self.hosts().filter(|host| host.name() != MACHINE)
    }

    /// Changes at any host since the last call.
    pub fn changes(&mut self) -> Result<Changes, LabError> {
        self.way()
            .try_fold(Changes::default(), |all, host| Ok(all.and(host.changes()?)))
    }

    /// The writes of a setting in force, by host.
    pub fn changed_by(&mut self, setting: &str) -> Result<Vec<SettingChanges>, LabError> {
        let mut all = Vec::new();
        for host in self.hosts() {
            let writes: Vec<SwitchWrite> = host.ask(HostRequest::Writes)?;
            if !writes.is_empty() {
                all.push(SettingChanges {
                    setting: String::from(setting),
                    host: String::from(host.name()),
                    writes,
                });
            }
        }
        Ok(all)
    }

    /// Every value of the interfaces that can affect receiving, by name: features, NAPI values, and files in sysfs.
    pub fn settings(&mut self) -> Result<BTreeMap<String, String>, LabError> {
        self.values(HostRequest::Values)
    }

    /// Returns the hosts' answers to a request for values, by name.
    fn values(&mut self, request: HostRequest) -> Result<BTreeMap<String, String>, LabError> {
        let mut all = BTreeMap::new();
        for host in self.way() {
            let name = String::from(host.name());
            let values: BTreeMap<String, String> = host
                .ask(request.clone())
                .doing(|| format!("reading the {name}'s settings"))?;
            let values = values.into_iter();
            all.extend(values.map(|(value, text)| (format!("{name}: {value}"), text)));
        }
        Ok(all)
    }

    /// Describes the receiver's machine. Some sysctls are read in its namespace, the others in the machine's.
    pub fn machine(&mut self) -> Result<HostFacts, LabError> {
        let mut machine = self.receiver.facts()?.machine;
        if self.is_apart() {
            return Ok(machine);
        }
        let own: BTreeMap<_, _> = machine.sysctls.drain(..).collect();
        let mut all: BTreeMap<_, _> = nicpoll_inspect::sysctls().into_iter().collect();
        all.extend(own);
        machine.sysctls = all.into_iter().collect();
        Ok(machine)
    }

    /// Description of the lab, for the document.
    pub fn facts(&mut self) -> Result<LabFacts, LabError> {
        let hosts = self.lab_hosts()?;
        let receiver = self.receiver.facts()?;
        let sender_inode = self.sender.facts()?.netns_inode;
        let link = &self.link;
        let addresses = |side: Side| {
            let addresses = link.end(side).addresses.iter();
            addresses.map(move |(address, prefix)| (side, format!("{address}/{prefix}")))
        };
        Ok(LabFacts {
            is_virtual: link.is_virtual,
            interface: link.end(Side::Receiver).interfaces[0].clone(),
            driver: receiver.driver,
            line_bits_per_second: link.line.ok().map(|line| line.bits_per_second.get()),
            no_line_because: link.line.err().map(String::from),
            mtu_bytes: link.mtu_bytes,
            ring_slots: link.ring_slots,
            netns_inodes: vec![
                (Side::Sender, sender_inode),
                (Side::Receiver, receiver.netns_inode),
            ],
            addresses: addresses(Side::Sender)
                .chain(addresses(Side::Receiver))
                .collect(),
            kept_as: self.kept_as.clone(),
            sender_cpu: self.sender_cpu,
            receiver_cpu: self.receiver_cpu,
            send_mode: String::from("one datagram a send call; no UDP_SEGMENT"),
            receive_mode: String::from(
                "up to 32 datagrams a recvmmsg call, payload copied; no UDP_GRO",
            ),
            hosts,
        })
    }

    /// Describes the hosts that are machines of their own.
    fn lab_hosts(&mut self) -> Result<Vec<LabHost>, LabError> {
        let Some(apart) = &self.apart else {
            return Ok(Vec::new());
        };
        let hosts = apart.hosts.clone();
        let mut all = Vec::new();
        for host in self.way() {
            let interface: HostInterface = host.ask(HostRequest::Interface)?;
            let place = hosts.place(host.name()).cloned().unwrap_or_default();
            all.push(LabHost {
                host: String::from(host.name()),
                interfaces: place.interfaces(),
                ssh: place.ssh,
                machine: host.facts()?.machine,
                carries_ssh: interface.carries_ssh,
            });
        }
        Ok(all)
    }

    /// When traffic that should end within `longest` is abandoned.
    pub(crate) fn give_up_at(&self, longest: Duration) -> Instant {
        let own = Instant::now() + longest;
        self.deadline.map_or(own, |deadline| deadline.min(own))
    }

    /// Counts an abandoned end. The error is `what`, unless the study's time is over: then it may not have hung.
    pub(crate) fn hung(&mut self, what: String) -> LabError {
        self.hung_ends += 1;
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => LabError::OutOfTime,
            _ => LabError::Traffic(what),
        }
    }

    /// A new number for an end of a workload.
    pub(crate) fn next_end(&mut self) -> u32 {
        self.ends += 1;
        self.ends
    }
}

/// The NAPI instance whose polls are counted; `None` (all) if there are several.
pub fn watched(napis: &[u32]) -> Option<u32> {
    match napis {
        [only] => Some(*only),
        _ => None,
    }
}
