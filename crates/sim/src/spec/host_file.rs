//! Reads host files; holds the embedded ones, and presets of sections.
//!
//! A file with anything unknown, out of range, or missing without a default is refused, with the line at fault. A
//! preset is a committed host file, or some of its numbers; a file's own numbers override it.

use std::collections::BTreeMap;
use std::ops::Range;

use nicpoll_model::FileError;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::host::{Field, HostModel, OF_CARD, OPTIONAL_SECTION, lowered};
use super::options::number;

/// A name longer than this is refused.
const NAME_CHARS_MAX: usize = 80;

impl HostModel {
    /// Reads a host file.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line.
    pub fn parse(text: &str) -> Result<HostModel, FileError> {
        let reader = HostFileReader { text };
        let document = DeTable::parse(text).map_err(|error| {
            let message = format!("this is not TOML: {}", error.message());
            reader.error(error.span().unwrap_or_default(), message)
        })?;
        reader.host(document.get_ref())
    }
}

struct HostFileReader<'a> {
    text: &'a str,
}

impl HostFileReader<'_> {
    fn host(&self, document: &DeTable<'_>) -> Result<HostModel, FileError> {
        let mut host = HostModel {
            name: self.name(document)?,
            ..HostModel::default()
        };
        self.refuse_unknown(document)?;
        let known = self.presets(document)?;
        let is_read = |section| section != OPTIONAL_SECTION || document.contains_key(section);
        for field in HostModel::FIELDS
            .iter()
            .filter(|field| is_read(split(field.name).0))
        {
            let value = self.number(document, field, &known)?;
            // `number` has checked the range, and the name is a field's.
            let set = host.set(field.name, value);
            set.map_err(|error| self.error(0..0, error.to_string()))?;
        }
        Ok(host)
    }

    /// Returns the numbers of the sections' presets.
    fn presets(&self, document: &DeTable<'_>) -> Result<BTreeMap<&'static str, u64>, FileError> {
        let mut known = BTreeMap::new();
        for section in SECTIONS {
            let table = document.get(section).map(Spanned::get_ref);
            let Some(value) = table.and_then(|table| table.get(KEY)) else {
                continue;
            };
            let numbers = match value.get_ref() {
                DeValue::String(name) => preset(section, name),
                _ => None,
            };
            known.extend(numbers.ok_or_else(|| {
                let names = match section {
                    "cpu" => names(&HOSTS),
                    "card" => names(&CARDS),
                    _ => LINES.to_vec(),
                };
                let message = format!(
                    "[{section}] has no such preset; there are {} (nicpoll sim hosts)",
                    names.join(", ")
                );
                self.error(value.span(), message)
            })?);
        }
        Ok(known)
    }

    fn name(&self, document: &DeTable<'_>) -> Result<String, FileError> {
        let wanted = format!(
            "give name = \"...\" before the first section: the name of the host, 1 to \
             {NAME_CHARS_MAX} characters on one line"
        );
        let Some(value) = document.get("name") else {
            return Err(self.error(0..0, wanted));
        };
        match value.get_ref() {
            DeValue::String(name)
                if (1..=NAME_CHARS_MAX).contains(&name.chars().count())
                    && !name.contains(char::is_control) =>
            {
                Ok(name.to_string())
            }
            _ => Err(self.error(value.span(), wanted)),
        }
    }

    fn refuse_unknown(&self, document: &DeTable<'_>) -> Result<(), FileError> {
        for (section, value) in document {
            if section.get_ref() == "name" {
                continue;
            }
            let known = fields_of(section.get_ref());
            let DeValue::Table(table) = value.get_ref() else {
                let message = format!("{} is neither a section nor the name", section.get_ref());
                return Err(self.error(section.span(), message));
            };
            if known.is_empty() {
                let message = format!(
                    "no such section: [{}]; there are {}",
                    section.get_ref(),
                    sections().join(", ")
                );
                return Err(self.error(section.span(), message));
            }
            let has_preset = SECTIONS.contains(&&**section.get_ref());
            let is_known = |key: &str| known.contains(&key) || has_preset && key == KEY;
            let unknown = table.keys().find(|key| !is_known(key.get_ref()));
            if let Some(key) = unknown {
                let message = format!(
                    "[{}] has no {}; it has {}",
                    section.get_ref(),
                    key.get_ref(),
                    known.join(", ")
                );
                return Err(self.error(key.span(), message));
            }
        }
        Ok(())
    }

    fn number(
        &self,
        document: &DeTable<'_>,
        field: &Field,
        known: &BTreeMap<&'static str, u64>,
    ) -> Result<u64, FileError> {
        let (section, name) = split(field.name);
        let table = document.get(section);
        let value = table.and_then(|table| table.get_ref().get(name));
        let known = known.get(field.name).copied();
        if let (None, Some(known)) = (value, known.or(field.default)) {
            return Ok(known);
        }
        let Some(value) = value else {
            let end = self.text.len()..self.text.len();
            let message = format!(
                "{} is missing; give [{section}] a line {name} = ..., a whole number from {} to {}: {}",
                field.name,
                field.min,
                field.max,
                lowered(field.meaning)
            );
            return Err(self.error(table.map_or(end, Spanned::span), message));
        };
        let number = match value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        number
            .filter(|number| (field.min..=field.max).contains(number))
            .ok_or_else(|| {
                // A value may be as long as the file.
                let given = self.text[value.span()].lines().next().unwrap_or_default();
                let given: String = given.chars().take(40).collect();
                self.error(value.span(), field.refusal(&given))
            })
    }

    fn error(&self, span: Range<usize>, message: String) -> FileError {
        FileError::at(self.text, span, message)
    }
}

fn split(name: &'static str) -> (&'static str, &'static str) {
    name.split_once('.').unwrap_or(("", name))
}

fn fields_of(section: &str) -> Vec<&'static str> {
    let names = HostModel::FIELDS.iter().map(|field| split(field.name));
    let of_section = names.filter(|(of, _)| *of == section);
    of_section.map(|(_, name)| name).collect()
}

fn sections() -> Vec<&'static str> {
    let names = HostModel::FIELDS.iter().map(|field| split(field.name).0);
    let mut names: Vec<_> = names.collect();
    names.dedup();
    names
}

/// The committed host files by name.
const HOSTS: [(&str, &str); 10] = [
    ("asa633", include_str!("../../hosts/asa633.toml")),
    ("generic", include_str!("../../hosts/generic.toml")),
    ("linux", include_str!("../../hosts/linux.toml")),
    ("marketdata", include_str!("../../hosts/marketdata.toml")),
    ("net6501", include_str!("../../hosts/net6501.toml")),
    ("node", include_str!("../../hosts/node.toml")),
    ("poweredge", include_str!("../../hosts/poweredge.toml")),
    ("t5000", include_str!("../../hosts/t5000.toml")),
    ("wan", include_str!("../../hosts/wan.toml")),
    ("wrap", include_str!("../../hosts/wrap.toml")),
];

/// Cards by FreeBSD driver, each with a host that has one.
const CARDS: [(&str, &str); 3] = [("em", "poweredge"), ("sis", "wrap"), ("vr", "t5000")];

/// Lines, in bits a second: full duplex, without a delay.
const LINES: [&str; 4] = ["10m", "100m", "1g", "10g"];

/// Sections that may name a preset.
const SECTIONS: [&str; 3] = ["cpu", "card", "link"];
/// The key that names it.
const KEY: &str = "preset";

/// A host file embedded in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EmbeddedHost {
    /// Its name.
    pub name: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

impl EmbeddedHost {
    /// All embedded hosts, by name.
    pub fn all() -> impl Iterator<Item = EmbeddedHost> {
        HOSTS
            .into_iter()
            .map(|(name, text)| EmbeddedHost { name, text })
    }

    /// Returns the host named `name`.
    pub fn named(name: &str) -> Option<EmbeddedHost> {
        EmbeddedHost::all().find(|host| host.name == name)
    }

    /// Returns its description, from the remark at the head of its file.
    pub fn about(&self) -> String {
        let remark = self.text.lines().map_while(|line| line.strip_prefix("# "));
        remark.collect::<Vec<_>>().join(" ")
    }

    fn host(&self) -> HostModel {
        // A test reads each embedded file.
        HostModel::parse(self.text).unwrap_or_default()
    }
}

/// Lists the hosts with their descriptions, and the names of the other presets.
pub fn list_presets() -> String {
    let mut text = String::from("Hosts, and values of [cpu] preset:\n");
    for host in EmbeddedHost::all() {
        let about = host.about();
        let first = about.split_inclusive(". ").next().unwrap_or_default();
        text.push_str(&format!("  {:<11} {}\n", host.name, first.trim_end()));
    }
    text.push_str(&format!("\n[card] preset: {}\n", names(&CARDS).join(", ")));
    text.push_str(&format!("[link] preset: {}\n", LINES.join(", ")));
    text
}

fn names(of: &[(&'static str, &str)]) -> Vec<&'static str> {
    of.iter().map(|(name, _)| *name).collect()
}

/// Returns the numbers of a section's preset, if there is one of that name. A preset of `cpu` has all numbers of a
/// host.
fn preset(section: &str, name: &str) -> Option<BTreeMap<&'static str, u64>> {
    let numbers = |name: &str| {
        let host = EmbeddedHost::named(name)?.host();
        let number = move |field: &Field| Some((field.name, host.get(field.name)?));
        Some(HostModel::FIELDS.iter().filter_map(number))
    };
    match section {
        "cpu" => Some(numbers(name)?.collect()),
        "card" => {
            let (_, host) = CARDS.iter().find(|(card, _)| *card == name)?;
            let of_card = numbers(host)?.filter(|(field, _)| OF_CARD.contains(field));
            Some(of_card.collect())
        }
        _ => {
            let line = LINES.iter().find(|line| **line == name)?;
            Some(BTreeMap::from([
                ("link.bits_per_second", number(line).ok()?),
                ("link.mtu_bytes", 1500),
                ("link.queue_packets", 1000),
                ("link.delay_ns", 0),
                ("link.half_duplex", 0),
            ]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::host::Veth;
    use super::*;

    const GENERIC: &str = include_str!("../../hosts/generic.toml");

    #[test]
    fn every_field_is_read() {
        let host = HostModel::parse(GENERIC).unwrap();
        assert_eq!(host.name, "generic");
        assert_eq!(host.cpu.hz, 1000);
        for field in HostModel::FIELDS {
            assert!((field.min..=field.max).contains(&host.get(field.name).unwrap()));
        }
    }

    #[test]
    fn the_veth_section_is_there_whole_or_not_at_all() {
        assert_eq!(HostModel::parse(GENERIC).unwrap().veth, Veth::default());
        let part = format!("{GENERIC}\n[veth]\npair = 1\nwake_ns = 2\ntimer_delay_ns = 4\n");
        let error = HostModel::parse(&part).unwrap_err().to_string();
        assert!(error.contains("veth.wake_delay_ns is missing"), "{error}");
        let whole = HostModel::parse(&format!("{part}wake_delay_ns = 3\n")).unwrap();
        assert_eq!((whole.veth.pair, whole.veth.wake_delay_ns), (1, 3));
    }

    #[test]
    fn what_not_every_host_has_may_be_left_out() {
        let optional: Vec<_> = HostModel::FIELDS
            .iter()
            .filter(|of| of.default.is_some())
            .collect();
        // Each has one processor and one queue at least.
        assert!(
            optional
                .iter()
                .all(|field| field.default == Some(field.min))
        );
        let names: Vec<_> = optional.iter().map(|field| field.name).collect();
        assert_eq!(
            names.join(" "),
            "cpu.wake_refill_ns cpu.stat_hz cpu.wake_other_ns cpu.cpus card.hands_over card.queues network.gro \
             network.gro_ns application.cpu application.computing"
        );
        let line = "hz = 1000\nstat_hz = 128\n";
        let host = HostModel::parse(&GENERIC.replacen("hz = 1000", line, 1)).unwrap();
        assert_eq!((host.cpu.stat_hz, host.card.hands_over), (128, 0));
    }

    const ROUTER: &str = "name = \"mine\"\n[cpu]\npreset = \"wrap\"\n[card]\npreset = \"em\"\nrx_ring = 64\n\
        [link]\npreset = \"1g\"\n";

    #[test]
    fn every_committed_host_is_carried_and_is_right() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sim/hosts");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), HOSTS.len());
        for host in EmbeddedHost::all() {
            assert_eq!(HostModel::parse(host.text).unwrap().name, host.name);
            assert!(host.about().len() > 40, "{}", host.name);
        }
    }

    #[test]
    fn a_host_begins_from_presets_and_what_it_states_counts() {
        let host = HostModel::parse(ROUTER).unwrap();
        let (wrap, em) = (
            EmbeddedHost::named("wrap").unwrap().host(),
            EmbeddedHost::named("poweredge").unwrap().host(),
        );
        assert_eq!(host.name, "mine");
        assert_eq!(host.cpu, wrap.cpu);
        assert_eq!(host.card.rx_packet_ns, wrap.card.rx_packet_ns);
        assert_eq!(host.card.moderation_ns, em.card.moderation_ns);
        let rings = (host.card.rx_ring, host.card.tx_ring);
        assert_eq!(rings, (64, em.card.tx_ring));
        assert_eq!(host.link.bits_per_second, 1_000_000_000);
    }
}
