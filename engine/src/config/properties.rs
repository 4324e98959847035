//! Reads the text format of `java.util.Properties`, keeping the line of each key.
//!
//! Same reading as Java's, quirks included: a single backslash before an ordinary character is eaten, a `#` starts
//! a comment only at the start of a logical line, blanks at the end of a value belong to it. Two differences, both
//! in the operator's favour: text that is valid UTF-8 is read as such (Java takes every byte for a Latin-1
//! character), and a byte order mark is dropped.
//!
//! # References
//! `java.util.Properties#load(InputStream)`.

mod rest;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::error::{Fault, Origin};
use super::form::Form;
use super::secret::{self, Value};
use super::warning::Warning;

/// One key of a properties file with its value and where it was written.
///
/// `Debug` masks the values of secret keys.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key, escapes resolved.
    pub key: String,
    /// The value as Java would hand it out: escapes resolved, blanks at its end kept, what config providers give put in.
    pub value: Value,
    /// Its text before config providers were asked, if they were: this is what may be shown.
    pub reference: Option<Value>,
    /// Line of the file in which the key begins, from 1.
    pub line: usize,
    /// Whether the key itself may be a part of a secret, as in a line of a private key: it must not be shown.
    pub is_rest: bool,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} = {:?}", self.line, self.shown_key(), self.shown())
    }
}

impl Entry {
    /// A sentence about the value that does not tell what must not be shown of it.
    pub(super) fn without_secrets(&self, sentence: &str) -> String {
        if self.reference.is_some() || self.is_rest || secret::is_hidden(&self.key, &self.value) {
            secret::scrub(sentence, &self.value)
        } else {
            sentence.to_owned()
        }
    }

    /// The text before config providers were asked.
    pub(super) fn typed(&self) -> &str {
        self.reference.as_ref().unwrap_or(&self.value)
    }

    /// Where it was written.
    pub(super) fn origin(&self) -> Origin {
        Origin { key: self.shown_key().to_owned(), line: self.line }
    }

    /// The key as typed, masked where it may be a part of a secret.
    #[must_use]
    pub fn shown_key(&self) -> &str {
        if self.is_rest { secret::MASK } else { &self.key }
    }

    /// What may be shown of the value: a reference to a provider as typed, masked where it is a secret, whole.
    #[must_use]
    pub fn shown(&self) -> String {
        if self.is_rest { secret::MASK.to_owned() } else { secret::shown(&self.key, self.typed()) }
    }
}

/// A properties file: all entries in the order written, and the last one of each key.
#[derive(Clone, Debug, Default)]
pub struct Properties {
    form: Form,
    entries: Vec<Entry>,
    last: HashMap<String, usize>,
    /// The first entry with characters that Java would read otherwise.
    first_utf8: Option<usize>,
    /// The entries out of whose values the reader took a backslash that was probably meant, with what stands behind the first.
    backslashes: BTreeMap<usize, char>,
    /// The entries whose last line ends in a backslash and a blank: it was probably to go on.
    broken_off: BTreeSet<usize>,
    /// The entries that end in lines with keys of their own, each with the first such line.
    swallowing: BTreeMap<usize, usize>,
}

impl Properties {
    /// Reads a whole file.
    ///
    /// # Errors
    /// One [`Fault`] for each malformed `\u` escape, the only thing that Java's reader refuses.
    pub fn parse(bytes: &[u8]) -> Result<Self, Vec<Fault>> {
        let (text, is_utf8) = decode(bytes);
        let mut properties = Self::default();
        let mut faults = Vec::new();
        for logical in logical_lines(&text) {
            if is_utf8 && !logical.text.is_ascii() {
                properties.first_utf8.get_or_insert(properties.entries.len());
            }
            match split_entry(&logical.text) {
                Ok((key, value)) => {
                    if let Some(behind) = dropped_backslash(cut(&logical.text).1) {
                        properties.backslashes.insert(properties.entries.len(), behind);
                    }
                    if let Some(line) = logical.swallowed {
                        properties.swallowing.insert(properties.entries.len(), line);
                    }
                    if logical.is_broken_off {
                        properties.broken_off.insert(properties.entries.len());
                    }
                    let (value, line) = (value.into(), logical.line);
                    properties.push(Entry { key, value, reference: None, line, is_rest: false });
                }
                Err(BadEscape(found)) => faults.push(
                    Fault::new("`\\u` must be followed by four hexadecimal digits")
                        .at_line(logical.line)
                        .value(&logical.text, &found)
                        .remedy("write `\\\\u` for a backslash before the letter u"),
                ),
            }
        }
        rest::mark(&mut properties.entries);
        if faults.is_empty() { Ok(properties) } else { Err(faults) }
    }

    /// Entries of a connector's JSON.
    pub(super) fn of_connector(entries: Vec<Entry>) -> Self {
        let mut properties = Self { form: Form::Connector, ..Self::default() };
        entries.into_iter().for_each(|entry| properties.push(entry));
        properties
    }

    /// How it was written, for advice.
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// A warning where the text was read otherwise than Java would: it takes every byte for a Latin-1 character.
    pub(super) fn utf8_note(&self) -> Option<Warning> {
        let entry = self.entries.get(self.first_utf8?)?;
        Some(Warning::of(
            entry,
            "holds characters outside ASCII, read as UTF-8; MM2 reads such bytes as ISO-8859-1",
        ))
    }

    /// The entries that count and lost a backslash to the reader, each with what stands behind the first one.
    pub(super) fn lost_backslashes(&self) -> impl Iterator<Item = (&Entry, char)> {
        let lost = self.backslashes.iter().map(|(&index, &behind)| (index, &self.entries[index], behind));
        let counting = lost.filter(|(index, entry, _)| self.last[&entry.key] == *index);
        counting.map(|(_, entry, behind)| (entry, behind))
    }

    /// The entries that count and end in a backslash and a blank, which Java does not take for a line that goes on.
    pub(super) fn broken_off(&self) -> impl Iterator<Item = &Entry> {
        let entries = self.broken_off.iter().map(|&index| (index, &self.entries[index]));
        entries.filter(|(index, entry)| self.last[&entry.key] == *index).map(|(_, entry)| entry)
    }

    /// The entries that count and hold a line with a key of its own, since the line before it ends in a backslash; each with
    /// that line.
    pub(super) fn swallowing(&self) -> impl Iterator<Item = (&Entry, usize)> {
        let entries = self.swallowing.iter().map(|(&index, &line)| (index, &self.entries[index], line));
        let counting = entries.filter(|(index, entry, _)| self.last[&entry.key] == *index);
        counting.map(|(_, entry, line)| (entry, line))
    }

    /// The entry that counts for `key`: the last one written.
    pub fn find(&self, key: &str) -> Option<&Entry> {
        self.last.get(key).map(|&index| &self.entries[index])
    }

    /// Every entry as written, repeated keys included.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entries that count: for a repeated key only the last one, at its place.
    pub fn effective(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().enumerate().filter(|(index, e)| self.last[&e.key] == *index).map(|(_, e)| e)
    }

    /// The same entries, each that counts with the value that `change` gives for it, if it gives one.
    pub(super) fn map(&self, mut change: impl FnMut(&Entry) -> Option<String>) -> Self {
        let mut mapped = self.clone();
        for (index, entry) in mapped.entries.iter_mut().enumerate() {
            if self.last[&entry.key] == index
                && let Some(value) = change(entry)
            {
                entry.reference = Some(std::mem::replace(&mut entry.value, value.into()));
            }
        }
        mapped
    }

    fn push(&mut self, entry: Entry) {
        self.last.insert(entry.key.clone(), self.entries.len());
        self.entries.push(entry);
    }
}

/// UTF-8 where the bytes are valid UTF-8 (true), else Latin-1, in which every byte is a character.
fn decode(bytes: &[u8]) -> (String, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.strip_prefix('\u{feff}').unwrap_or(text).to_owned(), true),
        Err(_) => (bytes.iter().map(|&byte| char::from(byte)).collect(), false),
    }
}

/// A line with its continuations joined and comments gone; escapes still in it.
#[derive(Default)]
struct LogicalLine {
    text: String,
    line: usize,
    /// Whether a blank behind its last backslash keeps it from going on.
    is_broken_off: bool,
    /// The line with a key of its own that a backslash before it has made a part of this one.
    swallowed: Option<usize>,
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{c}')
}

/// Joins continued lines. A line without a character in it (also one that consists of nothing but a continuation)
/// does not begin a logical line, so a `#` after it still starts a comment: Java does the same.
fn logical_lines(text: &str) -> Vec<LogicalLine> {
    let mut lines = Vec::new();
    let mut current = LogicalLine::default();
    let mut is_lone = false;
    for (index, natural) in natural_lines(text).enumerate() {
        let natural = natural.trim_start_matches(is_blank);
        if current.text.is_empty() {
            if natural.is_empty() || natural.starts_with(['#', '!']) {
                continue;
            }
            current.line = index + 1;
        }
        if !current.text.is_empty() && current.swallowed.is_none() && begins_with_known_key(natural) {
            current.swallowed = Some(index + 1);
        }
        if is_continued(natural) {
            current.text.push_str(&natural[..natural.len() - 1]);
            is_lone = current.text.is_empty();
            continue;
        }
        is_lone = false;
        current.text.push_str(natural);
        current.is_broken_off =
            natural.ends_with(is_blank) && is_continued(natural.trim_end_matches(is_blank));
        lines.push(std::mem::take(&mut current));
    }
    if !current.text.is_empty() || is_lone && ends_in_a_lone_continuation(text) {
        lines.push(current);
    }
    lines
}

/// Whether a line sets a key that is known, below whatever names.
fn begins_with_known_key(natural: &str) -> bool {
    let key = natural.split(['=', ':']).next().unwrap_or_default();
    key.len() < natural.len() && secret::is_known_below_names(key.trim_end_matches(is_blank))
}

fn is_continued(natural: &str) -> bool {
    natural.chars().rev().take_while(|&c| c == '\\').count() % 2 == 1
}

/// Java takes a last line of nothing but a continuation for an empty key, unless a carriage return and a newline end it.
fn ends_in_a_lone_continuation(text: &str) -> bool {
    let last = text.strip_suffix(['\n', '\r']).unwrap_or(text).rsplit(['\n', '\r']).next();
    last.is_some_and(|last| last.trim_start_matches(is_blank) == "\\")
}

/// Lines ended by a newline, a carriage return, or both.
fn natural_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.find(['\n', '\r']) else {
            rest = None;
            return Some(text);
        };
        let after = &text[end..];
        rest = Some(after.strip_prefix("\r\n").unwrap_or(&after[1..]));
        Some(&text[..end])
    })
}

/// The text of a `\u` escape that is not one.
struct BadEscape(String);

/// Cuts a logical line at its separator: blanks, then at most one `=` or `:`, then blanks.
fn split_entry(line: &str) -> Result<(String, String), BadEscape> {
    let (key, value) = cut(line);
    Ok((unescape(key)?, unescape(value)?))
}

/// The two parts of a logical line, escapes still in them.
fn cut(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let key_end = line
        .find(|c: char| {
            let ends = !escaped && (is_blank(c) || c == '=' || c == ':');
            escaped = c == '\\' && !escaped;
            ends
        })
        .unwrap_or(line.len());
    let rest = line[key_end..].trim_start_matches(is_blank);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start_matches(is_blank);
    (&line[..key_end], value)
}

/// What stands behind the first backslash that the reader drops in silence and that was probably meant: not one before a
/// separator, a note or a quote, which people escape by habit.
fn dropped_backslash(value: &str) -> Option<char> {
    let mut rest = value.chars();
    while rest.any(|c| c == '\\') {
        let behind = rest.next()?;
        if !"utnrf\\=:#! \t\u{c}\"'".contains(behind) {
            return Some(behind);
        }
    }
    None
}

/// Resolves escapes. Works in UTF-16 units because two `\u` escapes may form one character.
fn unescape(text: &str) -> Result<String, BadEscape> {
    if !text.contains('\\') {
        return Ok(text.to_owned());
    }
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let c = if c == '\\' {
            rest.next().unwrap_or('\\')
        } else {
            push(&mut units, c);
            continue;
        };
        match c {
            'u' => {
                let after = rest.as_str();
                let digits = after.get(..4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
                let unit = digits.and_then(|d| u16::from_str_radix(d, 16).ok());
                units.push(unit.ok_or_else(|| BadEscape(format!("\\u{}", first_chars(after, 4))))?);
                rest = after[4..].chars();
            }
            't' => units.push(0x09),
            'n' => units.push(0x0a),
            'f' => units.push(0x0c),
            'r' => units.push(0x0d),
            other => push(&mut units, other),
        }
    }
    Ok(String::from_utf16_lossy(&units))
}

fn push(units: &mut Vec<u16>, c: char) {
    units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
}

fn first_chars(text: &str, count: usize) -> String {
    text.chars().take(count).collect()
}

#[cfg(test)]
mod tests;
