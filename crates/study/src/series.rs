//! What passes in a trial from step to step: readings of all hosts, put side by side.
//!
//! What must hold: the readings run only while the traffic does, and never while CPU time is accounted for. What could
//! not be read is no error of the trial: it has no series then.

use std::time::Duration;

use nicpoll_model::line::IpVersion;
use nicpoll_model::{TrialSeries, WorkUnit};
use nicpoll_observe::FlowReading;

use crate::error::StudyError;
use crate::lab::Lab;

/// Readings that are being taken on all hosts.
pub struct Readings {
    step: Duration,
    duration: Duration,
}

impl Readings {
    /// Has every host on the way read what passes, for traffic of such a length.
    pub fn open(lab: &mut Lab, duration: Duration, ip: IpVersion) -> Result<Self, StudyError> {
        let step = TrialSeries::step_seconds(duration.as_secs_f64());
        let step = Duration::from_secs_f64(step);
        for host in lab.way() {
            host.open_series(step, ip)?;
        }
        Ok(Readings { step, duration })
    }

    /// Ends that. `None` when there was no time for a step.
    pub fn close(self, lab: &mut Lab, unit: WorkUnit) -> Result<Option<TrialSeries>, StudyError> {
        let mut hosts = Vec::new();
        for host in lab.way() {
            hosts.push(host.close_series()?);
        }
        Ok(series(&hosts, unit, self.step, self.duration))
    }
}

/// Where the studied host stands on a packet's way: behind the sender.
const STUDIED: usize = 1;

/// The steps of readings that all hosts took, in the order of a packet's way. Steps after the traffic's time, when an
/// end only waits, are left out, as is the rest of a step at the end.
fn series(
    hosts: &[Vec<FlowReading>],
    unit: WorkUnit,
    step: Duration,
    duration: Duration,
) -> Option<TrialSeries> {
    let readings = hosts.iter().map(Vec::len).min()?;
    let (sender, receiver) = (hosts.first()?, hosts.last()?);
    let seconds =
        |index: usize| receiver[index].at_ns.saturating_sub(receiver[0].at_ns) as f64 / 1e9;
    let half = step.as_secs_f64() / 2.0;
    let is_whole = |index: &usize| {
        let end = seconds(*index);
        end - seconds(index - 1) >= half && end <= duration.as_secs_f64() + half
    };
    let steps: Vec<usize> = (1..readings).take_while(is_whole).collect();
    steps.first()?;
    let counts = |host: &[FlowReading], read: fn(&FlowReading) -> u64| -> Vec<u64> {
        let passed = |index: &usize| read(&host[*index]).saturating_sub(read(&host[index - 1]));
        steps.iter().map(passed).collect()
    };
    let datagrams =
        |read: fn(&FlowReading) -> u64| (unit != WorkUnit::Bytes).then(|| counts(receiver, read));
    let mut dropped_frames = vec![0; steps.len()];
    for link in hosts.windows(2) {
        let given = counts(&link[0], |reading| reading.tx_dropped);
        let taken = counts(&link[1], |reading| reading.rx_dropped);
        let both = given.into_iter().zip(taken);
        for (sum, (given, taken)) in dropped_frames.iter_mut().zip(both) {
            *sum += given.max(taken);
        }
    }
    let studied = hosts.get(STUDIED)?;
    let has_polls = studied.iter().all(|reading| reading.polls.is_some());
    let rounded = |seconds: f64| (seconds * 1e5).round() / 1e5;
    Some(TrialSeries {
        step_seconds: step.as_secs_f64(),
        end_seconds: steps.iter().map(|index| rounded(seconds(*index))).collect(),
        sent_frames: counts(sender, |reading| reading.tx_packets + reading.tx_dropped),
        received_bytes: counts(receiver, |reading| reading.rx_bytes),
        read_datagrams: datagrams(|reading| reading.udp_read),
        dropped_frames,
        dropped_datagrams: datagrams(|reading| reading.udp_dropped),
        polls: has_polls.then(|| counts(studied, |reading| reading.polls.unwrap_or(0))),
    })
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
        };
        (0..).zip(times_ms).map(at).collect()
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
            ..FlowReading::default()
        };
        let hosts = [readings(sender, times_ms), readings(receiver, times_ms)];
        series(&hosts, unit, STEP, 3 * STEP)
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
        let stream = of(WorkUnit::Bytes, &[0, 100]).unwrap();
        assert_eq!(
            (stream.read_datagrams, stream.received_bytes),
            (None, vec![9000])
        );
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
