//! What tells that traffic of an interface goes on undisturbed: that it is there, its carrier, its NAPI instances.

use netlink_bindings::rt_link::{self, IfinfoFlags, Ifinfomsg};

use crate::control::{Control, ControlError, Interface};
use crate::kernel::supported;

/// `IFF_LOWER_UP`, include/uapi/linux/if.h: the line carries.
const IFF_LOWER_UP: u32 = 1 << 16;

/// The state of an interface that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vitals {
    /// Whether it is up.
    pub is_up: bool,
    /// Whether its line carries: the cable is plugged in, the other end of a veth is up.
    pub has_carrier: bool,
    /// How often that changed since it was made.
    pub carrier_changes: Option<u32>,
    /// Its NAPI instances, in order; none where they cannot be listed. They begin anew with its queues.
    pub napi_ids: Vec<u32>,
}

impl Control {
    /// The state of an interface; `None` when it is no more, or no longer in this namespace.
    pub fn vitals(&mut self, interface: &Interface) -> Result<Option<Vitals>, ControlError> {
        if !self
            .links()?
            .iter()
            .any(|link| interface.is_still(&link.interface))
        {
            return Ok(None);
        }
        let doing = || format!("asking for the state of {}", interface.name);
        let mut header = Ifinfomsg::new();
        header.ifi_index = interface.ifindex as i32;
        let request = rt_link::Request::new().op_getlink_do(&header);
        let mut reply = self
            .socket
            .request(&request)
            .map_err(ControlError::of_io(doing()))?;
        let (header, link) = reply.recv_one().map_err(ControlError::of(doing()))?;
        let is_up = header.ifi_flags & IfinfoFlags::Up as u32 != 0;
        let has_carrier = header.ifi_flags & IFF_LOWER_UP != 0;
        let carrier_changes = link.get_carrier_changes().ok();
        let napis = supported(self.napis(interface.ifindex))?.unwrap_or_default();
        Ok(Some(Vitals {
            is_up,
            has_carrier,
            carrier_changes,
            napi_ids: napis.iter().map(|napi| napi.id).collect(),
        }))
    }
}
