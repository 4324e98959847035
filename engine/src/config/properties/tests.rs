//! Tests: the reader, and a naive twin of it.

use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Vec<(String, String, usize)> {
    let properties = Properties::parse(text.as_bytes()).unwrap();
    properties.entries().iter().map(|e| (e.key.clone(), e.value.as_str().to_owned(), e.line)).collect()
}

/// What Java 17 makes of random texts; `tests/java/PropertiesGolden.java` wrote it.
const GOLDEN: &str = include_str!("golden-jdk17.tsv");

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn text(hex: &str) -> String {
    String::from_utf8(bytes(hex)).unwrap()
}

#[test]
fn a_lone_backslash_at_the_end_is_an_empty_key_only_where_nothing_goes_on() {
    assert_eq!(read("\\"), [(String::new(), String::new(), 1)]);
    assert_eq!(read("a=b\n\\\n").len(), 2);
    assert_eq!(read("=\\\r\\\n").len(), 1);
    assert_eq!(read("\\\n\n").len(), 0);
}

#[test]
fn every_text_is_read_as_java_reads_it() {
    let mut wrong = Vec::new();
    for line in GOLDEN.lines() {
        let (typed, answer) = line.split_once('\t').unwrap();
        let java: Option<Vec<(String, String)>> = (answer != "error").then(|| {
            let entries = answer.split_whitespace().map(|entry| entry.split_once('=').unwrap());
            entries.map(|(key, value)| (text(key), text(value))).collect()
        });
        let ours = Properties::parse(&bytes(typed)).ok().map(|properties| {
            let entries = properties.effective().map(|e| (e.key.clone(), e.value.as_str().to_owned()));
            let mut entries: Vec<_> = entries.collect();
            entries.sort_unstable();
            entries
        });
        if ours != java {
            wrong.push(format!("{:?}: {ours:?}, Java {java:?}", String::from_utf8_lossy(&bytes(typed))));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), GOLDEN.lines().count(), wrong.join("\n"));
}

fn one(text: &str) -> (String, String) {
    let entries = read(text);
    assert_eq!(entries.len(), 1, "{entries:?}");
    (entries[0].0.clone(), entries[0].1.clone())
}

fn pair(key: &str, value: &str) -> (String, String) {
    (key.into(), value.into())
}

#[test]
fn separators_are_equals_colon_or_blank_and_at_most_one_of_them() {
    for text in ["k=v", "k:v", "k v", "k = v", "k\t:\u{c}v", "  k   v"] {
        assert_eq!(one(text), pair("k", "v"), "{text:?}");
    }
    assert_eq!(one("k==v"), pair("k", "=v"));
    assert_eq!(one("k : = v"), pair("k", "= v"));
    assert_eq!(one("k"), pair("k", ""));
    assert_eq!(one("=v"), pair("", "v"));
    assert_eq!(one("west->east.topics=a"), pair("west->east.topics", "a"));
}

#[test]
fn blanks_before_a_value_go_and_blanks_after_it_stay() {
    assert_eq!(one("k=  true \t"), pair("k", "true \t"));
}

#[test]
fn a_comment_starts_only_at_the_start_of_a_line() {
    assert_eq!(read("# a\n  ! b=c\n\nk=v # not one\n"), [("k".into(), "v # not one".into(), 4)]);
}

#[test]
fn single_backslashes_are_eaten() {
    assert_eq!(one(r"k=.*\.internal, a\\.b"), pair("k", r".*.internal, a\.b"));
    assert_eq!(one(r"k=\t\n\r\f\q\"), pair("k", "\t\n\r\u{c}q"));
    assert_eq!(one(r"west\=\:\ x = 1"), pair("west=: x", "1"));
}

#[test]
fn unicode_escapes_make_utf_16_units() {
    assert_eq!(one(r"k=\u0031\u00e9\uD83D\uDE00"), pair("k", "1é😀"));
    assert_eq!(one(r"k=\uD83D!"), pair("k", "\u{fffd}!"));
}

#[test]
fn malformed_unicode_escapes_are_all_reported_with_their_lines() {
    let faults = Properties::parse(b"a=1\nb=\\u12\nc=2\nd=\\uXYZW tail\n").unwrap_err();
    let lines: Vec<_> = faults.iter().map(|fault| fault.line).collect();
    assert_eq!(lines, [Some(2), Some(4)]);
    assert!(faults[1].to_string().contains("\\uXYZW"), "{}", faults[1]);
}

#[test]
fn continued_lines_are_joined_without_the_blanks_that_lead_the_next() {
    assert_eq!(
        read("k = a, \\\n    b,\\\r\n\tc\nx=1"),
        [("k".into(), "a, b,c".into(), 1), ("x".into(), "1".into(), 4)]
    );
    assert_eq!(one("k=a\\\\\n"), pair("k", "a\\"));
    assert_eq!(one("k=a\\"), pair("k", "a"));
}

#[test]
fn a_continuation_swallows_a_comment_line_and_an_empty_line_ends_it() {
    assert_eq!(
        read("k=1 \\\n# note\nx=2"),
        [("k".into(), "1 # note".into(), 1), ("x".into(), "2".into(), 3)]
    );
    assert_eq!(read("k=1\\\n\nx=2"), [("k".into(), "1".into(), 1), ("x".into(), "2".into(), 3)]);
}

#[test]
fn a_line_of_nothing_but_a_continuation_does_not_begin_an_entry() {
    assert_eq!(read("\\\n# note\nx=2"), [("x".into(), "2".into(), 3)]);
}

#[test]
fn every_kind_of_line_end_counts_one_line() {
    let lines: Vec<usize> = read("a=1\rb=2\r\nc=3\n\nd=4").into_iter().map(|entry| entry.2).collect();
    assert_eq!(lines, [1, 2, 3, 5]);
}

#[test]
fn the_last_of_equal_keys_wins() {
    let properties = Properties::parse(b"a=1\nb=2\na=3").unwrap();
    assert_eq!(properties.find("a").map(|e| (e.value.as_str(), e.line)), Some(("3", 3)));
    let effective: Vec<&str> = properties.effective().map(|e| e.value.as_str()).collect();
    assert_eq!(effective, ["2", "3"]);
    assert_eq!(properties.entries().len(), 3);
}

#[test]
fn bytes_are_latin_1_unless_they_are_utf_8() {
    let latin = Properties::parse(b"k=caf\xe9").unwrap();
    assert_eq!(latin.find("k").unwrap().value, "café");
    let utf8 = Properties::parse("\u{feff}k=café".as_bytes()).unwrap();
    assert_eq!(utf8.find("k").unwrap().value, "café");
}

#[test]
fn debug_output_hides_secrets() {
    let properties = Properties::parse(b"a.ssl.key.password=hunter2").unwrap();
    assert!(!format!("{properties:?}").contains("hunter2"));
}

/// The same reader one character at a time, with flags, as Java's is written.
fn naive(text: &str) -> Vec<(String, String, usize)> {
    let chars: Vec<char> = text.chars().collect();
    let (mut entries, mut logical, mut start, mut line) = (Vec::new(), Vec::new(), 1, 1);
    let (mut skip_blanks, mut escaped, mut comment) = (true, false, false);
    let mut index = 0;
    while index <= chars.len() {
        let c = chars.get(index).copied();
        let ends = matches!(c, None | Some('\n' | '\r'));
        if ends {
            let continues = escaped && !comment;
            if continues {
                logical.pop();
                if logical.is_empty() && index + 1 >= chars.len() {
                    entries.push(naive_entry(&logical, start));
                }
            } else if !logical.is_empty() {
                entries.push(naive_entry(&logical, start));
                logical.clear();
            }
            if c.is_none() && !logical.is_empty() {
                entries.push(naive_entry(&logical, start));
            }
            if c == Some('\r') && chars.get(index + 1) == Some(&'\n') {
                index += 1;
            }
            line += 1;
            (skip_blanks, escaped, comment) = (true, false, false);
        } else if let Some(c) = c.filter(|&c| !(comment || skip_blanks && is_blank(c))) {
            skip_blanks = false;
            if logical.is_empty() && (c == '#' || c == '!') {
                comment = true;
            } else {
                if logical.is_empty() {
                    start = line;
                }
                escaped = c == '\\' && !escaped;
                logical.push(c);
            }
        }
        index += 1;
    }
    entries
}

fn naive_entry(line: &[char], start: usize) -> (String, String, usize) {
    let mut key_end = 0;
    let mut escaped = false;
    while key_end < line.len() && (escaped || !(is_blank(line[key_end]) || "=:".contains(line[key_end]))) {
        escaped = line[key_end] == '\\' && !escaped;
        key_end += 1;
    }
    let mut value = key_end;
    let mut separator_seen = false;
    while value < line.len() {
        let separator = "=:".contains(line[value]);
        if !is_blank(line[value]) && (separator_seen || !separator) {
            break;
        }
        separator_seen |= separator;
        value += 1;
    }
    (naive_unescape(&line[..key_end]), naive_unescape(&line[value..]), start)
}

fn naive_unescape(text: &[char]) -> String {
    let mut out = String::new();
    let mut index = 0;
    while index < text.len() {
        if text[index] == '\\' && index + 1 < text.len() {
            index += 1;
            out.push(match text[index] {
                't' => '\t',
                'n' => '\n',
                'f' => '\u{c}',
                'r' => '\r',
                other => other,
            });
        } else {
            out.push(text[index]);
        }
        index += 1;
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_without_unicode_escapes_reads_as_the_naive_twin_reads_it(text in "[ab#!=: \t\u{c}\\\\\n\r.é]{0,40}") {
        prop_assert_eq!(read(&text), naive(&text));
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Properties::parse(&bytes);
    }
}
