//! Hosts that the program carries, and parts of them that a host file may begin from.
//!
//! What must hold: a preset is a committed host file, or some of its numbers, and nothing else; what a file states
//! itself always counts.

use std::collections::BTreeMap;

use super::HostModel;

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

/// Cards by their FreeBSD driver, each with the host that has one.
const CARDS: [(&str, &str); 3] = [("em", "poweredge"), ("sis", "wrap"), ("vr", "t5000")];

/// What a card and its driver bring along: what they hold, and what waits for the bus or for the card. The rest of what
/// a packet costs in the driver is work of the processor.
const OF_CARD: [&str; 13] = [
    "card.rx_ring",
    "card.tx_ring",
    "card.moderation_ns",
    "card.interrupt_ns",
    "card.rearm_ns",
    "card.poll_ns",
    "card.status_ns",
    "card.rx_kib_ns",
    "card.tx_kib_ns",
    "card.tx_gap_ns",
    "card.pass_packets",
    "card.hands_over",
    "network.checksum_kib_ns",
];

/// Lines, in bits a second: full duplex, without a delay.
const LINES: [(&str, u64); 4] = [
    ("10m", 10_000_000),
    ("100m", 100_000_000),
    ("1g", 1_000_000_000),
    ("10g", 10_000_000_000),
];

/// Sections that may begin from a preset.
pub(super) const SECTIONS: [&str; 3] = ["cpu", "card", "link"];
/// What their line is called.
pub(super) const KEY: &str = "preset";

/// A host that the program carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EmbeddedHost {
    /// What it is called.
    pub name: &'static str,
    /// Its host file.
    pub text: &'static str,
}

impl EmbeddedHost {
    /// All of them, by name.
    pub fn all() -> impl Iterator<Item = EmbeddedHost> {
        HOSTS
            .into_iter()
            .map(|(name, text)| EmbeddedHost { name, text })
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<EmbeddedHost> {
        EmbeddedHost::all().find(|host| host.name == name)
    }

    /// What it is, from the remark that its file begins with.
    pub fn about(&self) -> String {
        let remark = self.text.lines().map_while(|line| line.strip_prefix("# "));
        remark.collect::<Vec<_>>().join(" ")
    }

    fn host(&self) -> HostModel {
        // A test reads each.
        HostModel::parse(self.text).unwrap_or_default()
    }
}

/// Hosts with what they are, and the names of the other presets, as text.
pub fn list_presets() -> String {
    let mut text = String::from("Hosts, and values of [cpu] preset:\n");
    for host in EmbeddedHost::all() {
        let about = host.about();
        let first = about.split_inclusive(". ").next().unwrap_or_default();
        text.push_str(&format!("  {:<11} {}\n", host.name, first.trim_end()));
    }
    text.push_str(&format!("\n[card] preset: {}\n", names(&CARDS).join(", ")));
    text.push_str(&format!("[link] preset: {}\n", names(&LINES).join(", ")));
    text
}

fn names<T>(of: &[(&'static str, T)]) -> Vec<&'static str> {
    of.iter().map(|(name, _)| *name).collect()
}

/// Adds the numbers of a section's preset to those that are known. The processor's are all numbers of a host.
///
/// # Errors
/// The names that there are.
pub(super) fn add(
    known: &mut BTreeMap<&'static str, u64>,
    section: &str,
    name: &str,
) -> Result<(), Vec<&'static str>> {
    let all = |host: HostModel| {
        let fields = HostModel::FIELDS.iter();
        fields.filter_map(move |field| Some((field.name, host.get(field.name)?)))
    };
    match section {
        "cpu" => {
            let found = EmbeddedHost::named(name);
            let found = found.ok_or_else(|| names(&HOSTS))?;
            known.extend(all(found.host()));
        }
        "card" => {
            let found = CARDS.iter().find(|(card, _)| *card == name);
            let of = found.and_then(|(_, host)| EmbeddedHost::named(host));
            let of = of.ok_or_else(|| names(&CARDS))?;
            known.extend(all(of.host()).filter(|(field, _)| OF_CARD.contains(field)));
        }
        _ => {
            let found = LINES.iter().find(|(line, _)| *line == name);
            let (_, bits) = found.ok_or_else(|| names(&LINES))?;
            known.extend([
                ("link.bits_per_second", *bits),
                ("link.mtu_bytes", 1500),
                ("link.queue_packets", 1000),
                ("link.delay_ns", 0),
                ("link.half_duplex", 0),
            ]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(
            (host.card.rx_ring, host.card.tx_ring),
            (64, em.card.tx_ring)
        );
        assert_eq!(host.link.bits_per_second, 1_000_000_000);
    }

    #[test]
    fn a_preset_that_is_none_is_refused_with_those_there_are() {
        for (from, to, words) in [
            ("\"wrap\"", "\"warp\"", "there are asa633, generic,"),
            ("\"em\"", "\"rtl\"", "there are em, sis, vr"),
            ("\"1g\"", "1", "there are 10m, 100m, 1g, 10g"),
            ("[cpu]\npreset = \"wrap\"\n", "", "cpu.hz is missing"),
            ("[link]\n", "[tcp]\n", "[tcp] has no preset"),
        ] {
            let error = HostModel::parse(&ROUTER.replacen(from, to, 1)).unwrap_err();
            assert!(error.message.contains(words), "{to}: {error}");
        }
    }
}
