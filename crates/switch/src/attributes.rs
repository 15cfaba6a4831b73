//! Netlink attributes of type `uint`: four bytes on the wire, or eight when the value needs them.
//!
//! The generated bindings take `uint` for four bytes, which would lose a timeout above 4.29 s.

/// Length of an attribute's header: u16 length, u16 type.
const HEADER_BYTES: usize = 4;

/// `NLA_F_NESTED` and `NLA_F_NET_BYTEORDER`: flags in the upper bits of an attribute's type.
const TYPE_MASK: u16 = 0x3fff;

/// The attributes of a list, as type and payload; a torn one ends the list.
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

/// The payload of attribute `kind`.
pub fn attribute(list: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(list)
        .find(|&(found, _)| found == kind)
        .map(|(_, payload)| payload)
}

/// Finds attribute `kind` in a list of attributes and reads it as a `uint`; `None` when it is absent
/// or has another length.
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
    // The bindings pad an attribute when the next one begins, so the last one may still be ragged.
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
        push_uint(&mut list, 5, 7);
        push_uint(&mut list, 6, 5_000_000_000);
        push_uint(&mut list, 7, 200_000);
        assert_eq!(uint_attribute(&list, 5), Some(7));
        assert_eq!(uint_attribute(&list, 6), Some(5_000_000_000));
        assert_eq!(uint_attribute(&list, 7), Some(200_000));
        assert_eq!(uint_attribute(&list, 8), None);
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
