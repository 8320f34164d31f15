//! `tenure dev`: a master, a worker and the API in one process.

use clap::Args;
use tenure_adapters::driver::worker::WorkerHandle;

use super::Context;
use super::interrupt::{self, Signals};
use super::node::{self, Least, Master, Ready, WorkerPlan};
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};
use crate::settings::{Sources, keys};

/// Options of `dev`.
#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    /// Address of the API; port 0: any free one
    #[arg(long, value_name = "ADDRESS")]
    http: Option<String>,
    /// Address that further workers connect to; port 0: any free one
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Tasks that its worker runs at a time [default: one per CPU]
    #[arg(long, value_name = "N")]
    slots: Option<String>,
    /// Name of its worker [default: the host's name]
    #[arg(long)]
    name: Option<String>,
    /// Allow other addresses than 127.0.0.1 although nobody is asked who they are
    #[arg(long)]
    insecure_no_auth: bool,
    /// End when stdin ends
    #[arg(long, hide = true)]
    end_with_stdin: bool,
}

impl DevArgs {
    /// The settings that these flags are.
    pub(crate) fn add_flags(&self, sources: &mut Sources) {
        sources.flag(keys::HTTP, "--http", self.http.clone());
        sources.flag(keys::LISTEN, "--listen", self.listen.clone());
        sources.flag(keys::SLOTS, "--slots", self.slots.clone());
        sources.flag(keys::NAME, "--name", self.name.clone());
        let insecure = self.insecure_no_auth.then(|| "true".to_owned());
        sources.flag(keys::INSECURE, "--insecure-no-auth", insecure);
    }
}

/// Serves until a signal.
pub(crate) fn run(args: &DevArgs, context: &Context) -> Result<Exit, Failure> {
    node::start_logging("warn");
    let settings = &context.settings;
    if args.end_with_stdin {
        interrupt::end_with_stdin();
    }
    node::runtime()?.block_on(async {
        let mut signals = Signals::listen()?;
        let master = Master::start(settings, node::master_dir(settings)).await?;
        let name = settings.text(keys::NAME);
        let plan = WorkerPlan {
            dir: node::worker_dir(settings, &name),
            name,
            masters: vec![master.address().to_string()],
            checkpoint_dir: node::checkpoint_dir(settings),
            least: Least::default(),
        };
        let worker = node::start_worker(settings, plan).await?;
        announce(context, &master);
        tokio::select! {
            end = worker.closed() => return node::end_of_worker(end),
            () = master.closed() => {
                return Err(Failure::unavailable("this master ended by itself; see its log"));
            }
            _ = signals.next() => {}
        }
        output::note("ending: what runs is given back, and runs again at the next start (a second signal ends at once)");
        tokio::select! {
            () = end(&worker, master) => Ok(Exit::Done),
            signal = signals.next() => Ok(Exit::Task(signal.code())),
        }
    })
}

/// Given back by its worker, an attempt counts against nothing.
async fn end(worker: &WorkerHandle, master: Master) {
    worker.drain().await;
    worker.drain().await;
    worker.closed().await;
    master.stop().await;
}

fn announce(context: &Context, master: &Master) {
    let data_dir = context.settings.data_dir();
    let server = format!("http://{}", master.http());
    if context.format == Format::Json {
        output::json_line(&Ready {
            server: Some(server),
            worker_address: Some(master.address().to_string()),
            data_dir: &data_dir,
            pid: std::process::id(),
        });
        return;
    }
    let usual = server == keys::SERVER.default;
    let flag = if usual { String::new() } else { format!(" --server {server}") };
    output::note(&format!("API      {server}"));
    output::note(&format!("workers  {}", master.address()));
    output::note(&format!("data     {}", data_dir.display()));
    output::note(&format!(
        "next     tenure submit{flag} -- echo hello   (in another terminal; Ctrl-C ends this one)"
    ));
}
