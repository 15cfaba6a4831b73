//! Tables in tests: a case a line, its cells separated by ` | `.

/// The cells of each line that is not empty.
pub fn cases<const N: usize>(table: &str) -> Vec<[&str; N]> {
    let lines = table.lines().filter(|line| !line.trim().is_empty());
    let cells = lines.map(|line| line.split(" | ").map(str::trim).collect::<Vec<_>>());
    cells
        .map(|cells| cells.try_into().expect("each line has all cells"))
        .collect()
}
