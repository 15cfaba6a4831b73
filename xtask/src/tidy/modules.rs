//! How a crate is divided: no circle among its modules, and few enough modules in one place to read.
//!
//! A module uses the deepest module that a path names: by `use`, `crate::`, `super::`, `self::`, or the
//! name of a module below it. `pub use` counts, too, so a part names the part that defines what it
//! needs, not the folder that exports it.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, Group, TokenTree};

use super::source::{
    Crate, Finding, code_lines, code_tokens, declared, is_group, is_ident, is_punct,
};

/// Modules that one file may declare.
const MOST_MODULES: usize = 12;

type Path = Vec<String>;
/// The modules that each module uses, and the line where it first does.
type Uses = BTreeMap<Path, BTreeMap<Path, usize>>;

/// Files that declare more modules than a reader keeps in mind.
pub fn crowded(of: &Crate) -> Vec<Finding> {
    let findings = of.modules.values().filter_map(|module| {
        let code: BTreeSet<_> = code_lines(&module.text).map(|(line, _)| line).collect();
        let modules = declared(&module.text, |line| code.contains(&line)).len();
        (modules > MOST_MODULES).then(|| {
            let message = format!(
                "{modules} modules, at most {MOST_MODULES}: join those that are one concept, or group them"
            );
            Finding::new(&module.file, 0, message)
        })
    });
    findings.collect()
}

/// Modules that use each other, directly or through others: one finding for each circle.
pub fn circles(of: &Crate) -> Vec<Finding> {
    let uses = uses(of);
    let reach: BTreeMap<&Path, BTreeSet<&Path>> = uses
        .keys()
        .map(|from| (from, reached(&uses, from)))
        .collect();
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    for (from, ends) in &reach {
        let circle: BTreeSet<&Path> = ends
            .iter()
            .filter(|end| reach.get(**end).is_some_and(|back| back.contains(from)))
            .copied()
            .collect();
        if circle.contains(from) && seen.insert(circle.clone()) {
            findings.push(finding(of, &uses, &circle));
        }
    }
    findings
}

fn finding(of: &Crate, uses: &Uses, circle: &BTreeSet<&Path>) -> Finding {
    let name = |path: &Path| match &path[..] {
        [] => String::from("the root"),
        path => path.join("::"),
    };
    let names: Vec<_> = circle.iter().map(|path| name(path)).collect();
    let first = circle.first().expect("a circle has members");
    let steps = uses[*first].iter();
    let line = steps
        .filter(|(to, _)| circle.contains(to))
        .map(|(_, line)| *line);
    let message = format!(
        "these modules use each other: {}: move what both need below them",
        names.join(", ")
    );
    Finding::new(&of.modules[*first].file, line.min().unwrap_or(0), message)
}

/// The modules that can be reached from one by at least one step.
fn reached<'a>(uses: &'a Uses, from: &Path) -> BTreeSet<&'a Path> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&Path> = uses[from].keys().collect();
    while let Some(path) = next.pop() {
        if found.insert(path) {
            next.extend(uses[path].keys());
        }
    }
    found
}

fn uses(of: &Crate) -> Uses {
    let found = of.modules.iter().map(|(path, module)| {
        let mut walk = Walk {
            of,
            path,
            found: BTreeMap::new(),
        };
        walk.tokens(&module.tokens(), path);
        (path.clone(), walk.found)
    });
    found.collect()
}

/// Reads the paths in a file's tokens.
struct Walk<'a> {
    of: &'a Crate,
    path: &'a Path,
    found: BTreeMap<Path, usize>,
}

impl Walk<'_> {
    /// `within` is the module that the tokens are in: the file's own, or one in braces.
    fn tokens(&mut self, tokens: &[TokenTree], within: &Path) {
        let mut at = 0;
        while at < tokens.len() {
            let continues =
                at > 0 && (is_punct(&tokens[at - 1], ':') || is_punct(&tokens[at - 1], '.'));
            match &tokens[at] {
                // `pub(crate)` is no use of the root.
                TokenTree::Ident(ident) if ident == "pub" => {
                    at += tokens
                        .get(at + 1)
                        .is_some_and(|next| is_group(next, Delimiter::Parenthesis))
                        as usize;
                }
                TokenTree::Ident(ident) if ident == "mod" => {
                    if let [TokenTree::Ident(name), TokenTree::Group(body), ..] = &tokens[at + 1..]
                    {
                        let inner = [&within[..], &[name.to_string()]].concat();
                        self.tokens(&code_tokens(body.stream()), &inner);
                        at += 2;
                    }
                }
                TokenTree::Ident(_) if !continues => at = self.path(tokens, at, within),
                TokenTree::Group(group) => self.tokens(&code_tokens(group.stream()), within),
                _ => {}
            }
            at += 1;
        }
    }

    /// Reads the path that begins at `at`, and gives the place of its last token.
    fn path(&mut self, tokens: &[TokenTree], mut at: usize, within: &Path) -> usize {
        let line = tokens[at].span().start().line;
        let Some(mut path) = self.begin(&tokens[at], within) else {
            return at;
        };
        let mut is_path = false;
        while let Some(next) = after_colons(tokens, at) {
            is_path = true;
            match &tokens[next] {
                TokenTree::Ident(ident) if ident == "super" => {
                    path.pop();
                }
                TokenTree::Ident(ident) => path.push(ident.to_string()),
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                    self.list(group, &path, line);
                    return next;
                }
                _ => break,
            }
            at = next;
        }
        if is_path {
            self.used(&path, line);
        }
        at
    }

    /// Where a path leads that begins with this word, when it leads into the crate.
    fn begin(&self, word: &TokenTree, within: &Path) -> Option<Path> {
        let word = word.to_string();
        match word.as_str() {
            "crate" => Some(Vec::new()),
            "self" => Some(within.clone()),
            "super" => Some(within[..within.len().saturating_sub(1)].to_vec()),
            _ => {
                let below = [&self.path[..], &[word]].concat();
                self.of.modules.contains_key(&below).then_some(below)
            }
        }
    }

    /// The list in braces that ends a path of `use`.
    fn list(&mut self, group: &Group, before: &Path, line: usize) {
        let tokens = code_tokens(group.stream());
        for entry in tokens.split(|token| is_punct(token, ',')) {
            let mut path = before.clone();
            let mut nested = None;
            for token in entry.iter().take_while(|token| !is_ident(token, "as")) {
                match token {
                    TokenTree::Ident(ident) if ident != "self" => path.push(ident.to_string()),
                    TokenTree::Group(group) => nested = Some(group),
                    _ => {}
                }
            }
            match nested {
                Some(group) => self.list(group, &path, line),
                None if entry.is_empty() => {}
                None => self.used(&path, line),
            }
        }
    }

    fn used(&mut self, path: &Path, line: usize) {
        let prefixes = (0..=path.len()).rev().map(|end| &path[..end]);
        let mut known = prefixes.filter(|path| self.of.modules.contains_key(*path));
        if let Some(module) = known.next()
            && module != self.path
        {
            self.found.entry(module.to_vec()).or_insert(line);
        }
    }
}

fn after_colons(tokens: &[TokenTree], at: usize) -> Option<usize> {
    let colons = tokens.get(at + 1..at + 3)?;
    let next = at + 3;
    (colons.iter().all(|token| is_punct(token, ':')) && next < tokens.len()).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::super::source::test_crate;
    use super::*;

    const ROOT: &str = "crates/a/src/lib.rs";

    fn found(root: &str, x: &str, y: &str) -> Vec<String> {
        let of = test_crate(&[
            (ROOT, root),
            ("crates/a/src/x.rs", x),
            ("crates/a/src/y.rs", y),
        ]);
        let found = circles(&of).into_iter();
        found.map(|finding| finding.message).collect()
    }

    #[test]
    fn each_form_of_path_closes_a_circle() {
        for back in [
            "use crate::x::X;",
            "use crate::{other, x::{self, X}};",
            "use super::x;",
            "fn f() -> super::x::X { loop {} }",
            "fn f() { tell!(\"{}\", crate::x::g()) }",
            "mod inner { use super::super::x::X; }",
        ] {
            let found = found("mod x;\nmod y;\n", "use crate::y::Y;", back);
            assert_eq!(found.len(), 1, "{back}");
            assert!(found[0].contains("x, y"), "{back}: {found:?}");
        }
    }

    #[test]
    fn a_part_that_names_what_its_folder_exports_closes_a_circle() {
        let found = found(
            "mod x;\nmod y;\npub use x::X;\n",
            "struct X;",
            "use crate::X;",
        );
        assert!(found.is_empty(), "y is not used by the root: {found:?}");
        let found = self::found("mod x;\nmod y;\npub use x::X;\n", "use crate::f;", "");
        assert!(found[0].contains("the root, x"), "{found:?}");
    }

    #[test]
    fn one_way_tests_and_visibility_are_no_circle() {
        let user = "use crate::y::Y;\npub(crate) fn f(self) { std::mem::drop(a.crate_name) }";
        let used = "pub(in crate::x) struct Y;\n#[cfg(test)]\nmod tests { use crate::x::f; }";
        assert_eq!(found("mod x;\nmod y;\nuse x::f;\n", user, used), [""; 0]);
    }

    #[test]
    fn a_file_with_too_many_modules_is_found() {
        let of = |count: usize| {
            let modules: String = (0..count)
                .map(|n| format!("pub(crate) mod m{n};\n"))
                .collect();
            test_crate(&[(ROOT, &format!("{modules}#[cfg(test)]\nmod tests;\n"))])
        };
        assert_eq!(crowded(&of(12)), []);
        assert!(crowded(&of(13))[0].message.starts_with("13 modules"));
    }
}
