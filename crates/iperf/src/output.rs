//! Where what happens is told, whatever the format.

mod descriptors;
mod enhanced;
#[cfg(test)]
mod golden;
pub(crate) mod json;
mod manner;
mod printer;
mod runs;
mod sum;

use std::io;

use crate::{Connected, IntervalRecord};

use nicpoll_model::Way;
use nicpoll_sys::{stdio, tell};
use nicpoll_traffic::{CloseAccount, losses};

use self::json::{Asked, JsonPrinter};
use self::manner::Manner;
use self::printer::{Printer, local_time};
pub use self::runs::{RunTotal, Runs};
use crate::command::open_output;
use crate::events::{Event, Failed, StreamKey};
use crate::options::ServerOptions;
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

    /// Tells of an event; standard error of a failure. Whether it was one.
    fn tell(&mut self, event: Event) -> io::Result<bool> {
        match event {
            Event::Settings(text) => self.banner(&text)?,
            Event::Connected(key, connected) => self.connected(key, &connected)?,
            Event::Interval(key, record) => self.interval(key, &record)?,
            Event::Finished(key, outcome) => return self.ended(key, *outcome),
        }
        Ok(false)
    }

    /// Tells how a stream ended; whether it failed.
    fn ended(&mut self, key: StreamKey, outcome: Result<Total, Failed>) -> io::Result<bool> {
        match outcome {
            Ok(total) => {
                self.finished(key, &total)?;
                if let Some(problem) = &total.problem {
                    tell!("{problem}");
                    return Ok(true);
                }
            }
            Err(Failed::Cancelled) => self.failed(key, None)?,
            Err(Failed::Because(text)) => {
                tell!("{text}");
                self.failed(key, Some(&text))?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The output that a server's command line asks for, to where it asks for it.
///
/// # Errors
/// When the output file cannot be made.
pub fn open(options: &ServerOptions, account: Option<CloseAccount>) -> io::Result<Box<dyn Output>> {
    let out = open_output(&options.common, true)?;
    Ok(to(out, Asked::Server(options), account))
}

fn to(
    out: Box<dyn io::Write + Send>,
    asked: Asked<'_>,
    account: Option<CloseAccount>,
) -> Box<dyn Output> {
    match asked.common().json {
        Some(form) => Box::new(JsonPrinter::new(form, asked, account, out)),
        None => Box::new(Text {
            printer: Printer::new(Manner::of(asked), out),
            account,
        }),
    }
}

/// The text, and at the end on standard error where this host dropped packets, if it did.
struct Text {
    printer: Printer,
    account: Option<CloseAccount>,
}

impl Output for Text {
    fn banner(&mut self, banner: &str) -> io::Result<()> {
        self.printer.banner(banner)
    }

    fn connected(&mut self, key: StreamKey, connected: &Connected) -> io::Result<()> {
        self.printer.connected(key, connected)
    }

    fn interval(&mut self, key: StreamKey, record: &IntervalRecord) -> io::Result<()> {
        self.printer.interval(key, record)
    }

    fn finished(&mut self, key: StreamKey, total: &Total) -> io::Result<()> {
        self.printer.finished(key, total)
    }

    fn failed(&mut self, key: StreamKey, _: Option<&str>) -> io::Result<()> {
        self.printer.failed(key)
    }

    fn gave_up(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.printer.end()?;
        if let Some(host) = self.account.take().and_then(|close| close()) {
            let lost = losses::only_losses(&host, &[Way::Out, Way::In]);
            stdio::print_error(lost);
        }
        Ok(())
    }
}
