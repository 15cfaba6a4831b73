//! Counts passed, failed and skipped tests over all test programs.
//!
//! A skipped test never counts as passed. libtest says that tests which skip themselves passed; the list
//! that they leave takes them off.

use std::collections::BTreeMap;
use std::fmt;

/// Counts of tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Tally {
    /// Adds the counts of a line of output, if it is one with which a test program ends.
    pub fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        let of = |what: &str| -> usize {
            let mut parts = result.split([';', '.']).map(str::trim);
            let count = parts.find_map(|part| part.strip_suffix(what)?.trim().parse().ok());
            count.unwrap_or(0)
        };
        self.passed += of("passed");
        self.failed += of("failed");
        // Tests that are not even started, for a reason in their attribute.
        self.skipped += of("ignored");
    }

    /// Counts failed tests as passed that did pass when they were run again.
    pub fn passed_again(&mut self, tests: usize) {
        let tests = tests.min(self.failed);
        self.failed -= tests;
        self.passed += tests;
    }

    /// Moves the tests that skipped themselves to where they belong.
    pub fn take_off(&mut self, skipped: &Skipped) {
        self.passed = self.passed.saturating_sub(skipped.0.len());
        self.skipped += skipped.0.len();
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally {
            passed,
            failed,
            skipped,
        } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

/// The tests that skipped themselves or a part of themselves, with their reasons.
pub struct Skipped(BTreeMap<String, String>);

impl Skipped {
    /// From the list that they leave, one `test: reason` a line. A test may skip more than one part.
    pub fn parse(list: &str) -> Self {
        let mut tests: BTreeMap<String, String> = BTreeMap::new();
        for line in list.lines() {
            // The path of a test has colons, but never one before a space.
            let (test, reason) = line.split_once(": ").unwrap_or((line, ""));
            let reasons = tests.entry(test.to_owned()).or_default();
            if !reasons.is_empty() {
                reasons.push_str("; ");
            }
            reasons.push_str(reason);
        }
        Self(tests)
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (test, reason) in &self.0 {
            writeln!(f, "skipped {test}: {reason}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "running 2 tests
test tests::one ... ok
test tests::two ... FAILED
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.00s
test result: ok. 40 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 1.00s
test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    #[test]
    fn all_test_programs_are_summed() {
        let mut tally = Tally::default();
        OUTPUT.lines().for_each(|line| tally.add(line));
        assert_eq!(tally.to_string(), "41 passed, 1 failed, 2 skipped");
    }

    #[test]
    fn what_passed_when_run_again_has_passed() {
        let mut tally = Tally::default();
        OUTPUT.lines().for_each(|line| tally.add(line));
        tally.passed_again(1);
        assert_eq!(tally.to_string(), "42 passed, 0 failed, 2 skipped");
    }

    #[test]
    fn what_was_skipped_did_not_pass_and_counts_once() {
        let list = "set::a: missing CAP_NET_ADMIN (root: run it as root)\nset::b: vlan: no\nset::b: bond: no\n";
        let skipped = Skipped::parse(list);
        let mut tally = Tally::default();
        OUTPUT.lines().for_each(|line| tally.add(line));
        tally.take_off(&skipped);
        assert_eq!(tally.to_string(), "39 passed, 1 failed, 4 skipped");
        assert_eq!(
            skipped.to_string(),
            "skipped set::a: missing CAP_NET_ADMIN (root: run it as root)\n\
             skipped set::b: vlan: no; bond: no\n"
        );
    }

    #[test]
    fn without_a_test_nothing_is_counted() {
        let mut tally = Tally::default();
        tally.take_off(&Skipped::parse(""));
        assert_eq!(tally.to_string(), "0 passed, 0 failed, 0 skipped");
    }
}
