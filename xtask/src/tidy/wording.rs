//! Nothing unfinished is left in the code, nothing speaks of the machine it was written on, and nothing
//! is written in a way that panics.

use std::path::Path;

use super::source::{Finding, code_lines};

/// Assembled, so that this file does not find itself.
const UNFINISHED: [&str; 2] = [concat!("FIX", "ME"), concat!("XX", "X")];

const PANICKING_OUTPUT: [&str; 4] = ["println!", "print!", "eprintln!", "eprint!"];

/// Where people and build machines keep checkouts and scratch files, without the leading slash.
/// A fixed name in the shared temporary directory is wrong on every machine.
const MACHINE_FOLDERS: [&str; 7] = [
    "home/",
    "root/",
    "Users/",
    "builds/",
    "tmp/",
    "work/",
    "workspace/",
];

/// Words that say work is left to do. Clippy finds the macros.
pub fn unfinished(path: &Path, text: &str) -> Vec<Finding> {
    per_line(path, text, |line| {
        let word = UNFINISHED.iter().find(|word| has_word(line, word))?;
        Some(format!("{word}: finish it or take it out"))
    })
}

/// Absolute paths of one machine.
pub fn machine_paths(path: &Path, text: &str) -> Vec<Finding> {
    per_line(path, text, |line| {
        let folder = MACHINE_FOLDERS.iter().find(|f| has_root_folder(line, f))?;
        Some(format!(
            "/{folder} is a path of one machine: use a relative path, or ask for the temporary directory"
        ))
    })
}

/// Macros that panic when nothing takes what they write, in the code of the program and its libraries.
pub fn panicking_output(path: &Path, text: &str) -> Vec<Finding> {
    let is_checked = path.starts_with("crates") && path.iter().any(|part| part == "src");
    let code =
        code_lines(text).filter(|(_, code)| is_checked && !code.trim_start().starts_with("//"));
    let found = code.filter_map(|(line, code)| {
        let word = PANICKING_OUTPUT.iter().find(|word| has_word(code, word))?;
        let message = format!(
            "{word} panics when its output is full or closed: use nicpoll_sys::tell!, or stdio::print for results"
        );
        Some(Finding::new(path, line, message))
    });
    found.collect()
}

/// Ways to a terminal, or to a report's file, past the one that shows what a terminal would obey or hide.
const RAW_OUTPUT: [&str; 5] = [
    "stdout()",
    "stderr()",
    "ProgressBar",
    ".exit()",
    "fs::write(",
];
/// Where they may be: the way itself, and those who write no words of strangers or show them first.
const RAW_OUTPUT_ALLOWED: [(&str, &str); 9] = [
    ("crates/sys/src/stdio.rs", "stdout()"),
    ("crates/sys/src/stdio.rs", "stderr()"),
    // A pipe between the guard and its owner.
    ("crates/switch/src/guard.rs", "stdout()"),
    // A page in a browser reads it.
    ("crates/page/src/main.rs", "stdout()"),
    // A code that shows the cursor; ratatui drops letters that have no width.
    ("crates/cli/src/interface/watch.rs", "stdout()"),
    ("crates/cli/src/progress.rs", "ProgressBar"),
    ("crates/cli/src/output.rs", "fs::write("),
    // Man pages of the program's own texts.
    ("crates/cli/src/man.rs", "fs::write("),
    // The tables of a file of the project.
    ("crates/cli/src/sim/published.rs", "fs::write("),
];

/// Output that may take words of strangers to a terminal as they are. Writing files is looked at in the program alone:
/// libraries write to the kernel.
pub fn raw_output(path: &Path, text: &str) -> Vec<Finding> {
    let is_checked = path.starts_with("crates")
        && path.iter().any(|part| part == "src")
        && !path.starts_with("crates/testkit");
    let is_program = path.starts_with("crates/cli");
    let code =
        code_lines(text).filter(|(_, code)| is_checked && !code.trim_start().starts_with("//"));
    let found = code.filter_map(|(line, code)| {
        let is_meant = |word: &&&str| {
            let is_there = match word.starts_with('.') {
                true => code.contains(**word),
                false => begins(code, word),
            };
            is_there
                && !code.contains(&format!("{word}.is_terminal()"))
                && (is_program || **word != "fs::write(")
        };
        let word = RAW_OUTPUT.iter().find(is_meant)?;
        let is_allowed = |(file, what): &(&str, &str)| path == Path::new(file) && what == word;
        if RAW_OUTPUT_ALLOWED.iter().any(is_allowed) {
            return None;
        }
        let message = format!(
            "{word} may take words of strangers to a terminal: use nicpoll_sys::tell!, stdio::print, or the program's output"
        );
        Some(Finding::new(path, line, message))
    });
    found.collect()
}

fn per_line(path: &Path, text: &str, message: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let lines = text.lines().enumerate();
    lines
        .filter_map(|(index, line)| Some(Finding::new(path, index + 1, message(line)?)))
        .collect()
}

/// Whether a word begins with this.
fn begins(line: &str, word: &str) -> bool {
    let mut places = line.match_indices(word);
    places.any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

fn has_word(line: &str, word: &str) -> bool {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let goes_on = after.is_some_and(in_word) && !word.ends_with('!');
        !before.is_some_and(in_word) && !goes_on
    })
}

/// Whether the folder stands at the root of a path. After a character that continues a path, a host
/// name or a variable it does not.
fn has_root_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let mut before = line[..at].chars().rev();
        let is_slash = before.next() == Some('/');
        let continues =
            |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '~' | '}' | ')' | '*');
        is_slash && !before.next().is_some_and(continues)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "src/lib.rs";

    #[test]
    fn each_unfinished_word_is_found() {
        for word in UNFINISHED {
            for text in [format!("    {word}(1);"), format!("// {word}: later")] {
                assert_eq!(unfinished(Path::new(PATH), &text).len(), 1, "{text}");
            }
        }
    }

    #[test]
    fn parts_of_other_words_are_not() {
        let x = UNFINISHED[1];
        let text = format!("mktemp {x}{x}\nmy_{x}()\n");
        assert_eq!(unfinished(Path::new(PATH), &text), []);
    }

    #[test]
    fn output_that_panics_is_found_in_code_and_not_in_tests() {
        for word in PANICKING_OUTPUT {
            let text =
                format!("    {word}(\"x\");\n#[cfg(test)]\nmod tests {{\n    {word}(\"x\");\n}}\n");
            let places = |path| panicking_output(Path::new(path), &text).len();
            assert_eq!(places("crates/cli/src/set.rs"), 1, "{word}");
            assert_eq!(places("crates/cli/tests/set.rs"), 0, "{word}");
            assert_eq!(places("xtask/src/main.rs"), 0, "{word}");
        }
        let line = "    // As `eprintln!` does.\n    tell!(\"x\");\n";
        assert_eq!(
            panicking_output(Path::new("crates/cli/src/set.rs"), line),
            []
        );
    }

    #[test]
    fn a_way_to_the_terminal_past_the_one_that_shows_what_is_hidden_is_found() {
        for line in [
            "io::stdout().write_all(name)?;",
            "let mut err = io::stderr().lock();",
            "told.exit();",
            "let bar = ProgressBar::new(3);",
            "fs::write(file, report)?;",
        ] {
            let text = format!("    {line}\n#[cfg(test)]\nmod tests {{\n    {line}\n}}\n");
            let places = |path| raw_output(Path::new(path), &text).len();
            assert_eq!(places("crates/cli/src/set.rs"), 1, "{line}");
            assert_eq!(places("crates/cli/tests/set.rs"), 0, "{line}");
            let is_file = line.starts_with("fs::");
            assert_eq!(
                places("crates/lab/src/host.rs"),
                usize::from(!is_file),
                "{line}"
            );
        }
        let allowed = "    let is_screen = io::stdout().is_terminal();\n";
        assert_eq!(raw_output(Path::new("crates/cli/src/set.rs"), allowed), []);
        let door = "    io::stdout().lock().write(bytes)\n";
        assert_eq!(raw_output(Path::new("crates/sys/src/stdio.rs"), door), []);
    }

    #[test]
    fn each_machine_folder_is_found_in_code_and_prose() {
        for folder in MACHINE_FOLDERS {
            for (before, after) in [("", "x"), ("see `", "log`"), ("\"", "\""), ("(", "x)")] {
                let text = format!("first line\n{before}/{folder}{after}\n");
                let findings = machine_paths(Path::new(PATH), &text);
                assert_eq!(findings.len(), 1, "{text}");
                assert_eq!(findings[0].line, 2);
            }
        }
    }

    #[test]
    fn relative_paths_and_addresses_are_not_machine_paths() {
        for text in [
            "crates/home/lib.rs",
            "https://example.org/home/page",
            "{dir}/tmp/x",
            "../root/x",
            "/sys/class/net",
            "/proc/self/net",
        ] {
            assert_eq!(machine_paths(Path::new(PATH), text), [], "{text}");
        }
    }
}
