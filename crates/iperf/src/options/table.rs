//! Every option of iperf 2.1.8, and those that are nicpoll's own: what each does to the [`Draft`] is a row
//! here, and its names, its lines in the help and its row in docs/dialects.md are a record of `options.txt`.
//! What 2.1.8 has and is left out here has a record only, so the scanner knows whether it takes a value, and
//! its refusal names it.

use std::sync::LazyLock;

use nicpoll_traffic::repeat::RUNS_MAX;

use super::draft::{Draft, Mode, Way};
use super::types::Json;
use super::values::{self, EXACT_MAX, Given, OptionError};
use crate::config::Input;

/// Longest TCP buffer.
const LENGTH_BYTES_MAX: u64 = 64 << 20;
/// No address has more ports to connect from.
const PARALLEL_MAX: u32 = 65_535;
/// A second of the smallest datagrams at 10 Gbit/s, and then some, would be one burst.
const BURST_MAX: u32 = 1 << 24;

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

/// One option.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its letter.
    pub letter: Option<char>,
    /// Its long names, the preferred one first.
    pub long: Vec<&'static str>,
    /// Where it means something.
    pub side: OptionSide,
    /// Whether it is refused with TCP.
    pub needs_udp: bool,
    /// What becomes of it.
    pub meaning: Meaning,
    /// An environment variable of 2.1.8 that is not made from a long name.
    variable: Option<&'static str>,
    /// Its entry in the help: what stands for the value, and what it does.
    pub help: [&'static str; 2],
    /// Another entry among those of a server.
    pub server_help: Option<[&'static str; 2]>,
    /// Its row in docs/dialects.md: what stands for the value, what it does, and the values it takes.
    pub doc: [&'static str; 3],
}

/// The sections of the help with their titles, in the order in which messages and docs/dialects.md have them.
/// The last one, of options that are left out, has no title.
pub static SECTIONS: LazyLock<Vec<(&str, Vec<Spec>)>> = LazyLock::new(|| {
    let sections = include_str!("options.txt").split("== ").skip(1);
    let read = |section: &'static str| {
        let (title, records) = section.split_once('\n').unwrap_or_default();
        let records = records.trim_end().split("\n\n");
        (title, records.map(Spec::read).collect())
    };
    sections.map(read).collect()
});

/// All options, those that are carried out first.
pub fn specs() -> impl Iterator<Item = &'static Spec> {
    SECTIONS.iter().flat_map(|(_, specs)| specs)
}

/// A field of a record; a line that begins with a space belongs to the one before it.
fn field(record: &'static str, name: &str) -> Option<&'static str> {
    let (_, text) = record.split_once(&format!("\n{name}:"))?;
    let mut ends = text.match_indices('\n').map(|(end, _)| end);
    let end = ends.find(|end| !text[end + 1..].starts_with(' '));
    Some(text[..end.unwrap_or(text.len())].trim())
}

/// The parts of a field.
fn parts<const N: usize>(text: &'static str) -> [&'static str; N] {
    let mut parts = text.split("::").map(str::trim);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

impl Spec {
    fn read(record: &'static str) -> Self {
        let names = record.lines().next().unwrap_or_default().split(' ');
        let (letters, long): (Vec<&str>, Vec<&str>) = names.partition(|name| name.len() == 1);
        let letter = letters.first().and_then(|letter| letter.chars().next());
        let side = field(record, "side").unwrap_or_default();
        let argument = match field(record, "value") {
            None => Argument::None,
            Some("required") => Argument::Required,
            Some(_) => Argument::Optional,
        };
        let first = letters.first().or(long.first()).copied();
        let is_first = |(name, _): &&(&str, Meaning)| Some(*name) == first;
        let meaning = match field(record, "instead") {
            Some(instead) => Meaning::LeftOut(argument, instead),
            None => {
                let row = TABLE.iter().find(is_first);
                row.expect("each option that is carried out has a row").1
            }
        };
        Spec {
            letter,
            long,
            side: match side.split(' ').next() {
                Some("client") => OptionSide::Client,
                Some("server") => OptionSide::Server,
                _ => OptionSide::Both,
            },
            needs_udp: side.ends_with("-u"),
            meaning,
            variable: field(record, "variable"),
            help: parts(field(record, "help").unwrap_or_default()),
            server_help: field(record, "server help").map(parts),
            doc: parts(field(record, "doc").unwrap_or_default()),
        }
    }

    /// The name messages use: the letter where there is one.
    pub fn name(&self) -> String {
        match self.letter {
            Some(letter) => format!("-{letter}"),
            None => format!("--{}", self.long.first().copied().unwrap_or_default()),
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
    pub fn variables(&self) -> Vec<String> {
        if matches!(self.meaning, Meaning::Help | Meaning::Version) {
            return Vec::new();
        }
        let from_name =
            |name: &&str| format!("IPERF_{}", name.to_ascii_uppercase().replace('-', "_"));
        let own = self.variable.map(String::from);
        own.into_iter()
            .chain(self.long.iter().map(from_name))
            .collect()
    }
}

const fn flag(name: &str, take: fn(&mut Draft)) -> (&str, Meaning) {
    (name, Meaning::Flag(take))
}

const fn value(
    name: &str,
    take: fn(&mut Draft, &Given) -> Result<(), OptionError>,
) -> (&str, Meaning) {
    (name, Meaning::Value(take))
}

/// What the options that are carried out do, by the first of their names.
static TABLE: &[(&str, Meaning)] = &[
    value("b", |draft, given| {
        draft.common.stream.rate = Some(given.rate()?);
        Ok(())
    }),
    flag("e", |draft| draft.common.enhanced = true),
    value("f", |draft, given| {
        draft.take_format(given.value);
        Ok(())
    }),
    value("i", |draft, given| draft.take_interval(given)),
    flag("json", |draft| draft.common.json = Some(Json::Whole)),
    flag("json-stream", |draft| {
        draft.common.json = Some(Json::Stream)
    }),
    value("l", |draft, given| {
        let length = given.count(1, LENGTH_BYTES_MAX)?;
        draft.length = Some((length as usize, given.source.to_owned()));
        Ok(())
    }),
    flag("m", |draft| draft.common.print_mss = true),
    value("o", |draft, given| {
        given.file().map(|value| draft.common.output = Some(value))
    }),
    value("p", |draft, given| {
        (draft.common.port, draft.common.last_port) = given.ports()?;
        Ok(())
    }),
    flag("u", |draft| draft.use_udp()),
    value("w", |draft, given| draft.take_window(given)),
    value("B", |draft, given| {
        let bound = values::bind(given.value)
            .ok_or_else(|| given.invalid("address, address:port or address%device"))?;
        draft.common.bind = Some(bound);
        Ok(())
    }),
    flag("C", |draft| draft.common.stream.has_header = false),
    value("M", |draft, given| {
        let bytes = given.count(1, u16::MAX.into())?;
        draft.common.stream.max_segment_bytes = Some(bytes as u16);
        Ok(())
    }),
    flag("N", |draft| draft.common.stream.no_delay = true),
    value("P", |draft, given| {
        given
            .integer(1, PARALLEL_MAX)
            .map(|value| draft.parallel = Some(value))
    }),
    value("S", |draft, given| {
        given
            .type_of_service()
            .map(|value| draft.common.stream.socket.type_of_service = Some(value))
    }),
    flag("V", |draft| draft.common.ipv6 = true),
    flag("z", |draft| draft.common.is_realtime = true),
    flag("4", |draft| draft.common.ipv6 = false),
    flag("sum-only", |draft| draft.common.exclude.streams = true),
    value("Z", |draft, given| {
        let name = given.name("the name of an algorithm")?;
        draft.common.stream.congestion_control = Some(name);
        Ok(())
    }),
    flag("s", |draft| draft.choose(Mode::Server)),
    value("allow", |draft, given| {
        let network = given.value.parse();
        let network = network
            .map_err(|_| given.invalid("an address or address/prefix, such as 10.0.0.0/8"))?;
        draft.allow.push(network);
        Ok(())
    }),
    flag("1", |draft| draft.single_client = true),
    flag("D", |draft| draft.daemon = true),
    flag("U", |draft| {
        draft.use_udp();
        draft.single_client = true;
    }),
    value("burst", |draft, given| {
        given
            .integer(1, BURST_MAX)
            .map(|value| draft.common.stream.burst_datagrams = value)
    }),
    value("c", |draft, given| {
        let (host, device) =
            values::host(given.value).ok_or_else(|| given.invalid("host or host%device"))?;
        draft.choose(Mode::Client { host, device });
        Ok(())
    }),
    value("dialect", |draft, given| {
        given
            .dialect()
            .map(|value| draft.common.stream.dialect = value)
    }),
    flag("d", |draft| draft.way(Way::Dual)),
    value("fq-rate", |draft, given| {
        let bits = given.count(8, EXACT_MAX)?;
        draft.common.stream.pacing_bytes_per_second = Some(bits / 8);
        Ok(())
    }),
    flag("full-duplex", |draft| draft.way(Way::FullDuplex)),
    value("L", |draft, given| {
        given.port().map(|value| draft.listen_port = Some(value))
    }),
    value("n", |draft, given| {
        given
            .count(1, EXACT_MAX)
            .map(|value| draft.bytes = Some(value))
    }),
    value("repeat", |draft, given| {
        given
            .integer(1, RUNS_MAX)
            .map(|value| draft.repeat = Some(value))
    }),
    flag("r", |draft| draft.way(Way::TradeOff)),
    flag("R", |draft| draft.way(Way::Reverse)),
    value("t", |draft, given| draft.take_time(given)),
    value("F", |draft, given| {
        draft.common.stream.input = Some(Input::File(given.file()?));
        Ok(())
    }),
    flag("I", |draft| draft.common.stream.input = Some(Input::Stdin)),
    value("T", |draft, given| {
        let hops = given.integer(1, u8::MAX.into())?;
        draft.common.stream.socket.time_to_live = Some(hops as u8);
        Ok(())
    }),
    flag("X", |draft| draft.common.stream.asks_for_version = true),
    flag("trip-times", |draft| {
        draft.common.stream.has_shared_clock = true
    }),
    value("x", |draft, given| {
        draft.exclude(given.value);
        Ok(())
    }),
    value("y", |draft, given| {
        draft.take_report_style(given.value);
        Ok(())
    }),
    flag("no-batch", |draft| draft.common.stream.is_batched = false),
    value("style", |draft, given| {
        given.style().map(|value| draft.common.style = value)
    }),
    ("h", Meaning::Help),
    ("v", Meaning::Version),
];
