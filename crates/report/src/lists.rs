//! Lists of words and groups of things, in their order.

use std::fmt::Display;

/// Joins words with a separator.
pub(crate) fn joined(words: impl IntoIterator<Item = impl Display>, between: &str) -> String {
    let words: Vec<String> = words.into_iter().map(|word| word.to_string()).collect();
    words.join(between)
}

/// Joins words with commas.
pub(crate) fn listed(words: impl IntoIterator<Item = impl Display>) -> String {
    joined(words, ", ")
}

/// Groups values by key.
pub(crate) fn grouped<K: PartialEq, V>(all: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in all {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, own)) => own.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// Capitalises the first letter.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// Removes duplicates, keeping the order.
pub(crate) fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let groups = grouped(all.into_iter().map(|one| (one, ())));
    groups.into_iter().map(|(one, _)| one).collect()
}
