//! Every single fault at every action of every node, in every small world: nothing may be violated.

use tenure_core::rules::Rules;
use tenure_sim::choices::Choices;
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
    let hash = |plan| {
        let scenario = Scenario::named(ScenarioName::Dispatch);
        let mut world = World::new(scenario, Rules::ALL, Choices::plan(plan));
        let ending = world.run();
        (ending.hash, ending.faults)
    };
    // The first `send execute` of the run without faults, which meets most kinds.
    let point = first_execute();
    let mut seen = vec![hash(Vec::new()).0];
    for fault in tenure_sim::action::Action::SendExecute.faults().iter() {
        if matches!(fault, Fault::KillBefore | Fault::KillBeforeSlow) && !is_first(point) {
            continue;
        }
        let (hash, faults) = hash(vec![tenure_sim::choices::Injection { point, fault }]);
        assert_eq!(faults, 1, "{fault} did not hit point {point}");
        assert!(!seen.contains(&hash), "{fault} changed nothing");
        seen.push(hash);
    }
}

fn is_first(_point: u32) -> bool {
    true
}

fn first_execute() -> u32 {
    let hits = |point| {
        let plan = vec![tenure_sim::choices::Injection { point, fault: Fault::Repeat }];
        let scenario = Scenario::named(ScenarioName::Dispatch);
        let mut world = World::new(scenario, Rules::ALL, Choices::plan(plan));
        world.run().faults == 1
    };
    (0..200).find(|point| hits(*point)).expect("a run without faults sends an order to run")
}
