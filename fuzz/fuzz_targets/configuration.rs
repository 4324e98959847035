//! Any bytes as a file of settings.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| twinlog_engine::config::fuzzing::configuration(input));
