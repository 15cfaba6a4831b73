//! Every option of iperf 2.1.8, and those that are nicpoll's own, each as one row that says all there is to
//! say of it: its names, what it does to the [`Draft`], its lines in the help and its row in
//! docs/dialects.md. The scanner must know which of them take a value, and one that is left out must be
//! told from one that never was.

mod both;
mod client;
mod left_out;
mod miscellaneous;
mod server;

use std::sync::LazyLock;

use super::draft::Draft;
use super::error::OptionError;
use super::given::Given;

/// Whether a value follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// None may.
    None,
    /// One must.
    Required,
    /// One may, after `=` only.
    Optional,
}

/// Where an option means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionSide {
    /// At both ends.
    Both,
    /// At the client.
    Client,
    /// At the server.
    Server,
}

impl OptionSide {
    /// As messages and docs/dialects.md name it.
    pub fn name(self) -> &'static str {
        match self {
            OptionSide::Both => "both",
            OptionSide::Client => "client",
            OptionSide::Server => "server",
        }
    }
}

/// What becomes of an option.
#[derive(Clone, Copy, Debug)]
pub enum Meaning {
    /// It is carried out, and has no value.
    Flag(fn(&mut Draft)),
    /// It is carried out with its value.
    Value(fn(&mut Draft, &Given) -> Result<(), OptionError>),
    /// The help is printed, and nothing else happens.
    Help,
    /// The version is printed, and nothing else happens.
    Version,
    /// It is refused with this advice.
    LeftOut(Argument, &'static str),
}

/// A part of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Options of both ends.
    Both,
    /// Those of a server.
    Server,
    /// Those of a client.
    Client,
    /// What is printed, and how.
    Miscellaneous,
}

/// An option's entry in the help.
#[derive(Clone, Copy, Debug)]
pub struct Help {
    /// Where.
    pub group: Group,
    /// What stands for the value.
    pub value: &'static str,
    /// What it does.
    pub text: &'static str,
}

/// An option's row in docs/dialects.md.
#[derive(Clone, Copy, Debug)]
pub struct Doc {
    /// What stands for the value.
    pub value: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// What can be given.
    pub limits: &'static str,
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Its letter.
    pub short: Option<char>,
    /// Its long names, the first one preferred.
    pub long: &'static [&'static str],
    /// Where it means something.
    pub side: OptionSide,
    /// Whether it is refused with TCP.
    pub needs_udp: bool,
    /// What becomes of it.
    pub meaning: Meaning,
    /// Environment variables of 2.1.8 that are not made from a long name.
    pub environment: &'static [&'static str],
    /// Its entries in the help.
    pub help: &'static [Help],
    /// Its row in docs/dialects.md, unless it is left out.
    pub doc: Doc,
}

/// What most rows have.
const SPEC: Spec = Spec {
    short: None,
    long: &[],
    side: OptionSide::Both,
    needs_udp: false,
    meaning: Meaning::LeftOut(Argument::None, ""),
    environment: &[],
    help: &[],
    doc: Doc {
        value: "",
        meaning: "",
        limits: "",
    },
};

impl Spec {
    /// The name messages use: the letter where there is one.
    pub fn name(&self) -> String {
        match (self.short, self.long.first()) {
            (Some(letter), _) => format!("-{letter}"),
            (None, Some(name)) => format!("--{name}"),
            (None, None) => String::new(),
        }
    }

    /// Whether a value follows.
    pub fn argument(&self) -> Argument {
        match self.meaning {
            Meaning::Flag(_) | Meaning::Help | Meaning::Version => Argument::None,
            Meaning::Value(_) => Argument::Required,
            Meaning::LeftOut(argument, _) => argument,
        }
    }

    /// The environment variables that stand for the option. None for those that print and leave:
    /// they would make every call useless.
    fn variables(&self) -> Vec<String> {
        if matches!(self.meaning, Meaning::Help | Meaning::Version) {
            return Vec::new();
        }
        let from_name =
            |name: &&str| format!("IPERF_{}", name.to_ascii_uppercase().replace('-', "_"));
        let own = self.environment.iter().map(|name| (*name).to_owned());
        own.chain(self.long.iter().map(from_name)).collect()
    }
}

/// Every environment variable with its option, in the tables' order.
pub static VARIABLES: LazyLock<Vec<(String, &Spec)>> = LazyLock::new(|| {
    let of = |spec: &'static Spec| spec.variables().into_iter().map(move |name| (name, spec));
    specs().flat_map(of).collect()
});

/// All options, those that are carried out first.
pub fn specs() -> impl Iterator<Item = &'static Spec> {
    let tables = [
        both::TABLE,
        server::TABLE,
        client::TABLE,
        miscellaneous::TABLE,
        left_out::TABLE,
    ];
    tables.into_iter().flatten()
}
