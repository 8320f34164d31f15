//! Every single fault at every action of every node, in every small world: nothing may be violated.

use tenure_core::rules::Rules;
use tenure_sim::action::Action;
use tenure_sim::choices::{Choices, Injection};
use tenure_sim::faults::Fault;
use tenure_sim::scenario::Scenario;
use tenure_sim::world::World;
use tenure_sim::{ExploreOptions, Outcome, Report, ScenarioName, explore};

fn one_fault(scenario: ScenarioName) -> Report {
    explore(&ExploreOptions { scenario, faults: 1, jobs: 2, ..ExploreOptions::default() })
}

fn assert_holds(scenario: ScenarioName) {
    let report = one_fault(scenario);
    assert_eq!(report.outcome, Outcome::Clean, "{}", report.text(false));
    assert!(report.complete && report.histories > 100, "{}", report.text(false));
    // One history has no fault, each other exactly one: none was planned that did not hit.
    assert_eq!(report.injected, report.histories - 1, "{}", report.text(false));
    assert_eq!(report.empty_cells, Vec::<String>::new(), "{}", report.text(true));
}

#[test]
fn one_fault_anywhere_does_no_harm_to_dispatch() {
    assert_holds(ScenarioName::Dispatch);
}

#[test]
fn one_fault_anywhere_does_no_harm_to_a_cancel() {
    assert_holds(ScenarioName::Cancel);
}

#[test]
fn one_fault_anywhere_does_no_harm_to_a_retry() {
    assert_holds(ScenarioName::Retry);
}

#[test]
fn one_fault_anywhere_does_no_harm_to_a_worker_with_two_slots() {
    assert_holds(ScenarioName::Slots);
}

#[test]
fn one_fault_anywhere_does_no_harm_to_a_queue() {
    assert_holds(ScenarioName::Queue);
}

#[test]
fn one_fault_anywhere_does_no_harm_to_a_patient_task() {
    assert_holds(ScenarioName::Patience);
}

#[test]
fn one_fault_anywhere_does_no_harm_to_failures() {
    assert_holds(ScenarioName::Failure);
}

/// A pause, a silence and a kill are three different things: each must leave another history behind.
#[test]
fn each_kind_of_fault_makes_a_history_of_its_own() {
    let point = first_order_to_run();
    let mut seen = vec![run(Vec::new()).0];
    for fault in Action::SendExecute.faults().iter() {
        let (hash, faults) = run(vec![Injection { point, fault }]);
        assert_eq!(faults, 1, "{fault} did not hit point {point}");
        assert!(!seen.contains(&hash), "{fault} changed nothing");
        seen.push(hash);
    }
}

fn run(plan: Vec<Injection>) -> (u64, u32) {
    let scenario = Scenario::named(ScenarioName::Dispatch);
    let ending = World::new(scenario, Rules::ALL, Choices::plan(plan)).run();
    (ending.hash, ending.faults)
}

/// Only an order to run can be repeated, so that is where the first one is.
fn first_order_to_run() -> u32 {
    let repeats = |point: &u32| run(vec![Injection { point: *point, fault: Fault::Repeat }]).1 == 1;
    (0..200).find(repeats).expect("a run without faults sends an order to run")
}
