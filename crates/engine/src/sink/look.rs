//! What a sink has counted until a moment, over all of its CPUs, and what lies between two such looks.
//!
//! What must hold: every counter of the end is in each interval, too, and the intervals add up to the end.

use std::time::Instant;

use nicpoll_core::Knob;
use nicpoll_model::sink::{SinkCounts, SinkEvents, SinkFates, SinkInterval, SinkVariable};

use super::SinkPort;
use crate::knobs::{is_counter, over_all_cpus};
use crate::port::Port;
use crate::runner::PortRunner;
use crate::take::Fates;

/// What one engine has counted.
pub(super) struct OfCpu {
    time: Instant,
    counts: SinkCounts,
    events: SinkEvents,
    /// In the order of [`Knob::ALL`].
    knobs: Vec<u32>,
}

impl OfCpu {
    pub(super) fn of(runner: &PortRunner<SinkPort>) -> Self {
        let (tallies, ports) = (runner.tallies(), runner.ports());
        let mut counts = SinkCounts {
            polls: tallies.polls,
            empty_polls: tallies.empty_polls,
            wake_up_events: tallies.wake_ups,
            throttled_passes: tallies.throttled,
            cpu_ns: tallies.cpu_ns,
            kernel_ns: tallies.kernel_ns,
            ..SinkCounts::default()
        };
        for port in ports {
            let (input, drops) = (port.input(), port.drops());
            counts.received_packets += input.packets;
            counts.received_bytes += input.bytes;
            counts.ring_full_packets += drops.ring_full;
            counts.no_memory_packets += drops.no_memory;
        }
        let links = || ports.iter().map(Port::link);
        OfCpu {
            time: Instant::now(),
            counts,
            events: SinkEvents {
                ticks: tallies.ticks,
                discipline_switches: tallies.changes,
                link_loss_events: links().map(|link| link.losses()).sum(),
                mtu_changes: links().map(|link| link.mtu_changes()).sum(),
            },
            knobs: Knob::ALL
                .iter()
                .map(|knob| runner.poller().read(*knob))
                .collect(),
        }
    }
}

/// What all engines of a sink have counted, and what brings their frames.
#[derive(Clone, Default)]
pub(super) struct Look {
    seconds: f64,
    pub(super) counts: SinkCounts,
    pub(super) fates: SinkFates,
    pub(super) events: SinkEvents,
    pub(super) polling: Vec<SinkVariable>,
}

impl Look {
    /// What engines counted that began at a time. That of the look is theirs: who asks may get the CPU much later.
    pub(super) fn over(engines: &[OfCpu], fates: &Fates, began: Instant) -> Self {
        let latest = engines.iter().map(|engine| engine.time).max();
        let mut look = Look {
            seconds: latest.map_or(0.0, |time| time.duration_since(began).as_secs_f64()),
            fates: SinkFates {
                taken_packets: fates.taken,
                passed_packets: fates.passed,
                without_socket_packets: fates.without_socket,
                too_long_packets: fates.too_long,
            },
            polling: polling(engines),
            ..Look::default()
        };
        look.counts.kernel_ns = Some(0);
        for engine in engines {
            add(&mut look.counts, &engine.counts);
            look.events.ticks += engine.events.ticks;
            look.events.discipline_switches += engine.events.discipline_switches;
            look.events.link_loss_events += engine.events.link_loss_events;
            look.events.mtu_changes += engine.events.mtu_changes;
        }
        look
    }

    /// What was counted since an earlier look.
    pub(super) fn since(&self, before: &Look) -> SinkInterval {
        let (fates, past) = (&self.fates, &before.fates);
        let (events, earlier) = (&self.events, &before.events);
        SinkInterval {
            start_seconds: before.seconds,
            end_seconds: self.seconds,
            counts: counts_since(&self.counts, &before.counts),
            fates: SinkFates {
                taken_packets: grown(fates.taken_packets, past.taken_packets),
                passed_packets: fates
                    .passed_packets
                    .map(|now| grown(now, past.passed_packets.unwrap_or(0))),
                without_socket_packets: grown(
                    fates.without_socket_packets,
                    past.without_socket_packets,
                ),
                too_long_packets: grown(fates.too_long_packets, past.too_long_packets),
            },
            events: SinkEvents {
                ticks: grown(events.ticks, earlier.ticks),
                discipline_switches: grown(events.discipline_switches, earlier.discipline_switches),
                link_loss_events: grown(events.link_loss_events, earlier.link_loss_events),
                mtu_changes: grown(events.mtu_changes, earlier.mtu_changes),
            },
            polling: polling_since(&self.polling, &before.polling),
        }
    }
}

/// The counters of an interface that was removed may be gone with it.
fn grown(now: u64, before: u64) -> u64 {
    now.saturating_sub(before)
}

fn add(sum: &mut SinkCounts, more: &SinkCounts) {
    sum.received_packets += more.received_packets;
    sum.received_bytes += more.received_bytes;
    sum.ring_full_packets += more.ring_full_packets;
    sum.no_memory_packets += more.no_memory_packets;
    sum.polls += more.polls;
    sum.empty_polls += more.empty_polls;
    sum.wake_up_events += more.wake_up_events;
    sum.throttled_passes += more.throttled_passes;
    sum.cpu_ns += more.cpu_ns;
    // What one of them does not know, nobody knows of all.
    let both = sum.kernel_ns.zip(more.kernel_ns);
    sum.kernel_ns = both.map(|(own, other)| own + other);
}

fn counts_since(now: &SinkCounts, before: &SinkCounts) -> SinkCounts {
    SinkCounts {
        received_packets: grown(now.received_packets, before.received_packets),
        received_bytes: grown(now.received_bytes, before.received_bytes),
        ring_full_packets: grown(now.ring_full_packets, before.ring_full_packets),
        no_memory_packets: grown(now.no_memory_packets, before.no_memory_packets),
        polls: grown(now.polls, before.polls),
        empty_polls: grown(now.empty_polls, before.empty_polls),
        wake_up_events: grown(now.wake_up_events, before.wake_up_events),
        throttled_passes: grown(now.throttled_passes, before.throttled_passes),
        cpu_ns: grown(now.cpu_ns, before.cpu_ns),
        kernel_ns: now
            .kernel_ns
            .map(|now| grown(now, before.kernel_ns.unwrap_or(0))),
    }
}

/// The knobs and counters over all engines.
fn polling(engines: &[OfCpu]) -> Vec<SinkVariable> {
    let variable = |(place, knob): (usize, &Knob)| {
        let values: Vec<u32> = engines.iter().map(|engine| engine.knobs[place]).collect();
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

    fn engine(received: u64, burst: u32, lost_polls: u32) -> OfCpu {
        let value = |knob: &Knob| match knob {
            Knob::Burst => burst,
            Knob::LostPolls => lost_polls,
            _ => 0,
        };
        OfCpu {
            time: Instant::now(),
            counts: SinkCounts {
                received_packets: received,
                ..SinkCounts::default()
            },
            events: SinkEvents {
                ticks: 10 * received,
                mtu_changes: 1,
                ..SinkEvents::default()
            },
            knobs: Knob::ALL.iter().map(value).collect(),
        }
    }

    #[test]
    fn an_interval_has_what_counters_grew_by_and_values_as_they_are() {
        let began = Instant::now();
        let fates = |taken, passed| Fates {
            taken,
            passed,
            ..Fates::default()
        };
        let first = Look::over(
            &[engine(5, 7, 1), engine(6, 9, 2)],
            &fates(12, Some(3)),
            began,
        );
        let second = Look::over(
            &[engine(8, 3, 1), engine(9, 2, 6)],
            &fates(20, Some(4)),
            began,
        );
        let interval = second.since(&first);
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
        let whole = first.since(&Look::default());
        assert_eq!(
            (whole.start_seconds, whole.counts.received_packets),
            (0.0, 11)
        );
    }
}
