//! What iperf prints besides its figures, held against what the originals printed.

use std::net::SocketAddr;

use nicpoll_iperf::Remarks;
use nicpoll_iperf::text::*;
use nicpoll_iperf::wire::Version;
use nicpoll_model::Protocol;
use nicpoll_model::iperf::Direction;

const V2_0: Format = Format {
    style: Style::V2_0,
    letter: 'a',
};
const V2_1: Format = Format {
    style: Style::V2_1,
    letter: 'a',
};

fn id(number: u32) -> StreamId {
    StreamId {
        number,
        is_reversed: false,
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn window(actual_bytes: u64, requested_bytes: Option<u64>) -> Window {
    Window {
        actual_bytes,
        requested_bytes,
    }
}

fn ruled(lines: &str) -> String {
    let rule = "-".repeat(60);
    format!("{rule}\n{lines}\n{rule}")
}

fn server() -> ServerBanner<'static> {
    ServerBanner {
        protocol: Protocol::Tcp,
        port: 5001,
        bind: None,
        group: None,
        read_bytes: 131_072,
        mss: None,
        window: window(131_072, None),
        is_enhanced: false,
        pid: 22180,
        last_port: None,
        type_of_service: None,
    }
}

fn client() -> ClientBanner<'static> {
    ClientBanner {
        protocol: Protocol::Tcp,
        host: "127.0.0.1",
        port: 5001,
        bind: None,
        write_bytes: 131_072,
        gap_micros: 0.0,
        pacing_bps: None,
        multicast_ttl: None,
        mss: None,
        window: window(16384, None),
        enhanced: None,
    }
}

#[test]
fn servers_tell_where_they_listen() {
    let tcp = "Server listening on TCP port 5001\nTCP window size:  128 KByte (default)";
    assert_eq!(server_banner(V2_0, &server()), ruled(tcp));
    assert_eq!(server_banner(V2_1, &server()), ruled(tcp));

    let udp = ServerBanner {
        protocol: Protocol::Udp,
        bind: Some("10.99.0.2"),
        read_bytes: 1470,
        window: window(212_992, None),
        mss: Some(Mss::Current(536)),
        is_enhanced: true,
        ..server()
    };
    assert_eq!(
        server_banner(V2_0, &udp),
        ruled(
            "Server listening on UDP port 5001\nBinding to local address 10.99.0.2\n\
             Receiving 1470 byte datagrams\nUDP buffer size:  208 KByte (default)"
        )
    );
    let plain = ServerBanner {
        is_enhanced: false,
        mss: None,
        group: Some("239.1.1.1"),
        ..udp
    };
    assert_eq!(
        server_banner(V2_1, &plain),
        ruled(
            "Server listening on UDP port 5001\nJoining multicast group  239.1.1.1\n\
             UDP buffer size:  208 KByte (default)"
        )
    );
}

#[test]
fn enhanced_servers_tell_more() {
    let tcp = ServerBanner {
        bind: Some("127.0.0.1"),
        mss: Some(Mss::Requested(1000)),
        is_enhanced: true,
        pid: 22062,
        ..server()
    };
    assert_eq!(
        server_banner(V2_1, &tcp),
        ruled(
            "Server listening on TCP port 5001 with pid 22062\n\
             Binding to local address 127.0.0.1\n\
             Read buffer size:  128 KByte (Dist bin width=16.0 KByte)\n\
             MSS req size 1000 bytes (per TCP_MAXSEG)\nTCP window size:  128 KByte (default)"
        )
    );
    let udp = ServerBanner {
        protocol: Protocol::Udp,
        read_bytes: 1470,
        window: window(262_144, Some(131_072)),
        is_enhanced: true,
        ..server()
    };
    assert_eq!(
        server_banner(V2_1, &udp),
        ruled(
            "Server listening on UDP port 5001 with pid 22180\n\
             Read buffer size: 1.44 KByte (Dist bin width= 183 Byte)\n\
             UDP buffer size:  256 KByte (WARNING: requested  128 KByte)"
        )
    );
    let small = ServerBanner {
        read_bytes: 100,
        ..udp
    };
    let megabytes = Format {
        letter: 'm',
        ..V2_1
    };
    assert!(
        server_banner(megabytes, &small)
            .contains("\nRead buffer size: 0.000 MByte (Dist bin width=12.0 Byte)\n")
    );
}

#[test]
fn clients_tell_where_they_connect() {
    let tcp =
        "Client connecting to 127.0.0.1, TCP port 5001\nTCP window size: 16.0 KByte (default)";
    assert_eq!(client_banner(V2_0, &client()), ruled(tcp));
    assert_eq!(client_banner(V2_1, &client()), ruled(tcp));
    let granted = ClientBanner {
        window: window(131_072, Some(131_072)),
        ..client()
    };
    assert!(client_banner(V2_1, &granted).contains("\nTCP window size:  128 KByte\n"));
    let whole_bytes = Format {
        letter: 'b',
        ..V2_1
    };
    assert!(
        client_banner(whole_bytes, &client()).contains("\nTCP window size: 16384 Byte (default)\n")
    );

    let udp = ClientBanner {
        protocol: Protocol::Udp,
        host: "localhost",
        bind: Some("10.99.0.1"),
        write_bytes: 1470,
        gap_micros: 1470.0 * 8.0 / 1_048_576.0 * 1e6,
        multicast_ttl: Some(1),
        window: window(212_992, None),
        ..client()
    };
    assert_eq!(
        client_banner(V2_0, &udp),
        ruled(
            "Client connecting to localhost, UDP port 5001\nBinding to local address 10.99.0.1\n\
             Sending 1470 byte datagrams\nSetting multicast TTL to 1\n\
             UDP buffer size:  208 KByte (default)"
        )
    );
    assert_eq!(
        client_banner(V2_1, &udp),
        ruled(
            "Client connecting to localhost, UDP port 5001\n\
             Sending 1470 byte datagrams, IPG target: 11215.21 us (kalman adjust)\n\
             UDP buffer size:  208 KByte (default)"
        )
    );
}

#[test]
fn enhanced_clients_tell_more() {
    let enhanced = ClientEnhanced {
        pid: 28745,
        flows: 1,
        tos: 0,
        has_nodelay: true,
    };
    let tcp = ClientBanner {
        write_bytes: 100,
        mss: Some(Mss::Current(536)),
        window: window(4608, Some(1000)),
        enhanced: Some(enhanced),
        ..client()
    };
    assert_eq!(
        client_banner(V2_1, &tcp),
        ruled(
            "Client connecting to 127.0.0.1, TCP port 5001 with pid 28745 (1 flows)\n\
             Write buffer size:  100 Byte\nMSS size 536 bytes\n\
             TOS set to 0x0 and nodelay (Nagle off)\n\
             TCP window size: 4.50 KByte (WARNING: requested 1000 Byte)"
        )
    );
    let udp = ClientBanner {
        protocol: Protocol::Udp,
        write_bytes: 1470,
        gap_micros: 1176.0,
        window: window(212_992, None),
        enhanced: Some(ClientEnhanced {
            tos: 0x10,
            has_nodelay: false,
            ..enhanced
        }),
        ..client()
    };
    assert_eq!(
        client_banner(V2_1, &udp),
        ruled(
            "Client connecting to 127.0.0.1, UDP port 5001 with pid 28745 (1 flows)\n\
             TOS set to 0x10 (Nagle on)\n\
             Sending 1470 byte datagrams, IPG target: 1176.00 us (kalman adjust)\n\
             UDP buffer size:  208 KByte (default)"
        )
    );
}

#[test]
fn connections_are_remarked() {
    let plain = Connection {
        id: StreamId {
            number: 2,
            is_reversed: true,
        },
        local: address("[::ffff:127.0.0.1]:45748"),
        peer: address("[::ffff:127.0.0.1]:5394"),
        direction: Direction::Reverse,
        is_sender: true,
        has_no_fin: false,
        remarks: Remarks::default(),
        tcp: Some(InitialTcp {
            window_segments: 10,
            mss_bytes: 1448,
            rtt_micros: 23,
        }),
        enhanced: None,
    };
    assert_eq!(
        connection_line(Style::V2_1, &plain),
        "[ *2] local ::ffff:127.0.0.1 port 45748 connected with ::ffff:127.0.0.1 port 5394 \
         (reverse) (icwnd/mss/irtt=14/1448/23)"
    );
    let udp = Connection {
        id: id(1),
        local: address("127.0.0.1:33150"),
        peer: address("127.0.0.1:5393"),
        direction: Direction::FullDuplex,
        is_sender: true,
        has_no_fin: true,
        remarks: Remarks::default(),
        tcp: None,
        enhanced: None,
    };
    assert_eq!(
        connection_line(Style::V2_1, &udp),
        "[  1] local 127.0.0.1 port 33150 connected with 127.0.0.1 port 5393 (full-duplex) \
         (no-udp-fin)"
    );
}

#[test]
fn a_connection_line_remarks_what_was_asked_for() {
    let remarked = |direction, is_sender| {
        let line = connection_line(
            Style::V2_1,
            &Connection {
                id: id(1),
                local: address("127.0.0.1:33150"),
                peer: address("127.0.0.1:5001"),
                direction,
                is_sender,
                has_no_fin: false,
                remarks: Remarks {
                    type_of_service: 0x10,
                    is_paced: true,
                    peer_version: Some(Version::V2_1_8),
                },
                tcp: None,
                enhanced: None,
            },
        );
        let (_, remarks) = line.split_once("port 5001").unwrap();
        remarks.to_owned()
    };
    // As both ends of 2.1.8 printed with -S 0x10 and -X, and with --fq-rate.
    for (direction, is_sender, remarks) in [
        (Direction::Forward, true, " (tos rx=0x10) (peer 2.1.8)"),
        (Direction::Forward, false, " (tos rx=0x10) (peer 2.1.8)"),
        (
            Direction::Reverse,
            false,
            " (reverse) (fq) (tos tx=0x10) (peer 2.1.8)",
        ),
        (
            Direction::Reverse,
            true,
            " (reverse) (fq) (tos rx=0x10) (peer 2.1.8)",
        ),
        (
            Direction::FullDuplex,
            true,
            " (full-duplex) (tos rx/tx=0x10/0x10) (peer 2.1.8)",
        ),
    ] {
        assert_eq!(remarked(direction, is_sender), remarks);
    }
}

#[test]
fn settings_tell_of_ports_service_and_pacing() {
    let range = ServerBanner {
        last_port: Some(5003),
        type_of_service: Some(0x20),
        mss: Some(Mss::Requested(1000)),
        ..server()
    };
    assert_eq!(
        server_banner(V2_1, &range),
        ruled(
            "Server listening on TCP ports 5001-5003 with pid 22180\n\
             MSS req size 1000 bytes (per TCP_MAXSEG)\nTOS will be set to 0x20\n\
             TCP window size:  128 KByte (default)"
        )
    );
    let plain = "Server listening on TCP ports 5001-5003\nTCP window size:  128 KByte (default)";
    assert_eq!(server_banner(V2_0, &range), ruled(plain));
    let paced = ClientBanner {
        pacing_bps: Some(100_000_000),
        ..client()
    };
    assert_eq!(
        client_banner(V2_1, &paced),
        ruled(
            "Client connecting to 127.0.0.1, TCP port 5001\n\
             fair-queue socket pacing set to  100 Mbit/s\nTCP window size: 16.0 KByte (default)"
        )
    );
}

#[test]
fn an_enhanced_connection_line_tells_more_in_style_2_1_only() {
    let enhanced = Connection {
        id: id(1),
        local: address("127.0.0.1:33150"),
        peer: address("127.0.0.1:5393"),
        direction: Direction::Forward,
        is_sender: true,
        has_no_fin: false,
        remarks: Remarks {
            type_of_service: 0x10,
            is_paced: false,
            peer_version: Some(Version::V2_1_8),
        },
        tcp: Some(InitialTcp {
            window_segments: 10,
            mss_bytes: 32741,
            rtt_micros: 26,
        }),
        enhanced: Some(ConnectionEnhanced {
            device: Some("lo"),
            socket: 3,
            connect_ms: Some(0.06),
            opened: Timestamp {
                year: 2026,
                month: 11,
                day: 21,
                hour: 4,
                minute: 4,
                second: 37,
                millis: 0,
            },
            zone: "UTC",
        }),
    };
    assert_eq!(
        connection_line(Style::V2_1, &enhanced),
        "[  1] local 127.0.0.1%lo port 33150 connected with 127.0.0.1 port 5393 (sock=3) \
         (tos rx=0x10) (peer 2.1.8) (icwnd/mss/irtt=319/32741/26) (ct=0.06 ms) \
         on 2026-11-21 04:04:37 (UTC)"
    );
    assert_eq!(
        connection_line(Style::V2_0, &enhanced),
        "[  1] local 127.0.0.1 port 33150 connected with 127.0.0.1 port 5393"
    );
}

#[test]
fn messages() {
    let refused = "Connection refused";
    assert_eq!(
        connect_failed(Style::V2_0, Protocol::Tcp, refused),
        "connect failed: Connection refused"
    );
    assert_eq!(
        connect_failed(Style::V2_1, Protocol::Tcp, refused),
        "tcp connect failed: Connection refused"
    );
    assert_eq!(
        connect_failed(Style::V2_1, Protocol::Udp, "Permission denied"),
        "udp connect failed: Permission denied"
    );
    assert_eq!(
        bind_failed(Style::V2_1, "Address already in use"),
        "listener bind failed: Address already in use"
    );
    assert_eq!(
        bind_failed(Style::V2_0, "Address already in use"),
        "bind failed: Address already in use"
    );
    assert_eq!(
        no_acknowledgement(Style::V2_1, id(3), 10),
        "[  3] WARNING: did not receive ack of last datagram after 10 tries."
    );
    assert_eq!(
        small_window(1000),
        "WARNING: TCP window size set to 1000 bytes. A small window size\n\
         will give poor performance. See the Iperf documentation."
    );
    assert_eq!(
        version(Style::V2_1),
        "iperf version 2.1.8 (12 August 2022) pthreads"
    );
    assert!(version(Style::V2_0).starts_with("iperf version 2.0.5 "));
    assert_eq!(
        usage("iperf"),
        "Usage: iperf [-s|-c host] [options]\nTry `iperf --help' for more information."
    );
}

#[test]
fn segment_sizes_name_the_link() {
    for (bytes, text) in [
        (1448, "[  3] MSS size 1448 bytes (MTU 1500 bytes, ethernet)"),
        (1420, "[  3] MSS size 1420 bytes (MTU 1500 bytes, ethernet)"),
        (1460, "[  3] MSS size 1460 bytes (MTU 1500 bytes, ethernet)"),
        (
            1461,
            "[  3] MSS size 1461 bytes (MTU 1501 bytes, unknown interface)",
        ),
        (4312, "[  3] MSS size 4312 bytes (MTU 4352 bytes, FDDI)"),
        (9140, "[  3] MSS size 9140 bytes (MTU 9180 bytes, ATM)"),
        (65200, "[  3] MSS size 65200 bytes (MTU 65280 bytes, HIPPI)"),
        (
            536,
            "[  3] MSS size 536 bytes (MTU 576 bytes, minimum)\n\
             WARNING: Path MTU Discovery may not be enabled.",
        ),
        (
            0,
            "[  3] MSS and MTU size unknown (TCP_MAXSEG not supported by OS?)",
        ),
    ] {
        assert_eq!(mss_lines(id(3), bytes), text);
    }
    assert!(mss_lines(id(3), u32::MAX).ends_with("unknown interface)"));
}
