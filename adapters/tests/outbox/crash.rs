//! Crashes between any two bytes, and disks that lose some.

use tenure_core::command::Record;
use tenure_core::event::Remembered;

use crate::support::{Place, acknowledged, given, outcome, term};

/// Records of every kind, with what a start after each must remember, and where each ends in the file.
fn written(place: &Place) -> Vec<(u64, Remembered)> {
    let records = [
        Record::Highest(term(2)),
        given(1, 1, 3),
        Record::Outcome(outcome(1, 1, b"one")),
        given(2, 1, 3),
        acknowledged(1, 1),
        given(2, 2, 4),
        Record::Outcome(outcome(2, 2, &[0; 50])),
        Record::Highest(term(6)),
    ];
    let length = || std::fs::metadata(place.file()).expect("the file is there").len();
    let mut opened = place.open();
    let mut states = vec![(length(), Remembered::default())];
    for record in &records {
        opened.write(record);
        let mut state = states[states.len() - 1].1.clone();
        remember(&mut state, record);
        states.push((length(), state));
    }
    states
}

/// What a record adds, said independently of the outbox.
fn remember(state: &mut Remembered, record: &Record) {
    match record {
        Record::Given { at, term, .. } => {
            state.given.retain(|known| known.task != at.task);
            state.given.push(*at);
            state.highest = state.highest.max(*term);
        }
        Record::Outcome(outcome) => state.outcomes.push(outcome.clone()),
        Record::Highest(term) => state.highest = state.highest.max(*term),
        Record::Acknowledged(at, _) => state.outcomes.retain(|outcome| outcome.at != *at),
    }
}

#[test]
fn a_crash_at_any_byte_loses_nothing_that_was_answered() {
    let place = Place::new();
    let states = written(&place);
    let bytes = std::fs::read(place.file()).expect("readable");
    for cut in 0..=bytes.len() {
        let other = Place::new();
        std::fs::write(other.file(), &bytes[..cut]).expect("written");
        let answered = states.iter().rev().find(|(end, _)| *end <= cut as u64);
        let (end, expected) = answered.map_or((cut as u64, Remembered::default()), Clone::clone);
        let mut opened = other.open();
        assert_eq!(opened.remembered, expected, "cut at {cut}");
        assert_eq!(opened.outbox.recovered().torn as u64, cut as u64 - end, "cut at {cut}");
        // What is written after the mending is found by the next start. Each costs a sync of the disk, so
        // not for every byte.
        if cut % 7 != 0 {
            continue;
        }
        opened.write(&Record::Highest(term(99)));
        drop(opened);
        let again = other.open();
        assert_eq!(again.remembered, Remembered { highest: term(99), ..expected }, "cut at {cut}");
        assert_eq!(again.outbox.recovered().torn, 0, "cut at {cut}");
    }
}

#[test]
fn a_bad_byte_within_the_file_costs_one_record_and_is_reported() {
    let place = Place::new();
    let states = written(&place);
    let mut bytes = std::fs::read(place.file()).expect("readable");
    // In the middle of the outcome of task 1.
    bytes[usize::try_from(states[3].0).expect("small") - 2] ^= 1;
    std::fs::write(place.file(), &bytes).expect("written");
    let opened = place.open();
    assert!(opened.outbox.recovered().damaged > 0);
    assert_eq!(opened.remembered, states[states.len() - 1].1, "task 1 was acknowledged anyway");
}

#[test]
fn a_crash_while_writing_anew_leaves_the_old_file() {
    let place = Place::new();
    let states = written(&place);
    let whole = std::fs::read(place.file()).expect("readable");
    for beside in [&whole[..0], &whole[..13], &b"anything"[..]] {
        std::fs::write(place.file().with_extension("new"), beside).expect("written");
        assert_eq!(place.open().remembered, states[states.len() - 1].1);
    }
}

#[test]
fn records_are_in_the_file_before_they_are_answered() {
    let place = Place::new();
    let mut opened = place.open();
    for task in 1..20 {
        let outcome = outcome(task, 1, b"done");
        opened.write(&Record::Outcome(outcome.clone()));
        // A kill of the process leaves what the file shows here.
        let other = Place::new();
        std::fs::copy(place.file(), other.file()).expect("copied");
        assert_eq!(other.open().remembered.outcomes.last(), Some(&outcome));
    }
}

#[test]
fn another_programs_file_is_left_alone() {
    let place = Place::new();
    std::fs::write(place.file(), "somebody's notes").expect("written");
    let refused = place.try_open().err().expect("foreign").to_string();
    assert!(refused.contains("outbox.records"), "{refused}");
    assert_eq!(std::fs::read(place.file()).expect("readable"), b"somebody's notes");
}
