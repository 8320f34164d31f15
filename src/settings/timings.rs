//! The timings of the protocol: a preset, and single values over it.

use tenure_core::policy::{Jitter, Settings as Timings};
use tenure_core::time::Millis;

use crate::duration;

/// One timing: its name, and how to read it into the timings.
type Setter = fn(&mut Timings, &str) -> Result<(), String>;

macro_rules! lengths {
    ($($name:ident)*) => {
        &[$((concat!("timings.", stringify!($name)), |timings, text| {
            timings.$name = duration::parse(text)?;
            Ok(())
        })),*]
    };
}

const LENGTHS: &[(&str, Setter)] = lengths! {
    heartbeat heartbeat_ttl suspect_after disconnect_grace task_lease accept_timeout adopt_grace
    adopt_max reconnect_min reconnect_max leader_ttl leader_renew result_timeout ping_timeout
    retry_min retry_max decline_pause started_mark_after ageing_step reconcile
};

const OTHERS: &[(&str, Setter)] = &[
    ("timings.accept_tries", |timings, text| {
        timings.accept_tries =
            text.parse().map_err(|_| format!("`{text}` is not a number from 1 to 255"))?;
        Ok(())
    }),
    ("timings.jitter", |timings, text| {
        timings.jitter = match text {
            "full" => Jitter::Full,
            "quarter" => Jitter::Quarter,
            _ => return Err(format!("`{text}` is no jitter; write full or quarter")),
        };
        Ok(())
    }),
];

/// The names of all single timings, as in the file.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    LENGTHS.iter().chain(OTHERS).map(|(name, _)| *name)
}

/// The environment variable of a timing: `TENURE_TIMINGS_HEARTBEAT`.
pub(super) fn variable(name: &str) -> String {
    format!("TENURE_{}", name.replace('.', "_").to_uppercase())
}

/// The timings of a preset.
pub(super) fn preset(name: &str) -> Result<Timings, String> {
    match name {
        "default" => Ok(Timings::DEFAULT),
        "documented" => Ok(Timings::DOCUMENTED),
        _ => Err(format!("`{name}` is no preset of timings; write default or documented")),
    }
}

/// Sets one timing.
pub(super) fn set(timings: &mut Timings, name: &str, text: &str) -> Result<(), String> {
    let found = LENGTHS.iter().chain(OTHERS).find(|(known, _)| *known == name);
    let (_, setter) = found.expect("names are checked where they are read");
    setter(timings, text)
}

/// The value of a timing as one would write it.
pub(super) fn show(timings: &Timings, name: &str) -> String {
    macro_rules! text {
        ($($field:ident)*) => {
            match name.trim_start_matches("timings.") {
                $(stringify!($field) => millis(timings.$field),)*
                "accept_tries" => timings.accept_tries.to_string(),
                _ => match timings.jitter {
                    Jitter::Full => "full".to_owned(),
                    Jitter::Quarter => "quarter".to_owned(),
                },
            }
        };
    }
    text! {
        heartbeat heartbeat_ttl suspect_after disconnect_grace task_lease accept_timeout adopt_grace
        adopt_max reconnect_min reconnect_max leader_ttl leader_renew result_timeout ping_timeout
        retry_min retry_max decline_pause started_mark_after ageing_step reconcile
    }
}

fn millis(length: Millis) -> String {
    format!("{}ms", length.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_timing_reads_back_what_it_shows() {
        for name in names() {
            let mut timings = Timings::DEFAULT;
            let text = show(&Timings::DOCUMENTED, name);
            set(&mut timings, name, &text).expect(name);
            assert_eq!(show(&timings, name), text, "{name}");
        }
    }

    #[test]
    fn every_timing_of_core_has_a_name() {
        let mut timings = Timings::DEFAULT;
        for name in names() {
            set(&mut timings, name, &show(&Timings::DOCUMENTED, name)).expect(name);
        }
        assert_eq!(timings, Timings::DOCUMENTED);
    }
}
