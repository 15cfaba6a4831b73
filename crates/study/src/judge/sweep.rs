//! The result of a sweep: offered and delivered at each rate, the highest rate sustained, and CPU time at half and full
//! load.
//!
//! A rate counts as sustained only if each lower one is. Full load is the knee, or else the highest rate that every setting
//! sustains.

use nicpoll_model::{
    Knee, Metric, RoundTrip, Sweep, SweepEnd, SweepPoint, SweptLoad, SweptSetting, Trial,
    TrialFigures, WindowRates, WorkUnit,
};
use nicpoll_stats::Summary;

use crate::design::{Design, NamedWorkload};

/// Limit of the fixed load, as a share of full load.
const FIXED_SHARE: f64 = 0.5;

/// Returns the result of each sweep of a design.
pub(crate) fn sweeps(design: &Design, trials: &[Trial], knees: &[Knee]) -> Vec<Sweep> {
    let loads = design.workloads.iter().filter_map(|one| one.load.as_ref());
    let mut names: Vec<&str> = loads.map(|load| load.sweep.as_str()).collect();
    names.dedup();
    let each = names.into_iter().map(|name| {
        let knee = knees.iter().find(|knee| knee.sweep == name);
        sweep(design, trials, name, knee.map(|it| it.asked_per_second))
    });
    each.collect()
}

/// A workload of the sweep with its rate.
type Rated<'a> = (&'a NamedWorkload, u64);

fn sweep(design: &Design, trials: &[Trial], name: &str, knee: Option<u64>) -> Sweep {
    let rate_of = |load: &SweptLoad| load.asked_per_second.filter(|_| load.sweep == name);
    let rated: Vec<Rated<'_>> = design
        .workloads
        .iter()
        .filter_map(|workload| Some((workload, rate_of(workload.load.as_ref()?)?)))
        .collect();
    let unit = rated.first().map_or(WorkUnit::Datagrams, |(workload, _)| {
        workload.request.workload().unit()
    });
    let settings = design.settings.iter();
    let mut settings: Vec<SweptSetting> = settings
        .map(|setting| of_setting(&rated, trials, setting.name(), unit))
        .collect();
    let (fixed, full) = loads(&settings, knee);
    for setting in &mut settings {
        let mut points = setting.points.iter();
        let at_fixed = points.find(|point| Some(point.asked_per_second) == fixed);
        setting.fixed_load_busy_ns_per_packet = at_fixed.and_then(|point| point.busy_ns_per_packet);
    }
    Sweep {
        sweep: String::from(name),
        unit,
        fixed_load_per_second: fixed,
        full_load_per_second: full,
        settings,
    }
}

/// Returns the rates of half and full load. If some setting holds no rate, the lowest is full load.
fn loads(settings: &[SweptSetting], knee: Option<u64>) -> (Option<u64>, Option<u64>) {
    let held = settings.iter().map(|setting| setting.held_per_second);
    let least = held.collect::<Option<Vec<u64>>>();
    let full = knee.or(least.and_then(|held| held.into_iter().min()));
    let rates = settings.first().into_iter().flat_map(|it| &it.points);
    let rates: Vec<u64> = rates.map(|point| point.asked_per_second).collect();
    let up_to = |share: f64| {
        let most = share * full? as f64;
        let mut rates = rates.iter().rev().copied();
        rates.find(|rate| *rate as f64 <= most)
    };
    (up_to(FIXED_SHARE), up_to(1.0).or(rates.first().copied()))
}

fn of_setting(
    rated: &[Rated<'_>],
    trials: &[Trial],
    setting: &str,
    unit: WorkUnit,
) -> SweptSetting {
    let points: Vec<SweepPoint> = rated
        .iter()
        .map(|&(workload, asked)| {
            let of_both = trials.iter().filter(|trial| {
                (trial.workload.as_str(), trial.setting.as_str()) == (&workload.name, setting)
                    && trial.validity.is_kept()
            });
            let kept: Vec<&Trial> = of_both.collect();
            point(&workload.name, asked, unit, &kept)
        })
        .collect();
    let held = points.iter().take_while(|point| point.ends().is_none());
    let held = held.count();
    SweptSetting {
        setting: String::from(setting),
        held_per_second: held
            .checked_sub(1)
            .map(|last| points[last].asked_per_second),
        ended_by: points
            .get(held)
            .and_then(SweepPoint::ends)
            .unwrap_or(SweepEnd::Sweep),
        fixed_load_busy_ns_per_packet: None,
        points,
    }
}

/// Sums up the trials at a rate under a setting.
pub(crate) fn point(workload: &str, asked: u64, unit: WorkUnit, kept: &[&Trial]) -> SweepPoint {
    let results: Vec<&TrialFigures> = kept.iter().filter_map(|trial| trial.result()).collect();
    let rates = || {
        results
            .iter()
            .filter_map(|it| rates_of(unit, it.sender, it.receiver, it.round_trip))
    };
    let busy_ns = results
        .iter()
        .filter_map(|it| Metric::CpuNsPerPacket.figure(it));
    let delay = |share: f64| {
        let delays = results.iter().filter_map(|it| it.one_way_delays.as_ref());
        let quantiles = delays.filter_map(|delays| delays.quantile_ns(share));
        median(quantiles.map(|ns| ns as f64))
    };
    let spinner = results
        .iter()
        .filter_map(|figures| Some(figures.spinner?.cpu_ratio));
    // A trial without a result, for its setting's own reason, delivered nothing.
    let failed = kept.len() - results.len();
    let ratios = rates().map(|rates| rates.ratio);
    SweepPoint {
        workload: String::from(workload),
        asked_per_second: asked,
        offered_per_second: median(rates().map(|rates| rates.offered)),
        delivered_per_second: median(rates().map(|rates| rates.delivered)),
        delivered_ratio: median(ratios.chain(std::iter::repeat_n(0.0, failed))),
        busy_ns_per_packet: median(busy_ns),
        one_way_p50_ns: delay(0.5),
        one_way_p99_ns: delay(0.99),
        spinner_ratio: median(spinner),
        trials: results.len() as u32,
    }
}

/// Offered and delivered rates, without background traffic.
pub(crate) struct Rates {
    pub offered: f64,
    pub delivered: f64,
    pub ratio: f64,
}

/// Returns the rates of one run by both ends' counts; `None` without traffic.
pub(crate) fn rates_of(
    unit: WorkUnit,
    sender: WindowRates,
    receiver: WindowRates,
    round_trip: Option<RoundTrip>,
) -> Option<Rates> {
    if unit == WorkUnit::Transactions {
        let trips = round_trip?;
        let asked = (trips.transactions + trips.timeouts) as f64;
        let ratio = trips.transactions as f64 / asked;
        let delivered = trips.transactions_per_second;
        return (trips.transactions > 0).then_some(Rates {
            offered: delivered / ratio,
            delivered,
            ratio,
        });
    }
    let (sent, received) = (sender.packets?, receiver.packets?);
    (sent > 0).then_some(Rates {
        offered: sender.packets_per_second?,
        delivered: receiver.packets_per_second?,
        ratio: received.min(sent) as f64 / sent as f64,
    })
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    Summary::of(&values).map(|summary| summary.median)
}

#[cfg(test)]
mod tests;
