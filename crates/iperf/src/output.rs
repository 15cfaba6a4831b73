//! Where what happens is told, whatever the format.

mod enhanced;
pub(crate) mod json;
pub(crate) mod printer;
mod sum;

use std::io;

use crate::options::Common;
use crate::{Connected, IntervalRecord};

use self::json::{Asked, JsonPrinter};
use self::printer::{Manner, Printer};
use crate::command::{Account, open_output};
use crate::events::{Event, Failed, StreamKey};
use crate::total::Total;

/// Tells what happens, as soon as it does.
pub trait Output: Send {
    /// The settings, in words.
    fn banner(&mut self, banner: &str) -> io::Result<()>;
    /// A stream has a peer.
    fn connected(&mut self, key: StreamKey, connected: &Connected) -> io::Result<()>;
    /// An interval of a stream has ended.
    fn interval(&mut self, key: StreamKey, record: &IntervalRecord) -> io::Result<()>;
    /// A stream has ended well.
    fn finished(&mut self, key: StreamKey, total: &Total) -> io::Result<()>;
    /// A stream has ended otherwise: for a reason that standard error knows already, or because it was
    /// told to.
    fn failed(&mut self, key: StreamKey, why: Option<&str>) -> io::Result<()>;
    /// There are no streams, for a reason that standard error knows already.
    fn gave_up(&mut self, why: &str) -> io::Result<()>;
    /// Everything has ended.
    fn end(&mut self) -> io::Result<()>;
}

/// What the command line asks for.
///
/// # Errors
/// When the output file cannot be made.
pub fn open(
    common: &Common,
    asked: Asked<'_>,
    manner: Manner,
    account: Option<Account>,
) -> io::Result<Box<dyn Output>> {
    let out = open_output(common)?;
    Ok(match common.json {
        Some(form) => Box::new(JsonPrinter::new(form, asked, account, out)),
        None => Box::new(Printer::new(manner, out)),
    })
}

impl dyn Output {
    /// Tells of an event; standard error of a failure. Whether it was one.
    pub fn tell(&mut self, event: Event) -> io::Result<bool> {
        match event {
            Event::Settings(text) => self.banner(&text)?,
            Event::Connected(key, connected) => self.connected(key, &connected)?,
            Event::Interval(key, record) => self.interval(key, &record)?,
            Event::Finished(key, Ok(total)) => self.finished(key, &total)?,
            Event::Finished(key, Err(Failed::Cancelled)) => self.failed(key, None)?,
            Event::Finished(key, Err(Failed::Because(text))) => {
                eprintln!("{text}");
                self.failed(key, Some(&text))?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Output for Printer {
    fn banner(&mut self, banner: &str) -> io::Result<()> {
        Printer::banner(self, banner)
    }

    fn connected(&mut self, key: StreamKey, connected: &Connected) -> io::Result<()> {
        Printer::connected(self, key, connected)
    }

    fn interval(&mut self, key: StreamKey, record: &IntervalRecord) -> io::Result<()> {
        Printer::interval(self, key, record)
    }

    fn finished(&mut self, key: StreamKey, total: &Total) -> io::Result<()> {
        Printer::finished(self, key, total)
    }

    fn failed(&mut self, key: StreamKey, _: Option<&str>) -> io::Result<()> {
        Printer::failed(self, key)
    }

    fn gave_up(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        Printer::end(self)
    }
}
