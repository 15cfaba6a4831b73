//! Sending by AF_PACKET with fewer calls into the kernel's stack: frames of one flow are handed over as one long datagram,
//! which the kernel cuts up before the interface gets it (UDP segmentation offload).
//!
//! What must hold: the receiver sees single packets. So frames are joined only while the interface has the feature
//! turned off, and the kernel itself has to cut them: a veth that has it passes a long datagram on as it is, and what a
//! card makes of one nobody here sees.

use std::io;
use std::time::{Duration, Instant};

use nicpoll_sys::ethtool::Feature;
use nicpoll_sys::packet::{Joining, PacketSender};
use thiserror::Error;

use crate::interface::Interface;
use crate::port::Transmit;

/// The feature of an interface that takes long datagrams as they are.
const UDP_SEGMENTATION: &str = "tx-udp-segmentation";
/// How often it is looked whether it is still off: a veth has it again when the XDP program at its other end leaves.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The first Linux that cuts up long datagrams of AF_PACKET, by its version and patch level.
const CUTS_FROM: (u32, u32) = (6, 2);

/// Why frames that could be joined are sent one by one.
#[derive(Debug, Error)]
pub(super) enum NotJoined {
    /// Nobody would cut them up.
    #[error(
        "'{interface}' takes long datagrams as they are, and so would the receiver; 'ethtool -K {interface} {feature} \
         off' turns that off",
        feature = UDP_SEGMENTATION
    )]
    TakesLong { interface: String },
    /// The kernel cannot.
    #[error("the kernel cuts no long datagrams up, which takes Linux 6.2; this is {release}")]
    Kernel { release: String },
    /// It cannot be asked, or refuses.
    #[error("'{interface}' cannot be given long datagrams: {source}")]
    Refused {
        interface: String,
        source: io::Error,
    },
}

/// The sender, and what says whether it may go on joining.
pub(super) struct JoinedSender {
    sender: PacketSender,
    takes_long: Feature,
    looked: Instant,
}

impl JoinedSender {
    /// A sender through an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// Where frames are better sent one by one.
    pub(super) fn open(
        interface: &Interface,
        frame_bytes_max: u32,
        joining: &Joining,
    ) -> Result<Self, NotJoined> {
        // It would take the option, and refuse the first datagram.
        let uname = rustix::system::uname();
        let release = uname.release().to_string_lossy();
        if !cuts_up(&release) {
            return Err(NotJoined::Kernel {
                release: release.into_owned(),
            });
        }
        let refused = |source| NotJoined::Refused {
            interface: interface.name.clone(),
            source,
        };
        let takes_long = Feature::named(&interface.name, UDP_SEGMENTATION).map_err(refused)?;
        if takes_long.is_on().map_err(refused)? {
            return Err(NotJoined::TakesLong {
                interface: interface.name.clone(),
            });
        }
        let sender = PacketSender::joining(interface.ifindex, frame_bytes_max, joining);
        Ok(JoinedSender {
            sender: sender.map_err(refused)?,
            takes_long,
            looked: Instant::now(),
        })
    }
}

/// Whether a kernel of that release cuts long datagrams up. Of one with no such number the first frames tell.
fn cuts_up(release: &str) -> bool {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut number = || numbers.next()?.parse().ok();
    let release: Option<(u32, u32)> = number().zip(number());
    release.is_none_or(|release| release >= CUTS_FROM)
}

impl Transmit for JoinedSender {
    fn room(&mut self) -> u32 {
        self.sender.room()
    }

    fn transmit(
        &mut self,
        most: u32,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> io::Result<u32> {
        if self.sender.joins() && self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            if self.takes_long.is_on().unwrap_or(true) {
                self.sender.send_singly()?;
            }
        }
        self.sender.send(most, fill)
    }

    fn sent(&self) -> u64 {
        self.sender.sent()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_cuts_up_from_6_2_on_and_one_before_is_named() {
        for (release, cuts) in [
            ("5.15.0-91-generic", false),
            ("6.1.0-18-amd64", false),
            ("6.2.0", true),
            ("6.18.44", true),
            ("10.0-rc1", true),
            ("linux", true),
        ] {
            assert_eq!(cuts_up(release), cuts, "{release}");
        }
        let release = String::from("6.1.0-18-amd64");
        let why = NotJoined::Kernel { release }.to_string();
        assert!(
            why.contains("takes Linux 6.2; this is 6.1.0-18-amd64"),
            "{why}"
        );
    }
}
