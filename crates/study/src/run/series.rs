//! Traffic within a trial, step by step: readings of all hosts, aligned in time.
//!
//! Readings run only while the traffic does, and never while CPU time is accounted for. A trial whose counters could
//! not be read has no series, which is not an error.

use std::time::Duration;

use nicpoll_lab::{ClockOffset, HostClient, HostRequest, Lab, LabError};
use nicpoll_model::line::IpVersion;
use nicpoll_model::{CoreSeries, TrialHost, TrialSeries, WorkUnit};
use nicpoll_observe::{CoreTicks, CpuSample, FlowReading, TICKS_PER_SECOND};

/// Running readings on all hosts.
pub struct RunningReadings {
    step: Duration,
    duration: Duration,
}

impl RunningReadings {
    /// Starts readings on every host of the path, for traffic of this length. Of several senders or receivers nothing is
    /// read: a series is of one path.
    pub fn open(
        lab: &mut Lab,
        duration: Duration,
        ip: IpVersion,
    ) -> Result<Option<Self>, LabError> {
        if lab.has_further() {
            return Ok(None);
        }
        let step = TrialSeries::step_seconds(duration.as_secs_f64());
        let step = Duration::from_secs_f64(step);
        let cores = lab.cpus();
        for (place, host) in lab.way().enumerate() {
            // The cores are read at one host: the others share its machine, or are not studied.
            let read = (place == STUDIED).then(|| cores.clone());
            let cores = read.unwrap_or_default();
            host.tell(HostRequest::OpenSeries { step, ip, cores })?;
        }
        Ok(Some(RunningReadings { step, duration }))
    }

    /// Ends them. `None` if there was no time for a step.
    pub fn close(
        self,
        lab: &mut Lab,
        machines: &MachineReadings,
        unit: WorkUnit,
    ) -> Result<Option<TrialSeries>, LabError> {
        let hosts = lab.way().map(|host| host.ask(HostRequest::CloseSeries));
        let hosts: Vec<Vec<FlowReading>> = hosts.collect::<Result<_, LabError>>()?;
        Ok(series(
            &machines.aligned(&hosts),
            unit,
            self.step,
            self.duration,
        ))
    }
}

/// A host's readings, and when the receiver took its first one, by this host's clock.
#[derive(Clone, Copy)]
struct AlignedReadings<'a> {
    readings: &'a [FlowReading],
    origin_ns: u64,
}

impl<'a> AlignedReadings<'a> {
    /// Readings of a host on the receiver's machine, which began together with the receiver's.
    fn together(readings: &'a Vec<FlowReading>) -> Self {
        AlignedReadings {
            readings,
            origin_ns: readings.first().map_or(0, |first| first.at_ns),
        }
    }
}

/// CPU times and clocks of hosts that are machines of their own, read before a window. A host without nicpoll tells
/// neither.
pub struct MachineReadings(Vec<Option<(CpuSample, ClockOffset)>>);

impl MachineReadings {
    /// Reads them, and tells the traffic how the clocks of its ends differ. Nothing is read of hosts of one machine.
    pub fn open(lab: &mut Lab) -> Result<Self, LabError> {
        if !lab.is_apart() {
            return Ok(MachineReadings(Vec::new()));
        }
        let read = lab.way().map(MachineReadings::read);
        let read: Vec<_> = read.collect::<Result<_, LabError>>()?;
        if let (Some(Some((_, sender))), Some(Some((_, receiver)))) = (read.first(), read.last()) {
            lab.receiver_ahead_ns = receiver.wall_ns - sender.wall_ns;
        }
        Ok(MachineReadings(read))
    }

    /// Aligns the hosts' readings by their clocks, if these differ.
    fn aligned<'a>(&self, hosts: &'a [Vec<FlowReading>]) -> Vec<AlignedReadings<'a>> {
        let mut all: Vec<_> = hosts.iter().map(AlignedReadings::together).collect();
        if let (Some(Some((_, receivers))), Some(receiver)) = (self.0.last(), all.last().copied()) {
            for (host, own) in all.iter_mut().zip(&self.0) {
                let Some((_, clock)) = own else {
                    continue;
                };
                let ahead_ns = clock.monotonic_ns - receivers.monotonic_ns;
                host.origin_ns = receiver.origin_ns.saturating_add_signed(ahead_ns);
            }
        }
        all
    }

    fn read(host: &mut HostClient) -> Result<Option<(CpuSample, ClockOffset)>, LabError> {
        let clock = host.clock()?;
        clock
            .map(|clock| Ok((host.ask(HostRequest::CpuTime)?, clock)))
            .transpose()
    }

    /// Reads them again.
    pub fn close(self, lab: &mut Lab) -> Result<Vec<TrialHost>, LabError> {
        let mut hosts = Vec::new();
        for (host, before) in lab.way().zip(self.0) {
            let after = MachineReadings::read(host)?;
            let Some(((cpu, clock), (cpu_after, clock_after))) = before.zip(after) else {
                continue;
            };
            let cores: Vec<u32> = cpu_after.cores().into_iter().take(CORES_MAX).collect();
            hosts.push(TrialHost {
                host: String::from(host.name()),
                cores: cpu_after.since(&cpu, &cores).states,
                clock_ahead_ns: clock.wall_ns,
                clock_error_ns: clock.error_ns,
                clock_gained_ns: clock_after.wall_ns - clock.wall_ns,
            });
        }
        Ok(hosts)
    }
}

/// The CPUs of a machine of which a trial keeps the states.
const CORES_MAX: usize = 64;

/// Index of the studied host on a packet's path: after the sender.
const STUDIED: usize = 1;

/// Makes the steps of the receiver's readings, with the other hosts' counts at these times; `hosts` are in the order
/// of a packet's path. A step of less than half its length, after a late reading, is joined to the next one. Steps
/// after the traffic's time, when an end only waits, are left out.
fn series(
    hosts: &[AlignedReadings<'_>],
    unit: WorkUnit,
    step: Duration,
    duration: Duration,
) -> Option<TrialSeries> {
    let (sender, receiver) = (*hosts.first()?, *hosts.last()?);
    let half = step.as_secs_f64() / 2.0;
    let mut ends = vec![0.0];
    for time in receiver
        .readings
        .iter()
        .map(|reading| seconds(receiver, reading))
    {
        if time - ends[ends.len() - 1] >= half && time <= duration.as_secs_f64() + half {
            ends.push(time);
        }
    }
    if ends.len() < 2 || hosts.iter().any(|host| host.readings.is_empty()) {
        return None;
    }
    let counts = |host: AlignedReadings<'_>, read: CounterOf| counts(host, &ends, read);
    let datagrams = |read: CounterOf| (unit != WorkUnit::Bytes).then(|| counts(receiver, read));
    let mut dropped_frames = vec![0; ends.len() - 1];
    for link in hosts.windows(2) {
        let given = counts(link[0], |reading| reading.tx_dropped);
        let taken = counts(link[1], |reading| reading.rx_dropped);
        let both = given.into_iter().zip(taken);
        for (sum, (given, taken)) in dropped_frames.iter_mut().zip(both) {
            *sum += given.max(taken);
        }
    }
    let studied = *hosts.get(STUDIED)?;
    let readings = studied.readings;
    let has_polls = readings.iter().all(|reading| reading.polls.is_some());
    let has_machine = readings
        .iter()
        .all(|reading| reading.cut_short_softirqs.is_some());
    let rounded = |seconds: &f64| (seconds * 1e5).round() / 1e5;
    Some(TrialSeries {
        step_seconds: step.as_secs_f64(),
        end_seconds: ends[1..].iter().map(rounded).collect(),
        sent_frames: counts(sender, |reading| reading.tx_packets + reading.tx_dropped),
        received_bytes: counts(receiver, |reading| reading.rx_bytes),
        read_datagrams: datagrams(|reading| reading.udp_read),
        dropped_frames,
        dropped_datagrams: datagrams(|reading| reading.udp_dropped),
        polls: has_polls.then(|| counts(studied, |reading| reading.polls.unwrap_or(0))),
        cores: cores(studied, &ends),
        cut_short_softirqs: has_machine
            .then(|| counts(studied, |reading| reading.cut_short_softirqs.unwrap_or(0))),
    })
}

/// A counter of a reading.
type CounterOf = fn(&FlowReading) -> u64;

/// Returns a host's counts between these times.
fn counts(host: AlignedReadings<'_>, ends: &[f64], read: impl Fn(&FlowReading) -> u64) -> Vec<u64> {
    let at = ends.iter().map(|end| count_at(host, &read, *end));
    let at: Vec<u64> = at.collect();
    at.windows(2)
        .map(|pair| pair[1].saturating_sub(pair[0]))
        .collect()
}

/// Returns the CPU time of a host's cores between these times, for cores in every reading.
fn cores(host: AlignedReadings<'_>, ends: &[f64]) -> Vec<CoreSeries> {
    let of = |reading: &FlowReading, core: u32| {
        let mut cores = reading.cores.iter();
        cores.find(|ticks| ticks.core == core).copied()
    };
    let first = host
        .readings
        .first()
        .map_or(&[][..], |reading| reading.cores.as_slice());
    let names = first.iter().map(|ticks| ticks.core);
    let always = names.filter(|core| {
        let mut readings = host.readings.iter();
        readings.all(|reading| of(reading, *core).is_some())
    });
    always
        .map(|core| {
            // Microseconds: a time between two readings is seldom whole ticks.
            let seconds = |ticks: fn(CoreTicks) -> u64| -> Vec<f64> {
                let micros = |reading: &FlowReading| {
                    let ticks = of(reading, core).map_or(0, ticks);
                    ticks * (1e6 / TICKS_PER_SECOND) as u64
                };
                let micros = counts(host, ends, micros).into_iter();
                micros.map(|micros| micros as f64 / 1e6).collect()
            };
            CoreSeries {
                core,
                busy_seconds: seconds(CoreTicks::busy),
                interrupt_seconds: seconds(|ticks| ticks.irq + ticks.softirq),
            }
        })
        .collect()
}

/// Returns the time of a reading since the receiver's first one, negative if it was taken before.
fn seconds(host: AlignedReadings<'_>, reading: &FlowReading) -> f64 {
    reading.at_ns.wrapping_sub(host.origin_ns).cast_signed() as f64 / 1e9
}

/// Returns a host's count at a time, interpolated between readings.
fn count_at(host: AlignedReadings<'_>, read: impl Fn(&FlowReading) -> u64, time: f64) -> u64 {
    let readings = host.readings;
    let next = readings.partition_point(|reading| seconds(host, reading) < time);
    let Some(after) = readings.get(next) else {
        return readings.last().map_or(0, read);
    };
    let Some(before) = next.checked_sub(1).map(|index| &readings[index]) else {
        return read(after);
    };
    let (from, to) = (seconds(host, before), seconds(host, after));
    let part = (time - from) / (to - from).max(1e-9);
    let passed = read(after).saturating_sub(read(before)) as f64;
    read(before) + (part * passed).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(100);

    fn readings(each: FlowReading, times_ms: &[u64]) -> Vec<FlowReading> {
        let at = |(index, ms): (u64, &u64)| FlowReading {
            at_ns: 5_000_000_000 + ms * 1_000_000,
            tx_packets: index * each.tx_packets,
            tx_dropped: index * each.tx_dropped,
            rx_bytes: index * each.rx_bytes,
            rx_dropped: index * each.rx_dropped,
            udp_read: index * each.udp_read,
            udp_dropped: index * each.udp_dropped,
            polls: each.polls.map(|polls| index * polls),
            cores: each.cores.iter().map(|core| worked(*core, index)).collect(),
            cut_short_softirqs: each.cut_short_softirqs.map(|count| index * count),
        };
        (0..).zip(times_ms).map(at).collect()
    }

    /// Makes a core's ticks after this many readings.
    fn worked(core: CoreTicks, readings: u64) -> CoreTicks {
        CoreTicks {
            core: core.core,
            system: readings * core.system,
            softirq: readings * core.softirq,
            idle: readings * core.idle,
            ..CoreTicks::default()
        }
    }

    fn together(hosts: &[Vec<FlowReading>; 2]) -> Vec<AlignedReadings<'_>> {
        hosts.iter().map(AlignedReadings::together).collect()
    }

    fn of(unit: WorkUnit, times_ms: &[u64]) -> Option<TrialSeries> {
        let sender = FlowReading {
            tx_packets: 90,
            tx_dropped: 10,
            ..FlowReading::default()
        };
        let receiver = FlowReading {
            rx_bytes: 9000,
            rx_dropped: 8,
            udp_read: 85,
            udp_dropped: 5,
            polls: Some(7),
            cores: vec![CoreTicks {
                core: 1,
                system: 3,
                softirq: 4,
                idle: 3,
                ..CoreTicks::default()
            }],
            cut_short_softirqs: Some(2),
            ..FlowReading::default()
        };
        let hosts = [readings(sender, times_ms), readings(receiver, times_ms)];
        series(&together(&hosts), unit, STEP, 3 * STEP)
    }

    #[test]
    fn both_hosts_stand_side_by_side_and_a_drop_that_both_count_is_one() {
        let series = of(WorkUnit::Datagrams, &[0, 100, 200, 300]).unwrap();
        assert_eq!(series.end_seconds, [0.1, 0.2, 0.3]);
        assert_eq!(series.sent_frames, [100; 3]);
        assert_eq!(series.read_datagrams, Some(vec![85; 3]));
        assert_eq!(series.dropped_frames, [10; 3]);
        assert_eq!(series.dropped(), [15; 3]);
        assert_eq!(series.polls, Some(vec![7; 3]));
        assert_eq!(series.cores.len(), 1);
        let core = &series.cores[0];
        assert_eq!((core.core, &core.busy_seconds[..]), (1, &[0.07; 3][..]));
        assert_eq!(core.interrupt_seconds, [0.04; 3]);
        assert_eq!(series.cut_short_softirqs, Some(vec![2; 3]));
        let stream = of(WorkUnit::Bytes, &[0, 100]).unwrap();
        assert_eq!(
            (stream.read_datagrams, stream.received_bytes),
            (None, vec![9000])
        );
    }

    #[test]
    fn a_late_reading_ends_no_series_and_hosts_are_held_against_each_other_by_time() {
        let late = of(WorkUnit::Datagrams, &[0, 170, 200, 300]).unwrap();
        assert_eq!(late.end_seconds, [0.17, 0.3]);
        // The third reading makes no step; its counts are in the last one.
        assert_eq!(late.read_datagrams, Some(vec![85, 170]));
        let sender = FlowReading {
            tx_packets: 100,
            ..FlowReading::default()
        };
        let hosts = [
            readings(sender, &[0, 50, 150, 250, 350]),
            readings(FlowReading::default(), &[0, 100, 200]),
        ];
        let apart = series(&together(&hosts), WorkUnit::Datagrams, STEP, 3 * STEP).unwrap();
        assert_eq!(apart.sent_frames, [150, 100]);
    }

    #[test]
    fn machines_are_aligned_by_their_clocks() {
        let sender = FlowReading {
            tx_packets: 100,
            ..FlowReading::default()
        };
        // The sender's clock is 7 s ahead, and its readings began 50 ms before the receiver's.
        let mut hosts = [
            readings(sender, &[6950, 7050, 7150, 7250, 7350]),
            readings(FlowReading::default(), &[0, 100, 200]),
        ];
        let clock = |monotonic_ns| ClockOffset {
            monotonic_ns,
            ..ClockOffset::default()
        };
        let cpu = || CpuSample::default();
        let machines = MachineReadings(vec![
            Some((cpu(), clock(9_000_000_000))),
            Some((cpu(), clock(2_000_000_000))),
        ]);
        let aligned = machines.aligned(&hosts);
        let apart = series(&aligned, WorkUnit::Datagrams, STEP, 3 * STEP).unwrap();
        assert_eq!(apart.sent_frames, [100, 100]);
        // Twice as many in the first of its steps: half of these are before the receiver's.
        for reading in &mut hosts[0][1..] {
            reading.tx_packets += 100;
        }
        let aligned = machines.aligned(&hosts);
        let apart = series(&aligned, WorkUnit::Datagrams, STEP, 3 * STEP).unwrap();
        assert_eq!(apart.sent_frames, [150, 100]);
    }

    #[test]
    fn what_comes_after_the_traffic_is_no_step() {
        // The rest of a step, and waiting for a report.
        let series = of(WorkUnit::Datagrams, &[0, 100, 200, 210]).unwrap();
        assert_eq!(series.end_seconds, [0.1, 0.2]);
        let waited = of(WorkUnit::Datagrams, &[0, 100, 200, 300, 400, 500]).unwrap();
        assert_eq!(waited.end_seconds, [0.1, 0.2, 0.3]);
        assert_eq!(of(WorkUnit::Datagrams, &[0, 20]), None);
    }
}
