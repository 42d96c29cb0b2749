//! Linker options of the extension module.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        // Python looks for `PyInit__core` alone. Exported functions of the libraries inside could
        // replace those of the same name in other extension modules, or be replaced by them. Zig, by which a wheel
        // can be tried without an old C library, does not have this option.
        if !std::env::var("RUSTC_LINKER").is_ok_and(|linker| linker.contains("zig")) {
            println!("cargo:rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
        }
        // All addresses are resolved when the module is loaded, and read-only from then on; no stack may be
        // executed. Linkers differ in their defaults.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,relro,-z,now,-z,noexecstack");
    }
}
