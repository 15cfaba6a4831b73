//! Why a command line was refused, in iperf's words where it has some.

use std::fmt;

/// What iperf says when it does not know what to do.
pub(super) const USAGE: &str = "Usage: iperf [-s|-c host] [options]\n\
     Try `iperf --help' for more information.";

const REPEAT: &str = "ERROR: option --repeat is not valid with -t 0, whose first run has no end, and with -I, which \
                     has nothing left for a second one; leave them out";

/// Why a command line was refused. Printed as it stands; the exit status is 1.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OptionError {
    /// Neither -s nor -c.
    NoMode,
    /// A letter that is no option.
    InvalidLetter(char),
    /// A long name that is no option.
    Unrecognized(String),
    /// The beginning of more than one long name.
    Ambiguous(String),
    /// An option, as given, whose value is missing.
    MissingArgument(String),
    /// A value for a long option that takes none.
    UnexpectedArgument(String),
    /// An option of iperf 2 that is left out.
    NotYet {
        /// The option or the environment variable, and the value if that is what is left out.
        option: String,
        /// What to do in its place.
        instead: &'static str,
    },
    /// A value that cannot be used.
    Value {
        /// The option or the environment variable.
        option: String,
        /// What was given.
        value: String,
        /// What can be given.
        expected: String,
    },
    /// A TCP client's rate is below one buffer a second.
    Incompatible {
        /// -l.
        length_bytes: usize,
        /// The longest buffer for the rate.
        longest_bytes: u64,
    },
    /// More than one of -d, -r, -R and --full-duplex.
    Exclusive,
    /// One of them with -C, which leaves out what would tell the server.
    NoHeaders,
    /// One of them with a --dialect that has no such way back.
    OldDialect,
    /// -b in packets for TCP, which has none.
    PacketsOverTcp,
    /// An option that only UDP has, for TCP.
    NeedsUdp(String),
    /// -X over UDP, which has no such exchange.
    VersionOverUdp,
    /// --repeat of what has no end, or of input that can be read once.
    Repeat,
    /// --trip-times in a dialect that cannot tell of it.
    OldTripTimes,
    /// Standard input for several streams, which cannot share it.
    SharedStdin,
    /// A UDP client would wait too long between two datagrams.
    Gap {
        /// How long.
        seconds: f64,
    },
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMode => f.write_str(USAGE),
            Self::InvalidLetter(letter) => write!(f, "iperf: invalid option -- {letter}\n{USAGE}"),
            Self::Unrecognized(name) => {
                write!(f, "iperf: unrecognized option `--{name}'\n{USAGE}")
            }
            Self::Ambiguous(name) => write!(f, "iperf: option `--{name}' is ambiguous\n{USAGE}"),
            Self::MissingArgument(option) => missing_argument(option, f),
            Self::UnexpectedArgument(name) => {
                write!(
                    f,
                    "iperf: option `--{name}' doesn't allow an argument\n{USAGE}"
                )
            }
            Self::NotYet { option, instead } => {
                write!(f, "ERROR: option {option} is not supported; {instead}")
            }
            Self::Value {
                option,
                value,
                expected,
            } => write!(
                f,
                "ERROR: invalid value of '{value}' for {option}; give {expected}"
            ),
            Self::Incompatible {
                length_bytes,
                longest_bytes,
            } => write!(
                f,
                "ERROR: option -b and -l of {length_bytes} are incompatible, consider setting -l \
                 to {longest_bytes} or lower"
            ),
            Self::Exclusive => f.write_str(
                "ERROR: options of --full-duplex, --reverse, -d and -r are mutually exclusive",
            ),
            Self::NoHeaders => f.write_str(
                "ERROR: compatibility mode (-C) not supported with --full-duplex, --reverse, -d and -r",
            ),
            Self::OldDialect => f.write_str(
                "ERROR: option --dialect is not supported with --full-duplex and --reverse, and with -d and \
                 -r only up to 2.0.9; leave it out, or run a client at each end",
            ),
            Self::PacketsOverTcp => f.write_str("ERROR: units of pps not supported with TCP"),
            Self::NeedsUdp(option) => write!(
                f,
                "ERROR: option {option} is not valid with TCP; add -u or leave it out"
            ),
            Self::VersionOverUdp => f.write_str(
                "ERROR: option of -X or --peer-detect not supported with -u UDP",
            ),
            Self::Repeat => f.write_str(REPEAT),
            Self::OldTripTimes => f.write_str(
                "ERROR: option --trip-times is not known to servers of 2.0.x; leave out --dialect",
            ),
            Self::SharedStdin => f.write_str(
                "ERROR: option -I is not valid with several streams, which cannot share standard \
                 input; leave out -P, or give them a file with -F",
            ),
            Self::Gap { seconds } => write!(
                f,
                "ERROR: IPG delay target of {seconds:.1} secs too large (max value is 60 secs)"
            ),
        }
    }
}

impl std::error::Error for OptionError {}

fn missing_argument(option: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match option.strip_prefix("--") {
        Some(_) => write!(f, "iperf: option `{option}' requires an argument\n{USAGE}"),
        None => {
            let letter = option.trim_start_matches('-');
            write!(f, "iperf: option requires an argument -- {letter}\n{USAGE}")
        }
    }
}
