//! `tenure leader`: who leads.

use super::Context;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// Says it.
pub(crate) fn run(context: &Context) -> Result<Exit, Failure> {
    let client = Client::of(&context.settings)?;
    let leader = client.leader()?;
    match context.format {
        Format::Json => output::json(&leader),
        Format::Table => {
            let leads = if leader.leads { "yes" } else { "no" };
            let row = vec![
                client.base().to_owned(),
                leads.to_owned(),
                leader.epoch.unwrap_or_default(),
                leader.worker_address,
            ];
            output::table(&["MASTER", "LEADS", "EPOCH", "WORKERS CONNECT TO"], &[row]);
        }
    }
    Ok(Exit::Done)
}
