//! `nicpoll study compare`: two results side by side.

use clap::{Args, ValueEnum};
use nicpoll_model::Verdict;
use nicpoll_report::ministat::{Edition, WIDTH, render_ministat};
use nicpoll_store::OpenStore;
use nicpoll_study::{CompareOptions, FailOn, OpenResult, ResultSource, compare_results};
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
    /// Print one JSON object instead of text (docs/compare.md)
    #[arg(long)]
    pub json: bool,
}

/// Compares the two and returns the exit code.
pub fn run(args: &CompareArgs) -> Result<u8, Failure> {
    let open = |name: &str| OpenResult::named(name, || OpenStore::of(args.file.place()?));
    let (text_options, width) = (output::text_options(), output::terminal_width());
    let (text, (code, said)) = confined(
        || Ok((open(&args.reference)?, open(&args.judged)?)),
        |(reference, judged)| {
            let (reference, judged) = (reference.read(args.column)?, judged.read(args.column)?);
            if let Some(edition) = args.ministat {
                return Ok((
                    ministat(args, &reference, &judged, edition, width)?,
                    (0, None),
                ));
            }
            let options = CompareOptions {
                less_is_better: args.less_is_better,
                anyway: args.anyway,
            };
            let compared = compare_results(&reference, &judged, options, &output::origin())?;
            let mut verdicts = compared.comparisons.iter().map(|one| one.verdict);
            let code = match &args.fail_on {
                Some(limit) => gated(&limit.of_results(&compared)),
                None if verdicts.any(Verdict::is_decided) => (0, None),
                None => (EXIT_INCONCLUSIVE, None),
            };
            Ok((output::rendered(&compared, args.json, &text_options), code))
        },
    )?;
    output::print(&text)?;
    if let Some(said) = said {
        tell!("{said}");
    }
    Ok(code)
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
