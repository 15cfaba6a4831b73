//! Words that are almost what was meant.

/// A word with so few letters has no other one near it.
const LETTERS_MIN: usize = 3;
/// Letters that may be missing, too many or others.
const MISTAKES_MAX: usize = 2;

/// The candidate that a mistyped word comes nearest to; `None` when none is near.
pub fn similar<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = MISTAKES_MAX.min(word.chars().count() / LETTERS_MIN);
    let near = candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate));
    let near = near.filter(|(mistakes, _)| (1..=allowed).contains(mistakes));
    near.min_by_key(|(mistakes, _)| *mistakes)
        .map(|(_, candidate)| candidate)
}

/// What a mistyped word was meant to be, as the end of a sentence; nothing when no candidate is near.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    similar(word, candidates).map_or_else(String::new, |meant| format!("; did you mean '{meant}'?"))
}

/// Levenshtein's distance: the fewest letters to put in, take out or replace.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, own) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *own);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_near_is_meant() {
        let near = |word| similar(word, ["polling", "em0", "enp3s0"]);
        assert_eq!(near("poling"), Some("polling"));
        assert_eq!(near("polllign"), None);
        assert_eq!(near("pollign"), Some("polling"));
        assert_eq!(near("em1"), Some("em0"));
        assert_eq!(near("enp3s1"), Some("enp3s0"));
        for far in ["polling", "", "x", "wlan0"] {
            assert_eq!(near(far), None, "{far}");
        }
    }
}
