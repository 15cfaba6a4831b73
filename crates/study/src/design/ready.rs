//! The studies that come with the program, and how a study is found: by its file, or by the name of a ready one.
//!
//! A file of the user's takes precedence over a ready study of the same name.

use std::path::{Path, PathBuf};
use std::{fs, io};

use nicpoll_model::{FileError, ReadyStudy};
use thiserror::Error;

use crate::design::file::StudyFile;

/// Names and texts of the ready studies: what `studies/` holds.
pub const READY: [(&str, &str); 11] = [
    ("demo", include_str!("../../../../studies/demo.toml")),
    (
        "disciplines",
        include_str!("../../../../studies/disciplines.toml"),
    ),
    (
        "market-data-2011",
        include_str!("../../../../studies/market-data-2011.toml"),
    ),
    (
        "netblast-sizes",
        include_str!("../../../../studies/netblast-sizes.toml"),
    ),
    ("period", include_str!("../../../../studies/period.toml")),
    (
        "responsiveness",
        include_str!("../../../../studies/responsiveness.toml"),
    ),
    (
        "router-2011",
        include_str!("../../../../studies/router-2011.toml"),
    ),
    (
        "servers-2006",
        include_str!("../../../../studies/servers-2006.toml"),
    ),
    (
        "sysctl-2012",
        include_str!("../../../../studies/sysctl-2012.toml"),
    ),
    (
        "thin-clients-2011",
        include_str!("../../../../studies/thin-clients-2011.toml"),
    ),
    (
        "wan-2009",
        include_str!("../../../../studies/wan-2009.toml"),
    ),
];

/// Why a study cannot be had.
#[derive(Debug, Error)]
pub enum StudyFileError {
    /// There is no such file, or it cannot be read.
    #[error("cannot read {}: {source}; ready studies are {}", .path.display(), ready_names())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file has a mistake.
    #[error("{}, {source}", .path.display())]
    Mistake {
        /// The file.
        path: PathBuf,
        /// Where, and what would be right.
        source: FileError,
    },
    /// The machine does not say what it has.
    #[error("asking what this machine has")]
    Machine(#[source] io::Error),
}

impl StudyFile {
    /// Reads a file, or takes the ready study of that name, to be run on this machine.
    ///
    /// # Errors
    /// When there is neither, the file has a mistake, or this machine lacks what it asks for.
    pub fn find(path: &Path) -> Result<Self, StudyFileError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(source) => match ready(path) {
                Some(text) if source.kind() == io::ErrorKind::NotFound => String::from(text),
                _ => {
                    let path = path.to_owned();
                    return Err(StudyFileError::Read { path, source });
                }
            },
        };
        let mistake = |source| StudyFileError::Mistake {
            path: path.to_owned(),
            source,
        };
        let file = StudyFile::parse(&text).map_err(mistake)?;
        let here = file.look().map_err(StudyFileError::Machine)?;
        file.check(&text, &here).map_err(mistake)?;
        Ok(file)
    }
}

/// The ready studies with the question that each answers.
///
/// # Errors
/// When a file that was compiled in has a mistake.
pub fn ready_studies() -> Result<Vec<ReadyStudy>, StudyFileError> {
    let ready = READY.iter().map(|(name, text)| {
        let study = StudyFile::parse(text).map_err(|source| StudyFileError::Mistake {
            path: PathBuf::from(name),
            source,
        })?;
        Ok(ReadyStudy {
            name: String::from(*name),
            question: study.design.question,
        })
    });
    ready.collect()
}

fn ready(name: &Path) -> Option<&'static str> {
    let named = |(known, _): &&(&str, &str)| name.as_os_str() == *known;
    READY.iter().find(named).map(|(_, text)| *text)
}

fn ready_names() -> String {
    READY.map(|(name, _)| name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::plan_of;
    use nicpoll_stats::order::Seed;

    #[test]
    fn every_ready_study_can_be_planned_and_is_in_the_table() {
        for (name, _) in READY {
            let study = StudyFile::find(Path::new(name)).unwrap();
            let plan = plan_of(&study.design, &study.lengths, Seed(1)).unwrap();
            assert!(
                plan.limit_seconds <= 300.0,
                "{name} takes {}",
                plan.limit_seconds
            );
            assert!(study.design.question.ends_with('?'), "{name}");
        }
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
        let mut files: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        assert_eq!(files, READY.map(|(name, _)| format!("{name}.toml")));
    }

    #[test]
    fn a_study_that_is_not_there_is_told_with_those_that_are() {
        let error = StudyFile::find(Path::new("no-such-study")).unwrap_err();
        let told = error.to_string();
        assert!(told.contains("cannot read no-such-study: "), "{told}");
        assert!(told.contains("ready studies are demo, "), "{told}");
    }

    #[test]
    fn a_file_of_ones_own_goes_before_a_ready_study() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("demo");
        fs::write(&own, "question = 1\n").unwrap();
        let error = StudyFile::find(&own).unwrap_err().to_string();
        assert!(error.contains("line 1"), "{error}");
    }
}
