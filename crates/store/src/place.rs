//! Where studies are stored: a file, or a team's server.
//!
//! What must hold: no password is ever part of a place, which is printed and stored with the command line.

use std::convert::Infallible;
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::StoreError;

/// Where studies are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An SQLite file.
    File(PathBuf),
    /// A PostgreSQL server, by its URL.
    Server(String),
}

/// How the URL of a PostgreSQL server begins.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

impl Place {
    /// The file without `--store`: in the user's data folder (XDG Base Directory Specification).
    ///
    /// # Errors
    /// When the environment does not say where that is.
    pub fn of_user() -> Result<Self, StoreError> {
        let file = file_in(env::var_os("XDG_DATA_HOME"), env::var_os("HOME"));
        Ok(Place::File(file.ok_or(StoreError::NoFolder)?))
    }
}

/// The specification has relative paths ignored.
fn file_in(data: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let is_absolute = |path: &PathBuf| path.is_absolute();
    let data = data.map(PathBuf::from).filter(is_absolute);
    let home = home.map(PathBuf::from).filter(is_absolute);
    let folder = data.or_else(|| Some(home?.join(".local/share")))?;
    Some(folder.join("nicpoll").join("studies.db"))
}

impl FromStr for Place {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let is_server = SCHEMES.iter().any(|scheme| text.starts_with(scheme));
        Ok(match is_server {
            true => Place::Server(String::from(text)),
            false => Place::File(PathBuf::from(text)),
        })
    }
}

impl From<&Path> for Place {
    fn from(path: &Path) -> Self {
        Place::File(path.to_owned())
    }
}

impl From<&PathBuf> for Place {
    fn from(path: &PathBuf) -> Self {
        Place::File(path.clone())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File(path) => write!(f, "{}", path.display()),
            Place::Server(url) => f.write_str(&without_password(url)),
        }
    }
}

/// A URL that was refused for its password is told without it.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return String::from(url);
    };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((user, _)) => {
            let name = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{name}{}", &rest[user.len()..])
        }
        None => String::from(url),
    }
}

/// Whether a URL holds a password.
#[cfg(feature = "postgres")]
pub(crate) fn has_password(url: &str) -> bool {
    without_password(url) != url || url.contains("password=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_lies_in_the_users_data_folder() {
        let file = |data: Option<&str>, home: Option<&str>| {
            let file = file_in(data.map(OsString::from), home.map(OsString::from));
            file.map(|path| path.display().to_string())
        };
        assert_eq!(
            file(Some("/d"), Some("/h")).unwrap(),
            "/d/nicpoll/studies.db"
        );
        let in_home = "/h/.local/share/nicpoll/studies.db";
        assert_eq!(file(None, Some("/h")).unwrap(), in_home);
        assert_eq!(file(Some("relative"), Some("/h")).unwrap(), in_home);
        assert_eq!(file(Some(""), Some("")), None);
        assert_eq!(file(None, None), None);
    }

    #[test]
    fn a_server_is_told_from_a_file_and_printed_without_its_password() {
        let place = |text: &str| text.parse::<Place>().unwrap();
        assert_eq!(
            place("a/postgres.db"),
            Place::from(Path::new("a/postgres.db"))
        );
        for (url, printed) in [
            ("postgres://ann@db/net", "postgres://ann@db/net"),
            (
                "postgresql://ann:s:e@cret@db:1/n",
                "postgresql://ann@db:1/n",
            ),
            (
                "postgres:///net?host=/run/a@b",
                "postgres:///net?host=/run/a@b",
            ),
        ] {
            assert!(matches!(place(url), Place::Server(_)), "{url}");
            assert_eq!(place(url).to_string(), printed);
        }
    }
}
