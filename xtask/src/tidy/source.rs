//! The project's files and what the rules read of them: lines of code, modules of a crate, tokens.
//!
//! Reads the folder and not git's index: new files are checked before they are added, and the checks
//! run in an unpacked archive, too. What is compiled for tests only is never code.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// One place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    pub path: PathBuf,
    /// Counted from 1; 0 when the whole file is meant.
    pub line: usize,
    pub message: String,
}

impl Finding {
    pub fn new(path: &Path, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Every file that git does not ignore, relative to the root, in a stable order. Symbolic links are not followed.
pub fn files_of_project(root: &Path) -> Result<Vec<PathBuf>> {
    let ignored = Ignored::parse(&fs::read_to_string(root.join(".gitignore")).unwrap_or_default());
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let absolute = root.join(&folder);
        let entries = fs::read_dir(&absolute)
            .with_context(|| format!("cannot read {}", absolute.display()))?;
        for entry in entries {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            let kind = entry.file_type()?;
            if ignored.covers(&path) {
                continue;
            }
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The forms of .gitignore that this project uses: `/path`, `name` and `*.extension`.
struct Ignored(Vec<String>);

impl Ignored {
    fn parse(gitignore: &str) -> Self {
        let lines = gitignore.lines().map(|line| line.trim_end_matches('/'));
        let patterns = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        // In a linked worktree `.git` is a file.
        let git = std::iter::once(".git");
        Self(git.chain(patterns).map(str::to_owned).collect())
    }

    fn covers(&self, path: &Path) -> bool {
        let whole = path.to_string_lossy();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.0.iter().any(|pattern| {
            if let Some(rooted) = pattern.strip_prefix('/') {
                rooted == whole
            } else if let Some(extension) = pattern.strip_prefix('*') {
                name.ends_with(extension)
            } else {
                *pattern == name
            }
        })
    }
}

/// The lines of a file with their ends, and their numbers from 1, without those for tests only.
pub fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let (mut is_test, mut has_body) = (false, false);
    let numbered = (1..).zip(text.split_inclusive('\n'));
    numbered.filter(move |(_, line)| {
        let line = line.trim_end();
        if line == "#[cfg(test)]" {
            (is_test, has_body) = (true, false);
        }
        has_body |= line.ends_with('{');
        let is_whole = !has_body && line.ends_with(';');
        let ends = is_test && (line.starts_with('}') || is_whole);
        let is_code = !is_test;
        is_test &= !ends;
        is_code
    })
}

/// The modules of one crate, those for tests left out.
pub struct Crate {
    /// Its folder below `crates`, or `xtask`.
    pub name: String,
    /// By path from the crate's root; the root's own path is empty.
    pub modules: BTreeMap<Vec<String>, Module>,
}

/// A file of code.
pub struct Module {
    pub file: PathBuf,
    pub text: String,
}

impl Module {
    /// What is compiled outside tests, without attributes and comments.
    pub fn tokens(&self) -> Vec<TokenTree> {
        TokenStream::from_str(&self.text).map_or_else(|_| Vec::new(), code_tokens)
    }
}

/// Sorts files with their text into crates.
pub fn crates<'a>(files: impl Iterator<Item = (&'a Path, &'a str)>) -> Vec<Crate> {
    let mut found = BTreeMap::<String, BTreeMap<Vec<String>, Module>>::new();
    for (path, text) in files {
        if let Some((name, module)) = place(path) {
            let file = path.to_owned();
            let text = text.to_owned();
            found
                .entry(name)
                .or_default()
                .insert(module, Module { file, text });
        }
    }
    let crates = found.into_iter().map(|(name, mut modules)| {
        let tests: BTreeSet<_> = modules.iter().flat_map(test_modules).collect();
        modules.retain(|path, _| !(0..=path.len()).any(|end| tests.contains(&path[..end])));
        Crate { name, modules }
    });
    crates.collect()
}

/// The crate and the module that a file is.
fn place(path: &Path) -> Option<(String, Vec<String>)> {
    let parts: Option<Vec<_>> = path.components().map(part).collect();
    let parts = parts?;
    let (name, inside) = match &parts[..] {
        ["crates", name, "src", inside @ ..] => (*name, inside),
        ["xtask", "src", inside @ ..] => ("xtask", inside),
        _ => return None,
    };
    let (file, folders) = inside.split_last()?;
    let stem = file.strip_suffix(".rs")?;
    let own = (!matches!(stem, "lib" | "main" | "mod")).then_some(stem);
    let module = folders.iter().copied().chain(own).map(String::from);
    Some((name.to_owned(), module.collect()))
}

fn part<'a>(component: Component<'a>) -> Option<&'a str> {
    match component {
        Component::Normal(name) => name.to_str(),
        _ => None,
    }
}

/// The modules that a file declares for tests only.
fn test_modules((path, module): (&Vec<String>, &Module)) -> Vec<Vec<String>> {
    let all = declared(&module.text, |_| true);
    let code: BTreeSet<_> = declared(&module.text, |line| {
        code_lines(&module.text).any(|(number, _)| number == line)
    })
    .into_iter()
    .collect();
    let tests = all.into_iter().filter(|name| !code.contains(name));
    tests
        .map(|name| path.iter().cloned().chain([name]).collect())
        .collect()
}

/// The names of the modules in files of their own that a text declares in the lines asked for.
pub fn declared(text: &str, is_meant: impl Fn(usize) -> bool) -> Vec<String> {
    let lines = (1..).zip(text.lines());
    let names = lines.filter_map(|(number, line)| {
        let line = line.trim_start();
        let line = match line.strip_prefix("pub") {
            Some(rest) => rest.split_once("mod ").map(|(_, name)| name)?,
            None => line.strip_prefix("mod ")?,
        };
        let name = line.trim_end().strip_suffix(';')?;
        let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
        (is_name && is_meant(number)).then(|| name.to_owned())
    });
    names.collect()
}

/// Tokens without attributes, and without what follows `#[cfg(test)]`.
pub fn code_tokens(tokens: TokenStream) -> Vec<TokenTree> {
    let mut code = Vec::new();
    let mut rest = tokens.into_iter().peekable();
    while let Some(token) = rest.next() {
        if !is_punct(&token, '#') {
            code.push(token);
            continue;
        }
        rest.next_if(|token| is_punct(token, '!'));
        match rest.next_if(|token| is_group(token, Delimiter::Bracket)) {
            Some(attribute) if is_for_tests(&attribute) => skip_item(&mut rest),
            Some(_) => {}
            None => code.push(token),
        }
    }
    code
}

pub fn is_punct(token: &TokenTree, letter: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == letter)
}

pub fn is_group(token: &TokenTree, delimiter: Delimiter) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == delimiter)
}

pub fn is_ident(token: &TokenTree, name: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == name)
}

fn is_for_tests(attribute: &TokenTree) -> bool {
    let text = attribute.to_string();
    let words: Vec<_> = text.split(|c: char| !c.is_alphanumeric()).collect();
    words.contains(&"cfg") && words.contains(&"test") && !words.contains(&"not")
}

/// Skips to the end of an item, a field or an arm.
fn skip_item(rest: &mut std::iter::Peekable<impl Iterator<Item = TokenTree>>) {
    let mut is_import = false;
    for token in rest {
        is_import |= is_ident(&token, "use");
        let ends = is_punct(&token, ';')
            || !is_import && (is_group(&token, Delimiter::Brace) || is_punct(&token, ','));
        if ends {
            return;
        }
    }
}

#[cfg(test)]
pub fn test_crate(files: &[(&str, &str)]) -> Crate {
    let files = files.iter().map(|(path, text)| (Path::new(path), *text));
    crates(files).into_iter().next().expect("files of a crate")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_its_place() {
        let path = Path::new("crates/wire/src/lib.rs");
        assert_eq!(
            Finding::new(path, 3, "too long").to_string(),
            "crates/wire/src/lib.rs:3: too long"
        );
        assert_eq!(
            Finding::new(path, 0, "too long").to_string(),
            "crates/wire/src/lib.rs: too long"
        );
    }

    #[test]
    fn ignored_files_are_left_out_and_all_others_found() {
        let root = tempfile::tempdir().unwrap();
        for file in [
            ".ci/run",
            ".git/config",
            "a.profraw",
            "crates/a/src/lib.rs",
            "crates/a/target/kept",
            "node/x",
            "target/x",
        ] {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let gitignore = "/target\n# comment\n*.profraw\nnode/\n";
        fs::write(root.path().join(".gitignore"), gitignore).unwrap();
        let expected = [
            ".ci/run",
            ".gitignore",
            "crates/a/src/lib.rs",
            "crates/a/target/kept",
        ];
        assert_eq!(
            files_of_project(root.path()).unwrap(),
            expected.map(PathBuf::from)
        );
    }

    #[test]
    fn lines_for_tests_are_no_code() {
        let text = "a\n#[cfg(test)]\nmod tests;\nb\n#[cfg(test)]\nmod tests {\n    const T: &str = \"t\n\";\n}\nc\n";
        let lines: Vec<_> = code_lines(text).collect();
        assert_eq!(lines, [(1, "a\n"), (4, "b\n"), (10, "c\n")]);
    }

    #[test]
    fn tokens_for_tests_are_no_code() {
        let text = "#[cfg(test)] use a::{b}; fn f() {} #[cfg(all(test, x))] #[x] mod t {} \
                    struct S { #[cfg(test)] a: u8, b: u8 } #[cfg(not(test))] fn g();";
        let code = code_tokens(TokenStream::from_str(text).unwrap());
        let code: Vec<_> = code.iter().map(ToString::to_string).collect();
        let code = code.join(" ");
        assert!(code.starts_with("fn f"), "{code}");
        assert!(code.ends_with("fn g () ;"), "{code}");
        assert!(!code.contains("mod t"), "{code}");
    }

    #[test]
    fn modules_have_the_paths_that_the_compiler_gives_them() {
        let found = test_crate(&[
            ("crates/a/src/lib.rs", "mod x;\n#[cfg(test)]\nmod tests;\n"),
            ("crates/a/src/x/mod.rs", "pub(crate) mod y;\n"),
            ("crates/a/src/x/y.rs", ""),
            ("crates/a/src/tests.rs", ""),
            ("crates/a/tests/z.rs", ""),
        ]);
        let names: Vec<_> = found.modules.keys().map(|path| path.join("::")).collect();
        assert_eq!(names, ["", "x", "x::y"]);
    }
}
