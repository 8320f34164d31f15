//! Workers that speak frames on real sockets, against a master on a real data directory.

mod bytes;
mod documented;
mod life;
mod lines;
mod load;
mod logs;
mod masters;
mod progress;
mod real;
mod support;
