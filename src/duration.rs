//! Lengths of time as people write them: `250ms`, `4.5s`, `10m`, `24h`, `7d`, `1m30s`.

use tenure_core::time::Millis;

const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads a length.
///
/// # Errors
/// Says what is wrong and how to write it.
pub(crate) fn parse(text: &str) -> Result<Millis, String> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(explain(text));
    }
    let mut sum = 0_u64;
    while !rest.is_empty() {
        let (part, after) = one_part(rest).ok_or_else(|| explain(text))?;
        sum = sum.checked_add(part).ok_or_else(|| explain(text))?;
        rest = after;
    }
    Ok(Millis(sum))
}

/// Milliseconds of the first `number unit`, and what follows it.
fn one_part(text: &str) -> Option<(u64, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, rest) = text.split_at(digits);
    let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(letters);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    Some((scaled(number, *factor)?, rest))
}

/// `number` × `factor` without floats; a fraction finer than a millisecond is refused.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut sum = whole.parse::<u64>().ok()?.checked_mul(factor)?;
    let mut step = factor;
    for digit in fraction.bytes() {
        if !digit.is_ascii_digit() || (!step.is_multiple_of(10) && digit != b'0') {
            return None;
        }
        step /= 10;
        sum = sum.checked_add(u64::from(digit - b'0') * step)?;
    }
    Some(sum)
}

fn explain(text: &str) -> String {
    format!("`{text}` is not a length of time; write a number and a unit: 250ms, 4.5s, 10m, 24h")
}

/// A length for people: the two largest units.
pub(crate) fn show(length: Millis) -> String {
    let ms = length.0;
    let (s, m, h, d) = (ms / 1_000, ms / 60_000, ms / 3_600_000, ms / 86_400_000);
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{}.{}s", s, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{m}m{:02}s", s % 60),
        3_600_000..86_400_000 => format!("{h}h{:02}m", m % 60),
        _ => format!("{d}d{:02}h", h % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_with_their_units() {
        for (text, ms) in [
            ("0s", 0),
            ("250ms", 250),
            ("4.5s", 4_500),
            ("0.25s", 250),
            ("1m30s", 90_000),
            ("24h", 86_400_000),
            ("7d", 604_800_000),
        ] {
            assert_eq!(parse(text), Ok(Millis(ms)), "{text}");
        }
    }

    #[test]
    fn what_has_no_unit_or_no_number_is_refused_with_an_example() {
        for text in ["", "5", "s", "5 minutes", "1.0005s", "-1s", "1.s2", "99999999999999999999d"] {
            let error = parse(text).expect_err(text);
            assert!(error.contains("250ms"), "{error}");
        }
    }

    #[test]
    fn lengths_are_shown_in_two_units() {
        for (ms, text) in
            [(999, "999ms"), (4_560, "4.5s"), (61_000, "1m01s"), (90_061_000, "1d01h")]
        {
            assert_eq!(show(Millis(ms)), text);
        }
    }
}
