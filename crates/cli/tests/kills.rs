//! A kill at any moment leaves nothing behind: fifty of the kills that `examples/kills` makes by the thousand.

#[path = "../examples/kills/bench.rs"]
mod bench;
#[path = "common/mod.rs"]
mod common;

use crate::common::prelude::*;

#[test]
fn fifty_kills_at_random_times_leave_nothing() {
    needs!(Time, Root, PerNapi, Ip, Tc);
    if bench::is_apart() {
        let rows = bench::kills(Path::new(NICPOLL), 50, 27).unwrap();
        println!("{}", bench::table(&rows));
        assert!(rows.iter().all(bench::Leftovers::is_clean));
        return;
    }
    let _alone = alone();
    let mut again = bench::apart(&std::env::current_exe().unwrap());
    again.args([
        "fifty_kills_at_random_times_leave_nothing",
        "--exact",
        "--nocapture",
    ]);
    assert!(again.status().unwrap().success());
}
