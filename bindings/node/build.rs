//! Sets what the linker needs for a module of Node.

fn main() {
    napi_build::setup();
}
