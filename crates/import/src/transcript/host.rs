//! What a host says of itself: kernel variables, interfaces and their options, and the identity that it tells at boot.

use super::anchor::{Anchor, Recogniser, Seen, one};
use super::cursor::Cursor;

/// The bit of polling among an interface's options (`IFCAP_POLLING` of FreeBSD).
const POLLING_BIT: u64 = 0x40;

/// `kern.polling.burst: 5`, `hw.em.rxd=4096`.
pub struct Variable;

impl Recogniser for Variable {
    fn first(&self) -> &'static [u8] {
        b"khnd"
    }

    fn read(&self, cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
        let began = cursor.at;
        if cursor.behind() == b'.' {
            return None;
        }
        let root = cursor.any(&["kern.", "hw.", "net.", "dev."])?;
        let mut name = String::from(root);
        while name.len() < 80 {
            let part = cursor.word(40, |it| {
                it.is_ascii_lowercase() || it.is_ascii_digit() || matches!(it, b'.' | b'_')
            });
            name += part.unwrap_or_default();
            let goes_on = cursor.peek() == b'\n' && cursor.ahead(1).is_ascii_lowercase();
            if !goes_on {
                break;
            }
            cursor.at += 1;
        }
        cursor.spaces();
        cursor.byte(b':').or_else(|| cursor.byte(b'='))?;
        cursor.spaces();
        let mut value = cursor.word(24, |it| it.is_ascii_digit() || it == b'-')?;
        let mut was = None;
        if cursor.clone().spaces().words("->").is_some() {
            cursor.spaces().words("->");
            was = Some(Seen::Was(name.clone(), String::from(value)));
            value = cursor.spaces().word(24, |it| it.is_ascii_digit())?;
        }
        let reading = Seen::Reading {
            name,
            value: String::from(value),
            is_cumulative: false,
        };
        let at = began..cursor.at;
        let both = std::iter::once(reading).chain(was);
        let both = both.map(|seen| Anchor {
            at: at.clone(),
            seen,
        });
        Some(both.collect())
    }
}

/// `em0: flags=8843<UP,...>`, where what stands between angle brackets may be gone; Linux's `eth0 Link encap:`.
pub struct InterfaceHead;

impl Recogniser for InterfaceHead {
    fn first(&self) -> &'static [u8] {
        b"abcdefghijklmnopqrstuvwxyz"
    }

    fn read(&self, cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
        let began = cursor.at;
        if cursor.behind().is_ascii_alphanumeric() {
            return None;
        }
        let name = cursor.word(16, |it| it.is_ascii_lowercase() || it.is_ascii_digit())?;
        name.ends_with(|it: char| it.is_ascii_digit())
            .then_some(())?;
        if cursor.byte(b':').is_some() {
            cursor.gap();
            cursor.words("flags=")?;
        } else {
            cursor.words(" Link encap:")?;
        }
        one(began, cursor, Seen::Interface(String::from(name)))
    }
}

/// `options=4b<RXCSUM,POLLING>`, `inet 192.168.1.1`.
pub struct InterfaceBody;

impl Recogniser for InterfaceBody {
    fn first(&self) -> &'static [u8] {
        b"io"
    }

    fn read(&self, cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
        let began = cursor.at;
        if cursor.words("options=").is_some() {
            let bits = cursor.word(12, |it| it.is_ascii_hexdigit())?;
            let bits = u64::from_str_radix(bits, 16).ok()?;
            if cursor.byte(b'<').is_some() {
                let _ = cursor.word(300, |it| {
                    it.is_ascii_uppercase()
                        || it.is_ascii_digit()
                        || matches!(it, b'_' | b',' | b' ' | b'\n')
                });
            }
            return one(began, cursor, Seen::Polls(bits & POLLING_BIT != 0));
        }
        if !matches!(cursor.behind(), b' ' | b'\n') {
            return None;
        }
        cursor.words("inet6").or_else(|| cursor.words("inet"))?;
        cursor.gap();
        let _ = cursor.words("addr:");
        let is_of_address = |it: u8| it.is_ascii_hexdigit() || matches!(it, b'.' | b':');
        let address = cursor.gap().word(45, is_of_address)?;
        address.contains(['.', ':']).then_some(())?;
        one(began, cursor, Seen::Address(String::from(address)))
    }
}

/// How lines begin that tell what a machine is, and what they are called here. The value is the rest of the line.
const IDENTITY: [(&str, &str); 9] = [
    ("CPU: ", "CPU"),
    ("real memory  = ", "real memory"),
    ("avail memory = ", "available memory"),
    ("FreeBSD ", "kernel"),
    ("Linux version ", "kernel"),
    ("model name\t: ", "CPU"),
    ("interrupt storm detected on ", "interrupt storm"),
    ("panic: ", "panic"),
    ("Fatal trap ", "panic"),
];
/// Bytes of a line that are kept.
const VALUE_MAX: usize = 100;

/// dmesg's lines about the processor, the memory, the kernel and the cards, and its cries.
pub struct Identity;

impl Recogniser for Identity {
    fn first(&self) -> &'static [u8] {
        b"CraFLmipf"
    }

    fn read(&self, cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
        let began = cursor.at;
        if cursor.behind().is_ascii_alphanumeric() {
            return None;
        }
        let (_, name) = IDENTITY
            .iter()
            .find(|(words, _)| cursor.words(words).is_some())?;
        let is_release = |it: u8| it.is_ascii_digit();
        // In prose FreeBSD is a word: a kernel has a release behind it.
        let is_kernel = *name == "kernel";
        if is_kernel && !is_release(cursor.peek()) {
            return None;
        }
        let line = cursor.word(VALUE_MAX, |it| it != b'\n')?;
        if is_kernel && !line.contains(['-', '#', '(']) {
            return None;
        }
        if *name == "CPU" && !line.contains("Hz") {
            return None;
        }
        let end = if is_kernel {
            line.find(" from ").unwrap_or(line.len())
        } else {
            line.len()
        };
        let end = ["real memory", "Origin", "avail memory"]
            .iter()
            .filter_map(|next| line.find(next))
            .filter(|it| *it > 0)
            .fold(end, usize::min);
        cursor.at -= line.len() - end;
        let seen = Seen::Reading {
            name: String::from(*name),
            value: line[..end].trim().replace(|it: char| it.is_control(), "?"),
            is_cumulative: false,
        };
        one(began, cursor, seen)
    }
}
