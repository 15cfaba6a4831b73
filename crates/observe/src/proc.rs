//! Files of /proc: parsers for counters of CPUs, interfaces, protocols, interrupts and tasks, and tick-sampled CPU time.
//!
//! A parser reads any text without a panic. It refuses unknown text, with its line.

use std::collections::BTreeMap;
use std::{fs, io};

use netlink_bindings::rt_link::RtnlLinkStats64;
use nicpoll_model::{CpuStates, ThreadShow};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::exact_cpu::{TaskTimes, ThreadTimes};

/// Why a kernel file does not parse.
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

/// A line of a file, for error messages.
#[derive(Clone, Copy)]
struct ProcLine(&'static str, usize);

impl ProcLine {
    fn lacks(self, expected: &'static str) -> ProcError {
        let ProcLine(file, line) = self;
        ProcError {
            file,
            line,
            expected,
        }
    }
}

/// Iterates over the lines of a file.
fn lines<'a>(file: &'static str, text: &'a str) -> impl Iterator<Item = (ProcLine, &'a str)> {
    (1..)
        .zip(text.lines())
        .map(move |(number, line)| (ProcLine(file, number), line))
}

/// Parses the leading counts of a line; `None` if there are fewer.
fn counts<'a, const N: usize>(words: impl Iterator<Item = &'a str>) -> Option<[u64; N]> {
    let counts = words.map_while(|word| word.parse().ok()).take(N);
    counts.collect::<Vec<u64>>().try_into().ok()
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
    /// Returns the ticks in which the core was busy: all but idle and steal.
    pub fn busy(self) -> u64 {
        self.user + self.nice + self.system + self.irq + self.softirq
    }
}

/// The cores, context switches and interrupts in `/proc/stat` at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuSample {
    /// One entry for each online core.
    pub cores: Vec<CoreTicks>,
    /// Context switches since boot, over all cores.
    pub context_switches: u64,
    /// Interrupts since boot, over all cores: of devices, of the timer and between cores. `None` if the file has no
    /// count.
    #[serde(default)]
    pub interrupts: Option<u64>,
}

/// Parses `/proc/stat` (proc_stat(5)).
pub fn parse_stat(text: &str) -> Result<CpuSample, ProcError> {
    const STAT: &str = "/proc/stat";
    let (mut cores, mut switches, mut interrupts) = (Vec::new(), None, None);
    for (at, line) in lines(STAT, text) {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words = rest.split_ascii_whitespace();
        let core = name.strip_prefix("cpu").filter(|core| !core.is_empty());
        match (name, core) {
            ("ctxt", _) => {
                let [count] = counts(words)
                    .ok_or_else(|| at.lacks("a count of context switches was expected"))?;
                switches = Some(count);
            }
            ("intr", _) => {
                let [count] =
                    counts(words).ok_or_else(|| at.lacks("a count of interrupts was expected"))?;
                interrupts = Some(count);
            }
            (_, Some(core)) => {
                let core = core.parse();
                let core =
                    core.map_err(|_| at.lacks("a core's number was expected after 'cpu'"))?;
                let [user, nice, system, idle, iowait, irq, softirq, steal] =
                    counts(words).ok_or_else(|| at.lacks("eight counts of ticks were expected"))?;
                cores.push(CoreTicks {
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
            _ => {}
        }
    }
    let end = ProcLine(STAT, text.lines().count());
    if cores.is_empty() {
        return Err(end.lacks("a line for each core was expected"));
    }
    Ok(CpuSample {
        cores,
        context_switches: switches.ok_or_else(|| end.lacks("a line 'ctxt' was expected"))?,
        interrupts,
    })
}

/// Parses the counters of each interface by name from `/proc/net/dev`. Its received drops include frames for which the
/// card had no descriptor.
pub fn parse_net_dev(text: &str) -> Result<Vec<(&str, LinkCounters)>, ProcError> {
    // The first two lines are headings.
    let interfaces = lines("/proc/net/dev", text).skip(2).map(|(at, line)| {
        let (name, columns) = line
            .rsplit_once(':')
            .ok_or_else(|| at.lacks("an interface and ':' were expected"))?;
        let columns: [u64; 12] = counts(columns.split_ascii_whitespace())
            .ok_or_else(|| at.lacks("eight counts for each direction were expected"))?;
        let link = LinkCounters {
            rx_bytes: columns[0],
            rx_packets: columns[1],
            rx_dropped: columns[3],
            tx_bytes: columns[8],
            tx_packets: columns[9],
            tx_dropped: columns[11],
            rx_missed: 0,
        };
        Ok((name.trim(), link))
    });
    interfaces.collect()
}

/// Counts of one core in `/proc/net/softnet_stat`. Each has 32 bits and wraps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Softnet {
    /// Packets dropped because the backlog queue was full, or by its flow limit.
    pub dropped: u32,
    /// How often the receive softirq ended with packets left because budget or time ran out (`time_squeeze`).
    pub cut_short: u32,
}

/// Parses `/proc/net/softnet_stat`: a line for each online core.
pub fn parse_softnet(text: &str) -> Result<Vec<Softnet>, ProcError> {
    const SOFTNET: &str = "/proc/net/softnet_stat";
    let cores = lines(SOFTNET, text).map(|(at, line)| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let mut next = |expected| {
            let count = words
                .next()
                .and_then(|word| u32::from_str_radix(word, 16).ok());
            count.ok_or_else(|| at.lacks(expected))
        };
        Ok(Softnet {
            dropped: next("a hexadecimal count of drops was expected in the second column")?,
            cut_short: next("a hexadecimal count was expected in the third column")?,
        })
    });
    let cores: Vec<Softnet> = cores.collect::<Result<_, _>>()?;
    if cores.is_empty() {
        return Err(ProcLine(SOFTNET, 0).lacks("a line for each core was expected"));
    }
    Ok(cores)
}

/// Parses counters of the IPv4 protocols by `Protocol.Name` (`Udp.RcvbufErrors`) from `/proc/net/snmp`: pairs of lines,
/// names first.
pub fn parse_snmp(text: &str) -> Result<BTreeMap<String, u64>, ProcError> {
    parse_pairs("/proc/net/snmp", text)
}

/// Parses further counters of the IPv4 protocols from `/proc/net/netstat`, by name as in [`parse_snmp`]
/// (`TcpExt.IPReversePathFilter`).
pub fn parse_netstat(text: &str) -> Result<BTreeMap<String, u64>, ProcError> {
    parse_pairs("/proc/net/netstat", text)
}

fn parse_pairs(file: &'static str, text: &str) -> Result<BTreeMap<String, u64>, ProcError> {
    let mut counters = BTreeMap::new();
    let mut lines = lines(file, text);
    while let Some((at, names)) = lines.next() {
        let (protocol, names) = names
            .split_once(':')
            .ok_or_else(|| at.lacks("a protocol and ':' were expected"))?;
        let values = lines
            .next()
            .and_then(|(_, values)| values.strip_prefix(protocol)?.strip_prefix(':'))
            .ok_or_else(|| at.lacks("a line of values of the same protocol was expected below"))?;
        let mut values = values.split_ascii_whitespace();
        for name in names.split_ascii_whitespace() {
            let value = values
                .next()
                .ok_or_else(|| at.lacks("as many values as names were expected"))?;
            // Tcp.MaxConn is -1, which is not a count.
            if let Ok(value) = value.parse() {
                counters.insert(format!("{protocol}.{name}"), value);
            }
        }
    }
    Ok(counters)
}

/// Parses counters of the IPv6 protocols by name (`Udp6RcvbufErrors`) from `/proc/net/snmp6`.
pub fn parse_snmp6(text: &str) -> Result<BTreeMap<String, u64>, ProcError> {
    let counters = lines("/proc/net/snmp6", text).map(|(at, line)| {
        let counter = line
            .split_once(char::is_whitespace)
            .and_then(|(name, value)| Some((String::from(name), value.trim().parse().ok()?)));
        counter.ok_or_else(|| at.lacks("a name and a count were expected"))
    });
    counters.collect()
}

/// Counters of an interface, as `ip -s link` shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCounters {
    /// Frames handed to the driver and not dropped.
    pub tx_packets: u64,
    /// Their bytes, from the Ethernet header to the end of the payload.
    pub tx_bytes: u64,
    /// Frames that the driver dropped. On veth: the peer's ring or backlog was full.
    pub tx_dropped: u64,
    /// Frames received.
    pub rx_packets: u64,
    /// Their bytes, counted like the sent ones.
    pub rx_bytes: u64,
    /// Frames received and dropped before a protocol saw them.
    pub rx_dropped: u64,
    /// Frames for which the card had no receive descriptor.
    pub rx_missed: u64,
}

impl LinkCounters {
    /// Returns the increase since `earlier`.
    pub(crate) fn since(self, earlier: LinkCounters) -> LinkCounters {
        let grown = |of: fn(&LinkCounters) -> u64| of(&self).saturating_sub(of(&earlier));
        LinkCounters {
            tx_packets: grown(|link| link.tx_packets),
            tx_bytes: grown(|link| link.tx_bytes),
            tx_dropped: grown(|link| link.tx_dropped),
            rx_packets: grown(|link| link.rx_packets),
            rx_bytes: grown(|link| link.rx_bytes),
            rx_dropped: grown(|link| link.rx_dropped),
            rx_missed: grown(|link| link.rx_missed),
        }
    }
}

impl From<RtnlLinkStats64> for LinkCounters {
    fn from(stats: RtnlLinkStats64) -> Self {
        LinkCounters {
            tx_packets: stats.tx_packets,
            tx_bytes: stats.tx_bytes,
            tx_dropped: stats.tx_dropped,
            rx_packets: stats.rx_packets,
            rx_bytes: stats.rx_bytes,
            rx_dropped: stats.rx_dropped,
            rx_missed: stats.rx_missed_errors,
        }
    }
}

const FILE: &str = "/proc/interrupts";
/// More than any machine has CPUs.
const CPUS_MAX: usize = 8_192;

/// A line of `/proc/interrupts`: one source of interrupts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptLine {
    /// Its number, or its name if it has none (`LOC`).
    pub irq: String,
    /// Interrupts since boot by online CPU: its number, and the count.
    pub by_cpu: Vec<(u32, u64)>,
    /// Controller, trigger and names of its users, as the kernel writes them.
    pub description: String,
}

impl InterruptLine {
    /// Returns the interrupts since boot on all CPUs.
    pub fn total(&self) -> u64 {
        self.by_cpu
            .iter()
            .fold(0, |sum: u64, (_, count)| sum.saturating_add(*count))
    }

    /// Whether this line belongs to a device: by the address on its bus (`0000:00:03.0`), which kernels write since
    /// 6.2, or by the interface's name, which many drivers use (`eth0-TxRx-0`).
    pub fn is_of(&self, interface: &str, bus_address: Option<&str>) -> bool {
        let mut words = self.description.split_ascii_whitespace();
        let by_bus = |word: &str, address: &str| {
            let end = word.len().checked_sub(address.len());
            end.is_some_and(|end| {
                word.ends_with(address) && (end == 0 || word[..end].ends_with('-'))
            })
        };
        let by_name = |word: &str| {
            let rest = word.strip_prefix(interface);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '@', ':', ',']))
        };
        words.any(|word| bus_address.is_some_and(|address| by_bus(word, address)) || by_name(word))
    }
}

/// Parses every line of `/proc/interrupts` with counts by CPU.
///
/// # Errors
/// When the first line does not name CPUs, or a line has an invalid count.
pub fn parse_interrupts(text: &str) -> Result<Vec<InterruptLine>, ProcError> {
    let mut lines = lines(FILE, text);
    let cpus = lines.next().and_then(|(_, line)| parse_cpus(line));
    let cpus = cpus
        .ok_or_else(|| ProcLine(FILE, 1).lacks("the names of CPUs were expected, such as CPU0"))?;
    let mut sources = Vec::new();
    for (at, line) in lines {
        let (irq, rest) = line
            .split_once(':')
            .ok_or_else(|| at.lacks("a source and ':' were expected"))?;
        let mut rest = rest.trim_start();
        let mut by_cpu = Vec::new();
        for &cpu in &cpus {
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            match word.parse() {
                Ok(count) => by_cpu.push((cpu, count)),
                // ERR and MIS have one count for the whole machine.
                Err(_) if word.is_empty() => break,
                Err(_) => return Err(at.lacks("a count for each CPU was expected")),
            }
            rest = after.trim_start();
        }
        if by_cpu.len() == cpus.len() {
            sources.push(InterruptLine {
                irq: String::from(irq.trim()),
                by_cpu,
                description: String::from(rest.trim_end()),
            });
        }
    }
    Ok(sources)
}

fn parse_cpus(line: &str) -> Option<Vec<u32>> {
    let cpus: Option<Vec<u32>> = line
        .split_ascii_whitespace()
        .take(CPUS_MAX)
        .map(|word| word.strip_prefix("CPU")?.parse().ok())
        .collect();
    cpus.filter(|cpus| !cpus.is_empty())
}

/// Reads the state of a thread.
///
/// # Errors
/// `NotFound` when the thread does not exist.
pub fn thread(pid: u32) -> io::Result<ThreadShow> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let (name, state) = parse_task_stat(&stat).map_err(io::Error::other)?;
    Ok(ThreadShow {
        pid,
        name: String::from(name),
        state,
        cpus: parse_allowed_cpus(&status).map(String::from),
    })
}

/// Parses the name and state in `/proc/PID/stat`. The name may contain anything, even parentheses.
pub fn parse_task_stat(text: &str) -> Result<(&str, char), ProcError> {
    let parse = || {
        let (before, after) = text.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let state = after.split_ascii_whitespace().next()?.chars().next()?;
        Some((name, state))
    };
    let expected = "a number, a name in parentheses and a letter were expected";
    parse().ok_or_else(|| ProcLine("/proc/PID/stat", 1).lacks(expected))
}

/// Returns the CPU time of every process by the scheduler's clock, all its threads together, in whole ticks.
pub fn processes() -> io::Result<Vec<ThreadTimes>> {
    let each = fs::read_dir("/proc")?.flatten().filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        // One that ends meanwhile has no more.
        parse_process(pid, &fs::read_to_string(entry.path().join("stat")).ok()?)
    });
    Ok(each.collect())
}

fn parse_process(pid: u32, stat: &str) -> Option<ThreadTimes> {
    let (name, _) = parse_task_stat(stat).ok()?;
    // Fields 14 and 15 of proc_pid_stat(5); the third is the first after the name.
    let (_, after) = stat.rsplit_once(')')?;
    let mut ticks = after.split_ascii_whitespace().skip(11);
    let mut ns = || Some(ticks.next()?.parse::<u64>().ok()? * NS_PER_TICK);
    Some(ThreadTimes {
        tid: pid,
        pid,
        starter_pid: None,
        name: String::from(name),
        times: TaskTimes {
            user_ns: ns()?,
            nice_ns: 0,
            system_ns: ns()?,
        },
        slices: 0,
    })
}

/// Returns `Cpus_allowed_list` of `/proc/PID/status`.
pub fn parse_allowed_cpus(text: &str) -> Option<&str> {
    let mut lines = text.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim())
}

/// `USER_HZ`: ticks per second in `/proc/stat`, fixed by the kernel's ABI on every architecture that nicpoll supports.
pub const TICKS_PER_SECOND: f64 = 100.0;
const NS_PER_TICK: u64 = 10_000_000;

/// Changes between two samples.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuDelta {
    /// Shares by core, in the requested order.
    pub states: Vec<CpuStates>,
    /// The ticks of each.
    pub ticks: Vec<CoreTicks>,
    /// Context switches of the whole machine.
    pub context_switches: u64,
    /// Interrupts of the whole machine; `None` if the kernel does not report them.
    pub interrupts: Option<u64>,
}

impl CpuSample {
    /// Reads `/proc/stat` now.
    pub fn now() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/stat")?;
        parse_stat(&text).map_err(io::Error::other)
    }

    /// Returns the numbers of online cores.
    pub fn cores(&self) -> Vec<u32> {
        self.cores.iter().map(|ticks| ticks.core).collect()
    }

    /// Returns the changes of `cores` since `earlier`. Cores missing in one of the samples are left out.
    pub fn since(&self, earlier: &CpuSample, cores: &[u32]) -> CpuDelta {
        let interrupts = self.interrupts.zip(earlier.interrupts);
        let mut delta = CpuDelta {
            states: Vec::new(),
            ticks: Vec::new(),
            context_switches: self
                .context_switches
                .saturating_sub(earlier.context_switches),
            interrupts: interrupts.map(|(now, then)| now.saturating_sub(then)),
        };
        let find = |sample: &CpuSample, core| {
            let mut cores = sample.cores.iter();
            cores.find(|ticks| ticks.core == core).copied()
        };
        for &core in cores {
            if let (Some(before), Some(after)) = (find(earlier, core), find(self, core)) {
                let (states, ticks) = between(before, after);
                delta.states.push(states);
                delta.ticks.push(ticks);
            }
        }
        delta
    }
}

impl CpuDelta {
    /// Returns the states of each core in a window of this length. A kernel that stops the tick of idle CPUs knows idle
    /// time by the clock, and misses ticks of what they do meanwhile: what was neither idle nor stolen is busy, and ticks
    /// only divide that.
    pub fn states_in(&self, seconds: f64) -> Vec<CpuStates> {
        let all = (seconds * TICKS_PER_SECOND).max(1.0);
        let of_core = |core: &CoreTicks| {
            let [idle_ratio, steal_ratio] =
                [core.idle, core.steal].map(|ticks| (ticks as f64 / all).min(1.0));
            let busy = (1.0 - idle_ratio - steal_ratio).max(0.0);
            let part = |ticks: u64| busy * ticks as f64 / core.busy().max(1) as f64;
            let [user_ratio, nice_ratio] = [core.user, core.nice].map(part);
            let [irq_ratio, softirq_ratio] = [core.irq, core.softirq].map(part);
            CpuStates {
                core: core.core,
                user_ratio,
                nice_ratio,
                // The kernel's, too, where no tick found anything.
                system_ratio: (busy - user_ratio - nice_ratio - irq_ratio - softirq_ratio).max(0.0),
                irq_ratio,
                softirq_ratio,
                idle_ratio,
                steal_ratio,
            }
        };
        self.ticks.iter().map(of_core).collect()
    }
}

/// Shares of the ticks between two samples, and their numbers. The kernel's idle and iowait counts can step back
/// slightly, so subtraction saturates.
fn between(before: CoreTicks, after: CoreTicks) -> (CpuStates, CoreTicks) {
    let grown = |of: fn(CoreTicks) -> u64| of(after).saturating_sub(of(before));
    let ticks = CoreTicks {
        core: after.core,
        user: grown(|it| it.user),
        nice: grown(|it| it.nice),
        system: grown(|it| it.system),
        idle: grown(|it| it.idle),
        irq: grown(|it| it.irq),
        softirq: grown(|it| it.softirq),
        steal: grown(|it| it.steal),
    };
    let total = (ticks.busy() + ticks.idle + ticks.steal).max(1);
    let share = |part: u64| part as f64 / total as f64;
    let states = CpuStates {
        core: after.core,
        user_ratio: share(ticks.user),
        nice_ratio: share(ticks.nice),
        system_ratio: share(ticks.system),
        irq_ratio: share(ticks.irq),
        softirq_ratio: share(ticks.softirq),
        idle_ratio: share(ticks.idle),
        steal_ratio: share(ticks.steal),
    };
    (states, ticks)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Shows the result or the error.
    fn shown<T: std::fmt::Debug>(read: Result<T, ProcError>) -> String {
        read.map_or_else(|error| error.to_string(), |read| format!("{read:?}"))
    }

    #[test]
    fn files_are_read_column_by_column_or_the_line_at_fault_is_named() {
        nicpoll_testkit::golden_cases("src/proc_cases.txt", |file, text| match file {
            "stat" => shown(parse_stat(text)),
            "softnet" => shown(parse_softnet(text)),
            "net/dev" => shown(parse_net_dev(text)),
            "snmp" => shown(parse_snmp(text)),
            "netstat" => shown(parse_netstat(text)),
            "snmp6" => shown(parse_snmp6(text)),
            "interrupts" => shown(parse_interrupts(text)),
            "task" => shown(parse_task_stat(text)),
            _ => format!("{:?}", parse_allowed_cpus(text)),
        });
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,200}(\n\\PC{0,80}){0,6}") {
            let _ = parse_stat(&text);
            let _ = parse_softnet(&text);
            let _ = parse_snmp(&text);
            let _ = parse_snmp6(&text);
        }

        #[test]
        fn any_interrupts_are_read_or_refused(text in "(CPU[0-9]{1,3} ){0,3}\n(\\PC{0,40}\n){0,4}") {
            for line in parse_interrupts(&text).unwrap_or_default() {
                let _ = line.is_of("e", Some("é"));
            }
        }
    }

    const TEXT: &str = "           CPU0       CPU2       \n \
        38:          5       9219  PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\n \
        41:       2458          0  IR-PCI-MSI 524289-edge      eth0-TxRx-0\n";

    #[test]
    fn a_line_belongs_to_a_device_by_its_address_or_its_name() {
        let lines = parse_interrupts(TEXT).unwrap();
        assert_eq!(lines[0].total(), 9224);
        assert!(lines[0].is_of("eth0", Some("0000:00:03.0")));
        assert!(!lines[0].is_of("eth0", Some("00:03.0")));
        assert!(!lines[0].is_of("eth0", None));
        assert!(lines[1].is_of("eth0", Some("0000:00:09.0")));
        assert!(!lines[1].is_of("eth", None));
        assert!(!lines[1].is_of("eth00", None));
    }

    #[test]
    fn a_process_has_the_time_of_all_its_threads() {
        let text = "812 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 25 7 7 20 0 1 0 9";
        let process = parse_process(812, text).unwrap();
        assert_eq!((process.pid, process.name.as_str()), (812, "a) b"));
        assert_eq!(process.times.user_ns, 1_500_000_000);
        assert_eq!(process.times.system_ns, 250_000_000);
        assert_eq!(parse_process(812, "812 (a) S 1"), None);
    }

    fn sample(text: &str) -> CpuSample {
        parse_stat(text).unwrap()
    }

    #[test]
    fn shares_are_of_the_time_between_the_samples() {
        let before = sample("cpu0 100 0 100 1000 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0\nintr 7\nctxt 50\n");
        let after =
            sample("cpu0 110 0 120 1050 10 0 10 0\ncpu1 0 0 0 0 0 0 0 0\nintr 9 1\nctxt 150\n");
        let delta = after.since(&before, &[0]);
        assert_eq!(delta.context_switches, 100);
        assert_eq!(delta.interrupts, Some(2));
        // In 2 s: 0.6 idle, 0.1 stolen, and the ticks that there were divide the rest.
        let stolen =
            sample("cpu0 110 0 120 1050 10 0 10 10\ncpu1 0 0 0 0 0 0 0 0\nintr 9 1\nctxt 150\n");
        let with_stolen = stolen.since(&before, &[0]);
        let states = with_stolen.states_in(2.0)[0];
        let near = |ratio: f64, expected: f64| (ratio - expected).abs() < 1e-9;
        assert!(near(states.idle_ratio, 0.3) && near(states.steal_ratio, 0.05));
        assert!(near(states.busy(), 0.65));
        assert!(near(states.user_ratio, 0.65 * 10.0 / 40.0));
        assert_eq!(with_stolen.states_in(0.5)[0].busy(), 0.0);
        let states = delta.states[0];
        assert_eq!(
            (states.user_ratio, states.system_ratio, states.softirq_ratio),
            (0.1, 0.2, 0.1)
        );
        assert_eq!(states.idle_ratio, 0.6);
        assert!((states.busy() - 0.4).abs() < 1e-12);
    }

    #[test]
    fn a_core_that_went_away_is_left_out() {
        let before = sample("cpu0 0 0 0 0 0 0 0 0\nctxt 0\n");
        assert!(before.since(&before, &[7]).states.is_empty());
        assert_eq!(before.cores(), [0]);
    }

    #[test]
    fn this_machine_is_read() {
        assert!(!CpuSample::now().unwrap().cores.is_empty());
        let text = std::fs::read_to_string(FILE).unwrap();
        assert!(!parse_interrupts(&text).unwrap().is_empty());
        let task = thread(std::process::id()).unwrap();
        assert!(!task.name.is_empty() && task.cpus.is_some());
        assert!(thread(u32::MAX).is_err());
    }
}
