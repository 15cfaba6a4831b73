//! Standard output and error, and leaving the terminal.
//!
//! Results go to standard output. Whoever writes there can tell a reader that is gone, such as `head` after its last line,
//! from any other broken pipe or socket. Everything else goes to standard error, and a failure to write there changes
//! nothing. [`detach`] starts a process in the background; the one that was called ends once that one is up or has failed.

use std::error::Error;
use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};

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

/// Writes a line as `eprintln!` does, which panics when it cannot.
#[macro_export]
macro_rules! tell {
    ($($words:tt)*) => {
        $crate::stdio::print_error(::std::format_args!("{}\n", ::std::format_args!($($words)*)))
    };
}

/// Writes a text at once, as a whole, so that the lines of several threads do not mix.
pub fn print_error(text: impl Display) {
    let _ = io::stderr().lock().write_all(text.to_string().as_bytes());
}

/// Which of the two processes this is.
#[derive(Debug)]
pub enum Detached {
    /// The one that was called.
    Foreground(Starting),
    /// The one in the background.
    Background(Daemon),
}

/// A process in the background that may not be up yet.
#[derive(Debug)]
pub struct Starting {
    ready: PipeReader,
}

/// This process, in the background.
#[derive(Debug)]
pub struct Daemon {
    ready: PipeWriter,
}

/// Makes a process in the background, with everything that this one has open.
///
/// # Errors
/// When there is more than one thread: the others would be missing in the background, with whatever
/// they held locked. When the kernel makes no process.
pub fn detach() -> io::Result<Detached> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other(
            "a process with several threads cannot be sent to the background",
        ));
    }
    let (reader, writer) = io::pipe()?;
    // SAFETY: this is the process's only thread, so that the new process has all of them: no lock is
    // held by a thread that is not there, and what would be sound here is sound there.
    match unsafe { libc::fork() } {
        ..0 => Err(io::Error::last_os_error()),
        0 => {
            drop(reader);
            rustix::process::setsid()?;
            Ok(Detached::Background(Daemon { ready: writer }))
        }
        _ => Ok(Detached::Foreground(Starting { ready: reader })),
    }
}

impl Starting {
    /// Waits until the process in the background is up; `false` when it ended before.
    ///
    /// # Errors
    /// When the pipe between the two cannot be read.
    pub fn is_up(mut self) -> io::Result<bool> {
        Ok(self.ready.read(&mut [0])? == 1)
    }
}

impl Daemon {
    /// Lets go of the terminal and of the working directory, and lets the process that was called end.
    /// What is printed from now on goes to `log`, or nowhere.
    ///
    /// # Errors
    /// When `/dev/null` cannot be opened, or a descriptor not be replaced.
    pub fn settle(mut self, log: Option<File>) -> io::Result<()> {
        let null = File::options().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        let log = log.unwrap_or(null);
        rustix::stdio::dup2_stdout(&log)?;
        rustix::stdio::dup2_stderr(&log)?;
        rustix::process::chdir("/")?;
        match self.ready.write_all(&[1]) {
            // Whoever called may have been killed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            outcome => outcome,
        }
    }
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

    #[test]
    fn a_process_with_threads_stays_where_it_is() {
        // The test runs beside the thread that waits for it.
        let error = detach().unwrap_err();
        assert!(error.to_string().contains("several threads"), "{error}");
    }

    #[test]
    fn whoever_waits_learns_whether_it_is_up() {
        let pair = || {
            let (reader, writer) = io::pipe().unwrap();
            (Starting { ready: reader }, writer)
        };
        let (starting, mut writer) = pair();
        writer.write_all(&[1]).unwrap();
        assert!(starting.is_up().unwrap());
        let (starting, writer) = pair();
        drop(writer);
        assert!(!starting.is_up().unwrap());
    }
}
