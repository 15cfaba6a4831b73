//! The table of options: all of iperf 2.1.8's and nicpoll's own, parsed from `options.txt`: names, help lines,
//! and rows of docs/dialects.md. `draft.rs` applies them. Unsupported options of 2.1.8 have a record, too, so
//! the scanner knows whether they take a value and the refusal names them.

use std::sync::LazyLock;

/// Whether an option takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// It takes none.
    None,
    /// It requires one.
    Required,
    /// It may have one, after `=` only.
    Optional,
}

/// One option.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its letter.
    pub letter: Option<char>,
    /// Its long names, the preferred one first.
    pub long: Vec<&'static str>,
    /// The first of its names; identifies the option.
    pub key: &'static str,
    /// Where it applies: `client`, `server` or `both`.
    pub side: &'static str,
    /// Whether it is refused with TCP.
    pub needs_udp: bool,
    /// Whether it takes a value.
    pub argument: Argument,
    /// Advice printed when an unsupported option is refused; `None` if it is supported.
    pub instead: Option<&'static str>,
    /// An environment variable of 2.1.8 that does not follow from a long name.
    variable: Option<&'static str>,
    /// Its help entry: placeholder of the value, and meaning.
    pub help: [&'static str; 2],
    /// Another entry in the server section.
    pub server_help: Option<[&'static str; 2]>,
    /// Its row in docs/dialects.md: placeholder of the value, meaning, and permitted values.
    #[cfg(test)]
    pub doc: [&'static str; 3],
}

/// The help sections with their titles, in the order of messages and docs/dialects.md. The last one, for
/// unsupported options, has no title.
pub static SECTIONS: LazyLock<Vec<(&str, Vec<Spec>)>> = LazyLock::new(|| {
    let sections = include_str!("options.txt").split("== ").skip(1);
    let read = |section: &'static str| {
        let (title, records) = section.split_once('\n').unwrap_or_default();
        let records = records.trim_end().split("\n\n");
        (title, records.map(Spec::read).collect())
    };
    sections.map(read).collect()
});

/// All options, supported ones first.
pub fn specs() -> impl Iterator<Item = &'static Spec> {
    SECTIONS.iter().flat_map(|(_, specs)| specs)
}

/// A field of a record. A line that begins with a space continues the previous one.
fn field(record: &'static str, name: &str) -> Option<&'static str> {
    let (_, text) = record.split_once(&format!("\n{name}:"))?;
    let mut ends = text.match_indices('\n').map(|(end, _)| end);
    let end = ends.find(|end| !text[end + 1..].starts_with(' '));
    Some(text[..end.unwrap_or(text.len())].trim())
}

/// Splits a field at `::`.
fn parts<const N: usize>(text: &'static str) -> [&'static str; N] {
    let mut parts = text.split("::").map(str::trim);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

impl Spec {
    fn read(record: &'static str) -> Self {
        let field = |name| field(record, name);
        let names = record.lines().next().unwrap_or_default();
        let (letters, long): (Vec<&str>, Vec<&str>) =
            names.split(' ').partition(|name| name.len() == 1);
        let side = field("side").unwrap_or_default();
        let doc: [&str; 3] = parts(field("doc").unwrap_or_default());
        let has_value = match field("value") {
            None => !doc[0].is_empty(),
            Some(value) => value == "required",
        };
        Spec {
            letter: letters.first().and_then(|letter| letter.chars().next()),
            key: letters
                .first()
                .or(long.first())
                .copied()
                .unwrap_or_default(),
            long,
            side: side.split(' ').next().unwrap_or_default(),
            needs_udp: side.ends_with("-u"),
            argument: match field("value") {
                _ if has_value => Argument::Required,
                None => Argument::None,
                Some(_) => Argument::Optional,
            },
            instead: field("instead"),
            variable: field("variable"),
            help: parts(field("help").unwrap_or_default()),
            server_help: field("server help").map(parts),
            #[cfg(test)]
            doc,
        }
    }

    /// Its name in messages: the letter, if any.
    pub fn name(&self) -> String {
        let dashes = if self.letter.is_some() { "-" } else { "--" };
        format!("{dashes}{}", self.key)
    }

    /// Whether it only prints something: the help or the version.
    pub fn is_told(&self) -> bool {
        matches!(self.key, "h" | "v")
    }

    /// The environment variables that set the option. None for help and version, which would make every call
    /// useless.
    pub fn variables(&self) -> Vec<String> {
        if self.is_told() {
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
