//! How the shared library is linked. Nothing is generated.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Its threads and its signal handler stay: the library cannot be unloaded. Symbols are bound at
    // load time, so that the handler never enters the dynamic linker.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete,-z,now,-soname,libswipr.so");
}
