//! Leaving the terminal: a process of its own, in a session of its own.
//!
//! What must hold: the process that was called ends only when the one in the background is up or has
//! failed, and says which; until then errors still reach the terminal.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};

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
