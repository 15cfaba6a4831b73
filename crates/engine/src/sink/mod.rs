//! Receiving and counting: an application that spends the requested CPU time on each packet.
//!
//! Every frame that the device took is received, lost at a named place, or still in a ring. Every counter of the end is in
//! each interval too, and the intervals add up to the end.

pub mod check;

use std::time::Instant;

use nicpoll_core::{Knob, Poller};
use nicpoll_model::Origin;
use nicpoll_model::engine::{
    LinkEvent, PollingOfCpu, SINK_SCHEMA, SinkAccount, SinkEnd, SinkFates, SinkInterval, SinkStart,
    SinkVariable,
};

use crate::application::{
    EngineApplication, GrantedSetup, Helpers, KernelSide, ReceiveWish, facts_of, restore, set_up,
};
use crate::device::DeviceChoice;
use crate::device::port::{BusyPolling, DeviceKind, Intake, PacketInput, Reception, Take};
use crate::device::presence::{GonePolicy, Presence, PresenceChange};
use crate::engine::{EngineSettings, Engines, polling_by_cpu, polling_of_all};
use crate::error::EngineError;
use crate::knob_socket::KnobServer;
use crate::knobs::{is_counter, over_all_cpus};
use crate::names::Named;
use crate::runner::PortRunner;
use crate::runner::clock::{Work, await_end, now_ns, own_cpu_ns};
use crate::sink::check::{CheckedStreams, PacketCheck};

/// How often it is looked whether the rings are empty at the end.
const DRAIN_LOOKS: u32 = 20;

/// What is received, and how.
#[derive(Clone, Debug)]
pub struct SinkSettings {
    /// The interface, in the network namespace of the calling thread.
    pub interface: String,
    /// By which device.
    pub device: DeviceChoice,
    /// Which packets.
    pub take: Take,
    /// Frames that each queue keeps until they are polled for; a power of two.
    pub frames: u32,
    /// CPU time to spend on each packet.
    pub work_ns: u64,
    /// By which numbers in the packets losses are looked for.
    pub check: Option<PacketCheck>,
    /// How the engines run, and where.
    pub engine: EngineSettings,
    /// What is asked of the kernel's side.
    pub kernel_side: KernelSide,
    /// CPUs for the kernel's threads, where it is to have any; none: those that the engine leaves free.
    pub kernel_cpus: Vec<u32>,
    /// What to do when the interface is gone.
    pub gone: GonePolicy,
}

/// Counts the packets of one queue.
struct PollerCounter {
    work: Work,
    packets: u64,
    bytes: u64,
    streams: Option<Box<CheckedStreams>>,
}

impl PollerCounter {
    /// Makes a counter for each queue.
    fn of(settings: &SinkSettings) -> impl FnMut() -> Self {
        let work = Work::of_ns(settings.work_ns);
        let check = settings.check;
        move || PollerCounter {
            work,
            packets: 0,
            bytes: 0,
            streams: check.map(|check| Box::new(CheckedStreams::new(check))),
        }
    }
}

impl PacketInput for PollerCounter {
    fn packet(&mut self, frame: &[u8]) {
        self.packets += 1;
        self.bytes += frame.len() as u64;
        if let Some(streams) = &mut self.streams {
            streams.record(frame, now_ns());
        }
        self.work.spend();
    }
}

/// What receives while the interface is there.
struct Receiving {
    // Declared first: nobody asks an engine that has ended.
    knobs: Option<KnobServer>,
    // The engines' threads end before the device leaves the interface.
    engines: Engines<PollerCounter>,
    intake: Box<dyn Intake>,
    // Put back last: taking the program off may take NAPI instances along.
    granted: Option<Box<dyn GrantedSetup>>,
}

impl Receiving {
    /// Starts to receive.
    fn start(
        settings: &SinkSettings,
        origin: Origin,
        helpers: &dyn Helpers,
    ) -> Result<(Self, SinkStart), EngineError> {
        let (interface, take) = (&settings.interface, &settings.take);
        let wish = ReceiveWish {
            interface,
            side: settings.kernel_side,
            kernel_cpus: &settings.kernel_cpus,
            engine_cpus: &settings.engine.cpus,
        };
        let granted = set_up(helpers, &wish)?;
        let reception = Reception {
            interface,
            take,
            frames: settings.frames,
            transmit_frames: 0,
        };
        let opened = settings
            .device
            .receive(&reception, PollerCounter::of(settings))?;
        let queues = opened.ports.len() as u32;
        let engines = Engines::start(&settings.engine, opened.ports, helpers)?;
        let (knobs, knobs_refused) = engines.serve_knobs(interface)?;
        let idle_polling = engines.ask(|runner| runner.idle_polling().name())?;
        let engine = engines.facts(&settings.engine.runner);
        let start = SinkStart {
            schema: String::from(SINK_SCHEMA),
            origin,
            interface: interface.clone(),
            device: String::from(opened.kind.name()),
            refused_devices: opened.refused,
            program_mode: opened.program_mode.map(|mode| String::from(mode.name())),
            is_zero_copy: opened.is_zero_copy,
            queues,
            udp_ports: match take {
                Take::Ports(ports) => Some(ports.iter().copied().collect()),
                Take::AllUdp => None,
            },
            discipline: engine.discipline,
            polled_side: String::from(match settings.kernel_side {
                KernelSide::Polling => "user-and-kernel",
                KernelSide::AsIs | KernelSide::Threaded => "user",
            }),
            kernel_side: facts_of(granted.as_deref()),
            hz: engine.hz,
            controller: engine.controller,
            storm_threshold_passes: engine.storm_threshold_passes,
            cpus: engine.cpus,
            idle_polling: String::from(idle_polling.first().copied().unwrap_or("")),
            scheduling: engine.scheduling,
            work_ns: settings.work_ns,
            check: settings.check.map(|check| String::from(check.name)),
            other_end_changes: Vec::new(),
            knobs_refused,
        };
        let receiving = Receiving {
            knobs,
            engines,
            intake: opened.intake,
            granted,
        };
        Ok((receiving, start))
    }

    /// Takes nothing more, and gives what has come already to the program.
    fn stop(mut self, began: Instant) -> Result<ReceivedStretch, EngineError> {
        self.intake.stop();
        await_end(DRAIN_LOOKS, || {
            let waiting = self.engines.ask(|runner| waiting(runner));
            waiting.is_ok_and(|waiting| waiting.iter().sum::<u64>() == 0)
        });
        // What became of the interface since the last check counts, too.
        self.engines.ask(PortRunner::check_ports)?;
        let fates = self.intake.fates()?;
        drop(self.knobs);
        let runners = self.engines.end()?;
        let engines: Vec<_> = runners.iter().map(look_at).collect();
        Ok(ReceivedStretch {
            look: look_over(engines, fates, began),
            runners,
            granted: self.granted,
        })
    }
}

/// What one stretch of receiving came to.
struct ReceivedStretch {
    look: SinkInterval,
    runners: Vec<PortRunner<PollerCounter>>,
    granted: Option<Box<dyn GrantedSetup>>,
}

/// What all stretches came to. No queue is held any more: it may be opened again.
#[derive(Default)]
struct Past {
    look: SinkInterval,
    waiting_packets: u64,
    streams: Vec<CheckedStreams>,
    busy_polling: Option<BusyPolling>,
    /// Of the last engines.
    polling_by_cpu: Vec<PollingOfCpu>,
}

impl Past {
    fn add(&mut self, received: ReceivedStretch, cpus: &[u32]) {
        let runners = received.runners;
        self.look = together(&self.look, received.look);
        self.waiting_packets += runners.iter().map(waiting).sum::<u64>();
        self.polling_by_cpu = polling_by_cpu(cpus, &runners);
        for port in runners.into_iter().flat_map(PortRunner::into_ports) {
            let outcomes = [self.busy_polling, port.queue.busy_polling()];
            self.busy_polling = outcomes.into_iter().flatten().min();
            self.streams
                .extend(port.input.streams.map(|streams| *streams));
        }
    }
}

/// A sink that runs.
pub struct Sink {
    settings: SinkSettings,
    /// `None` while the interface is gone.
    receiving: Option<Receiving>,
    presence: Presence,
    /// What came before the interface was last gone.
    past: Past,
    start: SinkStart,
    began: Instant,
    last: SinkInterval,
    /// CPU time of the thread that attends the sink, when it first did.
    attended_ns: Option<u64>,
}

impl Sink {
    /// Starts to receive.
    ///
    /// # Errors
    /// When the interface cannot be had, or a setting is out of range. Nothing is left at the interface then.
    pub fn start(
        settings: &SinkSettings,
        origin: Origin,
        helpers: &dyn Helpers,
    ) -> Result<Self, EngineError> {
        let (receiving, start) = Receiving::start(settings, origin, helpers)?;
        Ok(Sink {
            presence: Presence::of(&settings.interface, settings.gone)?,
            settings: settings.clone(),
            receiving: Some(receiving),
            past: Past::default(),
            start,
            began: Instant::now(),
            last: SinkInterval::default(),
            attended_ns: None,
        })
    }

    /// CPU time of the thread that attends the sink, which calls this, since it first did.
    fn attendance_ns(&mut self) -> u64 {
        let now_ns = own_cpu_ns();
        now_ns.saturating_sub(*self.attended_ns.get_or_insert(now_ns))
    }

    /// Leaves an interface that is gone, or is to be opened again. Its knobs stay as they are.
    fn leave(&mut self) -> Result<(), EngineError> {
        let Some(receiving) = self.receiving.take() else {
            return Ok(());
        };
        let received = receiving.stop(self.began)?;
        if let Some(runner) = received.runners.first() {
            self.settings.engine.knobs = settings_of(runner.poller());
        }
        self.past.add(received, &self.start.cpus);
        Ok(())
    }

    fn take_again(&mut self, helpers: &dyn Helpers) -> Result<(), EngineError> {
        self.settings.interface.clone_from(&self.presence.name);
        let origin = self.start.origin.clone();
        let (receiving, _) = Receiving::start(&self.settings, origin, helpers)?;
        self.receiving = Some(receiving);
        Ok(())
    }
}

impl EngineApplication for Sink {
    type Start = SinkStart;
    type Interval = SinkInterval;
    type End = SinkEnd;

    fn facts(&self) -> &SinkStart {
        &self.start
    }

    fn is_over(&self) -> bool {
        self.presence.ends()
    }

    fn attend(&mut self, helpers: &dyn Helpers) -> Result<Vec<LinkEvent>, EngineError> {
        self.attendance_ns();
        let Some(found) = self.presence.look() else {
            return Ok(Vec::new());
        };
        // A TAP interface would go with its end, and takes a change as it is.
        if found.0 == PresenceChange::Otherwise && self.start.device == DeviceKind::Tap.name() {
            return Ok(vec![found.1]);
        }
        self.leave()?;
        let taken = match found.0 {
            PresenceChange::Gone => Ok(()),
            PresenceChange::Back | PresenceChange::Otherwise => self.take_again(helpers),
        };
        Ok(self.presence.events_of(found, taken))
    }

    fn interval(&mut self) -> Result<SinkInterval, EngineError> {
        let now = match &self.receiving {
            Some(receiving) => {
                let engines = receiving.engines.ask(|runner| look_at(runner));
                look_over(engines?, receiving.intake.fates()?, self.began)
            }
            None => SinkInterval {
                end_seconds: self.began.elapsed().as_secs_f64(),
                ..SinkInterval::default()
            },
        };
        let mut now = together(&self.past.look, now);
        now.counts.cpu_ns += self.attendance_ns();
        let interval = since(&now, &self.last);
        self.last = now;
        Ok(interval)
    }

    fn end(mut self, signal: Option<i32>) -> Result<SinkEnd, EngineError> {
        // From here on nothing is taken, so that the account closes.
        let duration_seconds = self.began.elapsed().as_secs_f64();
        if let Some(receiving) = self.receiving.take() {
            let mut received = receiving.stop(self.began)?;
            restore(
                received.granted.take(),
                &self.settings.interface,
                &self.start.kernel_side,
            )?;
            self.past.add(received, &self.start.cpus);
        }
        self.past.look.counts.cpu_ns += self.attendance_ns();
        let past = self.past;
        let outcome = past.busy_polling.map(BusyPolling::name);
        Ok(SinkEnd {
            duration_seconds,
            totals: past.look.counts,
            account: account_of(&past.look, past.waiting_packets),
            check: CheckedStreams::total(past.streams.iter()),
            events: past.look.events,
            kernel_busy_poll: outcome.map(String::from),
            other_end_left: Vec::new(),
            polling: past.look.polling,
            polling_by_cpu: past.polling_by_cpu,
            ended_by_signal: signal,
        })
    }
}

/// What came before together with what came since; values are those of now.
fn together(past: &SinkInterval, mut now: SinkInterval) -> SinkInterval {
    let Some(first) = past.polling.first() else {
        return now;
    };
    debug_assert_eq!(first.name, Knob::ALL[0].name());
    let mut before = past.clone();
    for (now, before) in counters(&mut now).into_iter().zip(counters(&mut before)) {
        *now += *before;
    }
    if now.polling.is_empty() {
        (now.counts.kernel_ns, now.fates.passed_packets) =
            (past.counts.kernel_ns, past.fates.passed_packets);
        now.polling.clone_from(&past.polling);
        return now;
    }
    let kernel_ns = now.counts.kernel_ns.zip(past.counts.kernel_ns);
    now.counts.kernel_ns = kernel_ns.map(|(now, past)| now + past);
    let passed = now.fates.passed_packets.zip(past.fates.passed_packets);
    now.fates.passed_packets = passed.map(|(now, past)| now + past);
    for (now, past) in now.polling.iter_mut().zip(&past.polling) {
        if Knob::from_name(&now.name).is_some_and(is_counter) {
            now.value = now.value.wrapping_add(past.value);
        }
    }
    now
}

/// The knobs that can be written, as they are: `burst_max` first, which bounds another one.
fn settings_of(poller: &Poller) -> Vec<(Knob, u32)> {
    let knobs = [
        Knob::BurstMax,
        Knob::EachBurst,
        Knob::IdlePoll,
        Knob::UserFrac,
        Knob::RegFrac,
    ];
    knobs.map(|knob| (knob, poller.read(knob))).into()
}

fn account_of(look: &SinkInterval, waiting_packets: u64) -> SinkAccount {
    let (counts, fates) = (&look.counts, look.fates);
    let left = |packets: u64| i64::try_from(packets).unwrap_or(i64::MAX);
    let found = [
        counts.received_packets,
        counts.ring_full_packets,
        counts.no_memory_packets,
        waiting_packets,
    ];
    SinkAccount {
        fates,
        received_packets: counts.received_packets,
        ring_full_packets: counts.ring_full_packets,
        no_memory_packets: counts.no_memory_packets,
        waiting_packets,
        residual_packets: left(fates.taken_packets) - left(found.iter().sum()),
    }
}

fn waiting(runner: &PortRunner<PollerCounter>) -> u64 {
    let ports = runner.ports().iter();
    ports.map(|port| u64::from(port.queue.waiting())).sum()
}

/// What one engine has counted until now.
fn look_at(runner: &PortRunner<PollerCounter>) -> (Instant, SinkInterval) {
    let tallies = runner.tallies();
    let mut look = SinkInterval {
        counts: tallies.counts,
        events: tallies.events,
        polling: polling_of_all(std::slice::from_ref(runner)),
        ..SinkInterval::default()
    };
    let (counts, events) = (&mut look.counts, &mut look.events);
    counts.received_packets = 0;
    for port in runner.ports() {
        let (input, drops, link) = (&port.input, port.drops(), port.watch);
        counts.received_packets += input.packets;
        counts.received_bytes += input.bytes;
        counts.ring_full_packets += drops.ring_full;
        counts.no_memory_packets += drops.no_memory;
        events.link_loss_events += link.losses;
        events.mtu_changes += link.mtu_changes;
    }
    (Instant::now(), look)
}

/// What engines counted, and what became of the frames, from when they began until now. The time of the look is the
/// engines': who asks may get the CPU much later.
fn look_over(
    mut engines: Vec<(Instant, SinkInterval)>,
    fates: SinkFates,
    began: Instant,
) -> SinkInterval {
    let latest = engines.iter().map(|(time, _)| *time).max();
    let mut look = SinkInterval {
        end_seconds: latest.map_or(0.0, |time| time.duration_since(began).as_secs_f64()),
        fates,
        polling: polling(&engines),
        ..SinkInterval::default()
    };
    // What one of them does not know, nobody knows of all.
    let by_kernel = engines.iter().map(|(_, one)| one.counts.kernel_ns);
    look.counts.kernel_ns = by_kernel.sum();
    for (_, one) in &mut engines {
        for (sum, more) in counters(&mut look).into_iter().zip(counters(one)) {
            *sum += *more;
        }
    }
    look
}

/// The counters that are always known.
fn counters(look: &mut SinkInterval) -> [&mut u64; 16] {
    let (counts, fates, events) = (&mut look.counts, &mut look.fates, &mut look.events);
    [
        &mut counts.received_packets,
        &mut counts.received_bytes,
        &mut counts.ring_full_packets,
        &mut counts.no_memory_packets,
        &mut counts.polls,
        &mut counts.empty_polls,
        &mut counts.wake_up_events,
        &mut counts.throttled_passes,
        &mut counts.cpu_ns,
        &mut fates.taken_packets,
        &mut fates.without_socket_packets,
        &mut fates.too_long_packets,
        &mut events.ticks,
        &mut events.discipline_switches,
        &mut events.link_loss_events,
        &mut events.mtu_changes,
    ]
}

/// What was counted since an earlier look. The counters of an interface that was removed may be gone with it.
fn since(now: &SinkInterval, before: &SinkInterval) -> SinkInterval {
    let (mut grown, mut past) = (now.clone(), before.clone());
    for (now, before) in counters(&mut grown).into_iter().zip(counters(&mut past)) {
        *now = now.saturating_sub(*before);
    }
    let since = |now: &mut Option<u64>, before: Option<u64>| {
        *now = now.map(|now| now.saturating_sub(before.unwrap_or(0)));
    };
    since(&mut grown.counts.kernel_ns, before.counts.kernel_ns);
    since(&mut grown.fates.passed_packets, before.fates.passed_packets);
    grown.start_seconds = before.end_seconds;
    grown.polling = polling_since(&now.polling, &before.polling);
    grown
}

/// The knobs and counters over all engines, each of which has them in the order of [`Knob::ALL`].
fn polling(engines: &[(Instant, SinkInterval)]) -> Vec<SinkVariable> {
    let variable = |(place, knob): (usize, &Knob)| {
        let engines = engines.iter();
        let values: Vec<u32> = engines.map(|(_, one)| one.polling[place].value).collect();
        SinkVariable {
            name: String::from(knob.name()),
            value: over_all_cpus(*knob, &values),
        }
    };
    Knob::ALL.iter().enumerate().map(variable).collect()
}

/// Values as they are now, and counters as they have grown.
fn polling_since(now: &[SinkVariable], before: &[SinkVariable]) -> Vec<SinkVariable> {
    let at = |name: &str| before.iter().find(|variable| variable.name == name);
    let grown = |variable: &SinkVariable| {
        let past = at(&variable.name).map_or(0, |past| past.value);
        let counts = Knob::from_name(&variable.name).is_some_and(is_counter);
        SinkVariable {
            name: variable.name.clone(),
            value: match counts {
                true => variable.value.wrapping_sub(past),
                false => variable.value,
            },
        }
    };
    now.iter().map(grown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(received_packets: u64, burst: u32, lost_polls: u32) -> (Instant, SinkInterval) {
        let mut look = SinkInterval {
            polling: polling_of_all::<PollerCounter>(&[]),
            ..SinkInterval::default()
        };
        for variable in &mut look.polling {
            variable.value = match &*variable.name {
                "burst" => burst,
                "lost_polls" => lost_polls,
                _ => 0,
            };
        }
        look.counts.received_packets = received_packets;
        look.events.ticks = 10 * received_packets;
        look.events.mtu_changes = 1;
        (Instant::now(), look)
    }

    #[test]
    fn an_interval_has_what_counters_grew_by_and_values_as_they_are() {
        let began = Instant::now();
        let fates = |taken_packets, passed_packets| SinkFates {
            taken_packets,
            passed_packets,
            ..SinkFates::default()
        };
        let first = look_over(
            vec![engine(5, 7, 1), engine(6, 9, 2)],
            fates(12, Some(3)),
            began,
        );
        let second = look_over(
            vec![engine(8, 3, 1), engine(9, 2, 6)],
            fates(20, Some(4)),
            began,
        );
        let interval = since(&second, &first);
        assert_eq!(interval.counts.received_packets, 6);
        assert_eq!(interval.fates.taken_packets, 8);
        assert_eq!(interval.fates.passed_packets, Some(1));
        assert_eq!(
            (interval.events.ticks, interval.events.mtu_changes),
            (60, 0)
        );
        let value = |name: &str| {
            let mut found = interval.polling.iter();
            found.find(|variable| variable.name == name).unwrap().value
        };
        assert_eq!((value("lost_polls"), value("burst")), (4, 3));
        assert_eq!(interval.polling.len(), Knob::ALL.len());
        // The first interval begins with nothing.
        let whole = since(&first, &SinkInterval::default());
        assert_eq!(
            (whole.start_seconds, whole.counts.received_packets),
            (0.0, 11)
        );
    }
}
