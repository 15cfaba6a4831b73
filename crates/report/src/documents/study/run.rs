//! What was run, where and in which order; what each setting wrote; and how to repeat it. The plan of a study has the
//! same parts before it runs.
//!
//! Facts that were not stored are shown as missing, never guessed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use nicpoll_model::numbers::{MISSING, counted, figure, span};
use nicpoll_model::{HostFacts, LabHost, Plan, SettingFacts, Study, StudyPlan, Trial};

use super::notes;
use super::trials::TrialGroup;
use crate::documents::switch;
use crate::fields::{cells, filled, stated, stated_or_missing};
use crate::lists::{distinct, grouped, joined, listed};
use crate::page::{Block, Ink, Part, Rank, Table};

/// Trials shown of the random order, enough to distinguish two orders.
const ORDER_SHOWN: usize = 4;
/// Width of the names at the left.
const NAME: usize = 11;
/// Most letters of joined names of settings at the left.
const TOGETHER_MAX: usize = 24;

/// Writes what was run.
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
    match &study.lab.hosts[..] {
        [] => facts.extend([
            ("kernel", study.host.kernel.clone()),
            ("CPUs", cpus(&study.host)),
        ]),
        hosts => {
            facts.extend(hosts.iter().map(|host| (host.host.as_str(), machine(host))));
            facts.extend(clocks(study).map(|text| ("clocks", text)));
        }
    }
    facts.push(("link", link(study)));
    // A setting without a discipline of its own is described by its changes.
    let described = study.settings.iter();
    let described = described.filter(|it| !it.description.is_empty());
    facts.extend(described.map(|it| (it.setting.as_str(), it.description.clone())));
    facts.extend([
        ("plan", plan(&study.plan)),
        ("order", order(&study.plan, study.seed)),
        ("placement", placement(study)),
    ]);
    facts
}

fn cpus(host: &HostFacts) -> String {
    let model = stated(host, &[" ({cpu_model})"]).concat();
    listed(&host.cpus) + &model
}

/// Describes a host that is a machine of its own.
fn machine(host: &LabHost) -> String {
    let place = host.ssh.as_ref().or(host.machine.machine.as_ref());
    let place = place.map_or(String::new(), |place| format!("{place}: "));
    let interfaces = joined(&host.interfaces, " and ");
    let shared = match host.carries_ssh {
        true => ", which carries the ssh connection, too",
        false => "",
    };
    format!(
        "{place}{interfaces}{shared}; {}; CPUs {}",
        host.machine.kernel,
        cpus(&host.machine)
    )
}

/// Tells how far the ends' clocks were apart: at most, over all trials.
fn clocks(study: &Study) -> Option<String> {
    let trials = study.trials.iter().filter_map(|it| it.figures.as_ref());
    let apart = trials.filter_map(|figures| {
        let (sender, receiver) = (figures.hosts.first()?, figures.hosts.last()?);
        let apart_ns = receiver.clock_ahead_ns - sender.clock_ahead_ns;
        Some((
            apart_ns.unsigned_abs(),
            sender.clock_error_ns + receiver.clock_error_ns,
        ))
    });
    let (apart_ns, error_ns) = apart.max()?;
    let ms = |ns: u64| figure(ns as f64 / 1e6);
    Some(format!(
        "sender's and receiver's at most {} ms apart, known to {} ms; one-way delays are corrected by it",
        ms(apart_ns),
        ms(error_ns)
    ))
}

fn link(study: &Study) -> String {
    filled(
        match study.lab.is_virtual {
            true => {
                "{interface} ({driver}), virtual: it shows the kernel's receive path, not a card's interrupts"
            }
            false => "{interface} ({driver})",
        },
        &study.lab,
    )
}

fn plan(plan: &Plan) -> String {
    let aim = |ns: u64| format!("; polling aims at one round every {} us", ns as f64 / 1e3);
    format!(
        "{} for each workload, every setting once a block; trials of {} s after {} s of warm-up{}",
        counted(plan.blocks, "block"),
        plan.trial_seconds,
        plan.warmup_seconds,
        plan.period_ns.map_or(String::new(), aim)
    )
}

fn order(plan: &Plan, seed: u64) -> String {
    let first = plan.order.iter().take(ORDER_SHOWN);
    let first = listed(first.map(|(workload, setting)| format!("{workload} {setting}")));
    let more = match plan.order.len() > ORDER_SHOWN {
        true => ", ...",
        false => "",
    };
    format!(
        "random within each block, drawn from seed {seed} (the same seed and options draw it again): {first}{more}"
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
    let polls = polled.iter();
    let polls = polls.map(|(cpus, of)| format!("on CPU {} ({})", listed(cpus), listed(of)));
    let polls = match polled.is_empty() {
        true if study.trials.iter().any(Trial::is_unwatched) => String::from("polls not counted"),
        true => String::from("no polls were seen"),
        false => format!("polls ran {}", listed(polls)),
    };
    let ends = "sender on CPU {sender_cpu:raw}, receiver on CPU {receiver_cpu:raw}";
    format!("{}; {polls}", filled(ends, &study.lab))
}

/// Returns the cores on which polls ran in any good trial under a setting.
fn poll_cpus(study: &Study, setting: &str) -> Vec<u32> {
    let workloads = study.plan.workloads.iter();
    let trials = workloads.flat_map(|workload| TrialGroup::of(study, workload, setting).good);
    let cpus = trials.flat_map(|trial| trial.placement.poll_cpus.iter().copied());
    cpus.collect::<BTreeSet<u32>>().into_iter().collect()
}

/// Title of the settings' changes.
const CHANGES: &str = "What each setting changed, and put back";

/// A changed value of a host, for all of its interfaces with the same change.
struct ChangedValue<'a> {
    place: String,
    name: String,
    before: String,
    /// The value under each setting.
    puts: Vec<(&'a str, String)>,
}

/// Returns every value that any setting changed, in the order of the records.
fn changed_values(study: &Study) -> Vec<ChangedValue<'_>> {
    let mut changes = Vec::new();
    for own in &study.setting_changes {
        for it in switch::changed(&own.writes) {
            let interface = it.interface().map(String::from);
            let [before, after] = it.values();
            let value = (&own.host, it.name, before, interface);
            changes.push((value, (&*own.setting, after)));
        }
    }
    let values = grouped(changes).into_iter();
    let alike = values.map(|((host, name, before, interface), puts)| {
        ((host, name, before, distinct(puts)), interface)
    });
    let alike = grouped(alike).into_iter();
    let alike = alike.map(|((host, name, before, puts), interfaces)| ChangedValue {
        place: [host.clone()]
            .into_iter()
            .chain(several(&interfaces))
            .collect::<Vec<_>>()
            .join(" "),
        name,
        before,
        puts,
    });
    alike.collect()
}

/// Names several interfaces: `em0..em3` if their numbers are consecutive.
fn several(interfaces: &[Option<String>]) -> Option<String> {
    let names: Vec<&str> = interfaces.iter().flatten().map(String::as_str).collect();
    let [first, .., last] = names[..] else {
        return names.first().map(|name| String::from(*name));
    };
    let parts = names.iter().map(|name| {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        Some((stem, name[stem.len()..].parse::<u32>().ok()?))
    });
    let parts: Option<Vec<_>> = parts.collect();
    let follows = |two: &[(&str, u32)]| two[0].0 == two[1].0 && two[0].1 + 1 == two[1].1;
    Some(match parts {
        Some(parts) if parts.windows(2).all(follows) => format!("{first}..{last}"),
        _ => listed(names),
    })
}

/// Writes what each setting changed, with the earlier values; shared changes once. Writes nothing if they were not
/// stored.
pub fn write_changes(part: &mut Part, study: &Study) {
    let mut changes = Vec::new();
    for value in changed_values(study) {
        for (after, settings) in grouped(value.puts.iter().map(|(of, after)| (after, *of))) {
            let change = format!("{} {} -> {after}", value.name, value.before);
            let names = sharing(study, &settings).into_iter();
            changes.extend(names.map(|name| (name, (value.place.clone(), change.clone()))));
        }
    }
    let mut changes = grouped(changes);
    if changes.is_empty() {
        return;
    }
    changes.sort_by_key(|((_, settings), _)| Reverse(*settings));
    let widths = changes.iter().map(|((name, _), _)| name.len() + 2);
    let width = widths.max().unwrap_or(0).max(NAME);
    part.heading(CHANGES);
    for ((name, _), changes) in changes {
        let places = grouped(changes).into_iter();
        let places = places.map(|(place, changes)| format!("{place}: {}", listed(changes)));
        part.fact(&name, width, joined(places, "; "));
    }
}

/// Returns joint names of settings with the same value, and their number; each alone if the joint name would be long.
fn sharing(study: &Study, settings: &[&str]) -> Vec<(String, usize)> {
    let all = study.settings.iter().map(|it| it.setting.as_str());
    let (own, others): (Vec<&str>, Vec<&str>) = all.partition(|it| settings.contains(it));
    let together = match (&own[..], &others[..]) {
        ([_, _, ..], []) => String::from("all settings"),
        ([_, _, _, ..], [other]) => format!("all but {other}"),
        _ => listed(&own),
    };
    match own.len() == 1 || together.len() <= TOGETHER_MAX {
        true => vec![(together, own.len())],
        false => own.iter().map(|it| (String::from(*it), 1)).collect(),
    }
}

/// Writes the machine, the link and the settings of a study, for a browser.
pub fn write_machine(part: &mut Part, study: &Study) {
    part.heading("The machine");
    write_host(part, &study.host);
    write_lab(part, study);
    fold_sysctls(part, &study.host);
    part.heading("What each setting writes");
    match written(study) {
        None => part.say("No setting writes anything."),
        Some(table) => {
            part.say(format!(
                "Before each trial every value is noted, and afterwards put back. {MISSING} means that the setting leaves \
                 the value as it comes up."
            ));
            part.table(table);
        }
    }
    write_before_and_after(part, study);
    write_confounders(part, study);
}

/// Writes a host's facts.
pub fn write_host(part: &mut Part, host: &HostFacts) {
    for line in include_str!("host.txt").lines() {
        let (name, template) = line.split_once(": ").unwrap_or((line, ""));
        part.fact(name, 0, stated_or_missing(host, template));
    }
}

fn write_lab(part: &mut Part, study: &Study) {
    let lab = &study.lab;
    let line = match lab.line_bits_per_second {
        Some(bits) => format!("{} Mbit/s", bits as f64 / 1e6),
        None => stated_or_missing(lab, "none: {no_line_because}"),
    };
    let addresses = lab.addresses.iter();
    let addresses = listed(addresses.map(|(side, it)| format!("{it} ({side})")));
    let pinned = "sender to CPU {sender_cpu:raw}, receiver to CPU {receiver_cpu:raw}";
    for (name, text) in [
        ("interface", filled("{interface} ({driver})", lab)),
        ("line", line),
        ("MTU", filled("{mtu_bytes:raw} bytes", lab)),
        (
            "receive ring",
            stated_or_missing(lab, "{ring_slots:raw} slots"),
        ),
        ("addresses", addresses),
        ("pinned", filled(pinned, lab)),
        ("sends", lab.send_mode.clone()),
        ("receives", lab.receive_mode.clone()),
    ] {
        part.fact(name, 0, text);
    }
}

/// Writes the kernel settings of a host that affect receiving.
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

/// Returns a table of every value that any setting writes, by setting.
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

fn writes(facts: &SettingFacts) -> Vec<(String, &str)> {
    let all = facts.all_writes();
    all.map(|(place, name, value)| (format!("{place}: {name}"), value.as_str()))
        .collect()
}

/// Writes every value that any setting changed, with the earlier value and each setting's.
fn write_before_and_after(part: &mut Part, study: &Study) {
    let values = changed_values(study);
    if values.is_empty() {
        return;
    }
    let own = || study.settings.iter().map(|it| it.setting.as_str());
    let rows = values.iter().map(|value| {
        let cells = own().map(|setting| {
            let put = value.puts.iter().find(|(of, _)| *of == setting);
            put.map_or(String::from(MISSING), |(_, after)| after.clone())
        });
        let first = [
            format!("{}: {}", value.place, value.name),
            value.before.clone(),
        ];
        first.into_iter().chain(cells).collect()
    });
    let head = ["value", "before and after the trial"];
    let head = head.into_iter().chain(own());
    part.heading(CHANGES);
    part.say(format!(
        "As it was in the first trial of each setting. {MISSING} means that the value stayed, or was so already."
    ));
    let name = "Values before, and under each setting";
    part.table(Table::of(name, head, rows));
}

/// Writes other differences between settings, value by value.
fn write_confounders(part: &mut Part, study: &Study) {
    if study.confounders.is_empty() {
        return;
    }
    let columns = [
        "{name}",
        "{setting}",
        "{value}",
        "{reference}",
        "{reference_value}",
    ];
    let rows = study.confounders.iter().map(|it| cells(it, &columns));
    let head = ["value", "setting", "it was", "reference", "it was"];
    part.heading("What else differed");
    part.table(Table::of("What else differed", head, rows));
}

/// Writes the command that made a document, for a browser.
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

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,@%+".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => String::from(word),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Writes a study's plan: comparisons, every written value, and duration.
pub fn write_plan(part: &mut Part, study: &StudyPlan) {
    let plan = &study.plan;
    part.title(Rank::Title, &study.question);
    part.fact("time", NAME, plan.time());
    part.fact("plan", NAME, self::plan(plan));
    if let Some(width) = plan.stop_width_ratio {
        let width = 100.0 * width;
        let text = format!(
            "ends as soon as no interval is wider than {width} % of its estimate, after 3 blocks or more"
        );
        part.fact("stop", NAME, text);
    }
    part.fact("order", NAME, order(plan, study.seed));
    part.fact("link", NAME, &study.link);
    notes::write_warnings(part, &study.warnings);
    if !plan.factors.is_empty() {
        part.heading("Factors, and their levels");
        for factor in &plan.factors {
            part.fact(&factor.factor, NAME, listed(&factor.levels));
        }
    }
    part.heading("Settings, and what each writes");
    for setting in &study.settings {
        part.fact(&setting.setting, NAME, described_writes(setting));
    }
    part.heading("Workloads");
    for workload in &study.workloads {
        let of_workload = plan.drop_order.iter();
        let of_workload = of_workload.filter(|it| it.workload == workload.workload);
        let measures = of_workload.flat_map(|it| it.metrics.iter().map(|it| it.measure()));
        let judged = listed(distinct(measures).iter().map(ToString::to_string));
        let judged = match &*judged {
            "" => String::new(),
            measures => format!("; judged by {measures}"),
        };
        let text = format!("{}{judged}", workload.description);
        part.fact(&workload.workload, NAME, text);
    }
    part.heading(format!(
        "{} with a verdict, each at {:.2} % confidence",
        counted(plan.family_comparisons, "comparison"),
        100.0 * plan.confidence_ratio
    ));
    for effect in &plan.main_effects {
        let over = "{level} against {reference}, over";
        let text = format!(
            "{} {} combinations of the other factors, under every workload",
            filled(over, effect),
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
    let writes = setting
        .all_writes()
        .map(|(place, name, value)| match place {
            "machine" => ("of the whole machine", format!("{name} {value}")),
            "command" => ("into the command, where", format!("{{{name}}} is {value}")),
            "router" => ("at the router", format!("{name} {value}")),
            "sender" => ("at the sender", format!("{name} {value}")),
            _ => ("at the receiver", format!("{name} {value}")),
        });
    let places = grouped(writes).into_iter();
    let places = places.map(|(place, values)| format!("{place} {}", listed(values)));
    let written = match joined(places, "; ") {
        none if none.is_empty() => String::from("nothing"),
        written => written,
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
    use crate::page::Page;

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
