//! Every start of a worker or a master is a new incarnation, drawn at random.

use tenure_core::ids::Incarnation;

/// One that no other start has, and never [`Incarnation::DOCUMENTED`].
///
/// # Errors
/// What the system said if it has no randomness to give; then the process must not start.
pub fn draw() -> Result<Incarnation, getrandom::Error> {
    loop {
        let drawn = Incarnation(getrandom::u64()?);
        if drawn != Incarnation::DOCUMENTED {
            return Ok(drawn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_starts_differ() {
        assert_ne!(draw().expect("randomness"), draw().expect("randomness"));
    }
}
