//! When a live comparison has to be given up: what happens to the traffic, and to the interface.
//!
//! What must hold: nothing here changes anything. Losses are held against those of a stretch under the reference,
//! so that traffic which loses packets anyway is not protected from itself; a few are never too many.

use nicpoll_model::ab::{AbEnd, AbEndCause};
use nicpoll_observe::{Account, HostSnapshot};
use nicpoll_switch::Vitals;

use super::block::lost;

/// What counts as usual at the least, in events of a block: a few losses say nothing. A receiver that waits for the CPU
/// for a moment loses some dozen datagrams at once.
const LEAST: f64 = 50.0;
/// The same as a share of the block's packets.
const LEAST_SHARE: f64 = 0.0025;

/// How often packets were lost and segments sent again in each second, under the reference.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usual {
    /// Packets lost.
    pub drops_per_second: f64,
    /// Segments sent again.
    pub retransmissions_per_second: f64,
    /// Packets received and sent.
    pub packets_per_second: f64,
}

/// What a stretch of traffic lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Losses {
    drops: f64,
    retransmissions: f64,
    packets: f64,
}

impl Usual {
    /// Of a stretch under the reference.
    pub fn between(before: &HostSnapshot, after: &HostSnapshot, seconds: f64) -> Usual {
        let Losses {
            drops,
            retransmissions,
            packets,
        } = losses(before, after);
        Usual {
            drops_per_second: drops / seconds,
            retransmissions_per_second: retransmissions / seconds,
            packets_per_second: packets / seconds,
        }
    }

    /// Whether a block has lost more than `factor` times what is usual for its whole length.
    pub fn exceeded(
        &self,
        before: &HostSnapshot,
        after: &HostSnapshot,
        block_seconds: f64,
        factor: f64,
    ) -> Option<AbEnd> {
        let seen = losses(before, after);
        let most = |per_second: f64| {
            let usual = (per_second * block_seconds).max(LEAST);
            factor * usual.max(LEAST_SHARE * seen.packets)
        };
        let end = |cause, what: &str, seen: f64, most: f64| {
            (seen > most).then(|| AbEnd {
                cause,
                text: Some(format!(
                    "{seen:.0} {what} in one block, where {most:.0} are allowed"
                )),
            })
        };
        let drops = most(self.drops_per_second);
        let again = most(self.retransmissions_per_second);
        end(AbEndCause::Drops, "packets were lost", seen.drops, drops).or_else(|| {
            let what = "segments were sent again";
            end(
                AbEndCause::Retransmissions,
                what,
                seen.retransmissions,
                again,
            )
        })
    }
}

fn losses(before: &HostSnapshot, after: &HostSnapshot) -> Losses {
    let packets = |host: &HostSnapshot| -> u64 {
        let interfaces = host.interfaces.iter().flatten();
        interfaces
            .map(|(_, one)| one.link.rx_packets + one.link.tx_packets)
            .sum()
    };
    let again = |host: &HostSnapshot| host.protocols.get("Tcp.RetransSegs").copied().unwrap_or(0);
    Losses {
        drops: lost(&Account { before, after }.drops()) as f64,
        retransmissions: again(after).saturating_sub(again(before)) as f64,
        packets: packets(after).saturating_sub(packets(before)) as f64,
    }
}

/// What changed about an interface since a comparison began; `None` when nothing did that matters.
pub fn disturbed(name: &str, then: &Vitals, now: Option<&Vitals>) -> Option<AbEnd> {
    let end = |cause, text: String| {
        Some(AbEnd {
            cause,
            text: Some(text),
        })
    };
    let Some(now) = now else {
        let text = format!("{name} is no more, or no longer in this network namespace");
        return end(AbEndCause::InterfaceChanged, text);
    };
    if !now.is_up {
        return end(AbEndCause::CarrierLost, format!("{name} was taken down"));
    }
    if !now.has_carrier && then.has_carrier {
        return end(AbEndCause::CarrierLost, format!("{name} lost its carrier"));
    }
    if now.carrier_changes != then.carrier_changes {
        let text = format!("{name} lost its carrier for a moment");
        return end(AbEndCause::CarrierLost, text);
    }
    if now.napi_ids != then.napi_ids {
        let text = format!("{name} made its NAPI instances anew, so its queues began anew");
        return end(AbEndCause::InterfaceChanged, text);
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nicpoll_observe::{InterfaceCounters, LinkCounters};

    use super::*;

    fn host(rx_packets: u64, rx_missed: u64, again: u64) -> HostSnapshot {
        let interface = InterfaceCounters {
            link: LinkCounters {
                rx_packets,
                rx_missed,
                ..LinkCounters::default()
            },
            qdisc_drops: Some(0),
            xdp_drops: Some(0),
            peer_tx_dropped: Some(0),
            ..InterfaceCounters::default()
        };
        HostSnapshot {
            interfaces: Some(BTreeMap::from([(2, interface)])),
            protocols: BTreeMap::from([(String::from("Tcp.RetransSegs"), again)]),
            ..HostSnapshot::default()
        }
    }

    fn cause(end: Option<AbEnd>) -> Option<AbEndCause> {
        end.map(|end| end.cause)
    }

    #[test]
    fn more_than_twice_the_usual_is_too_much_and_a_few_never_are() {
        let usual = Usual::between(&host(0, 0, 0), &host(10_000, 200, 60), 2.0);
        let after = |drops, again| {
            let now = host(10_000, drops, again);
            cause(usual.exceeded(&host(0, 0, 0), &now, 2.0, 2.0))
        };
        assert_eq!(after(399, 119), None);
        assert_eq!(after(401, 0), Some(AbEndCause::Drops));
        assert_eq!(after(0, 121), Some(AbEndCause::Retransmissions));
        let none = Usual::default();
        let few = |drops| cause(none.exceeded(&host(0, 0, 0), &host(9, drops, 0), 2.0, 2.0));
        assert_eq!((few(100), few(101)), (None, Some(AbEndCause::Drops)));
        // Half a hundredth of many is more than a few.
        let many = host(1_000_000, 4_900, 0);
        assert_eq!(none.exceeded(&host(0, 0, 0), &many, 2.0, 2.0), None);
    }

    #[test]
    fn what_became_of_the_interface_is_told_apart() {
        let well = Vitals {
            is_up: true,
            has_carrier: true,
            carrier_changes: Some(2),
            napi_ids: vec![8, 9],
        };
        let now = |change: fn(&mut Vitals)| {
            let mut now = well.clone();
            change(&mut now);
            cause(disturbed("em0", &well, Some(&now)))
        };
        assert_eq!(now(|_| ()), None);
        assert_eq!(now(|now| now.is_up = false), Some(AbEndCause::CarrierLost));
        assert_eq!(
            now(|now| now.carrier_changes = Some(4)),
            Some(AbEndCause::CarrierLost)
        );
        assert_eq!(
            now(|now| now.napi_ids = vec![10, 11]),
            Some(AbEndCause::InterfaceChanged)
        );
        let gone = disturbed("em0", &well, None);
        assert_eq!(cause(gone), Some(AbEndCause::InterfaceChanged));
    }
}
