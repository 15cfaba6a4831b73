//! Packet losses in a host's account, as text.
//!
//! A count that may be too low says so and why; an unknown count is never shown as 0.

use nicpoll_model::{
    DropProtocol, DropReason, DropReasonGaps, HostDelta, LossPlace, UncountedLoss, Way,
};

/// Closes the account of this host and returns it; `None` when it could not be read. The caller opens it, since
/// this crate reads no counters.
pub type CloseAccount = Box<dyn FnOnce() -> Option<HostDelta> + Send>;

/// Lists the places where packets in these directions can be lost, with their counts, in the order in which a
/// packet passes them; then one line per reason.
pub fn all(host: &HostDelta, ways: &[Way]) -> String {
    let places = places(host, ways).map(|(place, packets)| figure(host, place, packets, ways));
    let places: Vec<String> = places.collect();
    drops_text(host, ways, &places)
}

/// Lists only the places where something was or may have been lost; empty if there are none.
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
    drops_text(host, ways, &lost)
}

/// A count, or `unknown`.
pub fn count(count: Option<u64>) -> String {
    count.map_or_else(|| String::from("unknown"), |count| count.to_string())
}

fn drops_text(host: &HostDelta, ways: &[Way], places: &[String]) -> String {
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

/// Whether packets in these directions pass the hook of a filter's chain.
fn can_drop(loss: &UncountedLoss, ways: &[Way]) -> bool {
    let passes = |way: &Way| *way == Way::Either || ways.contains(way);
    loss.ways.iter().any(passes)
}

/// The drops missing from the reasons, one line per kind.
fn left_out(gaps: DropReasonGaps) -> String {
    let kinds = [
        (
            Some(gaps.overflow_packets),
            "more packets were dropped for reasons that did not fit in the table",
        ),
        (
            Some(gaps.unattributed_packets),
            "more packets were dropped on this machine, in a namespace that the kernel does not report",
        ),
        (
            gaps.missed_events,
            "more drops on this machine were not counted: another was being counted at that moment",
        ),
    ];
    let lines = kinds.iter().filter_map(|(count, words)| {
        let count = count.filter(|count| *count > 0)?;
        Some(format!("  drop reasons: {count} {words}\n"))
    });
    lines.collect()
}

/// A reason without a place is listed only if it may explain the loss of a UDP datagram.
fn is_told(reason: &DropReason, ways: &[Way]) -> bool {
    match reason.place {
        Some(place) => goes(place, ways),
        None => reason.function.is_some() && reason.protocol == DropProtocol::Udp,
    }
}

fn because(reason: &DropReason) -> String {
    let place = reason.place.map_or("unknown place", LossPlace::name);
    let words = reason.explanation.as_deref().unwrap_or("No explanation.");
    let (packets, protocol, name) = (reason.packets, reason.protocol, reason.name());
    format!("{place}: {packets} {protocol}, {name}: {words}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicpoll_model::{Drops, ProcessCpu};
    use nicpoll_testkit::golden;

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

    /// One account with gaps in its reasons, one without reasons.
    fn incomplete() -> [HostDelta; 2] {
        let mut gaps = host(&[(LossPlace::SocketBuffer, Some(1))]);
        gaps.drop_reason_gaps = Some(DropReasonGaps {
            overflow_packets: 7,
            unattributed_packets: 0,
            missed_events: Some(3),
        });
        let mut none = host(&[
            (LossPlace::Nftables, Some(0)),
            (LossPlace::SendQueue, Some(0)),
        ]);
        none.uncounted = vec![uncounted(LossPlace::Nftables, None)];
        none.drop_reasons = None;
        none.drop_reasons_missing = Some(String::from("CAP_BPF is needed"));
        [gaps, none]
    }

    #[test]
    fn losses_are_told_as_recorded() {
        let some = host(&[
            (LossPlace::SendQueue, Some(1)),
            (LossPlace::DeviceRx, Some(0)),
            (LossPlace::Nftables, None),
            (LossPlace::SocketBuffer, Some(12)),
        ]);
        let mut by_reason = host(&[
            (LossPlace::Nftables, Some(400)),
            (LossPlace::SocketBuffer, Some(12)),
        ]);
        by_reason.uncounted = vec![
            uncounted(LossPlace::Nftables, Some(400)),
            uncounted(LossPlace::SocketBuffer, Some(2)),
        ];
        by_reason.drop_reasons = Some(vec![DropReason {
            reason: String::from("NETFILTER_DROP"),
            function: None,
            protocol: DropProtocol::Udp,
            place: Some(LossPlace::Nftables),
            explanation: Some(String::from("A rule dropped it.")),
            packets: 400,
        }]);
        // A chain for the other direction does not affect received packets.
        let mut out = host(&[(LossPlace::Nftables, Some(0))]);
        out.uncounted = vec![uncounted(LossPlace::Nftables, None)];
        out.uncounted[0].ways = vec![Way::Out];
        let [gaps, none] = incomplete();
        let lines = [
            all(&some, &[Way::In]),
            only_losses(&some, &[Way::Out]),
            all(&by_reason, &[Way::In]),
            all(&out, &[Way::In]),
            all(&out, &[Way::Out]),
            all(&gaps, &[Way::In]),
            only_losses(&none, &[Way::In]),
        ];
        golden("src/losses.txt", &lines.concat());
        out.uncounted[0].ways = vec![];
        assert_eq!(only_losses(&out, &[Way::In, Way::Out]), "");
        let nothing = host(&[(LossPlace::SendQueue, Some(0)), (LossPlace::Nftables, None)]);
        assert_eq!(only_losses(&nothing, &[Way::Out]), "");
    }
}
