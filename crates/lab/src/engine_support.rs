//! Support for the engines of a program (`sink`, `forward` and others): the kernel's side of receiving, changed
//! through the switch and held by a guard; the account of the kernel's CPU time; changes at the other end of a veth;
//! packet checks.
//!
//! An interface that carries the caller's own ssh connection is never changed.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

use crate::error::Refused;
use nicpoll_engine::{
    CpuAccount, Drive, EngineApplication, EngineError, GrantedSetup, Helpers, KernelSide, MarkIds,
    Named, PacketCheck, ReceiveWish, SetupError, Sink, unknown_among,
};
use nicpoll_iperf::udp::ClientIds;
use nicpoll_model::engine::{KernelSideFacts, LinkEvent, SinkEnd, SinkInterval, SinkStart};
use nicpoll_observe::clock::clock_ns;
use nicpoll_observe::{BpfError, CpuTimes, ExactCpu, ExactCpuOptions, ExactSample, SOFTIRQ_NAMES};
use nicpoll_switch::knob::table;
use nicpoll_switch::{
    Guard, Held, InterfaceFacts, Journal, KnobValues, Name, Needs, Order, POLLING_PERIOD_NS, Peer,
    Resolved, Switch, Value, guard_of_this_program, recover, require_privileges,
};
use nicpoll_sys::schedule::{self, Policy};
use nicpoll_sys::xdp::AttachMode;
use nicpoll_traffic::netrate::NetrateIds;
use rustix::time::ClockId;

/// The settings in force, and the guard that restores them.
struct Granted {
    switch: Switch,
    held: Option<Held>,
    facts: KernelSideFacts,
    // Dropped last, when nothing is left to undo.
    _guard: Guard,
}

impl Helpers for EngineSupport {
    fn account_of(&self, cpu: u32) -> Option<Box<dyn CpuAccount>> {
        self.is_charged.then(|| self.of_cpu(cpu)).flatten()
    }

    fn set_up(&self, wish: &ReceiveWish) -> Result<Box<dyn GrantedSetup>, SetupError> {
        let ReceiveWish {
            interface, side, ..
        } = *wish;
        require_privileges()?;
        let journal = Journal::of_this_machine();
        recover(&journal)?;
        let mut switch = Switch::new(journal.clone());
        let cpus = match wish.kernel_cpus {
            [] => thread_cpus(&schedule::allowed_cpus()?, wish.engine_cpus),
            cpus => cpus.to_vec(),
        };
        let wanted = values(side, &cpus, wish.engine_cpus);
        let mut orders = orders(&mut switch, interface, &wanted)?;
        let facts = switch.survey(&orders)?;
        for (order, facts) in orders.iter_mut().zip(&facts) {
            if facts.napis().is_empty() {
                order.values.insert(&table::GRO, Value::Number(1));
            }
        }
        let netns_inode = orders.first().map_or(0, |order| order.target.netns_inode);
        if switch.carries_own_ssh(netns_inode, &orders)? {
            return Err("it carries your ssh connection".into());
        }
        let guard = Guard::start(guard_of_this_program()?, &journal, None)?;
        // The engine's XDP program keeps offloads at the other end of a veth off.
        let held = switch.hold(&orders, Needs::Trust, guard.owner())?;
        let changes = orders.iter().flat_map(|order| order.values.list());
        let changes = changes.map(|(name, value)| format!("{name} {value}"));
        Ok(Box::new(Granted {
            facts: KernelSideFacts {
                name: String::from(side.name()),
                thread_cpus: match side {
                    KernelSide::Threaded => cpus,
                    KernelSide::Polling | KernelSide::AsIs => Vec::new(),
                },
                changes: changes.collect(),
            },
            switch,
            held: Some(held),
            _guard: guard,
        }))
    }
}

impl Granted {
    fn restore_held(&mut self) -> Result<(), SetupError> {
        match self.held.take() {
            Some(held) => Ok(held.restore(&mut self.switch)?),
            None => Ok(()),
        }
    }
}

impl GrantedSetup for Granted {
    fn facts(&self) -> KernelSideFacts {
        self.facts.clone()
    }

    fn restore(mut self: Box<Self>) -> Result<(), SetupError> {
        self.restore_held()
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        // If this fails, the guard restores.
        let _ = self.restore_held();
    }
}

/// Returns the facts of an interface in the calling thread's network namespace. Refuses one whose packets arrive at
/// others.
pub fn facts_of(interface: &str) -> Result<Vec<InterfaceFacts>, SetupError> {
    let mut switch = Switch::new(Journal::of_this_machine());
    let orders = orders(&mut switch, interface, &KnobValues::new())?;
    Ok(switch.survey(&orders)?)
}

/// Returns the kernel's threads that poll an interface of the calling thread's network namespace.
pub fn napi_threads(interface: &str) -> Result<Vec<u32>, SetupError> {
    let facts = facts_of(interface)?;
    let napis = facts.iter().flat_map(|facts| facts.napis());
    Ok(napis.filter_map(|napi| napi.thread_pid).collect())
}

fn orders(
    switch: &mut Switch,
    interface: &str,
    values: &KnobValues,
) -> Result<Vec<Order>, SetupError> {
    let netns_inode = switch.enter(None)?;
    let names = [Name::whole(interface)];
    let resolved = switch.resolve(&names, values, netns_inode, Needs::Trust);
    let Resolved { orders, .. } = resolved?;
    match orders
        .iter()
        .any(|order| order.target.interface.name != interface)
    {
        true => Err("its packets arrive at other interfaces; name one of those".into()),
        false => Ok(orders),
    }
}

/// Returns the switch's values for a side.
fn values(side: KernelSide, cpus: &[u32], engine_cpus: &[u32]) -> KnobValues {
    match side {
        KernelSide::AsIs => KnobValues::new(),
        KernelSide::Threaded => {
            let mut values = KnobValues::new().with(&table::THREADED, 1);
            values.insert(&table::THREAD_CPUS, Value::Cpus(cpus.to_vec()));
            if is_held_back(cpus, engine_cpus) {
                // The engine lets them run in the network's part of each tick.
                values.insert(&table::THREAD_POLICY, Value::Policy(Policy::Idle));
            }
            values
        }
        KernelSide::Polling => KnobValues::polling(POLLING_PERIOD_NS),
    }
}

/// Returns whether the kernel's threads share their only CPU with the engine, which then decides when they run.
pub fn is_held_back(kernel_cpus: &[u32], engine_cpus: &[u32]) -> bool {
    matches!(kernel_cpus, [cpu] if engine_cpus.contains(cpu))
}

/// Returns the CPUs that the engine leaves free, or the engine's own if there are no others.
fn thread_cpus(allowed: &[u32], engine_cpus: &[u32]) -> Vec<u32> {
    let free = allowed.iter().filter(|cpu| !engine_cpus.contains(cpu));
    let free: Vec<u32> = free.copied().collect();
    if free.is_empty() {
        engine_cpus.to_vec()
    } else {
        free
    }
}

/// How NAPI threads are scheduled in the network's part of a tick: before ordinary programs, after the engine.
const RECEIVING: Policy = Policy::Fifo { priority: 2 };

/// Support for an engine of a program that has a guard.
///
/// An engine may be charged for kernel time on its CPUs: interrupts and network soft interrupts by events, NAPI threads by
/// their clocks. A thread counts on a CPU only if it can run nowhere else. Without BPF soft interrupts are unknown, and
/// [`EngineSupport::gap`] says so.
pub struct EngineSupport {
    interfaces: Vec<String>,
    /// Whether the kernel's CPU time is charged.
    pub is_charged: bool,
    /// Loaded for the first engine: each event costs the CPUs something.
    events: OnceCell<Option<Arc<ExactCpu>>>,
    holds_back: bool,
    gap: RefCell<Option<String>>,
}

impl EngineSupport {
    /// Makes the support for an engine at interfaces of the calling thread's network namespace. Only an engine that
    /// polls by the clock is charged for the kernel's work. With `side` threaded, it schedules the threads that were
    /// bound to the engine's CPU. Settings of an engine that was killed together with its guard are restored first.
    pub fn of(interfaces: &[&str], drive: Drive, side: KernelSide) -> Self {
        // Without the privilege nothing can be restored; the next privileged run will.
        let _ = recover(&Journal::of_this_machine());
        EngineSupport {
            interfaces: interfaces.iter().map(|name| String::from(*name)).collect(),
            is_charged: drive.polls(),
            events: OnceCell::new(),
            holds_back: side == KernelSide::Threaded,
            gap: RefCell::new(None),
        }
    }

    /// Returns a sentence about what is not counted; `None` if nothing is missing.
    pub fn gap(&self) -> Option<String> {
        let why = self.gap.borrow().clone()?;
        Some(format!(
            "the kernel's soft interrupts on the engine's CPUs are not counted, nor charged to polling: {why}"
        ))
    }

    fn events(&self) -> Option<Arc<ExactCpu>> {
        let load = || match attached() {
            Ok(exact) => Some(Arc::new(exact)),
            Err(error) => {
                *self.gap.borrow_mut() = Some(error.to_string());
                None
            }
        };
        self.events.get_or_init(load).clone()
    }
}

fn attached() -> Result<ExactCpu, BpfError> {
    let mut exact = ExactCpu::load(&ExactCpuOptions {
        passes_over_syscalls: true,
        ..ExactCpuOptions::default()
    })?;
    exact.attach()?;
    Ok(exact)
}

impl EngineSupport {
    fn of_cpu(&self, cpu: u32) -> Option<Box<dyn CpuAccount>> {
        let threads = self.interfaces.iter().map(|it| napi_threads(it));
        let threads: Vec<u32> = match threads.collect::<Result<Vec<_>, _>>() {
            Ok(threads) => threads.into_iter().flatten().collect(),
            Err(error) => {
                *self.gap.borrow_mut() = Some(format!("looking for NAPI threads: {error}"));
                Vec::new()
            }
        };
        let is_bound = |pid: &u32| schedule::cpus(*pid).is_ok_and(|cpus| cpus == [cpu]);
        let threads: Vec<u32> = threads.into_iter().filter(is_bound).collect();
        let events = self.events();
        if events.is_none() && threads.is_empty() {
            return None;
        }
        // Only recorded threads, whose policy is restored, may be rescheduled.
        let is_idle = |pid: &u32| schedule::policy(*pid).is_ok_and(|policy| policy == Policy::Idle);
        let can_hold_back = self.holds_back && !threads.is_empty() && threads.iter().all(is_idle);
        let first = events.as_ref().and_then(|exact| exact.read().ok());
        Some(Box::new(KernelTimeOfCpu {
            cpu,
            events: events.zip(first),
            threads,
            can_hold_back,
            turn: None,
            turns_ns: 0,
            held_back: None,
            latest_ns: 0,
        }))
    }
}

struct KernelTimeOfCpu {
    cpu: u32,
    /// The counter, with its sample from the start of the account.
    events: Option<(Arc<ExactCpu>, ExactSample)>,
    /// NAPI threads that run on this CPU alone.
    threads: Vec<u32>,
    can_hold_back: bool,
    /// CPU time of the threads when their current turn began; `None` between turns.
    turn: Option<u64>,
    /// CPU time that they used in their turns, or took from others between them.
    turns_ns: u64,
    /// CPU time of the threads and of others when the last turn ended.
    held_back: Option<(u64, i64)>,
    latest_ns: u64,
}

impl KernelTimeOfCpu {
    fn times(&self) -> Option<CpuTimes> {
        let (exact, first) = self.events.as_ref()?;
        exact.read().ok()?.since(first, &[self.cpu]).pop()
    }

    fn threads_ns(&self) -> u64 {
        let threads = self.threads.iter();
        threads
            .filter_map(|pid| schedule::cpu_ns_of(*pid).ok())
            .sum()
    }

    /// CPU time that the threads took between two turns while others wanted it. Each change of a thread's policy lets it
    /// run for a moment, idle or not; others then have more of the time. Time that nobody else wanted is not charged.
    fn taken_from_others_ns(&mut self, now_ns: u64) -> u64 {
        let Some(((before_ns, others_before_ns), others_ns)) =
            self.held_back.take().zip(self.others_ns())
        else {
            return 0;
        };
        let taken_ns = now_ns.saturating_sub(before_ns);
        let others_had_ns = u64::try_from(others_ns - others_before_ns).unwrap_or(0);
        if others_had_ns > taken_ns {
            taken_ns
        } else {
            0
        }
    }
}

impl CpuAccount for KernelTimeOfCpu {
    fn kernel_ns(&mut self) -> u64 {
        let by_events = self.times().map(|times| {
            let soft = times.softirq_ns.iter().zip(SOFTIRQ_NAMES);
            // Timers, RCU and the scheduler are not the network's.
            let soft = soft.filter(|(_, name)| name.starts_with("NET_"));
            times.irq_ns + soft.map(|(ns, _)| ns).sum::<u64>()
        });
        let of_threads = match self.can_hold_back {
            true => self.turns_ns,
            false => self.threads_ns(),
        };
        let now_ns = by_events.unwrap_or(0) + of_threads;
        // The time of a thread that ends is lost from the sum.
        self.latest_ns = self.latest_ns.max(now_ns);
        self.latest_ns
    }

    fn can_hold_back(&self) -> bool {
        self.can_hold_back
    }

    fn let_run(&mut self, on: bool) {
        let now_ns = self.threads_ns();
        if let Some(before_ns) = self.turn.take() {
            self.turns_ns += now_ns.saturating_sub(before_ns);
        }
        if on {
            self.turns_ns += self.taken_from_others_ns(now_ns);
            self.turn = Some(now_ns);
        } else {
            self.held_back = self.others_ns().map(|others_ns| (now_ns, others_ns));
        }
        for pid in self.threads.iter().filter(|_| self.can_hold_back) {
            let policy = if on { RECEIVING } else { Policy::Idle };
            // A thread that is gone needs no policy.
            let _ = schedule::set_policy(*pid, policy);
        }
    }

    fn others_ns(&mut self) -> Option<i64> {
        let times = self.times()?;
        let tasks_ns = times.user_ns + times.nice_ns + times.system_ns;
        let own_ns = clock_ns(ClockId::ThreadCPUTime);
        Some(tasks_ns.cast_signed() - own_ns - self.threads_ns().cast_signed())
    }
}

/// State of a veth's other end before an XDP program came. While the program is attached, Linux turns segmentation
/// offloads off there and lowers the greatest MTU; both return when it leaves.
pub struct OtherEnd {
    interface: String,
    before: Option<Peer>,
}

impl OtherEnd {
    /// Reads the state for an interface of the calling thread's network namespace. It is unknown if that is no veth
    /// or its other end cannot be found.
    pub fn of(interface: &str) -> Self {
        OtherEnd {
            interface: interface.to_owned(),
            before: peer_of(interface),
        }
    }

    /// Wraps a sink to also report what its XDP program changes there.
    pub fn around(&self, sink: Sink) -> SinkWithOtherEnd<'_> {
        let mut start = sink.facts().clone();
        let is_in_driver = start.program_mode.as_deref() == Some(AttachMode::Driver.name());
        let other_end = is_in_driver.then_some(self);
        start.other_end_changes = other_end.map_or_else(Vec::new, OtherEnd::changes);
        SinkWithOtherEnd {
            sink,
            start,
            other_end,
        }
    }

    /// Returns the present differences, one value each.
    fn changes(&self) -> Vec<String> {
        match (&self.before, peer_of(&self.interface)) {
            (Some(before), Some(now)) => differences(before, &now),
            _ => Vec::new(),
        }
    }
}

/// A sink that reports what its XDP program changes at a veth's other end, and what remains changed at its end.
pub struct SinkWithOtherEnd<'a> {
    sink: Sink,
    start: SinkStart,
    /// `None` for a program in the kernel's generic code, which changes nothing.
    other_end: Option<&'a OtherEnd>,
}

impl EngineApplication for SinkWithOtherEnd<'_> {
    type Start = SinkStart;
    type Interval = SinkInterval;
    type End = SinkEnd;

    fn facts(&self) -> &SinkStart {
        &self.start
    }

    fn is_over(&self) -> bool {
        self.sink.is_over()
    }

    fn attend(&mut self, helpers: &dyn Helpers) -> Result<Vec<LinkEvent>, EngineError> {
        self.sink.attend(helpers)
    }

    fn interval(&mut self) -> Result<SinkInterval, EngineError> {
        self.sink.interval()
    }

    fn end(self, signal: Option<i32>) -> Result<SinkEnd, EngineError> {
        let end = self.sink.end(signal)?;
        Ok(SinkEnd {
            other_end_left: self.other_end.map_or_else(Vec::new, OtherEnd::changes),
            ..end
        })
    }
}

fn peer_of(interface: &str) -> Option<Peer> {
    facts_of(interface).ok()?.into_iter().next()?.peer
}

/// Returns what such a program may have changed between two states; nothing for an end that cannot be found.
fn differences(before: &Peer, now: &Peer) -> Vec<String> {
    let (Some(target), Some(_)) = (&before.target, &now.target) else {
        return Vec::new();
    };
    let name = &target.interface.name;
    let became = |feature: &String| match now.features_on.contains(feature) {
        true => format!("{name} {feature} off -> on"),
        false => format!("{name} {feature} on -> off"),
    };
    let features = before.features_on.symmetric_difference(&now.features_on);
    let mut changes: Vec<String> = features.map(became).collect();
    if let (Some(before), Some(now)) = (before.max_mtu_bytes, now.max_mtu_bytes)
        && now < before
    {
        // A higher limit harms nobody.
        changes.push(format!("{name} greatest MTU {before} -> {now}"));
    }
    changes
}

const CHECKS: [PacketCheck; 3] = [
    PacketCheck {
        name: "netrate",
        ids: || Box::new(NetrateIds::default()),
    },
    PacketCheck {
        name: "iperf",
        ids: || Box::new(ClientIds::default()),
    },
    PacketCheck {
        name: "mark",
        ids: || Box::new(MarkIds),
    },
];

/// Returns the check of a name.
///
/// # Errors
/// When there is none.
pub fn check_of(name: &str) -> Result<PacketCheck, Refused> {
    let mut checks = CHECKS.into_iter();
    let check = checks.find(|check| check.name == name);
    check.ok_or_else(|| unknown_among(CHECKS.iter().map(|check| check.name)))
}

#[cfg(test)]
mod kernel_side_tests {
    use super::*;

    #[test]
    fn the_kernels_threads_keep_off_the_engines_cpus() {
        assert_eq!(thread_cpus(&[0, 1, 2], &[2]), [0, 1]);
        assert_eq!(thread_cpus(&[0, 1], &[0, 1]), [0, 1]);
    }
}

#[cfg(test)]
mod other_end_tests {
    use super::*;
    use nicpoll_switch::{Interface, Target};

    #[test]
    fn what_is_otherwise_is_named_and_nothing_else() {
        let state = |features: &[&str], max_mtu_bytes| {
            let interface = Interface {
                name: String::from("em0"),
                ..Interface::default()
            };
            let mut peer = Peer::default();
            peer.target = Some(Target::new(0, interface));
            peer.features_on = features.iter().map(|name| String::from(*name)).collect();
            peer.max_mtu_bytes = Some(max_mtu_bytes);
            peer
        };
        let before = state(&["rx-gro", "tx-udp-segmentation"], 65_535);
        let with_program = state(&["rx-gro"], 3506);
        assert_eq!(
            differences(&before, &with_program),
            [
                "em0 tx-udp-segmentation on -> off",
                "em0 greatest MTU 65535 -> 3506"
            ]
        );
        assert!(differences(&with_program, &with_program).is_empty());
        let with_fragments = state(&["rx-gro", "tx-udp-segmentation"], 73_138);
        assert!(differences(&before, &with_fragments).is_empty());
    }
}

#[cfg(test)]
mod packet_check_tests {
    use super::*;

    #[test]
    fn each_name_reads_its_own_numbers() {
        let mut netrate = (check_of("netrate").unwrap().ids)();
        let first = netrate.id(&7u32.to_be_bytes()).unwrap();
        assert_eq!(netrate.id(&8u32.to_be_bytes()), Some(first + 1));
        // A number alone is neither iperf's nor nicpoll's own.
        for name in ["iperf", "mark"] {
            assert_eq!((check_of(name).unwrap().ids)().id(&[0; 4]), None);
        }
        let refusal = check_of("ping").unwrap_err().to_string();
        assert!(refusal.contains("netrate, iperf, mark"), "{refusal}");
    }
}
