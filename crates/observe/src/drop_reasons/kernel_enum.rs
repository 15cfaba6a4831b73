//! The names that the running kernel gives to its drop reasons, out of its description of its types (BTF).
//!
//! What must hold: a description that is cut short or wrong has no names; it never ends the program.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// include/uapi/linux/btf.h: bytes at the beginning of a description.
const MAGIC: u16 = 0xEB9F;
/// Bytes of a type before what its kind adds.
const TYPE_BYTES: usize = 12;
/// The kind of an enum whose values have 32 bits.
const KIND_ENUM: u32 = 6;
/// Bytes of one value of such an enum.
const VALUE_BYTES: usize = 8;
/// What the kernel's names have in common.
const PREFIX: &str = "SKB_DROP_REASON_";

/// Names of drop reasons by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasonNames(BTreeMap<u32, String>);

impl ReasonNames {
    /// The names in a description of a kernel's types; `None` when it has no drop reasons.
    pub(super) fn of_types(types: &[u8]) -> Option<Self> {
        let names = values_of(types, super::REASONS)?;
        Some(ReasonNames(names.into_iter().collect()))
    }

    /// The kernel's name of a reason without `SKB_DROP_REASON_`; its number where the kernel has none for it.
    pub fn of(&self, reason: u32) -> Cow<'_, str> {
        match self.0.get(&reason) {
            Some(name) => Cow::Borrowed(name.strip_prefix(PREFIX).unwrap_or(name)),
            None => Cow::Owned(format!("reason {reason}")),
        }
    }
}

/// The values of an enum.
fn values_of(types: &[u8], wanted: &str) -> Option<Vec<(u32, String)>> {
    let magic = types.get(..2)?.try_into().ok()?;
    if u16::from_ne_bytes(magic) != MAGIC {
        return None;
    }
    let header = word(types, 4)?;
    let section = |at: usize| {
        let begin = header.checked_add(word(types, at)?)?;
        types.get(begin..begin.checked_add(word(types, at + 4)?)?)
    };
    let (described, strings) = (section(8)?, section(16)?);
    let mut at = 0;
    while at < described.len() {
        let (name, info) = (word(described, at)?, word(described, at + 4)? as u32);
        let (kind, length) = ((info >> 24) & 31, (info & 0xFFFF) as usize);
        let values = at + TYPE_BYTES;
        if kind == KIND_ENUM && string(strings, name)? == wanted.as_bytes() {
            let value = |index| {
                let at = values + index * VALUE_BYTES;
                let name = String::from_utf8_lossy(string(strings, word(described, at)?)?);
                Some((word(described, at + 4)? as u32, name.into_owned()))
            };
            return (0..length).map(value).collect();
        }
        at = values + bytes_of_kind(kind, length)?;
    }
    None
}

/// What follows a type's first 12 bytes. `None` for a kind that is newer than this program: where the next type
/// begins is not known then.
fn bytes_of_kind(kind: u32, length: usize) -> Option<usize> {
    match kind {
        // PTR, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT, FUNC, FLOAT, TYPE_TAG
        2 | 7..=12 | 16 | 18 => Some(0),
        // INT, VAR, DECL_TAG
        1 | 14 | 17 => Some(4),
        // ARRAY
        3 => Some(12),
        // STRUCT, UNION, DATASEC, ENUM64
        4 | 5 | 15 | 19 => Some(12 * length),
        // ENUM, FUNC_PROTO
        KIND_ENUM | 13 => Some(8 * length),
        _ => None,
    }
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(u32::from_ne_bytes(word) as usize)
}

fn string(strings: &[u8], at: usize) -> Option<&[u8]> {
    let rest = strings.get(at..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STRINGS: &[u8] = b"\0int\0skb_drop_reason\0SKB_CONSUMED\0SKB_DROP_REASON_XDP\0";

    fn types() -> Vec<u8> {
        let mut described: Vec<u32> = vec![1, 1 << 24, 4, 0x2000_0000];
        described.extend([5, (KIND_ENUM << 24) | 2, 4, 21, 1, 34, 72]);
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        let length = described.len() as u32 * 4;
        for word in [24, 0, length, length, STRINGS.len() as u32] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(described.iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend(STRINGS);
        bytes
    }

    #[test]
    fn reasons_have_the_kernels_names_and_unknown_ones_their_number() {
        let names = ReasonNames::of_types(&types()).unwrap();
        assert_eq!(names.of(72), "XDP");
        assert_eq!(names.of(1), "SKB_CONSUMED");
        assert_eq!(names.of(65_537), "reason 65537");
    }

    #[test]
    fn a_kernel_without_reasons_has_no_names() {
        let mut other = types();
        let at = other.windows(8).position(|bytes| bytes == b"skb_drop");
        other[at.unwrap()] = b'S';
        assert_eq!(ReasonNames::of_types(&other), None);
    }

    #[test]
    fn this_kernel_has_names() {
        let Ok(types) = std::fs::read(super::super::KERNEL_TYPES) else {
            return;
        };
        if let Some(names) = ReasonNames::of_types(&types) {
            assert!(names.0.values().any(|name| name.ends_with("NOT_SPECIFIED")));
        }
    }

    proptest! {
        #[test]
        fn nothing_in_a_description_ends_the_program(
            at in 0..115_usize, byte: u8, length in 0..115_usize
        ) {
            let mut types = types();
            let places = types.len();
            types[at % places] = byte;
            types.truncate(length);
            let _ = ReasonNames::of_types(&types);
        }
    }
}
