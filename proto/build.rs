//! Compiles `messages.proto` in Rust alone, so that no `protoc` needs to be installed.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=messages.proto");
    let descriptors = protox::compile(["messages.proto"], ["."])?;
    prost_build::Config::new()
        // Bodies and log lines are views of the frame they came in.
        .bytes(["."])
        // One order of map entries, so that equal messages have equal bytes.
        .btree_map(["."])
        .compile_fds(descriptors)?;
    Ok(())
}
