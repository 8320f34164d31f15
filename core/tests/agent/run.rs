//! Attempts that are ended before their time.

use tenure_core::command::AgentCommand;
use tenure_core::ids::Epoch;
use tenure_core::message::{Decline, Execute, StopReason, ToMaster, ToWorker};
use tenure_core::outcome::Verdict;
use tenure_core::time::Millis;

use crate::bench::*;

fn stop(task: u64, epoch: u64, reason: StopReason) -> ToWorker {
    ToWorker::Stop { at: at(task, 1), epoch: Epoch(epoch), reason }
}

#[test]
fn a_cancelled_attempt_is_stopped_once_and_ends_as_stopped() {
    let mut bench = Bench::running(config(), &[at(1, 1)]);
    let stopped = bench.hears(stop(1, 1, StopReason::Cancelled));
    assert_eq!(stopped, [AgentCommand::Stop(at(1, 1), StopReason::Cancelled)]);
    assert_eq!(bench.hears(stop(1, 1, StopReason::Cancelled)), []);
    assert_eq!(bench.runs(), [at(1, 1)], "its slot is busy until its process has ended");
    bench.ends(at(1, 1), Verdict::Failed);
    assert_eq!(bench.verdicts(), [Verdict::Stopped]);
}

#[test]
fn an_attempt_that_succeeded_before_it_could_be_stopped_has_succeeded() {
    let mut bench = Bench::running(config(), &[at(1, 1)]);
    bench.hears(stop(1, 1, StopReason::Cancelled));
    bench.ends(at(1, 1), Verdict::Succeeded);
    assert_eq!(bench.verdicts(), [Verdict::Succeeded]);
}

#[test]
fn a_stop_of_a_lower_epoch_is_ignored() {
    let mut bench = Bench::running(config(), &[at(1, 1)]);
    assert_eq!(bench.hears(stop(1, 0, StopReason::Cancelled)), []);
    bench.ends(at(1, 1), Verdict::Failed);
    assert_eq!(bench.verdicts(), [Verdict::Failed]);
}

#[test]
fn a_stop_of_what_is_not_here_does_nothing() {
    let mut bench = Bench::running(config(), &[at(1, 1)]);
    assert_eq!(bench.hears(stop(2, 1, StopReason::Superseded)), []);
    assert_eq!(
        started(&{
            bench.ends(at(1, 1), Verdict::Succeeded);
            bench.run(execute(at(2, 1)))
        }),
        [at(2, 1)]
    );
}

#[test]
fn an_attempt_stopped_before_its_start_is_recorded_never_starts() {
    let mut bench = Bench::connected(config());
    let ordered = bench.hears(ToWorker::Execute(execute(at(1, 1))));
    let stopped = bench.hears(stop(1, 1, StopReason::Cancelled));
    assert_eq!(said(&stopped), [ToMaster::Declined(at(1, 1), Decline::OldAttempt)]);
    assert_eq!(bench.write(&ordered), []);
    assert_eq!(bench.agent.free_slots(), 1);
    let again = bench.hears(ToWorker::Execute(execute(at(1, 1))));
    assert_eq!(said(&again), [ToMaster::Declined(at(1, 1), Decline::OldAttempt)]);
}

#[test]
fn an_attempt_whose_time_is_up_is_stopped_and_has_timed_out() {
    let mut bench = Bench::connected(config());
    let ordered =
        bench.hears(ToWorker::Execute(Execute { timeout: Some(Millis(500)), ..execute(at(1, 1)) }));
    // It counts from the start, not from the order.
    bench.now = bench.now + Millis(100);
    bench.write(&ordered);
    assert_eq!(bench.agent.next_deadline(), Some(bench.now + Millis(500)));
    assert_eq!(bench.wait(Millis(499)), []);
    let late = bench.wait(Millis(1));
    assert_eq!(late, [AgentCommand::Stop(at(1, 1), StopReason::Cancelled)]);
    assert_eq!(bench.hears(stop(1, 1, StopReason::Cancelled)), []);
    // A program that ends well because it was told to end has not done its work.
    bench.ends(at(1, 1), Verdict::Succeeded);
    assert_eq!(bench.verdicts(), [Verdict::TimedOut]);
}

#[test]
fn an_attempt_that_ends_in_time_leaves_no_deadline() {
    let mut bench = Bench::connected(config());
    let before = bench.agent.next_deadline();
    bench.run(Execute { timeout: Some(Millis(500)), ..execute(at(1, 1)) });
    let ended = bench.ends(at(1, 1), Verdict::Succeeded);
    bench.write(&ended);
    bench.hears(ack(at(1, 1), 1));
    assert_eq!(bench.agent.next_deadline(), before);
}
