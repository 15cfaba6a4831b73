//! `nicpoll study list`, `show`, `report`, `export`, `delete`: the studies that a store holds.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use nicpoll_lab::still_runs;
use nicpoll_model::ab::LiveAb;
use nicpoll_model::{Imported, STUDIES_SCHEMA, Studies, StudiesAction, Study, StudyKind};
use nicpoll_report::{
    Document, EvidenceOf, TextOptions, blocks_as_csv, imported_as_csv, render_document,
    render_html, render_json, render_markdown, render_studies_text, render_text, series_as_csv,
    trials_as_csv,
};
use nicpoll_store::{OpenStore, Store, StoreError, StorePlace, Which};
use nicpoll_study::{ready_studies, shown};
use nicpoll_sys::stdio;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::options::StoreFile;
use crate::output;
use crate::reading::confined;

/// Options of `nicpoll study list`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  nicpoll study list\n  nicpoll study list --json")]
pub struct ListArgs {
    /// Where the studies are.
    #[command(flatten)]
    pub file: StoreFile,
    /// Print one JSON object instead of a table (docs/store.md)
    #[arg(long)]
    pub json: bool,
}

/// One study of a store.
#[derive(Args, Debug)]
pub struct StoredStudy {
    /// Number of the study, or 'last'
    #[arg(value_name = "STUDY")]
    pub study: Which,
    /// Where the studies are.
    #[command(flatten)]
    pub file: StoreFile,
}

/// Options of `nicpoll study show`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  nicpoll study show last\n  nicpoll study show 7 --brief\n  nicpoll study show 9 --evidence          of an import: why its figures are where they are\n\n\
    A study that is not finished is shown with what follows from its trials so far."
)]
pub struct ShowStudyArgs {
    #[command(flatten)]
    pub stored: StoredStudy,
    /// Print the answer alone: one screen of 24 lines
    #[arg(long, conflicts_with = "json")]
    pub brief: bool,
    /// Of an import: print what speaks for each setting and each line of CPU states (docs/import.md)
    #[arg(long, conflicts_with_all = ["json", "brief"])]
    pub evidence: bool,
    /// Print one JSON object instead of tables (docs/schema.md)
    #[arg(long)]
    pub json: bool,
}

/// How a study is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StudyFormat {
    /// One page with plots that a browser shows, for a screen, a telephone or paper (docs/report.md)
    Html,
    /// The page of 'nicpoll study show' for a wiki or a ticket
    Md,
    /// The page of 'nicpoll study show'
    Text,
    /// The whole study as one object (docs/schema.md)
    Json,
    /// A line for each trial, or for each block of a live comparison
    Csv,
    /// What passed within the trials: a line for each step of each
    SeriesCsv,
}

impl StudyFormat {
    /// Returns the file name's extension.
    pub fn extension(self) -> &'static str {
        match self {
            StudyFormat::Html => "html",
            StudyFormat::Md => "md",
            StudyFormat::Text => "txt",
            StudyFormat::Json => "json",
            StudyFormat::Csv | StudyFormat::SeriesCsv => "csv",
        }
    }
}

/// Options of `nicpoll study report`.
#[derive(Args, Debug)]
#[command(after_help = include_str!("../help/study-report-examples.txt"))]
pub struct ReportArgs {
    #[command(flatten)]
    pub stored: StoredStudy,
    /// File to write or replace; '-' is standard output [default: study-ID.html, or with the format's extension]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// How to write it
    #[arg(long, value_enum, default_value_t = StudyFormat::Html)]
    pub format: StudyFormat,
    /// Include the machine: its host name, and a part of a hash of its machine id
    #[arg(long)]
    pub with_names: bool,
}

/// Options of `nicpoll study export`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  nicpoll study export last > study.json\n  \
    nicpoll study export 7 --format csv > trials.csv")]
pub struct ExportArgs {
    #[command(flatten)]
    pub stored: StoredStudy,
    /// How to write it
    #[arg(long, value_enum, default_value_t = StudyFormat::Json)]
    pub format: StudyFormat,
}

/// Options of `nicpoll study delete`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  nicpoll study delete 3 4 --dry-run\n  nicpoll study delete 3 4 --yes\n\n\
    Asks before it deletes. A study that runs is not deleted. Either all go that are named, or none."
)]
pub struct DeleteArgs {
    /// Numbers of the studies, or 'last'
    #[arg(value_name = "STUDY", required = true)]
    pub studies: Vec<Which>,
    /// Where the studies are.
    #[command(flatten)]
    pub file: StoreFile,
    /// Show what would be deleted without deleting
    #[arg(long)]
    pub dry_run: bool,
    /// Delete without asking
    #[arg(long, conflicts_with = "dry_run")]
    pub yes: bool,
    /// Print one JSON object instead of a table (docs/store.md)
    #[arg(long)]
    pub json: bool,
}

/// Reads a store in a process without rights.
pub fn reading<T: Serialize + DeserializeOwned>(
    file: &StoreFile,
    read: impl FnOnce(&Store) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let open = || Ok(OpenStore::of(file.place()?)?);
    confined(open, |opened: OpenStore| read(&opened.store()?))
}

/// Runs `nicpoll study list`.
pub fn list(args: &ListArgs) -> Result<(), Failure> {
    let open = || match OpenStore::of(args.file.place()?) {
        // The user's store does not exist yet.
        Err(StoreError::Nothing(_)) if args.file.store.is_none() => Ok(None),
        opened => Ok(Some(opened?)),
    };
    let studies = confined(open, |opened| {
        Ok(match opened {
            Some(opened) => opened.store()?.list(still_runs)?,
            None => Studies {
                schema: String::from(STUDIES_SCHEMA),
                store: StorePlace::of_user()?.to_string(),
                action: StudiesAction::Listed,
                studies: Vec::new(),
                ready: Vec::new(),
            },
        })
    })?;
    let ready = ready_studies();
    print(&Studies { ready, ..studies }, args.json)
}

fn print(studies: &Studies, json: bool) -> Result<(), Failure> {
    output::print_either(studies, json, render_studies_text)
}

/// Runs `nicpoll study show`.
pub fn show(args: &ShowStudyArgs) -> Result<(), Failure> {
    let (which, options) = (args.stored.study, output::text_options());
    let text = reading(&args.stored.file, |store| {
        Ok(match store.entry(which, still_runs)?.kind {
            StudyKind::Imported => {
                let imported: Imported = store.read(which, still_runs)?.document;
                match args.evidence {
                    true => render_text(&EvidenceOf(&imported), &options),
                    false => output::rendered(&imported, args.json, &options),
                }
            }
            _ if args.evidence => {
                let why = "--evidence is for a study of 'nicpoll study import'";
                return Err(Failure::Usage(String::from(why)));
            }
            StudyKind::Ab => {
                let compared: LiveAb = store.read(which, still_runs)?.document;
                output::rendered(&compared, args.json, &options)
            }
            _ => {
                let study = shown(store.read(which, still_runs)?)?;
                output::rendered_study(&study, args.json, args.brief, &options)
            }
        })
    })?;
    Ok(output::print(&text)?)
}

/// Runs `nicpoll study delete`.
pub fn delete(args: &DeleteArgs) -> Result<(), Failure> {
    let would = reading(&args.file, |store| {
        Ok(store.would_delete(&args.studies, still_runs)?)
    })?;
    if args.dry_run {
        return print(&would, args.json);
    }
    if !args.yes && !confirmed(&would)? {
        return Err(Failure::Failed(anyhow::anyhow!("nothing was deleted")));
    }
    // Those that were shown, whatever is the last one by now.
    let shown: Vec<Which> = would.studies.iter().map(|it| Which::Id(it.id)).collect();
    let deleted = args
        .file
        .change(|mut store| Ok(store.delete(&shown, still_runs)?))?;
    print(&deleted, args.json)
}

fn confirmed(would: &Studies) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::Usage(String::from(
            "deleting asks first, and there is no terminal to ask on: give --yes, or --dry-run to see what \
             would go",
        )));
    }
    stdio::try_print_error(&format!("{}\nDelete? [y/N] ", render_studies_text(would)))?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Writes the page of a study to a file.
pub fn report(args: &ReportArgs) -> Result<(), Failure> {
    let options = output::text_options();
    let (id, text) = reading(&args.stored.file, |store| {
        let id = store.entry(args.stored.study, still_runs)?.id;
        let text = written(store, Which::Id(id), args.format, args.with_names, &options)?;
        Ok((id, text))
    })?;
    match &args.output {
        Some(file) if file == Path::new("-") => Ok(output::print(&text)?),
        Some(file) => output::write_report(file, &text),
        None => {
            let end = args.format.extension();
            output::write_report(&PathBuf::from(format!("study-{id}.{end}")), &text)
        }
    }
}

/// Prints a study for another program.
pub fn export(args: &ExportArgs) -> Result<(), Failure> {
    let (which, options) = (args.stored.study, output::text_options());
    let text = reading(&args.stored.file, |store| {
        written(store, which, args.format, true, &options)
    })?;
    Ok(output::print(&text)?)
}

fn written(
    store: &Store,
    which: Which,
    format: StudyFormat,
    has_names: bool,
    options: &TextOptions,
) -> Result<String, Failure> {
    let study = || -> Result<_, StoreError> {
        let mut kept = store.read::<Study>(which, still_runs)?;
        if !has_names {
            kept.document.leave_out_names();
        }
        Ok(kept)
    };
    if format == StudyFormat::Json {
        return Ok(match study() {
            Ok(kept) => render_json(&kept.document),
            // A document of another kind or version is exported as it is.
            Err(StoreError::Layout { .. }) => {
                let mut document = store.document(which)?;
                if !has_names && let Some(machine) = document.pointer_mut("/host/machine") {
                    machine.take();
                }
                render_document(&document)
            }
            Err(error) => return Err(error.into()),
        });
    }
    let is_csv = matches!(format, StudyFormat::Csv | StudyFormat::SeriesCsv);
    let document: Box<dyn Document> = match store.entry(which, still_runs)?.kind {
        StudyKind::Ab => {
            let compared: LiveAb = store.read(which, still_runs)?.document;
            if is_csv {
                return Ok(blocks_as_csv(&compared).collect());
            }
            Box::new(compared)
        }
        StudyKind::Imported => {
            let imported: Imported = store.read(which, still_runs)?.document;
            if is_csv {
                return Ok(imported_as_csv(&imported).collect());
            }
            Box::new(imported)
        }
        _ => {
            let kept = study()?;
            match format {
                StudyFormat::Csv => return Ok(trials_as_csv(&kept.document).collect()),
                StudyFormat::SeriesCsv => return Ok(series_as_csv(&kept.document).collect()),
                _ => Box::new(shown(kept)?),
            }
        }
    };
    let page = document.page();
    Ok(match format {
        StudyFormat::Html => render_html(&page),
        StudyFormat::Md => render_markdown(&page),
        _ => render_text(&page, options),
    })
}
