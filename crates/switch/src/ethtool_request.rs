//! Requests to the kernel's `ethtool` netlink family with the command numbers that the kernel uses.
//!
//! netlink-bindings 0.3.5 numbers the family's commands one after another as its specification lists
//! them, which is not what include/uapi/linux/ethtool_netlink.h says (its features-get goes out as
//! 15, the kernel's is 11). Attributes are numbered right, so only the header is written here.

use netlink_bindings::traits::{NetlinkRequest, Protocol};

/// Length of the generic netlink header: command, version, two bytes reserved.
const GENERIC_HEADER_BYTES: usize = 4;
const ETHTOOL_GENL_VERSION: u8 = 1;

/// The commands that are used, by their numbers in the kernel.
#[derive(Clone, Copy)]
pub enum Command {
    /// `ETHTOOL_MSG_LINKMODES_GET`.
    LinkModesGet = 4,
    /// `ETHTOOL_MSG_FEATURES_GET`.
    FeaturesGet = 11,
    /// `ETHTOOL_MSG_FEATURES_SET`.
    FeaturesSet = 12,
    /// `ETHTOOL_MSG_RINGS_GET`.
    RingsGet = 15,
    /// `ETHTOOL_MSG_RINGS_SET`.
    RingsSet = 16,
    /// `ETHTOOL_MSG_COALESCE_GET`.
    CoalesceGet = 19,
    /// `ETHTOOL_MSG_COALESCE_SET`.
    CoalesceSet = 20,
}

/// A request; its reply is a list of attributes.
pub struct EthtoolRequest {
    payload: Vec<u8>,
}

impl EthtoolRequest {
    /// A request without attributes.
    pub fn new(command: Command) -> Self {
        EthtoolRequest {
            payload: vec![command as u8, ETHTOOL_GENL_VERSION, 0, 0],
        }
    }

    /// Where attributes are added.
    pub fn payload_mut(&mut self) -> &mut Vec<u8> {
        &mut self.payload
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
