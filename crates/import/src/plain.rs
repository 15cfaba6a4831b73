//! Reduces a text from a web page, a mail or a terminal to plain ASCII, and maps positions back to the source.
//!
//! Escape sequences, entities, quote marks and typographic characters become what the tool printed; the time and the
//! speaker before each line of a chat are taken off. The mapping takes less than two bits per byte.

use std::ops::Range;

/// Replaces a character outside ASCII.
pub const OTHER: u8 = 1;
/// Marks where a terminal moved its cursor: what follows may overwrite what came before.
pub const MOVED: u8 = 2;
/// Longest escape sequence.
const ESCAPE_MAX: usize = 16;

/// Bytes of plain text, and of source, between recorded positions.
const STEP: usize = 64;

/// The plain text.
pub struct Plain<'s> {
    /// Its bytes, all below 128.
    pub bytes: Vec<u8>,
    source: &'s str,
    /// Source position of every 64th byte of the plain text.
    stood: Vec<usize>,
    /// Line breaks in the source before every 64th byte of it.
    lines: Vec<u32>,
    /// Where lines of a chat begin, and who speaks.
    spoken: Vec<(usize, &'s str)>,
}

impl<'s> Plain<'s> {
    /// Converts a source of less than 4 GiB.
    pub fn of(source: &'s str) -> Self {
        let mut bytes = Vec::with_capacity(source.len());
        let mut stood = Vec::new();
        let mut spoken = Vec::new();
        for (at, byte) in letters(source, b'\n') {
            if bytes.last().is_none_or(|it| *it == b'\n') {
                let line = source[..at].rfind('\n').map_or(0, |it| it + 1);
                let nick = speaker(&source[line..]).filter(|it| line + it.0 <= at);
                spoken.extend(nick.map(|it| (bytes.len(), it.1)));
            }
            if bytes.len() % STEP == 0 {
                stood.push(at);
            }
            bytes.push(byte);
        }
        let mut ended = 0;
        let lines = source.as_bytes().chunks(STEP).map(|chunk| {
            let before = ended;
            ended += ends_of_lines(chunk);
            before
        });
        Plain {
            bytes,
            source,
            stood,
            lines: lines.collect(),
            spoken,
        }
    }

    /// Who speaks in the line of a chat that begins here.
    pub fn speaker(&self, here: usize) -> Option<&'s str> {
        let found = self.spoken.binary_search_by_key(&here, |it| it.0);
        found.ok().map(|at| self.spoken[at].1)
    }

    /// A line without the time and the speaker of a chat.
    pub fn said(line: &str) -> &str {
        &line[speaker(line).map_or(0, |it| it.0)..]
    }

    /// Who speaks last before a place, or at it.
    pub fn last_speaker(&self, here: usize) -> Option<&'s str> {
        let after = self.spoken.partition_point(|it| it.0 <= here);
        after.checked_sub(1).map(|at| self.spoken[at].1)
    }

    /// Who speaks in the lines of a chat, and the lines.
    pub fn spoken(&self) -> impl Iterator<Item = (&'s str, &'s str)> {
        let line = |at: usize| self.source[self.source(at)..].lines().next();
        let spoken = self.spoken.iter();
        spoken.map(move |it| (it.1, line(it.0).unwrap_or_default()))
    }

    /// Some of the source before a position.
    pub fn before(&self, at: usize) -> &'s str {
        let mut from = at.saturating_sub(2 * STEP);
        while !self.source.is_char_boundary(from) {
            from += 1;
        }
        &self.source[from..at]
    }

    /// The source position of a plain byte.
    pub fn source(&self, here: usize) -> usize {
        let Some(from) = self.stood.get(here / STEP) else {
            return self.source.len();
        };
        let first = here - here % STEP;
        let before = first.checked_sub(1).map_or(b'\n', |at| self.bytes[at]);
        let found = letters(&self.source[*from..], before).nth(here - first);
        found.map_or(self.source.len(), |(at, _)| from + at)
    }

    /// The source range of a plain range.
    pub fn sources(&self, here: &Range<usize>) -> Range<usize> {
        let start = self.source(here.start);
        match here.end.checked_sub(1).filter(|last| *last >= here.start) {
            Some(last) => start..(self.source(last) + 1).min(self.source.len()),
            None => start..start,
        }
    }

    /// The line of a source position, from 1.
    pub fn line(&self, source: usize) -> u32 {
        let step = (source / STEP).min(self.lines.len().saturating_sub(1));
        let since = &self.source.as_bytes()[step * STEP..source];
        1 + self.lines.get(step).unwrap_or(&0) + ends_of_lines(since)
    }
}

fn ends_of_lines(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u32
}

/// The plain bytes of a text after the byte `last`, each with its position.
fn letters(source: &str, mut last: u8) -> impl Iterator<Item = (usize, u8)> {
    let bytes = source.as_bytes();
    let mut next = 0;
    std::iter::from_fn(move || {
        loop {
            if last == b'\n' {
                next += speaker(&source[next..]).map_or(0, |it| it.0);
            }
            let at = next;
            let first = *bytes.get(at)?;
            next += 1;
            let found = match first {
                // A mail quote mark, with the space after it.
                b'>' if last == b'\n' => {
                    next += usize::from(bytes.get(next) == Some(&b' '));
                    None
                }
                b'&' | b'<' | b'[' => {
                    let (name, byte) = entity(&source[at..]).unwrap_or(("&", first));
                    next = at + name.len();
                    Some(byte)
                }
                b' '..=b'~' | b'\n' => Some(first),
                b'\r' if bytes.get(next) == Some(&b'\n') => None,
                0x1b => {
                    next = at + escape_end(&bytes[at..]);
                    let is_colour = bytes[next - 1] == b'm';
                    while !source.is_char_boundary(next) {
                        next += 1;
                    }
                    (!is_colour).then_some(MOVED)
                }
                _ => source[at..].chars().next().and_then(|letter| {
                    next = at + letter.len_utf8();
                    plain_letter(letter)
                }),
            };
            if let Some(byte) = found {
                last = byte;
                return Some((at, byte));
            }
        }
    })
}

/// The length of what stands before the words in a line of a chat, and who speaks: `20:37 <jonas> `,
/// `Feb 18 21:08:30 <@jonas>\t`, `[20:37] jonas: `.
fn speaker(text: &str) -> Option<(usize, &str)> {
    const WHEN: &str =
        "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec Mon Tue Wed Thu Fri Sat Sun AM PM am pm";
    const STAMP_MAX: usize = 6;
    const WORD_MAX: usize = 16;
    const NICK_MAX: usize = 24;
    let is_time = |it: &str| {
        let inner = it.trim_matches(['[', ']', '(', ')', ',']);
        let is_number = inner.starts_with(|it: char| it.is_ascii_digit());
        is_number && !inner.contains(|it: char| it.is_ascii_alphabetic())
            || inner.len() > 1 && WHEN.split(' ').any(|word| word == inner)
    };
    let (mut stamp, mut said) = ("", text);
    for _ in 0..STAMP_MAX {
        let end = said.bytes().take(WORD_MAX).position(|it| it == b' ');
        let Some((word, rest)) = end
            .map(|it| (&said[..it], &said[it + 1..]))
            .filter(|it| is_time(it.0))
        else {
            break;
        };
        stamp = &text[..stamp.len() + word.len() + 1];
        said = rest;
    }
    let is_of_name = |it: char| it.is_ascii_alphanumeric() || "_-|`^{}[]".contains(it);
    let before = |said: &str, mark: u8| said.bytes().take(NICK_MAX + 2).position(|it| it == mark);
    let (nick, end) = match said.strip_prefix('<') {
        Some(inner) => {
            let nick = &inner[..before(inner, b'>')?];
            (
                nick.trim_start_matches([' ', '@', '+', '%', '&', '~']),
                nick.len() + 2,
            )
        }
        None if stamp.starts_with('[') => {
            let nick = &said[..before(said, b':')?];
            (nick, nick.len() + 1)
        }
        None => return None,
    };
    let is_nick = (1..=NICK_MAX).contains(&nick.len()) && nick.chars().all(is_of_name);
    // `<jonas> ` without a time may be a tag.
    let is_timed = stamp.contains(':') || stamp.is_empty() && entity(text).is_none();
    let is_said = said[end..].starts_with([' ', '\t']);
    (is_nick && is_timed && is_said).then_some((stamp.len() + end + 1, nick))
}

/// Length of an escape sequence (ECMA-48), at least 1.
fn escape_end(text: &[u8]) -> usize {
    if text.get(1) != Some(&b'[') {
        return 1;
    }
    let text = &text[..text.len().min(ESCAPE_MAX)];
    let mut body = text.iter().skip(2);
    let last = body.position(|byte| (0x40..0x7f).contains(byte));
    last.map_or(text.len(), |last| last + 3)
}

/// Matches an HTML entity, or a tag that only says how text looks; returns it and the character it stands for.
fn entity(text: &str) -> Option<(&'static str, u8)> {
    const TAGS: &str = "<code> </code> <pre> </pre> <tt> </tt> <b> </b> <i> </i> <em> </em> <strong> </strong> \
        [code] [/code] [CODE] [/CODE]";
    const ENTITIES: [(&str, u8); 6] = [
        ("&nbsp;", b' '),
        ("&lt;", b'<'),
        ("&gt;", b'>'),
        ("&amp;", b'&'),
        ("&quot;", b'"'),
        ("&#39;", b'\''),
    ];
    let tags = TAGS.split(' ').map(|it| (it, b' '));
    let mut all = ENTITIES.into_iter().chain(tags);
    all.find(|(name, _)| text.starts_with(name))
}

/// The plain form of a character; `None` if it has no width.
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
        '\u{2192}' | '\u{21d2}' | '\u{2794}' | '\u{279c}' => b'>',
        '\u{b5}' | '\u{3bc}' => b'u',
        _ => OTHER,
    })
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
    fn lines_of_a_chat_lose_their_time_and_speaker() {
        let lines = [
            ("20:37 <jonas> ok", Some("jonas"), "ok"),
            ("20:06 < ilse> [  5] x", Some("ilse"), "[  5] x"),
            (
                "Feb 18 21:08:30 <@pjotr>\tttcp-t: socket",
                Some("pjotr"),
                "ttcp-t: socket",
            ),
            ("[20:59] bjorn_: a < b", Some("bjorn_"), "a < b"),
            ("<jonas> ok", Some("jonas"), "ok"),
            ("<code> ok", None, "  ok"),
            ("14:02:31  3  2.14", None, "14:02:31  3  2.14"),
            ("[  3]  0.0-10.0 sec: no", None, "[  3]  0.0-10.0 sec: no"),
            ("[12:01] two words: no", None, "[12:01] two words: no"),
        ];
        let source = lines.map(|it| it.0).join("\n");
        let plain = Plain::of(&source);
        let mut at = 0;
        for (line, (_, speaker, said)) in text(&plain).lines().zip(lines) {
            assert_eq!((plain.speaker(at), line), (speaker, said));
            if speaker.is_some() {
                assert!(source[plain.source(at)..].starts_with(said), "{said}");
            }
            at += line.len() + 1;
        }
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
