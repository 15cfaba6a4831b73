//! The machine, what each setting writes, and how to do it again.
//!
//! What must hold: what was not stored is said to be missing, and is not guessed.

use maud::{Markup, html};
use nicpoll_model::ab::LiveAb;
use nicpoll_model::{HostFacts, SettingFacts, Study};

use super::figure::table;
use crate::numbers::MISSING;
use crate::switch::{self, Changed, value};

/// The machine, the link and the settings of a study.
pub fn of_study(study: &Study) -> Markup {
    html! {
        section id="machine" {
            h2 { "The machine" }
            dl {
                (host(&study.host))
                @for (name, text) in lab(study) { (fact(name, &text)) }
            }
            (sysctls(&study.host))
            (settings(study))
            (before_and_after(study))
            (confounders(study))
        }
    }
}

/// The machine of a live comparison, and the values that took turns.
pub fn of_ab(compared: &LiveAb) -> Markup {
    let head = ["value", &compared.reference.name, &compared.judged.name].map(String::from);
    let turns = compared.turns().into_iter().map(|turn| {
        let [one, other] = turn.values.map(value);
        vec![format!("{}: {}", turn.place(), turn.name), one, other]
    });
    html! {
        section id="machine" {
            h2 { "The machine" }
            dl { (host(&compared.host)) }
            (sysctls(&compared.host))
            h2 { "What took turns" }
            (table("Values under each setting", &head, &turns.collect::<Vec<_>>()))
        }
    }
}

fn fact(name: &str, text: &str) -> Markup {
    html! { div { dt { (name) } dd { (text) } } }
}

fn or_missing(text: Option<&str>) -> &str {
    text.unwrap_or(MISSING)
}

fn host(host: &HostFacts) -> Markup {
    let cpus: Vec<String> = host.cpus.iter().map(u32::to_string).collect();
    let unknown = |list: &[String]| match list.is_empty() {
        true => String::from(MISSING),
        false => list.join(", "),
    };
    html! {
        (fact("kernel", &host.kernel))
        (fact("CPU", or_missing(host.cpu_model.as_deref())))
        (fact("CPUs in use", &cpus.join(", ")))
        (fact("clock source", or_missing(host.clocksource.as_deref())))
        (fact("governors", &unknown(&host.governors)))
        (fact("boot options that matter", &unknown(&host.boot_options)))
    }
}

fn lab(study: &Study) -> Vec<(&'static str, String)> {
    let lab = &study.lab;
    let line = match (lab.line_bits_per_second, &lab.no_line_because) {
        (Some(bits), _) => format!("{} Mbit/s", bits as f64 / 1e6),
        (None, Some(why)) => format!("none: {why}"),
        (None, None) => String::from(MISSING),
    };
    let addresses = lab.addresses.iter();
    let addresses: Vec<String> = addresses
        .map(|(side, it)| format!("{it} ({side})"))
        .collect();
    vec![
        ("interface", format!("{} ({})", lab.interface, lab.driver)),
        ("line", line),
        ("MTU", format!("{} bytes", lab.mtu_bytes)),
        (
            "receive ring",
            lab.ring_slots
                .map_or_else(|| String::from(MISSING), |slots| format!("{slots} slots")),
        ),
        ("addresses", addresses.join(", ")),
        (
            "pinned",
            format!(
                "sender to CPU {}, receiver to CPU {}",
                lab.sender_cpu, lab.receiver_cpu
            ),
        ),
        ("sends", lab.send_mode.clone()),
        ("receives", lab.receive_mode.clone()),
    ]
}

fn sysctls(host: &HostFacts) -> Markup {
    let head = ["sysctl", "value"].map(String::from);
    let rows = host.sysctls.iter();
    let rows: Vec<Vec<String>> = rows
        .map(|(name, value)| vec![name.clone(), value.clone()])
        .collect();
    html! {
        @if !rows.is_empty() {
            details {
                summary { "Kernel settings that bear on receiving (" (rows.len()) ")" }
                (table("Kernel settings", &head, &rows))
            }
        }
    }
}

/// Everything that any setting writes, with what each one writes there.
fn settings(study: &Study) -> Markup {
    let mut names: Vec<String> = Vec::new();
    let all: Vec<Vec<(String, &str)>> = study.settings.iter().map(writes).collect();
    for (name, _) in all.iter().flatten() {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let own = study.settings.iter().map(|facts| facts.setting.clone());
    let head: Vec<String> = [String::from("value")].into_iter().chain(own).collect();
    let rows: Vec<Vec<String>> = names
        .iter()
        .map(|name| {
            let cells = all.iter().map(|writes| {
                let written = writes.iter().find(|(other, _)| other == name);
                String::from(written.map_or(MISSING, |(_, value)| *value))
            });
            [name.clone()].into_iter().chain(cells).collect()
        })
        .collect();
    html! {
        h2 { "What each setting writes" }
        @if rows.is_empty() {
            p { "No setting writes anything." }
        } @else {
            p {
                "Before each trial every value is noted, and afterwards put back. " (MISSING) " means that the \
                 setting leaves the value as it comes up."
            }
            (table("Values that each setting writes", &head, &rows))
        }
    }
}

/// Every value that any setting changed, with what was there before and what each one put there.
fn before_and_after(study: &Study) -> Markup {
    let of = |it: &Changed<'_>, host: &str| {
        let place = format!("{host}{}: {}", switch::of_interface(it.write), it.name);
        [place, value(&it.write.before)]
    };
    let all: Vec<([String; 2], &str, String)> = study
        .setting_changes
        .iter()
        .flat_map(|one| {
            let changed = switch::changed(&one.writes).into_iter();
            changed.map(|it| (of(&it, &one.host), &*one.setting, value(&it.write.after)))
        })
        .collect();
    let mut names: Vec<&[String; 2]> = Vec::new();
    for (name, ..) in &all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let own: Vec<&str> = study
        .settings
        .iter()
        .map(|it| it.setting.as_str())
        .collect();
    let rows = names.iter().map(|name| {
        let cells = own.iter().map(|setting| {
            let put = all
                .iter()
                .find(|(other, of, _)| other == *name && of == setting);
            put.map_or(String::from(MISSING), |(.., after)| after.clone())
        });
        name.iter().cloned().chain(cells).collect()
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let own = own.into_iter().map(String::from);
    let head = ["value", "before and after the trial"].map(String::from);
    let head: Vec<String> = head.into_iter().chain(own).collect();
    html! {
        @if !rows.is_empty() {
            h2 { "What each setting changed, and put back" }
            p {
                "As it was in the first trial of each setting. " (MISSING) " means that the value stayed, or was so \
                 already."
            }
            (table("Values before, and under each setting", &head, &rows))
        }
    }
}

fn writes(facts: &SettingFacts) -> Vec<(String, &str)> {
    let sides = facts.writes.iter();
    let sides = sides.map(|(side, name, value)| (format!("{side}: {name}"), value.as_str()));
    let machine = facts.machine_writes.iter();
    let machine = machine.map(|(name, value)| (format!("machine: {name}"), value.as_str()));
    let router = facts.router_writes.iter();
    let router = router.map(|(name, value)| (format!("router: {name}"), value.as_str()));
    let variant = facts.variant.iter();
    let variant = variant.map(|(name, value)| (format!("command: {name}"), value.as_str()));
    sides.chain(machine).chain(router).chain(variant).collect()
}

/// What else differed between settings, value by value.
fn confounders(study: &Study) -> Markup {
    let head = ["value", "setting", "it was", "reference", "it was"].map(String::from);
    let stays = |value: &Option<String>| value.clone().unwrap_or(String::from(MISSING));
    let rows: Vec<Vec<String>> = study
        .confounders
        .iter()
        .map(|it| {
            vec![
                it.name.clone(),
                it.setting.clone(),
                stays(&it.value),
                it.reference.clone(),
                stays(&it.reference_value),
            ]
        })
        .collect();
    html! {
        @if !rows.is_empty() {
            h2 { "What else differed" }
            (table("What else differed", &head, &rows))
        }
    }
}

/// The command that made it.
pub fn repeat(argv: &[String], seed: u64, version: &str) -> Markup {
    let is_seeded = argv.iter().any(|word| word.starts_with("--seed"));
    let mut words: Vec<String> = argv.iter().map(|word| quoted(word)).collect();
    if !is_seeded {
        words.extend([String::from("--seed"), seed.to_string()]);
    }
    html! {
        section id="repeat" {
            h2 { "Repeat it" }
            p { "With nicpoll " (version) ". The seed draws the same random order again." }
            pre tabindex="0" { (words.join(" ")) }
            @if argv.iter().any(|word| word.ends_with(".toml")) {
                p { "The study's file is not in here: what it asked for is in the saved JSON." }
            }
        }
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,@%+".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => String::from(word),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_quoted_and_has_the_seed() {
        let argv = ["nicpoll", "study", "run", "my study.toml"].map(String::from);
        let text = repeat(&argv, 7, "0.1.0").into_string();
        assert!(
            text.contains("nicpoll study run 'my study.toml' --seed 7"),
            "{text}"
        );
        assert!(text.contains("file is not in here"), "{text}");
        let seeded = ["nicpoll", "demo", "--seed", "9"].map(String::from);
        let text = repeat(&seeded, 9, "0.1.0").into_string();
        assert!(text.contains("nicpoll demo --seed 9<"), "{text}");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
