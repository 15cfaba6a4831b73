//! Requests to the kernel's `ethtool` netlink family with the command numbers that the kernel uses.
//!
//! netlink-bindings 0.3.5 numbers the family's commands one after another as its specification lists
//! them, which is not what include/uapi/linux/ethtool_netlink.h says (its features-get goes out as
//! 15, the kernel's is 11). Attributes are numbered right, so only the header is written here.

use netlink_bindings::ethtool::{Features, IterableFeatures, PushFeatures};
use netlink_bindings::traits::{NetlinkRequest, Protocol};

/// Length of the generic netlink header: command, version, two bytes reserved.
const GENERIC_HEADER_BYTES: usize = 4;
const ETHTOOL_GENL_VERSION: u8 = 1;

/// The commands that are used, by their numbers in the kernel.
#[derive(Clone, Copy)]
pub enum Command {
    /// `ETHTOOL_MSG_FEATURES_GET`.
    FeaturesGet = 11,
    /// `ETHTOOL_MSG_FEATURES_SET`.
    FeaturesSet = 12,
}

/// A features request.
pub struct FeaturesRequest {
    payload: Vec<u8>,
}

impl FeaturesRequest {
    /// A request without attributes.
    pub fn new(command: Command) -> Self {
        FeaturesRequest {
            payload: vec![command as u8, ETHTOOL_GENL_VERSION, 0, 0],
        }
    }

    /// Where attributes are added.
    pub fn encode(&mut self) -> PushFeatures<&mut Vec<u8>> {
        PushFeatures::new(&mut self.payload)
    }
}

impl NetlinkRequest for FeaturesRequest {
    type ReplyType<'buf> = IterableFeatures<'buf>;

    fn protocol(&self) -> Protocol {
        Protocol::Generic(b"ethtool")
    }

    fn flags(&self) -> u16 {
        0
    }

    fn payload(&self) -> &[u8] {
        &self.payload
    }

    fn decode_reply(reply: &[u8]) -> IterableFeatures<'_> {
        Features::new(reply.get(GENERIC_HEADER_BYTES..).unwrap_or_default())
    }
}
