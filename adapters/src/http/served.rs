//! The master behind the API, which may still be starting.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tokio::sync::watch;
use tokio::time::timeout;

use super::health::not_leader;
use super::problem::Problem;
use crate::driver::master::MasterHandle;

/// A start after a crash takes less; so who asks meanwhile need not ask again.
const START_LIMIT: Duration = Duration::from_secs(1);

/// A master, once there is one.
pub type Served = watch::Receiver<Option<MasterHandle>>;

/// The master of a request: there is one by then.
pub(super) struct Master(pub(super) MasterHandle);

impl FromRequestParts<Served> for Master {
    type Rejection = Problem;

    async fn from_request_parts(_: &mut Parts, served: &Served) -> Result<Master, Problem> {
        let mut served = served.clone();
        let started = timeout(START_LIMIT, served.wait_for(Option::is_some)).await;
        let master = started.ok().and_then(Result::ok).and_then(|master| master.clone());
        master.map(Master).ok_or_else(not_leader)
    }
}
