//! Standard output, which carries results only.

use std::io::{self, Write};

use anyhow::Context;

/// Writes to standard output and flushes it. A reader that has seen enough is no failure.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("writing to standard output"),
    }
}
