//! `nicpoll sim ticks`: its output, refusals, and the documentation's example.

use crate::common::prelude::*;
use crate::{printed, sim};

fn ticks<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [&["ticks"], options].concat()
}

#[test]
fn the_period_is_found_beside_that_of_arithmetic() {
    for (options, seconds) in [
        (&["--pulse", "1ms", "--hz", "1000"][..], 1e-3 / 60e-6),
        (&["--pulse", "4ms", "--hz", "250"], 4e-3 / 60e-6),
    ] {
        let text = printed(&ticks(&[options, &["--json"]].concat()));
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_described(&document, "sim-ticks");
        let period = document["period_seconds"].as_f64().unwrap();
        assert!((period - seconds).abs() < 1e-9, "{period}");
        let found = document["period_found_seconds"].as_f64().unwrap();
        assert!((found - seconds).abs() <= 1.0, "{found}");
    }
}

#[test]
fn the_documentation_shows_what_the_program_prints_and_draws() {
    let page = include_str!("../../../../docs/cpu-time.md");
    let folder = tempfile::tempdir().unwrap();
    let plot = folder.path().join("ticks.svg");
    let shown = printed(&ticks(&["--svg", plot.to_str().unwrap()]));
    assert!(
        page.contains(shown.trim_end()),
        "docs/cpu-time.md should show:\n{shown}"
    );
    assert!(
        fs::read_to_string(&plot).unwrap() == include_str!("../../../../docs/tick-sampling.svg"),
        "docs/tick-sampling.svg is not what `nicpoll sim ticks --svg` draws; run it again"
    );
}

#[test]
fn what_is_wrong_is_refused_with_its_remedy() {
    assert_refused(
        "
        2 | ticks --ppm -1 | unexpected argument '-1'
        2 | ticks --ppm=-1 | 0 to 10000 millionths
        2 | ticks --kernel 101 | 0 to 100 per cent
        2 | ticks --kernel 60 --user 60 | kernel and user together
        2 | ticks --hz 0 | give 1 to 10000
        2 | ticks --reading 1us | give 1000000 to
        2 | ticks --duration 1ms | a longer duration
        2 | ticks --ppm 0.001 | a shorter duration
        ",
        |line| sim(&words(line)),
    );
    // Without drift there is no period, and none is printed.
    let still = printed(&ticks(&["--ppm", "0"]));
    assert!(still.contains("wrong in the same way"), "{still}");
}
