//! One tick over idle devices: the price of polling for nothing.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use nicpoll_core::{Command, Device, DeviceId, Poller, Time};

/// A card whose ring is empty: one look at a descriptor.
struct Idle {
    descriptor: u32,
}

impl Device for Idle {
    fn poll(&mut self, _: Command, count: u32) -> u32 {
        black_box(self.descriptor & count)
    }

    fn set_interrupts(&mut self, _: bool) {}
}

fn tick(criterion: &mut Criterion) {
    let mut poller = Poller::new(1000).expect("1000 ticks a second are possible");
    let mut devices: Vec<Idle> = (0..8).map(|_| Idle { descriptor: 0 }).collect();
    for place in 0..8 {
        let _ = poller.register(DeviceId(place)).expect("there is room");
    }
    let mut now_us = 0;
    criterion.bench_function("a tick over 8 idle devices, one chunk", |bencher| {
        bencher.iter(|| {
            now_us += 1000;
            let now = Time::from_us(now_us);
            poller.hardclock(now);
            poller.netisr_poll(now, devices.as_mut_slice());
            black_box(poller.netisr_pollmore(now));
        });
    });
    criterion.bench_function("a tick over 8 idle devices, all chunks", |bencher| {
        bencher.iter(|| {
            now_us += 1000;
            let now = Time::from_us(now_us);
            poller.hardclock(now);
            loop {
                poller.netisr_poll(now, devices.as_mut_slice());
                if !poller.netisr_pollmore(now) {
                    break;
                }
            }
        });
    });
}

criterion_group!(benches, tick);
criterion_main!(benches);
