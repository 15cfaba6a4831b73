//! A few counters of one host, read many times a second under traffic.
//!
//! Files stay open and are read again, so a reading is cheap. Expensive counters are in `host`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use nicpoll_model::line::IpVersion;
use serde::{Deserialize, Serialize};

use crate::clock::monotonic_ns;
use crate::polls::PollReader;
use crate::proc::{CoreTicks, parse_net_dev, parse_snmp, parse_snmp6, parse_softnet, parse_stat};

/// The kernel returns text in pages; two hold the files of a host with a few interfaces.
const BUFFER_BYTES: usize = 8192;

/// Counters of a host at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowReading {
    /// Time of the reading, by the host's monotonic clock.
    pub at_ns: u64,
    /// Frames sent by its interfaces, without `lo`, here and below.
    pub tx_packets: u64,
    /// Frames dropped by their drivers on the way out.
    pub tx_dropped: u64,
    /// Bytes received, from the Ethernet header to the end of the payload.
    pub rx_bytes: u64,
    /// Frames dropped on the way in.
    pub rx_dropped: u64,
    /// UDP datagrams that programs read.
    pub udp_read: u64,
    /// UDP datagrams that reached the host but no program: full socket, or wrong checksum.
    pub udp_dropped: u64,
    /// Polls of the watched NAPI instance; `None` if polls are not counted.
    pub polls: Option<u64>,
    /// Times of the requested cores, by the kernel's clock tick.
    pub cores: Vec<CoreTicks>,
    /// How often the kernel cut its receive softirq short with packets left, over all cores of the machine; `None`
    /// unless cores were requested.
    pub cut_short_softirqs: Option<u64>,
}

/// Reads these counters in the network namespace of the thread that created it.
pub struct FlowReader {
    interfaces: File,
    protocols: File,
    ip: IpVersion,
    polls: Option<PollReader>,
    machine: Option<MachineFiles>,
    buffer: Vec<u8>,
}

/// Files about the whole machine, in any namespace.
struct MachineFiles {
    cores: Vec<u32>,
    stat: File,
    softnet: File,
}

impl MachineFiles {
    fn open(cores: &[u32]) -> io::Result<Self> {
        Ok(MachineFiles {
            cores: cores.to_vec(),
            stat: File::open("/proc/stat")?,
            softnet: File::open("/proc/thread-self/net/softnet_stat")?,
        })
    }

    fn read_into(&self, reading: &mut FlowReading, buffer: &mut Vec<u8>) -> io::Result<()> {
        let stat = parse_stat(whole(&self.stat, buffer)?).map_err(io::Error::other)?;
        reading.cores = stat.cores;
        reading
            .cores
            .retain(|ticks| self.cores.contains(&ticks.core));
        let softnet = parse_softnet(whole(&self.softnet, buffer)?).map_err(io::Error::other)?;
        let cut_short = softnet.iter().map(|core| u64::from(core.cut_short));
        reading.cut_short_softirqs = Some(cut_short.sum());
        Ok(())
    }
}

impl FlowReader {
    /// Opens a reader of the caller's namespace, for datagrams over `ip`. Machine-wide counters are read only if
    /// `cores` has any.
    ///
    /// # Errors
    /// When the kernel's files cannot be opened.
    pub fn of_caller(ip: IpVersion, polls: Option<PollReader>, cores: &[u32]) -> io::Result<Self> {
        let protocols = match ip {
            IpVersion::V4 => "/proc/thread-self/net/snmp",
            IpVersion::V6 => "/proc/thread-self/net/snmp6",
        };
        Ok(FlowReader {
            interfaces: File::open("/proc/thread-self/net/dev")?,
            protocols: File::open(protocols)?,
            ip,
            polls,
            machine: (!cores.is_empty())
                .then(|| MachineFiles::open(cores))
                .transpose()?,
            buffer: Vec::with_capacity(BUFFER_BYTES),
        })
    }

    /// Reads the counters.
    ///
    /// # Errors
    /// When a file cannot be read or parsed.
    pub fn read(&mut self) -> io::Result<FlowReading> {
        let mut reading = FlowReading {
            at_ns: monotonic_ns(),
            ..FlowReading::default()
        };
        let text = whole(&self.interfaces, &mut self.buffer)?;
        for (name, link) in parse_net_dev(text).map_err(io::Error::other)? {
            if name == "lo" {
                continue;
            }
            reading.tx_packets += link.tx_packets;
            reading.tx_dropped += link.tx_dropped;
            reading.rx_bytes += link.rx_bytes;
            reading.rx_dropped += link.rx_dropped;
        }
        let text = whole(&self.protocols, &mut self.buffer)?;
        let (counters, names) = match self.ip {
            IpVersion::V4 => (parse_snmp(text), ["Udp.InDatagrams", "Udp.InErrors"]),
            IpVersion::V6 => (parse_snmp6(text), ["Udp6InDatagrams", "Udp6InErrors"]),
        };
        let counters = counters.map_err(io::Error::other)?;
        let of = |name: &str| counters.get(name).copied().unwrap_or(0);
        [reading.udp_read, reading.udp_dropped] = names.map(of);
        if let Some(polls) = &self.polls {
            let counts = polls.read().map_err(io::Error::other)?;
            reading.polls = Some(counts.polls());
        }
        if let Some(machine) = &self.machine {
            machine.read_into(&mut reading, &mut self.buffer)?;
        }
        Ok(reading)
    }
}

/// Reads a kernel file from its beginning, which gives fresh text each time.
fn whole<'a>(file: &File, buffer: &'a mut Vec<u8>) -> io::Result<&'a str> {
    buffer.clear();
    loop {
        let filled = buffer.len();
        buffer.resize(filled + BUFFER_BYTES, 0);
        let read = file.read_at(&mut buffer[filled..], filled as u64)?;
        buffer.truncate(filled + read);
        if read == 0 {
            break;
        }
    }
    std::str::from_utf8(buffer).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn a_datagram_that_a_program_read_is_in_the_next_reading() {
        let mut reader = FlowReader::of_caller(IpVersion::V4, None, &[]).unwrap();
        let before = reader.read().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..100 {
            socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
            socket.recv(&mut [0; 8]).unwrap();
        }
        let after = reader.read().unwrap();
        assert!(after.udp_read >= before.udp_read + 100);
        assert!(after.at_ns > before.at_ns);
        assert_eq!(after.polls, None);
        assert_eq!((after.cores, after.cut_short_softirqs), (vec![], None));
    }

    #[test]
    fn only_the_cores_that_were_asked_for_are_read() {
        let mut reader = FlowReader::of_caller(IpVersion::V4, None, &[0]).unwrap();
        let reading = reader.read().unwrap();
        let cores: Vec<u32> = reading.cores.iter().map(|ticks| ticks.core).collect();
        assert_eq!(cores, [0]);
        assert!(reading.cut_short_softirqs.is_some());
    }
}
