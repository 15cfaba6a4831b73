//! `nicpoll study compare`: two results side by side.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use nicpoll_model::{HostsCompared, Verdict};
use nicpoll_report::ministat::{Edition, WIDTH, render_ministat};
use nicpoll_report::{Document, render_html};
use nicpoll_store::OpenStore;
use nicpoll_study::{
    CompareOptions, FailOn, OpenResult, ResultSource, compare_hosts, compare_results,
};
use nicpoll_sys::tell;

use crate::failure::{EXIT_INCONCLUSIVE, Failure, gated};
use crate::options::{StoreFile, number};
use crate::output;
use crate::reading::confined;

/// The edition whose figures `--ministat` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MinistatEdition {
    /// The edition in Linux packages, of 2015
    Linux,
    /// FreeBSD's current one: another median of an even count, and another relative error
    Freebsd,
}

/// What `--by` puts side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// The results of one study at several hosts: two or more studies of a store
    Host,
}

/// Options of `nicpoll study compare`.
#[derive(Args, Debug)]
#[command(after_help = include_str!("../help/study-compare-examples.txt"))]
pub struct CompareArgs {
    /// The reference: a file, or a study such as 7, last, 7:polling or 7:polling:udp64
    #[arg(value_name = "REFERENCE")]
    pub reference: String,
    /// The result to judge, likewise
    #[arg(value_name = "RESULT")]
    pub judged: String,
    /// With --by host: the studies of further hosts
    #[arg(value_name = "STUDY", requires = "by")]
    pub more: Vec<String>,
    /// Put the results of several hosts side by side, each from its own study
    #[arg(long, value_enum, conflicts_with_all = ["ministat", "less_is_better", "column"])]
    pub by: Option<By>,
    /// Exit with 3 when this is proven: worse, worse:5%, different or different:5%
    #[arg(long, value_name = "LIMIT", conflicts_with = "ministat")]
    pub fail_on: Option<FailOn>,
    /// Smaller values are better, such as times; for files
    #[arg(long, conflicts_with = "ministat")]
    pub less_is_better: bool,
    /// Compare two studies even if a setting's or workload's name means two things
    #[arg(long, conflicts_with = "ministat")]
    pub anyway: bool,
    /// Column of a table of numbers, from 1 [default: 1]
    #[arg(long, value_name = "N", value_parser = number::<usize>(1..))]
    pub column: Option<usize>,
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
    /// Also write one page that a browser shows; what FILE holds is replaced
    #[arg(long, value_name = "FILE", conflicts_with = "ministat")]
    pub report: Option<PathBuf>,
    /// Print one JSON object instead of text (docs/compare.md)
    #[arg(long)]
    pub json: bool,
}

/// Compares the results and returns the exit code.
pub fn run(args: &CompareArgs) -> Result<u8, Failure> {
    let open = |name: &str| OpenResult::named(name, || OpenStore::of(args.file.place()?));
    let (text_options, width) = (output::text_options(), output::terminal_width());
    let page = |document: &dyn Document| {
        let page = document.page();
        args.report.as_ref().map(|_| render_html(&page))
    };
    let (text, page, (code, said)) = confined(
        || {
            let names = [&args.reference, &args.judged].into_iter();
            let opened = names.chain(&args.more).map(|name| open(name));
            opened.collect::<Result<Vec<_>, _>>().map_err(Failure::from)
        },
        |opened| {
            let read = opened.into_iter().map(|one| one.read(args.column));
            let results = read.collect::<Result<Vec<ResultSource>, _>>()?;
            if args.by.is_some() {
                let compared = compare_hosts(&results, args.anyway, &output::origin())?;
                let text = output::rendered(&compared, args.json, &text_options);
                return Ok((text, page(&compared), of_hosts(args, &compared)));
            }
            let (reference, judged) = (&results[0], &results[1]);
            if let Some(edition) = args.ministat {
                let text = ministat(args, reference, judged, edition, width)?;
                return Ok((text, None, (0, None)));
            }
            let options = CompareOptions {
                less_is_better: args.less_is_better,
                anyway: args.anyway,
            };
            let compared = compare_results(reference, judged, options, &output::origin())?;
            let mut verdicts = compared.comparisons.iter().map(|one| one.verdict);
            let code = match &args.fail_on {
                Some(limit) => gated(&limit.of_results(&compared)),
                None if verdicts.any(Verdict::is_decided) => (0, None),
                None => (EXIT_INCONCLUSIVE, None),
            };
            let text = output::rendered(&compared, args.json, &text_options);
            Ok((text, page(&compared), code))
        },
    )?;
    output::print(&text)?;
    if let (Some(file), Some(page)) = (&args.report, page) {
        output::write_report(file, &page)?;
    }
    if let Some(said) = said {
        tell!("{said}");
    }
    Ok(code)
}

/// Returns the exit code of a comparison by host, with its reason.
fn of_hosts(args: &CompareArgs, compared: &HostsCompared) -> (u8, Option<String>) {
    let results = compared.comparisons.iter().flat_map(|one| &one.of_hosts);
    let mut verdicts = results.flatten().map(|result| result.verdict);
    match &args.fail_on {
        Some(limit) => gated(&limit.of_hosts(compared)),
        None if verdicts.any(Verdict::is_decided) => (0, None),
        None => (EXIT_INCONCLUSIVE, None),
    }
}

fn ministat(
    args: &CompareArgs,
    reference: &ResultSource,
    judged: &ResultSource,
    edition: MinistatEdition,
    width: Option<usize>,
) -> Result<String, Failure> {
    let (one, other) = (reference.numbers()?, judged.numbers()?);
    for (name, values) in [(&args.reference, &one), (&args.judged, &other)] {
        if values.len() < 3 {
            let fails = anyhow::anyhow!(
                "{name} has {} values, and ministat takes 3 or more",
                values.len()
            );
            return Err(Failure::Failed(fails));
        }
    }
    let edition = match edition {
        MinistatEdition::Linux => Edition::Linux,
        MinistatEdition::Freebsd => Edition::Freebsd,
    };
    let width = width.map_or(WIDTH, |columns| columns.saturating_sub(2).max(2));
    Ok(render_ministat(
        (&args.reference, &one),
        (&args.judged, &other),
        edition,
        width,
    ))
}
