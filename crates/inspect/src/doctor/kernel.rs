//! What the running kernel can do, each by trying or asking for it, never by version.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;

use nicpoll_model::{Check, CheckGroup, CheckStatus};
use nicpoll_observe::{DropReasons, RhythmWatch};
use nicpoll_switch::{Abilities, napi_list};
use nicpoll_sys::socket;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};

use super::{check, with_remedy};
use crate::show::THREADED_BUSY_POLL;

const GROUP: CheckGroup = CheckGroup::Kernel;

pub fn checks() -> Vec<Check> {
    let unlisted = napi_list().err().map(|error| error.to_string());
    let mut checks = of_napi(unlisted, &Abilities::probe());
    checks.push(of_bpf());
    checks.push(of_drop_reasons());
    checks.push(of_af_xdp());
    checks.extend(of_trains());
    checks.push(of_namespaces());
    checks
}

/// There, or not there and not needed by anything in this program.
fn optional(name: &str, is_there: bool, there: &str, absent: &str) -> Check {
    if is_there {
        check(GROUP, name, CheckStatus::Good, there)
    } else {
        check(GROUP, name, CheckStatus::Absent, absent)
    }
}

/// What the kernel can do with single NAPI instances; `unlisted` says why it does not list them, if so.
fn of_napi(unlisted: Option<String>, abilities: &Abilities) -> Vec<Check> {
    let name = "NAPI instances";
    let listed = match unlisted {
        None => check(GROUP, name, CheckStatus::Good, "the kernel lists them"),
        Some(why) => with_remedy(
            check(GROUP, name, CheckStatus::Missing, why),
            "a kernel from Linux 6.8 on; on older ones interfaces can be set, but nothing tells their polls apart",
        ),
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
    // With nothing to watch, the programs are loaded and taken away again.
    match RhythmWatch::begin(&[]) {
        Ok(_) => check(
            GROUP,
            "BPF programs",
            CheckStatus::Good,
            "the programs that watch polls load and attach",
        ),
        Err(error) => with_remedy(
            check(
                GROUP,
                "BPF programs",
                CheckStatus::Missing,
                error.to_string(),
            ),
            "run it as root, on a kernel with CONFIG_DEBUG_INFO_BTF and CONFIG_BPF_EVENTS",
        ),
    }
}

fn of_drop_reasons() -> Check {
    let name = "drop reasons";
    match DropReasons::begin(&[]) {
        Ok(_) => {
            let finding = "the kernel says why it drops a packet: no loss goes without a name";
            check(GROUP, name, CheckStatus::Good, finding)
        }
        Err(error) => with_remedy(
            check(GROUP, name, CheckStatus::Missing, error.to_string()),
            "run it as root, on Linux 5.17 or later with CONFIG_DEBUG_INFO_BTF; without, give each rule \
             of a filter that drops a counter",
        ),
    }
}

fn of_af_xdp() -> Check {
    let name = "AF_XDP";
    match rustix::net::socket(AddressFamily::XDP, SocketType::RAW, None) {
        Ok(_) => check(
            GROUP,
            name,
            CheckStatus::Good,
            "frames can go straight to a program",
        ),
        Err(Errno::PERM) => check(
            GROUP,
            name,
            CheckStatus::Unknown,
            "only CAP_NET_RAW may ask for such a socket",
        ),
        Err(error) => check(
            GROUP,
            name,
            CheckStatus::Absent,
            format!("no such sockets: {error}"),
        ),
    }
}

fn of_trains() -> Vec<Check> {
    let probe = |name: &str, there: &str, set: &dyn Fn(&UdpSocket) -> std::io::Result<()>| {
        // Not to loopback's own address, which is not there while it is down.
        match UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| set(&socket)) {
            Ok(()) => check(GROUP, name, CheckStatus::Good, there),
            Err(error) => check(GROUP, name, CheckStatus::Absent, error.to_string()),
        }
    };
    vec![
        probe("UDP_SEGMENT", "many datagrams a send call", &|socket| {
            socket::set_segment(socket, 64)
        }),
        probe("UDP_GRO", "many datagrams a receive call", &|socket| {
            socket::enable_coalescing(socket)
        }),
    ]
}

fn of_namespaces() -> Check {
    let name = "network namespaces";
    let limit = fs::read_to_string("/proc/sys/user/max_net_namespaces");
    let limit: Option<u64> = limit.ok().and_then(|text| text.trim().parse().ok());
    if !Path::new("/proc/self/ns/net").exists() {
        let finding = "not in this kernel; the demo's hosts are namespaces";
        return with_remedy(
            check(GROUP, name, CheckStatus::Missing, finding),
            "a kernel with CONFIG_NET_NS",
        );
    }
    if limit == Some(0) {
        let finding = "user.max_net_namespaces is 0: none can be made";
        return with_remedy(
            check(GROUP, name, CheckStatus::Missing, finding),
            "sysctl user.max_net_namespaces=1000",
        );
    }
    check(
        GROUP,
        name,
        CheckStatus::Good,
        "hosts of the demo can be made",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
