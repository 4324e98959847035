//! One copy between real clusters, whole: every codec, nulls, headers, 8 MB, transactions, trimmed starts, fifty topics.

use anyhow::Result;
use twinlog_tests::{
    real::Version,
    scenario::{Scale, Scenario, copy, run},
};

const NEWEST: (Version, Version) = copy::PAIRS[0];

fn check(scenario: &Scenario) -> Result<()> {
    run(scenario, &Scale::small()).map(drop)
}

#[test]
fn every_codec_with_nulls_and_headers() -> Result<()> {
    check(&copy::codecs(NEWEST))
}

#[test]
fn records_of_8_mb() -> Result<()> {
    check(&copy::large_records(NEWEST))
}

#[test]
fn transactions() -> Result<()> {
    check(&copy::transactions(NEWEST))
}

#[test]
fn log_start_inside_a_batch() -> Result<()> {
    check(&copy::log_start_inside_a_batch(NEWEST))
}

#[test]
fn fifty_topics() -> Result<()> {
    check(&copy::fifty_topics(NEWEST))
}

#[test]
fn from_3_9_2() -> Result<()> {
    check(&copy::codecs(copy::PAIRS[1]))
}

#[test]
fn from_2_8_2() -> Result<()> {
    check(&copy::codecs(copy::PAIRS[2]))
}

#[test]
fn to_2_8_2() -> Result<()> {
    check(&copy::codecs(copy::PAIRS[3]))
}
