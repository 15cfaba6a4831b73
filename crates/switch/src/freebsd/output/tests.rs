//! Golden outputs: kern.polling as printed by a FreeBSD 6.1 host, the rest in the forms that ifconfig(8) and sysctl(8)
//! print.

use super::*;

const FRESH: &str = include_str!("../../../../../fuzz/seeds/freebsd_output/sysctl_kern_polling");
const INTERRUPTS: &str =
    include_str!("../../../../../fuzz/seeds/freebsd_output/ifconfig_interrupts");
const POLLED: &str = include_str!("../../../../../fuzz/seeds/freebsd_output/ifconfig_polling");
const INCAPABLE: &str = include_str!("../../../../../fuzz/seeds/freebsd_output/ifconfig_incapable");
const CLOCK: &str = include_str!("../../../../../fuzz/seeds/freebsd_output/sysctl_kern_clockrate");

#[test]
fn a_fresh_block_is_read_by_its_names() {
    let polling = parse_polling(FRESH).unwrap();
    // All but 'enable', which present kernels lack.
    assert_eq!(polling.all().len(), Knob::ALL.len());
    for (knob, value) in [
        (Knob::Burst, 5),
        (Knob::BurstMax, 150),
        (Knob::UserFrac, 50),
        (Knob::RegFrac, 20),
        (Knob::IdlepollSleeping, 1),
    ] {
        assert_eq!(polling.get(knob), Some(value));
    }
    assert_eq!(polling.writable().count(), 5);
}

#[test]
fn a_broken_block_is_refused() {
    let refused = |from: &str, to: &str| parse_polling(&FRESH.replace(from, to)).unwrap_err();
    assert!(
        refused(": 150", ": lots")
            .to_string()
            .contains("is not as expected")
    );
    assert!(
        refused(": 150", ": -1")
            .to_string()
            .contains("is not as expected")
    );
    assert!(
        refused(": 150", "")
            .to_string()
            .contains("is not as expected")
    );
    assert_eq!(
        refused("user_frac", "other_frac").to_string(),
        "its output has no kern.polling.user_frac"
    );
    assert!(parse_polling(&format!("{FRESH}{FRESH}")).is_err());
    assert!(parse_polling("").is_err());
    // The only signed variable.
    let signed = FRESH.replace("residual_burst: 0", "residual_burst: -3");
    let polling = parse_polling(&signed).unwrap();
    assert_eq!(polling.get(Knob::ResidualBurst), Some(-3));
}

#[test]
fn polling_is_told_by_the_options_and_the_capabilities() {
    let read = |text| parse_interface(text, "em0").map(|found| (found.can_poll, found.is_polling));
    assert_eq!(read(INTERRUPTS), Ok((true, false)));
    assert_eq!(read(POLLED), Ok((true, true)));
    assert_eq!(read(INCAPABLE), Ok((false, false)));
    assert_eq!(
        read("em0: flags=8802<BROADCAST> mtu 1500\n"),
        Ok((false, false))
    );
    // The following lines belong to another interface.
    let two = format!(
        "em0: flags=8802<BROADCAST> mtu 1500\n{}",
        POLLED.replace("em0", "em1")
    );
    assert_eq!(read(&two), Ok((false, false)));
}

#[test]
fn bits_that_do_not_fit_their_names_are_refused() {
    for (from, to) in [
        ("options=4b", "options=b"),
        ("options=4b", "options=zz"),
        ("POLLING>", "POLLING"),
        ("em0:", "em1:"),
    ] {
        let text = POLLED.replace(from, to);
        assert!(parse_interface(&text, "em0").is_err(), "{from} -> {to}");
    }
    assert!(parse_interface("", "em0").is_err());
}

#[test]
fn the_clock_rate_is_read_in_ticks_a_second() {
    assert_eq!(parse_hz(CLOCK), Ok(1000));
    let old = "kern.clockrate: { hz = 100, tick = 10000, profhz = 1024, stathz = 128 }\n";
    assert_eq!(parse_hz(old), Ok(100));
    for text in [
        "",
        "kern.clockrate: { profhz = 2000 }",
        "kern.clockrate: { hz = 0 }",
        "hz = 100",
    ] {
        assert!(parse_hz(text).is_err(), "{text}");
    }
}

#[test]
fn a_system_has_one_name() {
    assert_eq!(parse_uname("FreeBSD\n"), Ok("FreeBSD"));
    assert!(parse_uname("\n").is_err());
    assert!(parse_uname("Free BSD").is_err());
}
