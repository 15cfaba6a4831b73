//! Every option of iperf 2.1.8, and those that are nicpoll's own, as `options.txt` has them: names, lines in the
//! help, and the row in docs/dialects.md. What each does is in `draft.rs`. What 2.1.8 has and is left out here has
//! a record too, so the scanner knows whether it takes a value, and its refusal names it.

use std::sync::LazyLock;

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

/// One option.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its letter.
    pub letter: Option<char>,
    /// Its long names, the preferred one first.
    pub long: Vec<&'static str>,
    /// The first of its names.
    pub key: &'static str,
    /// Where it means something: `client`, `server` or `both`.
    pub side: &'static str,
    /// Whether it is refused with TCP.
    pub needs_udp: bool,
    /// Whether a value follows.
    pub argument: Argument,
    /// The advice that it is refused with; `None` when it is carried out.
    pub instead: Option<&'static str>,
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
            doc,
        }
    }

    /// The name messages use: the letter where there is one.
    pub fn name(&self) -> String {
        let dashes = if self.letter.is_some() { "-" } else { "--" };
        format!("{dashes}{}", self.key)
    }

    /// Whether it prints something and nothing else happens: the help or the version.
    pub fn is_told(&self) -> bool {
        matches!(self.key, "h" | "v")
    }

    /// The environment variables that stand for the option. None for those that print and leave:
    /// they would make every call useless.
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
