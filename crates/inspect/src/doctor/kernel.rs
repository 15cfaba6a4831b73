//! Checks of the privileges of this process and of the kernel's features, by trying or asking, never by version.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;

use nicpoll_model::{Check, CheckGroup};
use nicpoll_observe::{DropReasons, RhythmWatch};
use nicpoll_switch::{Abilities, napi_list};
use nicpoll_sys::privilege::{self, Capability};
use nicpoll_sys::socket;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};

use super::check::Checks;
use crate::discipline::THREADED_BUSY_POLL;
use crate::error::{Doing, InspectError};

const PRIVILEGE: Checks = Checks(CheckGroup::Privilege);
const KERNEL: Checks = Checks(CheckGroup::Kernel);

/// The capabilities of this process, and its user namespace.
pub fn privileges() -> Result<Vec<Check>, InspectError> {
    let capabilities = privilege::capabilities().doing("asking for capabilities")?;
    let is_initial = privilege::in_initial_user_namespace().doing("reading /proc/self/uid_map")?;
    let mut checks: Vec<Check> = capabilities.iter().map(of_capability).collect();
    checks.push(of_user_namespace(is_initial));
    Ok(checks)
}

fn of_capability(capability: &Capability) -> Check {
    let Capability { name, purpose, .. } = capability;
    match capability.is_held {
        true => PRIVILEGE.good(name, *purpose),
        false => PRIVILEGE.missing(
            name,
            format!("not held; needed for {purpose}"),
            "run it as root, or grant it to the service or container",
        ),
    }
}

fn of_user_namespace(is_initial: bool) -> Check {
    let name = "user namespace";
    match is_initial {
        true => PRIVILEGE.good(name, "the initial one: polling knobs can be set"),
        false => PRIVILEGE.missing(
            name,
            "a mapped one: the kernel refuses the polling knobs even to its root",
            "run it on the host, or in a container without a user namespace",
        ),
    }
}

/// The features of the kernel.
pub fn checks() -> Vec<Check> {
    let unlisted = napi_list().err().map(|error| error.to_string());
    let mut checks = of_napi(unlisted, &Abilities::probe());
    checks.push(of_bpf());
    checks.push(of_drop_reasons());
    checks.push(of_af_xdp());
    let segment = |socket: &UdpSocket| socket::set_segment(socket, 64);
    checks.push(of_udp("UDP_SEGMENT", "many datagrams a send call", segment));
    let gro = |socket: &UdpSocket| socket::enable_coalescing(socket);
    checks.push(of_udp("UDP_GRO", "many datagrams a receive call", gro));
    checks.push(of_namespaces());
    checks
}

/// Single NAPI instances; `unlisted` says why the kernel does not list them, if so.
fn of_napi(unlisted: Option<String>, abilities: &Abilities) -> Vec<Check> {
    let name = "NAPI instances";
    let listed = match unlisted {
        None => KERNEL.good(name, "the kernel lists them"),
        Some(why) => KERNEL.missing(
            name,
            why,
            "a kernel from Linux 6.8 on; on older ones interfaces can be set, but nothing tells their polls apart",
        ),
    };
    // Nothing in this program needs these.
    let optional = |name, is_there, there: &str, absent: &str| match is_there {
        true => KERNEL.good(name, there),
        false => KERNEL.absent(name, absent),
    };
    let threaded = abilities.threaded_max;
    vec![
        listed,
        optional(
            "per-NAPI settings",
            abilities.has_napi_set,
            "napi-set: deferral can be set for each NAPI instance",
            "settings of whole interfaces only; Linux 6.13 has them",
        ),
        optional(
            "irq-suspend-timeout",
            abilities.has_suspend,
            "applications that poll may keep interrupts off",
            "not in this kernel; Linux 6.13 has it",
        ),
        optional(
            "per-NAPI threads",
            threaded.is_some(),
            "each NAPI instance can have a thread of its own",
            "threads for whole interfaces only; Linux 6.17 has them",
        ),
        optional(
            "threaded busy-poll",
            threaded.is_some_and(|most| most >= THREADED_BUSY_POLL),
            "a thread can poll without end",
            "not in this kernel; Linux 6.19 has it",
        ),
    ]
}

fn of_bpf() -> Check {
    let name = "BPF programs";
    // With nothing to watch, the programs are loaded and taken away again.
    match RhythmWatch::begin(&[]) {
        Ok(_) => KERNEL.good(name, "the programs that watch polls load and attach"),
        Err(error) => KERNEL.missing(
            name,
            error.to_string(),
            "run it as root, on a kernel with CONFIG_DEBUG_INFO_BTF and CONFIG_BPF_EVENTS",
        ),
    }
}

fn of_drop_reasons() -> Check {
    let name = "drop reasons";
    match DropReasons::begin(&[]) {
        Ok(_) => KERNEL.good(
            name,
            "the kernel says why it drops a packet: no loss goes without a name",
        ),
        Err(error) => KERNEL.missing(
            name,
            error.to_string(),
            "run it as root, on Linux 5.17 or later with CONFIG_DEBUG_INFO_BTF; without, give each rule \
             of a filter that drops a counter",
        ),
    }
}

fn of_af_xdp() -> Check {
    let name = "AF_XDP";
    match rustix::net::socket(AddressFamily::XDP, SocketType::RAW, None) {
        Ok(_) => KERNEL.good(name, "frames can go straight to a program"),
        Err(Errno::PERM) => KERNEL.unknown(name, "only CAP_NET_RAW may ask for such a socket"),
        Err(error) => KERNEL.absent(name, format!("no such sockets: {error}")),
    }
}

fn of_udp(name: &str, there: &str, set: impl Fn(&UdpSocket) -> io::Result<()>) -> Check {
    // Not to loopback's own address, which is absent while it is down.
    match UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| set(&socket)) {
        Ok(()) => KERNEL.good(name, there),
        Err(error) => KERNEL.absent(name, error.to_string()),
    }
}

fn of_namespaces() -> Check {
    let name = "network namespaces";
    let limit = fs::read_to_string("/proc/sys/user/max_net_namespaces");
    let limit: Option<u64> = limit.ok().and_then(|text| text.trim().parse().ok());
    if !Path::new("/proc/self/ns/net").exists() {
        let finding = "not in this kernel; the demo's hosts are namespaces";
        return KERNEL.missing(name, finding, "a kernel with CONFIG_NET_NS");
    }
    if limit == Some(0) {
        let finding = "user.max_net_namespaces is 0: none can be made";
        return KERNEL.missing(name, finding, "sysctl user.max_net_namespaces=1000");
    }
    KERNEL.good(name, "hosts of the demo can be made")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicpoll_model::CheckStatus;

    #[test]
    fn only_what_is_needed_is_missing() {
        let statuses = |unlisted, abilities: &Abilities| -> Vec<CheckStatus> {
            of_napi(unlisted, abilities)
                .iter()
                .map(|check| check.status)
                .collect()
        };
        use CheckStatus::{Absent, Good, Missing};
        let old = Abilities::default();
        let refused = Some(String::from("not supported"));
        assert_eq!(
            statuses(refused, &old),
            [Missing, Absent, Absent, Absent, Absent]
        );
        assert_eq!(statuses(None, &old), [Good, Absent, Absent, Absent, Absent]);
        let abilities = Abilities {
            has_napi_set: true,
            threaded_max: Some(1),
            has_suspend: true,
        };
        assert_eq!(statuses(None, &abilities), [Good, Good, Good, Good, Absent]);
    }

    #[test]
    fn this_kernel_is_asked() {
        let checks = checks();
        assert!(checks.iter().all(|check| !check.finding.is_empty()));
        assert!(checks.iter().any(|check| check.name == "UDP_SEGMENT"));
    }

    #[test]
    fn what_is_not_held_has_a_remedy() {
        let mut capability = Capability {
            name: "CAP_BPF",
            purpose: "counting",
            is_held: true,
        };
        assert_eq!(of_capability(&capability).status, CheckStatus::Good);
        capability.is_held = false;
        let missing = of_capability(&capability);
        assert_eq!(missing.status, CheckStatus::Missing);
        assert!(missing.remedy.is_some());
        assert!(!of_user_namespace(true).status.is_bad());
        assert!(of_user_namespace(false).status.is_bad());
    }
}
