//! Log lines nobody expected: WARN, ERROR and panics, unless a test allows them.

/// The lines of `log` with level WARN or ERROR, or a panic's, that contain none of `allowed`.
///
/// A panic cannot be allowed.
#[must_use]
pub fn unexpected_lines(log: &str, allowed: &[&str]) -> Vec<String> {
    log.lines().filter(|line| is_unexpected(line, allowed)).map(str::to_owned).collect()
}

fn is_unexpected(line: &str, allowed: &[&str]) -> bool {
    if line.contains("panicked at") {
        return true;
    }
    // The level stands alone, behind the time: `2026-01-01T00:00:00Z  WARN twinlog: text`.
    let loud = line.split_whitespace().take(3).any(|word| word == "WARN" || word == "ERROR");
    loud && !allowed.iter().any(|text| line.contains(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "2026-01-01T00:00:00Z  INFO twinlog: started\n\
                       2026-01-01T00:00:01Z  WARN twinlog: replication factor cut to 1\n\
                       2026-01-01T00:00:02Z ERROR twinlog: orders-3 held\n\
                       thread 'main' panicked at engine/src/lib.rs:1:1:\n\
                       a value with the word ERROR in it\n";

    #[test]
    fn finds_warnings_errors_and_panics() {
        let found = unexpected_lines(LOG, &[]);
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn allowed_lines_pass_but_never_a_panic() {
        let found = unexpected_lines(LOG, &["replication factor", "held", "panicked"]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("thread"));
    }
}
