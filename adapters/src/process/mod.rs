//! Runs the commands of tasks so that nothing of a task outlives its end.
//!
//! ```text
//! worker (tokio) ──▶ guardian ──fork──▶ task init ──fork+exec──▶ command ──▶ its descendants
//!    │   one message a task: three file descriptors   ▲
//!    └────────── control socket of the task ──────────┘
//! ```
//!
//! The guardian is a small single-threaded process, so that its forks are cheap and safe. For each
//! task it forks a *task init*, which talks to the worker directly over a socket of its own:
//! - Guardian and init are subreapers: a descendant that calls `setsid` or forks twice falls to the
//!   init of its task, which can therefore find and kill everything until it has no child left.
//! - The control socket is the life pipe: its end of file says that the worker died, and the init
//!   kills its task at once. No parent-death signal is used: those belong to a thread, and tokio
//!   retires threads.
//! - An init that is killed leaves its descendants to the guardian, which kills them and tells the
//!   worker. A guardian that is killed leaves the inits working; the next launch starts another.
//!
//! Start reading at [`Executor`]; [`context`] prepares what a command finds around it.

pub mod context;
mod event;
mod executor;
mod failure;
mod frame;
pub mod guardian;
mod init;
mod link;
mod output;
pub mod result;
mod spawn;
mod supervise;
mod sweep;
mod tree;

pub use event::{Ending, Exit, Fault, Launch, Line, ProcessEvent, Stream};
pub use executor::{Executor, Settings};
pub use link::GuardianCommand;
