//! AF_PACKET: receives a copy of each frame in a ring shared with the kernel (`PACKET_RX_RING`, `TPACKET_V2`), and
//! sends whole frames.
//!
//! The kernel still processes each received frame itself. `TPACKET_V3` delivers frames in blocks, each closed after a
//! millisecond at the earliest, which is longer than a tick of the poller. Here, therefore, each frame has its own
//! slot, whose status word says whether the kernel or this process owns it.
//!
//! One system call sends many frames (`sendmmsg`). On a veth that is faster than `PACKET_TX_RING`, for which the kernel
//! copies the headers of every frame. Frames that differ only in their payload can be sent as one long datagram that
//! the kernel segments (`PACKET_VNET_HDR` with UDP segmentation).

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::net::{
    AddressFamily, MMsgHdr, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, socket_with,
};

use crate::kernel::{self, Mapping, checked};

/// Maximum instructions of a filter (`BPF_MAXINSNS`).
const INSTRUCTIONS_MAX: usize = 4096;
/// Upper bound of the instructions not used for ports; each port takes two.
const OTHER_INSTRUCTIONS: usize = 96;
/// Maximum ports of a filter.
pub const FILTER_PORTS_MAX: usize = (INSTRUCTIONS_MAX - OTHER_INSTRUCTIONS) / 2;

/// Accepts a frame without truncating it.
const ALL_BYTES: u32 = u32::MAX;
/// Offset at which a filter loads whether a VLAN tag was stripped from the frame.
const VLAN_TAG_PRESENT: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_VLAN_TAG_PRESENT) as u32;

const ETHERNET_BYTES: u32 = 14;
const IPV4_BYTES: u32 = 20;
const IPV6_BYTES: u32 = 40;
const UDP_PROTOCOL: u32 = libc::IPPROTO_UDP as u32;
/// Mask of IPv4's More Fragments flag and fragment offset.
const FRAGMENT: u32 = 0x3fff;

/// A classic BPF program that accepts frames.
#[derive(Clone)]
pub struct FrameFilter(Vec<libc::sock_filter>);

impl FrameFilter {
    /// Accepts UDP to these ports, at most [`FILTER_PORTS_MAX`].
    pub fn udp_ports(ports: impl IntoIterator<Item = u16>) -> Self {
        let ports = ports.into_iter();
        let each = ports.flat_map(|port| [jump(libc::BPF_JEQ, port.into(), 0, 1), end(ALL_BYTES)]);
        FrameFilter::of_udp(each.chain([end(0)]))
    }

    /// Accepts all UDP.
    pub fn all_udp() -> Self {
        FrameFilter::of_udp([end(ALL_BYTES)])
    }

    /// Accepts nothing; frames that the socket has already stay there.
    pub fn nothing() -> Self {
        FrameFilter(vec![end(0)])
    }

    /// Makes this the filter of a socket.
    ///
    /// # Errors
    /// `EINVAL` with too many ports; `ENOMEM` if the socket may have no more memory (`net.core.optmem_max`).
    pub fn attach(&self, socket: impl AsFd) -> io::Result<()> {
        let program = self.program();
        // SAFETY: the descriptor is open for the whole call; the kernel reads `len` instructions, which `self` holds
        // throughout, and keeps a copy.
        let result = unsafe {
            libc::setsockopt(
                socket.as_fd().as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ATTACH_FILTER,
                (&raw const program).cast(),
                size_of_val(&program) as libc::socklen_t,
            )
        };
        checked(result).map(|_| ())
    }

    /// Returns the program as the kernel reads it, valid while `self` lives.
    pub(crate) fn program(&self) -> libc::sock_fprog {
        libc::sock_fprog {
            // The kernel refuses this length as too long.
            len: u16::try_from(self.0.len()).unwrap_or(u16::MAX),
            filter: self.0.as_ptr().cast_mut(),
        }
    }

    /// Refuses all but UDP, then runs `verdict` with the destination port in the accumulator.
    fn of_udp(verdict: impl IntoIterator<Item = libc::sock_filter>) -> Self {
        let after_tag = [
            load(libc::BPF_W, VLAN_TAG_PRESENT),
            jump(libc::BPF_JEQ, 0, 1, 0),
            end(0),
            load(libc::BPF_H, ETHERNET_BYTES - 2),
        ];
        // A load beyond the frame's end refuses the frame: the header has to be complete.
        let ipv4 = [
            load(libc::BPF_B, ETHERNET_BYTES),
            jump(libc::BPF_JEQ, 0x45, 1, 0),
            end(0),
            load(libc::BPF_B, ETHERNET_BYTES + 9),
            jump(libc::BPF_JEQ, UDP_PROTOCOL, 1, 0),
            end(0),
            load(libc::BPF_H, ETHERNET_BYTES + 6),
            jump(libc::BPF_JSET, FRAGMENT, 0, 1),
            end(0),
            load(
                libc::BPF_B,
                ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES as u32 - 1,
            ),
            load(libc::BPF_H, ETHERNET_BYTES + IPV4_BYTES + 2),
        ];
        let ipv6 = [
            jump(libc::BPF_JEQ, libc::ETH_P_IPV6 as u32, 1, 0),
            end(0),
            load(libc::BPF_B, ETHERNET_BYTES + 6),
            jump(libc::BPF_JEQ, UDP_PROTOCOL, 1, 0),
            end(0),
            load(
                libc::BPF_B,
                ETHERNET_BYTES + IPV6_BYTES + UDP_BYTES as u32 - 1,
            ),
            load(libc::BPF_H, ETHERNET_BYTES + IPV6_BYTES + 2),
        ];
        // The IPv6 part follows the IPv4 part, which ends with a jump over it.
        let over_ipv4 = ipv4.len() as u8 + 1;
        let instructions = after_tag
            .into_iter()
            .chain([jump(libc::BPF_JEQ, libc::ETH_P_IP as u32, 0, over_ipv4)])
            .chain(ipv4)
            .chain([jump(libc::BPF_JA, ipv6.len() as u32, 0, 0)])
            .chain(ipv6)
            .chain(verdict);
        FrameFilter(instructions.collect())
    }
}

/// Loads the value at an offset of the frame into the accumulator.
fn load(size: u32, offset: u32) -> libc::sock_filter {
    instruction(libc::BPF_LD | size | libc::BPF_ABS, offset, 0, 0)
}

/// Compares the accumulator with `value` and skips `if_so` or `if_not` instructions.
fn jump(comparison: u32, value: u32, if_so: u8, if_not: u8) -> libc::sock_filter {
    instruction(libc::BPF_JMP | comparison, value, if_so, if_not)
}

/// Accepts the first `bytes` of the frame; 0 refuses it.
fn end(bytes: u32) -> libc::sock_filter {
    instruction(libc::BPF_RET, bytes, 0, 0)
}

fn instruction(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    let code = code as u16;
    libc::sock_filter { code, jt, jf, k }
}

/// Sends frames, from the Ethernet header on and without FCS.
///
/// A call never blocks. Each frame that `fill` wrote is passed to the kernel or kept for the next call; none is lost in
/// between. The kernel may still drop a frame that it accepted; the interface counts that.
pub trait Transmit {
    /// Returns how many frames could be written now.
    fn room(&mut self) -> u32;

    /// Has up to `most` frames written and passes them to the kernel. `fill` gets memory for the interface's longest
    /// frame with arbitrary contents, writes a frame at its start and returns the length, or `None` if there is no more
    /// to send. Returns the number written: 0 if there is no room.
    ///
    /// # Errors
    /// `ENETDOWN` or `ENXIO` when the interface is down or gone. Frames already written are kept.
    fn transmit(
        &mut self,
        most: u32,
        fill: impl FnMut(&mut [u8]) -> Option<usize>,
    ) -> io::Result<u32>;

    /// Counts frames that the kernel has finished with: sent, or dropped by the interface.
    fn sent(&self) -> u64;

    /// Counts those of them that the interface dropped for lack of room in its queue; `None` if the kernel does not
    /// tell.
    fn refused(&self) -> Option<u64> {
        None
    }
}

/// Frames that a receiver has lost since it was opened, by place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverDrops {
    /// The ring was full.
    pub ring_full: u64,
    /// No memory was free, or the frame was too long for it.
    pub no_memory: u64,
}

impl ReceiverDrops {
    /// All of them together.
    pub fn frames(self) -> u64 {
        self.ring_full + self.no_memory
    }
}

/// include/uapi/linux/if_packet.h
const PACKET_STATISTICS: libc::c_int = 6;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// Frames that the filter accepted since the socket began to receive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// All of them, including lost ones.
    pub taken: u64,
    /// Those of them lost because no slot of the ring was free.
    pub ring_full: u64,
}

/// A packet socket. It receives nothing until a ring is made of it.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    /// Totals: the kernel resets its counters whenever they are read.
    counts: Mutex<PacketCounts>,
}

impl PacketSocket {
    /// Makes a socket that will accept, by `filter`, frames received by an interface of the calling thread's network
    /// namespace. Frames sent by this host are ignored.
    ///
    /// # Errors
    /// `EPERM` without CAP_NET_RAW; also the errors of [`FrameFilter::attach`].
    pub fn new(filter: &FrameFilter) -> io::Result<Self> {
        let socket = raw_socket()?;
        filter.attach(&socket)?;
        set_option(&socket, PACKET_IGNORE_OUTGOING, 1i32)?;
        Ok(PacketSocket {
            socket,
            counts: Mutex::default(),
        })
    }

    /// Stops receiving. Frames in the ring stay there.
    pub fn stop(&self) -> io::Result<()> {
        FrameFilter::nothing().attach(&self.socket)
    }

    /// Returns the totals.
    pub fn counts(&self) -> io::Result<PacketCounts> {
        // struct tpacket_stats: frames including lost ones, and lost ones, since the last read.
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: every bit pattern is a valid integer.
        let counted: [u32; 2] =
            unsafe { kernel::option(&self.socket, libc::SOL_PACKET, PACKET_STATISTICS) }?;
        counts.taken += u64::from(counted[0]);
        counts.ring_full += u64::from(counted[1]);
        Ok(*counts)
    }
}

impl AsFd for PacketSocket {
    /// Readable in poll(2) while frames wait.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Makes a packet socket that receives nothing yet.
fn raw_socket() -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::PACKET, SocketType::RAW);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // No protocol.
    Ok(socket_with(family, kind, flags, None)?)
}

/// Sets an AF_PACKET option to a value with the layout that the kernel expects.
fn set_option<T: Copy>(socket: impl AsFd, option: libc::c_int, value: T) -> io::Result<()> {
    kernel::set_option(socket, libc::SOL_PACKET, option, &[value])
}

/// Binds a socket to an interface, by index, to receive frames of a protocol; none for 0.
fn bind(socket: impl AsFd, ifindex: u32, protocol: libc::c_int) -> io::Result<()> {
    // SAFETY: all zeros is a valid `sockaddr_ll`: it holds integers.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (protocol as u16).to_be();
    address.sll_ifindex = ifindex as libc::c_int;
    // SAFETY: the descriptor is open for the whole call, and the pointer and length are those of `address`.
    let result = unsafe {
        libc::bind(
            socket.as_fd().as_raw_fd(),
            (&raw const address).cast(),
            size_of_val(&address) as libc::socklen_t,
        )
    };
    checked(result).map(|_| ())
}

/// include/uapi/linux/if_packet.h
const PACKET_RX_RING: libc::c_int = 5;
const PACKET_VERSION: libc::c_int = 10;
const TPACKET_V2: libc::c_int = 1;
const TP_STATUS_KERNEL: u32 = 0;
const TP_STATUS_USER: u32 = 1;
/// Upper bound of what the kernel puts before the network header in a slot: its own header, an address, the Ethernet
/// header and padding.
const HEADER_BYTES: u32 = 96;
/// The kernel allocates memory in blocks; larger ones are harder to get.
const BLOCK_BYTES: u32 = 1 << 16;
/// Maximum memory of a ring: with jumbo frames it has fewer slots.
const RING_BYTES_MAX: u32 = 1 << 26;

/// struct tpacket_req
#[derive(Clone, Copy)]
#[repr(C)]
struct RingRequest {
    block_bytes: u32,
    blocks: u32,
    slot_bytes: u32,
    slots: u32,
}

/// The part of struct tpacket2_hdr that is read.
#[repr(C)]
struct SlotHeader {
    status: AtomicU32,
    /// Bytes of the frame on the wire, and of those in the slot.
    frame_bytes: u32,
    kept_bytes: u32,
    /// Offset of the frame in the slot.
    frame_offset: u16,
}

/// A ring of received frames.
#[derive(Debug)]
pub struct PacketRing {
    socket: Arc<PacketSocket>,
    slots: NonNull<u8>,
    slot_bytes: u32,
    length: u32,
    /// Next slot to read.
    next: u32,
    /// Number of slots from `next` on known to hold a frame.
    seen: Cell<u32>,
    too_long: u64,
    _mapping: Mapping,
}

// SAFETY: the pointer is into the mapping, which moves along; slots are read only by the ring's owner, and header words
// that the kernel may write are atomics.
unsafe impl Send for PacketRing {}

impl PacketRing {
    /// Makes the ring of a socket and starts receiving from an interface. The ring holds up to `frames`, a power of
    /// two, with packets of `mtu_bytes`; fewer if they are long.
    ///
    /// # Errors
    /// `ENOMEM` if the kernel has no memory for it; `ENODEV` or `ENETDOWN` when the interface is gone or down.
    pub fn new(
        socket: Arc<PacketSocket>,
        ifindex: u32,
        frames: u32,
        mtu_bytes: u32,
    ) -> io::Result<Self> {
        let slot_bytes = (mtu_bytes.saturating_add(HEADER_BYTES))
            .checked_next_power_of_two()
            .unwrap_or(RING_BYTES_MAX);
        let ring_bytes = u64::from(frames.max(2)) * u64::from(slot_bytes);
        let page_bytes = rustix::param::page_size() as u64;
        let ring_bytes = ring_bytes.clamp(page_bytes, u64::from(RING_BYTES_MAX)) as u32;
        let block_bytes = ring_bytes.min(BLOCK_BYTES.max(slot_bytes));
        let request = RingRequest {
            block_bytes,
            blocks: ring_bytes / block_bytes,
            slot_bytes,
            slots: ring_bytes / slot_bytes,
        };
        set_option(&*socket, PACKET_VERSION, TPACKET_V2)?;
        set_option(&*socket, PACKET_RX_RING, request)?;
        let mut mapping = Mapping::shared(socket.as_fd(), 0, ring_bytes as usize)?;
        let slots = NonNull::new(mapping.as_mut_ptr()).ok_or(io::ErrorKind::OutOfMemory)?;
        // Last, because frames arrive from here on.
        bind(&*socket, ifindex, libc::ETH_P_ALL)?;
        Ok(PacketRing {
            socket,
            slots,
            slot_bytes,
            length: request.slots,
            next: 0,
            seen: Cell::new(0),
            too_long: 0,
            _mapping: mapping,
        })
    }

    /// Returns the socket.
    pub fn socket(&self) -> &PacketSocket {
        &self.socket
    }

    /// Counts frames that were longer than a slot and therefore not shown.
    pub fn too_long(&self) -> u64 {
        self.too_long
    }

    /// Returns how many frames wait to be read.
    pub fn waiting(&self) -> u32 {
        let mut seen = self.seen.get();
        while seen < self.length && self.has_frame(self.after(seen)) {
            seen += 1;
        }
        self.seen.set(seen);
        seen
    }

    /// Shows up to `most` waiting frames, oldest first, and returns their slots to the kernel. Returns how many were
    /// shown. Makes no system call.
    pub fn receive(&mut self, most: u32, mut each: impl FnMut(&[u8])) -> u32 {
        let mut shown = 0;
        while shown < most && self.has_frame(self.next) {
            let header = self.header(self.next);
            // SAFETY: the kernel has passed the slot to this process and does not touch it until its status is set.
            let (frame_bytes, kept_bytes, offset) = unsafe {
                let header = header.as_ref();
                (
                    header.frame_bytes,
                    header.kept_bytes,
                    u32::from(header.frame_offset),
                )
            };
            if kept_bytes == frame_bytes && offset + kept_bytes <= self.slot_bytes {
                // SAFETY: the bytes lie in the slot, which is this process's until the status is set below, after the
                // slice is gone.
                each(unsafe {
                    let start = header.cast::<u8>().add(offset as usize);
                    std::slice::from_raw_parts(start.as_ptr(), kept_bytes as usize)
                });
                shown += 1;
            } else {
                self.too_long += 1;
            }
            self.status(self.next)
                .store(TP_STATUS_KERNEL, Ordering::Release);
            self.next = self.after(1);
            self.seen.set(self.seen.get().saturating_sub(1));
        }
        shown
    }

    fn has_frame(&self, slot: u32) -> bool {
        self.status(slot).load(Ordering::Acquire) & TP_STATUS_USER != 0
    }

    /// Returns the slot `slots` after the next.
    fn after(&self, slots: u32) -> u32 {
        (self.next + slots) % self.length
    }

    fn status(&self, slot: u32) -> &AtomicU32 {
        let header = self.header(slot);
        // SAFETY: the header lies in the mapping, which lives as long as `self`; the status is its first word, and is
        // written by both sides as one.
        unsafe { header.cast::<AtomicU32>().as_ref() }
    }

    fn header(&self, slot: u32) -> NonNull<SlotHeader> {
        debug_assert!(slot < self.length);
        // SAFETY: there are `length` slots in the mapping. They begin at multiples of a power of two.
        unsafe {
            self.slots
                .add(slot as usize * self.slot_bytes as usize)
                .cast()
        }
    }
}

/// Maximum frames per system call, one by one and joined.
const BATCH: usize = 64;
const BATCH_JOINED: usize = 256;

/// include/uapi/linux/if_packet.h
const PACKET_VNET_HDR: libc::c_int = 15;
/// struct virtio_net_hdr (include/uapi/linux/virtio_net.h), and its flags and types for a datagram to segment.
const VNET_BYTES: usize = 10;
const VIRTIO_NET_HDR_F_NEEDS_CSUM: u8 = 1;
const VIRTIO_NET_HDR_GSO_NONE: u8 = 0;
const VIRTIO_NET_HDR_GSO_UDP_L4: u8 = 5;
/// Offset of the checksum in the UDP header, and that header's length.
const UDP_CHECKSUM_OFFSET: u16 = 6;
const UDP_BYTES: usize = 8;

/// Frames that differ only in their payload, many of which can be passed to the kernel as one datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joining {
    /// Ethernet, IP and UDP headers of one frame, of two frames joined, and so on, each with the sum of the pseudo
    /// header in place of the checksum. All have the same length.
    pub headers: Vec<Vec<u8>>,
    /// Payload of each frame, in bytes.
    pub payload_bytes: u16,
}

impl Joining {
    /// Returns what the kernel is given before the payloads of `frames` frames.
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
    frame_bytes_max: usize,
    memory: Mapping,
    batch: usize,
    joined: Option<Joined>,
    /// Lengths of the written frames; the first `sent` of them are finished.
    lengths: Vec<usize>,
    sent: usize,
    /// Frames passed to the kernel since the sender was made.
    total: u64,
}

/// How frames are joined.
struct Joined {
    header_bytes: usize,
    /// What precedes the payloads of one frame, of two, and so on.
    heads: Vec<Vec<u8>>,
}

impl PacketSender {
    /// Makes a sender through an interface, by index in the calling thread's network namespace, for frames of up to
    /// `frame_bytes_max` bytes, Ethernet header included.
    ///
    /// # Errors
    /// `EPERM` without CAP_NET_RAW.
    pub fn new(ifindex: u32, frame_bytes_max: u32) -> io::Result<Self> {
        Self::with(ifindex, frame_bytes_max, BATCH)
    }

    /// Makes a sender of similar frames, each as long as `joining` says, which are passed to the kernel joined. If the
    /// kernel cannot segment them, they are sent one by one.
    ///
    /// # Errors
    /// `EPERM` without CAP_NET_RAW; `ENOPROTOOPT` if the kernel cannot join.
    pub fn joining(ifindex: u32, frame_bytes_max: u32, joining: &Joining) -> io::Result<Self> {
        let mut sender = Self::with(ifindex, frame_bytes_max, BATCH_JOINED)?;
        set_option(&sender.socket, PACKET_VNET_HDR, 1i32)?;
        let frames = 1..=joining.headers.len();
        sender.joined = joining.headers.first().map(|header| Joined {
            header_bytes: header.len(),
            heads: frames.map(|frames| joining.head(frames)).collect(),
        });
        Ok(sender)
    }

    fn with(ifindex: u32, frame_bytes_max: u32, batch: usize) -> io::Result<Self> {
        let frame_bytes_max = frame_bytes_max as usize;
        let socket = raw_socket()?;
        bind(&socket, ifindex, 0)?;
        Ok(PacketSender {
            socket,
            frame_bytes_max,
            memory: Mapping::zeroed(batch * frame_bytes_max)?,
            batch,
            joined: None,
            lengths: Vec::with_capacity(batch),
            sent: 0,
            total: 0,
        })
    }

    /// Whether frames are passed to the kernel joined.
    pub fn joins(&self) -> bool {
        self.joined.is_some()
    }

    /// Passes frames to the kernel one by one from now on.
    ///
    /// # Errors
    /// If the kernel refuses; frames are then still joined.
    pub fn send_singly(&mut self) -> io::Result<()> {
        set_option(&self.socket, PACKET_VNET_HDR, 0i32)?;
        self.joined = None;
        Ok(())
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
                    // Linux before 6.2 does not segment such a frame.
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

    /// Passes waiting frames to the kernel with one system call. Returns how many it accepted.
    fn call(&self) -> io::Result<usize> {
        let waiting = &self.lengths[self.sent..];
        let header_bytes = self.joined.as_ref().map_or(0, |joined| joined.header_bytes);
        let most = self.joined.as_ref().map_or(1, |joined| joined.heads.len());
        let messages = waiting.len().div_ceil(most);
        // Per message: the head and the payloads, or the frame alone.
        let mut parts = Vec::with_capacity(waiting.len() + messages);
        let mut at = self.sent * self.frame_bytes_max;
        for frames in waiting.chunks(most) {
            if let Some(joined) = &self.joined {
                parts.push(IoSlice::new(&joined.heads[frames.len() - 1]));
            }
            for bytes in frames {
                let payload = self.memory.get(at + header_bytes..at + bytes);
                parts.push(IoSlice::new(payload.unwrap_or_default()));
                at += self.frame_bytes_max;
            }
        }
        let parts = parts.chunks(most + usize::from(self.joins()));
        let mut nothing: Vec<_> = parts
            .clone()
            .map(|_| SendAncillaryBuffer::default())
            .collect();
        let messages = parts.zip(&mut nothing);
        let mut messages: Vec<_> = messages
            .map(|(parts, nothing)| MMsgHdr::new(parts, nothing))
            .collect();
        let sent = rustix::net::sendmmsg(&self.socket, &mut messages, SendFlags::DONTWAIT)?;
        Ok((sent * most).min(waiting.len()))
    }
}

impl Transmit for PacketSender {
    fn room(&mut self) -> u32 {
        (self.batch - self.lengths.len()) as u32
    }

    /// Discards a frame that is too long for the interface (`EMSGSIZE`).
    fn transmit(
        &mut self,
        most: u32,
        mut fill: impl FnMut(&mut [u8]) -> Option<usize>,
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

    fn sent(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    /// Ethernet, IPv4 and UDP to a port, with 4 bytes of payload.
    fn ipv4(port: u16) -> Vec<u8> {
        let mut frame = vec![0; 14 + 20 + 8 + 4];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x45;
        frame[23] = 17;
        frame[36..38].copy_from_slice(&port.to_be_bytes());
        frame
    }

    fn ipv6(port: u16) -> Vec<u8> {
        let mut frame = vec![0; 14 + 40 + 8 + 4];
        frame[12..14].copy_from_slice(&[0x86, 0xdd]);
        frame[20] = 17;
        frame[56..58].copy_from_slice(&port.to_be_bytes());
        frame
    }

    /// Returns the frame with some bytes changed.
    fn with(mut frame: Vec<u8>, offset: usize, bytes: &[u8]) -> Vec<u8> {
        frame[offset..offset + bytes.len()].copy_from_slice(bytes);
        frame
    }

    /// Tells which frames a filter accepts, by the kernel's own interpreter: any datagram socket has it.
    fn taken(filter: &FrameFilter, frames: &[Vec<u8>]) -> Vec<bool> {
        let (sender, receiver) = UnixDatagram::pair().unwrap();
        filter.attach(&receiver).unwrap();
        receiver.set_nonblocking(true).unwrap();
        let is_taken = |frame: &Vec<u8>| {
            let _ = sender.send(frame);
            let mut buffer = [0; 256];
            match receiver.recv(&mut buffer) {
                Ok(length) => {
                    assert_eq!(&buffer[..length], &frame[..]);
                    true
                }
                Err(_) => false,
            }
        };
        frames.iter().map(is_taken).collect()
    }

    #[test]
    fn udp_to_the_asked_ports_is_taken_and_nothing_else() {
        let asked = [
            ipv4(9000),
            ipv4(53),
            ipv6(9000),
            // "Don't Fragment", which only whole packets have.
            with(ipv4(53), 20, &[0x40, 0]),
        ];
        let not_asked = [
            ipv4(9001),
            ipv6(54),
            // TCP, IPv4 options, a first and a later fragment, ARP, a VLAN tag, TCP over IPv6 and an IPv6 extension
            // header.
            with(ipv4(9000), 23, &[6]),
            with(ipv4(9000), 14, &[0x46]),
            with(ipv4(9000), 20, &[0x20, 0]),
            with(ipv4(9000), 20, &[0, 1]),
            with(ipv4(9000), 12, &[8, 6]),
            with(ipv4(9000), 12, &[0x81, 0]),
            with(ipv6(9000), 20, &[6]),
            with(ipv6(9000), 20, &[0]),
            // Truncated headers.
            ipv4(9000)[..41].to_vec(),
            ipv6(9000)[..61].to_vec(),
            vec![0; 3],
        ];
        let filter = FrameFilter::udp_ports([53, 9000]);
        assert_eq!(taken(&filter, &asked), [true; 4]);
        assert_eq!(taken(&filter, &not_asked), [false; 13]);
        let all = FrameFilter::all_udp();
        assert_eq!(taken(&all, &asked), [true; 4]);
        let mut others = [false; 13];
        others[..2].fill(true);
        assert_eq!(taken(&all, &not_asked), others);
        assert_eq!(taken(&FrameFilter::nothing(), &asked), [false; 4]);
    }

    #[test]
    fn as_many_ports_as_it_says_are_possible() {
        let ports = |count: usize| FrameFilter::udp_ports((1..).take(count));
        let most = ports(FILTER_PORTS_MAX);
        let last = FILTER_PORTS_MAX as u16;
        assert_eq!(taken(&most, &[ipv4(last), ipv4(last + 1)]), [true, false]);
        let (_, receiver) = UnixDatagram::pair().unwrap();
        assert!(
            ports(FILTER_PORTS_MAX + OTHER_INSTRUCTIONS)
                .attach(&receiver)
                .is_err()
        );
    }

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
