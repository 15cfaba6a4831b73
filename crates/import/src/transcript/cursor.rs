//! A place in a plain text, and what can be read from there.
//!
//! What must hold: each step looks at a bounded number of bytes. Where a word may have a space, any number may stand,
//! or none; where it has none, a line may have been wrapped.

use std::ops::Range;

/// Spaces and ends of lines that are taken for one gap.
const GAP_MAX: usize = 200;
/// Digits of a number.
const DIGITS_MAX: usize = 24;
/// Spaces at the beginning of a line that a word goes on in.
const INDENT_MAX: usize = 8;

/// A place, and the text.
#[derive(Clone)]
pub struct Cursor<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
    /// Whether a number goes on in the next line when that begins with a digit.
    pub joins: bool,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Cursor {
            bytes,
            at,
            joins: false,
        }
    }

    pub fn peek(&self) -> u8 {
        self.ahead(0)
    }

    pub fn ahead(&self, by: usize) -> u8 {
        self.bytes.get(self.at + by).copied().unwrap_or(0)
    }

    /// The byte before.
    pub fn behind(&self) -> u8 {
        let before = self.at.checked_sub(1).and_then(|at| self.bytes.get(at));
        before.copied().unwrap_or(0)
    }

    /// Something, unless this is the middle of a number.
    pub fn begins_number(&self) -> Option<()> {
        let before = self.behind();
        let is_within = before.is_ascii_digit() || matches!(before, b'.' | b',');
        (!is_within).then_some(())
    }

    /// Passes spaces and ends of lines, of which there may be none.
    pub fn gap(&mut self) -> &mut Self {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        let blank = rest.iter().take(GAP_MAX);
        self.at += blank
            .take_while(|byte| matches!(byte, b' ' | b'\n'))
            .count();
        self
    }

    /// Passes spaces of the same line.
    pub fn spaces(&mut self) -> &mut Self {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        let blank = rest.iter().take(GAP_MAX);
        self.at += blank.take_while(|byte| **byte == b' ').count();
        self
    }

    /// Passes this byte.
    pub fn byte(&mut self, byte: u8) -> Option<()> {
        (self.peek() == byte).then(|| self.at += 1)
    }

    /// Passes these words, also wrapped and with other spaces. On failure nothing is passed.
    pub fn words(&mut self, words: &str) -> Option<()> {
        let began = self.at;
        for (index, letter) in words.bytes().enumerate() {
            if letter == b' ' {
                self.gap();
                continue;
            }
            if self.peek() != letter && self.peek() == b'\n' && index > 0 {
                self.at += 1;
                for _ in 0..INDENT_MAX {
                    let _ = self.byte(b' ');
                }
            }
            if self.byte(letter).is_none() {
                self.at = began;
                return None;
            }
        }
        Some(())
    }

    /// Passes the first of these that stands here, and tells which.
    pub fn any<'w>(&mut self, words: &[&'w str]) -> Option<&'w str> {
        words
            .iter()
            .copied()
            .find(|words| self.words(words).is_some())
    }

    fn digit(&self, by: usize) -> bool {
        self.ahead(by).is_ascii_digit()
    }

    /// Whether three digits and no fourth stand `by` bytes ahead.
    fn is_group(&self, by: usize) -> bool {
        (0..3).all(|more| self.digit(by + more)) && !self.digit(by + 3)
    }

    /// Digits, of which thousands may be set apart by commas, and by spaces where `by_spaces` says so.
    fn whole(&mut self, by_spaces: bool) -> Option<String> {
        let mut digits = String::new();
        let mut has_groups = false;
        while digits.len() < DIGITS_MAX {
            if self.digit(0) {
                digits.push(char::from(self.peek()));
                self.at += 1;
                continue;
            }
            let may_part = has_groups || digits.len() <= 3;
            let parts = self.peek() == b',' || (by_spaces && self.peek() == b' ');
            let is_parted = parts && may_part && self.is_group(1);
            let is_wrapped = self.joins && self.peek() == b'\n' && self.digit(1);
            if !digits.is_empty() && (is_parted || is_wrapped) {
                has_groups |= is_parted;
                self.at += 1;
                continue;
            }
            break;
        }
        (!digits.is_empty() && !self.digit(0)).then_some(digits)
    }

    /// A whole number.
    pub fn count(&mut self, by_spaces: bool) -> Option<f64> {
        let began = self.at;
        let number = self.whole(by_spaces).and_then(|digits| digits.parse().ok());
        if number.is_none() {
            self.at = began;
        }
        number
    }

    /// A number, of which the decimal point may be a comma.
    pub fn number(&mut self) -> Option<f64> {
        let began = self.at;
        let mut digits = self.whole(false)?;
        if matches!(self.peek(), b'.' | b',') {
            let wrapped = usize::from(self.joins && self.ahead(1) == b'\n');
            if self.digit(1 + wrapped) {
                self.at += 1 + wrapped;
                digits.push('.');
                while digits.len() < 2 * DIGITS_MAX {
                    if self.joins && self.peek() == b'\n' && self.digit(1) {
                        self.at += 1;
                    }
                    if !self.digit(0) {
                        break;
                    }
                    digits.push(char::from(self.peek()));
                    self.at += 1;
                }
            }
        }
        let number = digits.parse().ok().filter(|it: &f64| it.is_finite());
        if number.is_none() {
            self.at = began;
        }
        number
    }

    /// A word of letters that `takes` takes, of at most `max`.
    pub fn word(&mut self, max: usize, takes: impl Fn(u8) -> bool) -> Option<&'a str> {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        let length = rest
            .iter()
            .take(max)
            .take_while(|byte| takes(**byte))
            .count();
        let word = std::str::from_utf8(&rest[..length]).ok();
        self.at += length;
        word.filter(|word| !word.is_empty())
    }

    /// What stands in a range, on one line.
    pub fn shown(bytes: &[u8], range: Range<usize>) -> String {
        let text = String::from_utf8_lossy(&bytes[range]);
        let words: Vec<&str> = text
            .split([' ', '\n'])
            .filter(|it| !it.is_empty())
            .collect();
        let text = words
            .join(" ")
            .replace(|letter: char| letter.is_control(), "?");
        text.chars().take(160).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Cursor<'_> {
        Cursor::new(text.as_bytes(), 0)
    }

    #[test]
    fn words_are_found_wrapped_and_with_any_spaces() {
        for text in [
            "Server Report:",
            "ServerReport:",
            "Server   Re\n  port:",
            "Server\nReport:",
        ] {
            assert!(at(text).words("Server Report:").is_some(), "{text:?}");
        }
        let mut short = at("Server Rep");
        assert!(short.words("Server Report:").is_none() && short.at == 0);
    }

    #[test]
    fn numbers_are_read_with_thousands_decimals_and_wraps() {
        let count = |text: &str, by_spaces| at(text).count(by_spaces);
        assert_eq!(count("1,125,481 x", false), Some(1_125_481.0));
        assert_eq!(count("1 125 481x", true), Some(1_125_481.0));
        assert_eq!(count("80635053 1057", true), Some(80_635_053.0));
        assert_eq!(count("3 100", false), Some(3.0));
        assert_eq!(at("8,87 Mb").number(), Some(8.87));
        assert_eq!(at("0.0- 5").number(), Some(0.0));
        assert_eq!(at("7.").number(), Some(7.0));
        let mut wrapped = at("14\n4.\n5 M");
        assert_eq!(wrapped.number(), Some(14.0));
        wrapped = Cursor {
            joins: true,
            ..at("14\n4.\n5 M")
        };
        assert_eq!(wrapped.number(), Some(144.5));
    }
}
