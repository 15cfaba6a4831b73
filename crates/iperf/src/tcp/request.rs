//! The client's header at the server: read before anything else, and answered when 2.1.8 would.
//!
//! What must hold: not a byte more is read than belongs to it, and no client may take long over it.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::wire::tcp::{HEADER_BYTES_MAX, HeaderAck, header_length, is_acknowledged};
use crate::wire::{ClientHeader, Version};

use nicpoll_traffic::Signals;

use super::Error;
use super::reader::Reader;
use crate::slots::Ticket;

/// 2.1.8 gives a client this long for its header.
const HEADER_LIMIT: Duration = Duration::from_secs(4);

/// What tells whether a stream begins with a header, and with which.
const FIRST_WORD_BYTES: usize = 4;

/// What a client began with.
pub(super) struct Request {
    /// `None` when the stream does not begin with a header, or ends within it.
    pub(super) header: Option<ClientHeader>,
    /// How many bytes were read.
    pub(super) bytes: u64,
}

/// Reads the header, if the stream begins with one. A stream that ends within its header is left for
/// the next read to report.
pub(super) fn read(
    socket: &TcpStream,
    peer: SocketAddr,
    ticket: Option<&Ticket>,
    signals: &Signals,
) -> Result<Request, Error> {
    let mut nobody = ();
    let mut reader = Reader::before(socket, peer, ticket, signals, &mut nobody);
    let header = read_header(&mut reader, peer)?;
    let has_no_header = reader.bytes_received() == FIRST_WORD_BYTES as u64;
    if let Some(ticket) = ticket
        && (header.is_some() || has_no_header)
    {
        ticket.prove();
    }
    if header.as_ref().is_some_and(is_acknowledged) {
        let ack = HeaderAck {
            version: Version::V2_1_8,
        };
        let mut socket = socket;
        socket
            .write_all(&ack.to_bytes())
            .map_err(|source| reader.broken(source))?;
    }
    Ok(Request {
        header,
        bytes: reader.bytes_received(),
    })
}

fn read_header(reader: &mut Reader, peer: SocketAddr) -> Result<Option<ClientHeader>, Error> {
    let bad = |source| Error::Header { peer, source };
    let mut bytes = [0; HEADER_BYTES_MAX];
    let (first_word, rest) = bytes.split_at_mut(FIRST_WORD_BYTES);
    if !reader.read_whole(first_word, HEADER_LIMIT)? {
        return Ok(None);
    }
    let mut flag_word = [0; FIRST_WORD_BYTES];
    flag_word.copy_from_slice(first_word);
    let length = header_length(flag_word).map_err(bad)?;
    let rest = &mut rest[..length.saturating_sub(FIRST_WORD_BYTES)];
    if !reader.read_whole(rest, HEADER_LIMIT)? {
        return Ok(None);
    }
    ClientHeader::parse_tcp(&bytes).map_err(bad)
}
