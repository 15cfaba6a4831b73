//! Options as they come in, in the types that streams and outputs are made after.

mod outcome;

use std::time::Duration;

use nicpoll_model::Protocol;

use super::error::OptionError;
use super::given::Given;
use super::table::{Meaning, OptionSide, Spec};
use super::units;
use super::{AddressPrefix, Common};
use crate::wire::Dialect;

const WINDOW_BYTES_MAX: u64 = 1 << 30;
/// Below this, iperf warns.
const WINDOW_BYTES_SMALL: usize = 2048;
/// The header counts time in these, and none of them would mean for ever.
const TICK: Duration = Duration::from_millis(10);
const INTERVAL_MIN: Duration = Duration::from_millis(5);
const FORMATS: &str = "abkmgtpABKMGTP";

/// The end that is asked for.
#[derive(Debug)]
pub enum Mode {
    /// -c.
    Client {
        host: String,
        device: Option<String>,
    },
    /// -s.
    Server,
}

/// -t and -n, of which the later one counts at a client. -t alone counts at a server.
#[derive(Clone, Copy, Debug)]
enum Time {
    /// 0 or below.
    Endless,
    For(Duration),
}

/// A way that data flow besides the client's own stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// -d.
    Dual,
    /// -r.
    TradeOff,
    /// -R.
    Reverse,
    /// --full-duplex.
    FullDuplex,
}

impl Way {
    /// Whether it can be asked for over UDP in that dialect. 2.0.10 to 2.0.13 have none that works with
    /// other versions; 2.0.13 understands 2.1's.
    fn has_dialect(self, dialect: Dialect) -> bool {
        match self {
            Way::Dual | Way::TradeOff => {
                matches!(dialect, Dialect::V2_0_2 | Dialect::V2_0_8 | Dialect::V2_1)
            }
            Way::Reverse | Way::FullDuplex => dialect == Dialect::V2_1,
        }
    }
}

/// What has come in so far. What an option says by itself is in its place in `common`; the rest is what takes
/// another option to judge.
#[derive(Debug, Default)]
pub struct Draft {
    pub common: Common,
    mode: Option<Mode>,
    /// -l, and where it came from.
    pub length: Option<(usize, String)>,
    /// -t.
    time: Option<Time>,
    /// -n.
    pub bytes: Option<u64>,
    /// -P.
    pub parallel: Option<u32>,
    /// --repeat.
    pub repeat: Option<u32>,
    /// -1, and -U.
    pub single_client: bool,
    /// -D.
    pub daemon: bool,
    /// The ways that were asked for besides the client's own stream.
    ways: Vec<Way>,
    /// -L.
    pub listen_port: Option<u16>,
    /// --allow.
    pub allow: Vec<AddressPrefix>,
    /// Options that are left out, that mean something at one end only or with one protocol only, and where
    /// they came from.
    to_judge: Vec<(&'static Spec, String)>,
}

impl Draft {
    /// Notes that an argument is passed over.
    pub fn extra(&mut self, argument: &str) {
        self.warn(format!("iperf: ignoring extra argument -- {argument}"));
    }

    /// Takes one option with the value it needs. `source` is what messages call it.
    pub fn take(
        &mut self,
        spec: &'static Spec,
        value: Option<String>,
        source: &str,
    ) -> Result<(), OptionError> {
        let left_out = matches!(spec.meaning, Meaning::LeftOut(..));
        if left_out || spec.side != OptionSide::Both || spec.needs_udp {
            self.to_judge.push((spec, source.to_owned()));
        }
        match (spec.meaning, value) {
            (Meaning::Flag(take), _) => take(self),
            (Meaning::Value(take), Some(value)) => {
                let value = &value;
                take(self, &Given { value, source })?;
            }
            // Handled before, or judged at the end.
            _ => {}
        }
        Ok(())
    }

    fn warn(&mut self, warning: impl Into<String>) {
        self.common.warnings.push(warning.into());
    }

    /// -u.
    pub fn use_udp(&mut self) {
        self.common.stream.protocol = Protocol::Udp;
    }

    /// One of -d, -r, -R and --full-duplex.
    pub fn way(&mut self, way: Way) {
        if !self.ways.contains(&way) {
            self.ways.push(way);
        }
    }

    /// The first of -s and -c counts, as in the original.
    pub fn choose(&mut self, mode: Mode) {
        match (&mut self.mode, mode) {
            (empty @ None, mode) => *empty = Some(mode),
            (Some(set @ Mode::Client { .. }), mode @ Mode::Client { .. }) => *set = mode,
            // The other one is passed over with a warning, as any option of the other end.
            _ => {}
        }
    }

    /// -x.
    pub fn exclude(&mut self, letters: &str) {
        for letter in letters.chars() {
            let exclude = &mut self.common.exclude;
            match letter.to_ascii_uppercase() {
                'C' => exclude.connections = true,
                'D' => exclude.data = true,
                'M' => exclude.sums = true,
                'S' => exclude.settings = true,
                'V' => exclude.server_report = true,
                _ => self.warn(format!(
                    "WARNING: unknown reporting type \"{letter}\", ignored\n valid options are:\n\
                     \t exclude: C(connection) D(data) M(multicast) S(settings) V(server) report\n"
                )),
            }
        }
    }

    /// -f, of which only the first letter counts, so that `-f Mbits` means what it says.
    pub fn take_format(&mut self, text: &str) {
        let letter = text.chars().next().filter(|c| FORMATS.contains(*c));
        if letter.is_none() {
            self.warn(format!(
                "WARNING: unknown reporting format \"{text}\", switching to adaptive"
            ));
        }
        self.common.format = letter.unwrap_or('a');
    }

    /// -y.
    pub fn take_report_style(&mut self, text: &str) {
        self.common.csv = matches!(text, "c" | "C");
        if !self.common.csv {
            self.warn(format!(
                "WARNING: unknown reporting style \"{text}\", switching to default"
            ));
        }
    }

    /// -i.
    pub fn take_interval(&mut self, given: &Given) -> Result<(), OptionError> {
        if matches!(given.value, "f" | "F") {
            return Err(given.left_out("give -i in seconds"));
        }
        let seconds = given.seconds()?;
        if seconds < 0.0 {
            return Err(given.invalid("seconds from 0.005, or 0 for no interval reports"));
        }
        let interval = units::seconds(seconds);
        if interval.is_some_and(|interval| interval < INTERVAL_MIN) {
            self.warn(format!(
                "WARNING: interval too small, increasing to {:.4} milliseconds.",
                INTERVAL_MIN.as_secs_f64() * 1e3
            ));
        }
        self.common.stream.interval = interval.map(|interval| interval.max(INTERVAL_MIN));
        Ok(())
    }

    /// -t.
    pub fn take_time(&mut self, given: &Given) -> Result<(), OptionError> {
        let time = match units::seconds(given.seconds()?) {
            Some(time) => Time::For(time.max(TICK)),
            None => Time::Endless,
        };
        self.time = Some(time);
        self.bytes = None;
        Ok(())
    }

    /// -w.
    pub fn take_window(&mut self, given: &Given) -> Result<(), OptionError> {
        let bytes = given.count(0, WINDOW_BYTES_MAX)? as usize;
        if (1..WINDOW_BYTES_SMALL).contains(&bytes) {
            self.warn(format!(
                "WARNING: TCP window size set to {bytes} bytes. A small window size\n\
                 will give poor performance. See the Iperf documentation."
            ));
        }
        self.common.stream.buffer_bytes = (bytes > 0).then_some(bytes);
        Ok(())
    }
}

fn wrong_side(option: &str, mode: &str) -> String {
    format!("WARNING: option {option} is not valid for {mode} mode")
}
