//! Leaving.

use tenure_core::command::{AgentCommand, Record};
use tenure_core::event::AgentEvent;
use tenure_core::message::{Decline, ToMaster, ToWorker};
use tenure_core::outcome::Verdict;
use tenure_core::time::{Millis, Time};

use crate::bench::*;

fn drain(hand_back: bool) -> AgentEvent {
    AgentEvent::DrainAsked { hand_back }
}

fn drained(commands: &[AgentCommand]) -> bool {
    commands.contains(&AgentCommand::Drained)
}

#[test]
fn a_drained_master_order_takes_no_tasks_and_does_not_end_the_worker() {
    let mut bench = Bench::connected(config());
    assert_eq!(bench.hears(ToWorker::Drain), []);
    let declined = bench.hears(ToWorker::Execute(execute(at(1, 1))));
    assert_eq!(said(&declined), [ToMaster::Declined(at(1, 1), Decline::Cannot)]);
    assert!(!drained(&bench.live(TIMES.result_timeout.times(3))));
    let (hello, _) = bench.reconnect();
    assert!(matches!(&said(&hello)[..], [ToMaster::Hello(hello)] if hello.draining));
}

#[test]
fn an_idle_worker_leaves_at_once() {
    let mut bench = Bench::connected(config());
    let asked = bench.event(drain(false));
    assert_eq!(asked, [AgentCommand::Hangup(bench.session()), AgentCommand::Drained]);
    assert_eq!(bench.agent.next_deadline(), None);
    assert_eq!(bench.event(drain(true)), [], "it says so once");
}

#[test]
fn a_leaving_worker_takes_nothing_new_beats_and_waits_for_what_runs_and_its_acknowledgement() {
    let mut bench = Bench::running(with_slots(2), &[at(1, 1)]);
    assert_eq!(bench.event(drain(false)), []);
    let declined = bench.hears(ToWorker::Execute(execute(at(2, 1))));
    assert_eq!(said(&declined), [ToMaster::Declined(at(2, 1), Decline::Cannot)]);
    let beats = bench.live(TIMES.heartbeat.times(20));
    assert_eq!(said(&beats).len(), 20);
    let ended = bench.ends(at(1, 1), Verdict::Succeeded);
    assert!(!drained(&bench.write(&ended)));
    assert!(!drained(&bench.live(Millis(100))));
    let acked = bench.hears(ack(at(1, 1), 1));
    assert_eq!(records(&acked), [Record::Acknowledged(at(1, 1), ME)]);
    assert_eq!(acked.last(), Some(&AgentCommand::Drained));
}

#[test]
fn a_worker_in_haste_gives_back_what_it_runs() {
    let mut bench = Bench::running(with_slots(2), &[at(1, 1)]);
    let ordered = bench.hears(ToWorker::Execute(execute(at(2, 1))));
    let asked = bench.event(drain(true));
    assert_eq!(said(&asked), [ToMaster::Declined(at(2, 1), Decline::Cannot)]);
    assert!(matches!(asked[1], AgentCommand::Stop(stopped, _) if stopped == at(1, 1)));
    assert_eq!(bench.write(&ordered), []);

    // A program that saves its state and ends well when it is told to end has not done its work.
    let ended = bench.ends(at(1, 1), Verdict::Succeeded);
    let given_back = outcome(at(1, 1), Verdict::HandedBack);
    assert_eq!(said(&bench.write(&ended)), [ToMaster::Finished(given_back)]);
    assert!(drained(&bench.hears(ack(at(1, 1), 1))));
}

/// No master comes back; the worker must leave at that time and not before.
fn assert_leaves_at(bench: &mut Bench, left_at: Time) {
    while bench.now < left_at {
        let commands = bench.wake();
        assert_eq!(drained(&commands), bench.now == left_at, "{}", bench.now);
    }
    assert_eq!(bench.verdicts(), [Verdict::Succeeded], "its outcome stays on the disk");
}

#[test]
fn a_worker_without_a_master_leaves_some_time_after_its_last_outcome() {
    let mut bench = Bench::running(config(), &[at(1, 1)]);
    bench.event(AgentEvent::Closed(bench.session()));
    bench.event(drain(false));
    bench.now = bench.now + Millis(TIMES.result_timeout.0 - 1);
    let ended = bench.ends(at(1, 1), Verdict::Succeeded);
    bench.write(&ended);
    let left_at = bench.now + TIMES.result_timeout;
    assert_leaves_at(&mut bench, left_at);
}

#[test]
fn a_leaving_worker_that_loses_its_master_gives_it_time_to_come_back() {
    let mut bench = Bench::finished(config(), at(1, 1));
    bench.event(drain(false));
    bench.live(Millis(TIMES.result_timeout.0 - 1));
    bench.event(AgentEvent::Closed(bench.session()));
    let left_at = bench.now + TIMES.result_timeout;
    assert_leaves_at(&mut bench, left_at);
}

#[test]
fn a_worker_without_a_master_does_not_leave_while_an_outcome_is_not_on_the_disk() {
    let mut bench = Bench::running(config(), &[at(1, 1)]);
    bench.event(AgentEvent::Closed(bench.session()));
    bench.event(drain(false));
    let ended = bench.ends(at(1, 1), Verdict::Succeeded);
    bench.fail_write(&ended);
    let retried = bench.wait(TIMES.result_timeout);
    assert!(!drained(&retried));
    assert_eq!(records(&retried), [Record::Outcome(outcome(at(1, 1), Verdict::Succeeded))]);
    bench.write(&retried);
    assert!(drained(&bench.wait(TIMES.result_timeout)));
}
