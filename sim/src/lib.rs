//! The simulator of Tenure: every crash, pause and loss, placed everywhere.
//!
//! The first layer, the explorer, runs core's own state machines against core's own model stores in one
//! thread and in virtual time, and lets every nondeterministic thing ask [`choices`]. Depth-first search
//! over the choices places every combination of at most N faults; a list that ends. Larger worlds are
//! drawn from seeds. What must hold is in [`invariants`].

pub mod action;
pub mod choices;
pub mod coverage;
pub mod faults;
mod heap;
pub mod invariants;
pub mod scenario;
pub mod trace;
pub mod world;
