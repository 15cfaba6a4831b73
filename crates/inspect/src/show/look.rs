//! The look: what the interfaces did between two moments.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::iter;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::{
    Ceiling, Discipline, EventCost, Finding, InterfaceShow, InterruptShow, NapiShow, Rhythm, Unseen,
};
use nicpoll_observe::{
    BpfError, ExactCpu, InterruptLine, Interrupts, PollRhythm, RhythmWatch, TimedPrograms,
};
use nicpoll_switch::{
    Abilities, Control, LinkFacts, PlacedInterface, SwitchError, is_stacked, lowest,
};

use super::drift::Standing;
use super::evidence::{of_lower, of_rhythm, without_polls};
use super::gather::{Still, interrupts, interrupts_of, still};
use super::variables::{Sources, read_all};
use crate::InspectError;
use crate::error::Doing;
use crate::storms::{is_storm, look_for_storms};

/// How long the cost of looking is looked at.
const COST_LOOK: Duration = Duration::from_millis(100);

/// Interfaces that are looked at.
pub struct Look {
    control: Control,
    /// Names of the interfaces that were asked for, in their order.
    shown: Vec<String>,
    /// Those that the packets of one without queues arrive at, by its name.
    below: BTreeMap<String, Vec<String>>,
    /// The interfaces that are shown, and those below them.
    stills: Vec<Still>,
    storm_threshold: u64,
    watched: Option<Watched>,
    watch: Option<(RhythmWatch, Option<ExactCpu>)>,
    unseen: Vec<Unseen>,
}

/// What was seen between the two moments.
struct Watched {
    /// From one count to the next.
    seconds: f64,
    /// How long polls were watched, which is a little more.
    poll_seconds: f64,
    before: Counters,
    after: Counters,
    /// By NAPI id; `None` when polls could not be watched.
    rhythms: Option<BTreeMap<u32, PollRhythm>>,
}

/// What is counted at either end of the look.
struct Counters {
    /// By index of interface.
    rx_packets: BTreeMap<u32, u64>,
    /// Of the machine; `None` when they cannot be read.
    interrupts: Option<Vec<InterruptLine>>,
    /// `None` when storms are not looked for.
    storms: Option<Interrupts>,
}

impl Watched {
    /// Packets that an interface received a second; `None` when it does not count, or came or went.
    fn rx_packets_per_second(&self, ifindex: u32) -> Option<f64> {
        let [after, before] =
            [&self.after, &self.before].map(|counters| counters.rx_packets.get(&ifindex).copied());
        Some(after?.saturating_sub(before?) as f64 / self.seconds)
    }
}

impl Look {
    /// Finds the interfaces of the caller's namespace: those of the names, or all but the loopback.
    pub fn new(names: &[String], storm_threshold: u64) -> Result<Self, InspectError> {
        let mut control = Control::new();
        let abilities = Abilities::probe();
        let links = control.inventory().doing("looking for interfaces")?;
        let mut stills = Vec::new();
        let shown = chosen(&links, names)?;
        let below = below(&mut control, &shown)?;
        let is_wanted = |link: &LinkFacts| {
            let name = &link.name;
            shown.contains(name) || below.values().flatten().any(|lower| lower == name)
        };
        for link in links.into_iter().filter(is_wanted) {
            let name = link.name.clone();
            let read = still(&mut control, &abilities, link);
            stills.push(read.map_err(|source| InspectError::Interface {
                doing: format!("reading interface {name}"),
                source,
            })?);
        }
        let mut unseen = Vec::new();
        if stills.iter().any(|still| still.show.napis.is_none()) {
            unseen.push(Unseen {
                what: String::from("NAPI instances"),
                why: String::from("this kernel does not list them; Linux 6.8 or later does"),
            });
        }
        let mut standing = Standing::of_this_machine();
        for still in &mut stills {
            match standing.of(&still.show.name) {
                Ok(recorded) => {
                    still.show.drift = Some(recorded.drift);
                    still.show.pending = recorded.pending;
                }
                Err(error) => unseen.push(Unseen {
                    what: format!("what 'nicpoll set' had set of {}", still.show.name),
                    why: why_unread(&error),
                }),
            }
        }
        Ok(Look {
            control,
            shown,
            below,
            stills,
            storm_threshold,
            watched: None,
            watch: None,
            unseen,
        })
    }

    /// Watches for so long, and returns the seconds that polls were watched; `None` when they were not.
    pub fn watch(&mut self, time: Duration) -> Result<Option<f64>, InspectError> {
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
        // Loading the programs takes time that is no part of the look.
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

    /// What has begun, or none with the reason noted.
    fn seen<T>(&mut self, what: &str, begun: Result<T, BpfError>) -> Option<T> {
        match begun {
            Ok(begun) => Some(begun),
            Err(error) => {
                let why = format!("{error}; run it as root");
                let what = String::from(what);
                self.unseen.insert(0, Unseen { what, why });
                None
            }
        }
    }

    /// Only interrupts of a card are shown, and a virtual device has none.
    fn looks_for_storms(&self) -> bool {
        let lines = interrupts().unwrap_or_default();
        let mut stills = self.stills.iter();
        self.storm_threshold > 0 && stills.any(|still| !interrupts_of(still, &lines).is_empty())
    }

    /// What watching costs, by another short look. None after the first time.
    pub fn cost(&mut self) -> Option<EventCost> {
        let (watch, exact) = self.watch.take()?;
        cost_of(&watch, exact)
    }

    fn count(&mut self, exact: Option<&ExactCpu>) -> Result<Counters, InspectError> {
        let links = self.control.inventory().doing("counting packets")?;
        let counted = |link: LinkFacts| Some((link.ifindex, link.rx_packets?));
        Ok(Counters {
            rx_packets: links.into_iter().filter_map(counted).collect(),
            interrupts: interrupts(),
            storms: exact.map(ExactCpu::interrupts).transpose()?,
        })
    }

    /// What was found, and what could not be.
    pub fn finish(self) -> (Vec<InterfaceShow>, Vec<Unseen>) {
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

/// Why the journal says nothing, with the remedy where there is one.
fn why_unread(error: &SwitchError) -> String {
    let first: &(dyn Error + 'static) = error;
    let mut text = String::new();
    let mut is_forbidden = false;
    for cause in iter::successors(Some(first), |cause| <dyn Error>::source(*cause)) {
        let separator = if text.is_empty() { "" } else { ": " };
        text.push_str(&format!("{separator}{cause}"));
        let cause = cause.downcast_ref::<io::Error>();
        is_forbidden |= cause.is_some_and(|cause| cause.kind() == io::ErrorKind::PermissionDenied);
    }
    let remedy = if is_forbidden { "; run it as root" } else { "" };
    text + remedy
}

/// Has the kernel time the programs for a moment. The timing itself costs, so it is no part of the look.
fn cost_of(watch: &RhythmWatch, mut exact: Option<ExactCpu>) -> Option<EventCost> {
    let mut timed_runs = || {
        let polls = watch.timed_runs().ok()?;
        match &mut exact {
            Some(exact) => Some(polls.plus(exact.timed_runs().ok()?)),
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

fn chosen(links: &[LinkFacts], names: &[String]) -> Result<Vec<String>, InspectError> {
    if names.is_empty() {
        let all = links.iter().filter(|link| !link.is_loopback);
        return Ok(all.map(|link| link.name.clone()).collect());
    }
    let is_there = |name: &&String| links.iter().any(|link| link.name == **name);
    match names.iter().find(|name| !is_there(name)) {
        None => Ok(names.to_vec()),
        Some(name) => Err(InspectError::no_interface(name, links, "shown")),
    }
}

/// What lies below interfaces that have no queues of their own.
fn below(
    control: &mut Control,
    shown: &[String],
) -> Result<BTreeMap<String, Vec<String>>, InspectError> {
    let links = control.links().doing("looking for what lies below")?;
    let is_meant = |link: &&PlacedInterface| {
        shown.contains(&link.interface.name) && is_stacked(&link.interface.driver)
    };
    let names = |link: &PlacedInterface| {
        let below = lowest(&links, link).into_iter();
        below.map(|link| link.interface.name.clone()).collect()
    };
    Ok(links
        .iter()
        .filter(is_meant)
        .map(|link| (link.interface.name.clone(), names(link)))
        .collect())
}

/// An interface without queues learns of packets as those below it do.
fn learn_from(show: &mut InterfaceShow, below: &[String], all: &BTreeMap<String, InterfaceShow>) {
    let below: Vec<&InterfaceShow> = below.iter().filter_map(|name| all.get(name)).collect();
    show.lower = below.iter().map(|lower| lower.name.clone()).collect();
    if below.is_empty() || !show.is_up {
        return;
    }
    type Part = fn(&InterfaceShow) -> Option<&Finding>;
    let of = |part: Part| {
        let findings: Vec<_> = below
            .iter()
            .map(|lower| (lower.name.as_str(), part(lower)))
            .collect();
        of_lower(&findings)
    };
    show.setting = of(|lower| lower.setting.as_ref());
    show.evidence = of(|lower| lower.evidence.as_ref());
}

/// The interface with what it did.
fn interface(mut still: Still, watched: Option<&Watched>) -> InterfaceShow {
    let interrupts = interrupt_rates(&still, watched);
    let show = &mut still.show;
    let rhythms = watched.and_then(|watched| watched.rhythms.as_ref());
    let sum = rhythms.map(|rhythms| put_rhythms(show.napis.as_deref_mut(), rhythms));
    let napis = show.napis.as_deref();
    show.rx_packets_per_second =
        watched.and_then(|watched| watched.rx_packets_per_second(show.ifindex));
    show.evidence = sum.as_ref().map(|sum| {
        let napis = napis.unwrap_or_default();
        evidence(
            sum,
            napis,
            still.kind.as_deref(),
            show.rx_packets_per_second,
        )
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
    for interrupt in &mut now {
        let then = before.iter().find(|then| then.irq == interrupt.irq);
        interrupt.per_second =
            then.map(|then| interrupt.total.saturating_sub(then.total) as f64 / watched.seconds);
        let [then, now] =
            [&watched.before, &watched.after].map(|counters| counters.storms.as_ref());
        interrupt.is_storm = is_storm(&interrupt.irq.to_string(), then, now, &[]);
    }
    now
}

/// Gives each instance what it did, and returns what all did together.
fn put_rhythms(napis: Option<&mut [NapiShow]>, rhythms: &BTreeMap<u32, PollRhythm>) -> PollRhythm {
    let mut sum = PollRhythm::default();
    for napi in napis.into_iter().flatten() {
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

fn evidence(
    sum: &PollRhythm,
    napis: &[NapiShow],
    kind: Option<&str>,
    rx_packets_per_second: Option<f64>,
) -> Finding {
    if sum.polls == 0 {
        return without_polls(!napis.is_empty(), kind, rx_packets_per_second);
    }
    of_rhythm(sum, common_timeout_ns(napis))
}

/// The timeout of all instances; 0 when they differ.
fn common_timeout_ns(napis: &[NapiShow]) -> u64 {
    let first = napis.first().map_or(0, |napi| napi.gro_flush_timeout_ns);
    let same = napis.iter().all(|napi| napi.gro_flush_timeout_ns == first);
    if same { first } else { 0 }
}

/// An interface whose rounds begin by a timer takes a ringful a round; arrivals set no such limit.
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

/// Rounds of one instance, mean of those that polled; `None` when none did.
fn rounds_per_second(napis: &[NapiShow], seconds: f64) -> Option<f64> {
    let rhythms = napis.iter().filter_map(|napi| napi.rhythm.as_ref());
    let rounds: Vec<u64> = rhythms
        .map(|rhythm| rhythm.rounds)
        .filter(|rounds| *rounds > 0)
        .collect();
    let mean = rounds.iter().sum::<u64>() as f64 / rounds.len() as f64;
    (!rounds.is_empty()).then_some(mean / seconds)
}
