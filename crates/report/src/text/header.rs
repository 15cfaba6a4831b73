//! What was run, where, and in which order.

use std::collections::{BTreeMap, BTreeSet};

use nicpoll_model::{Plan, SettingChanges, Study};

use super::page::{Ink, Page};
use crate::figures::Group;
use crate::numbers::{counted, span};
use crate::switch;

/// Trials named of the random order: enough to tell two orders apart.
const ORDER_SHOWN: usize = 4;
/// Width of the names at the left.
const NAME: usize = 11;

pub fn write(page: &mut Page, study: &Study) {
    page.heading("What was run");
    for (name, text) in facts(study) {
        page.item(&format!("{name:<NAME$}"), Ink::Plain, &text);
    }
}

/// What each setting changed at each host, with what was there before. Nothing where that was not stored.
pub fn write_changes(page: &mut Page, study: &Study) {
    if study.setting_changes.is_empty() {
        return;
    }
    page.heading("What each setting changed, and put back");
    for SettingChanges {
        setting,
        host,
        writes,
    } in &study.setting_changes
    {
        let changes = switch::changed(writes).into_iter();
        let changes =
            changes.map(|it| format!("{} {}", switch::of_interface(it.write), it.change()));
        let changes: Vec<String> = changes.collect();
        let text = format!("{host}:{}", changes.join(","));
        page.item(&format!("{setting:<NAME$}"), Ink::Plain, &text);
    }
}

fn facts(study: &Study) -> Vec<(&str, String)> {
    let mut facts = vec![
        ("question", study.question.clone()),
        ("command", study.argv.join(" ")),
        (
            "run",
            format!(
                "nicpoll {}, started {}, took {}",
                study.nicpoll_version,
                study.started_at,
                span(study.elapsed_seconds)
            ),
        ),
    ];
    facts.extend(study.host.machine.clone().map(|name| ("machine", name)));
    facts.extend([
        ("kernel", study.host.kernel.clone()),
        ("CPUs", cpus(study)),
        ("link", link(study)),
    ]);
    // One that has nothing to say of how the interface polls is told by what it changed.
    let described = study
        .settings
        .iter()
        .filter(|it| !it.description.is_empty());
    facts.extend(described.map(|it| (it.setting.as_str(), it.description.clone())));
    facts.extend([
        ("plan", plan(&study.plan)),
        ("order", order(&study.plan, study.seed)),
        ("placement", placement(study)),
    ]);
    facts
}

fn cpus(study: &Study) -> String {
    let cpus = list(&study.host.cpus);
    match &study.host.cpu_model {
        Some(model) => format!("{cpus} ({model})"),
        None => cpus,
    }
}

fn link(study: &Study) -> String {
    let lab = &study.lab;
    let kind = if lab.is_virtual {
        ", virtual: it shows the kernel's receive path, not a card's interrupts"
    } else {
        ""
    };
    format!("{} ({}){kind}", lab.interface, lab.driver)
}

pub fn plan(plan: &Plan) -> String {
    let aim = |ns: u64| format!("; polling aims at one round every {} us", ns as f64 / 1e3);
    let period = plan.period_ns.map_or_else(String::new, aim);
    format!(
        "{} for each workload, every setting once a block; trials of {} s after {} s of warm-up{}",
        counted(plan.blocks, "block"),
        plan.trial_seconds,
        plan.warmup_seconds,
        period
    )
}

pub fn order(plan: &Plan, seed: u64) -> String {
    let first: Vec<String> = plan
        .order
        .iter()
        .take(ORDER_SHOWN)
        .map(|(workload, setting)| format!("{workload} {setting}"))
        .collect();
    let more = if plan.order.len() > ORDER_SHOWN {
        ", ..."
    } else {
        ""
    };
    format!(
        "random within each block, drawn from seed {} (the same seed and options draw it again): {}{more}",
        seed,
        first.join(", ")
    )
}

fn placement(study: &Study) -> String {
    let mut polled: BTreeMap<Vec<u32>, Vec<&str>> = BTreeMap::new();
    for facts in &study.settings {
        let cpus = poll_cpus(study, &facts.setting);
        if !cpus.is_empty() {
            polled.entry(cpus).or_default().push(&facts.setting);
        }
    }
    let polls: Vec<String> = polled
        .iter()
        .map(|(cpus, settings)| format!("on CPU {} ({})", list(cpus), settings.join(", ")))
        .collect();
    let polls = if polls.is_empty() {
        String::from("no polls were seen")
    } else {
        format!("polls ran {}", polls.join(", "))
    };
    format!(
        "sender on CPU {}, receiver on CPU {}; {polls}",
        study.lab.sender_cpu, study.lab.receiver_cpu
    )
}

/// The cores on which polls ran in any good trial under a setting.
fn poll_cpus(study: &Study, setting: &str) -> Vec<u32> {
    let cpus: BTreeSet<u32> = study
        .plan
        .workloads
        .iter()
        .flat_map(|workload| Group::of(study, workload, setting).good)
        .flat_map(|trial| trial.placement.poll_cpus.iter().copied())
        .collect();
    cpus.into_iter().collect()
}

fn list(cpus: &[u32]) -> String {
    let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
    cpus.join(", ")
}
