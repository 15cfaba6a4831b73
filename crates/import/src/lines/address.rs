//! Addresses in sentences, and the words around each that may be its host: `kestrel is 172.30.4.1 and merlin
//! 172.30.4.2`, `fs = .5`.

use std::net::IpAddr;

use crate::lines::clause::{KINDS, RECEIVERS, SENDERS, is_in};

/// Words between a host's name and its address.
const LINKS: &str = "is has the and at with address ip server client sender receiver inet on got gets was to from \
    took takes host machine box router left right as its netmask broadcast = - as:";
/// Programs, which stand before an address in their commands.
const TOOLS: &str =
    "iperf iperf3 netblast netsend netreceive netperf nuttcp ttcp ping ssh telnet route ifconfig";
/// Drivers of interfaces, whose names end with a number.
const DRIVERS: &str = "em igb ix ixl re rl fxp vr sis bge bce nfe msk sk dc xl ste age ale alc jme axe vtnet vmx eth \
    ens eno enp wlan lo lagg vlan bridge tun ue cxl nge ti hme gem le de ath cpu";
/// Most words between a host's name and its address.
const LINKS_MAX: usize = 6;

/// An address in a sentence, and the words around it that may be its host, the likeliest last.
#[derive(Clone, Debug)]
pub struct AddressMention {
    pub address: String,
    before: Vec<String>,
    after: Vec<String>,
    /// `192.0.2.1 is alpha`.
    is_after: bool,
}

impl AddressMention {
    /// Takes for no host what cannot be one.
    pub fn doubt(&mut self, mut may_be: impl FnMut(&str) -> bool) {
        for likeliest in [&mut self.before, &mut self.after].map(|it| it.last_mut()) {
            if let Some(word) = likeliest.filter(|it| !may_be(it)) {
                word.clear();
            }
        }
    }

    /// The name that has the address in brackets behind it: `oak (192.0.2.1)`.
    pub fn bracketed<'m>(&'m self, text: &str) -> Option<&'m str> {
        let name = self.before.last()?;
        let is_it = is_name(name) && text.contains(&format!("{name} ({}", self.address));
        is_it.then_some(name)
    }

    /// The host, by which names the text gives hosts elsewhere.
    pub fn host(&self, is_host: impl Fn(&str) -> bool) -> Option<&String> {
        let known = |all: &'_ Vec<String>| all.iter().position(|it| is_host(it));
        let (before, after) = (known(&self.before), known(&self.after));
        let is_host = |it: &str| is_name(it) && (!is_kind(it) || is_in(it, KINDS));
        let name = |all: &'_ Vec<String>| all.len().checked_sub(1).filter(|at| is_host(&all[*at]));
        let said = name(&self.after)
            .filter(|_| self.is_after)
            .map(|at| &self.after[at]);
        let known = before
            .map(|at| &self.before[at])
            .or(after.map(|at| &self.after[at]));
        said.or(known)
            .or(name(&self.before).map(|at| &self.before[at]))
    }
}

/// Whether a word may be a host's name.
pub fn is_name(word: &str) -> bool {
    let small = word.to_ascii_lowercase();
    word.len() > 1
        && word.starts_with(|it: char| it.is_ascii_alphabetic())
        && !word.contains('.')
        && !is_in(&small, LINKS)
        && !is_in(
            &small,
            "it its this that these those they them us we you other are addr i386 amd64 wan lan dmz nat",
        )
        && !is_in(
            &small,
            "sends receives transmits generates port ports card leg cable now then here there",
        )
        && !is_in(&small, TOOLS)
        && !is_interface(&small)
}

/// Whether a word is a kind of host or a part in a test: a name only if it is one elsewhere.
fn is_kind(word: &str) -> bool {
    let small = word.to_ascii_lowercase();
    let lists = [KINDS, SENDERS, RECEIVERS];
    lists.iter().any(|list| is_in(&small, list))
}

fn plain(word: &str) -> &str {
    word.trim_matches(|it: char| !it.is_ascii_alphanumeric())
}

/// Whether a word names an interface: `re0`, `enp3s0f1`.
pub fn is_interface(word: &str) -> bool {
    let is_place = |it: &str| it.starts_with(|it: char| it.is_ascii_digit());
    let mut places = ["ens", "enp", "eno"].iter();
    places.any(|it| word.strip_prefix(it).is_some_and(is_place)) || is_numbered(word)
}

/// Whether a word names an interface by its driver and a number.
pub fn is_numbered(word: &str) -> bool {
    let letters = word.trim_end_matches(|it: char| it.is_ascii_digit());
    letters.len() < word.len() && is_in(letters, DRIVERS)
}

/// Whether all of a text, as that of a cell, may be a host's name.
pub fn is_plain_name(text: &str) -> bool {
    let is_letter = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
    text.bytes().all(is_letter) && is_name(text)
}

/// Whether a word is an address, perhaps with the length of its prefix.
pub fn is_address(word: &str) -> bool {
    let address = word.split_once('/').map_or(word, |it| it.0);
    address.parse::<IpAddr>().is_ok()
}

/// The words up to the first that may be a name, behind words that link it with an address; and whether `is` does.
fn names<'w>(words: impl Iterator<Item = &'w str>) -> (Vec<String>, bool) {
    let (mut all, mut is_said, mut is_and) = (Vec::new(), false, false);
    let mut words = words.take(LINKS_MAX).peekable();
    while let Some(word) = words.next() {
        let small = plain(word).to_ascii_lowercase();
        let is_next = is_and && small.parse::<IpAddr>().is_ok();
        // `pond, sink: igb0, 10.61.2.2`
        let is_part = word.ends_with(':') && (is_in(&small, SENDERS) || is_in(&small, RECEIVERS));
        let is_link = is_part || is_in(&small, LINKS) || is_in(word, LINKS) || is_interface(&small);
        is_and = small == "and";
        is_said |= is_in(word, "is = as");
        // `pf on, re1 = 192.0.2.1`, `800 MHz, fxp0 192.0.2.2`
        let is_state = is_in(word, "on, off,");
        let is_unit = words.peek().is_some_and(|it| it.parse::<f64>().is_ok());
        if is_state || is_unit && !is_link {
            break;
        }
        // `the NAS in the basement, 192.0.2.3`
        let is_thing =
            words.peek().is_some_and(|it| is_in(it, "the a an")) && !is_in(&small, KINDS);
        if (is_name(plain(word)) || is_link) && !is_thing {
            all.push(String::from(plain(word)));
        }
        if !is_next && !is_link {
            break;
        }
    }
    (all, is_said)
}

/// The hosts and addresses of a drawing, and the three hosts of a line: `gen ------ rtr ------ sink`, with the addresses
/// in it or in the next line.
pub fn drawing(line: &str, next: &str) -> (Vec<(String, String)>, Option<[String; 3]>) {
    let of = |text: &str| -> Vec<String> {
        let words = text.split(|it: char| it.is_whitespace() || "(),".contains(it));
        words
            .filter(|it| is_address(it))
            .map(String::from)
            .collect()
    };
    let parts: Vec<&str> = line
        .split("--")
        // A sentence may follow.
        .map(|it| it.split(". ").next().unwrap_or(it))
        .map(|it| it.trim_matches(['-', '>', '<', ' ', '.']))
        .collect();
    let parts = parts
        .into_iter()
        .filter(|it| it.contains(|it: char| it.is_ascii_alphanumeric()));
    let named = parts.filter_map(|part| {
        let bare = part
            .split('(')
            .map(|it| it.split_once(')').map_or(it, |it| it.1));
        let bare: Vec<&str> = part.split('(').take(1).chain(bare.skip(1)).collect();
        let names = bare.iter().flat_map(|it| it.split_whitespace());
        let mut names = names.filter(|it| is_name(it));
        let name = names.next()?;
        let is_one = names.next().is_none();
        is_one.then(|| (String::from(name), of(part)))
    });
    let named: Vec<(String, Vec<String>)> = named.collect();
    let [(first, at_first), .., (last, _)] = &named[..] else {
        return (Vec::new(), None);
    };
    let names: Vec<String> = named.iter().map(|it| it.0.clone()).collect();
    let three = names.try_into().ok();
    let below = of(next);
    let pairs = match &below[..] {
        [one, .., other] if at_first.is_empty() && named.len() <= below.len() + 1 => {
            vec![(one.clone(), first.clone()), (other.clone(), last.clone())]
        }
        _ => {
            let pairs = named
                .iter()
                .flat_map(|(name, all)| all.iter().map(move |it| (it.clone(), name.clone())));
            pairs.collect()
        }
    };
    (pairs, three)
}

/// The addresses of a drawing in columns, each with its host: `oak   ash   elm`, and in one of the next lines `192.0.2.1
/// 192.0.2.9 / 198.51.100.9   198.51.100.1`.
pub fn columns(line: &str, below: &[&str]) -> Vec<(String, String)> {
    const COLUMNS_MAX: usize = 5;
    fn apart(text: &str) -> Vec<&str> {
        let parts = text.split("  ").map(str::trim);
        parts.filter(|it| !it.is_empty()).collect()
    }
    let names = apart(line);
    if !(2..=COLUMNS_MAX).contains(&names.len()) || !names.iter().all(|it| is_plain_name(it)) {
        return Vec::new();
    }
    let of = |part: &'_ str| -> Vec<String> {
        let words = part.split(|it: char| it.is_whitespace() || "(),".contains(it));
        words
            .filter(|it| is_address(it))
            .map(String::from)
            .collect()
    };
    let rows = below.iter().map(|it| apart(it));
    let mut rows = rows.filter(|it| it.len() == names.len());
    let row = rows.find(|it| it.iter().all(|it| !of(it).is_empty()));
    let mut pairs = Vec::new();
    for (name, part) in names.iter().zip(row.into_iter().flatten()) {
        pairs.extend(of(part).into_iter().map(|it| (it, String::from(*name))));
    }
    pairs
}

/// The addresses in a text: `kestrel is 172.30.4.1 and merlin 172.30.4.2`, `fs = .5`.
pub fn mentions(text: &str) -> Vec<AddressMention> {
    let mut found = Vec::new();
    for line in rows(text) {
        for (at, word) in line.iter().enumerate() {
            let is_edge = |it: char| !it.is_ascii_alphanumeric();
            let address = word.trim_start_matches(|it| is_edge(it) && !":.".contains(it));
            let address = address.trim_end_matches(is_edge);
            let last = address
                .strip_prefix('.')
                .filter(|it| it.parse::<u8>().is_ok());
            let is_linked = at > 0 && is_in(line[at - 1], "= is");
            let (address, prefix) = address.split_once('/').unwrap_or((address, ""));
            if address.parse::<IpAddr>().is_err() && (last.is_none() || !is_linked) {
                continue;
            }
            // That of a network is no host's.
            if !prefix.is_empty() && address.ends_with(".0") {
                continue;
            }
            let (mut after, is_after) = names(line[at + 1..].iter().copied());
            // `10.3.0.20 (ash)`
            let behind = line.get(at + 1).and_then(|it| it.strip_prefix('('));
            let behind = behind.and_then(|it| it.split_once(')')).map(|it| it.0);
            if let Some(name) = behind.filter(|it| is_name(it)) {
                found.push(AddressMention {
                    address: String::from(address),
                    before: Vec::new(),
                    after: vec![String::from(name)],
                    is_after: true,
                });
                continue;
            }
            let is_apart = word.ends_with([',', ';', '.', ')']);
            // `10.3.0.7 ox is 10.3.0.2`
            let is_next = line.get(at + 2).is_some_and(|it| is_in(it, "is = has"))
                && line
                    .get(at + 3)
                    .is_some_and(|it| it.trim_end_matches(is_edge).parse::<IpAddr>().is_ok());
            if is_apart || is_next {
                after.clear();
            }
            let mut before = names(line[..at].iter().rev().copied()).0;
            if before.iter().all(|it| !is_name(it)) && after.is_empty() {
                before.extend(described(&line[..at]));
            }
            found.push(AddressMention {
                address: String::from(address),
                before,
                after,
                is_after,
            });
        }
    }
    found
}

/// The host that a sentence describes before it gives the address: `mimas is the NAS in the basement, 192.0.2.3`.
fn described(before: &[&str]) -> Option<String> {
    const WORDS_MAX: usize = 12;
    let ends = |it: &&str| it.ends_with(['.', ';']) || is_address(plain(it));
    let near = before
        .iter()
        .rev()
        .take(WORDS_MAX)
        .take_while(|it| !ends(it));
    let near = &before[before.len() - near.count()..];
    // `borealis, an old Dell on the WAN port, 192.0.2.3`
    let is_it = |it: &[&str]| {
        let is_named = it[1] == "is" || it[0].ends_with(',') && is_name(plain(it[0]));
        let thing = if it[1] == "is" { it.get(2) } else { it.get(1) };
        is_named && thing.is_some_and(|it| is_in(it, "the a an my our"))
    };
    let tails = (0..near.len()).map(|at| &near[at..]);
    let mut tails = tails.rev();
    let name = plain(tails.find(|it| it.len() > 2 && is_it(it))?[0]);
    (is_name(name) && !is_kind(name)).then(|| String::from(name))
}

/// A word without the tag behind it: `oak[/b]`.
fn untagged(word: &str) -> &str {
    word.split_once("[/").map_or(word, |it| it.0)
}

/// The words of a text; in a row of a table the first cell is the name of each address.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let mut all = vec![Vec::new()];
    for line in text.lines() {
        let mut trimmed = line.trim().trim_start_matches(['|', '*', '-', ' ']);
        for tag in ["[*]", "[b]", "[i]"] {
            trimmed = trimmed.trim_start().strip_prefix(tag).unwrap_or(trimmed);
        }
        let is_table = line.trim().starts_with('|');
        // Columns of a table without marks stand apart.
        let is_apart = |(name, rest): &(&str, &str)| {
            let all = rest.split_whitespace().filter(|it| is_address(plain(it)));
            !name.contains(' ')
                && is_name(plain(untagged(name)))
                && !rest.contains("--")
                && all.count() == 1
        };
        let row = match is_table {
            true => trimmed.split_once('|'),
            false => [": ", "  ", " - "]
                .iter()
                .filter_map(|it| trimmed.split_once(it))
                .find(is_apart),
        };
        let Some((name, rest)) = row else {
            all[0].extend(line.split_whitespace());
            continue;
        };
        let rest = rest.split(|it: char| it.is_whitespace() || "(),;".contains(it));
        for address in rest.filter(|it| is_address(it)) {
            all.push(untagged(name).split_whitespace().chain([address]).collect());
        }
    }
    all
}
