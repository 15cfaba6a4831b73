//! Prose: sentences, labels and headings, and what each says of hosts, ends and settings; rates and shares in them.

use crate::cursor::{Cursor, MeasuredUnit, measured};
use crate::lines::seen::Seen;

/// Reads a figure: a number with its unit.
pub fn figure(cursor: &mut Cursor) -> Option<Seen> {
    cursor.begins_number()?;
    let figure = measured(cursor).filter(|it| it.unit != MeasuredUnit::Bytes)?;
    Some(Seen::Loose(figure.value, figure.unit))
}

/// What a sentence is to its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentenceKind {
    /// A heading: it says something of all up to the next one.
    Heading,
    /// It begins with a mark such as `=>` or `^`: it says something of what comes before.
    Conclusion,
    /// Any other. One that ends with a colon introduces what follows.
    Plain,
}

/// Longer headings, and longer sentences that are to change a setting, are none.
const HEADING_MAX: usize = 80;
const CHANGE_MAX: usize = 160;
/// Most bytes of a sentence.
const SENTENCE_MAX: usize = 400;
/// Marks with which a conclusion begins.
const CONCLUSIONS: &str = "=> ==> -> --> ^ <-";

/// Words that negate a setting.
const NOT: &str = "without no not off disabled disable disabling non vs unpolled deactivated never";
/// Words after which a sentence asks, wishes or supposes.
const UNREAL: &str = "would should could if why can may might whether how expected expect planned want wanted \
    think guess wonder";
/// Verbs and adverbs of a sentence that changes a setting.
const CHANGES: &str = "enable enabled enabling disable disabled disabling turn turned turning switch switched \
    switching activate activated deactivated now again next then finally same left stays remains";
const SENDERS: &str = "sender client sending source blasting pushing transmitting transmitter generator tx blaster senders clients";
const RECEIVERS: &str = "receiver server receiving sink target rx listener receivers servers";
const ALL: &str = "both all everywhere each either two machines";

/// Words of a sentence that says how hosts receive from here on.
const WITH: &str = "with polling|without polling|no polling|poll now|polling on|polling off";
/// Words of a heading that does.
const STATES: &str = "with polling|without polling|no polling|polling off|polling enabled|polling disabled|\
    polling on the|polling on both|polling only|polled|both polling|interrupt|interrupts|polling again|\
    now polling";
/// Words of top's screens, which are no prose.
const SCREENS: &str = "last pid|load average|load averages|processes|zombie|mem|swap|interface traffic|interval transfer|total rate";

/// A sentence, with its words in lower case between single spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    pub kind: SentenceKind,
    /// Whether it ends with a colon.
    pub introduces: bool,
    /// Whether it is a question.
    pub asks: bool,
    /// ` on pc2 ipv6 64 b `.
    pub words: String,
}

/// Which hosts a change is of, by their part in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedParts {
    pub sender: bool,
    pub receiver: bool,
    pub all: bool,
    /// No other host.
    pub only: bool,
}

impl Sentence {
    /// Reads one; `None` without a word.
    pub fn of(text: &str, is_marked: bool) -> Option<Self> {
        let text = text.trim();
        let lower = text.get(..9).unwrap_or(text).to_ascii_lowercase();
        let is_conclusion = CONCLUSIONS.split(' ').any(|mark| text.starts_with(mark))
            || ["(that is ", "(that was", "that was "].contains(&lower.as_str());
        let asks = text.ends_with('?');
        let introduces = text.trim_end_matches([' ', '*', '_']).ends_with(':');
        let is_heading = is_marked && text.len() <= HEADING_MAX;
        // What is left of a screen are units and dashes.
        let mut words = text.split(|it: char| !it.is_ascii_alphabetic());
        let least = if introduces || is_conclusion { 2 } else { 3 };
        words.find(|word| word.len() >= least)?;
        let mut words = String::from(" ");
        for letter in text.bytes().take(SENTENCE_MAX) {
            match letter.is_ascii_alphanumeric() {
                true => words.push(char::from(letter.to_ascii_lowercase())),
                false if !words.ends_with(' ') => words.push(' '),
                false => {}
            }
        }
        if !words.ends_with(' ') {
            words.push(' ');
        }
        let sentence = Sentence {
            kind: match (is_conclusion, is_heading) {
                (true, _) => SentenceKind::Conclusion,
                (false, true) => SentenceKind::Heading,
                (false, false) => SentenceKind::Plain,
            },
            introduces,
            asks,
            words,
        };
        let is_screen = sentence.has_any(SCREENS);
        // netstat begins a protocol's counters with its name.
        let is_screen = is_screen
            || "udp: tcp: ip: icmp: ip6:"
                .split(' ')
                .any(|it| it.eq_ignore_ascii_case(text));
        (!is_screen && !text.ends_with("wrote:")).then_some(sentence)
    }

    /// Whether its writer does not know, either.
    pub fn doubts(&self) -> bool {
        const DOUBTS: &str =
            "no idea|not sure|do not know|don t know|forgot|unknown|nothing running";
        self.has_any(DOUBTS)
    }

    /// The position of a word, or of several.
    pub fn find(&self, word: &str) -> Option<usize> {
        self.words.find(&format!(" {word} "))
    }

    /// Whether it has one of these words.
    fn has(&self, words: &str) -> bool {
        let is_one = |word: &str| words.split(' ').any(|it| it == word);
        self.words.split_whitespace().any(is_one)
    }

    /// Whether it has one of these phrases, which `|` separates.
    fn has_any(&self, phrases: &str) -> bool {
        phrases.split('|').any(|it| self.find(it).is_some())
    }

    /// The parts in a test that it names.
    pub fn parts(&self) -> NamedParts {
        NamedParts {
            sender: self.has(SENDERS),
            receiver: self.has(RECEIVERS),
            all: self.has(ALL),
            only: self.has("only alone just"),
        }
    }

    /// Polling (`true`) or interrupts; `None` when it names both or neither.
    pub fn setting(&self) -> Option<bool> {
        setting(&self.words)
    }

    /// The setting that holds from here on, if it says so.
    pub fn changes_to(&self) -> Option<bool> {
        let is_short = self.words.len() <= CHANGE_MAX;
        let is_said = match self.kind {
            SentenceKind::Heading if self.introduces => true,
            // A title may name polling, too.
            SentenceKind::Heading => {
                self.words.split_whitespace().count() <= 2 || self.has_any(STATES)
            }
            SentenceKind::Conclusion => false,
            SentenceKind::Plain => {
                let names = self.introduces || self.has_any(WITH);
                let changes = self.has(CHANGES) || self.parts().only;
                is_short
                    && !self.asks
                    && !self.has(UNREAL)
                    && (names && self.words.len() < 60 || changes)
            }
        };
        is_said.then(|| self.setting())?
    }
}

/// Whether words mean polling (`true`) or interrupts; `None` when they name both or neither.
pub fn setting(text: &str) -> Option<bool> {
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> = lower
        .split(|letter: char| !letter.is_ascii_alphabetic())
        .filter(|word| !word.is_empty())
        .collect();
    let has = |names: &str| {
        words
            .iter()
            .any(|word| names.split(' ').any(|it| it == *word))
    };
    // The interrupt column of a screen is no setting.
    let column = "column load time share rate handler thread statistics per counts table storm";
    let interrupts = words.iter().enumerate().any(|(at, word)| {
        let is_it = ["interrupt", "interrupts"].contains(word);
        is_it
            && words
                .get(at + 1)
                .is_none_or(|next| column.split(' ').all(|it| it != *next))
    });
    // DEVICE_POLLING in a kernel is no setting, either.
    let is_option = |at: usize| at > 0 && words[at - 1] == "device";
    let polls = words.iter().enumerate().any(|(at, word)| {
        let is_it = "polling polled poll polls unpolled"
            .split(' ')
            .any(|it| it == *word);
        is_it && !is_option(at)
    });
    let is_other = has("vs versus storm or against than");
    if polls == interrupts || is_other {
        return None;
    }
    Some(polls != has(NOT))
}

/// Splits the text between findings into sentences: their ranges, and whether each is marked as a heading.
/// The first line is whole if `is_from_start`.
pub fn sentences(text: &str, is_from_start: bool) -> Vec<(std::ops::Range<usize>, bool)> {
    let mut found = Vec::new();
    let mut open: Option<usize> = None;
    let mut at = 0;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for (index, line) in lines.iter().enumerate() {
        let trimmed = line.trim();
        let start = at + (line.len() - line.trim_start().len());
        let end = start + trimmed.len();
        at += line.len();
        let is_alone = |near: Option<&&str>| near.is_some_and(|it| it.trim().is_empty());
        let next = lines.get(index + 1);
        let is_rule = |it: &str| it.len() > 2 && it.bytes().all(|it| b"=-~*#".contains(&it));
        let before = index.checked_sub(1).and_then(|index| lines.get(index));
        let is_underlined = next.is_some_and(|it| is_rule(it.trim()));
        let is_title = trimmed.starts_with(|it: char| it.is_ascii_uppercase())
            && (trimmed.split(' ').count() <= 6 || setting(trimmed).is_some());
        let is_short =
            trimmed.len() <= HEADING_MAX && !trimmed.ends_with(['.', '!', '?', ',', ';']);
        let is_marked = trimmed.starts_with(['=', '#', '*'])
            && !trimmed.starts_with("=>")
            && !trimmed.starts_with("==>")
            || (trimmed.ends_with(':') && open.is_none())
            || (is_title && (is_underlined || is_alone(before) && is_alone(next)));
        // What is left of a line of a tool is no heading.
        let is_marked = is_marked && (index > 0 || is_from_start);
        let begins =
            CONCLUSIONS.split(' ').any(|it| trimmed.starts_with(it)) || trimmed.starts_with("- ");
        if trimmed.is_empty() || is_rule(trimmed) || (is_marked && is_short) || begins {
            found.extend(open.take().map(|from| (from..start, false)));
        }
        if trimmed.is_empty() || is_rule(trimmed) {
            continue;
        }
        if is_marked && is_short && !begins {
            found.push((start..end, true));
            continue;
        }
        let mut from = open.take().unwrap_or(start);
        for (mark, letter) in line.match_indices(['.', '!', '?', ':', ';']) {
            let mark = at - line.len() + mark + 1;
            let is_last = text[mark..].starts_with('\n') || mark == text.len();
            let is_end = is_last || (letter != ":" && text[mark..].starts_with([' ', ')']));
            if is_end && mark > from {
                found.push((from..mark, false));
                from = mark;
            }
        }
        open = text[from..end.max(from)]
            .contains(|it: char| it.is_alphanumeric())
            .then_some(from);
    }
    found.extend(open.map(|from| (from..text.len(), false)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Sentence {
        Sentence::of(text, text.ends_with(':') || text.starts_with('=')).unwrap()
    }

    #[test]
    fn a_setting_is_changed_by_headings_and_by_sentences_that_say_so() {
        for (text, expected) in [
            ("== With polling ==", Some(true)),
            ("Without polling:", Some(false)),
            ("now I enabled polling on both machines", Some(true)),
            ("I turned polling on for the sending box only.", Some(true)),
            ("polling disabled again everywhere", Some(false)),
            ("both boxes poll now", Some(true)),
            ("I wonder if polling would help now.", None),
            ("Polling vs. interrupts:", None),
            ("interrupt storm detected now", None),
            ("=> without polling, 4 kpps", None),
        ] {
            assert_eq!(one(text).changes_to(), expected, "{text}");
        }
        assert_eq!(one("=> without polling, 4 kpps").setting(), Some(false));
    }

    #[test]
    fn a_text_is_cut_into_sentences_labels_and_headings() {
        let text = "We ran it twice. On the\nserver this was\nseen:\n\nSecond run\n----------\n=> fine\n- first: it ran\n";
        let found: Vec<(&str, bool)> = sentences(text, true)
            .into_iter()
            .map(|(range, is_marked)| (text[range].trim(), is_marked))
            .collect();
        assert_eq!(
            found,
            [
                ("We ran it twice.", false),
                ("On the\nserver this was\nseen:", false),
                ("Second run", true),
                ("=> fine", false),
                ("- first: it ran", false),
            ]
        );
    }
}
