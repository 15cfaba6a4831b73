//! Some nine hundred texts of different styles, each with what a careful reader takes from it: what is booked is
//! right, most of what can be known is booked, and with sentences dropped or paragraphs moved little is booked wrongly.
//!
//! `NAME.truth` names results and screens of `NAME.txt` by their lines: the setting and the ends of each test, and
//! the test and end of each line of CPU states, or `nowhere`.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use nicpoll_import::read_transcripts;
use nicpoll_model::{Imported, ImportedFigure, ImportedTrial, Origin, Side};
use nicpoll_stats::order::Seed;
use rand_core::Rng;

/// A line of a truth file.
enum Item {
    Test {
        line: u32,
        setting: String,
        ends: [String; 2],
    },
    /// The test's line and the end, unless it belongs nowhere.
    Screen {
        line: u32,
        of: Option<(u32, Side)>,
    },
    Reading {
        line: u32,
        host: String,
    },
    Figure {
        line: u32,
        text: String,
    },
}

struct Told {
    name: String,
    lines: Vec<String>,
    truth: Vec<Item>,
}

fn value<'a>(words: &[&'a str], key: &str) -> &'a str {
    let mut values = words
        .iter()
        .filter_map(|it| it.strip_prefix(key)?.strip_prefix('='));
    values.next().unwrap_or_else(|| panic!("{key}: {words:?}"))
}

fn item(text: &str) -> Item {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words[1].parse().unwrap();
    let own = |key| String::from(value(&words, key));
    match words[0] {
        "test" => Item::Test {
            line,
            setting: own("setting"),
            ends: [own("sender"), own("receiver")],
        },
        "reading" => Item::Reading {
            line,
            host: own("host"),
        },
        "figure" => Item::Figure {
            line,
            text: words[2..].join(" "),
        },
        "screen" if words[2] == "nowhere" => Item::Screen { line, of: None },
        "screen" => {
            let side = if value(&words, "end") == "sender" {
                Side::Sender
            } else {
                Side::Receiver
            };
            Item::Screen {
                line,
                of: Some((value(&words, "test").parse().unwrap(), side)),
            }
        }
        other => panic!("{other}"),
    }
}

fn texts() -> Vec<Told> {
    let mut files: Vec<_> = fs::read_dir("tests/told")
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    files.sort();
    let is_truth = |it: &&std::path::PathBuf| it.extension().is_some_and(|it| it == "truth");
    let read = |path: &std::path::PathBuf| {
        let text = fs::read_to_string(path.with_extension("txt")).unwrap();
        let truth = fs::read_to_string(path).unwrap();
        let items = truth.lines().map(|it| it.split('#').next().unwrap().trim());
        Told {
            name: Path::new(path).file_stem().unwrap().display().to_string(),
            lines: text.lines().map(String::from).collect(),
            truth: items.filter(|it| !it.is_empty()).map(item).collect(),
        }
    };
    files.iter().filter(is_truth).map(read).collect()
}

/// What was counted over items: booked and right, booked and wrong, known but not booked.
#[derive(Default)]
struct Score {
    right: usize,
    wrong: Vec<String>,
    missed: Vec<String>,
}

impl Score {
    fn add(&mut self, what: impl Fn() -> String, found: Option<bool>) {
        match found {
            Some(true) => self.right += 1,
            Some(false) => self.wrong.push(what()),
            None => self.missed.push(what()),
        }
    }

    fn right_share(&self) -> f64 {
        self.right as f64 / (self.right + self.wrong.len()) as f64
    }

    fn known_share(&self) -> f64 {
        self.right as f64 / (self.right + self.wrong.len() + self.missed.len()) as f64
    }
}

/// A text whose lines may stand elsewhere: each with its line in the original, and where the original's now are.
struct Variant {
    text: String,
    now: HashMap<u32, u32>,
}

impl Variant {
    fn of(lines: &[(u32, &str)]) -> Self {
        let now = lines
            .iter()
            .zip(1..)
            .map(|((was, _), now)| (*was, now))
            .collect();
        let text = lines.iter().map(|(_, line)| format!("{line}\n")).collect();
        Variant { text, now }
    }
}

fn is_of(trial: &ImportedTrial, line: u32) -> bool {
    trial
        .figures
        .iter()
        .any(|it| it.place.line == line && !it.name.starts_with("cpu_"))
}

/// Judges where a line of CPU states was booked.
fn screen(
    imported: &Imported,
    variant: &Variant,
    line: u32,
    of: Option<&(u32, Side)>,
    score: &mut Score,
    what: impl Fn(&str) -> String,
) {
    let Some(now) = variant.now.get(&line) else {
        return;
    };
    let is_here = |it: &&ImportedFigure| it.place.line == *now && it.name == "cpu_idle_ratio";
    let side = |trial: &ImportedTrial| trial.figures.iter().find(is_here).and_then(|it| it.side);
    let is_booked = |it: &&ImportedTrial| it.figures.iter().any(|it| is_here(&it));
    let booked: Vec<&ImportedTrial> = imported.trials.iter().filter(is_booked).collect();
    let found = match (of, booked.is_empty()) {
        (None, true) => return,
        (Some(_), true) => None,
        (None, false) => Some(false),
        (Some((test, end)), false) => {
            let test = variant.now.get(test);
            let own = booked
                .iter()
                .find(|it| test.is_some_and(|test| is_of(it, *test)));
            Some(own.is_some_and(|it| side(it) == Some(*end)))
        }
    };
    let read: Vec<_> = booked.iter().map(|it| (it.place.line, side(it))).collect();
    score.add(|| what(&format!("{read:?}")), found);
}

fn judge(told: &Told, variant: &Variant, score: &mut Score) {
    let files = [(String::from("page.txt"), variant.text.clone())];
    let imported: Imported = read_transcripts(&files, &[], &Origin::default()).unwrap();
    let trial = |line: u32| {
        let now = variant.now.get(&line)?;
        imported.trials.iter().find(|it| is_of(it, *now))
    };
    for trial in imported.trials.iter().filter(|it| it.tool != "table") {
        let is_it = |it: &Item| match it {
            Item::Test { line, .. } => variant.now.get(line).is_some_and(|now| is_of(trial, *now)),
            _ => false,
        };
        if !told.truth.iter().any(is_it) {
            let what = || format!("{}:{}: no test", told.name, trial.place.line);
            score.add(what, Some(false));
        }
    }
    for item in &told.truth {
        match item {
            Item::Test {
                line,
                setting,
                ends,
            } => {
                let what = |which: &str, is: &str, found: Option<&str>| {
                    let found = found.unwrap_or("not found");
                    format!("{}:{line}: {which} is {is}, read {found}", told.name)
                };
                let found = trial(*line);
                // A setting that is not said is not to be booked.
                let read = found.map(|it| it.setting.split('+').next().unwrap());
                let booked = read
                    .filter(|it| *it != "not-said")
                    .map(|it| it == setting.as_str());
                if setting != "not-said" || booked.is_some() {
                    score.add(|| what("setting", setting, read), booked);
                }
                let read = [
                    found.and_then(|it| it.sender.as_deref()),
                    found.and_then(|it| it.receiver.as_deref()),
                ];
                for (end, read) in ends.iter().zip(read) {
                    // An address names a host, too.
                    let named = read.filter(|it| !it.contains(['.', ':']));
                    if end != "-" || named.is_some() {
                        score.add(|| what("an end", end, read), named.map(|it| it == end));
                    }
                }
            }
            Item::Screen { line, of } => {
                let what = |read: &str| format!("{}:{line}: CPU states: {read}", told.name);
                screen(&imported, variant, *line, of.as_ref(), score, what);
            }
            Item::Reading { line, host } => {
                let now = variant.now.get(line);
                let read = imported
                    .readings
                    .iter()
                    .find(|it| Some(&it.place.line) == now);
                let read = read.and_then(|it| it.host.as_deref());
                let what = || format!("{}:{line}: host is {host}, read {read:?}", told.name);
                if host != "-" || read.is_some() {
                    score.add(what, read.map(|it| it == host));
                }
            }
            Item::Figure { .. } => {}
        }
    }
}

/// How well texts are read, by when they came: the later, the more their authors have words, orders and people of their
/// own. At least so many facts right, this share of what is booked, and this share of what can be known.
const BOUNDS: [(usize, f64, f64); 10] = [
    (2065, 0.99, 0.94),
    (1360, 0.98, 0.84),
    (560, 0.94, 0.61),
    (2110, 0.98, 0.9),
    (1795, 0.98, 0.9),
    (3490, 0.98, 0.92),
    (1780, 0.94, 0.74),
    (2830, 0.98, 0.93),
    (1830, 0.97, 0.88),
    (2675, 0.96, 0.8),
];

/// Which of these bounds a text has.
fn group(told: &Told) -> usize {
    match told.name.as_bytes()[0] {
        _ if told.name.as_str() >= "zzs" => 9,
        _ if told.name.as_str() >= "zx" && told.name.as_bytes()[1].is_ascii_alphabetic() => 8,
        _ if told.name.as_str() >= "zj" && told.name.as_bytes()[1].is_ascii_alphabetic() => 7,
        _ if told.name.as_str() >= "ya" && told.name.as_bytes()[1].is_ascii_alphabetic() => 6,
        _ if told.name.as_str() >= "ra" && told.name.as_bytes()[1].is_ascii_alphabetic() => 5,
        _ if told.name.as_str() >= "nq" && told.name.as_bytes()[1].is_ascii_alphabetic() => 4,
        _ if told.name.as_bytes()[1].is_ascii_alphabetic() => 3,
        b'd' | b'e' | b'f' | b'i' | b'l' | b'm' | b'n' => 2,
        b'j' | b'p' | b'q' | b'v'..=b'z' => 1,
        _ => 0,
    }
}

fn as_written(told: &Told) -> Variant {
    let lines: Vec<(u32, &str)> = (1..).zip(told.lines.iter().map(String::as_str)).collect();
    Variant::of(&lines)
}

#[test]
fn what_is_booked_is_right_and_most_of_what_can_be_known_is_booked() {
    let mut all = Score::default();
    let texts = texts();
    for (at, (right_min, share_min, known_min)) in BOUNDS.into_iter().enumerate() {
        let mut score = Score::default();
        let of = texts.iter().filter(|it| group(it) == at);
        of.for_each(|told| judge(told, &as_written(told), &mut score));
        println!(
            "{} right; wrong: {:#?}; missed: {:#?}",
            score.right, score.wrong, score.missed
        );
        assert!(score.right > right_min, "{}", score.right);
        assert!(score.right_share() >= share_min, "{}", score.right_share());
        assert!(score.known_share() >= known_min, "{}", score.known_share());
        if at < 2 {
            all.right += score.right;
            all.wrong.append(&mut score.wrong);
            all.missed.append(&mut score.missed);
        }
    }
    assert!(all.right > 3420, "{}", all.right);
    assert!(all.right_share() >= 0.99, "{}", all.right_share());
    assert!(all.known_share() >= 0.9, "{}", all.known_share());
}

#[test]
fn every_figure_of_prose_and_tables_is_listed_or_told_again() {
    let mut missing = [const { Vec::new() }; BOUNDS.len()];
    for told in texts() {
        let text = as_written(&told).text;
        let files = [(String::from("page.txt"), text)];
        let imported = read_transcripts(&files, &[], &Origin::default()).unwrap();
        for item in &told.truth {
            let Item::Figure { line, text } = item else {
                continue;
            };
            // Clock rates, sizes, memory, power and cables are facts of hosts, not results.
            if [
                "Hz", "B", "MB", "GB", "byte", "bytes", "Mbit", "Gbit", "W", " m", "°C", " h",
                " days", " km",
            ]
            .iter()
            .any(|it| text.ends_with(it))
            {
                continue;
            }
            let number = text.split(' ').next().unwrap();
            let number = number.trim_start_matches('+').trim_end_matches('%');
            let is_listed = imported
                .unplaced
                .iter()
                .any(|it| it.place.line == *line && it.printed.contains(number));
            let mut again = imported.trials.iter().flat_map(|it| &it.quoted_again);
            let of_trial = imported
                .trials
                .iter()
                .flat_map(|it| &it.figures)
                .any(|it| it.place.line == *line);
            if !is_listed && !of_trial && !again.any(|it| it.line == *line) {
                missing[group(&told)].push(format!("{}:{line}: {text}", told.name));
            }
        }
    }
    let [
        old,
        terse,
        open,
        later,
        last,
        newer,
        newest,
        plain,
        mixed,
        neutral,
    ] = missing;
    assert_eq!([old, terse].concat(), Vec::<String>::new());
    // Figures of sentences that leave their unit out are not read.
    for (left, most) in [
        (open, 4),
        (later, 2),
        (last, 2),
        (newer, 1),
        (newest, 20),
        (plain, 12),
        (mixed, 8),
        (neutral, 47),
    ] {
        assert!(left.len() <= most, "{left:#?}");
    }
}

/// Whether a line is prose that changes no setting: dropping or moving it takes evidence away, but what is true stays
/// true. A sentence that says that polling was turned on says something else in another place.
fn is_prose(line: &str) -> bool {
    let line = line.trim_start_matches(['>', ' ']);
    if line.contains("poll") || line.contains("interrupt") {
        return false;
    }
    let words = line
        .split(' ')
        .filter(|it| it.len() > 1 && it.bytes().all(|it| it.is_ascii_alphabetic()));
    words.count() >= 4 && !line.contains([']', '%', '#']) && !line.starts_with("last pid")
}

#[test]
fn with_sentences_dropped_or_paragraphs_moved_little_is_booked_wrongly() {
    let mut random = Seed(7).generator();
    let mut below = |many: u64| random.next_u64() % many;
    let mut scores = [Score::default(), Score::default()];
    for told in texts().into_iter().filter(|it| group(it) < 2) {
        let score = &mut scores[group(&told)];
        let rounds = [12, 8][group(&told)];
        for round in 0..rounds {
            let numbered: Vec<(u32, &str)> =
                (1..).zip(told.lines.iter().map(String::as_str)).collect();
            let lines: Vec<(u32, &str)> = match round % 2 {
                0 => numbered
                    .into_iter()
                    .filter(|(_, line)| !is_prose(line) || below(4) > 0)
                    .collect(),
                // Two paragraphs of prose change places.
                _ => {
                    let mut parts: Vec<Vec<(u32, &str)>> = Vec::new();
                    for line in numbered {
                        match parts.last_mut() {
                            Some(part) if !line.1.trim().is_empty() => part.push(line),
                            _ => parts.push(vec![line]),
                        }
                    }
                    let prose: Vec<usize> = (0..parts.len())
                        .filter(|at| {
                            parts[*at]
                                .iter()
                                .all(|it| it.1.trim().is_empty() || is_prose(it.1))
                        })
                        .collect();
                    if prose.len() > 1 {
                        let [one, other] =
                            [0; 2].map(|_| prose[below(prose.len() as u64) as usize]);
                        parts.swap(one, other);
                    }
                    parts.concat()
                }
            };
            judge(&told, &Variant::of(&lines), score);
        }
    }
    for (score, right_min) in scores.iter().zip([0.98, 0.96]) {
        println!("{} right, {} wrong", score.right, score.wrong.len());
        let share = score.right_share();
        assert!(share >= right_min, "{share}: {:#?}", score.wrong);
    }
    let wrong: usize = scores.iter().map(|it| it.wrong.len()).sum();
    let right: usize = scores.iter().map(|it| it.right).sum();
    let share = right as f64 / (right + wrong) as f64;
    assert!(share >= 0.97, "{share}");
}
