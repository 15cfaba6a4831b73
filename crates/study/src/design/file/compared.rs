//! The comparisons of a file: its settings, or its factors' levels crossed, and their pairs.
//!
//! Two settings that are compared as levels of a factor differ in that factor alone.

use std::collections::BTreeMap;

use nicpoll_model::{FactorFacts, FileError, LevelFacts, Measure, Metric};
use nicpoll_switch::did_you_mean;
use toml::Spanned;

use crate::design::file::reader::{
    CROSSED_NAME_MAX, CompareEntry, ENTRIES_MAX, FactorEntry, Measures, Parts, SettingEntry,
    StudyFileReader, names_of,
};
use crate::design::file::setting::Piece;
use crate::design::measures::metrics;
use crate::design::{NamedSetting, NamedWorkload, Versus};

/// Reference for every pair of settings.
const ALL: &str = "*";

/// Comparisons of a file, each under every workload.
const COMPARISONS_MAX: usize = 64;

/// Factors of a file: four with two levels each make sixteen settings.
const FACTORS_MAX: usize = 4;

/// What a file compares.
pub(crate) struct ComparedSettings {
    pub settings: Vec<NamedSetting>,
    pub factors: Vec<FactorFacts>,
    pub contrasts: Vec<Versus>,
}

/// Measures of a comparison, each with its own verdict.
const MEASURES_MAX: usize = 3;

/// A judged level, and its reference level.
type LevelPair = (LevelFacts, String);

/// A factor with its levels' settings.
struct Factor {
    name: Spanned<String>,
    levels: Vec<Piece>,
}

impl StudyFileReader<'_> {
    /// Makes settings of entries or of factors, and pairs them.
    pub(crate) fn compared(
        &self,
        common: Option<Parts>,
        settings: Vec<SettingEntry>,
        factors: Vec<FactorEntry>,
        compare: &[CompareEntry],
    ) -> Result<ComparedSettings, FileError> {
        if compare.len() > COMPARISONS_MAX {
            let message = format!("a study has at most {COMPARISONS_MAX} comparisons");
            return Err(self.error(compare[COMPARISONS_MAX].reference.span(), message));
        }
        let common = common
            .map(|parts| self.parts(parts, &[], 0..0))
            .transpose()?;
        let common = common.unwrap_or_default();
        match (&settings[..], &factors[..]) {
            (_, []) => self.of_settings(&common, settings, compare),
            ([], _) => self.of_factors(&common, factors, compare),
            ([setting, ..], _) => {
                let message = "a study has [[setting]] or [[factor]], not both: a level of a factor holds what a setting does";
                Err(self.error(setting.name.span(), message))
            }
        }
    }

    fn of_settings(
        &self,
        common: &Piece,
        entries: Vec<SettingEntry>,
        compare: &[CompareEntry],
    ) -> Result<ComparedSettings, FileError> {
        let spanned = names_of(&entries);
        self.names("settings", &spanned, 2)?;
        let names: Vec<&str> = spanned.iter().map(|it| it.get_ref().as_str()).collect();
        let mut contrasts: Vec<Versus> = Vec::new();
        for entry in compare {
            let mut meant = self.meant(entry, &names)?;
            let is_known = |versus: &Versus| contrasts.iter().any(|known| known.is_like(versus));
            if meant.iter().any(is_known) || meant.iter().any(|it| it.setting == it.reference) {
                let message = "a comparison is of two settings, and stands once";
                return Err(self.error(entry.reference.span(), message));
            }
            let measures = self.measures(entry)?;
            for versus in &mut meant {
                versus.measures.clone_from(&measures);
            }
            contrasts.extend(meant);
        }
        if contrasts.len() > COMPARISONS_MAX {
            let message = format!(
                "these are {} comparisons, and a study has at most {COMPARISONS_MAX}: name those that you need",
                contrasts.len()
            );
            return Err(self.error(compare[0].reference.span(), message));
        }
        if contrasts.is_empty() {
            let others = names[1..].iter();
            contrasts.extend(others.map(|setting| Versus::of(setting, names[0])));
        }
        let mut unused = spanned
            .iter()
            .filter(|name| !is_used(&contrasts, name.get_ref()));
        if let Some(unused) = unused.next() {
            let message = format!(
                "no comparison has the setting {}: add a [[compare]], or leave it out",
                unused.get_ref()
            );
            return Err(self.error(unused.span(), message));
        }
        let settings = entries.into_iter();
        let settings = settings.map(|entry| self.setting(common, self.piece(entry)?));
        Ok(ComparedSettings {
            settings: settings.collect::<Result<_, _>>()?,
            factors: Vec::new(),
            contrasts,
        })
    }

    /// Returns the pairs of an entry: two settings, every other one with a reference, or all pairs.
    fn meant(&self, entry: &CompareEntry, names: &[&str]) -> Result<Vec<Versus>, FileError> {
        if entry.factor.is_some() || entry.level.is_some() {
            return Err(self.needs(entry, "setting", "[[factor]] of this file: it has none"));
        }
        let reference = entry.reference.get_ref();
        if let Some(setting) = &entry.setting {
            let setting = self.known("setting", setting, names)?;
            let reference = self.known("setting", &entry.reference, names)?;
            return Ok(vec![Versus::of(&setting, &reference)]);
        }
        if reference == ALL {
            // The earlier setting of two is the reference.
            let earlier = |at: usize| names[..at].iter().map(move |it| (at, *it));
            let pairs = (0..names.len()).flat_map(earlier);
            return Ok(pairs.map(|(at, it)| Versus::of(names[at], it)).collect());
        }
        self.known("setting", &entry.reference, names)?;
        let others = names.iter().filter(|name| *name != reference);
        Ok(others.map(|name| Versus::of(name, reference)).collect())
    }

    fn of_factors(
        &self,
        common: &Piece,
        entries: Vec<FactorEntry>,
        compare: &[CompareEntry],
    ) -> Result<ComparedSettings, FileError> {
        let factors = self.factors(entries)?;
        let mut settings = Vec::new();
        for levels in crossed(&factors) {
            let setting = self.crossed(common, &levels)?;
            if setting.name().len() > CROSSED_NAME_MAX {
                let message = format!(
                    "the levels make a setting '{}': the names of a level of each factor have {} letters together, \
                     with a '+' between; shorten this one",
                    setting.name(),
                    CROSSED_NAME_MAX
                );
                let (_, level) = levels[0];
                return Err(self.error(level.name_span.clone(), message));
            }
            settings.push(setting);
        }
        let pairs = self.pairs(&factors, compare)?;
        let contrasts: Vec<Versus> = pairs
            .iter()
            .flat_map(|(pair, measures)| {
                within(&settings, pair).into_iter().map(|versus| Versus {
                    measures: measures.clone(),
                    ..versus
                })
            })
            .collect();
        if contrasts.len() > COMPARISONS_MAX {
            let message = format!(
                "the factors make {} comparisons, and a study has at most {COMPARISONS_MAX}: name those that you \
                 need with [[compare]]",
                contrasts.len()
            );
            return Err(self.error(factors[0].name.span(), message));
        }
        settings.retain(|setting| is_used(&contrasts, setting.name()));
        let facts = factors.iter().map(|factor| FactorFacts {
            factor: factor.name.get_ref().clone(),
            levels: factor.levels.iter().map(|it| it.name.clone()).collect(),
        });
        Ok(ComparedSettings {
            settings,
            factors: facts.collect(),
            contrasts,
        })
    }

    fn factors(&self, entries: Vec<FactorEntry>) -> Result<Vec<Factor>, FileError> {
        if let Some(entry) = entries.get(FACTORS_MAX) {
            let message = format!("a study has at most {FACTORS_MAX} factors");
            return Err(self.error(entry.name.span(), message));
        }
        let names: Vec<_> = entries.iter().map(|entry| &entry.name).collect();
        self.names("factors", &names, 1)?;
        for entry in &entries {
            if entry.levels.len() < 2 {
                let message = format!(
                    "the factor {} has {} level(s), and nothing to compare with fewer than 2",
                    entry.name.get_ref(),
                    entry.levels.len()
                );
                return Err(self.error(entry.name.span(), message));
            }
            self.names("levels", &names_of(&entry.levels), 2)?;
        }
        let settings: usize = entries.iter().map(|entry| entry.levels.len()).product();
        if settings > ENTRIES_MAX {
            let counts = entries.iter().map(|entry| entry.levels.len().to_string());
            let message = format!(
                "{} levels make {settings} settings, and a study has at most {ENTRIES_MAX}: leave levels out, or make \
                 a study of each factor",
                counts.collect::<Vec<_>>().join(" x ")
            );
            return Err(self.error(names[0].span(), message));
        }
        let factor = |entry: FactorEntry| {
            let levels = entry.levels.into_iter().map(|level| self.piece(level));
            Ok(Factor {
                name: entry.name,
                levels: levels.collect::<Result<_, FileError>>()?,
            })
        };
        entries.into_iter().map(factor).collect()
    }

    /// Returns the pairs of levels to compare: by default every level with its factor's first.
    fn pairs(
        &self,
        factors: &[Factor],
        compare: &[CompareEntry],
    ) -> Result<Vec<(LevelPair, Vec<Measure>)>, FileError> {
        if compare.is_empty() {
            let of = |factor: &Factor| {
                let [reference, rest @ ..] = &factor.levels[..] else {
                    return Vec::new();
                };
                let rest = rest.iter().map(|level| {
                    let level_of = LevelFacts {
                        factor: factor.name.get_ref().clone(),
                        level: level.name.clone(),
                    };
                    ((level_of, reference.name.clone()), Vec::new())
                });
                rest.collect()
            };
            return Ok(factors.iter().flat_map(of).collect());
        }
        let names: Vec<&str> = factors
            .iter()
            .map(|it| it.name.get_ref().as_str())
            .collect();
        let mut pairs: Vec<(LevelPair, Vec<Measure>)> = Vec::new();
        for entry in compare {
            let (Some(factor), Some(level)) = (&entry.factor, &entry.level) else {
                let what = "a setting by its name: this file has factors";
                return Err(self.needs(entry, "factor and a level", what));
            };
            let factor = self.known("factor", factor, &names)?;
            let own = factors.iter().find(|own| *own.name.get_ref() == factor);
            let levels = own.map_or(&[][..], |own| &own.levels);
            let levels: Vec<&str> = levels.iter().map(|level| &*level.name).collect();
            let pair = (
                LevelFacts {
                    factor,
                    level: self.known("level", level, &levels)?,
                },
                self.known("level", &entry.reference, &levels)?,
            );
            if pair.0.level == pair.1 || pairs.iter().any(|(known, _)| *known == pair) {
                let message = "a comparison is of two levels, and stands once";
                return Err(self.error(level.span(), message));
            }
            pairs.push((pair, self.measures(entry)?));
        }
        Ok(pairs)
    }

    /// Returns the measures of an entry; empty by default.
    fn measures(&self, entry: &CompareEntry) -> Result<Vec<Measure>, FileError> {
        let Some(asked) = &entry.measure else {
            return Ok(Vec::new());
        };
        let words = match asked.get_ref() {
            Measures::One(word) => std::slice::from_ref(word),
            Measures::Several(words) => words,
        };
        let refused = |message: String| self.error(asked.span(), message);
        let known = Measure::ALL.map(Measure::name);
        let mut measures = Vec::new();
        for word in words {
            let found = Measure::ALL.into_iter().find(|it| it.name() == word);
            let found = found.ok_or_else(|| {
                let (known, meant) = (known.join(", "), did_you_mean(word, known));
                refused(format!(
                    "'{word}' is no measure; measures are {known}{meant}"
                ))
            })?;
            if measures.contains(&found) {
                return Err(refused(format!("the measure '{word}' stands twice")));
            }
            measures.push(found);
        }
        match measures.len() {
            1..=MEASURES_MAX => Ok(measures),
            other => Err(refused(format!(
                "a comparison has 1 to {MEASURES_MAX} measures, each with a verdict of its own; here it has {other}"
            ))),
        }
    }

    /// Refuses a measure that no workload has.
    pub(crate) fn measured(
        &self,
        compare: &[CompareEntry],
        workloads: &[NamedWorkload],
    ) -> Result<(), FileError> {
        let mut there: Vec<Measure> = workloads
            .iter()
            .flat_map(|workload| metrics(workload).into_iter().map(Metric::measure))
            .collect();
        there.sort();
        there.dedup();
        for entry in compare {
            let asked = self.measures(entry)?;
            if let (Some(missing), Some(at)) =
                (asked.iter().find(|it| !there.contains(it)), &entry.measure)
            {
                let there: Vec<&str> = there.iter().map(|it| it.name()).collect();
                let message = format!(
                    "no workload of this study measures a {missing}; theirs are {} ('round trip' takes kind = \"rr\", \
                     'delay' kind = \"udp\")",
                    there.join(", ")
                );
                return Err(self.error(at.span(), message));
            }
        }
        Ok(())
    }

    fn needs(&self, entry: &CompareEntry, wanted: &str, given: &str) -> FileError {
        let message = format!("this [[compare]] needs a {wanted}, and cannot be of a {given}");
        self.error(entry.reference.span(), message)
    }
}

fn is_used(contrasts: &[Versus], name: &str) -> bool {
    let mut contrasts = contrasts.iter();
    contrasts.any(|versus| versus.setting == name || versus.reference == name)
}

/// Returns every combination of the factors' levels; the last factor changes fastest.
fn crossed(factors: &[Factor]) -> Vec<Vec<(&str, &Piece)>> {
    let mut all: Vec<Vec<(&str, &Piece)>> = vec![Vec::new()];
    for factor in factors {
        let mut longer = Vec::new();
        for begun in &all {
            for level in &factor.levels {
                let mut levels = begun.clone();
                levels.push((factor.name.get_ref().as_str(), level));
                longer.push(levels);
            }
        }
        all = longer;
    }
    all
}

/// Returns the pairs of settings for a pair of levels, within each combination of the other factors.
fn within(settings: &[NamedSetting], (level, reference): &LevelPair) -> Vec<Versus> {
    let others = |setting: &NamedSetting| -> BTreeMap<String, String> {
        let others = setting
            .levels
            .iter()
            .filter(|one| one.factor != level.factor);
        others
            .map(|one| (one.factor.clone(), one.level.clone()))
            .collect()
    };
    let has = |setting: &NamedSetting, word: &str| {
        let mut levels = setting.levels.iter();
        levels.any(|one| one.factor == level.factor && one.level == word)
    };
    let judged = settings.iter().filter(|one| has(one, &level.level));
    judged
        .filter_map(|judged| {
            let is_like =
                |one: &&NamedSetting| has(one, reference) && others(one) == others(judged);
            let reference = settings.iter().find(is_like)?;
            Some(Versus::of(judged.name(), reference.name()))
        })
        .collect()
}
