//! Any frame may come to a sink that checks the numbers in packets. No sequence of frames makes it
//! panic, and each frame counts once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_engine::CheckedStreams;
use nicpoll_lab::check_of;

const NOW_NS: u64 = 1_000_000_000;

// Which numbers, and then frames, each behind its length in two bytes.
fuzz_target!(|input: &[u8]| {
    let Some((check, mut rest)) = input.split_first() else {
        return;
    };
    let names = ["netrate", "iperf", "mark"];
    let check = check_of(names[usize::from(*check) % names.len()]).expect("each is known");
    let mut streams = CheckedStreams::new(check);
    let mut frames = 0;
    while let Some((length, behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(*length)).min(behind.len());
        let (frame, after) = behind.split_at(length);
        streams.record(frame, NOW_NS);
        frames += 1;
        rest = after;
    }
    let total = CheckedStreams::total([&streams]).expect("something was looked at");
    let counted = total.numbered_packets + total.unnumbered_packets + total.unfollowed_packets;
    assert_eq!(counted, frames);
    assert!(total.duplicate_packets + total.late_packets <= total.numbered_packets);
    assert!(total.streams <= total.numbered_packets);
});
