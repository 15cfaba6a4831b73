//! Where each core's time went: a bar for each setting, one below the other.

use std::collections::BTreeSet;
use std::fmt::Write;

use nicpoll_model::{CpuStates, Study, WorkloadFacts};

use super::strips::Strips;
use crate::figures::Group;
use crate::html::figure::Figure;
use crate::numbers::percent;
use crate::plot::{self, LETTERS, text};
use crate::text::workload::{core_name, cores_of, source};

/// Height of a bar.
const BAR: f64 = 22.0;

/// A state: its name, its colour's index, and how it is read. Idle has none: it is what is left.
type State = (&'static str, Option<usize>, fn(&CpuStates) -> f64);

const STATES: [State; 4] = [
    ("user", Some(2), |cpu| cpu.user + cpu.nice),
    ("system", Some(3), |cpu| cpu.system),
    ("interrupt (irq + softirq)", Some(5), |cpu| {
        cpu.irq + cpu.softirq
    }),
    ("idle", None, |cpu| cpu.idle),
];

/// The bars of a workload; `None` when CPU time was not measured.
pub fn plot(study: &Study, facts: &WorkloadFacts) -> Option<Figure> {
    let groups = Group::of_workload(study, &facts.workload);
    let cores: BTreeSet<u32> = groups
        .iter()
        .flat_map(Group::results)
        .flat_map(|trial| cores_of(trial).iter().map(|cpu| cpu.core))
        .collect();
    cores.first()?;
    let mut strips = Strips::new();
    legend(&mut strips);
    let mut rows = Vec::new();
    for core in cores {
        for (group, setting) in groups.iter().zip(&study.settings) {
            let Some(shares) = shares(group, core) else {
                continue;
            };
            let name = format!("{}, {}", core_name(study, core), setting.setting);
            let y = strips.next(&name, BAR);
            stack(strips.body(), shares, y);
            let percents = shares.map(percent);
            rows.push([vec![name], percents.to_vec()].concat());
        }
    }
    let ticks = (0..=4).map(|tick| (f64::from(tick) / 4.0, format!("{}", tick * 25)));
    let title = format!("{}: where each core's time went", facts.workload);
    let svg = strips.end(
        &title,
        &ticks.collect(),
        "% of the core's time, mean of the trials",
    );
    let head = STATES.map(|(name, ..)| format!("{name}, %"));
    Some(Figure {
        title: String::from("Where each core's time went"),
        caption: format!("The account of CPU time is {}.", source(&groups).name()),
        svg,
        head: [vec![String::from("core, setting")], head.to_vec()].concat(),
        rows,
    })
}

/// The mean share of each state over the trials that have it: means add up, medians do not.
fn shares(group: &Group, core: u32) -> Option<[f64; 4]> {
    let of_core: Vec<&CpuStates> = group
        .results()
        .flat_map(cores_of)
        .filter(|states| states.core == core)
        .collect();
    let count = of_core.len() as f64;
    (!of_core.is_empty()).then(|| {
        STATES.map(|(.., read)| of_core.iter().map(|states| read(states)).sum::<f64>() / count)
    })
}

fn look(colour: Option<usize>) -> String {
    colour.map_or(String::from("class=\"idle\""), plot::fill)
}

fn stack(svg: &mut String, shares: [f64; 4], y: f64) {
    let mut left = 0.0;
    for ((name, colour, _), share) in STATES.iter().zip(shares) {
        let (from, to) = (Strips::x(left), Strips::x((left + share).min(1.0)));
        left += share;
        let _ = writeln!(
            svg,
            "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BAR}\" {}>\
             <title>{name} {} %</title></rect>",
            y - BAR / 2.0,
            (to - from).max(0.0),
            look(*colour),
            percent(share)
        );
    }
}

fn legend(strips: &mut Strips) {
    let y = *strips.y() + 14.0;
    let mut x = 8.0;
    for (name, colour, _) in STATES {
        let _ = writeln!(
            strips.body(),
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"14\" height=\"14\" {}/>",
            y - 12.0,
            look(colour)
        );
        text(strips.body(), (x + 20.0, y), "start", LETTERS, name);
        x += 48.0 + 9.0 * name.len() as f64;
    }
    *strips.y() += 26.0;
}
