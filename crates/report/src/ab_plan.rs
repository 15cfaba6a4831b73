//! What a live comparison would do: its plan and each write.

use nicpoll_model::ab::{AbPlan, LiveAb};

use crate::numbers::span;
use crate::switch::value;

/// The plan of a comparison that has not begun.
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
    if let Some([measured, every]) = compared.plan.duty_seconds {
        text.push_str(&format!(
            "Of each {}, the first {} are measured; in between all is as it is.\n",
            span(every),
            span(measured)
        ));
    }
    text.push_str("Once, before the first block, in force under both:\n");
    for write in &compared.prerequisites {
        let (before, after) = (value(&write.before), value(&write.after));
        text.push_str(&format!(
            "  {}: {} {before} -> {after}\n",
            write.interface, write.name
        ));
    }
    if compared.prerequisites.is_empty() {
        text.push_str("  nothing\n");
    }
    text.push_str("At each change of setting, to and fro:\n");
    for (reference, judged) in compared.turns() {
        let (before, after) = (value(&reference.value), value(&judged.value));
        let (interface, name) = (&reference.interface, reference.full_name());
        text.push_str(&format!("  {interface}: {name} {before} <-> {after}\n"));
    }
    if compared.judged.values.is_empty() {
        text.push_str("  values of NAPI instances, which come only with what is changed before\n");
    }
    text
}
