//! Losses in the account of a host, as text.
//!
//! A count that may be too small says so and why; an unknown count is never shown as none.

use nicpoll_model::{
    DropProtocol, DropReason, DropReasonGaps, HostDelta, LossPlace, UncountedLoss, Way,
};

/// Closes the account of this host and returns it; `None` when it could not be read. Whoever runs traffic opens it, since
/// counters are not this crate's.
pub type CloseAccount = Box<dyn FnOnce() -> Option<HostDelta> + Send>;

/// The places where packets that go one of these ways can be lost, with how many were, in the order in which a
/// packet passes them; then a line for each reason.
pub fn all(host: &HostDelta, ways: &[Way]) -> String {
    let places = places(host, ways).map(|(place, packets)| figure(host, place, packets, ways));
    let places: Vec<String> = places.collect();
    told(host, ways, &places)
}

/// The same of the places at which anything was or may have been lost; nothing when there are none.
pub fn only_losses(host: &HostDelta, ways: &[Way]) -> String {
    let lost = places(host, ways).filter(|(place, packets)| {
        *packets > Some(0) || uncounted_at(host, *place, ways).is_some()
    });
    let lost: Vec<String> = lost
        .map(|(place, packets)| figure(host, place, packets, ways))
        .collect();
    if lost.is_empty() {
        return String::new();
    }
    told(host, ways, &lost)
}

/// A count, `unknown` without one.
pub fn count(count: Option<u64>) -> String {
    count.map_or_else(|| String::from("unknown"), |count| count.to_string())
}

fn told(host: &HostDelta, ways: &[Way], places: &[String]) -> String {
    let mut lines = format!("dropped by this host: {}\n", places.join(", "));
    let reasons = host.drop_reasons.iter().flatten();
    for reason in reasons.filter(|reason| is_told(reason, ways)) {
        lines.push_str(&format!("  {}\n", because(reason)));
    }
    let may_be_more = |one: &&UncountedLoss| one.packets.is_none() && can_drop(one, ways);
    for one in host.uncounted.iter().filter(may_be_more) {
        lines.push_str(&format!("  {}: may be more: {}\n", one.place, one.by));
    }
    lines.push_str(&host.drop_reason_gaps.map(left_out).unwrap_or_default());
    if let Some(why) = &host.drop_reasons_missing {
        lines.push_str(&format!("  no drop reasons: {why}\n"));
    }
    lines
}

fn places(host: &HostDelta, ways: &[Way]) -> impl Iterator<Item = (LossPlace, Option<u64>)> {
    let drops = host.dropped_packets.0.iter();
    drops
        .map(|(place, packets)| (*place, *packets))
        .filter(|(place, _)| goes(*place, ways))
}

fn goes(place: LossPlace, ways: &[Way]) -> bool {
    place.way() == Way::Either || ways.contains(&place.way())
}

/// A place and its count: `nftables 400 (no counter)`.
fn figure(host: &HostDelta, place: LossPlace, packets: Option<u64>, ways: &[Way]) -> String {
    let number = count(packets);
    match uncounted_at(host, place, ways) {
        Some(UncountedLoss { packets: None, .. }) => format!("{place} at least {number}"),
        Some(one) if one.packets == packets => format!("{place} {number} (no counter)"),
        Some(one) => {
            let beyond = count(one.packets);
            format!("{place} {number} ({beyond} without a counter)")
        }
        None => format!("{place} {number}"),
    }
}

fn uncounted_at<'a>(
    host: &'a HostDelta,
    place: LossPlace,
    ways: &[Way],
) -> Option<&'a UncountedLoss> {
    let mut here = host.uncounted.iter().filter(|one| one.place == place);
    here.find(|one| can_drop(one, ways))
}

/// A filter's chain drops only what passes its hook.
fn can_drop(loss: &UncountedLoss, ways: &[Way]) -> bool {
    let passes = |way: &Way| *way == Way::Either || ways.contains(way);
    loss.ways.iter().any(passes)
}

/// What the reasons leave out, a line for each kind.
fn left_out(gaps: DropReasonGaps) -> String {
    let kinds = [
        (
            Some(gaps.overflow_packets),
            "packets more were dropped for reasons that found no room in the table",
        ),
        (
            Some(gaps.unattributed_packets),
            "packets more were dropped on this machine, in a namespace that the kernel does not tell",
        ),
        (
            gaps.missed_events,
            "drops more on this machine were not counted: another was being counted at that moment",
        ),
    ];
    let lines = kinds.iter().filter_map(|(count, words)| {
        let count = count.filter(|count| *count > 0)?;
        Some(format!("  drop reasons: {count} {words}\n"))
    });
    lines.collect()
}

/// A reason without a place is told only where it may be a datagram's that nothing else explains.
fn is_told(reason: &DropReason, ways: &[Way]) -> bool {
    match reason.place {
        Some(place) => goes(place, ways),
        None => reason.function.is_some() && reason.protocol == DropProtocol::Udp,
    }
}

fn because(reason: &DropReason) -> String {
    let place = reason.place.map_or("unknown place", LossPlace::name);
    let words = reason.explanation.as_deref().unwrap_or("No word for it.");
    let (packets, protocol, name) = (reason.packets, reason.protocol, reason.name());
    format!("{place}: {packets} {protocol}, {name}: {words}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicpoll_model::{Drops, ProcessCpu};

    fn host(drops: &[(LossPlace, Option<u64>)]) -> HostDelta {
        HostDelta {
            duration_seconds: 1.0,
            cpu_tick_sampled: vec![],
            context_switches: 0,
            process_cpu: ProcessCpu {
                user_seconds: 0.0,
                system_seconds: 0.0,
            },
            dropped_packets: Drops(drops.iter().copied().collect()),
            uncounted: vec![],
            drop_reasons: Some(vec![]),
            drop_reason_gaps: None,
            drop_reasons_missing: None,
            interfaces: None,
        }
    }

    fn uncounted(place: LossPlace, packets: Option<u64>) -> UncountedLoss {
        UncountedLoss {
            place,
            packets,
            by: String::from("chain input of table inet t has a drop rule without a counter"),
            ways: vec![Way::In],
        }
    }

    #[test]
    fn what_is_not_known_is_not_told_as_none() {
        let host = host(&[
            (LossPlace::SendQueue, Some(1)),
            (LossPlace::DeviceRx, Some(0)),
            (LossPlace::Nftables, None),
            (LossPlace::SocketBuffer, Some(12)),
        ]);
        assert_eq!(
            all(&host, &[Way::In]),
            "dropped by this host: interface rx 0, nftables unknown, socket buffer 12\n"
        );
        assert_eq!(
            only_losses(&host, &[Way::Out]),
            "dropped by this host: send queue 1\n"
        );
    }

    #[test]
    fn nothing_lost_is_nothing_told() {
        let host = host(&[(LossPlace::SendQueue, Some(0)), (LossPlace::Nftables, None)]);
        assert_eq!(only_losses(&host, &[Way::Out]), "");
    }

    #[test]
    fn what_only_a_reason_tells_says_so() {
        let mut host = host(&[
            (LossPlace::Nftables, Some(400)),
            (LossPlace::SocketBuffer, Some(12)),
        ]);
        host.uncounted = vec![
            uncounted(LossPlace::Nftables, Some(400)),
            uncounted(LossPlace::SocketBuffer, Some(2)),
        ];
        host.drop_reasons = Some(vec![DropReason {
            reason: String::from("NETFILTER_DROP"),
            function: None,
            protocol: DropProtocol::Udp,
            place: Some(LossPlace::Nftables),
            explanation: Some(String::from("A rule dropped it.")),
            packets: 400,
        }]);
        assert_eq!(
            all(&host, &[Way::In]),
            "dropped by this host: nftables 400 (no counter), socket buffer 12 (2 without a counter)\n  \
             nftables: 400 UDP, NETFILTER_DROP: A rule dropped it.\n"
        );
    }

    #[test]
    fn a_chain_of_another_way_says_nothing_of_what_is_received() {
        let mut host = host(&[(LossPlace::Nftables, Some(0))]);
        host.uncounted = vec![uncounted(LossPlace::Nftables, None)];
        host.uncounted[0].ways = vec![Way::Out];
        assert_eq!(all(&host, &[Way::In]), "dropped by this host: nftables 0\n");
        assert!(all(&host, &[Way::Out]).contains("at least 0"));
        host.uncounted[0].ways = vec![];
        assert_eq!(only_losses(&host, &[Way::In, Way::Out]), "");
    }

    #[test]
    fn what_the_reasons_leave_out_is_told_beside_them() {
        let mut host = host(&[(LossPlace::SocketBuffer, Some(1))]);
        host.drop_reason_gaps = Some(DropReasonGaps {
            overflow_packets: 7,
            unattributed_packets: 0,
            missed_events: Some(3),
        });
        assert_eq!(
            all(&host, &[Way::In]),
            "dropped by this host: socket buffer 1\n  \
             drop reasons: 7 packets more were dropped for reasons that found no room in the table\n  \
             drop reasons: 3 drops more on this machine were not counted: another was being counted at that moment\n"
        );
    }

    #[test]
    fn a_count_that_may_be_too_small_says_why_and_so_does_the_want_of_reasons() {
        let mut host = host(&[
            (LossPlace::Nftables, Some(0)),
            (LossPlace::SendQueue, Some(0)),
        ]);
        host.uncounted = vec![uncounted(LossPlace::Nftables, None)];
        host.drop_reasons = None;
        host.drop_reasons_missing = Some(String::from("CAP_BPF is needed"));
        assert_eq!(
            only_losses(&host, &[Way::In]),
            "dropped by this host: nftables at least 0\n  \
             nftables: may be more: chain input of table inet t has a drop rule without a counter\n  \
             no drop reasons: CAP_BPF is needed\n"
        );
    }
}
