//! Checks that `include/ambar.h` matches the sources. `AMBAR_UPDATE=1 cargo test -p ambar-capi --test header` writes it.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers

use std::path::Path;

const ABOVE: &str = "\
/** @file
 * The C API of ambar, a store for simulation output.
 *
 * Generated from crates/ambar-capi; change it there.
 *
 * Every function returns AMBAR_OK or another status; ambar_last_error() returns the message. Shapes and regions are in
 * C order, slowest dimension first. See docs/howto/mpi.md for examples, and ambar_mpi.h for writing with many ranks.
 *
 * Contract of all functions: pointers are null, or point to what the documentation says, and what they point to does not
 * change until the function returns. Null is an error unless the documentation allows it.
 *
 * Structures that a program fills begin with their size: zero them, set size to sizeof of the structure, then set the
 * other fields. Later versions add fields at the end. The number in libambar.so.0 increases when the arguments of a function
 * or an existing field change. */
";

fn header() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut config = cbindgen::Config {
        language: cbindgen::Language::C,
        include_guard: Some("AMBAR_H".into()),
        header: Some(ABOVE.into()),
        cpp_compat: true,
        usize_is_size_t: true,
        style: cbindgen::Style::Type,
        documentation_style: cbindgen::DocumentationStyle::Cxx,
        no_includes: true,
        sys_includes: vec!["stddef.h".into(), "stdint.h".into()],
        line_length: 100,
        after_includes: Some(version()),
        ..cbindgen::Config::default()
    };
    config.export.exclude.push("MAX_DIMENSIONS".into());
    let builder = cbindgen::Builder::new()
        .with_config(config)
        .with_src(root.join("src/api/mod.rs"));
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    constants_in_lines(&without_safety(&String::from_utf8(text).unwrap()))
}

/// The version of the header.
fn version() -> String {
    let parts = [
        ("", concat!("\"", env!("CARGO_PKG_VERSION"), "\"")),
        ("_MAJOR", env!("CARGO_PKG_VERSION_MAJOR")),
        ("_MINOR", env!("CARGO_PKG_VERSION_MINOR")),
        ("_PATCH", env!("CARGO_PKG_VERSION_PATCH")),
    ];
    let line = |(part, value): (&str, &str)| format!("\n#define AMBAR_VERSION{part} {value}");
    format!(
        "\n/// The version of this header; ambar_version() returns that of the library.{}",
        parts.map(line).concat()
    )
}

/// Moves one-line documentation of a constant after it, and groups such constants.
fn constants_in_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out: Vec<String> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let here = lines[at..].iter().copied().take(4).collect::<Vec<_>>();
        match here[..] {
            ["", documentation, define, "", ..]
                if documentation.starts_with("///") && define.starts_with("#define") =>
            {
                if !out.last().is_some_and(|last| last.starts_with("#define")) {
                    out.push(String::new());
                }
                out.push(documentation.replacen("///", &format!("{define} ///<"), 1));
                at += 3;
            }
            _ => {
                out.push(lines[at].to_owned());
                at += 1;
            }
        }
    }
    out.join("\n") + "\n"
}

/// Removes the `# Safety` sections, which are for Rust.
fn without_safety(text: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.trim() == "/// # Safety" {
            inside = true;
            // The empty line before it.
            if out.last().is_some_and(|last| last.trim() == "///") {
                out.pop();
            }
        }
        inside &= line.trim_start().starts_with("///");
        if !inside {
            out.push(line);
        }
    }
    out.join("\n") + "\n"
}

#[test]
fn the_header_matches_the_sources() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include/ambar.h");
    let generated = header();
    if std::env::var_os("AMBAR_UPDATE").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        generated == found,
        "include/ambar.h differs from the sources; write it with AMBAR_UPDATE=1 cargo test -p ambar-capi --test header"
    );
}
