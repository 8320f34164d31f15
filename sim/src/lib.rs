//! The simulator of Tenure: every crash, pause and loss, placed everywhere.
//!
//! The first layer, the explorer, runs core's own state machines against core's own model stores in one
//! thread and in virtual time, and lets every nondeterministic thing ask [`choices`]. Depth-first search
//! over the choices places every combination of at most N faults; a list that ends. Larger worlds are
//! drawn from seeds. What must hold is in [`invariants`].

pub mod action;
pub mod bank;
pub mod choices;
pub mod coverage;
mod driver;
pub mod explore;
pub mod faults;
mod heap;
pub mod invariants;
pub mod random;
pub mod replay;
pub mod scenario;
pub mod shrink;
pub mod timeline;
pub mod trace;
pub mod world;

pub use explore::{ExploreOptions, Outcome, Report, explore};
pub use random::{SwarmOptions, swarm};
pub use replay::{Replay, Replayed, replay};
pub use scenario::ScenarioName;
