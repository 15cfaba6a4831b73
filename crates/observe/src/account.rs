//! What this host did while a command ran: CPU time, context switches, and where packets were dropped.
//!
//! What must hold: one packet's loss is not added up twice within one field, and what could not be
//! read is `null`. The counters are the host's, not the program's: whatever else ran is in them.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use nicpoll_model::line::Line;
use nicpoll_model::{Drops, HostDelta, InterfaceDelta, ProcessCpu};
use nicpoll_sys::ethtool;
use nicpoll_sys::usage::{CpuTime, process_cpu_time};

use crate::cpu::CpuSample;
use crate::namespace::{InterfaceCounters, NamespaceCounters, NamespaceSnapshot};

/// The books at the beginning. They are of the network namespace that the caller is in.
pub struct HostAccount {
    began: Instant,
    cpu: CpuSample,
    process: CpuTime,
    counters: NamespaceCounters,
    before: NamespaceSnapshot,
}

impl HostAccount {
    /// Opens the books.
    ///
    /// # Errors
    /// When `/proc/stat` cannot be read. What else cannot be read is `null` in the end.
    pub fn begin() -> io::Result<Self> {
        let mut counters = NamespaceCounters::of_caller();
        Ok(HostAccount {
            before: counters.snapshot(),
            counters,
            cpu: CpuSample::now()?,
            process: process_cpu_time()?,
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
        Ok(HostDelta {
            duration_seconds: duration.as_secs_f64(),
            cpu_tick_sampled: cpu.states,
            context_switches: cpu.context_switches,
            process_cpu: ProcessCpu {
                user_seconds: seconds(process.user, self.process.user),
                system_seconds: seconds(process.system, self.process.system),
            },
            dropped_packets: drops(&self.before, &after),
            interfaces: changed_interfaces(&self.before, &after, duration.as_secs_f64()),
        })
    }
}

/// Packets that were dropped between two looks at the same namespace, by place.
pub fn drops(before: &NamespaceSnapshot, after: &NamespaceSnapshot) -> Drops {
    let counter = |name: &str| {
        let [after, before] = [after, before].map(|snapshot| snapshot.protocols.get(name));
        Some(after?.saturating_sub(*before?))
    };
    // IPv6 that is switched off has no counters, and nothing to count.
    let both = |name: &str, name6: &str| Some(counter(name)? + counter(name6).unwrap_or(0));
    let qdisc = sum_over_interfaces(before, after, |one| one.qdisc_drops);
    let device_tx = sum_over_interfaces(before, after, |one| Some(one.link.tx_dropped));
    let input = [
        ("Ip.InHdrErrors", "Ip6InHdrErrors"),
        ("Ip.InAddrErrors", "Ip6InAddrErrors"),
        ("Ip.InUnknownProtos", "Ip6InUnknownProtos"),
        ("Ip.InDiscards", "Ip6InDiscards"),
    ];
    Drops {
        // The kernel counts what an interface or its qdisc refused here as well.
        ip_output: both("Ip.OutDiscards", "Ip6OutDiscards")
            .and_then(|all| Some(all.saturating_sub(qdisc? + device_tx?))),
        qdisc,
        device_tx,
        nftables: difference(after.nftables_drops, before.nftables_drops),
        device_rx: sum_over_interfaces(before, after, |one| Some(one.link.rx_dropped)),
        backlog_of_machine: backlog(before, after),
        ip_input: input.iter().map(|(name, name6)| both(name, name6)).sum(),
        udp_no_port: both("Udp.NoPorts", "Udp6NoPorts"),
        udp_checksum: both("Udp.InCsumErrors", "Udp6InCsumErrors"),
        udp_memory: both("Udp.MemErrors", "Udp6MemErrors"),
        udp_socket_buffer: both("Udp.RcvbufErrors", "Udp6RcvbufErrors"),
    }
}

fn difference(after: Option<u64>, before: Option<u64>) -> Option<u64> {
    Some(after?.saturating_sub(before?))
}

/// Each core's count is of 32 bits and wraps.
fn backlog(before: &NamespaceSnapshot, after: &NamespaceSnapshot) -> Option<u64> {
    let (after, before) = (
        after.softnet_dropped.as_ref()?,
        before.softnet_dropped.as_ref()?,
    );
    let cores = after.iter().zip(before);
    Some(
        cores
            .map(|(after, before)| u64::from(after.wrapping_sub(*before)))
            .sum(),
    )
}

type Interfaces = BTreeMap<u32, InterfaceCounters>;

/// `None` when an interface of the beginning is gone: what it had dropped until then is not known.
fn both_interfaces<'a>(
    before: &'a NamespaceSnapshot,
    after: &'a NamespaceSnapshot,
) -> Option<(&'a Interfaces, &'a Interfaces)> {
    let (before, after) = (before.interfaces.as_ref()?, after.interfaces.as_ref()?);
    let is_whole = before.keys().all(|index| after.contains_key(index));
    is_whole.then_some((before, after))
}

/// The growth of a counter, all interfaces together. One that is new counted from 0.
fn sum_over_interfaces(
    before: &NamespaceSnapshot,
    after: &NamespaceSnapshot,
    counter: impl Fn(&InterfaceCounters) -> Option<u64>,
) -> Option<u64> {
    let (before, after) = both_interfaces(before, after)?;
    let grown = |(index, now): (&u32, &InterfaceCounters)| {
        let then = before.get(index).map_or(Some(0), &counter);
        difference(counter(now), then)
    };
    after.iter().map(grown).sum()
}

fn changed_interfaces(
    before: &NamespaceSnapshot,
    after: &NamespaceSnapshot,
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

    fn interface(name: &str, tx_dropped: u64, qdisc_drops: Option<u64>) -> InterfaceCounters {
        InterfaceCounters {
            name: String::from(name),
            link: LinkCounters {
                tx_dropped,
                ..LinkCounters::default()
            },
            qdisc_drops,
        }
    }

    fn snapshot(interfaces: &[InterfaceCounters], protocols: &[(&str, u64)]) -> NamespaceSnapshot {
        NamespaceSnapshot {
            interfaces: Some((1..).zip(interfaces.iter().cloned()).collect()),
            nftables_drops: None,
            protocols: protocols
                .iter()
                .map(|&(name, count)| (String::from(name), count))
                .collect(),
            softnet_dropped: Some(vec![u32::MAX, 5]),
        }
    }

    #[test]
    fn each_place_grows_by_itself_and_a_loss_is_at_one_place() {
        let before = snapshot(&[interface("lo", 0, Some(0))], &[("Ip.OutDiscards", 1)]);
        let mut after = snapshot(
            &[interface("lo", 0, Some(0)), interface("new", 3, Some(4))],
            &[("Ip.OutDiscards", 10)],
        );
        after.softnet_dropped = Some(vec![1, 5]);
        let drops = drops(&before, &after);
        assert_eq!((drops.device_tx, drops.qdisc), (Some(3), Some(4)));
        assert_eq!(drops.ip_output, Some(2));
        assert_eq!(drops.backlog_of_machine, Some(2));
        let changed = changed_interfaces(&before, &after, 1.0).unwrap();
        assert_eq!(changed.len(), 1);
        assert_eq!(changed[0].name, "new");
        assert_eq!(changed[0].qdisc_dropped_packets, Some(4));
    }

    #[test]
    fn what_is_not_known_is_null() {
        let gone = snapshot(&[interface("lo", 0, None), interface("gone", 0, None)], &[]);
        let after = snapshot(&[interface("lo", 9, None)], &[("Udp.NoPorts", 7)]);
        let found = drops(&gone, &after);
        assert_eq!((found.device_tx, found.udp_no_port), (None, None));
        assert_eq!((found.nftables, found.ip_output), (None, None));
        let whole = snapshot(&[interface("lo", 2, None)], &[("Udp.NoPorts", 3)]);
        let found = drops(&whole, &after);
        assert_eq!((found.device_tx, found.udp_no_port), (Some(7), Some(4)));
        assert_eq!(found.qdisc, None);
    }

    #[test]
    fn this_host_has_an_account() {
        let account = HostAccount::begin().unwrap();
        let delta = account.end().unwrap();
        assert!(delta.duration_seconds >= 0.0);
        assert!(delta.dropped_packets.udp_socket_buffer.is_some());
        assert!(delta.interfaces.is_some());
    }
}
