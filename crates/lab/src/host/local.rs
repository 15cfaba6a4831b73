//! A network namespace of this machine as a host.
//!
//! Everything that reads or changes its network runs on the thread that lives in the namespace, so an interface of the
//! same name in another namespace can never be touched.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fs, io};

use nicpoll_model::{Side, SwitchValue, SwitchWrite};
use nicpoll_observe::clock::{clock_ns, monotonic_ns};
use nicpoll_observe::{
    AttachedXdp, CpuSample, ExactCpu, ExactCpuOptions, ExactSample, FlowReader, HostCounters,
    PollCounter, ThreadTimes, TimedRuns, start_timing,
};
use nicpoll_switch::knob::table::GRO;
use nicpoll_switch::{
    Control, GRO_FEATURE, Held, Interface, InterfacePart, Journal, KnobValues, Needs, Order, Owner,
    Request, Switch, Target, VETH_RING_SLOTS, supported,
};
use nicpoll_sys::ethtool;
use nicpoll_sys::netns::{NetNamespace, NetnsThread};
use nicpoll_traffic::workload::EndTerms;
use rustix::time::ClockId;
use serde::Serialize;
use serde_json::Value;

use crate::error::{Doing, HostFailure, LabError, Refused};
use crate::host::changes::{Changes, NotifiedSockets};
use crate::host::commands::{Around, RunningCommand, interface_values};
use crate::host::cpu::{CoreTime, of_study, own_process, split};
use crate::host::threads::{
    CpuSpinner, ENGINE_THREAD, RECEIVER_THREAD, RunningEnds, SENDER_THREAD, Sampling,
};
use crate::host::{
    Counter, Edge, Facts, Host, HostCommand, HostEvent, HostInterface, HostMessage, HostRequest,
    Polls, RefusedCounters, Timed,
};
use crate::link::veth::add_neighbour;
use crate::receive::{EngineReceiver, EngineRequest, Inlet, XdpProgram};

/// The driver of virtual pairs, which reports no ring size.
const VETH: &str = "veth";

/// The port of RFC 863. Any would do: connecting a UDP socket sends nothing.
const DISCARD_PORT: u16 = 9;

/// A namespace, with a resident thread in it.
pub struct LocalHost {
    served: ServedHost,
    inbox: mpsc::Receiver<HostEvent>,
}

/// The requests' end of a host in a namespace. Its events go to a channel.
pub struct ServedHost {
    // Dropped first: traffic ends before its namespace goes.
    ends: RunningEnds,
    thread: NetnsThread<Resident>,
    outbox: mpsc::Sender<HostEvent>,
}

impl LocalHost {
    /// A host in `namespace`. Settings apply to each of `interfaces`; polls and NAPI instances are read of the first.
    /// Changes are recorded in `journal` for `owner`: this process or its guard.
    ///
    /// # Errors
    /// `EPERM` without CAP_SYS_ADMIN.
    pub fn new(
        namespace: NetNamespace,
        interfaces: Vec<String>,
        journal: &Journal,
        owner: Owner,
    ) -> io::Result<Self> {
        let (outbox, inbox) = mpsc::channel();
        let served = ServedHost::new(namespace, interfaces, journal, owner, outbox)?;
        Ok(LocalHost { served, inbox })
    }
}

impl ServedHost {
    /// As [`LocalHost::new`].
    pub fn new(
        namespace: NetNamespace,
        interfaces: Vec<String>,
        journal: &Journal,
        owner: Owner,
        outbox: mpsc::Sender<HostEvent>,
    ) -> io::Result<Self> {
        let journal = journal.clone();
        let netns_inode = namespace.inode();
        let thread = NetnsThread::enter(namespace, move || Resident {
            netns_inode,
            counters: HostCounters::explained_on_demand(),
            interfaces,
            control: Control::new(),
            switch: Switch::new(journal),
            owner,
            xdp: Vec::new(),
            napi_program: Vec::new(),
            lacks_napi: None,
            held: None,
            commands: None,
            command: None,
            polls: None,
            exact_cpu: None,
            cpu_window: None,
            own_process: None,
            engine: None,
            spinner: None,
            listener: None,
            sampling: None,
            timing: None,
        })?;
        Ok(ServedHost {
            ends: RunningEnds::new(outbox.clone()),
            thread,
            outbox,
        })
    }

    /// Fulfils a request; false if nobody takes events any more.
    pub fn handle(&mut self, HostMessage { id, request }: HostMessage) -> bool {
        let answer = self.answer(request);
        self.outbox.send(HostEvent::Answered { id, answer }).is_ok()
    }

    fn answer(&mut self, request: HostRequest) -> Result<Value, HostFailure> {
        match request {
            HostRequest::Prepare {
                end,
                workload,
                terms,
                at,
                cpu,
            } => {
                let inlet = match terms.side {
                    Side::Receiver => self.thread.run(|resident| resident.inlet()),
                    Side::Sender => Ok(None),
                };
                let inlet = inlet.map_err(HostFailure::of)?;
                let workload = move |terms: &EndTerms| match inlet {
                    Some(inlet) => inlet.prepare(workload.workload(), terms),
                    None => workload.workload().prepare(terms),
                };
                self.ends
                    .prepare(&self.thread, end, workload, terms, (at, cpu))?;
            }
            HostRequest::Start(end) => self.ends.start(end)?,
            HostRequest::SenderDone(end) => self.ends.sender_done(end)?,
            request => {
                if request == HostRequest::Restore {
                    self.ends.cancel();
                }
                let answer = self.thread.run(move |resident| resident.answer(request));
                return answer
                    .map_err(LabError::from)
                    .and_then(|answer| answer)
                    .map_err(HostFailure::of);
            }
        }
        Ok(Value::Null)
    }
}

impl Host for LocalHost {
    fn send(&mut self, message: HostMessage) -> Result<(), HostFailure> {
        // This value owns the other end of the channel.
        self.served.handle(message);
        Ok(())
    }

    fn next_event(&mut self, timeout: Duration) -> Result<Option<HostEvent>, HostFailure> {
        Ok(self.inbox.recv_timeout(timeout).ok())
    }
}

/// State of the thread in the namespace.
struct Resident {
    netns_inode: u64,
    /// The interfaces, the studied one first.
    interfaces: Vec<String>,
    control: Control,
    switch: Switch,
    /// Owner of the changes.
    owner: Owner,
    counters: HostCounters,
    /// The XDP program of each interface, while there is one.
    xdp: Vec<AttachedXdp>,
    /// A program that only gives each interface its NAPI, in the place of another.
    napi_program: Vec<AttachedXdp>,
    /// Whether a veth here has no NAPI even with GRO on, once known.
    lacks_napi: Option<bool>,
    /// The changes in force.
    held: Option<Held>,
    /// The user's commands, from the first one until they are undone.
    commands: Option<Around>,
    /// The last started one of them.
    command: Option<RunningCommand>,
    polls: Option<PollCounter>,
    exact_cpu: Option<ExactCpu>,
    /// Reading of the CPU account at the start of the open window.
    cpu_window: Option<(ExactSample, Vec<ThreadTimes>)>,
    /// This process's number in the CPU account, once known.
    own_process: Option<u32>,
    /// The engine that receives in place of sockets, if the setting has one.
    engine: Option<EngineReceiver>,
    spinner: Option<CpuSpinner>,
    /// Listens for changes, from the first request for them.
    listener: Option<NotifiedSockets>,
    /// Periodic readings, while a series is open.
    sampling: Option<Sampling>,
    timing: Option<Timing>,
}

/// The kernel times BPF programs while the descriptor is open.
struct Timing {
    _enabled: OwnedFd,
    before: TimedRuns,
    since: Instant,
}

impl Resident {
    fn answer(&mut self, request: HostRequest) -> Result<Value, LabError> {
        match request {
            HostRequest::Facts => answer(self.facts()?),
            HostRequest::Interface => answer(self.interface()?),
            HostRequest::Ways(to) => answer(self.ways(to)?),
            HostRequest::Values => answer(interface_values(&mut self.control, &self.interfaces)?),
            HostRequest::Changes => answer(self.changes()?),
            HostRequest::Napis => answer(self.napis()?),
            HostRequest::Apply(request) => answer(self.apply(&request)?),
            HostRequest::Writes => answer(self.writes()?),
            HostRequest::BeginCommands(after) => answer(self.begin_commands(after)?),
            HostRequest::StartCommand(command) => {
                self.command = Some(RunningCommand::new(&command, &self.interfaces));
                answer(())
            }
            HostRequest::CommandEnded => {
                answer(begun(self.command.as_mut(), "a command")?.has_ended()?)
            }
            HostRequest::ValuesBefore => answer(match &self.commands {
                Some(own) => own.changed(&mut self.control, &self.interfaces)?,
                None => BTreeMap::new(),
            }),
            HostRequest::AttachXdp(program) => answer(self.attach_xdp(&program)?),
            HostRequest::ReceiveBy { engine, cpu } => answer(self.receive_by(&engine, cpu)?),
            HostRequest::Restore => answer(self.restore()?),
            HostRequest::Neighbour { address, mac } => {
                answer(add_neighbour(self.first()?.ifindex, address, &mac)?)
            }
            HostRequest::LoadCounters => answer(self.load_counters()),
            HostRequest::Count { counter, is_on } => answer(self.count(counter, is_on)?),
            HostRequest::WatchPolls(napi_id) => answer(self.watch_polls(napi_id)?),
            HostRequest::Polls => answer(self.polls()?),
            HostRequest::Edge => answer(self.edge()?),
            HostRequest::CpuTime => answer(CpuSample::now().doing(|| "reading /proc/stat")?),
            HostRequest::Counters => answer(self.counters.snapshot()),
            HostRequest::Waiting => answer(self.waiting_packets()?),
            HostRequest::OpenSeries { step, ip, cores } => {
                let polls = self.polls.as_ref().map(PollCounter::reader);
                let reader = FlowReader::of_caller(ip, polls, &cores)?;
                self.sampling = Some(Sampling::start(reader, step)?);
                answer(())
            }
            HostRequest::CloseSeries => {
                answer(begun(self.sampling.take(), "a series of readings")?.end()?)
            }
            HostRequest::OpenCpuWindow => {
                let threads = self.exact_cpu()?.threads()?;
                self.cpu_window = Some((self.exact_cpu()?.read()?, threads));
                answer(())
            }
            HostRequest::CloseCpuWindow { cpus, bound } => {
                answer(self.close_cpu_window(&cpus, bound)?)
            }
            HostRequest::StartSpinner { cpu, duration } => {
                self.spinner = Some(CpuSpinner::start(cpu, duration)?);
                answer(())
            }
            HostRequest::EndSpinner => answer(begun(self.spinner.take(), "a spinner")?.end()?),
            HostRequest::OpenTiming(counter) => answer(self.open_timing(counter)?),
            HostRequest::CloseTiming(counter) => answer(self.close_timing(counter)?),
            HostRequest::Prepare { .. } | HostRequest::Start(..) | HostRequest::SenderDone(..) => {
                let what = "traffic does not run on the thread in the namespace";
                Err(LabError::Unexpected(String::from(what)))
            }
        }
    }

    fn begin_commands(&mut self, after: Vec<HostCommand>) -> Result<(), LabError> {
        let begun = Around::begin(&mut self.control, &self.interfaces, after)?;
        self.commands = Some(begun);
        Ok(())
    }

    /// Counts the packets in the queueing disciplines of the host's interfaces.
    fn waiting_packets(&mut self) -> Result<u64, LabError> {
        let ifindexes = self.ifindexes()?;
        Ok(self.counters.waiting_packets(&ifindexes)?)
    }

    fn ifindexes(&mut self) -> Result<Vec<u32>, LabError> {
        let names = self.interfaces.iter();
        let all = names.map(|name| Ok(self.control.interface(name)?.ifindex));
        all.collect()
    }

    fn facts(&mut self) -> Result<Facts, LabError> {
        let first = self.first()?;
        // The kernel names a link kind for every interface without a card, and ethtool the card's driver.
        let driver = match first.driver.is_empty() {
            true => ethtool::driver(&first.name).map(|driver| driver.name),
            false => Ok(first.driver),
        };
        Ok(Facts {
            machine: nicpoll_inspect::host_facts()?,
            netns_inode: self.netns_inode,
            driver: driver.unwrap_or_default(),
        })
    }

    /// Describes the studied interface, and lists the addresses of all.
    fn interface(&mut self) -> Result<HostInterface, LabError> {
        let name = self.interfaces[0].clone();
        let links = self.control.links()?;
        let absent = |name: &&String| links.iter().all(|link| link.interface.name != **name);
        if let Some(name) = self.interfaces.iter().find(absent) {
            let known: Vec<&str> = links.iter().map(|link| &*link.interface.name).collect();
            let known = known.join(", ");
            let why = format!("there is no interface '{name}'; there are {known}");
            return Err(Refused(why).into());
        }
        let link = self.control.link_named(&name)?;
        let own = self.ifindexes()?;
        let all = self.control.addresses()?.into_iter();
        let own = all.filter(|(index, address, _)| own.contains(index) && is_global(address));
        let ring_slots = match link.interface.driver.as_str() {
            VETH => Some(VETH_RING_SLOTS),
            _ => {
                let slots = self.control.rx_ring_slots(link.interface.ifindex);
                slots.ok().flatten()
            }
        };
        let speed = self.control.link_bits_per_second(link.interface.ifindex);
        let carries_ssh = self.carries_ssh()?;
        Ok(HostInterface {
            name,
            is_up: link.is_up,
            driver: link.interface.driver,
            addresses: own.map(|(_, address, prefix)| (address, prefix)).collect(),
            mtu_bytes: link.mtu_bytes,
            ring_slots,
            bits_per_second: speed.ok().flatten(),
            carries_ssh,
            netns_inode: self.netns_inode,
        })
    }

    /// Returns whether an interface carries the ssh connection of this process's user, directly or below a bridge, bond
    /// or VLAN.
    fn carries_ssh(&mut self) -> Result<bool, LabError> {
        self.switch.enter(None)?;
        let orders = self.orders(&InterfacePart::Whole, &KnobValues::default())?;
        Ok(self.switch.carries_own_ssh(self.netns_inode, &orders)?)
    }

    /// Orders these values for a part of each interface.
    fn orders(
        &mut self,
        part: &InterfacePart,
        values: &KnobValues,
    ) -> Result<Vec<Order>, LabError> {
        let order = |name: &String| {
            Ok(Order {
                target: Target {
                    netns_inode: self.netns_inode,
                    interface: self.control.interface(name)?,
                },
                part: part.clone(),
                values: values.clone(),
            })
        };
        self.interfaces.iter().map(order).collect()
    }

    /// Returns those of another host's addresses that traffic reaches through an interface of this one.
    fn ways(&mut self, to: Vec<(IpAddr, u8)>) -> Result<Vec<(IpAddr, u8)>, LabError> {
        let own: Vec<IpAddr> = {
            let own = self.interface()?.addresses.into_iter();
            own.map(|(address, _)| address).collect()
        };
        let leads = |far: &IpAddr| -> io::Result<bool> {
            let any = match far {
                IpAddr::V4(_) => "0.0.0.0:0",
                IpAddr::V6(_) => "[::]:0",
            };
            let socket = UdpSocket::bind(any)?;
            // Sends nothing; fails without a route.
            let connected = socket.connect(SocketAddr::new(*far, DISCARD_PORT));
            Ok(connected.is_ok() && own.contains(&socket.local_addr()?.ip()))
        };
        let mut ways = Vec::new();
        for (far, prefix) in to {
            if leads(&far)? {
                ways.push((far, prefix));
            }
        }
        Ok(ways)
    }

    /// The studied interface.
    fn first(&mut self) -> Result<Interface, LabError> {
        Ok(self.control.interface(&self.interfaces[0])?)
    }

    fn napis(&mut self) -> Result<Vec<u32>, LabError> {
        let ifindex = self.first()?.ifindex;
        // Kernels before 6.8 list them to BPF alone.
        let napis = supported(self.control.napis(ifindex))?.unwrap_or_default();
        Ok(napis.iter().map(|napi| napi.id).collect())
    }

    /// Whether a veth here has no receive NAPI even with GRO on, as before Linux 5.13.
    fn lacks_napi(&mut self) -> Result<bool, LabError> {
        if let Some(known) = self.lacks_napi {
            return Ok(known);
        }
        let Interface {
            ifindex, driver, ..
        } = self.first()?;
        let control = &mut self.control;
        let mut lacks = driver == VETH;
        if lacks {
            let gro = |on| BTreeMap::from([(String::from(GRO_FEATURE), on)]);
            let was = control.features(ifindex)?.wanted.get(GRO_FEATURE) == Some(&true);
            control.set_features(ifindex, &gro(true))?;
            lacks = supported(control.napis(ifindex))?.is_some_and(|napis| napis.is_empty());
            control.set_features(ifindex, &gro(was))?;
        }
        self.lacks_napi = Some(lacks);
        Ok(lacks)
    }

    fn apply(&mut self, request: &Request) -> Result<(), LabError> {
        let has_program = !self.xdp.is_empty() || !self.napi_program.is_empty();
        let wants_napi = request.set.number(&GRO) == Some(1) && self.engine.is_none();
        if wants_napi && !has_program && self.lacks_napi()? {
            self.napi_program = self.attached(&XdpProgram::default())?;
        }
        self.switch.enter(None)?;
        let orders = self.orders(&request.interface.part, &request.set)?;
        if let Some(held) = &mut self.held {
            return Ok(held.change(&mut self.switch, &orders, Needs::Trust)?);
        }
        self.switch.require_unchanged(&orders)?;
        // The needs of polling at the other end are in that host's own request.
        let held = self.switch.hold(&orders, Needs::Trust, self.owner)?;
        self.held = Some(held);
        Ok(())
    }

    /// Keeps the program when a setting is applied again to change its timeout.
    fn attach_xdp(&mut self, program: &XdpProgram) -> Result<(), LabError> {
        if self.xdp.is_empty() {
            self.napi_program.clear();
            self.xdp = self.attached(program)?;
        }
        Ok(())
    }

    fn attached(&mut self, program: &XdpProgram) -> Result<Vec<AttachedXdp>, LabError> {
        let attach = |interface: &String| {
            let ifindex = self.control.interface(interface)?.ifindex;
            let attached = program.attach(ifindex);
            attached.doing(|| format!("putting an XDP program on {interface}"))
        };
        self.interfaces.iter().map(attach).collect()
    }

    /// Keeps the engine when a setting is applied again to change its timeout.
    fn receive_by(&mut self, request: &EngineRequest, cpu: u32) -> Result<(), LabError> {
        if self.engine.is_none() {
            self.napi_program.clear();
            let interface = &self.interfaces[0];
            let engine = EngineReceiver::start(interface, request, cpu);
            let engine = engine.doing(|| format!("starting the engine at {interface}"))?;
            self.engine = Some(engine);
        }
        Ok(())
    }

    /// Returns where the engine delivers datagrams; `None` while sockets receive.
    fn inlet(&self) -> Option<Inlet> {
        self.engine.as_ref().map(EngineReceiver::inlet)
    }

    fn writes(&mut self) -> Result<Vec<SwitchWrite>, LabError> {
        let mut writes = self.held.as_ref().map_or_else(Vec::new, Held::writes);
        let programs = self.interfaces.iter().zip(&self.napi_program);
        writes.extend(programs.map(|(interface, _)| SwitchWrite {
            interface: interface.clone(),
            netns_inode: self.netns_inode,
            napi_id: None,
            name: String::from("XDP program (for a NAPI)"),
            before: SwitchValue::Words(String::from("none")),
            after: SwitchValue::Words(XdpProgram::default().words()),
            is_implied: false,
        }));
        if let Some(own) = &self.commands {
            let of = self.netns_inode;
            writes.extend(own.writes(&mut self.control, &self.interfaces, of)?);
        }
        Ok(writes)
    }

    /// Restores everything. Returns what commands changed and nobody undid, in words.
    fn restore(&mut self) -> Result<Vec<String>, LabError> {
        self.command = None;
        let ended = self.commands.take();
        let left = ended.map(|own| own.end(&mut self.control, &self.interfaces));
        // Attached last, removed first: the other end's offloads return before its own values are restored.
        self.engine = None;
        self.xdp.clear();
        self.napi_program.clear();
        self.sampling = None;
        if let Some(held) = self.held.take() {
            let restored = held.restore(&mut self.switch);
            restored.doing(|| "putting back its settings")?;
        }
        Ok(left.unwrap_or_default())
    }

    fn load_counters(&mut self) -> RefusedCounters {
        let polls = PollCounter::load();
        let loaded = ExactCpu::load(&ExactCpuOptions {
            has_threads: true,
            ..ExactCpuOptions::default()
        });
        let refused = RefusedCounters {
            polls: polls.as_ref().err().map(ToString::to_string),
            exact_cpu: loaded.as_ref().err().map(ToString::to_string),
        };
        (self.polls, self.exact_cpu) = (polls.ok(), loaded.ok());
        refused
    }

    fn changes(&mut self) -> Result<Changes, LabError> {
        let ifindexes = self.ifindexes()?;
        let listener = match self.listener.take() {
            Some(listener) => listener,
            None => NotifiedSockets::new()?,
        };
        Ok(self.listener.insert(listener).changes(&ifindexes)?)
    }

    fn watch_polls(&mut self, napi_id: Option<u32>) -> Result<(), LabError> {
        match &mut self.polls {
            Some(polls) => Ok(polls.watch(self.netns_inode, napi_id)?),
            None => Ok(()),
        }
    }

    fn poll_counter(&mut self) -> Result<&mut PollCounter, LabError> {
        begun(self.polls.as_mut(), "the counter of polls")
    }

    fn exact_cpu(&mut self) -> Result<&mut ExactCpu, LabError> {
        begun(self.exact_cpu.as_mut(), "the account of CPU time")
    }

    fn count(&mut self, counter: Counter, is_on: bool) -> Result<(), LabError> {
        match (counter, is_on) {
            (Counter::Polls, true) => self.poll_counter()?.programs.attach()?,
            (Counter::Polls, false) => self.poll_counter()?.programs.detach()?,
            (Counter::Cpu, true) => self.exact_cpu()?.attach()?,
            (Counter::Cpu, false) => self.exact_cpu()?.detach()?,
        }
        Ok(())
    }

    fn polls(&mut self) -> Result<Polls, LabError> {
        Ok(Polls {
            at_ns: monotonic_ns(),
            counts: self.polls.as_ref().map(PollCounter::read).transpose()?,
        })
    }

    fn edge(&mut self) -> Result<Edge, LabError> {
        Ok(Edge {
            polls: self.polls()?,
            cpu: CpuSample::now().doing(|| "reading /proc/stat")?,
            wall_ahead_ns: clock_ns(ClockId::Realtime) - clock_ns(ClockId::Monotonic),
            load_average_1min: load_average(),
        })
    }

    fn close_cpu_window(
        &mut self,
        cpus: &[u32],
        [sender, receiver]: [Option<u32>; 2],
    ) -> Result<Vec<CoreTime>, LabError> {
        let after = self.exact_cpu()?.read()?;
        let threads = self.exact_cpu()?.threads()?;
        let (before, threads_before) = begun(self.cpu_window.take(), "a window of CPU time")?;
        let process = match self.own_process {
            Some(process) => process,
            None => own_process(self.exact_cpu()?)?,
        };
        self.own_process = Some(process);
        let study = of_study(&threads_before, &threads, process);
        // The ends are bound to the requested cores; a sender at full speed may not have left its core yet, and then
        // has no name.
        let core_of = |name: &str| match name {
            "" => sender,
            _ if name.starts_with(ENGINE_THREAD) => receiver,
            _ if name.starts_with(SENDER_THREAD) => sender,
            _ if name.starts_with(RECEIVER_THREAD) => receiver,
            _ => None,
        };
        Ok(split(after.since(&before, cpus), &study, core_of))
    }

    fn timed_runs(&mut self, counter: Counter) -> Result<TimedRuns, LabError> {
        Ok(match counter {
            Counter::Polls => self.poll_counter()?.programs.timed_runs()?,
            Counter::Cpu => self.exact_cpu()?.programs.timed_runs()?,
        })
    }

    fn open_timing(&mut self, counter: Counter) -> Result<(), LabError> {
        self.timing = Some(Timing {
            _enabled: start_timing()?,
            before: self.timed_runs(counter)?,
            since: Instant::now(),
        });
        Ok(())
    }

    fn close_timing(&mut self, counter: Counter) -> Result<Timed, LabError> {
        let timing = begun(self.timing.take(), "a timing of counters")?;
        Ok(Timed {
            seconds: timing.since.elapsed().as_secs_f64(),
            runs: self.timed_runs(counter)?.since(timing.before),
        })
    }
}

impl Drop for Resident {
    /// Restores after an error or a panic elsewhere. If this fails, the guard or the next start restores.
    fn drop(&mut self) {
        let _ = self.restore();
    }
}

fn answer(value: impl Serialize) -> Result<Value, LabError> {
    Ok(serde_json::to_value(value).map_err(io::Error::from)?)
}

/// Returns what an earlier request began, or an error that names it.
fn begun<T>(begun: Option<T>, what: &str) -> Result<T, LabError> {
    begun.ok_or_else(|| LabError::Unexpected(format!("{what} was asked for and is not there")))
}

fn is_global(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => true,
        IpAddr::V6(address) => !address.is_unicast_link_local(),
    }
}

fn load_average() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use nicpoll_testkit::needs;

    use super::*;
    use crate::host::INTERFACE;
    use crate::link::veth::Veth;

    #[test]
    fn a_veth_that_gro_gives_no_napi_has_a_program_until_it_is_restored() {
        needs!(Root);
        let journal = tempfile::tempdir().unwrap();
        let veth = Veth::build().unwrap();
        let host = LocalHost::new(
            veth.namespace(Side::Receiver).try_clone().unwrap(),
            vec![String::from(INTERFACE)],
            &Journal::at(journal.path()),
            Owner::this_process().unwrap(),
        );
        let request = Request::of(INTERFACE, KnobValues::new().with(&GRO, 1));
        let programs = |lacks_napi: bool| {
            let request = request.clone();
            let host = host.as_ref().unwrap();
            let seen = host.served.thread.run(move |resident| {
                resident.lacks_napi = Some(lacks_napi);
                resident.apply(&request).unwrap();
                let ifindex = resident.first().unwrap().ifindex;
                let is_taken = XdpProgram::default().attach(ifindex).is_err();
                let writes = resident.writes().unwrap();
                resident.restore().unwrap();
                let is_free = XdpProgram::default().attach(ifindex).is_ok();
                assert!(is_free);
                (is_taken, writes.len())
            });
            seen.unwrap()
        };
        assert_eq!(programs(false), (false, 1));
        assert_eq!(programs(true), (true, 2));
    }
}
