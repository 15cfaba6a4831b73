//! The studies that come with the program, and how a study is found: by its file, or by the name of a ready one.
//!
//! A file of the user's takes precedence over a ready study of the same name.

use std::io;
use std::path::Path;

use nicpoll_lab::{Hosts, Refused};
use nicpoll_model::{FileError, ReadyStudy};
use nicpoll_switch::did_you_mean;
use nicpoll_sys::stdio::read_text;
use serde::Deserialize;

use crate::design::file::mistakes::file_error;
use crate::design::file::{BYTES_MAX, StudyFile};

/// A ready study's name and text.
macro_rules! ready {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../../../studies/", $name, ".toml")))),+]
    };
}

/// Names and texts of the ready studies, the files of `studies/`.
pub const READY: [(&str, &str); 11] = ready![
    "demo",
    "disciplines",
    "market-data-2011",
    "netblast-sizes",
    "period",
    "responsiveness",
    "router-2011",
    "servers-2006",
    "sysctl-2012",
    "thin-clients-2011",
    "wan-2009",
];

impl StudyFile {
    /// The text of a file, or of the ready study of that name.
    ///
    /// # Errors
    /// When there is neither.
    pub fn text_of(path: &Path) -> Result<String, Refused> {
        let shown = path.display();
        match read_text(path, BYTES_MAX as u64) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                ready(path).map(String::from).ok_or_else(|| {
                    let known = READY.map(|(name, _)| name);
                    let meant = did_you_mean(&path.to_string_lossy(), known);
                    let known = known.join(", ");
                    Refused(format!(
                        "there is no file and no ready study '{shown}'; ready studies are {known}{meant}"
                    ))
                })
            }
            read => read.map_err(|error| Refused(format!("cannot read {shown}: {error}"))),
        }
    }

    /// Parses such a text, with its hosts on other machines if they are named.
    ///
    /// # Errors
    /// When the file has a mistake.
    pub fn of_text(path: &Path, text: &str, hosts: Option<Hosts>) -> Result<Self, Refused> {
        StudyFile::parse_on(text, hosts).map_err(|error| mistake(path, error))
    }

    /// Refuses what this machine cannot do. `text` is what the file was read from.
    ///
    /// # Errors
    /// When this machine lacks what the file asks for.
    pub fn check_here(&self, path: &Path, text: &str) -> Result<(), Refused> {
        // What the hosts lack shows there.
        if self.design.topology.hosts.is_some() {
            return Ok(());
        }
        let here = self.look();
        let here =
            here.map_err(|error| Refused(format!("asking what this machine has: {error}")))?;
        self.check(text, &here)
            .map_err(|error| mistake(path, error))
    }
}

/// Reads the machines of a study's hosts from a file of their own: the tables `[hosts.sender]`, `[hosts.receiver]` and
/// perhaps `[hosts.router]`.
///
/// # Errors
/// When the file has a mistake.
pub fn hosts_of(path: &Path, text: &str) -> Result<Hosts, Refused> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct HostsFile {
        hosts: Hosts,
    }
    let file: HostsFile =
        toml::from_str(text).map_err(|error| mistake(path, file_error(text, &error)))?;
    Ok(file.hosts)
}

fn mistake(path: &Path, error: FileError) -> Refused {
    Refused(format!("{}, {error}", path.display()))
}

/// The ready studies with the question that each answers.
pub fn ready_studies() -> Vec<ReadyStudy> {
    let ready = READY.iter().map(|(name, text)| {
        let study = StudyFile::parse(text).expect("the program's own files are read by its tests");
        ReadyStudy {
            name: String::from(*name),
            question: study.design.question,
        }
    });
    ready.collect()
}

fn ready(name: &Path) -> Option<&'static str> {
    let named = |(known, _): &&(&str, &str)| name.as_os_str() == *known;
    READY.iter().find(named).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::plan_of;
    use nicpoll_stats::order::Seed;
    use std::fs;

    fn find(path: &Path) -> Result<StudyFile, Refused> {
        let text = StudyFile::text_of(path)?;
        let file = StudyFile::of_text(path, &text, None)?;
        file.check_here(path, &text)?;
        // Survives the way back from the process that read it.
        let again = serde_json::from_str(&serde_json::to_string(&file).unwrap()).unwrap();
        assert_eq!(file, again);
        Ok(again)
    }

    #[test]
    fn every_ready_study_can_be_planned_and_is_in_the_table() {
        for (name, _) in READY {
            let study = find(Path::new(name)).unwrap();
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
        let error = find(Path::new("no-such-study")).unwrap_err();
        let told = error.to_string();
        let words = "there is no file and no ready study 'no-such-study'; ready studies are demo, ";
        assert!(told.starts_with(words), "{told}");
        let error = find(Path::new("priod")).unwrap_err();
        assert!(error.0.ends_with("did you mean 'period'?"), "{error}");
    }

    #[test]
    fn a_file_of_ones_own_goes_before_a_ready_study() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("demo");
        fs::write(&own, "question = 1\n").unwrap();
        let error = find(&own).unwrap_err().to_string();
        assert!(error.contains("line 1"), "{error}");
        // The error must not list the ready studies.
        fs::write(&own, b"question\xff").unwrap();
        for (path, words) in [
            (&*own, "line 1 is not text in UTF-8"),
            (folder.path(), "it is a directory, not a regular file"),
            (Path::new("/dev/zero"), "it is a device, not a regular file"),
        ] {
            let error = find(path).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
            assert!(!error.contains("ready studies"), "{error}");
        }
        fs::write(&own, " ".repeat(BYTES_MAX + 1)).unwrap();
        let error = find(&own).unwrap_err().to_string();
        assert!(error.ends_with("it is longer than 1 MiB"), "{error}");
    }
}
