//! What the program is linked from: the crates by `cargo tree`, and the C code that comes with them. From that the
//! notices that the licenses ask for, and the bill of materials in CycloneDX's form.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::process::{cargo, output_of};

/// A crate or library that is in the program.
#[derive(Debug)]
struct Part {
    name: String,
    version: String,
    license: String,
    /// Where its source is; `None` for libraries of the machine that built.
    folder: Option<PathBuf>,
    /// SHA-256 of the crate's archive; `None` for our own crates and for C code.
    checksum: Option<String>,
    is_crate: bool,
}

/// Everything that a program is linked from.
pub struct MadeOf(Vec<Part>);

/// Asks cargo and the C compiler of a target.
pub fn linked(target: &str) -> Result<MadeOf> {
    const TREE: &str = "tree --locked --package nicpoll --edges normal,no-proc-macro --no-dedupe --prefix none \
        --format {p} --target";
    let said = |command: &mut Command, words: &str| {
        let said = output_of(command.args(words.split_whitespace()));
        said.with_context(|| format!("`{words}` failed"))
    };
    let tree = said(&mut cargo(), &format!("{TREE} {target}"))?;
    let metadata = said(&mut cargo(), "metadata --locked --format-version=1")?;
    let lock = fs::read_to_string("Cargo.lock")?.parse()?;
    let mut parts = crates(&tree, &serde_json::from_str(&metadata)?, &lock)?;
    let sqlite = parts.iter().find(|part| part.name == "libsqlite3-sys");
    let sqlite = sqlite.and_then(|part| Some(part.folder.as_ref()?.join("sqlite3/sqlite3.h")));
    let sqlite = fs::read_to_string(sqlite.context("there is no SQLite in it")?)?;
    let mut compiler = Command::new(c_compiler(target));
    let features = said(&mut compiler, "-E -dM -include features.h -xc /dev/null")?;
    let [major, minor] = ["__GLIBC__", "__GLIBC_MINOR__"].map(|name| defined(&features, name));
    let rust = said(&mut Command::new("rustc"), "--version")?;
    let rust = rust.split_whitespace().nth(1).unwrap_or_default();
    let library = |name: &str, version: String, license: &str| Part {
        name: name.to_owned(),
        version,
        license: license.to_owned(),
        folder: None,
        checksum: None,
        is_crate: false,
    };
    parts.extend([
        library(
            "glibc",
            format!("{}.{}", major?, minor?),
            "LGPL-2.1-or-later",
        ),
        library("rust-std", rust.to_owned(), "MIT OR Apache-2.0"),
        library("sqlite", defined(&sqlite, "SQLITE_VERSION")?, "blessing"),
    ]);
    Ok(MadeOf(parts))
}

/// The linker that cargo has for a target in its environment compiles C, too.
fn c_compiler(target: &str) -> String {
    let name = target.to_uppercase().replace('-', "_");
    std::env::var(format!("CARGO_TARGET_{name}_LINKER")).unwrap_or_else(|_| String::from("cc"))
}

/// The value of a macro of C, without quotation marks.
fn defined(header: &str, name: &str) -> Result<String> {
    let value = header.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let is_it = words.next() == Some("#define") && words.next() == Some(name);
        is_it.then(|| words.next())?
    });
    let value = value.with_context(|| format!("there is no {name}"))?;
    Ok(value.trim_matches('"').to_owned())
}

/// The crates of a tree, with what cargo's metadata and lock file say of them.
fn crates(tree: &str, metadata: &Value, lock: &toml::Table) -> Result<Vec<Part>> {
    // Those of the workspace have their folder as a third word.
    let words = tree.lines().map(|line| line.split(' '));
    let named =
        words.filter_map(|mut words| Some((words.next()?, words.next()?.strip_prefix('v')?)));
    let named: BTreeSet<(&str, &str)> = named.collect();
    let packages = metadata["packages"].as_array().context("no packages")?;
    let locked = lock["package"].as_array().context("no packages")?;
    let part = |(name, version): (&str, &str)| {
        let package = packages
            .iter()
            .find(|package| package["name"] == name && package["version"] == version);
        let package = package.with_context(|| format!("cargo metadata does not know {name}"))?;
        let field = |field: &str| package[field].as_str();
        let entry = locked.iter().find(|entry| {
            let is = |key: &str, value: &str| entry[key].as_str() == Some(value);
            is("name", name) && is("version", version)
        });
        let checksum = entry.and_then(|entry| entry.get("checksum")?.as_str());
        ensure!(
            checksum.is_some() || field("source").is_none(),
            "Cargo.lock has no checksum of {name} {version}"
        );
        let folder = field("manifest_path").and_then(|path| Path::new(path).parent());
        Ok(Part {
            name: name.to_owned(),
            version: version.to_owned(),
            // Old manifests have a slash instead of the word.
            license: field("license").context("no license")?.replace('/', " OR "),
            folder: folder.map(Path::to_owned),
            checksum: checksum.map(str::to_owned),
            is_crate: true,
        })
    };
    named.into_iter().map(part).collect()
}

impl MadeOf {
    /// Refuses a program that names a crate which is not in the list: what may panic names its source.
    pub fn check_names_in(&self, program: &[u8]) -> Result<()> {
        let listed = self.0.iter().filter(|part| part.is_crate);
        let listed: BTreeSet<_> = listed
            .map(|part| format!("{}-{}", part.name, part.version))
            .collect();
        let named = crates_named_in(program);
        let unknown: Vec<_> = named.difference(&listed).collect();
        ensure!(
            !named.is_empty() && unknown.is_empty(),
            "of the {} crates that the program names these are not listed: {unknown:?}",
            named.len()
        );
        Ok(())
    }

    /// The bill of materials of a program of this version and SHA-256.
    pub fn sbom(&self, version: &str, sum: &str) -> Value {
        let hashes = |sum: &str| json!([{ "alg": "SHA-256", "content": sum }]);
        let component = |part: &Part| {
            let kind = if part.is_crate { "cargo" } else { "generic" };
            let purl = format!("pkg:{kind}/{}@{}", part.name, part.version);
            let mut component = json!({
                "type": "library",
                "bom-ref": purl,
                "name": part.name,
                "version": part.version,
                "purl": purl,
                "licenses": [{ "expression": part.license }],
            });
            if let Some(sum) = &part.checksum {
                component["hashes"] = hashes(sum);
            }
            component
        };
        json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": { "component": {
                "type": "application",
                "name": "nicpoll",
                "version": version,
                "hashes": hashes(sum),
            } },
            "components": self.0.iter().map(component).collect::<Vec<_>>(),
        })
    }

    /// The notices of what others made. glibc's are Debian's, with the license that goes with each copy.
    pub fn notices(&self) -> Result<String> {
        let mut parts_by_text = BTreeMap::<String, Vec<String>>::new();
        for part in &self.0 {
            let text = match &part.folder {
                Some(folder) if part.checksum.is_some() => license_text(folder, &part.license)?,
                None if part.name == "glibc" => {
                    let texts = GLIBCS_NOTICES.map(fs::read_to_string);
                    texts.into_iter().collect::<Result<Vec<_>, _>>()?.join("\n")
                }
                _ => continue,
            };
            let parts = parts_by_text.entry(text).or_default();
            parts.push(format!("{} {} ({})", part.name, part.version, part.license));
        }
        let mut notices = String::from(NOTICES_HEAD);
        for (text, parts) in parts_by_text {
            write!(notices, "\n{RULE}\n{}\n\n{text}\n", parts.join("\n"))?;
        }
        Ok(notices)
    }
}

const NOTICES_HEAD: &str = "\
nicpoll is made of these crates and of the GNU C Library, besides its own code. Above each text is what it belongs to.
The GNU C Library and its use are covered by the GNU Lesser General Public License. Its source is that of Debian's
package glibc; nicpoll's own source is there to link it with another version: cargo xtask dist.
";
const RULE: &str =
    "--------------------------------------------------------------------------------";
const GLIBCS_NOTICES: [&str; 2] = [
    "/usr/share/doc/libc6/copyright",
    "/usr/share/common-licenses/LGPL-2.1",
];

/// `NAME-VERSION` of the crates whose source a program names.
fn crates_named_in(program: &[u8]) -> BTreeSet<String> {
    const BEFORE: &[u8] = b"/registry/src/";
    let places = program.windows(BEFORE.len()).enumerate();
    let places = places.filter(|(_, window)| *window == BEFORE);
    let names = places.filter_map(|(at, _)| {
        // The registry's own folder, then the crate's.
        let mut folders = program[at + BEFORE.len()..].split(|byte| *byte == b'/');
        String::from_utf8(folders.nth(1)?.to_owned()).ok()
    });
    names.collect()
}

/// What the files of a package say; the name of its license where it has none.
fn license_text(folder: &Path, license: &str) -> Result<String> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let names = entries.map(|entry| Ok(entry?.file_name()));
    let names = chosen(names.collect::<Result<Vec<OsString>>>()?, license);
    let texts = names
        .iter()
        .map(|name| fs::read_to_string(folder.join(name)));
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    let texts: Vec<_> = texts.iter().map(|text| text.trim_end()).collect();
    Ok(if texts.is_empty() {
        format!("{license}: the package has no text of its own.")
    } else {
        texts.join("\n\n")
    })
}

/// Those of a package's files that say how it may be used: of several licenses, the MIT license where it is offered.
fn chosen(mut names: Vec<OsString>, license: &str) -> Vec<OsString> {
    let has = |name: &OsString, word: &str| name.to_string_lossy().to_uppercase().contains(word);
    names.retain(|name| {
        ["LICENSE", "LICENCE", "COPYING", "NOTICE"]
            .iter()
            .any(|word| has(name, word))
    });
    if license.contains("MIT") && names.iter().any(|name| has(name, "MIT")) {
        names.retain(|name| has(name, "MIT") || has(name, "NOTICE"));
    }
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mit_license_is_chosen_where_it_is_offered() {
        let choose = |names: &[&str], license| {
            let chosen = chosen(names.iter().map(OsString::from).collect(), license);
            chosen.join(&OsString::from(" ")).into_string().unwrap()
        };
        let both = ["Cargo.toml", "LICENSE-MIT", "LICENSE-APACHE", "NOTICE"];
        assert_eq!(choose(&both, "MIT OR Apache-2.0"), "LICENSE-MIT NOTICE");
        assert_eq!(choose(&["license.txt", "src"], "MIT"), "license.txt");
        assert_eq!(choose(&["LICENSE"], "Apache-2.0"), "LICENSE");
        assert_eq!(choose(&["README.md"], "MIT"), "");
    }

    #[test]
    fn everything_linked_is_listed_with_its_checksum() {
        let metadata = json!({ "packages": [
            { "name": "ours", "version": "0.1.0", "license": "MIT", "manifest_path": "/ours/Cargo.toml" },
            { "name": "one", "version": "1.0.0", "license": "MIT/Apache-2.0", "source": "registry",
                "manifest_path": "/one/Cargo.toml" },
        ] });
        let tree = "ours v0.1.0 (/ours)\none v1.0.0\none v1.0.0 (*)\n";
        let ours = "[[package]]\nname = 'ours'\nversion = '0.1.0'\n";
        let lock = format!("{ours}[[package]]\nname = 'one'\nversion = '1.0.0'\n");
        let crates = |lock: &str, tree: &str| crates(tree, &metadata, &lock.parse().unwrap());
        let unsummed = crates(&lock, tree).unwrap_err().to_string();
        assert_eq!(unsummed, "Cargo.lock has no checksum of one 1.0.0");
        let lock = format!("{lock}checksum = '00ff'\n");
        crates(&lock, "two v1.0.0\n").unwrap_err();

        let made_of = MadeOf(crates(&lock, tree).unwrap());
        let sbom = made_of.sbom("0.1.0", "ff00");
        assert_eq!(sbom["components"].as_array().unwrap().len(), 2);
        assert_eq!(
            sbom["components"][0],
            json!({
                "type": "library", "bom-ref": "pkg:cargo/one@1.0.0", "name": "one", "version": "1.0.0",
                "purl": "pkg:cargo/one@1.0.0", "licenses": [{ "expression": "MIT OR Apache-2.0" }],
                "hashes": [{ "alg": "SHA-256", "content": "00ff" }],
            })
        );
        let program =
            |name: &str| format!("\0/registry/src/index-1/{name}/src/lib.rs\0").into_bytes();
        made_of.check_names_in(&program("one-1.0.0")).unwrap();
        made_of.check_names_in(&program("two-1.0.0")).unwrap_err();
        made_of.check_names_in(b"nothing").unwrap_err();
    }
}
