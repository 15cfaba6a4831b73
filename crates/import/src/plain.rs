//! Plain letters of a text from a web page, a mail or a terminal, with the way back to the source.
//!
//! Escape sequences, entities, quote marks and typographic letters become what the tool printed. The way back takes two
//! bits for each byte of the source.

use std::ops::Range;

/// Stands for a letter of another alphabet.
pub const OTHER: u8 = 1;
/// Stands for a place where a terminal moved its cursor: what follows may overwrite what was before.
pub const MOVED: u8 = 2;
/// A longer escape sequence is none.
const ESCAPE_MAX: usize = 16;

/// The text.
pub struct Plain {
    /// Its bytes, all below 128.
    pub bytes: Vec<u8>,
    /// Where in the source each of them stood.
    kept: Bits,
    source_bytes: usize,
    newlines: Bits,
}

impl Plain {
    /// Of a text of less than 4 GiB.
    pub fn of(source: &str) -> Self {
        let mut bytes = Vec::with_capacity(source.len());
        let kept = Bits::of(
            source.len(),
            letters(source).map(|(at, byte)| {
                bytes.push(byte);
                at
            }),
        );
        let newlines = source
            .bytes()
            .enumerate()
            .filter(|(_, byte)| *byte == b'\n');
        Plain {
            bytes,
            kept,
            source_bytes: source.len(),
            newlines: Bits::of(source.len(), newlines.map(|(at, _)| at)),
        }
    }

    /// The byte of the source that became a byte here.
    pub fn source(&self, here: usize) -> usize {
        self.kept.position(here as u32).unwrap_or(self.source_bytes)
    }

    /// The bytes of the source that became these.
    pub fn sources(&self, here: &Range<usize>) -> Range<usize> {
        let start = self.source(here.start);
        match here.end.checked_sub(1).filter(|last| *last >= here.start) {
            Some(last) => start..(self.source(last) + 1).min(self.source_bytes),
            None => start..start,
        }
    }

    /// The line of a byte of the source, from 1.
    pub fn line(&self, source: usize) -> u32 {
        1 + self.newlines.below(source)
    }
}

/// The plain letters of a text, each with its byte there.
fn letters(source: &str) -> impl Iterator<Item = (usize, u8)> {
    let mut rest = source.char_indices().peekable();
    let mut last = b'\n';
    std::iter::from_fn(move || {
        loop {
            let (at, letter) = rest.next()?;
            if letter == '>' && last == b'\n' {
                // Mail quotes so. A space behind it belongs to it.
                rest.next_if(|(_, next)| *next == ' ');
                continue;
            }
            let found = match letter {
                '\u{1b}' => {
                    let end = escape_end(&source.as_bytes()[at..]);
                    while rest.next_if(|(next, _)| *next < at + end).is_some() {}
                    (source.as_bytes()[at + end - 1] != b'm').then_some(MOVED)
                }
                '\r' if rest.peek().is_some_and(|(_, next)| *next == '\n') => None,
                '&' => match entity(&source[at..]) {
                    Some((name, byte)) => {
                        while rest.next_if(|(next, _)| *next < at + name.len()).is_some() {}
                        Some(byte)
                    }
                    None => Some(b'&'),
                },
                letter => plain_letter(letter),
            };
            if let Some(byte) = found {
                last = byte;
                return Some((at, byte));
            }
        }
    })
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

/// Words between two counts.
const STEP: usize = 64;

/// The set.
pub struct Bits {
    words: Vec<u64>,
    /// Positions before each step.
    before: Vec<u32>,
}

impl Bits {
    /// Some positions of a text of this length.
    pub fn of(length: usize, positions: impl Iterator<Item = usize>) -> Self {
        let mut words = vec![0u64; length.div_ceil(64)];
        for at in positions {
            words[at / 64] |= 1u64 << (at % 64);
        }
        let mut count = 0;
        let before = words.chunks(STEP).map(|step| {
            let before = count;
            count += ones(step);
            before
        });
        Bits {
            before: before.collect(),
            words,
        }
    }

    /// How many positions are below this one.
    pub fn below(&self, at: usize) -> u32 {
        let word = (at / 64).min(self.words.len());
        // A text that fills its last step has no count behind it.
        let step = (word / STEP).min(self.before.len().saturating_sub(1));
        let before = self.before.get(step).copied().unwrap_or(0);
        let rest = self
            .words
            .get(at / 64)
            .map_or(0, |it| it & ((1u64 << (at % 64)) - 1));
        before + ones(&self.words[(step * STEP).min(word)..word]) + rest.count_ones()
    }

    /// The position with this number, from 0, if there are so many.
    pub fn position(&self, number: u32) -> Option<usize> {
        let step = self.before.partition_point(|before| *before <= number);
        let step = step.checked_sub(1)?;
        let mut left = number - self.before[step];
        for (word, at) in self.words[step * STEP..].iter().zip(step * STEP..) {
            let here = word.count_ones();
            if left < here {
                let mut word = *word;
                for _ in 0..left {
                    word &= word - 1;
                }
                return Some(at * 64 + word.trailing_zeros() as usize);
            }
            left -= here;
        }
        None
    }
}

fn ones(words: &[u64]) -> u32 {
    words.iter().map(|word| word.count_ones()).sum()
}

#[cfg(test)]
mod plain_tests {
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
        for at in [0, 2, 3, 4095, 4096, 4097, 3 * 4_999, source.len() - 1] {
            let expected = 1 + source[..at].matches('\n').count() as u32;
            assert_eq!(plain.line(at), expected, "{at}");
        }
    }
}

#[cfg(test)]
mod bits_tests {
    use super::*;

    #[test]
    fn positions_are_counted_and_found_across_steps() {
        let length = 3 * 64 * STEP + 17;
        let all: Vec<usize> = (0..length)
            .filter(|at| at % 3 == 1 || at % 4096 < 5)
            .collect();
        let bits = Bits::of(length, all.iter().copied());
        for (number, at) in all.iter().enumerate().step_by(7) {
            assert_eq!(bits.position(number as u32), Some(*at));
            assert_eq!(bits.below(*at), number as u32);
            assert_eq!(bits.below(at + 1), number as u32 + 1);
        }
        assert_eq!(bits.position(all.len() as u32), None);
        assert_eq!(bits.below(length), all.len() as u32);
        let none = Bits::of(0, std::iter::empty());
        assert_eq!((none.below(0), none.position(0)), (0, None));
    }
}
