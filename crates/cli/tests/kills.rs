//! Whatever nicpoll is killed in, nothing is left: fifty kills of those that `examples/kills` does by the thousand.

#[path = "../examples/kills/bench.rs"]
mod bench;
#[path = "common/mod.rs"]
mod common;

use crate::common::prelude::*;

/// Set in the process that runs apart from the machine.
const INSIDE: &str = "NICPOLL_KILLS_INSIDE";

#[test]
fn fifty_kills_at_random_times_leave_nothing() {
    needs!(Time, Root, PerNapi, Ip, Tc);
    if std::env::var_os(INSIDE).is_some() {
        let rows = bench::kills(Path::new(NICPOLL), 50, 27).unwrap();
        println!("{}", bench::table(&rows));
        assert!(rows.iter().all(bench::Row::is_clean));
        return;
    }
    let _alone = alone();
    let mut again = bench::apart(&std::env::current_exe().unwrap());
    again.args([
        "fifty_kills_at_random_times_leave_nothing",
        "--exact",
        "--nocapture",
    ]);
    let status = again.env(INSIDE, "1").status().unwrap();
    assert!(status.success());
}
