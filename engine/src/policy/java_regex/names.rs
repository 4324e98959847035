//! Whether a pattern can match any legal name of a topic at all.

use regex_syntax::hir::{Class, Hir, HirKind};

use super::translate::translate;

/// Longest name of a topic (`Topic#MAX_NAME_LENGTH`).
const NAME_CHARS_MAX: usize = 249;

/// Whether no legal name of a topic matches `pattern`. Only what the pattern's characters show is seen: one with
/// lookaround or back references counts as able to match.
pub(super) fn matches_no_topic(pattern: &str) -> bool {
    let Ok(translated) = translate(pattern) else { return false };
    regex_syntax::parse(&translated).is_ok_and(|hir| {
        let lengths = hir.properties();
        is_dead(&hir)
            || lengths.maximum_len() == Some(0)
            || lengths.minimum_len().is_none_or(|length| length > NAME_CHARS_MAX)
    })
}

/// Whether whatever this part matches holds a character that no name may hold.
fn is_dead(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => false,
        HirKind::Literal(literal) => !literal.0.iter().all(|byte| is_legal(char::from(*byte))),
        HirKind::Class(Class::Unicode(class)) => {
            !class.iter().any(|range| (range.start()..=range.end()).take(NAME_CHARS_MAX).any(is_legal))
        }
        HirKind::Class(Class::Bytes(class)) => {
            !class.iter().any(|range| (range.start()..=range.end()).any(|byte| is_legal(char::from(byte))))
        }
        HirKind::Repetition(repetition) => repetition.min > 0 && is_dead(&repetition.sub),
        HirKind::Capture(capture) => is_dead(&capture.sub),
        HirKind::Concat(parts) => parts.iter().any(is_dead),
        HirKind::Alternation(parts) => parts.iter().all(is_dead),
    }
}

fn is_legal(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_the_field_that_match_nothing_are_seen() {
        for dead in [
            ".*                   # everything",
            "__.*\"",
            "\"orders\"",
            ".*\replica",
            "caf\u{e9}",
            "a b",
            "(x y|z!)",
            "[#!]+",
            "()",
            "^$",
            "a{250}",
            "[^\\w.-]",
        ] {
            assert!(matches_no_topic(dead), "{dead:?}");
        }
    }

    #[test]
    fn patterns_that_may_match_are_left_alone() {
        for alive in [
            ".*",
            "orders",
            "\"*.internal",
            "(x y|z)",
            "#?orders",
            "^(?!a b).*",
            "[^a]",
            "[\\w-.]+",
            "a{249}",
            "\\Qa.b\\E",
            "^orders$",
            "(",
        ] {
            assert!(!matches_no_topic(alive), "{alive:?}");
        }
    }
}
