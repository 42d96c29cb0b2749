//! Sets the soname of libambar.so.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let api = std::env::var_os("CARGO_FEATURE_API").is_some();
    let linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    if api && linux {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libambar.so.0");
    }
}
