//! What is wrong with a configuration: every fault at once, each with key, line, reason and remedy.

use std::fmt;

use super::once::Once;
use super::secret;
use super::warning::Warning;

/// Where a setting was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The whole key as typed, such as `west->east.topics`.
    pub key: String,
    /// Line of the file, from 1.
    pub line: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: `{}`", self.line, secret::in_a_line(&self.key))
    }
}

/// One thing that keeps a configuration from being used. Its value is already masked where it is secret.
///
/// `Display` gives one line for people, in which long values are cut; [`Fault::message`] the whole sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fault {
    /// The whole key as typed; none where a key is missing or a line cannot be read.
    pub key: Option<String>,
    /// Line of the file, from 1; none where a key is missing.
    pub line: Option<usize>,
    /// What was written, the whole of it, as far as it may be shown.
    pub value: Option<Box<str>>,
    /// Further keys of which the same is to be said.
    pub others: Box<[Origin]>,
    /// What is wrong, as the end of a sentence that begins with the key.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

impl Fault {
    /// A fault that belongs to no key (yet).
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..Self::default() }
    }

    /// A fault of a key that was written, with its value.
    pub(crate) fn of(entry: &super::properties::Entry, reason: impl AsRef<str>) -> Self {
        Self::of_reference(entry, entry.without_secrets(reason.as_ref()))
    }

    /// A fault of a key whose reason quotes nothing of its value but a reference to a config provider.
    pub(crate) fn of_reference(entry: &super::properties::Entry, reason: impl Into<String>) -> Self {
        Self {
            key: Some(entry.shown_key().to_owned()),
            line: Some(entry.line),
            value: Some(entry.shown().into()),
            reason: reason.into(),
            ..Self::default()
        }
    }

    /// The whole sentence, with nothing cut and nothing escaped: not for a terminal.
    #[must_use]
    pub fn message(&self) -> String {
        self.sentence(&and_all(&self.others), str::to_owned, str::to_owned)
    }

    fn sentence(
        &self,
        others: &str,
        part: impl Fn(&str) -> String,
        sentence: impl Fn(&str) -> String,
    ) -> String {
        let line = self.line.map(|line| format!("line {line}: ")).unwrap_or_default();
        let about = match (self.key.as_deref(), self.value.as_deref()) {
            (Some(key), Some(value)) => format!("`{} = {}`: ", part(key), part(value)),
            (Some(text), None) | (None, Some(text)) => format!("`{}`: ", part(text)),
            (None, None) => String::new(),
        };
        let remedy =
            if self.remedy.is_empty() { String::new() } else { format!("; {}", sentence(&self.remedy)) };
        format!("{line}{about}{}{others}{remedy}", sentence(&self.reason))
    }

    /// A fault of a key that is missing.
    pub(crate) fn missing(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { key: Some(key.into()), reason: reason.into(), ..Self::default() }
    }

    pub(crate) fn at_line(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }

    /// Shows a part of a line that could not be read, unless the line smells of a secret.
    pub(crate) fn value(mut self, line: &str, value: &str) -> Self {
        self.value = Some(if secret::is_hidden(line, line) {
            secret::shown(line, value).into()
        } else {
            value.into()
        });
        self
    }

    pub(super) fn others(mut self, others: &[&super::properties::Entry]) -> Self {
        self.others = others.iter().map(|entry| entry.origin()).collect();
        self
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence(&and_more(&self.others), secret::in_a_line, secret::sentence_in_a_line))
    }
}

/// The number of further keys, as the end of a sentence in one line.
pub(super) fn and_more(others: &[Origin]) -> String {
    match others.len() {
        0 => String::new(),
        1 => " (and 1 more such key)".to_owned(),
        count => format!(" (and {count} more such keys)"),
    }
}

/// All of them, where a sentence may be long.
pub(super) fn and_all(others: &[Origin]) -> String {
    let named: Vec<String> =
        others.iter().map(|other| format!("`{}` in line {}", other.key, other.line)).collect();
    if named.is_empty() { String::new() } else { format!(" (the same goes for {})", named.join(", ")) }
}

/// Every fault of a configuration, in the order of the file; faults without a line come first. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors {
    faults: Vec<Fault>,
    warnings: Vec<Warning>,
}

impl ConfigErrors {
    /// # Panics
    /// On an empty list, which would be an error without a reason.
    pub(crate) fn new(mut faults: Vec<Fault>) -> Self {
        assert!(!faults.is_empty(), "a configuration is refused for a reason");
        faults.sort_by_key(|fault| fault.line);
        let mut told = Once::default();
        told.extend(faults);
        Self { faults: told.into_items(), warnings: Vec::new() }
    }

    pub(crate) fn with_warnings(mut self, warnings: Vec<Warning>) -> Self {
        self.warnings = warnings;
        self
    }

    /// The faults, at least one.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// What else reads oddly in the file; it may hold the cause of a fault, such as a key that is spelt wrongly.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(f, "{line_break}{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

#[cfg(test)]
mod tests {
    use super::super::properties::Entry;
    use super::*;

    #[test]
    fn a_fault_reads_as_one_sentence_and_hides_secrets() {
        let entry = Entry {
            key: "b.sasl.jaas.config".into(),
            value: "pw".into(),
            reference: None,
            line: 7,
            is_rest: false,
        };
        let fault = Fault::of(&entry, "SASL is not built yet").remedy("remove it");
        assert_eq!(
            fault.to_string(),
            "line 7: `b.sasl.jaas.config = ********`: SASL is not built yet; remove it"
        );
        assert!(!format!("{fault:?} {entry:?}").contains("pw"));
    }

    #[test]
    fn a_line_is_one_line_and_the_message_is_whole() {
        let (key, value) =
            (format!("a\u{202e}{}", "k".repeat(200)), format!("b\n\u{200b}{}", "v".repeat(200)));
        let entry =
            Entry { key: key.clone(), value: value.clone().into(), reference: None, line: 7, is_rest: false };
        let fault = Fault::of(&entry, "no\rgood").remedy("mend it");
        let line = fault.to_string();
        assert!(
            line.starts_with("line 7: `a\\u{202e}kkk") && line.contains("k… = b\\n\\u{200b}vvv"),
            "{line}"
        );
        assert!(line.ends_with("v…`: no\\rgood; mend it"), "{line}");
        assert_eq!(fault.message(), format!("line 7: `{key} = {value}`: no\rgood; mend it"));
    }

    #[test]
    fn faults_are_listed_in_the_order_of_the_file() {
        let fault = |line, reason: &str| Fault { line, reason: reason.into(), ..Fault::default() };
        let errors = ConfigErrors::new(vec![fault(Some(9), "c"), fault(Some(2), "b"), fault(None, "a")]);
        assert_eq!(errors.to_string(), "a\nline 2: b\nline 9: c");
    }
}
