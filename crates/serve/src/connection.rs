//! One connection: one request, one answer.
//!
//! Ends within a bounded time, whatever the other end does or fails to do.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use nicpoll_store::Place;

use crate::pages::{Answer, answer_to};
use crate::request::{HEAD_MAX_BYTES, PageRequest, RequestRefusal, read_request};

/// The request has to be whole after this.
const REQUEST_MAX: Duration = Duration::from_secs(5);
/// The other end has to take something of the answer within this.
const WRITE_MAX: Duration = Duration::from_secs(10);
/// A page of a study that runs is asked for again after so many seconds.
const REFRESH_SECONDS: u32 = 5;

/// What every answer says: nothing of it may be kept, guessed at, framed or used by another site.
const HEADERS: &str = "Connection: close\r\nContent-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\n\
    X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n";

/// Reads the request and answers it.
pub fn answer(mut stream: TcpStream, place: &Place) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(WRITE_MAX))?;
    let (status, answer, is_head) = match asked(&mut stream)? {
        Ok(asked) => {
            let answer = answer_to(&asked.page, place);
            (answer.status, answer, asked.is_head)
        }
        Err(refusal) => (refusal.status(), Answer::words(&refusal.to_string()), false),
    };
    let refresh = match answer.is_live {
        true => format!("Refresh: {REFRESH_SECONDS}\r\n"),
        false => String::new(),
    };
    let length = answer.html.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{refresh}{HEADERS}\r\n");
    stream.write_all(head.as_bytes())?;
    if !is_head {
        stream.write_all(answer.html.as_bytes())?;
    }
    stream.flush()
}

/// The request, once it is whole.
fn asked(stream: &mut TcpStream) -> io::Result<Result<PageRequest, RequestRefusal>> {
    let own = stream.local_addr()?;
    let deadline = Instant::now() + REQUEST_MAX;
    let mut head = Vec::new();
    let mut part = [0; 1024];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        stream.set_read_timeout(Some(left))?;
        let room = part.len().min(HEAD_MAX_BYTES - head.len());
        match stream.read(&mut part[..room])? {
            0 => return Ok(Err(RequestRefusal::Malformed)),
            read => head.extend_from_slice(&part[..read]),
        }
        match read_request(&head, own) {
            Ok(Some(asked)) => return Ok(Ok(asked)),
            Ok(None) => {}
            Err(refusal) => return Ok(Err(refusal)),
        }
    }
}
