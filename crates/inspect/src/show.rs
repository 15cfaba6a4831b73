//! `nicpoll show`: the abilities and activity of interfaces, at one moment and over a short look.
//!
//! [`show`] makes the document. [`Observation`] reads the interfaces and watches their polls for a time; [`watch_polls`] uses
//! it to prove settings. `variables` derives FreeBSD's `kern.polling` from the result.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::Refused;
use nicpoll_model::{
    Ceiling, Discipline, DriftShow, EventCost, Finding, InterfaceShow, InterruptShow, NapiShow,
    Origin, PendingShow, Rhythm, SHOW_SCHEMA, Show, SwitchProof, Unseen,
};
use nicpoll_observe::{
    BpfError, ExactCpu, InterruptLine, Interrupts, PollRhythm, RhythmWatch,
    thread as observed_thread,
};
use nicpoll_switch::{
    Abilities, Control, GRO_FEATURE, InterfaceQueue, Journal, LinkInfo, Machine, Napi, Sightings,
    SwitchError, Target, VETH_RING_SLOTS, drift_of, is_stacked, lowest, napi_list, pending_of,
    supported,
};
use nicpoll_sys::ethtool;

use crate::discipline::{by_setting, by_settings, of_lower, of_rhythm, without_polls};
use crate::error::{InspectError, chosen, unseen};
use crate::interrupts::{description, device_irqs, interrupts, is_storm, look_for_storms};

mod variables;

pub use variables::{AskedVariables, NOT_WATCHED, asked_variables};

use variables::{Sources, read_all};

/// Length of the look that measures the cost of looking.
const COST_LOOK: Duration = Duration::from_millis(100);

/// The interfaces to show, and how long to watch them.
#[derive(Clone, Debug)]
pub struct ShowOptions {
    /// Names of interfaces; empty for all but the loopback.
    pub interfaces: Vec<String>,
    /// How long polls are watched; zero for settings only.
    pub look: Duration,
    /// Back-to-back handler entries from which on interrupts are a storm; 0: detection is off.
    pub storm_threshold: u64,
}

/// Shows interfaces of the caller's namespace; `netns` is its name if it was entered by name.
///
/// # Errors
/// When a name is not that of an interface, or an interface cannot be read.
pub fn show(
    options: &ShowOptions,
    origin: Origin,
    netns: Option<&str>,
) -> Result<Show, InspectError> {
    let mut looked = Observation::new(&options.interfaces, options.storm_threshold)?;
    let look_seconds = looked.watch(options.look)?;
    let look_cost = looked.cost();
    let (interfaces, unseen) = looked.finish();
    Ok(Show {
        schema: String::from(SHOW_SCHEMA),
        origin,
        netns: netns.map(String::from),
        look_seconds,
        look_cost,
        storm_threshold_entries: options.storm_threshold,
        interfaces,
        unseen,
    })
}

/// Watches polls in the calling thread's network namespace by BPF, to prove that a setting is in force.
///
/// # Errors
/// Why nothing can be observed.
pub fn watch_polls(interfaces: &[String], time: Duration) -> Result<Sightings, Refused> {
    let watch = || {
        // Storms prove nothing about a setting.
        let mut look = Observation::new(interfaces, 0)?;
        Ok((look.watch(time)?, look.finish()))
    };
    let (seconds, (interfaces, unseen)) =
        watch().map_err(|error: InspectError| Refused(error.to_string()))?;
    let seen = interfaces.into_iter().map(|interface| {
        let rounds = rounds_of(&interface);
        let proof = SwitchProof {
            interface: interface.name,
            look_seconds: seconds,
            setting: interface.setting,
            evidence: interface.evidence,
            is_proven: None,
            unseen: unseen.clone(),
        };
        (proof, rounds)
    });
    Ok(seen.collect())
}

/// Returns the rounds of all instances, or the polls if no round ended.
fn rounds_of(interface: &InterfaceShow) -> u64 {
    let rhythms = || {
        let napis = interface.napis.iter().flatten();
        napis.filter_map(|napi| napi.rhythm.as_ref())
    };
    match rhythms().map(|rhythm| rhythm.rounds).sum() {
        0 => rhythms().map(|rhythm| rhythm.polls).sum(),
        rounds => rounds,
    }
}

/// Interfaces under observation.
struct Observation {
    control: Control,
    /// Names of the requested interfaces, in order.
    shown: Vec<String>,
    /// The interfaces where packets arrive, by the name of a stacked interface.
    below: BTreeMap<String, Vec<String>>,
    /// The shown interfaces, and those below them.
    stills: Vec<Still>,
    storm_threshold: u64,
    watched: Option<Watched>,
    watch: Option<(RhythmWatch, Option<ExactCpu>)>,
    unseen: Vec<Unseen>,
}

/// An interface as read at one moment.
struct Still {
    /// Without evidence, rates and variables.
    show: InterfaceShow,
    /// Kind of virtual device; empty for a physical one.
    kind: String,
    /// The address of its device, which names its interrupts.
    bus_address: Option<String>,
}

/// The events between the two ends of a look.
struct Watched {
    /// Time between the counter readings.
    seconds: f64,
    /// How long polls were watched, which is slightly longer.
    poll_seconds: f64,
    before: LookCounters,
    after: LookCounters,
    /// By NAPI id; `None` when polls could not be watched.
    rhythms: Option<BTreeMap<u32, PollRhythm>>,
}

/// The counters at either end of a look.
struct LookCounters {
    /// By interface index.
    rx_packets: BTreeMap<u32, u64>,
    /// Interrupts of the machine; `None` if they cannot be read.
    interrupts: Option<Vec<InterruptLine>>,
    /// `None` if storms are not detected.
    storms: Option<Interrupts>,
}

impl Watched {
    /// Packets per second that an interface received; `None` if it does not count them, or appeared or disappeared.
    fn rx_packets_per_second(&self, ifindex: u32) -> Option<f64> {
        let [after, before] =
            [&self.after, &self.before].map(|counters| counters.rx_packets.get(&ifindex).copied());
        Some(after?.saturating_sub(before?) as f64 / self.seconds)
    }
}

impl Observation {
    /// Finds the named interfaces of the caller's namespace, or all but the loopback without names.
    fn new(names: &[String], storm_threshold: u64) -> Result<Self, InspectError> {
        let mut control = Control::new();
        let abilities = Abilities::probe();
        let links = control.links()?;
        let shown = chosen(&links, names, "shown")?;
        let stacked = shown
            .iter()
            .filter(|link| is_stacked(&link.interface.driver));
        let below: BTreeMap<String, Vec<String>> = stacked
            .map(|link| {
                let below = lowest(&links, link).into_iter();
                let names = below.map(|link| link.interface.name.clone());
                (link.interface.name.clone(), names.collect())
            })
            .collect();
        let shown: Vec<String> = shown
            .iter()
            .map(|link| link.interface.name.clone())
            .collect();
        let mut stills = Vec::new();
        for link in &links {
            let name = &link.interface.name;
            if !shown.contains(name) && !below.values().flatten().any(|lower| lower == name) {
                continue;
            }
            stills.push(still(&mut control, &abilities, link)?);
        }
        let mut hidden = Vec::new();
        if stills.iter().any(|still| still.show.napis.is_none()) {
            let why = napi_list().map_or_else(|error| error.to_string(), String::from);
            hidden.push(unseen("NAPI instances", why));
        }
        let journal = Journal::of_this_machine();
        let mut machine = Machine::new();
        for Still { show, .. } in &mut stills {
            match recorded(&journal, &mut machine, &show.name) {
                Ok((drift, pending)) => {
                    show.drift = Some(drift);
                    show.pending = pending;
                }
                Err(error) => {
                    let what = format!("what 'nicpoll set' had set of {}", show.name);
                    hidden.push(unseen(&what, why_unread(&error)));
                }
            }
        }
        Ok(Observation {
            control,
            shown,
            below,
            stills,
            storm_threshold,
            watched: None,
            watch: None,
            unseen: hidden,
        })
    }

    /// Watches for a time. Returns the seconds for which polls were watched; `None` if they were not.
    fn watch(&mut self, time: Duration) -> Result<Option<f64>, InspectError> {
        if time.is_zero() {
            return Ok(None);
        }
        let napis = self
            .stills
            .iter()
            .flat_map(|still| still.show.napis.iter().flatten());
        let instances: Vec<(u32, u64)> = napis
            .map(|napi| (napi.id, napi.gro_flush_timeout_ns))
            .collect();
        let exact = if self.looks_for_storms() {
            let begun = look_for_storms(self.storm_threshold);
            self.seen("interrupt storms", begun)
        } else {
            None
        };
        let watch = self.seen("polls", RhythmWatch::begin(&instances));
        // The time to load the programs is not part of the look.
        let watched_from = Instant::now();
        let before = self.count(exact.as_ref())?;
        let began = Instant::now();
        thread::sleep(time);
        let seconds = began.elapsed().as_secs_f64();
        let after = self.count(exact.as_ref())?;
        let poll_seconds = watched_from.elapsed().as_secs_f64();
        let rhythms = watch.as_ref().map(|watch| {
            let read = instances.iter().map(|(id, _)| Ok((*id, watch.read(*id)?)));
            read.collect::<Result<BTreeMap<u32, PollRhythm>, BpfError>>()
        });
        let rhythms = rhythms.transpose()?;
        let was_watched = rhythms.is_some();
        self.watched = Some(Watched {
            seconds,
            poll_seconds,
            before,
            after,
            rhythms,
        });
        self.watch = watch.map(|watch| (watch, exact));
        Ok(was_watched.then_some(poll_seconds))
    }

    /// Returns an observer that started, or `None` after noting why it did not.
    fn seen<T>(&mut self, what: &str, begun: Result<T, BpfError>) -> Option<T> {
        begun
            .map_err(|error| {
                let why = format!("{error}; run it as root");
                self.unseen.insert(0, unseen(what, why));
            })
            .ok()
    }

    /// Whether to detect storms: only a card's interrupts are shown, and a virtual device has none.
    fn looks_for_storms(&self) -> bool {
        let lines = interrupts().unwrap_or_default();
        let mut stills = self.stills.iter();
        self.storm_threshold > 0 && stills.any(|still| !interrupts_of(still, &lines).is_empty())
    }

    /// Measures the cost of watching in a second, short look; `None` after the first call. Timing has a cost itself, so
    /// it is not part of the main look.
    fn cost(&mut self) -> Option<EventCost> {
        let (watch, mut exact) = self.watch.take()?;
        let mut timed_runs = || {
            let polls = watch.programs.timed_runs().ok()?;
            match &mut exact {
                Some(exact) => Some(polls.plus(exact.programs.timed_runs().ok()?)),
                None => Some(polls),
            }
        };
        let timing = nicpoll_observe::start_timing().ok()?;
        let (before, began) = (timed_runs()?, Instant::now());
        thread::sleep(COST_LOOK);
        let seconds = began.elapsed().as_secs_f64();
        let runs = timed_runs()?.since(before);
        drop(timing);
        runs.map(|runs| EventCost {
            ns_per_event: runs.ns_per_run,
            events_per_second: runs.runs as f64 / seconds,
        })
    }

    fn count(&mut self, exact: Option<&ExactCpu>) -> Result<LookCounters, InspectError> {
        let links = self.control.links()?.into_iter();
        let counted = |link: LinkInfo| Some((link.interface.ifindex, link.rx_packets?));
        Ok(LookCounters {
            rx_packets: links.filter_map(counted).collect(),
            interrupts: interrupts(),
            storms: exact.map(ExactCpu::interrupts).transpose()?,
        })
    }

    /// Returns the interfaces, and what could not be observed.
    fn finish(self) -> (Vec<InterfaceShow>, Vec<Unseen>) {
        let watched = self.watched.as_ref();
        let interfaces = self.stills.into_iter();
        let all: BTreeMap<String, InterfaceShow> = interfaces
            .map(|still| interface(still, watched))
            .map(|show| (show.name.clone(), show))
            .collect();
        let shown = self.shown.iter().filter_map(|name| {
            let mut show = all.get(name)?.clone();
            if let Some(below) = self.below.get(name) {
                learn_from(&mut show, below, &all);
            }
            Some(show)
        });
        (shown.collect(), self.unseen)
    }
}

/// Why the journal cannot be read, with a remedy if there is one.
fn why_unread(error: &SwitchError) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => "; run it as root",
        _ => "",
    };
    match error {
        SwitchError::System { doing, source } => format!("{doing}: {source}{remedy}"),
        other => other.to_string(),
    }
}

/// Reads an interface. Values that the driver lacks or the kernel does not report are absent.
fn still(
    control: &mut Control,
    abilities: &Abilities,
    link: &LinkInfo,
) -> Result<Still, SwitchError> {
    let (ifindex, kind) = (link.interface.ifindex, link.interface.driver.clone());
    let queues = supported(control.queues(ifindex))?.unwrap_or_default();
    let count = |is_rx| queues.iter().filter(|queue| queue.is_rx == is_rx).count() as u32;
    let (rx_queues, tx_queues) = match count(true) {
        0 => (link.rx_queues, link.tx_queues),
        rx_queues => (Some(rx_queues), Some(count(false))),
    };
    let features = supported(control.features(ifindex))?;
    let moderation = supported(control.moderation(ifindex))?.unwrap_or_default();
    let driver = ethtool::driver(&link.interface.name).ok();
    let (driver, bus_address) = driver
        .map(|driver| (driver.name, driver.bus_address))
        .unzip();
    let napis = napis(control, abilities, link, &queues)?;
    let show = InterfaceShow {
        driver: driver.or_else(|| Some(kind.clone()).filter(|kind| !kind.is_empty())),
        ifindex,
        lower: Vec::new(),
        is_up: link.is_up,
        link_bits_per_second: supported(control.link_bits_per_second(ifindex))?.flatten(),
        rx_queues,
        tx_queues,
        // veth does not report them.
        rx_ring_slots: match kind.as_str() {
            "veth" => Some(VETH_RING_SLOTS),
            _ => supported(control.rx_ring_slots(ifindex))?.flatten(),
        },
        has_gro: features.and_then(|features| features.active.get(GRO_FEATURE).copied()),
        moderation: moderation
            .into_iter()
            .map(|(row, value)| (String::from(row.name), value))
            .collect(),
        interrupts: Vec::new(),
        setting: match napis.as_deref() {
            Some(napis) => Some(by_settings(napis, link)),
            None => by_device(link),
        },
        napis,
        evidence: None,
        rx_packets_per_second: None,
        ceiling: None,
        drift: None,
        pending: None,
        kern_polling: Vec::new(),
        name: link.interface.name.clone(),
    };
    Ok(Still {
        show,
        kind,
        bus_address: bus_address.flatten(),
    })
}

fn napis(
    control: &mut Control,
    abilities: &Abilities,
    link: &LinkInfo,
    queues: &[InterfaceQueue],
) -> Result<Option<Vec<NapiShow>>, SwitchError> {
    let Some(napis) = supported(control.napis(link.interface.ifindex))? else {
        return Ok(None);
    };
    let device = (!abilities.has_napi_set).then(|| device_values(link));
    let show = |napi: Napi| {
        // A kernel that cannot set the values of single instances does not report them either; later ones do both.
        let values = device.unwrap_or(napi);
        let is_served = |queue: &&InterfaceQueue| queue.is_rx && queue.napi_id == Some(napi.id);
        let rx_queues = queues.iter().filter(is_served).map(|queue| queue.id);
        NapiShow {
            id: napi.id,
            irq: napi.irq,
            rx_queues: rx_queues.collect(),
            defer_hard_irqs: values.defer_hard_irqs.unwrap_or_default(),
            gro_flush_timeout_ns: values.gro_flush_timeout_ns.unwrap_or_default(),
            irq_suspend_timeout_ns: values.irq_suspend_timeout_ns,
            threaded: values.threaded,
            thread: napi.thread_pid.and_then(|pid| observed_thread(pid).ok()),
            setting: by_setting(&values),
            rhythm: None,
        }
    };
    Ok(Some(napis.into_iter().map(show).collect()))
}

/// Values that all instances of an interface share, on kernels without values of single instances.
fn device_values(link: &LinkInfo) -> Napi {
    let directory = format!("/sys/class/net/{}", link.interface.name);
    let read = |file: &str| -> Option<u64> {
        let text = fs::read_to_string(format!("{directory}/{file}")).ok()?;
        text.trim().parse().ok()
    };
    // A thread in another namespace may see the first namespace's interfaces here.
    if read("ifindex") != Some(link.interface.ifindex.into()) {
        return Napi::default();
    }
    Napi {
        defer_hard_irqs: read("napi_defer_hard_irqs").map(|count| count as u32),
        gro_flush_timeout_ns: read("gro_flush_timeout"),
        threaded: read("threaded").map(|threaded| threaded as u32),
        ..Napi::default()
    }
}

/// The discipline by the values of the interface itself, when its instances cannot be listed; `None` if it may have none.
fn by_device(link: &LinkInfo) -> Option<Finding> {
    let values = device_values(link);
    let is_card = link.interface.driver.is_empty();
    (is_card && values.gro_flush_timeout_ns.is_some()).then(|| by_setting(&values))
}

/// The interrupts of one interface: those named by its NAPI instances or its card, and those with the card's address or
/// its name.
/// A virtual device has none.
fn interrupts_of(still: &Still, lines: &[InterruptLine]) -> Vec<InterruptShow> {
    let bus_address = still.bus_address.as_deref();
    let napis = still.show.napis.iter().flatten();
    let mut named: Vec<u32> = napis.filter_map(|napi| napi.irq).collect();
    named.extend(device_irqs(&still.show.name, still.show.ifindex));
    let show = |line: &InterruptLine| {
        let irq = line.irq.parse().ok()?;
        let is_of_device = bus_address.is_some() && line.is_of(&still.show.name, bus_address);
        (named.contains(&irq) || is_of_device).then(|| InterruptShow {
            irq,
            description: description(line),
            cpus: cpus_of(irq),
            total_interrupts: line.total(),
            interrupts_per_second: None,
            is_storm: None,
        })
    };
    lines.iter().filter_map(show).collect()
}

fn cpus_of(irq: u32) -> Option<String> {
    let read = |file: &str| fs::read_to_string(format!("/proc/irq/{irq}/{file}")).ok();
    let list = read("effective_affinity_list").or_else(|| read("smp_affinity_list"))?;
    Some(String::from(list.trim())).filter(|list| !list.is_empty())
}

/// Reads an interface's values that somebody else changed, and its unconfirmed change. A thread of the [`Machine`]
/// reads them: only such a thread is certain to see this namespace's devices under `/sys`.
///
/// # Errors
/// When the journal may not be read.
fn recorded(
    journal: &Journal,
    machine: &mut Machine,
    interface: &str,
) -> Result<(Vec<DriftShow>, Option<PendingShow>), SwitchError> {
    if journal.paths()?.is_empty() {
        return Ok((Vec::new(), None));
    }
    let netns_inode = machine.enter_current()?;
    let name = String::from(interface);
    let interface = machine.run(netns_inode, move |control| control.interface(&name))??;
    let target = Target::new(netns_inode, interface);
    let drift = drift_of(journal, machine, &target)?;
    let drift = drift.iter().map(DriftShow::from).collect();
    Ok((drift, pending_of(journal, &target)?))
}

/// Gives an interface without queues the discipline of those below it.
fn learn_from(show: &mut InterfaceShow, below: &[String], all: &BTreeMap<String, InterfaceShow>) {
    let below: Vec<&InterfaceShow> = below.iter().filter_map(|name| all.get(name)).collect();
    show.lower = below.iter().map(|lower| lower.name.clone()).collect();
    if below.is_empty() || !show.is_up {
        return;
    }
    type Part = fn(&InterfaceShow) -> Option<&Finding>;
    let of = |part: Part| {
        let lower = below.iter();
        let findings: Vec<_> = lower
            .map(|lower| (lower.name.as_str(), part(lower)))
            .collect();
        of_lower(&findings)
    };
    show.setting = of(|lower| lower.setting.as_ref());
    show.evidence = of(|lower| lower.evidence.as_ref());
}

/// Adds the events of a look to the interface.
fn interface(mut still: Still, watched: Option<&Watched>) -> InterfaceShow {
    let interrupts = interrupt_rates(&still, watched);
    let show = &mut still.show;
    let rhythms = watched.and_then(|watched| watched.rhythms.as_ref());
    let listed = rhythms.zip(show.napis.as_deref_mut());
    let sum = listed.map(|(rhythms, napis)| put_rhythms(napis, rhythms));
    let napis = show.napis.as_deref();
    show.rx_packets_per_second =
        watched.and_then(|watched| watched.rx_packets_per_second(show.ifindex));
    show.evidence = sum.as_ref().map(|sum| {
        let napis = napis.unwrap_or_default();
        match sum.polls {
            0 => without_polls(!napis.is_empty(), &still.kind, show.rx_packets_per_second),
            _ => of_rhythm(sum, common_timeout_ns(napis)),
        }
    });
    show.kern_polling = read_all(&Sources {
        napis,
        rhythm: sum.as_ref(),
        ring_slots: show.rx_ring_slots,
    });
    show.ceiling = ceiling(show, watched);
    show.interrupts = interrupts;
    still.show
}

fn interrupt_rates(still: &Still, watched: Option<&Watched>) -> Vec<InterruptShow> {
    let of = |lines: Option<&[InterruptLine]>| interrupts_of(still, lines.unwrap_or_default());
    let Some(watched) = watched else {
        return of(interrupts().as_deref());
    };
    let before = of(watched.before.interrupts.as_deref());
    let mut now = of(watched.after.interrupts.as_deref());
    let [storms_then, storms_now] =
        [&watched.before, &watched.after].map(|counters| counters.storms.as_ref());
    for interrupt in &mut now {
        let then = before.iter().find(|then| then.irq == interrupt.irq);
        interrupt.interrupts_per_second = then.map(|then| {
            interrupt
                .total_interrupts
                .saturating_sub(then.total_interrupts) as f64
                / watched.seconds
        });
        interrupt.is_storm = is_storm(&interrupt.irq.to_string(), storms_then, storms_now, &[]);
    }
    now
}

/// Sets each instance's polls, and returns their sum.
fn put_rhythms(napis: &mut [NapiShow], rhythms: &BTreeMap<u32, PollRhythm>) -> PollRhythm {
    let mut sum = PollRhythm::default();
    for napi in napis {
        let Some(rhythm) = rhythms.get(&napi.id) else {
            continue;
        };
        sum = sum.plus(rhythm);
        napi.rhythm = Some(Rhythm {
            evidence: of_rhythm(rhythm, napi.gro_flush_timeout_ns),
            polls: rhythm.polls,
            rounds: rhythm.rounds,
            timer_rounds: rhythm.timer_rounds,
            packets: rhythm.frames,
            packets_per_poll: (rhythm.polls > 0)
                .then(|| rhythm.frames as f64 / rhythm.polls as f64),
            median_gap_ns: rhythm.median_gap_ns(),
            packets_histogram: rhythm.work.clone(),
            gaps_histogram: rhythm.gaps_ns.clone(),
            polls_by_cpu: rhythm.polls_by_cpu.clone(),
        });
    }
    sum
}

/// Returns the timeout of all instances; 0 if they differ.
fn common_timeout_ns(napis: &[NapiShow]) -> u64 {
    let first = napis.first().map_or(0, |napi| napi.gro_flush_timeout_ns);
    let same = napis.iter().all(|napi| napi.gro_flush_timeout_ns == first);
    if same { first } else { 0 }
}

/// Computes the packet rate that timer rounds can take: at most a full ring per round. Interrupts set no such limit.
fn ceiling(show: &InterfaceShow, watched: Option<&Watched>) -> Option<Ceiling> {
    let napis = show.napis.as_deref()?;
    if show.setting.as_ref()?.discipline != Discipline::Polling {
        return None;
    }
    let slots = u64::from(show.rx_ring_slots?) * u64::from(show.rx_queues?);
    let measured = watched.and_then(|watched| rounds_per_second(napis, watched.poll_seconds));
    let timeout_ns = Some(common_timeout_ns(napis)).filter(|timeout| *timeout > 0);
    let predicted = timeout_ns.map(|timeout_ns| 1e9 / timeout_ns as f64);
    let rounds_per_second = measured.or(predicted)?;
    Some(Ceiling {
        slots,
        rounds_per_second,
        packets_per_second: slots as f64 * rounds_per_second,
        is_measured: measured.is_some(),
    })
}

/// Mean rounds per second of the instances that polled; `None` if none did.
fn rounds_per_second(napis: &[NapiShow], seconds: f64) -> Option<f64> {
    let rhythms = napis.iter().filter_map(|napi| napi.rhythm.as_ref());
    let rounds: Vec<u64> = rhythms
        .map(|rhythm| rhythm.rounds)
        .filter(|rounds| *rounds > 0)
        .collect();
    let mean = rounds.iter().sum::<u64>() as f64 / rounds.len() as f64;
    (!rounds.is_empty()).then_some(mean / seconds)
}
