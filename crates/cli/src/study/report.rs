//! `nicpoll study report` and `nicpoll study export`: a stored study in any of its formats.

use std::path::{Path, PathBuf};

use nicpoll_model::ab::LiveAb;
use nicpoll_model::{Imported, Study, StudyKind};
use nicpoll_report::{
    blocks_as_csv, imported_as_csv, render_ab_html, render_ab_markdown, render_ab_text,
    render_document, render_html, render_imported_html, render_imported_markdown,
    render_imported_text, render_json, render_markdown, render_text, series_as_csv, trials_as_csv,
};
use nicpoll_store::{Store, StoreError, Which};
use nicpoll_study::{shown, still_runs};

use super::args::{ExportArgs, Format, ReportArgs};
use super::open;
use crate::failure::Failure;
use crate::output;

/// Writes the page of a study to a file.
pub fn report(args: &ReportArgs) -> Result<(), Failure> {
    let store = open(&args.file)?;
    let id = store.entry(args.study, still_runs)?.id;
    let text = written(&store, Which::Id(id), args.format)?;
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
    let text = written(&open(&args.file)?, args.study, args.format)?;
    Ok(output::print(&text)?)
}

fn written(store: &Store, which: Which, format: Format) -> Result<String, Failure> {
    let entry = store.entry(which, still_runs)?;
    if entry.kind == StudyKind::Ab {
        return of_ab(store, which, format);
    }
    if entry.kind == StudyKind::Imported {
        return of_imported(store, which, format);
    }
    let kept = match store.read::<Study>(which, still_runs) {
        // Of another version: as it is.
        Err(StoreError::Layout { .. }) if format == Format::Json => {
            return Ok(render_document(&store.document(which)?));
        }
        kept => kept?,
    };
    Ok(match format {
        Format::Json => render_json(&kept.document),
        Format::Csv => trials_as_csv(&kept.document),
        Format::SeriesCsv => series_as_csv(&kept.document),
        Format::Html => render_html(&shown(kept)?),
        Format::Md => render_markdown(&shown(kept)?),
        Format::Text => render_text(&shown(kept)?, &output::text_options()),
    })
}

fn of_imported(store: &Store, which: Which, format: Format) -> Result<String, Failure> {
    if format == Format::Json {
        // Also one of another version: as it is.
        return Ok(render_document(&store.document(which)?));
    }
    let imported = store.read::<Imported>(which, still_runs)?.document;
    Ok(match format {
        Format::Csv => imported_as_csv(&imported),
        Format::Html => render_imported_html(&imported),
        Format::Md => render_imported_markdown(&imported),
        _ => render_imported_text(&imported, &output::text_options()),
    })
}

fn of_ab(store: &Store, which: Which, format: Format) -> Result<String, Failure> {
    let read = || {
        store
            .read::<LiveAb>(which, still_runs)
            .map(|kept| kept.document)
    };
    Ok(match format {
        // Also one of another version: as it is.
        Format::Json => render_document(&store.document(which)?),
        Format::Csv | Format::SeriesCsv => blocks_as_csv(&read()?),
        Format::Html => render_ab_html(&read()?),
        Format::Md => render_ab_markdown(&read()?),
        Format::Text => render_ab_text(&read()?, &output::text_options()),
    })
}
