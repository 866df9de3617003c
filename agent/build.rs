//! How the shared library is linked. Nothing is generated.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=SWIPR_SONAME");
    // Cargo makes libswipr.so and no link beside it. Packages have both, and name the version here.
    let soname = std::env::var("SWIPR_SONAME").unwrap_or_else(|_| "libswipr.so".to_owned());
    // Its threads and its signal handler stay: the library cannot be unloaded. Symbols are bound at
    // load time, so that the handler never enters the dynamic linker.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete,-z,now,-soname,{soname}");
}
