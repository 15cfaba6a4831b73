//! Words that a text has of its own for polling and interrupts: `"busy" below means busy_poll=50, "quiet" that both are 0`.
//!
//! A word for interrupts counts once the text has one for polling, too: `normal` may stand for anything.

use crate::lines::clause::{self, POLLS, is_in};
use crate::lines::prose::{ALL_UNTOUCHED, Sentence};

/// Most words of their own.
const WORDS_MAX: usize = 8;

/// What a text calls polling and interrupts: its words, and whether they mean polling.
#[derive(Default)]
pub struct OwnWords {
    settings: Vec<(String, bool)>,
    /// Whether it explains common words for them, too.
    explains: [bool; 2],
}

impl OwnWords {
    /// Learns the words that a sentence defines, and puts `polling on` and `polling off` in place of those that are known.
    /// `is_host` tells the words that are none.
    pub fn read(&mut self, text: &str, sentence: &mut Sentence, is_host: impl Fn(&str) -> bool) {
        let new = definitions(text, &is_host);
        if !new.is_empty() {
            for (word, polls) in new {
                let is_known = self.settings.iter().any(|it| it.0 == word);
                self.explains[usize::from(polls)] = true;
                if !is_known && is_own(&word) && !is_host(&word) && self.settings.len() < WORDS_MAX
                {
                    self.settings.push((word, polls));
                }
            }
            // It tells of no test.
            sentence.clauses.clear();
            return;
        }
        for (word, polls) in &self.settings {
            if self.explains == [true; 2] || word.contains(' ') || *polls {
                for state in ["on", "off"].into_iter().filter(|_| *polls) {
                    sentence.take_for(&format!("{word} {state}"), &format!("polling {state}"));
                }
                sentence.take_for(word, if *polls { "polling on" } else { "polling off" });
            }
        }
    }
}

/// The words that a text defines, each with whether it means polling: in quotation marks, or as labels of lines.
fn definitions(text: &str, is_host: &dyn Fn(&str) -> bool) -> Vec<(String, bool)> {
    const MEANS: &str = "means mean is stands = :";
    const BETWEEN: &str =
        "below here above on this page these pages then always the two in what follows for";
    const SAYS: &str = "write say call mean";
    // `UDP: polling off` defines nothing.
    const OTHERS: &str =
        "mtu tso lro gro gso cpu nic nics rx tx lan wan ipv4 ipv6 ttcp note notes test run";
    let mut found = Vec::new();
    let pieces: Vec<&str> = text.split('"').collect();
    for at in (1..pieces.len().saturating_sub(1)).step_by(2) {
        let (words, after) = (pieces[at], pieces[at + 1]);
        let mut next = after.split_whitespace().skip_while(|it| is_in(it, BETWEEN));
        let before = pieces[at - 1].split_whitespace().next_back().unwrap_or("");
        let is_said = is_in(before, SAYS);
        let next = next.next().unwrap_or("").trim_end_matches([',', ':']);
        let is_defined = is_said || is_in(next, MEANS);
        // Of commands below, or of values above.
        let mut shows = [" these ", " following"].iter();
        let is_shown = after.trim_end().ends_with(':') || shows.any(|it| after.contains(it));
        let polls = meaning(after).or(is_shown.then_some(true));
        if let Some(polls) = polls.filter(|_| is_defined && words.split(' ').count() < 3) {
            found.push((words.to_ascii_lowercase(), polls));
        }
    }
    for line in text.lines() {
        let is_item = line.trim_start().starts_with(['*', '-', '+']);
        let line = line.trim_start_matches(|it: char| it.is_whitespace() || "*-'|`".contains(it));
        let end = line.find(|it: char| !it.is_ascii_alphanumeric());
        let (word, rest) = line.split_at(end.unwrap_or(line.len()));
        let bold = rest.trim_start_matches(['*', '\'', '`']);
        // `* **defer** -- polling by deferred interrupts`
        let marks = [" -- ", " - ", ": "];
        let is_profile =
            is_item && bold.len() < rest.len() && marks.iter().any(|it| bold.starts_with(it));
        let is_label = bold.len() < rest.len() && bold.trim_start().starts_with(':')
            || rest.starts_with("  ")
            || rest.starts_with(" = ");
        let small = word.to_ascii_lowercase();
        // `AK: first with interrupts, oak to elm` is said by AK.
        let mut words = rest.split(|it: char| !it.is_ascii_alphanumeric() && it != '-');
        let is_code = word.len() > 1
            && word.starts_with(|it: char| it.is_ascii_uppercase())
            && !words.any(|it| is_host(&it.to_ascii_lowercase()))
            && word.bytes().all(|it| !it.is_ascii_lowercase())
            && !clause::is_common(&small)
            && !is_in(&small, OTHERS);
        let is_name = is_profile && word.len() > 1 && !is_host(&small);
        if let Some(polls) = meaning(rest).filter(|_| is_name || is_label && is_code) {
            found.push((word.to_ascii_lowercase(), polls));
        }
    }
    found
}

/// Whether words may be a text's own: of those for polling, interrupts and their states everybody knows the meaning.
fn is_own(words: &str) -> bool {
    const KNOWN: &str = "on off interrupt interrupts irq irqs";
    let each: Vec<&str> = words.split(' ').collect();
    let is_word = |it: &str| it.bytes().all(|it| it.is_ascii_alphanumeric()) && it.len() > 1;
    let is_known = |it: &str| is_in(it, POLLS) && !it.starts_with("spin") || is_in(it, KNOWN);
    match each[..] {
        [one] => is_word(one) && !is_known(one),
        [one, other] => is_word(one) && is_word(other) && !is_known(one),
        _ => false,
    }
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
    let spaced = format!(" {} ", words.join(" "));
    let mut untouched = ALL_UNTOUCHED.split('|');
    let is_off = words.iter().any(|it| is_in(it, OFF) || *it == "-polling")
        || untouched.any(|it| clause::phrase_at(&spaced, it).is_some());
    let told = || clause::setting(text).or(is_off.then_some(false));
    (sets || echoes).then_some(true).or_else(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::prose::SentenceMark;

    /// What becomes of the last of these sentences.
    fn read(texts: &[&str]) -> String {
        let mut words = OwnWords::default();
        let mut last = String::new();
        for text in texts {
            let mut sentence = Sentence::of(text, SentenceMark::None, false).unwrap();
            words.read(text, &mut sentence, |it| it == "oak" || it == "elm");
            last = sentence.clauses.join("|");
        }
        last
    }

    #[test]
    fn words_for_both_are_read_as_polling_on_and_off() {
        let both = [
            "\"busy\" below means busy_poll=50 on the machine named.",
            "\"quiet\" means both 0.",
        ];
        assert_eq!(
            read(&[both[0], both[1], "oak busy, elm still quiet."]),
            " oak polling on | elm still polling off "
        );
        // A definition tells of no test, and a word for interrupts alone may stand for anything.
        assert_eq!(read(&both), "");
        assert_eq!(read(&[both[0], "oak busy."]), " oak polling on ");
        assert_eq!(read(&[both[1], "oak quiet."]), " oak quiet ");
        let codes = [
            "N0   default: interrupts\nN2   echo 20 > napi_defer_hard_irqs",
            "N2 on oak, N0 on elm.",
        ];
        assert_eq!(read(&codes), " polling on oak | polling off on elm ");
    }

    #[test]
    fn hosts_speakers_and_kinds_of_traffic_are_no_such_words() {
        for text in [
            "\"oak\" means the box with interrupts.",
            "AK: first with interrupts.",
            "UDP: polling off.",
            "\"ifconfig em0 polling\" is what I typed:",
        ] {
            let other = "\"busy\" means busy_poll=50.";
            let told = "oak and AK, UDP as above.";
            assert_eq!(read(&[text, other, told]), read(&[told]), "{text}");
        }
    }
}
