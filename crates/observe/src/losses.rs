//! Losses of one host between two snapshots. Only the table here defines which counter counts what.
//!
//! Each packet counts as lost at one place at most. The kernel counts many losses in several counters:
//!
//! - A drop by a queueing discipline is also in Udp.SndbufErrors and Ip.OutDiscards; a drop by a filter on the way out
//!   is in its rule's counter and in Ip.OutDiscards. IP's own line is OutDiscards less qdiscs, filters and interfaces.
//!   It includes sends for which the socket had no room.
//! - Udp.InErrors contains RcvbufErrors, InCsumErrors and MemErrors; these three are the lines.
//! - A backlog drop is in softnet_stat (for the machine) and in the receiving interface's rx_dropped. On veth it is
//!   also in the sending interface's tx_dropped, as are drops by a full ring: tx_dropped less the receiving end's
//!   rx_dropped was lost in the ring.
//!
//! If the kernel gives drop reasons, a place has at least the packets they name, of the protocols that its counter
//! counts. An unreadable counter is `None`, and so is a sum over interfaces if one of them disappeared. [`HostAccount`]
//! is the account that traffic programs print; it includes everything else that ran on the host.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use nicpoll_model::line::Line;
use nicpoll_model::{
    DropProtocol, DropReason, DropReasonGaps, Drops, HostDelta, InterfaceDelta, LossPlace,
    ProcessCpu, UncountedLoss, Way,
};
use nicpoll_sys::ethtool;
use nicpoll_sys::schedule::{CpuTime, process_cpu_time};

use crate::drop_reasons::DropReasonsError;
use crate::host::{HostCounters, HostSnapshot, InterfaceCounters};
use crate::proc::{CpuSample, LinkCounters};

/// One host's counters at the start and at the end.
#[derive(Clone, Copy, Debug)]
pub struct Account<'a> {
    /// Before the first packet.
    pub before: &'a HostSnapshot,
    /// After the last packet.
    pub after: &'a HostSnapshot,
}

type Interfaces = BTreeMap<u32, InterfaceCounters>;

/// IP families whose counters are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Families {
    /// IPv4 alone.
    Ipv4,
    /// Both families. Disabled IPv6 has no counters, and nothing to count.
    All,
}

/// How a host counts packets lost at a place.
pub(crate) struct CountedPlace {
    /// The place.
    pub place: LossPlace,
    /// The kernel's counters, by their own names.
    pub counter: &'static str,
}

impl CountedPlace {
    /// Returns the packets lost.
    pub fn packets(&self, account: Account<'_>, families: Families) -> Option<u64> {
        match self.place {
            LossPlace::IpOutput => {
                let all = account.protocols(&["Ip.OutDiscards"], families)?;
                let below = account.qdisc_drops()? + account.tx_dropped()?;
                Some(all.saturating_sub(below + account.filtered_out()))
            }
            LossPlace::SendQueue => account.qdisc_drops(),
            LossPlace::DeviceTx => account.tx_dropped(),
            LossPlace::RxRing => account.lost_in_rings(),
            LossPlace::Xdp => account.interfaces(|one| one.xdp_drops),
            LossPlace::DeviceRx => account.interfaces(|one| Some(one.link.rx_dropped)),
            LossPlace::Backlog => account.softnet_dropped(),
            LossPlace::Nftables => account.growth(|host| host.nftables_drops),
            LossPlace::IpInput => {
                let names = [
                    "Ip.InHdrErrors",
                    "Ip.InAddrErrors",
                    "Ip.InUnknownProtos",
                    "Ip.InDiscards",
                ];
                let refused = account.protocols(&names, families)?;
                Some(refused + account.protocol("TcpExt.IPReversePathFilter").unwrap_or(0))
            }
            // A single UDP counter.
            _ => account.protocols(&[self.counter], families),
        }
    }

    /// Returns the packets by the kernel's reasons, of the kinds that the counter counts.
    pub fn by_reason(&self, reasons: &[DropReason]) -> u64 {
        let here = reasons.iter().filter(|reason| self.holds(reason));
        here.map(|reason| reason.packets).sum()
    }

    fn holds(&self, reason: &DropReason) -> bool {
        let counts_udp_only = matches!(
            self.place,
            LossPlace::NoSocket
                | LossPlace::Checksum
                | LossPlace::ProtocolMemory
                | LossPlace::SocketBuffer
        );
        let is_kind = !counts_udp_only || reason.protocol == DropProtocol::Udp;
        reason.place == Some(self.place) && is_kind
    }
}

fn has_counter(place: LossPlace) -> bool {
    COUNTED.iter().any(|counted| counted.place == place)
}

const fn counted(place: LossPlace, counter: &'static str) -> CountedPlace {
    CountedPlace { place, counter }
}

/// Every place of a host, in the order in which a packet passes them.
pub(crate) const COUNTED: [CountedPlace; 13] = [
    counted(
        LossPlace::IpOutput,
        "Ip.OutDiscards less qdisc drops, tx_dropped and what filters dropped on the way out",
    ),
    counted(LossPlace::SendQueue, "root qdisc drops"),
    counted(LossPlace::DeviceTx, "tx_dropped"),
    counted(
        LossPlace::RxRing,
        "rx_missed_errors, and tx_dropped of a veth's other end less rx_dropped",
    ),
    counted(LossPlace::Xdp, "rx_queue_N_xdp_drops"),
    counted(LossPlace::DeviceRx, "rx_dropped"),
    counted(LossPlace::Backlog, "softnet_stat dropped"),
    counted(
        LossPlace::Nftables,
        "counters of nftables and iptables rules that drop",
    ),
    counted(
        LossPlace::IpInput,
        "Ip.InHdrErrors + InAddrErrors + InUnknownProtos + InDiscards + TcpExt.IPReversePathFilter",
    ),
    counted(LossPlace::NoSocket, "Udp.NoPorts"),
    counted(LossPlace::Checksum, "Udp.InCsumErrors"),
    counted(LossPlace::ProtocolMemory, "Udp.MemErrors"),
    counted(LossPlace::SocketBuffer, "Udp.RcvbufErrors"),
];

impl Account<'_> {
    /// Returns the packets dropped by place, IPv4 and IPv6 together.
    pub fn drops(self) -> Drops {
        let reasons = self.drop_reasons().unwrap_or_default();
        let packets = |counted: &CountedPlace| {
            let by_counter = counted.packets(self, Families::All);
            let by_reason = counted.by_reason(&reasons);
            let by_reason = (by_reason > 0).then_some(by_reason);
            (counted.place, by_counter.max(by_reason))
        };
        let mut drops: BTreeMap<_, _> = COUNTED.iter().map(packets).collect();
        for reason in &reasons {
            if let Some(place) = reason.place.filter(|place| !has_counter(*place)) {
                let packets: &mut Option<u64> = drops.entry(place).or_default();
                *packets = Some(packets.unwrap_or(0) + reason.packets);
            }
        }
        Drops(drops)
    }

    /// Returns the packets dropped between the snapshots by the kernel's reasons, most first; `None` if these were not
    /// watched.
    pub fn drop_reasons(self) -> Option<Vec<DropReason>> {
        let before = self.before.drop_reasons.as_ref()?;
        let grown = |now: &DropReason| {
            let key = |one: &DropReason| (one.name(), one.protocol);
            let then = before.iter().find(|then| key(then) == key(now));
            let packets = now
                .packets
                .saturating_sub(then.map_or(0, |then| then.packets));
            (packets > 0).then(|| DropReason {
                packets,
                ..now.clone()
            })
        };
        let after = self.after.drop_reasons.as_ref()?;
        let mut reasons: Vec<DropReason> = after.iter().filter_map(grown).collect();
        reasons.sort_by_key(|reason| Reverse(reason.packets));
        Some(reasons)
    }

    /// Returns the packets dropped between the snapshots that are missing in the reasons; `None` if these were not
    /// watched.
    pub fn drop_reason_gaps(self) -> Option<DropReasonGaps> {
        let now = self.after.drop_reason_gaps?;
        Some(now.since(self.before.drop_reason_gaps?))
    }

    /// Returns the losses, certain or possible, that no counter has.
    pub fn uncounted(self) -> Vec<UncountedLoss> {
        let Some(reasons) = self.drop_reasons() else {
            return self.maybe_uncounted();
        };
        let beyond = |counted: &CountedPlace| {
            let by_counter = counted.packets(self, Families::All).unwrap_or(0);
            let packets = counted.by_reason(&reasons).saturating_sub(by_counter);
            let at_place = reasons.iter().filter(|reason| counted.holds(reason));
            let names: Vec<String> = at_place.map(DropReason::name).collect();
            (packets > 0).then(|| UncountedLoss {
                place: counted.place,
                packets: Some(packets),
                by: names.join(" or "),
                ways: vec![counted.place.way()],
            })
        };
        COUNTED.iter().filter_map(beyond).collect()
    }

    /// Losses that may be uncounted. A queue counts a batch of datagrams as one packet.
    fn maybe_uncounted(self) -> Vec<UncountedLoss> {
        let mut found = self.before.uncounted.clone();
        for after in &self.after.uncounted {
            if !found.contains(after) {
                found.push(after.clone());
            }
        }
        let queues = COUNTED.iter().filter(|counted| {
            matches!(counted.place, LossPlace::SendQueue | LossPlace::DeviceTx)
                && counted.packets(self, Families::All) > Some(0)
        });
        found.extend(queues.map(|counted| UncountedLoss {
            place: counted.place,
            packets: None,
            by: String::from("a batch of datagrams that is dropped whole counts as one packet"),
            ways: vec![counted.place.way()],
        }));
        found
    }

    /// The increase of one protocol counter.
    pub(crate) fn protocol(self, name: &str) -> Option<u64> {
        self.growth(|host| host.protocols.get(name).copied())
    }

    fn growth(self, counter: impl Fn(&HostSnapshot) -> Option<u64>) -> Option<u64> {
        difference(counter(self.after), counter(self.before))
    }

    fn protocols(self, names: &[&str], families: Families) -> Option<u64> {
        let grown = |name: &&str| {
            let ipv4 = self.protocol(name)?;
            let ipv6 = match families {
                Families::Ipv4 => None,
                // `Udp.NoPorts` becomes `Udp6NoPorts`.
                Families::All => self.protocol(&name.replace('.', "6")),
            };
            Some(ipv4 + ipv6.unwrap_or(0))
        };
        names.iter().map(grown).sum()
    }

    /// The increase of a counter, over all interfaces. A new interface counts from 0.
    pub(crate) fn interfaces(
        self,
        counter: impl Fn(&InterfaceCounters) -> Option<u64>,
    ) -> Option<u64> {
        let (before, after) = self.both_interfaces()?;
        let grown = |(index, now): (&u32, &InterfaceCounters)| {
            let then = before.get(index).map_or(Some(0), &counter);
            difference(counter(now), then)
        };
        after.iter().map(grown).sum()
    }

    /// `None` if an interface of the first snapshot disappeared: its drops until then are unknown.
    fn both_interfaces(&self) -> Option<(&Interfaces, &Interfaces)> {
        let (before, after) = (
            self.before.interfaces.as_ref()?,
            self.after.interfaces.as_ref()?,
        );
        let is_whole = before.keys().all(|index| after.contains_key(index));
        is_whole.then_some((before, after))
    }

    /// Packets that filters dropped on the way out: by rule counters, plus drop reasons if rules without a counter may
    /// have dropped them.
    pub(crate) fn filtered_out(self) -> u64 {
        let counted = self.growth(|host| host.nftables_drops_out).unwrap_or(0);
        let may_drop = self.after.uncounted.iter().chain(&self.before.uncounted);
        let mut may_drop = may_drop.filter(|one| one.place == LossPlace::Nftables);
        if !may_drop.any(|one| one.ways.contains(&Way::Out)) {
            return counted;
        }
        let reasons = self.drop_reasons().unwrap_or_default();
        let of_filters = |reason: &&DropReason| {
            reason.place == Some(LossPlace::Nftables) && reason.protocol == DropProtocol::Udp
        };
        let told = reasons.iter().filter(of_filters);
        let told: u64 = told.map(|one| one.packets).sum();
        let all = self.growth(|host| host.nftables_drops).unwrap_or(0);
        counted + told.saturating_sub(all)
    }

    fn qdisc_drops(self) -> Option<u64> {
        self.interfaces(|one| one.qdisc_drops)
    }

    pub(crate) fn tx_dropped(self) -> Option<u64> {
        self.interfaces(|one| Some(one.link.tx_dropped))
    }

    /// Frames for which cards had no descriptor, and for which veth rings had no room.
    pub(crate) fn lost_in_rings(self) -> Option<u64> {
        let (before, after) = self.both_interfaces()?;
        let lost = |(index, now): (&u32, &InterfaceCounters)| {
            let then = before.get(index);
            let link = now
                .link
                .since(then.map_or_else(LinkCounters::default, |then| then.link));
            let by_peer = then.map_or(Some(0), |then| then.peer_tx_dropped);
            let by_peer = difference(now.peer_tx_dropped, by_peer)?;
            Some(link.rx_missed + by_peer.saturating_sub(link.rx_dropped))
        };
        after.iter().map(lost).sum()
    }

    /// Each core's count has 32 bits and wraps.
    pub(crate) fn softnet_dropped(self) -> Option<u64> {
        let after = self.after.softnet_dropped.as_ref()?;
        let cores = after.iter().zip(self.before.softnet_dropped.as_ref()?);
        let lost = cores.map(|(after, before)| u64::from(after.wrapping_sub(*before)));
        Some(lost.sum())
    }
}

/// The increase of a counter.
fn difference(after: Option<u64>, before: Option<u64>) -> Option<u64> {
    Some(after?.saturating_sub(before?))
}

/// An open account of the caller's network namespace.
pub struct HostAccount {
    began: Instant,
    cpu: CpuSample,
    process: CpuTime,
    counters: HostCounters,
    before: HostSnapshot,
    /// Why there are no drop reasons; `None` if there are.
    reasons_missing: Option<DropReasonsError>,
}

impl HostAccount {
    /// Opens the account.
    ///
    /// # Errors
    /// When `/proc/stat` cannot be read. Other unreadable counters become `null`.
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

    /// Closes the account. Call it when all is quiet: packets in flight are counted on neither side.
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
            .retain(|core| core.busy() + core.idle_ratio + core.steal_ratio > 0.0);
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
        let link = now
            .link
            .since(then.map_or_else(LinkCounters::default, |then| then.link));
        let line_bits_per_second = line_of(&now.name);
        let line = line_bits_per_second.and_then(Line::new);
        let share = |packets, bytes| line?.share_of_counters(packets, bytes, seconds);
        let qdisc_drops = then.map_or(Some(0), |then| then.qdisc_drops);
        InterfaceDelta {
            name: now.name.clone(),
            tx_packets: link.tx_packets,
            tx_line_ratio: share(link.tx_packets, link.tx_bytes),
            rx_line_ratio: share(link.rx_packets, link.rx_bytes),
            line_bits_per_second,
            tx_dropped_packets: link.tx_dropped,
            rx_packets: link.rx_packets,
            rx_dropped_packets: link.rx_dropped,
            qdisc_dropped_packets: difference(now.qdisc_drops, qdisc_drops),
        }
    };
    let changed = |one: &InterfaceDelta| {
        one.tx_packets + one.tx_dropped_packets + one.rx_packets + one.rx_dropped_packets > 0
            || one.qdisc_dropped_packets > Some(0)
    };
    Some(after.iter().map(delta).filter(changed).collect())
}

/// Line speed of an interface. The speed of a virtual interface is only nominal.
fn line_of(interface: &str) -> Option<u64> {
    let link = ethtool::link(interface).ok()?;
    let speed = link.speed_mbps.filter(|_| !link.is_virtual)?;
    Some(u64::from(speed) * 1_000_000)
}

#[cfg(test)]
mod losses_tests;

#[cfg(test)]
mod account_tests {
    use super::*;

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
