//! Sweeps: one workload at several rates, past what the system can sustain.
//!
//! Each rate is a workload with trials and comparisons of its own. Rates are fixed before the first trial that counts.

use std::str::FromStr;

use nicpoll_lab::{RATE_MAX, Refused};
use nicpoll_model::{ComparisonName, SweptLoad};
use serde::Deserialize;

use crate::design::{Design, NamedWorkload};

/// The highest share of the knee, in percent.
const SHARE_MAX: u32 = 1000;

/// Rates of a sweep.
const RATES: std::ops::RangeInclusive<usize> = 2..=12;

/// Workloads of a study with the rates of all its sweeps.
const WORKLOADS_MAX: usize = 32;

/// A rate of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "RateEntry")]
pub enum SweepRate {
    /// Datagrams (`rr`: requests) a second of each sender.
    PerSecond(u64),
    /// Percent of the knee, the greatest rate that every setting is shown to hold.
    KneePercent(u32),
}

/// A rate in a file.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a rate a second, such as 20000, or a share of the knee, such as \"50%\""
)]
enum RateEntry {
    Number(u64),
    Text(String),
}

impl TryFrom<RateEntry> for SweepRate {
    type Error = Refused;

    fn try_from(entry: RateEntry) -> Result<Self, Refused> {
        match entry {
            RateEntry::Number(number) => number.to_string().parse(),
            RateEntry::Text(text) => text.parse(),
        }
    }
}

impl FromStr for SweepRate {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Self, Refused> {
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
        rate.ok_or_else(|| {
            Refused(format!(
                "'{text}' is no rate of a sweep; give packets a second from 1 to {RATE_MAX}, such as 20000, or a share \
                 of the knee up to {SHARE_MAX}%, such as 50%"
            ))
        })
    }
}

impl SweepRate {
    /// Returns its part of a workload's name.
    fn word(self) -> String {
        match self {
            SweepRate::PerSecond(rate) => rate.to_string(),
            SweepRate::KneePercent(share) => format!("{share}%"),
        }
    }
}

/// The rates of a sweep, ascending, all of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<SweepRate>")]
pub struct SweepRates(Vec<SweepRate>);

impl TryFrom<Vec<SweepRate>> for SweepRates {
    type Error = Refused;

    fn try_from(mut rates: Vec<SweepRate>) -> Result<Self, Refused> {
        if !RATES.contains(&rates.len()) {
            return Err(Refused(format!(
                "a sweep has {} to {} rates; here it has {}",
                RATES.start(),
                RATES.end(),
                rates.len()
            )));
        }
        rates.sort();
        if let Some(twice) = rates.windows(2).find(|pair| pair[0] == pair[1]) {
            let rate = twice[0].word();
            return Err(Refused(format!(
                "the rate {rate} stands twice in the sweep"
            )));
        }
        let is_share = |rate: &SweepRate| matches!(rate, SweepRate::KneePercent(_));
        if rates.iter().any(is_share) && !rates.iter().all(is_share) {
            let why = "a sweep has rates a second or shares of the knee, not both";
            return Err(Refused(String::from(why)));
        }
        Ok(SweepRates(rates))
    }
}

/// The value of `--sweep`: `rate=20000,40000`.
impl FromStr for SweepRates {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Self, Refused> {
        let rates = text.strip_prefix("rate=");
        let rates = rates.ok_or_else(|| {
            Refused(format!(
                "'{text}' cannot be swept; write rate=20000,40000,80000 or rate=50%,100%,150%"
            ))
        })?;
        let rates: Result<Vec<SweepRate>, _> = rates.split(',').map(str::parse).collect();
        rates?.try_into()
    }
}

impl Design {
    /// Replaces each workload that has rates in `rates_of` by one workload for each of them. A workload without a
    /// rate stays as it is.
    ///
    /// # Errors
    /// When there are too many.
    pub(crate) fn swept(
        self,
        rates_of: impl Fn(&NamedWorkload) -> Option<SweepRates>,
    ) -> Result<Design, Refused> {
        let mut workloads = Vec::new();
        let mut drop_order = self.drop_order;
        for workload in self.workloads {
            let Some(rates) = rates_of(&workload).filter(|_| workload.has_rate()) else {
                workloads.push(workload);
                continue;
            };
            let rates = rates.0.iter();
            let links = u64::from(self.topology.links());
            let rated: Vec<NamedWorkload> = rates.map(|rate| at(&workload, *rate, links)).collect();
            let each = |one: ComparisonName| match one.workload == workload.name {
                true => {
                    let each = rated.iter().map(|rated| ComparisonName {
                        workload: rated.name.clone(),
                        ..one.clone()
                    });
                    each.collect()
                }
                false => vec![one],
            };
            drop_order = drop_order.into_iter().flat_map(each).collect();
            workloads.extend(rated);
        }
        match workloads.len() {
            ..=WORKLOADS_MAX => Ok(Design {
                workloads,
                drop_order,
                ..self
            }),
            made => Err(Refused(format!(
                "the sweep makes {made} workloads, and a study has at most {WORKLOADS_MAX}; give fewer rates"
            ))),
        }
    }

    /// Sweeps every workload that has a rate over these.
    ///
    /// # Errors
    /// When none has a rate, or the file has a sweep of its own.
    pub(crate) fn swept_over(self, rates: &SweepRates) -> Result<Design, Refused> {
        let mut workloads = self.workloads.iter();
        if let Some(load) = workloads.find_map(|workload| workload.load.as_ref()) {
            return Err(Refused(format!(
                "the study sweeps {} by itself; leave out --sweep, or the workload's key sweep",
                load.sweep
            )));
        }
        if !self.workloads.iter().any(NamedWorkload::has_rate) {
            let why =
                "no workload of the study can be sent at a rate; udp, rr and pulses can be swept";
            return Err(Refused(String::from(why)));
        }
        self.swept(|_| Some(rates.clone()))
    }
}

impl NamedWorkload {
    /// Sets each sender's rate, if it can have one. Returns the total rate of the senders of this many links.
    pub(crate) fn send_at(&mut self, per_second: u64, links: u64) -> Option<u64> {
        if let Some(request) = self.request.clone().at_rate(per_second) {
            self.request = request;
        }
        let rate = self.request.asked_per_second()?;
        Some(rate * links * self.options.ways())
    }

    /// Returns whether it can be sent at a rate.
    pub(crate) fn has_rate(&self) -> bool {
        self.request.clone().at_rate(1).is_some()
    }
}

/// Returns the number of knees to find before the first trial.
pub(crate) fn searches(design: &Design) -> u32 {
    let loads = design.workloads.iter().filter_map(|one| one.load.as_ref());
    let mut sought: Vec<&str> = loads
        .filter(|load| load.asked_per_second.is_none())
        .map(|load| load.sweep.as_str())
        .collect();
    sought.dedup();
    sought.len() as u32
}

/// Returns a swept workload at one of its rates, on this many links at once.
fn at(workload: &NamedWorkload, rate: SweepRate, links: u64) -> NamedWorkload {
    let per_second = match rate {
        SweepRate::PerSecond(per_second) => per_second,
        // A placeholder until the knee is known.
        SweepRate::KneePercent(_) => 1,
    };
    let mut rated = workload.clone();
    let asked = rated.send_at(per_second, links);
    let (asked_per_second, knee_ratio, words) = match rate {
        SweepRate::PerSecond(_) => {
            let words = asked.map_or_else(String::new, |rate| format!("{rate} a second"));
            (asked, None, words)
        }
        SweepRate::KneePercent(share) => {
            let words = format!("{share} % of the knee");
            (None, Some(f64::from(share) / 100.0), words)
        }
    };
    NamedWorkload {
        name: format!("{}@{}", workload.name, rate.word()),
        description: format!("{}; in this sweep at {words}", workload.description),
        load: Some(SweptLoad {
            sweep: workload.name.clone(),
            asked_per_second,
            knee_ratio,
        }),
        ..rated
    }
}

#[cfg(test)]
mod tests;
