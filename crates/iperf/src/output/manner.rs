//! How text is to be printed, as the options say.

use crate::options::Exclude;
use crate::text::Format;
use crate::wire::Directions;

use super::json::Asked;

/// How to print.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Style and unit.
    pub format: Format,
    /// Comma-separated values instead of text.
    pub csv: bool,
    /// More columns and lines (-e).
    pub enhanced: bool,
    /// Whether to tell the segment size (-m).
    pub print_mss: bool,
    /// What to leave out.
    pub exclude: Exclude,
    /// Length of the intervals; none without -i.
    pub interval_seconds: Option<f64>,
    /// Whether this end is the client.
    pub is_client: bool,
    /// Whether UDP carries the streams.
    pub is_udp: bool,
}

impl Manner {
    /// How the command line asks to print.
    pub fn of(asked: Asked<'_>) -> Self {
        let common = asked.common();
        let mut exclude = common.exclude;
        if let Asked::Client(_) = asked {
            // As in 2.1.8, a stream and what the server connects back for are not summed here.
            let is_full_duplex = common.stream.directions == Directions::FullDuplex;
            exclude.sums |= common.stream.streams == 1 && !is_full_duplex && !exclude.streams;
        }
        Manner {
            format: Format::of(common),
            csv: common.csv,
            enhanced: common.enhanced,
            print_mss: common.print_mss,
            exclude,
            interval_seconds: common
                .stream
                .interval
                .map(|interval| interval.as_secs_f64()),
            is_udp: common.is_udp(),
            is_client: matches!(asked, Asked::Client(_)),
        }
    }
}
