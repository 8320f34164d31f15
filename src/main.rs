//! `tenure`: the program. Commands are in `cli`, one file each; settings in `settings`.

mod cli;
mod client;
mod duration;
mod exit;
mod output;
mod settings;

use std::process::ExitCode;

fn main() -> ExitCode {
    // The guardian forks, so it must be alone: before argument parsing, threads or anything else.
    if std::env::args_os().nth(1).is_some_and(|word| word == "guardian") {
        return tenure_adapters::process::guardian::main();
    }
    cli::main()
}
