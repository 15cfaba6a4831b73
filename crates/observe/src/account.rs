//! What this host did while a command ran: CPU time, context switches, and where packets were dropped.
//!
//! What must hold: one packet's loss is not added up twice within one field, and what could not be
//! read is `null`. The counters are the host's, not the program's: whatever else ran is in them.

use std::io;
use std::time::{Duration, Instant};

use nicpoll_model::line::Line;
use nicpoll_model::{HostDelta, InterfaceDelta, ProcessCpu};
use nicpoll_sys::ethtool;
use nicpoll_sys::usage::{CpuTime, process_cpu_time};

use crate::cpu::CpuSample;
use crate::drop_reasons::DropReasonsError;
use crate::host::{HostCounters, HostSnapshot, InterfaceCounters};
use crate::losses::{Account, difference};

/// The books at the beginning. They are of the network namespace that the caller is in.
pub struct HostAccount {
    began: Instant,
    cpu: CpuSample,
    process: CpuTime,
    counters: HostCounters,
    before: HostSnapshot,
    /// Why the kernel gives no reasons for what it drops; `None` when it does.
    reasons_missing: Option<DropReasonsError>,
}

impl HostAccount {
    /// Opens the books.
    ///
    /// # Errors
    /// When `/proc/stat` cannot be read. What else cannot be read is `null` in the end.
    pub fn begin() -> io::Result<Self> {
        let mut counters = HostCounters::of_caller();
        let reasons_missing = counters.watch_drop_reasons().err();
        Ok(HostAccount {
            before: counters.snapshot(),
            counters,
            cpu: CpuSample::now()?,
            process: process_cpu_time()?,
            reasons_missing,
            began: Instant::now(),
        })
    }

    /// Closes the books. Call it when all is quiet: a packet on its way belongs to neither side.
    ///
    /// # Errors
    /// As for [`begin`](Self::begin).
    pub fn end(mut self) -> io::Result<HostDelta> {
        let duration = self.began.elapsed();
        let process = process_cpu_time()?;
        let now = CpuSample::now()?;
        let after = self.counters.snapshot();
        let mut cpu = now.since(&self.cpu, &now.cores());
        cpu.states
            .retain(|core| core.busy() + core.idle + core.steal > 0.0);
        let seconds = |after: Duration, before| after.saturating_sub(before).as_secs_f64();
        let account = Account {
            before: &self.before,
            after: &after,
        };
        Ok(HostDelta {
            duration_seconds: duration.as_secs_f64(),
            cpu_tick_sampled: cpu.states,
            context_switches: cpu.context_switches,
            process_cpu: ProcessCpu {
                user_seconds: seconds(process.user, self.process.user),
                system_seconds: seconds(process.system, self.process.system),
            },
            dropped_packets: account.drops(),
            uncounted: account.uncounted(),
            drop_reasons: account.drop_reasons(),
            drop_reason_gaps: account.drop_reason_gaps(),
            drop_reasons_missing: self.reasons_missing.map(|error| error.to_string()),
            interfaces: changed_interfaces(&self.before, &after, duration.as_secs_f64()),
        })
    }
}

fn changed_interfaces(
    before: &HostSnapshot,
    after: &HostSnapshot,
    seconds: f64,
) -> Option<Vec<InterfaceDelta>> {
    let (before, after) = (before.interfaces.as_ref()?, after.interfaces.as_ref()?);
    let delta = |(index, now): (&u32, &InterfaceCounters)| {
        let then = before.get(index);
        let link = then.map(|then| then.link).unwrap_or_default();
        let (tx_packets, rx_packets) = (
            now.link.tx_packets.saturating_sub(link.tx_packets),
            now.link.rx_packets.saturating_sub(link.rx_packets),
        );
        let line_bits_per_second = line_of(&now.name);
        let line = line_bits_per_second.and_then(Line::new);
        let share = |packets, bytes| line?.share_of_counters(packets, bytes, seconds);
        InterfaceDelta {
            name: now.name.clone(),
            tx_packets,
            tx_line_ratio: share(tx_packets, now.link.tx_bytes.saturating_sub(link.tx_bytes)),
            rx_line_ratio: share(rx_packets, now.link.rx_bytes.saturating_sub(link.rx_bytes)),
            line_bits_per_second,
            tx_dropped_packets: now.link.tx_dropped.saturating_sub(link.tx_dropped),
            rx_packets,
            rx_dropped_packets: now.link.rx_dropped.saturating_sub(link.rx_dropped),
            qdisc_dropped_packets: difference(
                now.qdisc_drops,
                then.map_or(Some(0), |then| then.qdisc_drops),
            ),
        }
    };
    let changed = |one: &InterfaceDelta| {
        let counts = [
            one.tx_packets,
            one.tx_dropped_packets,
            one.rx_packets,
            one.rx_dropped_packets,
            one.qdisc_dropped_packets.unwrap_or(0),
        ];
        counts.iter().any(|&count| count > 0)
    };
    Some(after.iter().map(delta).filter(changed).collect())
}

/// The speed of what is behind an interface. A virtual one has a speed in name only.
fn line_of(interface: &str) -> Option<u64> {
    let link = ethtool::link(interface).ok()?;
    let speed = link.speed_mbps.filter(|_| !link.is_virtual)?;
    Some(u64::from(speed) * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::LinkCounters;
    use nicpoll_model::LossPlace;

    fn snapshot(tx_packets: &[u64]) -> HostSnapshot {
        let interface = |(index, tx_packets): (u32, &u64)| {
            let counters = InterfaceCounters {
                name: format!("em{index}"),
                link: LinkCounters {
                    tx_packets: *tx_packets,
                    ..LinkCounters::default()
                },
                ..InterfaceCounters::default()
            };
            (index, counters)
        };
        HostSnapshot {
            interfaces: Some((0..).zip(tx_packets).map(interface).collect()),
            ..HostSnapshot::default()
        }
    }

    #[test]
    fn interfaces_that_did_nothing_are_left_out_and_a_new_one_counted_from_nothing() {
        let changed = changed_interfaces(&snapshot(&[5]), &snapshot(&[5, 3]), 1.0).unwrap();
        assert_eq!(changed.len(), 1);
        assert_eq!(
            (changed[0].name.as_str(), changed[0].tx_packets),
            ("em1", 3)
        );
        assert_eq!(changed[0].qdisc_dropped_packets, None);
    }

    #[test]
    fn this_host_has_an_account() {
        let account = HostAccount::begin().unwrap();
        let delta = account.end().unwrap();
        assert!(delta.duration_seconds >= 0.0);
        assert!(delta.dropped_packets.at(LossPlace::SocketBuffer).is_some());
        assert!(delta.interfaces.is_some());
    }
}
