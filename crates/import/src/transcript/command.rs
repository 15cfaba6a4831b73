//! Commands with their prompts: on which host a command ran, and with which options.
//!
//! What must hold: a word is a command only with arguments as that command takes them, so that prose about a tool and
//! a heading with its name are none. A prompt does not reach back into what was found before it.

use super::anchor::{Anchor, Recogniser, Seen, one};
use super::cursor::Cursor;

/// Bytes of a prompt.
const PROMPT_MAX: usize = 64;
/// Words of a command.
const WORDS_MAX: usize = 40;

/// Programs whose commands are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Iperf,
    Netblast,
    Netreceive,
    Netsend,
    /// Prints CPU states, counters or variables.
    Look,
    Sysctl,
    Ifconfig,
    Ethtool,
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    pub tool: Tool,
    /// The host that the prompt names.
    pub host: Option<String>,
    /// Whether there is a prompt.
    pub is_prompted: bool,
    /// Its arguments.
    pub words: Vec<String>,
}

impl Command {
    /// The value of an option of one letter: glued to it, or the next word.
    pub fn option(&self, letter: char) -> Option<&str> {
        let is_it = |word: &String| {
            let name = word.strip_prefix('-').filter(|it| !it.starts_with('-'));
            name.is_some_and(|name| name.starts_with(letter))
        };
        let at = self.words.iter().position(is_it)?;
        match &self.words[at][2..] {
            "" => {
                let next = self.words.get(at + 1).map(String::as_str);
                next.filter(|it| !it.starts_with('-'))
            }
            glued => Some(glued),
        }
    }

    /// Whether an option without a value is there.
    pub fn has(&self, letter: char) -> bool {
        // Flags may share a dash: -us.
        let flags = self.words.iter().filter_map(|word| word.strip_prefix('-'));
        let mut flags = flags.filter(|it| !it.starts_with('-'));
        flags.any(|it| it.starts_with(letter) || (it.len() < 4 && it.contains(letter)))
    }
}

/// The names of a tool, and how its first argument looks.
struct Known {
    tool: Tool,
    name: &'static str,
    /// Letters by which people misspell it.
    slips: usize,
    takes: fn(&str) -> bool,
}

const KNOWN: [Known; 13] = [
    known(Tool::Iperf, "iperf", 1, is_option),
    known(Tool::Netblast, "netblast", 2, is_address),
    known(Tool::Netreceive, "netreceive", 2, is_number),
    known(Tool::Netsend, "netsend", 1, is_address),
    known(Tool::Look, "top", 0, is_end_or_option),
    known(Tool::Look, "vmstat", 1, is_option),
    known(Tool::Look, "netstat", 1, is_option),
    known(Tool::Look, "systat", 1, is_option),
    known(Tool::Ethtool, "ethtool", 1, is_option),
    known(Tool::Sysctl, "sysctl", 1, |word| {
        is_option(word) || word.contains('.')
    }),
    known(Tool::Look, "dmesg", 0, |word| {
        is_end_or_option(word) || word == "|"
    }),
    known(Tool::Look, "uname", 0, is_option),
    known(Tool::Ifconfig, "ifconfig", 1, is_interface_or_end),
];

const fn known(tool: Tool, name: &'static str, slips: usize, takes: fn(&str) -> bool) -> Known {
    Known {
        tool,
        name,
        slips,
        takes,
    }
}

fn is_option(word: &str) -> bool {
    let letter = word.strip_prefix('-').map(str::as_bytes);
    letter
        .and_then(<[u8]>::first)
        .is_some_and(u8::is_ascii_alphabetic)
}

fn is_end_or_option(word: &str) -> bool {
    word.is_empty() || is_option(word)
}

fn is_number(word: &str) -> bool {
    word.starts_with(|letter: char| letter.is_ascii_digit())
}

fn is_address(word: &str) -> bool {
    is_number(word) || word.contains(':') || word.contains('.')
}

fn is_interface_or_end(word: &str) -> bool {
    let letters = word.trim_end_matches(|letter: char| letter.is_ascii_digit());
    is_end_or_option(word)
        || (letters.len() < word.len()
            && letters.len() <= 10
            && letters.bytes().all(|it| it.is_ascii_lowercase()))
}

/// A command behind a prompt: `host:/dir#`, `[user@host]~#`, `/dir#`, a bare `#`; also `$`, `%` and `>`.
pub struct Prompted;

impl Recogniser for Prompted {
    fn first(&self) -> &'static [u8] {
        b"#$%>"
    }

    fn read(&self, cursor: &mut Cursor, from: usize) -> Option<Vec<Anchor>> {
        let mark = cursor.at;
        cursor.at += 1;
        cursor.spaces();
        let (tool, words) = command(cursor)?;
        let (host, began) = prompt(cursor.bytes, mark, from);
        let command = Command {
            tool,
            host,
            is_prompted: true,
            words,
        };
        one(began, cursor, Seen::Command(command))
    }
}

/// A command without a prompt, as in a sentence or at the beginning of a line.
pub struct Bare;

impl Recogniser for Bare {
    fn first(&self) -> &'static [u8] {
        b"eins./"
    }

    fn read(&self, cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
        let began = cursor.at;
        let before = cursor.behind();
        if before.is_ascii_alphanumeric() || matches!(before, b'.' | b'/' | b'-' | b'_') {
            return None;
        }
        let (tool, words) = command(cursor)?;
        let command = Command {
            tool,
            host: None,
            is_prompted: false,
            words,
        };
        one(began, cursor, Seen::Command(command))
    }
}

/// The tool whose name stands here, and its arguments.
fn command(cursor: &mut Cursor) -> Option<(Tool, Vec<String>)> {
    let _ = cursor.words("sudo ");
    let began = cursor.at;
    let path = cursor.word(48, |it| {
        it.is_ascii_alphanumeric() || matches!(it, b'/' | b'.' | b'_')
    });
    let name = path
        .unwrap_or_default()
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let whole = KNOWN.iter().find(|known| is_name(name, known));
    let known = match whole {
        Some(known) => known,
        None => {
            // The name may be wrapped.
            cursor.at = began;
            KNOWN
                .iter()
                .find(|known| cursor.words(known.name).is_some())?
        }
    };
    // A word of prose is no command: the others behind it are not read for it.
    let first = arguments(&mut cursor.clone(), known.tool, 1);
    (known.takes)(first.first().map_or("", String::as_str)).then_some(())?;
    Some((known.tool, arguments(cursor, known.tool, WORDS_MAX)))
}

fn is_name(name: &str, known: &Known) -> bool {
    let length = name.len().abs_diff(known.name.len());
    // Release numbers hang on: iperf2, iperf-2.0.5.
    let plain = name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.');
    plain == known.name
        || (known.slips > 0
            && length <= 1
            && name.len() >= 4
            && slips(name, known.name) <= known.slips)
}

/// Letters that are missing, too many, wrong or in each other's place (Damerau and Levenshtein).
fn slips(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let width = other.len() + 1;
    let mut cost = vec![0; (one.len() + 1) * width];
    for row in 0..=one.len() {
        for column in 0..=other.len() {
            let at = |row: usize, column: usize| row * width + column;
            if row == 0 || column == 0 {
                cost[at(row, column)] = row + column;
                continue;
            }
            let differs = usize::from(one[row - 1] != other[column - 1]);
            let mut least = (cost[at(row - 1, column)] + 1)
                .min(cost[at(row, column - 1)] + 1)
                .min(cost[at(row - 1, column - 1)] + differs);
            let swapped = row > 1
                && column > 1
                && one[row - 1] == other[column - 2]
                && one[row - 2] == other[column - 1];
            if swapped {
                least = least.min(cost[at(row - 2, column - 2)] + 1);
            }
            cost[at(row, column)] = least;
        }
    }
    cost[cost.len() - 1]
}

/// Options of iperf that take a number, in letters.
const NUMERIC: &[u8] = b"tipPlwbnLMT";
/// And those that take a word.
const WORDY: &[u8] = b"cBfyxZFoS";

/// The arguments to the end of the command, that of its line or what is glued to it; the first `max` of them.
fn arguments(cursor: &mut Cursor, tool: Tool, max: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    while words.len() < max {
        let before = cursor.at;
        cursor.spaces();
        // A long line goes on with an option in the next.
        if cursor.peek() == b'\n' {
            let mut next = cursor.clone();
            next.at += 1;
            next.spaces();
            let goes_on = tool == Tool::Iperf
                && next.peek() == b'-'
                && next.ahead(1).is_ascii_alphabetic()
                && matches!(next.ahead(2), b' ' | b'\n');
            if !goes_on {
                break;
            }
            *cursor = next;
        }
        let last = words.last().map_or("", String::as_str);
        let Some(word) = argument(cursor, tool, last, words.len()) else {
            cursor.at = before;
            break;
        };
        words.push(word);
    }
    words
}

fn argument(cursor: &mut Cursor, tool: Tool, last: &str, position: usize) -> Option<String> {
    let takes = last
        .as_bytes()
        .get(1)
        .copied()
        .filter(|_| is_option(last) && last.len() == 2);
    let is_number = match tool {
        Tool::Iperf => takes.is_some_and(|letter| NUMERIC.contains(&letter)),
        Tool::Netblast | Tool::Netsend => position > 0,
        Tool::Netreceive => true,
        Tool::Look | Tool::Sysctl | Tool::Ifconfig | Tool::Ethtool => false,
    };
    if cursor.peek() == b'-' {
        // A row of dashes begins a banner.
        let is_rule = cursor.ahead(1) == b'-' && cursor.ahead(2) == b'-';
        let rest = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
        return match is_rule {
            true => None,
            false => cursor.word(24, rest).map(|word| unglued(cursor, word)),
        };
    }
    if is_number {
        let digits = |it: u8| it.is_ascii_digit() || it == b'.';
        let mut number = String::from(cursor.word(24, digits)?);
        let is_prefix = tool == Tool::Iperf && b"kKmMgG".contains(&cursor.peek());
        if is_prefix && !cursor.ahead(1).is_ascii_lowercase() {
            number.push(char::from(cursor.peek()));
            cursor.at += 1;
        }
        return Some(number);
    }
    let may_stand = match tool {
        Tool::Iperf => takes.is_some_and(|letter| WORDY.contains(&letter)),
        Tool::Netblast | Tool::Netsend => position == 0,
        _ => true,
    };
    let is_of_word = |it: u8| {
        it.is_ascii_alphanumeric() || matches!(it, b'.' | b':' | b'_' | b'-' | b'=' | b'/')
    };
    let word = may_stand.then(|| cursor.word(64, is_of_word)).flatten()?;
    Some(unglued(cursor, word))
}

/// A word without the banner that hangs on it.
fn unglued(cursor: &mut Cursor, word: &str) -> String {
    let ends = [
        "---",
        "Client",
        "Server",
        "Interface",
        "interrupt",
        "start:",
    ]
    .map(|end| word.find(end));
    let end = ends.into_iter().flatten().filter(|end| *end > 0).min();
    let end = end.unwrap_or(word.len());
    cursor.at -= word.len() - end;
    String::from(&word[..end])
}

/// The host that a prompt before its mark names, and where the prompt begins.
fn prompt(bytes: &[u8], mark: usize, from: usize) -> (Option<String>, usize) {
    let least = from.max(mark.saturating_sub(PROMPT_MAX));
    let mut began = mark;
    let mut depth = 0;
    while began > least {
        let byte = bytes[began - 1];
        match byte {
            b']' => depth += 1,
            b'[' if depth > 0 => depth -= 1,
            b' ' if depth > 0 || began == mark => {}
            _ if byte.is_ascii_alphanumeric() || b"@:/~._-+".contains(&byte) => {}
            _ => break,
        }
        began -= 1;
        if byte == b'[' && depth == 0 {
            break;
        }
    }
    let text = std::str::from_utf8(&bytes[began..mark]).unwrap_or_default();
    let text = text.trim().trim_start_matches('-');
    let inner = text.strip_prefix('[').and_then(|it| it.split(']').next());
    let is_bracketed = inner.is_some();
    let words = inner.unwrap_or(text);
    let is_named = is_bracketed || words.contains([':', '@']) || !words.contains(['/', '~']);
    let host = words.split([':', ' ', '/', '~']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let is_host =
        is_named && host.len() > 1 && host.starts_with(|it: char| it.is_ascii_alphabetic());
    (is_host.then(|| String::from(host)), began)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<Command> {
        let mark = text.find(['#', '$'])?;
        let mut cursor = Cursor::new(text.as_bytes(), mark);
        let anchors = Prompted.read(&mut cursor, 0)?;
        let Seen::Command(command) = anchors[0].seen.clone() else {
            return None;
        };
        Some(command)
    }

    #[test]
    fn prompts_of_every_shape_name_their_host() {
        for (text, host) in [
            ("asa633:/usr/home/a# iperf -s", Some("asa633")),
            ("[root@PC1]~#iperf -s", Some("PC1")),
            ("[root@PC2 ~]# iperf -s", Some("PC2")),
            ("ann@box:~$ iperf -s", Some("box")),
            ("----poweredge:/usr# iperf -s", Some("poweredge")),
            ("/usr/local# iperf -s", None),
            ("~# iperf -s", None),
            ("# iperf -s", None),
            ("wrap# iperf -s", Some("wrap")),
        ] {
            assert_eq!(found(text).unwrap().host.as_deref(), host, "{text}");
        }
    }

    #[test]
    fn commands_are_found_glued_misspelt_and_with_gaps_and_headings_are_none() {
        let words = |text: &str| found(text).map(|it| (it.tool, it.words.join(" ")));
        let is = |tool, words: &str| Some((tool, String::from(words)));
        assert_eq!(
            words("a# iperf -c 10.0.0.2 -t 60 -i 5------Client connecting to"),
            is(Tool::Iperf, "-c 10.0.0.2 -t 60 -i 5")
        );
        assert_eq!(
            words("a# iperf -c 10.0.0.2 -t 60 -i 5Client"),
            is(Tool::Iperf, "-c 10.0.0.2 -t 60 -i 5")
        );
        assert_eq!(
            words("a# iperf -c  -t 60 -u -b 500M &"),
            is(Tool::Iperf, "-c -t 60 -u -b 500M")
        );
        assert_eq!(
            words("a# iperf -c 1.1.1.2 -t 60\n -i 5\n"),
            is(Tool::Iperf, "-c 1.1.1.2 -t 60 -i 5")
        );
        assert_eq!(words("a# ipref -s | tee x"), is(Tool::Iperf, "-s"));
        assert_eq!(
            words("a# netbalst 1.1.1.2 9090 64 60start:"),
            is(Tool::Netblast, "1.1.1.2 9090 64 60")
        );
        assert_eq!(words("a# netrecieve 9090"), is(Tool::Netreceive, "9090"));
        assert_eq!(words("a# ip\nerf -s"), is(Tool::Iperf, "-s"));
        assert_eq!(words("## iperf results"), None);
        assert_eq!(words("# top of the page"), None);
        let command = found("a# iperf -c 10.0.0.2 -u -t60").unwrap();
        assert_eq!(
            (command.option('t'), command.option('c')),
            (Some("60"), Some("10.0.0.2"))
        );
        assert!(command.has('u') && !command.has('d'));
    }
}
