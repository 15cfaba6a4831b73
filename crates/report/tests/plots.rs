//! The drawings of the documentation: whole, legible on a telephone, titled, and dark in dark mode.

#[path = "../examples/controllers.rs"]
#[expect(dead_code, reason = "its main prints what is compared here")]
mod controllers;
mod drawn;

use std::fs;
use std::path::Path;

use drawn::beyond_the_edge;
use nicpoll_model::engine::EngineBenchmark;
use nicpoll_report::{chart_of_overload, plot_chart, plot_delays};

/// Width of a narrow screen, and the minimum height of letters on it, in pixels.
const NARROW: f64 = 380.0;
const LETTERS_MIN: f64 = 9.0;

fn numbers<'a>(svg: &'a str, name: &'a str) -> impl Iterator<Item = f64> + 'a {
    let values = svg.split(name).skip(1);
    values.map(|value| value.split('"').next().unwrap().parse().unwrap())
}

#[test]
fn drawings_are_whole_legible_named_and_dark_where_the_page_is() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut drawings = 0;
    for entry in fs::read_dir(docs).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "svg") {
            continue;
        }
        drawings += 1;
        let svg = fs::read_to_string(&path).unwrap();
        let name = path.display();
        let width = numbers(&svg, " width=\"").next().unwrap();
        for size in numbers(&svg, "font-size=\"") {
            let shown = size * (NARROW / width).min(1.0);
            assert!(shown >= LETTERS_MIN, "{name}: letters of {shown:.1} pixels");
        }
        let (_, title) = svg.split_once("<title>").expect("it has a title");
        assert!(!title.starts_with("</title>"), "{name}");
        assert!(svg.contains("prefers-color-scheme: dark"), "{name}");
        let cut = beyond_the_edge(&svg);
        assert!(cut.is_empty(), "{name}: {cut:#?}");
    }
    assert!(drawings >= 4, "{drawings}");
}

#[test]
fn the_committed_plots_are_what_is_drawn_today() {
    let measured = include_str!("../../../docs/engine-benchmark.json");
    let measured: EngineBenchmark = serde_json::from_str(measured).unwrap();
    let overload = chart_of_overload(&measured.overload.unwrap());
    let engine = "run 'cargo run --release -p nicpoll --example engine_bench draw docs/engine-benchmark.json docs'";
    for (name, drawn, committed, remedy) in [
        (
            "controllers.svg",
            plot_chart(&controllers::chart()),
            include_str!("../../../docs/controllers.svg"),
            "run 'cargo run -p nicpoll-report --example controllers > docs/controllers.svg'",
        ),
        (
            "engine-delays.svg",
            plot_delays(&measured.delays.unwrap()),
            include_str!("../../../docs/engine-delays.svg"),
            engine,
        ),
        (
            "engine-livelock.svg",
            plot_chart(&overload),
            include_str!("../../../docs/engine-livelock.svg"),
            engine,
        ),
    ] {
        assert!(
            drawn == committed,
            "docs/{name} is not what is drawn today: {remedy}"
        );
    }
}
