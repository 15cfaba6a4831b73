//! Imports transcripts: reads the files, makes one experiment of them, and compares its settings.
//!
//! Trials of a transcript did not alternate, so they are never paired. Byte positions are kept, whatever a file's
//! encoding.

use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

use nicpoll_import::{Correction, TRANSCRIPT_MAX_BYTES, read_transcripts};
use nicpoll_lab::Refused;
use nicpoll_model::{Imported, ImportedTrial, Origin};
use nicpoll_sys::stdio::read_bytes;

use crate::plan::MARGIN;
use crate::results::compare::unpaired;
use crate::results::read::values_of_trials;

/// Reads the bytes of transcripts, each with its file's name.
///
/// # Errors
/// When a file cannot be read or is too long.
pub fn read_transcript_files(paths: &[PathBuf]) -> Result<Vec<(String, Vec<u8>)>, Refused> {
    let read = |path: &PathBuf| {
        let name = path.display().to_string();
        match read_bytes(path, TRANSCRIPT_MAX_BYTES as u64) {
            Ok(bytes) => Ok((name, bytes)),
            Err(error) => Err(Refused(format!("cannot read {name}: {error}"))),
        }
    };
    paths.iter().map(read).collect()
}

/// Makes one experiment of transcripts, and compares its settings. Without a trial the result is empty.
///
/// # Errors
/// When the files are more than one experiment may have or no text, or a correction names none of them or changes
/// nothing.
pub fn import_transcripts(
    files: Vec<(String, Vec<u8>)>,
    map: &[Correction],
    origin: &Origin,
) -> Result<Imported, Refused> {
    for (name, bytes) in &files {
        let nuls = bytes.iter().filter(|it| **it == 0).count();
        if nuls > bytes.len() / 100 {
            let why = format!("{name} is no text: it has {nuls} NUL bytes; save it as UTF-8 text");
            return Err(Refused(why));
        }
    }
    let files = files.into_iter();
    let files: Vec<(String, String)> = files
        .map(|(name, bytes)| (name, with_every_byte(bytes)))
        .collect();
    let imported = read_transcripts(&files, map, origin);
    let mut imported = imported.map_err(|error| Refused(error.to_string()))?;
    drop(files);
    imported.margin_ratio = MARGIN;
    compare_settings(&mut imported);
    Ok(imported)
}

/// Makes text of bytes, with `?` for each that is not UTF-8, without a second copy.
fn with_every_byte(mut bytes: Vec<u8>) -> String {
    let mut at = 0;
    while let Err(wrong) = std::str::from_utf8(&bytes[at..]) {
        let from = at + wrong.valid_up_to();
        at = wrong
            .error_len()
            .map_or(bytes.len(), |length| from + length);
        bytes[from..at].fill(b'?');
    }
    String::from_utf8(bytes).expect("every byte that was not UTF-8 is '?' now")
}

/// Most comparisons. In a larger family intervals say nothing, and each comparison holds the values of both sides.
const COMPARISONS_MAX: usize = 32;

/// Compares each setting with the interrupts, or else with the first stated setting, under each workload.
fn compare_settings(imported: &mut Imported) {
    let (contrasts, left_out) = contrasts(imported);
    let family = contrasts.len() as u32;
    let compared = contrasts
        .into_iter()
        .filter_map(|(workload, reference, judged)| {
            unpaired(
                Some(String::from(workload)),
                (reference.0, values_of_trials(&reference.1)),
                (judged.0, values_of_trials(&judged.1)),
                false,
                family,
            )
            .ok()
        });
    imported.comparisons = compared.collect();
    imported.comparisons_left_out = left_out;
}

/// The trials of a setting.
type SettingTrials<'a> = (&'a str, Rc<[&'a ImportedTrial]>);

/// Returns the workload, the reference and the setting of each comparison, and the number of those beyond the limit.
fn contrasts(imported: &Imported) -> (Vec<(&str, SettingTrials<'_>, SettingTrials<'_>)>, u32) {
    let settings = imported.settings();
    let order: HashMap<&str, usize> = settings.into_iter().zip(0..).collect();
    let (mut found, mut left_out) = (Vec::new(), 0);
    for (workload, trials) in imported.by_workload() {
        let groups = ImportedTrial::by_setting(trials).into_iter();
        let has_value = |of: &[&ImportedTrial]| of.iter().any(|it| it.value.is_some());
        let groups = groups.filter(|(name, of)| *name != NOT_SAID && has_value(of));
        let mut groups: Vec<SettingTrials> =
            groups.map(|(name, of)| (name, Rc::from(of))).collect();
        groups.sort_by_key(|(name, _)| order[name]);
        let interrupt = groups.iter().position(|(name, _)| *name == "interrupt");
        if groups.is_empty() {
            continue;
        }
        let reference = groups.remove(interrupt.unwrap_or(0));
        for judged in groups {
            if found.len() < COMPARISONS_MAX {
                found.push((workload, reference.clone(), judged));
            } else {
                left_out += 1;
            }
        }
    }
    (found, left_out)
}

/// The setting of trials whose setting the text does not state.
const NOT_SAID: &str = "not-said";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_keeps_its_place_whatever_the_encoding() {
        let text = with_every_byte(b"a\xff\xc3\xa9\xe2\x82z\xf0\x9f".to_vec());
        assert_eq!(text, "a?\u{e9}??z??");
    }
}
