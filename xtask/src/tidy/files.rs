//! The files of the project: what lies in its folder and is not ignored by git.
//!
//! The folder is read and not git's index, so that new files are checked before they are added and
//! the checks also run in an unpacked archive.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Every file, relative to the root, in a stable order. Symbolic links are not followed.
pub fn of_project(root: &Path) -> Result<Vec<PathBuf>> {
    let ignored = Ignored::parse(&fs::read_to_string(root.join(".gitignore")).unwrap_or_default());
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let absolute = root.join(&folder);
        let entries = fs::read_dir(&absolute)
            .with_context(|| format!("cannot read {}", absolute.display()))?;
        for entry in entries {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            let kind = entry.file_type()?;
            if ignored.covers(&path) {
                continue;
            }
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The forms of .gitignore that this project uses: `/path`, `name` and `*.extension`.
struct Ignored(Vec<String>);

impl Ignored {
    fn parse(gitignore: &str) -> Self {
        let lines = gitignore.lines().map(|line| line.trim_end_matches('/'));
        let patterns = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        // In a linked worktree `.git` is a file.
        let git = std::iter::once(".git");
        Self(git.chain(patterns).map(str::to_owned).collect())
    }

    fn covers(&self, path: &Path) -> bool {
        let whole = path.to_string_lossy();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.0.iter().any(|pattern| {
            if let Some(rooted) = pattern.strip_prefix('/') {
                rooted == whole
            } else if let Some(extension) = pattern.strip_prefix('*') {
                name.ends_with(extension)
            } else {
                *pattern == name
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_files_are_left_out_and_all_others_found() {
        let root = tempfile::tempdir().unwrap();
        for file in [
            ".ci/run",
            ".git/config",
            "a.profraw",
            "crates/a/src/lib.rs",
            "crates/a/target/kept",
            "node/x",
            "target/x",
        ] {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let gitignore = "/target\n# comment\n*.profraw\nnode/\n";
        fs::write(root.path().join(".gitignore"), gitignore).unwrap();
        let expected = [
            ".ci/run",
            ".gitignore",
            "crates/a/src/lib.rs",
            "crates/a/target/kept",
        ];
        assert_eq!(
            of_project(root.path()).unwrap(),
            expected.map(PathBuf::from)
        );
    }
}
