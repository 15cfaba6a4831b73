//! `nicpoll study compare`: two results side by side.

use nicpoll_model::Compared;
use nicpoll_report::ministat::{Edition, WIDTH, render_ministat};
use nicpoll_report::{render_compared_text, render_document};
use nicpoll_store::Store;
use nicpoll_study::{ResultSource, compare_results};

use super::args::{CompareArgs, MinistatEdition};
use crate::failure::{EXIT_INCONCLUSIVE, Failure, gated};
use crate::output;

/// Compares them and returns the exit code.
pub fn run(args: &CompareArgs) -> Result<u8, Failure> {
    let read =
        |name: &str| ResultSource::read(name, args.column, || Store::to_read(args.file.place()?));
    let (reference, judged) = (read(&args.reference)?, read(&args.judged)?);
    if let Some(edition) = args.ministat {
        return ministat(args, &reference, &judged, edition);
    }
    let compared = compare_results(&reference, &judged, args.less_is_better, &output::origin())?;
    output::print(&match args.json {
        true => render_document(&compared),
        false => render_compared_text(&compared, &output::text_options()),
    })?;
    Ok(match &args.fail_on {
        Some(limit) => gated(limit.of_results(&compared)),
        None if is_decided(&compared) => 0,
        None => EXIT_INCONCLUSIVE,
    })
}

fn is_decided(compared: &Compared) -> bool {
    compared
        .comparisons
        .iter()
        .any(|one| one.verdict.is_decided())
}

fn ministat(
    args: &CompareArgs,
    reference: &ResultSource,
    judged: &ResultSource,
    edition: MinistatEdition,
) -> Result<u8, Failure> {
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
    let width = output::terminal_width().map_or(WIDTH, |columns| columns.saturating_sub(2).max(2));
    let text = render_ministat(
        (&args.reference, &one),
        (&args.judged, &other),
        edition,
        width,
    );
    output::print(&text)?;
    Ok(0)
}
