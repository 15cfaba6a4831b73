//! Which frames a socket takes: a classic BPF program, which needs no privilege (Documentation/networking/filter.rst).
//!
//! What must hold: it takes what the engine's XDP program would take (`bpf/xdp_take.bpf.c`) and nothing else: UDP over
//! IPv4 without options and over IPv6 without extension headers, no fragment, no VLAN tag, to a port that was asked
//! for.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// The most instructions (`BPF_MAXINSNS`).
const INSTRUCTIONS_MAX: usize = 4096;
/// More than all instructions but those for ports, of which each takes two.
const OTHER_INSTRUCTIONS: usize = 96;
/// The most ports that a filter can ask for.
pub const FILTER_PORTS_MAX: usize = (INSTRUCTIONS_MAX - OTHER_INSTRUCTIONS) / 2;

/// A frame is taken as it is, whatever its length.
const ALL_BYTES: u32 = u32::MAX;
/// Where the kernel keeps what is not in the frame.
const VLAN_TAG_PRESENT: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_VLAN_TAG_PRESENT) as u32;

const ETHERNET_BYTES: u32 = 14;
const IPV4_BYTES: u32 = 20;
const IPV6_BYTES: u32 = 40;
const UDP_BYTES: u32 = 8;
const UDP_PROTOCOL: u32 = libc::IPPROTO_UDP as u32;
/// More fragments follow, or it is not the first.
const FRAGMENT: u32 = 0x3fff;

/// A program that takes frames.
#[derive(Clone)]
pub struct FrameFilter {
    instructions: Vec<libc::sock_filter>,
}

impl FrameFilter {
    /// UDP to one of these ports, [`FILTER_PORTS_MAX`] at most.
    pub fn udp_ports(ports: impl IntoIterator<Item = u16>) -> Self {
        FrameFilter::of_udp(|filter| {
            for port in ports {
                filter.unless_equal(u32::from(port));
                filter.end(ALL_BYTES);
            }
            filter.end(0);
        })
    }

    /// All UDP.
    pub fn all_udp() -> Self {
        FrameFilter::of_udp(|filter| filter.end(ALL_BYTES))
    }

    /// Nothing: the socket keeps what it has.
    pub fn nothing() -> Self {
        let mut filter = FrameFilter::empty();
        filter.end(0);
        filter
    }

    /// Has a socket take by this filter from now on.
    ///
    /// # Errors
    /// `EINVAL` with more ports than are possible; `ENOMEM` when the socket may have no more memory
    /// (`net.core.optmem_max`).
    pub fn attach(&self, socket: impl AsFd) -> io::Result<()> {
        let program = self.program();
        // SAFETY: the descriptor is open for the whole call; the kernel reads `len` instructions, which `self` holds
        // meanwhile, and keeps a copy.
        let result = unsafe {
            libc::setsockopt(
                socket.as_fd().as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ATTACH_FILTER,
                (&raw const program).cast(),
                size_of_val(&program) as libc::socklen_t,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// The program as the kernel reads it, for as long as `self` lives.
    pub(crate) fn program(&self) -> libc::sock_fprog {
        libc::sock_fprog {
            // The kernel refuses what is too long, and this is.
            len: u16::try_from(self.instructions.len()).unwrap_or(u16::MAX),
            filter: self.instructions.as_ptr().cast_mut(),
        }
    }

    fn empty() -> Self {
        FrameFilter {
            instructions: Vec::new(),
        }
    }

    /// Ends for all but UDP; what `verdict` adds finds the destination port in the accumulator.
    fn of_udp(verdict: impl FnOnce(&mut Self)) -> Self {
        let mut filter = FrameFilter::empty();
        filter.load(libc::BPF_W, VLAN_TAG_PRESENT);
        filter.require(0);
        filter.load(libc::BPF_H, ETHERNET_BYTES - 2);
        // The part for IPv6 follows that for IPv4, which ends with a jump over it.
        let ipv4 = {
            let mut part = FrameFilter::empty();
            part.load(libc::BPF_B, ETHERNET_BYTES);
            part.require(0x45);
            part.load(libc::BPF_B, ETHERNET_BYTES + 9);
            part.require(UDP_PROTOCOL);
            part.load(libc::BPF_H, ETHERNET_BYTES + 6);
            part.refuse_bits(FRAGMENT);
            part.load_port(ETHERNET_BYTES + IPV4_BYTES);
            part
        };
        let ipv6 = {
            let mut part = FrameFilter::empty();
            part.require(libc::ETH_P_IPV6 as u32);
            part.load(libc::BPF_B, ETHERNET_BYTES + 6);
            part.require(UDP_PROTOCOL);
            part.load_port(ETHERNET_BYTES + IPV6_BYTES);
            part
        };
        let over_ipv4 = ipv4.instructions.len() + 1;
        filter.add(
            libc::BPF_JMP | libc::BPF_JEQ,
            libc::ETH_P_IP as u32,
            0,
            over_ipv4 as u8,
        );
        filter.instructions.extend(ipv4.instructions);
        filter.add(
            libc::BPF_JMP | libc::BPF_JA,
            ipv6.instructions.len() as u32,
            0,
            0,
        );
        filter.instructions.extend(ipv6.instructions);
        verdict(&mut filter);
        filter
    }

    fn load(&mut self, size: u32, offset: u32) {
        self.add(libc::BPF_LD | size | libc::BPF_ABS, offset, 0, 0);
    }

    /// A load beyond the frame's end refuses it: so the whole header has to be there.
    fn load_port(&mut self, udp_offset: u32) {
        self.load(libc::BPF_B, udp_offset + UDP_BYTES - 1);
        self.load(libc::BPF_H, udp_offset + 2);
    }

    /// Refuses the frame unless the accumulator is `value`.
    fn require(&mut self, value: u32) {
        self.add(libc::BPF_JMP | libc::BPF_JEQ, value, 1, 0);
        self.end(0);
    }

    /// Refuses the frame when any of these bits is set.
    fn refuse_bits(&mut self, bits: u32) {
        self.add(libc::BPF_JMP | libc::BPF_JSET, bits, 0, 1);
        self.end(0);
    }

    /// Skips the next instruction unless the accumulator is `value`.
    fn unless_equal(&mut self, value: u32) {
        self.add(libc::BPF_JMP | libc::BPF_JEQ, value, 0, 1);
    }

    /// Takes so many bytes of the frame; none refuses it.
    fn end(&mut self, bytes: u32) {
        self.add(libc::BPF_RET, bytes, 0, 0);
    }

    fn add(&mut self, code: u32, k: u32, jt: u8, jf: u8) {
        self.instructions.push(libc::sock_filter {
            code: code as u16,
            jt,
            jf,
            k,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    /// Ethernet, IPv4 and UDP to a port, 4 bytes of payload.
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

    /// The frame with some bytes changed.
    fn with(mut frame: Vec<u8>, offset: usize, bytes: &[u8]) -> Vec<u8> {
        frame[offset..offset + bytes.len()].copy_from_slice(bytes);
        frame
    }

    /// Which of these a filter takes, by the kernel's own interpreter: any datagram socket has it.
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
            // Not to be fragmented: a flag of whole packets.
            with(ipv4(53), 20, &[0x40, 0]),
        ];
        let not_asked = [
            ipv4(9001),
            ipv6(54),
            // TCP, options, a first and a later fragment, ARP, a tag, TCP and an extension header of IPv6.
            with(ipv4(9000), 23, &[6]),
            with(ipv4(9000), 14, &[0x46]),
            with(ipv4(9000), 20, &[0x20, 0]),
            with(ipv4(9000), 20, &[0, 1]),
            with(ipv4(9000), 12, &[8, 6]),
            with(ipv4(9000), 12, &[0x81, 0]),
            with(ipv6(9000), 20, &[6]),
            with(ipv6(9000), 20, &[0]),
            // Without the end of its header.
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
}
