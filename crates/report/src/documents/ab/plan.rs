//! The plan of a live comparison and each of its writes.

use nicpoll_model::ab::{AbPlan, LiveAb};
use nicpoll_model::numbers::span;

use crate::documents::switch::{changed, named, value};
use crate::lists::grouped;

/// Renders the plan of a comparison that has not begun.
pub fn render_ab_plan(compared: &LiveAb) -> String {
    let AbPlan {
        seed,
        duration_seconds,
        block_seconds: [shortest, longest],
        left_out_seconds,
        ..
    } = compared.plan;
    let mut text = format!(
        "{}: \"{}\" against \"{}\" for {duration_seconds:.0} s (seed {seed})\n\
         Blocks of {shortest:.1} to {longest:.1} s in pairs, each in random order; the first {left_out_seconds:.1} s \
         of a block are left out.\n",
        compared.interface, compared.judged.name, compared.reference.name,
    );
    if let Some(members) = stands_for(compared) {
        text.push_str(&format!("{members}\n"));
    }
    if let Some([measured, every]) = compared.plan.duty_seconds {
        text.push_str(&format!(
            "Of each {}, the first {} are measured; in between all is as it is.\n",
            span(every),
            span(measured)
        ));
    }
    text.push_str("Once, before the first block, in force under both:\n");
    for (place, writes) in once(compared) {
        let lines = writes.iter().map(|write| format!("  {place}: {write}\n"));
        text.extend(lines);
    }
    if compared.prerequisites.is_empty() {
        text.push_str("  nothing\n");
    }
    text.push_str("At each change of setting, to and fro:\n");
    for (place, turns) in turns(compared) {
        let lines = turns.iter().map(|turn| format!("  {place}: {turn}\n"));
        text.extend(lines);
    }
    if compared.plan.is_null {
        text.push_str("  nothing: what is there is written again\n");
    } else if compared.judged.values.is_empty() {
        text.push_str("  values of NAPI instances, which come only with what is changed before\n");
    }
    text
}

/// Returns a sentence about the interfaces below a VLAN, a bond or a bridge; `None` for a plain interface.
pub fn stands_for(compared: &LiveAb) -> Option<String> {
    let LiveAb {
        interface, members, ..
    } = compared;
    // A queue, such as eth0:rx0, belongs to its interface.
    let own = interface.split(':').next().unwrap_or(interface);
    (!members.iter().any(|member| member == own)).then(|| {
        format!(
            "{own} stands for {}: its packets arrive there, and what is changed and counted is there.",
            members.join(", ")
        )
    })
}

/// Writes, by interface.
pub type WrittenValues = Vec<(String, Vec<String>)>;

/// Returns the values that alternate: each under the reference and under the judged setting.
pub fn turns(compared: &LiveAb) -> WrittenValues {
    grouped(compared.turns().into_iter().map(|turn| {
        let [one, other] = turn.values.map(|it| value(turn.name, it));
        let name = named(None, turn.name);
        (turn.place(), format!("{name} {one} <-> {other}"))
    }))
}

/// Returns what both settings need: each value before and after.
pub fn once(compared: &LiveAb) -> WrittenValues {
    let changed = changed(&compared.prerequisites).into_iter();
    grouped(changed.map(|it| (it.write.interface.clone(), it.change())))
}
