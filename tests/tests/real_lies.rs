//! Answers of every kind lie, at source and target: twinlog says whose they were, and the log stays exact.

use anyhow::Result;
use twinlog_tests::scenario::{Scale, lies, run};

#[test]
fn every_kind_of_answer_lies() -> Result<()> {
    run(&lies::every_kind_of_answer(), &Scale::small()).map(drop)
}
