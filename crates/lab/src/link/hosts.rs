//! The hosts that a study's file names, on machines of their own.
//!
//! ```toml
//! [hosts.sender]
//! ssh = "root@box1"
//! interface = "eth1"
//!
//! [hosts.receiver]
//! ssh = "root@box2"
//! interface = "eth1"
//! ```
//!
//! Further senders and receivers are `[hosts.sender2]`, `[hosts.receiver2]` and so on. Each pair is a path of the traffic;
//! with one receiver all senders send to that, and with one sender it sends to all receivers.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::Refused;
use crate::host::{RECEIVER, ROUTER, SENDER};

/// Hosts of one role.
const HOSTS_MAX: u8 = 8;

/// Returns the role in a host's name, and its number from 1: `sender2` is the second sender.
pub(crate) fn role_of(name: &str) -> Option<(&'static str, u8)> {
    let role = [SENDER, ROUTER, RECEIVER]
        .into_iter()
        .find(|role| name.starts_with(role))?;
    let number = match &name[role.len()..] {
        "" => 1,
        // Not `02` or `+2`: a host has one name.
        number if role != ROUTER => (2..=HOSTS_MAX).find(|it| it.to_string() == number)?,
        _ => return None,
    };
    Some((role, number))
}

/// The machines of a study, by the names of their hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    try_from = "BTreeMap<String, HostPlace>",
    into = "BTreeMap<String, HostPlace>"
)]
pub struct Hosts(BTreeMap<String, HostPlace>);

/// Where a host is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPlace {
    /// Where ssh(1) goes: `root@box2`, or a name of the user's ssh_config(5). Null: this machine.
    #[serde(default)]
    pub ssh: Option<String>,
    /// The interface of the test traffic.
    #[serde(default)]
    pub interface: Option<String>,
    /// Those of a router, the one towards the sender first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<String>,
    /// The network namespace that they are in, by the name that ip-netns(8) lists; that of the login when null.
    #[serde(default)]
    pub netns: Option<String>,
    /// The core of the traffic's thread. By default the first core sends, and the second one receives.
    #[serde(default)]
    pub cpu: Option<u32>,
    /// The file of nicpoll for a machine of another architecture.
    #[serde(default)]
    pub program: Option<PathBuf>,
    /// Of a sender without nicpoll: the interface's address with its prefix length. Programs of its own send from there,
    /// and nothing is set or counted there.
    #[serde(default)]
    pub without_nicpoll: Option<PlainAddress>,
}

/// An address with its prefix length: `198.18.0.1/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PlainAddress(pub IpAddr, pub u8);

impl TryFrom<String> for PlainAddress {
    type Error = Refused;

    fn try_from(text: String) -> Result<Self, Refused> {
        let parsed = text.split_once('/').and_then(|(address, prefix)| {
            let address: IpAddr = address.parse().ok()?;
            let longest = if address.is_ipv4() { 32 } else { 128 };
            let prefix = prefix.parse().ok().filter(|prefix| *prefix <= longest)?;
            Some(PlainAddress(address, prefix))
        });
        parsed.ok_or_else(|| {
            Refused(format!(
                "'{text}' is no address with its prefix length, such as 198.18.0.1/24"
            ))
        })
    }
}

impl From<PlainAddress> for String {
    fn from(PlainAddress(address, prefix): PlainAddress) -> Self {
        format!("{address}/{prefix}")
    }
}

impl TryFrom<BTreeMap<String, HostPlace>> for Hosts {
    type Error = Refused;

    fn try_from(places: BTreeMap<String, HostPlace>) -> Result<Self, Refused> {
        for (name, place) in &places {
            let Some((role, number)) = role_of(name) else {
                return Err(Refused(format!(
                    "[hosts.{name}] is no role; there are sender, router and receiver, and sender2 to sender{HOSTS_MAX}"
                )));
            };
            place.check(name, role)?;
            let previous = match number {
                1 => continue,
                2 => String::from(role),
                _ => format!("{role}{}", number - 1),
            };
            if !places.contains_key(&previous) {
                let why = format!("[hosts.{name}] is there without [hosts.{previous}]");
                return Err(Refused(why));
            }
        }
        for name in [SENDER, RECEIVER] {
            if !places.contains_key(name) {
                return Err(Refused(format!(
                    "[hosts.{name}] is missing: a study has a sender and a receiver, and perhaps a router"
                )));
            }
        }
        let hosts = Hosts(places);
        match [SENDER, RECEIVER].map(|role| hosts.count(role)) {
            [senders, receivers] if senders.min(receivers) > 1 && senders != receivers => {
                Err(Refused(format!(
                    "{senders} senders and {receivers} receivers: name one of a kind, or as many of both"
                )))
            }
            _ => Ok(hosts),
        }
    }
}

impl From<Hosts> for BTreeMap<String, HostPlace> {
    fn from(hosts: Hosts) -> Self {
        hosts.0
    }
}

impl HostPlace {
    fn check(&self, name: &str, role: &str) -> Result<(), Refused> {
        let is_word = |ssh: &String| {
            !ssh.is_empty() && !ssh.starts_with('-') && !ssh.contains(char::is_whitespace)
        };
        let why = match role {
            SENDER | RECEIVER if self.interface.is_none() || !self.interfaces.is_empty() => {
                "needs the interface of the test traffic, such as interface = \"eth1\""
            }
            ROUTER if self.interfaces.len() != 2 || self.interface.is_some() => {
                "needs both interfaces, the one towards the sender first, such as interfaces = [\"eth1\", \"eth2\"]"
            }
            ROUTER if self.cpu.is_some() => {
                "forwards in the kernel; cpu is for a sender or receiver"
            }
            RECEIVER | ROUTER if self.without_nicpoll.is_some() => {
                "needs nicpoll; a sender may be without_nicpoll"
            }
            SENDER if self.without_nicpoll.is_some() && self.ssh.is_none() => {
                "needs ssh = \"...\" to be without_nicpoll"
            }
            SENDER
                if self.without_nicpoll.is_some()
                    && (self.netns.is_some() || self.cpu.is_some() || self.program.is_some()) =>
            {
                "is without_nicpoll: netns, cpu and program are for a host with it"
            }
            _ if !self.ssh.as_ref().is_none_or(is_word) => {
                "needs a name that ssh takes, such as ssh = \"root@box2\""
            }
            _ => return Ok(()),
        };
        Err(Refused(format!("[hosts.{name}] {why}")))
    }

    pub(crate) fn interfaces(&self) -> Vec<String> {
        let one = self.interface.iter().cloned();
        one.chain(self.interfaces.iter().cloned()).collect()
    }

    /// Returns its name in messages.
    pub(crate) fn shown(&self, role: &str) -> String {
        match &self.ssh {
            Some(ssh) => format!("{role} ({ssh})"),
            None => format!("{role} (this machine)"),
        }
    }
}

impl Hosts {
    /// Whether there is a router between sender and receiver.
    pub fn is_routed(&self) -> bool {
        self.0.contains_key(ROUTER)
    }

    /// Description in one line.
    pub fn describe(&self) -> String {
        let way = self.roles().map(|(role, place)| {
            let interfaces = place.interfaces().join(" and ");
            let ssh = place.ssh.as_deref().unwrap_or("this machine");
            format!("{role} {ssh} by {interfaces}")
        });
        way.collect::<Vec<String>>().join(", ")
    }

    /// The hosts in the order of a packet's path: senders, perhaps a router, receivers, the first of them first.
    pub(crate) fn roles(&self) -> impl Iterator<Item = (&str, &HostPlace)> {
        // Names of one role are in the order of their numbers, which have one digit.
        [SENDER, ROUTER, RECEIVER].into_iter().flat_map(|role| {
            let own = self.0.iter().map(|(name, place)| (name.as_str(), place));
            own.filter(move |(name, _)| role_of(name).is_some_and(|(own, _)| own == role))
        })
    }

    /// Whether a sender has no nicpoll.
    pub fn has_plain_sender(&self) -> bool {
        let mut places = self.0.values();
        places.any(|place| place.without_nicpoll.is_some())
    }

    /// Pairs of a sender and a receiver.
    pub fn paths(&self) -> u8 {
        self.count(SENDER).max(self.count(RECEIVER))
    }

    /// The hosts of a role.
    pub fn count(&self, role: &str) -> u8 {
        let names = self.0.keys().filter_map(|name| role_of(name));
        names.filter(|(own, _)| *own == role).count() as u8
    }

    /// Returns where the host of a role is.
    pub(crate) fn place(&self, role: &str) -> Option<&HostPlace> {
        self.0.get(role)
    }

    /// Returns the host whose receiving is studied.
    pub(crate) fn studied(&self) -> &'static str {
        if self.is_routed() { ROUTER } else { RECEIVER }
    }
}
