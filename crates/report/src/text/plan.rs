//! What a study would do, as text: what is compared, every value that is written, and how long it takes.

use nicpoll_model::{FactorFacts, MainEffect, SettingFacts, Side, StudyPlan};

use super::header;
use super::page::{Ink, Page};
use crate::numbers::{counted, span};

/// Width of the names at the left.
const NAME: usize = 11;

/// Writes the page.
pub fn write(page: &mut Page, plan: &StudyPlan) {
    page.heading(&plan.question);
    item(
        page,
        "time",
        &format!("ends within {}", span(plan.plan.limit_seconds)),
    );
    item(page, "plan", &header::plan(&plan.plan));
    if let Some(width) = plan.plan.stop_width_ratio {
        let text = format!(
            "ends as soon as no interval is wider than {} % of its estimate, after 3 blocks or more",
            100.0 * width
        );
        item(page, "stop", &text);
    }
    item(page, "order", &header::order(&plan.plan, plan.seed));
    if !plan.plan.factors.is_empty() {
        page.heading("Factors, and their levels");
        for FactorFacts { factor, levels } in &plan.plan.factors {
            item(page, factor, &levels.join(", "));
        }
    }
    page.heading("Settings, and what each writes");
    for setting in &plan.settings {
        item(page, &setting.setting, &writes(setting));
    }
    page.heading("Workloads");
    for workload in &plan.workloads {
        item(page, &workload.workload, &workload.description);
    }
    page.heading(&format!(
        "{} with a verdict, each at {:.2} % confidence",
        counted(plan.plan.family, "comparison"),
        100.0 * plan.plan.confidence
    ));
    for effect in &plan.plan.main_effects {
        let MainEffect {
            factor,
            level,
            reference,
            settings,
        } = effect;
        let combinations = settings.len();
        item(
            page,
            factor,
            &format!(
                "{level} against {reference}, over {combinations} combinations of the other factors, under every \
                 workload"
            ),
        );
    }
    for (setting, reference) in &plan.plan.contrasts {
        item(
            page,
            setting,
            &format!("against {reference}, under every workload"),
        );
    }
    page.blank();
    page.paragraph(
        Ink::Faint,
        "This is the plan: nothing was built, and nothing was changed. To run it, leave out --dry-run.",
    );
}

fn item(page: &mut Page, name: &str, text: &str) {
    page.item(&format!("{name:<NAME$}"), Ink::Plain, text);
}

fn writes(setting: &SettingFacts) -> String {
    let mut sides: Vec<String> = Vec::new();
    for side in [Side::Sender, Side::Receiver] {
        let of_side = setting.writes.iter().filter(|write| write.0 == side);
        let values: Vec<String> = of_side
            .map(|(_, name, value)| format!("{name} {value}"))
            .collect();
        if !values.is_empty() {
            sides.push(format!("at the {side} {}", values.join(", ")));
        }
    }
    if !setting.router_writes.is_empty() {
        let values = setting.router_writes.iter();
        let values: Vec<String> = values
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        sides.push(format!("at the router {}", values.join(", ")));
    }
    if !setting.machine_writes.is_empty() {
        let values = setting.machine_writes.iter();
        let values: Vec<String> = values
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        sides.push(format!("of the whole machine {}", values.join(", ")));
    }
    if !setting.variant.is_empty() {
        let words = setting.variant.iter();
        let words: Vec<String> = words
            .map(|(name, word)| format!("{{{name}}} is {word}"))
            .collect();
        sides.push(format!("into the command, where {}", words.join(", ")));
    }
    let written = match &sides[..] {
        [] => String::from("nothing"),
        sides => sides.join("; "),
    };
    match &*setting.description {
        "" => written,
        description => format!("{description}. Writes {written}"),
    }
}
