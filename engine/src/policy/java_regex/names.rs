//! Whether a pattern can match any name at all, of those that a topic may have or of any.
//!
//! A pattern is a regular language, cut down to the letters of names. Whether something is left is found exactly, anchors
//! and word boundaries included: for each part the fewest letters that lead from one place in a name to another, where a
//! place is what stands before it and what stands behind it. Parts one after the other are then a product of matrices.

use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

use super::translate::translate;

/// Longest name of a topic (`Topic#MAX_NAME_LENGTH`).
const NAME_CHARS_MAX: u32 = 249;

/// What names may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Topics, and configs of topics: letters, digits, `.`, `_` and `-`.
    OfTopics,
    /// Anything, such as names of consumer groups.
    Any,
}

/// Whether none of the `names` matches `pattern`. One with lookaround or back references counts as able to match.
pub(super) fn matches_nothing(pattern: &str, names: Names) -> bool {
    let Ok(translated) = translate(pattern) else { return false };
    regex_syntax::parse(&translated).is_ok_and(|hir| {
        let whole = Steps::of(&hir, names);
        let ends = || (0..PLACES).filter(|place| Place::numbered(*place).behind == EDGE);
        // A name begins with nothing before it, and is not empty.
        let starts = (0..PLACES).filter(|place| Place::numbered(*place).before == EDGE);
        let fewest = starts
            .flat_map(|from| ends().map(move |to| (from, to)))
            .filter(|(_, to)| Place::numbered(*to).before != EDGE)
            .filter_map(|(from, to)| whole.0[from][to])
            .min();
        fewest.is_none_or(|length| names == Names::OfTopics && length > NAME_CHARS_MAX)
    })
}

/// What stands beside a place: the edge of the name, a letter of a word, another letter.
const EDGE: usize = 0;
const WORD: usize = 1;
const OTHER: usize = 2;
const PLACES: usize = 9;

#[derive(Clone, Copy)]
struct Place {
    before: usize,
    behind: usize,
}

impl Place {
    fn numbered(number: usize) -> Self {
        Self { before: number / 3, behind: number % 3 }
    }

    fn number(self) -> usize {
        self.before * 3 + self.behind
    }

    fn holds(self, look: Look) -> bool {
        let (starts, ends) = (self.before == EDGE, self.behind == EDGE);
        let (word_before, word_behind) = (self.before == WORD, self.behind == WORD);
        match look {
            Look::Start | Look::StartLF | Look::StartCRLF => starts,
            Look::End | Look::EndLF | Look::EndCRLF => ends,
            Look::WordAscii | Look::WordUnicode => word_before != word_behind,
            Look::WordAsciiNegate | Look::WordUnicodeNegate => word_before == word_behind,
            Look::WordStartAscii | Look::WordStartUnicode => !word_before && word_behind,
            Look::WordEndAscii | Look::WordEndUnicode => word_before && !word_behind,
            Look::WordStartHalfAscii | Look::WordStartHalfUnicode => !word_before,
            Look::WordEndHalfAscii | Look::WordEndHalfUnicode => !word_behind,
        }
    }
}

/// The fewest letters from each place to each; none where there is no way.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Steps([[Option<u32>; PLACES]; PLACES]);

impl Steps {
    const NONE: Self = Self([[None; PLACES]; PLACES]);

    fn of(hir: &Hir, names: Names) -> Self {
        match hir.kind() {
            HirKind::Empty => Self::staying(|_| true),
            HirKind::Look(look) => Self::staying(|place| place.holds(*look)),
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).ok();
                let kinds = text.and_then(|text| text.chars().map(|next| kind_of(next, names)).collect());
                kinds.map_or(Self::NONE, |kinds: Vec<usize>| Self::letters(&kinds))
            }
            HirKind::Class(class) => [WORD, OTHER]
                .into_iter()
                .filter(|kind| holds_kind(class, *kind, names))
                .fold(Self::NONE, |steps, kind| steps.or(&Self::letters(&[kind]))),
            HirKind::Repetition(repetition) => Self::of_repetition(repetition, names),
            HirKind::Capture(capture) => Self::of(&capture.sub, names),
            HirKind::Concat(parts) => {
                parts.iter().fold(Self::staying(|_| true), |before, part| before.then(&Self::of(part, names)))
            }
            HirKind::Alternation(parts) => {
                parts.iter().fold(Self::NONE, |before, part| before.or(&Self::of(part, names)))
            }
        }
    }

    fn of_repetition(repetition: &Repetition, names: Names) -> Self {
        let once = Self::of(&repetition.sub, names);
        let maybe = once.or(&Self::staying(|_| true));
        // More rounds than places bring to no new one.
        let places = u32::try_from(PLACES).unwrap_or(u32::MAX);
        let more = repetition.max.map_or(places, |max| (max - repetition.min).min(places));
        once.times(repetition.min).then(&maybe.times(more))
    }

    fn staying(holds: impl Fn(Place) -> bool) -> Self {
        let mut steps = Self::NONE;
        for place in (0..PLACES).filter(|place| holds(Place::numbered(*place))) {
            steps.0[place][place] = Some(0);
        }
        steps
    }

    /// Letters of these kinds, at least one.
    fn letters(kinds: &[usize]) -> Self {
        let mut steps = Self::NONE;
        let (Some(first), Some(last)) = (kinds.first(), kinds.last()) else { return steps };
        for before in [EDGE, WORD, OTHER] {
            for behind in [EDGE, WORD, OTHER] {
                let from = Place { before, behind: *first }.number();
                let to = Place { before: *last, behind }.number();
                steps.0[from][to] = Some(u32::try_from(kinds.len()).unwrap_or(u32::MAX));
            }
        }
        steps
    }

    fn or(&self, other: &Self) -> Self {
        let mut steps = *self;
        for (row, others) in steps.0.iter_mut().zip(&other.0) {
            for (cell, other) in row.iter_mut().zip(others) {
                *cell = [*cell, *other].into_iter().flatten().min();
            }
        }
        steps
    }

    fn then(&self, next: &Self) -> Self {
        let mut steps = Self::NONE;
        for (from, row) in steps.0.iter_mut().enumerate() {
            for (to, cell) in row.iter_mut().enumerate() {
                let by = |via: usize| Some(self.0[from][via]?.saturating_add(next.0[via][to]?));
                *cell = (0..PLACES).filter_map(by).min();
            }
        }
        steps
    }

    /// So many times in a row.
    fn times(&self, mut count: u32) -> Self {
        let (mut steps, mut doubled) = (Self::staying(|_| true), *self);
        while count > 0 {
            if count % 2 == 1 {
                steps = steps.then(&doubled);
            }
            doubled = doubled.then(&doubled);
            count /= 2;
        }
        steps
    }
}

/// Whether a letter belongs to a word or not; none where no name holds it.
fn kind_of(letter: char, names: Names) -> Option<usize> {
    match letter {
        '_' => Some(WORD),
        '.' | '-' => Some(OTHER),
        _ if letter.is_ascii_alphanumeric() => Some(WORD),
        _ if names == Names::OfTopics => None,
        _ if letter.is_alphanumeric() => Some(WORD),
        _ => Some(OTHER),
    }
}

fn holds_kind(class: &Class, kind: usize, names: Names) -> bool {
    let Class::Unicode(class) = class else { return true };
    let first_letters =
        class.iter().flat_map(|range| (range.start()..=range.end()).take_while(char::is_ascii));
    let holds = first_letters.into_iter().any(|letter| kind_of(letter, names) == Some(kind));
    // Of what lies behind ASCII either kind may be.
    holds || names == Names::Any && class.iter().any(|range| !range.end().is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_dead(pattern: &str) -> bool {
        matches_nothing(pattern, Names::OfTopics)
    }

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
            assert!(is_dead(dead), "{dead:?}");
        }
    }

    #[test]
    fn letters_behind_an_end_or_before_a_beginning_are_seen() {
        for dead in [
            "$TOPICS",
            "a.*$b",
            "a^b",
            "(a|b)^c",
            "x(^|a$)b",
            "a$+b",
            "(a$){2}",
            "(?m)a$b",
            "a\\zb",
            "a\\Ab",
            "a\\bb",
            "a\\B-",
            "\\b-",
            "a\\$",
            "$TOPICS|a^b",
            "(?i)$topics",
            "^a$b?$c",
        ] {
            assert!(is_dead(dead), "{dead:?}");
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
            "^a$",
            "a$|b",
            "(a|$)b*",
            "a$b?",
            "x?^a",
            "(^|a\\.)b",
            "a(-|$)",
            "a\\b-b",
            "\\ba\\b",
            "$?a",
            "(^a)*",
            "a($|b)+",
            "(?=$)a|b",
            "(?!$X)a.*",
            "((a{1000}){1000}){0}b",
            "[^ ]+",
        ] {
            assert!(!is_dead(alive), "{alive:?}");
        }
    }

    #[test]
    fn names_of_groups_may_hold_anything_but_not_beyond_their_ends() {
        for alive in ["a b", "caf\u{e9}", "[#!]+", "a{250}", "\u{e9}\\b ", ".*"] {
            assert!(!matches_nothing(alive, Names::Any), "{alive:?}");
        }
        for dead in ["$GROUPS", "a^b", "^$", "()"] {
            assert!(matches_nothing(dead, Names::Any), "{dead:?}");
        }
    }

    proptest::proptest! {
        /// Whatever name a pattern matches, it is not called dead.
        #[test]
        fn no_pattern_that_matches_a_name_is_called_dead(
            pattern in r"([ab.*+?|()$^-]|\\b|\\B|\(a|\)){0,12}",
            name in "[ab.-]{1,6}",
        ) {
            let list = super::super::PatternList::compile(&[&pattern]);
            if list.is_ok_and(|list| list.matches(&name) == Ok(true)) {
                assert!(!is_dead(&pattern), "{pattern:?} matches {name:?}");
            }
        }
    }
}
