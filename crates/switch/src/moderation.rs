//! Interrupt moderation (coalescing) of a card and the size of its rings, over the ethtool netlink family.

use std::collections::BTreeMap;

use netlink_bindings::ethtool::{PushCoalesce, PushRings};
use netlink_bindings::traits::Pusher;
use serde::{Deserialize, Serialize};

use crate::attributes::{attributes, push_attribute, uint_attribute};
use crate::control::{Control, ControlError};
use crate::ethtool_request::{Command, EthtoolRequest};

/// `ETHTOOL_A_RINGS_RX`, include/uapi/linux/ethtool_netlink.h.
const RINGS_RX: u16 = 6;

/// A parameter of interrupt moderation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moderation {
    /// Longest wait before an interrupt for received packets, in µs.
    RxUsecs,
    /// Packets that make an interrupt at once.
    RxFrames,
    /// As `RxUsecs`, while an interrupt is being handled.
    RxUsecsIrq,
    /// As `RxFrames`, while an interrupt is being handled.
    RxFramesIrq,
    /// Longest wait before an interrupt for sent packets, in µs.
    TxUsecs,
    /// Sent packets that make an interrupt at once.
    TxFrames,
    /// Whether the driver moves the receive values by itself: 0 or 1.
    AdaptiveRx,
    /// Whether the driver moves the send values by itself: 0 or 1.
    AdaptiveTx,
}

impl Moderation {
    /// All, in the order of the kernel's attributes.
    pub const ALL: [Moderation; 8] = [
        Moderation::RxUsecs,
        Moderation::RxFrames,
        Moderation::RxUsecsIrq,
        Moderation::RxFramesIrq,
        Moderation::TxUsecs,
        Moderation::TxFrames,
        Moderation::AdaptiveRx,
        Moderation::AdaptiveTx,
    ];

    /// The name that `ethtool -C` uses.
    pub fn name(self) -> &'static str {
        match self {
            Moderation::RxUsecs => "rx-usecs",
            Moderation::RxFrames => "rx-frames",
            Moderation::RxUsecsIrq => "rx-usecs-irq",
            Moderation::RxFramesIrq => "rx-frames-irq",
            Moderation::TxUsecs => "tx-usecs",
            Moderation::TxFrames => "tx-frames",
            Moderation::AdaptiveRx => "adaptive-rx",
            Moderation::AdaptiveTx => "adaptive-tx",
        }
    }

    /// Whether it is a switch (0 or 1) for the numbers beside it.
    pub fn is_adaptive(self) -> bool {
        matches!(self, Moderation::AdaptiveRx | Moderation::AdaptiveTx)
    }

    /// `ETHTOOL_A_COALESCE_*`, include/uapi/linux/ethtool_netlink.h.
    fn attribute(self) -> u16 {
        match self {
            Moderation::RxUsecs => 2,
            Moderation::RxFrames => 3,
            Moderation::RxUsecsIrq => 4,
            Moderation::RxFramesIrq => 5,
            Moderation::TxUsecs => 6,
            Moderation::TxFrames => 7,
            Moderation::AdaptiveRx => 11,
            Moderation::AdaptiveTx => 12,
        }
    }
}

impl Control {
    /// The parameters of interrupt moderation that the driver has.
    ///
    /// # Errors
    /// Of kind `Unsupported` when it has none.
    pub fn moderation(&mut self, ifindex: u32) -> Result<BTreeMap<Moderation, u32>, ControlError> {
        let doing = format!("reading the interrupt moderation of interface {ifindex}");
        let mut request = EthtoolRequest::new(Command::CoalesceGet);
        PushCoalesce::new(request.payload_mut())
            .nested_header()
            .push_dev_index(ifindex)
            .end_nested()
            .end_nested();
        let reply = self.ethtool(&request, doing)?;
        let found = attributes(&reply).filter_map(|(kind, bytes)| {
            let parameter = Moderation::ALL
                .into_iter()
                .find(|p| p.attribute() == kind)?;
            let value = match *bytes {
                [flag] => u32::from(flag),
                _ => u32::from_ne_bytes(bytes.try_into().ok()?),
            };
            Some((parameter, value))
        });
        Ok(found.collect())
    }

    /// Sets one parameter of interrupt moderation.
    pub fn set_moderation(
        &mut self,
        ifindex: u32,
        parameter: Moderation,
        value: u32,
    ) -> Result<(), ControlError> {
        let name = parameter.name();
        let doing = format!("setting {name} of interface {ifindex} to {value}");
        let mut request = EthtoolRequest::new(Command::CoalesceSet);
        let mut list = PushCoalesce::new(request.payload_mut())
            .nested_header()
            .push_dev_index(ifindex)
            .end_nested();
        let bytes = value.to_ne_bytes();
        let flag = [u8::from(value != 0)];
        let payload = if parameter.is_adaptive() {
            &flag[..]
        } else {
            &bytes[..]
        };
        push_attribute(list.as_vec_mut(), parameter.attribute(), payload);
        drop(list);
        self.ethtool(&request, doing).map(drop)
    }

    /// Slots of one receive ring, as they are set now.
    ///
    /// # Errors
    /// Of kind `Unsupported` when the driver does not say.
    pub fn rx_ring_slots(&mut self, ifindex: u32) -> Result<Option<u32>, ControlError> {
        let doing = format!("reading the ring sizes of interface {ifindex}");
        let mut request = EthtoolRequest::new(Command::RingsGet);
        PushRings::new(request.payload_mut())
            .nested_header()
            .push_dev_index(ifindex)
            .end_nested()
            .end_nested();
        let reply = self.ethtool(&request, doing)?;
        Ok(uint_attribute(&reply, RINGS_RX).and_then(|slots| u32::try_from(slots).ok()))
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
