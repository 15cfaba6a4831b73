//! Whether the cards of the members stamp the packets that come, and by which clock: what packets wait in a card is
//! seen then.
//!
//! What must hold: stamping is used where somebody has switched it on, and never switched here: some drivers begin their
//! queues anew for it. What is not seen is named, with what it takes.

use std::collections::{BTreeMap, BTreeSet};

use nicpoll_model::Unseen;
use nicpoll_observe::{CardClock, CardClockError};
use nicpoll_sys::ethtool::{ReceiveStamps, receive_stamps};
use nicpoll_sys::link;
use thiserror::Error;

use super::meter::Instance;

/// Why the stamps of a card are of no use.
#[derive(Debug, Error)]
enum NoStamps {
    #[error("{member} has no time stamps for all of them")]
    None { member: String },
    #[error(
        "{member} could stamp them and does not (`hwstamp_ctl -i {member} -r 1` has it do so, and begins the queues of \
         some cards anew)"
    )]
    Off { member: String },
    #[error("{member} stamps them, but {source}")]
    Clock {
        member: String,
        source: CardClockError,
    },
}

/// Clocks of cards, each once.
#[derive(Default)]
struct Clocks {
    open: Vec<CardClock>,
    /// The place of each, by its number.
    places: BTreeMap<u32, usize>,
}

impl Clocks {
    /// The place of the clock by which a member stamps its packets.
    fn of_member(&mut self, ifindex: u32) -> Result<usize, NoStamps> {
        let name = link::control_socket().and_then(|socket| link::name_of(socket, ifindex));
        let member = name.unwrap_or_else(|_| format!("interface {ifindex}"));
        let number = clock_of(&member, receive_stamps(&member).ok())?;
        if let Some(place) = self.places.get(&number) {
            return Ok(*place);
        }
        let clock = CardClock::open(number);
        self.open
            .push(clock.map_err(|source| NoStamps::Clock { member, source })?);
        let place = self.open.len() - 1;
        self.places.insert(number, place);
        Ok(place)
    }
}

/// The number of the clock by which every packet is stamped.
fn clock_of(member: &str, stamps: Option<ReceiveStamps>) -> Result<u32, NoStamps> {
    let member = String::from(member);
    match stamps {
        Some(ReceiveStamps {
            clock: Some(clock),
            stamps_all: true,
            ..
        }) => Ok(clock),
        Some(ReceiveStamps {
            clock: Some(_),
            can_stamp_all: true,
            ..
        }) => Err(NoStamps::Off { member }),
        _ => Err(NoStamps::None { member }),
    }
}

/// The members whose packets are stamped: by index, the place of the clock.
#[derive(Default)]
pub struct Stamps(BTreeMap<u32, usize>);

impl Stamps {
    /// Asks the cards of the instances, in the caller's namespace. Returns also their clocks, and what is not seen.
    pub fn of(instances: &[Instance]) -> (Self, Vec<CardClock>, Vec<Unseen>) {
        let mut clocks = Clocks::default();
        let mut stamps = Stamps::default();
        let mut unseen = Vec::new();
        let members: BTreeSet<u32> = instances.iter().map(|one| one.ifindex).collect();
        for ifindex in members {
            match clocks.of_member(ifindex) {
                Ok(place) => {
                    stamps.0.insert(ifindex, place);
                }
                Err(why) => unseen.push(Unseen {
                    what: String::from("what packets wait in the card until a poll takes them"),
                    why: format!(
                        "no event tells when they came, and {why}; it is half a period on average, where packets come \
                         independently of the polls"
                    ),
                }),
            }
        }
        (stamps, clocks.open, unseen)
    }

    /// Each instance with the place of the clock by which its packets are stamped.
    pub fn by_instance<'a>(
        &self,
        instances: impl Iterator<Item = &'a Instance>,
    ) -> BTreeMap<u32, Option<usize>> {
        let place = |instance: &Instance| self.0.get(&instance.ifindex).copied();
        instances.map(|one| (one.napi_id, place(one))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_used_where_every_packet_has_one() {
        let all = ReceiveStamps {
            clock: Some(3),
            can_stamp_all: true,
            stamps_all: true,
        };
        assert_eq!(clock_of("eth0", Some(all)).unwrap(), 3);
        let off = ReceiveStamps {
            stamps_all: false,
            ..all
        };
        let why = clock_of("eth0", Some(off)).unwrap_err().to_string();
        assert!(why.contains("`hwstamp_ctl -i eth0 -r 1`"), "{why}");
        let of_none = ReceiveStamps { clock: None, ..all };
        let of_some = ReceiveStamps {
            can_stamp_all: false,
            ..off
        };
        for stamps in [Some(of_none), Some(of_some), None] {
            let why = clock_of("eth0", stamps).unwrap_err().to_string();
            assert_eq!(why, "eth0 has no time stamps for all of them");
        }
    }
}
