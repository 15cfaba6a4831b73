//! Packets that the kernel dropped, by its own reasons, counted at the tracepoint `skb:kfree_skb`.
//!
//! This finds losses without a counter, such as those of a filter rule without one. Every packet dropped in a watched
//! namespace is counted, or else counted as a gap. Packets that the kernel frees after use are not losses. Names of
//! reasons are taken from the running kernel, because their numbers differ between versions.
//!
//! If a driver gives no reason, the reason is `NOT_SPECIFIED`, with the name of the function that dropped the packet.
//! Two losses never reach the tracepoint: frames that an XDP program drops in the driver (`rx_queue_N_xdp_drops` counts
//! them on veth), and frames for which a card had no receive descriptor (`rx_missed_errors`).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::{fs, io};

use aya::EbpfLoader;
use aya::maps::{HashMap, MapData, MapError, PerCpuArray, PerCpuHashMap};
use nicpoll_model::{DropProtocol, DropReason, DropReasonGaps, LossPlace};
use nicpoll_sys::bpf_maps::{Drop, Dropped, Uncounted};
use thiserror::Error;

use crate::bpf::{self, BpfError, KernelTypes, OrRefused, Programs};

const DROPS: &str = "dropped packets";
const PROGRAM: &str = "count_drops";
/// Most groups that are distinguished; packets of further groups are only counted.
const MAX_GROUPS: u32 = 1024;

/// Why there are no drop reasons.
#[derive(Debug, Error)]
pub enum DropReasonsError {
    /// The kernel is too old.
    #[error(
        "the kernel gives no reasons for the packets that it drops; Linux 5.17 and later versions do"
    )]
    NoReasons,
    /// The namespace of the caller is not known.
    #[error("cannot tell which network namespace to watch")]
    Namespace(#[source] io::Error),
    /// BPF is not available or not permitted.
    #[error(transparent)]
    Bpf(#[from] BpfError),
}

/// A loaded and attached program that counts dropped packets.
pub struct DropReasons {
    // Declared first: the program is detached before its maps are closed.
    /// The BPF program.
    pub programs: Programs,
    drops: PerCpuHashMap<MapData, Drop, Dropped>,
    uncounted: PerCpuArray<MapData, Uncounted>,
    /// The running kernel's names of the reasons, by number.
    names: BTreeMap<u32, String>,
    symbols: KernelSymbols,
}

impl DropReasons {
    /// Counts packets dropped from now on in the namespaces with these inode numbers, at most 64.
    ///
    /// # Errors
    /// Without kernel types, CAP_BPF or CAP_PERFMON, and before Linux 5.17.
    pub fn begin(netns_inodes: &[u64]) -> Result<Self, DropReasonsError> {
        Self::with_room_for(MAX_GROUPS, netns_inodes)
    }

    fn with_room_for(groups: u32, netns_inodes: &[u64]) -> Result<Self, DropReasonsError> {
        let types = bpf::kernel_types(DROPS)?;
        let btf = bpf::names_of(&types, DROPS)?;
        let names = names_in(&types).ok_or(DropReasonsError::NoReasons)?;
        let object = aya::include_bytes_aligned!("../bpf/drop_reasons.bpf.o");
        let loader = &mut EbpfLoader::new();
        let mut programs = Programs::of(DROPS, loader.map_max_entries("DROPS", groups), object)?;
        let mut watched: HashMap<_, u32, u32> = programs.map("WATCHED")?;
        for &inode in netns_inodes {
            watched.insert(inode as u32, 0, 0).or_refused(DROPS)?;
        }
        programs.require(&btf, &[(PROGRAM, "kfree_skb")])?;
        programs.attach()?;
        Ok(DropReasons {
            drops: programs.map("DROPS")?,
            uncounted: programs.map("UNCOUNTED")?,
            programs,
            names,
            symbols: KernelSymbols::default(),
        })
    }

    /// Returns the packets dropped since [`begin`](Self::begin) by reason, most first, and those without a reason.
    pub fn read(&mut self) -> Result<(Vec<DropReason>, DropReasonGaps), BpfError> {
        let mut dropped = Vec::new();
        for entry in self.drops.iter() {
            match entry {
                Ok((drop, by_cpu)) => {
                    let packets = by_cpu.iter().map(|one| one.packets);
                    dropped.push((drop, packets.sum::<u64>()));
                }
                // Only if another reader removed the entry; there is none.
                Err(MapError::KeyNotFound) => {}
                Err(error) => return Err(BpfError::refused(DROPS, &error)),
            }
        }
        let mut gaps = DropReasonGaps {
            missed_events: self.missed_events(),
            ..DropReasonGaps::default()
        };
        for of_cpu in self.uncounted.get(&0, 0).or_refused(DROPS)?.iter() {
            gaps.overflow_packets += of_cpu.overflow_packets;
            gaps.unattributed_packets += of_cpu.unattributed_packets;
        }
        Ok((self.explain(&dropped), gaps))
    }

    /// Groups drops by reason, function and protocol, and explains them.
    fn explain(&mut self, dropped: &[(Drop, u64)]) -> Vec<DropReason> {
        let locations = dropped.iter().map(|(drop, _)| drop.location);
        self.symbols
            .learn(locations.filter(|location| *location > 0));
        let mut packets_of: BTreeMap<_, u64> = BTreeMap::new();
        for (drop, packets) in dropped {
            let function = self.symbols.function_at(drop.location);
            *packets_of
                .entry((drop.reason, function, protocol(drop)))
                .or_default() += packets;
        }
        let reasons = packets_of
            .into_iter()
            .map(|((number, function, protocol), packets)| {
                let reason = name_of(number, &self.names);
                let meaning = meaning_of(function.unwrap_or(&reason));
                DropReason {
                    reason,
                    function: function.map(String::from),
                    protocol,
                    place: meaning.map(|(place, _)| place),
                    explanation: meaning.map(|(_, why)| String::from(why)),
                    packets,
                }
            });
        let mut reasons: Vec<DropReason> = reasons.collect();
        reasons.sort_by_key(|reason| Reverse(reason.packets));
        reasons
    }

    /// Drops during which the program was running already on the same CPU, below a soft interrupt. The kernel reports
    /// them with the descriptor, since Linux 5.12.
    fn missed_events(&self) -> Option<u64> {
        let program = self.programs.program(PROGRAM).ok()?;
        let fd = program.fd().ok()?.as_fd().as_raw_fd();
        let text = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
        let misses = text
            .lines()
            .find_map(|line| line.strip_prefix("recursion_misses:"));
        misses?.trim().parse().ok()
    }
}

/// Protocol of a dropped packet, by its ethertype and its IP header.
fn protocol(drop: &Drop) -> DropProtocol {
    match (u16::from_be(drop.ethertype), drop.ip_protocol) {
        (0x0800 | 0x86DD, 17) => DropProtocol::Udp,
        (0x0800 | 0x86DD, 6) => DropProtocol::Tcp,
        _ => DropProtocol::Other,
    }
}

/// The names of drop reasons in a description of kernel types; `None` if it has none.
fn names_in(types: &[u8]) -> Option<BTreeMap<u32, String>> {
    let names = KernelTypes::of_bytes(types)?.values_of("skb_drop_reason")?;
    Some(names.into_iter().collect())
}

/// The kernel's name of a reason without the common prefix, or its number if it has no name.
fn name_of(reason: u32, names: &BTreeMap<u32, String>) -> String {
    match names.get(&reason) {
        Some(name) => String::from(name.strip_prefix("SKB_DROP_REASON_").unwrap_or(name)),
        None => format!("reason {reason}"),
    }
}

const MEANINGS: &str = include_str!("drop_reasons.txt");

/// The place of a loss and a sentence that explains it, by the kernel's name of the reason, or of the function if there
/// is no reason.
fn meaning_of(name: &str) -> Option<(LossPlace, &'static str)> {
    let mut meanings = meanings();
    meanings.find_map(|(known, place, why)| (known == name).then_some((place, why)))
}

fn meanings() -> impl Iterator<Item = (&'static str, LossPlace, &'static str)> {
    let sections = MEANINGS.split("\n[").skip(1).filter_map(|section| {
        let (key, rows) = section.split_once("]\n")?;
        let place = LossPlace::ALL.iter().find(|place| place.key() == key)?;
        Some((*place, rows))
    });
    sections.flat_map(|(place, rows)| {
        let rows = rows.lines().filter_map(|row| row.split_once(": "));
        rows.map(move |(name, why)| (name, place, why))
    })
}

/// The kernel's list of its functions.
const SYMBOLS: &str = "/proc/kallsyms";

/// Functions of the kernel, by looked-up address.
#[derive(Default)]
struct KernelSymbols(BTreeMap<u64, Option<String>>);

impl KernelSymbols {
    /// Looks up new addresses. Without CAP_SYSLOG, or if the kernel lists no functions, they have none.
    fn learn(&mut self, addresses: impl Iterator<Item = u64>) {
        let unknown: Vec<u64> = addresses
            .filter(|address| !self.0.contains_key(address))
            .collect();
        if unknown.is_empty() {
            return;
        }
        match File::open(SYMBOLS) {
            Ok(file) => self.learn_from(BufReader::new(file), &unknown),
            Err(_) => self.learn_from(&b""[..], &unknown),
        }
    }

    fn learn_from(&mut self, list: impl BufRead, addresses: &[u64]) {
        let mut nearest: Vec<Option<(u64, String)>> = vec![None; addresses.len()];
        for line in list.lines().map_while(Result::ok) {
            let Some((begin, name)) = function(&line) else {
                continue;
            };
            for (address, found) in addresses.iter().zip(&mut nearest) {
                let is_nearer = found.as_ref().is_none_or(|(before, _)| begin >= *before);
                if begin <= *address && is_nearer {
                    *found = Some((begin, String::from(name)));
                }
            }
        }
        let names = nearest.into_iter().map(|found| found.map(|(_, name)| name));
        self.0.extend(addresses.iter().copied().zip(names));
    }

    /// Returns the function that contains an address.
    fn function_at(&self, address: u64) -> Option<&str> {
        self.0.get(&address)?.as_deref()
    }
}

/// Parses `ffffffff81000000 T name [module]`. Hidden addresses are 0.
fn function(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
    // Without suffixes that the compiler adds: `veth_xmit.constprop.0`, `tun_net_xmit.cold`.
    let name = words.next()?.split('.').next()?;
    (is_code && address > 0).then_some((address, name))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::process::Command;

    use nicpoll_sys::netns::{NetNamespace, NetnsThread};
    use nicpoll_testkit::needs;

    use super::*;
    use crate::bpf::kernel_types_tests::types;

    #[test]
    fn packets_of_groups_that_find_no_room_are_counted_too() {
        needs!(Root, Ip);
        let namespace = NetNamespace::create().unwrap();
        let thread = NetnsThread::enter(namespace, || ()).unwrap();
        let mut drops = DropReasons::with_room_for(1, &[thread.netns_inode()]).unwrap();
        let timing = bpf::start_timing().unwrap();
        let before = drops.programs.timed_runs().unwrap();
        let send = || {
            let ip = Command::new("ip")
                .args(["link", "set", "lo", "up"])
                .status();
            assert!(ip.unwrap().success());
            for (address, datagrams) in [("127.0.0.1", 3), ("::1", 4)] {
                let socket = UdpSocket::bind((address, 0)).unwrap();
                for _ in 0..datagrams {
                    socket.send_to(b"nobody is here", (address, 9)).unwrap();
                }
            }
        };
        thread.run(move |()| send()).unwrap();
        let (reasons, gaps) = drops.read().unwrap();
        let [reason] = &reasons[..] else {
            panic!("{reasons:?}");
        };
        assert_eq!((reason.name().as_str(), reason.packets), ("NO_SOCKET", 3));
        assert_eq!(gaps.overflow_packets, 4);
        assert!(gaps.missed_events.is_some());
        assert!(
            drops
                .programs
                .timed_runs()
                .unwrap()
                .since(before)
                .unwrap()
                .runs
                >= 7
        );
        drop(timing);
    }

    #[test]
    fn only_packets_over_ip_have_a_protocol_of_ip() {
        for (ethertype, ip_protocol, expected) in [
            (0x0800_u16, 17, DropProtocol::Udp),
            (0x86DD, 17, DropProtocol::Udp),
            (0x0800, 6, DropProtocol::Tcp),
            (0x0806, 17, DropProtocol::Other),
            (0x86DD, 58, DropProtocol::Other),
        ] {
            let ethertype = ethertype.to_be();
            let drop = Drop {
                ethertype,
                ip_protocol,
                ..Drop::default()
            };
            assert_eq!(protocol(&drop), expected, "{ethertype:x} {ip_protocol}");
        }
    }

    #[test]
    fn reasons_have_the_kernels_names_and_unknown_ones_their_number() {
        let mut types = types();
        let names = names_in(&types).unwrap();
        let named = [72, 1, 65_537].map(|reason| name_of(reason, &names));
        assert_eq!(named, ["XDP", "SKB_CONSUMED", "reason 65537"]);
        let at = types.windows(8).position(|bytes| bytes == b"skb_drop");
        types[at.unwrap()] = b'S';
        assert_eq!(names_in(&types), None);
    }

    #[test]
    fn a_name_has_one_row_and_an_explanation_is_a_sentence() {
        let mut names: Vec<&str> = meanings().map(|(name, ..)| name).collect();
        let rows = names.len();
        let of_names = |line: &&str| !line.is_empty() && !line.starts_with(['#', '[']);
        assert_eq!(rows, MEANINGS.lines().filter(of_names).count());
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rows);
        for (name, _, explanation) in meanings() {
            assert!(explanation.ends_with('.'), "{name}: {explanation}");
        }
        let place = |name| meaning_of(name).map(|(place, _)| place);
        assert_eq!(place("NETFILTER_DROP"), Some(LossPlace::Nftables));
        assert_eq!(place("veth_xmit"), Some(LossPlace::RxRing));
        assert_eq!(place("SOCKET_BACKLOG"), Some(LossPlace::SocketBuffer));
        assert_eq!(place("TCP_OLD_DATA"), None);
        assert_eq!(place("igmp_rcv"), None);
    }

    /// A misspelled row would never match.
    #[test]
    fn rows_are_spelled_as_the_kernel_spells_them() {
        let types = std::fs::read(crate::bpf::KERNEL_TYPES).unwrap_or_default();
        let Some(names) = names_in(&types) else {
            return;
        };
        assert!(names.values().any(|name| name.ends_with("NOT_SPECIFIED")));
        let known: Vec<String> = names
            .keys()
            .map(|number| name_of(*number, &names))
            .collect();
        let unknown = meanings().filter(|(name, ..)| !known.iter().any(|it| it == name));
        // Some reasons are newer than the oldest kernel with reasons.
        assert!(unknown.count() <= meanings().count() / 2);
    }

    #[test]
    fn an_address_is_in_the_function_that_begins_before_it() {
        let text = "ffffffff81000100 T second\nffffffff81000000 t first.isra.0\n\
                    ffffffff81000080 d data\nffffffffc0000000 t veth_xmit [veth]\nbroken\n\
                    0000000000000000 T hidden\n";
        let mut symbols = KernelSymbols::default();
        let [first, last_of_first] = [0xffff_ffff_8100_0000, 0xffff_ffff_8100_00ff];
        let [second, module] = [0xffff_ffff_8100_0100, 0xffff_ffff_c000_0123];
        symbols.learn_from(text.as_bytes(), &[first, last_of_first, second, module, 5]);
        let functions = [first, last_of_first, second, module].map(|at| symbols.function_at(at));
        assert_eq!(
            functions,
            ["first", "first", "second", "veth_xmit"].map(Some)
        );
        assert_eq!(symbols.function_at(5), None);
    }
}
