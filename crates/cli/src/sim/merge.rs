//! `nicpoll sim merge`: the parts of a sweep as one.

use std::path::{Path, PathBuf};

use clap::Args;
use nicpoll_model::sim::{SimSweep, join};
pub use nicpoll_report::help::sim_merge::EXAMPLES;

use super::args::Form;
use super::{read_text, sweep};
use crate::failure::Failure;

/// Far more than a sweep's points take.
const PART_BYTES_MAX: u64 = 256 << 20;

/// Options of `nicpoll sim merge`.
#[derive(Args, Debug)]
pub struct MergeArgs {
    /// JSON of the parts
    #[arg(value_name = "FILE", required = true)]
    parts: Vec<PathBuf>,
    #[command(flatten)]
    form: Form,
}

pub fn run(args: &MergeArgs) -> Result<u8, Failure> {
    let parts: Result<Vec<SimSweep>, Failure> = args.parts.iter().map(|path| read(path)).collect();
    let joined = join(parts?).map_err(|error| {
        let file = error.part().and_then(|place| args.parts.get(place));
        Failure::Usage(match file {
            Some(file) => format!("{}: {error}", file.display()),
            None => error.to_string(),
        })
    })?;
    sweep::print(&joined, &args.form)?;
    Ok(0)
}

fn read(path: &Path) -> Result<SimSweep, Failure> {
    let text = read_text(path, "part of a sweep", PART_BYTES_MAX)?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::Usage(format!(
            "{}: this is not what `nicpoll sim sweep --shard I/N --json` of this version prints: {error}",
            path.display()
        ))
    })
}
