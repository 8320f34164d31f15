//! The worker's side: accepts, keeps outcomes until they are acknowledged, reconnects.
