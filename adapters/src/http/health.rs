//! `/livez` asks nobody; `/readyz` says whether a submission would be taken.

use axum::extract::State;

use super::problem::{Kind, Problem};
use super::served::Served;
use crate::driver::master::MasterHandle;

pub(super) async fn live() -> &'static str {
    "alive\n"
}

pub(super) async fn ready(State(served): State<Served>) -> Result<&'static str, Problem> {
    let master = served.borrow().clone().ok_or_else(not_leader)?;
    let status = master.status();
    if status.draining {
        return Err(Problem::new(Kind::Stopping, "this master is stopping; ask another one"));
    }
    if status.leads.is_none() {
        return Err(not_leader());
    }
    if !status.store_works {
        return Err(store_failed(&master));
    }
    Ok("ready\n")
}

/// The store did not take the last order; says why, as far as it knows.
pub(super) fn store_failed(master: &MasterHandle) -> Problem {
    let why = master.store().trouble();
    let why = why.as_deref().unwrap_or("see the master's log");
    Problem::new(
        Kind::StoreFailed,
        format!("the store did not take it, nothing was changed: {why}"),
    )
}

pub(super) fn not_leader() -> Problem {
    let detail = "this master does not lead (yet); ask again in a moment, or another master";
    Problem::new(Kind::NotLeader, detail)
}
