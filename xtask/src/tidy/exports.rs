//! What a library exports is what another crate uses.
//!
//! Another crate is any other of the workspace, the fuzz targets, and this crate's own tests, benches,
//! examples, README and documented examples. Items are matched by name. A type or a constant that
//! nobody names counts as used when something exported has it in its signature.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::source::{Crate, Finding, code_tokens, is_group, is_ident, is_punct};

const TYPES: [&str; 5] = ["struct", "enum", "trait", "type", "union"];
const VALUES: [&str; 3] = ["fn", "const", "static"];

/// An exported item.
struct Export {
    name: String,
    is_type: bool,
    is_function: bool,
    module: Vec<String>,
    line: usize,
}

/// What a crate exports.
#[derive(Default)]
struct Exports {
    items: Vec<Export>,
    /// The names in the signatures and fields of what is exported.
    interface: BTreeSet<String>,
    /// Names of `pub use`: those of types that a macro defines are among them.
    imported: BTreeSet<String>,
    /// Modules that were read.
    seen: BTreeSet<Vec<String>>,
}

/// The words of code by the crate they are in; examples and tests are words of no crate.
pub struct Words(BTreeMap<String, BTreeSet<String>>);

impl Words {
    pub fn of<'a>(files: impl Iterator<Item = (&'a Path, &'a str)>) -> Self {
        let mut words = BTreeMap::<String, BTreeSet<String>>::new();
        for (path, text) in files {
            let is_rust = path.extension().is_some_and(|end| end == "rs");
            if !is_rust && !path.ends_with("README.md") {
                continue;
            }
            let parts: Vec<_> = path.iter().filter_map(|part| part.to_str()).collect();
            let own = match &parts[..] {
                ["crates", name, "src", ..] => *name,
                ["xtask", ..] => "xtask",
                _ => "",
            };
            let found = words.entry(own.to_owned()).or_default();
            if is_rust {
                idents(TokenStream::from_str(text).unwrap_or_default(), found);
            } else {
                found.extend(split(text));
            }
            if is_rust && !own.is_empty() {
                let examples = words.entry(String::new()).or_default();
                examples.extend(split(&documented_examples(text)));
            }
        }
        Self(words)
    }

    fn outside(&self, own: &str, word: &str) -> bool {
        let mut others = self.0.iter().filter(|(name, _)| *name != own);
        others.any(|(_, words)| words.contains(word))
    }
}

fn split(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.map(str::to_owned)
}

/// The code between fences in a file's documentation.
fn documented_examples(text: &str) -> String {
    let mut is_example = false;
    let lines = text.lines().filter_map(|line| {
        let line = line.trim_start();
        let prose = line.strip_prefix("//!").or(line.strip_prefix("///"));
        is_example = prose.is_some_and(|prose| is_example ^ prose.trim().starts_with("```"));
        prose.filter(|_| is_example)
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn idents(tokens: TokenStream, found: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                found.insert(ident.to_string());
            }
            TokenTree::Group(group) => idents(group.stream(), found),
            _ => {}
        }
    }
}

/// Exported items of a crate that no other crate uses.
pub fn unused(of: &Crate, words: &Words) -> Vec<Finding> {
    let is_library = of
        .modules
        .get(&[][..])
        .is_some_and(|root| root.file.ends_with("lib.rs"));
    if !is_library {
        return Vec::new();
    }
    let mut exports = Exports::default();
    exports.module(of, &[], None);
    exports.methods(of);
    let unused = exports.items.iter().filter(|item| {
        let is_passed = !item.is_function && exports.interface.contains(&item.name);
        !is_passed && !words.outside(&of.name, &item.name)
    });
    let findings = unused.map(|item| {
        let message = format!("{} is exported and no other crate uses it", item.name);
        Finding::new(&of.modules[&item.module].file, item.line, message)
    });
    findings.collect()
}

impl Exports {
    /// Adds what a module exports: all of it, or the item of one name.
    fn module(&mut self, of: &Crate, path: &[String], only: Option<&str>) {
        if only.is_none() && !self.seen.insert(path.to_vec()) {
            return;
        }
        let Some(module) = of.modules.get(path) else {
            return;
        };
        let tokens = module.tokens();
        for at in public(&tokens) {
            let rest = &tokens[at + 1..];
            let keyword = rest.iter().find_map(|token| match token {
                TokenTree::Ident(ident) => Some(ident.to_string()),
                _ => None,
            });
            match keyword.as_deref() {
                Some("use") => self.import(of, path, &rest[1..], only),
                Some("mod") => {
                    let name = rest[1].to_string();
                    if only.is_none_or(|only| only == name) {
                        self.module(of, &[path, &[name]].concat(), None);
                    }
                }
                _ => self.item(path, rest, only),
            }
        }
    }

    fn item(&mut self, module: &[String], tokens: &[TokenTree], only: Option<&str>) {
        let Some((name, is_type)) = named(tokens) else {
            return;
        };
        if only.is_some_and(|only| only != name.to_string()) {
            return;
        }
        self.items.push(Export {
            name: name.to_string(),
            is_type,
            is_function: !is_type && !name.to_string().starts_with(char::is_uppercase),
            module: module.to_vec(),
            line: name.span().start().line,
        });
        self.signature(tokens, is_type);
    }

    /// Adds the names that an item's users see: a function's up to its body, all of a type's.
    fn signature(&mut self, tokens: &[TokenTree], is_type: bool) {
        // A name is no use of itself.
        let name = named(tokens).map(|(name, _)| name.to_string());
        for token in tokens {
            if name.as_deref().is_some_and(|name| is_ident(token, name)) {
                continue;
            }
            if is_punct(token, ';') || !is_type && is_group(token, Delimiter::Brace) {
                break;
            }
            idents(token.clone().into(), &mut self.interface);
            if is_group(token, Delimiter::Brace) {
                break;
            }
        }
    }

    /// `pub use`: follows each name to the module that defines it.
    fn import(&mut self, of: &Crate, at: &[String], tokens: &[TokenTree], only: Option<&str>) {
        let end = tokens.iter().position(|token| is_punct(token, ';'));
        for (mut path, alias) in leaves(&tokens[..end.unwrap_or(tokens.len())]) {
            let name = path.pop().unwrap_or_default();
            self.imported.insert(name.clone());
            if only.is_some_and(|only| only != alias && name != "*") {
                continue;
            }
            let module = match path.first().map(String::as_str) {
                Some("crate") => path[1..].to_vec(),
                Some("self") => [at, &path[1..]].concat(),
                _ => [at, &path].concat(),
            };
            let as_module = [&module[..], std::slice::from_ref(&name)].concat();
            if name == "*" {
                self.module(of, &module, only);
            } else if of.modules.contains_key(&as_module) {
                self.module(of, &as_module, None);
            } else {
                self.module(of, &module, Some(&name));
            }
        }
    }

    /// Adds the types that an implementation of a trait names, as `type Err = ...;`.
    fn associated(&mut self, tokens: &[TokenTree]) {
        let body = tokens
            .iter()
            .find(|token| is_group(token, Delimiter::Brace));
        let Some(TokenTree::Group(body)) = body else {
            return;
        };
        let body = code_tokens(body.stream());
        let types = body.split(|token| is_punct(token, ';'));
        for item in types.filter(|item| item.first().is_some_and(|token| is_ident(token, "type"))) {
            self.signature(item, true);
        }
    }

    /// Adds the public functions of the exported types.
    fn methods(&mut self, of: &Crate) {
        let types: BTreeSet<_> = self
            .items
            .iter()
            .filter(|item| item.is_type)
            .map(|item| item.name.clone())
            .collect();
        for (path, module) in &of.modules {
            let tokens = module.tokens();
            for (at, _) in tokens
                .iter()
                .enumerate()
                .filter(|(_, token)| is_ident(token, "impl"))
            {
                let Some((name, body)) = inherent(&tokens[at + 1..]) else {
                    self.associated(&tokens[at + 1..]);
                    continue;
                };
                if types.contains(&name) || self.imported.contains(&name) {
                    let body = code_tokens(body);
                    for at in public(&body) {
                        self.item(path, &body[at + 1..], None);
                    }
                }
            }
        }
    }
}

/// The places of `pub` without a restriction.
fn public(tokens: &[TokenTree]) -> Vec<usize> {
    let places = (0..tokens.len()).filter(|&at| {
        let restricted = tokens
            .get(at + 1)
            .is_some_and(|next| is_group(next, Delimiter::Parenthesis));
        is_ident(&tokens[at], "pub") && !restricted
    });
    places.collect()
}

/// The name of the item that begins here, and whether it is a type.
fn named(tokens: &[TokenTree]) -> Option<(&TokenTree, bool)> {
    let mut words = tokens
        .iter()
        .take_while(|token| matches!(token, TokenTree::Ident(_) | TokenTree::Literal(_)));
    let mut keyword = words.find(|token| {
        let word = token.to_string();
        TYPES.contains(&word.as_str()) || VALUES.contains(&word.as_str())
    })?;
    let mut name = words.next()?;
    // `const fn`, `const unsafe fn`.
    while ["fn", "unsafe", "extern"]
        .iter()
        .any(|word| is_ident(name, word))
    {
        (keyword, name) = (name, words.next()?);
    }
    Some((name, TYPES.contains(&keyword.to_string().as_str())))
}

/// The type and the body of an `impl` without a trait.
fn inherent(tokens: &[TokenTree]) -> Option<(String, TokenStream)> {
    let end = tokens
        .iter()
        .position(|token| is_group(token, Delimiter::Brace))?;
    let head = &tokens[..end];
    if head.iter().any(|token| is_ident(token, "for")) {
        return None;
    }
    let mut depth = 0_i32;
    let name = head.iter().filter(|token| {
        depth += i32::from(is_punct(token, '<')) - i32::from(is_punct(token, '>'));
        depth == 0 && matches!(token, TokenTree::Ident(_))
    });
    let name = name.take_while(|token| !is_ident(token, "where")).last()?;
    match &tokens[end] {
        TokenTree::Group(body) => Some((name.to_string(), body.stream())),
        _ => None,
    }
}

/// The paths of a `use`, each with the name that it is exported by.
fn leaves(tokens: &[TokenTree]) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    for entry in tokens.split(|token| is_punct(token, ',')) {
        let mut path = Vec::new();
        let mut alias = None;
        let mut is_alias = false;
        let mut nested = None;
        for token in entry {
            match token {
                TokenTree::Ident(ident) if ident == "as" => is_alias = true,
                TokenTree::Ident(ident) if is_alias => alias = Some(ident.to_string()),
                TokenTree::Ident(ident) => path.push(ident.to_string()),
                TokenTree::Punct(punct) if punct.as_char() == '*' => path.push(String::from("*")),
                TokenTree::Group(group) => nested = Some(group.stream()),
                _ => {}
            }
        }
        match nested {
            Some(list) => {
                let inner: Vec<_> = list.into_iter().collect();
                let inner = leaves(&inner).into_iter();
                found.extend(inner.map(|(end, alias)| ([&path[..], &end].concat(), alias)));
            }
            None if path.is_empty() => {}
            None => {
                let name = alias.unwrap_or_else(|| path.last().cloned().unwrap_or_default());
                found.push((path, name));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::source::test_crate;
    use super::*;

    fn found(other: (&str, &str)) -> Vec<String> {
        let own = [
            (
                "crates/a/src/lib.rs",
                "mod x;\npub mod y;\npub use x::{X, inner::*};\npub(crate) use x::Hidden;",
            ),
            (
                "crates/a/src/x.rs",
                "pub struct X { pub field: Passed }\nimpl<T> X { pub const fn method() {} fn own() {} }\n\
                 pub fn not_exported() {}\nimpl Hidden { pub fn neither() {} }",
            ),
            (
                "crates/a/src/x/inner.rs",
                "pub const INNER: u8 = 1;\npub struct Passed;",
            ),
            (
                "crates/a/src/y.rs",
                "pub trait Y {}\n#[cfg(test)]\npub fn for_tests() {}",
            ),
        ];
        let of = test_crate(&own);
        let files = own.into_iter().chain([other]);
        let words = Words::of(files.map(|(path, text)| (Path::new(path), text)));
        let found = unused(&of, &words).into_iter();
        let name = |message: String| message.split(' ').next().unwrap().to_owned();
        found.map(|finding| name(finding.message)).collect()
    }

    #[test]
    fn what_nobody_uses_is_found_by_every_way_it_is_exported() {
        assert_eq!(
            found(("crates/b/src/lib.rs", "")),
            ["Y", "X", "INNER", "method"]
        );
    }

    #[test]
    fn another_crate_and_any_kind_of_example_is_a_user() {
        for (path, text) in [
            (
                "crates/b/src/lib.rs",
                "use a::{X, INNER, Y}; fn f() { X::method() }",
            ),
            ("crates/a/tests/t.rs", "a(X, INNER, Y, method)"),
            (
                "fuzz/fuzz_targets/t.rs",
                "fuzz_target!(|x| { X.method(INNER, Y) });",
            ),
            ("crates/a/README.md", "```\nX::method(INNER) as Y\n```"),
            (
                "crates/a/src/z.rs",
                "//! ```\n//! X::method(INNER) as Y\n//! ```\n",
            ),
        ] {
            assert_eq!(found((path, text)), [""; 0], "{path}");
        }
    }

    #[test]
    fn prose_and_the_crate_itself_are_no_users() {
        for (path, text) in [
            ("crates/b/src/lib.rs", "// X, INNER, Y and method."),
            (
                "crates/a/src/z.rs",
                "//! X, INNER\nfn f() { X::method(INNER); Y }",
            ),
        ] {
            assert_eq!(found((path, text)).len(), 4, "{path}");
        }
    }
}
