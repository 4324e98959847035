//! Any bytes as what happens to a partition, answer by answer.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| twinlog_engine::machine::partition::fuzzing::partition_ops(input));
