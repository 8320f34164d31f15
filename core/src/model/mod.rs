//! The stores as pure tables: what the embedded backend uses, what the simulation runs against, and what
//! every other store is tested against.

pub mod change;
pub mod lease_table;
pub mod task_table;
