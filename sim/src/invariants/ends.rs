//! Property 7: Every task reaches an end within the bound computed from the configuration, once faults stop and a
//! fitting worker is up.

use tenure_core::time::{Millis, Time};

use super::Checked;
use crate::scenario::Scenario;

/// The longest that a world may take from the moment when the last fault is healed until everything is
/// over, from its policy alone. The slow reconcile is not in it: it must not be needed.
///
/// The terms, in the order in which the worst case meets them:
/// - a leader: the old lease runs out (`leader_ttl`), the follower looks (`leader_renew`, and a tenth of
///   it apart), twice, because a take that is not answered is settled by looking again;
/// - the workers come back: a silent session is noticed (`heartbeat_ttl`), the longest reconnect delay for
///   each master of the list, and one ping for the name (`ping_timeout`);
/// - a running task whose worker does not come is given up: `adopt_max`, or `patience` where it is longer;
/// - an order to run that is never answered: `accept_timeout` for each try;
/// - an outcome that is not acknowledged: `result_timeout`, twice;
/// - a decline: `decline_pause`;
/// - the client asks again: its longest pause and timeout, for each master;
/// - each attempt that the plan makes fail: its run and its longest retry delay;
/// - and every task runs once more, one after the other, if there is one slot left.
#[must_use]
pub fn bound(scenario: &Scenario) -> Millis {
    let s = scenario.policy.settings();
    let masters = scenario.masters as u64;
    let leader = 2 * (s.leader_ttl.0 + s.leader_renew.0 + s.leader_renew.0 / 10);
    let back = s.heartbeat_ttl.0 + s.reconnect_max.0 * (masters + 1) + s.ping_timeout.0;
    let patience = scenario.tasks.iter().filter_map(|task| task.submission.limits.patience).max();
    let given_up = s.adopt_max.0.max(patience.unwrap_or_default().0);
    let unanswered = s.accept_timeout.0 * u64::from(s.accept_tries);
    let told = 2 * s.result_timeout.0;
    let client = masters * (crate::world::client::TIMEOUT + crate::world::client::PAUSE_MOST);
    let runs: u64 = scenario.tasks.iter().map(|task| task_bound(task, s.retry_min.0)).sum();
    Millis(leader + back + given_up + unanswered + told + s.decline_pause.0 + client + runs)
}

fn task_bound(task: &crate::scenario::TaskPlan, retry_min: u64) -> u64 {
    let tries = task.verdicts.len() as u64;
    let retries: u64 = (0..tries).map(|failed| retry_min << failed.min(16)).sum();
    (tries + 1) * (task.runs_for.0 + 100) + retries
}

/// Whether everything may still be under way.
pub fn check(now: Time, healed: Time, bound: Millis) -> Checked {
    if now.since(healed) > bound {
        Err("not everything is over within the bound after the last fault was healed")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::ScenarioName;

    #[test]
    fn a_task_that_does_not_end_is_seen() {
        assert_eq!(check(Time(1_000), Time(0), Millis(1_000)), Ok(()));
        assert!(check(Time(1_001), Time(0), Millis(1_000)).is_err());
    }

    #[test]
    fn the_bound_is_shorter_than_the_interval_of_the_reconcile() {
        for name in ScenarioName::ALL {
            let scenario = Scenario::named(*name);
            assert!(bound(&scenario) < scenario.policy.settings().reconcile);
        }
    }
}
