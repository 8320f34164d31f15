//! How large a frame may be.

use thiserror::Error;

/// What a codec accepts and sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    max_frame: u32,
}

impl Limits {
    /// 16 MiB: the largest frame by default, header included. Room for a long log batch or the
    /// inventory of a large worker, and still small enough to hold for every connection at once.
    pub const DEFAULT_MAX_FRAME: u32 = 16 * 1024 * 1024;
    /// 1 KiB: below this a worker with a few labels could not say hello.
    pub const SMALLEST_MAX_FRAME: u32 = 1024;
    /// 2 GiB less one byte: peers written in Java read the length as a signed number.
    pub const LARGEST_MAX_FRAME: u32 = i32::MAX as u32;

    /// Limits with this largest frame, in bytes, header included.
    ///
    /// # Errors
    /// [`LimitError`] if no peer could work with it.
    pub fn new(max_frame: usize) -> Result<Limits, LimitError> {
        match u32::try_from(max_frame) {
            Ok(bytes) if (Self::SMALLEST_MAX_FRAME..=Self::LARGEST_MAX_FRAME).contains(&bytes) => {
                Ok(Limits { max_frame: bytes })
            }
            _ => Err(LimitError { got: max_frame }),
        }
    }

    /// The largest frame in bytes, header included. A frame of exactly this length is accepted.
    #[must_use]
    pub fn max_frame(self) -> u32 {
        self.max_frame
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_frame: Self::DEFAULT_MAX_FRAME }
    }
}

/// A frame limit that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "a frame limit of {got} bytes cannot be used; choose one from {} to {} (the default is {})",
    Limits::SMALLEST_MAX_FRAME,
    Limits::LARGEST_MAX_FRAME,
    Limits::DEFAULT_MAX_FRAME
)]
pub struct LimitError {
    /// The limit that was asked for, in bytes.
    pub got: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_without_room_for_a_hello_or_beyond_a_signed_length_are_refused() {
        assert_eq!(Limits::new(1024).map(Limits::max_frame), Ok(1024));
        assert_eq!(Limits::new(i32::MAX as usize).map(Limits::max_frame), Ok(i32::MAX as u32));
        for got in [0, 9, 10, 1023, i32::MAX as usize + 1, usize::MAX] {
            let error = Limits::new(got).expect_err("out of range");
            assert_eq!(error, LimitError { got });
            assert!(error.to_string().contains(&format!("{got} bytes")), "{error}");
        }
    }
}
