//! Parsers of the kernel's text files. Pure: text in, numbers out.
//!
//! What must hold: a file that is not as expected is an error that names the file, the line and what
//! was expected; nothing is guessed, and an absent counter is absent, not 0.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::host::LinkCounters;

/// Why a file of the kernel could not be understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}, line {line}: {expected}; is this kernel newer than this nicpoll?")]
pub struct ProcError {
    /// The file.
    pub file: &'static str,
    /// Line number, from 1.
    pub line: usize,
    /// What was expected.
    pub expected: &'static str,
}

/// Time of one core since boot, in clock ticks of `USER_HZ`, from a `cpuN` line of `/proc/stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreTicks {
    /// Number of the core.
    pub core: u32,
    /// User programs at normal priority, guests included.
    pub user: u64,
    /// User programs at lowered priority.
    pub nice: u64,
    /// The kernel.
    pub system: u64,
    /// Idle, waiting for disks included.
    pub idle: u64,
    /// Hard interrupts.
    pub irq: u64,
    /// Soft interrupts.
    pub softirq: u64,
    /// Taken by the hypervisor.
    pub steal: u64,
}

impl CoreTicks {
    /// Ticks in which the core worked: all but idle and steal.
    pub fn busy(self) -> u64 {
        self.user + self.nice + self.system + self.irq + self.softirq
    }
}

/// What `/proc/stat` says of the cores and of context switches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcStat {
    /// One entry a core that is online.
    pub cores: Vec<CoreTicks>,
    /// Context switches since boot, all cores.
    pub context_switches: u64,
    /// Interrupts since boot, all cores: of devices, of the timer and between cores. `None` where the file has none.
    #[serde(default)]
    pub interrupts: Option<u64>,
}

/// Reads `/proc/stat` (proc_stat(5)).
pub fn parse_stat(text: &str) -> Result<ProcStat, ProcError> {
    let mut stat = ProcStat::default();
    let mut saw_switches = false;
    for (index, line) in text.lines().enumerate() {
        let error = |expected| ProcError {
            file: "/proc/stat",
            line: index + 1,
            expected,
        };
        let mut words = line.split_ascii_whitespace();
        let Some(name) = words.next() else { continue };
        if name == "ctxt" {
            stat.context_switches = words
                .next()
                .and_then(|word| word.parse().ok())
                .ok_or_else(|| error("a count of context switches was expected"))?;
            saw_switches = true;
        } else if name == "intr" {
            let total = words.next().and_then(|word| word.parse().ok());
            stat.interrupts =
                Some(total.ok_or_else(|| error("a count of interrupts was expected"))?);
        } else if let Some(core) = name.strip_prefix("cpu").filter(|core| !core.is_empty()) {
            let core = core
                .parse()
                .map_err(|_| error("a core's number was expected after 'cpu'"))?;
            let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
            let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = ticks[..] else {
                return Err(error("eight counts of ticks were expected"));
            };
            stat.cores.push(CoreTicks {
                core,
                user,
                nice,
                system,
                idle: idle.saturating_add(iowait),
                irq,
                softirq,
                steal,
            });
        }
    }
    let missing = |expected| ProcError {
        file: "/proc/stat",
        line: text.lines().count(),
        expected,
    };
    if stat.cores.is_empty() {
        return Err(missing("a line for each core was expected"));
    }
    if !saw_switches {
        return Err(missing("a line 'ctxt' was expected"));
    }
    Ok(stat)
}

/// Counters of each interface by name, from `/proc/net/dev`. Its column of frames dropped on the way in has those that
/// the card had no descriptor for.
pub fn parse_net_dev(text: &str) -> Result<Vec<(&str, LinkCounters)>, ProcError> {
    let mut interfaces = Vec::new();
    // Two lines of headings come first.
    for (index, line) in text.lines().enumerate().skip(2) {
        let error = |expected| ProcError {
            file: "/proc/net/dev",
            line: index + 1,
            expected,
        };
        let (name, counts) = line
            .rsplit_once(':')
            .ok_or_else(|| error("an interface and ':' were expected"))?;
        let counts: Vec<u64> = counts
            .split_ascii_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        let [
            rx_bytes,
            rx_packets,
            _,
            rx_dropped,
            _,
            _,
            _,
            _,
            tx_bytes,
            tx_packets,
            _,
            tx_dropped,
            ..,
        ] = counts[..]
        else {
            return Err(error("eight counts for each direction were expected"));
        };
        let link = LinkCounters {
            tx_packets,
            tx_bytes,
            tx_dropped,
            rx_packets,
            rx_bytes,
            rx_dropped,
            rx_missed: 0,
        };
        interfaces.push((name.trim(), link));
    }
    Ok(interfaces)
}

/// What `/proc/net/softnet_stat` counts of one core. Each count is of 32 bits and wraps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Softnet {
    /// Packets dropped because its backlog queue was full, or by its flow limit.
    pub dropped: u32,
    /// How often its receive softirq ended with packets left, its budget or time being over (`time_squeeze`).
    pub cut_short: u32,
}

/// Reads `/proc/net/softnet_stat`: a line for each core that is online.
pub fn parse_softnet(text: &str) -> Result<Vec<Softnet>, ProcError> {
    let file = "/proc/net/softnet_stat";
    let cores: Vec<Softnet> = text
        .lines()
        .enumerate()
        .map(|(index, line)| {
            let mut words = line.split_ascii_whitespace().skip(1);
            let mut next = |expected| {
                let count = words
                    .next()
                    .and_then(|word| u32::from_str_radix(word, 16).ok());
                count.ok_or(ProcError {
                    file,
                    line: index + 1,
                    expected,
                })
            };
            Ok(Softnet {
                dropped: next("a hexadecimal count of drops was expected in the second column")?,
                cut_short: next("a hexadecimal count was expected in the third column")?,
            })
        })
        .collect::<Result<_, _>>()?;
    if cores.is_empty() {
        return Err(ProcError {
            file,
            line: 0,
            expected: "a line for each core was expected",
        });
    }
    Ok(cores)
}

/// Counters of the IPv4 protocols by `Protocol.Name` (`Udp.RcvbufErrors`), from `/proc/net/snmp`:
/// pairs of lines, names first.
pub fn parse_snmp(text: &str) -> Result<BTreeMap<String, u64>, ProcError> {
    parse_pairs("/proc/net/snmp", text)
}

/// More counters of the IPv4 protocols, from `/proc/net/netstat`, by name as in [`parse_snmp`]
/// (`TcpExt.IPReversePathFilter`).
pub fn parse_netstat(text: &str) -> Result<BTreeMap<String, u64>, ProcError> {
    parse_pairs("/proc/net/netstat", text)
}

fn parse_pairs(file: &'static str, text: &str) -> Result<BTreeMap<String, u64>, ProcError> {
    let mut counters = BTreeMap::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, names)) = lines.next() {
        let error = |expected| ProcError {
            file,
            line: index + 1,
            expected,
        };
        let (protocol, names) = names
            .split_once(':')
            .ok_or_else(|| error("a protocol and ':' were expected"))?;
        let values = lines
            .next()
            .and_then(|(_, values)| values.strip_prefix(protocol)?.strip_prefix(':'))
            .ok_or_else(|| error("a line of values of the same protocol was expected below"))?;
        let mut values = values.split_ascii_whitespace();
        for name in names.split_ascii_whitespace() {
            let value = values
                .next()
                .ok_or_else(|| error("as many values as names were expected"))?;
            // Tcp.MaxConn is -1, which counts nothing.
            if let Ok(value) = value.parse() {
                counters.insert(format!("{protocol}.{name}"), value);
            }
        }
    }
    Ok(counters)
}

/// Counters of the IPv6 protocols by name (`Udp6RcvbufErrors`), from `/proc/net/snmp6`.
pub fn parse_snmp6(text: &str) -> Result<BTreeMap<String, u64>, ProcError> {
    text.lines()
        .enumerate()
        .map(|(index, line)| {
            let mut words = line.split_ascii_whitespace();
            let name = words.next();
            let value = words.next().and_then(|word| word.parse().ok());
            match (name, value) {
                (Some(name), Some(value)) => Ok((String::from(name), value)),
                _ => Err(ProcError {
                    file: "/proc/net/snmp6",
                    line: index + 1,
                    expected: "a name and a count were expected",
                }),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAT: &str = "cpu  10 0 10 10 0 0 0 0 0 0\n\
        cpu0 1590 7 1276 77889 349 3 23 10 0 0\n\
        cpu1 1 2 3 4 5 6 7 8\n\
        intr 5 0 0\n\
        ctxt 987654321\n\
        btime 1\n";

    #[test]
    fn a_core_line_is_read_column_by_column() {
        let stat = parse_stat(STAT).unwrap();
        assert_eq!(stat.context_switches, 987_654_321);
        assert_eq!(stat.interrupts, Some(5));
        assert_eq!(stat.cores.len(), 2);
        let expected = CoreTicks {
            core: 0,
            user: 1590,
            nice: 7,
            system: 1276,
            idle: 77889 + 349,
            irq: 3,
            softirq: 23,
            steal: 10,
        };
        assert_eq!(stat.cores[0], expected);
        assert_eq!(stat.cores[1].steal, 8);
    }

    #[test]
    fn a_broken_core_line_is_named() {
        let error = parse_stat("cpu0 1 2 3\nctxt 1\n").unwrap_err();
        assert_eq!(error.line, 1);
        assert_eq!(
            error.to_string(),
            "/proc/stat, line 1: eight counts of ticks were expected; \
             is this kernel newer than this nicpoll?"
        );
        assert!(parse_stat("cpu0 1 2 3 4 5 6 7 8\n").is_err());
        assert!(parse_stat("ctxt 3\n").is_err());
    }

    #[test]
    fn softnet_counts_are_the_second_and_third_columns_in_hexadecimal() {
        let text = "0000272d 0000001f 00000001 0 0 0 0 0 0 0\n00000000 ffffffff 0000001a\n";
        let cores = parse_softnet(text).unwrap();
        let counts: Vec<_> = cores.iter().map(|it| (it.dropped, it.cut_short)).collect();
        assert_eq!(counts, [(31, 1), (u32::MAX, 26)]);
        assert!(parse_softnet("").is_err());
        assert_eq!(parse_softnet("1 2 3\n3\n").unwrap_err().line, 2);
    }

    #[test]
    fn interfaces_have_their_columns() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets ...\n\
                    \x20   lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
                    eth0:1:100 200 0 7 0 0 0 0 300 400 0 9 0 0 0 0\n";
        let interfaces = parse_net_dev(text).unwrap();
        let names: Vec<&str> = interfaces.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["lo", "eth0:1"]);
        let link = interfaces[1].1;
        assert_eq!(
            (link.rx_bytes, link.rx_packets, link.rx_dropped),
            (100, 200, 7)
        );
        assert_eq!(
            (link.tx_bytes, link.tx_packets, link.tx_dropped),
            (300, 400, 9)
        );
        assert_eq!(parse_net_dev("a\nb\nem0: 1 2\n").unwrap_err().line, 3);
    }

    #[test]
    fn snmp_names_and_values_are_paired() {
        let text = "Tcp: RtoAlgorithm MaxConn InSegs\nTcp: 1 -1 77\n\
                    Udp: InDatagrams RcvbufErrors\nUdp: 5 6\n";
        let counters = parse_snmp(text).unwrap();
        assert_eq!(counters["Tcp.InSegs"], 77);
        assert_eq!(counters["Udp.RcvbufErrors"], 6);
        assert!(!counters.contains_key("Tcp.MaxConn"));
        assert!(parse_snmp("Udp: A B\nUdp: 1\n").is_err());
        assert_eq!(parse_netstat("odd").unwrap_err().file, "/proc/net/netstat");
        assert!(parse_snmp("Udp: A B\nTcp: 1 2\n").is_err());
    }

    #[test]
    fn snmp6_is_one_counter_a_line() {
        let counters = parse_snmp6("Ip6InReceives   \t5\nUdp6RcvbufErrors 9\n").unwrap();
        assert_eq!(counters["Udp6RcvbufErrors"], 9);
        assert_eq!(parse_snmp6("Ip6InReceives 1\nodd\n").unwrap_err().line, 2);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,200}(\n\\PC{0,80}){0,6}") {
            let _ = parse_stat(&text);
            let _ = parse_softnet(&text);
            let _ = parse_snmp(&text);
            let _ = parse_snmp6(&text);
        }
    }
}
