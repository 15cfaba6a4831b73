//! Makes `docs/simulator.html`, the simulator in one page that works from a file, and proves that the committed page is
//! what the sources say.
//!
//! The page is committed because a plain `cargo build` must not need the target `wasm32-wasip1`. All of it but the
//! program follows from files and is compared byte by byte everywhere. One version of rustc should give the same program in
//! every directory; the page names the version, and only that one builds the program again to compare it. With any
//! other, the test of the page in Chromium compares what its program and this one print for the same runs.

use std::env::{current_dir, var};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::process::{cargo, output_of, run};
use crate::steps::Outcome;

const PAGE: &str = "docs/simulator.html";
const PARTS: &str = "crates/page/web";
const TARGET: &str = "wasm32-wasip1";
const BYTES_MAX: usize = 2 << 20;
/// What stands before the program in the page, with the version that built it, and after it.
const BEFORE: &str = "<script type=\"text/plain\" id=\"wasm\" data-rustc=\"";

/// The program of the page, and the version of rustc that built it.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    rustc: String,
    /// Compressed, in base64.
    packed: String,
}

/// Compiles the program and writes the page.
pub fn build() -> Result<Outcome> {
    let program = compile()?;
    fs::write(PAGE, page(&program)?)?;
    Ok(Outcome::Passed)
}

/// Compares the committed page with what its sources give.
pub fn check() -> Result<Outcome> {
    const REMEDY: &str = "run `cargo xtask page` and commit the result";
    let committed = fs::read_to_string(PAGE).with_context(|| format!("{PAGE}: {REMEDY}"))?;
    let kept =
        program_in(&committed).with_context(|| format!("{PAGE} has no program: {REMEDY}"))?;
    if page(&kept)? != committed || committed.len() > BYTES_MAX {
        bail!("{PAGE} is not what {PARTS} and sim give, or over {BYTES_MAX} bytes: {REMEDY}");
    }
    let rustc = rustc()?;
    if kept.rustc != rustc || !has_target() {
        return Ok(Outcome::Skipped(format!(
            "its program takes rustc {} and the target {TARGET} (rustup target add); here is {rustc}",
            kept.rustc
        )));
    }
    if compile()? != kept {
        bail!("the program in {PAGE} is not what the sources build to: {REMEDY}");
    }
    Ok(Outcome::Passed)
}

/// Gets the target that `check` needs, where there is rustup.
pub fn install_target() -> Result<Outcome> {
    let added = run(Command::new("rustup").args(["target", "add", TARGET]));
    Ok(added.map_or_else(
        |error| Outcome::Skipped(format!("{error:#}")),
        |()| Outcome::Passed,
    ))
}

fn has_target() -> bool {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", TARGET]);
    output_of(&mut rustc).is_some_and(|folder| Path::new(folder.trim()).is_dir())
}

/// The version of rustc: "rustc 1.95.0 (59807616e 2026-04-14)" gives "1.95.0".
fn rustc() -> Result<String> {
    let text =
        output_of(Command::new("rustc").arg("--version")).context("rustc does not answer")?;
    Ok(text.split(' ').nth(1).unwrap_or_default().to_owned())
}

/// Names of this machine's folders stand in the messages of panics, unless they are mapped away.
fn compile() -> Result<Program> {
    let here = current_dir()?;
    let home = var("CARGO_HOME").or_else(|_| var("HOME").map(|home| home + "/.cargo"))?;
    let mapped = format!(
        "--remap-path-prefix={}=. --remap-path-prefix={home}=cargo",
        here.display()
    );
    let mut build = cargo();
    build.args(["build", "--release", "--locked", "--package=nicpoll-page"]);
    run(build.args(["--target", TARGET]).env("RUSTFLAGS", mapped))?;
    let file = format!("target/{TARGET}/release/nicpoll-page.wasm");
    let pack = format!("gzip -9 -n -c {file} | base64 -w 0");
    let packed = output_of(Command::new("sh").args(["-c", &pack])).context(pack)?;
    Ok(Program {
        rustc: rustc()?,
        packed,
    })
}

/// The program in a page.
fn program_in(page: &str) -> Option<Program> {
    let (_, rest) = page.split_once(BEFORE)?;
    let (rustc, rest) = rest.split_once("\">")?;
    let (packed, _) = rest.split_once("</script>")?;
    Some(Program {
        rustc: rustc.to_owned(),
        packed: packed.to_owned(),
    })
}

/// The page with a program: its template, with every other part where its name stands in braces.
fn page(program: &Program) -> Result<String> {
    let part = |name: &str| {
        fs::read_to_string(Path::new(PARTS).join(name)).with_context(|| format!("{PARTS}/{name}"))
    };
    let style = fs::read_to_string("crates/report/src/html/style.css")? + &part("page.css")?;
    // In a script of HTML nothing may look like its end.
    let data = facts()?.to_string().replace('<', "\\u003c");
    let parts = [
        ("{{style}}", style),
        ("{{worker}}", part("worker.js")?),
        ("{{script}}", part("page.js")?),
        ("{{version}}", env!("CARGO_PKG_VERSION").to_owned()),
        ("{{data}}", data),
        ("{{rustc}}", program.rustc.clone()),
        ("{{wasm}}", program.packed.clone()),
    ];
    let page = part("page.html")?;
    Ok(parts
        .iter()
        .fold(page, |page, (name, text)| page.replacen(name, text, 1)))
}

/// What the page needs of `sim`: the hosts' clocks and descriptions, and the published tables.
fn facts() -> Result<Value> {
    let mut hosts = json!({});
    for (name, text) in texts("sim/hosts")? {
        let host: Value = toml::from_str(&text).with_context(|| name.clone())?;
        let remark = text.lines().map_while(|line| line.strip_prefix("# "));
        let remark = remark.collect::<Vec<_>>().join(" ");
        let about = remark
            .split(". ")
            .next()
            .map(|first| first.trim_end_matches('.'));
        hosts[&name] = json!({ "about": about, "hz": host["cpu"]["hz"] });
    }
    let tables = texts("sim/published")?.into_iter();
    let tables = tables.map(|(_, text)| toml::from_str(&text));
    let tables: Vec<Value> = tables.collect::<Result<_, _>>()?;
    Ok(json!({ "hosts": hosts, "published": tables }))
}

/// The files of a folder by their names without the suffix, in order.
fn texts(folder: &str) -> Result<Vec<(String, String)>> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {folder}"))? {
        let path = entry?.path();
        let name = path
            .file_stem()
            .and_then(|name| name.to_str())
            .context("a file without a name")?;
        texts.push((name.to_owned(), fs::read_to_string(&path)?));
    }
    texts.sort();
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_a_page_is_found_in_it() {
        let template = fs::read_to_string(Path::new("..").join(PARTS).join("page.html")).unwrap();
        let page = template
            .replace("{{rustc}}", "1.95.0")
            .replace("{{wasm}}", "SGVsbG8=");
        let program = program_in(&page).unwrap();
        assert_eq!((&*program.rustc, &*program.packed), ("1.95.0", "SGVsbG8="));
        assert_eq!(program_in("<html>"), None);
    }
}
