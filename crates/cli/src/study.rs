//! `nicpoll study`: studies of one's own, and those that a store holds.

pub mod args;
mod compare;
mod import;
mod report;
mod run;

use std::io::{self, IsTerminal, Write as _};

use nicpoll_model::ab::LiveAb;
use nicpoll_model::{Imported, STUDIES_SCHEMA, Studies, StudiesAction, Study, StudyKind};
use nicpoll_report::{render_ab_text, render_document, render_imported_text, render_studies_text};
use nicpoll_store::{Place, Store, StoreError};
use nicpoll_study::{ready_studies, shown, still_runs};

use crate::args::StoreFile;
use crate::failure::Failure;
use crate::output;

use self::args::{DeleteArgs, ListArgs, ShowStudyArgs, StudyArgs, StudyCommand};

/// Runs `nicpoll study` and returns its exit code.
pub fn run(args: &StudyArgs) -> Result<u8, Failure> {
    match &args.command {
        StudyCommand::Run(args) => return run::run(args),
        StudyCommand::Compare(args) => return compare::run(args),
        StudyCommand::Import(args) => import::run(args)?,
        StudyCommand::List(args) => list(args)?,
        StudyCommand::Show(args) => show(args)?,
        StudyCommand::Report(args) => report::report(args)?,
        StudyCommand::Export(args) => report::export(args)?,
        StudyCommand::Delete(args) => delete(args)?,
    }
    Ok(0)
}

fn open(file: &StoreFile) -> Result<Store, Failure> {
    Ok(Store::to_read(file.place()?)?)
}

fn list(args: &ListArgs) -> Result<(), Failure> {
    let studies = match open(&args.file) {
        // Nothing has been stored yet.
        Err(Failure::Failed(error)) if args.file.store.is_none() && is_missing(&error) => Studies {
            schema: String::from(STUDIES_SCHEMA),
            store: Place::of_user()?.to_string(),
            action: StudiesAction::Listed,
            studies: Vec::new(),
            ready: Vec::new(),
        },
        opened => opened?.list(still_runs)?,
    };
    let ready = ready_studies().map_err(anyhow::Error::from)?;
    print(&Studies { ready, ..studies }, args.json)
}

fn is_missing(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(StoreError::Nothing { .. }))
}

fn print(studies: &Studies, json: bool) -> Result<(), Failure> {
    let text = if json {
        render_document(studies)
    } else {
        render_studies_text(studies)
    };
    Ok(output::print(&text)?)
}

fn show(args: &ShowStudyArgs) -> Result<(), Failure> {
    let store = open(&args.file)?;
    if store.entry(args.study, still_runs)?.kind == StudyKind::Ab {
        let compared = store.read::<LiveAb>(args.study, still_runs)?.document;
        return Ok(output::print(&match args.json {
            true => render_document(&compared),
            false => render_ab_text(&compared, &output::text_options()),
        })?);
    }
    if store.entry(args.study, still_runs)?.kind == StudyKind::Imported {
        let imported = store.read::<Imported>(args.study, still_runs)?.document;
        return Ok(output::print(&match args.json {
            true => render_document(&imported),
            false => render_imported_text(&imported, &output::text_options()),
        })?);
    }
    let kept = store.read::<Study>(args.study, still_runs)?;
    output::print_study(&shown(kept)?, args.json, args.brief)
}

fn delete(args: &DeleteArgs) -> Result<(), Failure> {
    let mut store = open(&args.file)?;
    let mut delete = |is_dry_run| store.delete(&args.studies, is_dry_run, still_runs);
    let would = delete(true)?;
    if args.dry_run {
        return print(&would, args.json);
    }
    if !args.yes && !confirmed(&would)? {
        return Err(Failure::Failed(anyhow::anyhow!("nothing was deleted")));
    }
    print(&delete(false)?, args.json)
}

fn confirmed(would: &Studies) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::Usage(String::from(
            "deleting asks first, and there is no terminal to ask on: give --yes, or --dry-run to see what \
             would go",
        )));
    }
    let mut answer = String::new();
    let asked = (|| {
        let mut stderr = io::stderr();
        write!(stderr, "{}\nDelete? [y/N] ", render_studies_text(would))?;
        stderr.flush()?;
        io::stdin().read_line(&mut answer)
    })();
    asked.map_err(anyhow::Error::from)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
