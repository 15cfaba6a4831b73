//! Commands that run studies, import and compare results, and show stored studies.

pub mod agent;
pub mod compare;
pub mod demo;
pub mod import;
pub mod run;
pub mod search;
pub mod serve;
pub mod stored;
pub mod tune;

use clap::{Args, Subcommand};

use self::compare::CompareArgs;
use self::import::ImportArgs;
use self::run::RunArgs;
use self::search::SearchArgs;
use self::stored::{DeleteArgs, ExportArgs, ListArgs, ReportArgs, ShowStudyArgs};
use crate::failure::Failure;

/// Options of `nicpoll study`.
#[derive(Args, Debug)]
#[command(after_help = include_str!("../help/study-examples.txt"))]
pub struct StudyArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: StudyCommand,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum StudyCommand {
    /// Run a study of your own, described in a file
    Run(Box<RunArgs>),
    /// Find the highest load that each setting holds: no-drop rate, partial drop rate, RFC 2544
    Search(Box<SearchArgs>),
    /// Compare two results: stored studies, or files of iperf, iperf3, netblast or numbers
    Compare(CompareArgs),
    /// Store what others measured: transcripts with iperf, netblast, top and more
    Import(ImportArgs),
    /// List the stored studies, oldest first, and the ready ones with their questions
    List(ListArgs),
    /// Show a study as the command that made it did
    Show(ShowStudyArgs),
    /// Write a study as one self-contained page: HTML with plots
    Report(ReportArgs),
    /// Print a study for other programs: as JSON, or its trials as CSV
    Export(ExportArgs),
    /// Delete studies with all their trials
    Delete(DeleteArgs),
}

/// Runs `nicpoll study` and returns its exit code.
pub fn run(args: &StudyArgs) -> Result<u8, Failure> {
    match &args.command {
        StudyCommand::Run(args) => return run::run(args),
        StudyCommand::Search(args) => return search::run(args),
        StudyCommand::Compare(args) => return compare::run(args),
        StudyCommand::Import(args) => import::run(args)?,
        StudyCommand::List(args) => stored::list(args)?,
        StudyCommand::Show(args) => stored::show(args)?,
        StudyCommand::Report(args) => stored::report(args)?,
        StudyCommand::Export(args) => stored::export(args)?,
        StudyCommand::Delete(args) => stored::delete(args)?,
    }
    Ok(0)
}
