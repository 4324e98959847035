//! Numbers of bytes as people write them: `268435456`, `256 MiB`, `256m`.

use super::error::Fault;
use super::properties::{Entry, Properties};
use super::resolve::Resolver;

/// For the records that a process holds where nobody wrote it.
pub(super) const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// Less is a unit that was forgotten.
const BYTES_MIN: u64 = 1 << 20;

/// More than any machine has.
const BYTES_MAX: u64 = 1 << 50;

/// A flow that may copy less than this in a second is a unit that was forgotten.
const THROTTLE_BYTES_MIN: u64 = 1 << 10;

const UNITS: [(&str, u64); 13] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kb", 1000),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mb", 1_000_000),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gb", 1_000_000_000),
    ("gib", 1 << 30),
    ("tb", 1_000_000_000_000),
    ("tib", 1 << 40),
];

/// Bytes of records that the process may hold (`memory.max`), or what is wrong with the key.
pub(super) fn memory(properties: &Properties) -> Result<u64, Fault> {
    let Some(entry) = properties.find("memory.max") else { return Ok(MEMORY_BYTES_MAX) };
    bytes(entry, BYTES_MIN, "64 MiB")
}

/// Bytes that a flow may copy in a second (`throttle`); none where nobody wrote it.
pub(super) fn throttle(resolver: &mut Resolver<'_>) -> Option<u64> {
    let entry = resolver.find("throttle")?;
    match bytes(entry, THROTTLE_BYTES_MIN, "10 MiB") {
        Ok(bytes) => Some(bytes),
        Err(fault) => {
            resolver.fault(fault);
            None
        }
    }
}

fn bytes(entry: &Entry, bytes_min: u64, example: &str) -> Result<u64, Fault> {
    let remedy = format!("write a number with its unit, such as `{example}`");
    match parse(&entry.value) {
        None => Err(Fault::of(entry, "not a number of bytes").remedy(remedy)),
        Some(bytes) if bytes < bytes_min => {
            Err(Fault::of(entry, format!("{bytes} bytes are less than {bytes_min}")).remedy(remedy))
        }
        Some(bytes) if bytes > BYTES_MAX => {
            Err(Fault::of(entry, "more bytes than any machine has").remedy(remedy))
        }
        Some(bytes) => Ok(bytes),
    }
}

fn parse(value: &str) -> Option<u64> {
    let value = value.trim().to_ascii_lowercase();
    let unit_at = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let (number, unit) = value.split_at(unit_at);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit.trim_start())?;
    // Digits alone fail to be a number by being too many.
    let number: u64 = if number.is_empty() { return None } else { number.parse().unwrap_or(u64::MAX) };
    Some(number.saturating_mul(*factor))
}

#[cfg(test)]
mod tests {
    use crate::config::MirrorConfig;

    const BASE: &str = "clusters=a,b\na.bootstrap.servers=a:1\nb.bootstrap.servers=b:1\na->b.enabled=true\n";

    fn read(more: &str) -> Result<(usize, Option<u64>), String> {
        let config = MirrorConfig::from_properties(format!("{BASE}{more}").as_bytes());
        let config = config.map_err(|errors| errors.to_string())?;
        Ok((config.memory_bytes_max(), config.flows()[0].throttle_bytes_per_second))
    }

    #[test]
    fn bytes_are_read_with_and_without_units() {
        assert_eq!(read(""), Ok((256 << 20, None)));
        for (value, bytes) in [
            ("67108864", 64 << 20),
            ("64 MiB", 64 << 20),
            ("64m", 64 << 20),
            ("64MB", 64_000_000),
            (" 2 GiB ", 2 << 30),
            ("1000000 kB", 1_000_000_000),
        ] {
            assert_eq!(read(&format!("memory.max={value}")), Ok((bytes, None)), "{value}");
        }
        assert_eq!(read("throttle=10 MiB\na->b.throttle=5000"), Ok((256 << 20, Some(5000))));
    }

    #[test]
    fn what_is_no_size_says_what_to_write() {
        for (line, sentence) in [
            ("memory.max=much", "not a number of bytes; write a number with its unit, such as `64 MiB`"),
            ("memory.max=64", "64 bytes are less than 1048576; write a number with its unit"),
            ("memory.max=-1", "not a number of bytes"),
            ("memory.max=64 MiB/s", "not a number of bytes"),
            ("memory.max=99999999999999999999", "more bytes than any machine has"),
            ("memory.max=9999999999 GiB", "more bytes than any machine has"),
            ("memory.max=99999999999999999 TiB", "more bytes than any machine has"),
            ("memory.max=MiB", "not a number of bytes"),
            ("memory.max=99999 TiB", "more bytes than any machine has"),
            ("throttle=0", "0 bytes are less than 1024; write a number with its unit, such as `10 MiB`"),
            ("a->b.throttle=fast", "not a number of bytes"),
        ] {
            let told = read(line).unwrap_err();
            assert!(told.contains(sentence) && told.starts_with("line 5: `"), "{line}: {told}");
        }
    }
}
