//! Published figures, and an oracle that builds every frame one by one.

use super::*;

fn line(bits_per_second: u64) -> Line {
    Line::new(bits_per_second).unwrap()
}

fn udp(ip: IpVersion, payload_bytes: u32) -> LinePacket {
    LinePacket::Udp { ip, payload_bytes }
}

fn packets(line: &Line, packet: LinePacket) -> u64 {
    line.packets_per_second(&line.cost(packet).unwrap())
}

#[test]
fn published_rates_come_out() {
    // From RFC 2544's appendix and the tables of card makers.
    for (speed, bytes, rate) in [
        (10_000_000, 64, 14_880),
        (100_000_000, 64, 148_809),
        (1_000_000_000, 64, 1_488_095),
        (10_000_000_000, 64, 14_880_952),
        (100_000_000_000, 64, 148_809_523),
        (1_000_000_000, 1518, 81_274),
        (10_000_000_000, 512, 2_349_624),
    ] {
        assert_eq!(packets(&line(speed), LinePacket::Frame { bytes }), rate);
    }
    let fast = line(100_000_000);
    assert_eq!(packets(&fast, udp(IpVersion::V4, 64)), 96_153);
    assert_eq!(packets(&fast, udp(IpVersion::V6, 64)), 83_333);
}

#[test]
fn a_mix_is_its_frames_together() {
    let fast = line(1_000_000_000);
    let cost = fast.cost(LinePacket::Imix).unwrap();
    assert_eq!(
        (cost.frames, cost.frame_bytes, cost.line_bytes),
        (12, 4342, 4582)
    );
    // 381.8 bytes of line per frame.
    let full = Rate::packets_per_second(327_367).unwrap();
    let share = fast.share(LinePacket::Imix, full).unwrap();
    assert!((share - 1.0).abs() < 1e-5, "{share}");
    let bits = Rate::decimal(RateUnit::BitsPerSecond, "947620253", 1).unwrap();
    assert!((fast.share(LinePacket::Imix, bits).unwrap() - 1.0).abs() < 1e-5);
    let row = LineRow::new(&fast, LinePacket::Imix, None).unwrap();
    assert_eq!(
        (row.packets_per_second, row.frames_per_second),
        (327_367, 327_367)
    );
    assert_eq!((row.asked_bytes, row.packet.as_str()), (4342, "imix"));
}

#[test]
fn a_tag_takes_the_place_of_padding_before_it_lengthens_a_frame() {
    let tagged = Line {
        vlan_tags: 1,
        ..line(100_000_000)
    };
    let cost = |payload| tagged.cost(udp(IpVersion::V4, payload)).unwrap();
    assert_eq!((cost(0).frame_bytes, cost(0).padding_bytes), (64, 14));
    assert_eq!((cost(14).frame_bytes, cost(14).padding_bytes), (64, 0));
    assert_eq!(cost(18).frame_bytes, 68);
    // A frame's length is given without tags.
    let frame = tagged.cost(LinePacket::Frame { bytes: 64 }).unwrap();
    assert_eq!((frame.frame_bytes, frame.line_bytes), (68, 88));
    let twice = Line {
        vlan_tags: 2,
        ..tagged
    };
    assert_eq!(
        twice.cost(udp(IpVersion::V6, 100)).unwrap().frame_bytes,
        174
    );
}

#[test]
fn what_exceeds_the_mtu_is_cut_or_refused() {
    let line = line(1_000_000_000);
    let frames = |packet| line.cost(packet).unwrap().frames;
    assert_eq!(frames(udp(IpVersion::V4, 1472)), 1);
    assert_eq!(frames(udp(IpVersion::V4, 1473)), 2);
    assert_eq!(frames(udp(IpVersion::V6, 1452)), 1);
    assert_eq!(frames(udp(IpVersion::V6, 1453)), 2);
    assert_eq!(frames(udp(IpVersion::V4, 65_507)), 45);
    let tcp = |payload_bytes, has_timestamps| LinePacket::Tcp {
        ip: IpVersion::V4,
        payload_bytes,
        has_timestamps,
    };
    assert_eq!(frames(tcp(1460, false)), 1);
    assert_eq!(frames(tcp(1460, true)), 2);
    assert_eq!(frames(tcp(0, true)), 1);
    let refused = |packet| line.cost(packet).unwrap_err().to_string();
    assert!(refused(udp(IpVersion::V4, 65_508)).contains("65507"));
    assert!(refused(udp(IpVersion::V6, 65_528)).contains("65527"));
    assert!(refused(LinePacket::Frame { bytes: 1519 }).contains("an MTU of 1501"));
    let narrow = Line {
        mtu_bytes: 1000,
        ..line
    };
    let error = narrow.cost(udp(IpVersion::V6, 1)).unwrap_err();
    assert!(error.to_string().contains("1280"));
}

/// Sends a datagram as Linux's ip_fragment does, one fragment after the other.
fn fragments(mtu: u64, ip: IpVersion, payload: u64) -> Vec<u64> {
    let (header, fragment_header) = match ip {
        IpVersion::V4 => (20, 20),
        IpVersion::V6 => (40, 48),
    };
    let mut left = payload + 8;
    if left + header <= mtu {
        return vec![left + header];
    }
    let mut sent = Vec::new();
    while left > 0 {
        let room = mtu - fragment_header;
        let length = if left > room { room & !7 } else { left };
        sent.push(fragment_header + length);
        left -= length;
    }
    sent
}

#[test]
fn fragments_are_those_that_the_kernel_makes() {
    for mtu_bytes in [1280, 1281, 1499, 1500, 1504, 9000] {
        let line = Line {
            mtu_bytes,
            ..line(1_000_000_000)
        };
        for ip in [IpVersion::V4, IpVersion::V6] {
            for payload in (0..65_508).step_by(7) {
                let cost = line.cost(udp(ip, payload)).unwrap();
                let sent = fragments(mtu_bytes.into(), ip, payload.into());
                let frames = sent.iter().map(|packet| (packet + 18).max(64));
                assert_eq!(cost.frames, sent.len() as u64);
                assert_eq!(cost.frame_bytes, frames.sum::<u64>(), "{payload} {ip:?}");
                assert_eq!(cost.line_bytes, cost.frame_bytes + 20 * cost.frames);
            }
        }
    }
}

#[test]
fn the_frames_of_a_datagram_carry_all_of_it() {
    let line = line(1_000_000_000);
    for ip in [IpVersion::V4, IpVersion::V6] {
        for payload_bytes in [0, 64, 1452, 1453, 1472, 1473, 5000, 65_507] {
            let frames = line.datagram_frames(ip, payload_bytes).unwrap();
            let cost = line.cost(udp(ip, payload_bytes)).unwrap();
            let carried: u32 = frames.iter().map(|frame| frame.payload_bytes).sum();
            let bytes: u64 = frames.iter().map(|frame| u64::from(frame.line_bytes)).sum();
            assert_eq!(frames.len() as u64, cost.frames);
            assert_eq!((carried, bytes), (payload_bytes, cost.line_bytes));
        }
    }
    let cut = line.datagram_frames(IpVersion::V6, 1470).unwrap();
    // 1448 bytes with the UDP header, and 30.
    let payloads: Vec<_> = cut.iter().map(|frame| frame.payload_bytes).collect();
    assert_eq!(payloads, [1440, 30]);
}

#[test]
fn rates_are_cut_once_and_add_up_to_the_line() {
    let line = line(2_500_000_000);
    for payload in 0..3000 {
        let cost = line.cost(udp(IpVersion::V4, payload)).unwrap();
        let rate = u128::from(line.packets_per_second(&cost));
        let bits = u128::from(8 * cost.line_bytes);
        assert!(rate * bits <= 2_500_000_000 && (rate + 1) * bits > 2_500_000_000);
        let gaps = 8 * 20 * line.at_full(cost.frames, &cost);
        let frames = line.at_full(8 * cost.frame_bytes, &cost);
        // Each of the two was rounded down to a whole number once.
        let apart = 2_500_000_000 - gaps - frames;
        assert!(apart <= 160, "{apart}");
    }
}

#[test]
fn a_share_is_the_rate_over_the_line() {
    let line = line(100_000_000);
    let packet = udp(IpVersion::V4, 64);
    let of = |rate| line.share_of_packets(packet, rate).unwrap();
    assert!((of(100_000_000.0 / 1040.0) - 1.0).abs() < 1e-12);
    assert!((of(48_076.0) - 0.5).abs() < 1e-4);
    assert_eq!(of(0.0), 0.0);
    let asked = |rate: Option<Rate>| line.share(packet, rate.unwrap()).unwrap();
    assert_eq!(asked(Rate::packets_per_second(48_076)), of(48_076.0));
    assert!(asked(Rate::packets_per_second(200_000)) > 2.0);
    // 64 bytes of payload in 130 on the line.
    let payload = asked(Rate::bits_per_second(100_000_000 * 64 / 130));
    assert!((payload - 1.0).abs() < 1e-7);
    let layer_2 = Rate::bits_per_second(100_000_000 * 64 / 84).unwrap();
    let layer_2 = line
        .share(LinePacket::Frame { bytes: 64 }, layer_2)
        .unwrap();
    assert!((layer_2 - 1.0).abs() < 1e-7);
}

#[test]
fn what_is_no_rate_has_no_share() {
    let line = line(100_000_000);
    let packet = udp(IpVersion::V4, 64);
    for rate in [-1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(line.share_of_packets(packet, rate), None);
    }
    let empty = udp(IpVersion::V4, 0);
    assert_eq!(line.share(empty, Rate::bits_per_second(1).unwrap()), None);
    let too_long = udp(IpVersion::V4, 65_508);
    let one = Rate::packets_per_second(1).unwrap();
    assert_eq!(line.share(too_long, one), None);
    assert_eq!(Line::new(0), None);
}

#[test]
fn counters_of_a_full_line_make_all_of_it() {
    let line = line(100_000_000);
    // Minimum frames as a driver counts them: without check sequence, padded or not yet.
    for bytes in [60, 42] {
        let share = line
            .share_of_counters(148_809, 148_809 * bytes, 1.0)
            .unwrap();
        assert!((share - 1.0).abs() < 1e-4, "{share}");
    }
    let half = line.share_of_counters(8_127, 8_127 * 1514, 2.0).unwrap();
    assert!((half - 0.5).abs() < 1e-4, "{half}");
    assert_eq!(line.share_of_counters(1, 60, 0.0), None);
}

#[test]
fn the_mix_is_spread_and_frames_carry_what_they_can() {
    let frames = imix_frames();
    let count = |bytes: u32| frames.iter().filter(|it| **it == bytes).count();
    assert_eq!(
        (frames.len(), count(64), count(594), count(1518)),
        (12, 7, 4, 1)
    );
    assert!(
        frames
            .windows(4)
            .all(|four| four.contains(&594) || four.contains(&1518)),
        "{frames:?}"
    );
    let payloads = [63, 64, 594, 1518].map(payload_of_frame);
    assert_eq!(payloads, [None, Some(18), Some(548), Some(1472)]);
}
