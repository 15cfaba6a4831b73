//! The ids of a client's datagrams, for whoever sees them without being their server.
//!
//! What must hold: ids are read as a server would read them, by the dialect of the first datagram; an end marker (FIN)
//! is no datagram of data and has none.

use nicpoll_stats::sequence::Ids;

use crate::wire::{Dialect, RawDatagram};

/// Of one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientIds {
    begun: Option<Begun>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Begun {
    dialect: Dialect,
    /// What the client calls its first datagram, 0 or 1.
    first_id: u64,
    /// The highest id so far, as the client writes it.
    highest: u64,
}

impl Ids for ClientIds {
    fn id(&mut self, payload: &[u8]) -> Option<u64> {
        let raw = RawDatagram::parse(payload).ok()?;
        let begun = self.begun.get_or_insert_with(|| {
            let dialect = Dialect::of_client(&raw);
            Begun {
                dialect,
                first_id: dialect.first_id(),
                highest: 0,
            }
        });
        let header = begun.dialect.header(&raw, begun.highest).ok()?;
        let id = u64::try_from(header.id).ok()?;
        if id == 0 {
            begun.first_id = 0;
        }
        begun.highest = begun.highest.max(id);
        (id + 1).checked_sub(begun.first_id).filter(|id| *id > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::DatagramHeader;

    fn payload(dialect: Dialect, id: i64) -> Vec<u8> {
        let mut payload = vec![0; 64];
        if dialect == Dialect::V2_0_2 {
            // Its client header: flags, threads, port.
            payload[16..20].copy_from_slice(&1u32.to_be_bytes());
            payload[20..24].copy_from_slice(&5001u32.to_be_bytes());
        } else {
            let flags = crate::wire::flags::IDS_64_BIT | crate::wire::flags::HAS_LENGTH;
            payload[16..20].copy_from_slice(&flags.to_be_bytes());
        }
        let header = DatagramHeader {
            id,
            sent_seconds: 7,
            sent_microseconds: 8,
        };
        dialect.write_header(&header, &mut payload);
        payload
    }

    #[test]
    fn both_lengths_of_header_are_read_and_end_markers_have_no_id() {
        for (dialect, first) in [(Dialect::V2_0_2, 0), (Dialect::V2_1, 1)] {
            let mut ids = ClientIds::default();
            let numbers = [first, first + 1, first + 5, first + 4];
            let read = numbers.map(|id| ids.id(&payload(dialect, id)));
            assert_eq!(read, [Some(1), Some(2), Some(6), Some(5)], "{dialect:?}");
            assert_eq!(ids.id(&payload(dialect, -7)), None, "{dialect:?}");
            assert_eq!(ids.id(&[0; 11]), None);
        }
    }
}
