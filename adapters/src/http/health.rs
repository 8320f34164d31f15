//! `/livez` asks nobody; `/readyz` says whether a submission would be taken.

use axum::extract::State;

use super::problem::{Kind, Problem};
use crate::driver::master::MasterHandle;

pub(super) async fn live() -> &'static str {
    "alive\n"
}

pub(super) async fn ready(State(master): State<MasterHandle>) -> Result<&'static str, Problem> {
    let status = master.status();
    if status.draining {
        return Err(Problem::new(Kind::Stopping, "this master is stopping; ask another one"));
    }
    if status.leads.is_none() {
        return Err(not_leader());
    }
    Ok("ready\n")
}

pub(super) fn not_leader() -> Problem {
    let detail = "this master does not lead (yet); ask again in a moment, or another master";
    Problem::new(Kind::NotLeader, detail)
}
