//! Interrupt moderation (coalescing) of a card and the size of its rings, over the ethtool netlink family.

use std::collections::BTreeMap;

use netlink_bindings::ethtool::PushCoalesce;

use crate::attributes::{attributes, push_attribute};
use crate::control::{Control, ControlError};
use crate::ethtool_request::{Command, EthtoolRequest};

/// `ETHTOOL_A_RINGS_RX`, include/uapi/linux/ethtool_netlink.h.
const RINGS_RX: u16 = 6;

impl Control {
    /// The parameters of interrupt moderation that the driver has, by number.
    pub(crate) fn coalescing(&mut self, ifindex: u32) -> Result<BTreeMap<u16, u32>, ControlError> {
        let doing = format!("reading the interrupt moderation of interface {ifindex}");
        self.ethtool_numbers(Command::CoalesceGet, ifindex, doing)
    }

    /// Sets one of them; `parameter` is its number and its name.
    pub(crate) fn set_coalescing(
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
        self.ethtool_set(Command::CoalesceSet, ifindex, (parameter.0, payload), doing)
    }

    /// The sizes of the rings and the largest ones, by number.
    pub(crate) fn rings(&mut self, ifindex: u32) -> Result<BTreeMap<u16, u32>, ControlError> {
        let doing = format!("reading the ring sizes of interface {ifindex}");
        self.ethtool_numbers(Command::RingsGet, ifindex, doing)
    }

    /// Sets one of them; `ring` is its number and its name.
    pub(crate) fn set_ring(
        &mut self,
        ifindex: u32,
        ring: (u16, &str),
        slots: u32,
    ) -> Result<(), ControlError> {
        let doing = format!("setting {} of interface {ifindex} to {slots}", ring.1);
        let payload = slots.to_ne_bytes();
        self.ethtool_set(Command::RingsSet, ifindex, (ring.0, &payload), doing)
    }

    /// Slots of one receive ring, as they are set now.
    ///
    /// # Errors
    /// Of kind `Unsupported` when the driver does not say.
    pub fn rx_ring_slots(&mut self, ifindex: u32) -> Result<Option<u32>, ControlError> {
        Ok(self.rings(ifindex)?.get(&RINGS_RX).copied())
    }

    fn ethtool_numbers(
        &mut self,
        command: Command,
        ifindex: u32,
        doing: String,
    ) -> Result<BTreeMap<u16, u32>, ControlError> {
        let reply = self.ethtool(&about(command, ifindex), doing)?;
        let number = |bytes: &[u8]| match *bytes {
            [flag] => Some(u32::from(flag)),
            _ => Some(u32::from_ne_bytes(bytes.try_into().ok()?)),
        };
        let numbers = attributes(&reply).filter_map(|(kind, bytes)| Some((kind, number(bytes)?)));
        Ok(numbers.collect())
    }

    fn ethtool_set(
        &mut self,
        command: Command,
        ifindex: u32,
        (attribute, payload): (u16, &[u8]),
        doing: String,
    ) -> Result<(), ControlError> {
        let mut request = about(command, ifindex);
        push_attribute(request.payload_mut(), attribute, payload);
        self.ethtool(&request, doing).map(drop)
    }

    fn ethtool(
        &mut self,
        request: &EthtoolRequest,
        doing: String,
    ) -> Result<Vec<u8>, ControlError> {
        let mut reply = self
            .socket
            .request(request)
            .map_err(ControlError::of_io(doing.clone()))?;
        // A setting is acknowledged only; a question is answered by one message.
        let mut answer = Vec::new();
        while let Some(part) = reply.recv() {
            answer = part.map_err(ControlError::of(doing.clone()))?.to_vec();
        }
        Ok(answer)
    }
}

/// A request about an interface. The header is the first attribute of every message of the family.
fn about(command: Command, ifindex: u32) -> EthtoolRequest {
    let mut request = EthtoolRequest::new(command);
    let list = PushCoalesce::new(request.payload_mut())
        .nested_header()
        .push_dev_index(ifindex)
        .end_nested();
    drop(list);
    request
}
