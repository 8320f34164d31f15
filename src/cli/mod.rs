//! The command line: what is common to all commands, and the way to each.

mod bench;
mod cancel;
mod config;
mod describe;
mod dev;
mod interrupt;
mod leader;
mod logs;
mod master;
mod node;
mod ps;
mod retry;
mod run;
mod show;
mod sim;
mod submit;
mod task_args;
mod wait;
mod worker;
mod workers;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::exit::{self, Exit, Failure};
use crate::output::{self, Format};
use crate::settings::{Settings, Sources, keys};

/// Runs commands on workers; loses no task and commits none twice, whatever is killed.
#[derive(Debug, Parser)]
#[command(name = "tenure", version, after_long_help = exit::HELP, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// Options of every command. Each has a setting; `tenure config show` lists them with their origins.
#[derive(Debug, Args)]
struct Common {
    /// Master to talk to, as http://host:port
    #[arg(long, global = true, value_name = "URL", help_heading = "Common options")]
    server: Option<String>,
    /// How data is printed
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        default_value_t,
        help_heading = "Common options"
    )]
    output: Format,
    /// Where everything is kept
    #[arg(long, global = true, value_name = "DIR", help_heading = "Common options")]
    data_dir: Option<String>,
    /// Settings file [default: ./tenure.toml, then ~/.config/tenure/tenure.toml]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Common options")]
    config: Option<PathBuf>,
    /// Preset of timings: default or documented (the values of the source systems)
    #[arg(long, global = true, value_name = "PRESET", help_heading = "Common options")]
    timings: Option<String>,
    /// One timing over the preset, as heartbeat=500ms; may be repeated
    #[arg(long, global = true, value_name = "NAME=VALUE", help_heading = "Common options")]
    timing: Vec<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one command to its end, here or on a server, and end with its exit code
    ///
    /// Without a server (--server, TENURE_SERVER or tenure.toml) a master and a worker live in this process
    /// for this one task. A failure ends it; --retries tries again. Ctrl-C cancels it; on a server's task it
    /// only stops looking. A run that was killed is kept below the data directory: --resume goes on with it.
    /// Exit codes: the task's own; 124 timeout, 125 Tenure itself failed, 127 no such program, 128+n signal n,
    /// 130 Ctrl-C.
    Run(run::RunArgs),
    /// Start a master, a worker and the API in one process, to try things out
    ///
    /// All is kept in the data directory. What runs when it ends is run again at its next start.
    Dev(dev::DevArgs),
    /// Start a master: it decides, keeps the tasks, and serves the API
    Master(master::MasterArgs),
    /// Start a worker: it runs commands
    Worker(worker::WorkerArgs),
    /// Hand in a task and print its id
    Submit(submit::SubmitArgs),
    /// List tasks, newest first
    Ps(ps::PsArgs),
    /// Show a task with its attempts and its story
    Show(show::ShowArgs),
    /// Print a task's log
    Logs(logs::LogsArgs),
    /// Wait until tasks are over
    Wait(wait::WaitArgs),
    /// Cancel a task: TERM, then KILL, for everything it started
    Cancel(cancel::CancelArgs),
    /// Hand in the same task once more
    ///
    /// What is over stays over, so this makes a new task of the same description and prints its id.
    Retry(retry::RetryArgs),
    /// List the connected workers
    Workers,
    /// Say whether a master leads, and under which epoch
    Leader,
    /// Look at settings
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Kill real processes and measure how soon their work goes on
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    /// Explore crashes, pauses and lost messages in simulation
    Sim(sim::SimArgs),
    /// Holds the processes of tasks; started by workers
    #[command(hide = true)]
    Guardian,
    /// What `bench` runs as its tasks
    #[command(hide = true)]
    BenchTask(bench::task::TaskArgs),
}

/// What a command gets beside its own options.
pub(crate) struct Context {
    /// All settings.
    pub(crate) settings: Settings,
    /// How data is printed.
    pub(crate) format: Format,
}

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    let is_run = matches!(cli.command, Command::Run(_));
    match dispatch(cli) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output::note(&format!("error: {failure}"));
            let own = is_run && failure.exit != Exit::Usage;
            if own { Exit::Own.into() } else { failure.exit.into() }
        }
    }
}

fn dispatch(cli: Cli) -> Result<Exit, Failure> {
    let mut sources = Sources::of_process(cli.common.config.as_deref())?;
    sources.flag(keys::SERVER, "--server", cli.common.server);
    sources.flag(keys::DATA_DIR, "--data-dir", cli.common.data_dir);
    sources.flag(keys::PRESET, "--timings", cli.common.timings);
    for pair in &cli.common.timing {
        sources.timing(pair)?;
    }
    cli.command.add_flags(&mut sources);
    let context = Context { settings: sources.read()?, format: cli.common.output };
    cli.command.run(&context)
}

impl Command {
    /// Settings that are flags of one command only.
    fn add_flags(&self, sources: &mut Sources) {
        match self {
            Command::Dev(args) => args.add_flags(sources),
            Command::Master(args) => args.add_flags(sources),
            Command::Worker(args) => args.add_flags(sources),
            _ => {}
        }
    }

    fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Command::Run(args) => run::run(args, context),
            Command::Dev(args) => dev::run(&args, context),
            Command::Master(args) => master::run(&args, context),
            Command::Worker(args) => worker::run(&args, context),
            Command::Submit(args) => submit::run(&args, context),
            Command::Ps(args) => ps::run(&args, context),
            Command::Show(args) => show::run(&args, context),
            Command::Logs(args) => logs::run(&args, context),
            Command::Wait(args) => wait::run(&args, context),
            Command::Cancel(args) => cancel::run(&args, context),
            Command::Retry(args) => retry::run(&args, context),
            Command::Workers => workers::run(context),
            Command::Leader => leader::run(context),
            Command::Config(command) => config::run(&command, context),
            Command::Bench(command) => bench::run(&command, context),
            Command::Sim(args) => sim::run(&args, context),
            Command::Guardian => Err(Failure::usage("guardian takes no options")),
            Command::BenchTask(args) => bench::task::run(&args),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }
}
