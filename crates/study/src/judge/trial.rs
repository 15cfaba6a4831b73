//! Turns the measurements of a trial into its document: rates, ledger, evidence, CPU time, and whether it counts.
//!
//! Only an event known to come from outside voids a trial. What its own setting may have caused counts for that
//! setting. A reason names the figure and its limit, and never depends on the trial's result.

use std::collections::BTreeMap;

use nicpoll_lab::{Changes, CoreTime, Edge, Lab, Polls, watched};
use nicpoll_model::line::{IpVersion, Line, LinePacket};
use nicpoll_model::{
    CpuSource, CpuStates, Findings, ForeignCpu, Ledger, Placement, PollEvidence, Trial, TrialCpu,
    TrialFigures, TrialHost, Validity, WorkUnit,
};
use nicpoll_observe::{
    Account, CountedDatagrams, CpuDelta, HostSnapshot, LedgerHosts, packet_ledger, tcp_ledger,
};
use nicpoll_traffic::workload::Books;

use crate::design::{Evidence, NamedSetting, NamedWorkload};

/// Place of a trial in the study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialPlace {
    /// Position in the study, from 1.
    pub sequence: u32,
    /// Block, from 1.
    pub block: u32,
    /// The workload.
    pub workload: String,
    /// The setting.
    pub setting: String,
}

impl TrialPlace {
    /// Makes the trial at this place, without figures.
    pub fn trial(self, lab: &Lab) -> Trial {
        Trial {
            sequence: self.sequence,
            block: self.block,
            workload: self.workload,
            setting: self.setting,
            proof_attempts: 1,
            placement: Placement {
                sender_cpu: lab.sender_cpu,
                receiver_cpu: lab.receiver_cpu,
                poll_cpus: Vec::new(),
            },
            ..Trial::default()
        }
    }
}

/// Both hosts' counters and settings while everything is quiet.
pub struct HostReadings {
    /// The sender's counters.
    pub sender: HostSnapshot,
    /// The receiver's counters.
    pub receiver: HostSnapshot,
    /// The router's counters, if there is one.
    pub router: Option<HostSnapshot>,
    /// Every setting of both interfaces.
    pub settings: BTreeMap<String, String>,
    /// The receiver's NAPI instances.
    pub napis: Vec<u32>,
}

/// Measurements of one run of traffic, from quiet to quiet.
pub struct Window {
    /// Both hosts before and after, while all was quiet.
    pub quiet: [HostReadings; 2],
    /// The edges of the traffic.
    pub edges: [Edge; 2],
    /// What the programs counted.
    pub books: Books,
    /// Changes that the kernel reported meanwhile.
    pub changes: Changes,
}

/// Everything that the judgement of a trial uses.
pub struct MeasuredTrial<'a> {
    /// The traffic.
    pub workload: &'a NamedWorkload,
    /// The setting.
    pub setting: &'a NamedSetting,
    /// The lab.
    pub lab: &'a Lab,
    /// The receiver's namespace.
    pub netns_inode: u64,
    /// NAPI instances that the receiver had as the setting was applied.
    pub napis: Vec<u32>,
    /// The run that counts.
    pub window: Window,
    /// CPU time of a separate run; `None` if it cannot be counted exactly.
    pub cpu_window: Option<CpuWindow>,
}

/// Judges the measurements of `trial`. `known` has the figures that the caller has already.
pub fn judge(mut trial: Trial, known: TrialFigures, measured: &MeasuredTrial<'_>) -> Trial {
    let MeasuredTrial { lab, window, .. } = measured;
    let workload = measured.workload.request.workload();
    let unit = workload.unit();
    let ledger = ledger(measured);
    let Window { books, edges, .. } = window;
    let [opened, closed] = edges;
    let seconds = (closed.polls.at_ns - opened.polls.at_ns) as f64 / 1e9;
    let sampled = closed.cpu.since(&opened.cpu, &lab.cpus());
    let cpu = match &measured.cpu_window {
        Some(window) => exact(window, unit, &sampled),
        None => tick_sampled(&sampled, seconds, unit, books),
    };
    let polls = poll_evidence(measured, seconds);
    let rate = |count: u64| count as f64 / seconds;
    let rhythm = rhythm(&opened.polls, &closed.polls);
    let evidence = measured.setting.evidence;
    trial.validity = validity(evidence, &measured.napis, window, Some(&ledger));
    let stepped = stepped_clock(&known.hosts, seconds);
    trial.validity.external = trial.validity.external.or(stepped);
    trial.findings = findings(measured, &sampled, rhythm);
    let by_cpu = polls.as_ref().map(|polls| &polls.polls_by_cpu[..]);
    trial.placement.poll_cpus = cpus_with_polls(by_cpu.unwrap_or_default());
    trial.figures = Some(Box::new(TrialFigures {
        offered_packets: books.packets.map(|(offered, _)| offered),
        delivered_packets: books.packets.map(|(_, delivered)| delivered),
        delivered_bits_per_second: books.receiver.bits_per_second,
        delivered_packets_per_second: books.receiver.packets_per_second,
        delivered_line_ratio: line_ratio(
            lab.link.line.ok(),
            measured.workload.options.ip,
            unit,
            workload.datagram_bytes(),
            books.receiver.packets_per_second,
        ),
        loss_ratio: books.packets.and_then(loss_ratio),
        sender: books.sender,
        receiver: books.receiver,
        jitter_seconds: books.jitter_seconds,
        // The engine's receiver knows nothing of two clocks.
        one_way_delays: (books.one_way_delays.clone())
            .filter(|_| !lab.is_apart() || measured.setting.engine.is_none()),
        out_of_order_packets: books.out_of_order_packets,
        round_trip: books.round_trip,
        round_trip_distribution: books.round_trip_distribution.clone(),
        polls_per_second: rhythm.map(|(polls, _)| polls),
        rounds_per_second: rhythm.map(|(_, rounds)| rounds),
        packets_per_poll: (polls.as_ref().filter(|polls| polls.polls > 0))
            .map(|polls| polls.frames as f64 / polls.polls as f64),
        polls,
        cpu: Some(cpu),
        cpu_tick_sampled: sampled.states,
        context_switches_per_second: rate(sampled.context_switches),
        interrupts_per_second: sampled.interrupts.map(rate),
        socket_buffers: books.socket_buffers,
        ledger,
        ..known
    }));
    trial
}

fn findings(
    measured: &MeasuredTrial<'_>,
    sampled: &CpuDelta,
    rhythm: Option<(f64, f64)>,
) -> Findings {
    let period_ns = measured.setting.period_ns();
    Findings {
        steal_ratio: sampled
            .states
            .iter()
            .map(|core| core.steal_ratio)
            .reduce(f64::max),
        foreign_cpu: (measured.cpu_window.as_ref()).map_or_else(Vec::new, CpuWindow::foreign),
        rhythm_deviation_ratio: period_ns
            .zip(rhythm)
            .map(|(period_ns, (_, rounds))| rhythm_deviation(period_ns, rounds)),
        load_average_1min: measured.window.edges[0].load_average_1min,
    }
}

fn ledger(measured: &MeasuredTrial<'_>) -> Ledger {
    let Window { quiet, books, .. } = &measured.window;
    let [before, after] = quiet;
    let router = before.router.as_ref().zip(after.router.as_ref());
    let hosts = LedgerHosts {
        sender: Account {
            before: &before.sender,
            after: &after.sender,
        },
        router: router.map(|(before, after)| Account { before, after }),
        receiver: Account {
            before: &before.receiver,
            after: &after.receiver,
        },
        between: measured.lab.link.between,
        is_ipv6: measured.workload.options.ip == IpVersion::V6,
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

/// Returns the evidence of polls, counted at the window's edges: polls outside them are not the workload's.
fn poll_evidence(measured: &MeasuredTrial<'_>, seconds: f64) -> Option<PollEvidence> {
    let [opened, closed] = &measured.window.edges;
    let polls = closed.polls.since(&opened.polls)?;
    Some(PollEvidence {
        netns_inode: measured.netns_inode,
        napi_id: watched(&measured.napis),
        seconds,
        polls: polls.polls(),
        rounds: polls.rounds,
        empty_polls: polls.empty_polls,
        frames: polls.frames,
        polls_by_cpu: polls.polls_by_cpu,
    })
}

fn cpus_with_polls(polls_by_cpu: &[u64]) -> Vec<u32> {
    let with_polls = polls_by_cpu
        .iter()
        .enumerate()
        .filter(|(_, polls)| **polls > 0);
    with_polls.map(|(cpu, _)| cpu as u32).collect()
}

/// Returns the share of the line that a one-way workload's datagrams take.
fn line_ratio(
    line: Option<Line>,
    ip: IpVersion,
    unit: WorkUnit,
    datagram_bytes: Option<u32>,
    packets_per_second: Option<f64>,
) -> Option<f64> {
    let payload_bytes = datagram_bytes.filter(|_| unit == WorkUnit::Datagrams);
    let packet = LinePacket::Udp {
        ip,
        payload_bytes: payload_bytes?,
    };
    line?.share_of_packets(packet, packets_per_second?)
}

/// Returns the loss; 0 if duplicates made more arrive than were sent.
fn loss_ratio((offered, delivered): (u64, u64)) -> Option<f64> {
    (offered > 0).then(|| offered.saturating_sub(delivered) as f64 / offered as f64)
}

/// Returns the first value that changed. Values of a recreated NAPI do not count.
pub fn first_change<'a>(before: &'a HostReadings, after: &HostReadings) -> Option<&'a str> {
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

/// Limit of the ledger's residual, as a share of the offered.
pub const RESIDUAL_MAX: f64 = 0.001;

/// Tolerance of rounds a second, relative to one a period.
pub const RHYTHM_TOLERANCE: f64 = 0.1;

/// A wall clock that moved by more than this against the monotonic one was stepped: the fastest slew is 500 ppm.
pub const CLOCK_STEP_MAX_NS: u64 = 5_000_000;

/// Judges whether a run counts. `napis` are the receiver's NAPI instances at its start; `ledger` is `None` if packets
/// were not accounted for.
pub fn validity(
    evidence: Evidence,
    napis: &[u32],
    window: &Window,
    ledger: Option<&Ledger>,
) -> Validity {
    let [opened, closed] = &window.edges;
    Validity {
        external: external(window),
        failure: failure(napis, window),
        unproven: unproven(evidence, napis.len(), rhythm(&opened.polls, &closed.polls)),
        ledger_void: match &window.books.undrained {
            Some(reason) => Some(format!("the account stays open: {reason}")),
            None => ledger.and_then(residual),
        },
    }
}

/// Returns polls and rounds a second between two readings; `None` if they cannot be counted.
pub fn rhythm(before: &Polls, after: &Polls) -> Option<(f64, f64)> {
    let counts = after.since(before)?;
    let seconds = (after.at_ns - before.at_ns) as f64 / 1e9;
    let rate = |count: u64| count as f64 / seconds.max(1e-9);
    Some((rate(counts.polls()), rate(counts.rounds)))
}

fn external(window: &Window) -> Option<String> {
    let [opened, closed] = &window.edges;
    let clock_step_ns = closed.wall_ahead_ns.abs_diff(opened.wall_ahead_ns);
    if clock_step_ns > CLOCK_STEP_MAX_NS {
        return Some(format!(
            "the clock was stepped by {:.1} ms",
            clock_step_ns as f64 / 1e6
        ));
    }
    disturbed(&window.changes).or_else(|| {
        let [before, after] = &window.quiet;
        let name = first_change(before, after)?;
        Some(format!("{CHANGED_BY_OTHERS} '{name}' during the trial"))
    })
}

/// Returns which machine's clock was stepped in a window: it gained more than two clocks that are slewed, each by at most
/// 500 ppm.
fn stepped_clock(hosts: &[TrialHost], seconds: f64) -> Option<String> {
    let slewed_ns = 1e-3 * seconds * 1e9;
    let is_stepped = |host: &&TrialHost| {
        let limit_ns = CLOCK_STEP_MAX_NS as f64 + slewed_ns + 2.0 * host.clock_error_ns as f64;
        host.clock_gained_ns.unsigned_abs() as f64 > limit_ns
    };
    let host = hosts.iter().find(is_stepped)?;
    let by_ms = host.clock_gained_ns as f64 / 1e6;
    Some(format!(
        "the {}'s clock was stepped by {by_ms:.1} ms",
        host.host
    ))
}

/// Prefix of the reason if another process changed something.
pub const CHANGED_BY_OTHERS: &str = "another process changed";

/// Returns external changes that the kernel reported.
pub fn disturbed(changes: &Changes) -> Option<String> {
    if changes.is_taken_down {
        return Some(String::from("somebody took the link down"));
    }
    let what = changes.others.first()?;
    Some(format!("{CHANGED_BY_OTHERS} {what} during the trial"))
}

fn failure(napis: &[u32], window: &Window) -> Option<String> {
    if window.changes.has_lost_carrier {
        return Some(String::from("the link lost its carrier"));
    }
    let after = &window.quiet[1].napis;
    if napis != after {
        return Some(format!(
            "the receiver's NAPI was recreated: {napis:?} became {after:?}"
        ));
    }
    (window.books.delivered_bytes == 0).then(|| String::from("nothing was delivered"))
}

/// Why packets bypass a NAPI, and the remedy.
pub(crate) const AROUND: &str = "packets of a veth whose sender has TSO on go around the NAPI; write common = \"veth\", \
    or sender = { tso = \"off\" } under [common]";

/// Returns why NAPI instances, polls and rounds a second do not prove that a setting was in force.
pub fn unproven(evidence: Evidence, napis: usize, rhythm: Option<(f64, f64)>) -> Option<String> {
    let Some((polls, rounds)) = rhythm else {
        let why = "it was read back, and not proven by polls, which cannot be counted here";
        return (evidence != Evidence::AsItIs).then(|| String::from(why));
    };
    match evidence {
        Evidence::NoNapi if napis > 0 || polls > 0.0 => Some(format!(
            "the receiver has {napis} NAPI instances and {polls:.0} polls/s where it should have none"
        )),
        Evidence::Polls if polls == 0.0 => {
            Some(format!("the receiver's NAPI was never polled: {AROUND}"))
        }
        Evidence::Rounds { .. } if rounds == 0.0 => {
            Some(format!("the timer began no round of polls: {AROUND}"))
        }
        Evidence::Rounds { period_ns } => {
            let deviation = rhythm_deviation(period_ns, rounds);
            (deviation.abs() > RHYTHM_TOLERANCE).then(|| {
                format!(
                    "{rounds:.0} rounds/s are {:.1} % from one a period ({:.0}/s), more than {:.0} %",
                    100.0 * deviation.abs(),
                    1e9 / period_ns as f64,
                    100.0 * RHYTHM_TOLERANCE
                )
            })
        }
        Evidence::AsItIs | Evidence::NoNapi | Evidence::Polls => None,
    }
}

/// Returns the relative deviation of rounds a second from one a period.
pub fn rhythm_deviation(period_ns: u64, rounds_per_second: f64) -> f64 {
    rounds_per_second * period_ns as f64 / 1e9 - 1.0
}

fn residual(ledger: &Ledger) -> Option<String> {
    let Some(ratio) = ledger.residual_ratio() else {
        return Some(String::from("nothing was offered"));
    };
    let (residual, unit) = match ledger.residual_packets {
        Some(packets) => (packets, "packets"),
        None => (ledger.residual_bytes?, "bytes"),
    };
    (ratio > RESIDUAL_MAX).then(|| {
        format!(
            "no counter explains {residual:+} {unit}, {:.2} % of the offered, more than {:.1} %",
            100.0 * ratio,
            100.0 * RESIDUAL_MAX
        )
    })
}

/// CPU time of the cores in a separate run.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuWindow {
    /// The cores, the sender's first.
    pub cores: Vec<CoreTime>,
    /// The run's traffic.
    pub books: Books,
    /// Whether the run counts.
    pub validity: Validity,
}

impl CpuWindow {
    /// Returns foreign threads' share of each core's time.
    pub fn foreign(&self) -> Vec<ForeignCpu> {
        let share = |core: &CoreTime| ForeignCpu {
            core: core.times.core,
            busy_ratio: core.foreign_ns as f64 / core.times.wall_ns.max(1) as f64,
        };
        self.cores.iter().map(share).collect()
    }
}

/// Makes exact figures, without foreign threads. Steal, which no event shows, is the measured window's. After an
/// unfinished drain the delivered count is unknown, and nothing is divided by it.
pub fn exact(window: &CpuWindow, unit: WorkUnit, sampled: &CpuDelta) -> TrialCpu {
    let steal = |core: u32| {
        let states = sampled.states.iter().find(|states| states.core == core);
        states.map_or(0.0, |states| states.steal_ratio)
    };
    let wall_ns = window.cores.iter().map(|core| core.times.wall_ns).max();
    let own_ns = |core: &CoreTime| core.times.busy_ns().saturating_sub(core.foreign_ns);
    let busy_ns: u64 = window.cores.iter().map(own_ns).sum();
    let cores = window.cores.iter();
    let mut cpu = cpu_of(
        CpuSource::Exact,
        wall_ns.unwrap_or(0) as f64 / 1e9,
        cores
            .map(|core| core.times.shares(steal(core.times.core)))
            .collect(),
        busy_ns as f64,
        (unit, &window.books),
    );
    cpu.validity = window.validity.clone();
    if cpu.validity.ledger_void.is_some() {
        cpu.busy_ns_per_packet = None;
        cpu.busy_ns_per_byte = None;
    }
    cpu
}

/// Makes sampled figures of the trial's own window.
pub fn tick_sampled(sampled: &CpuDelta, seconds: f64, unit: WorkUnit, books: &Books) -> TrialCpu {
    let cores = sampled.states_in(seconds);
    let busy: f64 = cores.iter().map(CpuStates::busy).sum();
    let busy_ns = 1e9 * busy * seconds;
    cpu_of(
        CpuSource::TickSampled,
        seconds,
        cores,
        busy_ns,
        (unit, books),
    )
}

fn cpu_of(
    source: CpuSource,
    seconds: f64,
    cores: Vec<CpuStates>,
    busy_ns: f64,
    (unit, books): (WorkUnit, &Books),
) -> TrialCpu {
    let count = match unit {
        WorkUnit::Bytes => None,
        WorkUnit::Transactions => books.round_trip.map(|trips| trips.transactions),
        WorkUnit::Datagrams => books.packets.map(|(_, delivered)| delivered),
    };
    let count = count.filter(|&count| count > 0);
    TrialCpu {
        source,
        seconds,
        validity: Validity::default(),
        cores,
        busy_ns_per_packet: count.map(|count| busy_ns / count as f64),
        busy_ns_per_byte: (books.delivered_bytes > 0)
            .then(|| busy_ns / books.delivered_bytes as f64),
        delivered_bits_per_second: Some(books.receiver.bits_per_second),
    }
}

#[cfg(test)]
mod tests {
    use nicpoll_model::WindowRates;
    use nicpoll_observe::{CoreTicks, CpuSample, CpuTimes, PollCounts};

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
        assert_eq!(loss_ratio((1000, 900)), Some(0.1));
        assert_eq!(loss_ratio((10, 11)), Some(0.0));
        assert_eq!(loss_ratio((0, 0)), None);
    }

    fn readings(settings: &[(&str, &str)]) -> HostReadings {
        let text = |&(name, value): &(&str, &str)| (String::from(name), String::from(value));
        HostReadings {
            sender: Default::default(),
            receiver: Default::default(),
            router: None,
            settings: settings.iter().map(text).collect(),
            napis: vec![1],
        }
    }

    #[test]
    fn a_changed_or_new_setting_is_named() {
        let before = readings(&[("mtu", "1500"), ("gro", "on")]);
        assert_eq!(first_change(&before, &before), None);
        let moved = readings(&[("mtu", "1400"), ("gro", "on")]);
        assert_eq!(first_change(&before, &moved), Some("mtu"));
        let more = readings(&[("mtu", "1500"), ("gro", "on"), ("NAPI 0", "x")]);
        assert_eq!(first_change(&before, &more), Some("the list of settings"));
        // Values of a recreated NAPI do not count.
        let mut anew = readings(&[("mtu", "1500"), ("gro", "on"), ("receiver: NAPI 0", "y")]);
        anew.napis = vec![2];
        assert_eq!(first_change(&before, &anew), None);
    }

    fn ledger(offered: u64, residual: i64) -> Ledger {
        Ledger {
            offered_packets: Some(offered),
            delivered_packets: Some(offered),
            residual_packets: Some(residual),
            ..Ledger::default()
        }
    }

    /// A second of polling at 5,000 rounds a second, valid except for `change`.
    fn of(evidence: Evidence, rounds: u64, change: impl FnOnce(&mut Window)) -> Validity {
        let edge = |seconds: u64| Edge {
            polls: Polls {
                at_ns: seconds * 1_000_000_000,
                counts: Some(PollCounts {
                    polls_by_cpu: vec![2 * rounds * seconds],
                    rounds: rounds * seconds,
                    ..PollCounts::default()
                }),
            },
            cpu: CpuSample::now().unwrap(),
            wall_ahead_ns: 0,
            load_average_1min: None,
        };
        let mut window = Window {
            quiet: [readings(&[("mtu", "1500")]), readings(&[("mtu", "1500")])],
            edges: [edge(0), edge(1)],
            books: books(1_000),
            changes: Changes::default(),
        };
        change(&mut window);
        validity(evidence, &[1], &window, Some(&ledger(1000, 1)))
    }

    const ROUNDS: Evidence = Evidence::Rounds { period_ns: 200_000 };

    #[test]
    fn a_run_as_it_should_be_is_proven() {
        for evidence in [ROUNDS, Evidence::Polls] {
            assert_eq!(of(evidence, 4600, |_| ()), Validity::default());
        }
    }

    #[test]
    fn only_what_comes_from_outside_takes_a_run_out() {
        let external = |words: &str, change: fn(&mut Window)| {
            let validity = of(ROUNDS, 4600, change);
            assert!(!validity.is_kept());
            assert!(validity.external.unwrap().contains(words), "{words}");
        };
        external("6.0 ms", |run| run.edges[1].wall_ahead_ns = 6_000_000);
        external("changed 'mtu'", |run| {
            run.quiet[1] = readings(&[("mtu", "1400")])
        });
        external("took the link down", |run| {
            run.changes.is_taken_down = true;
            run.quiet[1].napis = vec![2];
        });

        let anew = of(ROUNDS, 4600, |run| run.quiet[1].napis = vec![2]);
        assert!(anew.is_kept());
        assert!(anew.failure.unwrap().contains("recreated"));
        let silent = of(ROUNDS, 4600, |run| run.books.delivered_bytes = 0);
        assert!(silent.is_kept() && !silent.is_proven());
        let undrained = of(ROUNDS, 4600, |run| {
            run.books.undrained = Some(String::from("no acknowledgement"));
        });
        assert!(undrained.is_proven());
        let why = undrained.ledger_void.unwrap();
        assert!(why.contains("no acknowledgement"), "{why}");
    }

    #[test]
    fn a_setting_without_evidence_is_unproven_and_kept() {
        for (evidence, rounds, words) in [
            (ROUNDS, 4400, "12.0 %"),
            (ROUNDS, 5600, "12.0 %"),
            (Evidence::Polls, 0, "never polled"),
            (Evidence::NoNapi, 4600, "should have none"),
        ] {
            let validity = of(evidence, rounds, |_| ());
            assert!(validity.is_kept() && !validity.is_proven());
            let reason = validity.unproven.expect(words);
            assert!(reason.contains(words), "{reason}");
        }
    }

    #[test]
    fn without_polls_nothing_but_how_it_is_needs_no_proof() {
        let unwatched = |window: &mut Window| window.edges[1].polls.counts = None;
        for evidence in [ROUNDS, Evidence::Polls, Evidence::NoNapi] {
            let validity = of(evidence, 4600, unwatched);
            assert!(validity.is_kept() && !validity.is_proven());
            assert!(validity.unproven.unwrap().contains("not proven by polls"));
        }
        assert_eq!(of(Evidence::AsItIs, 4600, unwatched), Validity::default());
    }

    #[test]
    fn the_residual_may_be_a_thousandth_of_the_offered_either_way() {
        assert_eq!(residual(&ledger(1000, -1)), None);
        let reason = residual(&ledger(1000, -2)).unwrap();
        assert!(reason.contains("-2 packets, 0.20 %"), "{reason}");
        assert!(residual(&ledger(0, 0)).unwrap().contains("nothing"));
    }

    fn books(delivered_packets: u64) -> Books {
        let bytes = 64 * delivered_packets;
        let rates = WindowRates::new(Some(delivered_packets), bytes, 0.1);
        Books {
            packets: Some((delivered_packets + 5, delivered_packets)),
            duplicate_packets: Some(0),
            offered_bytes: bytes + 320,
            delivered_bytes: bytes,
            sender: rates,
            receiver: rates,
            ..Books::default()
        }
    }

    fn sampled() -> CpuDelta {
        CpuDelta {
            states: vec![CpuStates {
                core: 3,
                user_ratio: 0.5,
                steal_ratio: 0.02,
                idle_ratio: 0.48,
                ..CpuStates::default()
            }],
            ticks: vec![CoreTicks {
                core: 3,
                user: 75,
                idle: 75,
                ..CoreTicks::default()
            }],
            context_switches: 0,
            interrupts: None,
        }
    }

    #[test]
    fn exact_figures_are_of_their_own_window_and_steal_is_sampled() {
        let window = |validity: Validity| CpuWindow {
            cores: vec![CoreTime {
                times: CpuTimes {
                    core: 3,
                    wall_ns: 100_000_000,
                    user_ns: 30_000_000,
                    softirq_ns: [0, 0, 0, 20_000_000, 0, 0, 0, 0, 0, 0],
                    idle_ns: 50_000_000,
                    ..CpuTimes::default()
                },
                foreign_ns: 10_000_000,
            }],
            books: books(1_000),
            validity,
        };
        let undrained = window(Validity {
            ledger_void: Some(String::from("the drain did not finish")),
            ..Validity::default()
        });
        let unknown = exact(&undrained, WorkUnit::Datagrams, &sampled());
        assert_eq!(unknown.busy_ns_per_packet, None);
        let window = window(Validity::default());
        assert!((window.foreign()[0].busy_ratio - 0.1).abs() < 1e-9);
        let figures = exact(&window, WorkUnit::Datagrams, &sampled());
        assert_eq!((figures.source, figures.seconds), (CpuSource::Exact, 0.1));
        assert_eq!(figures.busy_ns_per_packet, Some(40_000.0));
        assert_eq!(figures.busy_ns_per_byte, Some(40_000.0 / 64.0));
        let states = figures.cores[0];
        assert_eq!(
            (states.user_ratio, states.softirq_ratio, states.steal_ratio),
            (0.3, 0.2, 0.02)
        );
    }

    #[test]
    fn without_the_account_they_are_of_the_measured_window_and_say_so() {
        let figures = tick_sampled(&sampled(), 1.5, WorkUnit::Datagrams, &books(3_000));
        assert_eq!(figures.source, CpuSource::TickSampled);
        assert_eq!(
            (figures.seconds, figures.busy_ns_per_packet),
            (1.5, Some(250_000.0))
        );
        assert_eq!(figures.cores[0].user_ratio, 0.5);
        let nothing = tick_sampled(&sampled(), 1.5, WorkUnit::Datagrams, &books(0));
        assert_eq!(
            (nothing.busy_ns_per_packet, nothing.busy_ns_per_byte),
            (None, None)
        );
    }
}
