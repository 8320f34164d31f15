//! Finding a master.

use tenure_core::agent::AgentConfig;
use tenure_core::event::{AgentEvent, Remembered};
use tenure_core::ids::{Epoch, SessionId};
use tenure_core::message::ToWorker;
use tenure_core::policy::{Jitter, Policy, Settings};
use tenure_core::random::doubled;
use tenure_core::time::{Millis, Time};

use crate::bench::*;

/// Delays that are spread by a quarter at most, so that they never come out as zero.
fn steady(masters: usize) -> AgentConfig {
    let settings = Settings { jitter: Jitter::Quarter, ..TIMES };
    let policy = Policy::new(settings).expect("the default is safe with any jitter");
    AgentConfig { policy, masters, ..config() }
}

fn fail(bench: &mut Bench, dial: &Commands) {
    let (effect, _) = dialed(dial).expect("a master was dialed");
    assert_eq!(bench.event(AgentEvent::DialFailed(effect)), []);
}

fn master(dial: &Commands) -> usize {
    dialed(dial).expect("a master was dialed").1
}

/// How long it waits before it dials again.
fn delay(bench: &Bench) -> u64 {
    bench.agent.next_deadline().expect("it dials again").since(bench.now).0
}

fn assert_delay(bench: &Bench, failures: u32) {
    let base = doubled(TIMES.reconnect_min, failures, TIMES.reconnect_max).0;
    let (least, most) = (base - base / 4, base + base / 4);
    let delay = delay(bench);
    assert!((least..=most).contains(&delay), "{delay} ms after {failures} failures");
}

#[test]
fn the_first_dial_comes_at_once_and_goes_to_the_first_master() {
    let mut bench = Bench::cold(config());
    let dial = bench.event(AgentEvent::Booted(Remembered::default()));
    assert_eq!(master(&dial), 0);
}

#[test]
fn each_failed_dial_doubles_the_delay_up_to_the_longest() {
    let mut bench = Bench::cold(steady(1));
    let mut dial = bench.event(AgentEvent::Booted(Remembered::default()));
    for failures in 0..12 {
        fail(&mut bench, &dial);
        assert_delay(&bench, failures);
        dial = bench.wake();
    }
}

#[test]
fn only_an_acknowledged_hello_takes_the_delay_back_to_its_shortest() {
    let mut bench = Bench::cold(steady(1));
    let mut dial = bench.event(AgentEvent::Booted(Remembered::default()));
    for failures in 0..3 {
        bench.answer_dial(&dial);
        bench.event(AgentEvent::Closed(bench.session()));
        assert_delay(&bench, failures);
        dial = bench.wake();
    }
    bench.answer_dial(&dial);
    bench.hears(ToWorker::HelloAck(term(1)));
    bench.event(AgentEvent::Closed(bench.session()));
    assert_delay(&bench, 0);
}

#[test]
fn masters_are_tried_in_turn() {
    let mut bench = Bench::cold(steady(3));
    let mut dial = bench.event(AgentEvent::Booted(Remembered::default()));
    for expected in [0, 1, 2, 0, 1] {
        assert_eq!(master(&dial), expected);
        fail(&mut bench, &dial);
        dial = bench.wake();
    }
}

#[test]
fn the_last_good_master_is_tried_first() {
    let mut bench = Bench::cold(steady(3));
    let dial = bench.event(AgentEvent::Booted(Remembered::default()));
    fail(&mut bench, &dial);
    let dial = bench.wake();
    bench.answer_dial(&dial);
    bench.hears(ToWorker::HelloAck(term(1)));
    bench.event(AgentEvent::Closed(bench.session()));
    let dial = bench.wake();
    assert_eq!(master(&dial), 1);
    fail(&mut bench, &dial);
    assert_eq!(master(&bench.wake()), 2);
}

#[test]
fn a_master_that_does_not_lead_is_left_for_the_next() {
    let mut bench = Bench::cold(steady(2));
    let dial = bench.event(AgentEvent::Booted(Remembered::default()));
    bench.answer_dial(&dial);
    let told = bench.hears(ToWorker::NotLeader(Epoch(4)));
    assert!(hangs_up(&told, bench.session()));
    assert_eq!(master(&bench.wake()), 1);
}

#[test]
fn a_master_that_steps_down_is_left_for_the_next() {
    let mut bench = Bench::connected(steady(2));
    let told = bench.hears(ToWorker::NotLeader(Epoch(4)));
    assert!(hangs_up(&told, bench.session()));
    assert_eq!(master(&bench.wake()), 1);
}

#[test]
fn a_dial_without_answer_is_given_up_and_its_late_connection_ended() {
    let mut bench = Bench::cold(steady(2));
    let first = bench.event(AgentEvent::Booted(Remembered::default()));
    assert_eq!(bench.agent.next_deadline(), Some(bench.now + TIMES.heartbeat_ttl));
    assert_eq!(bench.wait(TIMES.heartbeat_ttl), [], "it waits before the next");
    let second = bench.wake();
    assert_eq!(master(&second), 1);
    let (effect, _) = dialed(&first).expect("the first dial");
    let late = bench.event(AgentEvent::Dialed(effect, SessionId(77)));
    assert_eq!(late, [tenure_core::command::AgentCommand::Hangup(SessionId(77))]);
    assert_eq!(bench.agent.session(), None, "one connection at a time");
    bench.answer_dial(&second);
    assert_eq!(bench.agent.session(), Some(bench.session()));
}

#[test]
fn a_hello_without_answer_is_given_up() {
    let mut bench = Bench::cold(steady(2));
    let dial = bench.event(AgentEvent::Booted(Remembered::default()));
    bench.answer_dial(&dial);
    assert_eq!(bench.wait(Millis(TIMES.heartbeat_ttl.0 - 1)), []);
    assert!(hangs_up(&bench.wait(Millis(1)), bench.session()));
    assert_eq!(master(&bench.wake()), 1);
}

#[test]
fn a_master_that_falls_silent_is_left() {
    let mut bench = Bench::connected(steady(2));
    let start = bench.now;
    let mut commands = Vec::new();
    while bench.agent.is_established() {
        commands = bench.wake();
    }
    assert_eq!(bench.now, start + TIMES.heartbeat_ttl);
    assert!(hangs_up(&commands, bench.session()));
}

#[test]
fn a_master_that_is_heard_of_is_kept() {
    let mut bench = Bench::connected(steady(2));
    bench.live(TIMES.heartbeat_ttl.times(3));
    assert!(bench.agent.is_established());
}

#[test]
fn what_was_said_before_a_long_pause_ended_still_counts() {
    let mut bench = Bench::connected(steady(2));
    // The whole process was paused: the answer had come long before the deadline was looked at.
    bench.now = bench.now + TIMES.heartbeat_ttl.times(2);
    bench.hears(ToWorker::HeartbeatAck(Epoch(1)));
    assert!(bench.agent.is_established());
}

#[test]
fn workers_of_another_seed_come_back_at_another_time() {
    let came_back = |seed| {
        let mut bench = Bench::connected(AgentConfig { seed, ..steady(1) });
        bench.event(AgentEvent::Closed(bench.session()));
        bench.agent.next_deadline()
    };
    let times: std::collections::BTreeSet<Option<Time>> = (0..20).map(came_back).collect();
    assert!(times.len() > 5, "{times:?}");
    assert_eq!(came_back(4), came_back(4));
}
