//! The document of `nicpoll tune`: candidates raced for the best setting of an interface, and the comparison of the
//! winner with what the host had.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ab::LiveAb;
use crate::document::{HostFacts, named};
use crate::interface::Unseen;
use crate::numbers::{duration_text, figure};
use crate::study::{Metric, Study};
use crate::units::{Refused, parse_time};

/// Name and version of the JSON of [`Tune`].
pub const TUNE_SCHEMA: &str = "nicpoll.tune/1";

named! {
    /// What a setting is tuned for.
    #[serde(rename_all = "lowercase")]
    #[derive(Default)]
    pub enum TuneGoal {
        /// The most that arrives.
        #[default]
        Throughput = "throughput",
        /// The shortest typical delay.
        Latency = "latency",
        /// The least CPU time for the same traffic.
        Cpu = "cpu",
    }
}

named! {
    /// A figure that a setting must keep below a limit.
    #[serde(rename_all = "snake_case")]
    pub enum KeptFigure {
        /// Median delay: of round trips, else of datagrams one way, in ns.
        DelayP50Ns = "p50",
        /// 99th percentile of the delay, in ns.
        DelayP99Ns = "p99",
        /// Share of the offered packets that is lost.
        LossRatio = "loss",
        /// Busy CPU time per second, in cores.
        BusyCores = "cpu",
    }
}

/// A limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneLimit {
    /// The figure.
    pub figure: KeptFigure,
    /// The most that it may be, in its unit; 0 packets lost: none at all.
    pub at_most: f64,
}

/// Why a candidate left the race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TuneDropped {
    /// Its whole interval is worse than the leader.
    Worse,
    /// The whole interval of a limited figure is above its limit.
    BreaksLimit,
    /// Two of its trials had no figure.
    NoFigure,
    /// It could not be set, or is what the host has; `not_tried` says why.
    Refused,
    /// It lost or retransmitted so much that its turn was ended.
    Alarm,
}

/// Everything that `nicpoll tune --json` prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tune {
    /// [`TUNE_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub nicpoll_version: String,
    /// The command line.
    pub argv: Vec<String>,
    /// When it began (RFC 3339).
    pub started_at: String,
    /// The interface, or the studied host of a study.
    pub interface: String,
    /// The machine.
    pub host: HostFacts,
    /// The traffic, in words.
    pub traffic: String,
    /// What it is tuned for.
    pub goal: TuneGoal,
    /// The figure raced for; null on live traffic, where it is CPU time at equal load, as a share of the reference's,
    /// or the median delay.
    pub metric: Option<Metric>,
    /// The limits.
    pub limits: Vec<TuneLimit>,
    /// Name of the setting that the host had.
    pub reference: String,
    /// The candidates, the reference among them, in the order of the table.
    pub candidates: Vec<TuneCandidate>,
    /// Settings that were not tried, and why.
    pub not_tried: Vec<Unseen>,
    /// Seed of the order.
    pub seed: u64,
    /// Trials of the race.
    pub race_trials: u32,
    /// Trials of the whole grid: each candidate as often as the final comparison compares two.
    pub grid_trials: u32,
    /// Whether it came to its end.
    pub is_finished: bool,
    /// The candidate that won the race; null if none is shown to keep the limits.
    pub winner: Option<String>,
    /// The winner compared with the reference, in blocks of its own; null when the reference won, or none did.
    pub study: Option<Study>,
    /// As `study`, on live traffic.
    pub ab: Option<LiveAb>,
    /// The setting to use; null: keep what the host has.
    pub choice: Option<String>,
    /// Why, in words.
    pub because: String,
    /// How long it took.
    pub elapsed_seconds: f64,
}

impl TuneLimit {
    /// Reads a limit: `p99<500us`, `loss=0`, `loss<0.1%`, `cpu<1.5cores`.
    ///
    /// # Errors
    /// For another figure, and for a value without its unit.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        let wrong = || {
            format!(
                "'{text}' is no limit; give p99<500us, p50<100us, loss=0, loss<0.1% or cpu<1.5cores"
            )
        };
        let (name, value) = text.split_once(['<', '=']).ok_or_else(wrong)?;
        let all = KeptFigure::ALL.into_iter();
        let figure = all.clone().find(|it| it.name() == name).ok_or_else(wrong)?;
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let at_most = match figure {
            KeptFigure::DelayP50Ns | KeptFigure::DelayP99Ns => {
                parse_time(value).ok().map(|it| it.as_nanos() as f64)
            }
            KeptFigure::LossRatio => match value.strip_suffix('%') {
                Some(percent) => number(percent).map(|it| it / 100.0),
                None => number(value),
            },
            KeptFigure::BusyCores => {
                let cores = value.strip_suffix("cores").or(value.strip_suffix("core"));
                cores.and_then(number)
            }
        };
        let is_fit = |it: &f64| it.is_finite() && *it >= 0.0;
        let is_above = |it: &f64| *it > 0.0 || figure == KeptFigure::LossRatio;
        let at_most = at_most.filter(is_fit).filter(is_above).ok_or_else(wrong)?;
        Ok(TuneLimit { figure, at_most })
    }

    /// Formats a value of its figure.
    pub fn show(&self, value: f64) -> String {
        match self.figure {
            KeptFigure::DelayP50Ns | KeptFigure::DelayP99Ns => duration_text(value as u64),
            KeptFigure::LossRatio if value == 0.0 => String::from("0"),
            KeptFigure::LossRatio => format!("{} %", figure(100.0 * value)),
            KeptFigure::BusyCores => format!("{} cores", figure(value)),
        }
    }
}

impl fmt::Display for TuneLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.at_most == 0.0 { "=" } else { "<" };
        write!(f, "{}{sign}{}", self.figure, self.show(self.at_most))
    }
}

impl Tune {
    /// Returns the limits in words.
    pub fn limits_words(&self) -> String {
        let words: Vec<String> = self.limits.iter().map(ToString::to_string).collect();
        words.join(", ")
    }

    /// Adds a candidate that `nicpoll set IF` sets by these words. Another one of its name could not be set.
    pub fn add_candidate(&mut self, name: &str, words: &str) {
        self.not_tried.retain(|it| it.what != name);
        self.candidates.push(TuneCandidate {
            name: String::from(name),
            command: format!("nicpoll set IF {words}"),
            ..TuneCandidate::default()
        });
    }

    /// Notes why a candidate is not tried, unless one of its name was noted.
    pub fn refuse_candidate(&mut self, name: &str, why: String) {
        if !self.not_tried.iter().any(|it| it.what == name) {
            let what = String::from(name);
            self.not_tried.push(Unseen { what, why });
        }
    }

    /// Takes the result of the final comparison: whether the winner kept the limits and is better. It is chosen if it is
    /// better, or if it keeps the limits and the reference does not. `blocks` counts them in words.
    pub fn conclude(&mut self, is_kept: bool, is_better: bool, blocks: &str) {
        let winner = self.winner.clone().unwrap_or_default();
        let reference = &self.reference;
        let limits = self.limits_words();
        let mut own = self
            .candidates
            .iter()
            .filter(|it| it.name == self.reference);
        let broke = own.any(|it| it.dropped == Some(TuneDropped::BreaksLimit));
        self.because = match (is_kept, is_better) {
            (false, _) => {
                format!(
                    "{winner} won the race and is not shown to keep {limits} in {blocks} of its own"
                )
            }
            (true, true) => format!("better than {reference} in {blocks} that did not choose it"),
            (true, false) if broke => format!("it keeps {limits}, and {reference} does not"),
            (true, false) => {
                format!(
                    "{winner} won the race, but {blocks} of its own do not show it to be better"
                )
            }
        };
        self.choice = (is_kept && (is_better || broke)).then_some(winner);
    }

    /// Leaves out the names of machines, for a page that may be passed on.
    pub fn leave_out_names(&mut self) {
        self.host.leave_out_names();
        self.study.iter_mut().for_each(Study::leave_out_names);
    }

    /// Returns a candidate by its name.
    pub fn candidate(&self, name: &str) -> Option<&TuneCandidate> {
        self.candidates.iter().find(|it| it.name == name)
    }
}

/// A candidate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneCandidate {
    /// Its name.
    pub name: String,
    /// The command that sets it; empty for the reference.
    pub command: String,
    /// Blocks in which it was measured.
    pub blocks: u32,
    /// Typical value of the goal's figure, in the metric's unit; null if it was not measured.
    pub value: Option<f64>,
    /// The value as a ratio of the reference's, with the ends of its interval; null with fewer than two blocks.
    pub ratio: Option<[f64; 3]>,
    /// The limited figures with the ends of their intervals, in the order of the limits; null if not measured.
    pub limited: Vec<Option<[f64; 3]>>,
    /// Typical CPU time: ns a packet or byte; on live traffic busy cores. Null if it was not counted.
    pub cpu: Option<f64>,
    /// Typical median delay; null if it was not measured.
    pub delay_p50_ns: Option<f64>,
    /// Why it left the race, or in the final comparison turned out not to belong in it; null otherwise.
    pub dropped: Option<TuneDropped>,
}
