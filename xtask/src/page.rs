//! Makes `docs/simulator.html`, the simulator in one page that works from a file, and proves that the committed page is
//! what the sources say.
//!
//! The page is committed because a plain `cargo build` must not need the target `wasm32-wasip1`. All of it but the
//! program follows from files and is compared byte by byte everywhere. One version of rustc gives the same program in
//! every directory; the page names the version, and only that one builds the program again to compare it. With any
//! other, the test of the page in Chromium compares what its program and this one print for the same runs.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::process::{cargo, find_program, output_of, run};
use crate::steps::Outcome;

const PAGE: &str = "docs/simulator.html";
const PARTS: &str = "crates/page/web";
const TARGET: &str = "wasm32-wasip1";
/// What the issue of the page promises.
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
    let committed = fs::read_to_string(PAGE).with_context(|| format!("cannot read {PAGE}"))?;
    let remedy = "run `cargo xtask page` and commit the result";
    let kept = program_in(&committed).with_context(|| format!("no program in {PAGE}; {remedy}"))?;
    if committed.len() > BYTES_MAX {
        bail!("{PAGE} has {} bytes, at most {BYTES_MAX}", committed.len());
    }
    if page(&kept)? != committed {
        bail!("{PAGE} is not what {PARTS} and sim give; {remedy}");
    }
    if kept.rustc != rustc()? {
        let reason = format!(
            "its program was built with rustc {}, here is {}",
            kept.rustc,
            rustc()?
        );
        return Ok(Outcome::Skipped(reason));
    }
    if !has_target() {
        return Ok(Outcome::Skipped(format!(
            "rustup target add {TARGET} gives what builds its program"
        )));
    }
    if compile()? != kept {
        bail!("the program in {PAGE} is not what the sources build to; {remedy}");
    }
    Ok(Outcome::Passed)
}

/// Gets the target that `check` needs, where there is rustup.
pub fn install_target() -> Result<Outcome> {
    if !has_target() && find_program("rustup").is_none() {
        return Ok(Outcome::Skipped(String::from("there is no rustup")));
    }
    Ok(
        match run(Command::new("rustup").args(["target", "add", TARGET])) {
            Ok(()) => Outcome::Passed,
            Err(error) => Outcome::Skipped(format!("{error:#}")),
        },
    )
}

fn has_target() -> bool {
    let libraries =
        output_of(Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]));
    libraries.is_some_and(|folder| Path::new(folder.trim()).is_dir())
}

/// The version of rustc: "rustc 1.95.0 (59807616e 2026-04-14)" gives "1.95.0".
fn rustc() -> Result<String> {
    let text =
        output_of(Command::new("rustc").arg("--version")).context("rustc does not answer")?;
    let version = text.split(' ').nth(1);
    Ok(version.context("rustc tells no version")?.to_owned())
}

/// Names of this machine's folders stand in the messages of panics, unless they are mapped away.
fn compile() -> Result<Program> {
    let here = std::env::current_dir()?;
    let home = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")));
    let mapped = format!(
        "--remap-path-prefix={}=. --remap-path-prefix={}=cargo",
        here.display(),
        home.context("neither CARGO_HOME nor HOME is set")?
    );
    let what = [
        "build",
        "--release",
        "--locked",
        "--package",
        "nicpoll-page",
        "--target",
        TARGET,
    ];
    run(cargo().args(what).env("RUSTFLAGS", mapped))?;
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
        let remark: Vec<_> = text
            .lines()
            .map_while(|line| line.strip_prefix("# "))
            .collect();
        let remark = remark.join(" ");
        let about = remark
            .split_inclusive(". ")
            .next()
            .unwrap_or_default()
            .trim_end();
        hosts[&name] = json!({ "about": about, "hz": host["cpu"]["hz"] });
    }
    let tables: Result<Vec<Value>> = texts("sim/published")?
        .iter()
        .map(|(name, text)| toml::from_str(text).with_context(|| name.clone()))
        .collect();
    Ok(json!({ "hosts": hosts, "published": tables? }))
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
