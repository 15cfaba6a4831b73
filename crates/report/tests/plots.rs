//! The drawings of the documentation: legible on a telephone, named, and dark where the page is.

use std::fs;
use std::path::Path;

/// A narrow screen, and the least height of letters on it, both in pixels.
const NARROW: f64 = 380.0;
const LETTERS_MIN: f64 = 9.0;

fn numbers<'a>(svg: &'a str, name: &'a str) -> impl Iterator<Item = f64> + 'a {
    let values = svg.split(name).skip(1);
    values.map(|value| value.split('"').next().unwrap().parse().unwrap())
}

#[test]
fn drawings_are_legible_named_and_dark_where_the_page_is() {
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
    }
    assert!(drawings >= 4, "{drawings}");
}
