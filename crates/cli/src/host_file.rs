//! Host files of the simulator, and other small files that describe something.

use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow};
use nicpoll_sim::{EmbeddedHost, Host};

use crate::failure::Failure;

/// A host file, a table or a plan of a fit that is longer than this is none.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// What a file that describes a host is called.
pub const HOST_FILE: &str = "host file";

/// A host file, or the host of that name that the program carries.
pub fn read_host(path: &Path) -> Result<Host, Failure> {
    let carried = path
        .to_str()
        .filter(|_| !path.exists())
        .and_then(EmbeddedHost::named);
    if let Some(carried) = carried {
        return parse_host(path, carried.text);
    }
    if !path.exists() {
        return Err(Failure::Failed(anyhow!(
            "cannot read the host file {}: there is none, and the program has no host of that name; 'nicpoll sim \
             hosts' lists those that it has",
            path.display()
        )));
    }
    parse_host(path, &read_text(path, HOST_FILE)?)
}

/// What such a file describes.
pub fn parse_host(path: &Path, text: &str) -> Result<Host, Failure> {
    Host::parse(text).map_err(|error| at_line(path, error.line, &error.message))
}

/// The text of a file that is to be `what`.
pub fn read_text(path: &Path, what: &str) -> Result<String, Failure> {
    let shown = path.display();
    let found = fs::metadata(path).and_then(|file| {
        let is_read = file.len() <= FILE_BYTES_MAX;
        is_read.then(|| fs::read_to_string(path)).transpose()
    });
    let text = found.with_context(|| format!("cannot read the {what} {shown}"))?;
    text.ok_or_else(|| {
        Failure::Usage(format!(
            "{shown} is longer than {FILE_BYTES_MAX} bytes: this is no {what}"
        ))
    })
}

/// What is wrong with a line of a file.
pub fn at_line(path: &Path, line: usize, message: &str) -> Failure {
    Failure::Usage(format!("{}:{line}: {message}", path.display()))
}
