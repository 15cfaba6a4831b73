//! Frames that the XDP program gave to a socket and whose exit has gone meanwhile: the kernel gets them after all.
//!
//! A frame that an XDP program took out of the kernel's way cannot go back there. So it comes anew, by a TAP interface of
//! this process: as it came the first time, but for its hardware addresses. The kernel then routes it as it would have.
//!
//! What must hold: the interface goes with the process, and carries nothing else.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use netlink_socket2::NetlinkSocket;
use nicpoll_sys::tap::Tap;
use nicpoll_wire::frame::Mac;

use super::handed::write_as_it_came;
use crate::interface::Interface;

/// The beginning of its name, before the number of the process.
const NAME: &str = "npfwd";
/// What a packet that comes by it is treated by: as one that came by any interface of the router.
const SETTINGS: [(&str, &str); 4] = [
    ("ipv4/conf/{}/forwarding", "1"),
    ("ipv4/conf/{}/rp_filter", "0"),
    ("ipv6/conf/{}/forwarding", "1"),
    ("ipv6/conf/{}/accept_ra", "0"),
];

/// The way back to the kernel.
pub(super) struct Leftovers {
    tap: Tap,
    name: String,
    mac: Mac,
}

impl Leftovers {
    /// Makes the interface in the calling thread's network namespace.
    ///
    /// # Errors
    /// When the kernel has no TAP interfaces.
    pub(super) fn open(socket: &mut NetlinkSocket) -> io::Result<Self> {
        // One process may forward in several namespaces, and again in one.
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("{NAME}{}-{number}", std::process::id());
        let tap = Tap::open(&name)?;
        // Nobody reads here: what the kernel sends out by it is dropped at once.
        tap.stop()?;
        for (path, value) in SETTINGS {
            // A kernel without a family has no such setting.
            let _ = fs::write(
                format!("/proc/sys/net/{}", path.replace("{}", &name)),
                value,
            );
        }
        let interface = Interface::named(socket, &name).map_err(io::Error::other)?;
        Ok(Leftovers {
            tap,
            name,
            mac: interface.mac,
        })
    }

    /// The interface.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Gives a frame back; `memory` is for a copy. Returns whether the kernel took it.
    pub(super) fn give_back(&self, frame: &[u8], memory: &mut Vec<u8>) -> bool {
        memory.resize(frame.len(), 0);
        let length = write_as_it_came(frame, self.mac, memory);
        length.is_some_and(|length| self.tap.send(&memory[..length]).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use nicpoll_sys::netns::{NetNamespace, NetnsThread};
    use nicpoll_testkit::{needs, shell};

    use super::*;

    #[test]
    fn the_kernel_takes_a_frame_back_as_it_came() {
        needs!(Root, Ip);
        let host = NetnsThread::enter(NetNamespace::create().unwrap(), || ()).unwrap();
        shell(&host, "ip link set lo up\nip addr add 198.18.0.1/32 dev lo");
        let (name, payload) = host
            .run(|()| {
                let receiver = UdpSocket::bind("198.18.0.1:9").unwrap();
                receiver
                    .set_read_timeout(Some(Duration::from_secs(10)))
                    .unwrap();
                let leftovers = Leftovers::open(&mut NetlinkSocket::new()).unwrap();
                // To 198.18.0.1 from 198.18.0.2, one hop on, with its exit in place of its type; no UDP checksum.
                let mut frame = vec![7; 12];
                frame.extend([3, 0]);
                frame.extend([0x45, 0, 0, 32, 0, 0, 0, 0, 63, 17, 0xef, 0xa5]);
                frame.extend([198, 18, 0, 2, 198, 18, 0, 1]);
                frame.extend([0, 9, 0, 9, 0, 12, 0, 0, 1, 2, 3, 4]);
                assert!(leftovers.give_back(&frame, &mut Vec::new()));
                assert!(!leftovers.give_back(&frame[..20], &mut Vec::new()));
                let mut payload = [0; 4];
                receiver.recv(&mut payload).unwrap();
                (leftovers.name().to_owned(), payload)
            })
            .unwrap();
        assert_eq!(payload, [1, 2, 3, 4]);
        // It goes with its value.
        let links = shell(&host, "ip link");
        assert!(!links.contains(&name), "{links}");
    }
}
