//! What a controller and an agent say to each other, either end of which may be a stranger's program. A line is read or
//! refused without a panic, a refusal says something, a request that an agent does not know is an error of its own,
//! and what was read says the same after it is written.
#![no_main]

use std::fmt::Debug;

use libfuzzer_sys::fuzz_target;
use nicpoll_lab::{FromAgent, ToAgent, line_of, message_of, next_line, request_of};
use serde::Serialize;
use serde::de::DeserializeOwned;

fuzz_target!(|bytes: &[u8]| {
    let mut reader = bytes;
    while let Ok(Some(line)) = next_line(&mut reader) {
        assert!(!line.contains('\n'));
        reads_again::<FromAgent>(&line);
        if let Some(ToAgent::Ask { request, .. }) = reads_again::<ToAgent>(&line)
            && let Err(failure) = request_of(request)
        {
            assert!(!failure.message.is_empty());
        }
    }
});

fn reads_again<M: Serialize + DeserializeOwned + Debug>(line: &str) -> Option<M> {
    match message_of::<M>(line) {
        Ok(message) => {
            let written = line_of(&message).expect("what was read is short enough to write");
            let read: M = message_of(written.trim_end()).expect("what was written is read");
            // Numbers that no document can hold, such as NaN, are null there: texts are compared.
            assert_eq!(line_of(&read).expect("as before"), written);
            Some(message)
        }
        Err(failure) => {
            assert!(!failure.message.is_empty());
            None
        }
    }
}
