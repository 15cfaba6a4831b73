//! Attributes of netlink messages, as their bytes lie: length, type, value, each at a multiple of four bytes.

/// Length and type.
const HEADER_BYTES: usize = 4;
/// `NLA_TYPE_MASK`: the two highest bits of a type are marks.
const TYPE_MASK: u16 = 0x3FFF;

/// The attributes of a message, until one is cut off.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let [low, high, kind @ ..] = *bytes.first_chunk::<HEADER_BYTES>()?;
        let length = usize::from(u16::from_ne_bytes([low, high]));
        let value = bytes.get(HEADER_BYTES..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes(kind) & TYPE_MASK, value))
    })
}

/// A number of 32 bits.
pub(super) fn u32_of(value: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(value.try_into().ok()?))
}
