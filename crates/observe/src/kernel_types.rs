//! The kernel's description of its types (BTF): what of it is needed to count events, without building the rest.
//!
//! What must hold: a type keeps its number, by which the kernel knows it. A description that is cut short or wrong
//! is an absent one; it never ends the program.
//!
//! The description has some 150,000 types. To build them all takes tens of milliseconds, as often as a program of
//! this crate is loaded; to walk over their bytes takes one.

use aya::{Btf, BtfError, Endianness};

/// include/uapi/linux/btf.h: bytes at the beginning of a description.
const MAGIC: u16 = 0xEB9F;
/// Bytes of a type before what its kind adds.
const TYPE_BYTES: usize = 12;
/// The kind of a name that stands for a type that is elsewhere.
const KIND_FWD: u32 = 7;
/// The kind of an enum whose values have 32 bits.
const KIND_ENUM: u32 = 6;
/// Bytes of one value of such an enum.
const VALUE_BYTES: usize = 8;
/// Bytes of the header: where types and strings begin, and how long they are.
const HEADER_BYTES: usize = 24;
const VERSION: u8 = 1;

/// A description of types that was not looked into yet.
pub struct KernelTypes<'a> {
    described: &'a [u8],
    strings: &'a [u8],
}

/// One type of it.
struct Type<'a> {
    /// Where its name is among the strings.
    name: usize,
    kind: u32,
    bytes: &'a [u8],
}

impl<'a> KernelTypes<'a> {
    /// Of the bytes of `/sys/kernel/btf/vmlinux`; `None` when they are no description.
    pub fn of_bytes(bytes: &'a [u8]) -> Option<Self> {
        let magic = bytes.get(..2)?.try_into().ok()?;
        if u16::from_ne_bytes(magic) != MAGIC {
            return None;
        }
        let header = word(bytes, 4)?;
        let section = |at: usize| {
            let begin = header.checked_add(word(bytes, at)?)?;
            bytes.get(begin..begin.checked_add(word(bytes, at + 4)?)?)
        };
        Some(KernelTypes {
            described: section(8)?,
            strings: section(16)?,
        })
    }

    /// Every name with its number, for looking up tracepoints: a type that consists of others is a mere name here.
    ///
    /// # Errors
    /// When the description is wrong.
    pub fn names(&self) -> Result<Btf, BtfError> {
        Btf::parse(&self.bytes_of_names(), Endianness::default())
    }

    fn bytes_of_names(&self) -> Vec<u8> {
        let mut types = Vec::with_capacity(self.described.len() / 2);
        self.each(|found| {
            if bytes_of_kind(found.kind, 0) == bytes_of_kind(found.kind, 1) {
                types.extend(found.bytes);
            } else {
                types.extend(&found.bytes[..4]);
                types.extend((KIND_FWD << 24).to_ne_bytes());
                types.extend([0; 4]);
            }
            None::<()>
        });
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([VERSION, 0]);
        let lengths = [
            HEADER_BYTES,
            0,
            types.len(),
            types.len(),
            self.strings.len(),
        ];
        for length in lengths {
            bytes.extend((length as u32).to_ne_bytes());
        }
        bytes.extend(types);
        bytes.extend(self.strings);
        bytes
    }

    /// The values of an enum, by number; `None` when there is no such enum.
    pub fn values_of(&self, wanted: &str) -> Option<Vec<(u32, String)>> {
        let values = self.each(|found| {
            let is_it = found.kind == KIND_ENUM && self.string(found.name)? == wanted.as_bytes();
            is_it.then(|| &found.bytes[TYPE_BYTES..])
        })?;
        let value = |bytes: &[u8]| {
            let name = String::from_utf8_lossy(self.string(word(bytes, 0)?)?);
            Some((word(bytes, 4)? as u32, name.into_owned()))
        };
        values.chunks_exact(VALUE_BYTES).map(value).collect()
    }

    /// Shows the types in their order until one of them gives an answer, and returns it.
    fn each<T>(&self, mut show: impl FnMut(Type<'a>) -> Option<T>) -> Option<T> {
        let mut at = 0;
        while at < self.described.len() {
            let (name, info) = (
                word(self.described, at)?,
                word(self.described, at + 4)? as u32,
            );
            let (kind, length) = ((info >> 24) & 31, (info & 0xFFFF) as usize);
            let end = at + TYPE_BYTES + bytes_of_kind(kind, length)?;
            let found = Type {
                name,
                kind,
                bytes: self.described.get(at..end)?,
            };
            if let Some(answer) = show(found) {
                return Some(answer);
            }
            at = end;
        }
        None
    }

    fn string(&self, at: usize) -> Option<&'a [u8]> {
        let rest = self.strings.get(at..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        Some(&rest[..end])
    }
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

#[cfg(test)]
pub mod tests {
    use super::*;
    use proptest::prelude::*;

    const STRINGS: &[u8] = b"\0int\0skb_drop_reason\0SKB_CONSUMED\0SKB_DROP_REASON_XDP\0";

    /// A description of two types: an int, and an enum of drop reasons.
    pub fn types() -> Vec<u8> {
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
    fn an_enum_has_its_values_and_what_is_no_enum_has_none() {
        let bytes = types();
        let types = KernelTypes::of_bytes(&bytes).unwrap();
        let values = types.values_of("skb_drop_reason").unwrap();
        assert_eq!(values[1], (72, String::from("SKB_DROP_REASON_XDP")));
        assert_eq!(types.values_of("int"), None);
        assert_eq!(types.values_of("drop_reason"), None);
    }

    /// The kernel is asked by number, so a number must not change.
    #[test]
    fn every_name_of_this_kernel_has_the_number_that_it_had() {
        let Ok(bytes) = std::fs::read(crate::bpf::KERNEL_TYPES) else {
            return;
        };
        let names_in = |bytes: &[u8]| {
            let types = KernelTypes::of_bytes(bytes).unwrap();
            let mut names = Vec::new();
            types.each(|found| {
                names.push(types.string(found.name).map(<[u8]>::to_vec));
                None::<()>
            });
            names
        };
        let names = KernelTypes::of_bytes(&bytes).unwrap().bytes_of_names();
        assert!(names.len() < bytes.len());
        assert!(names_in(&names) == names_in(&bytes));
    }

    proptest! {
        #[test]
        fn nothing_in_a_description_ends_the_program(
            at in 0..115_usize, byte: u8, length in 0..115_usize
        ) {
            let mut bytes = types();
            let places = bytes.len();
            bytes[at % places] = byte;
            bytes.truncate(length);
            if let Some(types) = KernelTypes::of_bytes(&bytes) {
                let _ = types.values_of("skb_drop_reason");
                let _ = types.names();
            }
        }
    }
}
