//! The guardian as a program of its own, for programs that embed a worker as a library and for
//! tests. `tenure guardian` is the same thing.

use std::process::ExitCode;

fn main() -> ExitCode {
    tenure_adapters::process::guardian::main()
}
