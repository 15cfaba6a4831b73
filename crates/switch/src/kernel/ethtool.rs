//! Offload features, interrupt moderation, ring sizes and link speed: the ethtool family of generic netlink.
//!
//! netlink-bindings 0.3.5 numbers the family's commands in the order of its specification, not as
//! include/uapi/linux/ethtool_netlink.h does (its features-get goes out as 15, the kernel's is 11). Its attributes are
//! right, so only the request's header is written here.

use std::collections::BTreeMap;

use netlink_bindings::ethtool::{self, IterableBitset, PushFeatures};
use netlink_bindings::traits::Protocol;
use netlink_bindings::utils::ErrorContext;

use super::netlink::{Control, RawRequest, attributes, push_attribute, uint_attribute};
use crate::error::SwitchError;
use crate::knob::KnobRow;
use crate::knob::row::CardTable;

/// The feature without which veth has no receive NAPI.
pub const GRO_FEATURE: &str = "rx-gro";

const ETHTOOL_GENL_VERSION: u8 = 1;
/// include/uapi/linux/ethtool_netlink.h
const RINGS_RX: u16 = 6;
/// Attribute of the link speed, in Mbit/s.
const LINKMODES_SPEED: u16 = 5;
/// `SPEED_UNKNOWN`, include/uapi/linux/ethtool.h.
const SPEED_UNKNOWN: u32 = u32::MAX;

/// `ETHTOOL_MSG_*`, by their numbers in the kernel.
const LINKMODES_GET: u8 = 4;
const FEATURES_GET: u8 = 11;
const FEATURES_SET: u8 = 12;

/// The command numbers that read a table and set one of its numbers, and the table's name.
fn commands(table: CardTable) -> (u8, u8, &'static str) {
    match table {
        CardTable::Coalescing => (19, 20, "interrupt moderation"),
        CardTable::Rings => (15, 16, "ring sizes"),
    }
}

/// Starts a request about an interface. The header is the first attribute of every message of the family.
fn about(command: u8, ifindex: u32) -> RawRequest {
    let mut payload = vec![command, ETHTOOL_GENL_VERSION, 0, 0];
    PushFeatures::new(&mut payload)
        .nested_header()
        .push_dev_index(ifindex)
        .end_nested()
        .end_nested();
    RawRequest {
        protocol: Protocol::Generic(b"ethtool"),
        payload,
    }
}

/// Offload features by name: requested and in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Which features are requested.
    pub wanted: BTreeMap<String, bool>,
    /// Which features are in force.
    pub active: BTreeMap<String, bool>,
}

impl Control {
    /// Reads the offload features of an interface.
    pub fn features(&mut self, ifindex: u32) -> Result<Features, SwitchError> {
        let doing = format!("reading the features of interface {ifindex}");
        let request = about(FEATURES_GET, ifindex);
        self.ask_one(doing, &request, |answer| {
            let features = ethtool::Features::new(answer);
            // The "hw" set has a mask, so it names every feature that exists; the others name those that are on.
            let all = names(features.get_hw()?)?;
            let with = |on: Vec<String>| -> BTreeMap<String, bool> {
                let off = all.iter().map(|name| (name.clone(), false));
                off.chain(on.into_iter().map(|name| (name, true))).collect()
            };
            Ok(Features {
                wanted: with(names(features.get_wanted()?)?),
                active: with(names(features.get_active()?)?),
            })
        })
    }

    /// Requests features to be on or off; [`Control::features`] reads the driver's decision.
    pub fn set_features(
        &mut self,
        ifindex: u32,
        changes: &BTreeMap<String, bool>,
    ) -> Result<(), SwitchError> {
        let mut request = about(FEATURES_SET, ifindex);
        let mut bits = PushFeatures::new(&mut request.payload)
            .nested_wanted()
            .nested_bits();
        for (name, &on) in changes {
            let bit = bits.nested_bit().push_name_bytes(name.as_bytes());
            let bit = if on { bit.push_value(()) } else { bit };
            bits = bit.end_nested();
        }
        bits.end_nested().end_nested();
        // Before it acknowledges, the kernel answers with the features that changed.
        let doing = format!("setting features of interface {ifindex}");
        self.ask(doing, &request, |_| Ok(())).map(drop)
    }

    /// Reads the numbers of a table that the driver has.
    pub(super) fn card_numbers(
        &mut self,
        table: CardTable,
        ifindex: u32,
    ) -> Result<BTreeMap<u16, u32>, SwitchError> {
        let (command, _, name) = commands(table);
        let number = |bytes: &[u8]| match *bytes {
            [flag] => Some(u32::from(flag)),
            _ => Some(u32::from_ne_bytes(bytes.try_into().ok()?)),
        };
        let doing = format!("reading the {name} of interface {ifindex}");
        self.ask_one(doing, &about(command, ifindex), |answer| {
            let known = attributes(answer);
            let numbers = known.filter_map(|(kind, bytes)| Some((kind, number(bytes)?)));
            Ok(numbers.collect())
        })
    }

    /// Sets a number of a table; `row` is its knob.
    pub(super) fn set_card_number(
        &mut self,
        (table, attribute): (CardTable, u16),
        row: &KnobRow,
        ifindex: u32,
        value: u32,
    ) -> Result<(), SwitchError> {
        let (_, command, _) = commands(table);
        let mut request = about(command, ifindex);
        match row.is_adaptive() {
            true => push_attribute(&mut request.payload, attribute, &[u8::from(value != 0)]),
            false => push_attribute(&mut request.payload, attribute, &value.to_ne_bytes()),
        }
        let doing = format!("setting {} of interface {ifindex} to {value}", row.name);
        self.ask(doing, &request, |_| Ok(())).map(drop)
    }

    /// Reads the present size of one receive ring, in slots.
    ///
    /// # Errors
    /// Of kind `Unsupported` when the driver does not report it.
    pub fn rx_ring_slots(&mut self, ifindex: u32) -> Result<Option<u32>, SwitchError> {
        let rings = self.card_numbers(CardTable::Rings, ifindex)?;
        Ok(rings.get(&RINGS_RX).copied())
    }

    /// Reads the link speed in bit/s; `None` if the driver does not know it.
    ///
    /// # Errors
    /// Of kind `Unsupported` when the driver does not report a speed.
    pub fn link_bits_per_second(&mut self, ifindex: u32) -> Result<Option<u64>, SwitchError> {
        let doing = format!("asking for the speed of interface {ifindex}");
        let request = about(LINKMODES_GET, ifindex);
        self.ask_one(doing, &request, |answer| Ok(speed_of(answer)))
    }
}

fn names(set: IterableBitset<'_>) -> Result<Vec<String>, ErrorContext> {
    set.get_bits()?
        .get_bit()
        .map(|bit| Ok(bit.get_name()?.to_string_lossy().into_owned()))
        .collect()
}

fn speed_of(attributes: &[u8]) -> Option<u64> {
    let mbits = uint_attribute(attributes, LINKMODES_SPEED)?;
    let is_known = mbits > 0 && mbits != u64::from(SPEED_UNKNOWN);
    is_known.then(|| mbits.saturating_mul(1_000_000))
}

#[cfg(test)]
mod tests {
    use super::super::netlink::push_uint;
    use super::*;

    #[test]
    fn an_unknown_speed_is_none() {
        let with = |speed| {
            let mut list = Vec::new();
            push_uint(&mut list, LINKMODES_SPEED, speed);
            speed_of(&list)
        };
        assert_eq!(with(10_000), Some(10_000_000_000));
        assert_eq!(with(u64::from(SPEED_UNKNOWN)), None);
        assert_eq!(with(0), None);
        assert_eq!(speed_of(&[]), None);
    }
}
