//! Turns what was measured into a trial: rates, ledger, evidence, and whether it counts.

use nicpoll_model::line::{IpVersion, Line, Packet};
use nicpoll_model::{
    Calibration, Conduct, Findings, Ledger, Placement, PollEvidence, RoundTrip, SpinnerShare,
    Trial, TrialFigures, TrialSeries, Warmup, WorkUnit,
};
use nicpoll_observe::{Account, CountedDatagrams, CpuDelta, Hosts, packet_ledger, tcp_ledger};
use nicpoll_traffic::workload::Books;

use crate::conduct::{Circumstances, conduct, rhythm_deviation};
use crate::cpu_window::{self, CpuWindow};
use crate::design::{NamedSetting, NamedWorkload};
use crate::host::{Changes, Edge};
use crate::lab::Lab;
use crate::trial::{Accounts, TrialPlace};

/// Everything that was measured of one trial.
pub struct Measured<'a> {
    /// Where it stands.
    pub place: TrialPlace,
    /// The traffic.
    pub workload: &'a NamedWorkload,
    /// What was asked for.
    pub setting: &'a NamedSetting,
    /// What it ran on.
    pub lab: &'a Lab,
    /// The receiver's namespace.
    pub netns_inode: u64,
    /// NAPI instances that the receiver had.
    pub napis: Vec<u32>,
    /// What the kernel told of changes during the run.
    pub changes: Changes,
    /// The warm-up.
    pub warmup: Warmup,
    /// How often the setting was proven before the traffic counted.
    pub proof_attempts: u32,
    /// How the timer was set.
    pub calibration: Option<Calibration>,
    /// What the programs counted.
    pub books: Books,
    /// Counters before and after, while all was quiet.
    pub accounts: [Accounts; 2],
    /// Where CPU time went in a run of its own; `None` when that cannot be accounted for exactly.
    pub cpu_window: Option<CpuWindow>,
    /// What a program beside the receiver got in a run of its own; `None` without one.
    pub spinner: Option<SpinnerShare>,
    /// The edges of the window.
    pub edges: [Edge; 2],
    /// What passed meanwhile, from step to step.
    pub series: Option<TrialSeries>,
}

/// Makes the trial.
pub fn judge(measured: Measured<'_>) -> Trial {
    let Measured {
        place, lab, books, ..
    } = &measured;
    let workload = measured.workload.request.workload();
    let unit = workload.unit();
    let ledger = ledger(&measured);
    let [opened, closed] = &measured.edges;
    let seconds = (closed.polls.at_ns - opened.polls.at_ns) as f64 / 1e9;
    let sampled = closed.cpu.since(&opened.cpu, &lab.cpus());
    let cpu = match &measured.cpu_window {
        Some(window) => cpu_window::exact(window, unit, &sampled),
        None => cpu_window::tick_sampled(&sampled, seconds, unit, books),
    };
    let polls = poll_evidence(&measured, seconds);
    let rate = |count: u64| count as f64 / seconds;
    let rhythm = (rate(polls.polls), rate(polls.rounds));
    let packets = books.packets;
    let conduct = judge_conduct(&measured, rhythm, &ledger);
    let findings = findings(&measured, &sampled, rhythm);
    let placement = placement(lab, &polls);
    let figures = TrialFigures {
        offered_packets: packets.map(|(offered, _)| offered),
        delivered_packets: packets.map(|(_, delivered)| delivered),
        delivered_bits_per_second: books.receiver.bits_per_second,
        delivered_packets_per_second: books.receiver.packets_per_second,
        delivered_line_ratio: line_ratio(
            lab.link.line().ok(),
            measured.workload.extent.ip,
            unit,
            workload.datagram_bytes(),
            books.receiver.packets_per_second,
        ),
        loss_ratio: packets.and_then(|(offered, delivered)| loss_ratio(offered, delivered)),
        sender: books.sender,
        receiver: books.receiver,
        jitter_seconds: books.jitter_seconds,
        one_way_delays: books.one_way_delays.clone(),
        out_of_order_packets: books.out_of_order_packets,
        round_trip: books.round_trip,
        round_trip_distribution: books.round_trip_distribution.clone(),
        polls_per_second: Some(rhythm.0),
        rounds_per_second: Some(rhythm.1),
        packets_per_poll: (polls.polls > 0).then(|| polls.frames as f64 / polls.polls as f64),
        polls: Some(polls),
        calibration: measured.calibration.clone(),
        cpu: Some(cpu),
        cpu_tick_sampled: sampled.states,
        spinner: measured.spinner,
        context_switches_per_second: rate(sampled.context_switches),
        interrupts_per_second: sampled.interrupts.map(rate),
        series: measured.series.clone(),
        socket_buffers: books.socket_buffers,
        ledger,
    };
    Trial {
        sequence: place.sequence,
        block: place.block,
        workload: place.workload.clone(),
        setting: place.setting.clone(),
        conduct,
        proof_attempts: measured.proof_attempts,
        findings,
        warmup: measured.warmup,
        placement,
        figures: Some(Box::new(figures)),
    }
}

fn placement(lab: &Lab, polls: &PollEvidence) -> Placement {
    Placement {
        sender_cpu: lab.sender_cpu,
        receiver_cpu: lab.receiver_cpu,
        poll_cpus: cpus_with_polls(&polls.polls_by_cpu),
    }
}

fn findings(measured: &Measured<'_>, sampled: &CpuDelta, rhythm: (f64, f64)) -> Findings {
    let period_ns = measured.setting.period_ns();
    Findings {
        steal_ratio: sampled
            .states
            .iter()
            .map(|core| core.steal)
            .reduce(f64::max),
        foreign_cpu: (measured.cpu_window.as_ref()).map_or_else(Vec::new, CpuWindow::foreign),
        rhythm_deviation_ratio: period_ns.map(|period_ns| rhythm_deviation(period_ns, rhythm.1)),
        load_average_1min: measured.edges[0].load_average_1min,
    }
}

fn ledger(measured: &Measured<'_>) -> Ledger {
    let [before, after] = &measured.accounts;
    let books = &measured.books;
    let router = before.router.as_ref().zip(after.router.as_ref());
    let hosts = Hosts {
        sender: Account {
            before: &before.sender,
            after: &after.sender,
        },
        router: router.map(|(before, after)| Account { before, after }),
        receiver: Account {
            before: &before.receiver,
            after: &after.receiver,
        },
        is_ipv6: measured.workload.extent.ip == IpVersion::V6,
    };
    match books.packets {
        Some((offered, delivered)) => {
            let datagrams = CountedDatagrams {
                offered,
                delivered,
                duplicates: books.duplicate_packets,
                control: books.control.clone(),
            };
            packet_ledger(datagrams, hosts)
        }
        None => tcp_ledger(books.offered_bytes, books.delivered_bytes, hosts),
    }
}

fn judge_conduct(measured: &Measured<'_>, rhythm: (f64, f64), ledger: &Ledger) -> Conduct {
    let [opened, closed] = &measured.edges;
    let [before, after] = &measured.accounts;
    conduct(&Circumstances {
        evidence: measured.setting.evidence,
        undrained: measured.books.undrained.as_deref(),
        clock_step_ns: closed.wall_ahead_ns.abs_diff(opened.wall_ahead_ns),
        napis: [&measured.napis, &after.napis],
        rhythm,
        changed: first_change(before, after),
        changes: &measured.changes,
        is_delivered: measured.books.delivered_bytes > 0,
        ledger: Some(ledger),
    })
}

/// Polls before and after the window's edges are not the workload's, so the edges' counts are used.
fn poll_evidence(measured: &Measured<'_>, seconds: f64) -> PollEvidence {
    let [opened, closed] = &measured.edges;
    let polls = closed.polls.counts.since(&opened.polls.counts);
    PollEvidence {
        netns_inode: measured.netns_inode,
        napi_id: watched(&measured.napis),
        seconds,
        polls: polls.polls(),
        rounds: polls.rounds,
        empty_polls: polls.empty_polls,
        frames: polls.frames,
        polls_by_cpu: polls.polls_by_cpu,
    }
}

/// The NAPI instance whose polls are counted: the only one, or every one where there are others.
pub fn watched(napis: &[u32]) -> Option<u32> {
    match napis {
        [only] => Some(*only),
        _ => None,
    }
}

fn cpus_with_polls(polls_by_cpu: &[u64]) -> Vec<u32> {
    let with_polls = polls_by_cpu
        .iter()
        .enumerate()
        .filter(|(_, polls)| **polls > 0);
    with_polls.map(|(cpu, _)| cpu as u32).collect()
}

/// What CPU time is divided by: datagrams delivered, or transactions. `None` for TCP, and when there
/// were none.
pub fn worked_for(
    unit: WorkUnit,
    packets: Option<(u64, u64)>,
    round_trip: Option<RoundTrip>,
) -> Option<u64> {
    let count = match unit {
        WorkUnit::Bytes => None,
        WorkUnit::Transactions => round_trip.map(|trips| trips.transactions),
        WorkUnit::Datagrams => packets.map(|(_, delivered)| delivered),
    };
    count.filter(|&count| count > 0)
}

/// The share of the line that datagrams of a one-way workload take.
fn line_ratio(
    line: Option<Line>,
    ip: IpVersion,
    unit: WorkUnit,
    datagram_bytes: Option<u32>,
    packets_per_second: Option<f64>,
) -> Option<f64> {
    let payload_bytes = datagram_bytes.filter(|_| unit == WorkUnit::Datagrams);
    let packet = Packet::Udp {
        ip,
        payload_bytes: payload_bytes?,
    };
    line?.share_of_packets(packet, packets_per_second?)
}

/// Duplicates can make more arrive than were sent: that is no loss.
fn loss_ratio(offered: u64, delivered: u64) -> Option<f64> {
    (offered > 0).then(|| offered.saturating_sub(delivered) as f64 / offered as f64)
}

/// The first setting that is not what it was. A NAPI that was made anew has other values, and is told apart.
pub fn first_change<'a>(before: &'a Accounts, after: &Accounts) -> Option<&'a str> {
    let same_napis = before.napis == after.napis;
    let counts = |name: &str| same_napis || !name.contains(": NAPI ");
    let changed = before
        .settings
        .iter()
        .find(|(name, value)| counts(name) && after.settings.get(*name) != Some(value));
    let appeared = same_napis && before.settings.len() != after.settings.len();
    changed
        .map(|(name, _)| name.as_str())
        .or(appeared.then_some("the list of settings"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_name_their_cores() {
        assert_eq!(cpus_with_polls(&[0, 3, 0, 1]), [1, 3]);
        assert!(cpus_with_polls(&[0, 0]).is_empty());
    }

    #[test]
    fn only_datagrams_one_way_on_a_line_have_a_share_of_it() {
        let share = |line, unit| line_ratio(line, IpVersion::V4, unit, Some(64), Some(48_076.9));
        let line = Line::new(100_000_000);
        let half = share(line, WorkUnit::Datagrams).unwrap();
        assert!((half - 0.5).abs() < 1e-6, "{half}");
        assert_eq!(share(line, WorkUnit::Transactions), None);
        assert_eq!(
            line_ratio(line, IpVersion::V4, WorkUnit::Bytes, None, None),
            None
        );
        assert_eq!(share(None, WorkUnit::Datagrams), None);
    }

    #[test]
    fn loss_is_a_share_of_the_offered() {
        assert_eq!(loss_ratio(1000, 900), Some(0.1));
        assert_eq!(loss_ratio(10, 11), Some(0.0));
        assert_eq!(loss_ratio(0, 0), None);
    }

    #[test]
    fn a_changed_or_new_setting_is_named() {
        let books = |pairs: &[(&str, &str)]| Accounts {
            sender: Default::default(),
            receiver: Default::default(),
            router: None,
            settings: pairs
                .iter()
                .map(|&(name, value)| (String::from(name), String::from(value)))
                .collect(),
            napis: vec![],
        };
        let before = books(&[("mtu", "1500"), ("gro", "on")]);
        assert_eq!(first_change(&before, &before), None);
        let moved = books(&[("mtu", "1400"), ("gro", "on")]);
        assert_eq!(first_change(&before, &moved), Some("mtu"));
        let more = books(&[("mtu", "1500"), ("gro", "on"), ("NAPI 0", "x")]);
        assert_eq!(first_change(&before, &more), Some("the list of settings"));
        // A NAPI that was made anew is told apart.
        let mut anew = books(&[("mtu", "1500"), ("gro", "on"), ("receiver: NAPI 0", "y")]);
        anew.napis = vec![2];
        assert_eq!(first_change(&before, &anew), None);
    }
}
