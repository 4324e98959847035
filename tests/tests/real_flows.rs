//! Several flows, in one process or more: beside each other, into one target, between clusters under odd names, throttled.
//!
//! Names sort so that tests of the same clusters follow each other: they share them.

use anyhow::Result;
use twinlog_tests::scenario::{check, flows};

#[test]
fn pair_a_source_out_of_reach_beside_a_copy() -> Result<()> {
    check(&flows::unreachable_beside_a_copy())
}

#[test]
fn pair_both_ways_under_prefixed_names() -> Result<()> {
    check(&flows::both_ways())
}

#[test]
fn pair_two_names_for_one_cluster() -> Result<()> {
    check(&flows::two_names_for_one_cluster())
}

#[test]
fn pair_two_processes_with_contradictory_aliases() -> Result<()> {
    check(&flows::contradictory_aliases())
}

#[test]
fn one_flow_among_five_clusters() -> Result<()> {
    check(&flows::five_clusters_one_flow())
}

#[test]
fn four_clusters_three_of_them_sources() -> Result<()> {
    check(&flows::three_sources_into_one_target())
}
