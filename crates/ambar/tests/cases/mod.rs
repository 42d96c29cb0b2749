//! How many random cases a test tries: few in every run, as many as `AMBAR_CASES` says in a campaign.

#![allow(dead_code, clippy::unwrap_used)] // each test program uses a part of it

/// The number of cases: that of the environment variable `AMBAR_CASES`, or `default`.
pub fn cases(default: u64) -> u64 {
    std::env::var("AMBAR_CASES").map_or(default, |text| text.parse().unwrap())
}

/// The seed of the cases: that of the environment variable `AMBAR_SEED`, or 1.
pub fn seed() -> u64 {
    std::env::var("AMBAR_SEED").map_or(1, |text| text.parse().unwrap())
}
