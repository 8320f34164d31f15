//! Outcomes, from their record to their acknowledgement.

use tenure_core::agent::AgentConfig;
use tenure_core::command::{AgentCommand, Record};
use tenure_core::event::{AgentEvent, Remembered};
use tenure_core::ids::Incarnation;
use tenure_core::message::{AckVerdict, Decline, Finished, ToMaster, ToWorker};
use tenure_core::outcome::{Outcome, Verdict};
use tenure_core::policy::{Policy, Settings};
use tenure_core::time::Millis;

use crate::bench::*;

fn told(commands: &[AgentCommand]) -> usize {
    said(commands).iter().filter(|said| matches!(said, ToMaster::Finished(_))).count()
}

#[test]
fn an_outcome_is_on_the_disk_before_it_is_told() {
    let mut bench = Bench::running(config(), &[at(1, 1)]);
    let ended = bench.ends(at(1, 1), Verdict::Succeeded);
    let success = outcome(at(1, 1), Verdict::Succeeded);
    assert_eq!(records(&ended), [Record::Outcome(success.clone())]);
    assert_eq!(ended.len(), 1, "nothing but the record: {ended:?}");
    let written = bench.write(&ended);
    assert_eq!(written, [AgentCommand::Send(bench.session(), ToMaster::Finished(success))]);
}

#[test]
fn an_attempt_counts_as_running_until_its_outcome_is_on_the_disk() {
    let mut bench = Bench::running(config(), &[at(1, 1)]);
    let ended = bench.ends(at(1, 1), Verdict::Succeeded);
    let beat = bench.hears(ToWorker::Ping);
    assert_eq!(said(&beat), [ToMaster::Heartbeat(inventory(&[at(1, 1)], &[]))]);
    assert!(bench.runs().is_empty(), "its process has ended and its slot is free");
    bench.write(&ended);
    let beat = bench.hears(ToWorker::Ping);
    assert_eq!(said(&beat), [ToMaster::Heartbeat(inventory(&[], &[at(1, 1)]))]);
}

#[test]
fn an_outcome_is_kept_until_it_is_acknowledged() {
    let mut bench = Bench::finished(config(), at(1, 1));
    assert_eq!(bench.verdicts(), [Verdict::Succeeded]);
    let acked = bench.hears(ack(at(1, 1), 1));
    assert_eq!(records(&acked), [Record::Acknowledged(at(1, 1), ME)]);
    assert_eq!(bench.verdicts(), []);
    assert_eq!(bench.hears(ack(at(1, 1), 1)), [], "a repeat changes nothing");
}

#[test]
fn an_acknowledgement_of_a_lower_epoch_is_ignored() {
    let mut bench = Bench::finished(config(), at(1, 1));
    assert_eq!(bench.hears(ack(at(1, 1), 0)), []);
    assert_eq!(bench.verdicts(), [Verdict::Succeeded]);
}

#[test]
fn an_acknowledgement_of_another_incarnations_outcome_is_not_taken_for_ones_own() {
    let mut bench = Bench::finished(config(), at(1, 1));
    let verdict = AckVerdict::Superseded;
    let (at, epoch) = (at(1, 1), term(1).epoch);
    let other = ToWorker::ResultAck { at, ran_by: Incarnation(3), epoch, verdict };
    assert_eq!(bench.hears(other), []);
    assert_eq!(bench.verdicts(), [Verdict::Succeeded]);
}

#[test]
fn an_acknowledgement_in_an_ended_session_is_ignored() {
    let mut bench = Bench::finished(config(), at(1, 1));
    let old = bench.session();
    bench.reconnect();
    assert_eq!(bench.event(AgentEvent::Received(old, ack(at(1, 1), 1))), []);
    assert_eq!(bench.verdicts(), [Verdict::Succeeded]);
}

#[test]
fn an_outcome_that_came_while_no_master_was_there_is_told_in_the_next_session() {
    let mut bench = Bench::running(config(), &[at(1, 1)]);
    bench.event(AgentEvent::Closed(bench.session()));
    let ended = bench.ends(at(1, 1), Verdict::Failed);
    assert_eq!(bench.write(&ended), []);
    let dial = bench.wake();
    let hello = bench.answer_dial(&dial);
    assert!(matches!(&said(&hello)[..], [ToMaster::Hello(hello)]
        if hello.inventory == inventory(&[], &[at(1, 1)])));
    let acked = bench.hears(ToWorker::HelloAck(term(1)));
    assert_eq!(said(&acked), [ToMaster::Finished(outcome(at(1, 1), Verdict::Failed))]);
}

#[test]
fn an_outcome_on_the_disk_at_boot_is_told_with_the_incarnation_that_ran_it() {
    let ran_by = Incarnation(3);
    let left = Outcome { ran_by, ..outcome(at(1, 1), Verdict::Succeeded) };
    let remembered = Remembered { outcomes: vec![left.clone()], ..Remembered::default() };
    let (bench, acked) = Bench::booted(config(), remembered);
    assert_eq!(said(&acked), [ToMaster::Finished(left)]);
    let listed = bench.agent.inventory();
    assert_eq!(listed.finished, [Finished { at: at(1, 1), ran_by }]);
    assert_eq!(listed.running, []);
}

#[test]
fn an_outcome_without_acknowledgement_is_told_again_and_then_to_another_master() {
    let mut bench = Bench::finished(config(), at(1, 1));
    let session = bench.session();
    assert_eq!(told(&bench.live(Millis(TIMES.result_timeout.0 - 1))), 0);
    assert_eq!(told(&bench.live(Millis(1))), 1);
    let late = bench.live(TIMES.result_timeout);
    assert_eq!(told(&late), 0);
    assert!(hangs_up(&late, session));
    let dial = if dialed(&late).is_some() { late } else { bench.wake() };
    assert_eq!(dialed(&dial).map(|(_, master)| master), Some(1));
    assert_eq!(bench.verdicts(), [Verdict::Succeeded]);
}

#[test]
fn a_new_session_gives_an_outcome_its_whole_time_again() {
    let mut bench = Bench::finished(config(), at(1, 1));
    assert_eq!(told(&bench.live(TIMES.result_timeout)), 1);
    bench.live(Millis(3_000));
    let (_, acked) = bench.reconnect();
    assert_eq!(told(&acked), 1);
    assert_eq!(told(&bench.live(Millis(TIMES.result_timeout.0 - 1))), 0);
    assert_eq!(told(&bench.live(Millis(1))), 1);
    assert!(bench.agent.is_established());
}

#[test]
fn an_acknowledged_outcome_leaves_no_deadline() {
    // Here the acknowledgement is awaited for a shorter time than a heartbeat takes.
    let policy = Policy::new(Settings::DOCUMENTED).expect("the documented settings are safe");
    let mut bench = Bench::finished(AgentConfig { policy, ..config() }, at(1, 1));
    let beat = bench.now + Settings::DOCUMENTED.heartbeat;
    assert_ne!(bench.agent.next_deadline(), Some(beat));
    bench.hears(ack(at(1, 1), 1));
    assert_eq!(bench.agent.next_deadline(), Some(beat));
}

#[test]
fn an_attempt_whose_outcome_alone_was_left_on_the_disk_is_never_started_again() {
    let left = outcome(at(1, 1), Verdict::Failed);
    let remembered = Remembered { outcomes: vec![left], ..Remembered::default() };
    let (mut bench, _) = Bench::booted(config(), remembered);
    bench.hears(ack(at(1, 1), 1));
    let again = bench.hears(ToWorker::Execute(execute(at(1, 1))));
    assert_eq!(said(&again), [ToMaster::Declined(at(1, 1), Decline::OldAttempt)]);
}

#[test]
fn with_one_master_an_outcome_without_acknowledgement_is_told_again_and_again() {
    let mut bench = Bench::finished(AgentConfig { masters: 1, ..config() }, at(1, 1));
    let commands = bench.live(TIMES.result_timeout.times(4));
    assert_eq!(told(&commands), 4);
    assert!(bench.agent.is_established());
}

#[test]
fn an_outcome_that_cannot_be_written_is_told_all_the_same_and_written_at_the_next_beat() {
    let mut bench = Bench::running(config(), &[at(1, 1)]);
    let ended = bench.ends(at(1, 1), Verdict::Succeeded);
    let success = outcome(at(1, 1), Verdict::Succeeded);
    let failed = bench.fail_write(&ended);
    assert_eq!(said(&failed), [ToMaster::Finished(success.clone())]);

    let beat = bench.wait(TIMES.heartbeat);
    assert_eq!(records(&beat), [Record::Outcome(success.clone())]);
    assert_eq!(said(&beat), [ToMaster::Heartbeat(inventory(&[], &[at(1, 1)]))]);
    assert_eq!(records(&bench.wait(TIMES.heartbeat)), [], "one write of it at a time");
    assert_eq!(bench.fail_write(&beat), [], "it was told before");
    let beat = bench.wait(TIMES.heartbeat);
    assert_eq!(records(&beat), [Record::Outcome(success)]);
    assert_eq!(bench.write(&beat), []);
    assert_eq!(records(&bench.wait(TIMES.heartbeat)), []);
}
