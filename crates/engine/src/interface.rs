//! An interface of the calling thread's network namespace, by its name.

use std::io;

use nicpoll_sys::{ethtool, link};

use crate::error::EngineError;

/// Its index, which it keeps when it is renamed.
pub(crate) fn index_of(interface: &str) -> Result<u32, EngineError> {
    let index = link::control_socket().and_then(|control| link::index_of(control, interface));
    index.map_err(|source| missing(interface, source))
}

/// The longest packet that it takes, in bytes.
pub(crate) fn mtu_of(interface: &str) -> Result<u32, EngineError> {
    ethtool::mtu(interface).map_err(|source| missing(interface, source))
}

fn missing(interface: &str, source: io::Error) -> EngineError {
    EngineError::NoInterface {
        interface: interface.to_owned(),
        source,
    }
}
