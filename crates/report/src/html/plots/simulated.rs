//! What the simulator said beforehand, held against what was measured.
//!
//! What must hold: the simulator's figures are those that the study kept; nothing is simulated here. They are said to be
//! predicted.

use nicpoll_model::sim_fit_host::{Simulated, SimulatedFigure};
use nicpoll_model::{Study, WorkloadFacts};

use super::scatter::looks;
use super::setting_names;
use super::strips::{Strips, Ticks};
use crate::figures::Group;
use crate::html::figure::Figure;
use crate::numbers::{MISSING, figure, figure_or_missing};
use crate::plot::{self, LogAxis, mark};

/// Height of a strip.
const STRIP: f64 = 22.0;

/// A figure of the simulator with the median of the trials.
struct Held<'a> {
    told: &'a SimulatedFigure,
    measured: Option<f64>,
}

impl Held<'_> {
    /// Predicted over measured.
    fn ratio(&self) -> Option<f64> {
        let measured = self.measured.filter(|measured| *measured > 0.0)?;
        Some(self.told.value / measured).filter(|ratio| *ratio > 0.0)
    }
}

/// The predictions of a workload; `None` when there are none that can be held against anything.
pub fn plot(study: &Study, facts: &WorkloadFacts) -> Option<Figure> {
    let Simulated { host, figures } = study.simulated.as_ref()?;
    let groups = Group::of_workload(study, &facts.workload);
    let names = setting_names(study);
    let of_workload = figures
        .iter()
        .filter(|told| told.workload == facts.workload);
    let held: Vec<(usize, Held)> = of_workload
        .filter_map(|told| {
            let setting = names.iter().position(|name| *name == told.setting)?;
            let measured = groups
                .get(setting)?
                .median(|trial| told.quantity.measured(trial));
            Some((setting, Held { told, measured }))
        })
        .collect();
    let ratios = || held.iter().filter_map(|(_, one)| one.ratio());
    let most = ratios()
        .map(|ratio| ratio.max(1.0 / ratio))
        .reduce(f64::max)?;
    let axis = LogAxis::over(1.0 / most.max(1.1), most.max(1.1));
    let looks = looks(&names);
    let mut strips = Strips::new();
    for (setting, one) in &held {
        let name = format!("{}: {}", one.told.setting, one.told.quantity.name());
        let y = strips.next(&name, STRIP);
        if let Some(ratio) = one.ratio() {
            let place = (Strips::x(axis.share(ratio)), y);
            mark(strips.body(), looks[*setting], place);
            let (top, bottom) = (y - STRIP / 2.0, y + STRIP / 2.0);
            let middle = Strips::x(axis.share(1.0));
            plot::line(strips.body(), (middle, top), (middle, bottom), true);
        }
    }
    let ticks = axis.ratios(0.11).into_iter();
    let ticks: Ticks = ticks.map(|at| (axis.share(at), at.to_string())).collect();
    let title = format!("{}: predicted over measured", facts.workload);
    let row = |(_, one): &(usize, Held)| {
        vec![
            format!("{}: {}", one.told.setting, one.told.quantity.name()),
            figure(one.told.value),
            figure_or_missing(one.measured),
            one.ratio().map_or(String::from(MISSING), figure),
        ]
    };
    Some(Figure {
        title: String::from("Predicted by the simulator, against the median of the trials"),
        caption: format!(
            "Reckoned for the host {host} before the first trial. At 1 the prediction is what was measured."
        ),
        svg: strips.end(&title, &ticks, "predicted over measured"),
        head: [
            "setting: figure",
            "predicted",
            "measured",
            "predicted over measured",
        ]
        .map(String::from)
        .to_vec(),
        rows: held.iter().map(row).collect(),
    })
}
