//! Orders to run an attempt.

use tenure_core::agent::AgentConfig;
use tenure_core::command::{AgentCommand, Record};
use tenure_core::event::{AgentEvent, Remembered};
use tenure_core::ids::{Incarnation, LabelId, Term};
use tenure_core::message::{Decline, Execute, StopReason, ToMaster, ToWorker};
use tenure_core::outcome::{Outcome, Verdict};
use tenure_core::spec::{Labels, Payload, Shape};

use crate::bench::*;

#[test]
fn an_attempt_is_recorded_before_it_is_accepted_and_started() {
    let mut bench = Bench::connected(config());
    let ordered = bench.hears(ToWorker::Execute(execute(at(1, 1))));
    let given = Record::Given { at: at(1, 1), ran_by: ME, term: term(1) };
    assert_eq!(records(&ordered), [given]);
    assert_eq!(ordered.len(), 1, "nothing but the record: {ordered:?}");
    assert!(bench.runs().is_empty());

    let written = bench.write(&ordered);
    let accepted = AgentCommand::Send(bench.session(), ToMaster::Accepted(at(1, 1)));
    assert_eq!(written, [accepted, AgentCommand::Start(execute(at(1, 1)))]);
    assert_eq!(bench.runs(), [at(1, 1)]);
}

#[test]
fn an_attempt_whose_start_cannot_be_recorded_is_declined_and_never_starts() {
    let mut bench = Bench::connected(config());
    let ordered = bench.hears(ToWorker::Execute(execute(at(1, 1))));
    let failed = bench.fail_write(&ordered);
    assert_eq!(said(&failed), [ToMaster::Declined(at(1, 1), Decline::Cannot)]);
    assert_eq!(bench.agent.free_slots(), 1);

    let again = bench.run(execute(at(1, 1)));
    assert!(started(&again).is_empty());
    let again = bench.hears(ToWorker::Execute(execute(at(1, 1))));
    assert_eq!(said(&again), [ToMaster::Declined(at(1, 1), Decline::OldAttempt)]);
}

#[test]
fn a_repeat_of_a_running_attempt_is_accepted_again_and_not_started_again() {
    let mut bench = Bench::running(config(), &[at(1, 1)]);
    let again = bench.hears(ToWorker::Execute(execute(at(1, 1))));
    assert_eq!(again, [AgentCommand::Send(bench.session(), ToMaster::Accepted(at(1, 1)))]);
}

#[test]
fn a_repeat_while_the_start_is_being_recorded_gets_one_answer_in_all() {
    let mut bench = Bench::connected(config());
    let ordered = bench.hears(ToWorker::Execute(execute(at(1, 1))));
    assert_eq!(bench.hears(ToWorker::Execute(execute(at(1, 1)))), []);
    let written = bench.write(&ordered);
    assert_eq!(said(&written), [ToMaster::Accepted(at(1, 1))]);
    assert_eq!(started(&written), [at(1, 1)]);
}

#[test]
fn a_repeat_of_a_finished_attempt_is_answered_with_its_outcome() {
    let mut bench = Bench::finished(config(), at(1, 1));
    let again = bench.hears(ToWorker::Execute(execute(at(1, 1))));
    let finished = ToMaster::Finished(outcome(at(1, 1), Verdict::Succeeded));
    assert_eq!(again, [AgentCommand::Send(bench.session(), finished)]);
}

#[test]
fn a_repeat_is_answered_with_the_outcome_that_an_earlier_incarnation_left() {
    let ran_by = Incarnation(3);
    let left = Outcome { ran_by, ..outcome(at(1, 1), Verdict::Failed) };
    let remembered = Remembered { outcomes: vec![left.clone()], ..Remembered::default() };
    let (mut bench, _) = Bench::booted(config(), remembered);
    let again = bench.hears(ToWorker::Execute(execute(at(1, 1))));
    assert_eq!(again, [AgentCommand::Send(bench.session(), ToMaster::Finished(left))]);
}

#[test]
fn an_attempt_given_before_is_never_started_again() {
    let mut bench = Bench::finished(config(), at(1, 1));
    bench.hears(ack(at(1, 1), 1));
    let again = bench.hears(ToWorker::Execute(execute(at(1, 1))));
    let declined = ToMaster::Declined(at(1, 1), Decline::OldAttempt);
    assert_eq!(again, [AgentCommand::Send(bench.session(), declined)]);
}

#[test]
fn an_attempt_given_to_an_earlier_incarnation_is_never_started_again() {
    let remembered = Remembered { given: vec![at(1, 2)], ..Remembered::default() };
    let (mut bench, _) = Bench::booted(config(), remembered);
    for old in [at(1, 1), at(1, 2)] {
        let again = bench.hears(ToWorker::Execute(execute(old)));
        assert_eq!(said(&again), [ToMaster::Declined(old, Decline::OldAttempt)]);
    }
    assert_eq!(started(&bench.run(execute(at(1, 3)))), [at(1, 3)]);
}

#[test]
fn an_attempt_that_was_declined_is_not_started_by_a_copy_of_its_order() {
    let mut bench = Bench::running(config(), &[at(1, 1)]);
    let declined = bench.hears(ToWorker::Execute(execute(at(2, 1))));
    assert_eq!(said(&declined), [ToMaster::Declined(at(2, 1), Decline::Busy)]);
    bench.ends(at(1, 1), Verdict::Succeeded);
    let copy = bench.hears(ToWorker::Execute(execute(at(2, 1))));
    assert_eq!(said(&copy), [ToMaster::Declined(at(2, 1), Decline::OldAttempt)]);
}

#[test]
fn a_later_attempt_stops_an_earlier_one_and_waits_for_its_slot_elsewhere() {
    let mut bench = Bench::running(config(), &[at(1, 1)]);
    let later = bench.hears(ToWorker::Execute(execute(at(1, 2))));
    let busy = ToMaster::Declined(at(1, 2), Decline::Busy);
    let stop = AgentCommand::Stop(at(1, 1), StopReason::Superseded);
    assert_eq!(later, [stop, AgentCommand::Send(bench.session(), busy)]);
    assert_eq!(bench.runs(), [at(1, 1)], "until its process has ended");

    bench.ends(at(1, 1), Verdict::Failed);
    assert_eq!(bench.verdicts(), [Verdict::Stopped]);
}

#[test]
fn a_later_attempt_runs_beside_an_earlier_one_only_where_there_is_room() {
    let mut bench = Bench::running(with_slots(2), &[at(1, 1)]);
    let later = bench.hears(ToWorker::Execute(execute(at(1, 2))));
    assert!(later.contains(&AgentCommand::Stop(at(1, 1), StopReason::Superseded)));
    assert_eq!(started(&bench.write(&later)), [at(1, 2)]);
    assert_eq!(bench.agent.free_slots(), 0);
    bench.ends(at(1, 1), Verdict::Failed);
    assert_eq!(bench.agent.free_slots(), 1);
}

#[test]
fn an_earlier_attempt_is_not_started_beside_a_later_one() {
    let mut bench = Bench::running(with_slots(2), &[at(1, 2)]);
    let earlier = bench.hears(ToWorker::Execute(execute(at(1, 1))));
    assert_eq!(said(&earlier), [ToMaster::Declined(at(1, 1), Decline::OldAttempt)]);
    assert_eq!(bench.runs(), [at(1, 2)]);
}

#[test]
fn slots_and_gpus_are_never_exceeded() {
    let capacity = Shape { slots: 3, gpus: 2, labels: Labels::NONE };
    let mut bench = Bench::connected(AgentConfig { capacity, ..config() });
    let wants = |task, slots, gpus| Execute {
        shape: Shape { slots, gpus, labels: Labels::NONE },
        ..execute(at(task, 1))
    };
    // Being recorded counts as well: two orders may come in one read.
    let first = bench.hears(ToWorker::Execute(wants(1, 1, 2)));
    let second = bench.hears(ToWorker::Execute(wants(2, 1, 1)));
    assert_eq!(said(&second), [ToMaster::Declined(at(2, 1), Decline::Busy)], "no GPU is left");
    let third = bench.hears(ToWorker::Execute(wants(3, 3, 0)));
    assert_eq!(said(&third), [ToMaster::Declined(at(3, 1), Decline::Busy)], "no slots are left");
    bench.write(&first);
    assert_eq!((bench.agent.free_slots(), bench.agent.free_gpus()), (2, 0));
    assert_eq!(started(&bench.run(wants(4, 2, 0))), [at(4, 1)]);
}

#[test]
fn what_can_never_fit_is_declined_as_cannot() {
    let labels = Labels::of(&[LabelId(1)]);
    let capacity = Shape { slots: 2, gpus: 0, labels };
    let mut bench = Bench::connected(AgentConfig { capacity, ..config() });
    let shapes = [
        Shape { slots: 3, ..Shape::default() },
        Shape { gpus: 1, ..Shape::default() },
        Shape { labels: Labels::of(&[LabelId(1), LabelId(2)]), ..Shape::default() },
    ];
    for (task, shape) in (1..).zip(shapes) {
        let order = Execute { shape, ..execute(at(task, 1)) };
        let declined = bench.hears(ToWorker::Execute(order));
        assert_eq!(said(&declined), [ToMaster::Declined(at(task, 1), Decline::Cannot)]);
    }
    let shape = Shape { labels: Labels::of(&[LabelId(1)]), ..Shape::default() };
    assert_eq!(started(&bench.run(Execute { shape, ..execute(at(9, 1)) })), [at(9, 1)]);
}

#[test]
fn an_order_of_a_lower_epoch_is_ignored() {
    let highest = term(3);
    let remembered = Remembered { highest, ..Remembered::default() };
    let mut bench = Bench::cold(config());
    let dial = bench.event(AgentEvent::Booted(remembered));
    bench.answer_dial(&dial);
    bench.hears(ToWorker::HelloAck(term(3)));
    let lower = Execute { term: term(2), ..execute(at(1, 1)) };
    assert_eq!(bench.hears(ToWorker::Execute(lower)), []);
    let other = Term { leader: Incarnation(999), ..term(3) };
    let usurper = Execute { term: other, ..execute(at(1, 1)) };
    assert_eq!(bench.hears(ToWorker::Execute(usurper)), []);
    let good = Execute { term: term(3), ..execute(at(1, 1)) };
    assert_eq!(started(&bench.run(good)), [at(1, 1)]);
}

#[test]
fn an_order_of_a_higher_epoch_raises_the_highest_on_the_disk() {
    let mut bench = Bench::connected(config());
    let ordered = bench.hears(ToWorker::Execute(Execute { term: term(2), ..execute(at(1, 1)) }));
    assert!(records(&ordered).contains(&Record::Highest(term(2))));
    assert_eq!(bench.agent.highest(), term(2));
    assert_eq!(bench.hears(ToWorker::Execute(execute(at(2, 1)))), []);
}

#[test]
fn an_end_of_what_does_not_run_changes_nothing() {
    let mut bench = Bench::finished(config(), at(1, 1));
    assert_eq!(bench.ends(at(1, 1), Verdict::Failed), []);
    assert_eq!(bench.ends(at(2, 1), Verdict::Failed), []);
    let ended = AgentEvent::Ended { at: at(1, 1), verdict: Verdict::Failed, report: Payload::NONE };
    assert_eq!(bench.event(ended), []);
    assert_eq!(bench.verdicts(), [Verdict::Succeeded]);
    assert_eq!(bench.agent.free_slots(), 1);
}
