//! Options and files that several commands take: the store of studies, host files of the simulator, times.

use std::net::SocketAddr;
use std::ops::{Bound, RangeBounds, RangeInclusive};
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use nicpoll_model::units::parse_seconds;
use nicpoll_sim::{EmbeddedHost, HostModel};
use nicpoll_store::{OpenStore, Store, StoreError, StorePlace};
use nicpoll_sys::{stdio, tell};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::reading::confined;

/// The machine on which a command runs.
#[derive(Args, Debug)]
pub struct There {
    /// Run it on another machine, reached by ssh without a password: root@box2 (docs/hosts.md). Files are that machine's
    #[arg(long, value_name = "HOST", value_parser = NonEmptyStringValueParser::new())]
    pub host: Option<String>,
}

/// Where studies are stored.
#[derive(Args, Debug)]
pub struct StoreFile {
    /// File of the studies, or a team's server: postgres://HOST/DATABASE [default: studies.db in the data
    /// folder, see docs/store.md]
    #[arg(long, value_name = "FILE")]
    pub store: Option<StorePlace>,
}

impl StoreFile {
    /// Returns the named store, or the user's.
    pub fn place(&self) -> Result<StorePlace, StoreError> {
        self.store.clone().map_or_else(StorePlace::of_user, Ok)
    }

    /// Returns the store to write. The folder of a named file must exist.
    fn place_to_write(&self) -> Result<StorePlace, Failure> {
        if let Some(StorePlace::File(file)) = &self.store {
            let folder = file.parent().filter(|it| !it.as_os_str().is_empty());
            if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
                return Err(Failure::Usage(format!(
                    "--store {}: there is no folder {1}; make it with 'mkdir -p {1}', or name a file elsewhere",
                    file.display(),
                    folder.display()
                )));
            }
        }
        Ok(self.place()?)
    }

    /// Opens the store for writing.
    pub fn to_write(&self) -> Result<Store, Failure> {
        let store = Store::to_write(self.place_to_write()?)?;
        if let Some(migration) = store.migration() {
            tell!("nicpoll: {}: {migration}", store.place());
        }
        Ok(store)
    }

    /// Changes the store at once, in a process without rights.
    pub fn change<T: Serialize + DeserializeOwned>(
        &self,
        change: impl FnOnce(Store) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let place = self.place_to_write()?;
        let open = || Ok(OpenStore::to_write(place.clone())?.alone()?);
        let changed = confined(open, |opened: OpenStore| {
            let store = opened.store()?;
            let told = store.migration().map(ToString::to_string);
            Ok((change(store)?, told))
        });
        OpenStore::remove_journal(&place);
        let (changed, told) = changed?;
        if let Some(migration) = told {
            tell!("nicpoll: {place}: {migration}");
        }
        Ok(changed)
    }
}

/// Limit for host files, published tables and fit plans.
pub const FILE_BYTES_MAX: u64 = 1 << 20;
/// The name of host files in messages.
pub const HOST_FILE: &str = "host file";

/// Reads a host file, or the built-in host of that name.
pub fn read_host(path: &Path) -> Result<HostModel, Failure> {
    let carried = path
        .to_str()
        .filter(|_| !path.exists())
        .and_then(EmbeddedHost::named);
    if let Some(carried) = carried {
        let parsed = HostModel::parse(carried.text);
        return parsed.map_err(|error| at_line(path, error.line, &error.message));
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

/// Parses the text of a host file in a process without rights, which returns its numbers.
pub fn parse_host(path: &Path, text: &str) -> Result<HostModel, Failure> {
    let mut host = HostModel::default();
    let read = |()| {
        let read =
            HostModel::parse(text).map_err(|error| at_line(path, error.line, &error.message))?;
        let names = HostModel::FIELDS.iter().map(|field| field.name);
        let numbers = names.filter_map(|name| Some((String::from(name), read.get(name)?)));
        // The default of an omitted number may be out of its range.
        let numbers = numbers.filter(|(name, number)| host.get(name) != Some(*number));
        Ok((read.name.clone(), numbers.collect::<Vec<_>>()))
    };
    let (name, numbers) = confined(|| Ok(()), read)?;
    host.name = name;
    for (name, number) in numbers {
        host.set(&name, number).map_err(usage)?;
    }
    Ok(host)
}

/// Reads the text of a file of at most `bytes_max` bytes; messages call it `what`.
pub fn read_text(path: &Path, what: &str, bytes_max: u64) -> Result<String, Failure> {
    stdio::read_text(path, bytes_max).map_err(|error| {
        let shown = path.display();
        Failure::Usage(format!("cannot read the {what} {shown}: {error}"))
    })
}

/// Returns the failure of a wrong line in a file.
pub fn at_line(path: &Path, line: usize, message: &str) -> Failure {
    Failure::Usage(format!("{}:{line}: {message}", path.display()))
}

/// Makes an error one of usage.
pub fn usage(error: impl ToString) -> Failure {
    Failure::Usage(error.to_string())
}

/// Parses a time within the bounds; the error of any other is `expected`.
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

/// Returns the parser of a whole number within the bounds, which is named when something else was given.
pub fn number<T: TryFrom<u64> + 'static>(
    bounds: impl RangeBounds<u64> + 'static,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    let least = match bounds.start_bound() {
        Bound::Included(least) => *least,
        _ => 0,
    };
    let most = match bounds.end_bound() {
        Bound::Included(most) => *most,
        _ => u64::MAX >> (u64::BITS - 8 * size_of::<T>() as u32),
    };
    move |text: &str| {
        let number: Option<u64> = text.parse().ok();
        let number = number.filter(|number| (least..=most).contains(number));
        number
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| format!("a whole number from {least} to {most} was expected"))
    }
}

/// Returns the parser of a value that reads itself; the error is that it was `expected`.
pub fn parsed<T: FromStr + 'static>(
    expected: &'static str,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text: &str| {
        let value = text.parse();
        value.map_err(|_| format!("{expected} was expected"))
    }
}

/// Minimum letters of a token.
const TOKEN_MIN: usize = 16;
const TOKEN_MAX: usize = 256;

/// Parses the address of a server.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    parsed("an address with a port, such as 127.0.0.1:8077 or [::1]:8077")(text)
}

/// Reads the token that strangers need.
pub fn token_of(file: &Path) -> Result<String, Failure> {
    let text = read_text(file, "token file", TOKEN_MAX as u64)?;
    let token = text.trim();
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_".contains(it);
    if token.len() < TOKEN_MIN || !token.chars().all(is_plain) {
        let file = file.display();
        return Err(Failure::Usage(format!(
            "the token file {file} has to hold one word of {TOKEN_MIN} letters, digits, '-' or '_' at least: \
             'openssl rand -hex 16' makes one"
        )));
    }
    Ok(String::from(token))
}

/// Parses an interval. Shorter ones would be most of the load, and nobody waits for longer ones.
pub fn parse_interval(text: &str) -> Result<Duration, String> {
    let bounds = Duration::from_millis(100)..=Duration::from_secs(3600);
    time_within(text, bounds, "an interval is 100ms to an hour")
}

/// Returns a time in ns, saturated.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
