//! Any bytes as the records of a partition.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| twinlog_protocol::fuzzing::batch_header(input));
