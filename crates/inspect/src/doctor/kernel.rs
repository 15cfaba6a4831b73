//! Checks of this process's privileges and of the kernel's features, by trying or querying, never by version.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;

use nicpoll_model::{Check, CheckGroup};
use nicpoll_observe::{
    BpfError, DropReasons, ExactCpu, ExactCpuOptions, PacketDelays, PollCounter, RhythmWatch,
    RunQueue,
};
use nicpoll_switch::{Abilities, SwitchError, napi_list};
use nicpoll_sys::privilege::{self, Capability};
use nicpoll_sys::socket;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};

use super::check::{Outcome, absent, good, group, missing, unknown};
use crate::discipline::THREADED_BUSY_POLL;
use crate::error::{InspectError, NamedStep};

/// Checks the capabilities of this process, and its user namespace.
pub fn privileges() -> Result<Vec<Check>, InspectError> {
    let capabilities = privilege::capabilities().doing("asking for capabilities")?;
    let is_initial = privilege::in_initial_user_namespace().doing("reading /proc/self/uid_map")?;
    let own = capabilities
        .iter()
        .map(|one| (one.name, of_capability(one)));
    let outcomes = own.chain([("user namespace", of_user_namespace(is_initial))]);
    Ok(group(CheckGroup::Privilege, None, outcomes))
}

fn of_capability(capability: &Capability) -> Outcome {
    let purpose = capability.purpose;
    match capability.is_held {
        true => good(purpose),
        false => missing(
            format!("not held; needed for {purpose}"),
            "run it as root, or grant it to the service or container",
        ),
    }
}

fn of_user_namespace(is_initial: bool) -> Outcome {
    match is_initial {
        true => good("the initial one: polling knobs can be set"),
        false => missing(
            "a mapped one: the kernel refuses the polling knobs even to its root",
            "run it on the host, or in a container without a user namespace",
        ),
    }
}

/// Checks the features of the kernel.
pub fn checks() -> Vec<Check> {
    let segment = |socket: &UdpSocket| socket::set_segment(socket, 64);
    let gro = |socket: &UdpSocket| socket::enable_coalescing(socket);
    let others = [
        ("drop reasons", of_drop_reasons()),
        ("AF_XDP", of_af_xdp()),
        ("UDP_SEGMENT", of_udp("many datagrams a send call", segment)),
        ("UDP_GRO", of_udp("many datagrams a receive call", gro)),
        ("network namespaces", of_namespaces()),
        ("PID namespaces", of_containment()),
    ];
    let napi = of_napi(napi_list(), &Abilities::probe());
    let all = napi.into_iter().chain(of_bpf()).chain(others);
    group(CheckGroup::Kernel, None, all)
}

/// Checks features of single NAPI instances; `listed` says what lists them.
fn of_napi(
    listed: Result<&str, SwitchError>,
    abilities: &Abilities,
) -> Vec<(&'static str, Outcome)> {
    let listed = match listed {
        Ok(how) => good(how),
        Err(error) => missing(
            error.to_string(),
            "run it as root; without the list interfaces can be set, but their polls are not told apart",
        ),
    };
    let threaded = abilities.threaded_max;
    let optional = [
        (
            "per-NAPI settings",
            abilities.has_napi_set,
            "napi-set: deferral can be set for each NAPI instance",
            "settings of whole interfaces only; Linux 6.13 has them",
        ),
        (
            "irq-suspend-timeout",
            abilities.has_suspend,
            "applications that poll may keep interrupts off",
            "not in this kernel; Linux 6.13 has it",
        ),
        (
            "per-NAPI threads",
            threaded.is_some(),
            "each NAPI instance can have a thread of its own",
            "threads for whole interfaces only; Linux 6.17 has them",
        ),
        (
            "threaded busy-poll",
            threaded.is_some_and(|most| most >= THREADED_BUSY_POLL),
            "a thread can poll without end",
            "not in this kernel; Linux 6.19 has it",
        ),
    ];
    // All of these are optional.
    let optional = optional.map(|(name, is_there, there, not)| match is_there {
        true => (name, good(there)),
        false => (name, absent(not)),
    });
    let all = [("NAPI instances", listed)].into_iter();
    all.chain(optional).collect()
}

/// Loads every object of programs that count, and unloads it at once.
fn of_bpf() -> [(&'static str, Outcome); 5] {
    let all: [(_, Result<String, BpfError>); 5] = [
        (
            "exact CPU time",
            purpose(
                "each change of a CPU's state is timed",
                ExactCpu::load(&ExactCpuOptions::default()),
            ),
        ),
        (
            "polls",
            purpose("with what began them", RhythmWatch::begin(&[])),
        ),
        (
            "polls of trials",
            purpose("how many there are", PollCounter::load()),
        ),
        (
            "packet delays",
            PacketDelays::begin(&BTreeMap::new(), 1, Vec::new()).map(|delays| {
                let unseen = delays.unseen().into_iter();
                let but_for = unseen.map(|unseen| format!("; not {}: {}", unseen.what, unseen.why));
                format!("until programs read them{}", but_for.collect::<String>())
            }),
        ),
        (
            "waits for a CPU",
            purpose("from being woken to running", RunQueue::begin(0, true)),
        ),
    ];
    all.map(|(name, loaded)| match loaded {
        Ok(there) => (name, good(there)),
        Err(error) => (
            name,
            missing(
                error.to_string(),
                "run it as root, on a kernel with CONFIG_DEBUG_INFO_BTF and CONFIG_BPF_EVENTS",
            ),
        ),
    })
}

fn purpose<T>(purpose: &str, loaded: Result<T, BpfError>) -> Result<String, BpfError> {
    loaded.map(|_| String::from(purpose))
}

fn of_drop_reasons() -> Outcome {
    match DropReasons::begin(&[]) {
        Ok(_) => good("the kernel says why it drops a packet: no loss goes without a name"),
        Err(error) => missing(
            error.to_string(),
            "run it as root, on Linux 5.17 or later with CONFIG_DEBUG_INFO_BTF; without them, give a \
             counter to each filter rule that drops",
        ),
    }
}

fn of_af_xdp() -> Outcome {
    match rustix::net::socket(AddressFamily::XDP, SocketType::RAW, None) {
        Ok(_) => good("frames can go straight to a program"),
        Err(Errno::PERM) => unknown("opening such a socket takes CAP_NET_RAW"),
        Err(error) => absent(format!("no such sockets: {error}")),
    }
}

fn of_udp(there: &str, set: impl Fn(&UdpSocket) -> io::Result<()>) -> Outcome {
    // Not to loopback's address, which is absent while loopback is down.
    match UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| set(&socket)) {
        Ok(()) => good(there),
        Err(error) => absent(error.to_string()),
    }
}

/// Number of namespaces of a kind that a user may create.
fn namespaces_max(kind: &str) -> Option<u64> {
    let limit = fs::read_to_string(format!("/proc/sys/user/max_{kind}_namespaces"));
    limit.ok()?.trim().parse().ok()
}

fn of_containment() -> Outcome {
    if !Path::new("/proc/self/ns/pid").exists() {
        let finding = "not in this kernel; programs of a study run in them";
        return missing(finding, "a kernel with CONFIG_PID_NS");
    }
    if namespaces_max("pid") == Some(0) {
        let finding = "user.max_pid_namespaces is 0: programs of a study cannot be run";
        return missing(finding, "sysctl user.max_pid_namespaces=1000");
    }
    good("processes started by a study's programs end with them, even after kill -9")
}

fn of_namespaces() -> Outcome {
    if !Path::new("/proc/self/ns/net").exists() {
        let finding = "not in this kernel; the demo's hosts are namespaces";
        return missing(finding, "a kernel with CONFIG_NET_NS");
    }
    if namespaces_max("net") == Some(0) {
        let finding = "user.max_net_namespaces is 0: none can be made";
        return missing(finding, "sysctl user.max_net_namespaces=1000");
    }
    good("hosts of the demo can be made")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicpoll_model::CheckStatus;

    #[test]
    fn only_what_is_needed_is_missing() {
        let statuses = |listed, abilities: &Abilities| -> Vec<CheckStatus> {
            of_napi(listed, abilities)
                .iter()
                .map(|(_, outcome)| outcome.status)
                .collect()
        };
        use CheckStatus::{Absent, Good, Missing};
        let old = Abilities::default();
        let refused = SwitchError::Missing(String::from("not supported"));
        assert_eq!(
            statuses(Err(refused), &old),
            [Missing, Absent, Absent, Absent, Absent]
        );
        assert_eq!(
            statuses(Ok("listed"), &old),
            [Good, Absent, Absent, Absent, Absent]
        );
        let abilities = Abilities {
            has_napi_set: true,
            threaded_max: Some(1),
            has_suspend: true,
        };
        assert_eq!(
            statuses(Ok("listed"), &abilities),
            [Good, Good, Good, Good, Absent]
        );
    }

    #[test]
    fn this_kernel_is_asked() {
        let checks = checks();
        assert!(checks.iter().all(|check| !check.finding.is_empty()));
        for name in ["exact CPU time", "UDP_SEGMENT"] {
            assert!(checks.iter().any(|check| check.name == name), "{name}");
        }
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
