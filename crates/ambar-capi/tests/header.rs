//! `include/ambar.h` is what the sources say. `AMBAR_UPDATE=1 cargo test -p ambar-capi --test header` writes
//! it anew.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers

use std::path::Path;

const ABOVE: &str = "\
/* ambar: one store for simulation output. The C API.
 *
 * Made from crates/ambar-capi; changes belong there.
 *
 * Every function returns AMBAR_OK or another status; ambar_last_error() says what was wrong. Shapes and
 * regions are in C order, the slowest dimension first. docs/howto/mpi.md shows how it is used, and
 * ambar_mpi.h does what takes many ranks.
 *
 * Structs that a program fills in begin with their size: zero them, set size to sizeof of the struct, and then the
 * other fields. Later versions add fields at the end. The number in libambar.so.0 rises when a function's arguments or an
 * existing field change. */
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
        documentation_style: cbindgen::DocumentationStyle::C99,
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
        "\n// The version of this header; ambar_version() is that of the library.{}",
        parts.map(line).concat()
    )
}

/// Puts what is said of a constant behind it, where that is one line, and such constants in a block.
fn constants_in_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out: Vec<String> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let here = lines[at..].iter().copied().take(4).collect::<Vec<_>>();
        match here[..] {
            ["", said, define, "", ..]
                if said.starts_with("//") && define.starts_with("#define") =>
            {
                if !out.last().is_some_and(|last| last.starts_with("#define")) {
                    out.push(String::new());
                }
                out.push(format!("{define} {said}"));
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

/// Leaves out what is for readers of Rust.
fn without_safety(text: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.trim() == "// # Safety" {
            inside = true;
            // The empty line before it.
            if out.last().is_some_and(|last| last.trim() == "//") {
                out.pop();
            }
        }
        inside &= line.trim_start().starts_with("//");
        if !inside {
            out.push(line);
        }
    }
    out.join("\n") + "\n"
}

#[test]
fn the_header_is_what_the_sources_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include/ambar.h");
    let made = header();
    if std::env::var_os("AMBAR_UPDATE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        made == found,
        "include/ambar.h is not what the sources say: AMBAR_UPDATE=1 cargo test -p ambar-capi --test header"
    );
}
