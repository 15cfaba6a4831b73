//! `nicpoll study import`: stores results from transcripts of other people's tests.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use nicpoll_lab::this_runner;
use nicpoll_model::numbers::counted;
use nicpoll_model::{Imported, ImportedTrial, SourcePlace, StudyKind};
use nicpoll_study::{Correction, import_transcripts, read_transcript_files};
use nicpoll_sys::stdio::read_bytes;
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
    /// State what the text does not: 120-180:setting=polling, 12:host=PC1, 37:test=14, b.txt:5-9:skip. Without lines
    /// it applies to all. Or a file of such lines
    #[arg(long, value_name = "[[FILE:]LINES:]KEY=VALUE|FILE")]
    pub map: Vec<Corrections>,
    /// Draft a file for --map: a commented line for each choice that the text leaves open
    #[arg(long, value_name = "FILE")]
    pub write_map: Option<PathBuf>,
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

/// A correction, or those of a file.
#[derive(Clone, Debug)]
pub struct Corrections(Vec<Correction>);

impl FromStr for Corrections {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = match text.parse() {
            Ok(one) => return Ok(Corrections(vec![one])),
            Err(error) => error,
        };
        let path = Path::new(text);
        if !path.exists() && !text.contains('=') {
            return Err(format!("there is no file '{text}', and {error}"));
        }
        if !path.is_file() {
            return Err(error.to_string());
        }
        let bytes = read_bytes(path, MAP_MAX_BYTES).map_err(|error| error.to_string())?;
        let lines = String::from_utf8_lossy(&bytes);
        let lines = lines.lines().map(str::trim).zip(1..);
        let lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
        let parsed = lines.map(|(line, number)| {
            let parsed: Result<Correction, _> = line.parse();
            parsed.map_err(|error| format!("line {number}: {error}"))
        });
        Ok(Corrections(parsed.collect::<Result<_, _>>()?))
    }
}

/// Longest file of corrections.
const MAP_MAX_BYTES: u64 = 1 << 20;

/// Drafts a file of corrections: what the text leaves open, each choice as a comment.
fn draft(imported: &Imported) -> String {
    let mut text = String::from("# Remove the '#' of what is right, and give the file to --map.\n");
    let file = |place: &SourcePlace| match imported.files.len() {
        1 => String::new(),
        _ => format!("{}:", imported.files[place.file as usize].name),
    };
    for trial in imported
        .trials
        .iter()
        .filter(|it| it.setting_place.is_none())
    {
        let (line, of) = (trial.place.line, &trial.workload);
        text += &format!("\n# line {line}, {of}: nothing says the setting\n");
        for setting in "interrupt polling polling-sender-only polling-receiver-only".split(' ') {
            text += &format!("#{}{line}:setting={setting}\n", file(&trial.place));
        }
    }
    for one in imported
        .unplaced
        .iter()
        .filter(|it| !it.candidates.is_empty())
    {
        text += &format!(
            "\n# line {}, {}: {}\n",
            one.place.line, one.printed, one.reason
        );
        for candidate in &one.candidates {
            text += &format!("#{}{candidate}\n", file(&one.place));
        }
    }
    text
}

/// Imports the files and prints the study's number.
pub fn run(args: &ImportArgs) -> Result<(), Failure> {
    let map: Vec<Correction> = args.map.iter().flat_map(|it| it.0.clone()).collect();
    let imported = confined(
        || Ok(read_transcript_files(&args.files)?),
        |files| Ok(import_transcripts(files, &map, &output::origin())?),
    )?;
    if let Some(file) = &args.write_map {
        output::write_file(file, "What the text leaves open", &draft(&imported))?;
    }
    let (facts, figures) = (imported.readings.len(), imported.unplaced.len());
    let is_stored = !imported.trials.is_empty() || args.facts && facts + figures > 0;
    if !is_stored {
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
