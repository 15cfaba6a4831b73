//! What a controller and the agent at a host say to each other: lines of JSON over a byte stream.
//!
//! Each side begins with [`ToAgent::Hello`] or [`FromAgent::Hello`]. A reader takes at most [`LINE_BYTES_MAX`] bytes of a
//! line. A request that an agent does not know is answered with an error and ends nothing. Whoever hears nothing for
//! [`SILENCE_MAX`] gives the other up.

use std::io::{self, BufRead};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::HostFailure;
use crate::host::{HostEvent, HostMessage, HostRequest};

/// The version of the protocol. Both sides must have the same.
pub const PROTOCOL: u32 = 2;

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The longest line. The readings of a long trial take a tenth of it.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// Silence after which the other side is given up.
pub const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Interval of the controller's pings.
pub const PING_EVERY: Duration = Duration::from_secs(1);

/// The line that precedes the agent's first message. What a login shell prints comes before.
pub const MARK: &str = "nicpoll-agent";

/// A controller's message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToAgent {
    /// The first message.
    Hello {
        /// The version of the protocol.
        protocol: u32,
        /// The version of the program.
        version: String,
    },
    /// Open a host in a network namespace.
    Open {
        /// Its number in later messages.
        host: u32,
        /// The namespace, by the name that ip-netns(8) lists; the agent's own when null.
        netns: Option<String>,
        /// Its interfaces, the studied one first.
        interfaces: Vec<String>,
    },
    /// Make a request of a host.
    Ask {
        /// The host's number.
        host: u32,
        /// The number of the answer.
        id: u64,
        /// A [`HostRequest`]. One that the agent does not know is answered with an error.
        request: Value,
    },
    /// Tell the time, and that the agent still runs.
    Ping {
        /// The number of the answer.
        id: u64,
    },
}

/// An agent's message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromAgent {
    /// The first message.
    Hello {
        /// The version of the protocol.
        protocol: u32,
        /// The version of the program.
        version: String,
    },
    /// A host is open, or could not be opened.
    Opened {
        /// The host's number.
        host: u32,
        /// Why it could not.
        failure: Option<HostFailure>,
    },
    /// An event of a host.
    Event {
        /// The host's number.
        host: u32,
        /// The event.
        event: HostEvent,
    },
    /// The answer to a ping.
    Pong {
        /// The ping's number.
        id: u64,
        /// The agent's monotonic clock.
        monotonic_ns: i64,
        /// The agent's wall clock.
        wall_ns: i64,
    },
    /// A message could not be read.
    Refused {
        /// Why.
        why: String,
    },
}

/// When the other side was last heard.
pub struct Heard {
    begin: Instant,
    at_ms: AtomicU64,
}

impl Heard {
    /// Begins with silence.
    pub fn now() -> Self {
        Heard {
            begin: Instant::now(),
            at_ms: AtomicU64::new(0),
        }
    }

    /// Notes that something came.
    pub fn again(&self) {
        let now = self.begin.elapsed().as_millis() as u64;
        self.at_ms.store(now, Ordering::Relaxed);
    }

    /// Whether anything came yet.
    pub fn is_any(&self) -> bool {
        self.at_ms.load(Ordering::Relaxed) > 0
    }

    /// How long nothing has come.
    pub fn silence(&self) -> Duration {
        let at = Duration::from_millis(self.at_ms.load(Ordering::Relaxed));
        self.begin.elapsed().saturating_sub(at)
    }
}

impl ToAgent {
    /// Wraps a message to a host.
    pub fn ask(host: u32, message: &HostMessage) -> serde_json::Result<ToAgent> {
        Ok(ToAgent::Ask {
            host,
            id: message.id,
            request: serde_json::to_value(&message.request)?,
        })
    }
}

/// Reads the request of a message.
///
/// # Errors
/// For a request that this version does not know, with its name.
pub fn request_of(request: Value) -> Result<HostRequest, HostFailure> {
    let name = match &request {
        Value::String(name) => name.clone(),
        Value::Object(fields) => fields.keys().next().cloned().unwrap_or_default(),
        _ => String::new(),
    };
    serde_json::from_value(request).map_err(|error| {
        HostFailure::new(format!(
            "the agent does not know the request '{name}': {error}"
        ))
    })
}

/// Reads a message.
///
/// # Errors
/// For a line that is none, with its beginning.
pub fn message_of<'a, M: Deserialize<'a>>(line: &'a str) -> Result<M, HostFailure> {
    serde_json::from_str(line).map_err(|error| {
        let begin: String = line.chars().take(80).collect();
        HostFailure::new(format!("'{begin}' is no message of the protocol: {error}"))
    })
}

/// Writes a message as a line.
pub fn line_of(message: &impl Serialize) -> io::Result<String> {
    let mut line = serde_json::to_string(message)?;
    if line.len() >= LINE_BYTES_MAX {
        let what = format!(
            "a message of {} bytes is longer than the protocol allows",
            line.len()
        );
        return Err(io::Error::other(what));
    }
    line.push('\n');
    Ok(line)
}

/// Reads the next line; `None` at the end of the stream.
///
/// # Errors
/// For a line that is too long, or not UTF-8.
pub fn next_line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    let limit = LINE_BYTES_MAX as u64;
    let read = io::Read::take(&mut *reader, limit).read_line(&mut line)?;
    match line.pop() {
        None => Ok(None),
        Some('\n') => Ok(Some(line)),
        Some(_) if read < LINE_BYTES_MAX => Err(io::ErrorKind::UnexpectedEof.into()),
        Some(_) => Err(io::Error::other(format!(
            "a line is longer than {LINE_BYTES_MAX} bytes"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let message = HostMessage {
            id: 7,
            request: HostRequest::Start(3),
        };
        let asked = ToAgent::ask(2, &message).unwrap();
        let line = line_of(&asked).unwrap();
        let mut reader = line.as_bytes();
        let line = next_line(&mut reader).unwrap().unwrap();
        let read: ToAgent = message_of(&line).unwrap();
        assert_eq!(read, asked);
        let ToAgent::Ask { request, .. } = read else {
            panic!("{read:?}");
        };
        assert_eq!(request_of(request).unwrap(), message.request);
        assert_eq!(next_line(&mut reader).unwrap(), None);
    }

    #[test]
    fn an_unknown_request_is_named_and_garbage_is_shown() {
        let later = serde_json::json!({"fold_time": {"by": 3}});
        let error = request_of(later).unwrap_err().to_string();
        assert!(error.contains("'fold_time'"), "{error}");
        let error = message_of::<FromAgent>("Welcome to box2").unwrap_err();
        assert!(error.to_string().contains("'Welcome to box2'"), "{error}");
    }

    #[test]
    fn a_line_has_an_end_and_a_limit() {
        let cut = next_line(&mut &b"{\"ping\""[..]).unwrap_err();
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
        let long = vec![b'x'; LINE_BYTES_MAX + 1];
        let error = next_line(&mut &long[..]).unwrap_err().to_string();
        assert!(error.contains("longer"), "{error}");
    }
}
