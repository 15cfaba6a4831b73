//! What was run, where and in which order; what each setting wrote; and how to run it again. The plan of a study that
//! has not run says the same of what would be.
//!
//! What was not stored is said to be missing, and is not guessed.

use std::collections::{BTreeMap, BTreeSet};

use nicpoll_model::numbers::{MISSING, counted, span};
use nicpoll_model::{
    FactorFacts, HostFacts, Plan, SettingChanges, SettingFacts, Side, Study, StudyPlan,
};

use super::trials::Group;
use crate::documents::switch::{self, Changed, value};
use crate::page::{Block, Ink, Level, Medium, Page, Part, Table};

/// Trials named of the random order: enough to tell two orders apart.
const ORDER_SHOWN: usize = 4;
/// Width of the names at the left.
const NAME: usize = 11;

/// What was run.
pub fn write(part: &mut Part, study: &Study) {
    part.heading("What was run");
    for (name, text) in facts(study) {
        part.fact(name, NAME, text);
    }
}

fn facts(study: &Study) -> Vec<(&str, String)> {
    let run = format!(
        "nicpoll {}, started {}, took {}",
        study.nicpoll_version,
        study.started_at,
        span(study.elapsed_seconds)
    );
    let mut facts = vec![
        ("question", study.question.clone()),
        ("command", study.argv.join(" ")),
        ("run", run),
    ];
    facts.extend(study.host.machine.clone().map(|name| ("machine", name)));
    facts.extend([
        ("kernel", study.host.kernel.clone()),
        ("CPUs", cpus(study)),
        ("link", link(study)),
    ]);
    // One that has nothing to say of how the interface polls is described by what it changed.
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
    let kind = match lab.is_virtual {
        true => ", virtual: it shows the kernel's receive path, not a card's interrupts",
        false => "",
    };
    format!("{} ({}){kind}", lab.interface, lab.driver)
}

fn plan(plan: &Plan) -> String {
    let aim = |ns: u64| format!("; polling aims at one round every {} us", ns as f64 / 1e3);
    format!(
        "{} for each workload, every setting once a block; trials of {} s after {} s of warm-up{}",
        counted(plan.blocks, "block"),
        plan.trial_seconds,
        plan.warmup_seconds,
        plan.period_ns.map_or_else(String::new, aim)
    )
}

fn order(plan: &Plan, seed: u64) -> String {
    let first = plan.order.iter().take(ORDER_SHOWN);
    let first = first.map(|(workload, setting)| format!("{workload} {setting}"));
    let first: Vec<String> = first.collect();
    let more = match plan.order.len() > ORDER_SHOWN {
        true => ", ...",
        false => "",
    };
    format!(
        "random within each block, drawn from seed {seed} (the same seed and options draw it again): {}{more}",
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
    let polls = polled
        .iter()
        .map(|(cpus, settings)| format!("on CPU {} ({})", list(cpus), settings.join(", ")));
    let polls: Vec<String> = polls.collect();
    let polls = match polls.is_empty() {
        true => String::from("no polls were seen"),
        false => format!("polls ran {}", polls.join(", ")),
    };
    format!(
        "sender on CPU {}, receiver on CPU {}; {polls}",
        study.lab.sender_cpu, study.lab.receiver_cpu
    )
}

/// The cores on which polls ran in any good trial under a setting.
fn poll_cpus(study: &Study, setting: &str) -> Vec<u32> {
    let workloads = study.plan.workloads.iter();
    let trials = workloads.flat_map(|workload| Group::of(study, workload, setting).good);
    let cpus = trials.flat_map(|trial| trial.placement.poll_cpus.iter().copied());
    cpus.collect::<BTreeSet<u32>>().into_iter().collect()
}

fn list(cpus: &[u32]) -> String {
    let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
    cpus.join(", ")
}

/// What each setting changed at each host, with the values from before. Nothing where that was not stored.
pub fn write_changes(part: &mut Part, study: &Study) {
    if study.setting_changes.is_empty() {
        return;
    }
    part.heading("What each setting changed, and put back");
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
        part.fact(setting, NAME, format!("{host}:{}", changes.join(",")));
    }
}

/// The machine, the link and the settings of a study, for a browser.
pub fn write_machine(part: &mut Part, study: &Study) {
    part.heading("The machine");
    write_host(part, &study.host);
    for (name, text) in lab(study) {
        part.fact(name, 0, text);
    }
    fold_sysctls(part, &study.host);
    part.heading("What each setting writes");
    match written(study) {
        None => part.say("No setting writes anything."),
        Some(table) => {
            part.say(format!(
                    "Before each trial every value is noted, and afterwards put back. {MISSING} means that the setting \
                     leaves the value as it comes up."
                ),
            );
            part.table(table);
        }
    }
    write_before_and_after(part, study);
    write_confounders(part, study);
}

/// What is known of a host.
pub fn write_host(part: &mut Part, host: &HostFacts) {
    let or_missing = |text: &Option<String>| text.clone().unwrap_or(String::from(MISSING));
    let unknown = |list: &[String]| match list.is_empty() {
        true => String::from(MISSING),
        false => list.join(", "),
    };
    for (name, text) in [
        ("kernel", host.kernel.clone()),
        ("CPU", or_missing(&host.cpu_model)),
        ("CPUs in use", list(&host.cpus)),
        ("clock source", or_missing(&host.clocksource)),
        ("governors", unknown(&host.governors)),
        ("boot options that matter", unknown(&host.boot_options)),
    ] {
        part.fact(name, 0, text);
    }
}

fn lab(study: &Study) -> [(&'static str, String); 8] {
    let lab = &study.lab;
    let line = match (lab.line_bits_per_second, &lab.no_line_because) {
        (Some(bits), _) => format!("{} Mbit/s", bits as f64 / 1e6),
        (None, Some(why)) => format!("none: {why}"),
        (None, None) => String::from(MISSING),
    };
    let addresses = lab.addresses.iter();
    let addresses = addresses.map(|(side, it)| format!("{it} ({side})"));
    let ring = lab.ring_slots.map(|slots| format!("{slots} slots"));
    let pinned = format!(
        "sender to CPU {}, receiver to CPU {}",
        lab.sender_cpu, lab.receiver_cpu
    );
    [
        ("interface", format!("{} ({})", lab.interface, lab.driver)),
        ("line", line),
        ("MTU", format!("{} bytes", lab.mtu_bytes)),
        ("receive ring", ring.unwrap_or(String::from(MISSING))),
        ("addresses", addresses.collect::<Vec<_>>().join(", ")),
        ("pinned", pinned),
        ("sends", lab.send_mode.clone()),
        ("receives", lab.receive_mode.clone()),
    ]
}

/// The kernel settings of a host that bear on receiving.
pub fn fold_sysctls(part: &mut Part, host: &HostFacts) {
    let rows = host.sysctls.iter();
    let rows = rows.map(|(name, value)| vec![name.clone(), value.clone()]);
    let table = Table::of("Kernel settings", ["sysctl", "value"], rows);
    if !table.rows.is_empty() {
        let count = table.rows.len();
        let summary = format!("Kernel settings that bear on receiving ({count})");
        let table = vec![Block::Table(table)];
        part.blocks.push(Block::Folded(summary, table));
    }
}

/// Everything that any setting writes, with what each one writes there.
fn written(study: &Study) -> Option<Table> {
    let all: Vec<Vec<(String, &str)>> = study.settings.iter().map(writes).collect();
    let names = distinct(all.iter().flatten().map(|(name, _)| name));
    let rows = names.into_iter().map(|name| {
        let cells = all.iter().map(|writes| {
            let written = writes.iter().find(|(other, _)| other == name);
            String::from(written.map_or(MISSING, |(_, value)| *value))
        });
        [name.clone()].into_iter().chain(cells).collect()
    });
    let own = study.settings.iter().map(|facts| facts.setting.as_str());
    let head = ["value"].into_iter().chain(own);
    let table = Table::of("Values that each setting writes", head, rows);
    (!table.rows.is_empty()).then_some(table)
}

/// Each once, in the order in which they come.
fn distinct<'a, T: PartialEq>(all: impl Iterator<Item = &'a T>) -> Vec<&'a T> {
    let mut once: Vec<&T> = Vec::new();
    for one in all {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}

fn writes(facts: &SettingFacts) -> Vec<(String, &str)> {
    let sides = facts.writes.iter();
    let sides = sides.map(|(side, name, value)| (format!("{side}: {name}"), value.as_str()));
    let others = [
        ("machine", &facts.machine_writes),
        ("router", &facts.router_writes),
    ];
    let others = others.into_iter().flat_map(|(place, writes)| {
        let writes = writes.iter();
        writes.map(move |(name, value)| (format!("{place}: {name}"), value.as_str()))
    });
    let command = facts.variant.iter();
    let command = command.map(|(name, word)| (format!("command: {name}"), word.as_str()));
    sides.chain(others).chain(command).collect()
}

/// Every value that any setting changed, with the value from before and what each one put there.
fn write_before_and_after(part: &mut Part, study: &Study) {
    let of = |it: &Changed<'_>, host: &str| {
        let place = format!("{host}{}: {}", switch::of_interface(it.write), it.name);
        [place, value(&it.write.before)]
    };
    let changes = study.setting_changes.iter().flat_map(|one| {
        let changed = switch::changed(&one.writes).into_iter();
        changed.map(|it| (of(&it, &one.host), &*one.setting, value(&it.write.after)))
    });
    let all: Vec<([String; 2], &str, String)> = changes.collect();
    let names = distinct(all.iter().map(|(name, ..)| name));
    if names.is_empty() {
        return;
    }
    let own = || study.settings.iter().map(|it| it.setting.as_str());
    let rows = names.iter().map(|name| {
        let cells = own().map(|setting| {
            let mut all = all.iter();
            let put = all.find(|(other, of, _)| other == *name && *of == setting);
            put.map_or(String::from(MISSING), |(.., after)| after.clone())
        });
        name.iter().cloned().chain(cells).collect()
    });
    let head = ["value", "before and after the trial"];
    let head = head.into_iter().chain(own());
    part.heading("What each setting changed, and put back");
    part.say(format!(
            "As it was in the first trial of each setting. {MISSING} means that the value stayed, or was so already."
        ),
    );
    let name = "Values before, and under each setting";
    part.table(Table::of(name, head, rows));
}

/// What else differed between settings, value by value.
fn write_confounders(part: &mut Part, study: &Study) {
    if study.confounders.is_empty() {
        return;
    }
    let stays = |value: &Option<String>| value.clone().unwrap_or(String::from(MISSING));
    let rows = study.confounders.iter().map(|it| {
        let (name, setting, reference) = (&it.name, &it.setting, &it.reference);
        let values = [stays(&it.value), stays(&it.reference_value)];
        let [value, reference_value] = values;
        let names = [name, setting, reference].map(String::clone);
        let [name, setting, reference] = names;
        vec![name, setting, value, reference, reference_value]
    });
    let head = ["value", "setting", "it was", "reference", "it was"];
    part.heading("What else differed");
    part.table(Table::of("What else differed", head, rows));
}

/// The command that made a document, for a browser.
pub fn write_repeat(part: &mut Part, argv: &[String], seed: u64, version: &str) {
    let is_seeded = argv.iter().any(|word| word.starts_with("--seed"));
    let mut words: Vec<String> = argv.iter().map(|word| quoted(word)).collect();
    if !is_seeded {
        words.extend([String::from("--seed"), seed.to_string()]);
    }
    part.heading("Repeat it");
    let with = format!("With nicpoll {version}. The seed draws the same random order again.");
    part.say(with);
    part.blocks.push(Block::Code(words.join(" ")));
    if argv.iter().any(|word| word.ends_with(".toml")) {
        part.say("The study's file is not in here: what it asked for is in the saved JSON.");
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

/// What a study would do: what is compared, every value that is written, and how long it takes.
pub fn planned(study: &StudyPlan) -> Page {
    let mut page = Page::new(&study.question);
    page.part(Part::new(Medium::All), |part| {
        let plan = &study.plan;
        part.title(Level::Title, &study.question);
        let limit = format!("ends within {}", span(plan.limit_seconds));
        part.fact("time", NAME, limit);
        part.fact("plan", NAME, self::plan(plan));
        if let Some(width) = plan.stop_width_ratio {
            let width = 100.0 * width;
            let text = format!(
                "ends as soon as no interval is wider than {width} % of its estimate, after 3 blocks or more"
            );
            part.fact("stop", NAME, text);
        }
        part.fact("order", NAME, order(plan, study.seed));
        if !plan.factors.is_empty() {
            part.heading("Factors, and their levels");
            for FactorFacts { factor, levels } in &plan.factors {
                part.fact(factor, NAME, levels.join(", "));
            }
        }
        part.heading("Settings, and what each writes");
        for setting in &study.settings {
            part.fact(&setting.setting, NAME, described_writes(setting));
        }
        part.heading("Workloads");
        for workload in &study.workloads {
            part.fact(&workload.workload, NAME, &workload.description);
        }
        write_comparisons(part, plan);
    });
    page
}

fn write_comparisons(part: &mut Part, plan: &Plan) {
    part.heading(format!(
        "{} with a verdict, each at {:.2} % confidence",
        counted(plan.family, "comparison"),
        100.0 * plan.confidence
    ));
    for effect in &plan.main_effects {
        let text = format!(
            "{} against {}, over {} combinations of the other factors, under every workload",
            effect.level,
            effect.reference,
            effect.settings.len()
        );
        part.fact(&effect.factor, NAME, text);
    }
    for (setting, reference) in &plan.contrasts {
        let text = format!("against {reference}, under every workload");
        part.fact(setting, NAME, text);
    }
    part.blank();
    part.paragraph(
        Ink::Faint,
        "This is the plan: nothing was built, and nothing was changed. To run it, leave out --dry-run.",
    );
}

fn described_writes(setting: &SettingFacts) -> String {
    let mut places: Vec<String> = Vec::new();
    let mut add = |place: String, values: Vec<String>| {
        if !values.is_empty() {
            places.push(format!("{place} {}", values.join(", ")));
        }
    };
    for side in [Side::Sender, Side::Receiver] {
        let of_side = setting.writes.iter().filter(|write| write.0 == side);
        let values = of_side.map(|(_, name, value)| format!("{name} {value}"));
        add(format!("at the {side}"), values.collect());
    }
    let pairs = |writes: &[(String, String)]| -> Vec<String> {
        let writes = writes.iter();
        writes
            .map(|(name, value)| format!("{name} {value}"))
            .collect()
    };
    add(String::from("at the router"), pairs(&setting.router_writes));
    let machine = pairs(&setting.machine_writes);
    add(String::from("of the whole machine"), machine);
    let words = setting.variant.iter();
    let words = words.map(|(name, word)| format!("{{{name}}} is {word}"));
    let command = String::from("into the command, where");
    add(command, words.collect());
    let written = match places.is_empty() {
        true => String::from("nothing"),
        false => places.join("; "),
    };
    match &*setting.description {
        "" => written,
        description => format!("{description}. Writes {written}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::render_html;

    #[test]
    fn the_command_is_quoted_and_has_the_seed() {
        let repeated = |argv: &[&str], seed| {
            let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
            let page = Page::of("", |part| write_repeat(part, &argv, seed, "0.1.0"));
            render_html(&page)
        };
        let text = repeated(&["nicpoll", "study", "run", "my study.toml"], 7);
        assert!(
            text.contains("nicpoll study run 'my study.toml' --seed 7"),
            "{text}"
        );
        assert!(text.contains("file is not in here"), "{text}");
        let text = repeated(&["nicpoll", "demo", "--seed", "9"], 9);
        assert!(text.contains("nicpoll demo --seed 9<"), "{text}");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
