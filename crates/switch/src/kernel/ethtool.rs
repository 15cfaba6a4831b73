//! Offload features, interrupt moderation, ring sizes and link speed: the ethtool family of generic netlink.
//!
//! netlink-bindings 0.3.5 numbers the family's commands one after another as its specification lists them, unlike
//! include/uapi/linux/ethtool_netlink.h (its features-get goes out as 15, the kernel's is 11). Its attributes are
//! right, so only the header of a request is written here.

use std::collections::BTreeMap;

use netlink_bindings::ethtool::{self, IterableBitset, PushFeatures};
use netlink_bindings::traits::{NetlinkRequest, Protocol};
use netlink_bindings::utils::ErrorContext;

use super::netlink::{Control, ControlError, attributes, push_attribute, uint_attribute};

/// The feature without which veth has no receive NAPI.
pub const GRO_FEATURE: &str = "rx-gro";

/// Length of the generic netlink header: command, version, two bytes reserved.
const GENERIC_HEADER_BYTES: usize = 4;
const ETHTOOL_GENL_VERSION: u8 = 1;
/// include/uapi/linux/ethtool_netlink.h
const RINGS_RX: u16 = 6;
/// The speed in Mbit/s.
const LINKMODES_SPEED: u16 = 5;
/// `SPEED_UNKNOWN`, include/uapi/linux/ethtool.h.
const SPEED_UNKNOWN: u32 = u32::MAX;

/// `ETHTOOL_MSG_*`, by their numbers in the kernel.
#[derive(Clone, Copy)]
enum Command {
    LinkModesGet = 4,
    FeaturesGet = 11,
    FeaturesSet = 12,
    RingsGet = 15,
    RingsSet = 16,
    CoalesceGet = 19,
    CoalesceSet = 20,
}

/// A request; its reply is a list of attributes.
struct EthtoolRequest {
    payload: Vec<u8>,
}

impl EthtoolRequest {
    /// A request about an interface. The header is the first attribute of every message of the family.
    fn about(command: Command, ifindex: u32) -> Self {
        let mut payload = vec![command as u8, ETHTOOL_GENL_VERSION, 0, 0];
        PushFeatures::new(&mut payload)
            .nested_header()
            .push_dev_index(ifindex)
            .end_nested()
            .end_nested();
        EthtoolRequest { payload }
    }
}

impl NetlinkRequest for EthtoolRequest {
    type ReplyType<'buf> = &'buf [u8];

    fn protocol(&self) -> Protocol {
        Protocol::Generic(b"ethtool")
    }

    fn flags(&self) -> u16 {
        0
    }

    fn payload(&self) -> &[u8] {
        &self.payload
    }

    fn decode_reply(reply: &[u8]) -> &[u8] {
        reply.get(GENERIC_HEADER_BYTES..).unwrap_or_default()
    }
}

/// Offload features by name: requested and in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Requested.
    pub wanted: BTreeMap<String, bool>,
    /// In force.
    pub active: BTreeMap<String, bool>,
}

impl Control {
    /// Reads the offload features of an interface.
    pub fn features(&mut self, ifindex: u32) -> Result<Features, ControlError> {
        let doing = format!("reading the features of interface {ifindex}");
        let request = EthtoolRequest::about(Command::FeaturesGet, ifindex);
        self.ask_one(doing, &request, |answer| {
            let features = ethtool::Features::new(answer);
            // The "hw" set has a mask and so names every feature that exists; the others name those
            // that are on.
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

    /// Requests features to be on or off; [`Control::features`] tells the driver's decision.
    pub fn set_features(
        &mut self,
        ifindex: u32,
        changes: &BTreeMap<String, bool>,
    ) -> Result<(), ControlError> {
        let mut request = EthtoolRequest::about(Command::FeaturesSet, ifindex);
        let mut bits = PushFeatures::new(&mut request.payload)
            .nested_wanted()
            .nested_bits();
        for (name, &on) in changes {
            let bit = bits.nested_bit().push_name_bytes(name.as_bytes());
            let bit = if on { bit.push_value(()) } else { bit };
            bits = bit.end_nested();
        }
        bits.end_nested().end_nested();
        // The kernel answers with the features that changed before it acknowledges.
        let doing = format!("setting features of interface {ifindex}");
        self.ask(doing, &request, |_| Ok(())).map(drop)
    }

    /// The parameters of interrupt moderation that the driver has, by number.
    pub(super) fn coalescing(&mut self, ifindex: u32) -> Result<BTreeMap<u16, u32>, ControlError> {
        let doing = format!("reading the interrupt moderation of interface {ifindex}");
        self.numbers(doing, Command::CoalesceGet, ifindex)
    }

    /// Sets one of them; `parameter` is its number and its name.
    pub(super) fn set_coalescing(
        &mut self,
        ifindex: u32,
        parameter: (u16, &str),
        is_flag: bool,
        value: u32,
    ) -> Result<(), ControlError> {
        let flag = [u8::from(value != 0)];
        let number = value.to_ne_bytes();
        let payload = if is_flag { &flag[..] } else { &number[..] };
        let doing = format!("setting {} of interface {ifindex} to {value}", parameter.1);
        self.set_number(doing, Command::CoalesceSet, ifindex, parameter.0, payload)
    }

    /// The sizes of the rings and the largest ones, by number.
    pub(super) fn rings(&mut self, ifindex: u32) -> Result<BTreeMap<u16, u32>, ControlError> {
        let doing = format!("reading the ring sizes of interface {ifindex}");
        self.numbers(doing, Command::RingsGet, ifindex)
    }

    /// Sets one of them; `ring` is its number and its name.
    pub(super) fn set_ring(
        &mut self,
        ifindex: u32,
        ring: (u16, &str),
        slots: u32,
    ) -> Result<(), ControlError> {
        let doing = format!("setting {} of interface {ifindex} to {slots}", ring.1);
        let slots = slots.to_ne_bytes();
        self.set_number(doing, Command::RingsSet, ifindex, ring.0, &slots)
    }

    /// The present size of one receive ring.
    ///
    /// # Errors
    /// Of kind `Unsupported` when the driver does not say.
    pub fn rx_ring_slots(&mut self, ifindex: u32) -> Result<Option<u32>, ControlError> {
        Ok(self.rings(ifindex)?.get(&RINGS_RX).copied())
    }

    /// The speed of the link in bit/s; `None` when the driver does not know it.
    ///
    /// # Errors
    /// Of kind `Unsupported` when the driver has no such thing.
    pub fn link_bits_per_second(&mut self, ifindex: u32) -> Result<Option<u64>, ControlError> {
        let doing = format!("asking for the speed of interface {ifindex}");
        let request = EthtoolRequest::about(Command::LinkModesGet, ifindex);
        self.ask_one(doing, &request, |answer| Ok(speed_of(answer)))
    }

    fn numbers(
        &mut self,
        doing: String,
        command: Command,
        ifindex: u32,
    ) -> Result<BTreeMap<u16, u32>, ControlError> {
        let number = |bytes: &[u8]| match *bytes {
            [flag] => Some(u32::from(flag)),
            _ => Some(u32::from_ne_bytes(bytes.try_into().ok()?)),
        };
        let request = EthtoolRequest::about(command, ifindex);
        self.ask_one(doing, &request, |answer| {
            let known = attributes(answer);
            let numbers = known.filter_map(|(kind, bytes)| Some((kind, number(bytes)?)));
            Ok(numbers.collect())
        })
    }

    fn set_number(
        &mut self,
        doing: String,
        command: Command,
        ifindex: u32,
        attribute: u16,
        payload: &[u8],
    ) -> Result<(), ControlError> {
        let mut request = EthtoolRequest::about(command, ifindex);
        push_attribute(&mut request.payload, attribute, payload);
        self.ask(doing, &request, |_| Ok(())).map(drop)
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
