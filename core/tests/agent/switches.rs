//! Each rule of the agent that the bug bank takes out really is out then.

use tenure_core::agent::AgentConfig;
use tenure_core::event::AgentEvent;
use tenure_core::message::{Execute, ToMaster, ToWorker};
use tenure_core::outcome::Verdict;
use tenure_core::rules::{Rule, Rules};

use crate::bench::*;

fn without(rule: Rule) -> AgentConfig {
    AgentConfig { rules: Rules::without(rule), ..with_slots(2) }
}

#[test]
fn without_start_persisted_an_attempt_starts_before_its_record() {
    let mut bench = Bench::connected(without(Rule::StartPersisted));
    let ordered = bench.hears(ToWorker::Execute(execute(at(1, 1))));
    assert_eq!(started(&ordered), [at(1, 1)]);
    assert_eq!(bench.write(&ordered), [], "and only once");
}

#[test]
fn without_outcome_persisted_an_outcome_is_told_before_its_record() {
    let mut bench = Bench::running(without(Rule::OutcomePersisted), &[at(1, 1)]);
    let ended = bench.ends(at(1, 1), Verdict::Failed);
    assert_eq!(said(&ended), [ToMaster::Finished(outcome(at(1, 1), Verdict::Failed))]);
    assert_eq!(bench.write(&ended), []);
}

#[test]
fn without_outcome_kept_an_outcome_is_told_once_at_most() {
    let bench = Bench::finished(without(Rule::OutcomeKept), at(1, 1));
    assert_eq!(bench.verdicts(), []);
    let mut bench = Bench::running(without(Rule::OutcomeKept), &[at(1, 1)]);
    bench.event(AgentEvent::Closed(bench.session()));
    let ended = bench.ends(at(1, 1), Verdict::Failed);
    bench.write(&ended);
    assert_eq!(bench.verdicts(), []);
}

#[test]
fn without_never_started_again_a_late_copy_starts() {
    let mut bench = Bench::finished(without(Rule::NeverStartedAgain), at(1, 1));
    bench.hears(ack(at(1, 1), 1));
    assert_eq!(started(&bench.run(execute(at(1, 1)))), [at(1, 1)]);
}

#[test]
fn without_session_fenced_an_order_of_an_ended_session_starts() {
    let mut bench = Bench::connected(without(Rule::SessionFenced));
    let ordered = bench.hears(ToWorker::Execute(execute(at(1, 1))));
    let old = bench.session();
    bench.reconnect();
    assert_eq!(started(&bench.write(&ordered)), [at(1, 1)]);
    let late = bench.event(AgentEvent::Received(old, ToWorker::Execute(execute(at(2, 1)))));
    assert_eq!(started(&bench.write(&late)), [at(2, 1)]);
}

#[test]
fn without_highest_epoch_a_deposed_leader_is_obeyed() {
    let mut bench = Bench::connected(without(Rule::HighestEpoch));
    bench.run(Execute { term: term(2), ..execute(at(1, 1)) });
    assert_eq!(started(&bench.run(execute(at(2, 1)))), [at(2, 1)]);
    assert_eq!(bench.agent.highest(), term(2));
}
