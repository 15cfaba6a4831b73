//! When a live comparison has to be given up: what happens to the traffic, and to the interface.
//!
//! What must hold: nothing here changes anything. What is too much is [`LossLimit`]'s to say: losses are held against
//! those under the reference, so that traffic which loses packets anyway is not protected from itself.

use nicpoll_model::ab::{AbEnd, AbEndCause};
use nicpoll_observe::{Account, HostSnapshot};
use nicpoll_stats::ab::{LossLimit, Losses, TooMany};
use nicpoll_switch::Vitals;

use super::block::lost;

/// What a stretch of traffic lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lost {
    drops: Losses,
    retransmissions: Losses,
}

impl Lost {
    /// Between two readings, so many seconds apart.
    pub fn between(before: &HostSnapshot, after: &HostSnapshot, seconds: f64) -> Lost {
        let packets = packets(after).saturating_sub(packets(before)) as f64;
        let losses = |lost: u64| Losses {
            seconds,
            lost: lost as f64,
            packets,
        };
        let again =
            |host: &HostSnapshot| host.protocols.get("Tcp.RetransSegs").copied().unwrap_or(0);
        Lost {
            drops: losses(lost(&Account { before, after }.drops())),
            retransmissions: losses(again(after).saturating_sub(again(before))),
        }
    }

    /// Packets received and sent each second.
    pub fn packets_per_second(&self) -> f64 {
        self.drops.packets / self.drops.seconds
    }
}

/// The limits of a run: packets lost, and segments sent again.
#[derive(Clone, Debug)]
pub struct Limits {
    drops: LossLimit,
    retransmissions: LossLimit,
}

impl Limits {
    /// `factor` times what is usual may be lost; `usual` is a stretch under the reference before the first block.
    pub fn new(factor: f64, longest_seconds: f64, usual: &Lost) -> Self {
        Limits {
            drops: LossLimit::new(factor, longest_seconds, usual.drops),
            retransmissions: LossLimit::new(factor, longest_seconds, usual.retransmissions),
        }
    }

    /// Whether a block that is under way lost so much that it cannot go on.
    pub fn at_once(&self, so_far: &Lost) -> Option<AbEnd> {
        ended(
            self.drops.at_once(&so_far.drops),
            self.retransmissions.at_once(&so_far.retransmissions),
        )
    }

    /// Whether a stretch lost more than a block may.
    pub fn alone(&self, stretch: &Lost) -> Option<AbEnd> {
        ended(
            self.drops.alone(&stretch.drops),
            self.retransmissions.alone(&stretch.retransmissions),
        )
    }

    /// Adds a pair. Whether the run has lost too much with it.
    pub fn pair(&mut self, reference: &Lost, judged: &Lost) -> Option<AbEnd> {
        let drops = self.drops.pair(reference.drops, judged.drops);
        let again = self
            .retransmissions
            .pair(reference.retransmissions, judged.retransmissions);
        ended(drops, again)
    }
}

fn ended(drops: Option<TooMany>, retransmissions: Option<TooMany>) -> Option<AbEnd> {
    let end = |cause, what: &str, many: TooMany| {
        let blocks = match many.blocks {
            1 => String::from("one block"),
            more => format!("{more} blocks of the judged setting"),
        };
        AbEnd {
            cause,
            text: Some(format!(
                "{:.0} {what} in {blocks}, where {:.0} are allowed; a greater --loss-limit allows more",
                many.lost, many.allowed
            )),
        }
    };
    let drops = drops.map(|many| end(AbEndCause::Drops, "packets were lost", many));
    drops.or_else(|| {
        let what = "segments were sent again";
        retransmissions.map(|many| end(AbEndCause::Retransmissions, what, many))
    })
}

fn packets(host: &HostSnapshot) -> u64 {
    let interfaces = host.interfaces.iter().flatten();
    interfaces
        .map(|(_, one)| one.link.rx_packets + one.link.tx_packets)
        .sum()
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
    fn losses_and_segments_sent_again_have_a_limit_each() {
        let lost = |drops, again| Lost::between(&host(0, 0, 0), &host(80_000, drops, again), 4.0);
        let mut limits = Limits::new(2.0, 6.0, &lost(200, 60));
        assert_eq!(lost(0, 0).packets_per_second(), 20_000.0);
        let alone = |drops, again| cause(limits.alone(&lost(drops, again)));
        assert_eq!(alone(399, 399), None);
        assert_eq!(alone(5_000, 0), Some(AbEndCause::Drops));
        assert_eq!(alone(0, 5_000), Some(AbEndCause::Retransmissions));
        assert_eq!(cause(limits.at_once(&lost(5_000, 0))), None);
        let very_many = limits.at_once(&lost(0, 20_000));
        assert_eq!(cause(very_many), Some(AbEndCause::Retransmissions));
        assert_eq!(limits.pair(&lost(200, 60), &lost(5_000, 0)), None);
        let end = limits.pair(&lost(200, 60), &lost(5_000, 0)).unwrap();
        let text = end.text.unwrap();
        let says = "10000 packets were lost in 2 blocks of the judged setting";
        assert!(
            text.starts_with(says) && text.contains("--loss-limit"),
            "{text}"
        );
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
