//! Workers that speak frames on real sockets, against a master on a real data directory.

mod bytes;
mod documented;
mod life;
mod logs;
mod masters;
mod support;
