//! One connection of the end that answers.
//!
//! What must hold: a connection keeps no more than one read's bytes, and ends when its client asks nothing,
//! or leaves the responses unread, for too long; much sooner when others have no connection for it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use nicpoll_wire::rr::{Decoder, Message, MessageKind};

use super::service::{Served, add};
use crate::signals::LOOK_EVERY;
use crate::sockets;

/// Silence, or unread responses, after which a connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The same while others are refused: the least rate of a connection in a full service is a request a second.
const IDLE_TIMEOUT_CROWDED: Duration = Duration::from_secs(1);
/// Read from a connection at a time.
const READ_BYTES: usize = 65_536;
/// Head and filler that are written at once, so that a short response is one segment.
const FIRST_WRITE_BYTES: usize = 2_048;
/// What responses are filled with, piece by piece.
static FILLER: [u8; READ_BYTES] = [0; READ_BYTES];

/// Answers a client's requests until it has no more, says what is none, or keeps silent.
pub(super) fn serve_connection(
    mut stream: TcpStream,
    served: &Served,
    is_over: &dyn Fn() -> bool,
) -> io::Result<()> {
    // Whether nothing has come of it for too long since then.
    let is_idle = |since: Instant| {
        let silence = since.elapsed();
        silence >= IDLE_TIMEOUT || silence >= IDLE_TIMEOUT_CROWDED && served.wants_room()
    };
    let counters = &served.tcp;
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    stream.set_write_timeout(Some(LOOK_EVERY))?;
    let mut buffer = vec![0; READ_BYTES];
    let mut decoder = Decoder::default();
    let mut last_request = Instant::now();
    while !is_over() && !is_idle(last_request) {
        let length = match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(error) if sockets::is_no_progress(&error) => continue,
            Err(error) => return Err(error),
        };
        add(&counters.bytes_received, length);
        let mut received = &buffer[..length];
        loop {
            let message = match decoder.next(&mut received) {
                Ok(Some(message)) if message.kind == MessageKind::Request => message,
                Ok(None) => break,
                // Where the next message would begin is not known any more.
                Ok(Some(_)) | Err(_) => {
                    add(&counters.foreign, 1);
                    return Ok(());
                }
            };
            last_request = Instant::now();
            add(&counters.requests, 1);
            // A reader that takes nothing for a while is as idle as one that asks nothing.
            let is_given_up = |since| is_over() || is_idle(since);
            respond(&mut stream, message.response(), &is_given_up)?;
            add(&counters.responses, 1);
            add(&counters.bytes_sent, message.response_bytes as usize);
        }
    }
    Ok(())
}

/// Writes a response, as long as its reader takes some of it from time to time.
fn respond(
    stream: &mut TcpStream,
    response: Message,
    is_given_up: &dyn Fn(Instant) -> bool,
) -> io::Result<()> {
    let filler = response.bytes as usize - Message::BYTES;
    let mut head = [0; FIRST_WRITE_BYTES];
    let joined = filler.min(head.len() - Message::BYTES);
    head[..Message::BYTES].copy_from_slice(&response.to_bytes());
    write_all(stream, &head[..Message::BYTES + joined], is_given_up)?;
    let mut left = filler - joined;
    while left > 0 {
        let piece = left.min(FILLER.len());
        write_all(stream, &FILLER[..piece], is_given_up)?;
        left -= piece;
    }
    Ok(())
}

fn write_all(
    stream: &mut TcpStream,
    mut bytes: &[u8],
    is_given_up: &dyn Fn(Instant) -> bool,
) -> io::Result<()> {
    let mut last_taken = Instant::now();
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(written) => {
                bytes = &bytes[written..];
                last_taken = Instant::now();
            }
            Err(error) if sockets::is_no_progress(&error) => {
                if is_given_up(last_taken) {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
