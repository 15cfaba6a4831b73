//! Netlink attributes of type `uint`: four bytes on the wire, or eight when the value needs them.
//!
//! The generated bindings take `uint` for four bytes, which would lose a timeout above 4.29 s.

/// Length of an attribute's header: u16 length, u16 type.
const HEADER_BYTES: usize = 4;

/// Finds attribute `kind` in a list of attributes and reads it as a `uint`; `None` when it is absent
/// or has another length.
pub fn uint_attribute(mut attributes: &[u8], kind: u16) -> Option<u64> {
    while let Some(header) = attributes.first_chunk::<HEADER_BYTES>() {
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let found = u16::from_ne_bytes([header[2], header[3]]);
        let value = attributes.get(HEADER_BYTES..length)?;
        if found == kind {
            return match *value {
                [a, b, c, d] => Some(u64::from(u32::from_ne_bytes([a, b, c, d]))),
                _ => Some(u64::from_ne_bytes(value.try_into().ok()?)),
            };
        }
        attributes = attributes.get(length.next_multiple_of(HEADER_BYTES)..)?;
    }
    None
}

/// Appends attribute `kind` as a `uint`.
pub fn push_uint(attributes: &mut Vec<u8>, kind: u16, value: u64) {
    let short = u32::try_from(value).map(u32::to_ne_bytes);
    let long = value.to_ne_bytes();
    let payload: &[u8] = match &short {
        Ok(bytes) => bytes,
        Err(_) => &long,
    };
    // The bindings pad an attribute when the next one begins, so the last one may still be ragged.
    attributes.resize(attributes.len().next_multiple_of(HEADER_BYTES), 0);
    let length = (HEADER_BYTES + payload.len()) as u16;
    attributes.extend_from_slice(&length.to_ne_bytes());
    attributes.extend_from_slice(&kind.to_ne_bytes());
    attributes.extend_from_slice(payload);
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
