//! Rival identity machines that disagree on all batch boundaries: the log stays exact as long as they have one map.

use anyhow::Result;
use twinlog_tests::scenario::{check, identity};

#[test]
fn three_rivals_with_random_batches() -> Result<()> {
    check(&identity::three_rivals())
}

#[test]
fn a_rival_with_another_map_is_found_out() -> Result<()> {
    check(&identity::another_map())
}
