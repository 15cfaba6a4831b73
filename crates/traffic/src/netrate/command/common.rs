//! Shared by the three tools: refusals and common output.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nicpoll_model::traffic::NetrateHead;
use nicpoll_sys::stdio::{print, print_error};
use serde::Serialize;

use crate::losses::CloseAccount;
use crate::netrate::options::NetrateOptions;
use crate::sockets::kernel_words;
use crate::workload::Because;

/// Opens the account of this host; `None` when it cannot be read.
pub type OpenAccount<'a> = &'a dyn Fn() -> Option<CloseAccount>;

/// Why a tool failed.
pub enum ToolFailure {
    /// The original's message.
    Because(String),
    /// An error that the originals do not have.
    Failed(io::Error),
}

impl From<io::Error> for ToolFailure {
    fn from(error: io::Error) -> Self {
        ToolFailure::Failed(error)
    }
}

impl From<Because> for ToolFailure {
    /// As perror(3) prints it: what failed, and the kernel's words.
    fn from(Because { what, source }: Because) -> Self {
        ToolFailure::Because(format!("{what}: {}", kernel_words(&source)))
    }
}

/// Prints what the originals print before the results.
pub fn announce(text: &str, options: &NetrateOptions) -> io::Result<()> {
    if options.json {
        print_error(text);
        return Ok(());
    }
    print(text)
}

pub fn print_document(document: &impl Serialize) -> io::Result<()> {
    print(&(serde_json::to_string_pretty(document)? + "\n"))
}

pub fn since_1970() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}

/// Formats a time since 1970 per RFC 3339, in UTC.
pub fn time_of_day(since_1970: Duration) -> String {
    (jiff::Timestamp::UNIX_EPOCH + since_1970).to_string()
}

/// The start of every document.
pub fn head(schema: &str) -> NetrateHead {
    let argv = std::env::args_os();
    NetrateHead {
        schema: String::from(schema),
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        argv: argv.map(|arg| arg.to_string_lossy().into_owned()).collect(),
    }
}
