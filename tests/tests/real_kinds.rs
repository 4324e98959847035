//! Kinds of batches that cannot go on as they stand, made by real brokers: thinned, of old formats, with the broker's time.

use anyhow::Result;
use twinlog_tests::{
    real::Version,
    scenario::{check, kinds},
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
