//! Words that a text has of its own for polling and interrupts: `"busy" below means busy_poll=50, "quiet" that both are 0`.
//!
//! They count once the text has such a word for both: one alone may stand for anything.

use crate::lines::address;
use crate::lines::prose::{self, ALL_UNTOUCHED, Sentence, is_in};

/// Most words of their own.
const WORDS_MAX: usize = 8;

/// What a text calls polling and interrupts.
#[derive(Default)]
pub struct OwnWords {
    /// Words for polling, of which `on` or `off` may follow.
    polling: Option<String>,
    /// Words for a setting, and whether it is polling.
    settings: Vec<(String, bool)>,
}

impl OwnWords {
    /// Learns the words that a sentence defines, and puts `polling` in place of those that are known. `is_host` tells
    /// the words that are none.
    pub fn read(&mut self, text: &str, sentence: &mut Sentence, is_host: impl Fn(&str) -> bool) {
        self.polling = self.polling.take().or_else(|| sentence.calls_polling());
        let new = definitions(text);
        let is_definition = !new.is_empty();
        for (word, polls) in new {
            let is_known = self.settings.iter().any(|it| it.0 == word);
            if !is_known && !is_host(&word) && self.settings.len() < WORDS_MAX {
                self.settings.push((word, polls));
            }
        }
        if let Some(name) = &self.polling {
            sentence.take_for(name, "polling");
        }
        let has = |polls: bool| self.settings.iter().any(|it| it.1 == polls);
        if !is_definition && has(true) && has(false) {
            for (word, polls) in &self.settings {
                sentence.take_for(word, if *polls { "polling on" } else { "polling off" });
            }
        }
    }
}

/// The words that a text defines, each with whether it means polling: in quotation marks, or as labels of lines.
fn definitions(text: &str) -> Vec<(String, bool)> {
    const MEANS: &str = "means mean is stands = :";
    const BETWEEN: &str = "below here above on this page then always the two in what follows for";
    const SAYS: &str = "write say call mean";
    let mut found = Vec::new();
    let pieces: Vec<&str> = text.split('"').collect();
    for at in (1..pieces.len().saturating_sub(1)).step_by(2) {
        let (words, after) = (pieces[at], pieces[at + 1]);
        let mut next = after.split_whitespace().skip_while(|it| is_in(it, BETWEEN));
        let before = pieces[at - 1].split_whitespace().next_back().unwrap_or("");
        let is_said = is_in(before, SAYS);
        let is_defined = is_said || next.next().is_some_and(|it| is_in(it, MEANS));
        // Of commands below, or of values above.
        let is_shown = after.trim_end().ends_with(':')
            || [" these ", " following"]
                .iter()
                .any(|it| after.contains(it));
        let polls = meaning(after).or(is_shown.then_some(true));
        if let Some(polls) = polls.filter(|_| is_defined && is_own(words)) {
            found.push((words.to_ascii_lowercase(), polls));
        }
    }
    for line in text.lines() {
        let line = line.trim_start_matches(|it: char| it.is_whitespace() || "*-'|".contains(it));
        let end = line.find(|it: char| !it.is_ascii_alphanumeric());
        let (word, rest) = line.split_at(end.unwrap_or(line.len()));
        let is_label = rest.trim_start_matches(['*', '\'', ' ']).starts_with(':')
            || rest.starts_with("  ")
            || rest.starts_with(" = ");
        let is_code = word.len() > 1 && word.bytes().all(|it| !it.is_ascii_lowercase());
        if let Some(polls) = meaning(rest).filter(|_| is_label && is_code && is_own(word)) {
            found.push((word.to_ascii_lowercase(), polls));
        }
    }
    found
}

/// Whether words may be a text's own: of those for polling, interrupts and their states everybody knows the meaning.
fn is_own(words: &str) -> bool {
    let small = words.to_ascii_lowercase();
    let mut each = small.split(' ');
    let is_known =
        |it: &str| prose::is_common(it) || is_in(it, "on off polling interrupts default");
    let is_word = |it: &str| address::is_name(it) || it.len() == 2;
    let first = each.next().unwrap_or("");
    each.next().is_none() && is_word(first) && !is_known(first)
}

/// Whether a text that explains a word tells of polling or of interrupts.
fn meaning(text: &str) -> Option<bool> {
    const KNOBS: &str = "poll read irqs timeout threaded";
    const OFF: &str = "0 zero zeros default defaults stock interrupts interrupt";
    let small = text.to_ascii_lowercase();
    let words: Vec<&str> = small
        .split(|it: char| !it.is_ascii_alphanumeric() && it != '-')
        .filter(|it| !it.is_empty())
        .collect();
    let is_set = |it: &&str| it.starts_with(|it: char| ('1'..='9').contains(&it));
    let sets = words
        .windows(2)
        .any(|it| is_in(it[0], KNOBS) && is_set(&it[1]));
    let echoes = words.windows(2).any(|it| it[0] == "echo" && is_set(&it[1]));
    let polls = sets || echoes || words.contains(&"polling");
    let spaced = format!(" {} ", words.join(" "));
    let mut untouched = ALL_UNTOUCHED.split('|');
    let is_off = words.iter().any(|it| is_in(it, OFF) || *it == "-polling")
        || untouched.any(|it| spaced.contains(&format!(" {it} ")));
    match (polls, is_off) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}
