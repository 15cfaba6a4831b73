//! What several commands take: the store of studies, host files of the simulator, other small files.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use nicpoll_model::units::parse_seconds;
use nicpoll_sim::{EmbeddedHost, HostModel};
use nicpoll_store::{Place, Store, StoreError};
use nicpoll_sys::{stdio, tell};

use crate::failure::Failure;

/// Where studies are stored.
#[derive(Args, Debug)]
pub struct StoreFile {
    /// File of the studies, or a team's server: postgres://HOST/DATABASE [default: studies.db in the data
    /// folder, see docs/store.md]
    #[arg(long, value_name = "FILE")]
    pub store: Option<Place>,
}

impl StoreFile {
    /// The one that was named, or that of the user.
    pub fn place(&self) -> Result<Place, StoreError> {
        self.store.clone().map_or_else(Place::of_user, Ok)
    }

    /// Opens it to write. The folder of a file that was named has to be there.
    pub fn to_write(&self) -> Result<Store, Failure> {
        if let Some(Place::File(file)) = &self.store {
            let folder = file.parent().filter(|it| !it.as_os_str().is_empty());
            if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
                return Err(Failure::Usage(format!(
                    "--store {}: there is no folder {1}; make it with 'mkdir -p {1}', or name a file elsewhere",
                    file.display(),
                    folder.display()
                )));
            }
        }
        let store = Store::to_write(self.place()?)?;
        if let Some(migration) = store.migration() {
            tell!("nicpoll: {}: {migration}", store.place());
        }
        Ok(store)
    }
}

/// A host file, a table or a plan of a fit that is longer than this is none.
pub const FILE_BYTES_MAX: u64 = 1 << 20;
/// What a file that describes a host is called.
pub const HOST_FILE: &str = "host file";

/// A host file, or the host of that name that the program carries.
pub fn read_host(path: &Path) -> Result<HostModel, Failure> {
    let carried = path
        .to_str()
        .filter(|_| !path.exists())
        .and_then(EmbeddedHost::named);
    if let Some(carried) = carried {
        return parse_host(path, carried.text);
    }
    if !path.exists() {
        return Err(Failure::Usage(format!(
            "cannot read the host file {}: there is none, and the program has no host of that name; 'nicpoll sim \
             hosts' lists those that it has",
            path.display()
        )));
    }
    parse_host(path, &read_text(path, HOST_FILE, FILE_BYTES_MAX)?)
}

/// What such a file describes.
pub fn parse_host(path: &Path, text: &str) -> Result<HostModel, Failure> {
    HostModel::parse(text).map_err(|error| at_line(path, error.line, &error.message))
}

/// The text of a file that is to be `what`, of so many bytes at most.
pub fn read_text(path: &Path, what: &str, bytes_max: u64) -> Result<String, Failure> {
    stdio::read_text(path, bytes_max).map_err(|error| {
        let shown = path.display();
        Failure::Usage(format!("cannot read the {what} {shown}: {error}"))
    })
}

/// What is wrong with a line of a file.
pub fn at_line(path: &Path, line: usize, message: &str) -> Failure {
    Failure::Usage(format!("{}:{line}: {message}", path.display()))
}

/// Wrong usage, as the error says.
pub fn usage(error: impl ToString) -> Failure {
    Failure::Usage(error.to_string())
}

/// Reads a time within these bounds; `expected` is said of any other.
pub fn time_within(
    text: &str,
    bounds: RangeInclusive<Duration>,
    expected: &str,
) -> Result<Duration, String> {
    let time = parse_seconds(text).map_err(|error| error.to_string())?;
    bounds
        .contains(&time)
        .then_some(time)
        .ok_or_else(|| String::from(expected))
}

/// A time in ns; the longest that fits where it is longer.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
