//! Any bytes as a Fetch answer.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| twinlog_protocol::fuzzing::fetch_response(input));
