//! Recorded outputs: a whole text, compared to the byte.

use std::fs;
use std::path::Path;

/// Set to any value, this variable records the outputs again instead of comparing them.
const REFRESH: &str = "NICPOLL_REFRESH_GOLDEN";

/// Compares an output with the file that holds it as recorded. The path counts from the package, which is
/// where cargo runs its tests.
///
/// # Panics
/// When the output differs, with the first line that does.
pub fn golden(file: impl AsRef<Path>, output: &str) {
    let file = file.as_ref();
    if std::env::var_os(REFRESH).is_some() {
        fs::write(file, output).expect("the recorded output can be written");
    }
    let recorded = fs::read_to_string(file).unwrap_or_default();
    if let Some((number, recorded, output)) = difference(&recorded, output) {
        panic!(
            "{}:{number} differs. If the change is meant, run the test with {REFRESH}=1 and read the \
             difference of the file.\nrecorded: {recorded:?}\nnow:      {output:?}",
            file.display()
        );
    }
}

/// Compares what comes of each case of a file with what is recorded below it. A case begins with a line `%% NAME`; its
/// text follows, and then what came of it, in lines that begin with `=> `.
///
/// # Panics
/// When something else comes of one, with the first line that differs.
pub fn golden_cases(file: impl AsRef<Path>, what_comes: impl Fn(&str, &str) -> String) {
    let recorded = fs::read_to_string(&file).expect("the cases can be read");
    let mut output = String::new();
    for case in recorded.split("%% ").skip(1) {
        let (name, rest) = case.split_once('\n').unwrap_or((case, ""));
        let lines = rest.split_inclusive('\n');
        let text: String = lines.filter(|line| !line.starts_with("=> ")).collect();
        output += &format!("%% {name}\n{text}");
        for line in what_comes(name, &text).lines() {
            output += &format!("=> {line}\n");
        }
    }
    golden(file, &output);
}

/// The first line that differs, by its number, with its line end; null where one text has ended.
fn difference<'a>(
    one: &'a str,
    other: &'a str,
) -> Option<(usize, Option<&'a str>, Option<&'a str>)> {
    let mut ones = one.split_inclusive('\n');
    let mut others = other.split_inclusive('\n');
    (1..).find_map(|number| match (ones.next(), others.next()) {
        (None, None) => Some(None),
        (one, other) if one == other => None,
        (one, other) => Some(Some((number, one, other))),
    })?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts() {
        assert_eq!(difference("", ""), None);
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let found = difference("a\nb\n", "a\nc\n");
        assert_eq!(found, Some((2, Some("b\n"), Some("c\n"))));
        assert_eq!(difference("a\n", "a"), Some((1, Some("a\n"), Some("a"))));
        assert_eq!(difference("a\n", "a\nb"), Some((2, None, Some("b"))));
        assert_eq!(difference("a", ""), Some((1, Some("a"), None)));
    }

    #[test]
    #[should_panic(expected = "no-such-file.txt:1 differs")]
    fn an_output_that_was_never_recorded_differs() {
        golden("no-such-file.txt", "a\n");
    }
}
