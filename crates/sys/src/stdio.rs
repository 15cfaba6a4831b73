//! Standard output and error, files named by users, and detaching from the terminal.
//!
//! Results go to standard output. An error of standard output tells a reader that is gone, such as `head` after its
//! last line, from any other broken pipe or socket. Output may contain words of strangers: names, command lines, files.
//! So every way of printing makes visible what a terminal would obey or hide ([`visible`]). Everything else goes to
//! standard error, where a failure to write changes nothing. Opening a file never blocks, and reading is limited.
//! [`detach`] starts a process in the background; the foreground process ends once that one is up or has failed.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::{self, Display};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use crate::kernel::fork;

/// Standard output. Its errors are recognisable as such.
#[derive(Clone, Copy, Debug, Default)]
pub struct StandardOutput;

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let shown = visible(&text, false);
        let written = io::stdout().lock().write_all(shown.as_bytes());
        written.map(|()| bytes.len()).map_err(own)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().lock().flush().map_err(own)
    }
}

/// Writes a whole text at once.
///
/// # Errors
/// A failure to write; see [`reader_is_gone`].
pub fn print(text: &str) -> io::Result<()> {
    let mut out = StandardOutput;
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes coloured text, like [`print()`]. Colours are the only control sequences that pass.
///
/// # Errors
/// As [`print()`].
pub fn print_coloured(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(visible(text, true).as_bytes());
    written.and_then(|()| out.flush()).map_err(own)
}

/// Escapes, in JSON's form `\u202e`, control and invisible characters: those that move a terminal's cursor, change its
/// state or the direction of writing, or have no width. Tab and newline stay. A JSON document keeps its meaning.
pub fn visible(text: &str, may_colour: bool) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(is_hidden) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let kept = colour_length(rest).filter(|_| may_colour).unwrap_or(0);
        shown.push_str(&rest[..kept]);
        rest = &rest[kept..];
        let mut chars = rest.chars();
        if let Some(hidden) = chars.next().filter(|_| kept == 0) {
            for unit in hidden.encode_utf16(&mut [0; 2]) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
            rest = chars.as_str();
        }
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

fn is_hidden(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        // Direction marks, joiners and other zero-width characters, line separators, and tags.
        '\u{061c}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => true,
        _ => letter.is_control(),
    }
}

/// Returns the bytes of the colour sequence (SGR of ECMA-48) at the start of a text.
fn colour_length(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    numbers[end..].starts_with('m').then_some(end + 3)
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

/// Writes a line like `eprintln!`, but does not panic if that fails.
#[macro_export]
macro_rules! tell {
    ($($words:tt)*) => {
        $crate::stdio::print_error(::std::format_args!("{}\n", ::std::format_args!($($words)*)))
    };
}

/// Writes a whole text at once, which keeps the lines of several threads apart.
pub fn print_error(text: impl Display) {
    let _ = try_print_error(&text.to_string());
}

/// Writes to standard error like [`print_error`], for results.
///
/// # Errors
/// A failure to write.
pub fn try_print_error(text: &str) -> io::Result<()> {
    let mut out = io::stderr().lock();
    out.write_all(visible(text, false).as_bytes())
}

/// Which of the two processes this is after [`detach`].
#[derive(Debug)]
pub enum Detached {
    /// The original process.
    Foreground(Starting),
    /// The new process in the background.
    Background(Daemon),
}

/// A background process that may not be up yet.
#[derive(Debug)]
pub struct Starting {
    ready: PipeReader,
}

/// This process, in the background.
#[derive(Debug)]
pub struct Daemon {
    ready: PipeWriter,
}

/// Starts a background process that inherits everything open.
///
/// # Errors
/// If this process has more than one thread: the others would be missing in the background process, and locks that they
/// held would stay locked. If the kernel makes no process.
pub fn detach() -> io::Result<Detached> {
    let (reader, writer) = io::pipe()?;
    if fork()?.is_some() {
        return Ok(Detached::Foreground(Starting { ready: reader }));
    }
    drop(reader);
    rustix::process::setsid()?;
    Ok(Detached::Background(Daemon { ready: writer }))
}

impl Starting {
    /// Waits until the background process is up; `false` if it ended before.
    ///
    /// # Errors
    /// If the pipe between the two cannot be read.
    pub fn is_up(mut self) -> io::Result<bool> {
        Ok(self.ready.read(&mut [0])? == 1)
    }
}

impl Daemon {
    /// Leaves the terminal and the working directory, and lets the foreground process end. Later output goes to `log`,
    /// or is discarded.
    ///
    /// # Errors
    /// If `/dev/null` cannot be opened, or a descriptor cannot be replaced.
    pub fn settle(mut self, log: Option<File>) -> io::Result<()> {
        let null = File::options().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        let log = log.unwrap_or(null);
        rustix::stdio::dup2_stdout(&log)?;
        rustix::stdio::dup2_stderr(&log)?;
        rustix::process::chdir("/")?;
        match self.ready.write_all(&[1]) {
            // The foreground process may have been killed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            outcome => outcome,
        }
    }
}

/// Bytes per MiB.
const MIB: u64 = 1 << 20;

/// Reads a regular file.
///
/// # Errors
/// Also for anything but a regular file, which the error names, and [`ErrorKind::FileTooLarge`] beyond `bytes_max`.
pub fn read_bytes(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    // Opening a FIFO would wait for a writer.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    let facts = file.metadata()?;
    let kind = facts.file_type();
    let kinds = [
        (kind.is_dir(), "directory"),
        (kind.is_fifo(), "FIFO"),
        (!kind.is_file(), "device"),
    ];
    if let Some((_, what)) = kinds.iter().find(|(is_it, _)| *is_it) {
        let why = format!("it is a {what}, not a regular file");
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    let mut bytes = Vec::with_capacity(facts.len().min(bytes_max) as usize + 1);
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let why = match bytes_max.is_multiple_of(MIB) {
            true => format!("it is longer than {} MiB", bytes_max / MIB),
            false => format!("it is longer than {bytes_max} bytes"),
        };
        return Err(io::Error::new(ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// Reads a regular file as text.
///
/// # Errors
/// As [`read_bytes`]; also if the file is not UTF-8, with the line.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(read_bytes(path, bytes_max)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let line = 1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count();
        let byte = bytes[at];
        let why = format!("line {line} is not text in UTF-8: it has the byte {byte:#04x}");
        io::Error::new(ErrorKind::InvalidData, why)
    })
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
    fn what_a_terminal_would_obey_or_hide_is_shown() {
        let plain = "a µ 漢\tb\n";
        assert!(matches!(visible(plain, false), Cow::Borrowed(text) if text == plain));
        for (text, shown) in [
            ("a\u{1b}[2Jb", "a\\u001b[2Jb"),
            (
                "a\rb\u{7}\u{7f}\u{9b}31m",
                "a\\u000db\\u0007\\u007f\\u009b31m",
            ),
            ("gpj\u{202e}.exe\u{2066}", "gpj\\u202e.exe\\u2066"),
            ("\u{feff}\u{e0041}", "\\ufeff\\udb40\\udc41"),
            ("\u{1b}[31mred", "\\u001b[31mred"),
        ] {
            assert_eq!(visible(text, false), shown);
        }
        let coloured = visible("\u{1b}[1;31mred\u{1b}[0m \u{1b}[2J\u{1b}]0;x\u{7}", true);
        let colours = "\u{1b}[1;31mred\u{1b}[0m \\u001b[2J\\u001b]0;x\\u0007";
        assert_eq!(coloured, colours);
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

    #[test]
    fn only_a_regular_file_within_the_limit_is_read() {
        let folder = std::env::temp_dir().join(format!("nicpoll-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let fifo = folder.join("fifo");
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, mode, 0).unwrap();
        let text = folder.join("text");
        std::fs::write(&text, b"one\ntwo\xff\n").unwrap();
        let long = folder.join("long");
        File::create(&long).unwrap().set_len(MIB + 1).unwrap();
        for (path, most, words) in [
            (&*folder, 9, "it is a directory, not a regular file"),
            (&*fifo, 9, "it is a FIFO, not a regular file"),
            (Path::new("/dev/zero"), 9, "it is a device, not a"),
            (&*text, 8, "it is longer than 8 bytes"),
            (&*long, MIB, "it is longer than 1 MiB"),
            (
                &*text,
                9,
                "line 2 is not text in UTF-8: it has the byte 0xff",
            ),
        ] {
            let told = read_text(path, most).unwrap_err().to_string();
            assert!(told.starts_with(words), "{}: {told}", path.display());
        }
        assert_eq!(read_bytes(&text, 9).unwrap().len(), 9);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
