//! top's line of CPU states, of FreeBSD and of Linux.
//!
//! What must hold: the states of a line are all there, once each, and sum to 100 % as rounding allows. A line that a
//! redraw has written over does not, and is told of, not used.

use super::anchor::{Anchor, Recogniser, Seen, one};
use super::cursor::Cursor;

/// Names of states, and where each belongs: user, nice, system, interrupt, idle. Longer ones come first.
const STATES: [(&str, usize); 15] = [
    ("user", 0),
    ("nice", 1),
    ("system", 2),
    ("interrupt", 3),
    ("idle", 4),
    ("iowait", 4),
    ("us", 0),
    ("sy", 2),
    ("ni", 1),
    ("id", 4),
    // Waiting is idle time.
    ("wa", 4),
    ("hi", 3),
    ("si", 3),
    // What a hypervisor took is in no state of this machine, and counts to the sum.
    ("st", 5),
    ("swap", 5),
];
const FEWEST: usize = 4;
const MOST: usize = 9;

/// `CPU states:`, `CPU:`, `%Cpu(s):`, and what follows.
pub struct StateLine;

impl Recogniser for StateLine {
    fn first(&self) -> &'static [u8] {
        b"C%"
    }

    fn read(&self, cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
        let began = cursor.at;
        let head = cursor.any(&["CPU states:", "CPU:", "%Cpu(s):", "Cpu(s):", "%Cpu(s)"])?;
        let after = cursor.at;
        cursor.gap();
        match states(cursor) {
            Some(Ok(states)) => one(began, cursor, Seen::Cpu(states)),
            Some(Err(why)) => one(began, cursor, Seen::Spoilt(why)),
            None => {
                cursor.at = after;
                // dmesg tells of the processor so.
                let line = cursor.word(80, |byte| byte != b'\n')?;
                let has_states = line.contains('%') && line.contains("idle");
                let why = "a redraw has written over a line of CPU states";
                (head != "CPU:" || has_states).then_some(())?;
                has_states.then_some(())?;
                one(began, cursor, Seen::Spoilt(why))
            }
        }
    }
}

/// `2.7% user, 0.0% nice, ...` whose head was lost.
pub struct BareStates;

impl Recogniser for BareStates {
    fn first(&self) -> &'static [u8] {
        b"0123456789"
    }

    fn read(&self, cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
        let began = cursor.at;
        cursor.begins_number()?;
        let mut ahead = cursor.clone();
        ahead.number()?;
        ahead.gap();
        let _ = ahead.byte(b'%');
        ahead.words(" user").or_else(|| ahead.words(" us,"))?;
        match states(cursor)? {
            Ok(states) => one(began, cursor, Seen::Cpu(states)),
            Err(why) => one(began, cursor, Seen::Spoilt(why)),
        }
    }
}

/// The states, in shares of 1; why they cannot be used; nothing when this is no such line.
fn states(cursor: &mut Cursor) -> Option<Result<[f64; 5], &'static str>> {
    let mut sums = [0.0; 6];
    let mut seen: Vec<&str> = Vec::new();
    let mut ended = cursor.at;
    while seen.len() < MOST {
        let Some(percent) = cursor.gap().number() else {
            break;
        };
        let _ = cursor.gap().byte(b'%');
        cursor.gap();
        let Some((name, state)) = STATES.iter().find(|(name, _)| cursor.words(name).is_some())
        else {
            break;
        };
        if seen.contains(name) {
            break;
        }
        seen.push(name);
        sums[*state] += percent;
        ended = cursor.at;
        let _ = cursor.gap().byte(b',');
    }
    cursor.at = ended;
    if seen.is_empty() {
        return None;
    }
    let sum: f64 = sums.iter().sum();
    // Each is rounded to a tenth.
    if (sum - 100.0).abs() > 0.05 * seen.len() as f64 + 1e-6 || seen.len() < FEWEST {
        let why = "the CPU states do not sum to 100 %: a redraw has written over some, or some are missing";
        return Some(Err(why));
    }
    // To the last digit that is printed.
    let share = |state: usize| (sums[state] * 100.0).round() / 1e4;
    Some(Ok([0, 1, 2, 3, 4].map(share)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Seen> {
        let mut cursor = Cursor::new(text.as_bytes(), 0);
        let found = StateLine.read(&mut cursor, 0)?;
        Some(found[0].seen.clone())
    }

    #[test]
    fn both_forms_of_top_are_read_and_redraws_are_refused() {
        for text in [
            "CPU states:  2.7% user,  0.0% nice, 47.1% system, 49.4% interrupt,  0.8% idle",
            "CPU states: 2.7%user, 0.0%nice,47.1% sys\ntem, 49.4% interrupt, 0.8% idle",
            "CPU:  2.7% user,  0.0% nice, 47.1% system, 49.4% interrupt,  0.8% idle",
            "%Cpu(s):  2.7 us, 47.1 sy,  0.0 ni,  0.8 id,  0.0 wa,  0.4 hi, 49.0 si,  0.0 st",
        ] {
            let Some(Seen::Cpu([user, nice, system, interrupt, idle])) = read(text) else {
                panic!("{text}");
            };
            let near = |one: f64, other: f64| (one - other).abs() < 1e-9;
            assert!(
                near(user, 0.027) && near(nice, 0.0) && near(system, 0.471),
                "{text}"
            );
            assert!(near(interrupt, 0.494) && near(idle, 0.008), "{text}");
        }
        // 99.9 and 100.1 are rounding; 97 is not.
        for (idle, is_read) in [("0.7", true), ("0.9", true), ("3.8", false)] {
            let text =
                format!("CPU: 2.7% user, 0.0% nice, 47.1% system, 49.4% interrupt, {idle}% idle");
            assert_eq!(matches!(read(&text), Some(Seen::Cpu(_))), is_read, "{text}");
        }
        let torn = "CPU states:  2.7.1 user, 0.0% nice, 47.1% system, 4 % idle";
        assert!(matches!(read(torn), Some(Seen::Spoilt(_))));
        assert_eq!(read("CPU: Intel Celeron (631.29-MHz 686-class CPU)"), None);
    }
}
