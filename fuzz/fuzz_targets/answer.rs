//! Any bytes as a broker's answer to anything but Fetch.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| twinlog_protocol::fuzzing::answer(input));
