//! One connection: one request, one answer.
//!
//! It never waits: each call does what can be done at once. It holds the head of a request of 8 kB at most, and of a page
//! how much of it is sent: the page itself is a file that all who asked for it share.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::sendfile;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::request::{HEAD_MAX_BYTES, HTML, PageRequest, ServedPage, read_request};

/// The request has to be whole after this.
const REQUEST_MAX: Duration = Duration::from_secs(5);
/// The making of a page has to begin after this: others that were asked for before come first.
const PAGE_MAX: Duration = Duration::from_secs(60);
/// The other end has to have the whole answer after this.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// A page of a study that runs is asked for again after so many seconds.
const REFRESH_SECONDS: u32 = 5;
/// Bytes of a page that are sent before others have their turn.
const TURN_BYTES: usize = 256 << 10;

/// What every answer says: nothing of it may be kept, guessed at, framed or used by another site.
const HEADERS: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
    Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n";

/// A page that was made, for all who asked for it.
#[derive(Debug)]
pub struct MadePage {
    /// The status of HTTP.
    pub status: String,
    /// Whether it will have changed soon.
    pub is_live: bool,
    /// Its bytes.
    pub length: u64,
    /// Where they are.
    pub file: File,
}

/// A connection, and how far it is.
#[derive(Debug)]
pub struct BrowserConnection {
    stream: TcpStream,
    own: SocketAddr,
    until: Instant,
    state: ConnectionState,
}

#[derive(Debug)]
enum ConnectionState {
    /// So much of the request has come.
    Asking(Vec<u8>),
    /// It waits for a page.
    Waiting(PageRequest),
    /// So much of the answer is left.
    Answering {
        head: Vec<u8>,
        body: Option<(Arc<MadePage>, u64)>,
    },
}

impl BrowserConnection {
    /// A connection that was taken just now.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        Ok(BrowserConnection {
            own: stream.local_addr()?,
            stream,
            until: Instant::now() + REQUEST_MAX,
            state: ConnectionState::Asking(Vec::new()),
        })
    }

    /// Its socket.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// When it is closed, unless the page that it waits for is being made.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// Whether the other end has to say something.
    pub fn is_asking(&self) -> bool {
        matches!(self.state, ConnectionState::Asking(_))
    }

    /// Whether the other end has to take something.
    pub fn is_answering(&self) -> bool {
        matches!(self.state, ConnectionState::Answering { .. })
    }

    /// The page that it waits for.
    pub fn awaited(&self) -> Option<&ServedPage> {
        match &self.state {
            ConnectionState::Waiting(asked) => Some(&asked.page),
            _ => None,
        }
    }

    /// The page that it is sent.
    pub fn page(&self) -> Option<&Arc<MadePage>> {
        match &self.state {
            ConnectionState::Answering { body, .. } => body.as_ref().map(|(page, _)| page),
            _ => None,
        }
    }

    /// Reads what has come of the request. `token` is what strangers have to know.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn read(&mut self, token: Option<&str>) -> io::Result<()> {
        let ConnectionState::Asking(head) = &mut self.state else {
            return Ok(());
        };
        let mut part = [0; 1024];
        let room = part.len().min(HEAD_MAX_BYTES - head.len());
        let (read, _) = match recv(&self.stream, &mut part[..room], RecvFlags::empty()) {
            Err(error) => return would_block(error),
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => read,
        };
        head.extend_from_slice(&part[..read]);
        match read_request(head, self.own, token) {
            Ok(None) => {}
            Ok(Some(asked)) if asked.enters => {
                let place = asked.page.path();
                let token = token.unwrap_or_default();
                // The address with the token stays in no history, and what a page links to needs none.
                let more = format!(
                    "Location: {place}\r\nSet-Cookie: {}={token}; HttpOnly; SameSite=Strict; Path=/\r\n",
                    crate::request::COOKIE
                );
                self.say("303 See Other", &more, "");
            }
            Ok(Some(asked)) => {
                self.until = Instant::now() + PAGE_MAX;
                self.state = ConnectionState::Waiting(asked);
            }
            Err(refusal) => self.say(refusal.status(), "", &words(&refusal.to_string())),
        }
        Ok(())
    }

    /// Answers with a page that was made.
    pub fn answer(&mut self, page: &Arc<MadePage>) {
        let ConnectionState::Waiting(asked) = &self.state else {
            return;
        };
        let refresh = match page.is_live {
            true => format!("Refresh: {REFRESH_SECONDS}\r\n"),
            false => String::new(),
        };
        let body = (!asked.is_head).then(|| (Arc::clone(page), 0));
        let head = head(
            &page.status,
            page.length,
            asked.page.content_type(),
            &refresh,
        );
        self.begin(head, body);
    }

    /// Answers with a short page.
    pub fn say(&mut self, status: &str, more: &str, html: &str) {
        self.begin(head(status, html.len() as u64, HTML, more) + html, None);
    }

    fn begin(&mut self, head: String, body: Option<(Arc<MadePage>, u64)>) {
        self.until = Instant::now() + ANSWER_MAX;
        self.state = ConnectionState::Answering {
            head: head.into_bytes(),
            body,
        };
    }

    /// Sends what the other end has room for. Returns whether that was all.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn write(&mut self) -> io::Result<bool> {
        let ConnectionState::Answering { head, body } = &mut self.state else {
            return Ok(false);
        };
        while !head.is_empty() {
            match send(&self.stream, head, SendFlags::NOSIGNAL) {
                Ok(sent) => head.drain(..sent),
                Err(error) => return would_block(error).map(|()| false),
            };
        }
        let Some((page, at)) = body else {
            return Ok(true);
        };
        match sendfile(&self.stream, &page.file, Some(at), TURN_BYTES) {
            Ok(0) => Ok(true),
            Ok(_) => Ok(*at >= page.length),
            Err(error) => would_block(error).map(|()| false),
        }
    }
}

/// The head of an answer, up to its body.
fn head(status: &str, length: u64, content_type: &str, more: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{more}Connection: close\r\nContent-Type: {content_type}\r\n\
         {HEADERS}\r\n"
    )
}

fn would_block(error: rustix::io::Errno) -> io::Result<()> {
    match error {
        rustix::io::Errno::AGAIN | rustix::io::Errno::INTR => Ok(()),
        error => Err(error.into()),
    }
}

/// A page that says a sentence.
pub fn words(sentence: &str) -> String {
    let sentence = maud::html! { (sentence) }.into_string();
    format!(
        "<!DOCTYPE html><html lang=\"en\"><title>nicpoll</title><p>{sentence}</p>\
         <p><a href=\"/\">First page</a></p></html>\n"
    )
}
