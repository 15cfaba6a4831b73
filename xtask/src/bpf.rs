//! Compiles the BPF programs of `bpf/` into the objects that the crates carry, and proves that the
//! committed objects are what the sources say.
//!
//! The objects are committed because a plain `cargo build` must not need clang. One source built by one
//! version of clang gives the same bytes in every directory and on every machine. Another version may
//! give others: bpf/CLANG_VERSION names the one that built the committed objects, and only that one
//! checks them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::needs;
use crate::process::{find_program, output_of, run};
use crate::steps::Outcome;

const SOURCES: &str = "bpf";
/// The crate that carries the counting programs and those of tests: all that no other crate loads.
const OBSERVE: &str = "crates/observe/bpf";
/// Each folder of objects, with the programs that the crate of the folder loads.
const FOLDERS: [(&str, &[&str]); 3] = [
    (OBSERVE, &[]),
    ("crates/sys/bpf", &["napi_list"]),
    (
        "crates/engine/bpf",
        &["xdp_blast", "xdp_exits", "xdp_forward", "xdp_take"],
    ),
];
const VERSION_FILE: &str = "bpf/CLANG_VERSION";

/// clang and the llvm-strip of the same release: both decide about the object's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Compiler {
    clang: PathBuf,
    strip: PathBuf,
    version: String,
}

/// Compiles every program and records the compiler's version.
pub fn build() -> Result<Outcome> {
    let recorded = fs::read_to_string(VERSION_FILE).unwrap_or_default();
    let compiler = find_compiler(recorded.trim())
        .context("clang and llvm-strip of one release are needed (packages clang and llvm)")?;
    for name in names(Path::new(SOURCES), ".bpf.c")? {
        let folder = Path::new(folder_of(&name));
        fs::create_dir_all(folder)?;
        compile(&compiler, &name, folder)?;
    }
    fs::write(VERSION_FILE, format!("{}\n", compiler.version))?;
    Ok(Outcome::Passed)
}

/// Compiles every program into a temporary directory and compares it with the committed object.
pub fn check() -> Result<Outcome> {
    let wanted = wanted_version()?;
    let Some(compiler) = find_compiler(&wanted) else {
        let [clang, llvm] = packages(&wanted);
        return Ok(Outcome::Skipped(format!(
            "the objects were built with clang {wanted}, here is none (packages {clang} and {llvm})"
        )));
    };
    if compiler.version != wanted {
        return Ok(Outcome::Skipped(format!(
            "built with clang {wanted}, here is {}",
            compiler.version
        )));
    }
    let sources = names(Path::new(SOURCES), ".bpf.c")?;
    for (folder, _) in FOLDERS {
        let fresh = tempfile::tempdir().context("cannot make a temporary directory")?;
        for name in sources.iter().filter(|name| folder_of(name) == folder) {
            compile(&compiler, name, fresh.path())?;
        }
        let differing = differing(fresh.path(), Path::new(folder))?;
        if !differing.is_empty() {
            bail!(
                "{folder} is not what {SOURCES} builds to: {}; run `cargo xtask bpf` and commit the result",
                differing.join(", ")
            );
        }
    }
    Ok(Outcome::Passed)
}

/// The folder of a program's object: that of the crate that loads it.
fn folder_of(name: &str) -> &'static str {
    let mut folders = FOLDERS.iter();
    folders
        .find(|(_, programs)| programs.contains(&name))
        .map_or(OBSERVE, |(folder, _)| folder)
}

/// Gets the compiler that `check` needs from the distribution. One that has another version only
/// is no failure: the check then says so.
pub fn install_compiler() -> Result<Outcome> {
    let wanted = wanted_version()?;
    if find_compiler(&wanted).is_some_and(|compiler| compiler.version == wanted) {
        return Ok(Outcome::Passed);
    }
    let packages = packages(&wanted);
    if !needs::can_install() {
        return Ok(Outcome::Skipped(format!(
            "not root on Debian or Ubuntu; to check the objects install {}",
            packages.join(" ")
        )));
    }
    Ok(
        match needs::install(&packages.each_ref().map(String::as_str)) {
            Ok(()) => Outcome::Passed,
            Err(error) => Outcome::Skipped(format!("{error:#}")),
        },
    )
}

fn wanted_version() -> Result<String> {
    let text = fs::read_to_string(VERSION_FILE).with_context(|| {
        format!("cannot read {VERSION_FILE}: `cargo xtask bpf` writes it with the objects")
    })?;
    Ok(text.trim().to_owned())
}

/// Debian and Ubuntu number their packages by the major version.
fn packages(version: &str) -> [String; 2] {
    let major = version.split('.').next().unwrap_or(version);
    [format!("clang-{major}"), format!("llvm-{major}")]
}

/// The compiler of the wanted version, or else any.
fn find_compiler(wanted: &str) -> Option<Compiler> {
    let major = wanted.split('.').next().unwrap_or(wanted);
    let found: Vec<_> = [format!("-{major}"), String::new()]
        .iter()
        .filter_map(|suffix| compiler(suffix))
        .collect();
    choose(&found, wanted)
}

fn choose(found: &[Compiler], wanted: &str) -> Option<Compiler> {
    let exact = found.iter().find(|compiler| compiler.version == wanted);
    exact.or(found.first()).cloned()
}

fn compiler(suffix: &str) -> Option<Compiler> {
    let clang = find_program(&format!("clang{suffix}"))?;
    let strip = find_program(&format!("llvm-strip{suffix}"))?;
    let of = |program: &Path| version_in(&output_of(Command::new(program).arg("--version"))?);
    let version = of(&clang)?;
    (of(&strip)? == version).then_some(Compiler {
        clang,
        strip,
        version,
    })
}

/// "Debian clang version 14.0.6" or "LLVM version 14.0.6" gives "14.0.6"; what a distribution adds
/// to the number is dropped.
fn version_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once(" version ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
    let version = &rest[..end.unwrap_or(rest.len())];
    (!version.is_empty()).then(|| version.to_owned())
}

/// The little-endian target is named because the objects are committed: "bpf" is the byte order of
/// the machine that compiles. The instruction set v3 is the first with an atomic exchange (Linux 5.12); all else of it
/// that the programs use is in Linux 5.10. BTF holds the directory of the source, so that is mapped away; DWARF,
/// which the loader does not read, goes last, because clang makes BTF from the same information.
fn compile(compiler: &Compiler, name: &str, folder: &Path) -> Result<()> {
    let sources = fs::canonicalize(SOURCES)?;
    let object = fs::canonicalize(folder)?.join(format!("{name}.bpf.o"));
    let prefix_map = format!("-ffile-prefix-map={}=.", sources.display());
    let mut clang = Command::new(&compiler.clang);
    clang.args(["-target", "bpfel", "-mcpu=v3", "-O2", "-g"]);
    clang.args(["-Wall", "-Wextra", "-Werror"]).arg(prefix_map);
    clang.args(["-c", &format!("{name}.bpf.c"), "-o"]);
    run(clang.arg(&object).current_dir(&sources))?;
    run(Command::new(&compiler.strip).arg("-g").arg(&object))
}

/// What stands before the suffix, for every file of the folder that ends so.
fn names(folder: &Path, suffix: &str) -> Result<BTreeSet<String>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut names = BTreeSet::new();
    for entry in entries {
        let file = entry?.file_name();
        let name = file.to_str().and_then(|file| file.strip_suffix(suffix));
        names.extend(name.map(str::to_owned));
    }
    Ok(names)
}

/// Says of each object that is not the same in both folders how it differs.
fn differing(fresh: &Path, committed: &Path) -> Result<Vec<String>> {
    let built = names(fresh, ".bpf.o")?;
    let kept = names(committed, ".bpf.o")?;
    let mut differing = Vec::new();
    for name in built.union(&kept) {
        let file = format!("{name}.bpf.o");
        match (built.contains(name), kept.contains(name)) {
            (true, false) => differing.push(format!("{file} is missing")),
            (false, true) => differing.push(format!("{file} has no source")),
            _ if fs::read(fresh.join(&file))? != fs::read(committed.join(&file))? => {
                differing.push(format!("{file} has other bytes"));
            }
            _ => {}
        }
    }
    Ok(differing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_the_programs_print() {
        let debian = "Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu\n";
        assert_eq!(version_in(debian).unwrap(), "14.0.6");
        let ubuntu = "Ubuntu clang version 18.1.3 (1ubuntu1)\n";
        assert_eq!(version_in(ubuntu).unwrap(), "18.1.3");
        let strip = "llvm-strip, compatible with GNU strip\nDebian LLVM version 14.0.6\n";
        assert_eq!(version_in(strip).unwrap(), "14.0.6");
        assert_eq!(version_in("clang"), None);
    }

    #[test]
    fn the_recorded_version_is_preferred_and_another_is_better_than_none() {
        let of = |version: &str| Compiler {
            clang: "clang".into(),
            strip: "llvm-strip".into(),
            version: version.to_owned(),
        };
        let found = [of("18.1.3"), of("14.0.6")];
        assert_eq!(choose(&found, "14.0.6").unwrap().version, "14.0.6");
        assert_eq!(choose(&found, "16.0.0").unwrap().version, "18.1.3");
        assert_eq!(choose(&[], "14.0.6"), None);
    }

    #[test]
    fn an_object_lies_in_the_crate_that_loads_it() {
        assert_eq!(folder_of("xdp_take"), "crates/engine/bpf");
        assert_eq!(folder_of("napi_poll"), OBSERVE);
    }

    /// They are in kernel.h and octaves.h, so that each number of the kernel's stands in one place.
    #[test]
    fn no_two_programs_define_the_same_name_or_helper() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(SOURCES);
        let mut defined = BTreeSet::new();
        for name in names(&sources, ".bpf.c").unwrap() {
            let text = fs::read_to_string(sources.join(format!("{name}.bpf.c"))).unwrap();
            let is_shared = |line: &&str| {
                line.starts_with("#define")
                    || line.starts_with("typedef")
                    || line.contains("= (void *)")
            };
            for line in text
                .lines()
                .filter(|line| !line.starts_with('\t'))
                .filter(is_shared)
            {
                assert!(
                    defined.insert(line.to_owned()),
                    "{name}.bpf.c has again: {line}"
                );
            }
        }
    }

    #[test]
    fn every_kind_of_difference_is_named() {
        let fresh = tempfile::tempdir().unwrap();
        let committed = tempfile::tempdir().unwrap();
        let write = |folder: &Path, name: &str, bytes: &str| {
            fs::write(folder.join(name), bytes).unwrap();
        };
        write(fresh.path(), "same.bpf.o", "1");
        write(committed.path(), "same.bpf.o", "1");
        write(committed.path(), "README", "no object");
        assert!(
            differing(fresh.path(), committed.path())
                .unwrap()
                .is_empty()
        );

        write(fresh.path(), "changed.bpf.o", "1");
        write(committed.path(), "changed.bpf.o", "2");
        write(fresh.path(), "new.bpf.o", "1");
        write(committed.path(), "old.bpf.o", "1");
        assert_eq!(
            differing(fresh.path(), committed.path()).unwrap(),
            [
                "changed.bpf.o has other bytes",
                "new.bpf.o is missing",
                "old.bpf.o has no source"
            ]
        );
    }
}
