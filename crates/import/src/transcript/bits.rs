//! A set of positions in a text, of which those before a place can be counted, and any one found by its number.
//!
//! What must hold: a set takes a little more than a bit for each byte of the text, however many positions it has; a
//! count or a search looks at some hundred bytes.

/// Words between two counts.
const STEP: usize = 64;

/// The set.
pub struct Bits {
    words: Vec<u64>,
    /// Positions before each step.
    before: Vec<u32>,
}

impl Bits {
    /// Some positions of a text of this length.
    pub fn of(length: usize, positions: impl Iterator<Item = usize>) -> Self {
        let mut words = vec![0u64; length.div_ceil(64)];
        for at in positions {
            words[at / 64] |= 1u64 << (at % 64);
        }
        let mut count = 0;
        let before = words.chunks(STEP).map(|step| {
            let before = count;
            count += ones(step);
            before
        });
        Bits {
            before: before.collect(),
            words,
        }
    }

    /// How many positions are below this one.
    pub fn below(&self, at: usize) -> u32 {
        let word = (at / 64).min(self.words.len());
        // A text that fills its last step has no count behind it.
        let step = (word / STEP).min(self.before.len().saturating_sub(1));
        let before = self.before.get(step).copied().unwrap_or(0);
        let rest = self
            .words
            .get(at / 64)
            .map_or(0, |it| it & ((1u64 << (at % 64)) - 1));
        before + ones(&self.words[(step * STEP).min(word)..word]) + rest.count_ones()
    }

    /// The position with this number, from 0, if there are so many.
    pub fn position(&self, number: u32) -> Option<usize> {
        let step = self.before.partition_point(|before| *before <= number);
        let step = step.checked_sub(1)?;
        let mut left = number - self.before[step];
        for (word, at) in self.words[step * STEP..].iter().zip(step * STEP..) {
            let here = word.count_ones();
            if left < here {
                let mut word = *word;
                for _ in 0..left {
                    word &= word - 1;
                }
                return Some(at * 64 + word.trailing_zeros() as usize);
            }
            left -= here;
        }
        None
    }
}

fn ones(words: &[u64]) -> u32 {
    words.iter().map(|word| word.count_ones()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_counted_and_found_across_steps() {
        let length = 3 * 64 * STEP + 17;
        let all: Vec<usize> = (0..length)
            .filter(|at| at % 3 == 1 || at % 4096 < 5)
            .collect();
        let bits = Bits::of(length, all.iter().copied());
        for (number, at) in all.iter().enumerate().step_by(7) {
            assert_eq!(bits.position(number as u32), Some(*at));
            assert_eq!(bits.below(*at), number as u32);
            assert_eq!(bits.below(at + 1), number as u32 + 1);
        }
        assert_eq!(bits.position(all.len() as u32), None);
        assert_eq!(bits.below(length), all.len() as u32);
        let none = Bits::of(0, std::iter::empty());
        assert_eq!((none.below(0), none.position(0)), (0, None));
    }
}
