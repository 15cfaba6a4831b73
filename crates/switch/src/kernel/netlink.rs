//! Requests over netlink: the connection of one network namespace, its errors, and attributes.
//!
//! A netlink socket answers for the namespace in which it was opened, so a [`Control`] may be used only by threads in
//! one namespace.

use std::io;

use netlink_bindings::traits::{NetlinkRequest, Protocol};
use netlink_bindings::utils::ErrorContext;
use netlink_socket2::{NetlinkSocket, ReplyError};

use crate::error::SwitchError;

/// Length of an attribute's header: u16 length, u16 type.
const HEADER_BYTES: usize = 4;
/// `NLA_F_NESTED` and `NLA_F_NET_BYTEORDER` are flags in the upper bits of an attribute's type.
const TYPE_MASK: u16 = 0x3fff;

/// Converts an error of a reply. The kernel's explanation is in the reply's text, not in the error number.
fn of_reply(doing: String) -> impl FnOnce(ReplyError) -> SwitchError {
    move |reply| {
        let source = match reply.as_io_error().raw_os_error() {
            Some(_) => io::Error::new(reply.as_io_error().kind(), reply.to_string()),
            None => reply.into(),
        };
        SwitchError::System { doing, source }
    }
}

/// Turns an error into `None` if the device or kernel lacks the feature.
pub fn supported<T>(answer: Result<T, SwitchError>) -> Result<Option<T>, SwitchError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) => match error.kind() {
            // A kernel without the family answers that the name does not exist.
            io::ErrorKind::Unsupported | io::ErrorKind::NotFound => Ok(None),
            _ => Err(error),
        },
    }
}

/// A connection to the kernel for the interfaces of one namespace.
pub struct Control {
    socket: NetlinkSocket,
}

impl Control {
    /// Creates a control that connects at its first request, to the caller's namespace at that time.
    pub fn new() -> Self {
        Control {
            socket: NetlinkSocket::new(),
        }
    }

    /// Sends a request and reads each message of the answer; an acknowledgement alone yields none.
    pub(super) fn ask<R: NetlinkRequest, T>(
        &mut self,
        doing: impl Into<String>,
        request: &R,
        mut read: impl for<'a> FnMut(R::ReplyType<'a>) -> Result<T, ErrorContext>,
    ) -> Result<Vec<T>, SwitchError> {
        let doing = doing.into();
        let mut answers = Vec::new();
        let mut receive = || -> Result<(), ReplyError> {
            let mut reply = self.socket.request(request)?;
            while let Some(message) = reply.recv() {
                answers.push(read(message?)?);
            }
            Ok(())
        };
        receive().map_err(of_reply(doing))?;
        Ok(answers)
    }

    /// Sends a request that one message answers.
    pub(super) fn ask_one<R: NetlinkRequest, T>(
        &mut self,
        doing: impl Into<String>,
        request: &R,
        read: impl for<'a> FnMut(R::ReplyType<'a>) -> Result<T, ErrorContext>,
    ) -> Result<T, SwitchError> {
        let doing = doing.into();
        let answers = self.ask(doing.clone(), request, read)?;
        let absent = || SwitchError::of_io(doing)(io::Error::other("the kernel sent no answer"));
        answers.into_iter().next().ok_or_else(absent)
    }
}

impl Default for Control {
    fn default() -> Self {
        Control::new()
    }
}

/// A request whose header netlink-bindings lacks or gets wrong. Its reply is a list of attributes.
pub(super) struct RawRequest {
    pub protocol: Protocol,
    /// The header, then the attributes.
    pub payload: Vec<u8>,
}

/// Length of the header, the same for generic netlink (command, version, two bytes reserved) and struct rtgenmsg
/// (family, padded).
const MESSAGE_HEADER_BYTES: usize = 4;

impl NetlinkRequest for RawRequest {
    type ReplyType<'buf> = &'buf [u8];

    fn protocol(&self) -> Protocol {
        self.protocol
    }

    fn flags(&self) -> u16 {
        0
    }

    fn payload(&self) -> &[u8] {
        &self.payload
    }

    fn decode_reply(reply: &[u8]) -> &[u8] {
        reply.get(MESSAGE_HEADER_BYTES..).unwrap_or_default()
    }
}

/// Iterates over the attributes of a list, as type and payload; a truncated one ends the list.
pub fn attributes(mut list: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let header = list.first_chunk::<HEADER_BYTES>()?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]) & TYPE_MASK;
        let payload = list.get(HEADER_BYTES..length)?;
        list = list
            .get(length.next_multiple_of(HEADER_BYTES)..)
            .unwrap_or_default();
        Some((kind, payload))
    })
}

/// Returns the payload of attribute `kind`.
pub fn attribute(list: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(list)
        .find(|&(found, _)| found == kind)
        .map(|(_, payload)| payload)
}

/// Returns attribute `kind` as a `uint`: four bytes, or eight if the value needs them. `None` if it is absent or has
/// another length. The generated bindings read only four bytes, which would truncate a timeout above 4.29 s.
pub fn uint_attribute(list: &[u8], kind: u16) -> Option<u64> {
    match *attribute(list, kind)? {
        [a, b, c, d] => Some(u64::from(u32::from_ne_bytes([a, b, c, d]))),
        ref long => Some(u64::from_ne_bytes(long.try_into().ok()?)),
    }
}

/// Appends attribute `kind` as a `uint`.
pub fn push_uint(list: &mut Vec<u8>, kind: u16, value: u64) {
    match u32::try_from(value) {
        Ok(short) => push_attribute(list, kind, &short.to_ne_bytes()),
        Err(_) => push_attribute(list, kind, &value.to_ne_bytes()),
    }
}

/// Appends attribute `kind`; the payload is a few bytes.
pub fn push_attribute(list: &mut Vec<u8>, kind: u16, payload: &[u8]) {
    // The bindings pad an attribute only when the next one begins, so the last one may still be unpadded.
    list.resize(list.len().next_multiple_of(HEADER_BYTES), 0);
    let length = (HEADER_BYTES + payload.len()) as u16;
    list.extend_from_slice(&length.to_ne_bytes());
    list.extend_from_slice(&kind.to_ne_bytes());
    list.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_above_32_bits_comes_back_whole() {
        let mut list = Vec::new();
        for (kind, value) in [(5, 7), (6, 5_000_000_000), (7, 200_000)] {
            push_uint(&mut list, kind, value);
        }
        for (kind, value) in [
            (5, Some(7)),
            (6, Some(5_000_000_000)),
            (7, Some(200_000)),
            (8, None),
        ] {
            assert_eq!(uint_attribute(&list, kind), value);
        }
    }

    #[test]
    fn torn_lists_end_the_search() {
        let mut list = Vec::new();
        push_uint(&mut list, 5, 7);
        push_uint(&mut list, 6, 8);
        for length in 0..list.len() {
            assert_eq!(uint_attribute(&list[..length], 6), None);
        }
        assert_eq!(uint_attribute(&[0, 0, 6, 0, 1, 2, 3, 4], 6), None);
        assert_eq!(uint_attribute(&[7, 0, 6, 0, 1, 2, 3, 4], 6), None);
    }
}
