//! Sessions: hello, what counts in one, heartbeats.

use tenure_core::command::{AgentCommand, QuitReason, Record};
use tenure_core::error::Refused;
use tenure_core::event::{AgentEvent, Remembered};
use tenure_core::ids::{EffectId, Epoch, Incarnation, SessionId, Term};
use tenure_core::message::{Decline, Hello, HelloRefusal, StopReason, ToMaster, ToWorker};
use tenure_core::outcome::Verdict;
use tenure_core::time::Millis;

use crate::bench::*;

fn hello_in(commands: &[AgentCommand]) -> Hello {
    match &said(commands)[..] {
        [ToMaster::Hello(hello)] => hello.clone(),
        other => panic!("a hello and nothing else should be said: {other:?}"),
    }
}

#[test]
fn the_first_event_is_the_boot_and_it_comes_once() {
    let mut bench = Bench::cold(config());
    assert_eq!(bench.try_event(AgentEvent::Woke), Err(Refused::BootOrder));
    bench.event(AgentEvent::Booted(Remembered::default()));
    let again = AgentEvent::Booted(Remembered::default());
    assert_eq!(bench.try_event(again), Err(Refused::BootOrder));
}

#[test]
fn an_answer_to_nothing_or_of_the_wrong_kind_is_refused_and_changes_nothing() {
    let mut bench = Bench::cold(config());
    let dial = bench.event(AgentEvent::Booted(Remembered::default()));
    let (effect, _) = dialed(&dial).expect("it dials at once");
    let before = bench.agent.clone();
    let wrong = Err(Refused::WrongAnswer(effect));
    assert_eq!(bench.try_event(AgentEvent::Persisted(effect)), wrong);
    let unknown = EffectId(99);
    let none = Err(Refused::NotUnderWay(unknown));
    assert_eq!(bench.try_event(AgentEvent::PersistFailed(unknown)), none);
    assert_eq!(bench.try_event(AgentEvent::DialFailed(unknown)), none);
    assert_eq!(bench.agent, before);
    bench.answer_dial(&dial);
    let twice = AgentEvent::Dialed(effect, SessionId(9));
    assert_eq!(bench.try_event(twice), Err(Refused::NotUnderWay(effect)));
}

#[test]
fn the_hello_says_who_it_is_and_all_that_it_has() {
    let remembered = Remembered {
        highest: term(1),
        given: vec![at(5, 1)],
        outcomes: vec![outcome(at(4, 1), Verdict::Failed)],
    };
    let mut bench = Bench::cold(with_slots(3));
    let dial = bench.event(AgentEvent::Booted(remembered));
    let hello = hello_in(&bench.answer_dial(&dial));
    assert_eq!((hello.worker.0, hello.incarnation), (1, ME));
    assert_eq!((hello.capacity.slots, hello.draining), (3, false));
    assert_eq!(hello.highest, term(1));
    assert_eq!(hello.inventory, inventory(&[], &[at(4, 1)]));
}

#[test]
fn a_hello_ack_raises_the_highest_term_on_the_disk() {
    let (mut bench, acked) = Bench::booted(config(), Remembered::default());
    assert_eq!(records(&acked), [Record::Highest(term(1))]);
    assert!(bench.agent.is_established());
    let (_, acked) = bench.reconnect();
    assert_eq!(records(&acked), [], "the same term is known");
}

#[test]
fn a_term_that_cannot_be_written_is_written_again_with_the_next_beat() {
    let (mut bench, acked) = Bench::booted(config(), Remembered::default());
    bench.fail_write(&acked);
    assert_eq!(records(&bench.wait(TIMES.heartbeat)), [Record::Highest(term(1))]);
    assert_eq!(records(&bench.wait(TIMES.heartbeat)), []);
}

#[test]
fn a_master_of_a_lower_epoch_or_a_second_one_of_the_same_is_left_for_the_next() {
    let usurper = Term { leader: Incarnation(999), ..term(3) };
    for stale in [term(2), usurper] {
        let mut bench = Bench::cold(config());
        let remembered = Remembered { highest: term(3), ..Remembered::default() };
        let dial = bench.event(AgentEvent::Booted(remembered));
        bench.answer_dial(&dial);
        let acked = bench.hears(ToWorker::HelloAck(stale));
        assert!(hangs_up(&acked, bench.session()));
        assert!(!bench.agent.is_established());
        assert_eq!(bench.agent.highest(), term(3));
        let dial = if dialed(&acked).is_some() { acked } else { bench.wake() };
        assert_eq!(dialed(&dial).map(|(_, master)| master), Some(1));
    }
}

#[test]
fn an_order_that_did_not_start_ends_with_its_session_and_is_not_in_the_next_hello() {
    let mut bench = Bench::running(with_slots(2), &[at(1, 1)]);
    let ordered = bench.hears(ToWorker::Execute(execute(at(2, 1))));
    let (hello, _) = bench.reconnect();
    assert_eq!(hello_in(&hello).inventory, inventory(&[at(1, 1)], &[]));
    assert_eq!(bench.write(&ordered), [], "its record alone is left");
    assert_eq!(bench.runs(), [at(1, 1)]);
    assert_eq!(bench.agent.free_slots(), 1);
    let again = bench.hears(ToWorker::Execute(execute(at(2, 1))));
    assert_eq!(said(&again), [ToMaster::Declined(at(2, 1), Decline::OldAttempt)]);
}

#[test]
fn nothing_of_an_ended_session_counts() {
    let mut bench = Bench::running(with_slots(2), &[at(1, 1)]);
    let old = bench.session();
    bench.reconnect();
    let stop = ToWorker::Stop { at: at(1, 1), epoch: Epoch(1), reason: StopReason::Cancelled };
    for message in [
        ToWorker::Execute(execute(at(2, 1))),
        stop,
        ToWorker::NotLeader(Epoch(1)),
        ToWorker::HelloRefused(HelloRefusal::Replaced),
        ToWorker::HelloAck(term(2)),
        ToWorker::Drain,
        ToWorker::Ping,
    ] {
        assert_eq!(bench.event(AgentEvent::Received(old, message)), []);
    }
    assert_eq!(bench.event(AgentEvent::Closed(old)), []);
    assert!(bench.agent.is_established() && !bench.agent.is_draining());
    assert_eq!(bench.agent.highest(), term(1));
}

#[test]
fn no_order_counts_before_the_session_is_acknowledged() {
    let mut bench = Bench::cold(config());
    let dial = bench.event(AgentEvent::Booted(Remembered::default()));
    bench.answer_dial(&dial);
    assert_eq!(bench.hears(ToWorker::Execute(execute(at(1, 1)))), []);
}

#[test]
fn a_heartbeat_is_said_every_interval_with_the_whole_inventory() {
    let mut bench = Bench::running(with_slots(2), &[at(1, 1), at(2, 1)]);
    let ended = bench.ends(at(1, 1), Verdict::Succeeded);
    bench.write(&ended);
    let listed = ToMaster::Heartbeat(inventory(&[at(2, 1)], &[at(1, 1)]));
    for _ in 0..3 {
        assert_eq!(bench.wait(Millis(TIMES.heartbeat.0 - 1)), []);
        assert_eq!(said(&bench.wait(Millis(1))), std::slice::from_ref(&listed));
    }
}

#[test]
fn after_a_pause_one_heartbeat_is_said_and_not_all_that_were_missed() {
    let mut bench = Bench::connected(config());
    assert_eq!(said(&bench.wait(Millis(2_700))).len(), 1);
    assert_eq!(bench.wait(Millis(TIMES.heartbeat.0 - 1)), []);
}

#[test]
fn a_ping_is_answered_with_a_heartbeat_at_once() {
    let mut bench = Bench::running(config(), &[at(1, 1)]);
    let beat = bench.hears(ToWorker::Ping);
    assert_eq!(said(&beat), [ToMaster::Heartbeat(inventory(&[at(1, 1)], &[]))]);
}

#[test]
fn a_refused_hello_ends_the_agent() {
    for (why, reason) in [
        (HelloRefusal::NameInUse, QuitReason::NameInUse),
        (HelloRefusal::Replaced, QuitReason::Replaced),
    ] {
        let mut bench = Bench::cold(config());
        let dial = bench.event(AgentEvent::Booted(Remembered::default()));
        bench.answer_dial(&dial);
        let refused = bench.hears(ToWorker::HelloRefused(why));
        assert_eq!(refused, [AgentCommand::Quit(reason)]);
        assert_eq!(bench.agent.next_deadline(), None, "it does not come again");
        assert_eq!(bench.event(AgentEvent::DrainAsked { hand_back: true }), []);
    }
}
