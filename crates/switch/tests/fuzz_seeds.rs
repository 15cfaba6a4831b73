//! The seeds of the fuzz target `journal_record` are records of the present version: mutations of others would rarely
//! parse.

use nicpoll_switch::Record;

#[test]
fn seeds_are_read() {
    let held = include_bytes!("../../../fuzz/seeds/journal_record/held");
    let unconfirmed = include_bytes!("../../../fuzz/seeds/journal_record/unconfirmed");
    let companion = include_bytes!("../../../fuzz/seeds/journal_record/companion");
    for seed in [&held[..], unconfirmed, companion] {
        let record = Record::parse(seed).unwrap();
        assert!(!record.all_changes().is_empty());
    }
}
