//! Checks of this process's privileges and of the kernel's features, by trying or querying, never by version.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;

use nicpoll_model::{Check, CheckGroup};
use nicpoll_observe::{
    DropReasons, ExactCpu, ExactCpuOptions, PacketDelays, PollCounter, RhythmWatch, RunQueue,
};
use nicpoll_switch::{Abilities, napi_list};
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

/// What a look for a feature found.
enum Look {
    There(String),
    /// With the reason.
    Not(String),
    /// With what looking takes.
    Unknown(&'static str),
}

use Look::{Not, There, Unknown};

/// A feature of kernels that later ones have. docs/kernels.md lists all of them.
struct Feature {
    name: &'static str,
    /// The first kernel that has it, as Linux is released; distributions carry some of them back.
    since: &'static str,
    /// How it is looked for.
    probe: &'static str,
    look: fn() -> Look,
    /// What is used instead, and what is lost.
    without: &'static str,
    /// Whether figures are missing without it; otherwise it is an option less.
    is_needed: bool,
}

impl Feature {
    fn outcome(&self) -> Outcome {
        let since = self.since;
        match (self.look)() {
            There(finding) => good(finding),
            Unknown(why) => unknown(why),
            Not(why) if self.is_needed => missing(
                format!("{why}; without it: {}", self.without),
                format!("run it as root, on Linux {since} or later that is not locked down"),
            ),
            Not(why) => absent(format!(
                "{why}, by {}; Linux {since} has it; without it: {}",
                self.probe, self.without
            )),
        }
    }
}

#[rustfmt::skip]
const FEATURES: [Feature; 16] = [
    Feature {
        name: "deferral", since: "5.8", probe: "napi_defer_hard_irqs in sysfs", is_needed: true,
        look: || attribute("napi_defer_hard_irqs", "interfaces can be polled by a timer"),
        without: "no polling by a timer",
    },
    Feature {
        name: "threaded NAPI", since: "5.12", probe: "threaded in sysfs", is_needed: false,
        look: || attribute("threaded", "interfaces can be polled by kernel threads"),
        without: "--threaded is refused",
    },
    Feature {
        name: "NAPI instances", since: "5.10", probe: "napi-get (Linux 6.8), else by BPF", is_needed: true,
        look: || napi_list().map_or_else(|error| Not(error.to_string()), |how| There(String::from(how))),
        without: "interfaces can be set, but nothing is proven: their polls are not told apart",
    },
    Feature {
        name: "per-NAPI settings", since: "6.13", probe: "the policy of napi-set", is_needed: false,
        look: || ability(|it| it.has_napi_set, "napi-set: deferral can be set for each NAPI instance"),
        without: "the values of whole interfaces",
    },
    Feature {
        name: "irq-suspend-timeout", since: "6.13", probe: "the policy of napi-set", is_needed: false,
        look: || ability(|it| it.has_suspend, "applications that poll may keep interrupts off"),
        without: "--suspend is refused",
    },
    Feature {
        name: "per-NAPI threads", since: "6.17", probe: "the policy of napi-set", is_needed: false,
        look: || ability(|it| it.threaded_max.is_some(), "each NAPI instance can have a thread of its own"),
        without: "threads for whole interfaces",
    },
    Feature {
        name: "threaded busy-poll", since: "6.19", probe: "the policy of napi-set", is_needed: false,
        look: || ability(|it| it.threaded_max >= Some(THREADED_BUSY_POLL), "a thread can poll without end"),
        without: "--busy-poll is refused",
    },
    Feature {
        name: "exact CPU time", since: "5.10", probe: "its programs are loaded", is_needed: true,
        look: || bpf("each change of a CPU's state is timed", ExactCpu::load(&ExactCpuOptions::default())),
        without: "ab, demo and study sample CPU time by ticks, and say so",
    },
    Feature {
        name: "polls", since: "5.10", probe: "its programs are loaded", is_needed: true,
        look: || bpf("with what began them", RhythmWatch::begin(&[])),
        without: "no setting is proven by what its polls do",
    },
    Feature {
        name: "polls of trials", since: "5.10", probe: "its programs are loaded", is_needed: true,
        look: || bpf("how many there are", PollCounter::load()),
        without: "demo and study read settings back, and prove none by its polls",
    },
    Feature {
        name: "packet delays", since: "5.10", probe: "its programs are loaded", is_needed: true,
        look: packet_delays,
        without: "these delays are null",
    },
    Feature {
        name: "waits for a CPU", since: "5.10", probe: "its programs are loaded", is_needed: true,
        look: || bpf("from being woken to running", RunQueue::begin(0, true)),
        without: "these delays are null",
    },
    Feature {
        name: "drop reasons", since: "5.17", probe: "its program is loaded", is_needed: true,
        look: || bpf("the kernel says why it drops a packet: no loss goes without a name", DropReasons::begin(&[])),
        without: "losses that no counter has stay unaccounted for; give a counter to each filter rule that drops",
    },
    Feature {
        name: "AF_XDP", since: "4.18", probe: "a socket of it", is_needed: false,
        look: af_xdp,
        without: "sink and blast take AF_PACKET",
    },
    Feature {
        name: "UDP_SEGMENT", since: "4.18", probe: "the option of a socket", is_needed: false,
        look: || udp("many datagrams a send call", |socket| socket::set_segment(socket, 64)),
        without: "one datagram a send call",
    },
    Feature {
        name: "UDP_GRO", since: "5.0", probe: "the option of a socket", is_needed: false,
        look: || udp("many datagrams a receive call", |socket| socket::enable_coalescing(socket)),
        without: "one datagram a receive call",
    },
];

/// Checks the features of the kernel.
pub fn checks() -> Vec<Check> {
    let features = FEATURES
        .iter()
        .map(|feature| (feature.name, feature.outcome()));
    let namespaces = [
        ("network namespaces", of_namespaces()),
        ("PID namespaces", of_containment()),
    ];
    group(CheckGroup::Kernel, None, features.chain(namespaces))
}

/// Looks for an attribute that every interface has, and so loopback.
fn attribute(name: &str, there: &str) -> Look {
    match Path::new("/sys/class/net/lo").join(name).exists() {
        true => There(String::from(there)),
        false => Not(format!("this kernel's interfaces have no {name}")),
    }
}

fn ability(has: fn(&Abilities) -> bool, there: &str) -> Look {
    match has(&Abilities::probe()) {
        true => There(String::from(there)),
        false => Not(String::from("not in this kernel")),
    }
}

/// Judges what was loaded, which is unloaded at once.
fn bpf<T>(there: &str, loaded: Result<T, impl std::fmt::Display>) -> Look {
    match loaded {
        Ok(_) => There(String::from(there)),
        Err(error) => Not(error.to_string()),
    }
}

fn packet_delays() -> Look {
    match PacketDelays::begin(&BTreeMap::new(), 1, Vec::new()) {
        Ok(delays) => {
            let unseen = delays.unseen().into_iter();
            let but_for = unseen.map(|unseen| format!("; not {}: {}", unseen.what, unseen.why));
            There(format!(
                "until programs read them{}",
                but_for.collect::<String>()
            ))
        }
        Err(error) => Not(error.to_string()),
    }
}

fn af_xdp() -> Look {
    match rustix::net::socket(AddressFamily::XDP, SocketType::RAW, None) {
        Ok(_) => There(String::from("frames can go straight to a program")),
        Err(Errno::PERM) => Unknown("opening such a socket takes CAP_NET_RAW"),
        Err(error) => Not(format!("no such sockets: {error}")),
    }
}

fn udp(there: &str, set: impl Fn(&UdpSocket) -> io::Result<()>) -> Look {
    // Not to loopback's address, which is absent while loopback is down.
    match UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| set(&socket)) {
        Ok(()) => There(String::from(there)),
        Err(error) => Not(error.to_string()),
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

    /// The lines of the page between which the table stands.
    const BOUNDS: [&str; 2] = ["<!-- features: begin -->\n", "<!-- features: end -->"];

    #[test]
    fn the_page_lists_every_feature() {
        let mut table = String::from(
            "| feature | Linux | how it is looked for | without it |\n|---|---|---|---|\n",
        );
        for Feature {
            name,
            since,
            probe,
            without,
            ..
        } in &FEATURES
        {
            table += &format!("| {name} | {since} | {probe} | {without} |\n");
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/kernels.md");
        let page = fs::read_to_string(path).unwrap();
        let (head, rest) = page.split_once(BOUNDS[0]).unwrap();
        let (committed, tail) = rest.split_once(BOUNDS[1]).unwrap();
        if std::env::var_os("NICPOLL_REFRESH_GOLDEN").is_some() {
            let page = [head, BOUNDS[0], &table, BOUNDS[1], tail].concat();
            fs::write(path, page).unwrap();
            return;
        }
        assert_eq!(committed, table, "NICPOLL_REFRESH_GOLDEN=1 writes it");
    }

    #[test]
    fn what_is_not_there_is_missing_or_an_option_less() {
        use CheckStatus::{Absent, Missing};
        for (is_needed, status) in [(true, Missing), (false, Absent)] {
            let feature = Feature {
                name: "warp",
                since: "9.1",
                probe: "-",
                look: || Not(String::from("refused")),
                without: "walking",
                is_needed,
            };
            let outcome = feature.outcome();
            assert_eq!(outcome.status, status);
            let told = outcome.finding + &outcome.remedy.unwrap_or_default();
            for part in ["refused", "walking", "Linux 9.1"] {
                assert!(told.contains(part), "{told}");
            }
        }
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
