//! The worker's record file: what was answered is never lost, whatever happens to the process or the disk.

mod crash;
mod full;
mod keeping;
mod support;
