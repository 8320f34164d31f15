//! The frame codec on right, wrong and partial streams.

mod feed;

use bytes::{BufMut, Bytes, BytesMut};
use feed::{in_random_cuts, read_all};
use tenure_proto::messages::{LogDataRequest, LogLine, Ping};
use tenure_proto::{
    CodecError, Decoded, FrameCodec, FrameError, HEADER_LEN, Limits, MAGIC, Message, VERSION,
};
use tokio_util::codec::{Decoder, Encoder};

const PING: u8 = 24;
const UNKNOWN: u8 = 200;

#[test]
fn wrong_magic_is_found_by_four_bytes() {
    let error = read_all(Limits::default(), &[b"GET / HTTP/1.1\r\n"]).expect_err("not ours");
    assert_eq!(error, FrameError::BadMagic { got: 0x4745_5420 });
    assert_eq!(read_all(Limits::default(), &[b"GET "]), Err(error.clone()));
    says(&error, "bad_magic", &["0x47455420", "0xCAFEBABE"]);
}

#[test]
fn another_version_is_refused() {
    for got in [0, 2, 255] {
        let bytes = raw(MAGIC, got, 10, PING, &[]);
        let error = read_all(Limits::default(), &[&bytes]).expect_err("unknown version");
        assert_eq!(error, FrameError::BadVersion { got });
        says(&error, "bad_version", &[&got.to_string(), "only 1"]);
    }
}

#[test]
fn a_length_without_room_for_its_header_is_refused() {
    for got in 0..10 {
        let bytes = raw(MAGIC, VERSION, got, PING, &[]);
        let error = read_all(Limits::default(), &[&bytes]).expect_err("too short");
        assert_eq!(error, FrameError::TooShort { got });
        says(&error, "too_short", &[&got.to_string(), "10 bytes"]);
    }
}

#[test]
fn a_length_over_the_limit_is_refused_before_its_body_comes() {
    let limit = Limits::DEFAULT_MAX_FRAME;
    for got in [limit + 1, 1 << 31, u32::MAX] {
        let mut buffer = BytesMut::from(&raw(MAGIC, VERSION, got, PING, &[])[..]);
        let capacity = buffer.capacity();
        let error = FrameCodec::default().read(&mut buffer).expect_err("too long");
        assert_eq!(error, FrameError::TooLong { got, limit });
        assert_eq!(buffer.capacity(), capacity, "nothing is allocated for it");
        says(&error, "too_long", &[&got.to_string(), &limit.to_string()]);
    }
}

#[test]
fn an_unknown_type_over_the_limit_is_refused_as_well() {
    let bytes = raw(MAGIC, VERSION, u32::MAX, UNKNOWN, &[]);
    let error = read_all(Limits::default(), &[&bytes]).expect_err("too long");
    assert_eq!(error.kind(), "too_long");
}

#[test]
fn a_promised_length_alone_takes_little_memory() {
    let promise = raw(MAGIC, VERSION, Limits::DEFAULT_MAX_FRAME, 4, &[]);
    let mut buffer = BytesMut::from(&promise[..]);
    assert_eq!(FrameCodec::default().read(&mut buffer), Ok(None));
    assert!(buffer.capacity() <= 256 * 1024, "{} bytes are held for 10", buffer.capacity());
}

#[test]
fn a_frame_of_exactly_the_limit_is_written_and_read_and_one_byte_more_is_not() {
    for max_frame in [Limits::SMALLEST_MAX_FRAME, Limits::DEFAULT_MAX_FRAME] {
        let limits = Limits::new(max_frame as usize).expect("usable");
        let largest = log_in_a_frame_of(max_frame as usize);
        let mut out = BytesMut::new();
        FrameCodec::new(limits).write(&largest, &mut out).expect("exactly the limit");
        assert_eq!(out.len(), max_frame as usize);
        assert_eq!(read_all(limits, &[&out]), Ok(vec![Decoded::Message(largest)]));

        let larger = log_in_a_frame_of(max_frame as usize + 1);
        let refused = Err(FrameError::TooLong { got: max_frame + 1, limit: max_frame });
        let mut nothing = BytesMut::new();
        assert_eq!(FrameCodec::new(limits).write(&larger, &mut nothing), refused);
        assert!(nothing.is_empty(), "a refused message leaves no half frame");
    }
}

#[test]
fn a_body_that_does_not_parse_is_refused_by_name() {
    // Field 1 of type text, five bytes long, of which two are there.
    let bytes = raw(MAGIC, VERSION, 14, 1, &[0x0A, 5, b'w', b'1']);
    let error = read_all(Limits::default(), &[&bytes]).expect_err("cut body");
    assert!(matches!(error, FrameError::BadBody { type_code: 1, body_length: 4, .. }));
    says(&error, "bad_body", &["4 bytes", "HeartbeatRequest", "type 1"]);
}

#[test]
fn text_that_is_not_utf8_is_refused() {
    let bytes = raw(MAGIC, VERSION, 13, 1, &[0x0A, 1, 0xFF]);
    let error = read_all(Limits::default(), &[&bytes]).expect_err("no text");
    assert_eq!(error.kind(), "bad_body");
}

#[test]
fn a_field_that_is_not_known_yet_is_ignored() {
    // Field 100, number 7.
    let bytes = raw(MAGIC, VERSION, 13, PING, &[0xA0, 0x06, 7]);
    assert_eq!(read_all(Limits::default(), &[&bytes]), Ok(vec![ping()]));
}

#[test]
fn an_unknown_type_is_reported_with_its_header_and_skipped_by_its_length() {
    for type_code in [0, 6, 15, 25, 255] {
        let mut bytes = raw(MAGIC, VERSION, 300, type_code, &[0xCA; 290]);
        bytes.extend(raw(MAGIC, VERSION, 10, PING, &[]));
        let expected = vec![Decoded::Unknown { type_code, length: 300 }, ping()];
        assert_eq!(read_all(Limits::default(), &[&bytes]), Ok(expected.clone()));
        for seed in 0..20 {
            let parts = in_random_cuts(&bytes, seed);
            assert_eq!(read_all(Limits::default(), &parts), Ok(expected.clone()), "seed {seed}");
        }

        let mut header = BytesMut::from(&bytes[..HEADER_LEN]);
        let first = FrameCodec::default().read(&mut header);
        assert_eq!(first, Ok(Some(expected[0].clone())), "the header alone is enough to judge");
    }
}

#[test]
fn the_body_of_an_unknown_type_is_not_kept() {
    let length = Limits::DEFAULT_MAX_FRAME;
    let mut codec = FrameCodec::default();
    let mut buffer = BytesMut::from(&raw(MAGIC, VERSION, length, UNKNOWN, &[0; 1000])[..]);
    assert!(matches!(codec.read(&mut buffer), Ok(Some(Decoded::Unknown { .. }))));
    assert!(buffer.is_empty());
}

#[test]
fn every_cut_of_a_frame_needs_more_bytes() {
    let bytes = frame_of(&log_in_a_frame_of(64));
    for cut in 0..bytes.len() {
        let mut buffer = BytesMut::from(&bytes[..cut]);
        assert_eq!(FrameCodec::default().read(&mut buffer), Ok(None), "{cut} bytes");
        assert_eq!(buffer[..], bytes[..cut], "a part stays where it is");
    }
}

#[test]
fn a_stream_may_end_between_frames_only() {
    let bytes = frame_of(&log_in_a_frame_of(64));
    for cut in 1..bytes.len() {
        let boundary = if cut < HEADER_LEN { HEADER_LEN } else { bytes.len() };
        let error = FrameError::Truncated { missing: boundary - cut };
        assert_eq!(read_all(Limits::default(), &[&bytes[..cut]]), Err(error.clone()));
        says(&error, "truncated", &[&(boundary - cut).to_string()]);
    }
    let skipped = raw(MAGIC, VERSION, 30, UNKNOWN, &[0; 15]);
    let error = FrameError::Truncated { missing: 5 };
    assert_eq!(read_all(Limits::default(), &[&skipped]), Err(error));
}

#[test]
fn as_a_codec_on_a_stream_it_writes_reads_and_reports_an_early_end() {
    let mut codec = FrameCodec::default();
    let mut buffer = BytesMut::new();
    codec.encode(Message::Ping(Ping {}), &mut buffer).expect("small");
    codec.encode(&Message::Ping(Ping {}), &mut buffer).expect("small");
    buffer.put_slice(&raw(MAGIC, VERSION, 10, PING, &[])[..7]);
    assert_eq!(codec.decode(&mut buffer).expect("right"), Some(ping()));
    assert_eq!(codec.decode_eof(&mut buffer).expect("right"), Some(ping()));
    let error = codec.decode_eof(&mut buffer).expect_err("seven bytes of a header");
    assert!(matches!(error, CodecError::Frame(FrameError::Truncated { missing: 3 })));
    assert_eq!(FrameCodec::default().decode_eof(&mut BytesMut::new()).expect("an end"), None);
}

fn ping() -> Decoded {
    Decoded::Message(Message::Ping(Ping {}))
}

/// A frame with any values in its header.
fn raw(magic: u32, version: u8, length: u32, type_code: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.put_u32(magic);
    bytes.put_u8(version);
    bytes.put_u32(length);
    bytes.put_u8(type_code);
    bytes.put_slice(body);
    bytes
}

fn frame_of(message: &Message) -> BytesMut {
    let mut out = BytesMut::new();
    FrameCodec::default().write(message, &mut out).expect("within the limit");
    out
}

/// A log message whose whole frame has this length.
fn log_in_a_frame_of(length: usize) -> Message {
    let log = |text: usize| {
        let text = Bytes::from(vec![b'x'; text]);
        let lines = vec![LogLine { text, ..Default::default() }];
        Message::Log(LogDataRequest { lines, ..Default::default() })
    };
    (0..length)
        .rev()
        .take(32)
        .map(log)
        .find(|message| HEADER_LEN + message.body_length() == length)
        .expect("some text fills the frame")
}

fn says(error: &FrameError, kind: &str, parts: &[&str]) {
    assert_eq!(error.kind(), kind);
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{text:?} does not say {part:?}");
    }
}
