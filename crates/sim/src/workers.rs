//! Runs simulations in parallel, on all cores. Results keep the order of their items, however many cores there are.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Returns how many run at a time: one for each core that this process may use.
pub fn count() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Does `work` on each item, on `workers` threads.
pub fn map<T: Sync, R: Send>(items: &[T], workers: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        while let index = next.fetch_add(1, Ordering::Relaxed)
            && let Some(item) = items.get(index)
        {
            done.push((index, work(item)));
        }
        done
    };
    let mut done: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(take)).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .flat_map(|done| done.expect("a run does not panic"))
            .collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..100).collect();
        for workers in [1, 3] {
            // The first are the slowest.
            let squares = map(&items, workers, |item| {
                thread::sleep(std::time::Duration::from_micros(100 - item));
                item * item
            });
            assert!(squares.into_iter().eq(items.iter().map(|item| item * item)));
        }
    }
}
