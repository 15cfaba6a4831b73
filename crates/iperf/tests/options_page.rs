//! docs/dialects.md has a row for each option, made from the option table.

use std::{env, fs};

use nicpoll_iperf::options::option_tables;

/// Set to any value to write the page's tables anew instead of comparing with them.
const REFRESH: &str = "NICPOLL_REFRESH_GOLDEN";

#[test]
fn the_page_on_dialects_has_a_row_for_each_option() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dialects.md");
    let page = fs::read_to_string(path).unwrap();
    let expected = option_tables()
        .into_iter()
        .fold(page.clone(), |page, (head, rows)| {
            let (before, rest) = page.split_once(head).expect(head);
            let (_, after) = rest.split_once("\n\n").expect(head);
            format!("{before}{head}{rows}\n{after}")
        });
    if env::var_os(REFRESH).is_some() {
        fs::write(path, &expected).unwrap();
    }
    assert!(
        page == expected || env::var_os(REFRESH).is_some(),
        "docs/dialects.md does not say what the options are; run this again with {REFRESH}=1"
    );
}
