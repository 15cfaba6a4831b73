//! Options of `nicpoll study`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
pub use nicpoll_report::help::study::ABOUT;
use nicpoll_report::help::study::{
    COMPARE_EXAMPLES, EXAMPLES, IMPORT_EXAMPLES, REPORT_EXAMPLES, RUN_EXAMPLES,
};
use nicpoll_store::Which;
use nicpoll_study::{Correction, FailOn, SweepRates};

use crate::args::{SittingArgs, StoreFile};

/// Options of `nicpoll study`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
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
    /// Compare two results: stored studies, or files of iperf, iperf3, netblast or numbers
    Compare(CompareArgs),
    /// Bring what others measured into the store: transcripts with iperf, netblast, top and more
    Import(ImportArgs),
    /// List the studies that are stored, the oldest first, and the ready ones with their questions
    List(ListArgs),
    /// Show a study as the command that made it did
    Show(ShowStudyArgs),
    /// Write a study as one page to be shown around: HTML with plots that needs nothing else
    Report(ReportArgs),
    /// Print a study for other programs: as JSON, or its trials as CSV
    Export(ExportArgs),
    /// Delete studies with all their trials
    Delete(DeleteArgs),
}

/// Options of `nicpoll study run`.
#[derive(Args, Debug)]
#[command(after_help = RUN_EXAMPLES)]
pub struct RunArgs {
    /// The study: a file with settings, workloads and comparisons (docs/studies.md), or the name of a
    /// ready one, which 'nicpoll study list' lists
    #[arg(
        value_name = "FILE",
        required_unless_present = "resume",
        conflicts_with = "resume"
    )]
    pub study: Option<PathBuf>,
    /// Run it at its full length, which its file names: that of the experiment that it repeats, for a ready one
    #[arg(long, conflicts_with = "resume")]
    pub full: bool,
    /// Run it under these of its workloads only
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        conflicts_with = "resume"
    )]
    pub workload: Vec<String>,
    /// Run each workload that has a rate at each of these, in packets a second or shares of the greatest rate held:
    /// rate=20000,40000 or rate=50%,100%,150%
    #[arg(long, value_name = "RATES", conflicts_with = "resume")]
    pub sweep: Option<SweepRates>,
    /// Show what would be set, in which order and for how long, and do nothing
    #[arg(long, conflicts_with_all = ["brief", "resume", "simulate"])]
    pub dry_run: bool,
    /// How it is carried out and printed.
    #[command(flatten)]
    pub sitting: SittingArgs,
}

/// Whose figures `--ministat` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MinistatEdition {
    /// The one in Linux packages, of 2015
    Linux,
    /// FreeBSD's of today: another median of even numbers, and another relative error
    Freebsd,
}

/// Options of `nicpoll study compare`.
#[derive(Args, Debug)]
#[command(after_help = COMPARE_EXAMPLES)]
pub struct CompareArgs {
    /// What it is held against: a file, or a study as in 7, last, 7:polling or 7:polling:udp64
    #[arg(value_name = "REFERENCE")]
    pub reference: String,
    /// What is judged, likewise
    #[arg(value_name = "RESULT")]
    pub judged: String,
    /// Exit with 3 when this is proven: worse, worse:5%, different or different:5%
    #[arg(long, value_name = "LIMIT", conflicts_with = "ministat")]
    pub fail_on: Option<FailOn>,
    /// A smaller value is the better one, as of times: for files
    #[arg(long, conflicts_with = "ministat")]
    pub less_is_better: bool,
    /// Column of a table of numbers, from 1
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub column: usize,
    /// Print what ministat(1) prints of the same values
    #[arg(
        long,
        value_name = "EDITION",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "linux",
        conflicts_with = "json"
    )]
    pub ministat: Option<MinistatEdition>,
    /// Where the studies are.
    #[command(flatten)]
    pub file: StoreFile,
    /// Print one JSON object instead of text (docs/compare.md)
    #[arg(long)]
    pub json: bool,
}

/// Options of `nicpoll study import`.
#[derive(Args, Debug)]
#[command(after_help = IMPORT_EXAMPLES)]
pub struct ImportArgs {
    /// Texts: what a web page, a mail or a terminal shows. Those of one experiment make one study
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Say what the text does not: 120-180:setting=polling, 12:host=PC1, b.txt:5-9:skip. Without lines it is said of all
    #[arg(long, value_name = "[[FILE:]LINES:]KEY=VALUE")]
    pub map: Vec<Correction>,
    /// Show what was found and what has no place, and store nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Where the studies are.
    #[command(flatten)]
    pub file: StoreFile,
    /// Print one JSON object instead of tables (docs/import.md)
    #[arg(long)]
    pub json: bool,
}

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

/// Options of `nicpoll study show`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  nicpoll study show last\n  nicpoll study show 7 --brief\n\n\
    A study that is not finished is shown with what follows from its trials so far."
)]
pub struct ShowStudyArgs {
    /// Number of the study, or 'last'
    #[arg(value_name = "STUDY")]
    pub study: Which,
    /// Where the studies are.
    #[command(flatten)]
    pub file: StoreFile,
    /// Print the answer alone: one screen of 24 lines
    #[arg(long, conflicts_with = "json")]
    pub brief: bool,
    /// Print one JSON object instead of tables (docs/schema.md)
    #[arg(long)]
    pub json: bool,
}

/// How a study is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
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

impl Format {
    /// What a file of it ends with.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Html => "html",
            Format::Md => "md",
            Format::Text => "txt",
            Format::Json => "json",
            Format::Csv | Format::SeriesCsv => "csv",
        }
    }
}

/// Options of `nicpoll study report`.
#[derive(Args, Debug)]
#[command(after_help = REPORT_EXAMPLES)]
pub struct ReportArgs {
    /// Number of the study, or 'last'
    #[arg(value_name = "STUDY")]
    pub study: Which,
    /// Where the studies are.
    #[command(flatten)]
    pub file: StoreFile,
    /// File to write; what it holds is replaced. '-' is standard output [default: study-ID.html, or as the
    /// format is called]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Html)]
    pub format: Format,
}

/// Options of `nicpoll study export`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  nicpoll study export last > study.json\n  \
    nicpoll study export 7 --format csv > trials.csv")]
pub struct ExportArgs {
    /// Number of the study, or 'last'
    #[arg(value_name = "STUDY")]
    pub study: Which,
    /// Where the studies are.
    #[command(flatten)]
    pub file: StoreFile,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Json)]
    pub format: Format,
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
    /// Show what would be deleted, and delete nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Delete without asking
    #[arg(long, conflicts_with = "dry_run")]
    pub yes: bool,
    /// Print one JSON object instead of a table (docs/store.md)
    #[arg(long)]
    pub json: bool,
}
