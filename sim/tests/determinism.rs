//! The same options give the same histories: twice in one process, and for any number of threads.

use tenure_sim::{ExploreOptions, ScenarioName, SwarmOptions, explore, swarm};

fn fingerprint(scenario: ScenarioName, jobs: usize, seed: u64) -> (u64, u64, String) {
    let options = ExploreOptions { scenario, jobs, seed, faults: 1, ..ExploreOptions::default() };
    let report = explore(&options);
    assert!(report.complete, "{}", report.text(false));
    (report.histories, report.events, report.trace_hash)
}

#[test]
fn two_runs_of_one_seed_are_the_same() {
    for scenario in ScenarioName::ALL {
        assert_eq!(fingerprint(*scenario, 1, 1), fingerprint(*scenario, 1, 1));
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    for scenario in ScenarioName::ALL {
        let alone = fingerprint(*scenario, 1, 1);
        for jobs in 2..=3 {
            assert_eq!(alone, fingerprint(*scenario, jobs, 1));
        }
    }
}

#[test]
fn another_seed_is_another_run() {
    let one = fingerprint(ScenarioName::Dispatch, 1, 1);
    let other = fingerprint(ScenarioName::Dispatch, 1, 2);
    assert_ne!(one.2, other.2);
}

#[test]
fn a_swarm_is_the_same_for_any_number_of_threads() {
    let run = |jobs| {
        let report = swarm(&SwarmOptions { seeds: 200, jobs, ..SwarmOptions::default() });
        assert!(report.complete, "{}", report.text(false));
        (report.histories, report.events, report.trace_hash)
    };
    assert_eq!(run(1), run(1));
    assert_eq!(run(1), run(2));
}
