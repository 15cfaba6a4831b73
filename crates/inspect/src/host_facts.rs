//! Facts about the machine, for the record of a measurement and for checks. They are the same in every namespace.

use std::fs;
use std::io;

use nicpoll_model::HostFacts;
use nicpoll_sys::schedule;

/// Boot options that change the cost of receiving.
const BOOT_OPTIONS: [&str; 8] = [
    "mitigations",
    "preempt",
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
    "idle",
    "threadirqs",
    "clocksource",
];

/// Sysctls that affect traffic: receiving and steering of packets, buffer limits, the queueing discipline, and TCP's
/// congestion control.
const SYSCTLS: [&str; 22] = [
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.dev_weight",
    "net.core.dev_weight_rx_bias",
    "net.core.dev_weight_tx_bias",
    "net.core.gro_normal_batch",
    "net.core.netdev_max_backlog",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.rps_default_mask",
    "net.core.rps_sock_flow_entries",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.core.default_qdisc",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_rmem_min",
    "net.ipv4.udp_wmem_min",
    "kernel.sched_rt_runtime_us",
];

/// Reads the facts; those that the kernel does not show are left out.
///
/// # Errors
/// When the CPUs of this process are not known.
pub fn host_facts() -> io::Result<HostFacts> {
    let uname = rustix::system::uname();
    let cpus = schedule::allowed_cpus()?;
    let governors = cpus
        .iter()
        .filter_map(|cpu| {
            text(&format!(
                "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"
            ))
        })
        .collect();
    let cmdline = text("/proc/cmdline").unwrap_or_default();
    let boot_options = cmdline
        .split_ascii_whitespace()
        .filter(|option| BOOT_OPTIONS.contains(&option.split('=').next().unwrap_or_default()))
        .map(String::from)
        .collect();
    let id = text("/etc/machine-id");
    Ok(HostFacts {
        machine: id.and_then(|id| machine(&uname.nodename().to_string_lossy(), &id)),
        kernel: format!(
            "{} {} {}",
            uname.sysname().to_string_lossy(),
            uname.release().to_string_lossy(),
            uname.version().to_string_lossy()
        ),
        cpu_model: text("/proc/cpuinfo").and_then(|text| cpu_model(&text)),
        cpus,
        clocksource: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        governors,
        boot_options,
        sysctls: sysctls(),
    })
}

/// Identifies a machine by its name and eight digits of a hash of its id, which has to stay secret (machine-id(5)).
/// `None` without a valid id: images have an empty one, or `uninitialized`, until their first boot.
fn machine(hostname: &str, id: &str) -> Option<String> {
    let is_one = id.len() == 32 && id.bytes().all(|it| it.is_ascii_hexdigit());
    // FNV-1a: equal in every version, and sufficient to distinguish machines.
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // Half of the digits: too few to search for the id.
    is_one.then(|| format!("{hostname}-{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff)))
}

/// Returns the sysctls that affect traffic, with their values; those that the caller's namespace does not show are left
/// out.
pub fn sysctls() -> Vec<(String, String)> {
    let value = |name: &&str| {
        let text = text(&format!("/proc/sys/{}", name.replace('.', "/")))?;
        let words: Vec<&str> = text.split_whitespace().collect();
        Some((String::from(*name), words.join(" ")))
    };
    SYSCTLS.iter().filter_map(value).collect()
}

/// Returns the trimmed text of a file; `None` if it cannot be read.
pub(crate) fn text(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(String::from(text.trim()))
}

/// Whether this clock source is read in user mode: without a system call, and without the hypervisor.
pub fn is_read_in_user_mode(clocksource: &str) -> bool {
    // x86 and Arm.
    matches!(clocksource, "tsc" | "arch_sys_counter")
}

/// The first processor's name; on Arm, where the kernel shows none, its implementer and part numbers.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    let value = |name: &str| {
        let fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        let mut values = fields.filter(|(field, _)| field.trim_end() == name);
        values.next().map(|(_, value)| value.trim())
    };
    if let Some(name) = value("model name") {
        return Some(String::from(name));
    }
    let (implementer, part) = (value("CPU implementer")?, value("CPU part")?);
    Some(format!("Arm, implementer {implementer}, part {part}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_of_one_name_are_told_apart_by_a_hash() {
        let one = machine("bench", "0123456789abcdef0123456789abcdef").unwrap();
        let other = machine("bench", "0123456789abcdef0123456789abcdee").unwrap();
        assert_ne!(one, other);
        assert_eq!((&one[..6], one.len()), ("bench-", 14));
        assert!(!one.contains("01234567"));
        assert_eq!(machine("bench", "uninitialized"), None);
        assert_eq!(machine("bench", ""), None);
    }

    #[test]
    fn the_model_is_the_first_processors() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t: fpu\n";
        assert_eq!(cpu_model(text).as_deref(), Some("AMD EPYC"));
        let text = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\nprocessor\t: 1\n";
        let arm = "Arm, implementer 0x41, part 0xd0c";
        assert_eq!(cpu_model(text).as_deref(), Some(arm));
        assert_eq!(cpu_model("processor : 0\n"), None);
    }
}
