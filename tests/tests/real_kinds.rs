//! Kinds of batches that cannot go on as they stand, made by real brokers: thinned, of old formats, with the broker's time, to be
//! in another codec, too large, in transactions of which committed ones count; and batches made at random, in all of these
//! ways.

use anyhow::Result;
use twinlog_tests::{
    judge::Codec,
    real::Version,
    scenario::{check, codecs, cuts, kinds, memory, random, transactions},
};

#[test]
fn batches_that_the_cleaner_has_thinned() -> Result<()> {
    check(&kinds::thinned_batches())
}

#[test]
fn formats_from_before_kafka_0_11() -> Result<()> {
    check(&kinds::old_formats(Version::V2_8_2))
}

#[test]
fn the_time_that_the_broker_has_set() -> Result<()> {
    check(&kinds::log_append_time())
}

#[test]
fn the_time_that_the_targets_broker_sets() -> Result<()> {
    check(&kinds::broker_time())
}

#[test]
fn every_codec_becomes_that_of_the_flow() -> Result<()> {
    check(&codecs::into_one_codec(Codec::Zstd))
}

#[test]
fn batches_that_unpack_to_a_hundred_times_their_size() -> Result<()> {
    check(&memory::unpacking())
}

#[test]
fn batches_beyond_the_targets_limit() -> Result<()> {
    check(&cuts::batches_beyond_the_limit())
}

#[test]
fn records_beyond_the_targets_limits() -> Result<()> {
    check(&kinds::limits_of_the_target())
}

#[test]
fn committed_records_only_beside_an_open_transaction() -> Result<()> {
    check(&transactions::interleaved((Version::V4_3_1, Version::V4_3_1)))
}

#[test]
fn an_isolation_level_that_changes_between_runs() -> Result<()> {
    check(&transactions::changed_in_between())
}

#[test]
fn kills_while_committed_records_are_copied() -> Result<()> {
    check(&transactions::killed_while_written())
}

#[test]
fn committed_records_that_the_cleaner_has_thinned() -> Result<()> {
    check(&transactions::thinned())
}

#[test]
fn batches_made_at_random() -> Result<()> {
    check(&random::random_batches())
}
