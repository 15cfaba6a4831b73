//! A text in plain letters, with the way back to where each of them stood.
//!
//! What must hold: every byte here knows its byte in the source. Letters that look like ASCII (full-width forms, curly
//! quotes, dashes, odd spaces) become ASCII; what has no width goes; any other letter becomes one byte that is no
//! letter, digit or space, so that a figure beside it is still found. Time and memory follow from the length alone.

use std::ops::Range;

/// Stands for a letter of another alphabet.
pub const OTHER: u8 = 1;
/// Stands for a place where a terminal moved its cursor: what follows may overwrite what was before.
pub const MOVED: u8 = 2;
/// Bytes between two counts of lines.
const STEP: usize = 4096;
/// A longer escape sequence is none.
const ESCAPE_MAX: usize = 16;

/// The text.
pub struct Plain {
    /// Its bytes, all below 128.
    pub bytes: Vec<u8>,
    /// Where the distance between here and the source changes: here, and there.
    moves: Vec<(u32, u32)>,
    /// Newlines before each step of the source.
    lines: Vec<u32>,
    newlines: Vec<u8>,
}

impl Plain {
    /// Of a text of less than 4 GiB.
    pub fn of(source: &str) -> Self {
        let mut plain = Plain {
            bytes: Vec::with_capacity(source.len()),
            moves: vec![(0, 0)],
            lines: Vec::with_capacity(source.len() / STEP + 1),
            newlines: Vec::with_capacity(source.len() / 8 + 1),
        };
        plain.count_lines(source.as_bytes());
        let mut rest = source.char_indices().peekable();
        while let Some((at, letter)) = rest.next() {
            let is_first = plain.bytes.last().is_none_or(|last| *last == b'\n');
            if letter == '>' && is_first {
                // Mail quotes so. A space behind it belongs to it.
                rest.next_if(|(_, next)| *next == ' ');
                continue;
            }
            if letter == '\u{1b}' {
                let end = escape_end(&source.as_bytes()[at..]);
                while rest.next_if(|(next, _)| *next < at + end).is_some() {}
                if source.as_bytes()[at + end - 1] != b'm' {
                    plain.push(MOVED, at);
                }
                continue;
            }
            if letter == '&'
                && let Some((name, byte)) = entity(&source[at..])
            {
                while rest.next_if(|(next, _)| *next < at + name.len()).is_some() {}
                plain.push(byte, at);
                continue;
            }
            let is_return = letter == '\r' && rest.peek().is_some_and(|(_, next)| *next == '\n');
            if !is_return && let Some(byte) = plain_letter(letter) {
                plain.push(byte, at);
            }
        }
        plain
            .moves
            .push((plain.bytes.len() as u32, source.len() as u32));
        plain
    }

    fn count_lines(&mut self, source: &[u8]) {
        let mut before = 0;
        for step in source.chunks(STEP) {
            self.lines.push(before);
            before += step.iter().filter(|byte| **byte == b'\n').count() as u32;
        }
        // A bit for each byte of the source.
        self.newlines = source
            .chunks(8)
            .map(|eight| {
                let bits = eight.iter().zip(0..).filter(|(byte, _)| **byte == b'\n');
                bits.fold(0, |bits, (_, place)| bits | 1 << place)
            })
            .collect();
    }

    fn push(&mut self, byte: u8, source: usize) {
        let here = self.bytes.len() as u32;
        let source = source as u32;
        let (last_here, last_source) = self.moves[self.moves.len() - 1];
        if source - last_source != here - last_here {
            self.moves.push((here, source));
        }
        self.bytes.push(byte);
    }

    /// The byte of the source that became a byte here.
    pub fn source(&self, here: usize) -> usize {
        let after = self.moves.partition_point(|(at, _)| *at as usize <= here);
        let (at, source) = self.moves[after.max(1) - 1];
        source as usize + here - at as usize
    }

    /// The bytes of the source that became these.
    pub fn sources(&self, here: &Range<usize>) -> Range<usize> {
        let start = self.source(here.start);
        match here.end.checked_sub(1).filter(|last| *last >= here.start) {
            Some(last) => start..(self.source(last) + 1).min(self.source(self.bytes.len())),
            None => start..start,
        }
    }

    /// The line of a byte of the source, from 1.
    pub fn line(&self, source: usize) -> u32 {
        let step = (source / STEP).min(self.lines.len().saturating_sub(1));
        let before = self.lines.get(step).copied().unwrap_or(0);
        let first = step * STEP / 8;
        let mut found = 0;
        for byte in first..source / 8 {
            found += self.newlines.get(byte).map_or(0, |bits| bits.count_ones());
        }
        let last = self.newlines.get(source / 8).copied().unwrap_or(0);
        let last = last & ((1u16 << (source % 8)) - 1) as u8;
        1 + before + found + last.count_ones()
    }
}

/// The bytes of an escape sequence (ECMA-48), at least one.
fn escape_end(text: &[u8]) -> usize {
    if text.get(1) != Some(&b'[') {
        return 1;
    }
    let body = text.iter().take(ESCAPE_MAX).skip(2);
    body.take_while(|byte| !(0x40..0x7f).contains(*byte))
        .count()
        + match text.len() {
            0..=2 => text.len(),
            _ => 2,
        }
        + usize::from(
            text.iter()
                .take(ESCAPE_MAX)
                .skip(2)
                .any(|byte| (0x40..0x7f).contains(byte)),
        )
}

/// What a web page writes for letters of its own.
fn entity(text: &str) -> Option<(&'static str, u8)> {
    const ENTITIES: [(&str, u8); 6] = [
        ("&nbsp;", b' '),
        ("&lt;", b'<'),
        ("&gt;", b'>'),
        ("&amp;", b'&'),
        ("&quot;", b'"'),
        ("&#39;", b'\''),
    ];
    ENTITIES
        .into_iter()
        .find(|(name, _)| text.starts_with(name))
}

/// The plain form of a letter; nothing for what has no width.
fn plain_letter(letter: char) -> Option<u8> {
    Some(match letter {
        '\n' | '\r' => b'\n',
        ' '..='~' => letter as u8,
        '\t' | '\u{b}' | '\u{c}' => b' ',
        '\u{8}' => MOVED,
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => b' ',
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\0' => return None,
        '\u{ff01}'..='\u{ff5e}' => (letter as u32 - 0xfee0) as u8,
        '\u{2018}'..='\u{201b}' | '\u{2032}' => b'\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{ab}' | '\u{bb}' => b'"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' => b'-',
        '\u{2502}' => b'|',
        _ => OTHER,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(plain: &Plain) -> String {
        plain.bytes.iter().map(|byte| char::from(*byte)).collect()
    }

    #[test]
    fn letters_that_look_alike_become_ascii_and_know_where_they_stood() {
        let source = "a\u{a0}\u{ff11}\u{ff12}\u{200b}\u{2013}\u{201c}b\u{201d}\r\n> > \u{5e45}7 &nbsp;x\x1b[1mY\x1b[2;3H9";
        let plain = Plain::of(source);
        assert_eq!(text(&plain), "a 12-\"b\"\n\u{1}7  xY\u{2}9");
        for (here, byte) in plain.bytes.iter().enumerate() {
            let at = plain.source(here);
            let letter = source[at..].chars().next().unwrap();
            if *byte >= b'0' && letter.is_ascii_alphanumeric() {
                assert_eq!(char::from(*byte), letter);
            }
        }
        let seven = plain.bytes.iter().position(|byte| *byte == b'7').unwrap();
        assert_eq!(&source[plain.sources(&(seven..seven + 1))], "7");
        assert_eq!(plain.line(plain.source(seven)), 2);
    }

    #[test]
    fn lines_are_counted_across_steps() {
        let source = "ab\n".repeat(5_000);
        let plain = Plain::of(&source);
        for at in [
            0,
            2,
            3,
            STEP - 1,
            STEP,
            STEP + 1,
            3 * 4_999,
            source.len() - 1,
        ] {
            let expected = 1 + source[..at].matches('\n').count() as u32;
            assert_eq!(plain.line(at), expected, "{at}");
        }
    }
}
