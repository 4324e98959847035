//! Records that real clusters lose: told once, with their number, and nothing else is missing. Unclean elections take minutes,
//! they are in the `full` program alone.

use anyhow::Result;
use twinlog_tests::{
    real::Version,
    scenario::{check, losses, resume},
};

const NEWEST: (Version, Version) = (Version::V4_3_1, Version::V4_3_1);

#[test]
fn retention_that_overtakes_a_stopped_copy() -> Result<()> {
    check(&losses::retention_overtakes(NEWEST))
}

#[test]
fn source_topics_made_again() -> Result<()> {
    check(&losses::source_made_again(NEWEST))
}

#[test]
fn target_topics_deleted() -> Result<()> {
    check(&losses::target_deleted())
}

#[test]
fn a_source_that_compacts_and_expires_before_the_resume() -> Result<()> {
    check(&resume::source_changes_before_the_resume())
}

#[test]
fn a_record_skipped_beside_an_instance_in_mid_send() -> Result<()> {
    check(&resume::skip_beside_an_instance_in_mid_send())
}

#[test]
fn batches_of_refused_records_only_are_skipped() -> Result<()> {
    check(&resume::batches_skipped_as_a_whole())
}
