//! Sending whole frames, many a system call (`sendmmsg`): on a veth that is faster than a ring of slots to send from
//! (`PACKET_TX_RING`), whose every frame the kernel copies the headers of. Frames that are alike may be handed over
//! joined: as one long datagram, which the kernel cuts up again (`PACKET_VNET_HDR` with UDP segmentation).
//!
//! What must hold: each frame that was written is handed to the kernel once, in order, also when the kernel takes only
//! a part of them.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::socket::{address, raw_socket, set_option};
use crate::memory::Mapping;

/// Frames of one system call, at most, one by one and joined.
const BATCH: usize = 64;
const BATCH_JOINED: usize = 256;

/// include/uapi/linux/if_packet.h
const PACKET_VNET_HDR: libc::c_int = 15;
/// struct virtio_net_hdr (include/uapi/linux/virtio_net.h), and what it says of a datagram that is to be cut up.
const VNET_BYTES: usize = 10;
const VIRTIO_NET_HDR_F_NEEDS_CSUM: u8 = 1;
const VIRTIO_NET_HDR_GSO_NONE: u8 = 0;
const VIRTIO_NET_HDR_GSO_UDP_L4: u8 = 5;
/// Where the checksum is in UDP's header, and how long that is.
const UDP_CHECKSUM_OFFSET: u16 = 6;
const UDP_BYTES: usize = 8;

/// Frames that differ in nothing but their payload, so that many can be handed over as one datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joining {
    /// Ethernet's, IP's and UDP's header of one frame, of two frames joined, and so on, each with the sum of the pseudo
    /// header in place of the checksum. All have one length.
    pub headers: Vec<Vec<u8>>,
    /// The payload of each frame.
    pub payload_bytes: u16,
}

impl Joining {
    /// What the kernel is given before the payloads of so many frames.
    fn head(&self, frames: usize) -> Vec<u8> {
        let header = &self.headers[frames - 1];
        let begin = (header.len() - UDP_BYTES) as u16;
        let kind = match frames {
            1 => VIRTIO_NET_HDR_GSO_NONE,
            _ => VIRTIO_NET_HDR_GSO_UDP_L4,
        };
        let mut head = vec![VIRTIO_NET_HDR_F_NEEDS_CSUM, kind];
        for word in [
            header.len() as u16,
            self.payload_bytes,
            begin,
            UDP_CHECKSUM_OFFSET,
        ] {
            head.extend(word.to_ne_bytes());
        }
        debug_assert_eq!(head.len(), VNET_BYTES);
        head.extend_from_slice(header);
        head
    }
}

/// Sends frames through an interface.
pub struct PacketSender {
    socket: OwnedFd,
    address: libc::sockaddr_ll,
    frame_bytes_max: usize,
    memory: Mapping,
    batch: usize,
    joined: Option<Joined>,
    /// Lengths of the frames that were written, of which the first `sent` are done with.
    lengths: Vec<usize>,
    sent: usize,
    /// Frames that were handed over, since the sender was made.
    total: u64,
}

/// How frames are joined.
struct Joined {
    header_bytes: usize,
    /// What comes before the payloads of one frame, of two, and so on.
    heads: Vec<Vec<u8>>,
}

impl PacketSender {
    /// A sender through the interface of that index in the calling thread's network namespace, for frames of up to
    /// `frame_bytes_max`, Ethernet header included.
    ///
    /// # Errors
    /// `EPERM` without CAP_NET_RAW.
    pub fn new(ifindex: u32, frame_bytes_max: u32) -> io::Result<Self> {
        Self::with(ifindex, frame_bytes_max, BATCH)
    }

    /// The same for frames that are alike, each as long as `joining` says, which are handed over joined. Where the kernel
    /// cannot cut them up, they are sent one by one.
    ///
    /// # Errors
    /// `EPERM` without CAP_NET_RAW; `ENOPROTOOPT` where the kernel cannot join.
    pub fn joining(ifindex: u32, frame_bytes_max: u32, joining: &Joining) -> io::Result<Self> {
        let mut sender = Self::with(ifindex, frame_bytes_max, BATCH_JOINED)?;
        set_option(&sender.socket, PACKET_VNET_HDR, &1i32)?;
        let frames = 1..=joining.headers.len();
        sender.joined = joining.headers.first().map(|header| Joined {
            header_bytes: header.len(),
            heads: frames.map(|frames| joining.head(frames)).collect(),
        });
        Ok(sender)
    }

    fn with(ifindex: u32, frame_bytes_max: u32, batch: usize) -> io::Result<Self> {
        let frame_bytes_max = frame_bytes_max as usize;
        Ok(PacketSender {
            socket: raw_socket()?,
            address: address(ifindex, 0),
            frame_bytes_max,
            memory: Mapping::zeroed(batch * frame_bytes_max)?,
            batch,
            joined: None,
            lengths: Vec::with_capacity(batch),
            sent: 0,
            total: 0,
        })
    }

    /// Whether frames are handed over joined.
    pub fn joins(&self) -> bool {
        self.joined.is_some()
    }

    /// Hands frames over one by one from now on.
    ///
    /// # Errors
    /// When the kernel does not allow it; then they are still joined.
    pub fn send_singly(&mut self) -> io::Result<()> {
        set_option(&self.socket, PACKET_VNET_HDR, &0i32)?;
        self.joined = None;
        Ok(())
    }

    /// Frames that were handed to the kernel.
    pub fn sent(&self) -> u64 {
        self.total
    }

    /// Frames that [`PacketSender::send`] has room for.
    pub fn room(&self) -> u32 {
        (self.batch - self.lengths.len()) as u32
    }

    /// Has `fill` write up to `most` frames, each into the memory that it is given, and hands them to the kernel.
    /// `fill` returns a frame's length, or `None` when there is none. Frames that the kernel did not take are handed
    /// over by the next call, before any others. Returns how many were written.
    ///
    /// # Errors
    /// `ENETDOWN` or `ENXIO` when the interface is down or gone; `EMSGSIZE` when a frame is too long for it, which is
    /// then given up. That the kernel has no room now is no error.
    pub fn send(
        &mut self,
        most: u32,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> io::Result<u32> {
        let before = self.lengths.len();
        let wanted = (before + most as usize).min(self.batch);
        while self.lengths.len() < wanted {
            let start = self.lengths.len() * self.frame_bytes_max;
            let place = &mut self.memory.bytes_mut()[start..start + self.frame_bytes_max];
            match fill(place) {
                Some(length) => self.lengths.push(length.min(self.frame_bytes_max)),
                None => break,
            }
        }
        let written = self.lengths.len() - before;
        self.hand_over()?;
        Ok(written as u32)
    }

    fn hand_over(&mut self) -> io::Result<()> {
        while self.sent < self.lengths.len() {
            match self.call() {
                Ok(frames) => {
                    self.sent += frames;
                    self.total += frames as u64;
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::ENOBUFS) => break,
                    Some(libc::EINTR) => {}
                    // Linux before 6.2 cuts no such frame up.
                    Some(libc::EINVAL) if self.joins() => self.send_singly()?,
                    Some(libc::EMSGSIZE) => {
                        self.sent += 1;
                        return Err(error);
                    }
                    _ => return Err(error),
                },
            }
        }
        if self.sent == self.lengths.len() {
            self.lengths.clear();
            self.sent = 0;
        }
        Ok(())
    }

    /// Hands over what waits, with one system call. Returns how many frames the kernel took.
    fn call(&mut self) -> io::Result<usize> {
        let start = self.memory.as_mut_ptr();
        let waiting = self.lengths.len() - self.sent;
        let heads = self.joined.as_ref().map_or(&[][..], |joined| &joined.heads);
        let most = heads.len().max(1);
        // Of each message the part before the payloads and the payloads, or the frame.
        let messages = waiting.div_ceil(most);
        let mut parts = Vec::with_capacity(waiting + messages);
        let mut ends = Vec::with_capacity(messages);
        for first in (self.sent..self.lengths.len()).step_by(most) {
            let frames = first..(first + most).min(self.lengths.len());
            let header_bytes = match &self.joined {
                Some(joined) => {
                    let head = &joined.heads[frames.len() - 1];
                    parts.push(bytes_at(head.as_ptr().cast_mut(), head.len()));
                    joined.header_bytes
                }
                None => 0,
            };
            for frame in frames.clone() {
                let at = start.wrapping_add(frame * self.frame_bytes_max + header_bytes);
                parts.push(bytes_at(
                    at,
                    self.lengths[frame].saturating_sub(header_bytes),
                ));
            }
            ends.push((parts.len(), frames.len()));
        }
        let sent = self.send_messages(&mut parts, &ends)?;
        Ok(ends[..sent].iter().map(|(_, frames)| frames).sum())
    }

    /// Sends messages, each of which has the parts up to its end. Returns how many the kernel took.
    fn send_messages(
        &mut self,
        parts: &mut [libc::iovec],
        ends: &[(usize, usize)],
    ) -> io::Result<usize> {
        // SAFETY: `mmsghdr` is plain data, for which all bits zero are valid.
        let empty: libc::mmsghdr = unsafe { std::mem::zeroed() };
        let mut messages = vec![empty; ends.len()];
        let mut begin = 0;
        for (message, (end, _)) in messages.iter_mut().zip(ends) {
            let own = &mut parts[begin..*end];
            message.msg_hdr.msg_iov = own.as_mut_ptr();
            message.msg_hdr.msg_iovlen = own.len() as _;
            message.msg_hdr.msg_name = (&raw mut self.address).cast();
            message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            begin = *end;
        }
        let (count, flags) = (messages.len() as libc::c_uint, libc::MSG_DONTWAIT);
        let socket = self.socket.as_raw_fd();
        // SAFETY: the messages point to the address, to parts of `parts`, and by these to bytes of `memory`
        // and of `joined`, all of which outlive the call and are only read.
        let sent = unsafe { libc::sendmmsg(socket, messages.as_mut_ptr(), count, flags as _) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(sent as usize)
    }
}

fn bytes_at(start: *mut u8, bytes: usize) -> libc::iovec {
    libc::iovec {
        iov_base: start.cast(),
        iov_len: bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_before_the_payloads_says_how_to_cut_them() {
        let joining = Joining {
            headers: vec![vec![1; 42], vec![2; 42]],
            payload_bytes: 18,
        };
        let word = |number: u16| number.to_ne_bytes();
        let words = [word(42), word(18), word(34), word(6)].concat();
        assert_eq!(joining.head(1)[..2], [1, 0]);
        assert_eq!(joining.head(2)[..2], [1, 5]);
        assert_eq!(joining.head(2)[2..10], words);
        assert_eq!(joining.head(2)[10..], [2; 42]);
    }
}
