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
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use nicpoll_model::Side;
use serde::{Deserialize, Serialize};

use crate::error::{HostFailure, LabError, Refused};
use crate::host::ssh::{AgentConnection, AgentPlace, RemoteHost};
use crate::host::{Facts, HostClient, MACHINE, MACHINE_INTERFACE, RECEIVER, ROUTER, SENDER};
use crate::link::Link;
use crate::link::existing::{JoinedHost, link_between};

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
            SENDER | RECEIVER | ROUTER if !self.ssh.as_ref().is_none_or(is_word) => {
                "needs a name that ssh takes, such as ssh = \"root@box2\""
            }
            SENDER | RECEIVER | ROUTER => return Ok(()),
            _ => "is no role; there are sender, router and receiver",
        };
        Err(Refused(format!("[hosts.{name}] {why}")))
    }

    fn interfaces(&self) -> Vec<String> {
        let one = self.interface.iter().cloned();
        one.chain(self.interfaces.iter().cloned()).collect()
    }

    /// Returns its name in messages.
    fn shown(&self, role: &str) -> String {
        match &self.ssh {
            Some(ssh) => format!("the {role} ({ssh})"),
            None => format!("the {role} (this machine)"),
        }
    }
}

/// Hosts that were connected, in the order of a packet's path, and the machine of the studied one.
pub struct ConnectedHosts {
    /// Sender, perhaps a router, receiver.
    pub way: Vec<HostClient>,
    /// The machine whose receive discipline is studied.
    pub machine: HostClient,
    /// What joins them.
    pub link: Arc<Link>,
    /// The cores of the traffic, the sender's first.
    pub cpus: [u32; 2],
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
    fn roles(&self) -> impl Iterator<Item = (&'static str, &HostPlace)> {
        [SENDER, ROUTER, RECEIVER]
            .into_iter()
            .filter_map(|role| Some((role, self.0.get(role)?)))
    }

    /// Returns where ssh goes for a role, and its interfaces.
    pub(crate) fn place_of(&self, role: &str) -> (Option<String>, Vec<String>) {
        let place = self.0.get(role).cloned().unwrap_or_default();
        (place.ssh.clone(), place.interfaces())
    }

    fn studied(&self) -> &'static str {
        match self.is_routed() {
            true => ROUTER,
            false => RECEIVER,
        }
    }

    /// Connects a host, and its machine if it is the studied one.
    pub(crate) fn connect_one(
        &self,
        role: &str,
        version: &str,
    ) -> Result<(RemoteHost, Option<RemoteHost>), HostFailure> {
        let unknown = || HostFailure::new(format!("there is no host {role}"));
        let place = self.0.get(role).ok_or_else(unknown)?;
        let agent = AgentPlace {
            name: place.shown(role),
            ssh: place.ssh.clone(),
            program: place.program.clone(),
        };
        let connection = AgentConnection::open(agent, version)?;
        let host = connection.host(0, place.netns.clone(), place.interfaces())?;
        let is_studied = role == self.studied();
        let machine = is_studied
            .then(|| connection.host(1, None, vec![String::from(MACHINE_INTERFACE)]))
            .transpose()?;
        Ok((host, machine))
    }

    /// Connects all hosts at once, and looks at what joins them. `version` is the program's.
    ///
    /// # Errors
    /// When a host cannot be reached or has no such interface; when they cannot reach each other by these.
    pub(crate) fn connect(&self, version: &str) -> Result<ConnectedHosts, LabError> {
        let connected = thread::scope(|scope| {
            let roles: Vec<_> = self.roles().collect();
            let begun = roles.into_iter().map(|(role, _)| {
                let connect = move || self.connect_one(role, version);
                (role, scope.spawn(connect))
            });
            let begun: Vec<_> = begun.collect();
            let ended = begun.into_iter().map(|(role, thread)| {
                let panicked = |_| LabError::Panicked("connecting");
                Ok((role, thread.join().map_err(panicked)??))
            });
            ended.collect::<Vec<Result<_, LabError>>>()
        });
        let (mut way, mut machine) = (Vec::new(), None);
        for one in connected {
            let (role, (host, its_machine)) = one?;
            way.push(HostClient::new(role, Box::new(host)));
            machine = machine.or(its_machine);
        }
        let machine = machine.ok_or(LabError::Panicked("connecting"))?;
        let mut cpus = [0; 2];
        for (side, host) in [(Side::Sender, 0), (Side::Receiver, way.len() - 1)] {
            cpus[side.of(0, 1)] = self.cpu_of(side, &way[host].facts()?)?;
        }
        let mut joined = Vec::new();
        for (host, (_, place)) in way.iter_mut().zip(self.roles()) {
            joined.push(JoinedHost::new(host, place.interfaces(), None)?);
        }
        let link = Arc::new(link_between(joined)?);
        Ok(ConnectedHosts {
            way,
            machine: HostClient::new(MACHINE, Box::new(machine)),
            link,
            cpus,
        })
    }

    fn cpu_of(&self, side: Side, facts: &Facts) -> Result<u32, LabError> {
        let role = side.of(SENDER, RECEIVER);
        let cpus = &facts.machine.cpus;
        let asked = self.0.get(role).and_then(|place| place.cpu);
        let own = side.of(cpus.first(), cpus.get(1).or(cpus.first()));
        match asked.or(own.copied()) {
            Some(cpu) if cpus.contains(&cpu) => Ok(cpu),
            _ => Err(Refused(format!(
                "[hosts.{role}] has no CPU {}; it has {cpus:?}",
                asked.unwrap_or_default()
            ))
            .into()),
        }
    }
}
