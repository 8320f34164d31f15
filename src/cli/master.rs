//! `tenure master`: decides, keeps the tasks, serves the API.

use clap::Args;

use super::Context;
use super::interrupt::{self, Signals};
use super::node::{self, Master, Ready};
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};
use crate::settings::{Sources, keys};

/// Options of `master`.
#[derive(Debug, Args)]
pub(crate) struct MasterArgs {
    /// Address of the API; port 0: any free one
    #[arg(long, value_name = "ADDRESS")]
    http: Option<String>,
    /// Address that workers connect to; port 0: any free one
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Allow other addresses than 127.0.0.1 although nobody is asked who they are
    #[arg(long)]
    insecure_no_auth: bool,
    /// End when stdin ends
    #[arg(long, hide = true)]
    end_with_stdin: bool,
}

impl MasterArgs {
    /// The settings that these flags are.
    pub(crate) fn add_flags(&self, sources: &mut Sources) {
        sources.flag(keys::HTTP, "--http", self.http.clone());
        sources.flag(keys::LISTEN, "--listen", self.listen.clone());
        let insecure = self.insecure_no_auth.then(|| "true".to_owned());
        sources.flag(keys::INSECURE, "--insecure-no-auth", insecure);
    }
}

/// Serves until a signal: the first hands over, a second ends at once.
pub(crate) fn run(args: &MasterArgs, context: &Context) -> Result<Exit, Failure> {
    node::start_logging("info");
    if args.end_with_stdin {
        interrupt::end_with_stdin();
    }
    node::runtime()?.block_on(async {
        let mut signals = Signals::listen()?;
        let dir = node::master_dir(&context.settings);
        let master = Master::start(&context.settings, dir.clone()).await?;
        let ready = Ready {
            server: Some(format!("http://{}", master.http())),
            worker_address: Some(master.address().to_string()),
            data_dir: &dir,
            pid: std::process::id(),
        };
        match context.format {
            Format::Json => output::json_line(&ready),
            Format::Table => {
                output::note(&format!("API      http://{}", master.http()));
                output::note(&format!("workers  {}", master.address()));
                output::note(&format!("data     {}", dir.display()));
                output::note(&format!("next     tenure worker --masters {}", master.address()));
            }
        }
        tokio::select! {
            _ = signals.next() => {}
            () = master.closed() => {
                return Err(Failure::unavailable("this master ended by itself; see its log"));
            }
        }
        tokio::select! {
            () = master.stop() => Ok(Exit::Done),
            signal = signals.next() => Ok(Exit::Task(signal.code())),
        }
    })
}
