//! UDP streams sent in batches: the datagrams are counted, not the batches.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nicpoll_iperf::{Amount, ClientConfig, Listen, ListenerConfig, Total, udp};
use nicpoll_model::Rate;
use nicpoll_testkit::needs;

mod common;
use common::{faults, roomy, stream};

/// One stream over loopback.
fn batches(
    ip: IpAddr,
    configure: impl FnOnce(&mut ClientConfig),
    takes_batches: bool,
) -> (Total, Total) {
    const BUFFER_BYTES: usize = 16 << 20;
    let mut config = ListenerConfig::udp(roomy(ip, BUFFER_BYTES));
    config.stream.is_batched = takes_batches;
    let mut listener = udp::Listener::bind(&config).unwrap();
    let mut config = ClientConfig::udp(listener.local_addr(), 200, Amount::Bytes(199_910));
    config.stream.is_batched = true;
    configure(&mut config);
    stream(&mut listener, &config)
}

fn every_family() -> [IpAddr; 2] {
    [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
}

#[test]
fn a_batch_is_counted_by_its_datagrams_at_both_ends() {
    needs!(ReceiveBuffer);
    for ip in every_family() {
        for takes_batches in [false, true] {
            let (sent, received) = batches(ip, |_| {}, takes_batches);
            // 999 whole datagrams; the last one, of 110 bytes, ends its batch.
            assert_eq!((sent.whole.datagrams, sent.whole.bytes), (1000, 199_910));
            assert_eq!(received.whole.datagrams, 1000, "{takes_batches}");
            assert_eq!(received.receipt().expected, 1000);
            assert_eq!(received.whole.bytes, 199_910);
            assert_eq!(faults(&received), [0; 4]);
            assert_eq!(sent.server_report.unwrap().lost, 0);
        }
    }
}

#[test]
fn a_rest_too_short_for_a_header_goes_alone_with_room_for_one() {
    needs!(ReceiveBuffer);
    for ip in every_family() {
        let short = |config: &mut ClientConfig| config.stream.amount = Amount::Bytes(2003);
        let (sent, received) = batches(ip, short, true);
        assert_eq!((sent.whole.datagrams, sent.whole.bytes), (11, 2016));
        assert_eq!(received.whole.datagrams, 11);
        assert_eq!(received.whole.bytes, 2016);
    }
}

#[test]
fn a_rate_beyond_what_single_sends_reach_is_kept_with_batches() {
    needs!(ReceiveBuffer);
    let fast = |config: &mut ClientConfig| {
        config.stream.rate = Rate::packets_per_second(100_000_000);
        config.stream.amount = Amount::Bytes(4_000_000);
    };
    let (sent, received) = batches(Ipv4Addr::LOCALHOST.into(), fast, true);
    assert_eq!(sent.whole.datagrams, 20_000);
    assert_eq!(received.receipt().expected, 20_000);
}

#[test]
fn datagrams_that_have_to_be_fragmented_go_one_by_one() {
    needs!(ReceiveBuffer);
    let large = |config: &mut ClientConfig| {
        config.stream.length_bytes = 65_507;
        config.stream.amount = Amount::Bytes(10 * 65_507);
    };
    let (sent, received) = batches(Ipv4Addr::LOCALHOST.into(), large, true);
    assert_eq!(sent.whole.datagrams, 10);
    assert_eq!((received.whole.datagrams, received.receipt().lost), (10, 0));
}
