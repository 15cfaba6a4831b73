//! Standard output, where results go.
//!
//! What must hold: whoever writes here can tell a reader that is gone, as `head` is after its last line, from
//! every other pipe and socket that breaks. The error keeps its kind, so that a full disk stays one.

use std::error::Error;
use std::fmt;
use std::io::{self, Write};

/// Standard output. Its errors say that they are its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct StandardOutput;

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stdout().lock().write(bytes).map_err(own)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().lock().flush().map_err(own)
    }
}

/// Writes a text at once, as a whole.
///
/// # Errors
/// Why it could not be written; see [`reader_is_gone`].
pub fn print(text: &str) -> io::Result<()> {
    let mut out = StandardOutput;
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Whether the error is that nobody reads standard output any more.
pub fn reader_is_gone(error: &(dyn Error + 'static)) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| {
        let is_own = error
            .get_ref()
            .is_some_and(|inner| inner.is::<OutputError>());
        is_own && error.kind() == io::ErrorKind::BrokenPipe
    })
}

/// An error of standard output.
#[derive(Debug)]
struct OutputError(io::Error);

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "writing to standard output: {}", self.0)
    }
}

impl Error for OutputError {}

fn own(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), OutputError(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_broken_pipe_is_a_reader_that_is_gone() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(reader_is_gone(&own(broken())));
        assert!(!reader_is_gone(&broken()), "a socket's");
        let full = own(io::Error::from(io::ErrorKind::StorageFull));
        assert!(!reader_is_gone(&full));
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        assert!(full.to_string().starts_with("writing to standard output: "));
    }
}
