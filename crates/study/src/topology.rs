//! How the hosts of a study are joined, as data: side by side or through a router, by one link or several, as fast
//! as the machine goes or as a line does.
//!
//! What must hold: a topology that cannot be built is refused as it is read.

use std::num::NonZeroU64;

use nicpoll_model::units::parse_speed;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Links side by side.
const LINKS_MAX: u8 = 8;
/// The slowest and the fastest line that is shaped.
const RATES: std::ops::RangeInclusive<u64> = 64_000..=100_000_000_000;

/// How sender and receiver are joined. Without anything else: by one veth pair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// What is between them.
    #[serde(default)]
    pub kind: TopologyKind,
    /// Links side by side, all of which carry the same traffic; one when null.
    #[serde(default)]
    pub links: Option<u8>,
    /// The rate of the line, with everything that a frame takes on the wire: `"10Mbit/s"`. As fast as the machine
    /// goes when null. What both hosts send is shaped to it.
    #[serde(default)]
    pub rate: Option<LineRate>,
    /// The sender's interface, where both exist already.
    #[serde(default)]
    pub sender: Option<OwnInterface>,
    /// The receiver's.
    #[serde(default)]
    pub receiver: Option<OwnInterface>,
    /// Whether one of them may carry the user's ssh connection.
    #[serde(default)]
    pub even_with_ssh: bool,
}

/// An interface that this machine has already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnInterface {
    /// Its name.
    pub interface: String,
    /// The network namespace that it is in, by the name that ip-netns(8) lists; that of the program when null.
    #[serde(default)]
    pub netns: Option<String>,
}

/// Two interfaces that this machine has already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingInterfaces {
    /// The sender's.
    pub sender: OwnInterface,
    /// The receiver's.
    pub receiver: OwnInterface,
    /// Whether one of them may carry the user's ssh connection.
    pub even_with_ssh: bool,
}

/// What is between sender and receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TopologyKind {
    /// Nothing but the link.
    #[default]
    Pair,
    /// A third namespace whose kernel forwards. Its receiving is what is studied.
    Router,
    /// Whatever is between two interfaces that this machine has already.
    Existing,
}

/// Why a topology cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TopologyError {
    /// Too many, or none.
    #[error("links = {links} is out of range; give 1 to {LINKS_MAX}")]
    Links {
        /// What was asked for.
        links: u8,
    },
    /// Several ways through one router.
    #[error("a router joins one link on either side; leave out links, or take kind = \"pair\"")]
    RoutedLinks,
    /// Nothing says which interfaces.
    #[error(
        "kind = \"existing\" needs both interfaces, such as sender = {{ interface = \"eth1\" }} and receiver = {{ \
         interface = \"eth2\", netns = \"far\" }}"
    )]
    NoInterfaces,
    /// Interfaces of a link that the study makes.
    #[error("sender, receiver and even_with_ssh of a topology are for kind = \"existing\"")]
    OwnInterfaces,
    /// Something of a link that the study does not make.
    #[error(
        "links and rate are for links that the study makes; interfaces that exist already stay as they are"
    )]
    NotMade,
}

impl Topology {
    /// Whether it can be built.
    ///
    /// # Errors
    /// With what is possible.
    pub fn check(&self) -> Result<(), TopologyError> {
        let links = self.links();
        if !(1..=LINKS_MAX).contains(&links) {
            return Err(TopologyError::Links { links });
        }
        if self.is_routed() && links > 1 {
            return Err(TopologyError::RoutedLinks);
        }
        if self.kind == TopologyKind::Existing {
            let is_made = self.links.is_some() || self.rate.is_some();
            self.existing().ok_or(TopologyError::NoInterfaces)?;
            return (!is_made).then_some(()).ok_or(TopologyError::NotMade);
        }
        if self.sender.is_some() || self.receiver.is_some() || self.even_with_ssh {
            return Err(TopologyError::OwnInterfaces);
        }
        Ok(())
    }

    /// Whether there is a router between them.
    pub fn is_routed(&self) -> bool {
        self.kind == TopologyKind::Router
    }

    /// The interfaces that the study takes as they are.
    pub fn existing(&self) -> Option<ExistingInterfaces> {
        let both = self.sender.clone().zip(self.receiver.clone());
        let (sender, receiver) = both.filter(|_| self.kind == TopologyKind::Existing)?;
        Some(ExistingInterfaces {
            sender,
            receiver,
            even_with_ssh: self.even_with_ssh,
        })
    }

    /// Links side by side.
    pub fn links(&self) -> u8 {
        self.links.unwrap_or(1)
    }
}

/// Bits a second on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LineRate(NonZeroU64);

impl LineRate {
    /// Bits a second.
    pub fn bits_per_second(self) -> NonZeroU64 {
        self.0
    }
}

/// A rate that no line here has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("rate = \"{text}\" cannot be shaped; give 64kbit/s to 100Gbit/s, such as \"10Mbit/s\"")]
pub struct LineRateError {
    text: String,
}

impl TryFrom<String> for LineRate {
    type Error = LineRateError;

    fn try_from(text: String) -> Result<Self, LineRateError> {
        let rate = parse_speed(&text).ok().filter(|rate| RATES.contains(rate));
        let rate = rate.and_then(NonZeroU64::new);
        rate.map(LineRate).ok_or(LineRateError { text })
    }
}

impl From<LineRate> for String {
    fn from(rate: LineRate) -> String {
        format!("{}bit/s", rate.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Topology, String> {
        let topology: Topology = toml::from_str(text).map_err(|error| error.to_string())?;
        topology.check().map_err(|error| error.to_string())?;
        Ok(topology)
    }

    #[test]
    fn a_topology_is_read_as_it_is_written() {
        assert_eq!(read("").unwrap(), Topology::default());
        let shaped = read("rate = \"10Mbit/s\"").unwrap();
        let rate = shaped.rate.unwrap();
        assert_eq!(rate.bits_per_second().get(), 10_000_000);
        let json = serde_json::to_string(&shaped).unwrap();
        assert_eq!(serde_json::from_str::<Topology>(&json).unwrap(), shaped);
        assert!(read("kind = \"router\"").unwrap().is_routed());
        assert_eq!(read("links = 4").unwrap().links(), 4);
    }

    #[test]
    fn what_cannot_be_built_is_refused_with_what_can() {
        for (text, words) in [
            ("links = 0", "1 to 8"),
            ("links = 9", "1 to 8"),
            ("kind = \"router\"\nlinks = 2", "one link on either side"),
            ("kind = \"ring\"", "`pair`, `router`, `existing`"),
            ("kind = \"existing\"", "needs both"),
            ("sender = { interface = \"a\" }", "kind = \"existing\""),
            (
                "kind = \"existing\"\nlinks = 2\nsender = { interface = \"a\" }\nreceiver = { interface = \"b\" }",
                "stay as they are",
            ),
            ("rate = \"10\"", "10Mbit/s"),
            ("rate = \"9m/s\"", "10Mbit/s"),
            ("delay = \"9ms\"", "unknown field"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
