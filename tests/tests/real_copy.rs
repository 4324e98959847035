//! One copy between real clusters, whole: every codec, nulls, headers, 8 MB, transactions, trimmed starts, fifty topics,
//! single-record batches.
//!
//! Names sort so that tests of the same clusters follow each other: they share them.

use anyhow::Result;
use twinlog_tests::{
    real::Version,
    scenario::{check, copy, merging},
};

const NEWEST: (Version, Version) = copy::PAIRS[0];

#[test]
fn newest_every_codec_with_nulls_and_headers() -> Result<()> {
    check(&copy::codecs(NEWEST))
}

#[test]
fn newest_records_of_8_mb() -> Result<()> {
    check(&copy::large_records(NEWEST))
}

#[test]
fn newest_transactions() -> Result<()> {
    check(&copy::transactions(NEWEST))
}

#[test]
fn newest_log_start_inside_a_batch() -> Result<()> {
    check(&copy::log_start_inside_a_batch(NEWEST))
}

#[test]
fn newest_fifty_topics() -> Result<()> {
    check(&copy::fifty_topics(NEWEST))
}

#[test]
fn newest_single_record_batches() -> Result<()> {
    check(&merging::single_records())
}

#[test]
fn newest_single_record_batches_for_a_small_limit() -> Result<()> {
    check(&merging::small_limit())
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
