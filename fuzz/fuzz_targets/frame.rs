//! Any bytes, in any cuts: the codec never panics, reads the same whatever the cuts, and what it read
//! survives being written and read again.
//!
//! Input: one byte that says how long the parts are, then the stream.

#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use tenure_proto::{Decoded, FrameCodec, FrameError, Limits};

fuzz_target!(|input: &[u8]| {
    let Some((&part, stream)) = input.split_first() else { return };
    let (whole, end) = read_in_parts(stream, stream.len());
    let (cut, cut_end) = read_in_parts(stream, usize::from(part));
    // Compared as text: a float that is no number does not equal itself.
    assert_eq!(format!("{whole:?}"), format!("{cut:?}"));
    assert_eq!(end, cut_end);
    whole.iter().for_each(survives_being_written);
});

fn limits() -> Limits {
    Limits::new(64 * 1024).expect("a usable limit")
}

fn read_in_parts(stream: &[u8], part: usize) -> (Vec<Decoded>, Result<(), FrameError>) {
    let mut codec = FrameCodec::new(limits());
    let mut buffer = BytesMut::new();
    let mut all = Vec::new();
    for bytes in stream.chunks(part.max(1)) {
        buffer.extend_from_slice(bytes);
        loop {
            match codec.read(&mut buffer) {
                Ok(Some(decoded)) => all.push(decoded),
                Ok(None) => break,
                Err(error) => return (all, Err(error)),
            }
        }
    }
    let end = codec.finish(&buffer);
    (all, end)
}

/// What was written reads back as something that is written the same. (Not as an equal message: a negative
/// zero is written as nothing, as every zero.)
fn survives_being_written(decoded: &Decoded) {
    let Decoded::Message(message) = decoded else { return };
    let mut codec = FrameCodec::new(limits());
    let mut once = BytesMut::new();
    // A message may be longer when written: a stream can leave out what a writer always says.
    let Ok(()) = codec.write(message, &mut once) else { return };
    let mut rest = once.clone();
    let again = codec.read(&mut rest).expect("what was written is a frame");
    let Some(Decoded::Message(again)) = again else { panic!("{again:?} is no whole message") };
    assert!(rest.is_empty());
    let mut twice = BytesMut::new();
    codec.write(&again, &mut twice).expect("as long as before");
    assert_eq!(once, twice);
}
