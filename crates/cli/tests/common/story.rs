//! Stories: steps in one place, a line each, with their expected results.
//!
//! A story begins with `# TITLE` and plays in a place of its own; an empty line ends it. Its other lines:
//! - `CODE ARGUMENTS | words | !others`: nicpoll exits with this code, says these words and not the others, whatever
//!   the space between words. What fails prints nothing, unless the code is `1+`.
//! - `remember [NAME]`: stores the state by this name; without one, in place of the first state.
//! - `same [NAME]`, `changed [NAME]`: whether the state is the stored one; `soon same [NAME]` waits.
//! - `clean`, `held`: whether nothing is recorded; `soon clean` waits.
//! - `restored`: `same` and `clean`.
//! - all others are the place's own.

use super::prelude::*;

/// A place of stories.
pub trait Scene {
    type State: PartialEq;

    fn begin() -> Self;
    fn run(&self, line: &str) -> Output;
    fn state(&self) -> Self::State;
    /// Fails with the differences unless the state is the same.
    fn assert_same(&self, before: &Self::State, at: &str);
    fn has_no_record(&self) -> bool;
    /// Runs a step that only this place has.
    fn step(&mut self, verb: &str, rest: &str);
    /// Replaces this place's names in a line.
    fn filled(&self, line: &str) -> String {
        String::from(line)
    }
}

/// Plays each story.
pub fn play<S: Scene>(stories: &str) {
    for story in stories.trim().split("\n\n") {
        let (title, lines) = story.trim().split_once('\n').unwrap();
        let mut scene = S::begin();
        let mut states = BTreeMap::from([(String::new(), scene.state())]);
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let at = format!("{title}: {line}");
            let line = scene.filled(line);
            let mut parts = line.split(" | ");
            let step = parts.next().unwrap();
            let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
            match (verb, rest) {
                ("remember", name) => drop(states.insert(String::from(name), scene.state())),
                ("changed", name) => assert!(scene.state() != states[name], "{at}"),
                ("same", name) => scene.assert_same(&states[name], &at),
                ("clean", _) => assert!(scene.has_no_record(), "{at}"),
                ("held", _) => assert!(!scene.has_no_record(), "{at}"),
                ("restored", _) => {
                    scene.assert_same(&states[""], &at);
                    assert!(scene.has_no_record(), "{at}");
                }
                ("soon", "clean") => wait_until(&at, || scene.has_no_record()),
                ("soon", state) => {
                    let name = state.strip_prefix("same").unwrap().trim();
                    wait_until(&at, || scene.state() == states[name]);
                }
                _ => match verb.trim_end_matches('+').parse() {
                    Ok(code) => judge(&scene.run(rest), code, verb.ends_with('+'), parts, &at),
                    Err(_) => scene.step(verb, rest),
                },
            }
        }
    }
}

fn judge<'a>(
    output: &Output,
    code: i32,
    may_print: bool,
    parts: impl Iterator<Item = &'a str>,
    at: &str,
) {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = said(output);
    assert_eq!(output.status.code(), Some(code), "{at}: {text}");
    let is_silent = output.stdout.is_empty() || code == 0 || may_print;
    assert!(is_silent, "{at}: {text}");
    for part in parts {
        let (wanted, is_wanted) = match part.strip_prefix('!') {
            Some(other) => (other, false),
            None => (part, true),
        };
        assert_eq!(
            words(&text).contains(wanted.trim()),
            is_wanted,
            "{at}: {text}"
        );
    }
}
