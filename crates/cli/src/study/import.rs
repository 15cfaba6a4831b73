//! `nicpoll study import`: stores results from transcripts of other people's tests.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use nicpoll_lab::this_runner;
use nicpoll_model::numbers::counted;
use nicpoll_model::{Imported, ImportedTrial, StudyKind};
use nicpoll_study::{Correction, import_transcripts, read_transcript_files};
use nicpoll_sys::tell;

use crate::failure::Failure;
use crate::options::StoreFile;
use crate::output;
use crate::reading::confined;

/// Options of `nicpoll study import`.
#[derive(Args, Debug)]
#[command(after_help = include_str!("../help/study-import-examples.txt"))]
pub struct ImportArgs {
    /// Texts of a web page, a mail or a terminal; all files of a call make one study
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// State what the text does not: 120-180:setting=polling, 12:host=PC1, b.txt:5-9:skip. Without lines it applies
    /// to all
    #[arg(long, value_name = "[[FILE:]LINES:]KEY=VALUE")]
    pub map: Vec<Correction>,
    /// Also store a text without a test: what it says of hosts, with its figures
    #[arg(long, conflicts_with = "dry_run")]
    pub facts: bool,
    /// Show what was found and what belongs nowhere, and store nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Where the studies are.
    #[command(flatten)]
    pub file: StoreFile,
    /// Print one JSON object instead of tables (docs/import.md)
    #[arg(long)]
    pub json: bool,
}

/// Imports the files and prints the study's number.
pub fn run(args: &ImportArgs) -> Result<(), Failure> {
    let imported = confined(
        || Ok(read_transcript_files(&args.files)?),
        |files| Ok(import_transcripts(files, &args.map, &output::origin())?),
    )?;
    let (facts, figures) = (imported.readings.len(), imported.unplaced.len());
    let is_stored = !imported.trials.is_empty() || args.facts && facts + figures > 0;
    if !is_stored && !args.dry_run {
        let files: Vec<&str> = imported.files.iter().map(|it| it.name.as_str()).collect();
        let files = files.join(", ");
        let none = format!("no test of iperf, netblast or netreceive was found in {files}");
        let what = match facts + figures {
            0 => String::from("; it has no figure of a network either"),
            _ => {
                output::print_document(&imported, args.json)?;
                format!(
                    ", and nothing was stored. What it says is shown: {}, {}. --facts stores that",
                    counted(facts as u32, "fact") + " of hosts",
                    counted(figures as u32, "figure") + " of no test"
                )
            }
        };
        return Err(Failure::Failed(anyhow::anyhow!("{none}{what}")));
    }
    let id = match args.dry_run {
        true => None,
        false => Some(stored(args, &imported)?),
    };
    output::print_document(&imported, args.json)?;
    match id {
        Some(id) => tell!("Stored as study {id}: 'nicpoll study show {id}' shows it again."),
        None => tell!("Nothing was stored (--dry-run)."),
    }
    Ok(())
}

/// Stores the import and returns its number.
fn stored(args: &ImportArgs, imported: &Imported) -> Result<i64, Failure> {
    let owner = this_runner()?;
    let taken = |trial: &ImportedTrial| {
        let seconds = trial.duration_seconds.unwrap_or_default();
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    };
    args.file.change(|store| {
        let mut head = imported.clone();
        let trials = std::mem::take(&mut head.trials);
        let count = trials.len() as u32;
        let mut recording = store.begin(StudyKind::Imported, &head, count, "{}", &owner)?;
        recording.trials(&head, trials.iter().map(|trial| (trial, taken(trial))))?;
        recording.finish(&head)?;
        Ok(recording.id())
    })
}
