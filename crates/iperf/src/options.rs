//! Parses iperf 2's command line.
//!
//! Options and units mean what they mean in 2.1.8, whichever version's lines are printed. Options of 2.1.8 that
//! are not implemented here are refused by name, as are values that 2.1.8 would silently change. `options.txt`
//! has a record for each option, from which the scanner, the help and the tables of docs/dialects.md are made;
//! `draft.rs` applies each option.

mod draft;
mod table;
#[cfg(test)]
mod tests;
mod types;
mod values;

pub(crate) use types::{Exclude, Json, Style};
pub use types::{Options, Parsed};

use draft::Draft;
use table::{Argument, SECTIONS, Spec, specs};
use values::{Given, OptionError};

/// Options to judge once all are known, with the names by which messages call them: unsupported ones, and those
/// for one end or protocol only.
type ToJudge = Vec<(&'static Spec, String)>;

/// Parses the environment, then the arguments without the program's name.
///
/// # Errors
/// When an option or a value is not possible. Help and version take effect before any error after them.
/// ```
/// use nicpoll_iperf::options::{Parsed, parse};
///
/// let args = "-c 192.0.2.7 -u -b 500M -l 18 -t 60".split(' ');
/// let Parsed::Test(options) = parse(args.map(String::from), |_| None)? else { panic!("a test") };
/// assert!(options.is_client() && options.port == 5001);
/// // A value without a meaning is refused by name.
/// let error = parse(["-s", "-t", "soon"].map(String::from), |_| None).unwrap_err();
/// assert!(error.to_string().contains("soon"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn parse(
    args: impl IntoIterator<Item = String>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Parsed, OptionError> {
    let mut draft = Draft::default();
    let mut to_judge = ToJudge::new();
    for spec in specs() {
        for variable in spec.variables() {
            if let Some(value) = environment(&variable) {
                // The variable of a flag may be empty.
                let value = (spec.argument != Argument::None).then_some(value);
                take(&mut draft, &mut to_judge, spec, value, variable)?;
            }
        }
    }
    let mut scanner = Scanner {
        args: args.into_iter(),
        bundle: String::new(),
        only_extras: false,
    };
    while let Some(token) = scanner.next() {
        match token? {
            Token::Option(spec, value) => match spec.key {
                "h" => return Ok(Parsed::Help),
                "v" => return Ok(Parsed::Version),
                _ => take(&mut draft, &mut to_judge, spec, value, spec.name())?,
            },
            Token::Extra(extra) => {
                draft.warn(format!("iperf: ignoring extra argument -- {extra}"));
            }
        }
    }
    judge(&mut draft, to_judge)?;
    Ok(Parsed::Test(Box::new(draft.finish()?)))
}

/// Applies one option. `source` is its name in messages.
fn take(
    draft: &mut Draft,
    to_judge: &mut ToJudge,
    spec: &'static Spec,
    value: Option<String>,
    source: String,
) -> Result<(), OptionError> {
    match &value {
        _ if spec.instead.is_some() => {}
        None => draft.take_flag(spec.key),
        Some(value) => {
            let source = &source;
            draft.take_value(spec.key, &Given { value, source })?;
        }
    }
    if spec.instead.is_some() || spec.side != "both" || spec.needs_udp {
        to_judge.push((spec, source));
    }
    Ok(())
}

/// Warns of options that are for the other end, supported or not; refuses unsupported ones and UDP options with
/// TCP.
fn judge(draft: &mut Draft, to_judge: ToJudge) -> Result<(), OptionError> {
    let side = match draft.is_client {
        Some(true) => "client",
        Some(false) => "server",
        None => {
            let mut left_out = to_judge
                .iter()
                .filter_map(|(spec, source)| Some(OptionError::left_out(source, spec.instead?)));
            return Err(left_out.next().unwrap_or_else(|| OptionError::usage(None)));
        }
    };
    for (spec, source) in to_judge {
        if spec.side != "both" && spec.side != side {
            draft.warn(format!(
                "WARNING: option {source} is not valid for {side} mode"
            ));
        } else if let Some(instead) = spec.instead {
            return Err(OptionError::left_out(&source, instead));
        } else if spec.needs_udp && !draft.options.is_udp() {
            return Err(OptionError::new(format!(
                "ERROR: option {} is not valid with TCP; add -u or leave it out",
                spec.name()
            )));
        }
    }
    Ok(())
}

/// An element of the command line: an option with its value, if any, or an extra argument.
enum Token {
    Option(&'static Spec, Option<String>),
    Extra(String),
}

/// Splits arguments into options and values like iperf's getopt_long: letters may be bundled, long names
/// abbreviated, and options may follow other arguments.
struct Scanner<I> {
    args: I,
    /// Remaining letters of a bundle.
    bundle: String,
    /// Whether `--` was seen.
    only_extras: bool,
}

impl<I: Iterator<Item = String>> Scanner<I> {
    fn next(&mut self) -> Option<Result<Token, OptionError>> {
        loop {
            let mut letters = self.bundle.chars();
            if let Some(letter) = letters.next() {
                self.bundle = letters.as_str().to_owned();
                return Some(self.letter(letter));
            }
            let argument = self.args.next()?;
            if self.only_extras {
                return Some(Ok(Token::Extra(argument)));
            }
            if argument == "--" {
                self.only_extras = true;
            } else if let Some(long) = argument.strip_prefix("--") {
                return Some(self.long(long));
            } else {
                match argument.strip_prefix('-') {
                    Some(letters) if !letters.is_empty() => self.bundle = letters.to_owned(),
                    _ => return Some(Ok(Token::Extra(argument))),
                }
            }
        }
    }

    fn letter(&mut self, letter: char) -> Result<Token, OptionError> {
        let invalid = || OptionError::usage(Some(format!("invalid option -- {letter}")));
        let spec = specs().find(|spec| spec.letter == Some(letter));
        let spec = spec.ok_or_else(invalid)?;
        let value = match spec.argument {
            // The rest of the bundle, or the next argument.
            Argument::Required => match std::mem::take(&mut self.bundle) {
                attached if attached.is_empty() => {
                    Some(self.value(|| format!("option requires an argument -- {letter}"))?)
                }
                attached => Some(attached),
            },
            _ => None,
        };
        Ok(Token::Option(spec, value))
    }

    fn long(&mut self, argument: &str) -> Result<Token, OptionError> {
        let (name, attached) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (argument, None),
        };
        let spec = find_long(name)?;
        let value = match (spec.argument, attached) {
            (Argument::None, Some(_)) => {
                let line = format!("option `--{name}' doesn't allow an argument");
                return Err(OptionError::usage(Some(line)));
            }
            (Argument::Required, None) => {
                Some(self.value(|| format!("option `--{name}' requires an argument"))?)
            }
            (_, attached) => attached,
        };
        Ok(Token::Option(spec, value))
    }

    /// The next argument, even if it looks like an option.
    fn value(&mut self, missing: impl Fn() -> String) -> Result<String, OptionError> {
        let next = self.args.next();
        next.ok_or_else(|| OptionError::usage(Some(missing())))
    }
}

/// Finds an option by its long name or an unambiguous prefix.
fn find_long(name: &str) -> Result<&'static Spec, OptionError> {
    if let Some(spec) = specs().find(|spec| spec.long.contains(&name)) {
        return Ok(spec);
    }
    let mut found = specs().filter(|spec| spec.long.iter().any(|long| long.starts_with(name)));
    let line = match (found.next(), found.next()) {
        (Some(spec), None) => return Ok(spec),
        (Some(_), Some(_)) if !name.is_empty() => format!("option `--{name}' is ambiguous"),
        _ => format!("unrecognized option `--{name}'"),
    };
    Err(OptionError::usage(Some(line)))
}

const HELP_USAGE: &str = "\
Usage: iperf [-s|-c host] [options]
       iperf [-h|--help] [-v|--version]
";

const HELP_NOTES: &str = "
[kmgKMG] k, m, g are powers of 1000 and K, M, G powers of 1024, with every option:
1k = 1000, 1K = 1024, 1m = 1000000, 1M = 1048576

Names for -S: af11 to af13, af21 to af23, af31 to af33, af41 to af43, cs0 to cs7, ef, le, nqb, nqb2,
ac_be, ac_bk, ac_vi, ac_vo, lowdelay, throughput, reliability

The environment variable TCP_WINDOW_SIZE sets -w, and IPERF_<long option name>, such as
IPERF_BANDWIDTH, any other option. The command line overrides it.
";

/// The supported options, in iperf's layout.
pub fn help_text() -> String {
    let mut text = String::from(HELP_USAGE);
    for (title, section) in SECTIONS.iter().filter(|(title, _)| !title.is_empty()) {
        text += &format!("\n{title}:\n");
        for spec in section {
            text += &help_line(spec, spec.help);
        }
        if *title == "Server specific" {
            let more = specs().filter_map(|spec| Some(help_line(spec, spec.server_help?)));
            text.extend(more);
        }
    }
    text + HELP_NOTES
}

fn help_line(spec: &Spec, [value, what]: [&str; 2]) -> String {
    let name = match (spec.letter, spec.long.first()) {
        (Some(letter), Some(name)) => format!("  -{letter}, --{name}"),
        (Some(letter), None) => format!("  -{letter}"),
        (None, name) => format!("      --{}", name.unwrap_or(&"")),
    };
    let option = format!("{name:<17} {value}");
    format!("{:<25}  {what}\n", option.trim_end())
}
