//! Any bytes as a record of the state topic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| twinlog_engine::state::fuzzing::state_record(input));
