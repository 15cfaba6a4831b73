//! What a live comparison would do: its plan and each write; and in short what it found.

use nicpoll_model::ab::{AbCores, AbPlan, LiveAb};

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
    let both = compared
        .reference
        .values
        .iter()
        .zip(&compared.judged.values);
    for (reference, judged) in both.filter(|(one, other)| one.value != other.value) {
        let instance = reference
            .napi_id
            .map_or_else(String::new, |id| format!("NAPI {id} "));
        let (before, after) = (value(&reference.value), value(&judged.value));
        let (interface, name) = (&reference.interface, &reference.name);
        text.push_str(&format!(
            "  {interface}: {instance}{name} {before} <-> {after}\n"
        ));
    }
    if compared.judged.values.is_empty() {
        text.push_str("  values of NAPI instances, which come only with what is changed before\n");
    }
    text
}

/// What a comparison found, in a few lines: how it ended, load, CPU time, and what to do.
pub fn render_ab_summary(compared: &LiveAb) -> String {
    let answer = &compared.answer;
    let mut text = format!(
        "{}: {} pairs of blocks count, {} were set aside (seed {})\n",
        compared.interface, answer.pairs, answer.set_aside_pairs, compared.plan.seed
    );
    if let Some(end) = &compared.end.text {
        text.push_str(&format!("ended: {end}\n"));
    }
    if let Some(load) = &answer.load {
        text.push_str(&format!(
            "load: {:.0} packets/s as it is, {:.0} under the other setting\n",
            load.reference_packets_per_second, load.judged_packets_per_second
        ));
    }
    if let Some(cpu) = &answer.cpu {
        let AbCores {
            cores,
            cores_low,
            cores_high,
        } = cpu.equal_load;
        text.push_str(&format!(
            "busy cores: {:.4} as it is, {:.4} under the other setting; at equal load {cores:+.4} [{cores_low:+.4}, \
             {cores_high:+.4}]\n",
            cpu.reference_cores, cpu.judged_cores
        ));
    }
    for restored in &compared.restored {
        let became = match (restored.is_as_before, restored.notes.first()) {
            (true, _) => "every value is as it was",
            (false, Some(note)) => note,
            (false, None) => "not every value is as it was; run: nicpoll restore",
        };
        text.push_str(&format!("{}: {became}\n", restored.interface));
    }
    text.push_str(&match answer.is_recommended {
        true => format!("less CPU time: {}\n", compared.judged.command),
        false => String::from("keep what you have\n"),
    });
    text
}
