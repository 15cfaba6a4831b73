//! What the tests share: what one needs of the machine it runs on (root, another program, a kernel feature),
//! outputs that are recorded as a whole, and a check of a text's part.
//!
//! A test states its needs in one line, `needs!(Root, Iperf);`. Where one is missing, the test
//! fails if `NICPOLL_REQUIRE` names the need, and is skipped otherwise. A skipped test never counts as
//! passed: libtest has no such result, so each skip goes to standard error, past libtest's capture, and
//! to the file that `NICPOLL_SKIPPED` names, which `cargo xtask test` counts.

mod bpf;
mod chromium;
mod golden;
mod hex;
mod need;
mod pair;
mod port;
mod postgres;
mod programs;

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{self, Write as _};

pub use bpf::without_bpf;
pub use chromium::{Chromium, Screen};
pub use golden::{golden, golden_cases};
pub use hex::hex;
pub use need::Need;
use need::{REQUIRE, Unmet};
pub use pair::{NetnsPair, shell};
pub use port::{free_port, free_ports};
pub use postgres::PostgresServer;

/// The variable with the file that lists what was skipped, one `test: reason` a line.
pub const SKIPPED: &str = "NICPOLL_SKIPPED";

/// Fails, with the whole text, if it lacks a part.
#[track_caller]
pub fn assert_has(text: impl Display, part: impl AsRef<str>) {
    let (text, part) = (text.to_string(), part.as_ref());
    assert!(text.contains(part), "no {part:?} in:\n{text}");
}

/// Returns from the test, as skipped, where one of these needs is not met.
///
/// # Panics
/// In the test, when `NICPOLL_REQUIRE` names a need that is not met.
#[macro_export]
macro_rules! needs {
    ($($need:ident),+ $(,)?) => {
        if !$crate::has($crate::test_name!(), &[$($crate::Need::$need),+]) {
            return;
        }
    };
}

/// The path of the function that this stands in, with its crate: the test's, when used there.
#[macro_export]
macro_rules! test_name {
    () => {{
        fn here() {}
        let name = ::std::any::type_name_of_val(&here);
        name.strip_suffix("::here").unwrap_or(name)
    }};
}

/// Whether the machine has all of this. The first that it lacks is a reason to [`skip`].
///
/// # Panics
/// When `NICPOLL_REQUIRE` names a need that is not met.
pub fn has(test: &str, needs: &[Need]) -> bool {
    for need in needs {
        if let Some(reason) = need.missing() {
            skip(test, *need, &reason);
            return false;
        }
    }
    true
}

/// Records that a test, or a part of it, does not run. For needs that only the test itself can try.
///
/// # Panics
/// When `NICPOLL_REQUIRE` names the need, or something that is no need at all.
pub fn skip(test: &str, need: Need, reason: &str) {
    let required = std::env::var(REQUIRE).unwrap_or_default();
    let line = match need.unmet(&required, reason) {
        Unmet::Skip(reason) => one_line(test, &reason),
        Unmet::Fail(failure) => panic!("{failure}"),
    };
    // Nothing can be done where standard error is closed.
    let _ = write!(io::stderr(), "skipped {line}");
    if let Some(list) = std::env::var_os(SKIPPED) {
        let list = OpenOptions::new().append(true).create(true).open(list);
        // One write a line: test programs of several processes append to this file.
        list.and_then(|mut list| list.write_all(line.as_bytes()))
            .expect("the list of skipped tests can be written");
    }
}

/// An entry of the list, which has a line for each: a reason may be what a program printed.
fn one_line(test: &str, reason: &str) -> String {
    let words: Vec<&str> = reason.split_whitespace().collect();
    format!("{test}: {}\n", words.join(" "))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_reason_of_several_lines_is_one_entry() {
        let entry = super::one_line("a::test", "ip: Error\n  no such device\n");
        assert_eq!(entry, "a::test: ip: Error no such device\n");
    }

    #[test]
    fn a_test_knows_its_own_name() {
        assert_eq!(
            crate::test_name!(),
            "nicpoll_testkit::tests::a_test_knows_its_own_name"
        );
    }
}
