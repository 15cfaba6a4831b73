//! The bytes of requests and responses.

use nicpoll_wire::rr::{Decoder, Message, MessageError};

#[test]
fn a_request_and_its_response_are_laid_out_as_recorded() {
    let request = Message {
        response_bytes: 300,
        bytes: 80,
        ..Message::request(0x0102, 0x0304)
    };
    let mut recorded = Vec::from(*b"npRR\0\0\0\x01\0\0\0\0\0\0\x01\x02\0\0\0\0\0\0\x03\x04");
    recorded.extend([0, 0, 0, 80, 0, 0, 1, 44]);
    recorded.resize(64, 0);
    assert_eq!(request.to_bytes()[..], recorded);
    recorded[7] = 2;
    recorded[24..28].copy_from_slice(&[0, 0, 1, 44]);
    assert_eq!(request.response().to_bytes()[..], recorded);
}

#[test]
fn what_is_no_message_is_refused_with_its_reason() {
    let message = |bytes| Message {
        bytes,
        ..Message::request(1, 1)
    };
    let of = |datagram: &[u8]| Message::parse(datagram).unwrap_err();
    let short = MessageError::Length { found_bytes: 63 };
    assert_eq!(of(&message(64).to_bytes()[..63]), short);
    // Its head states 65.
    let cut = MessageError::Length { found_bytes: 64 };
    assert_eq!(of(&message(65).to_bytes()), cut);
    for told_bytes in [0, 63, (1 << 20) + 1, u32::MAX] {
        let refused = MessageError::ToldLength { told_bytes };
        assert_eq!(of(&message(told_bytes).to_bytes()), refused);
    }
    let mut unknown = message(64).to_bytes();
    unknown[7] = 3;
    assert_eq!(of(&unknown), MessageError::Kind { found: 3 });
    let noise = Decoder::default().next(&mut &[b'x'; 64][..]).unwrap_err();
    assert_eq!(noise, MessageError::Magic { found: *b"xxxx" });
}
