//! What is remembered, and for how long.

use tenure_core::command::Record;
use tenure_core::event::Remembered;

use crate::support::{DAY, HOUR, Place, acknowledged, at, given, outcome, term};

#[test]
fn a_restart_remembers_terms_attempts_and_what_waits() {
    let place = Place::new();
    let mut first = place.open();
    assert_eq!(first.remembered, Remembered::default());
    first.write(&given(7, 1, 3));
    first.write(&given(5, 2, 4));
    first.write(&given(5, 1, 4));
    first.write(&Record::Outcome(outcome(7, 1, b"seven")));
    first.write(&Record::Outcome(outcome(5, 2, b"five")));
    first.write(&acknowledged(7, 1));
    first.write(&Record::Highest(term(9)));
    first.write(&Record::Highest(term(8)));
    drop(first);

    let second = place.open();
    let expected = Remembered {
        highest: term(9),
        given: vec![at(5, 2), at(7, 1)],
        outcomes: vec![outcome(5, 2, b"five")],
    };
    assert_eq!(second.remembered, expected);
    let kept: Vec<_> = second.outbox.acknowledged().cloned().collect();
    assert_eq!(kept, [outcome(7, 1, b"seven")]);
}

#[test]
fn an_attempt_is_refused_for_a_day_after_its_end_and_no_less() {
    let place = Place::new();
    let mut opened = place.open();
    opened.write(&given(1, 1, 1));
    place.pass(5 * DAY);
    // It ran for five days.
    opened.write(&Record::Outcome(outcome(1, 1, b"")));
    opened.write(&acknowledged(1, 1));
    drop(opened);
    place.pass(DAY - 1);
    assert_eq!(place.open().remembered.given, [at(1, 1)]);
    place.pass(1);
    assert_eq!(place.open().remembered.given, []);
}

#[test]
fn an_attempt_without_an_outcome_has_ended_with_its_process() {
    let place = Place::new();
    let mut opened = place.open();
    opened.write(&given(1, 1, 1));
    drop(opened);
    place.pass(3 * DAY);
    // Found here by the next start, so its day begins here.
    assert_eq!(place.open().remembered.given, [at(1, 1)]);
    place.pass(DAY);
    assert_eq!(place.open().remembered.given, []);
}

#[test]
fn an_outcome_waits_for_ever_and_an_acknowledged_one_for_an_hour() {
    let place = Place::new();
    let mut opened = place.open();
    opened.write(&Record::Outcome(outcome(1, 1, b"waits")));
    opened.write(&Record::Outcome(outcome(2, 1, b"said")));
    opened.write(&acknowledged(2, 1));
    drop(opened);
    place.pass(HOUR - 1);
    assert_eq!(place.open().outbox.acknowledged().count(), 1);
    place.pass(1);
    assert_eq!(place.open().outbox.acknowledged().count(), 0);
    place.pass(400 * DAY);
    assert_eq!(place.open().remembered.outcomes, [outcome(1, 1, b"waits")]);
}

#[test]
fn a_file_of_mostly_dead_records_is_written_anew_and_adds_up_to_the_same() {
    let place = Place::new();
    let mut opened = place.open();
    let report = vec![7; 10_000];
    opened.write(&Record::Outcome(outcome(1, 1, b"waits")));
    let mut largest = 0;
    for task in 2..2_000 {
        place.pass(HOUR / 50);
        opened.write(&given(task, 1, task));
        opened.write(&Record::Outcome(outcome(task, 1, &report)));
        opened.write(&acknowledged(task, 1));
        largest = largest.max(file_length(&place));
    }
    // 20 MB were written; an hour's worth, 50 outcomes, is alive at a time.
    assert!(largest < 3 << 20, "{largest} bytes");
    let mut left: Vec<_> = opened.outbox.acknowledged().cloned().collect();
    drop(opened);
    let again = place.open();
    assert_eq!(again.remembered.highest, term(1_999));
    assert_eq!(again.remembered.outcomes, [outcome(1, 1, b"waits")]);
    // Reading forgets a little more than the last rewriting did.
    left.retain(|kept| again.outbox.acknowledged().any(|found| found == kept));
    assert_eq!(again.outbox.acknowledged().count(), left.len());
    assert!(left.len() >= 49, "{}", left.len());
}

fn file_length(place: &Place) -> u64 {
    std::fs::metadata(place.file()).expect("the file is there").len()
}
