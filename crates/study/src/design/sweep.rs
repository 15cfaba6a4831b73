//! Sweeps: one workload at several rates, past what the system can sustain.
//!
//! Each rate is a workload with trials and comparisons of its own. Rates are fixed before the first trial, never by what
//! trials measured.

use std::str::FromStr;

use nicpoll_model::SweptLoad;
use serde::Deserialize;
use thiserror::Error;

use crate::design::{Design, NamedWorkload};

/// The highest rate that can be asked for, a second.
pub const RATE_MAX: u64 = 100_000_000;

/// The highest share of the knee, in percent.
const SHARE_MAX: u32 = 1000;

/// Rates of a sweep.
const RATES: std::ops::RangeInclusive<usize> = 2..=12;

/// Share of what is asked for that is to be offered, and of the offered that is to be delivered, for a rate to be held.
pub const HELD_SHARE: f64 = 0.99;

/// Workloads of a study with the rates of all its sweeps.
const WORKLOADS_MAX: usize = 32;

/// A rate of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "RateEntry")]
pub enum SweepRate {
    /// So many datagrams (`rr`: requests) a second of each sender.
    PerSecond(u64),
    /// A share of the greatest rate that the reference setting is found to hold, in percent.
    KneePercent(u32),
}

/// A rate as a file has it.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a rate a second, such as 20000, or a share of the knee, such as \"50%\""
)]
enum RateEntry {
    Number(u64),
    Text(String),
}

/// Why rates cannot be swept.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SweepError {
    /// No rate, or one out of range.
    #[error(
        "'{0}' is no rate of a sweep; give packets a second from 1 to {RATE_MAX}, such as 20000, or a share of the \
         knee up to {SHARE_MAX}%, such as 50%"
    )]
    Rate(String),
    /// Too few to see a difference, or too many to run.
    #[error("{asked} rates are out of range; a sweep has {least} to {most}", least = RATES.start(), most = RATES.end())]
    Count {
        /// Rates that were given.
        asked: usize,
    },
    /// Two rates are one.
    #[error("the rate {0} stands twice in the sweep")]
    Twice(String),
    /// Rates of both kinds, whose order is not known before the knee is.
    #[error("a sweep has rates a second or shares of the knee, not both")]
    Mixed,
    /// An option that sweeps nothing known.
    #[error("'{0}' cannot be swept; write rate=20000,40000,80000 or rate=50%,100%,150%")]
    Option(String),
    /// The traffic has no rate.
    #[error("{0} cannot be sent at a rate; udp, rr and pulses can be swept")]
    Closed(String),
    /// Nothing in the file has a rate.
    #[error("no workload of the study can be sent at a rate; udp, rr and pulses can be swept")]
    NothingOpen,
    /// The file has its own sweep.
    #[error("the study sweeps {0} by itself; leave out --sweep, or the workload's key sweep")]
    Already(String),
    /// More than a study can run.
    #[error(
        "the sweep makes {0} workloads, and a study has at most {WORKLOADS_MAX}; give fewer rates"
    )]
    Workloads(usize),
}

impl SweepError {
    /// The workload that it is about, where it is about one.
    pub(crate) fn of_workload(&self) -> Option<&str> {
        match self {
            SweepError::Closed(workload) | SweepError::Already(workload) => Some(workload),
            _ => None,
        }
    }
}

impl TryFrom<RateEntry> for SweepRate {
    type Error = SweepError;

    fn try_from(entry: RateEntry) -> Result<Self, SweepError> {
        match entry {
            RateEntry::Number(number) => number.to_string().parse(),
            RateEntry::Text(text) => text.parse(),
        }
    }
}

impl FromStr for SweepRate {
    type Err = SweepError;

    fn from_str(text: &str) -> Result<Self, SweepError> {
        let rate = match text.trim().strip_suffix('%') {
            Some(share) => share
                .parse()
                .ok()
                .filter(|share| (1..=SHARE_MAX).contains(share))
                .map(SweepRate::KneePercent),
            None => text
                .trim()
                .parse()
                .ok()
                .filter(|rate| (1..=RATE_MAX).contains(rate))
                .map(SweepRate::PerSecond),
        };
        rate.ok_or_else(|| SweepError::Rate(String::from(text)))
    }
}

impl SweepRate {
    /// As it stands in the name of a workload.
    fn word(self) -> String {
        match self {
            SweepRate::PerSecond(rate) => rate.to_string(),
            SweepRate::KneePercent(share) => format!("{share}%"),
        }
    }
}

/// The rates of a sweep, the lowest first, all of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<SweepRate>")]
pub struct SweepRates(Vec<SweepRate>);

impl TryFrom<Vec<SweepRate>> for SweepRates {
    type Error = SweepError;

    fn try_from(mut rates: Vec<SweepRate>) -> Result<Self, SweepError> {
        if !RATES.contains(&rates.len()) {
            let asked = rates.len();
            return Err(SweepError::Count { asked });
        }
        rates.sort();
        if let Some(twice) = rates.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(SweepError::Twice(twice[0].word()));
        }
        let is_share = |rate: &SweepRate| matches!(rate, SweepRate::KneePercent(_));
        if rates.iter().any(is_share) && !rates.iter().all(is_share) {
            return Err(SweepError::Mixed);
        }
        Ok(SweepRates(rates))
    }
}

/// What `--sweep` says: `rate=20000,40000`.
impl FromStr for SweepRates {
    type Err = SweepError;

    fn from_str(text: &str) -> Result<Self, SweepError> {
        let rates = text.strip_prefix("rate=");
        let rates = rates.ok_or_else(|| SweepError::Option(String::from(text)))?;
        let rates: Result<Vec<SweepRate>, _> = rates.split(',').map(str::parse).collect();
        rates?.try_into()
    }
}

impl Design {
    /// The design with each workload that `rates_of` has rates for at each of them, in its place.
    ///
    /// # Errors
    /// When that is too much; when one of them has no rate.
    pub(crate) fn swept(
        self,
        rates_of: impl Fn(&NamedWorkload) -> Option<SweepRates>,
    ) -> Result<Design, SweepError> {
        let mut workloads = Vec::new();
        let mut drop_order = self.drop_order;
        for workload in self.workloads {
            let Some(rates) = rates_of(&workload) else {
                workloads.push(workload);
                continue;
            };
            let streams = u64::from(self.topology.links()) * workload.options.ways();
            let rated: Result<Vec<NamedWorkload>, SweepError> = rates
                .0
                .iter()
                .map(|rate| at(&workload, *rate, streams))
                .collect();
            let rated = rated?;
            drop_order = drop_order
                .into_iter()
                .flat_map(|one| match one.workload == workload.name {
                    true => {
                        let each = rated.iter().map(|rated| {
                            let mut one = one.clone();
                            one.workload = rated.name.clone();
                            one
                        });
                        each.collect()
                    }
                    false => vec![one],
                })
                .collect();
            workloads.extend(rated);
        }
        if workloads.len() > WORKLOADS_MAX {
            return Err(SweepError::Workloads(workloads.len()));
        }
        Ok(Design {
            workloads,
            drop_order,
            ..self
        })
    }

    /// The design with every workload that has a rate swept over these.
    ///
    /// # Errors
    /// When none has a rate, or the file has a sweep of its own.
    pub(crate) fn swept_over(self, rates: &SweepRates) -> Result<Design, SweepError> {
        let mut workloads = self.workloads.iter();
        if let Some(load) = workloads.find_map(|workload| workload.load.as_ref()) {
            return Err(SweepError::Already(load.sweep.clone()));
        }
        let is_open = |workload: &NamedWorkload| workload.request.clone().at_rate(1).is_some();
        if !self.workloads.iter().any(is_open) {
            return Err(SweepError::NothingOpen);
        }
        self.swept(|workload| is_open(workload).then(|| rates.clone()))
    }
}

/// Knees that are to be sought before the first trial.
pub(crate) fn searches(design: &Design) -> u32 {
    let loads = design.workloads.iter().filter_map(|one| one.load.as_ref());
    let mut sought: Vec<&str> = loads
        .filter(|load| load.asked_per_second.is_none())
        .map(|load| load.sweep.as_str())
        .collect();
    sought.dedup();
    sought.len() as u32
}

/// A workload at one of its rates, `streams` of it at once.
fn at(
    workload: &NamedWorkload,
    rate: SweepRate,
    streams: u64,
) -> Result<NamedWorkload, SweepError> {
    let per_second = match rate {
        SweepRate::PerSecond(per_second) => per_second,
        // Until the knee is known.
        SweepRate::KneePercent(_) => 1,
    };
    let request = workload.request.clone().at_rate(per_second);
    let request = request.ok_or_else(|| SweepError::Closed(workload.name.clone()))?;
    let asked_per_second = request.asked_per_second().map(|rate| rate * streams);
    let (asked_per_second, knee_ratio, words) = match rate {
        SweepRate::PerSecond(_) => {
            let words =
                asked_per_second.map_or_else(String::new, |rate| format!("{rate} a second"));
            (asked_per_second, None, words)
        }
        SweepRate::KneePercent(share) => {
            let words = format!("{share} % of the knee");
            (None, Some(f64::from(share) / 100.0), words)
        }
    };
    Ok(NamedWorkload {
        name: format!("{}@{}", workload.name, rate.word()),
        description: format!("{}; in this sweep at {words}", workload.description),
        request,
        options: workload.options.clone(),
        load: Some(SweptLoad {
            sweep: workload.name.clone(),
            asked_per_second,
            knee_ratio,
        }),
    })
}

#[cfg(test)]
mod tests;
