//! The checks of a machine as text: one line a feature, with its remedy below.

use nicpoll_model::{Check, CheckGroup, CheckStatus, Doctor};

use super::page::{Ink, Page};

/// Width of the word for how a check came out.
const STATUS: usize = 9;
/// Width of a check's name.
const NAME: usize = 24;

const GROUPS: [(CheckGroup, &str); 4] = [
    (CheckGroup::Privilege, "What this process may do"),
    (CheckGroup::Kernel, "What the kernel can do"),
    (CheckGroup::Interface, "What the interfaces can do"),
    (CheckGroup::Measurement, "What disturbs measurements"),
];

pub fn write(page: &mut Page, doctor: &Doctor) {
    for (group, title) in GROUPS {
        page.heading(title);
        let checks = doctor.checks.iter().filter(|check| check.group == group);
        for check in checks {
            write_check(page, check);
        }
    }
    page.blank();
    let (bad, ink) = match doctor
        .checks
        .iter()
        .filter(|check| check.status.is_bad())
        .count()
    {
        0 => (
            String::from("Nothing is missing, and nothing found disturbs measurements."),
            Ink::Good,
        ),
        1 => (
            String::from("One thing is missing or disturbs measurements."),
            Ink::Unsure,
        ),
        count => (
            format!("{count} things are missing or disturb measurements."),
            Ink::Unsure,
        ),
    };
    page.paragraph(ink, &bad);
}

fn write_check(page: &mut Page, check: &Check) {
    let ink = match check.status {
        CheckStatus::Good => Ink::Plain,
        CheckStatus::Absent | CheckStatus::Unknown => Ink::Faint,
        CheckStatus::Missing => Ink::Bad,
        CheckStatus::Confounds => Ink::Unsure,
    };
    let name = match &check.interface {
        Some(interface) => format!("{interface} {}", check.name),
        None => check.name.clone(),
    };
    // An interface may be called almost anything.
    let name = name.replace(char::is_control, "?");
    let status = check.status.to_string();
    let lead = format!("{status:<STATUS$}{name:<NAME$}");
    page.item(&lead, ink, &check.finding);
    if let Some(remedy) = &check.remedy {
        page.item(
            &" ".repeat(STATUS + NAME),
            Ink::Plain,
            &format!("-> {remedy}"),
        );
    }
}
