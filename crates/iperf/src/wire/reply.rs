//! What a UDP client makes of a server's reply.
//!
//! 2.1.8 takes any reply for a report and so prints nonsense for some of them. Here each is told by
//! its marks.

use super::tcp::HeaderAck;
use super::{Dialect, ServerReport, Version};

/// The client header's bytes by which a reply is known for an echo.
const ECHO: std::ops::Range<usize> = 16..40;

/// A reply of a UDP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The header's acknowledgement of 2.0.10 to 2.0.13, with the server's version: not an answer
    /// to a FIN.
    HeaderAck(Version),
    /// The FIN sent back, which is 2.1.8's second and later answer: acknowledged, nothing said.
    Echo,
    /// Acknowledged, with what the server counted.
    Report(ServerReport),
    /// Acknowledged in a way that says nothing.
    BareAck,
}

/// Tells what `reply` is to a client whose payload was `sent`. `server` is what is known of the
/// server: the dialect that a [`Reply::HeaderAck`] told, or the one that the client chose.
pub fn classify(reply: &[u8], sent: &[u8], server: Dialect) -> Reply {
    if let Some(ack) = HeaderAck::parse(reply) {
        return Reply::HeaderAck(ack.version);
    }
    if let (Some(theirs), Some(ours)) = (reply.get(ECHO), sent.get(ECHO))
        && theirs == ours
    {
        return Reply::Echo;
    }
    ServerReport::parse(reply, server).map_or(Reply::BareAck, Reply::Report)
}
