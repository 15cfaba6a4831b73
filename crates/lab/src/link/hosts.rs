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

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::Refused;
use crate::host::{RECEIVER, ROUTER, SENDER};

/// The machines of a study, by the roles of their hosts.
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
            place.check(name)?;
        }
        for name in [SENDER, RECEIVER] {
            if !places.contains_key(name) {
                return Err(Refused(format!(
                    "[hosts.{name}] is missing: a study has a sender and a receiver, and perhaps a router"
                )));
            }
        }
        Ok(Hosts(places))
    }
}

impl From<Hosts> for BTreeMap<String, HostPlace> {
    fn from(hosts: Hosts) -> Self {
        hosts.0
    }
}

impl HostPlace {
    fn check(&self, name: &str) -> Result<(), Refused> {
        let is_word = |ssh: &String| {
            !ssh.is_empty() && !ssh.starts_with('-') && !ssh.contains(char::is_whitespace)
        };
        let why = match name {
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
            SENDER | RECEIVER | ROUTER if !self.ssh.as_ref().is_none_or(is_word) => {
                "needs a name that ssh takes, such as ssh = \"root@box2\""
            }
            SENDER | RECEIVER | ROUTER => return Ok(()),
            _ => "is no role; there are sender, router and receiver",
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

    /// The hosts in the order of a packet's path.
    pub(crate) fn roles(&self) -> impl Iterator<Item = (&'static str, &HostPlace)> {
        [SENDER, ROUTER, RECEIVER]
            .into_iter()
            .filter_map(|role| Some((role, self.0.get(role)?)))
    }

    /// Whether the sender has no nicpoll.
    pub fn has_plain_sender(&self) -> bool {
        self.place(SENDER)
            .is_some_and(|place| place.without_nicpoll.is_some())
    }

    /// Returns where the host of a role is.
    pub(crate) fn place(&self, role: &str) -> Option<&HostPlace> {
        self.0.get(role)
    }

    /// Returns the host whose receiving is studied.
    pub(crate) fn studied(&self) -> &'static str {
        match self.is_routed() {
            true => ROUTER,
            false => RECEIVER,
        }
    }
}
