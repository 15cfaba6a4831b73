//! Where the packets went: from what was offered to what was delivered, and what branched off on the way.
//!
//! What must hold: the branches are the ledger's lines. A width is a share of what was offered; the least that can be
//! seen stands for less, and the figure is beside it.

use std::fmt::Write;

use nicpoll_model::{LossPlace, Side, Study, WorkloadFacts};

use super::setting_names;
use super::strips::Strips;
use crate::figures::Group;
use crate::html::figure::Figure;
use crate::numbers::{MISSING, count, figure};
use crate::plot::{self, LETTERS, text};
use crate::text::workload::Sums;

/// Height of all that was offered.
const BAND: f64 = 44.0;
/// A line of a branch's name.
const LINE: f64 = 22.0;
/// From place to place.
const STEP: f64 = 34.0;
/// Where the band begins and ends.
const FROM: f64 = 8.0;
const TO: f64 = 560.0;
/// The least width that can be seen.
const SEEN: f64 = 1.5;

/// A branch: its name, and how much left there.
type Branch = (String, u64);

/// The flow of each setting; `None` when no account closes.
pub fn plot(study: &Study, facts: &WorkloadFacts) -> Option<Figure> {
    let groups = Group::of_workload(study, &facts.workload);
    let is_in_bytes = groups
        .iter()
        .flat_map(Group::results)
        .any(|it| it.ledger.is_in_bytes());
    let unit = if is_in_bytes { "bytes" } else { "packets" };
    let mut strips = Strips::new();
    let names = setting_names(study);
    let colours = plot::colours(&names);
    let mut rows = Vec::new();
    for (index, (group, name)) in groups.iter().zip(&names).enumerate() {
        let Some(sums) = Sums::of(group) else {
            continue;
        };
        let of_offered = |part: u64| 100.0 * part as f64 / sums.offered.max(1) as f64;
        strips.name(&format!(
            "{name}: {} {unit} offered, {} % delivered",
            count(sums.offered),
            figure(of_offered(sums.delivered))
        ));
        let branches = branches(&sums);
        draw(&mut strips, &sums, &branches, colours[index]);
        rows.extend(table(name, &sums));
    }
    rows.first()?;
    let title = format!(
        "{}: from what was offered to what was delivered",
        facts.workload
    );
    let caption = match is_in_bytes {
        true => "TCP sends lost packets again: its account is in bytes, and has no places of loss.",
        false => "Widths are shares of what was offered, all trials of a setting together.",
    };
    Some(Figure {
        title: String::from("Where the packets went"),
        caption: String::from(caption),
        svg: strips.end(&title, &Vec::new(), ""),
        head: [
            "setting: where".to_owned(),
            String::from(unit),
            String::from("% of offered"),
        ]
        .to_vec(),
        rows,
    })
}

fn place_name((place, side): (LossPlace, Side)) -> String {
    format!("{} ({side})", place.name())
}

fn branches(sums: &Sums) -> Vec<Branch> {
    let lost = sums.lost.iter();
    let lost = lost.filter_map(|(at, (packets, _))| Some((place_name(*at), (*packets)?)));
    let unexplained = u64::try_from(sums.residual.unwrap_or(0)).unwrap_or(0);
    let unexplained = (String::from("what no counter explains"), unexplained);
    lost.chain([unexplained])
        .filter(|(_, packets)| *packets > 0)
        .collect()
}

/// The band of one setting. Each branch leaves at its lower edge and falls to its own line of text; the first one falls
/// deepest, so that no line crosses a name.
fn draw(strips: &mut Strips, sums: &Sums, branches: &[Branch], colour: usize) {
    let top = *strips.y() + 6.0;
    let offered = sums.offered.max(1) as f64;
    let mut left = BAND;
    let mut edge = vec![(FROM, top + BAND)];
    let mut svg = String::new();
    for (index, (name, packets)) in branches.iter().enumerate() {
        let lost = (BAND * *packets as f64 / offered)
            .max(SEEN)
            .min(left - SEEN);
        let at = FROM + 30.0 + STEP * index as f64;
        edge.extend([(at, top + left), (at, top + left - lost)]);
        left -= lost;
        let down = top + BAND + 10.0 + LINE * (branches.len() - index) as f64;
        let wide = lost.min(STEP - 6.0);
        let _ = writeln!(
            svg,
            "<path class=\"lost\" d=\"M{at:.1},{:.1} h{wide:.1} V{:.1} h-{wide:.1} Z\"/>",
            top + left,
            down - 4.0
        );
        let words = format!("{name}: {} %", figure(100.0 * *packets as f64 / offered));
        text(&mut svg, (at + wide + 6.0, down), "start", LETTERS, &words);
    }
    edge.extend([
        (TO, top + left),
        (TO, top + left + 5.0),
        (TO + 26.0, top + left / 2.0),
    ]);
    edge.extend([(TO, top - 5.0), (TO, top), (FROM, top)]);
    let edge: Vec<String> = edge.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let band = format!(
        "<polygon points=\"{}\" {}/>\n",
        edge.join(" "),
        plot::fill(colour)
    );
    strips.body().push_str(&(band + &svg));
    *strips.y() = top + BAND + 20.0 + LINE * branches.len() as f64;
}

/// The account of one setting, places at which nothing was lost left out.
fn table(name: &str, sums: &Sums) -> Vec<Vec<String>> {
    let share = |part: f64| figure(100.0 * part / sums.offered.max(1) as f64);
    let line = |what: &str, packets: String, share: String| {
        vec![format!("{name}: {what}"), packets, share]
    };
    let mut rows = vec![
        line("offered", count(sums.offered), String::from("100")),
        line(
            "delivered",
            count(sums.delivered),
            share(sums.delivered as f64),
        ),
    ];
    for ((place, side), (packets, is_whole)) in &sums.lost {
        if *packets == Some(0) && *is_whole {
            continue;
        }
        let part = packets.map_or(String::from(MISSING), |packets| share(packets as f64));
        rows.push(line(
            &place_name((*place, *side)),
            sums.at(*place, *side),
            part,
        ));
    }
    if let Some(residual) = sums.residual {
        rows.push(line(
            "what no counter explains",
            count(residual),
            share(residual as f64),
        ));
    }
    rows
}
