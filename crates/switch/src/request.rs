//! Requests: values for knobs of an interface. A setting is a name with a request for each host.
//!
//! A request in a file and one in memory are equal. Unknown knobs, numbers without a unit and values out of range are
//! refused when the file is read, with their name.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use strsim::osa_distance;

use crate::kernel::Target;
use crate::knob::value::parse_numbers;
use crate::knob::{Kind, KnobRow, KnobUnit, Value, ValueError, row_of, table};

/// The default period of polling: 5000 rounds a second.
pub const POLLING_PERIOD_NS: u64 = 200_000;

/// Knobs with their values, in the order of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnobValues(Vec<(&'static KnobRow, Value)>);

/// The NAPI instances of an interface that a request concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfacePart {
    /// All of them, including later ones.
    Whole,
    /// Those of some receive queues.
    RxQueues(Vec<u32>),
    /// Those with these ids.
    Napis(Vec<u32>),
}

/// An interface by name, whole or in part: `eth0`, `eth0:rx0-3`, `eth0:napi257`.
/// ```
/// use nicpoll_switch::{InterfacePart, Name};
///
/// let name = Name::parse("eth0:rx0-2")?;
/// assert_eq!(name.interface, "eth0");
/// assert_eq!(name.part, InterfacePart::RxQueues(vec![0, 1, 2]));
/// # Ok::<(), nicpoll_switch::ValueError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The interface.
    pub interface: String,
    /// The part of it concerned.
    pub part: InterfacePart,
}

/// Values for one interface that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The interface.
    pub target: Target,
    /// The NAPI instances concerned.
    pub part: InterfacePart,
    /// The knobs with their values.
    pub values: KnobValues,
}

/// Values for one interface, by name.
///
/// In TOML:
/// ```toml
/// interface = "eth0"
/// set = { napi_defer_hard_irqs = 2147483647, gro_flush_timeout = "200us", gro = "on" }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The interface.
    pub interface: Name,
    /// The values.
    pub set: KnobValues,
}

/// A setting: a request for each host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Its name in tables and verdicts.
    pub name: String,
    /// Its description, one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The request of each host, by the host's name; hosts that are not listed are not changed.
    #[serde(default)]
    pub hosts: BTreeMap<String, Request>,
}

impl KnobValues {
    /// Makes an empty set of values.
    pub fn new() -> Self {
        KnobValues::default()
    }

    /// Returns the values that `nicpoll set IF polling` sets: a timer starts the rounds, and the interrupt stays
    /// masked.
    pub fn polling(period_ns: u64) -> Self {
        let count = u64::from(table::DEFER_HARD_IRQS_MAX);
        KnobValues::new()
            .with(&table::DEFER_HARD_IRQS, count)
            .with(&table::GRO_FLUSH_TIMEOUT, period_ns)
    }

    /// Adds a number. It must be within the knob's range, or writing it fails.
    #[must_use]
    pub fn with(mut self, row: &'static KnobRow, number: u64) -> Self {
        self.insert(row, Value::Number(number));
        self
    }

    /// Gives a knob a value, replacing an earlier one.
    pub fn insert(&mut self, row: &'static KnobRow, value: Value) {
        self.0.retain(|(known, _)| *known != row);
        // Sysctls and features without a row in the table come last, by name.
        let place = |row: &KnobRow| (table::position_of(row), row.name);
        let at = self
            .0
            .partition_point(|(known, _)| place(known) < place(row));
        self.0.insert(at, (row, value));
    }

    /// Returns the value of a knob.
    pub fn get(&self, row: &KnobRow) -> Option<&Value> {
        let found = self.0.iter().find(|(known, _)| *known == row);
        found.map(|(_, value)| value)
    }

    /// Returns the number of a knob.
    pub fn number(&self, row: &KnobRow) -> Option<u64> {
        self.get(row)?.number()
    }

    /// Iterates over knobs and values, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (&'static KnobRow, &Value)> {
        self.0.iter().map(|(row, value)| (*row, value))
    }

    /// Returns names and values as the kernel's own tools write them, for the study's record.
    pub fn list(&self) -> Vec<(String, String)> {
        let written = |(row, value): (&'static KnobRow, &Value)| {
            let value = match row.unit {
                KnobUnit::Switch => row.show(value),
                _ => value.to_string(),
            };
            (String::from(row.name), value)
        };
        self.iter().map(written).collect()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Request {
    /// Requests values for a whole interface.
    pub fn of(interface: &str, set: KnobValues) -> Self {
        Request {
            interface: Name::whole(interface),
            set,
        }
    }
}

impl Name {
    /// Names a whole interface.
    pub fn whole(interface: &str) -> Self {
        Name {
            interface: String::from(interface),
            part: InterfacePart::Whole,
        }
    }

    /// Parses `IF`, `IF:rx0-3` or `IF:napi257`.
    pub fn parse(word: &str) -> Result<Name, ValueError> {
        let Some((interface, part)) = word.rsplit_once(':') else {
            return Ok(Name::whole(word));
        };
        let numbers = |text: &str| parse_numbers(text).map_err(|error| error.of(word));
        let part = if let Some(list) = part.strip_prefix("rx") {
            InterfacePart::RxQueues(numbers(list)?)
        } else if let Some(list) = part.strip_prefix("napi") {
            InterfacePart::Napis(numbers(list)?)
        } else {
            return Err(ValueError(format!(
                "{word}: after the colon comes a part, such as {interface}:rx0-3 or {interface}:napi257"
            )));
        };
        Ok(Name {
            interface: String::from(interface),
            part,
        })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |numbers: &[u32]| {
            let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            numbers.join(",")
        };
        match &self.part {
            InterfacePart::Whole => f.write_str(&self.interface),
            InterfacePart::RxQueues(queues) => write!(f, "{}:rx{}", self.interface, list(queues)),
            InterfacePart::Napis(ids) => write!(f, "{}:napi{}", self.interface, list(ids)),
        }
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Name::parse(&word).map_err(D::Error::custom)
    }
}

impl Serialize for KnobValues {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let mut named: BTreeMap<&str, BTreeMap<&str, String>> = BTreeMap::new();
        for (row, value) in &self.0 {
            if let Some(kind) = row.named_kind() {
                let members = named.entry(kind.key()).or_default();
                members.insert(row.name, row.show(value));
                continue;
            }
            match (row.unit, value) {
                (KnobUnit::Count, Value::Number(number)) => {
                    map.serialize_entry(row.name, number)?
                }
                _ => map.serialize_entry(row.name, &row.show(value))?,
            }
        }
        for (key, members) in &named {
            map.serialize_entry(key, members)?;
        }
        map.end()
    }
}

/// A value in the forms that a file may write it.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a value is on, off, a number, a text in quotes or a list of cores"
)]
enum Written {
    Flag(bool),
    Number(i64),
    Fraction(f64),
    Text(String),
    Cpus(Vec<u32>),
    Named(BTreeMap<String, Written>),
}

impl<'de> Deserialize<'de> for KnobValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written: BTreeMap<String, Written> = BTreeMap::deserialize(deserializer)?;
        let mut values = KnobValues::new();
        for (name, written) in written {
            let read = match (Kind::of_key(&name), written) {
                (Some(kind), Written::Named(members)) => members
                    .into_iter()
                    .map(|(name, written)| value_of(row_of(kind, &name)?, written))
                    .collect(),
                (_, written) => read(name, written).map(|read| vec![read]),
            };
            for (row, value) in read.map_err(D::Error::custom)? {
                values.insert(row, value);
            }
        }
        Ok(values)
    }
}

fn read(name: String, written: Written) -> Result<(&'static KnobRow, Value), ValueError> {
    let Some(row) = table::named(&name) else {
        let known: Vec<&str> = table::TABLE.iter().map(|row| row.name).collect();
        let meant = did_you_mean(&name, known.iter().copied());
        let known = known.join(", ");
        return Err(ValueError(format!(
            "there is no knob '{name}'; there are {known}{meant}"
        )));
    };
    value_of(row, written)
}

fn value_of(
    row: &'static KnobRow,
    written: Written,
) -> Result<(&'static KnobRow, Value), ValueError> {
    let text = match written {
        Written::Flag(on) => String::from(if on { "on" } else { "off" }),
        Written::Number(number) => number.to_string(),
        Written::Fraction(number) => number.to_string(),
        Written::Text(text) => text,
        Written::Cpus(cpus) => Value::Cpus(cpus).to_string(),
        Written::Named(members) => members.into_keys().collect::<Vec<_>>().join(", "),
    };
    let value = row.parse(&text).map_err(|error| error.of(row.name))?;
    Ok((row, value))
}

/// Shorter words are not corrected, in letters per mistake.
const LETTERS_MIN: usize = 3;
/// Most wrong letters that are corrected.
const MISTAKES_MAX: usize = 2;

/// Returns the candidate nearest to a mistyped word; `None` if none is near.
pub fn similar<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = MISTAKES_MAX.min(word.chars().count() / LETTERS_MIN);
    let near = candidates
        .into_iter()
        .map(|candidate| (osa_distance(word, candidate), candidate));
    let near = near.filter(|(mistakes, _)| (1..=allowed).contains(mistakes));
    near.min_by_key(|(mistakes, _)| *mistakes)
        .map(|(_, candidate)| candidate)
}

/// Returns a suggestion for a mistyped word, as the end of a sentence; empty if no candidate is near.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    similar(word, candidates).map_or_else(String::new, |meant| format!("; did you mean '{meant}'?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLLING: &str = r#"
        name = "polling"
        [hosts.sender]
        interface = "veth0"
        set = { tso = "off" }
        [hosts.receiver]
        interface = "veth0:rx0-1"
        [hosts.receiver.set]
        gro = true
        threaded = 1
        napi_defer_hard_irqs = 2147483647
        gro_flush_timeout = "200us"
        thread_cpus = [1]
        thread_policy = "share 50%"
    "#;

    #[test]
    fn a_setting_is_the_same_in_toml_in_json_and_in_memory() {
        let setting: Setting = toml::from_str(POLLING).unwrap();
        let sender = &setting.hosts["sender"];
        assert_eq!(sender.set, KnobValues::new().with(&table::TSO, 0));
        let receiver = &setting.hosts["receiver"];
        assert_eq!(receiver.interface.part, InterfacePart::RxQueues(vec![0, 1]));
        assert_eq!(
            receiver.set.number(&table::GRO_FLUSH_TIMEOUT),
            Some(200_000)
        );
        assert_eq!(
            receiver.set.get(&table::THREAD_CPUS),
            Some(&Value::Cpus(vec![1]))
        );
        let json = serde_json::to_string(&setting).unwrap();
        assert!(json.contains(r#""gro_flush_timeout":"200us""#), "{json}");
        assert_eq!(serde_json::from_str::<Setting>(&json).unwrap(), setting);
    }

    #[test]
    fn what_is_wrong_is_refused_by_name() {
        let cases = r#"
            gro = true | gro_flush = 1 | there is no knob 'gro_flush'
            "200us" | 200 | gro_flush_timeout: a unit is needed, such as '200us'
            "200us" | 200000 | gro_flush_timeout: a unit is needed, such as '200000ns' or '200000us'
            gro = true | gro = "yes" | gro: 'yes' is neither on nor off
            threaded = 1 | threaded = 3 | threaded: 3 is out of range; give 0 to 2
            threaded = 1 | threaded = -1 | threaded: '-1' is not a number
            threaded = 1 | threaded = 1.5 | threaded: '1.5' is not a number
            share 50% | share | thread_policy: 'share' is not a scheduling policy
            veth0:rx0-1 | veth0:tx0 | after the colon comes a part
            name = | nom = | nom"#;
        for case in cases.trim().lines() {
            let case: Vec<&str> = case.trim().split(" | ").collect();
            let [from, to, said] = case[..] else {
                panic!("{case:?}");
            };
            let text = POLLING.replacen(from, to, 1);
            assert_ne!(text, POLLING);
            let error = toml::from_str::<Setting>(&text).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
    }

    #[test]
    fn a_part_follows_the_colon() {
        for word in ["eth0", "eth0:rx0,1,2", "eth0:napi257,9"] {
            assert_eq!(Name::parse(word).unwrap().to_string(), word);
        }
        let range = Name::parse("eth0:rx0-2").unwrap();
        assert_eq!(range.part, InterfacePart::RxQueues(vec![0, 1, 2]));
        for wrong in ["eth0:", "eth0:tx0", "eth0:rx", "eth0:rxa"] {
            assert!(Name::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_what_is_near_is_meant() {
        let near = |word| similar(word, ["polling", "em0", "enp3s0"]);
        assert_eq!(near("poling"), Some("polling"));
        assert_eq!(near("polllxgn"), None);
        assert_eq!(near("pollign"), Some("polling"));
        assert_eq!(near("em1"), Some("em0"));
        assert_eq!(near("enp3s1"), Some("enp3s0"));
        for far in ["polling", "", "x", "wlan0"] {
            assert_eq!(near(far), None, "{far}");
        }
    }
}
