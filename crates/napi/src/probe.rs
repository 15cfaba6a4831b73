//! What the running kernel can do, asked by feature and never by version.

use std::io;

use netlink_bindings::nlctrl;
use netlink_socket2::NetlinkSocket;
use thiserror::Error;

/// `NETDEV_CMD_NAPI_SET`, include/uapi/linux/netdev.h.
const NETDEV_CMD_NAPI_SET: u32 = 14;

/// A kernel feature that is missing.
#[derive(Debug, Error)]
#[error("this kernel has no {feature} ({detail}); Linux {minimum} or later has it")]
pub struct Unsupported {
    feature: &'static str,
    minimum: &'static str,
    detail: String,
}

/// Whether the deferral of a single NAPI instance can be set.
pub fn per_napi_settings() -> Result<(), Unsupported> {
    let missing = |detail: String| Unsupported {
        feature: "per-NAPI settings",
        minimum: "6.13",
        detail,
    };
    match netdev_commands() {
        Ok(commands) if commands.contains(&NETDEV_CMD_NAPI_SET) => Ok(()),
        Ok(_) => Err(missing(String::from(
            "the netdev netlink family does not know napi-set",
        ))),
        Err(error) => Err(missing(format!("no netdev netlink family: {error}"))),
    }
}

fn netdev_commands() -> io::Result<Vec<u32>> {
    let mut request = nlctrl::Request::new().op_getfamily_do();
    request.encode().push_family_name_bytes(b"netdev");
    let mut socket = NetlinkSocket::new();
    let mut reply = socket.request(&request)?;
    let family = reply.recv_one()?;
    let commands = family.get_ops().map_err(io::Error::other)?;
    commands
        .map(|command| command.get_id().map_err(io::Error::other))
        .collect()
}
