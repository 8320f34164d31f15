//! The master's side: who runs what, and what became of it.
