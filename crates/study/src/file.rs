//! Study files: a question, settings, workloads and comparisons in TOML.
//!
//! What must hold: a file is refused before anything is built, with the line and what would be right there; what a
//! file says and what a design in memory holds are the same.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use nicpoll_model::time::{TimeError, parse_time};
use nicpoll_model::{FileError, STUDY_PLAN_SCHEMA, Side, StudyPlan};
use nicpoll_stats::order::Seed;
use nicpoll_switch::knob::table::{DEFER_HARD_IRQS, GRO, GRO_FLUSH_TIMEOUT};
use nicpoll_switch::{Request, Setting, Values, similar};
use serde::Deserialize;
use toml::Spanned;

use crate::INTERFACE;
use crate::design::{Design, Evidence, NamedSetting, NamedWorkload, Versus, drop_order};
use crate::plan::{Lengths, PlanError, plan_of};
use crate::workload::WorkloadRequest;

/// Settings or workloads of a file.
const ENTRIES_MAX: usize = 16;
/// Comparisons of a file, each under every workload.
const COMPARISONS_MAX: usize = 64;
/// Characters of a name: it heads columns.
const NAME_MAX: usize = 24;
/// Bytes of a file.
const BYTES_MAX: usize = 1 << 20;

/// A study as its file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudyFile {
    /// What it compares, and to answer what.
    pub design: Design,
    /// How long, and how often.
    pub lengths: Lengths,
    /// Seed of the order, where the file fixes it.
    pub seed: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    question: String,
    blocks: Option<u32>,
    trial: Option<Spanned<String>>,
    warmup: Option<Spanned<String>>,
    time: Option<Spanned<String>>,
    seed: Option<u64>,
    #[serde(default)]
    give_up_first: Vec<Spanned<String>>,
    setting: Vec<SettingEntry>,
    workload: Vec<WorkloadEntry>,
    #[serde(default)]
    compare: Vec<CompareEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingEntry {
    name: Spanned<String>,
    noun: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    sender: Values,
    receiver: Option<Spanned<Values>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkloadEntry {
    name: Spanned<String>,
    description: Option<String>,
    traffic: Spanned<WorkloadRequest>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CompareEntry {
    setting: Spanned<String>,
    reference: Spanned<String>,
}

impl StudyFile {
    /// Reads a file's text.
    ///
    /// # Errors
    /// [`FileError`] with the line: an unknown key, knob or name, a value out of range, a number without its unit, no
    /// two settings to compare.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        if text.len() > BYTES_MAX {
            let message = format!("a study file has at most {BYTES_MAX} bytes");
            return Err(FileError { line: 1, message });
        }
        let document: Document = toml::from_str(text).map_err(|error| {
            FileError::at(
                text,
                error.span().unwrap_or_default(),
                error.message().to_owned(),
            )
        })?;
        Reader { text }.study(document)
    }
}

impl StudyFile {
    /// What the study would do.
    ///
    /// # Errors
    /// As [`plan_of`].
    pub fn plan(&self, seed: Seed) -> Result<StudyPlan, PlanError> {
        let design = &self.design;
        Ok(StudyPlan {
            schema: String::from(STUDY_PLAN_SCHEMA),
            question: design.question.clone(),
            seed: seed.0,
            plan: plan_of(design, &self.lengths, seed)?,
            workloads: design.workloads.iter().map(NamedWorkload::facts).collect(),
            settings: design.settings.iter().map(NamedSetting::facts).collect(),
        })
    }
}

/// The text that a document was read from, to tell where things stand in it.
struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    fn study(&self, document: Document) -> Result<StudyFile, FileError> {
        let settings: Vec<_> = document.setting.iter().map(|entry| &entry.name).collect();
        self.names("settings", &settings, 2)?;
        let workloads: Vec<_> = document.workload.iter().map(|entry| &entry.name).collect();
        self.names("workloads", &workloads, 1)?;
        let contrasts = self.contrasts(&document.compare, &settings)?;
        for name in &document.give_up_first {
            self.known("workload", name, &workloads)?;
        }
        let mut lengths = Lengths::default();
        if let Some(blocks) = document.blocks {
            lengths.blocks = blocks;
        }
        if let Some(trial) = self.time(document.trial.as_ref())? {
            lengths.trial = trial;
        }
        lengths.warmup = self.time(document.warmup.as_ref())?;
        lengths.limit = self.time(document.time.as_ref())?;
        let first = document
            .give_up_first
            .iter()
            .map(|name| name.get_ref().as_str());
        let rest = workloads.iter().rev().map(|name| name.get_ref().as_str());
        let drop_order = drop_order(&contrasts, first.chain(rest));
        let settings = document.setting.into_iter();
        let workloads = document.workload.into_iter();
        Ok(StudyFile {
            design: Design {
                question: document.question,
                workloads: workloads
                    .map(|entry| self.workload(entry))
                    .collect::<Result<_, _>>()?,
                settings: settings
                    .map(|entry| self.setting(entry))
                    .collect::<Result<_, _>>()?,
                contrasts,
                drop_order,
            },
            lengths,
            seed: document.seed,
        })
    }

    fn error(&self, span: Range<usize>, message: String) -> FileError {
        FileError::at(self.text, span, message)
    }

    /// Refuses names that are too few, too many, not names, or not unique.
    fn names(&self, what: &str, names: &[&Spanned<String>], min: usize) -> Result<(), FileError> {
        if !(min..=ENTRIES_MAX).contains(&names.len()) {
            let message = format!(
                "{} {what} are out of range; a study has {min} to {ENTRIES_MAX}",
                names.len()
            );
            return Err(self.error(0..0, message));
        }
        for (index, name) in names.iter().enumerate() {
            let word = name.get_ref();
            let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
            if word.is_empty() || word.len() > NAME_MAX || !word.chars().all(is_of_name) {
                let message = format!(
                    "a name has 1 to {NAME_MAX} letters, digits, '-', '_', '.' and '+', such as udp64"
                );
                return Err(self.error(name.span(), message));
            }
            if names[..index].iter().any(|other| other.get_ref() == word) {
                let message = format!("two {what} have the name {word}; give one of them another");
                return Err(self.error(name.span(), message));
            }
        }
        Ok(())
    }

    fn known(
        &self,
        what: &str,
        name: &Spanned<String>,
        known: &[&Spanned<String>],
    ) -> Result<String, FileError> {
        let word = name.get_ref();
        let known: Vec<&str> = known.iter().map(|name| name.get_ref().as_str()).collect();
        if known.contains(&word.as_str()) {
            return Ok(word.clone());
        }
        let meant = similar(word, known.iter().copied());
        let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
        let message = format!(
            "there is no {what} {word}{meant} The file has {}",
            known.join(", ")
        );
        Err(self.error(name.span(), message))
    }

    /// What is held against what: every setting against the first one, unless the file says otherwise.
    fn contrasts(
        &self,
        compare: &[CompareEntry],
        settings: &[&Spanned<String>],
    ) -> Result<Vec<Versus>, FileError> {
        if compare.len() > COMPARISONS_MAX {
            let message = format!("a study has at most {COMPARISONS_MAX} comparisons");
            return Err(self.error(compare[COMPARISONS_MAX].setting.span(), message));
        }
        let mut contrasts: Vec<Versus> = Vec::new();
        for entry in compare {
            let versus = Versus {
                setting: self.known("setting", &entry.setting, settings)?,
                reference: self.known("setting", &entry.reference, settings)?,
            };
            if versus.setting == versus.reference || contrasts.contains(&versus) {
                let message = String::from("a comparison is of two settings, and stands once");
                return Err(self.error(entry.setting.span(), message));
            }
            contrasts.push(versus);
        }
        if contrasts.is_empty() {
            let name = |name: &Spanned<String>| name.get_ref().clone();
            contrasts.extend(settings[1..].iter().map(|setting| Versus {
                setting: name(setting),
                reference: name(settings[0]),
            }));
        }
        let unused = settings.iter().find(|name| {
            let is_in =
                |versus: &Versus| [&versus.setting, &versus.reference].contains(&name.get_ref());
            !contrasts.iter().any(is_in)
        });
        unused.map_or(Ok(contrasts), |name| {
            let message = format!(
                "no comparison has the setting {}: add a [[compare]], or leave it out",
                name.get_ref()
            );
            Err(self.error(name.span(), message))
        })
    }

    fn time(&self, text: Option<&Spanned<String>>) -> Result<Option<Duration>, FileError> {
        let Some(text) = text else {
            return Ok(None);
        };
        let refused = |error: TimeError| self.error(text.span(), error.to_string());
        parse_time(text.get_ref()).map(Some).map_err(refused)
    }

    fn setting(&self, entry: SettingEntry) -> Result<NamedSetting, FileError> {
        let name = entry.name.into_inner();
        let (span, receiver) = entry.receiver.map_or_else(Default::default, |values| {
            (values.span(), values.into_inner())
        });
        let evidence = evidence_of(&receiver);
        if evidence != Evidence::NoNapi && receiver.number(&GRO) != Some(1) {
            let message = String::from(
                "a veth has no NAPI while GRO is off; add gro = \"on\" to the receiver, and to that of the setting \
                 that it is compared with",
            );
            return Err(self.error(span, message));
        }
        let hosts = [(Side::Sender, entry.sender), (Side::Receiver, receiver)];
        let hosts = hosts.into_iter().filter(|(_, set)| !set.is_empty());
        Ok(NamedSetting {
            noun: entry.noun.unwrap_or_else(|| name.clone()),
            setting: Setting {
                name,
                description: entry.description,
                hosts: hosts
                    .map(|(side, set)| (side.to_string(), Request::of(INTERFACE, set)))
                    .collect::<BTreeMap<_, _>>(),
            },
            evidence,
        })
    }

    fn workload(&self, entry: WorkloadEntry) -> Result<NamedWorkload, FileError> {
        let span = entry.traffic.span();
        let request = entry.traffic.into_inner();
        request
            .check()
            .map_err(|error| self.error(span, error.to_string()))?;
        Ok(NamedWorkload {
            name: entry.name.into_inner(),
            description: entry.description.unwrap_or_else(|| request.describe()),
            request,
        })
    }
}

/// What must be seen of a veth's polls for these values to be in force.
fn evidence_of(receiver: &Values) -> Evidence {
    let above_zero = |row| receiver.number(row).filter(|number| *number > 0);
    match (above_zero(&DEFER_HARD_IRQS), above_zero(&GRO_FLUSH_TIMEOUT)) {
        (Some(_), Some(period_ns)) => Evidence::Rounds { period_ns },
        _ if receiver.is_empty() || receiver.number(&GRO) == Some(0) => Evidence::NoNapi,
        _ => Evidence::Polls,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"
question = "Does a longer period pay?"
[[setting]]
name = "short"
receiver = { gro = "on", napi_defer_hard_irqs = 100, gro_flush_timeout = "50us" }
[[setting]]
name = "long"
receiver = { gro = "on", napi_defer_hard_irqs = 100, gro_flush_timeout = "1ms" }
[[workload]]
name = "udp"
traffic = { kind = "udp", payload_bytes = 200, packets_per_second = 20000 }
"#;

    fn refused(find: &str, replace: &str) -> FileError {
        assert!(TWO.contains(find), "{find}");
        StudyFile::parse(&TWO.replacen(find, replace, 1)).unwrap_err()
    }

    #[test]
    fn a_file_is_a_design_and_its_lengths() {
        let file = StudyFile::parse(TWO).unwrap();
        let [short, long] = &file.design.settings[..] else {
            panic!("{:?}", file.design.settings);
        };
        assert_eq!(short.evidence, Evidence::Rounds { period_ns: 50_000 });
        assert_eq!(long.period_ns(), Some(1_000_000));
        assert_eq!(short.noun, "short");
        assert!(!short.setting.hosts.contains_key("sender"));
        // Every setting against the first one.
        let [versus] = &file.design.contrasts[..] else {
            panic!("{:?}", file.design.contrasts);
        };
        assert_eq!((&*versus.setting, &*versus.reference), ("long", "short"));
        assert_eq!(file.lengths, Lengths::default());
        let plan = plan_of(&file.design, &file.lengths, Seed(1)).unwrap();
        assert_eq!(plan.period_ns, Some(1_000_000));
        assert_eq!(plan.order.len(), 16 * 2);
        assert!(plan.limit_seconds > 10.0);
    }

    #[test]
    fn lengths_and_comparisons_may_be_given() {
        let text = format!(
            "blocks = 20\ntrial = \"500ms\"\ntime = \"60s\"\nseed = 7\n{TWO}\n\
             [[compare]]\nsetting = \"short\"\nreference = \"long\"\n"
        );
        let file = StudyFile::parse(&text).unwrap();
        assert_eq!(file.lengths.blocks, 20);
        assert_eq!(file.lengths.trial, Duration::from_millis(500));
        assert_eq!(file.lengths.limit, Some(Duration::from_secs(60)));
        assert_eq!(file.seed, Some(7));
        assert_eq!(file.design.contrasts[0].setting, "short");
    }

    #[test]
    fn what_gives_way_first_is_what_the_file_says() {
        let text = TWO.replace(
            "[[workload]]",
            "[[workload]]\nname = \"tcp\"\ntraffic = { kind = \"tcp\" }\n[[workload]]",
        );
        let workloads = |text: &str| -> Vec<String> {
            let design = StudyFile::parse(text).unwrap().design;
            let dropped = design.drop_order.into_iter();
            dropped.map(|comparison| comparison.workload).collect()
        };
        // The first of the file is the last to go.
        assert_eq!(workloads(&text), ["udp", "tcp"]);
        let given = format!("give_up_first = [\"tcp\"]\n{text}");
        assert_eq!(workloads(&given), ["tcp", "udp"]);
    }

    #[test]
    fn a_mistake_is_named_with_its_line_and_what_would_be_right() {
        let cases = [
            ("question", "qestion", 2, "expected one of"),
            (
                "gro = \"on\", napi",
                "groo = \"on\", napi",
                5,
                "there is no knob 'groo'",
            ),
            ("\"50us\"", "50", 5, "unit"),
            ("gro = \"on\", napi", "napi", 5, "add gro = \"on\""),
            ("name = \"long\"", "name = \"short\"", 7, "another"),
            ("name = \"long\"", "name = \"a b\"", 7, "a name has"),
            ("kind = \"udp\"", "kind = \"sctp\"", 11, "expected one of"),
            (
                "payload_bytes = 200",
                "payload_bytes = 2",
                11,
                "20 to 65507",
            ),
            ("payload_bytes = 200", "payload = 200", 11, "unknown field"),
            ("question =", "trial = \"1\"\nquestion =", 2, "unit"),
            ("question = \"", "question = ", 2, ""),
        ];
        for (find, replace, line, wanted) in cases {
            let error = refused(find, replace);
            assert_eq!(error.line, line, "{replace}: {error}");
            assert!(error.message.contains(wanted), "{replace}: {error}");
        }
        let compare = format!("{TWO}[[compare]]\nsetting = \"lomg\"\nreference = \"short\"\n");
        let error = StudyFile::parse(&compare).unwrap_err();
        assert_eq!(error.line, 13);
        assert!(error.message.contains("did you mean long?"), "{error}");
        let one = TWO.split("[[setting]]\nname = \"long\"").next().unwrap();
        let one = format!("{one}[[workload]]\nname = \"tcp\"\ntraffic = {{ kind = \"tcp\" }}\n");
        let error = StudyFile::parse(&one).unwrap_err();
        assert!(error.message.contains("2 to 16"), "{error}");
    }

    #[test]
    fn whatever_is_cut_off_or_wrong_is_read_or_refused_with_a_line_of_the_text() {
        let lines = TWO.lines().count();
        for at in (0..TWO.len()).step_by(3) {
            let flipped: String = TWO
                .char_indices()
                .map(|(place, c)| if place == at { '=' } else { c })
                .collect();
            for text in [&TWO[..at], &TWO[at..], &flipped] {
                if let Err(error) = StudyFile::parse(text) {
                    assert!((1..=lines + 1).contains(&error.line), "{error}: {text}");
                }
            }
        }
    }
}
