//! Every input of the fuzz corpus, and of old crashes, once through its target's body, on stable.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::{Path, PathBuf};

use twinlog_engine::config::fuzzing::configuration;
use twinlog_engine::machine::partition::fuzzing::partition_ops;
use twinlog_engine::state::fuzzing::state_record;
use twinlog_protocol::fuzzing;

/// Runs all inputs in a folder below `fixtures`, and each one cut and damaged at so many places.
fn replay(folder: &str, places: usize, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(folder);
    let mut inputs: Vec<PathBuf> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "{} is empty", folder.display());
    for path in inputs {
        println!("{}", path.display());
        let input = fs::read(path).unwrap();
        body(&input);
        // Cut and damaged all over: what a byte flip or a short read makes of a real answer.
        for at in (0..input.len()).step_by(input.len() / places + 1) {
            body(&input[..at]);
            let mut damaged = input.clone();
            damaged[at] ^= 0x81;
            body(&damaged);
        }
    }
}

#[test]
fn fetch_response() {
    replay("corpus/fetch_response", 200, fuzzing::fetch_response);
}

#[test]
fn batch_header() {
    replay("corpus/batch_header", 200, fuzzing::batch_header);
}

#[test]
fn answers_to_other_requests() {
    replay("corpus/answer", 100, fuzzing::answer);
}

#[test]
fn entries_of_the_state_topic() {
    replay("corpus/state_record", 100, state_record);
}

#[test]
fn what_may_happen_to_a_partition() {
    replay("corpus/partition_ops", 100, partition_ops);
}

#[test]
fn configurations_of_field_reports() {
    replay("configs", 5, configuration);
}
