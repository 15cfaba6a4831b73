//! Where CPU time went in a trial: exactly, in a window of its own, or else sampled.
//!
//! The exact account costs for each event, and events are frequent where packets come one by one: a
//! rate that was measured with it would be too low, and more so under one setting than another. So
//! each trial has a second, short run of the same traffic under the same setting, and only that one is
//! accounted for. It may be short, since nothing is sampled.

use std::time::Duration;

use nicpoll_model::{Conduct, CpuSource, CpuStates, ForeignCpu, TrialCpu, WorkUnit};
use nicpoll_observe::CpuDelta;

use nicpoll_traffic::workload::Books;

use crate::foreign::CoreTime;
use crate::judge::worked_for;

/// Length of the traffic that is accounted for exactly.
pub const CPU_WINDOW: Duration = Duration::from_millis(60);

/// What the cores did during a run of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuWindow {
    /// The cores, the sender's first.
    pub cores: Vec<CoreTime>,
    /// The run's traffic.
    pub books: Books,
    /// How the run was carried out.
    pub conduct: Conduct,
}

impl CpuWindow {
    /// Time of foreign threads as a share of each core's.
    pub fn foreign(&self) -> Vec<ForeignCpu> {
        let share = |core: &CoreTime| ForeignCpu {
            core: core.times.core,
            busy_ratio: core.foreign_ns as f64 / core.times.wall_ns.max(1) as f64,
        };
        self.cores.iter().map(share).collect()
    }
}

/// Exact figures, without the time of foreign threads. Steal, which no event shows, is that of the trial's own
/// window. Where the drain did not finish, what was delivered is not known, and nothing is divided by it.
pub fn exact(window: &CpuWindow, unit: WorkUnit, sampled: &CpuDelta) -> TrialCpu {
    let steal = |core: u32| {
        let states = sampled.states.iter().find(|states| states.core == core);
        states.map_or(0.0, |states| states.steal)
    };
    let wall_ns = window.cores.iter().map(|core| core.times.wall_ns).max();
    let own_ns = |core: &CoreTime| core.times.busy_ns().saturating_sub(core.foreign_ns);
    let busy_ns: u64 = window.cores.iter().map(own_ns).sum();
    let cores = window.cores.iter();
    let mut cpu = of(
        CpuSource::Exact,
        wall_ns.unwrap_or(0) as f64 / 1e9,
        cores
            .map(|core| core.times.shares(steal(core.times.core)))
            .collect(),
        busy_ns as f64,
        (unit, &window.books),
    );
    cpu.conduct = window.conduct.clone();
    if cpu.conduct.ledger_void.is_some() {
        cpu.busy_ns_per_packet = None;
        cpu.busy_ns_per_byte = None;
    }
    cpu
}

/// Sampled figures of the trial's own window.
pub fn tick_sampled(sampled: &CpuDelta, seconds: f64, unit: WorkUnit, books: &Books) -> TrialCpu {
    of(
        CpuSource::TickSampled,
        seconds,
        sampled.states.clone(),
        1e9 * sampled.busy_seconds,
        (unit, books),
    )
}

fn of(
    source: CpuSource,
    seconds: f64,
    cores: Vec<CpuStates>,
    busy_ns: f64,
    (unit, books): (WorkUnit, &Books),
) -> TrialCpu {
    let count = worked_for(unit, books.packets, books.round_trip);
    TrialCpu {
        source,
        seconds,
        conduct: Conduct::default(),
        cores,
        busy_ns_per_packet: count.map(|count| busy_ns / count as f64),
        busy_ns_per_byte: (books.delivered_bytes > 0)
            .then(|| busy_ns / books.delivered_bytes as f64),
        delivered_bits_per_second: Some(books.receiver.bits_per_second),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicpoll_model::{SocketBuffers, WindowRates};
    use nicpoll_observe::CpuTimes;

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
            jitter_seconds: None,
            one_way_delays: None,
            out_of_order_packets: None,
            round_trip: None,
            round_trip_distribution: None,
            control: vec![],
            socket_buffers: SocketBuffers {
                send_asked_bytes: None,
                send_granted_bytes: 0,
                receive_asked_bytes: None,
                receive_granted_bytes: 0,
            },
            undrained: None,
        }
    }

    fn sampled() -> CpuDelta {
        CpuDelta {
            states: vec![CpuStates {
                core: 3,
                user: 0.5,
                steal: 0.02,
                idle: 0.48,
                ..CpuStates::default()
            }],
            busy_seconds: 0.75,
            context_switches: 0,
            interrupts: None,
        }
    }

    #[test]
    fn exact_figures_are_of_their_own_window_and_steal_is_sampled() {
        let window = |conduct: Conduct| CpuWindow {
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
            conduct,
        };
        let undrained = window(Conduct {
            ledger_void: Some(String::from("the drain did not finish")),
            ..Conduct::default()
        });
        let unknown = exact(&undrained, WorkUnit::Datagrams, &sampled());
        assert_eq!(unknown.busy_ns_per_packet, None);
        let window = window(Conduct::default());
        assert!((window.foreign()[0].busy_ratio - 0.1).abs() < 1e-9);
        let figures = exact(&window, WorkUnit::Datagrams, &sampled());
        assert_eq!((figures.source, figures.seconds), (CpuSource::Exact, 0.1));
        assert_eq!(figures.busy_ns_per_packet, Some(40_000.0));
        assert_eq!(figures.busy_ns_per_byte, Some(40_000.0 / 64.0));
        let states = figures.cores[0];
        assert_eq!(
            (states.user, states.softirq, states.steal),
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
        assert_eq!(figures.cores[0].user, 0.5);
        let nothing = tick_sampled(&sampled(), 1.5, WorkUnit::Datagrams, &books(0));
        assert_eq!(
            (nothing.busy_ns_per_packet, nothing.busy_ns_per_byte),
            (None, None)
        );
    }
}
