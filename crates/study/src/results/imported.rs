//! Transcripts become a study of imported trials: files are read, put together, and their settings compared.
//!
//! What must hold: trials of a text took no turns, so that nothing of them is ever compared in pairs. Bytes keep their
//! places whatever the encoding of a file.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use nicpoll_import::{Mapping, TRANSCRIPT_MAX_BYTES, TranscriptError, read_transcripts};
use nicpoll_model::{Imported, ImportedTrial, Origin};
use thiserror::Error;

use super::{Values, unpaired};
use crate::plan::MARGIN;

/// Why files cannot be imported.
#[derive(Debug, Error)]
pub enum ImportError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The texts cannot be put together.
    #[error(transparent)]
    Text(#[from] TranscriptError),
    /// There is nothing in them.
    #[error(
        "no test of iperf, netblast or netreceive was found in {files}; {unplaced} figures without a place are shown by \
         --dry-run"
    )]
    Nothing {
        /// The files.
        files: String,
        /// Figures without a place.
        unplaced: usize,
    },
}

impl ImportError {
    /// Whether the command was wrong, and not a file.
    pub fn is_usage(&self) -> bool {
        matches!(self, ImportError::Text(TranscriptError::NoFile(_)))
    }
}

/// Reads transcripts, and compares their settings.
///
/// # Errors
/// [`ImportError`] when a file cannot be read or is too long. Without a trial the result is empty.
pub fn import_transcripts(
    paths: &[PathBuf],
    map: &[Mapping],
    origin: &Origin,
) -> Result<Imported, ImportError> {
    let mut files = Vec::new();
    for path in paths {
        files.push((path.display().to_string(), text_of(path)?));
    }
    let mut imported = read_transcripts(&files, map, origin)?;
    imported.margin_ratio = MARGIN;
    compare_settings(&mut imported);
    Ok(imported)
}

/// The text of a file. A byte that is not UTF-8 becomes one `?`, so that every other byte keeps its place.
fn text_of(path: &Path) -> Result<String, ImportError> {
    let unread = |source| ImportError::File {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unread)?;
    // One more, so that a longer one is seen to be.
    let most = TRANSCRIPT_MAX_BYTES as u64 + 1;
    file.take(most).read_to_end(&mut bytes).map_err(unread)?;
    let mut text = String::with_capacity(bytes.len());
    for part in bytes.utf8_chunks() {
        text.push_str(part.valid());
        text.extend(part.invalid().iter().map(|_| '?'));
    }
    Ok(text)
}

/// Each setting against the interrupts, or else against the first one that is said, under each workload.
fn compare_settings(imported: &mut Imported) {
    let pairs = contrasts(imported);
    let family = pairs.len() as u32;
    let compared = pairs
        .into_iter()
        .filter_map(|(workload, setting, reference)| {
            let one = values(&imported.trials, &workload, &reference);
            let other = values(&imported.trials, &workload, &setting);
            unpaired(
                Some(workload),
                (&reference, one),
                (&setting, other),
                false,
                family,
            )
            .ok()
        });
    imported.comparisons = compared.collect();
}

/// Workload, setting and reference of each comparison.
fn contrasts(imported: &Imported) -> Vec<(String, String, String)> {
    let mut pairs = Vec::new();
    for workload in imported.workloads() {
        let of = |setting: &str| {
            let mut trials = imported.trials.iter();
            trials.any(|it| it.workload == workload && it.setting == setting && it.value.is_some())
        };
        let settings = imported.settings().into_iter();
        let settings: Vec<&str> = settings.filter(|it| *it != NOT_SAID && of(it)).collect();
        let reference = settings
            .iter()
            .find(|it| **it == "interrupt")
            .or(settings.first());
        let Some(reference) = reference else { continue };
        for setting in settings.iter().filter(|it| *it != reference) {
            pairs.push((
                String::from(workload),
                String::from(*setting),
                String::from(*reference),
            ));
        }
    }
    pairs
}

/// The setting of trials of which nothing says it.
const NOT_SAID: &str = "not-said";

/// The rates of the trials of a workload under a setting, in the order of the text.
pub(super) fn values(trials: &[ImportedTrial], workload: &str, setting: &str) -> Values {
    let of = || {
        trials
            .iter()
            .filter(|it| it.workload == workload && it.setting == setting)
    };
    Values {
        quantity: of()
            .next()
            .map(|it| it.quantity.clone())
            .unwrap_or_default(),
        read_as: String::from("imported trials"),
        values: of().filter_map(|it| it.value).collect(),
        are_intervals: false,
        is_sent: of().any(|it| it.is_sent),
    }
}
