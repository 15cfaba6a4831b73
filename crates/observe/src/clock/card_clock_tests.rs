//! Lines through invented readings, and kernel clocks in the place of a card's.

use nicpoll_testkit::assert_has;

use rustix::time::{ClockId, clock_gettime};

use super::*;

const STEP_NS: i64 = 250_000_000;
const AHEAD_NS: i64 = 1_700_000_000_000_000_000;

/// A clock far ahead of the kernel's that gains `fast_ppm` on it.
fn reading(step: i64, fast_ppm: i64) -> ClockReading {
    let kernel_ns = 5_000_000_000 + step * STEP_NS;
    ClockReading {
        card_ns: AHEAD_NS + kernel_ns + kernel_ns / 1_000_000 * fast_ppm,
        kernel_ns,
        half_ns: 500,
    }
}

fn later(reading: ClockReading, card_ns: i64) -> ClockReading {
    ClockReading {
        card_ns: reading.card_ns + card_ns,
        ..reading
    }
}

#[test]
fn a_clock_that_runs_faster_or_slower_is_followed() {
    for fast_ppm in [-900, -1, 0, 30, 900] {
        let mut course = Course::default();
        assert_eq!(course.add(reading(0, fast_ppm)), ClockFit::Begins);
        assert_eq!(course.line, None);
        assert_eq!(course.add(reading(1, fast_ppm)), ClockFit::Begins);
        for step in 2..40 {
            let line = course.line.unwrap();
            // This line converts the stamps of the time until then.
            let expected = reading(step, fast_ppm);
            let off = kernel_ns_at(&line, expected.card_ns) - expected.kernel_ns;
            assert!(off.abs() <= 1, "{fast_ppm} ppm: {off} ns");
            let ClockFit::Within(ns) = course.add(expected) else {
                panic!("{fast_ppm} ppm")
            };
            assert!((500..=501).contains(&ns), "{fast_ppm} ppm: {ns} ns");
        }
        // One second of readings, plus the previous one.
        assert_eq!(course.readings.len(), 5);
    }
}

#[test]
fn readings_that_are_off_to_and_fro_tell_an_error_that_stays_small() {
    let mut course = Course::default();
    for step in 0..40 {
        let late = if step % 2 == 0 { 500 } else { -500 };
        let noisy = later(reading(step, 30), late);
        if let ClockFit::Within(ns) = course.add(noisy) {
            // The line's last reading, its slope, and this reading, each of which may be wrong by as much.
            let slope_ns = if step == 2 { 1_000 } else { 500 };
            assert!(ns <= 500 + slope_ns + 500 + 500, "step {step}: {ns} ns");
        }
    }
}

#[test]
fn a_clock_that_was_set_has_no_line_until_it_ran_on() {
    let mut course = Course::default();
    for step in 0..8 {
        course.add(reading(step, 30));
    }
    for set_by_ns in [11_000, -11_000, 1_000_000_000] {
        let set = |step| later(reading(step, 30), set_by_ns);
        assert_eq!(course.add(set(8)), ClockFit::Broken, "{set_by_ns}");
        assert_eq!(course.line, None);
        // Too soon for a line.
        assert_eq!(course.add(later(set(8), 1)), ClockFit::Begins);
        assert_eq!(course.line, None);
        assert_eq!(course.add(set(9)), ClockFit::Begins);
        assert!(course.line.is_some());
        assert!(matches!(course.add(set(10)), ClockFit::Within(..502)));
        // Set back again.
        assert_eq!(course.add(reading(11, 30)), ClockFit::Broken);
        for step in 5..8 {
            course.add(reading(step, 30));
        }
        course = Course::default();
        for step in 0..8 {
            course.add(reading(step, 30));
        }
    }
}

#[test]
fn what_is_no_clock_has_no_line() {
    let coarse = |step| ClockReading {
        half_ns: ERROR_MAX_NS + 1,
        ..reading(step, 30)
    };
    let stopped = |step| ClockReading {
        card_ns: AHEAD_NS,
        ..reading(step, 0)
    };
    let backward = |step| later(reading(step, 0), -3 * step * STEP_NS);
    let wild = |step| reading(step, 1_100);
    let all: [&dyn Fn(i64) -> ClockReading; 4] = [&coarse, &stopped, &backward, &wild];
    for (index, reading) in all.into_iter().enumerate() {
        let mut course = Course::default();
        let fits: Vec<ClockFit> = (0..5).map(|step| course.add(reading(step))).collect();
        assert!(
            fits[1..].iter().all(|fit| *fit == ClockFit::Broken),
            "{index}: {fits:?}"
        );
        assert_eq!(course.line, None, "{index}");
    }
}

#[test]
fn an_error_is_known_where_no_line_broke() {
    let earlier = ClockAccount::default();
    assert_eq!(earlier.error_ns_since(&earlier), None);
    let mut later = earlier.clone();
    for ns in [700, 3_000, 900] {
        later.errors.count_one(ns);
    }
    let error_ns = later.error_ns_since(&earlier).unwrap();
    assert!((3_000.0..3_200.0).contains(&error_ns), "{error_ns}");
    let mut broken = later.clone();
    broken.breaks += 1;
    broken.errors.count_one(700);
    assert_eq!(broken.error_ns_since(&later), None);
}

#[test]
fn a_clock_of_the_kernel_can_be_followed() {
    let mut clock = CardClock::of(String::from("the wall clock"), || {
        Ok(clock_gettime(ClockId::Realtime))
    })
    .unwrap();
    let reading = clock.reading().unwrap();
    assert!(reading.half_ns <= ERROR_MAX_NS);
    assert!(matches!(
        clock.course.add(reading),
        ClockFit::Within(..=ERROR_MAX_NS)
    ));
}

#[test]
fn a_clock_that_cannot_be_relied_on_is_refused_with_the_reason() {
    let refused = |read: fn() -> io::Result<Timespec>| {
        let refused = CardClock::of(String::from("/dev/ptp0"), read);
        refused.err().unwrap().to_string()
    };
    let slow = refused(|| {
        thread::sleep(Duration::from_micros(50));
        Ok(clock_gettime(ClockId::Realtime))
    });
    assert!(
        slow.starts_with("its clock /dev/ptp0 can only be read to within "),
        "{slow}"
    );
    assert!(slow.ends_with(" ns, and 10000 ns are needed"), "{slow}");
    let stopped = refused(|| {
        Ok(Timespec {
            tv_sec: 1_700_000_000,
            tv_nsec: 0,
        })
    });
    assert_eq!(stopped, "its clock /dev/ptp0 does not run steadily");
    let broken = refused(|| Err(io::Error::from_raw_os_error(5)));
    assert_has(&broken, "cannot be read (Input/output error");
    let missing = CardClock::open(999_999).err().unwrap().to_string();
    assert!(
        missing.starts_with("its clock /dev/ptp999999 cannot be read (No such file"),
        "{missing}"
    );
    // A file that is not a clock.
    let file = File::open("/dev/null").unwrap();
    let no_clock = CardClock::of(String::from("/dev/null"), move || {
        Ok(clock_gettime_dynamic(DynamicClockId::Dynamic(
            file.as_fd(),
        ))?)
    });
    let no_clock = no_clock.err().unwrap().to_string();
    assert_has(&no_clock, "/dev/null cannot be read (Invalid argument");
}
